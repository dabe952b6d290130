//! Configuration files of IOMeter (`.icf`): test setup, access specifications, and which of them a worker runs.
//!
//! The format is that of IOMeter 1.1 and of 2006.07.27, which differ in lines that do not matter here: a line that begins
//! with an apostrophe says what the lines after it hold; sections begin with names in capitals and end with `'END`. One
//! manager with one disk worker is understood, as jobs one after another: each access specification that is assigned to
//! it, else each that there is, at its number of outstanding I/Os or, with CYCLE_OUTSTANDING_IOS, at all of the cycle.
//!
//! Left out, and told with their line: network workers, several workers at the same time, delays, bursts, replies, other
//! cycles, connections that are made anew. Passed over: what IOMeter shows and where, and targets, since the command line
//! names the drive.

use super::job_file::{JobFileError, tame};
use super::{Align, DEPTH_MAX, Fill, JOBS_MAX, Job, REQUEST_BYTES_MAX, SHARES_MAX, Share, Workload};
use std::time::Duration;

/// IOMeter's unit of "disk maximum size" and "starting sector".
const SECTOR_BYTES: u64 = 512;

/// A line of values, and where it stands.
#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    text: &'a str,
}

/// An access specification.
#[derive(Debug)]
struct Specification {
    name: String,
    shares: Vec<Share>,
    /// Where it begins.
    line: usize,
}

/// What a file has said so far.
#[derive(Debug, Default)]
struct Setup {
    run: Option<Duration>,
    warm_up: Option<Duration>,
    cycle: Vec<u16>,
    cycles: bool,
    specifications: Vec<Specification>,
    assigned: Vec<String>,
    workers: usize,
    outstanding: Option<u16>,
    offset_bytes: u64,
    span_bytes: Option<u64>,
    fill: Option<Fill>,
}

/// The workload that a configuration describes.
///
/// # Errors
/// The first line that is not understood.
pub fn parse(name: &str, text: &str) -> Result<Workload, JobFileError> {
    JobFileError::check_length(text)?;
    let text = JobFileError::without_mark(text);
    let mut setup = Setup::default();
    let (mut heading, mut section) = ("", "");
    let mut last = Line { number: 1, text: "" };
    for (index, text) in text.lines().enumerate() {
        let line = Line { number: index + 1, text };
        if !text.trim().is_empty() {
            last = line;
        }
        if let Some(comment) = text.trim().strip_prefix('\'') {
            let comment = comment.trim();
            if let Some(name) = SECTIONS.iter().find(|name| comment.starts_with(**name)) {
                line.expect_no_open(section)?;
                (section, heading) = (name, "");
            } else if comment.starts_with("END ") {
                (section, heading) = ("", "");
            } else if !COLUMNS.iter().any(|columns| comment.starts_with(columns)) {
                heading = comment;
            }
        } else if text.trim().starts_with("Version") {
            continue;
        } else if section.is_empty() && !text.trim().is_empty() {
            return Err(line.error("it is in no section", "give the file as IOMeter has saved it"));
        } else {
            setup.take(section, heading, line)?;
        }
    }
    last.expect_no_open(section)?;
    setup.finish(name, last)
}

/// How sections begin.
const SECTIONS: &[&str] = &["TEST SETUP", "RESULTS DISPLAY", "ACCESS SPECIFICATIONS", "MANAGER LIST"];

/// Headings of columns below a heading proper.
const COLUMNS: &[&str] = &["hours", "start"];

impl Setup {
    fn take(&mut self, section: &str, heading: &str, line: Line<'_>) -> Result<(), JobFileError> {
        let blank = line.text.trim().is_empty();
        match (section, heading) {
            ("TEST SETUP", _) if blank => Ok(()),
            ("TEST SETUP", heading) => self.take_setup(heading, line),
            ("ACCESS SPECIFICATIONS", _) | ("MANAGER LIST", _) if blank => Ok(()),
            ("ACCESS SPECIFICATIONS", heading) => self.take_specification(heading, line),
            ("MANAGER LIST", heading) => self.take_worker(heading, line),
            _ => Ok(()),
        }
    }

    fn take_setup(&mut self, heading: &str, line: Line<'_>) -> Result<(), JobFileError> {
        match heading {
            "Run Time" => {
                let [hours, minutes, seconds] = line.numbers::<3>(line.text.split_whitespace())?;
                let seconds = line.seconds(hours * 3600 + minutes * 60 + seconds)?;
                self.run = (!seconds.is_zero()).then_some(seconds);
            }
            "Ramp Up Time (s)" => {
                let [seconds] = line.numbers::<1>(line.text.split_whitespace())?;
                self.warm_up = Some(line.seconds(seconds)?);
            }
            "Queue Depth Cycling" => self.cycle = line.cycle()?,
            "Test Type" => match line.text.trim() {
                "NORMAL" => {}
                "CYCLE_OUTSTANDING_IOS" => self.cycles = true,
                _ => {
                    return Err(
                        line.error("the cycle is not understood", "choose NORMAL or CYCLE_OUTSTANDING_IOS")
                    );
                }
            },
            // What is said of network workers, records, workers and targets of a cycle is of no concern.
            _ => {}
        }
        Ok(())
    }

