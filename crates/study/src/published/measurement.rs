//! Measurements by name, and their results.
//!
//! `myce/uasp 4K random write qd4`: variant of a setup, workload, queue depth. Always true: equal
//! measurements are written equally, so that each is made once.

use std::fmt;
use std::str::FromStr;

/// A run to make.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Measurement {
    /// The setup, by name.
    pub setup: String,
    /// Its variant.
    pub variant: String,
    /// The workload of the drive.
    pub workload: Workload,
    /// Queue depth.
    pub depth: u16,
}

/// The workload of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// Requests of one length, all alike.
    Blocks {
        /// Bytes of a request.
        bytes: u32,
        /// Where.
        access: AccessPattern,
        /// Which way.
        way: PayloadDirection,
    },
    /// 8 KiB, 80 % of them reads, 80 % at random places.
    Workstation,
    /// Four reads on a disk whose places are 1, 2, 3, 4 in their order on the platter of an article's figure: see
    /// [`Outcome::order`].
    Platter,
}

/// The access pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessPattern {
    /// Sequential.
    Sequential,
    /// Random.
    Random,
}

/// The direction of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PayloadDirection {
    /// Read.
    Read,
    /// Write.
    Write,
}

/// Results of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Payload in bytes per second.
    pub bytes_per_second: f64,
    /// Requests per second.
    pub requests_per_second: f64,
    /// Mean latency in nanoseconds.
    pub latency_ns: f64,
    /// Mean power over the peak second in watts; over the whole run if shorter.
    pub watts_peak: Option<f64>,
    /// Mean bytes of information units per command.
    pub unit_bytes: Option<f64>,
    /// Mean READ READY and WRITE READY units per command.
    pub ready_units: Option<f64>,
    /// Order of service of four requests: 3241.
    pub order: Option<u32>,
}

/// Why a text is not a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeasurementError {
    /// expected `setup/variant` first.
    ParameterPath(String),
    /// Unknown or misplaced word.
    Word(String),
    /// A word is missing.
    Missing(&'static str),
}

impl Measurement {
    /// Those that `setup/variant workload qd1,2,4` stands for: one for each depth.
    ///
    /// # Errors
    /// See [`MeasurementError`].
    pub fn all(words: &str) -> Result<Vec<Self>, MeasurementError> {
        let mut words = words.split_whitespace();
        let place = words.next().ok_or(MeasurementError::Missing("setup/variant"))?;
        let (setup, variant) =
            place.split_once('/').ok_or_else(|| MeasurementError::ParameterPath(place.into()))?;
        let workload = Workload::of(&mut words)?;
        let depths = words.next().ok_or(MeasurementError::Missing("qd"))?;
        if let Some(word) = words.next() {
            return Err(MeasurementError::Word(word.into()));
        }
        let odd = || MeasurementError::Word(depths.into());
        let each = depths.strip_prefix("qd").ok_or_else(odd)?.split(',');
        let (setup, variant) = (setup.to_owned(), variant.to_owned());
        let one = |depth: &str| {
            let depth = depth.parse().ok().filter(|depth| (1..=256).contains(depth)).ok_or_else(odd)?;
            Ok(Self { setup: setup.clone(), variant: variant.clone(), workload: workload.clone(), depth })
        };
        each.map(one).collect()
    }
}

impl Workload {
    fn of<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<Self, MeasurementError> {
        let word = words.next().ok_or(MeasurementError::Missing("a workload"))?;
        match word {
            "workstation" => return Ok(Self::Workstation),
            "platter" => return Ok(Self::Platter),
            _ => {}
        }
        let odd = |word: &str| MeasurementError::Word(word.into());
        let bytes = bytes(word).ok_or_else(|| odd(word))?;
        let access = match words.next().ok_or(MeasurementError::Missing("random or sequential"))? {
            "random" => AccessPattern::Random,
            "sequential" => AccessPattern::Sequential,
            other => return Err(odd(other)),
        };
        let way = match words.next().ok_or(MeasurementError::Missing("read or write"))? {
            "read" => PayloadDirection::Read,
            "write" => PayloadDirection::Write,
            other => return Err(odd(other)),
        };
        Ok(Self::Blocks { bytes, access, way })
    }
}

/// `4K`, `2M`.
fn bytes(word: &str) -> Option<u32> {
    let (digits, unit) = match word.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => (word.strip_suffix('M')?, 1 << 20),
    };
    let bytes = u32::from_str(digits).ok()?.checked_mul(unit)?;
    (512..=64 << 20).contains(&bytes).then_some(bytes)
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} {} qd{}", self.setup, self.variant, self.workload, self.depth)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Blocks { bytes, access, way } = self else {
            return f.write_str(if *self == Self::Workstation { "workstation" } else { "platter" });
        };
        match bytes / 1024 {
            kib if kib % 1024 == 0 => write!(f, "{}M", kib / 1024)?,
            kib => write!(f, "{kib}K")?,
        }
        f.write_str(if *access == AccessPattern::Random { " random" } else { " sequential" })?;
        f.write_str(if *way == PayloadDirection::Read { " read" } else { " write" })
    }
}

impl fmt::Display for MeasurementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ParameterPath(word) => write!(f, "expected `setup/variant`, not `{word}`"),
            Self::Word(word) => write!(f, "`{word}` is not known there"),
            Self::Missing(what) => write!(f, "{what} is missing"),
        }
    }
}

impl std::error::Error for MeasurementError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_is_read_as_it_is_written() {
        for words in [
            "myce/uasp 4K random write qd4",
            "toms/hdd-bot 2M sequential read qd1",
            "myce/sata workstation qd64",
        ] {
            let all = Measurement::all(words).expect("a measurement");
            assert_eq!(all.iter().map(ToString::to_string).collect::<Vec<_>>(), [words]);
        }
    }

    #[test]
    fn several_depths_are_several_measurements() {
        let all = Measurement::all("myce/bot 512K sequential read qd1,2,16").expect("measurements");
        assert_eq!(all.iter().map(|one| one.depth).collect::<Vec<_>>(), [1, 2, 16]);
    }

    #[test]
    fn unknown_words_are_named() {
        let error = |words| Measurement::all(words).unwrap_err().to_string();
        assert_eq!(error("uasp 4K random write qd4"), "expected `setup/variant`, not `uasp`");
        assert_eq!(error("myce/uasp 4X random write qd4"), "`4X` is not known there");
        assert_eq!(error("myce/uasp 4K random qd4"), "`qd4` is not known there");
        assert_eq!(error("myce/uasp 4K random write"), "qd is missing");
        assert_eq!(error("myce/uasp 4K random write qd0"), "`qd0` is not known there");
        assert_eq!(error("myce/uasp 4K random write qd1 twice"), "`twice` is not known there");
    }
}
