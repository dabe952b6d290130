//! Findings of a comparison, in sentences, the most important first.
//!
//! Each sentence is a rule over figures; where a figure is missing, so is the sentence. Of few ways each job has its sentences: how UAS
//! compares to BOT, and what each way gains from queue depth. Of many ways each job names the fastest one, and of all pairs that differ
//! in the driver alone the one that gains most by UAS and the one that gains least. What limits a rate is named where the simulation knows
//! it (module `bottleneck`). Sentences are ordered by how large the difference is that they report.
//!
//! Invariant: every figure is in the table or on the page beside it: of one seed, or means, as they are there.

use super::bottleneck::{Bottleneck, Limits};
use super::runs::JobRuns;
use super::{Configuration, Row, pairs};
use crate::plural::listed;

/// The relative difference that counts as none.
const SAME: f64 = 0.05;

/// The share of the highest rate from which on a way counts as saturated.
const ENOUGH: f64 = 0.9;

/// Ways of which each job is reported in full.
const FEW: usize = 6;

/// Pairs that each have a sentence.
const PAIRS_EACH_MAX: usize = 2;

/// Ways with another driver than the one asked for that come before everything else.
const REASONS_FIRST: usize = 2;

/// Ways for which nothing changes that are named.
const NAMES_MAX: usize = 2;

/// The weight of a sentence on scaling, relative to one on two transports with the same ratio.
const SCALING_WEIGHT: f64 = 0.2;

/// The rates of a job at one queue depth.
pub struct JobRates<'a> {
    label: &'a str,
    depth: u16,
    /// By column.
    of: Vec<Option<Rate>>,
}

/// The rate of a job on a column, in millions of bytes a second, and what is known of its limits.
#[derive(Clone, Copy, Debug)]
struct Rate {
    mb_per_s: f64,
    limits: Limits,
}

/// A sentence and how much it matters.
struct Finding {
    weight: f64,
    text: String,
}

/// The columns and rows that findings are about.
struct Seen<'a> {
    names: Vec<String>,
    /// Whether a column has no USB.
    is_sata: Vec<bool>,
    /// A column on BOT and one on UAS each, which differ in the driver alone.
    pairs: Vec<(usize, usize)>,
    /// Rows by job, from low to high depth.
    jobs: Vec<Vec<&'a JobRates<'a>>>,
}

/// Columns on BOT and on UAS, and the rates of the second, as a multiple of those of the first.
#[derive(Clone, Copy)]
struct Gain {
    bot: usize,
    uas: usize,
    ratio: f64,
}

/// The rates of the first seed, which a table shows.
pub fn first_seed<'a>(columns: &[Configuration], rows: &'a [Row]) -> Vec<JobRates<'a>> {
    let of_row = |row: &'a Row| {
        let rate = |(column, trial): (&Configuration, &crate::trial::Trial)| {
            let limits = Limits::of(column, row.job.depth, trial);
            Some(Rate { mb_per_s: trial.measured.megabytes_per_second(), limits })
        };
        let of = columns.iter().zip(&row.trials).map(rate).collect();
        JobRates { label: &row.job.label, depth: row.job.depth, of }
    };
    rows.iter().map(of_row).collect()
}

/// The means over seeds, which a page shows; limits are those of the first seed.
pub fn means<'a>(columns: &[Configuration], gathered: &'a [JobRuns]) -> Vec<JobRates<'a>> {
    let of_row = |row: &'a JobRuns| {
        let rate = |(column, runs): (&Configuration, &super::runs::Runs)| {
            let limits = Limits::of(column, row.job.depth, runs.trials.first()?);
            Some(Rate { mb_per_s: runs.mb_per_s().value, limits })
        };
        let of = columns.iter().zip(&row.of).map(rate).collect();
        JobRates { label: &row.job.label, depth: row.job.depth, of }
    };
    gathered.iter().map(of_row).collect()
}

