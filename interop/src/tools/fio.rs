//! fio: load, verification, measurement. Runs in the guest with `O_DIRECT` and Linux AIO.

use std::time::Duration;

use serde_json::Value;

use crate::{Error, Result, guest::Guest};

/// A fio job for one device.
#[derive(Clone, Debug)]
pub struct Load {
    device: String,
    pattern: Pattern,
    block_bytes: u32,
    depth: u32,
    length: Length,
    verify: bool,
    more: String,
}

/// Which blocks, in which order, and which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Random reads.
    RandomRead,
    /// Random writes.
    RandomWrite,
    /// Random reads and writes, half each.
    RandomMixed,
}

#[derive(Clone, Copy, Debug)]
enum Length {
    Time(Duration),
    Bytes(u64),
}

/// Results of a fio job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// Its reads.
    pub read: Side,
    /// Its writes.
    pub write: Side,
}

/// One direction of a [`Report`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// Bytes moved.
    pub bytes: u64,
    /// Commands per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: u64,
    /// The mean time from submission to completion of a command, in nanoseconds.
    pub mean_latency_ns: f64,
}

impl Load {
    /// Two seconds of `pattern` on `device`, such as `/dev/sda`, in blocks of 4 KiB, one at a time.
    pub fn new(device: &str, pattern: Pattern) -> Self {
        let (length, more) = (Length::Time(Duration::from_secs(2)), String::new());
        Self { device: device.into(), pattern, block_bytes: 4096, depth: 1, length, verify: false, more }
    }

    /// The size of a command.
    #[must_use]
    pub fn block_bytes(mut self, block_bytes: u32) -> Self {
        self.block_bytes = block_bytes;
        self
    }

    /// The commands in flight.
    #[must_use]
    pub fn depth(mut self, depth: u32) -> Self {
        self.depth = depth;
        self
    }

    /// Goes on for so long, over the device again and again if need be.
    #[must_use]
    pub fn seconds(self, seconds: u32) -> Self {
        self.time(Duration::from_secs(seconds.into()))
    }

    /// The same to the millisecond.
    #[must_use]
    pub fn time(mut self, time: Duration) -> Self {
        self.length = Length::Time(time);
        self
    }

    /// Ends after so much, within the first so many bytes of the device.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.length = Length::Bytes(bytes);
        self
    }

    /// Stamps each block when it is written, and reads all back at the end. A wrong block is an error.
    #[must_use]
    pub fn verify(mut self) -> Self {
        self.verify = true;
        self
    }

    /// Further options, such as `--offset=1m`.
    #[must_use]
    pub fn options(mut self, options: &str) -> Self {
        self.more = format!(" {options}");
        self
    }

    /// The command line, for those who start it themselves and let something happen meanwhile.
    pub fn line(&self) -> String {
        format!("{FIO} {}", self.job())
    }

    /// Returns the options of the job, which follow those that all jobs share.
    fn job(&self) -> String {
        let Self { device, block_bytes, depth, more, .. } = self;
        let pattern = match self.pattern {
            Pattern::Read => "read",
            Pattern::Write => "write",
            Pattern::RandomRead => "randread",
            Pattern::RandomWrite => "randwrite",
            Pattern::RandomMixed => "randrw",
        };
        let length = match self.length {
            Length::Time(time) => format!("--time_based --runtime={}ms", time.as_millis()),
            Length::Bytes(bytes) => format!("--size={bytes}"),
        };
        // Without the fatal option fio goes on after a wrong block, and counts it as one of many errors.
        let verify = if self.verify { " --verify=crc32c --verify_fatal=1" } else { "" };
        format!(
            "--name=load --filename={device} --rw={pattern} --bs={block_bytes} --iodepth={depth} \
             --ioengine=libaio --direct=1 --thread --randrepeat=1 {length}{verify}{more}"
        )
    }

    /// Runs it in the guest. Fails when a command failed or a block was wrong.
    pub fn run(&self, guest: &mut Guest) -> Result<Report> {
        Report::parse(&guest.stdout_within(self.limit(), &self.line())?)
    }

    /// Runs loads one after the other in one run of fio, which spares the time that it takes to begin. A report each.
    pub fn run_in_turn(loads: &[Self], guest: &mut Guest) -> Result<Vec<Report>> {
        let jobs: String = loads.iter().map(|load| format!(" {} --stonewall", load.job())).collect();
        let limit = loads.iter().map(Self::limit).sum();
        let reports = Report::parse_jobs(&guest.stdout_within(limit, &format!("{FIO}{jobs}"))?)?;
        if reports.len() == loads.len() {
            return Ok(reports);
        }
        let counts = format!("{} jobs of {}", reports.len(), loads.len());
        Err(Error::unexpected("read fio's report", counts))
    }

    fn limit(&self) -> Duration {
        match self.length {
            Length::Time(time) => time + Duration::from_secs(60),
            Length::Bytes(_) => Duration::from_secs(180),
        }
    }
}

