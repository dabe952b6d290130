//! Power of a whole machine under load: host, controller, link, bridge and drive.
//!
//! Parts count their busy time ([`Activity`]); a [`PowerPart`] gives the power per state; energy is
//! their exact product. An [`EnergyRecorder`] samples the counters during a run and keeps the
//! samples of the last second, for the mean and for the peak over 1 s, as a meter with that window
//! shows it.
//!
//! A core is busy while the driver runs; the controller while the busier lane of its link carries
//! traffic (on USB 2.0: while the bridge works; on SATA: while the drive works); a bridge while its
//! firmware or its drive has work; a drive while it has a command. Left out: the application's
//! work, USB 2.0 buses, hubs, both ends of a SATA cable, losses in supply and cable, and CPU
//! frequency scaling.
//!
//! Invariants: recording does not affect the run; energies of parts add up to the total exactly, in
//! attojoules.

use super::{Attojoules, Microwatts};
use std::collections::VecDeque;
use units::{Duration, Instant};

/// Busy time of parts since power-on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Core that runs the driver.
    pub core: Duration,
    /// Host controller.
    pub controller: Duration,
    /// Bridge, if there is one.
    pub bridge: Option<Duration>,
    /// Drive.
    pub drive: Duration,
    /// Link in U0, U1, U2, and in transition to U0, if there is one.
    pub link: Option<[Duration; 4]>,
}

/// A consumer of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumer {
    /// All CPU cores.
    Cores,
    /// Host controller.
    Controller,
    /// Both ends of the link.
    Link,
    /// Bridge.
    Bridge,
    /// Drive.
    Drive,
    /// The rest of the machine.
    Rest,
}

/// Power of the parts of a machine by state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerPart {
    /// A core: idle, busy.
    pub core: [Microwatts; 2],
    /// Host controller: idle, busy.
    pub controller: [Microwatts; 2],
    /// Both ends of a link: U0, U1, U2, transition to U0.
    pub link: [Microwatts; 4],
    /// Bridge: idle, busy.
    pub bridge: [Microwatts; 2],
    /// SSD: idle, busy.
    pub ssd: [Microwatts; 2],
    /// Hard disk: idle, busy.
    pub hdd: [Microwatts; 2],
    /// The rest of the machine.
    pub rest: Microwatts,
}

/// Power of the parts of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerDraws {
    cores: u8,
    part: PowerPart,
    drive: [Microwatts; 2],
}

/// Energy of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnergyUse {
    /// Virtual time recorded.
    pub elapsed: Duration,
    /// Busy time of parts.
    pub activity: Activity,
    /// Energy of each [`Consumer`].
    pub energy: [Attojoules; Consumer::ALL.len()],
    /// The largest mean over a [window](Self::window).
    pub peak: Microwatts,
    /// Window of the peak: [`WINDOW`], or the whole run if that is shorter.
    pub window: Duration,
}

/// Records the energy of a run.
#[derive(Clone, Debug)]
pub struct EnergyRecorder {
    draws: PowerDraws,
    began: Reading,
    /// Samples of the last [`WINDOW`], oldest first.
    readings: VecDeque<Reading>,
    peak: Microwatts,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Instant,
    activity: Activity,
    /// Total energy since power-on.
    energy: Attojoules,
}

/// Window of the peak.
pub const WINDOW: Duration = Duration::from_secs(1);
/// Minimum interval between samples, for about a hundred samples per window.
const BETWEEN: Duration = Duration::from_ms(10);

impl Consumer {
    /// All consumers in order.
    pub const ALL: [Self; 6] =
        [Self::Cores, Self::Controller, Self::Link, Self::Bridge, Self::Drive, Self::Rest];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cores => "cores",
            Self::Controller => "controller",
            Self::Link => "link",
            Self::Bridge => "bridge",
            Self::Drive => "drive",
            Self::Rest => "rest",
        }
    }
}

