//! Charts of simulated runs only: where time and energy of a command go.
//!
//! Both are means over all seeds for a few rows: the first kind of job, and the first with large
//! blocks. Left out: time on a SATA cable, which counts as the drive's, as the section says. Always
//! true: a part has the same colour in both.

use super::Configuration;
use super::runs::{JobRuns, Runs};
use crate::page::{Unit, each_once, reach};
use crate::parts::Carried;
use report::{Axis, Bars, Cell, Figure, Group, Look, PARTS_HUE, PARTS_HUES, Picture, Section, Table};
use sim::engine::LatencyStage;
use sim::engine::StageTimes;
use sim::power::machine::Consumer;
use std::ops::Range;
use workload::Job;

// Each part has its own colour; stripes in the driver's colour mark waiting for the core.
const _: () =
    assert!(LatencyStage::ALL.len() <= 1 + PARTS_HUES as usize && Consumer::ALL.len() <= PARTS_HUES as usize);

/// Blocks of this size count as large.
const LONG_BYTES: u32 = 64 << 10;

/// Indexes of the detailed jobs: of the first kind and of the first with large blocks, each with
/// its first, a middle and its last depth.
pub(super) fn detailed(jobs: &[&Job]) -> Vec<Vec<usize>> {
    let mut begins = 0;
    let mut kinds: Vec<Range<usize>> = Vec::new();
    for kind in jobs.chunk_by(|one, next| one.label == next.label) {
        kinds.push(begins..begins + kind.len());
        begins += kind.len();
    }
    let long = kinds.iter().skip(1).find(|kind| jobs[kind.start].bytes_max() >= LONG_BYTES);
    let ends = |kind: &Range<usize>| {
        let middle = kind.clone().rev().find(|nth| jobs[*nth].depth <= 8).unwrap_or(kind.start);
        let mut places = vec![kind.start, middle, kind.end - 1];
        places.dedup();
        places
    };
    kinds.first().into_iter().chain(long).map(ends).collect()
}

/// The rows of those jobs.
fn detailed_rows(gathered: &[JobRuns]) -> Vec<Vec<&JobRuns>> {
    let jobs: Vec<&Job> = gathered.iter().map(|row| &row.job).collect();
    detailed(&jobs).into_iter().map(|places| places.into_iter().map(|nth| &gathered[nth]).collect()).collect()
}

/// The colour of a stage; a power consumer has that of its stage.
pub fn stage_look(stage: LatencyStage) -> Look {
    match stage {
        LatencyStage::Queue => PARTS_HUE.into(),
        LatencyStage::Core => Look { round: 1, ..Look::from(PARTS_HUE + 1) },
        LatencyStage::Driver => (PARTS_HUE + 1).into(),
        LatencyStage::Controller => (PARTS_HUE + 2).into(),
        LatencyStage::Link => (PARTS_HUE + 3).into(),
        LatencyStage::Bridge => (PARTS_HUE + 4).into(),
        LatencyStage::Drive => (PARTS_HUE + 5).into(),
        LatencyStage::Waiting => (PARTS_HUE + 6).into(),
    }
}

/// The stage whose colour a consumer has: cores run drivers. The rest belongs to no part, like
/// waiting.
const fn part(of: Consumer) -> LatencyStage {
    match of {
        Consumer::Cores => LatencyStage::Driver,
        Consumer::Controller => LatencyStage::Controller,
        Consumer::Link => LatencyStage::Link,
        Consumer::Bridge => LatencyStage::Bridge,
        Consumer::Drive => LatencyStage::Drive,
        Consumer::Rest => LatencyStage::Waiting,
    }
}

/// Commands per request, if constant: the drivers split long requests.
fn commands_of(column: &Configuration, job: &Job) -> Option<u32> {
    let [share] = job.specs[..] else { return None };
    Some(share.bytes.div_ceil(column.activation.request_bytes_max.max(1)))
}

/// A bar: mean time of a command in each stage, of a route at a depth, over all seeds.
struct Spent {
    way: String,
    depth: u16,
    /// Commands per request, if constant.
    commands: Option<u32>,
    /// Mean microseconds per command and stage.
    us: [f64; LatencyStage::ALL.len()],
    largest: LatencyStage,
}

