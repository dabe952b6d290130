//! fio job files: the options that define accesses.
//!
//! The format is that of fio's manual, "Job file format" and "Parameters": sections in brackets,
//! `[global]` for defaults of the sections after it, one `name=value` or bare name per line,
//! comments after `;` or `#` at the start of a line. Sizes are binary (`kb_base=1024`), times are
//! seconds unless they have a unit. A job runs for its time; with `size=`, unless both `time_based`
//! and `runtime=` are set, it ends when that much was moved, as in fio, in each of its runs.
//! Without `size=` fio moves the whole drive; here only the time ends it. I/O is direct; a job
//! without `direct=1`, which fio runs through the page cache, gets a note, and `direct=0` is
//! rejected.
//!
//! Sequential reads are contiguous, and so are sequential writes, each from their own position,
//! whatever their lengths and `ba=`, which applies to random places only (fio's `fixup_options`,
//! and `get_next_seq_offset`, which uses the `last_pos` of one direction). Without `ba=` random
//! places are multiples of the smallest length. They may repeat, as with `norandommap`.
//!
//! Jobs run one after another here, so every job after the first needs `stonewall`. The engine
//! determines whether requests are queued; fio's default on Linux is psync, with one at a time.
//! Options about fio itself (threads, reports) are ignored; everything else is an error. Left out:
//! rates, think time, several files, logs, verification (use `--verify`), expressions.

use super::job::{
    ACCESS_SPECS_MAX, AccessSpec, Align, DEPTH_MAX, Fill, JOBS_MAX, Job, REQUEST_BYTES_MAX, Sequence,
    Workload,
};
use super::job_file::{JobFileError, tame};
use std::time::Duration;

/// Options about fio itself, which do not change the accesses here.
const PASSED_OVER: &[&str] = &[
    "filename",
    "thread",
    "group_reporting",
    "invalidate",
    "randrepeat",
    "norandommap",
    "refill_buffers",
    "scramble_buffers",
    "description",
    "stonewall",
    "wait_for_previous",
    "name",
    "disable_lat",
    "gtod_reduce",
    "lat_percentiles",
    "percentile_list",
    "log_avg_msec",
    "userspace_reap",
    "fixedbufs",
    "registerfiles",
    "hipri",
    "allow_file_create",
    "unlink",
    "random_generator",
    "exitall",
    "minimal",
    "eta",
    "continue_on_error",
    "cpus_allowed",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "directory",
    "fallocate",
    "create_on_open",
    "overwrite",
    "randseed",
    "allrandrepeat",
    "mem",
    "iomem",
    "iomem_align",
    "unit_base",
];

/// fio engines that queue requests, and those with one at a time.
const QUEUED_ENGINES: &[&str] = &["libaio", "io_uring", "posixaio", "windowsaio", "solarisaio", "sg"];
const SYNCHRONOUS_ENGINES: &[&str] = &["sync", "psync", "vsync", "pvsync", "pvsync2"];

/// Note for a file with a job without `direct=1`.
const NOT_DIRECT: &str =
    "the job file lacks direct=1: fio would use the page cache, but this run used direct I/O";

/// The options of a section.
#[derive(Clone, Debug)]
struct Section<'a> {
    job: Job,
    bytes: u32,
    /// Lengths with percentages, which override a single length set anywhere.
    split: Option<Vec<(u32, u8)>>,
    reads: u8,
    random: u8,
    /// Alignment of random places, if set.
    align: Option<u32>,
    pattern: Option<Pattern>,
    /// Waits for the jobs before it.
    waits: bool,
    engine: Engine<'a>,
    /// The line that sets the depth.
    depth: Option<Line<'a>>,
    /// The used part is set explicitly.
    has_size: bool,
    /// The file size, if set.
    file_bytes: Option<(u64, Line<'a>)>,
    /// Only the time ends the job.
    time_based: bool,
    /// Direct I/O is set.
    direct: bool,
}

/// The queueing of fio's engine.
#[derive(Clone, Copy, Debug)]
enum Engine<'a> {
    /// Not set: one at a time.
    Unsaid,
    /// As deep as `iodepth`.
    Queued,
    /// One at a time, set by this line.
    Synchronous(Line<'a>),
}

/// The value of `rw=`.
#[derive(Clone, Copy, Debug)]
struct Pattern {
    /// `None` is both, by `rwmixread`.
    read_percent: Option<u8>,
    random: bool,
}

/// A line with its number, for errors.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    number: usize,
    text: &'a str,
}

