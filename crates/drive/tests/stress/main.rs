//! Stress tests of both ends: a transport and the whole device, with everything between them delayed, reordered, cancelled,
//! halted, lost, unplugged and plugged in again at random.
//!
//! Invariants: every command ends once, with its buffer idle; reads return what was written; every wait has a
//! deadline; when the device is pulled out, all that was in flight ends without time; and when the faults stop, both
//! sides continue to work, unless the device was given up or is gone.
//!
//! 5000 cases of each kind and more run each time. `PROPTEST_CASES=100000 cargo test -p uaskit-drive --test stress` makes
//! longer runs. Each kind prints its seed, also when it passes (`-- --nocapture` shows it); `PROPTEST_RNG_SEED` replays it. A
//! failure prints its smallest script as well.

mod host;
mod medium;
mod model;

use bus::{EndpointAddress, Speed};
use device::device::{COMMAND, DATA_IN, DATA_OUT, STATUS};
use host::Host;
use initiator::turbo::{LookAhead, Turbo, TurboConfig};
use initiator::{Timeouts, Transport};
use medium::{Hand, held_medium};
use model::Blocks;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::hash::{BuildHasher, Hasher, RandomState};
use testkit::drive::drive_at;
use testkit::faulty_bus::RequestFate;
use testkit::pair::Pair;
use uaskit_drive::Drive;
use uaskit_drive::loopback::plug;
use units::Duration;

/// Blocks of the disk.
const DISK: u8 = 24;

#[derive(Clone, Debug)]
enum Step {
    Submit {
        writes: bool,
        blocks: Blocks,
    },
    Abort(usize),
    /// Carries so many outputs.
    Carry(u8),
    /// Delivers so many completions, from this one on.
    Deliver(usize, u8),
    /// Executes requests and delivers completions until there are none.
    Flow,
    AnswerMedium {
        position: usize,
        fails: bool,
    },
    Halt(EndpointAddress),
    Fail(usize),
    LoseStatus,
    FailRequest,
    LoseAnswer,
    PassTime,
    /// Unplugged. The host is notified before its transfers end, or after.
    Unplug {
        is_notified_first: bool,
    },
    /// Plugged in again, with a new transport; the drive has lost its power, or only its host.
    Plug {
        has_lost_power: bool,
    },
}

/// The device is pulled out, and perhaps plugged in again.
#[derive(Clone, Debug)]
struct Break {
    /// Where in the script.
    place: prop::sample::Index,
    is_notified_first: bool,
    /// After how many steps it is there again, and whether it has lost its power.
    plugged: Option<(usize, bool)>,
}

fn any_step() -> impl Strategy<Value = Step> {
    let blocks = (0..DISK, 0u8..7).prop_map(|(first, count)| (first, count.min(DISK - first)));
    prop_oneof![
        12 => (any::<bool>(), blocks).prop_map(|(writes, blocks)| Step::Submit { writes, blocks }),
        1 => any::<usize>().prop_map(Step::Abort),
        10 => (1u8..8).prop_map(Step::Carry),
        8 => (any::<usize>(), 1u8..6).prop_map(|(position, count)| Step::Deliver(position, count)),
        4 => Just(Step::Flow),
        12 => (any::<usize>(), prop::bool::weighted(0.1))
            .prop_map(|(position, fails)| Step::AnswerMedium { position, fails }),
        1 => prop::sample::select(&[DATA_IN, DATA_OUT, STATUS, COMMAND][..]).prop_map(Step::Halt),
        1 => any::<usize>().prop_map(Step::Fail),
        1 => Just(Step::LoseStatus),
        1 => Just(Step::FailRequest),
        1 => Just(Step::LoseAnswer),
        2 => Just(Step::PassTime),
    ]
}

/// A script; in some the device is pulled out once or twice.
fn any_script() -> impl Strategy<Value = Vec<Step>> {
    let breaks = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec(any_break(), 1..3),
    ];
    (prop::collection::vec(any_step(), 1..60), breaks).prop_map(|(mut script, breaks)| {
        for Break { place, is_notified_first, plugged } in breaks {
            let at = place.index(script.len() + 1);
            script.insert(at, Step::Unplug { is_notified_first });
            if let Some((gap, has_lost_power)) = plugged {
                let at = (at + 1 + gap).min(script.len());
                script.insert(at, Step::Plug { has_lost_power });
            }
        }
        script
    })
}

