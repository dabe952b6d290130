//! Random orders of transfers, cancels, stops that take their time, stalls and their clearing, full
//! event rings: each transfer completes once, and what it says is what has moved.

use crate::fixture::DriverAccess;
use crate::fixture::{Fixture, IN, OUT, PATH, stream};
use crate::{GuestMemory, Model};
use bus::link::End;
use bus::{Completion, EndpointAddress, Pipe, TransferStatus};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::vec::Vec;
use units::Duration;
use wire::xhci::{EndpointId, EndpointState};
use xhci_driver::{Answer, Config, DeviceId, Output, Quirks, Request, RequestId};

#[derive(Clone, Copy, Debug)]
enum TrbStep {
    Submit {
        pipe: u8,
        length: u32,
    },
    Cancel {
        which: prop::sample::Index,
    },
    Move {
        which: prop::sample::Index,
        share: u8,
    },
    End {
        which: prop::sample::Index,
        how: u8,
    },
    Rest,
    Clear,
    Fail(u8),
    Pass(u16),
    /// The controller looks at doorbells that lie in memory.
    Poll,
}

fn steps() -> impl Strategy<Value = Vec<TrbStep>> {
    let step = prop_oneof![
        6 => (0u8..6, prop_oneof![0u32..5000, 0u32..200_000])
            .prop_map(|(pipe, length)| TrbStep::Submit { pipe, length }),
        3 => any::<prop::sample::Index>().prop_map(|which| TrbStep::Cancel { which }),
        4 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(which, share)| TrbStep::Move { which, share }),
        6 => (any::<prop::sample::Index>(), 0u8..12).prop_map(|(which, how)| TrbStep::End { which, how }),
        3 => Just(TrbStep::Rest),
        2 => Just(TrbStep::Clear),
        3 => Just(TrbStep::Poll),
        // Data buffer, transaction, and one that says nothing of the endpoint.
        1 => prop_oneof![Just(2), Just(4), Just(33)].prop_map(TrbStep::Fail),
        4 => (0u16..500).prop_map(TrbStep::Pass),
    ];
    prop::collection::vec(step, 1..120)
}

/// The same steps, but no transfer fails.
fn without_failures(steps: Vec<TrbStep>) -> Vec<TrbStep> {
    let without = |step| match step {
        TrbStep::End { which, how: 0..=1 } => TrbStep::End { which, how: 2 },
        TrbStep::Fail(_) => TrbStep::Poll,
        step => step,
    };
    steps.into_iter().map(without).collect()
}

struct Storm {
    fixture: Fixture,
    device: DeviceId,
    has_streams: bool,
    /// Transfers in flight, by id: pipe and length.
    open: BTreeMap<u64, (Pipe, u32)>,
    /// Endpoints that have failed and are to be cleared, by address.
    halted: BTreeMap<u8, EndpointAddress>,
    /// One of them is cleared, and the driver has yet to say that its end is.
    is_clearing: bool,
    next: u64,
    /// Transfers that did not end by themselves, and were cancelled.
    rescued: u32,
}

impl Storm {
    fn new(model: Model, config: Config, has_streams: bool) -> Self {
        let (mut fixture, device) = if has_streams {
            Fixture::with_streams(model, config)
        } else {
            Fixture::with_device(model, config)
        };
        fixture.rests = false;
        let (open, halted) = (BTreeMap::new(), BTreeMap::new());
        Self { fixture, device, has_streams, open, halted, is_clearing: false, next: 0, rescued: 0 }
    }

    fn pipe(&self, number: u8) -> Pipe {
        let address = if number.is_multiple_of(2) { IN } else { OUT };
        match self.has_streams {
            true => stream(address, 1 + u16::from(number) / 2),
            false => Pipe::plain(address),
        }
    }

    fn step(&mut self, step: TrbStep) {
        match step {
            TrbStep::Submit { pipe, length } => {
                let pipe = self.pipe(pipe);
                if self.fixture.submit(self.device, pipe, (self.next, length)).is_ok() {
                    self.open.insert(self.next, (pipe, length));
                }
                self.next += 1;
            }
            TrbStep::Cancel { which } if !self.open.is_empty() => {
                let ids: Vec<_> = self.open.keys().copied().collect();
                let id = *which.get(&ids);
                self.fixture.cancel(self.device, self.open[&id].0, id);
            }
            TrbStep::Move { which, share } => self.moves(which, Some(share), None),
            TrbStep::End { which, how } => {
                let end = match how {
                    0 => End::Stalled,
                    1 => End::Overflow,
                    2..5 => End::Short,
                    _ => End::Full,
                };
                self.moves(which, None, Some(end));
            }
            TrbStep::Rest => {
                for address in std::mem::take(&mut self.fixture.stopping) {
                    self.fixture.controller.handle_quiet(
                        self.fixture.now,
                        &mut self.fixture.memory,
                        PATH,
                        address,
                    );
                }
            }
            TrbStep::Clear => self.clear(),
            TrbStep::Poll => {
                self.fixture.poll_doorbells();
            }
            TrbStep::Fail(code) => self.fixture.controller.fail_next(code.into()),
            TrbStep::Pass(us) => self.fixture.run_for(Duration::from_us(us.into())),
            TrbStep::Cancel { .. } => {}
        }
        self.fixture.carry_out();
        self.check();
    }