impl Spent {
    fn of(column: &Configuration, job: &Job, runs: &Runs) -> Option<Self> {
        let (mut shares, mut commands) = (StageTimes::default(), 0);
        for (of_seed, count) in runs.trials.iter().filter_map(|trial| trial.explained) {
            shares.add(&of_seed);
            commands += count;
        }
        (commands > 0).then(|| Self {
            way: column.name.clone(),
            depth: job.depth,
            commands: commands_of(column, job),
            us: LatencyStage::ALL.map(|stage| shares.of(stage).as_ps() as f64 / commands as f64 / 1e6),
            largest: shares.largest(),
        })
    }

    fn label(&self) -> String {
        let cut = self.commands.filter(|count| *count > 1);
        let cut = cut.map_or_else(String::new, |count| format!(", {count} per request"));
        format!("{}, QD{}{cut}", self.way, self.depth)
    }
}

/// Charts the stages of commands per route and depth.
pub(super) fn stages(columns: &[Configuration], gathered: &[JobRuns]) -> Section {
    let lead = "Mean time of a command in each stage, from the request at the driver to its completion, over the same seeds as the \
                charts above; stages add up to the latency. In \"queue\", \"core-wait\" (striped) and \"waiting\" it makes no progress: \
                it is queued in the host, waits for the host core, or waits behind other traffic for a lane or link credits. A long \
                request is several commands; each bar says how many. Turbo merges adjacent requests, and the time of a merged \
                transfer counts for each of its requests.";
    let cabled: Vec<&str> = columns
        .iter()
        .filter(|of| of.activation.transport == Carried::Sata)
        .map(|of| of.name.as_str())
        .collect();
    let lead = match cabled.as_slice() {
        [] => lead.to_owned(),
        names => {
            format!("{lead} With native SATA ({}), cable time counts as drive time.", names.join(", "))
        }
    };
    let mut section = Section::new("Where the time goes").lead(lead);
    for rows in detailed_rows(gathered) {
        let all = spent(columns, &rows);
        if !all.is_empty() {
            section = section.figure(figure(&rows[0].job.label, &all));
        }
    }
    section
}

/// Names the dominant stage of the first job.
pub(super) fn finding(columns: &[Configuration], gathered: &[JobRuns]) -> Option<String> {
    let rows = detailed_rows(gathered).into_iter().next()?;
    let all = spent(columns, &rows);
    let label = &rows.first()?.job.label;
    (!all.is_empty())
        .then(|| format!("{label}: the longest stage of a command, queue excluded: {}", most(&all)))
}

/// Each route at each depth.
fn spent(columns: &[Configuration], rows: &[&JobRuns]) -> Vec<Spent> {
    let each = columns.iter().enumerate().flat_map(|(nth, column)| {
        rows.iter().filter_map(move |row| Spent::of(column, &row.job, &row.of[nth]))
    });
    each.collect()
}

fn figure(title: &str, all: &[Spent]) -> Figure {
    let unit = Unit::of(all.iter().map(|spent| spent.us.iter().sum()));
    let heads = LatencyStage::ALL.map(|stage| unit.name(stage.name()));
    let head = ["", "depth", "commands per request"].map(String::from).into_iter().chain(heads);
    let mut table = Table::new(head.chain([unit.name("total")]));
    for spent in all {
        let names = [
            Cell::text(&spent.way),
            Cell::Number(f64::from(spent.depth)),
            spent.commands.map_or(Cell::Empty, |count| Cell::Number(f64::from(count))),
        ];
        let whole: f64 = spent.us.iter().sum();
        let values = spent.us.iter().chain([&whole]).map(|us| Cell::Mean(unit.value(*us)));
        table = table.row(names.into_iter().chain(values));
    }
    let bars = Bars {
        across: String::new(),
        value: Axis::linear(unit.name("mean time of a command")),
        series: LatencyStage::ALL.map(|stage| (stage.name().to_owned(), stage_look(stage))).to_vec(),
        groups: all
            .iter()
            .map(|spent| Group {
                label: spent.label(),
                values: spent.us.map(|us| Some(unit.value(us))).to_vec(),
            })
            .collect(),
        is_stacked: true,
    };
    let text = format!("{} Longest stage, queue excluded: {}.", cut(all), most(all));
    Figure::new(title, text.trim_start(), Picture::Bars(bars)).table(table)
}

