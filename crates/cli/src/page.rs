//! `--report`: writes pages, and what pages of stored runs have in common.
//!
//! Charts are built in [`study::page`]. Left out: pages of a single command, which are beside it. Invariant: a page
//! replaces an older page only.

mod saved;

pub(crate) use saved::{by_share, look, saved_routes};
pub(crate) use study::page::{
    Latency, Measured, ReportRoute, Values, by_block, by_depth, by_label, chosen, course, date, depth_axis,
    each_once, energy, featured_depth, hue, in_easier, in_unit, latencies, reach, single, version, ways,
};

use crate::command_line;
use crate::failure::Failure;
use crate::messages::message;
use crate::output_file;
use crate::sanitize::shown;
use report::{Fact, Page};
use std::path::Path;

/// The command line of this run, as a fact that lets a reader repeat it.
pub(crate) fn command_line() -> Fact {
    made_again(command_line::line(&command_line::words()))
}

/// A command line that repeats the run, where it differs from that of this run.
pub(crate) fn made_again(line: String) -> Fact {
    Fact::Lines("To make it again".into(), line)
}

/// Checks that a page can be written there, before the measurement starts.
///
/// # Errors
/// If not.
pub(crate) fn has_room(file: Option<&Path>) -> Result<(), Failure> {
    file.map_or(Ok(()), |file| output_file::check_replaceable(file, output_file::Kind::Page))
}

/// Writes a page into a file, replaces an older page of that name, and prints where the page is.
pub(crate) fn write(page: &Page, file: &Path) -> Result<(), Failure> {
    let failure = |error| Failure::new(format!("{} cannot be written", shown(file))).because(error);
    output_file::write(file, output_file::Kind::Page, page.html().map_err(failure)?.as_bytes())?;
    message!("report: {}", shown(file));
    Ok(())
}
