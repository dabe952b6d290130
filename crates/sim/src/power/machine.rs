//! What a machine draws while it works: host, controller, link, bridge and drive together.
//!
//! Parts keep books of how long they have been at work ([`Activity`]), what each draws in each state is in a
//! [`PowerPart`], and energy is the one times the other, exactly. A [`EnergyRecorder`] reads the books while a run goes on, and keeps
//! those of the last second, so that it knows the mean, and the peak over a second as an instrument with such a window shows it.
//!
//! A core works while the driver does; the controller while the busier lane of its link carries something (on USB 2.0 while the bridge works), one for SATA while
//! the drive works; a bridge while its firmware looks at something or its drive has something to do; a drive while it has an order.
//! Left out: what an application's own work draws, the bus of USB 2.0, hubs, both ends of a SATA cable, losses in supply and cable, and that a
//! processor draws less when it is clocked down.
//!
//! Always true: nothing here changes a run; energies of parts add up to the whole, to the attojoule.

use super::{Attojoules, Microwatts};
use std::collections::VecDeque;
use units::{Duration, Instant};

/// How long parts have been at work since power-on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// The core that runs the driver.
    pub core: Duration,
    /// The host controller.
    pub controller: Duration,
    /// The bridge, if there is one.
    pub bridge: Option<Duration>,
    /// The drive.
    pub drive: Duration,
    /// The link in U0, U1, U2, and on the way back to U0, if there is one.
    pub link: Option<[Duration; 4]>,
}

/// What draws power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumer {
    /// All cores.
    Cores,
    /// The host controller.
    Controller,
    /// Both ends of the link.
    Link,
    /// The bridge.
    Bridge,
    /// The drive.
    Drive,
    /// All the rest of the machine.
    Rest,
}

/// What the parts of a machine draw, by state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerPart {
    /// A core: idle, at work.
    pub core: [Microwatts; 2],
    /// The host controller: idle, at work.
    pub controller: [Microwatts; 2],
    /// Both ends of a link: U0, U1, U2, on the way back to U0.
    pub link: [Microwatts; 4],
    /// A bridge: idle, at work.
    pub bridge: [Microwatts; 2],
    /// A drive of flash: idle, at work.
    pub ssd: [Microwatts; 2],
    /// A disk that turns: idle, at work.
    pub hdd: [Microwatts; 2],
    /// All the rest of the machine.
    pub rest: Microwatts,
}

/// What the parts of one machine draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerDraws {
    cores: u8,
    part: PowerPart,
    drive: [Microwatts; 2],
}

/// What a run has cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnergyUse {
    /// Virtual time that is counted.
    pub elapsed: Duration,
    /// How long parts were at work in it.
    pub activity: Activity,
    /// Energy of each [`Consumer`].
    pub energy: [Attojoules; Consumer::ALL.len()],
    /// The largest mean over a [window](Self::window).
    pub peak: Microwatts,
    /// Over which time the peak is a mean: [`WINDOW`], or the whole run if that is shorter.
    pub window: Duration,
}

/// Reads the books of a run.
#[derive(Clone, Debug)]
pub struct EnergyRecorder {
    draws: PowerDraws,
    began: Reading,
    /// Readings of the last [`WINDOW`], oldest first.
    readings: VecDeque<Reading>,
    peak: Microwatts,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Instant,
    activity: Activity,
    /// All energy since power-on.
    energy: Attojoules,
}

/// Over which time a peak is a mean.
pub const WINDOW: Duration = Duration::from_secs(1);
/// Readings are no closer than this, so that there are some hundred of them.
const BETWEEN: Duration = Duration::from_ms(10);

impl Consumer {
    /// Each, in order.
    pub const ALL: [Self; 6] =
        [Self::Cores, Self::Controller, Self::Link, Self::Bridge, Self::Drive, Self::Rest];

    /// What it is called.
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
    /// What came since `earlier`.
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
    /// Those of a host with so many cores and a drive that draws this much, idle and at work.
    pub const fn new(cores: u8, part: PowerPart, drive: [Microwatts; 2]) -> Self {
        Self { cores, part, drive }
    }

    /// What each [`Consumer`] takes for a time in which parts were at work for so long.
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
    /// One for a machine, that counts from `now` on.
    pub fn new(draws: PowerDraws, now: Instant, activity: Activity) -> Self {
        let began = Reading::new(&draws, now, activity);
        Self { draws, began, readings: VecDeque::from([began]), peak: Microwatts(0) }
    }

    /// Whether it is time to read the books again.
    pub fn is_due(&self, now: Instant) -> bool {
        self.readings.back().is_none_or(|last| now >= last.at + BETWEEN)
    }

    /// Reads the books.
    pub fn read(&mut self, now: Instant, activity: Activity) {
        let reading = Reading::new(&self.draws, now, activity);
        self.readings.push_back(reading);
        // The window begins with the latest reading that is a second old.
        while self.readings.get(1).is_some_and(|second| second.at + WINDOW <= now) {
            self.readings.pop_front();
        }
        if let Some(first) = self.readings.front().filter(|first| first.at + WINDOW <= now) {
            self.peak = self.peak.max(reading.mean_since(first));
        }
    }

    /// What was spent up to now.
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
    /// Energy of all consumers together.
    pub fn total(&self) -> Attojoules {
        Attojoules(self.energy.iter().map(|part| part.0).sum())
    }

    /// Mean power, in watts.
    pub fn mean_watts(&self) -> f64 {
        self.total().joules() / (self.elapsed.as_ps() as f64 / 1e12)
    }

    /// The peak, in watts.
    pub fn peak_watts(&self) -> f64 {
        f64::from(self.peak.0) / 1e6
    }

    /// Joules for 10⁹ bytes, of which so many were moved.
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
