//! Thousands of commands on the four pipes, for a zoomable timeline.
//!
//! Drawn from the events that [`crate::explain`] recorded: packets with payload on each pipe,
//! consecutive ones of a command as one bar. BOT has two endpoints; its wrappers are on the pipes
//! that UAS uses for the same purpose. Left out: native SATA, which has no pipes.

use super::{Comparison, Configuration, one, short};
use crate::error::StudyError;
use crate::explain::{CommandTrace, Explain};
use crate::page::ReportRoute;
use crate::parts::{Carried, Catalogue};
use crate::plural::counted_len;
use crate::trial::{Terms, TrialObservers};
use rayon::prelude::*;
use report::{Bar, Command, Figure, Panel, Picture, Timeline};
use std::cell::RefCell;
use std::rc::Rc;
use units::Instant;
use wire::uas::PipeUsage;
use workload::Job;

/// Default and maximum of commands per configuration.
const COMMANDS: u32 = 3000;
const COMMANDS_MAX: u32 = 100_000;

/// Packets of one command closer than this are one bar.
const APART_NS: u64 = 3000;

/// Maximum payload of the run of a picture.
const PAYLOAD_BYTES_MAX: u32 = 2 << 30;

const LANES: [(PipeUsage, &str); 4] = [
    (PipeUsage::Command, "command"),
    (PipeUsage::DataOut, "data-out"),
    (PipeUsage::DataIn, "data-in"),
    (PipeUsage::Status, "status"),
];

/// None if no configuration has pipes.
pub(super) fn timeline(
    commands: Option<u32>,
    comparison: Comparison<'_>,
    ways: &[ReportRoute],
    job: &Job,
) -> Result<Option<Figure>, StudyError> {
    let Comparison { columns, catalogue, terms } = comparison;
    let usb = columns.par_iter().zip(ways).filter(|(column, _)| column.activation.transport != Carried::Sata);
    let all = usb.clone().count().max(1) as u32;
    let commands = commands.unwrap_or(COMMANDS).min(COMMANDS_MAX / all);
    let panels = usb.map(|(column, way)| {
        let commands = traced(column, job, catalogue, terms, commands)?;
        Ok(commands.map(|commands| Panel { name: way.name.clone(), hue: way.look.hue, commands }))
    });
    let panels: Vec<Panel> = panels.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    if panels.is_empty() {
        return Ok(None);
    }
    let each = panels.iter().filter_map(|panel| {
        let last = panel.commands.iter().map(|command| command.ended_ns).max()?;
        Some(format!(
            "{} completes {} in {} ms",
            panel.name,
            counted_len(panel.commands.len(), "command"),
            report::number(last as f64 / 1e6)
        ))
    });
    let text = format!(
        "The first commands of a run, shaded in order: when each is in flight, and when its packets are on a pipe. {}. Drag to \
         move; zoom with the buttons, with + and −, or with Ctrl and the wheel. BOT has two endpoints: CBWs are shown on the \
         command lane, CSWs on the status lane.",
        each.collect::<Vec<_>>().join("; ")
    );
    let lanes = LANES.map(|(_, name)| name.to_owned()).to_vec();
    let title = format!("Commands on the four pipes: {}, QD{}", job.label, job.depth);
    Ok(Some(Figure::new(title, text, Picture::Timeline(Timeline { lanes, panels }))))
}

/// Runs a job, and returns its first commands; none if no command was traced.
fn traced(
    column: &Configuration,
    job: &Job,
    catalogue: &Catalogue,
    terms: &Terms,
    commands: u32,
) -> Result<Option<Vec<Command>>, StudyError> {
    let explain = Rc::new(RefCell::new(Explain::with_traces(commands as usize)));
    let watch =
        TrialObservers { late_observer: Some(Box::new(Rc::clone(&explain))), ..TrialObservers::default() };
    let at_once = column.activation.request_bytes_max;
    let terms = short(terms, requests(commands, job.bytes_max(), at_once, job.depth));
    one(column, job, catalogue, &terms, watch)?;
    let traces = explain.borrow_mut().take_traces();
    let Some(begins) = traces.iter().map(|command| command.began).min() else { return Ok(None) };
    Ok(Some(traces.iter().map(|command| shown(command, begins)).collect()))
}

/// Requests of `bytes` needed for this many commands of at most `at_once` bytes, within the payload
/// limit.
fn requests(commands: u32, bytes: u32, at_once: u32, depth: u16) -> u32 {
    let pieces = bytes.div_ceil(at_once.max(1)).max(1);
    // Requests in flight at the end may be incomplete.
    let requests =
        if pieces == 1 { commands } else { commands.div_ceil(pieces).saturating_add(u32::from(depth)) };
    requests.min((PAYLOAD_BYTES_MAX / bytes.max(1)).max(1))
}

fn shown(trace: &CommandTrace, begins: Instant) -> Command {
    let ns = |at: Instant| (at.max(begins) - begins).as_ps() / 1000;
    let mut bars = Vec::new();
    for (lane, (pipe, _)) in (0..).zip(LANES) {
        let of_pipe = trace.spans.iter().filter(|span| span.pipe == Some(pipe));
        let mut places: Vec<(u64, u64)> = of_pipe.map(|span| (ns(span.from), ns(span.to))).collect();
        places.sort_unstable();
        let mut joined: Vec<Bar> = Vec::new();
        for (from_ns, to_ns) in places {
            match joined.last_mut() {
                Some(last) if from_ns <= last.to_ns + APART_NS => last.to_ns = last.to_ns.max(to_ns),
                _ => joined.push(Bar { lane, from_ns, to_ns }),
            }
        }
        bars.extend(joined);
    }
    Command { began_ns: ns(trace.began), ended_ns: ns(trace.ended), bars }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Span;
    use initiator::CommandId;
    use sim::engine::LatencyStage;
    use units::Duration;

    #[test]
    fn long_requests_are_as_few_as_their_commands_need() {
        assert_eq!(requests(3000, 4096, 65_536, 8), 3000);
        assert_eq!(requests(3000, 2 << 20, 65_536, 4), 98);
        assert_eq!(requests(3000, 2 << 20, 212_992, 4), 304);
        // More than four gigabytes would be more than is counted.
        assert_eq!(requests(3000, 2 << 20, 2 << 20, 4), 1024);
    }

    #[test]
    fn packets_of_a_command_that_follow_each_other_are_one_bar() {
        let at = |us| Instant::ZERO + Duration::from_us(us);
        let span =
            |pipe, from, to| Span { stage: LatencyStage::Link, pipe: Some(pipe), from: at(from), to: at(to) };
        let spans = vec![
            span(PipeUsage::DataIn, 130, 132),
            span(PipeUsage::Command, 101, 102),
            span(PipeUsage::DataIn, 133, 135),
            span(PipeUsage::DataIn, 150, 152),
        ];
        let command = CommandId { slot: 0, generation: 0 };
        let trace = CommandTrace { command, data_phase: None, began: at(100), ended: at(160), spans };
        let bar = |lane, from_ns, to_ns| Bar { lane, from_ns, to_ns };
        let bars = vec![bar(0, 1000, 2000), bar(2, 30_000, 35_000), bar(2, 50_000, 52_000)];
        assert_eq!(shown(&trace, at(100)), Command { began_ns: 0, ended_ns: 60_000, bars });
    }
}
