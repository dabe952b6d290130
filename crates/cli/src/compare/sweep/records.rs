//! Files of records: a head, and a line for each point, in the order of the plan.
//!
//! A file is only ever appended to, a whole line at a time. What a run that was cut off left behind is a beginning of the whole file, but
//! perhaps for a last line that is not whole, which is taken away when it goes on. So a file that is continued ends up with the bytes of
//! one that never was interrupted, and lines of shards, in their order, are those of the whole.
//!
//! Always true: nothing is appended to what is not of the same plan; one process at a time has a file.

use crate::args::Shard;
use crate::failure::Failure;
use crate::output_file;
use crate::sanitize::shown;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use study::compare::Point;
use study::plural::counted_len;

/// Bytes of a line at most.
const LINE_BYTES_MAX: u64 = 1 << 16;

/// What a file is about: its first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(super) setup: String,
    pub(super) sweep: String,
    points: usize,
    /// A number for everything that figures depend on.
    plan: String,
    pub(super) shard: Shard,
}

/// A file that is appended to.
#[derive(Debug)]
pub(crate) struct Records {
    path: PathBuf,
    file: File,
    count: usize,
}

impl Header {
    pub(super) fn new(points: &[Point], plan: u64, shard: Shard, fill: impl FnOnce(&mut Self)) -> Self {
        let (setup, sweep) = (String::new(), String::new());
        let mut header = Self { setup, sweep, points: points.len(), plan: format!("{plan:016x}"), shard };
        fill(&mut header);
        header
    }

    fn line(&self) -> String {
        let Self { setup, sweep, points, plan, shard } = self;
        let version = env!("CARGO_PKG_VERSION");
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
            plan: text("plan")?,
            shard: text("shard")?.parse().ok()?,
        };
        // One of another version says other things.
        (header.line() == line).then_some(header)
    }
}

/// The point of a line.
fn point(line: &str) -> Option<usize> {
    let value: Value = serde_json::from_str(line).ok()?;
    usize::try_from(value["point"].as_u64()?).ok()
}

