//! Failing commands on both transports: each completes once, and the next one works.

use super::*;
use initiator::{Failure, Outcome};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use wire::scsi::Status;
use wire::usb::EndpointAddress;

const ENDPOINTS: [EndpointAddress; 4] =
    [device::device::COMMAND, device::device::STATUS, device::device::DATA_IN, device::device::DATA_OUT];

fn on_bot(plain: &FixedLatencyDrive) -> DirectMachine<initiator::Bot> {
    bot_over(Rate::Gen1, plain)
}

fn uas_over(connection: impl Into<Connection>, plain: &FixedLatencyDrive) -> DirectMachine<initiator::Uas> {
    let connection = connection.into();
    let device = plain.device_with(device::Transports::Dual, connection.speed());
    let mut machine = DirectMachine::new(connection, uas(device, None).unwrap(), plain.clone());
    first(&mut machine);
    machine
}

fn bot_over(connection: impl Into<Connection>, plain: &FixedLatencyDrive) -> DirectMachine<initiator::Bot> {
    let connection = connection.into();
    let device = plain.device_with(device::Transports::Dual, connection.speed());
    let mut machine = DirectMachine::new(connection, bot(device).unwrap(), plain.clone());
    first(&mut machine);
    machine
}

/// Sets the deadline of a command.
fn within(span: Duration, now: Instant, command: Command) -> Command {
    Command { deadline: now + span, ..command }
}

/// Returns the outcome of a command with a long deadline.
fn outcome<T: Transport>(machine: &mut DirectMachine<T>, command: Command) -> Outcome {
    outcome_of(machine, &within(Duration::from_secs(30), machine.now(), command))
}

fn outcome_of<T: Transport>(machine: &mut DirectMachine<T>, command: &Command) -> Outcome {
    let bytes = command.data_phase.map_or(0, |phase| phase.range.len as usize);
    machine.submit(command, vec![7; bytes]).unwrap();
    machine.run().unwrap().expect("the command ends").outcome
}

fn sense_key(outcome: &Outcome) -> (Status, u8) {
    let Outcome::Answered(answer) = outcome else { panic!("{outcome:?}") };
    (answer.status, answer.sense.as_bytes()[2] & 0x0f)
}

fn works<T: Transport>(machine: &mut DirectMachine<T>) {
    // A reset leaves a unit attention for the next command.
    let _ = outcome(machine, command(0, false, 0, 0));
    let later = Duration::from_secs(30);
    ask(machine, &within(later, machine.now(), command(1, true, 9, 3)), pattern(3));
    let read = within(later, machine.now(), command(2, false, 9, 3));
    assert!(ask(machine, &read, vec![0; 3 * BLOCK as usize]) == pattern(3));
}

fn out_of_range<T: Transport>(mut machine: DirectMachine<T>) {
    for writes in [false, true] {
        let outcome = outcome(&mut machine, command(0, writes, BLOCKS, 3));
        // ILLEGAL REQUEST.
        assert_eq!(sense_key(&outcome), (Status::CheckCondition, 5));
        works(&mut machine);
    }
}

#[test]
fn a_rejected_command_moves_nothing() {
    let plain = plain(Duration::from_us(20), 4);
    for connection in CONNECTIONS {
        out_of_range(uas_over(connection, &plain));
        out_of_range(bot_over(connection, &plain));
    }
}

#[test]
fn bot_clears_a_data_halt_and_reads_the_status() {
    let mut machine = on_bot(&plain(Duration::from_us(20), 4));
    outcome(&mut machine, command(0, false, BLOCKS, 3));
    assert_eq!(machine.transport().counters().stalls, 1);
    assert_eq!(machine.transport().counters().reset_recoveries, 0);
}

/// Packets on endpoint 0.
#[derive(Default)]
struct Endpoint0(Vec<String>);

impl Observer for Endpoint0 {
    fn sent(&mut self, _: Side, message: &Message, _: &Crossing, _: &[u8]) {
        if message.endpoint().number() == 0 {
            self.0.push(message.to_string());
        }
    }
}

#[test]
fn a_halt_is_cleared_by_packets_on_endpoint_0() {
    let mut machine = on_bot(&plain(Duration::from_us(20), 4));
    let seen = Rc::new(RefCell::new(Endpoint0::default()));
    machine.observe(Box::new(Rc::clone(&seen)));
    outcome(&mut machine, command(0, false, BLOCKS, 3));
    assert_eq!(
        seen.borrow().0,
        [
            // CLEAR FEATURE (ENDPOINT_HALT) of 81h.
            "SETUP [02, 01, 00, 00, 81, 00, 00, 00]",
            "ACK 0 OUT expects 1, takes 1",
            "STATUS",
            "ACK 0 OUT expects 0, takes 1",
        ]
    );
}

