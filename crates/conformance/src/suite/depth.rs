//! Data under load: many commands at once, in any order; and the rate of writes.
//!
//! Left out: errors of the transport, which end a test. Always true: each block that is read was written by the same run.

use crate::area::{WriteArea, cut, write_area};
use crate::limits::SCATTERED_BYTES;
use crate::probe::Probe;
use crate::queue::{BlockJob, CommandQueue, StampedBlocks};
use crate::test::Verdict;
use quirks::UasPlan;
use std::time::Instant;
use units::Capacity;

/// Parts of the blocks whose rates are compared.
const WINDOWS: u64 = 32;

/// Windows on each side of a drop, so that one slow window is none.
const DROP_WINDOWS: usize = 4;

/// Rate after a drop, at most so much of that before.
const DROP_SHARE: f64 = 0.6;

/// Commands in flight on all tags, after the unit is ready.
pub(super) fn over_uas(probe: &mut Probe<'_>, plan: &UasPlan, tag_max: u16) -> Result<Verdict, Verdict> {
    // The other tests find out by this what the drive has, over the transport that it prefers.
    let queue = CommandQueue::Tags(plan, tag_max);
    let area = over_preferred(probe)?;
    if probe.begin_uas(plan).is_none() || !probe.is_ready_over_uas(plan) {
        return Err(Verdict::NotTested("the device does not get ready over UAS".into()));
    }
    scattered(probe, queue, area)
}

/// Blocks, in any order.
pub(super) fn out_of_order(probe: &mut Probe<'_>, queue: CommandQueue<'_>) -> Result<Verdict, Verdict> {
    let area = write_area(probe, 2)?;
    scattered(probe, queue, area)
}

fn over_preferred(probe: &mut Probe<'_>) -> Result<WriteArea, Verdict> {
    if !probe.begin_scsi() {
        return Err(Verdict::NotTested("the device does not get ready".into()));
    }
    write_area(probe, 2)
}

/// Writes all blocks in one order; in another order writes every second command again and reads the others; and reads all.
fn scattered(probe: &mut Probe<'_>, queue: CommandQueue<'_>, area: WriteArea) -> Result<Verdict, Verdict> {
    let count = area.count.min(SCATTERED_BYTES.0 / u64::from(area.blocks.bytes));
    let at_once = area.blocks.at_once().min(count);
    let commands = count / at_once;
    let mut run = area.run(3 * commands * at_once);
    let blocks = |index: u64, generation| StampedBlocks { lba: index * at_once, count: at_once, generation };
    let first = scattering(commands, 0.618);
    run.carry_out(probe, queue, first.map(|index| BlockJob::Write(blocks(index, 1))))?;
    let mixed = scattering(commands, 0.414).map(|index| match index % 2 {
        0 => BlockJob::Write(blocks(index, 2)),
        _ => BlockJob::Read(blocks(index, 1)),
    });
    run.carry_out(probe, queue, mixed)?;
    let last = scattering(commands, 0.732).map(|index| {
        let generation = if index % 2 == 0 { 2 } else { 1 };
        BlockJob::Read(blocks(index, generation))
    });
    run.carry_out(probe, queue, last)?;
    Ok(run.verdict())
}

/// All numbers below `count`, in steps of about this share of it.
fn scattering(count: u64, share: f64) -> impl Iterator<Item = u64> {
    let mut step = ((count as f64 * share) as u64).max(1);
    while divisor_of_both(step, count) > 1 {
        step += 1;
    }
    (0..count).map(move |index| (u128::from(index) * u128::from(step) % u128::from(count)) as u64)
}

