//! Storms between both ends: a transport and the whole device, with everything between them delayed, reordered, taken
//! back, halted, lost and pulled out at random.
//!
//! What must hold: every command ends once, with its buffer at rest; what was read is what was written; whoever waits has
//! a deadline; and when the weather clears up, both sides work on, unless the device was given up or is gone.
//!
//! 10,000 cases and more run each time. `PROPTEST_CASES=100000 cargo test -p uaskit-loopback --test storm` makes longer
//! weather; a failure prints its smallest script and its seed.

#[path = "../drive/mod.rs"]
mod drive;
mod medium;
mod model;
mod weather;

use bus::{EndpointAddress, Speed};
use initiator::turbo::{LookAhead, Turbo, TurboConfig};
use initiator::{Patience, Transport};
use loopback::plug;
use medium::held_medium;
use model::Blocks;
use proptest::prelude::*;
use target::device::{COMMAND, DATA_IN, DATA_OUT, STATUS};
use units::Duration;
use weather::{RequestFate, Weather};

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
    /// Tells of so many completions, from this one on.
    Tell(usize, u8),
    /// Carries and tells everything.
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
    Unplug,
}

fn any_step() -> impl Strategy<Value = Step> {
    let blocks = (0..DISK, 0u8..7).prop_map(|(first, count)| (first, count.min(DISK - first)));
    prop_oneof![
        12 => (any::<bool>(), blocks).prop_map(|(writes, blocks)| Step::Submit { writes, blocks }),
        1 => any::<usize>().prop_map(Step::Abort),
        10 => (1u8..8).prop_map(Step::Carry),
        8 => (any::<usize>(), 1u8..6).prop_map(|(position, count)| Step::Tell(position, count)),
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

/// A script, and whether the device is pulled out at its end.
fn any_script() -> impl Strategy<Value = Vec<Step>> {
    let unplug = prop::bool::weighted(0.1);
    (prop::collection::vec(any_step(), 1..60), unplug).prop_map(|(mut script, unplug)| {
        script.extend(unplug.then_some(Step::Unplug));
        script
    })
}

fn take<T: Transport>(weather: &mut Weather<T>, step: Step) {
    match step {
        Step::Submit { writes, blocks } => weather.submit(writes, blocks),
        Step::Abort(position) => weather.abort(position),
        Step::Carry(count) => (0..count).for_each(|_| weather.carry()),
        Step::Tell(position, count) => (0..count).for_each(|_| weather.tell(position)),
        Step::Flow => weather.flow(),
        Step::AnswerMedium { position, fails } => weather.answer_medium(position, fails),
        Step::Halt(endpoint) => weather.halt(endpoint),
        Step::Fail(position) => weather.fail(position),
        Step::LoseStatus => weather.lose_status = true,
        Step::FailRequest => weather.request_fate = RequestFate::Failed,
        Step::LoseAnswer => weather.request_fate = RequestFate::Unanswered,
        Step::PassTime => drop(weather.pass_time()),
        Step::Unplug => weather.unplug(),
    }
}

fn run<T: Transport>(mut weather: Weather<T>, script: Vec<Step>) {
    for step in script {
        take(&mut weather, step);
    }
    weather.clear_up();
    if weather.is_usable() {
        weather.inspect(DISK);
    }
}

fn uas_storm(speed: Speed, script: Vec<Step>) {
    let (medium, hand) = held_medium(DISK);
    let mut drive = drive::drive(speed, 8, Box::new(medium));
    let uas = plug::uas(&mut drive, None, Patience::default()).expect("the drive has UAS");
    run(Weather::new(uas, drive, hand, DISK), script);
}

fn cases(least: u32) -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.max(least), ..usual }
}

proptest! {
    #![proptest_config(cases(5000))]

    #[test]
    fn uas_with_streams_weathers_every_storm(script in any_script()) {
        uas_storm(Speed::Super, script);
    }

    #[test]
    fn uas_in_turns_weathers_every_storm(script in any_script()) {
        uas_storm(Speed::High, script);
    }

    #[test]
    fn bot_weathers_every_storm(script in any_script()) {
        let (medium, hand) = held_medium(DISK);
        let mut drive = drive::drive(Speed::Super, 8, Box::new(medium));
        let bot = plug::bot(&mut drive, Patience::default()).expect("the drive has BOT");
        run(Weather::new(bot, drive, hand, DISK), script);
    }

    #[test]
    fn turbo_weathers_every_storm(script in any_script(), wait_us in 0u64..2) {
        let (medium, hand) = held_medium(DISK);
        let mut drive = drive::drive(Speed::High, 8, Box::new(medium));
        let bot = plug::bot_config(&mut drive, Patience::default()).expect("the drive has BOT");
        let look_ahead = LookAhead::Always(Duration::from_us(wait_us));
        let config = TurboConfig { look_ahead, transfer_bytes_max: 4096, requests_max: 8, bot };
        run(Weather::new(Turbo::new(config), drive, hand, DISK), script);
    }
}
