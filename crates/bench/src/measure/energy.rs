//! Energy of the processor packages from the kernel's RAPL counters (`/sys/class/powercap`).
//!
//! The counters cover whole packages: everything that runs on the machine, without the drive.
//! Usually only root may read them. They wrap at a limit that is exported beside them, mostly 65 or
//! 262 kJ: minutes of a busy machine. A [`Meter`] adds up across wraps.

use inspect::tree::Tree;
use std::time::{Duration, Instant};

const CLASS: &str = "/sys/class/powercap";

/// How often to read the counters: one that wraps at 65 kJ wraps at most once in between, up to 6.5
/// kW.
const LOOK: Duration = Duration::from_secs(10);

/// Counters of the packages.
#[derive(Debug)]
pub struct Energy {
    tree: Tree,
    packages: Vec<Package>,
}

#[derive(Debug)]
struct Package {
    path: String,
    range_uj: u64,
}

/// Readings of all packages, in microjoules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnergyMark(Vec<u64>);

impl Energy {
    /// Finds the packages below a tree; none if they cannot be read.
    pub fn new(tree: Tree) -> Self {
        // `intel-rapl:0` is a package, `intel-rapl:0:0` a part of it. AMD uses the same names.
        let zones =
            tree.names(CLASS, |name| name.starts_with("intel-rapl:") && name.matches(':').count() == 1);
        let package = |zone: &String| {
            let path = format!("{CLASS}/{zone}");
            let is_package = tree.text(&format!("{path}/name")).is_ok_and(|name| name.starts_with("package"));
            let range_uj = tree.number(&format!("{path}/max_energy_range_uj"))?;
            tree.number(&format!("{path}/energy_uj"))?;
            is_package.then_some(Package { path, range_uj })
        };
        let packages = zones.iter().filter_map(package).collect();
        Self { packages, tree }
    }

    /// Reads the counters; `None` if there are none.
    pub fn mark(&self) -> Option<EnergyMark> {
        if self.packages.is_empty() {
            return None;
        }
        let read = |package: &Package| self.tree.number(&format!("{}/energy_uj", package.path));
        self.packages.iter().map(read).collect::<Option<Vec<u64>>>().map(EnergyMark)
    }

    /// Returns the joules between two marks; each counter may have wrapped once.
    pub fn joules_between(&self, from: &EnergyMark, to: &EnergyMark) -> f64 {
        let between = |((package, from), to): ((&Package, &u64), &u64)| match to.checked_sub(*from) {
            Some(microjoules) => microjoules,
            None => package.range_uj.saturating_sub(*from).saturating_add(*to),
        };
        let all: u64 = self.packages.iter().zip(&from.0).zip(&to.0).map(between).fold(0, u64::saturating_add);
        all as f64 / 1e6
    }
}

/// Energy since creation, however often the counters wrap.
#[derive(Debug)]
pub(super) struct Meter<'e> {
    energy: &'e Energy,
    /// The last readings and their time; none from the first failed reading on.
    last: Option<EnergyMark>,
    looked: Instant,
    joules: f64,
}

impl<'e> Meter<'e> {
    pub(super) fn new(energy: &'e Energy, now: Instant) -> Self {
        Self { energy, last: energy.mark(), looked: now, joules: 0.0 }
    }

    /// Reads the counters when due. Call more often than they wrap.
    pub(super) fn update(&mut self, now: Instant) {
        if now - self.looked >= LOOK {
            self.joules(now);
        }
    }

    /// Returns the joules so far; `None` if they could not be read at any time.
    pub(super) fn joules(&mut self, now: Instant) -> Option<f64> {
        let last = self.last.take()?;
        let mark = self.energy.mark()?;
        self.joules += self.energy.joules_between(&last, &mark);
        (self.last, self.looked) = (Some(mark), now);
        Some(self.joules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn package_energy_adds_up_across_counter_wraps() {
        let place = tempfile::tempdir().expect("a directory");
        let write = |zone: &str, name: &str, text: &str| {
            let directory = place.path().join("sys/class/powercap").join(zone);
            fs::create_dir_all(&directory).expect("made");
            fs::write(directory.join(name), text).expect("written");
        };
        for (zone, name, microjoules) in [
            ("intel-rapl:0", "package-0", "900"),
            ("intel-rapl:1", "package-1", "100"),
            ("intel-rapl:0:0", "core", "5"),
            ("intel-rapl:2", "psys", "7"),
        ] {
            write(zone, "name", name);
            write(zone, "energy_uj", microjoules);
            write(zone, "max_energy_range_uj", "1000");
        }
        let energy = Energy::new(Tree::at(place.path()));
        let before = energy.mark().expect("two packages");
        write("intel-rapl:0", "energy_uj", "50");
        write("intel-rapl:1", "energy_uj", "300");
        let after = energy.mark().expect("two packages");
        // 100 up to the limit, 50 from there, and 200.
        assert!((energy.joules_between(&before, &after) - 350e-6).abs() < 1e-12);
    }

    #[test]
    fn a_meter_adds_up_across_wraps() {
        let place = tempfile::tempdir().expect("a directory");
        let zone = place.path().join("sys/class/powercap/intel-rapl:0");
        fs::create_dir_all(&zone).expect("made");
        let write = |name: &str, text: &str| fs::write(zone.join(name), text).expect("written");
        write("name", "package-0");
        write("max_energy_range_uj", "1000");
        write("energy_uj", "900");
        let energy = Energy::new(Tree::at(place.path()));
        let began = Instant::now();
        let mut meter = Meter::new(&energy, began);
        for (seconds, microjoules) in [(10, "500"), (15, "600"), (20, "100"), (30, "700"), (40, "300")] {
            write("energy_uj", microjoules);
            meter.update(began + Duration::from_secs(seconds));
        }
        // 600, 600, 600 and 600: the reading after 15 seconds was not due.
        let joules = meter.joules(began + Duration::from_secs(41)).expect("they can be read");
        assert!((joules - 2400e-6).abs() < 1e-12, "{joules}");
        fs::remove_file(zone.join("energy_uj")).expect("removed");
        assert_eq!(meter.joules(began + Duration::from_secs(42)), None);
        write("energy_uj", "300");
        assert_eq!(meter.joules(began + Duration::from_secs(43)), None, "what was missed is not known");
    }

    #[test]
    fn without_counters_there_is_no_reading() {
        let place = tempfile::tempdir().expect("a directory");
        assert_eq!(Energy::new(Tree::at(place.path())).mark(), None);
    }
}