    fn take_specification(&mut self, heading: &str, line: Line<'_>) -> Result<(), JobFileError> {
        if heading.starts_with("Access specification name") {
            // The name may have commas; the assignment after the last one has not.
            let name = line.text.trim().rsplit_once(',').map_or(line.text.trim(), |(name, _)| name.trim());
            if self.specifications.len() >= JOBS_MAX {
                return Err(
                    line.error(format!("{JOBS_MAX} access specifications are the most"), "remove some")
                );
            }
            self.specifications.push(Specification {
                name: name.to_owned(),
                shares: Vec::new(),
                line: line.number,
            });
            return Ok(());
        }
        if !heading.starts_with("size,") {
            return Err(line.error(
                format!("what `{}` means is not understood", tame(heading)),
                "save the file with IOMeter 1.1",
            ));
        }
        let last = self.specifications.last_mut();
        let last = last
            .ok_or_else(|| line.error("accesses before the name of their specification", "give it a name"))?;
        if last.shares.len() >= SHARES_MAX {
            return Err(line.error(format!("{SHARES_MAX} lines are the most"), "remove some"));
        }
        last.shares.push(line.share()?);
        Ok(())
    }

    fn take_worker(&mut self, heading: &str, line: Line<'_>) -> Result<(), JobFileError> {
        match heading {
            "Worker" => {
                self.workers += 1;
                if self.workers > 1 {
                    let reason = "a second worker would run at the same time";
                    return Err(
                        line.error(reason, "keep one worker, and raise its number of outstanding I/Os")
                    );
                }
            }
            "Worker type" if line.text.trim() != "DISK" => {
                return Err(line.error("only disk workers are understood", "remove this worker"));
            }
            heading if heading.starts_with("Number of outstanding IOs") => {
                let mut columns = line.text.split(',').map(str::trim);
                let first = columns.next().unwrap_or_default();
                self.outstanding = Some(line.number(first, 1, DEPTH_MAX.into())? as u16);
                if columns.next().is_some_and(|rate| rate != "DISABLED") {
                    let reason = "a drive is not opened anew after some transactions";
                    return Err(line.error(reason, "write DISABLED for the test connection rate"));
                }
            }
            heading if heading.starts_with("Disk maximum size") => {
                let mut columns = line.text.split(',').map(str::trim);
                let mut next = || line.number(columns.next().unwrap_or_default(), 0, u64::MAX / SECTOR_BYTES);
                let (sectors, start) = (next()?, next()?);
                self.span_bytes = (sectors > 0).then_some(sectors * SECTOR_BYTES);
                self.offset_bytes = start * SECTOR_BYTES;
                self.fill = columns.next().map(|pattern| line.fill(pattern)).transpose()?;
            }
            "Assigned access specs" => self.assigned.push(line.text.trim().to_owned()),
            _ => {}
        }
        Ok(())
    }

    fn finish(self, name: &str, last: Line<'_>) -> Result<Workload, JobFileError> {
        let chosen = self.chosen(last)?;
        let depths = if self.cycles { self.cycle.clone() } else { vec![self.outstanding.unwrap_or(1)] };
        if depths.is_empty() {
            return Err(last.error("CYCLE_OUTSTANDING_IOS without its cycle", "add 'Queue Depth Cycling"));
        }
        let mut jobs = Vec::new();
        for specification in chosen {
            let whole: u32 = specification.shares.iter().map(|share| u32::from(share.percent)).sum();
            if whole != 100 {
                let reason = format!("its accesses are {whole} % together");
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
                    shares: specification.shares.clone(),
                    depth,
                    run: self.run,
                    warm_up: self.warm_up,
                    offset_bytes: self.offset_bytes,
                    span_bytes: self.span_bytes,
                    fill: self.fill,
                });
            }
        }
        if jobs.is_empty() || jobs.len() > JOBS_MAX {
            let reason = format!("the file makes {} jobs; 1 to {JOBS_MAX} can be run", jobs.len());
            return Err(last.error(reason, "assign some access specifications to a worker"));
        }
        Ok(Workload { name: name.to_owned(), jobs })
    }

    /// The specifications that are assigned, else all of them.
    fn chosen(&self, last: Line<'_>) -> Result<Vec<&Specification>, JobFileError> {
        if self.assigned.is_empty() {
            return Ok(self.specifications.iter().collect());
        }
        let find = |name: &String| {
            let found = self.specifications.iter().find(|specification| specification.name == *name);
            found.ok_or_else(|| {
                last.error(format!("the assigned specification `{}` is not there", tame(name)), "define it")
            })
        };
        self.assigned.iter().take(JOBS_MAX + 1).map(find).collect()
    }
}

