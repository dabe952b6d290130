//! A grid: the values of each axis, and the points that they make.
//!
//! Parts that cannot be connected make no point, and neither does a combination that equals an earlier one: a drive on a SATA cable has
//! no bridge to vary. Always true: points come in one order, that of the setup's variants, and within each that of [`Axis::ALL`].

use super::Axis;
use crate::compare::{Configuration, Point, replaced};
use crate::error::StudyError;
use crate::parts::{Catalogue, PartKind};
use std::collections::{BTreeMap, BTreeSet};
use workload::{AccessSpec, Job};

/// Maximum number of points of a grid.
pub const POINTS_MAX: usize = 1_000_000;

/// Parameters of a job that the grid does not vary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDefaults {
    /// Bytes of a request.
    pub bytes: u64,
    /// Queue depths.
    pub depths: Vec<u16>,
    /// Whether requests write.
    pub writes: bool,
    /// Random seed.
    pub seed: u64,
}

/// The values of each axis that is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    values: BTreeMap<Axis, Vec<String>>,
    defaults: JobDefaults,
}

impl Grid {
    /// Creates a grid that varies nothing.
    pub const fn new(defaults: JobDefaults) -> Self {
        Self { values: BTreeMap::new(), defaults }
    }

    /// Varies an axis. The empty name of a hub is no hub. Returns whether it was not varied before.
    pub fn vary(&mut self, axis: Axis, values: Vec<String>) -> bool {
        self.values.insert(axis, values).is_none()
    }

    /// Returns the values of an axis; none if it is not varied.
    pub fn values(&self, axis: Axis) -> &[String] {
        self.values.get(&axis).map_or(&[], Vec::as_slice)
    }

    /// Returns the points of the grid, for variants of a setup.
    ///
    /// # Errors
    /// If there are more than [`POINTS_MAX`], or none.
    pub fn points(&self, columns: &[Configuration], catalogue: &Catalogue) -> Result<Vec<Point>, StudyError> {
        let jobs = self.jobs();
        let of_parts = self.values.iter().filter(|(axis, _)| !axis.kinds().is_empty());
        let factors = of_parts.map(|(_, values)| values.len().max(1)).chain([jobs.len(), columns.len()]);
        let count = factors.into_iter().try_fold(1_usize, usize::checked_mul);
        if count.is_none_or(|count| count > POINTS_MAX) {
            return Err(StudyError::usage(format!("a sweep can have at most {POINTS_MAX} points")));
        }
        let (mut points, mut known) = (Vec::new(), BTreeSet::new());
        for column in columns {
            for choice in self.choices() {
                let Some((variant, assembly)) = replaced(column, &choice, catalogue) else { continue };
                let Ok(activation) = assembly.activation(catalogue) else { continue };
                if !known.insert(format!("{assembly:?}")) {
                    continue;
                }
                for (job, seed) in &jobs {
                    let (variant, assembly) = (variant.clone(), assembly.clone());
                    let (activation, job, number) = (activation.clone(), job.clone(), points.len());
                    points.push(Point { number, variant, assembly, activation, job, seed: *seed });
                }
            }
        }
        if points.is_empty() {
            return Err(StudyError::usage("no combination of these parts can be connected"));
        }
        Ok(points)
    }

    /// One value of each kind of part that is varied.
    fn choices(&self) -> Vec<Vec<(PartKind, &str)>> {
        let mut all: Vec<Vec<(PartKind, &str)>> = vec![Vec::new()];
        for (axis, values) in self.values.iter().filter(|(_, values)| !values.is_empty()) {
            let Some(kind) = axis.kinds().first() else { continue };
            let mut longer = Vec::new();
            for choice in &all {
                for value in values {
                    longer.push([choice.as_slice(), &[(*kind, value.as_str())]].concat());
                }
            }
            all = longer;
        }
        all
    }

    fn jobs(&self) -> Vec<(Job, u64)> {
        let numbers = |axis, default: Vec<u64>| match self.values(axis) {
            [] => default,
            values => values.iter().filter_map(|value| value.parse().ok()).collect(),
        };
        let words = |axis, default: &str| match self.values(axis) {
            [] => vec![default.to_owned()],
            values => values.to_vec(),
        };
        let JobDefaults { bytes, depths, writes, seed } = &self.defaults;
        let directions = words(Axis::Direction, if *writes { "write" } else { "read" });
        let depths = numbers(Axis::Depth, depths.iter().copied().map(u64::from).collect());
        let mut jobs = Vec::new();
        for access in words(Axis::Access, "random") {
            for direction in &directions {
                for bytes in numbers(Axis::Block, vec![*bytes]) {
                    for depth in &depths {
                        for seed in numbers(Axis::Seed, vec![*seed]) {
                            let percent = |is_all: bool| if is_all { 100 } else { 0 };
                            let (reads, random) = (percent(direction == "read"), percent(access == "random"));
                            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                            let depth = u16::try_from(*depth).unwrap_or(1);
                            jobs.push((Job::of(AccessSpec::all(bytes, reads, random), depth), seed));
                        }
                    }
                }
            }
        }
        jobs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_a_job_for_each_combination_of_its_numbers() {
        let defaults = JobDefaults { bytes: 4096, depths: vec![1], writes: false, seed: 1 };
        let mut grid = Grid::new(defaults);
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(grid.jobs().len(), 1);
        assert!(grid.vary(Axis::Depth, words(&["1", "2", "4"])));
        assert!(grid.vary(Axis::Block, words(&["4096", "8192"])));
        assert!(!grid.vary(Axis::Depth, words(&["8", "16", "32"])));
        let jobs = grid.jobs();
        let depths: Vec<u16> = jobs.iter().map(|(job, _)| job.depth).collect();
        assert_eq!(depths, [8, 16, 32, 8, 16, 32], "depth is an inner loop of block");
    }
}
