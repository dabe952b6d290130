//! Fault injection: which faults occur when, at random or by an exact script.
//!
//! Each point where a fault of a [`FaultKind`] could happen is an opportunity and calls
//! [`Faults::draw`]. Opportunities of a kind are numbered from 0 over all sessions of a device. So
//! a fault is a kind and a number ([`ScriptedFault`]), and a list of faults is a [`FaultScript`]
//! with a text form: `status-lost@3,medium-error@17`. Random faults record the script that repeats
//! them.
//!
//! Left out: the effect of a fault, which belongs to the caller.
//!
//! Invariants: opportunities of one kind do not affect the random draws of another; the effect of a
//! fault depends on the seed and the fault alone, so that removing one fault of a script changes no
//! other.

mod bug;
mod kind;
mod script;

pub use bug::{BugInjector, SeededBug};
pub use kind::{FAULTS_MAX, FaultKind};
pub use script::{FaultScript, FaultScriptError, ScriptedFault};

use crate::engine::Random;

/// Fault rates by kind, per million opportunities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultRates([u32; FaultKind::COUNT]);

/// The faults of one drive in one run.
#[derive(Clone, Debug)]
pub struct Faults {
    seed: u64,
    /// Number of the drive.
    drive: u8,
    cause: Cause,
    /// Opportunities so far, by kind.
    met: [u32; FaultKind::COUNT],
    injected: FaultScript,
    is_over: bool,
    injector: BugInjector,
}

#[derive(Clone, Debug)]
enum Cause {
    Dice { rates: FaultRates, dice: Box<[Random; FaultKind::COUNT]> },
    Script(FaultScript),
}

impl FaultRates {
    /// Creates an injector without faults.
    pub const NEVER: Self = Self([0; FaultKind::COUNT]);

    /// Sets the rate of a kind, per million opportunities.
    #[must_use]
    pub const fn with(mut self, kind: FaultKind, per_million: u32) -> Self {
        self.0[kind as usize] = per_million;
        self
    }

    /// Clears the rates of faults that end a session of the device.
    #[must_use]
    pub fn while_alive(self) -> Self {
        let enders = FaultKind::ALL.into_iter().filter(|kind| kind.ends_life());
        enders.fold(self, |rates, kind| rates.with(kind, 0))
    }

    /// Returns the rate of a kind, per million opportunities.
    pub const fn of(&self, kind: FaultKind) -> u32 {
        self.0[kind as usize]
    }
}

impl Faults {
    /// Creates an injector without faults.
    pub fn never() -> Self {
        Self::scripted(0, FaultScript::default())
    }

    /// Creates random faults.
    pub fn diced(seed: u64, rates: FaultRates) -> Self {
        let dice = Box::new(FaultKind::ALL.map(|kind| Random::new(seed, kind.name())));
        Self::new(seed, Cause::Dice { rates, dice })
    }

    /// Creates scripted faults.
    pub const fn scripted(seed: u64, script: FaultScript) -> Self {
        Self::new(seed, Cause::Script(script))
    }

    const fn new(seed: u64, cause: Cause) -> Self {
        let injected = FaultScript::EMPTY;
        let injector = BugInjector::new(None);
        Self { seed, drive: 0, cause, met: [0; FaultKind::COUNT], injected, is_over: false, injector }
    }

    /// Assigns the faults to a drive other than the first.
    #[must_use]
    pub const fn of_drive(mut self, drive: u8) -> Self {
        self.drive = drive;
        self
    }

    /// Adds a seeded bug.
    #[must_use]
    pub const fn with_bug(mut self, bug: Option<SeededBug>) -> Self {
        self.injector = BugInjector::new(bug);
        self
    }

    /// Returns whether there are neither faults nor a seeded bug.
    pub fn are_none(&self) -> bool {
        matches!(&self.cause, Cause::Script(script) if script.is_empty()) && self.injector.is_none()
    }

    /// Counts an opportunity for a seeded bug. Returns whether it triggers.
    pub fn triggers(&mut self, bug: SeededBug) -> bool {
        self.injector.triggers(bug)
    }

    /// Counts an opportunity for a fault. If it occurs, returns the random source that decides its
    /// details.
    #[inline]
    pub fn draw(&mut self, kind: FaultKind) -> Option<Random> {
        if self.is_over { None } else { self.throw(kind) }
    }