/// Applies a fate to every n-th packet.
#[derive(Debug)]
struct Every(u32, Fate, u32);

impl Fates for Every {
    fn fate(&mut self, _: Instant, _: Side, _: &Message) -> Fate {
        self.2 += 1;
        if self.2.is_multiple_of(self.0) { self.1 } else { Fate::Arrives }
    }
}

fn suffers<T: Transport>(mut machine: DirectMachine<T>, fate: Fate) -> Instant {
    machine.suffer(Box::new(Every(7, fate, 0)));
    for _ in 0..20 {
        works(&mut machine);
    }
    assert_eq!(
        machine.transport().counters(),
        initiator::Counters::default(),
        "the transport does not notice"
    );
    machine.now()
}

#[test]
fn corrupted_packets_only_cost_time() {
    let plain = plain(Duration::from_us(20), 4);
    let [unharmed, header, payload] = [Fate::Arrives, Fate::HeaderDamaged, Fate::PayloadDamaged]
        .map(|fate| [suffers(uas_over(Rate::Gen1, &plain), fate), suffers(on_bot(&plain), fate)]);
    for transport in 0..2 {
        assert!(header[transport] > unharmed[transport] && payload[transport] > unharmed[transport]);
    }
}

#[test]
fn an_aborted_command_releases_its_transfers() {
    for (writes, connection) in
        [false, true].into_iter().flat_map(|writes| CONNECTIONS.map(|at| (writes, at)))
    {
        let mut machine = uas_over(connection, &plain(Duration::from_ms(5), 4));
        machine.submit(&command(0, writes, 0, 3), pattern(1)).unwrap();
        machine.abort(command(0, writes, 0, 3).id);
        let finished = machine.run().unwrap().expect("the command ends");
        assert_eq!(finished.outcome, Outcome::Failed(Failure::Aborted));
        assert_eq!(machine.transport().counters().task_aborts, 1);
        works(&mut machine);
    }
}

#[test]
fn the_drive_queues_nothing_after_an_abort_at_any_event() {
    for (connection, writes, events) in
        CONNECTIONS.iter().flat_map(|at| (0..80).map(move |events| (*at, events % 2 == 0, events)))
    {
        let mut machine = uas_over(connection, &plain(Duration::from_ms(1), 4));
        let command = command(0, writes, 0, 3);
        machine.submit(&command, pattern(1)).unwrap();
        for _ in 0..events {
            machine.step();
        }
        machine.abort(command.id);
        machine.run().unwrap().expect("the command ends");
        assert!(machine.run_until(Some(machine.now() + QUIESCE_TIME)).unwrap().is_none());
        assert_eq!(machine.audit_rest(true), Ok(()), "{connection:?}, {command:?} after {events} events");
    }
}

fn too_slow<T: Transport>(mut machine: DirectMachine<T>, recovery: fn(&initiator::Counters) -> u32) {
    let command = within(Duration::from_ms(1), machine.now(), command(0, false, 0, 3));
    assert_eq!(outcome_of(&mut machine, &command), Outcome::Failed(Failure::TimedOut));
    assert_eq!(recovery(&machine.transport().counters()), 1);
    works(&mut machine);
}

#[test]
fn a_slow_command_times_out_and_is_aborted() {
    let plain = plain(Duration::from_ms(700), 4);
    for connection in CONNECTIONS {
        too_slow(uas_over(connection, &plain), |counters| counters.task_aborts);
        too_slow(bot_over(connection, &plain), |counters| counters.reset_recoveries);
    }
}

#[test]
fn detaching_completes_every_command() {
    for connection in CONNECTIONS {
        let mut machine = uas_over(connection, &plain(Duration::from_us(20), 4));
        for slot in 0..4 {
            machine.submit(&command(slot, slot % 2 == 0, 0, 3), pattern(1)).unwrap();
        }
        machine.unplug();
        for _ in 0..4 {
            let finished = machine.run().unwrap().expect("the command ends");
            assert_eq!(finished.outcome, Outcome::Failed(Failure::Disconnected));
        }
        assert!(machine.run().unwrap().is_none());
        assert_eq!(machine.submit(&command(0, false, 0, 3), pattern(1)), Err(Refusal::Gone));
    }
}

