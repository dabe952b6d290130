//! What is asked of a sweep: axes with values, and the points that they make.
//!
//! ```text
//! grid   = axis { "," axis }
//! axis   = name "=" value { "|" value }
//! value  = word | number | number ".." number | number "-" number | "*"
//! ```
//!
//! A range doubles from its first number to its last, which it must reach; a range of seeds counts by one. `*` is all parts of the catalogue of that kind. A point whose parts make no
//! chain is left out, and so is one that is the same as one before it: a drive on a cable has no bridge to be varied.
//!
//! Always true: points come in one order, that of the setup's variants, and within each that of [`AXES`].

use crate::args::quantity;
use crate::compare::CompareArguments;
use crate::compare::choice::{Configuration, replaced};
use crate::failure::Failure;
use crate::nearest;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use study::compare::Point;
use study::parts::{Catalogue, PartKind};
use workload::{AccessSpec, Job, REQUEST_BYTES_MAX};

/// Points of a grid at most.
const POINTS_MAX: usize = 1_000_000;

/// What can be varied, the outermost first.
const AXES: [Axis; 12] = [
    Axis::Host,
    Axis::Driver,
    Axis::Controller,
    Axis::Hub,
    Axis::Bridge,
    Axis::Speed,
    Axis::Drive,
    Axis::Access,
    Axis::ReportRoute,
    Axis::Block,
    Axis::Depth,
    Axis::Seed,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Host,
    Driver,
    Controller,
    Hub,
    Bridge,
    Speed,
    Drive,
    Access,
    ReportRoute,
    Block,
    Depth,
    Seed,
}

/// A grid: the values of each axis, in the order of [`AXES`]. One that is not varied has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    values: Vec<Vec<String>>,
    usual: Usual,
}

/// What a job is where it is not varied.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Usual {
    bytes: u64,
    depths: Vec<u16>,
    writes: bool,
    seed: u64,
}

impl Axis {
    const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Driver => "driver",
            Self::Controller => "controller",
            Self::Hub => "hub",
            Self::Bridge => "bridge",
            Self::Speed => "speed",
            Self::Drive => "drive",
            Self::Access => "access",
            Self::ReportRoute => "way",
            Self::Block => "block",
            Self::Depth => "depth",
            Self::Seed => "seed",
        }
    }

    /// Kinds of parts that it is of.
    const fn kinds(self) -> &'static [PartKind] {
        match self {
            Self::Host => &[PartKind::Host],
            Self::Driver => &[PartKind::Driver],
            Self::Controller => &[PartKind::Controller],
            Self::Hub => &[PartKind::Hub],
            Self::Bridge => &[PartKind::Bridge],
            Self::Speed => &[PartKind::Link],
            Self::Drive => &[PartKind::Ssd, PartKind::Hdd],
            _ => &[],
        }
    }

    /// Numbers that it may have.
    fn numbers(self) -> Option<RangeInclusive<u64>> {
        match self {
            Self::Block => Some(512..=u64::from(REQUEST_BYTES_MAX)),
            Self::Depth => Some(1..=u64::from(workload::DEPTH_MAX)),
            Self::Seed => Some(0..=u64::MAX),
            _ => None,
        }
    }

    /// A number that it may have: bytes of a request, or a whole number.
    fn number(self, text: &str, bounds: &RangeInclusive<u64>) -> Result<u64, String> {
        let number = match self {
            Self::Block => quantity::size(text)?.0,
            _ => {
                let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let number = text.parse().ok().filter(|_| all_digits);
                number.ok_or_else(|| {
                    format!("'{text}' is not a whole number from {} to {}", bounds.start(), bounds.end())
                })?
            }
        };
        if bounds.contains(&number) && (self != Self::Block || number % 512 == 0) {
            return Ok(number);
        }
        let unit = if self == Self::Block { ", and only multiples of 512" } else { "" };
        Err(format!("{number} is out of range; {} to {} are possible{unit}", bounds.start(), bounds.end()))
    }

    /// The values that a text says.
    fn values(self, text: &str, catalogue: &Catalogue) -> Result<Vec<String>, Failure> {
        let mut all: Vec<String> = Vec::new();
        for word in text.split('|') {
            for value in self.value(word, catalogue)? {
                if !all.contains(&value) {
                    all.push(value);
                }
            }
        }
        Ok(all)
    }

    fn value(self, word: &str, catalogue: &Catalogue) -> Result<Vec<String>, Failure> {
        let odd = |what: &str| {
            Failure::usage(format!("invalid sweep value `{word}` for axis {}", self.name())).because(what)
        };
        if let Some(bounds) = self.numbers() {
            let Some((first, last)) = quantity::range(word) else {
                return Ok(vec![self.number(word, &bounds).map_err(|why| odd(&why))?.to_string()]);
            };
            let number = |text| self.number(text, &bounds).map_err(|why| odd(&why));
            let (first, last) = (number(first)?, number(last)?);
            let numbers =
                if self == Self::Seed { counted(first, last) } else { quantity::doubled(first, last) };
            return Ok(numbers
                .map_err(|why| odd(&why))?
                .into_iter()
                .map(|number| number.to_string())
                .collect());
        }
        let known: Vec<&str> = match self {
            Self::Access => vec!["random", "sequential"],
            Self::ReportRoute => vec!["read", "write"],
            _ => {
                let of_kind = |kind| catalogue.entries().filter(move |entry| entry.kind() == kind);
                self.kinds().iter().copied().flat_map(of_kind).map(|entry| entry.name.as_str()).collect()
            }
        };
        match word {
            "*" => Ok(known.into_iter().map(str::to_owned).collect()),
            "none" if self == Self::Hub => Ok(vec![String::new()]),
            word if known.contains(&word) => Ok(vec![word.to_owned()]),
            _ => Err(odd("there is no such thing").try_this(nearest::hint(word, "values", known))),
        }
    }
}

