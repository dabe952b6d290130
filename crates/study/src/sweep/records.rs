//! Files of records: a header line, and a line for each point in the order of the plan.
//!
//! A file only grows, by a whole line at a time. A run that was interrupted leaves a beginning of the whole file; an incomplete last line
//! is overwritten when it continues. So a continued file has the bytes of one that was never interrupted, and the lines of all shards,
//! in order, are those of the whole. Left out: opening, locking and writing files.
//!
//! Always true: a file is continued only with the same plan.

use crate::compare::Point;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::str::FromStr;

/// Maximum length of a line.
pub const LINE_BYTES_MAX: u64 = 1 << 16;

/// Maximum number of shards.
const SHARDS_MAX: usize = 100_000;

/// Every `of`th point, from the `number`th on, which counts from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    of: usize,
}

/// The first line of a file: which sweep it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Name of the setup.
    pub setup: String,
    /// The grid, as it was written.
    pub sweep: String,
    /// Number of points of the whole sweep.
    pub points: usize,
    /// A digest of everything that figures depend on.
    pub plan: u64,
    /// Which points the file is for.
    pub shard: Shard,
}

/// How far a file has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// Bytes of its complete lines.
    pub bytes: u64,
    /// Points that it has.
    pub points: usize,
}

/// Why a file cannot be used.
#[derive(Debug)]
pub enum RecordError {
    /// It cannot be read.
    Read(io::Error),
    /// A line is invalid: its number, from 1, and the reason.
    Line(usize, String),
    /// It is valid and belongs to another sweep.
    OtherSweep,
    /// It has no line.
    Empty,
}

/// Why shards cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeError {
    /// A shard is of another sweep than the first one.
    OtherSweep,
    /// A shard has another record of this point than an earlier one.
    Conflict(usize),
    /// Points are missing.
    Missing {
        /// How many.
        count: usize,
        /// The first of them.
        first: usize,
        /// Points of the sweep.
        of: usize,
    },
    /// There is no shard.
    Empty,
}

impl Shard {
    /// All points.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Whether a point, from 0, belongs to it.
    pub const fn has(self, point: usize) -> bool {
        point % self.of == self.number - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a shard; write I/N, from 1/N to N/N");
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let (number, of) = (number.parse().map_err(|_| wrong())?, of.parse().map_err(|_| wrong())?);
        if (1..=of).contains(&number) && of <= SHARDS_MAX { Ok(Self { number, of }) } else { Err(wrong()) }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl Header {
    /// Returns the line.
    pub fn line(&self) -> String {
        let Self { setup, sweep, points, plan, shard } = self;
        let (version, plan) = (env!("CARGO_PKG_VERSION"), format!("{plan:016x}"));
        json!({ "uaskit": version, "setup": setup, "sweep": sweep, "points": points, "plan": plan, "shard": shard.to_string() })
            .to_string()
    }

    fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let header = Self {
            setup: text("setup")?,
            sweep: text("sweep")?,
            points: usize::try_from(value["points"].as_u64()?).ok()?,
            plan: u64::from_str_radix(&text("plan")?, 16).ok()?,
            shard: text("shard")?.parse().ok()?,
        };
        // A header of another version differs.
        (header.line() == line).then_some(header)
    }

    /// Returns the points of the shard.
    pub fn own<'a>(&self, points: &'a [Point]) -> impl Iterator<Item = &'a Point> + use<'a> {
        let shard = self.shard;
        points.iter().filter(move |point| shard.has(point.number))
    }
}

/// The point of a line.
fn point(line: &str) -> Option<usize> {
    let value: Value = serde_json::from_str(line).ok()?;
    usize::try_from(value["point"].as_u64()?).ok()
}

