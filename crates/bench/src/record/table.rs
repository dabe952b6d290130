//! A table for people: the measured device, the rows, and below them what went wrong.
//!
//! Empty columns are omitted, and on a narrow terminal the less important ones, with a note.
//! Details without a column, such as reasons of failures and wrong blocks, get a line each: no
//! error is hidden. Foreign text is printed without control characters.

use super::{Record, RecordRow, RowFigures, Target};
use crate::backend::DriveInfo;
use report::{Fitted, TextTable};
use units::Capacity;
use workload::short_bytes;

/// Describes device, machine and method in a few lines.
pub fn heading(record: &Record) -> String {
    let target = &record.target;
    let known =
        |words: [Option<&String>; 3]| words.into_iter().flatten().cloned().collect::<Vec<_>>().join(", ");
    let serial = target.identity.serial.as_ref().map(|serial| format!("serial number {serial}"));
    let firmware = target.identity.firmware.as_ref().map(|firmware| format!("firmware {firmware}"));
    let unknown = "unknown model".to_owned();
    let who =
        known([Some(target.identity.model.as_ref().unwrap_or(&unknown)), serial.as_ref(), firmware.as_ref()]);
    let mut lines = vec![format!("{}: {who}{}", target.name, extent(&target.identity))];
    if let Some(port) = &target.usb_port {
        let of_usb = known([target.usb_id.as_ref(), target.usb_speed.as_ref(), target.controller.as_ref()]);
        lines.push(format!("USB port {port}: {of_usb}"));
    }
    // For a drive that was never opened the engine is unknown.
    if !target.identity.engine.is_empty() {
        lines.push(format!("Requests: {}", target.identity.engine));
    }
    let machine = &record.machine;
    lines.push(format!(
        "Linux {}, {} x {}, uaskit {}",
        machine.kernel.as_deref().unwrap_or("(unknown release)"),
        machine.processors,
        machine.processor.as_deref().unwrap_or("processor"),
        record.version
    ));
    lines.extend(temperature(target));
    lines.into_iter().map(|line| line.chars().map(visible).collect::<String>()).collect::<Vec<_>>().join("\n")
}

/// Size and block size of the drive, as far as known.
fn extent(identity: &DriveInfo) -> String {
    let size = (identity.bytes > 0).then(|| format!(", {}", Capacity(identity.bytes)));
    let blocks = (identity.block_bytes > 0).then(|| format!(", blocks of {}", identity.block_bytes));
    size.into_iter().chain(blocks).collect()
}

/// Temperature of the drive.
fn temperature(target: &Target) -> Option<String> {
    let source = match target.temperature_source {
        Some("log-page") => " (by LOG SENSE)",
        Some("smart") => " (by SMART)",
        Some("kernel") => " (kernel sensor)",
        _ => "",
    };
    let degrees = match target.temperature_c {
        [Some(before), Some(after)] => format!("{before:.0} °C before, {after:.0} °C after"),
        [Some(before), None] => format!("{before:.0} °C before"),
        [None, Some(after)] => format!("{after:.0} °C after"),
        [None, None] => return None,
    };
    Some(degrees + source)
}

/// Foreign text without control characters.
fn visible(letter: char) -> char {
    if letter.is_control() { '?' } else { letter }
}

/// Columns omitted one after another until the table fits a narrow terminal; the ratio to the first transport stays.
const LEFT_OUT_FIRST: [&str; 10] =
    ["CPU/IO", "p99.9", "J/GB", "max", "p50", "part", "±", "mean", "MB/s", "p99"];

/// Formats the table of a record and the lines below it. `terminal_columns` is the width of the
/// terminal; `None` for unlimited.
pub fn table(record: &Record, terminal_columns: Option<usize>) -> String {
    let shown =
        |any: fn(&RowFigures) -> bool| record.rows.iter().any(|row| row.figures.as_ref().is_some_and(any));
    let whole = super::span(&record.target.identity, 0, None);
    let columns = Columns {
        part: record.rows.iter().any(|row| part(row, whole).is_some()),
        whole,
        ratio: shown(|figures| figures.ratio_to_first.is_some()),
        joules: shown(|figures| figures.joules_per_gb.is_some()),
        verify: record.rows.iter().any(|row| row.verify.is_some()),
    };
    let mut table = TextTable::new(columns.header())
        .open()
        .words(0..2)
        .keys(3)
        .leave_out_first(&LEFT_OUT_FIRST)
        .keeps_lines();
    record.rows.iter().for_each(|row| table.row(columns.row(row)));
    let Fitted { mut text, left_out } = table.fitted(terminal_columns);
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        text += &format!("\nHidden columns: {names}; use a wider terminal, --json or --csv.");
    }
    for line in remarks(record) {
        text.push('\n');
        text.push_str(&line);
    }
    text
}

/// The optional columns that have content.
#[derive(Clone, Copy)]
struct Columns {
    part: bool,
    /// Size of the drive, if known.
    whole: Option<u64>,
    ratio: bool,
    joules: bool,
    verify: bool,
}

