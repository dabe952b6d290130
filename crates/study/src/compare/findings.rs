//! What came out of a comparison, in sentences.
//!
//! Each sentence is a rule over figures; where a figure is missing, so is the sentence. Of few ways each job is told: how transports stand to
//! each other, and what each way gains from depth. Of many it is told which way is the fastest, and of all pairs that differ in the
//! driver alone the one that gains most by UAS and the one that gains least; the most telling jobs first, and no more of them than a reader
//! reads. Always true: nothing is said that the table or the page beside it does not show: figures are of one seed or means, as they are there.

use super::{Column, Row, pairs};
use crate::page::Measured;
use crate::plural::{counted_len, listed};

/// What counts as no difference, as a share.
const SAME: f64 = 0.05;

/// What counts as nearly all, as a share.
const ENOUGH: f64 = 0.9;

/// Ways of which each job is told in full.
const FEW: usize = 6;

/// Pairs that each have a sentence.
const PAIRS_EACH_MAX: usize = 2;

/// Ways on another driver than the one asked for that have a sentence each.
const REASONS_MAX: usize = 3;

/// Jobs of many ways that have a sentence.
const JOBS_MAX: usize = 7;

/// Ways for which nothing changes that are named.
const NAMES_MAX: usize = 2;

/// What is shown of a job, of each column in millions of bytes a second.
pub struct Told<'a> {
    label: &'a str,
    depth: u16,
    mb_per_s: Vec<Option<f64>>,
}

impl<'a> From<&'a Row> for Told<'a> {
    fn from(row: &'a Row) -> Self {
        let mb_per_s = row.trials.iter().map(|trial| Some(trial.measured.megabytes_per_second()));
        Self { label: &row.job.label, depth: row.job.depth, mb_per_s: mb_per_s.collect() }
    }
}

impl<'a> From<&'a Measured> for Told<'a> {
    fn from(row: &'a Measured) -> Self {
        let mb_per_s = row.of.iter().map(|values| Some(values.as_ref()?.mb_per_s.value));
        Self { label: &row.job.label, depth: row.job.depth, mb_per_s: mb_per_s.collect() }
    }
}

/// What findings are about.
struct Seen<'a> {
    names: Vec<&'a str>,
    /// Whether a column has no USB.
    is_sata: Vec<bool>,
    /// A column on BOT and one on UAS each, which differ in the driver alone.
    pairs: Vec<(usize, usize)>,
    /// Rows by job, from few requests under way to many.
    jobs: Vec<Vec<&'a Told<'a>>>,
}

/// Columns on BOT and on UAS, and the rates of the second, as a multiple of those of the first.
#[derive(Clone, Copy)]
struct Gain {
    bot: usize,
    uas: usize,
    ratio: f64,
}