/// Parses a job file.
///
/// # Errors
///
/// The first line that is not supported.
pub fn parse(name: &str, text: &str) -> Result<Workload, JobFileError> {
    JobFileError::check_length(text)?;
    let text = JobFileError::without_mark(text);
    let mut global = Section::new();
    let mut current: Option<(Line<'_>, Section<'_>)> = None;
    let (mut jobs, mut in_global, mut is_direct) = (Vec::new(), false, true);
    let mut last = Line { number: 1, text: "" };
    for (index, text) in text.lines().enumerate() {
        let line = Line { number: index + 1, text };
        let content = text.trim();
        if content.is_empty() || content.starts_with(['#', ';']) {
            continue;
        }
        last = line;
        if content.starts_with('[') {
            is_direct &= current.as_ref().is_none_or(|(_, section)| section.direct);
            jobs.extend(
                current.take().map(|(head, section)| section.finish(head, jobs.is_empty())).transpose()?,
            );
            in_global = line.head()? == "global";
            if !in_global {
                current = Some((line, global.clone()));
            }
            continue;
        }
        let pair = content.split_once('=');
        let (key, value) = pair.map_or((content, None), |(key, value)| (key.trim(), Some(value.trim())));
        let section = match &mut current {
            _ if in_global => &mut global,
            Some((_, section)) => section,
            None => return Err(line.error("an option before the first section", "put [global] before it")),
        };
        section.take(key, value, line)?;
    }
    is_direct &= current.as_ref().is_none_or(|(_, section)| section.direct);
    jobs.extend(current.take().map(|(head, section)| section.finish(head, jobs.is_empty())).transpose()?);
    match jobs.len() {
        0 => Err(last.error("the file has no job", "add a section with rw= and bs=")),
        1..=JOBS_MAX => {
            let notes = if is_direct { Vec::new() } else { vec![NOT_DIRECT.to_owned()] };
            Ok(Workload { name: name.to_owned(), jobs, notes })
        }
        count => Err(last.error(format!("{count} jobs exceed the maximum of {JOBS_MAX}"), "split the file")),
    }
}

impl<'a> Section<'a> {
    fn new() -> Self {
        Self {
            job: Job { sequence: Sequence::PerKind, ..Job::of(AccessSpec::all(4096, 100, 0), 1) },
            bytes: 4096,
            split: None,
            reads: 50,
            random: 100,
            align: None,
            pattern: None,
            waits: false,
            engine: Engine::Unsaid,
            depth: None,
            has_size: false,
            file_bytes: None,
            time_based: false,
            direct: false,
        }
    }

    fn take(&mut self, key: &str, value: Option<&str>, line: Line<'a>) -> Result<(), JobFileError> {
        let needed = || value.ok_or_else(|| line.error("the option needs a value", "write name=value"));
        match key {
            "stonewall" | "wait_for_previous" => self.waits = line.flag(value)?,
            "rw" | "readwrite" => self.pattern(needed()?, line)?,
            "bs" | "blocksize" => self.bytes = line.block(needed()?, Some(self.bytes))?,
            "bssplit" => self.split = Some(line.split(needed()?)?),
            "ba" | "blockalign" => self.align = Some(line.block(needed()?, None)?),
            "iodepth" => {
                self.job.depth = line.number(needed()?, 1, u64::from(DEPTH_MAX))? as u16;
                self.depth = Some(line);
            }
            "rwmixread" => self.reads = line.percent(needed()?)?,
            "rwmixwrite" => self.reads = 100 - line.percent(needed()?)?,
            "percentage_random" => self.random = line.percent(needed()?)?,
            "ioengine" => self.engine(needed()?, line)?,
            "runtime" | "timeout" => self.job.run = Some(line.run(needed()?)?),
            "ramp_time" => self.job.warm_up = Some(line.time(needed()?)?),
            "size" => (self.has_size, self.job.span_bytes) = line.span(needed()?)?,
            "filesize" => self.file_bytes = Some((line.bytes(needed()?)?, line)),
            "time_based" => self.time_based = line.flag(value)?,
            "offset" => self.job.offset_bytes = line.bytes(needed()?)?,
            "zero_buffers" => self.job.fill = line.flag(value)?.then_some(Fill::Zero),
            "direct" | "buffered" => {
                if line.flag(value)? != (key == "direct") {
                    return Err(line.error(
                        "the page cache would be measured",
                        "remove the line, and use --cached if intended",
                    ));
                }
                self.direct = true;
            }
            "kb_base" => {
                line.number(needed()?, 1024, 1024).map_err(|error| JobFileError {
                    remedy: "write 1024, and sizes in multiples of that".to_owned(),
                    ..error
                })?;
            }
            "numjobs" | "loops" | "nrfiles" | "openfiles" => {
                line.number(needed()?, 1, 1).map_err(|error| JobFileError {
                    remedy: "write 1, and raise iodepth for more at a time".to_owned(),
                    ..error
                })?;
            }
            "write_bw_log" | "write_lat_log" | "write_iops_log" => {
                return Err(
                    line.error("logs are not supported", "remove it; use --json for detailed figures")
                );
            }
            key if PASSED_OVER.contains(&key) => {}
            _ => {
                return Err(
                    line.error("unsupported option", "remove it if the test means the same without it")
                );
            }
        }
        Ok(())
    }

