//! `uaskit compare`: transports side by side in a simulated world.
//!
//! [`choice`] selects the parts, [`mod@run`] measures and shows, [`power`] reports power and energy. The figures,
//! findings and bottlenecks are from [`study::compare`].
//! [`observers`] trace and capture runs, [`timeline`] and [`platter`] draw, [`against`] compares with a measurement of
//! hardware, and [`sweep`] runs whole grids. [`raw`] simulates link and protocols alone, on a plain drive.

mod against;
pub(crate) mod choice;
mod components;
pub(crate) mod dispatch;
mod drawing;
mod observers;
pub(crate) mod parts;
mod platter;
mod power;
mod raw;
mod request;
mod run;
mod saved;
pub(crate) mod sweep;
pub(crate) mod table;
mod timeline;

use crate::args::{CompareArguments, ControllerArgument, LinkArgument};
use crate::failure::Failure;
use crate::stdout::{Output, wrapped};
use study::plural::counted_len;

/// Prints findings as a list, with a line for those that are not shown.
fn print_findings(out: &mut Output<'_>, findings: &[String], shown: usize) -> Result<(), Failure> {
    if findings.is_empty() {
        return Ok(());
    }
    findings
        .iter()
        .take(shown)
        .try_for_each(|finding| writeln!(out, "{}", wrapped(&format!("- {finding}"), "  ")))?;
    if let more @ 1.. = findings.len().saturating_sub(shown) {
        writeln!(out, "- {}: --findings all", counted_len(more, "more finding"))?;
    }
    writeln!(out)
}

/// Prints which variants options removed, and what stays around a replaced part.
fn print_notes(out: &mut Output<'_>, notes: &[String]) -> Result<(), Failure> {
    notes.iter().try_for_each(|note| writeln!(out, "{}", wrapped(note, "  ")))
}
