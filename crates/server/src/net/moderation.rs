//! Interrupt moderation: whether the loop pauses before it reads, so that more packets are answered at once.
//!
//! Each answer interrupts a guest, and each command that finds the server asleep has to wake it. A guest with a deep queue
//! gains where several go together: its processor has time to ask for the next while the first wait. One that has a single
//! command in flight has nothing else to do and loses; so does one that asks for many at once. Nothing that crosses the socket
//! distinguishes these in advance, so it is tried: short windows with and without a pause take turns, and what has let
//! more commands through is used for a while. See decisions/0011.
//!
//! A guest that sends payload gains by another way: what it sends while the server does not read fills the socket, which QEMU's emulated
//! processor then leaves to another thread without a wake-up.
//!
//! Left out: the time, and the commands, which the caller counts.
//!
//! Always true: a pause is never longer than [`MOMENT`]; after a rest, and again and again while there is work, both are tried.

use drive::Counters;
use std::time::{Duration, Instant};

/// Length of the pause: what a guest in software emulation takes for one to three commands, and less than a disk takes
/// for any.
const MOMENT: Duration = Duration::from_micros(250);
/// The same for a client that sends payload, most of which it has to copy during the pause: longer, and the drive would be what
/// others wait for.
const MOMENT_OF_PAYLOAD: Duration = Duration::from_micros(100);
/// How long a window is at least, and at most where so few commands end in it that one more or less would count.
const WINDOW: Duration = Duration::from_millis(8);
const WINDOW_MOST: Duration = Duration::from_millis(40);
const COMMANDS_OF_A_WINDOW: u64 = 32;
/// Windows of a trial, with a pause and without by turns.
const WINDOWS: u8 = 8;
/// Pauses of a window after which it is over if nothing more has come in them.
const PAUSES_ALONE: u64 = 8;
/// How long the outcome of the first trial holds. If the next trial agrees, it holds twice as long, and so on.
const HOLD_FIRST: Duration = Duration::from_millis(125);
const HOLD_MAX: Duration = Duration::from_secs(8);
/// A client that was idle for this long is tried again.
const REST: Duration = Duration::from_millis(100);
/// With fewer commands than these on either side a difference is not significant; and where so few go, each is long, so that little
/// is gained.
const COMMANDS_LEAST: u64 = 24;
/// With so many, a smaller gain is significant.
const COMMANDS_MANY: u64 = 96;

/// A client whose writes have as many bytes each sends payload most of the time.
const PAYLOAD_BYTES: u64 = 64 << 10;

/// Decides about pauses.
#[derive(Debug, Default)]
pub(super) struct Moderation {
    asked_at: Option<Instant>,
    phase: Phase,
    /// The last outcome, and how long it holds.
    pays: bool,
    hold: Duration,
    /// Counters of the drive, and whether the last writes among them were long.
    done: Counters,
    is_sent_payload: bool,
}

#[derive(Debug, Default)]
enum Phase {
    /// Nothing was asked for yet, or not for long.
    #[default]
    Rest,
    Trial(Trial),
    HoldUntil(Instant),
}

/// Windows that take turns. The first is without a pause, so that a command now and then does not wait.
#[derive(Debug)]
struct Trial {
    window: u8,
    began_at: Instant,
    /// Commands before the window began, and pauses since.
    done_before: u64,
    pauses: u64,
    /// Measurements without a pause, and with one.
    seen: [Seen; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    commands: u64,
    span: Duration,
}

impl Moderation {
    /// The client has sent something, after the drive has `done` so much in all: how long to pause before it is read. One that
    /// is behind with reading what it was sent loses nothing by that.
    pub(super) fn pause(&mut self, now: Instant, done: Counters, is_behind: bool) -> Option<Duration> {
        self.note(done);
        let commands = done.reads + done.writes;
        let has_rested = self.asked_at.replace(now).is_none_or(|before| now.duration_since(before) >= REST);
        if has_rested {
            *self = Self { asked_at: Some(now), done, ..Self::default() };
        }
        match &mut self.phase {
            Phase::Trial(trial) => {
                if let Some(pays) = trial.outcome(now, commands, self.is_sent_payload) {
                    self.keep(now, pays);
                }
            }
            Phase::HoldUntil(until) if now < *until => {}
            Phase::Rest | Phase::HoldUntil(_) => self.phase = Phase::Trial(Trial::new(now, commands)),
        }
        let pauses = match &mut self.phase {
            Phase::Trial(trial) => trial.pauses(),
            Phase::Rest | Phase::HoldUntil(_) => self.pays,
        };
        let moment = if self.is_sent_payload && !is_behind { MOMENT_OF_PAYLOAD } else { MOMENT };
        (pauses || is_behind).then_some(moment)
    }

    /// Notes whether the writes since the last time were long.
    const fn note(&mut self, done: Counters) {
        let writes = done.writes.saturating_sub(self.done.writes);
        let bytes = done.written_bytes.saturating_sub(self.done.written_bytes);
        if writes > 0 {
            self.is_sent_payload = bytes >= writes.saturating_mul(PAYLOAD_BYTES);
        }
        self.done = done;
    }

