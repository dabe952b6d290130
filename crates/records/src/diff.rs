//! Compares two runs: what became better, what worse.
//!
//! Rates are compared by their logarithms, as ratios after : before. The rounds of both runs are
//! two samples (Welch), and intervals are widened so that all rows of a comparison hold together
//! with 95 % confidence (Bonferroni): otherwise two of forty unchanged rows would appear better or
//! worse. Then a row is *the same* if its whole interval is within the equality range (5 % by
//! default), *better* or *worse* if its whole interval is on one side of 1, and *unclear*
//! otherwise: more rounds would decide it.
//!
//! A simulated figure is exact for its seed and has no spread, so its ratio alone decides; if both
//! runs have several seeds, these are their rounds. They are not paired, which makes intervals
//! wider, not narrower. Left out: what changes between days, such as how full and how warm a drive
//! is.
//!
//! Always true: each row of a run is either in a change or unmatched.

use crate::run::{Figures, ResultRow, Run, RunKind};
use crate::statistics::{Mean, half_width};
use serde::Serialize;
use std::fmt;

/// Joint confidence of all intervals.
const CONFIDENCE: f64 = 0.95;

/// Two runs, compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// Rows in both runs, in the order of the first.
    pub changes: Vec<Change>,
    /// Rows in one run, or with figures in one only.
    pub only: Vec<UnmatchedRow>,
    /// Other differences: name, before, after.
    pub differences: Vec<(String, String, String)>,
    /// Notes of the runs, those of one run alone first.
    pub notes: Vec<Note>,
    /// A ratio within 1 ± this counts as the same.
    pub same_within: f64,
}

/// A condition that may distort figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Its text.
    pub text: String,
    /// Present in the first run.
    pub before: bool,
    /// Present in the second run.
    pub after: bool,
}

/// A row of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The job.
    pub job: String,
    /// Queue depth.
    pub depth: u16,
    /// Transports before and after.
    pub transports: [String; 2],
    /// I/Os per second before and after.
    pub iops: [f64; 2],
    /// Megabytes (10⁶ bytes) per second before and after.
    pub mb_per_s: [f64; 2],
    /// 99th percentile of latency in microseconds, before and after.
    pub p99_us: [Option<f64>; 2],
    /// Ratio of the rates, after : before.
    pub ratio: Ratio,
    /// Verdict on the change.
    pub verdict: Verdict,
    /// The reason, if the numbers alone do not show it.
    pub why: Option<&'static str>,
}

/// A ratio of two rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// After : before.
    pub value: f64,
    /// Its interval; none without spread.
    pub interval: Option<[f64; 2]>,
}

/// The verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Faster.
    Better,
    /// Slower.
    Worse,
    /// The same within the equality range.
    Same,
    /// Undecided.
    Unclear,
}

/// A row without counterpart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnmatchedRow {
    /// Only in the second run, not in the first.
    pub is_after: bool,
    /// The transport.
    pub transport: String,
    /// The job.
    pub job: String,
    /// Queue depth.
    pub depth: u16,
    /// Why the other run has no figures, if it has the row.
    pub error: Option<String>,
}

/// Compares a run with an earlier one. Ratios within `same_within` of 1 count as the same.
pub fn diff(before: &Run, after: &Run, same_within: f64) -> Diff {
    let (pairs, only) = pairs(before, after);
    let spread = pairs.iter().filter(|pair| pair.has_spread()).count();
    let confidence = 1.0 - (1.0 - CONFIDENCE) / spread.max(1) as f64;
    let kinds = [before.kind, after.kind];
    let change = |pair: &Pair<'_>| pair.change(kinds, confidence, same_within);
    Diff {
        changes: pairs.iter().map(change).collect(),
        only,
        differences: differences(before, after),
        notes: notes(before, after),
        same_within,
    }
}