    fn pattern(&mut self, value: &str, line: Line<'_>) -> Result<(), JobFileError> {
        let (read_percent, random) = match value {
            "read" => (Some(100), false),
            "write" => (Some(0), false),
            "randread" => (Some(100), true),
            "randwrite" => (Some(0), true),
            "rw" | "readwrite" => (None, false),
            "randrw" => (None, true),
            _ => {
                let known = "write read, write, rw, randread, randwrite or randrw";
                return Err(line.error("unsupported pattern", known));
            }
        };
        self.pattern = Some(Pattern { read_percent, random });
        Ok(())
    }

    /// Checks that the engine is known, and whether it queues.
    fn engine(&mut self, value: &str, line: Line<'a>) -> Result<(), JobFileError> {
        self.engine = match value {
            queued if QUEUED_ENGINES.contains(&queued) => Engine::Queued,
            one if SYNCHRONOUS_ENGINES.contains(&one) => Engine::Synchronous(line),
            _ => {
                let known = "write ioengine=libaio, or psync for one request at a time";
                return Err(line.error("unsupported engine", known));
            }
        };
        Ok(())
    }

    /// Checks that fio would reach the requested depth.
    fn expect_depth(&self) -> Result<(), JobFileError> {
        let Some(line) = self.depth.filter(|_| self.job.depth > 1) else { return Ok(()) };
        match self.engine {
            Engine::Queued => Ok(()),
            Engine::Unsaid => {
                let reason = "without ioengine, fio takes psync, which has one request at a time";
                Err(line.error(reason, "add ioengine=libaio or ioengine=io_uring, or write iodepth=1"))
            }
            Engine::Synchronous(engine) => {
                let reason = format!(
                    "the engine runs one request at a time, so iodepth={} has no effect",
                    self.job.depth
                );
                Err(engine.error(reason, "write ioengine=libaio, or iodepth=1"))
            }
        }
    }

    /// Checks that `filesize=` agrees with `size=`: fio moves `size=` bytes of a file of
    /// `filesize=`, less after an offset.
    fn expect_file_bytes(&self) -> Result<(), JobFileError> {
        match self.file_bytes {
            Some((bytes @ 1.., line)) if self.job.span_bytes != Some(bytes) || self.job.offset_bytes > 0 => {
                let reason = "filesize= differs from size=, which is what fio moves";
                Err(line.error(reason, "remove it, and set the used part with size="))
            }
            _ => Ok(()),
        }
    }

    /// Completes the job at the end of its section.
    fn finish(self, head: Line<'_>, is_first: bool) -> Result<Job, JobFileError> {
        self.expect_depth()?;
        self.expect_file_bytes()?;
        let Some(pattern) = self.pattern else {
            return Err(head.error("the job has no access pattern", "add rw=, such as rw=randread"));
        };
        if !is_first && !self.waits {
            let reason = "concurrent jobs are not supported";
            return Err(head.error(reason, "add stonewall to it, or keep one job"));
        }
        let read_percent = pattern.read_percent.unwrap_or(self.reads);
        let random_percent = if pattern.random { self.random } else { 0 };
        let blocks = self.split.unwrap_or_else(|| vec![(self.bytes, 100)]);
        let least = blocks.iter().map(|(bytes, _)| *bytes).min().filter(|_| blocks.len() > 1);
        let align = self.align.or(least).filter(|_| pattern.random).map_or(Align::Length, Align::Bytes);
        let spec = |&(bytes, percent): &(u32, u8)| AccessSpec {
            percent,
            bytes,
            read_percent,
            random_percent,
            align,
        };
        let specs: Vec<AccessSpec> = blocks.iter().map(spec).collect();
        let what = match &specs[..] {
            [only] => only.to_string(),
            _ => "mixed lengths".to_owned(),
        };
        let label = format!("{}: {what}", tame(head.head()?));
        let once = self.has_size && !(self.time_based && self.job.run.is_some());
        Ok(Job { label, specs, once, ..self.job })
    }
}

