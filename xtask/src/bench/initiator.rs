//! `cargo xtask bench host`: is the host side as fast as it has to be?
//!
//! Three questions, each with a bar: how much of a plain loop of copies initiator and drive reach in memory
//! ([`memory`]); how our own drivers compare with the kernel's `uas` on the same drive in a guest ([`guest`]); how long
//! `uaskit list` takes with thirty drives ([`list`]).

mod guest;
mod list;
mod memory;

use super::arguments::{HostArguments, HostPart};
use super::figure::{self, Figure};
use super::judged::{Judged, conclude};
use crate::profiled;
use anyhow::{Context, Result};
use memory::MemoryFigures;
use serde::Serialize;
use std::process::{Command, Stdio};

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Report {
    memory: Option<MemoryFigures>,
    guest: Option<Vec<Figure>>,
    list_ms: Option<f64>,
}

/// Builds this program with a profile of what it is to measure, and lets that do it; whether every bar was reached.
pub(super) fn measure_profiled(arguments: &HostArguments) -> Result<bool> {
    const MEASURE: [&str; 4] = ["bench", "host", "--only", "memory"];
    let program = profiled::build("uaskit-xtask", |counting, place| {
        let mut training = Command::new(counting);
        training.args(MEASURE).args(["--rounds", "1", "--seconds", "0.3", "--json"]);
        // Whether a bar is reached with counters is nothing to us.
        training.current_dir(place).stdout(Stdio::null()).status().context("start the training")?;
        Ok(())
    })?;
    let mut measured = Command::new(program);
    measured.args(MEASURE).args(arguments.json.then_some("--json"));
    measured.arg("--rounds").arg(arguments.rounds.to_string());
    measured.arg("--seconds").arg(arguments.seconds.as_secs_f64().to_string());
    Ok(measured.status().context("start the build with a profile")?.success())
}

/// Measures; whether every bar was reached.
pub(super) fn measure(arguments: &HostArguments) -> Result<bool> {
    let wanted = |part| arguments.only.is_none_or(|only| only == part);
    let report = Report {
        memory: wanted(HostPart::Memory).then(|| memory::measure(arguments)).transpose()?,
        guest: wanted(HostPart::Guest).then(|| guest::measure(arguments)).transpose()?,
        list_ms: wanted(HostPart::List).then(list::measure).transpose()?.map(|time| time.as_secs_f64() * 1e3),
    };
    conclude(&report, arguments.json, || report.print(arguments))
}

impl Judged for Report {
    fn passes(&self) -> bool {
        self.memory.iter().all(MemoryFigures::passes)
            && self.guest.iter().flatten().all(Figure::passes)
            && self.list_ms.iter().all(|&time| time <= list::BAR.as_secs_f64() * 1e3)
    }
}

impl Report {
    fn print(&self, arguments: &HostArguments) {
        let HostArguments { rounds, seconds, .. } = arguments;
        if let Some(MemoryFigures { figures, allocations, commands }) = &self.memory {
            println!("Commands per second in memory, one thread, {rounds} rounds of {seconds:?}");
            println!("{}", figure::table(["copies", "initiator and drive"], figures));
            println!("{allocations} allocations in {commands} commands\n");
        }
        if let Some(figures) = &self.guest {
            println!("Commands per second in a guest, on QEMU's usb-uas, {rounds} rounds of {seconds:?}");
            println!("{}\n", figure::table(["kernel's uas", "ours over usbfs"], figures));
        }
        if let Some(time) = self.list_ms {
            println!("uaskit list with thirty drives: {time:.1} ms, at most {} ms\n", list::BAR.as_millis());
        }
    }
}