/// One row before and after, both with figures.
struct Pair<'a> {
    rows: [&'a ResultRow; 2],
    figures: [&'a Figures; 2],
}

/// Matches rows of the same transport, or, where each run has a job on one transport only, whatever
/// these are.
fn pairs<'a>(before: &'a Run, after: &'a Run) -> (Vec<Pair<'a>>, Vec<UnmatchedRow>) {
    let mut taken = vec![false; after.results.len()];
    let mut partners: Vec<Option<usize>> = Vec::new();
    let is_alike = |one: &ResultRow, other: &ResultRow| one.job == other.job && one.depth == other.depth;
    let count = |run: &Run, row: &ResultRow| run.results.iter().filter(|other| is_alike(row, other)).count();
    for row in &before.results {
        let is_single = count(before, row) == 1 && count(after, row) == 1;
        let fits =
            |other: &ResultRow| is_alike(row, other) && (is_single || row.transport == other.transport);
        let partner = (0..taken.len()).find(|&place| !taken[place] && fits(&after.results[place]));
        if let Some(place) = partner {
            taken[place] = true;
        }
        partners.push(partner);
    }
    let (mut pairs, mut only) = (Vec::new(), Vec::new());
    for (row, partner) in before.results.iter().zip(partners) {
        let other = partner.map(|place| &after.results[place]);
        match (row.figures.as_ref(), other.map(|other| (other, other.figures.as_ref()))) {
            (Ok(one), Some((other, Ok(two)))) => pairs.push(Pair { rows: [row, other], figures: [one, two] }),
            (_, Some((_, Err(error)))) => only.push(UnmatchedRow::of(false, row, Some(error))),
            (Err(error), Some((other, Ok(_)))) => only.push(UnmatchedRow::of(true, other, Some(error))),
            (_, None) => only.push(UnmatchedRow::of(false, row, None)),
        }
    }
    let alone = after.results.iter().zip(taken).filter(|(_, taken)| !taken);
    only.extend(alone.map(|(row, _)| UnmatchedRow::of(true, row, None)));
    (pairs, only)
}

impl UnmatchedRow {
    fn of(is_after: bool, row: &ResultRow, error: Option<&String>) -> Self {
        let ResultRow { transport, job, depth, .. } = row;
        Self {
            is_after,
            transport: transport.clone(),
            job: job.clone(),
            depth: *depth,
            error: error.cloned(),
        }
    }
}

impl Pair<'_> {
    fn has_spread(&self) -> bool {
        self.figures.iter().all(|figures| figures.iops_of_rounds.len() > 1)
    }

    fn change(&self, kinds: [RunKind; 2], confidence: f64, same_within: f64) -> Change {
        let ratio = self.ratio(confidence);
        let (verdict, why) = self.verdict(ratio, kinds, same_within);
        let [one, other] = self.figures;
        Change {
            job: self.rows[0].job.clone(),
            depth: self.rows[0].depth,
            transports: self.rows.map(|row| row.transport.clone()),
            iops: [one.iops, other.iops],
            mb_per_s: [one.mb_per_s, other.mb_per_s],
            p99_us: [one.p99_us, other.p99_us],
            ratio,
            verdict,
            why,
        }
    }

    fn ratio(&self, confidence: f64) -> Ratio {
        let [before, after] = self.figures.map(|figures| figures.iops);
        let value = if before > 0.0 { after / before } else { f64::from(after <= 0.0) };
        let is_above_zero = |rate: &f64| rate.is_finite() && *rate > 0.0;
        let logarithms = self.figures.map(|figures| {
            let rounds = &figures.iops_of_rounds;
            let all = rounds.iter().all(is_above_zero);
            Mean::of(&rounds.iter().filter(|_| all).map(|rate| rate.ln()).collect::<Vec<_>>())
        });
        let [Some(before), Some(after)] = logarithms else { return Ratio { value, interval: None } };
        // The rate of a row is the geometric mean of its rounds; used here so that the interval is
        // centred.
        let middle = after.value - before.value;
        let half = half_width(&before, &after, confidence);
        Ratio {
            value: middle.exp(),
            interval: half.map(|half| [(middle - half).exp(), (middle + half).exp()]),
        }
    }

    fn verdict(
        &self,
        ratio: Ratio,
        kinds: [RunKind; 2],
        same_within: f64,
    ) -> (Verdict, Option<&'static str>) {
        let digests = self.figures.map(|figures| figures.digest.as_ref());
        if digests[0].is_some() && digests[0] == digests[1] {
            return (Verdict::Same, Some("identical events"));
        }
        if kinds == [RunKind::Simulated; 2] {
            return match ratio.interval.map(|interval| judged(interval, same_within)) {
                None => {
                    let verdict = judged([ratio.value; 2], same_within);
                    (verdict, Some("simulated: exact for its seed, no spread"))
                }
                Some(Verdict::Unclear) => (Verdict::Unclear, Some("simulated: the seeds vary too much")),
                Some(verdict) => (verdict, Some("simulated: spread over seeds")),
            };
        }
        if kinds[0] != kinds[1] {
            return (Verdict::Unclear, Some("one is measured, the other simulated"));
        }
        match ratio.interval {
            None => (Verdict::Unclear, Some("fewer than two rounds with data: no spread")),
            Some(interval) => match judged(interval, same_within) {
                Verdict::Unclear => (Verdict::Unclear, Some("the rounds vary too much; run more rounds")),
                verdict => (verdict, None),
            },
        }
    }
}

