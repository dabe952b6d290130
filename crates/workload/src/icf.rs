//! Configuration files of IOMeter (`.icf`): test setup, access specifications, and which of them a worker runs.
//!
//! The format is that of IOMeter 1.1.0 and of 2006.07.27: a line that begins with an apostrophe is a heading, which says
//! what the lines after it hold; sections begin with names in capitals and end with `'END`. One manager with one disk
//! worker and one target is understood, as jobs one after another: each access specification that is assigned to it, else
//! each that there is, at its number of outstanding I/Os or, with CYCLE_OUTSTANDING_IOS, at all of the cycle.
//!
//! Left out, and rejected with their line: network workers, several workers or targets at the same
//! time, delays, bursts, replies, other cycles, reopened connections, and every heading that is not
//! in `heading`. Ignored: what IOMeter displays, the random seed, which `--seed` sets, and the
//! target, since the command line names the drive.

mod heading;

use super::job::{
    ACCESS_SPECS_MAX, AccessSpec, Align, DEPTH_MAX, Fill, JOBS_MAX, Job, REQUEST_BYTES_MAX, Sequence,
    Workload,
};
use super::job_file::{JobFileError, tame};
use heading::{Heading, Meaning, Section, Values};
use std::time::Duration;

/// IOMeter's unit of "disk maximum size" and "starting sector".
const SECTOR_BYTES: u64 = 512;

/// A built-in specification that IOMeter does not save: no access while it is assigned.
const IDLE: &str = "Idle";

/// A line of the file with its number.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    number: usize,
    text: &'a str,
}

/// An access specification.
#[derive(Debug)]
struct Specification {
    name: String,
    specs: Vec<AccessSpec>,
    /// Where it begins.
    line: usize,
}

/// Where in the file the next line stands.
#[derive(Debug, Default)]
struct Reader<'a> {
    setup: Setup<'a>,
    section: Option<&'static Section>,
    under: Option<Under<'a>>,
}

/// The heading that values stand under.
#[derive(Debug)]
struct Under<'a> {
    heading: &'static Heading,
    line: Line<'a>,
    values: usize,
}

/// Settings parsed so far.
#[derive(Debug, Default)]
struct Setup<'a> {
    run: Option<Duration>,
    warm_up: Option<Duration>,
    cycle: Option<Line<'a>>,
    cycles: bool,
    specifications: Vec<Specification>,
    assigned: Vec<Line<'a>>,
    workers: usize,
    targets: usize,
    outstanding: Option<u16>,
    offset_bytes: u64,
    span_bytes: Option<u64>,
    fill: Option<Fill>,
}

/// Parses a configuration.
///
/// # Errors
///
/// The first line that is not supported.
pub fn parse(name: &str, text: &str) -> Result<Workload, JobFileError> {
    JobFileError::check_length(text)?;
    let text = JobFileError::without_mark(text);
    let mut reader = Reader::default();
    let mut last = Line { number: 1, text: "" };
    for (index, text) in text.lines().enumerate() {
        let line = Line { number: index + 1, text };
        if text.trim().is_empty() {
            continue;
        }
        last = line;
        match text.trim().strip_prefix('\'') {
            Some(comment) => reader.take_heading(comment, line)?,
            None => reader.take_value(line)?,
        }
    }
    reader.expect_no_open(last)?;
    reader.setup.finish(name, last)
}

impl<'a> Reader<'a> {
    fn take_heading(&mut self, comment: &str, line: Line<'a>) -> Result<(), JobFileError> {
        if self.under.as_ref().is_some_and(|under| under.heading.goes_on_with(comment)) {
            return Ok(());
        }
        if let Some(section) = Section::begun_by(comment) {
            self.expect_no_open(line)?;
            self.section = Some(section);
            return Ok(());
        }
        let unknown = || {
            let reason = format!("unsupported heading `{}`", tame(comment));
            line.error(reason, "remove it and its values, or save the file with IOMeter 1.1.0")
        };
        let section = self.section.ok_or_else(unknown)?;
        if section.is_ended_by(comment) {
            self.expect_value()?;
            (self.section, self.under) = (None, None);
            return Ok(());
        }
        let heading = section.heading(comment).ok_or_else(unknown)?;
        self.expect_value()?;
        self.under = Some(Under { heading, line, values: 0 });
        self.setup.begin(heading.meaning, line)
    }

