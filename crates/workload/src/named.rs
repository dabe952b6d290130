//! Well-known workloads by name, as rows of a table.
//!
//! Each row has lengths, read and random percentages, and depths. The programs themselves do more
//! than their best-known pattern; the rows say what is taken of each.

use super::job::{AccessSpec, Fill, Job, Workload};

const K: u32 = 1 << 10;
const M: u32 = 1 << 20;
const G: u32 = 1 << 30;

/// One job, or one for each depth.
struct Row {
    workload: &'static str,
    bytes: u32,
    read_percent: u8,
    random_percent: u8,
    depths: &'static [u16],
    /// Bytes of the program's file; without one it uses the whole drive, or the start of it.
    span_bytes: Option<u32>,
}

/// As IOMeter is mostly run for figures by depth.
const SWEEP: &[u16] = &[1, 2, 4, 8, 16, 32, 64];

/// Names with descriptions.
pub const NAMES: &[(&str, &str)] = &[
    ("iometer-4k-read", "4K random reads, depth 1 to 64"),
    ("iometer-4k-write", "4K random writes, depth 1 to 64"),
    ("iometer-512k", "512K sequential reads, then writes, depth 1 to 64"),
    ("iometer-2m", "2M sequential reads, then writes, depth 1 to 64"),
    ("workstation", "8K, 80 % read, 80 % random, depth 64"),
    ("crystaldiskmark", "sequential 1M, random 512K, 4K, and 4K at depth 32; reads, then writes; within 1G"),
    ("atto", "sequential writes of zeros and reads of 0.5K to 8M, depth 4; within 256M"),
    ("hdparm", "2M sequential reads, as hdparm -t"),
    ("dd", "1M sequential reads, then writes, depth 1"),
    ("iozone-4k", "4K write, read, random read, random write, depth 1; within 100M"),
];

const fn row(
    workload: &'static str,
    bytes: u32,
    read_percent: u8,
    random_percent: u8,
    depths: &'static [u16],
) -> Row {
    Row { workload, bytes, read_percent, random_percent, depths, span_bytes: None }
}

impl Row {
    const fn within(self, span_bytes: u32) -> Self {
        Self { span_bytes: Some(span_bytes), ..self }
    }
}

/// Length, percent of reads, percent of random places; depths.
const ROWS: &[Row] = &[
    row("iometer-4k-read", 4 * K, 100, 100, SWEEP),
    row("iometer-4k-write", 4 * K, 0, 100, SWEEP),
    row("iometer-512k", 512 * K, 100, 0, SWEEP),
    row("iometer-512k", 512 * K, 0, 0, SWEEP),
    row("iometer-2m", 2 * M, 100, 0, SWEEP),
    row("iometer-2m", 2 * M, 0, 0, SWEEP),
    row("workstation", 8 * K, 80, 80, &[64]),
    // The four rows introduced by version 3, with its default file size. Random places on a whole
    // drive would mean long seeks of a disk, and miss the mapping caches of bridges and flash.
    row("crystaldiskmark", M, 100, 0, &[1]).within(G),
    row("crystaldiskmark", 512 * K, 100, 100, &[1]).within(G),
    row("crystaldiskmark", 4 * K, 100, 100, &[1, 32]).within(G),
    row("crystaldiskmark", M, 0, 0, &[1]).within(G),
    row("crystaldiskmark", 512 * K, 0, 100, &[1]).within(G),
    row("crystaldiskmark", 4 * K, 0, 100, &[1, 32]).within(G),
    // Reads of the device (-t), not of the page cache (-T).
    row("hdparm", 2 * M, 100, 0, &[1]),
    row("dd", M, 100, 0, &[1]),
    row("dd", M, 0, 0, &[1]),
    // -i 0, -i 1, -i 2 with -r 4k and -s 100M, without the second passes over the same file.
    row("iozone-4k", 4 * K, 0, 0, &[1]).within(100 * M),
    row("iozone-4k", 4 * K, 100, 0, &[1]).within(100 * M),
    row("iozone-4k", 4 * K, 100, 100, &[1]).within(100 * M),
    row("iozone-4k", 4 * K, 0, 100, &[1]).within(100 * M),
];

/// ATTO's lengths are all powers of two from here to there.
const ATTO_BYTES: [u32; 2] = [512, 8 * M];