impl Activity {
    /// Returns the busy times since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now, then| {
            let [span] = super::since([now], [then]);
            span
        };
        Self {
            core: less(self.core, earlier.core),
            controller: less(self.controller, earlier.controller),
            bridge: self.bridge.map(|now| less(now, earlier.bridge.unwrap_or_default())),
            drive: less(self.drive, earlier.drive),
            link: self.link.map(|now| super::since(now, earlier.link.unwrap_or_default())),
        }
    }
}

impl PowerDraws {
    /// Creates the powers of a host with `cores` and a drive, idle and busy.
    pub const fn new(cores: u8, part: PowerPart, drive: [Microwatts; 2]) -> Self {
        Self { cores, part, drive }
    }

    /// Returns the energy of each [`Consumer`] for a span with these busy times.
    pub fn energy(&self, elapsed: Duration, activity: &Activity) -> [Attojoules; Consumer::ALL.len()] {
        let of = |[idle, busy]: [Microwatts; 2], at_work: Duration| {
            let at_work = at_work.min(elapsed);
            let rests = Duration::from_ps(elapsed.as_ps() - at_work.as_ps());
            Attojoules(idle.over(rests).0 + busy.over(at_work).0)
        };
        let PowerPart { core, controller, link, bridge, rest, .. } = self.part;
        let idle_cores = u128::from(self.cores.saturating_sub(1)) * core[0].over(elapsed).0;
        let link = activity
            .link
            .map_or(0, |times| link.iter().zip(times).map(|(draw, time)| draw.over(time).0).sum());
        [
            Attojoules(of(core, activity.core).0 + idle_cores),
            of(controller, activity.controller),
            Attojoules(link),
            activity.bridge.map_or(Attojoules(0), |at_work| of(bridge, at_work)),
            of(self.drive, activity.drive),
            rest.over(elapsed),
        ]
    }
}

impl EnergyRecorder {
    /// Starts recording at `now`.
    pub fn new(draws: PowerDraws, now: Instant, activity: Activity) -> Self {
        let began = Reading::new(&draws, now, activity);
        Self { draws, began, readings: VecDeque::from([began]), peak: Microwatts(0) }
    }

    /// Returns whether a sample is due.
    pub fn is_due(&self, now: Instant) -> bool {
        self.readings.back().is_none_or(|last| now >= last.at + BETWEEN)
    }

    /// Takes a sample.
    pub fn read(&mut self, now: Instant, activity: Activity) {
        let reading = Reading::new(&self.draws, now, activity);
        self.readings.push_back(reading);
        // The window begins with the latest sample that is at least 1 s old.
        while self.readings.get(1).is_some_and(|second| second.at + WINDOW <= now) {
            self.readings.pop_front();
        }
        if let Some(first) = self.readings.front().filter(|first| first.at + WINDOW <= now) {
            self.peak = self.peak.max(reading.mean_since(first));
        }
    }

    /// Returns the energy up to `now`.
    pub fn spent(&self, now: Instant, activity: Activity) -> EnergyUse {
        let end = Reading::new(&self.draws, now, activity);
        let (elapsed, activity) = (now - self.began.at, activity.since(&self.began.activity));
        let is_long = elapsed >= WINDOW;
        EnergyUse {
            elapsed,
            activity,
            energy: self.draws.energy(elapsed, &activity),
            peak: if is_long { self.peak } else { end.mean_since(&self.began) },
            window: if is_long { WINDOW } else { elapsed },
        }
    }
}

impl Reading {
    fn new(draws: &PowerDraws, at: Instant, activity: Activity) -> Self {
        let energy = draws.energy(at - Instant::ZERO, &activity);
        Self { at, activity, energy: Attojoules(energy.iter().map(|part| part.0).sum()) }
    }

    fn mean_since(&self, earlier: &Self) -> Microwatts {
        Attojoules(self.energy.0.saturating_sub(earlier.energy.0)).mean(self.at - earlier.at)
    }
}