    /// A transfer of the link moves on, or ends. Only the first of a pipe does, and none of an
    /// endpoint at rest.
    fn moves(&mut self, which: prop::sample::Index, share: Option<u8>, end: Option<End>) {
        if self.fixture.link.is_empty() {
            return;
        }
        let (pipe, _) = *which.get(&self.fixture.link);
        let first = self.fixture.link.iter().find(|(other, _)| *other == pipe);
        let Some((_, transfer)) = first.copied() else { return };
        let so_far = self.fixture.moved.get(&transfer.id).copied().unwrap_or(0);
        let left = transfer.bytes - so_far;
        let is_in = pipe.endpoint.direction() == bus::Direction::In;
        let (moved, end) = match end {
            // Whole packets, and never all of it.
            None => (left * u32::from(share.unwrap_or(0)) / 256 / 1024 * 1024, None),
            Some(End::Full) => (left, Some(End::Full)),
            Some(End::Short) if is_in && left > 0 => (left - 1, Some(End::Short)),
            Some(End::Overflow) if is_in => (left, Some(End::Overflow)),
            Some(End::Stalled) => (0, Some(End::Stalled)),
            Some(_) => (left, Some(End::Full)),
        };
        if end.is_none() && moved == 0 {
            return;
        }
        self.fixture.moves(pipe, so_far + moved, end);
    }

    /// The device released a halt, or counts again because the host does.
    fn clear(&mut self) {
        if self.is_clearing {
            return;
        }
        let Some((_, address)) = self.halted.pop_first() else { return };
        let fixture = &mut self.fixture;
        let access = &mut DriverAccess::new(fixture.now, &mut fixture.controller, &mut fixture.memory);
        let request = Request::ResetToggle(self.device, address);
        fixture.driver.request(access, fixture.now, RequestId(9), request).expect("it is held");
        self.is_clearing = true;
    }

    fn check(&mut self) {
        for reported in self.fixture.reported() {
            let (id, status, actual) = match reported {
                Output::Completed(_, Completion { id, status, actual }) => (id.0, status, actual),
                Output::Answered(RequestId(9), answer) => {
                    assert_eq!(answer, Answer::Done);
                    self.is_clearing = false;
                    continue;
                }
                _ => continue,
            };
            let (pipe, length) = self.open.remove(&id).expect("each completes once");
            assert!(actual <= length, "{id}: {actual} of {length}");
            match status {
                TransferStatus::Done => assert_eq!(actual, length, "{id}"),
                TransferStatus::Short => assert!(actual < length, "{id}"),
                TransferStatus::Stall | TransferStatus::Babble | TransferStatus::Error => {
                    self.halted.insert(pipe.endpoint.into(), pipe.endpoint);
                }
                _ => {}
            }
        }
        assert_eq!(self.fixture.memory.faults(), 0);
        // What a link moves that no one waits for would be written into memory that is somebody
        // else's.
        assert_eq!(self.fixture.controller.counters().stale_progress, 0);
    }

    /// A timeout of who waits for a transfer: it is cancelled. Only where an endpoint has failed and its next doorbell was
    /// replaced does it come to that.
    fn rescue(&mut self) {
        let stuck: Vec<_> = self.open.iter().map(|(id, (pipe, _))| (*id, *pipe)).collect();
        for (id, pipe) in stuck {
            let slot = &self.fixture.controller.transfers.slots[self.device.slot()];
            let endpoint = slot.endpoint(EndpointId::of(pipe.endpoint)).unwrap();
            assert!(endpoint.has_failed, "{id} is lost, and {pipe:?} has not failed");
            self.fixture.cancel(self.device, pipe, id);
            self.rescued += 1;
        }
    }