    /// Keeps what has come out of a trial.
    fn keep(&mut self, now: Instant, pays: bool) {
        let is_the_same = self.pays == pays && !self.hold.is_zero();
        self.hold = if is_the_same { HOLD_MAX.min(self.hold * 2) } else { HOLD_FIRST };
        self.pays = pays;
        self.phase = Phase::HoldUntil(now + self.hold);
    }
}

impl Trial {
    fn new(now: Instant, commands: u64) -> Self {
        Self { window: 0, began_at: now, done_before: commands, pauses: 0, seen: [Seen::default(); 2] }
    }

    const fn is_with(&self) -> bool {
        !self.window.is_multiple_of(2)
    }

    /// Whether the next reading has a pause.
    const fn pauses(&mut self) -> bool {
        self.pauses += self.is_with() as u64;
        self.is_with()
    }

    /// Ends a window whose time is over. Whether pauses pay, once that is plain.
    fn outcome(&mut self, now: Instant, commands: u64, is_sent_payload: bool) -> Option<bool> {
        let (span, done) = (now.duration_since(self.began_at), commands.saturating_sub(self.done_before));
        // A client that sends payload gains by sending it during the pause, even that of one command.
        let is_alone = self.pauses >= PAUSES_ALONE && done <= self.pauses;
        if is_alone && !is_sent_payload {
            return Some(false);
        }
        let is_full = done >= COMMANDS_OF_A_WINDOW || span >= WINDOW_MOST;
        if span < WINDOW || !is_full {
            return None;
        }
        let seen = &mut self.seen[usize::from(self.is_with())];
        (seen.commands, seen.span) = (seen.commands + done, seen.span + span);
        (self.window, self.began_at, self.done_before, self.pauses) = (self.window + 1, now, commands, 0);
        match self.window {
            WINDOWS if self.have(COMMANDS_MANY) => Some(self.gains(20, 21)),
            WINDOWS => Some(self.have(COMMANDS_LEAST) && self.gains(10, 11)),
            // Each has had as many.
            window if window.is_multiple_of(2) && !self.gains(4, 3) => Some(false),
            _ => None,
        }
    }

    /// Whether as many commands were seen on either side.
    fn have(&self, commands: u64) -> bool {
        self.seen.iter().all(|seen| seen.commands >= commands)
    }