impl Line<'_> {
    fn error(self, reason: impl Into<String>, remedy: impl Into<String>) -> JobFileError {
        JobFileError::new(self.number, self.text, reason, remedy)
    }

    /// Returns the section name in the brackets.
    fn head(&self) -> Result<&str, JobFileError> {
        let inner = self.text.trim().strip_prefix('[').and_then(|head| head.strip_suffix(']'));
        let broken = || self.error("missing closing bracket", "write [name]");
        inner.map(str::trim).ok_or_else(broken)
    }

    /// Parses a size: a number with `k`, `m`, `g`, `t`, or `kb` and so on, as powers of two. fio
    /// takes `kib` and so on as powers of ten unless `kb_base` is 1000, which hardly anybody
    /// intends.
    fn bytes(self, value: &str) -> Result<u64, JobFileError> {
        let wrong =
            || self.error(format!("`{value}` is not a size"), "write bytes, or a number with k, m, g or t");
        let lower = value.to_ascii_lowercase();
        let digits = lower.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = lower[digits.len()..].trim_end_matches('b');
        if matches!(unit, "ki" | "mi" | "gi" | "ti") {
            let meant = format!("write {digits}{} for powers of two", &unit[..1]);
            return Err(self.error(format!("fio takes `{value}` as powers of ten"), meant));
        }
        let shift = match unit {
            "" => 0,
            "k" => 10,
            "m" => 20,
            "g" => 30,
            "t" => 40,
            _ => return Err(wrong()),
        };
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        number.checked_mul(1 << shift).ok_or_else(wrong)
    }

    /// Parses one length, or a list for reads, writes and trims. An empty member keeps its previous
    /// value if there is one, and the last member applies to the directions after it (fio's manual,
    /// "blocksize"). There are no trims.
    fn block(self, value: &str, unsaid: Option<u32>) -> Result<u32, JobFileError> {
        let member = |part: &str| match (part.trim(), unsaid) {
            ("", Some(bytes)) if value.len() > 1 => Ok(bytes),
            (part, _) => self.length(part),
        };
        let lengths: Vec<u32> = value.split(',').map(member).collect::<Result<_, _>>()?;
        match lengths[..] {
            [both] => Ok(both),
            [reads, writes] | [reads, writes, _] if reads == writes => Ok(reads),
            [reads, writes] | [reads, writes, _] => {
                let reason =
                    format!("different lengths for reads ({reads} bytes) and writes ({writes} bytes)");
                Err(self.error(reason, "write one length, or two jobs"))
            }
            _ => Err(self.error("more than three lengths", "write one length")),
        }
    }

    fn length(self, value: &str) -> Result<u32, JobFileError> {
        match u32::try_from(self.bytes(value)?) {
            Ok(bytes) if (1..=REQUEST_BYTES_MAX).contains(&bytes) => Ok(bytes),
            _ => Err(self.error("the length must be 1 byte to 16m", "choose one in between")),
        }
    }

    /// Parses `LENGTH/PERCENT:LENGTH/PERCENT`, 100 % in total. Lengths are multiples of the
    /// smallest: fio rounds others down, unless `bs_unaligned` is set, which is not supported here.
    fn split(self, value: &str) -> Result<Vec<(u32, u8)>, JobFileError> {
        let mut specs = Vec::new();
        for part in value.split(':') {
            let (length, percent) = part
                .split_once('/')
                .ok_or_else(|| self.error("missing percentage", "write LENGTH/PERCENT:LENGTH/PERCENT"))?;
            specs.push((self.length(length.trim())?, self.percent(percent)?));
        }
        let whole: u32 = specs.iter().map(|(_, percent)| u32::from(*percent)).sum();
        if specs.len() > ACCESS_SPECS_MAX || whole != 100 {
            return Err(self.error(format!("the specs are {whole} % together"), "make them 100 %"));
        }
        let least = specs.iter().map(|(bytes, _)| *bytes).min().unwrap_or(1);
        if let Some((bytes, _)) = specs.iter().find(|(bytes, _)| !bytes.is_multiple_of(least)) {
            let reason =
                format!("fio rounds {bytes} bytes down to a multiple of {least}, the smallest length");
            return Err(self.error(reason, format!("write {}", bytes - bytes % least)));
        }
        Ok(specs)
    }

    fn number(self, value: &str, least: u64, most: u64) -> Result<u64, JobFileError> {
        let number = value.parse().ok().filter(|number| (least..=most).contains(number));
        let wrong = || {
            self.error(format!("`{value}` is not a number from {least} to {most}"), "choose one in between")
        };
        number.ok_or_else(wrong)
    }

    fn percent(self, value: &str) -> Result<u8, JobFileError> {
        self.number(value.trim_end_matches('%'), 0, 100).map(|percent| percent as u8)
    }

    /// Parses a time: seconds, or a number with `us`, `ms`, `s`, `m`, `h`.
    fn time(self, value: &str) -> Result<Duration, JobFileError> {
        /// A day is long for a benchmark, and far from overflow.
        const MICROSECONDS_MAX: u64 = 24 * 3600 * 1_000_000;
        let wrong = || {
            self.error(
                format!("`{value}` is not a time up to a day"),
                "write seconds, or a number with ms, s, m or h",
            )
        };
        let lower = value.to_ascii_lowercase();
        let digits = lower.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let microseconds: u64 = match &lower[digits.len()..] {
            "us" => 1,
            "ms" => 1000,
            "" | "s" => 1_000_000,
            "m" => 60_000_000,
            "h" => 3_600_000_000,
            _ => return Err(wrong()),
        };
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        let all =
            number.checked_mul(microseconds).filter(|all| *all <= MICROSECONDS_MAX).ok_or_else(wrong)?;
        Ok(Duration::from_micros(all))
    }

    /// Parses a run time. fio takes zero for as long as the data last.
    fn run(self, value: &str) -> Result<Duration, JobFileError> {
        let time = self.time(value)?;
        if time.is_zero() {
            return Err(self.error("the run has no end", "set a run time"));
        }
        Ok(time)
    }

    /// Parses a size, and whether it restricts the drive; 100 % and 0 mean all of it (fio's manual,
    /// "size").
    fn span(self, value: &str) -> Result<(bool, Option<u64>), JobFileError> {
        match value {
            "100%" => Ok((true, None)),
            value if value.ends_with('%') => {
                Err(self.error("a percentage of the drive is not supported", "write it in bytes"))
            }
            value => self.bytes(value).map(|bytes| (bytes > 0, (bytes > 0).then_some(bytes))),
        }
    }

    fn flag(self, value: Option<&str>) -> Result<bool, JobFileError> {
        match value {
            None | Some("1") => Ok(true),
            Some("0") => Ok(false),
            Some(_) => Err(self.error("the value must be 0 or 1", "write one of them")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Access, AccessKind, Accesses};
    use super::*;
    use proptest::prelude::*;
    use units::{BlockCount, BlockSize, Extent};

    #[track_caller]
    fn refused(text: &str) -> JobFileError {
        parse("file", text).expect_err("it cannot be understood")
    }

    #[test]
    fn a_typical_file_is_parsed() {
        let text = "\
; a comment
[global]
ioengine=libaio
direct=1
time_based
runtime=30
ramp_time=5s
[randread]
filename=/dev/sdX
rw=randread
bs=4k
iodepth=14
size=1g
";
        let workload = parse("a.fio", text).expect("it is understood");
        let [job] = &workload.jobs[..] else { panic!("{workload:?}") };
        assert_eq!(job.label, "randread: 4K random read");
        assert_eq!(job.specs, [AccessSpec::all(4096, 100, 100)]);
        assert_eq!((job.depth, job.span_bytes), (14, Some(1 << 30)));
        assert_eq!((job.run, job.warm_up), (Some(Duration::from_secs(30)), Some(Duration::from_secs(5))));
    }

    #[test]
    fn mix_percentages_may_come_anywhere() {
        let text = "[j]\nrwmixread=70\nrw=randrw\npercentage_random=60\nbs=8k\nblockalign=4k\n";
        let job = parse("", text).expect("it is understood").jobs.remove(0);
        assert_eq!(job.specs, [AccessSpec { align: Align::Bytes(4096), ..AccessSpec::all(8192, 70, 60) }]);
        let text = "[j]\nrw=write\nbssplit=4k/60:64k/40\nzero_buffers\n";
        let job = parse("", text).expect("it is understood").jobs.remove(0);
        assert_eq!(job.specs[1], AccessSpec { percent: 40, ..AccessSpec::all(65_536, 0, 0) });
        assert_eq!((job.specs[0].percent, job.fill), (60, Some(Fill::Zero)));
    }

    /// Accesses of a job: whether it writes, and the kilobytes where it begins and ends.
    fn accesses(text: &str, count: usize) -> Vec<(bool, u64, u64)> {
        let job = parse("", text).expect("it is understood").jobs.remove(0);
        let drawn = Accesses::new(&job, BlockSize::B512, BlockCount(1 << 20), 1);
        let mut drawn = drawn.expect("it fits");
        let mut next = || {
            let Access { kind, extent: Extent { lba, blocks } } = drawn.draw();
            (kind == AccessKind::Write, lba.0 / 2, (lba.0 + blocks.0) / 2)
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn what_is_not_random_is_contiguous_in_each_direction() {
        let reads = accesses("[j]\nrw=read\nbs=4k\nba=64k\n", 3);
        assert_eq!(reads, [(false, 0, 4), (false, 4, 8), (false, 8, 12)]);
        // Here it is no place for any of them.
        assert_eq!(accesses("[j]\nrw=read\nbs=4k\nba=1000\n", 1), [(false, 0, 4)]);
        for text in [
            "[j]\nrw=rw\nrwmixread=70\nbs=4k\n",
            "[j]\nrw=rw\nbssplit=4k/50:64k/50\n",
            "[j]\nrw=randrw\npercentage_random=0\nbs=4k\nba=64k\n",
        ] {
            let all = accesses(text, 100);
            for of_write in [false, true] {
                let stream: Vec<_> = all.iter().filter(|(is_write, ..)| *is_write == of_write).collect();
                assert!(stream.len() > 10 && stream[0].1 == 0, "{text}: {stream:?}");
                assert!(stream.windows(2).all(|pair| pair[0].2 == pair[1].1), "{text}: {stream:?}");
            }
        }
        let random = accesses("[j]\nrw=randread\nbs=4k\nba=64k\n", 20);
        assert!(random.iter().all(|(_, begin, _)| begin % 64 == 0), "{random:?}");
    }

    #[test]
    fn random_places_of_several_lengths_are_multiples_of_the_least() {
        for (text, unit) in [
            ("[j]\nrw=randread\nbssplit=64k/50:4k/50\n", 4),
            ("[j]\nrw=randread\nbssplit=64k/100:4k/0\n", 4),
            ("[j]\nrw=randread\nbssplit=4k/50:64k/50\nba=16k\n", 16),
            ("[j]\nrw=randread\nbs=64k\n", 64),
            ("[j]\nrw=randread\nbs=64k\nba=4k\n", 4),
        ] {
            let places: Vec<u64> = accesses(text, 200).iter().map(|(_, begin, _)| *begin).collect();
            assert!(places.iter().all(|place| place % unit == 0), "{text}: {places:?}");
            assert!(places.iter().any(|place| place % (2 * unit) != 0), "{text}: {places:?}");
        }
        let long = accesses("[j]\nrw=randread\nbssplit=4k/50:64k/50\n", 200);
        assert!(long.iter().any(|(_, begin, end)| end - begin == 64 && begin % 64 != 0), "{long:?}");
    }

    #[test]
    fn bssplit_overrides_bs() {
        for text in [
            "[global]\nbssplit=4k/50:64k/50\n[j]\nrw=read\nbs=8k\n",
            "[j]\nrw=read\nbs=8k\nbssplit=4k/50:64k/50\n",
        ] {
            let job = parse("", text).expect("it is understood").jobs.remove(0);
            assert_eq!(job.specs.iter().map(|spec| spec.bytes).collect::<Vec<_>>(), [4096, 65_536], "{text}");
        }
    }

    #[test]
    fn lengths_that_fio_would_round_are_rejected() {
        let error = refused("[j]\nrw=read\nbssplit=4k/50:6k/50\n");
        assert_eq!((error.line, error.remedy.as_str()), (3, "write 4096"));
        assert_eq!(error.reason, "fio rounds 6144 bytes down to a multiple of 4096, the smallest length");
    }

    #[test]
    fn an_empty_length_keeps_its_value() {
        // As fio 3.33 prints: `bs=,8k` reads 4096 bytes and writes 8192, `bs=8k,` the other way round.
        for (lengths, both) in [
            (",8k", "different lengths for reads (4096 bytes) and writes (8192 bytes)"),
            ("8k,", "different lengths for reads (8192 bytes) and writes (4096 bytes)"),
            (",,8k", ""),
            (",4k", ""),
            ("4k,", ""),
        ] {
            let text = format!("[a]\nrw=randread\nbs={lengths}\n");
            match parse("", &text) {
                Ok(workload) => assert_eq!((workload.jobs[0].bytes_max(), both), (4096, ""), "{lengths}"),
                Err(error) => assert_eq!((error.line, error.reason.as_str()), (3, both), "{lengths}"),
            }
        }
        let length = |text: &str| parse("", text).expect("it is understood").jobs[0].bytes_max();
        assert_eq!(length("[global]\nbs=16k\n[a]\nrw=read\nbs=,16k\n"), 16 << 10);
        assert_eq!(length("[a]\nrw=rw\nbs=8k,8k,\n"), 8 << 10);
        assert_eq!(refused("[global]\nbs=16k\n[a]\nrw=read\nbs=,8k\n").line, 5);
        for odd in ["bs=,", "bs=", "ba=,8k", "bssplit=,4k/100", "bs=4k,4k,4k,4k"] {
            assert_eq!(refused(&format!("[a]\nrw=randread\n{odd}\n")).line, 3, "{odd}");
        }
    }

    #[test]
    fn the_size_of_a_file_is_not_how_much_is_moved() {
        for (text, line) in [
            ("[a]\nrw=read\nsize=1g\nfilesize=10g\n", 4),
            ("[a]\nrw=read\nfilesize=10g\nsize=1g\n", 3),
            ("[global]\nfilesize=1g\n[a]\nrw=read\n", 2),
            ("[a]\nrw=read\nfilesize=1g\nsize=100%\n", 3),
            ("[a]\nrw=read\nfilesize=1g\nsize=1g\noffset=512m\n", 3),
        ] {
            assert_eq!(refused(text).line, line, "{text}");
        }
        for text in ["filesize=1g\nsize=1g\n", "size=1g\nfilesize=1g\n", "size=1g\nfilesize=0\n"] {
            let job = parse("", &format!("[a]\nrw=read\n{text}")).expect("it is the same").jobs.remove(0);
            assert_eq!((job.once, job.span_bytes), (true, Some(1 << 30)), "{text}");
        }
    }

    #[test]
    fn jobs_come_one_after_another_or_not_at_all() {
        let text = "[a]\nrw=read\n[b]\nrw=write\n";
        assert_eq!((refused(text).line, refused(text).text.as_str()), (3, "[b]"));
        let jobs = parse("", "[a]\nrw=read\n[b]\nstonewall\nrw=write\n").expect("one after another").jobs;
        assert_eq!(jobs.len(), 2);
        assert!(parse("", "[global]\nstonewall\n[a]\nrw=read\n[b]\nrw=write\n").is_ok());
    }

    #[test]
    fn unsupported_lines_are_reported() {
        let error = refused("[a]\nrw=read\nrate_iops=100\n");
        assert_eq!((error.line, error.text.as_str()), (3, "rate_iops=100"));
        assert!(error.to_string().starts_with("line 3: `rate_iops=100`: unsupported option; remove it"));
        assert_eq!(refused("[a]\nrw=trim\n").line, 2);
        assert_eq!(refused("rw=read\n").line, 1);
        assert_eq!(refused("[a\n").line, 1);
        for pattern in ["randread:8", "read:4k", "write:-4k", "seq", "randtrimwrite"] {
            assert_eq!(refused(&format!("[a]\nrw={pattern}\n")).reason, "unsupported pattern");
        }
        for lengths in ["bsrange=4k-64k", "bs_unaligned=1", "bssplit=4k/50:64k/50,8k/100", "bssplit=4k:64k"] {
            assert_eq!(refused(&format!("[a]\nrw=randrw\n{lengths}\n")).line, 3, "{lengths}");
        }
        assert_eq!(refused("[a]\nrw=randrw\npercentage_random=50,100\n").line, 3);
        assert_eq!(refused("[a]\nrw=read\nbs=4k,8k\n").line, 3);
        assert_eq!(refused("[a]\nrw=read\nbs=32m\n").line, 3);
        assert_eq!(refused("[a]\nrw=read\nnumjobs=4\n").line, 3);
        assert_eq!(refused("[a]\nrw=read\nbuffered=1\n").line, 3);
        assert_eq!(refused("[a]\nrw=read\nsize=50%\n").line, 3);
        assert_eq!(refused("[a]\nrw=read\nruntime=99999999h\n").line, 3);
        assert_eq!(refused("[a]\nbs=4k\n").reason, "the job has no access pattern");
        assert_eq!(refused("").reason, "the file has no job");
    }

    #[test]
    fn options_with_another_meaning_are_rejected() {
        // These bound the amount of data, not a part of the drive.
        assert_eq!(refused("[a]\nrw=read\nio_size=1g\n").line, 3);
        assert_eq!(refused("[a]\nrw=write\nend_fsync=1\n").line, 3);
        assert_eq!(refused("[a]\nrw=read\nruntime=0\n").reason, "the run has no end");
        assert_eq!(refused("[a]\nrw=read\nkb_base=1000\n").line, 3);
        assert_eq!(refused("[a]\nrw=read\nioengine=null\n").line, 3);
        let error = refused("[global]\nioengine=psync\n[a]\nrw=read\niodepth=32\n");
        assert_eq!((error.line, error.text.as_str()), (2, "ioengine=psync"));
        assert!(parse("", "[a]\nrw=read\nioengine=psync\n").is_ok());
        assert!(parse("", "[global]\nioengine=psync\n[a]\nrw=read\nioengine=io_uring\niodepth=9\n").is_ok());
    }

    #[test]
    fn without_an_engine_there_is_one_request_at_a_time() {
        let error = refused("[a]\nrw=randread\niodepth=32\n");
        assert_eq!(
            error.to_string(),
            "line 3: `iodepth=32`: without ioengine, fio takes psync, which has one request at a time; \
             add ioengine=libaio or ioengine=io_uring, or write iodepth=1"
        );
        assert_eq!(refused("[global]\niodepth=2\n[a]\nrw=read\n").line, 2);
        // The engine of another job is none of this one.
        let other = "[a]\nrw=read\nioengine=libaio\n[b]\nstonewall\nrw=read\niodepth=2\n";
        assert_eq!(refused(other).line, 7);
        assert!(parse("", "[a]\nrw=read\niodepth=1\n").is_ok());
        let jobs = parse("", "[global]\niodepth=9\n[a]\nrw=read\nioengine=io_uring\n").expect("queued").jobs;
        assert_eq!(jobs[0].depth, 9);
    }

    #[test]
    fn logs_are_rejected() {
        for kind in ["bw", "lat", "iops"] {
            let error = refused(&format!("[a]\nrw=read\nwrite_{kind}_log=run\n"));
            assert_eq!((error.line, error.reason.as_str()), (3, "logs are not supported"), "{kind}");
        }
    }

    #[test]
    fn sizes_that_fio_takes_for_powers_of_ten_are_refused() {
        for (size, remedy) in [("4kib", "4k"), ("4Ki", "4k"), ("1MiB", "1m"), ("2gi", "2g")] {
            let error = refused(&format!("[a]\nrw=read\nbs={size}\n")).to_string();
            assert!(error.contains("powers of ten") && error.contains(&format!("write {remedy}")), "{error}");
        }
        for size in ["4k", "4K", "4kb", "4096"] {
            let text = format!("[a]\nrw=read\nbs={size}\n");
            let job = parse("file", &text).expect("it is understood").jobs.remove(0);
            assert_eq!(job.specs[0].bytes, 4096, "{size}");
        }
    }

    #[test]
    fn a_part_is_moved_once_unless_the_time_alone_ends_it() {
        let job = |text: &str| parse("", text).expect("it is understood").jobs.remove(0);
        for (time, run) in [
            ("", None),
            ("runtime=30\n", Some(30)),
            ("time_based\n", None),
            ("time_based=0\nruntime=30\n", Some(30)),
        ] {
            let job = job(&format!("[global]\nsize=1g\n{time}[a]\nrw=read\n"));
            assert_eq!((job.once, job.span_bytes, job.warm_up), (true, Some(1 << 30), None), "{time}");
            assert_eq!(job.run, run.map(Duration::from_secs), "{time}");
        }
        assert!(!job("[a]\nsize=1g\ntime_based\nruntime=30\nrw=read\n").once);
        assert_eq!(job("[a]\nsize=1g\nramp_time=2\nrw=read\n").warm_up, Some(Duration::from_secs(2)));
        // All of it may be said, and nothing be left unsaid.
        assert!(job("[global]\nsize=1g\n[a]\nrw=read\nsize=100%\n").once);
        assert!(!job("[global]\nsize=1g\n[a]\nrw=read\nsize=0\n").once && !job("[a]\nrw=read\n").once);
    }

    #[test]
    fn missing_direct_io_is_noted_once() {
        let notes = |text: &str| parse("", text).expect("it is understood").notes;
        assert_eq!(notes("[a]\nrw=read\n[b]\nstonewall\nrw=read\n").len(), 1);
        assert_eq!(notes("[a]\nrw=read\ndirect=1\n[b]\nstonewall\nrw=read\n").len(), 1);
        assert_eq!(notes("[a]\nrw=read\n[b]\nstonewall\nrw=read\ndirect\n").len(), 1);
        assert_eq!(notes("[global]\ndirect=1\n[a]\nrw=read\n[b]\nstonewall\nrw=read\n"), [""; 0]);
        assert_eq!(notes("[a]\nrw=read\nbuffered=0\n"), [""; 0]);
    }

    #[test]
    fn a_size_of_nothing_is_the_whole_drive() {
        for size in ["0", "0k", "100%"] {
            let workload = parse("", &format!("[global]\nsize=1g\n[a]\nrw=read\nsize={size}\n"));
            assert_eq!(workload.expect("it is understood").jobs[0].span_bytes, None, "{size}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_ignored() {
        assert!(parse("", "\u{feff}[a]\nrw=read\n").is_ok());
    }

    proptest! {
        #[test]
        fn arbitrary_files_do_not_panic(text in "(\\[[a-z\\]]{0,6}\n|(rw|bs|bssplit|size|runtime|iodepth|direct|x)=?[0-9a-z%/:,.-]{0,12}\n|.{0,20}\n){0,12}") {
            if let Ok(workload) = parse("odd", &text) {
                prop_assert!(!workload.jobs.is_empty());
                for job in workload.jobs {
                    prop_assert!((1..=DEPTH_MAX).contains(&job.depth));
                    let whole: u32 = job.specs.iter().map(|spec| u32::from(spec.percent)).sum();
                    prop_assert_eq!(whole, 100);
                }
            }
        }
    }
}
