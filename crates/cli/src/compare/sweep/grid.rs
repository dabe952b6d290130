//! The text of a grid.
//!
//! ```text
//! grid   = axis { "," axis }
//! axis   = name "=" value { "|" value }
//! value  = word | number | number ".." number | number "-" number | "*"
//! ```
//!
//! A range doubles from its first number to its last, which it must reach; a range of seeds counts by one. `*` is all parts of the
//! catalogue of that kind. Left out: the points, which [`study::sweep`] makes.

use crate::args::quantity;
use crate::compare::CompareArguments;
use crate::failure::Failure;
use crate::nearest;
use std::ops::RangeInclusive;
use study::parts::Catalogue;
use study::sweep::{Axis, Grid, JobDefaults, POINTS_MAX};

/// Parses the grid of `--sweep`; other arguments set what it does not vary.
pub(super) fn of_arguments(arguments: &CompareArguments, catalogue: &Catalogue) -> Result<Grid, Failure> {
    let defaults = JobDefaults {
        bytes: arguments.block.map_or(4096, |block| block.0),
        depths: arguments.depths().unwrap_or_else(|| vec![1]),
        writes: arguments.write,
        seed: arguments.seed,
    };
    parse(arguments.grid.sweep.as_deref().unwrap_or_default(), defaults, catalogue)
}

fn parse(text: &str, defaults: JobDefaults, catalogue: &Catalogue) -> Result<Grid, Failure> {
    let mut grid = Grid::new(defaults);
    for item in text.split(',').map(str::trim) {
        let wrong = |what: String| {
            let names = Axis::ALL.map(Axis::name).join(", ");
            Failure::usage(what)
                .try_this(format!("Write NAME=VALUES, several values as depth=1|4|32; names are {names}."))
        };
        let (name, values) =
            item.split_once('=').ok_or_else(|| wrong(format!("invalid sweep item `{item}`")))?;
        let axis = Axis::ALL.into_iter().find(|axis| axis.name() == name);
        let axis = axis.ok_or_else(|| {
            let hint = nearest::hint(name, "axes", Axis::ALL.map(Axis::name));
            Failure::usage(format!("a sweep has no axis `{name}`")).try_this(hint)
        })?;
        if !grid.vary(axis, axis_values(axis, values, catalogue)?) {
            return Err(wrong(format!("sweep axis `{name}` is given twice")));
        }
    }
    Ok(grid)
}

/// The values of an axis, each once.
fn axis_values(axis: Axis, text: &str, catalogue: &Catalogue) -> Result<Vec<String>, Failure> {
    let mut all: Vec<String> = Vec::new();
    for word in text.split('|') {
        for value in values(axis, word, catalogue)? {
            if !all.contains(&value) {
                all.push(value);
            }
        }
    }
    Ok(all)
}

/// The values of a word: one, those of a range, or all.
fn values(axis: Axis, word: &str, catalogue: &Catalogue) -> Result<Vec<String>, Failure> {
    let invalid = |why: String| {
        Failure::usage(format!("invalid sweep value `{word}` for axis {}", axis.name())).because(why)
    };
    if let Some(bounds) = axis.bounds() {
        let number = |text| number(axis, text, &bounds).map_err(invalid);
        let Some((first, last)) = quantity::range(word) else { return Ok(vec![number(word)?.to_string()]) };
        let (first, last) = (number(first)?, number(last)?);
        let numbers = if axis == Axis::Seed { counted(first, last) } else { quantity::doubled(first, last) };
        return Ok(numbers.map_err(invalid)?.iter().map(u64::to_string).collect());
    }
    let known = axis.names(catalogue);
    match word {
        "*" => Ok(known.into_iter().map(str::to_owned).collect()),
        "none" if axis == Axis::Hub => Ok(vec![String::new()]),
        word if known.contains(&word) => Ok(vec![word.to_owned()]),
        _ => Err(invalid("no such value".into()).try_this(nearest::hint(word, "values", known))),
    }
}

