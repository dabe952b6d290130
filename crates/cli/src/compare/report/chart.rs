//! Charts that only simulated runs have: where the time of a command goes, and where the energy.

use crate::compare::choice::Column;
use crate::compare::runs::Gathered;
use report::{Axis, Bars, Figure, Group, PARTS_HUE, PARTS_HUES, Picture, Section};
use sim::engine::Stage;
use sim::power::machine::Consumer;

// Each part has a colour of its own.
const _: () = assert!(Stage::ALL.len() <= PARTS_HUES as usize && Consumer::ALL.len() <= PARTS_HUES as usize);

/// Blocks from which on a job is told beside the first one.
const LONG_BYTES: u32 = 64 << 10;

/// Rows of the first kind of job and of the first that moves long blocks; of each the first, the one with some under way, the last.
fn told(gathered: &[Gathered]) -> Vec<Vec<&Gathered>> {
    let kinds: Vec<&[Gathered]> = gathered.chunk_by(|one, next| one.job.label == next.job.label).collect();
    let long = kinds.iter().skip(1).find(|rows| rows[0].job.bytes_max() >= LONG_BYTES);
    let ends = |rows: &&[Gathered]| {
        let middle = rows.iter().rposition(|row| row.job.depth <= 8).unwrap_or(0);
        let mut places = vec![0, middle, rows.len() - 1];
        places.dedup();
        places
    };
    let of = |rows: &[Gathered]| -> Vec<usize> { ends(&rows) };
    kinds
        .first()
        .into_iter()
        .chain(long)
        .map(|rows| of(rows).into_iter().map(|nth| &rows[nth]).collect())
        .collect()
}

/// Where the time of commands goes, for each way and depth.
pub(super) fn stages(columns: &[Column], gathered: &[Gathered]) -> Section {
    let lead = "Mean time of a command by where it is spent, from when its driver has it in hand; parts add up to the whole. What waits has no place: in a queue, for a lane, for a credit.";
    let mut section = Section::new("Where the time goes").lead(lead);
    for rows in told(gathered) {
        let mut groups = Vec::new();
        for (nth, column) in columns.iter().enumerate() {
            for row in &rows {
                let first = row.of[nth].as_ref().and_then(|runs| runs.trials.first());
                let Some((shares, commands)) = first.and_then(|trial| trial.explained) else { continue };
                let us = |stage| Some(shares.of(stage).as_ps() as f64 / commands.max(1) as f64 / 1e6);
                let label = format!("{}, {} deep", column.name, row.job.depth);
                groups.push((Group { label, values: Stage::ALL.map(us).to_vec() }, shares.largest()));
            }
        }
        if groups.is_empty() {
            continue;
        }
        let most = groups.iter().map(|(group, stage)| format!("{}: {}", group.label, stage.name()));
        let text = format!("Most of it, apart from the queue: {}.", most.collect::<Vec<_>>().join("; "));
        let bars = Bars {
            across: String::new(),
            value: Axis::linear("mean time of a command, µs"),
            series: (PARTS_HUE..)
                .zip(Stage::ALL)
                .map(|(hue, stage)| (stage.name().to_owned(), hue.into()))
                .collect(),
            groups: groups.into_iter().map(|(group, _)| group).collect(),
            is_stacked: true,
        };
        section = section.figure(Figure::new(&rows[0].job.label, text, Picture::Bars(bars)));
    }
    section
}

/// What each consumer takes for 10⁹ bytes.
pub(super) fn consumers(columns: &[Column], gathered: &[Gathered]) -> Section {
    let mut section = Section::new("Where the energy goes")
        .lead("Of the whole machine, by part. The rest is what it draws whatever it does: the quicker way has less of it for each byte.");
    for rows in told(gathered) {
        let mut groups = Vec::new();
        for (nth, column) in columns.iter().enumerate() {
            for row in &rows {
                let Some(trial) = row.of[nth].as_ref().and_then(|runs| runs.trials.first()) else { continue };
                let gigabytes = trial.measured.bytes as f64 / 1e9;
                let values = trial.spent.energy.map(|energy| Some(energy.joules() / gigabytes));
                let label = format!("{}, {} deep", column.name, row.job.depth);
                groups.push(Group { label, values: values.to_vec() });
            }
        }
        let bars = Bars {
            across: String::new(),
            value: Axis::linear("J/GB"),
            series: (PARTS_HUE..)
                .zip(Consumer::ALL)
                .map(|(hue, of)| (of.name().to_owned(), hue.into()))
                .collect(),
            groups,
            is_stacked: true,
        };
        let text = "Joules for 10⁹ bytes, by what takes them.";
        section = section.figure(Figure::new(&rows[0].job.label, text, Picture::Bars(bars)));
    }
    section
}