/// Judges the interval of a ratio.
fn judged([low, high]: [f64; 2], same_within: f64) -> Verdict {
    // Symmetric by factor below and above 1.
    let most = 1.0 + same_within;
    match () {
        () if low >= 1.0 / most && high <= most => Verdict::Same,
        () if low > 1.0 => Verdict::Better,
        () if high < 1.0 => Verdict::Worse,
        () => Verdict::Unclear,
    }
}

/// Lists other differences.
fn differences(before: &Run, after: &Run) -> Vec<(String, String, String)> {
    let mut differences = Vec::new();
    let mut note = |name: &str, one: &str, other: &str| {
        if one != other {
            differences.push((name.to_owned(), one.to_owned(), other.to_owned()));
        }
    };
    note("figures", before.kind.word(), after.kind.word());
    note("setup", &before.setup.name, &after.setup.name);
    note("drive", &before.setup.drive, &after.setup.drive);
    if before.kind != after.kind {
        // Facts of a drive and of a simulation are not comparable.
        return differences;
    }
    let (one, other) = (&before.setup.facts, &after.setup.facts);
    let only_after = other.keys().filter(|name| !one.contains_key(*name));
    for name in one.keys().chain(only_after) {
        let of =
            |facts: &std::collections::BTreeMap<String, String>| facts.get(name).cloned().unwrap_or_default();
        note(name, &of(one), &of(other));
    }
    note("version of uaskit", &before.version, &after.version);
    note("seed", &before.seed.to_string(), &after.seed.to_string());
    let whole = |run: &Run| if run.interrupted { "interrupted" } else { "complete" };
    note("run", whole(before), whole(after));
    differences
}

/// Lists the notes of both, each once.
fn notes(before: &Run, after: &Run) -> Vec<Note> {
    let has = |run: &Run, text: &String| run.notes.contains(text);
    let mut notes: Vec<Note> = Vec::new();
    for text in before.notes.iter().chain(&after.notes) {
        if !notes.iter().any(|known| known.text == *text) {
            notes.push(Note { text: text.clone(), before: has(before, text), after: has(after, text) });
        }
    }
    notes.sort_by_key(|note| !note.is_of_one());
    notes
}

impl Note {
    /// Present in one run only, so it may explain differences.
    pub const fn is_of_one(&self) -> bool {
        self.before != self.after
    }
}