/// The findings, the most important first.
pub fn findings(columns: &[Column], rows: &[Told<'_>]) -> Vec<String> {
    let seen = Seen {
        names: columns.iter().map(|column| column.name.as_str()).collect(),
        is_sata: columns.iter().map(|column| column.transport() == "sata").collect(),
        pairs: pairs(columns).collect(),
        jobs: by_job(rows),
    };
    let reasons = columns.iter().filter_map(why_no_better).collect();
    bounded(reasons).into_iter().chain(seen.sentences()).collect()
}

fn by_job<'a>(rows: &'a [Told<'a>]) -> Vec<Vec<&'a Told<'a>>> {
    let mut jobs: Vec<Vec<&Told<'_>>> = Vec::new();
    for row in rows {
        match jobs.iter_mut().find(|job| job.iter().any(|other| other.label == row.label)) {
            Some(job) => job.push(row),
            None => jobs.push(vec![row]),
        }
    }
    jobs
}

fn why_no_better(column: &Column) -> Option<String> {
    let reason = column.activation.decisive()?;
    let asked = &column.assembly.driver;
    (*asked != column.activation.driver).then(|| {
        format!(
            "{}: {} has the drive and not {asked}, since {}",
            column.name, column.activation.driver, reason.because
        )
    })
}

/// The first of them; how many more there are is said in the last.
fn bounded(mut reasons: Vec<String>) -> Vec<String> {
    if reasons.len() > REASONS_MAX + 1 {
        let more = reasons.len() - REASONS_MAX;
        reasons.truncate(REASONS_MAX);
        reasons.push(format!("{more} more have another driver than the one asked for"));
    }
    reasons
}

impl Seen<'_> {
    fn sentences(&self) -> Vec<String> {
        if self.names.len() <= FEW { self.of_few() } else { self.of_many() }
    }

    /// Each job in full, and at last where depth changes nothing.
    fn of_few(&self) -> Vec<String> {
        let (mut all, mut unchanged) = (Vec::new(), Vec::new());
        for rows in &self.jobs {
            let Some(last) = rows.last() else { continue };
            if self.pairs.len() <= PAIRS_EACH_MAX {
                all.extend(self.pairs.iter().filter_map(|&pair| self.between(pair, rows)));
            } else if let Some(gains) = self.best_and_worst(last) {
                all.push(format!("{} at depth {}: {gains}", last.label, last.depth));
            }
            match self.by_depth(rows) {
                Some(sentence) => all.push(sentence),
                None if self.is_flat(rows) => unchanged.push(last.label),
                None => {}
            }
        }
        if !unchanged.is_empty() {
            all.push(format!("Depth changes nothing in {}", listed(&unchanged)));
        }
        all
    }

    /// The most telling jobs where most requests are under way, and who gains and loses most by depth.
    fn of_many(&self) -> Vec<String> {
        let far = |rows: &&Vec<&Told<'_>>| {
            let gains = rows.last().map(|last| self.gains(last)).unwrap_or_default();
            gains.iter().map(|gain| gain.ratio.ln().abs()).fold(0.0, f64::max)
        };
        let mut jobs: Vec<_> = self.jobs.iter().collect();
        jobs.sort_by(|one, other| far(other).total_cmp(&far(one)));
        let mut all: Vec<String> =
            jobs.iter().take(JOBS_MAX).filter_map(|rows| self.at_most_depth(rows)).collect();
        if jobs.len() > JOBS_MAX {
            let more = jobs.len() - JOBS_MAX;
            all.push(format!("{} more: see the table", counted_len(more, "job")));
        }
        all.extend(self.most_by_depth());
        all
    }

    /// How two transports stand to each other where fewest requests are under way, and where most are.
    fn between(&self, (bot, uas): (usize, usize), rows: &[&Told<'_>]) -> Option<String> {
        let (first, last) = (rows.first()?, rows.last()?);
        let ratio = |row: &Told<'_>| Some(figure(row, uas)? / figure(row, bot)?);
        let (alone, together) = (ratio(first)?, ratio(last)?);
        let (bot, uas, label) = (self.names[bot], self.names[uas], first.label);
        let (shallow, deep) = (first.depth, last.depth);
        Some(if rows.len() == 1 {
            format!("{label} at depth {deep}: {uas} moves {} {bot}", than(alone))
        } else if times(alone) == times(together) {
            format!("{label}: {uas} moves {} {bot} at depths {shallow} and {deep}", than(alone))
        } else {
            let (alone, together) = (than(alone), times(together));
            format!("{label}: {uas} moves {alone} {bot} at depth {shallow}, {together} at depth {deep}")
        })
    }

    /// What each column gains from depth; none if none does.
    fn by_depth(&self, rows: &[&Told<'_>]) -> Option<String> {
        let (first, last) = (rows.first()?, rows.last()?);
        let (mut changes, mut flat) = (Vec::new(), Vec::new());
        for (number, &name) in self.names.iter().enumerate() {
            let Some((figures, ratio)) = over_depth(rows, number) else { continue };
            if is_same(ratio) {
                flat.push(name);
                continue;
            }
            let change = if ratio < 1.0 {
                format!("loses {}", percent_lost(ratio))
            } else {
                format!("makes {ratio:.1} times as much{}", nearly_all(rows, &figures))
            };
            changes.push(format!("{name} {change}"));
        }
        if changes.is_empty() {
            return None;
        }
        match flat.len() {
            0 => {}
            1..=NAMES_MAX => changes.push(format!("nothing changes for {}", listed(&flat))),
            others => changes.push(format!("nothing changes for the other {others}")),
        }
        Some(format!("{}, from depth {} to {}: {}", first.label, first.depth, last.depth, changes.join("; ")))
    }

    /// Whether some column has figures at several depths; asked where [none changes](Self::by_depth).
    fn is_flat(&self, rows: &[&Told<'_>]) -> bool {
        (0..self.names.len()).any(|number| over_depth(rows, number).is_some())
    }

    /// The fastest way, and what UAS gains, where most requests are under way.
    fn at_most_depth(&self, rows: &[&Told<'_>]) -> Option<String> {
        let row = rows.last()?;
        let fastest = |is_usb: bool| {
            let of = (0..self.names.len()).filter(|&number| !is_usb || !self.is_sata[number]);
            let known = of.filter_map(|number| Some((number, figure(row, number)?)));
            // The first of those that are alike.
            known.reduce(|best, other| if other.1 > best.1 { other } else { best })
        };
        let told = |(number, rate): (usize, f64)| {
            format!("{} is the fastest with {rate:.1} MB/s", self.names[number])
        };
        let first = fastest(false)?;
        let mut sentence = format!("{} at depth {}: {}", row.label, row.depth, told(first));
        if let Some((number, rate)) = fastest(true).filter(|other| other.0 != first.0) {
            sentence += &format!(", over USB {} with {rate:.1}", self.names[number]);
        }
        if let Some(gains) = self.best_and_worst(row) {
            sentence += &format!("; {gains}");
        }
        Some(sentence)
    }

    fn gains(&self, row: &Told<'_>) -> Vec<Gain> {
        let gain = |&(bot, uas): &(usize, usize)| {
            let ratio = figure(row, uas)? / figure(row, bot)?;
            (ratio.is_finite() && ratio > 0.0).then_some(Gain { bot, uas, ratio })
        };
        self.pairs.iter().filter_map(gain).collect()
    }

    /// Of all pairs the one that gains most by UAS, and the one that gains least or loses most.
    fn best_and_worst(&self, row: &Told<'_>) -> Option<String> {
        let gains = self.gains(row);
        let of = |gain: Gain| {
            format!("{} moves {} {}", self.names[gain.uas], than(gain.ratio), self.names[gain.bot])
        };
        let best = *gains.iter().max_by(|one, other| one.ratio.total_cmp(&other.ratio))?;
        let worst = *gains.iter().min_by(|one, other| one.ratio.total_cmp(&other.ratio))?;
        Some(match gains.len() {
            1 => of(best),
            _ if is_same(best.ratio / worst.ratio) => {
                format!("all {} pairs of BOT and UAS are alike: {}", gains.len(), of(best))
            }
            count => {
                format!("of {count} pairs of BOT and UAS the best: {}; the worst: {}", of(best), of(worst))
            }
        })
    }

    /// Who gains most from depth, and who loses most.
    fn most_by_depth(&self) -> Option<String> {
        let mut all = Vec::new();
        for rows in &self.jobs {
            let (Some(first), Some(last)) = (rows.first(), rows.last()) else { continue };
            for (number, &name) in self.names.iter().enumerate() {
                if let Some((_, ratio)) = over_depth(rows, number).filter(|(_, ratio)| !is_same(*ratio)) {
                    let where_ = format!("{} from depth {} to {}", first.label, first.depth, last.depth);
                    all.push((ratio, name, where_));
                }
            }
        }
        let most = all.iter().reduce(|best, other| if other.0 > best.0 { other } else { best });
        let least = all.iter().reduce(|least, other| if other.0 < least.0 { other } else { least });
        let gains = most.filter(|most| most.0 > 1.0).map(|(ratio, name, place)| {
            format!("depth does most for {name}, which makes {ratio:.1} times as much in {place}")
        });
        let loses = least.filter(|least| least.0 < 1.0).map(|(ratio, name, place)| {
            format!("depth harms {name} most, which loses {} in {place}", percent_lost(*ratio))
        });
        let both: Vec<String> = gains.into_iter().chain(loses).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }
}

fn figure(row: &Told<'_>, column: usize) -> Option<f64> {
    *row.mb_per_s.get(column)?
}

/// The figures of a column at all depths, if it has all and there are several, and the last as a multiple of the first.
fn over_depth(rows: &[&Told<'_>], column: usize) -> Option<(Vec<f64>, f64)> {
    let figures: Vec<f64> = rows.iter().map(|row| figure(row, column)).collect::<Option<_>>()?;
    let [first, .., last] = figures[..] else { return None };
    let ratio = last / first;
    ratio.is_finite().then_some((figures, ratio))
}

/// The depth from which on little is left to gain; where there is little to gain at all, no depth is worth a word.
fn nearly_all(rows: &[&Told<'_>], figures: &[f64]) -> String {
    let end = figures.last().copied().unwrap_or_default();
    let enough = figures.iter().position(|figure| *figure >= end * ENOUGH);
    enough
        .filter(|at| (1..figures.len() - 1).contains(at))
        .map_or_else(String::new, |at| format!(", nearly all of it by depth {}", rows[at].depth))
}

fn is_same(ratio: f64) -> bool {
    (ratio - 1.0).abs() <= SAME
}

/// How much less it is, of what was there.
fn percent_lost(ratio: f64) -> String {
    format!("{:.0} %", (1.0 - ratio) * 100.0)
}

/// How much is moved, compared to another: more as a multiple, less as a share.
fn times(ratio: f64) -> String {
    match ratio {
        ratio if is_same(ratio) => "as much".into(),
        ratio if ratio < 1.0 => format!("{} less", percent_lost(ratio)),
        ratio => format!("{ratio:.2} times as much"),
    }
}

/// The same, with the other to follow.
fn than(ratio: f64) -> String {
    times(ratio) + if ratio < 1.0 && !is_same(ratio) { " than" } else { " as" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told<'a>(label: &'a str, depth: u16, mb_per_s: &[f64]) -> Told<'a> {
        let known = |rate: &f64| (*rate > 0.0).then_some(*rate);
        Told { label, depth, mb_per_s: mb_per_s.iter().map(known).collect() }
    }

    /// What is said of these ways, of which those that begin with `sata` have no USB.
    fn said(names: &[&str], pairs: &[(usize, usize)], rows: &[Told<'_>]) -> Vec<String> {
        let is_sata = names.iter().map(|name| name.starts_with("sata")).collect();
        Seen { names: names.to_vec(), is_sata, pairs: pairs.to_vec(), jobs: by_job(rows) }.sentences()
    }

    #[test]
    fn more_is_a_multiple_and_less_a_share() {
        let than = [0.2, 0.85, 0.96, 1.04, 1.11, 3.49].map(than);
        let right = [
            "80 % less than",
            "15 % less than",
            "as much as",
            "as much as",
            "1.11 times as much as",
            "3.49 times as much as",
        ];
        assert_eq!(than, right);
    }

    #[test]
    fn few_ways_are_told_job_by_job() {
        let rows = [
            told("reads", 1, &[52.0, 30.0, 30.0]),
            told("reads", 4, &[140.0, 30.0, 101.0]),
            told("reads", 32, &[364.0, 30.0, 105.0]),
        ];
        let said = said(&["sata", "bot", "uasp"], &[(1, 2)], &rows);
        assert_eq!(
            said,
            [
                "reads: uasp moves as much as bot at depth 1, 3.50 times as much at depth 32",
                "reads, from depth 1 to 32: sata makes 7.0 times as much; uasp makes 3.5 times as much, nearly all of it \
                 by depth 4; nothing changes for bot",
            ]
        );
    }

    #[test]
    fn a_fall_is_told_as_a_loss() {
        let rows = [told("writes", 1, &[50.0, 40.0]), told("writes", 32, &[10.0, 40.0])];
        assert_eq!(
            said(&["uasp", "bot"], &[(1, 0)], &rows),
            [
                "writes: uasp moves 1.25 times as much as bot at depth 1, 75 % less at depth 32",
                "writes, from depth 1 to 32: uasp loses 80 %; nothing changes for bot",
            ]
        );
    }

    #[test]
    fn what_does_not_change_is_not_listed_at_length() {
        let names = ["sata", "bot", "turbo", "uasp"];
        let rows = [
            told("reads", 1, &[500.0, 300.0, 340.0, 300.0]),
            told("reads", 4, &[500.0, 300.0, 340.0, 400.0]),
            told("writes", 1, &[500.0, 300.0, 340.0, 300.0]),
            told("writes", 4, &[500.0, 300.0, 340.0, 300.0]),
            told("copies", 1, &[500.0, 300.0, 340.0, 300.0]),
            told("copies", 4, &[500.0, 300.0, 340.0, 300.0]),
        ];
        assert_eq!(
            said(&names, &[(1, 3)], &rows)[1..],
            [
                "reads, from depth 1 to 4: uasp makes 1.3 times as much; nothing changes for the other 3",
                "writes: uasp moves as much as bot at depths 1 and 4",
                "copies: uasp moves as much as bot at depths 1 and 4",
                "Depth changes nothing in writes and copies",
            ]
        );
    }

    #[test]
    fn of_many_ways_the_fastest_and_the_ends_of_all_pairs_are_told() {
        let names = ["sata", "a-bot", "a-turbo", "a-uas", "b-bot", "b-uas", "c-bot"];
        let rows = [
            told("writes", 8, &[500.0, 100.0, 100.0, 90.0, 100.0, 80.0, 90.0]),
            told("reads", 1, &[50.0, 30.0, 30.0, 30.0, 30.0, 20.0, 30.0]),
            told("reads", 32, &[350.0, 30.0, 36.0, 105.0, 30.0, 15.0, 30.0]),
        ];
        assert_eq!(
            said(&names, &[(1, 3), (4, 5)], &rows),
            [
                "reads at depth 32: sata is the fastest with 350.0 MB/s, over USB a-uas with 105.0; of 2 pairs of BOT \
                 and UAS the best: a-uas moves 3.50 times as much as a-bot; the worst: b-uas moves 50 % less than b-bot",
                "writes at depth 8: sata is the fastest with 500.0 MB/s, over USB a-bot with 100.0; of 2 pairs of BOT \
                 and UAS the best: a-uas moves 10 % less than a-bot; the worst: b-uas moves 20 % less than b-bot",
                "depth does most for sata, which makes 7.0 times as much in reads from depth 1 to 32; depth harms b-uas \
                 most, which loses 25 % in reads from depth 1 to 32",
            ]
        );
    }

    #[test]
    fn of_many_ways_no_more_is_told_than_is_read() {
        let names: Vec<String> = (0..15).map(|way| format!("way-{way}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let labels: Vec<String> = (0..20).map(|job| format!("job {job}")).collect();
        let row = |job: usize| told(&labels[job], 1, &[1.0 + job as f64; 15]);
        let rows: Vec<_> = (0..20).map(row).collect();
        let said = said(&names, &[(0, 1), (2, 3)], &rows);
        assert_eq!(said.len(), JOBS_MAX + 1);
        assert_eq!(
            said[0],
            "job 0 at depth 1: way-0 is the fastest with 1.0 MB/s; all 2 pairs of BOT and UAS are alike: way-3 moves as much as way-2"
        );
        assert_eq!(said[JOBS_MAX], "13 jobs more: see the table");
        let reasons: Vec<String> = (0..6).map(|way| format!("way-{way}: so")).collect();
        let told = bounded(reasons);
        assert_eq!((told.len(), told[2].as_str()), (4, "way-2: so"));
        assert_eq!(told[3], "3 more have another driver than the one asked for");
    }

    #[test]
    fn where_a_figure_is_missing_so_is_the_sentence() {
        let rows = [told("reads", 1, &[0.0, 30.0]), told("reads", 4, &[10.0, 30.0])];
        assert_eq!(said(&["bot", "uasp"], &[(0, 1)], &rows), ["Depth changes nothing in reads"]);
        assert_eq!(said(&["bot", "uasp"], &[(0, 1)], &[]), [""; 0]);
    }
}
