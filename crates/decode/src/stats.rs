//! Commands, counted: by name, by how many were in flight, by phase.
//!
//! Of few times percentiles are exact: one of them is the time itself. Invariants: a table has a row for each command that has a name, for each other operation code, and for each depth up to [`DEPTH_MAX`], and no more; deeper ones are in the last.

use crate::command::Command;
use crate::cover::Cover;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use wire::scsi::opcode::OperationCode;

/// The deepest queue that has a separate row.
pub const DEPTH_MAX: u32 = 256;
/// The longest time that is distinguished: an hour.
const TIME_NS_MAX: u64 = 3_600_000_000_000;
/// Digits of a percentile that count. A third would take eight times the memory.
const DIGITS: u8 = 2;

/// Times that are kept as they are.
const EXACT_MAX: usize = 100;

/// Statistics of commands.
#[derive(Debug, Default)]
pub struct Stats {
    all: Row,
    by_name: BTreeMap<(u8, String), Row>,
    by_depth: BTreeMap<u32, Row>,
    sending: Times,
    data: Times,
    status: Times,
    idle: Times,
    covered: Cover,
    first_ns: Option<u64>,
    last_ns: u64,
}

/// Commands of a kind.
#[derive(Debug, Default)]
struct Row {
    commands: u64,
    errors: u64,
    bytes: u64,
    latency: Times,
}

/// Times, each as long as they are few.
#[derive(Debug, Default)]
struct Times {
    few: Vec<u64>,
    many: Option<Box<Histogram<u64>>>,
    max_ns: u64,
}

/// Distribution of times: how many, and their percentiles in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// How many there are.
    pub count: u64,
    /// Half are no longer.
    pub p50_ns: u64,
    /// Nine of ten are no longer.
    pub p90_ns: u64,
    /// 99 of a hundred are no longer.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Commands of a kind, summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many.
    pub commands: u64,
    /// Of them, those that did not end as they should.
    pub errors: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// How long they took.
    pub latency: Spread,
}

/// Times between the phases of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gaps {
    /// Until the command was sent.
    pub sending: Spread,
    /// From there to the last of its data.
    pub data: Spread,
    /// From there to its status.
    pub status: Spread,
    /// From the last status to the next command, where nothing was in flight.
    pub idle: Spread,
}

impl Stats {
    /// Notes a command, whether it is counted or not: time outside of commands is outside of all of them.
    pub fn pass(&mut self, command: &Command) {
        let began = command.began.at_ns;
        let ended = command.ended.map_or(began, |ended| ended.at_ns);
        self.first_ns = Some(self.first_ns.map_or(began, |first| first.min(began)));
        self.last_ns = self.last_ns.max(ended);
        self.covered.add(began, ended);
    }

    /// Counts a command, which was passed before.
    pub fn add(&mut self, command: &Command) {
        self.all.add(command);
        let named = (command.block.opcode().into(), command.block.name());
        self.by_name.entry(named).or_default().add(command);
        self.by_depth.entry(command.depth.min(DEPTH_MAX)).or_default().add(command);
        let began = command.began.at_ns;
        let sent = command.sent_ns.unwrap_or(began);
        self.sending.add(command.sent_ns.map(|sent| sent.saturating_sub(began)));
        let last_data = command.data.map(|(_, last)| last.at_ns);
        self.data.add(last_data.map(|last| last.saturating_sub(sent)));
        let status = command.ended.map(|ended| ended.at_ns.saturating_sub(last_data.unwrap_or(sent)));
        self.status.add(status.filter(|_| command.duration_ns().is_some()));
        self.idle.add(command.idle_ns);
    }

    /// All commands together.
    pub fn all(&self) -> Summary {
        self.all.summary()
    }

    /// Commands by operation code and [name](crate::Block::name): where a code carries several commands, each has a row.
    pub fn by_name(&self) -> impl Iterator<Item = (OperationCode, &str, Summary)> {
        self.by_name.iter().map(|((opcode, name), row)| ((*opcode).into(), name.as_str(), row.summary()))
    }

    /// Commands by how many were in flight when they were sent, they included.
    pub fn by_depth(&self) -> impl Iterator<Item = (u32, Summary)> {
        self.by_depth.iter().map(|(&depth, row)| (depth, row.summary()))
    }