const fn divisor_of_both(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Writes the blocks in order, with as many commands at once as the fastest transport allows.
pub(super) fn rate(probe: &mut Probe<'_>) -> Result<Verdict, Verdict> {
    let area = over_preferred(probe)?;
    let at_once = area.blocks.at_once();
    let window = (area.count / WINDOWS) / at_once * at_once;
    if window == 0 {
        return Err(Verdict::NotTested(format!("{} are too few", area.blocks.size(area.count))));
    }
    let plan = probe.device().uas;
    let queue = match &plan {
        Some(plan) => match probe.begin_uas(plan) {
            Some(tag_max) if probe.is_ready_over_uas(plan) => CommandQueue::Tags(plan, tag_max),
            _ => return Err(Verdict::NotTested("the device does not get ready over UAS".into())),
        },
        None => CommandQueue::One,
    };
    let mut run = area.run(window * WINDOWS);
    let mut seconds = Vec::new();
    for index in 0..WINDOWS {
        let began = Instant::now();
        let blocks = StampedBlocks { lba: index * window, count: window, generation: 1 };
        run.carry_out(probe, queue, cut(blocks, at_once).map(BlockJob::Write))?;
        seconds.push(began.elapsed().as_secs_f64());
    }
    let rates = WindowRates { bytes: window * u64::from(area.blocks.bytes), seconds };
    Ok(Verdict::Note(rates.describe(queue.depth())))
}

/// How long parts of the same length took.
struct WindowRates {
    /// Bytes of each.
    bytes: u64,
    seconds: Vec<f64>,
}

impl WindowRates {
    /// Bytes per second of a typical window of these.
    fn rate(&self, windows: &[f64]) -> f64 {
        self.bytes as f64 / median(windows).max(f64::MIN_POSITIVE)
    }

    /// The window from which on the rate is lower, and stays so: where two levels fit best. One pause does not move a median.
    fn drop(&self) -> Option<usize> {
        let distance = |windows: &[f64]| {
            let middle = median(windows);
            windows.iter().map(|seconds| (seconds - middle).abs()).sum::<f64>()
        };
        let misfit = |place: usize| {
            let (before, after) = self.seconds.split_at(place);
            distance(before) + distance(after)
        };
        let places = DROP_WINDOWS..=self.seconds.len().checked_sub(DROP_WINDOWS)?;
        let place = places.min_by(|a, b| misfit(*a).total_cmp(&misfit(*b)))?;
        let (before, after) = self.seconds.split_at(place);
        (self.rate(after) <= DROP_SHARE * self.rate(before)).then_some(place)
    }

    fn describe(&self, depth: u16) -> String {
        let total = Capacity(self.bytes * self.seconds.len() as u64);
        let mb_s = |rate: f64| format!("{:.0} MB/s", rate / 1e6);
        let seconds: f64 = self.seconds.iter().sum();
        let mean = (self.bytes * self.seconds.len() as u64) as f64 / seconds.max(f64::MIN_POSITIVE);
        let words = format!("{total} written at {}, {} at once", mb_s(mean), commands(depth));
        match self.drop() {
            None => format!("{words}; the rate did not drop"),
            Some(place) => {
                let (before, after) = self.seconds.split_at(place);
                format!(
                    "{words}; {} at first, {} after {}, where a cache may be full",
                    mb_s(self.rate(before)),
                    mb_s(self.rate(after)),
                    Capacity(self.bytes * place as u64)
                )
            }
        }
    }
}

fn commands(depth: u16) -> String {
    if depth == 1 { "one command of 64 KiB".into() } else { format!("{depth} commands of 64 KiB") }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattered_commands_are_all_of_them_and_not_in_order() {
        for count in [1, 2, 7, 256, 4096] {
            let order: Vec<u64> = scattering(count, 0.618).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..count).collect::<Vec<_>>());
            assert!(count < 4 || order != sorted, "{count}");
        }
    }

    #[test]
    fn a_drop_is_where_the_rate_stays_lower_and_one_pause_is_none() {
        let rates = |seconds: &[f64]| WindowRates { bytes: 32 << 20, seconds: seconds.to_vec() };
        let mut seconds = vec![0.1; 32];
        assert_eq!(rates(&seconds).drop(), None);
        seconds[9] = 2.0;
        assert_eq!(rates(&seconds).drop(), None);
        seconds[20..].fill(0.4);
        assert_eq!(rates(&seconds).drop(), Some(20));
        seconds[9] = 0.1;
        assert_eq!(
            rates(&seconds).describe(32),
            "1 GiB written at 158 MB/s, 32 commands of 64 KiB at once; 336 MB/s at first, 84 MB/s after 640 MiB, where a \
             cache may be full"
        );
        seconds[20..].fill(0.1);
        assert_eq!(
            rates(&seconds).describe(1),
            "1 GiB written at 336 MB/s, one command of 64 KiB at once; the rate did not drop"
        );
    }
}