/// In which stage most of the time is spent, with the ways of which that is so; of which depths, where it is not so of all.
fn most(all: &[Spent]) -> String {
    let of_stage = |stage: LatencyStage| {
        let mut ways: Vec<String> = Vec::new();
        for of_way in all.chunk_by(|one, next| one.way == next.way) {
            let is_it = of_way.iter().filter(|spent| spent.largest == stage);
            let depths: Vec<String> = is_it.map(|spent| spent.depth.to_string()).collect();
            match depths.len() {
                0 => {}
                count if count == of_way.len() => ways.push(of_way[0].way.clone()),
                _ => ways.push(format!("{} at QD{}", of_way[0].way, depths.join(" and "))),
            }
        }
        (!ways.is_empty()).then(|| format!("{} ({})", stage.name(), ways.join(", ")))
    };
    LatencyStage::ALL.into_iter().filter_map(of_stage).collect::<Vec<_>>().join("; ")
}

/// Describes commands per request, unless it is always one.
fn cut(all: &[Spent]) -> String {
    let each = each_once(all.iter().filter_map(|spent| Some((spent.way.as_str(), spent.commands?))));
    if each.iter().all(|(_, count)| *count == 1) {
        return String::new();
    }
    let counts: Vec<String> = each.iter().map(|(way, count)| format!("{count} on {way}")).collect();
    format!("Commands per request: {}.", counts.join(", "))
}

/// Charts the energy of each consumer per 10⁹ bytes.
pub(super) fn consumers(columns: &[Configuration], gathered: &[JobRuns]) -> Section {
    let mut section = Section::new("Where the energy goes")
        .lead("Energy of the whole machine by component, in the colours above; means over all seeds. \"rest\" is the base load, of which a faster transport spends less per byte.");
    for rows in detailed_rows(gathered) {
        let mut groups = Vec::new();
        for (nth, column) in columns.iter().enumerate() {
            for row in &rows {
                let runs = &row.of[nth];
                let per_gigabyte = |of: usize| {
                    let each = runs
                        .trials
                        .iter()
                        .map(|trial| trial.spent.energy[of].joules() / (trial.measured.bytes as f64 / 1e9));
                    Some(each.sum::<f64>() / runs.trials.len() as f64)
                };
                let label = format!("{}, QD{}", column.name, row.job.depth);
                groups.push(Group { label, values: (0..Consumer::ALL.len()).map(per_gigabyte).collect() });
            }
        }
        let bars = Bars {
            across: String::new(),
            value: Axis::linear("J/GB"),
            series: Consumer::ALL.map(|of| (of.name().to_owned(), stage_look(part(of)))).to_vec(),
            groups,
            is_stacked: true,
        };
        let text = format!("Joules per 10⁹ bytes by consumer. {}", reach(&bars, "J/GB"));
        section = section.figure(Figure::new(&rows[0].job.label, text, Picture::Bars(bars)));
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::AccessSpec;

    #[test]
    fn the_dominant_stage_is_named() {
        let spent = |way: &str, depth, largest| Spent {
            way: way.into(),
            depth,
            commands: Some(1),
            us: [1.0; LatencyStage::ALL.len()],
            largest,
        };
        let all = [
            spent("bot", 1, LatencyStage::Drive),
            spent("bot", 4, LatencyStage::Drive),
            spent("uas", 1, LatencyStage::Drive),
            spent("uas", 4, LatencyStage::Bridge),
        ];
        assert_eq!(most(&all), "bridge (uas at QD4); drive (bot, uas at QD1)");
        assert_eq!(cut(&all), "");
    }

    #[test]
    fn a_few_jobs_have_detailed_charts() {
        let jobs = |bytes, depths: &[u16]| -> Vec<Job> {
            depths.iter().map(|depth| Job::of(AccessSpec::all(bytes, 100, 100), *depth)).collect()
        };
        let all =
            [jobs(4096, &[1, 2, 4, 8, 16, 32]), jobs(8192, &[1, 2]), jobs(1 << 19, &[1, 2, 4])].concat();
        let all: Vec<&Job> = all.iter().collect();
        assert_eq!(detailed(&all), [vec![0, 3, 5], vec![8, 10]]);
        assert_eq!(detailed(&all[5..6]), [[0]]);
        assert!(detailed(&[]).is_empty());
    }
}
