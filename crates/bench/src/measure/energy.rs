//! Energy of the processor packages, where the kernel shows its counters (RAPL, `/sys/class/powercap`).
//!
//! The counters are those of whole packages: everything that runs on the machine is in them, and the drive is not. Mostly
//! only root may read them. They start anew at a limit that is read beside them.

use host::tree::Tree;

const CLASS: &str = "/sys/class/powercap";

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
    /// The packages below a tree; none where they cannot be read.
    pub fn new(tree: Tree) -> Self {
        // `intel-rapl:0` is a package, `intel-rapl:0:0` a part of it. AMD has the same names.
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

    /// The counters now; `None` where there are none.
    pub fn mark(&self) -> Option<EnergyMark> {
        if self.packages.is_empty() {
            return None;
        }
        let read = |package: &Package| self.tree.number(&format!("{}/energy_uj", package.path));
        self.packages.iter().map(read).collect::<Option<Vec<u64>>>().map(EnergyMark)
    }

    /// Joules between two marks; each counter may have started anew once.
    pub fn joules_between(&self, from: &EnergyMark, to: &EnergyMark) -> f64 {
        let between = |((package, from), to): ((&Package, &u64), &u64)| match to.checked_sub(*from) {
            Some(microjoules) => microjoules,
            None => package.range_uj.saturating_sub(*from).saturating_add(*to),
        };
        let all: u64 = self.packages.iter().zip(&from.0).zip(&to.0).map(between).fold(0, u64::saturating_add);
        all as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn packages_are_added_up_and_their_counters_start_anew() {
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
    fn without_counters_nothing_is_told() {
        let place = tempfile::tempdir().expect("a directory");
        assert_eq!(Energy::new(Tree::at(place.path())).mark(), None);
    }
}