    /// Whether `parts` of what goes in a time with pauses is more than `of` of what goes without.
    fn gains(&self, parts: u128, of: u128) -> bool {
        let [without, with] = self.seen;
        // Commands by time, each multiplied with the other's time.
        let rate = |seen: Seen, other: Seen| u128::from(seen.commands) * other.span.as_nanos();
        rate(with, without) * parts > rate(without, with) * of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest with a queue, and the drive's loop, which answers all that it has read at once.
    struct Guest {
        depth: u32,
        /// The processor time to ask for a command, for an interrupt, and for each end that it
        /// learns by that.
        ask: Duration,
        interrupt: Duration,
        end: Duration,
        /// Commands that it sends together.
        at_once: u32,
    }

    const EMULATED: Guest = Guest {
        depth: 14,
        ask: Duration::from_micros(120),
        interrupt: Duration::from_micros(90),
        end: Duration::from_micros(60),
        at_once: 1,
    };

    fn reads(reads: u64) -> Counters {
        Counters { reads, ..Counters::default() }
    }

    impl Guest {
        /// Runs for `length` and returns commands per second for each tenth of it.
        fn run(&self, moderation: &mut Moderation, begin: Instant, length: Duration) -> Vec<f64> {
            let (mut now, mut done, mut idle) = (begin, 0_u64, self.depth);
            let (mut asked, mut tenths, mut counted) = (0_u32, Vec::new(), 0);
            let tenth = length / 10;
            while tenths.len() < 10 {
                // The guest asks for some, which wakes the loop.
                let some = idle.min(self.at_once);
                (now, idle, asked) = (now + self.ask * some, idle - some, asked + some);
                let pause = moderation.pause(now, reads(done), false);
                // During the pause the guest requests more.
                let read_at = now + pause.unwrap_or_default();
                while idle > 0 && now + self.ask <= read_at {
                    (now, idle, asked) = (now + self.ask, idle - 1, asked + 1);
                }
                now = now.max(read_at) + self.interrupt + self.end * asked;
                (done, idle, asked) = (done + u64::from(asked), idle + asked, 0);
                let passed = (now.duration_since(begin).as_nanos() / tenth.as_nanos()) as usize;
                if passed > tenths.len() {
                    let spans = (passed - tenths.len()) as f64;
                    tenths.resize(passed, (done - counted) as f64 / (tenth.as_secs_f64() * spans));
                    counted = done;
                }
            }
            tenths
        }

        fn rate(&self, moderation: &mut Moderation) -> f64 {
            let rates = self.run(moderation, Instant::now(), Duration::from_secs(2));
            rates[2..].iter().sum::<f64>() / (rates.len() - 2) as f64
        }

        fn rate_without(&self) -> f64 {
            let rest = Duration::from_secs(1000);
            let later = Instant::now() + rest;
            let phase = Phase::HoldUntil(later);
            let mut never = Moderation { phase, asked_at: Some(later), ..Moderation::default() };
            self.rate(&mut never)
        }
    }

    #[test]
    fn a_guest_with_a_deep_queue_gains() {
        let (with, without) = (EMULATED.rate(&mut Moderation::default()), EMULATED.rate_without());
        assert!(with > 1.15 * without, "{with} with pauses, {without} without");
    }

    #[test]
    fn one_with_a_single_command_or_with_all_at_once_loses_next_to_nothing() {
        let single = Guest { depth: 1, ..EMULATED };
        let quick = Guest {
            depth: 30,
            at_once: 30,
            ask: Duration::from_micros(1),
            interrupt: Duration::from_micros(3),
            end: Duration::from_micros(1),
        };
        for guest in [single, quick] {
            let (with, without) = (guest.rate(&mut Moderation::default()), guest.rate_without());
            assert!(with > 0.98 * without, "{with} with trials, {without} without");
        }
    }

    /// A guest that sends payload: what it takes for a command in all, how much less if the server does not read meanwhile, and whether it has
    /// others to send while one is answered.
    struct Sender {
        command: Duration,
        saved: Duration,
        is_deep: bool,
    }

    impl Sender {
        /// Runs for so many seconds, and returns commands per second.
        fn rate(&self, moderation: &mut Moderation, seconds: u64) -> f64 {
            let (begin, mut done) = (Instant::now(), Counters::default());
            let (mut now, end) = (begin, begin + Duration::from_secs(seconds));
            while now < end {
                now += match moderation.pause(now, done, false) {
                    Some(_) if self.is_deep => self.command.saturating_sub(self.saved),
                    pause => self.command + pause.unwrap_or_default(),
                };
                (done.writes, done.written_bytes) = (done.writes + 1, done.written_bytes + (512 << 10));
            }
            done.writes as f64 / seconds as f64
        }
    }

    #[test]
    fn one_that_sends_payload_from_a_queue_gains_and_another_loses_next_to_nothing() {
        let deep =
            Sender { command: Duration::from_micros(640), saved: Duration::from_micros(60), is_deep: true };
        let (with, without) = (deep.rate(&mut Moderation::default(), 4), 1e6 / 640.0);
        assert!(with > 1.05 * without, "{with} with pauses, {without} without");

        let single = Sender { command: Duration::from_micros(300), is_deep: false, ..deep };
        let (with, without) = (single.rate(&mut Moderation::default(), 4), 1e6 / 300.0);
        assert!(with > 0.97 * without, "{with} with trials, {without} without");
    }

    #[test]
    fn long_writes_are_payload_and_short_ones_are_not() {
        let (mut moderation, now) = (Moderation::default(), Instant::now());
        let wrote = |writes, bytes| Counters { writes, written_bytes: bytes, ..Counters::default() };
        for (done, is_payload) in [
            (wrote(0, 0), false),
            (wrote(2, 1 << 20), true),
            (wrote(2, 1 << 20), true),
            (wrote(3, (1 << 20) + 4096), false),
            (wrote(4, (1 << 20) + 4096 + (64 << 10)), true),
        ] {
            moderation.pause(now, done, false);
            assert_eq!(moderation.is_sent_payload, is_payload, "{done:?}");
        }
    }

    #[test]
    fn a_command_now_and_then_never_waits() {
        let (mut moderation, begin) = (Moderation::default(), Instant::now());
        for number in 0..50_u32 {
            let now = begin + Duration::from_millis(120) * number;
            // Its three transfers come one by one.
            let pauses = [0, 60, 120].map(|us| {
                moderation.pause(now + Duration::from_micros(us), reads(number.into()), false).is_some()
            });
            assert_eq!(pauses, [false; 3], "command {number}");
        }
    }

    #[test]
    fn a_slow_client_is_given_time_whatever_was_measured_before() {
        let (mut moderation, begin) = (Moderation::default(), Instant::now());
        for number in 0..50_u32 {
            let now = begin + Duration::from_millis(120) * number;
            assert_eq!(moderation.pause(now, reads(number.into()), true), Some(MOMENT), "command {number}");
        }
    }

    #[test]
    fn few_long_commands_go_without() {
        let long =
            Guest { depth: 4, ask: Duration::from_micros(100), end: Duration::from_millis(2), ..EMULATED };
        let mut moderation = Moderation::default();
        long.rate(&mut moderation);
        assert!(!moderation.pays);
    }

    #[test]
    fn after_a_rest_another_load_is_tried_again() {
        let mut moderation = Moderation::default();
        let begin = Instant::now();
        EMULATED.run(&mut moderation, begin, Duration::from_secs(5));
        assert!(moderation.pays);
        let later = begin + Duration::from_secs(7);
        let single = Guest { depth: 1, ..EMULATED };
        let rates = single.run(&mut moderation, later, Duration::from_secs(1));
        assert!(!moderation.pays);
        // A trial of eight pauses may be in it.
        assert!(rates[9] > 0.97 * single.rate_without(), "{rates:?}");
    }
}