/// Reads whole lines, each with the offset of its end. An incomplete line at the end is left out.
fn lines(
    file: &File,
    path: &Path,
    mut each: impl FnMut(usize, &str) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let unreadable = |error| Failure::new(format!("{} cannot be read", shown(path))).because(error);
    let mut reader = BufReader::new(file);
    let (mut end, mut number) = (0, 0);
    loop {
        let mut line = Vec::new();
        let bytes = (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let bytes = bytes.map_err(unreadable)? as u64;
        if line.last() != Some(&b'\n') {
            if bytes == LINE_BYTES_MAX {
                return Err(broken(path, number + 1, "it is too long"));
            }
            return Ok(end);
        }
        line.pop();
        number += 1;
        let text = std::str::from_utf8(&line).map_err(|_| broken(path, number, "it is no text"))?;
        each(number, text)?;
        end += bytes;
    }
}

fn broken(path: &Path, line: usize, why: &str) -> Failure {
    Failure::new(format!("{}, line {line} is no record of a sweep", shown(path))).because(why)
}

fn other(path: &Path, why: &str) -> Failure {
    Failure::new(format!("{} is not of this sweep", shown(path)))
        .because(why)
        .try_this("take another file, or call it as it was begun")
}

impl Records {
    /// Opens a file to continue it, or begins one.
    pub(super) fn open(path: &Path, header: &Header) -> Result<Self, Failure> {
        let unwritable = |error| output_file::unwritable(path, &error);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = file.map_err(unwritable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let why = "another run appends to it";
                return Err(Failure::new(format!("{} is in use", shown(path))).because(why));
            }
            // Some file systems have no locks.
            Err(TryLockError::Error(_)) => {}
        }
        let own: Vec<usize> = (0..header.points).filter(|point| header.shard.has(*point)).collect();
        let (head, mut count) = (header.line(), 0);
        let end = lines(&file, path, |number, line| {
            if number == 1 {
                return if line == head {
                    Ok(())
                } else {
                    Err(other(path, "its first line says something else"))
                };
            }
            if point(line).is_none() || point(line) != own.get(count).copied() {
                return Err(broken(path, number, "it is not the point that comes next"));
            }
            count += 1;
            Ok(())
        })?;
        if end == 0 {
            Self::is_beginning(&mut file, path, &head)?;
        }
        file.set_len(end).map_err(unwritable)?;
        file.seek(SeekFrom::Start(end)).map_err(unwritable)?;
        let mut records = Self { path: path.into(), file, count };
        if end == 0 {
            records.put(&head)?;
        }
        Ok(records)
    }

    /// A file without a whole line is one of ours that was cut off in its head, or none of ours.
    fn is_beginning(file: &mut File, path: &Path, head: &str) -> Result<(), Failure> {
        let unreadable = |error| Failure::new(format!("{} cannot be read", shown(path))).because(error);
        file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let mut begun = Vec::new();
        file.take(LINE_BYTES_MAX).read_to_end(&mut begun).map_err(unreadable)?;
        if head.as_bytes().starts_with(&begun) {
            Ok(())
        } else {
            Err(other(path, "it is not a file of records"))
        }
    }

    /// Points that it has.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Appends the line of the next point.
    pub(super) fn append(&mut self, line: &str) -> Result<(), Failure> {
        self.put(line)?;
        self.count += 1;
        Ok(())
    }

    /// One write for a line, so that a run that ends leaves whole lines, but perhaps the last.
    fn put(&mut self, line: &str) -> Result<(), Failure> {
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        written.map_err(|error| output_file::unwritable(&self.path, &error))
    }

    /// The head of a file, and its lines by point.
    pub(crate) fn read(path: &Path) -> Result<(Header, BTreeMap<usize, String>), Failure> {
        let file = File::open(path)
            .map_err(|error| Failure::new(format!("{} cannot be read", shown(path))).because(error))?;
        let (mut header, mut records) = (None, BTreeMap::new());
        lines(&file, path, |number, line| {
            let Some(header) = &header else {
                let read = Header::read(line);
                let this = format!("it is no head of a sweep of uaskit {}", env!("CARGO_PKG_VERSION"));
                header = Some(read.ok_or_else(|| broken(path, number, &this))?);
                return Ok(());
            };
            let own = point(line).filter(|point| *point < header.points && header.shard.has(*point));
            let own = own.ok_or_else(|| broken(path, number, "it is not a point of this shard"))?;
            records.insert(own, line.to_owned());
            Ok(())
        })?;
        let header = header.ok_or_else(|| broken(path, 1, "there is none"))?;
        Ok((header, records))
    }
}

/// Joins shards of one sweep: the head of the whole, and all lines in their order.
pub(crate) fn merge(files: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let mut whole: Option<(Header, PathBuf)> = None;
    let mut all: BTreeMap<usize, String> = BTreeMap::new();
    for path in files {
        let (header, records) = Records::read(path)?;
        let header = Header { shard: Shard::WHOLE, ..header };
        match &whole {
            Some((first, of)) if *first != header => {
                let why = format!("it is of another sweep than {}", shown(of));
                return Err(Failure::new(format!("{} cannot be joined", shown(path))).because(why));
            }
            Some(_) => {}
            None => whole = Some((header, path.clone())),
        }
        for (point, line) in records {
            if all.get(&point).is_some_and(|known| *known != line) {
                let why = format!("it has another record of point {point} than a file before it");
                return Err(Failure::new(format!("{} cannot be joined", shown(path))).because(why));
            }
            all.insert(point, line);
        }
    }
    let Some((header, _)) = whole else { return Err(Failure::usage("there is nothing to join")) };
    let missing: Vec<usize> = (0..header.points).filter(|point| !all.contains_key(point)).collect();
    if let Some(first) = missing.first() {
        let what = format!(
            "{} of {} missing, the first is point {first}",
            missing.len(),
            counted_len(header.points, "point")
        );
        return Err(Failure::new(what)
            .try_this("run the shards that are not complete again; they go on where they ended"));
    }
    Ok([header.line()].into_iter().chain(all.into_values()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_head_is_read_as_it_is_written() {
        let shard = Shard { number: 2, of: 5 };
        let header = Header {
            setup: "myce".into(),
            sweep: "depth=1..4".into(),
            points: 12,
            plan: "00ff".into(),
            shard,
        };
        assert_eq!(Header::read(&header.line()), Some(header.clone()));
        assert_eq!(Header::read(&header.line().replace("uaskit", "other")), None);
    }
}