fn any_break() -> impl Strategy<Value = Break> {
    let plugged = prop::option::weighted(0.8, (0usize..8, any::<bool>()));
    (any::<prop::sample::Index>(), any::<bool>(), plugged)
        .prop_map(|(place, is_notified_first, plugged)| Break { place, is_notified_first, plugged })
}

/// A port of a host: how fast it is, and what it makes of a drive.
struct Port<F> {
    speed: Speed,
    attach: F,
}

fn take<T: Transport>(mut host: Host<T>, port: &Port<impl Fn(&mut Drive) -> T>, step: Step) -> Host<T> {
    let pair = &mut host.pair;
    match step {
        Step::Submit { writes, blocks } => host.submit(writes, blocks),
        Step::Abort(position) => host.abort(position),
        Step::Carry(count) => (0..count).for_each(|_| pair.carry()),
        Step::Deliver(position, count) => (0..count).for_each(|_| _ = pair.deliver(position)),
        Step::Flow => pair.flow(),
        Step::AnswerMedium { position, fails } => host.answer_medium(position, fails),
        Step::Halt(endpoint) => pair.bus.halt(endpoint),
        Step::Fail(position) => pair.bus.fail(position),
        Step::LoseStatus => pair.bus.loses_status = true,
        Step::FailRequest => pair.bus.request_fate = RequestFate::Failed,
        Step::LoseAnswer => pair.bus.request_fate = RequestFate::Unanswered,
        Step::PassTime => drop(pair.pass_time()),
        Step::Unplug { is_notified_first } => pair.unplug(is_notified_first),
        Step::Plug { has_lost_power } => {
            let power_up = |hand: &Hand| drive_at(port.speed, 8, Box::new(hand.power_up()));
            host = host.plug(&port.attach, has_lost_power.then_some(power_up));
        }
    }
    host.take_finished();
    host
}

fn run<T: Transport>(port: &Port<impl Fn(&mut Drive) -> T>, script: Vec<Step>) {
    let (medium, hand) = held_medium(DISK);
    let mut drive = drive_at(port.speed, 8, Box::new(medium));
    let mut host = Host::new(Pair::new((port.attach)(&mut drive), drive), hand, DISK);
    for step in script {
        host = take(host, port, step);
    }
    host.clear_up();
    if host.pair.transport().depth() > 0 {
        host.inspect(DISK);
    }
}

fn run_uas(speed: Speed, script: Vec<Step>) {
    let attach = |drive: &mut Drive| plug::uas(drive, None, Timeouts::default()).expect("the drive has UAS");
    run(&Port { speed, attach }, script);
}

/// At least so many cases; their number and seed are printed.
fn cases(least: u32) -> ProptestConfig {
    let usual = ProptestConfig::default();
    let cases = usual.cases.max(least);
    let seed = match usual.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().build_hasher().finish(),
    };
    println!("{cases} cases: PROPTEST_CASES={cases} PROPTEST_RNG_SEED={seed}");
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(seed), ..usual }
}

proptest! {
    #![proptest_config(cases(5000))]

    #[test]
    fn uas_with_streams_survives_every_script(script in any_script()) {
        run_uas(Speed::Super, script);
    }

    #[test]
    fn uas_without_streams_survives_every_script(script in any_script()) {
        run_uas(Speed::High, script);
    }

    #[test]
    fn bot_survives_every_script(script in any_script()) {
        let attach = |drive: &mut Drive| plug::bot(drive, Timeouts::default()).expect("the drive has BOT");
        run(&Port { speed: Speed::Super, attach }, script);
    }

    #[test]
    fn turbo_survives_every_script(script in any_script(), wait_us in 0u64..2) {
        let attach = |drive: &mut Drive| {
            let bot = plug::bot_config(drive, Timeouts::default()).expect("the drive has BOT");
            let look_ahead = LookAhead::Always(Duration::from_us(wait_us));
            Turbo::new(TurboConfig { look_ahead, transfer_bytes_max: 4096, requests_max: 8, bot })
        };
        run(&Port { speed: Speed::High, attach }, script);
    }
}