/// The numbers of a range that counts by one.
fn counted(first: u64, last: u64) -> Result<Vec<u64>, String> {
    if first > last {
        return Err(format!(
            "a range of seeds goes from the smaller to the larger, not from {first} to {last}"
        ));
    }
    if last - first >= POINTS_MAX as u64 {
        return Err(format!("a sweep has {POINTS_MAX} points at most"));
    }
    Ok((first..=last).collect())
}

impl Grid {
    /// Reads what is asked; what is not varied is as the other arguments say.
    pub(super) fn read(
        text: &str,
        arguments: &CompareArguments,
        catalogue: &Catalogue,
    ) -> Result<Self, Failure> {
        let usual = Usual {
            bytes: arguments.block.map_or(4096, |block| block.0),
            depths: arguments.depths().unwrap_or_else(|| vec![1]),
            writes: arguments.write,
            seed: arguments.seed,
        };
        Self::with(text, usual, catalogue)
    }

    fn with(text: &str, usual: Usual, catalogue: &Catalogue) -> Result<Self, Failure> {
        let mut values = vec![Vec::new(); AXES.len()];
        for item in text.split(',').map(str::trim) {
            let names = || AXES.map(Axis::name).join(", ");
            let odd = |what: String| {
                Failure::usage(what).try_this(format!("an item is NAME=VALUES, of {}", names()))
            };
            let (name, of) =
                item.split_once('=').ok_or_else(|| odd(format!("`{item}` is no item of a sweep")))?;
            let place = AXES.iter().position(|axis| axis.name() == name);
            let place = place.ok_or_else(|| {
                let hint = nearest::hint(name, "axes", AXES.map(Axis::name));
                odd(format!("a sweep has no `{name}`")).try_this(format!("an item is NAME=VALUES. {hint}"))
            })?;
            if !values[place].is_empty() {
                return Err(odd(format!("`{name}` is there twice")));
            }
            values[place] = AXES[place].values(of, catalogue)?;
        }
        Ok(Self { values, usual })
    }

    fn of(&self, axis: Axis) -> &[String] {
        AXES.iter().position(|known| *known == axis).map_or(&[], |place| &self.values[place])
    }

    /// Its points, for variants of a setup.
    pub(super) fn points(
        &self,
        columns: &[Configuration],
        catalogue: &Catalogue,
    ) -> Result<Vec<Point>, Failure> {
        let jobs = self.jobs();
        let each = self.values[..7].iter().map(|values| values.len().max(1)).product::<usize>();
        let whole = each.checked_mul(jobs.len()).and_then(|each| each.checked_mul(columns.len()));
        if whole.is_none_or(|whole| whole > POINTS_MAX) {
            return Err(Failure::usage(format!("a sweep has {POINTS_MAX} points at most")));
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
            return Err(Failure::usage("no point of this sweep has parts that fit together"));
        }
        Ok(points)
    }

    /// One value of each kind of part that is varied.
    fn choices(&self) -> Vec<Vec<(PartKind, &str)>> {
        let mut all: Vec<Vec<(PartKind, &str)>> = vec![Vec::new()];
        for axis in AXES.into_iter().filter(|axis| !self.of(*axis).is_empty()) {
            let Some(kind) = axis.kinds().first() else { continue };
            let mut longer = Vec::new();
            for choice in &all {
                for value in self.of(axis) {
                    longer.push([choice.as_slice(), &[(*kind, value.as_str())]].concat());
                }
            }
            all = longer;
        }
        all
    }