impl Columns {
    fn header(self) -> Vec<&'static str> {
        let mut names = vec!["job", "transport", "depth"];
        names.extend(self.part.then_some("part"));
        names.extend(["IOPS", "±", "MB/s", "mean", "p50", "p99", "p99.9", "max", "CPU/IO"]);
        names.extend(self.joules.then_some("J/GB"));
        names.extend(self.ratio.then_some("ratio"));
        names.extend(self.verify.then_some("wrong"));
        names.push("errors");
        names
    }

    fn row(self, row: &RecordRow) -> Vec<String> {
        let mut cells = vec![row.job.clone(), row.transport.to_owned(), row.depth.to_string()];
        if self.part {
            cells.push(part(row, self.whole).unwrap_or_else(|| "all".into()));
        }
        let Some(figures) = &row.figures else {
            cells.push("none".into());
            // Up to the last column, which has the failures.
            cells.resize(self.header().len() - 1, String::new());
            cells.push(row.errors.to_string());
            return cells;
        };
        cells.push(rate(figures.iops));
        cells.push(figures.iops_interval.map_or_else(|| "-".into(), interval));
        cells.push(format!("{:.1}", figures.mb_per_s));
        let times = [figures.mean_us, figures.p50_us, figures.p99_us, figures.p999_us, figures.max_us];
        cells.extend(times.map(time));
        cells.push(time(figures.processor_us_per_io));
        if self.joules {
            cells.push(figures.joules_per_gb.map_or_else(|| "-".into(), |joules| format!("{joules:.1}")));
        }
        if self.ratio {
            cells.push(figures.ratio_to_first.map_or_else(
                || "1".into(),
                |ratio| match ratio.interval {
                    Some([low, high]) => format!("{:.2} ({low:.2} to {high:.2})", ratio.value),
                    None => format!("{:.2}", ratio.value),
                },
            ));
        }
        if self.verify {
            cells.push(row.verify.as_ref().map_or_else(|| "-".into(), |findings| findings.wrong.to_string()));
        }
        cells.push(row.errors.to_string());
        cells
    }
}

/// The part of the drive that a row used, if not all of it.
fn part(row: &RecordRow, whole: Option<u64>) -> Option<String> {
    let RecordRow { offset_bytes, span_bytes, .. } = *row;
    let from = format!(" from {}", short_bytes(offset_bytes));
    match span_bytes {
        Some(_) if offset_bytes == 0 && span_bytes == whole => None,
        Some(bytes) if offset_bytes == 0 => Some(short_bytes(bytes)),
        Some(bytes) => Some(short_bytes(bytes) + &from),
        None => (offset_bytes > 0).then(|| format!("all{from}")),
    }
}

/// Details that have no column.
fn remarks(record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &record.rows {
        let name = format!("{}, {}, depth {}", row.job, row.transport, row.depth);
        lines.extend(row.error.as_ref().map(|error| format!("{name}: no figures: {error}")));
        if let Some(figures) = row.figures.as_ref().filter(|figures| !figures.steady && figures.rounds > 1) {
            lines.push(format!("{name}: not steady after {} rounds", figures.rounds));
        }
        for kind in &row.error_kinds {
            lines.push(format!("{name}: {} failed: {}", kind.count, kind.reason));
        }
        let error_counters = row.error_counters.named().into_iter().filter(|(_, count)| *count > 0);
        let error_counters: Vec<String> =
            error_counters.map(|(what, count)| format!("{count} {what}")).collect();
        if !error_counters.is_empty() {
            lines.push(format!("{name}: {}", error_counters.join(", ")));
        }
        if let Some(findings) = &row.verify {
            // A block counts once per run here, however often it was written.
            let missing = match findings.not_read_back {
                0 => String::new(),
                count => format!(", {count} NOT VERIFIED (unreadable or failed writes)"),
            };
            lines.push(format!(
                "{name}: {} blocks written, {} verified{missing}, {} wrong",
                findings.to_read_back, findings.read_back, findings.wrong
            ));
            lines.extend(findings.first_wrong.iter().map(|wrong| format!("  {wrong}")));
            let others = findings.wrong.saturating_sub(findings.first_wrong.len() as u64);
            lines.extend((others > 0).then(|| format!("  and {others} more")));
        }
    }
    lines.extend(record.target.identity.notes.iter().map(|note| format!("Note: {note}.")));
    if record.interrupted && !record.is_ended_before_figures() {
        lines.push("Interrupted: these are the figures so far.".to_owned());
    }
    lines
}

/// Half of an interval in percent; for wide intervals its ends, which are not symmetric.
fn interval([low, high]: [f64; 2]) -> String {
    const PERCENT_MAX: f64 = 20.0;
    match (high / low).ln() / 2.0 * 100.0 {
        percent if percent <= PERCENT_MAX => format!("{percent:.1} %"),
        _ => format!("{} to {}", roughly(low), roughly(high)),
    }
}

/// A rate to two digits: the end of a wide interval has no more.
fn roughly(iops: f64) -> String {
    let unit = 10_f64.powf(iops.log10().floor() - 1.0);
    let (rounded, is_whole) = ((iops / unit).round() * unit, unit >= 1.0);
    if is_whole { format!("{rounded:.0}") } else { format!("{rounded:.1}") }
}

/// A rate with its significant digits.
fn rate(iops: f64) -> String {
    if iops < 100.0 { format!("{iops:.1}") } else { format!("{iops:.0}") }
}

/// A latency in a suitable unit.
fn time(us: f64) -> String {
    match us {
        us if us < 10.0 => format!("{us:.2} us"),
        us if us < 1000.0 => format!("{us:.0} us"),
        us if us < 100_000.0 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_intervals_show_their_ends() {
        assert_eq!(interval([980.0, 1020.2]), "2.0 %");
        assert_eq!(interval([50.25, 904.0]), "50 to 900");
        assert_eq!(interval([3.12, 26_950_000.0]), "3.1 to 27000000");
    }
}