/// The beginning of all command lines.
const FIO: &str = "fio --output-format=json";

impl Report {
    /// Reads fio's JSON of one job; words that it prints before are passed over.
    pub fn parse(printed: &str) -> Result<Self> {
        let reports = Self::parse_jobs(printed)?;
        reports.first().copied().ok_or_else(|| Error::unexpected("read fio's report", "it has no job"))
    }

    /// The same of any number of jobs.
    fn parse_jobs(printed: &str) -> Result<Vec<Self>> {
        let nonsense = |why: String| Error::unexpected("read fio's report", format!("{why}\n{printed}"));
        let json = printed.find('{').and_then(|start| printed.get(start..)).unwrap_or_default();
        let report: Value = serde_json::from_str(json).map_err(|error| nonsense(error.to_string()))?;
        let jobs = report["jobs"].as_array().ok_or_else(|| nonsense("it has no jobs".into()))?;
        let of_job = |job: &Value| match job["error"].as_i64() {
            Some(0) => Ok(Self { read: Side::parse(&job["read"]), write: Side::parse(&job["write"]) }),
            Some(code) => Err(nonsense(format!("it ended with error {code}"))),
            None => Err(nonsense("a job does not say how it ended".into())),
        };
        jobs.iter().map(of_job).collect()
    }
}

impl Side {
    fn parse(side: &Value) -> Self {
        Self {
            bytes: side["io_bytes"].as_u64().unwrap_or_default(),
            iops: side["iops"].as_f64().unwrap_or_default(),
            bytes_per_second: side["bw_bytes"].as_u64().unwrap_or_default(),
            mean_latency_ns: side["clat_ns"]["mean"].as_f64().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = r#"note: a warning
{ "fio version": "fio-3.33", "jobs": [ { "jobname": "load", "error": 0,
  "read": { "io_bytes": 8192, "bw_bytes": 4096, "iops": 1.5, "clat_ns": { "mean": 250000.5 } },
  "write": { "io_bytes": 0, "bw_bytes": 0, "iops": 0.0, "clat_ns": { "mean": 0.0 } } } ] }"#;

    #[test]
    fn a_report_is_read_behind_a_warning() {
        let read = Side { bytes: 8192, iops: 1.5, bytes_per_second: 4096, mean_latency_ns: 250_000.5 };
        assert_eq!(Report::parse(PRINTED).expect("whole").read, read);
    }

    #[test]
    fn a_failed_job_is_an_error() {
        let failed = PRINTED.replace("\"error\": 0", "\"error\": 84");
        assert!(Report::parse(&failed).expect_err("error 84").to_string().contains("error 84"));
        assert!(Report::parse("fio: no such device").is_err());
    }

    #[test]
    fn the_line_says_what_was_asked() {
        let line = Load::new("/dev/sda", Pattern::RandomWrite).depth(30).bytes(1 << 20).verify().line();
        for word in ["--rw=randwrite", "--bs=4096", "--iodepth=30", "--size=1048576", "--verify=crc32c"] {
            assert!(line.split(' ').any(|part| part == word), "{word} in {line}");
        }
    }
}