    /// Where their time went.
    pub fn gaps(&self) -> Gaps {
        let [sending, data, status, idle] =
            [&self.sending, &self.data, &self.status, &self.idle].map(Times::spread);
        Gaps { sending, data, status, idle }
    }

    /// From the first command to the end of the last, and what of it was outside of commands of all drives, in nanoseconds.
    pub fn span_ns(&self) -> (u64, u64) {
        let span_ns = self.last_ns.saturating_sub(self.first_ns.unwrap_or(0));
        (span_ns, span_ns.saturating_sub(self.covered.total()))
    }
}

impl Row {
    fn add(&mut self, command: &Command) {
        self.commands += 1;
        self.errors += u64::from(command.is_error());
        self.bytes += command.moved;
        self.latency.add(command.duration_ns());
    }

    fn summary(&self) -> Summary {
        let Self { commands, errors, bytes, .. } = *self;
        Summary { commands, errors, bytes, latency: self.latency.spread() }
    }
}

impl Times {
    fn add(&mut self, ns: Option<u64>) {
        let Some(ns) = ns else { return };
        self.max_ns = self.max_ns.max(ns);
        if self.many.is_none() && self.few.len() < EXACT_MAX {
            return self.few.push(ns);
        }
        if self.many.is_none() {
            self.many = Histogram::new_with_bounds(1, TIME_NS_MAX, DIGITS).ok().map(Box::new);
        }
        if let Some(histogram) = &mut self.many {
            self.few.drain(..).for_each(|before| histogram.saturating_record(before));
            histogram.saturating_record(ns);
        }
    }

    fn spread(&self) -> Spread {
        let Self { few, many, max_ns } = self;
        let max_ns = *max_ns;
        let mut sorted = few.clone();
        sorted.sort_unstable();
        // The least time that is no shorter than so many of a hundred.
        let exact = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100) - 1];
        match many {
            Some(histogram) => {
                let [p50_ns, p90_ns, p99_ns] =
                    [0.5, 0.9, 0.99].map(|quantile| histogram.value_at_quantile(quantile).min(max_ns));
                Spread { count: histogram.len(), p50_ns, p90_ns, p99_ns, max_ns }
            }
            None if sorted.is_empty() => Spread::default(),
            None => {
                let [p50_ns, p90_ns, p99_ns] = [50, 90, 99].map(exact);
                Spread { count: sorted.len() as u64, p50_ns, p90_ns, p99_ns, max_ns }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(times: impl IntoIterator<Item = u64>) -> [u64; 5] {
        let mut all = Times::default();
        times.into_iter().for_each(|ns| all.add(Some(ns)));
        let Spread { count, p50_ns, p90_ns, p99_ns, max_ns } = all.spread();
        [count, p50_ns, p90_ns, p99_ns, max_ns]
    }

    #[test]
    fn of_few_times_percentiles_are_exact() {
        assert_eq!(spread([]), [0; 5]);
        assert_eq!(spread([123_457]), [1, 123_457, 123_457, 123_457, 123_457]);
        assert_eq!(spread([0]), [1, 0, 0, 0, 0]);
        assert_eq!(spread([300, 100]), [2, 100, 300, 300, 300]);
        assert_eq!(spread((1..=10).rev()), [10, 5, 9, 10, 10]);
        assert_eq!(spread(1..=100), [100, 50, 90, 99, 100]);
        assert_eq!(spread([TIME_NS_MAX * 2])[4], 7_200_000_000_000);
    }

    #[test]
    fn of_many_times_percentiles_are_within_a_hundredth_and_never_past_the_longest() {
        let [count, p50_ns, p90_ns, p99_ns, max_ns] = spread((1..=100_000).map(|at| at * 1_003));
        assert_eq!((count, max_ns), (100_000, 100_300_000));
        for (found, right) in [(p50_ns, 50_150_000), (p90_ns, 90_270_000), (p99_ns, 99_297_000_u64)] {
            assert!(found.abs_diff(right) <= right / 100 && found <= max_ns, "{found} for {right}");
        }
    }

    #[test]
    fn of_nothing_there_is_nothing_to_say() {
        let stats = Stats::default();
        assert_eq!((stats.span_ns(), stats.all().commands, stats.gaps().idle.count), ((0, 0), 0, 0));
    }
}