/// A number of an axis: bytes of a request, or a whole number.
fn number(axis: Axis, text: &str, bounds: &RangeInclusive<u64>) -> Result<u64, String> {
    let number = if axis == Axis::Block {
        quantity::size(text)?.0
    } else {
        let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| all_digits).ok_or_else(|| {
            format!("'{text}' is not a whole number from {} to {}", bounds.start(), bounds.end())
        })?
    };
    if bounds.contains(&number) && (axis != Axis::Block || number % 512 == 0) {
        return Ok(number);
    }
    let unit = if axis == Axis::Block { ", in multiples of 512" } else { "" };
    Err(format!("{number} is out of range; {} to {} are possible{unit}", bounds.start(), bounds.end()))
}

/// The numbers of a range that counts by one.
fn counted(first: u64, last: u64) -> Result<Vec<u64>, String> {
    if first > last {
        return Err(format!(
            "a range of seeds goes from the smaller to the larger, not from {first} to {last}"
        ));
    }
    if last - first >= POINTS_MAX as u64 {
        return Err(format!("a sweep can have at most {POINTS_MAX} points"));
    }
    Ok((first..=last).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(text: &str) -> Result<Grid, Failure> {
        let defaults = JobDefaults { bytes: 4096, depths: vec![1], writes: false, seed: 1 };
        parse(text, defaults, &Catalogue::built_in().unwrap())
    }

    #[test]
    fn ranges_double_and_lists_keep_their_order() {
        let grid = grid("depth=1..32,block=4K..64K,bridge=jms580|asm1051").unwrap();
        assert_eq!(grid.values(Axis::Depth), ["1", "2", "4", "8", "16", "32"]);
        assert_eq!(grid.values(Axis::Block), ["4096", "8192", "16384", "32768", "65536"]);
        assert_eq!(grid.values(Axis::Bridge), ["jms580", "asm1051"]);
    }

    #[test]
    fn a_range_has_all_its_numbers_in_both_spellings() {
        for text in ["depth=1..8,block=0.5K..2K,seed=0..3", "depth=1-8,block=512-2K,seed=0-3"] {
            let grid = grid(text).unwrap();
            assert_eq!(grid.values(Axis::Depth), ["1", "2", "4", "8"]);
            assert_eq!(grid.values(Axis::Block), ["512", "1024", "2048"]);
            assert_eq!(grid.values(Axis::Seed), ["0", "1", "2", "3"], "seeds are counted by one");
        }
        assert_eq!(grid("seed=7..7").unwrap().values(Axis::Seed), ["7"]);
    }

    #[test]
    fn a_star_is_all_parts_of_a_kind() {
        assert!(grid("bridge=*").unwrap().values(Axis::Bridge).len() > 8);
        let drives = grid("drive=*").unwrap();
        let has = |name: &&str| drives.values(Axis::Drive).iter().any(|drive| drive == name);
        assert!(["vertex3-240", "disk-7200"].iter().all(has));
    }

    #[test]
    fn what_is_no_grid_says_why() {
        for (text, reason) in [
            ("depth", "invalid sweep item `depth`"),
            ("colour=red", "a sweep has no axis `colour`"),
            ("depth=0", "0 is out of range; 1 to 256 are possible"),
            ("depth=8..1", "goes from 1 or more to a larger number, not from 8 to 1"),
            ("depth=1..5", "does not reach 5: its numbers are 1, 2, 4; end it at 4 or 8"),
            ("depth=x", "invalid sweep value `x` for axis depth: 'x' is not a whole number from 1 to 256"),
            ("depth=1K", "'1K' is not a whole number"),
            ("depth=1..", "'1..' is not a whole number"),
            ("block=4K..96K", "does not reach 98304"),
            ("seed=3..1", "from the smaller to the larger, not from 3 to 1"),
            ("seed=0..18446744073709551615", "at most 1000000 points"),
            ("block=1000", "512 to"),
            ("bridge=asm9999", "asm1153"),
            ("direction=up", "read, write"),
            ("depth=1,depth=2", "twice"),
        ] {
            let failure = grid(text).unwrap_err().to_string();
            assert!(failure.contains(reason), "{text}: {failure}");
        }
    }
}