impl Line<'_> {
    fn error(self, reason: impl Into<String>, remedy: impl Into<String>) -> JobFileError {
        JobFileError::new(self.number, self.text, reason, remedy)
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

    /// Data patterns of IOMeter 1.1: repeating bytes, pseudo random, full random.
    fn fill(self, pattern: &str) -> Result<Fill, JobFileError> {
        Ok(match self.number(pattern, 0, 2)? {
            0 => Fill::Repeated,
            _ => Fill::Random,
        })
    }

    /// A section that was begun has its end before this.
    fn expect_no_open(self, section: &str) -> Result<(), JobFileError> {
        if section.is_empty() {
            return Ok(());
        }
        let reason = format!("the section {section} has no end");
        Err(self.error(reason, "give the whole file as IOMeter has saved it"))
    }

    fn numbers<'a, const N: usize>(
        self,
        mut words: impl Iterator<Item = &'a str>,
    ) -> Result<[u64; N], JobFileError> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.number(words.next().unwrap_or_default(), 0, u32::MAX.into())?;
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

    /// `start end step LINEAR|EXPONENTIAL`.
    fn cycle(self) -> Result<Vec<u16>, JobFileError> {
        let words: Vec<&str> = self.text.split_whitespace().collect();
        let [start, end, step] = self.numbers::<3>(words.iter().copied())?;
        let exponential = match words.get(3) {
            Some(&"EXPONENTIAL") => true,
            Some(&"LINEAR") => false,
            _ => return Err(self.error("the kind of step is missing", "write LINEAR or EXPONENTIAL")),
        };
        let most = u64::from(DEPTH_MAX);
        if start == 0 || end < start || end > most || step < 1 + u64::from(exponential) {
            return Err(self
                .error("the depths do not rise", format!("write a start, an end up to {most}, and a step")));
        }
        let next = |depth: &u64| Some(if exponential { depth * step } else { depth + step });
        Ok(std::iter::successors(Some(start), next)
            .take_while(|depth| *depth <= end)
            .map(|depth| depth as u16)
            .collect())
    }

    /// `size,% of size,% reads,% random,delay,burst,align,reply`.
    fn share(self) -> Result<Share, JobFileError> {
        let columns: Vec<&str> = self.text.split(',').map(str::trim).collect();
        let &[bytes, percent, reads, random, delay, burst, align, reply] = &columns[..] else {
            let header = "size, % of size, % reads, % random, delay, burst, align, reply";
            return Err(self.error(
                format!("{} columns in the place of eight", columns.len()),
                format!("write {header}"),
            ));
        };
        let bytes = self.number(bytes, 1, REQUEST_BYTES_MAX.into())? as u32;
        let [percent, read_percent, random_percent] = [
            self.number(percent, 0, 100)? as u8,
            self.number(reads, 0, 100)? as u8,
            self.number(random, 0, 100)? as u8,
        ];
        if (delay, reply) != ("0", "0") || !matches!(burst, "0" | "1") {
            return Err(self.error("delays, bursts and replies are not understood", "set them to 0, 1 and 0"));
        }
        let align = match self.number(align, 0, REQUEST_BYTES_MAX.into())? as u32 {
            0 => Align::Block,
            same if same == bytes => Align::Length,
            other => Align::Bytes(other),
        };
        Ok(Share { percent, bytes, read_percent, random_percent, align })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = "\
Version 1.1.0 
'TEST SETUP ====================================================================
'Test Description
\t
'Run Time
'\thours      minutes    seconds
\t0          1          30
'Ramp Up Time (s)
\t5
'Default Disk Workers to Spawn
\tNUMBER_OF_CPUS
'Queue Depth Cycling
'\tstart      end        step       step type
\t1          32         2          EXPONENTIAL
'Test Type
\tNORMAL
'END test setup
'RESULTS DISPLAY ===============================================================
'Bar chart 1 statistic
\tTotal I/Os per Second
'END results display
'ACCESS SPECIFICATIONS =========================================================
'Access specification name,default assignment
\t4 KiB; 100% Read, random,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
\t4096,100,100,100,0,1,4096,0
'Access specification name,default assignment
\tMixed,ALL
'size,% of size,% reads,% random,delay,burst,align,reply
\t8192,60,80,100,0,1,0,0
\t65536,40,80,0,0,1,65536,0
'END access specifications
'MANAGER LIST ==================================================================
'Manager ID, manager name
\t1,HERE
'Manager network address
\t
'Worker
\tWorker 1
'Worker type
\tDISK
'Default target settings for worker
'Number of outstanding IOs,test connection rate,transactions per connection,use fixed seed,fixed seed value
\t16,DISABLED,1,DISABLED,0
'Disk maximum size,starting sector,Data pattern
\t2048,8,0
'End default target settings for worker
'Assigned access specs
\tMixed
'End assigned access specs
'Target assignments
'Target
\tC: \"\"
'Target type
\tDISK
'End target
'End target assignments
'End worker
'End manager
'END manager list
Version 1.1.0 
";

    #[track_caller]
    fn refused(from: &str, to: &str) -> JobFileError {
        assert!(FILE.contains(from), "{from} is in the file");
        parse("file", &FILE.replacen(from, to, 1)).expect_err("it cannot be understood")
    }

    #[test]
    fn a_saved_file_becomes_the_assigned_job() {
        let workload = parse("a.icf", FILE).expect("it is understood");
        let [job] = &workload.jobs[..] else { panic!("{workload:?}") };
        assert_eq!((job.label.as_str(), job.depth), ("Mixed", 16));
        let small = Share { percent: 60, align: Align::Block, ..Share::all(8192, 80, 100) };
        assert_eq!(job.shares, [small, Share { percent: 40, ..Share::all(65_536, 80, 0) }]);
        assert_eq!((job.run, job.warm_up), (Some(Duration::from_secs(90)), Some(Duration::from_secs(5))));
        assert_eq!((job.span_bytes, job.offset_bytes), (Some(1 << 20), 4096));
        assert_eq!(job.fill, Some(Fill::Repeated));
    }

    #[test]
    fn a_cycle_of_depths_becomes_a_job_each() {
        let text = FILE.replace("\tNORMAL", "\tCYCLE_OUTSTANDING_IOS");
        let jobs = parse("", &text).expect("it is understood").jobs;
        assert_eq!(jobs.iter().map(|job| job.depth).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn without_assignment_all_specifications_run() {
        let text = FILE.replace("'Assigned access specs\n\tMixed\n", "");
        let jobs = parse("", &text).expect("it is understood").jobs;
        assert_eq!(
            jobs.iter().map(|job| job.label.as_str()).collect::<Vec<_>>(),
            ["4 KiB; 100% Read, random", "Mixed"]
        );
    }

    #[test]
    fn what_is_not_understood_is_told_with_its_line() {
        let error = refused("4096,100,100,100,0,1,4096,0", "4096,100,100,100,5,1,4096,0");
        assert_eq!((error.line, error.text.as_str()), (26, "4096,100,100,100,5,1,4096,0"));
        assert_eq!(refused("4096,100,100,100,0", "4096,100,101,100,0").line, 26);
        assert_eq!(refused("4096,100,100,100,0", "0,100,100,100,0").line, 26);
        assert_eq!(refused("8192,60", "8192,61").reason, "its accesses are 101 % together");
        assert_eq!(refused("\tNORMAL", "\tCYCLE_TARGETS").line, 16);
        assert_eq!(refused("'End worker\n", "'Worker\n\tWorker 2\n").line, 59);
        assert_eq!(refused("\tDISK\n'Default", "\tNETWORK,TCP\n'Default").line, 41);
        assert_eq!(
            refused("\tMixed\n'End", "\tAbsent\n'End").reason,
            "the assigned specification `Absent` is not there"
        );
        assert_eq!(parse("", "IOPS 1\n").expect_err("no section").line, 1);
        assert_eq!(refused("2048,8,0", "2048,8,banana").line, 46);
        assert_eq!(refused("16,DISABLED", "16,ENABLED").line, 44);
        assert!(parse("", "").expect_err("nothing").reason.contains("0 jobs"));
    }

    #[test]
    fn a_file_that_was_cut_is_refused() {
        for keep in [12, 20, 27, 31, 50, 58] {
            let cut: String = FILE.lines().take(keep).map(|line| format!("{line}\n")).collect();
            let error = parse("", &cut).expect_err("it has no end");
            assert!(error.reason.contains("has no end"), "{keep} lines: {error}");
        }
        let marked = format!("\u{feff}{FILE}");
        assert_eq!(parse("", &marked).expect("it is understood"), parse("", FILE).expect("it is understood"));
    }

    proptest! {
        #[test]
        fn no_file_is_too_odd(line in 0..FILE.lines().count(), odd in "[0-9A-Za-z',\t -]{0,24}") {
            let replaced: String = FILE.lines().enumerate()
                .map(|(index, text)| format!("{}\n", if index == line { &odd } else { text })).collect();
            if let Ok(workload) = parse("odd", &replaced) {
                prop_assert!(workload.jobs.iter().all(|job| (1..=DEPTH_MAX).contains(&job.depth)));
            }
        }

        #[test]
        fn no_text_is_too_odd(text in "\\PC{0,200}") {
            let _ = parse("odd", &text);
        }
    }
}