    /// Everything ends.
    fn finish(&mut self) {
        self.fixture.polls = true;
        for round in 0..2000 {
            if self.open.is_empty() && !self.is_clearing {
                break;
            }
            if round == 1500 {
                self.rescue();
            }
            self.step(TrbStep::Rest);
            self.step(TrbStep::Clear);
            self.fixture.run_for(Duration::from_ms(20));
            self.check();
            let pipes: Vec<Pipe> = self.fixture.link.iter().map(|(pipe, _)| *pipe).collect();
            let stopping = self.fixture.stopping.clone();
            let is_stopping = |address: EndpointAddress| stopping.contains(&address);
            if let Some(pipe) = pipes.into_iter().find(|pipe| !is_stopping(pipe.endpoint)) {
                let (_, transfer) = *self.fixture.link.iter().find(|(other, _)| *other == pipe).unwrap();
                self.fixture.moves(pipe, transfer.bytes, Some(End::Full));
            }
        }
        assert!(self.open.is_empty(), "still open: {:?}", self.open);
        assert!(!self.is_clearing);
        assert!(self.fixture.controller.is_running());
        let counters = self.fixture.driver.counters();
        assert_eq!((counters.failed_endpoints, counters.command_timeouts), (0, 0));
    }
}

fn storm(model: Model, config: Config, has_streams: bool, steps: Vec<TrbStep>) {
    let mut storm = Storm::new(model, config, has_streams);
    steps.into_iter().for_each(|step| storm.step(step));
    storm.finish();
    assert_eq!(storm.rescued, 0);
}

/// A served controller takes no time.
const WITHOUT_DELAYS: Model = Model { ports_usb2: 2, ports_usb3: 2, ..Model::IMMEDIATE };

/// Doorbells lie in memory, and the controller looks at them at some steps only.
fn storm_of_stores(model: Model, has_streams: bool, rests: bool, steps: Vec<TrbStep>) -> Storm {
    let config = Config { ring_trbs: 12, stream_ring_trbs: 12, ..Config::default() };
    let mut storm = Storm::new(model, config, has_streams);
    storm.fixture.share_doorbells();
    (storm.fixture.polls, storm.fixture.rests) = (false, rests);
    steps.into_iter().for_each(|step| storm.step(step));
    storm.finish();
    storm
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn each_transfer_completes_once(steps in steps(), event_data in any::<bool>(), ring_trbs in 4u16..40) {
        let config = Config { event_data, ring_trbs, ..Config::default() };
        storm(Model::CHIPSET, config, false, steps);
    }

    #[test]
    fn each_transfer_of_streams_completes_once(steps in steps(), event_data in any::<bool>(), trbs in 8u16..40) {
        let config = Config { event_data, stream_ring_trbs: trbs, ..Config::default() };
        storm(Model::CARD, config, true, steps);
    }

    #[test]
    fn each_transfer_completes_once_on_an_early_part(steps in steps(), ahead in 1usize..6) {
        storm(Model { tds_ahead: ahead, ..Model::EARLY_CARD }, Config::default(), false, steps);
    }

    #[test]
    fn each_transfer_completes_once_on_secondary_arrays(steps in steps(), segments in 1u16..3) {
        let model = Model { primary_streams_exponent: 1, has_secondary_streams: true, ..Model::CHIPSET };
        let config = Config { stream_ring_segments: segments, stream_ring_trbs: 8, ..Config::default() };
        storm(model, config, true, steps);
    }

    #[test]
    fn each_transfer_completes_once_if_stops_are_answered_early(steps in steps()) {
        let quirks = Quirks { stop_answered_early: true, ..Quirks::default() };
        let mut model = Model::CHIPSET;
        model.misbehaviour.answers_stop_early = true;
        let mut storm = Storm::new(model, Config { quirks, ..Config::default() }, false);
        // The quirk is to wait as long as late events can come: the link comes to rest within that.
        storm.fixture.rests = true;
        steps.into_iter().for_each(|step| storm.step(step));
        storm.finish();
    }

    #[test]
    fn each_transfer_completes_once_if_doorbells_are_replaced(
        steps in steps().prop_map(without_failures),
        has_streams in any::<bool>(),
        rests in any::<bool>(),
    ) {
        for model in [Model::CHIPSET, WITHOUT_DELAYS] {
            let storm = storm_of_stores(model, has_streams, rests, steps.clone());
            prop_assert_eq!(storm.rescued, 0);
        }
    }

    #[test]
    fn transfers_that_fail_complete_once_if_doorbells_are_replaced(
        steps in steps(),
        has_streams in any::<bool>(),
        rests in any::<bool>(),
    ) {
        for model in [Model::CARD, WITHOUT_DELAYS] {
            storm_of_stores(model, has_streams, rests, steps.clone());
        }
    }

    #[test]
    fn one_order_is_one_outcome(steps in steps()) {
        let run = || {
            let mut storm = Storm::new(Model::CARD, Config::default(), true);
            steps.iter().for_each(|step| storm.step(*step));
            (storm.fixture.now, storm.fixture.controller.counters(), storm.fixture.driver.counters(), storm.open)
        };
        prop_assert_eq!(run(), run());
    }
}