    fn take_value(&mut self, line: Line<'a>) -> Result<(), JobFileError> {
        if self.section.is_none() {
            // The version of IOMeter stands before the sections and after them.
            return match line.text.split_whitespace().next() {
                Some("Version") => Ok(()),
                _ => Err(line.error("the line is outside any section", "use the file as saved by IOMeter")),
            };
        }
        let remedy = "use the file as saved by IOMeter";
        let Some(under) = &mut self.under else {
            return Err(line.error("the line has no heading", remedy));
        };
        under.values += 1;
        match (under.heading.values, under.values) {
            (Values::Any, _) | (Values::AtMostOne | Values::One, 1) => {
                self.setup.take(under.heading.meaning, line)
            }
            (Values::None, _) => Err(line.error("the heading takes no value", remedy)),
            (Values::AtMostOne | Values::One, _) => Err(line.error("the heading takes one value", remedy)),
        }
    }

    /// Checks that a heading has its value before the next one: otherwise its subject would be left
    /// at its default.
    fn expect_value(&self) -> Result<(), JobFileError> {
        match &self.under {
            Some(Under { heading, line, values: 0 }) if heading.values == Values::One => {
                Err(line.error("the heading needs a value", "write it, or remove the heading"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a section ends before this line.
    fn expect_no_open(&self, line: Line<'_>) -> Result<(), JobFileError> {
        let Some(section) = self.section else { return Ok(()) };
        let reason = format!("the section {} has no end", section.name);
        Err(line.error(reason, format!("write '{} where it ends", section.end)))
    }
}

impl<'a> Setup<'a> {
    /// A heading whose presence matters, whatever its value.
    fn begin(&mut self, meaning: Meaning, line: Line<'_>) -> Result<(), JobFileError> {
        match meaning {
            Meaning::Worker => self.workers += 1,
            Meaning::Target => self.targets += 1,
            _ => {}
        }
        if self.workers > 1 {
            let reason = "concurrent workers are not supported";
            return Err(line.error(reason, "keep one worker, and raise its number of outstanding I/Os"));
        }
        if self.targets > 1 {
            let reason = "concurrent targets are not supported";
            return Err(line.error(reason, "keep one target; the command line names the drive"));
        }
        Ok(())
    }

    fn take(&mut self, meaning: Meaning, line: Line<'a>) -> Result<(), JobFileError> {
        match meaning {
            Meaning::PassedOver | Meaning::Worker | Meaning::Target => {}
            Meaning::RunTime => {
                let [hours, minutes, seconds] = line.numbers()?;
                let seconds = line.seconds(hours * 3600 + minutes * 60 + seconds)?;
                self.run = (!seconds.is_zero()).then_some(seconds);
            }
            Meaning::RampUp => {
                let [seconds] = line.numbers()?;
                self.warm_up = Some(line.seconds(seconds)?);
            }
            Meaning::DepthCycle => self.cycle = Some(line),
            Meaning::TestType if line.says("NORMAL") => self.cycles = false,
            Meaning::TestType if line.says("CYCLE_OUTSTANDING_IOS") => self.cycles = true,
            Meaning::TestType => {
                let remedy = "choose NORMAL or CYCLE_OUTSTANDING_IOS";
                return Err(line.error("unsupported cycle", remedy));
            }
            Meaning::SpecificationName => self.take_name(line)?,
            Meaning::Accesses => self.take_share(line)?,
            Meaning::WorkerType if !line.says("DISK") => {
                return Err(line.error("only disk workers are supported", "remove this worker"));
            }
            Meaning::TargetType if !line.says("DISK") => {
                return Err(line.error("only disk targets are supported", "remove this target"));
            }
            Meaning::WorkerType | Meaning::TargetType => {}
            Meaning::Outstanding { seed } => self.outstanding = Some(line.outstanding(seed)?),
            Meaning::Disk { pattern } => self.take_disk(line, pattern)?,
            Meaning::Assigned => self.assigned.push(line),
        }
        Ok(())
    }

    /// `name,default assignment`, where the name may have commas, and the assignment is one of four words.
    fn take_name(&mut self, line: Line<'_>) -> Result<(), JobFileError> {
        let (name, assignment) = line.text.trim().rsplit_once(',').unwrap_or_default();
        if !["NONE", "ALL", "DISK", "NET"].iter().any(|word| assignment.trim().eq_ignore_ascii_case(word)) {
            return Err(line.error(
                "the default assignment is missing",
                "write the name, a comma, and NONE, ALL, DISK or NET",
            ));
        }
        if self.specifications.len() >= JOBS_MAX {
            return Err(line.error(format!("more than {JOBS_MAX} access specifications"), "remove some"));
        }
        let name = name.trim().to_owned();
        self.specifications.push(Specification { name, specs: Vec::new(), line: line.number });
        Ok(())
    }

    fn take_share(&mut self, line: Line<'_>) -> Result<(), JobFileError> {
        let last = self.specifications.last_mut();
        let last =
            last.ok_or_else(|| line.error("access lines before a specification name", "give it a name"))?;
        if last.specs.len() >= ACCESS_SPECS_MAX {
            return Err(line.error(format!("more than {ACCESS_SPECS_MAX} lines"), "remove some"));
        }
        last.specs.push(line.spec()?);
        Ok(())
    }

    /// `Disk maximum size,starting sector`, and perhaps the data pattern.
    fn take_disk(&mut self, line: Line<'_>, pattern: bool) -> Result<(), JobFileError> {
        let ([sectors, start], pattern) = if pattern {
            let [sectors, start, pattern] = line.columns()?;
            ([sectors, start], Some(pattern))
        } else {
            (line.columns()?, None)
        };
        let sectors = line.number(sectors, 0, u64::MAX / SECTOR_BYTES)?;
        self.span_bytes = (sectors > 0).then_some(sectors * SECTOR_BYTES);
        self.offset_bytes = line.number(start, 0, u64::MAX / SECTOR_BYTES)? * SECTOR_BYTES;
        self.fill = pattern.map(|pattern| line.fill(pattern)).transpose()?;
        Ok(())
    }

    fn finish(self, name: &str, last: Line<'_>) -> Result<Workload, JobFileError> {
        let chosen = self.chosen()?;
        let depths = match self.cycle {
            Some(cycle) if self.cycles => cycle.depths()?,
            None if self.cycles => {
                let remedy = "add 'Queue Depth Cycling";
                return Err(last.error("CYCLE_OUTSTANDING_IOS needs a cycle", remedy));
            }
            _ => vec![self.outstanding.unwrap_or(1)],
        };
        let mut jobs = Vec::new();
        for specification in chosen {
            let whole: u32 = specification.specs.iter().map(|spec| u32::from(spec.percent)).sum();
            if whole != 100 {
                let reason = format!("the access percentages add up to {whole} %");
                return Err(JobFileError::new(
                    specification.line,
                    &specification.name,
                    reason,
                    "make them 100 %",
                ));
            }
            for &depth in &depths {
                jobs.push(Job {
                    label: tame(&specification.name),
                    specs: specification.specs.clone(),
                    sequence: Sequence::Shared,
                    depth,
                    run: self.run,
                    once: false,
                    warm_up: self.warm_up,
                    offset_bytes: self.offset_bytes,
                    span_bytes: self.span_bytes,
                    fill: self.fill,
                });
            }
        }
        if jobs.is_empty() || jobs.len() > JOBS_MAX {
            let reason = format!("the file has {} jobs; 1 to {JOBS_MAX} are supported", jobs.len());
            return Err(last.error(reason, "assign some access specifications to a worker"));
        }
        Ok(Workload { name: name.to_owned(), jobs, notes: Vec::new() })
    }

    /// Returns the assigned specifications, or all of them.
    fn chosen(&self) -> Result<Vec<&Specification>, JobFileError> {
        if self.assigned.is_empty() {
            return Ok(self.specifications.iter().collect());
        }
        let find = |line: &Line<'_>| {
            let name = line.text.trim();
            let found = self.specifications.iter().find(|specification| specification.name == name);
            found.ok_or_else(|| match name {
                IDLE => line.error("the Idle specification measures nothing", "remove the line"),
                _ => line.error("the assigned specification is not defined", "define it, or remove the line"),
            })
        };
        self.assigned.iter().take(JOBS_MAX + 1).map(find).collect()
    }
}

impl<'a> Line<'a> {
    fn error(self, reason: impl Into<String>, remedy: impl Into<String>) -> JobFileError {
        JobFileError::new(self.number, self.text, reason, remedy)
    }

    /// Whether it is this word, as IOMeter reads words.
    fn says(self, word: &str) -> bool {
        self.text.trim().eq_ignore_ascii_case(word)
    }

    fn number(self, value: &str, least: u64, most: u64) -> Result<u64, JobFileError> {
        let number = value.parse().ok().filter(|number| (least..=most).contains(number));
        let wrong = || {
            self.error(
                format!("`{}` is not a number from {least} to {most}", tame(value)),
                "choose one in between",
            )
        };
        number.ok_or_else(wrong)
    }

    /// Splits at commas into exactly this many columns.
    fn columns<const N: usize>(self) -> Result<[&'a str; N], JobFileError> {
        let columns: Vec<&str> = self.text.split(',').map(str::trim).collect();
        let count = columns.len();
        let wrong = |_| {
            let reason = format!("{count} columns, expected {N}");
            self.error(reason, "write the columns that the heading names")
        };
        columns.try_into().map_err(wrong)
    }

    /// Parses exactly this many numbers, separated by white space.
    fn numbers<const N: usize>(self) -> Result<[u64; N], JobFileError> {
        let words: Vec<&str> = self.text.split_whitespace().collect();
        if words.len() != N {
            let reason = format!("{} numbers, expected {N}", words.len());
            return Err(self.error(reason, "write the columns that the heading names"));
        }
        let mut numbers = [0; N];
        for (number, word) in numbers.iter_mut().zip(words) {
            *number = self.number(word, 0, u32::MAX.into())?;
        }
        Ok(numbers)
    }

    fn seconds(self, seconds: u64) -> Result<Duration, JobFileError> {
        const DAY: u64 = 24 * 3600;
        if seconds > DAY {
            return Err(self.error("more than a day", "choose a shorter time"));
        }
        Ok(Duration::from_secs(seconds))
    }

    /// `outstanding I/Os,test connection rate,transactions per connection`, and perhaps two columns about a seed.
    fn outstanding(self, seed: bool) -> Result<u16, JobFileError> {
        let [depth, rate, transactions] = if seed {
            let [depth, rate, transactions, is_fixed, value] = self.columns()?;
            self.is_enabled(is_fixed)?;
            self.number(value, 0, u64::MAX)?;
            [depth, rate, transactions]
        } else {
            self.columns()?
        };
        self.number(transactions, 0, u32::MAX.into())?;
        if self.is_enabled(rate)? {
            let reason = "reopening the drive is not supported";
            return Err(self.error(reason, "write DISABLED for the test connection rate"));
        }
        Ok(self.number(depth, 1, DEPTH_MAX.into())? as u16)
    }

    fn is_enabled(self, value: &str) -> Result<bool, JobFileError> {
        match value {
            value if value.eq_ignore_ascii_case("ENABLED") => Ok(true),
            value if value.eq_ignore_ascii_case("DISABLED") => Ok(false),
            _ => {
                let reason = format!("`{}` is neither ENABLED nor DISABLED", tame(value));
                Err(self.error(reason, "write one of them"))
            }
        }
    }

    /// Data patterns of IOMeter 1.1: repeating bytes, pseudo random, full random.
    fn fill(self, pattern: &str) -> Result<Fill, JobFileError> {
        Ok(match self.number(pattern, 0, 2)? {
            0 => Fill::Repeated,
            _ => Fill::Random,
        })
    }

    /// `start end step LINEAR|EXPONENTIAL`.
    fn depths(self) -> Result<Vec<u16>, JobFileError> {
        let text = self.text.trim();
        let (numbers, kind) = text.rsplit_once(char::is_whitespace).unwrap_or((text, ""));
        let exponential = match kind {
            kind if kind.eq_ignore_ascii_case("EXPONENTIAL") => true,
            kind if kind.eq_ignore_ascii_case("LINEAR") => false,
            _ => return Err(self.error("the kind of step is missing", "write LINEAR or EXPONENTIAL")),
        };
        let [start, end, step] = Line { text: numbers, ..self }.numbers()?;
        let most = u64::from(DEPTH_MAX);
        if start == 0 || end < start || end > most || step < 1 + u64::from(exponential) {
            return Err(self.error(
                "the depths do not increase",
                format!("write a start, an end up to {most}, and a step"),
            ));
        }
        let next = |depth: &u64| Some(if exponential { depth * step } else { depth + step });
        Ok(std::iter::successors(Some(start), next)
            .take_while(|depth| *depth <= end)
            .map(|depth| depth as u16)
            .collect())
    }

    /// `size,% of size,% reads,% random,delay,burst,align,reply`.
    fn spec(self) -> Result<AccessSpec, JobFileError> {
        let [bytes, percent, reads, random, delay, burst, align, reply] = self.columns()?;
        let bytes = self.number(bytes, 1, REQUEST_BYTES_MAX.into())? as u32;
        let [percent, read_percent, random_percent] = [
            self.number(percent, 0, 100)? as u8,
            self.number(reads, 0, 100)? as u8,
            self.number(random, 0, 100)? as u8,
        ];
        if (delay, reply) != ("0", "0") || !matches!(burst, "0" | "1") {
            return Err(self.error("delays, bursts and replies are not supported", "set them to 0, 1 and 0"));
        }
        let align = match self.number(align, 0, REQUEST_BYTES_MAX.into())? as u32 {
            0 => Align::Block,
            same if same == bytes => Align::Length,
            other => Align::Bytes(other),
        };
        Ok(AccessSpec { percent, bytes, read_percent, random_percent, align })
    }
}

#[cfg(test)]
mod tests;