    fn throw(&mut self, kind: FaultKind) -> Option<Random> {
        let strike = ScriptedFault { kind, nth: self.met[kind as usize], drive: self.drive };
        self.met[kind as usize] = strike.nth.saturating_add(1);
        let does = match &mut self.cause {
            Cause::Dice { rates, dice } => {
                // Drawn in any case, so that the limit does not shift later draws.
                let falls = dice[kind as usize].per_million(rates.of(kind));
                falls && self.injected.len() < FAULTS_MAX && self.injected.count(kind) < kind.most()
            }
            Cause::Script(script) => script.contains(strike),
        };
        does.then(|| {
            self.injected.push(strike);
            Random::new(self.seed ^ u64::from(strike.nth), kind.name())
        })
    }

    /// Disables all further faults.
    pub const fn end(&mut self) {
        self.is_over = true;
    }

    /// Returns whether a packet was lost or delayed by a retry.
    pub fn has_lost_packets(&self) -> bool {
        let losers = [FaultKind::PacketLost, FaultKind::HeaderDamaged, FaultKind::PayloadDamaged];
        losers.into_iter().any(|kind| self.injected.count(kind) > 0)
    }

    /// Returns the faults so far, in order.
    pub const fn injected(&self) -> &FaultScript {
        &self.injected
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self::never()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: FaultRates = FaultRates::NEVER
        .with(FaultKind::StatusLost, 200_000)
        .with(FaultKind::MediumError, 100_000)
        .with(FaultKind::Unplug, 500_000);

    fn run(faults: &mut Faults) -> Vec<ScriptedFault> {
        for _ in 0..100 {
            faults.draw(FaultKind::StatusLost);
            faults.draw(FaultKind::MediumError);
        }
        faults.injected().faults().to_vec()
    }

    #[test]
    fn a_script_repeats_random_faults() {
        let mut diced = Faults::diced(7, RATES);
        let struck = run(&mut diced);
        assert!((15..50).contains(&struck.len()), "{struck:?}");
        let mut scripted = Faults::scripted(7, diced.injected().clone());
        assert_eq!(run(&mut scripted), struck);
    }

    #[test]
    fn a_fault_does_not_depend_on_the_others() {
        let strike = ScriptedFault { kind: FaultKind::MediumError, nth: 5, drive: 0 };
        let how = |script: FaultScript| {
            let mut faults = Faults::scripted(7, script);
            (0..10).find_map(|_| faults.draw(FaultKind::MediumError)).map(|mut random| random.next())
        };
        let alone = how([strike].into_iter().collect());
        assert!(alone.is_some());
        let mut faults = Faults::scripted(
            7,
            [ScriptedFault { kind: FaultKind::MediumError, nth: 2, drive: 0 }, strike].into_iter().collect(),
        );
        let both: Vec<u64> = (0..10)
            .filter_map(|_| faults.draw(FaultKind::MediumError))
            .map(|mut random| random.next())
            .collect();
        assert_eq!((both.len(), both.last().copied()), (2, alone));
    }

    #[test]
    fn kinds_are_drawn_independently() {
        let medium = |also_statuses: bool| {
            let mut faults = Faults::diced(3, RATES);
            let strikes = |faults: &mut Faults, kind| faults.draw(kind).is_some();
            (0..30)
                .map(|_| {
                    let _ = also_statuses && strikes(&mut faults, FaultKind::StatusLost);
                    strikes(&mut faults, FaultKind::MediumError)
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(medium(true), medium(false));
    }

    #[test]
    fn a_script_is_split_by_drive() {
        let script: FaultScript = "status-lost@3,medium-error@17/2,status-lost@5/2".parse().unwrap();
        let struck = |drive| {
            let mut faults = Faults::scripted(7, script.clone()).of_drive(drive);
            run(&mut faults);
            faults.injected().to_string()
        };
        assert_eq!([0, 1, 2].map(struck), ["status-lost@3", "status-lost@5/2,medium-error@17/2", "none"]);
    }

    #[test]
    fn the_number_of_faults_is_limited() {
        let mut faults = Faults::diced(1, FaultRates::NEVER.with(FaultKind::StatusLost, 1_000_000));
        assert_eq!((0..1000).filter(|_| faults.draw(FaultKind::StatusLost).is_some()).count(), FAULTS_MAX);
        let mut faults = Faults::diced(1, RATES);
        let unplugged = (0..1000).filter(|_| faults.draw(FaultKind::Unplug).is_some()).count();
        assert_eq!(unplugged, FaultKind::Unplug.most());
        let mut faults = Faults::diced(1, FaultRates::NEVER.with(FaultKind::StatusLost, 1_000_000));
        faults.end();
        assert!(faults.draw(FaultKind::StatusLost).is_none());
    }
}