/// Reads complete lines, each with its number, and returns their bytes. An incomplete last line is left out.
fn lines(
    mut reader: impl BufRead,
    mut each: impl FnMut(usize, &str) -> Result<(), RecordError>,
) -> Result<u64, RecordError> {
    let (mut end, mut number) = (0, 0);
    loop {
        let mut line = Vec::new();
        let bytes = (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let bytes = bytes.map_err(RecordError::Read)? as u64;
        if line.last() != Some(&b'\n') {
            if bytes == LINE_BYTES_MAX {
                return Err(RecordError::Line(number + 1, "it is too long".into()));
            }
            return Ok(end);
        }
        line.pop();
        number += 1;
        let text = std::str::from_utf8(&line);
        let text = text.map_err(|_| RecordError::Line(number, "it is not text".into()))?;
        each(number, text)?;
        end += bytes;
    }
}

/// Checks that a file is a beginning of the one that this header starts.
///
/// # Errors
/// If it is not.
pub fn continuation(reader: impl BufRead, header: &Header) -> Result<Continuation, RecordError> {
    let mut own = (0..header.points).filter(|point| header.shard.has(*point));
    let (head, mut points) = (header.line(), 0);
    let bytes = lines(reader, |number, line| {
        if number == 1 {
            return if line == head { Ok(()) } else { Err(RecordError::OtherSweep) };
        }
        if point(line).is_none() || point(line) != own.next() {
            return Err(RecordError::Line(number, "it is not the next point".into()));
        }
        points += 1;
        Ok(())
    })?;
    Ok(Continuation { bytes, points })
}

/// Reads the header of a file, and its lines by point.
///
/// # Errors
/// If it is not a file of records of this version.
pub fn read(reader: impl BufRead) -> Result<(Header, BTreeMap<usize, String>), RecordError> {
    let (mut header, mut records) = (None, BTreeMap::new());
    lines(reader, |number, line| {
        let Some(header) = &header else {
            let this = format!("it is not the header of a sweep of uaskit {}", env!("CARGO_PKG_VERSION"));
            header = Some(Header::read(line).ok_or(RecordError::Line(number, this))?);
            return Ok(());
        };
        let own = point(line).filter(|point| *point < header.points && header.shard.has(*point));
        let own = own.ok_or_else(|| RecordError::Line(number, "it is not a point of this shard".into()))?;
        records.insert(own, line.to_owned());
        Ok(())
    })?;
    header.map(|header| (header, records)).ok_or(RecordError::Empty)
}

/// Shards of one sweep that become the whole.
#[derive(Debug, Default)]
pub struct Merge {
    whole: Option<Header>,
    lines: BTreeMap<usize, String>,
}

impl Merge {
    /// Adds a shard.
    ///
    /// # Errors
    /// If it does not belong to the shards before it.
    pub fn add(&mut self, header: Header, records: BTreeMap<usize, String>) -> Result<(), MergeError> {
        let header = Header { shard: Shard::WHOLE, ..header };
        if *self.whole.get_or_insert_with(|| header.clone()) != header {
            return Err(MergeError::OtherSweep);
        }
        for (point, line) in records {
            if self.lines.get(&point).is_some_and(|known| *known != line) {
                return Err(MergeError::Conflict(point));
            }
            self.lines.insert(point, line);
        }
        Ok(())
    }

    /// Returns the header of the whole and all lines, in order.
    ///
    /// # Errors
    /// If points are missing.
    pub fn finish(self) -> Result<Vec<String>, MergeError> {
        let Self { whole, lines } = self;
        let header = whole.ok_or(MergeError::Empty)?;
        let mut missing = (0..header.points).filter(|point| !lines.contains_key(point));
        if let Some(first) = missing.next() {
            return Err(MergeError::Missing { count: 1 + missing.count(), first, of: header.points });
        }
        Ok([header.line()].into_iter().chain(lines.into_values()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(shard: &str) -> Header {
        let (setup, sweep) = ("myce".into(), "depth=1..4".into());
        Header { setup, sweep, points: 3, plan: 0xff, shard: shard.parse().expect("a shard") }
    }

    fn file(header: &Header, points: &[usize]) -> String {
        let points = points.iter().map(|point| format!("{{\"point\":{point}}}\n"));
        header.line() + "\n" + &points.collect::<String>()
    }

    #[test]
    fn shards_have_each_point_once() {
        let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().unwrap()).collect();
        for point in 0..20 {
            assert_eq!(shards.iter().filter(|shard| shard.has(point)).count(), 1);
        }
        for wrong in ["0/3", "4/3", "1", "1/0", "a/b", "1/100001", "-1/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_header_is_read_as_it_is_written() {
        let header = header("2/5");
        assert_eq!(Header::read(&header.line()), Some(header.clone()));
        assert_eq!(Header::read(&header.line().replace("uaskit", "other")), None);
    }

    #[test]
    fn a_file_continues_after_its_last_complete_line() {
        let header = header("1/1");
        let whole = file(&header, &[0, 1]);
        let cut = format!("{whole}{{\"poi");
        let expected = Continuation { bytes: whole.len() as u64, points: 2 };
        assert_eq!(continuation(cut.as_bytes(), &header).expect("a beginning"), expected);
        let other = Header { plan: 1, ..header.clone() };
        assert!(matches!(continuation(cut.as_bytes(), &other), Err(RecordError::OtherSweep)));
        let skipped = file(&header, &[0, 2]);
        assert!(matches!(continuation(skipped.as_bytes(), &header), Err(RecordError::Line(3, _))));
    }

    #[test]
    fn shards_merge_into_the_file_of_one_run() {
        let (first, second) = (header("1/2"), header("2/2"));
        let shards = [file(&first, &[0, 2]), file(&second, &[1])];
        let mut merge = Merge::default();
        for shard in &shards {
            let (header, records) = read(shard.as_bytes()).expect("a shard");
            merge.add(header, records).expect("of one sweep");
        }
        let whole = file(&header("1/1"), &[0, 1, 2]);
        assert_eq!(merge.finish().expect("complete").join("\n") + "\n", whole);
        let mut half = Merge::default();
        let (header, records) = read(shards[0].as_bytes()).expect("a shard");
        half.add(header, records).expect("the first");
        assert_eq!(half.finish(), Err(MergeError::Missing { count: 1, first: 1, of: 3 }));
    }
}