/// The findings, the most important first.
pub fn findings(columns: &[Configuration], rates: &[JobRates<'_>]) -> Vec<String> {
    let seen = Seen {
        names: columns.iter().map(|column| display(&column.name)).collect(),
        is_sata: columns.iter().map(|column| column.transport() == "sata").collect(),
        pairs: pairs(columns).collect(),
        jobs: by_job(rates),
    };
    let reasons = columns
        .iter()
        .filter_map(why_no_better)
        .enumerate()
        .map(|(nth, text)| Finding { weight: if nth < REASONS_FIRST { f64::INFINITY } else { 0.0 }, text });
    by_weight(reasons.chain(seen.findings()).collect())
}

fn by_weight(mut all: Vec<Finding>) -> Vec<String> {
    // Sentences of the same weight stay in their order.
    all.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    all.into_iter().map(|finding| finding.text).collect()
}

/// A transport as people write it; other names stay as they are.
fn display(name: &str) -> String {
    match name {
        "bot" | "uas" | "uasp" | "sata" => name.to_uppercase(),
        "turbo" => "Turbo".to_owned(),
        other => other.to_owned(),
    }
}

fn by_job<'a>(rows: &'a [JobRates<'a>]) -> Vec<Vec<&'a JobRates<'a>>> {
    let mut jobs: Vec<Vec<&JobRates<'_>>> = Vec::new();
    for row in rows {
        match jobs.iter_mut().find(|job| job.iter().any(|other| other.label == row.label)) {
            Some(job) => job.push(row),
            None => jobs.push(vec![row]),
        }
    }
    jobs
}

fn why_no_better(column: &Configuration) -> Option<String> {
    let reason = column.activation.decisive()?;
    let (asked, bound) = (&column.assembly.driver, &column.activation.driver);
    (asked != bound).then(|| {
        format!("{}: driver {bound} binds instead of {asked}, since {}", column.name, reason.because)
    })
}

impl Seen<'_> {
    fn findings(&self) -> Vec<Finding> {
        if self.names.len() <= FEW { self.of_few() } else { self.of_many() }
    }

    /// Each job in full, and at last where nothing differs.
    fn of_few(&self) -> Vec<Finding> {
        let (mut all, mut flat) = (Vec::new(), Vec::new());
        for rows in &self.jobs {
            let Some(last) = rows.last() else { continue };
            if self.pairs.len() <= PAIRS_EACH_MAX {
                all.extend(self.pairs.iter().filter_map(|&(bot, uas)| self.between(bot, uas, rows)));
            } else if let Some(gains) = self.best_and_worst(last) {
                let text = format!("{} at QD{}: {gains}", last.label, last.depth);
                all.push(Finding { weight: self.far(last), text });
            }
            match self.scaling(rows) {
                Some(finding) => all.push(finding),
                None if self.has_depths(rows) => flat.push(last.label),
                None => {}
            }
        }
        if self.pairs.len() <= PAIRS_EACH_MAX {
            all.extend(self.pairs.iter().filter_map(|&(bot, uas)| self.equal(bot, uas)));
        }
        if !flat.is_empty() {
            let text = format!("Queue depth makes no difference in {}", listed(&flat));
            all.push(Finding { weight: 0.0, text });
        }
        all
    }

    /// Each job where most requests are in flight, and which way gains and loses most by depth.
    fn of_many(&self) -> Vec<Finding> {
        self.jobs.iter().filter_map(|rows| self.at_most_depth(rows)).chain(self.most_by_depth()).collect()
    }

    /// How far the transports are apart in a row, over all pairs.
    fn far(&self, row: &JobRates<'_>) -> f64 {
        self.gains(row).iter().map(|gain| gain.ratio.ln().abs()).fold(0.0, f64::max)
    }

    /// How UAS compares to BOT at the highest depth, and at the lowest in brackets; nothing where both are equal throughout.
    fn between(&self, bot: usize, uas: usize, rows: &[&JobRates<'_>]) -> Option<Finding> {
        let (shallow, deep) = ratios(bot, uas, rows)?;
        if is_same(shallow) && is_same(deep) {
            return None;
        }
        let (first, last) = (rows.first()?, rows.last()?);
        let at_first = if rows.len() > 1 && short(shallow) != short(deep) {
            format!(" ({} at QD{})", short(shallow), first.depth)
        } else {
            String::new()
        };
        let text = format!(
            "{}: {} {} at QD{}{at_first}{}",
            last.label,
            self.names[uas],
            than(deep, &self.names[bot]),
            last.depth,
            Saturation::of(rows, uas).clause(),
        );
        Some(Finding { weight: deep.ln().abs().max(shallow.ln().abs()), text })
    }

    /// The jobs in which both are equal at the lowest depth and at the highest.
    fn equal(&self, bot: usize, uas: usize) -> Option<Finding> {
        let is_equal = |rows: &&Vec<&JobRates<'_>>| {
            ratios(bot, uas, rows).is_some_and(|(shallow, deep)| is_same(shallow) && is_same(deep))
        };
        let labels: Vec<&str> =
            self.jobs.iter().filter(is_equal).filter_map(|rows| Some(rows.first()?.label)).collect();
        let text = format!("{} equals {} in {}", self.names[uas], self.names[bot], listed(&labels));
        (!labels.is_empty()).then_some(Finding { weight: SAME / 2.0, text })
    }

    /// Reports how the rate of each column changes with depth; none if none does.
    fn scaling(&self, rows: &[&JobRates<'_>]) -> Option<Finding> {
        let (first, last) = (rows.first()?, rows.last()?);
        let (mut changes, mut flat, mut weight) = (Vec::new(), Vec::new(), 0.0_f64);
        for (number, name) in self.names.iter().enumerate() {
            let Some((_, ratio)) = over_depth(rows, number) else { continue };
            if is_same(ratio) {
                flat.push(name);
                continue;
            }
            weight = weight.max(ratio.ln().abs());
            let change = if ratio < 1.0 {
                format!("loses {}", percent_lost(ratio))
            } else {
                format!("scales {}{}", times(ratio), Saturation::of(rows, number).note())
            };
            changes.push(format!("{name} {change}"));
        }
        if changes.is_empty() {
            return None;
        }
        match flat.len() {
            0 => {}
            1 => changes.push(format!("{} does not scale", flat[0])),
            2..=NAMES_MAX => changes.push(format!("{} do not scale", listed(&flat))),
            others => changes.push(format!("the other {others} do not scale")),
        }
        let text = format!("{}, QD{} to QD{}: {}", first.label, first.depth, last.depth, changes.join("; "));
        Some(Finding { weight: weight * SCALING_WEIGHT, text })
    }

    /// Whether some column has rates at several depths; asked where [none changes](Self::scaling).
    fn has_depths(&self, rows: &[&JobRates<'_>]) -> bool {
        (0..self.names.len()).any(|number| over_depth(rows, number).is_some())
    }

    /// The fastest way, and what UAS gains, where most requests are in flight.
    fn at_most_depth(&self, rows: &[&JobRates<'_>]) -> Option<Finding> {
        let row = rows.last()?;
        let fastest = |is_usb: bool| {
            let of = (0..self.names.len()).filter(|&number| !is_usb || !self.is_sata[number]);
            let known = of.filter_map(|number| Some((number, figure(row, number)?)));
            // The first of those that are alike.
            known.reduce(|best, other| if other.1 > best.1 { other } else { best })
        };
        let first = fastest(false)?;
        let mut text = format!(
            "{} at QD{}: {} is fastest, {:.1} MB/s",
            row.label, row.depth, self.names[first.0], first.1
        );
        if let Some((number, rate)) = fastest(true).filter(|other| other.0 != first.0) {
            text += &format!("; over USB, {} with {rate:.1} MB/s", self.names[number]);
        }
        if let Some(gains) = self.best_and_worst(row) {
            text += &format!("; {gains}");
        }
        Some(Finding { weight: self.far(row), text })
    }

    fn gains(&self, row: &JobRates<'_>) -> Vec<Gain> {
        let gain = |&(bot, uas): &(usize, usize)| {
            let ratio = figure(row, uas)? / figure(row, bot)?;
            (ratio.is_finite() && ratio > 0.0).then_some(Gain { bot, uas, ratio })
        };
        self.pairs.iter().filter_map(gain).collect()
    }

    /// Of all pairs the one that gains most by UAS, and the one that gains least or loses most.
    fn best_and_worst(&self, row: &JobRates<'_>) -> Option<String> {
        let gains = self.gains(row);
        let of = |gain: Gain| format!("{} {}", self.names[gain.uas], than(gain.ratio, &self.names[gain.bot]));
        let best = *gains.iter().max_by(|one, other| one.ratio.total_cmp(&other.ratio))?;
        let worst = *gains.iter().min_by(|one, other| one.ratio.total_cmp(&other.ratio))?;
        Some(match gains.len() {
            1 => of(best),
            count if is_same(best.ratio / worst.ratio) => {
                format!("all {count} pairs of BOT and UAS have about the same ratio: {}", of(best))
            }
            count => format!("of {count} pairs of BOT and UAS, best: {}; worst: {}", of(best), of(worst)),
        })
    }

    /// Which way gains most from depth, and which loses most.
    fn most_by_depth(&self) -> Option<Finding> {
        let mut all = Vec::new();
        for rows in &self.jobs {
            let (Some(first), Some(last)) = (rows.first(), rows.last()) else { continue };
            for (number, name) in self.names.iter().enumerate() {
                if let Some((_, ratio)) = over_depth(rows, number).filter(|(_, ratio)| !is_same(*ratio)) {
                    all.push((
                        ratio,
                        name,
                        format!("{}, QD{} to QD{}", first.label, first.depth, last.depth),
                    ));
                }
            }
        }
        let most = all.iter().reduce(|best, other| if other.0 > best.0 { other } else { best });
        let least = all.iter().reduce(|least, other| if other.0 < least.0 { other } else { least });
        let (most, least) = (most.filter(|most| most.0 > 1.0), least.filter(|least| least.0 < 1.0));
        let gains = most.map(|(ratio, name, job)| format!("{name} scales most: {} in {job}", times(*ratio)));
        let loses =
            least.map(|(ratio, name, job)| format!("{name} loses most: {} in {job}", percent_lost(*ratio)));
        let ratios = most.iter().chain(&least).map(|(ratio, ..)| ratio.ln().abs());
        let weight = SCALING_WEIGHT * ratios.fold(0.0, f64::max);
        let both: Vec<String> = gains.into_iter().chain(loses).collect();
        (!both.is_empty()).then(|| Finding { weight, text: both.join("; ") })
    }
}

fn figure(row: &JobRates<'_>, column: usize) -> Option<f64> {
    Some(row.of.get(column)?.as_ref()?.mb_per_s)
}

/// The rates of UAS as multiples of those of BOT, at the lowest depth and at the highest.
fn ratios(bot: usize, uas: usize, rows: &[&JobRates<'_>]) -> Option<(f64, f64)> {
    let ratio = |row: &JobRates<'_>| {
        let ratio = figure(row, uas)? / figure(row, bot)?;
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    };
    Some((ratio(rows.first()?)?, ratio(rows.last()?)?))
}

/// The rates of a column at all depths, if it has all and there are several, and the last as a multiple of the first.
fn over_depth(rows: &[&JobRates<'_>], column: usize) -> Option<(Vec<f64>, f64)> {
    let figures: Vec<f64> = rows.iter().map(|row| figure(row, column)).collect::<Option<_>>()?;
    let [first, .., last] = figures[..] else { return None };
    let ratio = last / first;
    (ratio.is_finite() && ratio > 0.0).then_some((figures, ratio))
}

/// Where a column stops to gain, and what limits it at the highest depth.
struct Saturation {
    /// The depth from which on it gains little; none if it never gains, or gains up to the end.
    at: Option<u16>,
    bottleneck: Option<Bottleneck>,
}

impl Saturation {
    fn of(rows: &[&JobRates<'_>], column: usize) -> Self {
        let over_depth = over_depth(rows, column);
        let at = over_depth.as_ref().and_then(|(figures, ratio)| {
            let most = figures.iter().copied().fold(0.0, f64::max);
            let enough = figures.iter().position(|figure| *figure >= most * ENOUGH)?;
            let is_within = *ratio > 1.0 + SAME && (1..figures.len() - 1).contains(&enough);
            is_within.then(|| rows[enough].depth)
        });
        let flat = over_depth.filter(|(_, ratio)| is_same(*ratio)).and_then(|_| Some(rows.first()?.depth));
        let last = rows.last().and_then(|row| row.of.get(column).copied().flatten());
        Self { at, bottleneck: last.and_then(|rate| rate.limits.bottleneck(at.or(flat))) }
    }

    /// After the figure of the highest depth.
    fn clause(&self) -> String {
        let at = self.at.map_or_else(String::new, |depth| format!(" and saturates at QD{depth}"));
        let by = self.bottleneck.map_or_else(String::new, |by| format!(", where {by} is the bottleneck"));
        at + &by
    }

    /// After a factor, in a list.
    fn note(&self) -> String {
        let at = self.at.map_or_else(String::new, |depth| format!(", saturating at QD{depth}"));
        let by = self.bottleneck.map_or_else(String::new, |by| format!(" (bottleneck: {by})"));
        at + &by
    }
}

fn is_same(ratio: f64) -> bool {
    (ratio - 1.0).abs() <= SAME
}

/// How much less it is, of what was there.
fn percent_lost(ratio: f64) -> String {
    format!("{:.0} %", (1.0 - ratio) * 100.0)
}

/// A multiple, with two digits at least.
fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 2.0 => format!("{ratio:.2}x"),
        ratio if ratio < 10.0 => format!("{ratio:.1}x"),
        ratio => format!("{ratio:.0}x"),
    }
}

/// How fast something is compared to another, which a reader knows.
pub fn short(ratio: f64) -> String {
    match ratio {
        ratio if is_same(ratio) => "equal".into(),
        ratio if ratio < 1.0 => format!("{} slower", percent_lost(ratio)),
        ratio => format!("{} as fast", times(ratio)),
    }
}

/// The same, with a verb and the other one.
pub fn than(ratio: f64, other: &str) -> String {
    match ratio {
        ratio if is_same(ratio) => format!("equals {other}"),
        ratio if ratio < 1.0 => format!("is {} slower than {other}", percent_lost(ratio)),
        ratio => format!("is {} as fast as {other}", times(ratio)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::bottleneck::tests::always;
    use super::*;

    fn rates<'a>(label: &'a str, depth: u16, mb_per_s: &[f64]) -> JobRates<'a> {
        let known = |rate: &f64| (*rate > 0.0).then_some(Rate { mb_per_s: *rate, limits: Limits::default() });
        JobRates { label, depth, of: mb_per_s.iter().map(known).collect() }
    }

    /// The findings about these ways, of which those that begin with `sata` have no USB.
    fn found(names: &[&str], pairs: &[(usize, usize)], rows: &[JobRates<'_>]) -> Vec<String> {
        let is_sata = names.iter().map(|name| name.starts_with("sata")).collect();
        let names = names.iter().map(|name| display(name)).collect();
        by_weight(Seen { names, is_sata, pairs: pairs.to_vec(), jobs: by_job(rows) }.findings())
    }

    #[test]
    fn more_is_a_multiple_and_less_a_share() {
        let than = [0.2, 0.85, 0.96, 1.04, 1.11, 3.49, 12.4].map(|ratio| than(ratio, "BOT"));
        let right = [
            "is 80 % slower than BOT",
            "is 15 % slower than BOT",
            "equals BOT",
            "equals BOT",
            "is 1.11x as fast as BOT",
            "is 3.5x as fast as BOT",
            "is 12x as fast as BOT",
        ];
        assert_eq!(than, right);
    }

    #[test]
    fn a_job_of_few_ways_leads_with_the_transports_and_names_the_bottleneck() {
        let mut rows = [
            rates("4K random read", 1, &[52.0, 30.0, 30.0]),
            rates("4K random read", 4, &[140.0, 30.0, 101.0]),
            rates("4K random read", 32, &[364.0, 30.0, 105.0]),
        ];
        let names = ["sata", "bot", "uasp"];
        let unknown = found(&names, &[(1, 2)], &rows);
        assert_eq!(
            unknown,
            [
                "4K random read: UASP is 3.5x as fast as BOT at QD32 (equal at QD1) and saturates at QD4",
                "4K random read, QD1 to QD32: SATA scales 7.0x; UASP scales 3.5x, saturating at QD4; BOT does not scale",
            ]
        );
        let uasp = rows[2].of[2].as_mut().expect("it has a rate");
        uasp.limits = always(Bottleneck::HostCore);
        assert_eq!(
            found(&names, &[(1, 2)], &rows)[0],
            "4K random read: UASP is 3.5x as fast as BOT at QD32 (equal at QD1) and saturates at QD4, where the host core \
             is the bottleneck"
        );
    }

    #[test]
    fn the_largest_difference_comes_first() {
        let rows = [
            rates("writes", 1, &[30.0, 30.0]),
            rates("writes", 8, &[30.0, 36.0]),
            rates("reads", 1, &[30.0, 30.0]),
            rates("reads", 8, &[30.0, 120.0]),
            rates("copies", 1, &[30.0, 30.0]),
            rates("copies", 8, &[30.0, 30.0]),
        ];
        assert_eq!(
            found(&["bot", "uasp"], &[(0, 1)], &rows),
            [
                "reads: UASP is 4.0x as fast as BOT at QD8 (equal at QD1)",
                "reads, QD1 to QD8: UASP scales 4.0x; BOT does not scale",
                "writes: UASP is 1.20x as fast as BOT at QD8 (equal at QD1)",
                "writes, QD1 to QD8: UASP scales 1.20x; BOT does not scale",
                "UASP equals BOT in copies",
                "Queue depth makes no difference in copies",
            ]
        );
    }

    #[test]
    fn a_fall_is_reported_as_a_loss() {
        let rows = [rates("writes", 1, &[50.0, 40.0]), rates("writes", 32, &[10.0, 40.0])];
        assert_eq!(
            found(&["uasp", "bot"], &[(1, 0)], &rows),
            [
                "writes: UASP is 75 % slower than BOT at QD32 (1.25x as fast at QD1)",
                "writes, QD1 to QD32: UASP loses 80 %; BOT does not scale",
            ]
        );
    }

    #[test]
    fn ways_that_do_not_change_are_counted_and_not_listed() {
        let names = ["sata", "bot", "turbo", "uasp"];
        let rows = [
            rates("reads", 1, &[500.0, 300.0, 340.0, 300.0]),
            rates("reads", 4, &[500.0, 300.0, 340.0, 400.0]),
            rates("writes", 1, &[500.0, 300.0, 340.0, 300.0]),
            rates("writes", 4, &[500.0, 300.0, 340.0, 300.0]),
            rates("copies", 1, &[500.0, 300.0, 340.0, 300.0]),
            rates("copies", 4, &[500.0, 300.0, 340.0, 300.0]),
        ];
        assert_eq!(
            found(&names, &[(1, 3)], &rows)[1..],
            [
                "reads, QD1 to QD4: UASP scales 1.33x; the other 3 do not scale",
                "UASP equals BOT in writes and copies",
                "Queue depth makes no difference in writes and copies",
            ]
        );
    }

    #[test]
    fn a_rate_that_depth_does_not_change_has_its_limit_named_at_once() {
        let mut rows = [rates("reads", 1, &[30.0, 40.0]), rates("reads", 4, &[30.0, 40.0])];
        rows[1].of[1].as_mut().expect("it has a rate").limits = always(Bottleneck::Link);
        assert_eq!(
            found(&["bot", "uasp"], &[(0, 1)], &rows)[0],
            "reads: UASP is 1.33x as fast as BOT at QD4, where the USB link is the bottleneck"
        );
    }

    #[test]
    fn of_many_ways_the_fastest_and_the_ends_of_all_pairs_are_named() {
        let names = ["sata", "a-bot", "a-turbo", "a-uas", "b-bot", "b-uas", "c-bot"];
        let rows = [
            rates("writes", 8, &[500.0, 100.0, 100.0, 90.0, 100.0, 80.0, 90.0]),
            rates("reads", 1, &[50.0, 30.0, 30.0, 30.0, 30.0, 20.0, 30.0]),
            rates("reads", 32, &[350.0, 30.0, 36.0, 105.0, 30.0, 15.0, 30.0]),
        ];
        assert_eq!(
            found(&names, &[(1, 3), (4, 5)], &rows),
            [
                "reads at QD32: SATA is fastest, 350.0 MB/s; over USB, a-uas with 105.0 MB/s; of 2 pairs of BOT and UAS, \
                 best: a-uas is 3.5x as fast as a-bot; worst: b-uas is 50 % slower than b-bot",
                "SATA scales most: 7.0x in reads, QD1 to QD32; b-uas loses most: 25 % in reads, QD1 to QD32",
                "writes at QD8: SATA is fastest, 500.0 MB/s; over USB, a-bot with 100.0 MB/s; of 2 pairs of BOT and UAS, \
                 best: a-uas is 10 % slower than a-bot; worst: b-uas is 20 % slower than b-bot",
            ]
        );
    }

    #[test]
    fn of_many_ways_each_job_has_one_sentence() {
        let names: Vec<String> = (0..15).map(|way| format!("way-{way}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let labels: Vec<String> = (0..20).map(|job| format!("job {job}")).collect();
        let row = |job: usize| rates(&labels[job], 1, &[1.0 + job as f64; 15]);
        let rows: Vec<_> = (0..20).map(row).collect();
        let found = found(&names, &[(0, 1), (2, 3)], &rows);
        assert_eq!(found.len(), 20);
        assert_eq!(
            found[0],
            "job 0 at QD1: way-0 is fastest, 1.0 MB/s; all 2 pairs of BOT and UAS have about the same ratio: way-3 equals way-2"
        );
    }

    #[test]
    fn where_a_figure_is_missing_so_is_the_sentence() {
        let rows = [rates("reads", 1, &[0.0, 30.0]), rates("reads", 4, &[10.0, 30.0])];
        let names = ["bot", "uasp"];
        assert_eq!(found(&names, &[(0, 1)], &rows), ["Queue depth makes no difference in reads"]);
        assert_eq!(found(&names, &[(0, 1)], &[]), [""; 0]);
    }
}