    fn jobs(&self) -> Vec<(Job, u64)> {
        let numbers = |axis, usual: Vec<u64>| match self.of(axis) {
            [] => usual,
            values => values.iter().filter_map(|value| value.parse().ok()).collect(),
        };
        let words = |axis, usual: &str| match self.of(axis) {
            [] => vec![usual.to_owned()],
            values => values.to_vec(),
        };
        let ways = words(Axis::ReportRoute, if self.usual.writes { "write" } else { "read" });
        let depths = numbers(Axis::Depth, self.usual.depths.iter().map(|depth| u64::from(*depth)).collect());
        let mut jobs = Vec::new();
        for access in words(Axis::Access, "random") {
            for way in &ways {
                for bytes in numbers(Axis::Block, vec![self.usual.bytes]) {
                    for depth in &depths {
                        for seed in numbers(Axis::Seed, vec![self.usual.seed]) {
                            let (reads, random) = (
                                if way == "read" { 100 } else { 0 },
                                if access == "random" { 100 } else { 0 },
                            );
                            let share =
                                AccessSpec::all(u32::try_from(bytes).unwrap_or(u32::MAX), reads, random);
                            jobs.push((Job::of(share, u16::try_from(*depth).unwrap_or(1)), seed));
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

    fn grid(text: &str) -> Result<Grid, Failure> {
        let usual = Usual { bytes: 4096, depths: vec![1], writes: false, seed: 1 };
        Grid::with(text, usual, &Catalogue::built_in().unwrap())
    }

    #[test]
    fn ranges_double_and_lists_keep_their_order() {
        let grid = grid("depth=1..32,block=4K..64K,bridge=jms580|asm1051").unwrap();
        assert_eq!(grid.of(Axis::Depth), ["1", "2", "4", "8", "16", "32"]);
        assert_eq!(grid.of(Axis::Block), ["4096", "8192", "16384", "32768", "65536"]);
        assert_eq!(grid.of(Axis::Bridge), ["jms580", "asm1051"]);
        assert_eq!(grid.jobs().len(), 30);
    }

    #[test]
    fn a_range_has_all_its_numbers_in_both_spellings() {
        for text in ["depth=1..8,block=0.5K..2K,seed=0..3", "depth=1-8,block=512-2K,seed=0-3"] {
            let grid = grid(text).unwrap();
            assert_eq!(grid.of(Axis::Depth), ["1", "2", "4", "8"]);
            assert_eq!(grid.of(Axis::Block), ["512", "1024", "2048"]);
            assert_eq!(grid.of(Axis::Seed), ["0", "1", "2", "3"], "seeds are counted by one");
        }
        assert_eq!(grid("seed=7..7").unwrap().of(Axis::Seed), ["7"]);
    }

    #[test]
    fn a_star_is_all_parts_of_a_kind() {
        assert!(grid("bridge=*").unwrap().of(Axis::Bridge).len() > 8);
        let drives = grid("drive=*").unwrap();
        assert!(
            ["vertex3-240", "disk-7200"]
                .iter()
                .all(|name| drives.of(Axis::Drive).iter().any(|drive| drive == name))
        );
    }

    #[test]
    fn what_is_no_grid_says_why() {
        for (text, reason) in [
            ("depth", "is no item"),
            ("colour=red", "a sweep has no `colour`"),
            ("depth=0", "0 is out of range; 1 to 256 are possible"),
            ("depth=8..1", "goes from 1 or more to a larger number, not from 8 to 1"),
            ("depth=1..5", "does not reach 5: its numbers are 1, 2, 4; end it at 4 or 8"),
            ("depth=x", "invalid sweep value `x` for axis depth: 'x' is not a whole number from 1 to 256"),
            ("depth=1K", "'1K' is not a whole number"),
            ("depth=1..", "'1..' is not a whole number"),
            ("block=4K..96K", "does not reach 98304"),
            ("seed=3..1", "from the smaller to the larger, not from 3 to 1"),
            ("seed=0..18446744073709551615", "points at most"),
            ("block=1000", "512 to"),
            ("bridge=asm9999", "asm1153"),
            ("way=up", "read, write"),
            ("depth=1,depth=2", "twice"),
        ] {
            let failure = grid(text).unwrap_err().to_string();
            assert!(failure.contains(reason), "{text}: {failure}");
        }
    }
}