/// An action on a machine.
#[derive(Clone, Copy, Debug)]
enum Act {
    Submit { slot: u16, writes: bool, lba: u32, is_hasty: bool },
    Abort(u16),
    Halt(usize),
    Events(u8),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0_u16..6, any::<bool>(), 0..BLOCKS + 5, prop::bool::weighted(0.2))
            .prop_map(|(slot, writes, lba, is_hasty)| Act::Submit { slot, writes, lba, is_hasty }),
        1 => (0_u16..6).prop_map(Act::Abort),
        1 => (0_usize..4).prop_map(Act::Halt),
        6 => any::<u8>().prop_map(Act::Events),
    ]
}

/// Executes actions until everything has completed; returns the digest.
fn run_acts<T: Transport>(mut machine: DirectMachine<T>, acts: &[Act]) -> u64 {
    let mut in_flight = [None; 6];
    let mut generation = 0;
    for &act in acts {
        match act {
            Act::Submit { slot, writes, lba, is_hasty } if in_flight[usize::from(slot)].is_none() => {
                generation += 1;
                let made = command(slot, writes, lba, 3);
                let deadline = machine.now() + Duration::from_us(if is_hasty { 40 } else { 900_000 });
                let made = Command { id: CommandId { slot, generation }, deadline, ..made };
                if machine.submit(&made, pattern(7)).is_ok() {
                    in_flight[usize::from(slot)] = Some(made.id);
                }
            }
            Act::Submit { .. } => {}
            Act::Abort(slot) => {
                if let Some(id) = in_flight[usize::from(slot)] {
                    machine.abort(id);
                }
            }
            Act::Halt(which) => machine.halt(ENDPOINTS[which]),
            Act::Events(count) => {
                for _ in 0..count {
                    // Not to the next deadline, which may be far.
                    if machine.engine.next_at().is_some_and(|at| at < machine.now() + Duration::from_ms(1)) {
                        machine.step();
                    }
                }
            }
        }
        while let Some(finished) = machine.host.finished.pop_front() {
            assert_eq!(in_flight[usize::from(finished.id.slot)].take(), Some(finished.id));
        }
    }
    while in_flight.iter().any(Option::is_some) {
        let finished = machine.run().unwrap().expect("commands in flight complete");
        assert_eq!(in_flight[usize::from(finished.id.slot)].take(), Some(finished.id));
    }
    // Halts that no transfer has met yet, and unit attentions.
    let is_good = |outcome| matches!(outcome, Outcome::Answered(answer) if answer.status == Status::Good);
    for writes in [true, false] {
        let mut tries = 0..20;
        while !is_good(outcome(&mut machine, command(0, writes, 0, 3))) && tries.next().is_some() {}
    }
    works(&mut machine);
    machine.digest()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn each_command_completes_once_despite_aborts_halts_and_timeouts(
        acts in prop::collection::vec(act(), 0..40), latency_us in 0_u64..80, which in 0..CONNECTIONS.len(),
    ) {
        let (plain, at) = (plain(Duration::from_us(latency_us), 2), CONNECTIONS[which]);
        prop_assert_eq!(run_acts(uas_over(at, &plain), &acts), run_acts(uas_over(at, &plain), &acts));
        prop_assert_eq!(run_acts(bot_over(at, &plain), &acts), run_acts(bot_over(at, &plain), &acts));
    }
}

/// Loses one packet in so many, at random.
#[derive(Debug)]
struct Losing(crate::engine::Random, u64);

impl Fates for Losing {
    fn fate(&mut self, _: Instant, _: Side, _: &Message) -> Fate {
        if self.0.below(self.1) == 0 { Fate::Lost } else { Fate::Arrives }
    }
}

fn loses<T: Transport>(mut machine: DirectMachine<T>, seed: u64) {
    machine.suffer(Box::new(Losing(crate::engine::Random::new(seed, "losses"), 200)));
    for _ in 0..30 {
        let command = within(Duration::from_ms(100), machine.now(), command(0, true, 0, 3));
        if machine.submit(&command, pattern(1)).is_err() {
            return;
        }
        let finished = machine.run().unwrap().expect("the command ends");
        assert_eq!(finished.id, command.id);
    }
}

#[test]
fn each_command_completes_despite_lost_packets() {
    let plain = plain(Duration::from_us(20), 4);
    for seed in 0..20 {
        loses(uas_over(Rate::Gen1, &plain), seed);
        loses(on_bot(&plain), seed);
    }
}