/// ATTO's depth and the length of its file, unless changed in its window, where other data than zeroes must be chosen as well.
const ATTO_DEPTH: u16 = 4;
const ATTO_SPAN_BYTES: u32 = 256 * M;

/// The workload of this name.
pub fn named(name: &str) -> Option<Workload> {
    let (name, _) = NAMES.iter().find(|(known, _)| *known == name)?;
    let jobs = if *name == "atto" { atto() } else { from_rows(name) };
    Some(Workload { name: (*name).to_owned(), jobs, notes: Vec::new() })
}

fn from_rows(name: &str) -> Vec<Job> {
    let rows = ROWS.iter().filter(|row| row.workload == name);
    let job = |row: &Row, depth| Job {
        span_bytes: row.span_bytes.map(u64::from),
        ..Job::of(AccessSpec::all(row.bytes, row.read_percent, row.random_percent), depth)
    };
    rows.flat_map(|row| row.depths.iter().map(move |&depth| job(row, depth))).collect()
}

fn atto() -> Vec<Job> {
    let [first, last] = ATTO_BYTES;
    let lengths =
        std::iter::successors(Some(first), |bytes| Some(bytes * 2)).take_while(|bytes| *bytes <= last);
    let job = |bytes, reads| Job {
        span_bytes: Some(ATTO_SPAN_BYTES.into()),
        fill: Some(Fill::Zero),
        ..Job::of(AccessSpec::all(bytes, reads, 0), ATTO_DEPTH)
    };
    lengths.flat_map(|bytes| [0, 100].map(|reads| job(bytes, reads))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_depth_that_is_named_twice_is_one() {
        let workload = named("iometer-4k-read").expect("it is known").at_depths(&[4, 1, 4, 1]);
        assert_eq!(workload.jobs.iter().map(|job| job.depth).collect::<Vec<_>>(), [4, 1]);
    }

    #[test]
    fn every_name_has_jobs_within_the_limits() {
        for (name, _) in NAMES {
            let workload = named(name).expect("it is in the list");
            assert!(!workload.jobs.is_empty(), "{name}");
            assert!(workload.jobs.iter().all(|job| (1..=64).contains(&job.depth)), "{name}");
        }
        assert_eq!(named("bonnie"), None);
    }

    #[test]
    fn a_depth_sweep_doubles_up_to_64() {
        let workload = named("iometer-4k-read").expect("it is known");
        let depths: Vec<u16> = workload.jobs.iter().map(|job| job.depth).collect();
        assert_eq!(depths, [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(workload.jobs[0].label, "4K random read");
        assert!(!workload.writes());
    }

    #[test]
    fn atto_goes_from_half_a_kilobyte_to_eight_megabytes() {
        let jobs = named("atto").expect("it is known").jobs;
        assert_eq!(jobs.len(), 30);
        assert_eq!((jobs[0].bytes_max(), jobs[29].bytes_max(), jobs[0].depth), (512, 8_388_608, 4));
        assert!(jobs[0].writes() && !jobs[1].writes());
    }

    #[test]
    fn what_works_in_a_file_keeps_within_its_length() {
        let spans = |name: &str| {
            let jobs = named(name).expect("it is known").jobs;
            assert!(jobs.iter().all(|job| job.span_bytes == jobs[0].span_bytes), "{name}");
            (jobs[0].span_bytes, jobs[0].fill)
        };
        assert_eq!(spans("crystaldiskmark"), (Some(1 << 30), None));
        assert_eq!(spans("atto"), (Some(256 << 20), Some(Fill::Zero)));
        assert_eq!(spans("iozone-4k"), (Some(100 << 20), None));
        for name in ["iometer-4k-read", "iometer-512k", "workstation", "hdparm", "dd"] {
            assert_eq!(spans(name), (None, None), "{name}");
        }
        let on_whole_drive = named("atto").expect("it is known").on_whole_drive();
        assert!(on_whole_drive.jobs.iter().all(|job| (job.span_bytes, job.fill) == (None, None)));
    }

    #[test]
    fn a_workstation_reads_eight_of_ten() {
        let jobs = named("workstation").expect("it is known").jobs;
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].specs, [AccessSpec::all(8192, 80, 80)]);
        assert_eq!((jobs[0].depth, jobs[0].label.as_str()), (64, "8K 80 % random, 80 % read"));
    }
}