impl Verdict {
    /// Returns the verdict as one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Unclear => "unclear",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.value)?;
        match self.interval {
            Some([low, high]) => write!(f, " ({low:.3} to {high:.3})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::sample;
    use proptest::prelude::*;

    fn row(transport: &str, job: &str, rounds: &[f64]) -> ResultRow {
        let iops = rounds.iter().map(|rate| rate.ln()).sum::<f64>() / rounds.len() as f64;
        let figures = Figures { iops: iops.exp(), iops_of_rounds: rounds.to_vec(), ..Figures::default() };
        ResultRow { transport: transport.into(), job: job.into(), depth: 1, figures: Ok(figures) }
    }

    fn run(results: Vec<ResultRow>) -> Run {
        Run { results, ..sample() }
    }

    /// The verdict of one row with these rounds.
    fn verdict(before: &[f64], after: &[f64]) -> Verdict {
        let diff = diff(&run(vec![row("uas", "j", before)]), &run(vec![row("uas", "j", after)]), 0.05);
        diff.changes[0].verdict
    }

    #[test]
    fn separated_intervals_are_better_or_worse() {
        assert_eq!(verdict(&[100.0, 101.0, 99.0], &[120.0, 121.0, 119.0]), Verdict::Better);
        assert_eq!(verdict(&[120.0, 121.0, 119.0], &[100.0, 101.0, 99.0]), Verdict::Worse);
    }

    #[test]
    fn equality_needs_narrow_intervals() {
        assert_eq!(verdict(&[100.0, 100.5, 99.5, 100.0], &[101.0, 100.5, 101.5, 101.0]), Verdict::Same);
        assert_eq!(verdict(&[100.0, 140.0, 70.0], &[101.0, 65.0, 150.0]), Verdict::Unclear);
    }

    #[test]
    fn one_round_is_unclear() {
        let diff = diff(&run(vec![row("uas", "j", &[100.0])]), &run(vec![row("uas", "j", &[200.0])]), 0.05);
        assert_eq!((diff.changes[0].verdict, diff.changes[0].ratio.interval), (Verdict::Unclear, None));
        assert!((diff.changes[0].ratio.value - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_interval_is_welchs() {
        // Logarithms 0 and 0.02, and 0.1 and 0.12: squares of errors 1e-4 each, two degrees, t 4.303.
        let rounds = |logarithms: [f64; 2]| logarithms.map(f64::exp);
        let (before, after) = (rounds([0.0, 0.02]), rounds([0.1, 0.12]));
        let diff = diff(&run(vec![row("uas", "j", &before)]), &run(vec![row("uas", "j", &after)]), 0.05);
        let [low, high] = diff.changes[0].ratio.interval.expect("two rounds");
        let half = 4.3027 * 2e-4_f64.sqrt();
        assert!((low.ln() - (0.1 - half)).abs() < 1e-5 && (high.ln() - (0.1 + half)).abs() < 1e-5);
    }

    #[test]
    fn more_rows_make_each_interval_wider() {
        let rounds = ([100.0, 101.0, 102.0], [110.0, 111.0, 112.0]);
        let of = |count: usize| {
            let rows = |rounds: &[f64]| (0..count).map(|n| row("uas", &n.to_string(), rounds)).collect();
            let diff = diff(&run(rows(&rounds.0)), &run(rows(&rounds.1)), 0.05);
            let [low, high] = diff.changes[0].ratio.interval.expect("three rounds");
            (high / low).ln()
        };
        // t of 0.95 and of 0.995, four degrees: the variances of these logarithms differ by little, so that it is 3 degrees.
        assert!((of(10) / of(1) - 7.453 / 3.182).abs() < 1e-3, "{}", of(10) / of(1));
    }

    #[test]
    fn a_simulated_ratio_decides_alone_and_says_so() {
        let one = |iops: f64, digest: &str| {
            let figures = Figures { iops, digest: Some(digest.into()), ..Figures::default() };
            let row = ResultRow { figures: Ok(figures), ..row("uasp", "j", &[1.0]) };
            Run { kind: RunKind::Simulated, ..run(vec![row]) }
        };
        let judged = |after: &Run| {
            let diff = diff(&one(100.0, "a"), after, 0.05);
            (diff.changes[0].verdict, diff.changes[0].why.expect("there is a reason"))
        };
        let no_spread = "simulated: exact for its seed, no spread";
        assert_eq!(judged(&one(100.0, "a")), (Verdict::Same, "identical events"));
        assert_eq!(judged(&one(104.0, "b")), (Verdict::Same, no_spread));
        assert_eq!(judged(&one(106.0, "b")), (Verdict::Better, no_spread));
        assert_eq!(judged(&one(90.0, "b")), (Verdict::Worse, no_spread));
        assert_eq!(judged(&run(vec![row("uasp", "j", &[1.0, 2.0])])).0, Verdict::Unclear);
    }

    #[test]
    fn several_seeds_are_the_spread_of_a_simulation() {
        let one = |seeds: &[f64], digest: &str| {
            let row = row("uasp", "j", seeds);
            let figures =
                row.figures.clone().map(|figures| Figures { digest: Some(digest.into()), ..figures });
            Run { kind: RunKind::Simulated, ..run(vec![ResultRow { figures, ..row }]) }
        };
        let judged = |before: &[f64], after: &[f64]| {
            let diff = diff(&one(before, "a"), &one(after, "b"), 0.05);
            (diff.changes[0].verdict, diff.changes[0].why.expect("there is a reason"))
        };
        let seeds = "simulated: spread over seeds";
        assert_eq!(judged(&[100.0, 101.0, 102.0], &[110.0, 111.0, 112.0]), (Verdict::Better, seeds));
        assert_eq!(judged(&[100.0, 101.0, 102.0], &[101.0, 102.0, 100.0]), (Verdict::Same, seeds));
        let unclear = (Verdict::Unclear, "simulated: the seeds vary too much");
        assert_eq!(judged(&[100.0, 140.0, 70.0], &[110.0, 150.0, 80.0]), unclear);
        assert_eq!(judged(&[100.0], &[110.0, 111.0]).1, "simulated: exact for its seed, no spread");
    }

    #[test]
    fn rows_match_by_transport_unless_single() {
        let (bot, uas) = (row("bot", "j", &[1.0, 1.0]), row("uas", "j", &[2.0, 2.0]));
        let both = diff(&run(vec![bot.clone(), uas.clone()]), &run(vec![uas.clone(), bot.clone()]), 0.05);
        assert_eq!(both.changes[0].transports, ["bot", "bot"]);
        assert_eq!(both.changes[1].transports, ["uas", "uas"]);
        let moved = diff(&run(vec![bot.clone()]), &run(vec![uas.clone()]), 0.05);
        assert_eq!(moved.changes[0].transports, ["bot", "uas"]);
        let more = diff(&run(vec![bot.clone()]), &run(vec![uas, bot]), 0.05);
        assert_eq!((more.changes.len(), more.only.len(), more.only[0].is_after), (1, 1, true));
    }

    #[test]
    fn a_row_without_figures_says_why() {
        let failed = ResultRow { figures: Err("refused".into()), ..row("uas", "j", &[1.0]) };
        let diff = diff(&run(vec![row("uas", "j", &[1.0])]), &run(vec![failed]), 0.05);
        assert_eq!((diff.changes.len(), diff.only[0].error.as_deref()), (0, Some("refused")));
    }

    #[test]
    fn other_differences_are_listed() {
        let mut after = sample();
        after.setup.facts.insert("firmware".into(), "2.0".into());
        after.setup.facts.insert("driver".into(), "uas".into());
        let differences = diff(&sample(), &after, 0.05).differences;
        let difference =
            |name: &str, one: &str, other: &str| (name.to_owned(), one.to_owned(), other.to_owned());
        assert_eq!(differences, [difference("firmware", "1.0", "2.0"), difference("driver", "", "uas")]);
    }

    #[test]
    fn notes_of_one_run_come_first() {
        let with = |notes: &[&str]| Run {
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            ..run(Vec::new())
        };
        let notes = diff(&with(&["cached", "holes"]), &with(&["cached", "captured"]), 0.05).notes;
        let note = |text: &str, before, after| Note { text: text.into(), before, after };
        assert_eq!(
            notes,
            [note("holes", true, false), note("captured", false, true), note("cached", true, true)]
        );
        assert!(notes[1].is_of_one() && !notes[2].is_of_one());
    }

    proptest! {
        #[test]
        fn swapping_runs_inverts_verdicts(
            one in prop::collection::vec(1.0..1e6_f64, 1..6),
            other in prop::collection::vec(1.0..1e6_f64, 1..6),
        ) {
            let opposite = match verdict(&one, &other) {
                Verdict::Better => Verdict::Worse,
                Verdict::Worse => Verdict::Better,
                alike => alike,
            };
            prop_assert_eq!(verdict(&other, &one), opposite);
        }

        #[test]
        fn figures_of_any_kind_are_compared(rounds in prop::collection::vec(any::<f64>(), 0..5), iops in any::<f64>()) {
            let figures = Figures { iops, iops_of_rounds: rounds, ..Figures::default() };
            let odd = run(vec![ResultRow { figures: Ok(figures), ..row("uas", "j", &[1.0]) }]);
            prop_assert_eq!(diff(&odd, &odd, 0.05).changes.len(), 1);
        }
    }
}