impl EnergyUse {
    /// Returns the total energy.
    pub fn total(&self) -> Attojoules {
        Attojoules(self.energy.iter().map(|part| part.0).sum())
    }

    /// Returns the mean power in watts.
    pub fn mean_watts(&self) -> f64 {
        self.total().joules() / (self.elapsed.as_ps() as f64 / 1e12)
    }

    /// Returns the peak in watts.
    pub fn peak_watts(&self) -> f64 {
        f64::from(self.peak.0) / 1e6
    }

    /// Returns joules per 10⁹ bytes, for `bytes` moved.
    pub fn joules_per_gigabyte(&self, bytes: u64) -> f64 {
        self.total().joules() / (bytes as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn watts(watts: u32) -> Microwatts {
        Microwatts::from_milliwatts(watts * 1000)
    }

    const DRAWS: PowerDraws = PowerDraws {
        cores: 2,
        part: PowerPart {
            core: [watts(1), watts(11)],
            controller: [watts(2), watts(4)],
            link: [watts(3), watts(2), watts(1), watts(3)],
            bridge: [watts(1), watts(2)],
            ssd: [watts(1), watts(2)],
            hdd: [watts(5), watts(7)],
            rest: watts(20),
        },
        drive: [watts(5), watts(7)],
    };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    fn busy(core_ms: u64) -> Activity {
        Activity { core: Duration::from_ms(core_ms), ..Activity::default() }
    }

    #[test]
    fn each_part_takes_what_it_draws_in_each_state() {
        let half = Duration::from_ms(500);
        let activity = Activity {
            core: half,
            controller: half,
            bridge: Some(half),
            drive: half,
            link: Some([half, half, Duration::ZERO, Duration::ZERO]),
        };
        let energy = DRAWS.energy(Duration::from_secs(1), &activity).map(Attojoules::joules);
        // One core half a second at 11 W and half at 1 W, the other a second at 1 W.
        assert_eq!(energy, [7.0, 3.0, 2.5, 1.5, 6.0, 20.0]);
    }

    #[test]
    fn without_usb_there_is_neither_link_nor_bridge() {
        let energy = DRAWS.energy(Duration::from_secs(1), &Activity::default()).map(Attojoules::joules);
        assert_eq!(energy, [2.0, 2.0, 0.0, 0.0, 5.0, 20.0]);
    }

    #[test]
    fn a_run_shorter_than_a_second_has_its_mean_for_a_peak() {
        let mut bill = EnergyRecorder::new(DRAWS, at(100), busy(100));
        bill.read(at(110), busy(110));
        let spent = bill.spent(at(200), busy(150));
        assert_eq!((spent.window, spent.activity.core), (Duration::from_ms(100), Duration::from_ms(50)));
        // 29 W when nothing happens, and a core at work for half the time.
        assert_eq!(spent.peak, watts(34));
        assert!((spent.mean_watts() - 34.0).abs() < 1e-9);
    }

    #[test]
    fn the_peak_is_the_second_with_the_most() {
        let mut bill = EnergyRecorder::new(DRAWS, at(0), busy(0));
        // At work from the first second to the end of the second one, in a run of four.
        for ms in (10..=4000).step_by(10) {
            assert!(bill.is_due(at(ms)));
            bill.read(at(ms), busy(ms.clamp(1000, 2000) - 1000));
        }
        let spent = bill.spent(at(4000), busy(1000));
        assert_eq!((spent.peak, spent.window), (watts(39), WINDOW));
        assert!((spent.mean_watts() - 31.5).abs() < 1e-9);
        assert!(bill.readings.len() <= 102);
    }

    #[test]
    fn a_gigabyte_costs_what_it_took() {
        let spent = EnergyRecorder::new(DRAWS, at(0), busy(0)).spent(at(500), busy(0));
        assert!((spent.joules_per_gigabyte(100_000_000) - 145.0).abs() < 1e-9);
    }
}