#[test]
fn a_doorbell_stands_for_every_ring_of_its_slot() {
    let (mut fixture, device) = Fixture::with_streams(WITHOUT_DELAYS, Config::default());
    fixture.share_doorbells();
    fixture.polls = false;
    for (id, pipe) in (1..).zip([stream(IN, 1), stream(IN, 7), stream(OUT, 3), stream(OUT, 7)]) {
        fixture.submit(device, pipe, (id, 512)).unwrap();
    }
    assert_eq!(fixture.replaced_doorbells(), 3);
    assert_eq!(fixture.link, []);
    assert!(fixture.poll_doorbells());
    fixture.run();
    let pipes: Vec<_> = fixture.link.iter().map(|(pipe, _)| *pipe).collect();
    assert_eq!(pipes, [stream(OUT, 7), stream(IN, 1), stream(IN, 7), stream(OUT, 3)]);
    assert!(!fixture.poll_doorbells(), "each is looked at once");
}

#[test]
fn a_doorbell_before_a_stop_does_not_start_the_endpoint_after_it() {
    let (mut fixture, device) = Fixture::with_device(WITHOUT_DELAYS, Config::default());
    fixture.share_doorbells();
    fixture.polls = false;
    fixture.submit(device, Pipe::plain(IN), (1, 512)).unwrap();
    fixture.submit(device, Pipe::plain(IN), (2, 512)).unwrap();
    fixture.cancel(device, Pipe::plain(IN), 1);
    // One look sees the doorbell of the endpoint and that of Stop Endpoint. The fixture checks what the link gets.
    fixture.polls = true;
    fixture.run();
    assert_eq!(fixture.completions(), [(1, TransferStatus::Cancelled, 0)]);
    fixture.ends(Pipe::plain(IN), 512, End::Full);
    assert_eq!(fixture.completions(), [(2, TransferStatus::Done, 512)]);
}

#[test]
fn an_endpoint_whose_doorbell_was_replaced_runs_again() {
    let (mut fixture, device) = Fixture::with_device(WITHOUT_DELAYS, Config::default());
    fixture.share_doorbells();
    fixture.queue(device, Pipe::plain(IN), (1, 512));
    fixture.queue(device, Pipe::plain(IN), (2, 512));
    fixture.cancel(device, Pipe::plain(IN), 1);
    fixture.polls = false;
    // Stop, Set TR Dequeue Pointer, and then the doorbell of IN in the place of which OUT is written.
    for _ in 0..4 {
        fixture.memory.take_doorbell(device.slot());
        fixture.controller.poll_doorbells(fixture.now, &mut fixture.memory);
        fixture.run();
    }
    assert_eq!(fixture.endpoint_context(device.slot(), IN).state, EndpointState::Stopped);
    assert_eq!(fixture.link, []);
    fixture.submit(device, Pipe::plain(OUT), (3, 512)).unwrap();
    assert!(fixture.poll_doorbells());
    fixture.run();
    let pipes: Vec<_> = fixture.link.iter().map(|(pipe, _)| *pipe).collect();
    assert_eq!(pipes, [Pipe::plain(OUT), Pipe::plain(IN)]);
    assert_eq!(fixture.endpoint_context(device.slot(), IN).state, EndpointState::Running);
}

#[test]
fn a_stop_of_an_endpoint_that_may_run_succeeds() {
    let (mut fixture, device) = Fixture::with_device(WITHOUT_DELAYS, Config::default());
    fixture.share_doorbells();
    for id in 1..=3 {
        fixture.queue(device, Pipe::plain(IN), (id, 512));
    }
    fixture.cancel(device, Pipe::plain(IN), 1);
    fixture.polls = false;
    for _ in 0..4 {
        fixture.memory.take_doorbell(device.slot());
        fixture.controller.poll_doorbells(fixture.now, &mut fixture.memory);
        fixture.run();
    }
    let races = fixture.driver.counters().stop_races;
    // The driver takes IN for running, and OUT replaces its doorbell; then it stops IN.
    fixture.submit(device, Pipe::plain(OUT), (4, 512)).unwrap();
    fixture.cancel(device, Pipe::plain(IN), 2);
    fixture.polls = true;
    fixture.run();
    assert_eq!(fixture.driver.counters().stop_races, races);
    let pipes: Vec<_> = fixture.link.iter().map(|(pipe, _)| *pipe).collect();
    assert_eq!(pipes, [Pipe::plain(OUT), Pipe::plain(IN)]);
    assert!(fixture.completions().contains(&(2, TransferStatus::Cancelled, 0)));
}
