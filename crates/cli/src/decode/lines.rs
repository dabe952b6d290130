//! Text output: a line for each command, in fixed columns; below them verdicts, and what is missing.
//!
//! An outcome is printed only if it is not success, and so are requested bytes that did not move.

use super::counts::CommandCounts;
use decode::{
    Address, Command, Decoder, DeviceSummary, Drive, Losses, Outcome, Phase, TransferEnd, TransferStep,
    Transport, class_name,
};
use std::io::{self, Write};
use study::plural::counted;
use wire::bot::CswStatus;
use wire::scsi::Status;

/// Heading of the columns.
pub(super) const HEAD: &str =
    "      time  device  via lun        tag  stream  depth   bytes       took  command";

/// A command, and its transfers with `--full`.
pub(super) fn command(out: &mut impl Write, command: &Command, zero_ns: u64, full: bool) -> io::Result<()> {
    let lun = command.lun.map_or_else(|| "?".to_owned(), |lun| lun.to_string());
    let stream = command.stream.map_or_else(|| "-".to_owned(), |stream| stream.to_string());
    let tag = match command.transport {
        Transport::Bot => format!("{:#010x}", command.tag),
        Transport::Uas => command.tag.to_string(),
        Transport::Cbi => "-".to_owned(),
    };
    let took = command.duration_ns().map_or_else(|| "-".to_owned(), time);
    writeln!(
        out,
        "{:>10}  {:<6}  {} {lun:>3} {tag:>10} {stream:>7} {:>6} {:>7} {took:>10}  {}{}",
        seconds(command.began.at_ns.saturating_sub(zero_ns)),
        command.address.to_string(),
        command.transport,
        command.depth,
        command.moved,
        command.block,
        ending(command),
    )?;
    if full {
        for one in &command.steps {
            step(out, one, command.began.at_ns)?;
        }
        if command.steps_left_off > 0 {
            writeln!(out, "{:14}and {} more", "", command.steps_left_off)?;
        }
    }
    Ok(())
}

/// How it ended, unless with success.
fn ending(command: &Command) -> String {
    let outcome = match command.outcome {
        Outcome::Status(Status::Good) | Outcome::Wrapper(CswStatus::Passed) => String::new(),
        Outcome::Completion(status) if status.is_success() => String::new(),
        outcome => format!(" → {outcome}"),
    };
    let sense = match (command.is_error(), command.sense()) {
        (true, Some(sense)) => format!(": {sense}"),
        _ => String::new(),
    };
    let short = match command.asked {
        Some(asked) if asked != command.moved && !command.is_error() => format!(" (of {asked} bytes)"),
        _ => String::new(),
    };
    format!("{short}{outcome}{sense}")
}

fn step(out: &mut impl Write, step: &TransferStep, zero_ns: u64) -> io::Result<()> {
    let TransferStep { mark, part, phase, length } = step;
    let length = length.map_or_else(|| "?".to_owned(), |length| length.to_string());
    let phase = match phase {
        Phase::Submitted => "submitted".to_owned(),
        Phase::Completed(TransferEnd::Done) => "completed".to_owned(),
        Phase::Whole(TransferEnd::Done) => "moved".to_owned(),
        Phase::Completed(ended) | Phase::Whole(ended) => ended.to_string(),
    };
    let at = match mark.at_ns.checked_sub(zero_ns) {
        Some(after) => format!("+{}", time(after)),
        None => format!("-{}", time(zero_ns - mark.at_ns)),
    };
    let part = part.to_string();
    writeln!(out, "{:12}packet {:<8} {at:>11}  {part:<8}  {phase}, {length} bytes", "", mark.packet)
}

/// Verdicts and notes, of all devices or of one.
pub(super) fn verdicts(out: &mut impl Write, decoder: &Decoder, device: Option<Address>) -> io::Result<()> {
    let of = |is_note| {
        let is_of_device = move |address| device.is_none_or(|device| device == address);
        let all = decoder.verdicts().iter();
        all.filter(move |verdict| verdict.is_note() == is_note && is_of_device(verdict.address))
    };
    if of(false).next().is_some() {
        writeln!(out, "\nVerdicts")?;
    }
    for verdict in of(false) {
        writeln!(out, "  {verdict}")?;
        let Some(flag) = verdict.quirk() else { continue };
        let id = decoder.drives().find(|drive| drive.address == verdict.address).and_then(|drive| drive.id);
        match (flag.letter(), id) {
            (Some(letter), Some((vendor, product))) => {
                let meaning = flag.meaning();
                writeln!(
                    out,
                    "    Workaround in Linux: usb-storage.quirks={vendor:04x}:{product:04x}:{letter} ({meaning})"
                )?;
            }
            // Without ids there is no line that a user could copy.
            (Some(_), None) => {}
            (None, _) => {
                writeln!(
                    out,
                    "    Workaround in Linux only by its built-in table ({}), not by usb-storage.quirks=",
                    flag.meaning()
                )?;
            }
        }
    }
    if of(true).next().is_some() {
        writeln!(out, "\nNotes")?;
    }
    of(true).try_for_each(|note| writeln!(out, "  {note}"))
}

/// Writes the devices of a capture without a drive.
fn contents(out: &mut impl Write, decoder: &Decoder) -> io::Result<()> {
    let devices: Vec<DeviceSummary> =
        decoder.contents().filter(|device| device.transfers.total() > 0).collect();
    if devices.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nNo commands of a drive. Devices in the capture:")?;
    for DeviceSummary { address, id, class, interfaces, transfers } in &devices {
        let id = id.map_or_else(
            || "ids unknown".to_owned(),
            |(vendor, product)| format!("{vendor:04x}:{product:04x}"),
        );
        let mut names: Vec<&str> = interfaces.iter().chain(class).map(|class| class_name(*class)).collect();
        names.retain(|name| !name.is_empty());
        names.dedup();
        let classes = if names.is_empty() { "class unknown".to_owned() } else { names.join(", ") };
        let kinds = [
            (transfers.control, "control"),
            (transfers.bulk, "bulk"),
            (transfers.interrupt, "interrupt"),
            (transfers.isochronous, "isochronous"),
        ];
        let counts: Vec<String> = kinds
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, kind)| format!("{count} {kind}"))
            .collect();
        writeln!(out, "  {:<6}  {id:<11}  {classes}; transfers: {}", address.to_string(), counts.join(", "))?;
    }
    Ok(())
}

/// How much there was, and what is missing.
pub(super) fn end(out: &mut impl Write, decoder: &Decoder, commands: CommandCounts) -> io::Result<()> {
    let CommandCounts { seen, shown } = commands;
    let drives = decoder.drives().count();
    if drives == 0 {
        contents(out, decoder)?;
    }
    let of_all = if shown == seen { String::new() } else { format!(", {shown} shown") };
    let verdicts = decoder.verdicts().iter().filter(|verdict| !verdict.is_note()).count();
    let [commands, drives, verdicts] =
        [(seen, "command"), (drives as u64, "drive"), (verdicts as u64, "verdict")]
            .map(|(number, what)| counted(number, what));
    writeln!(out, "\n{commands} of {drives}{of_all}; {verdicts}")?;
    if shown == 0 && seen > 0 {
        let there: Vec<String> = decoder.drives().map(|drive| drive.address.to_string()).collect();
        writeln!(out, "no command matches the options; the drives of this capture are {}", there.join(", "))?;
    }
    if let Some(tick_ns) = decoder.clock_tick_ns().filter(|_| seen > 0) {
        writeln!(out, "the timestamps of this capture have a resolution of {}", time(tick_ns))?;
    }
    for Drive { address, transports, .. } in decoder.drives().filter(|drive| drive.transports.len() > 1) {
        let names: Vec<String> = transports.iter().map(ToString::to_string).collect();
        writeln!(out, "drive {address} used {}", names.join(", then "))?;
    }
    for (what, left) in
        [("malformed for their link type", decoder.not_understood()), ("not USB", decoder.foreign())]
    {
        if let Some(first) = left.first {
            writeln!(out, "{what}: {}, the first is {first}", counted(left.count, "packet"))?;
        }
    }
    let Losses { devices, commands, transfers, faults, data_without_command } = decoder.losses();
    for (what, of, count) in [
        ("forgotten to limit memory", "drive", devices),
        ("forgotten to limit memory", "command", commands),
        ("forgotten to limit memory", "transfer", transfers),
        ("forgotten to limit memory", "fault", faults),
        ("without a command in the capture", "data transfer", data_without_command),
    ] {
        if count > 0 {
            writeln!(out, "{what}: {}", counted(count, of))?;
        }
    }
    Ok(())
}

/// Seconds, to the microsecond.
fn seconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns / 1_000 % 1_000_000)
}

/// A time in the unit that fits: `12.3 µs`.
pub(super) fn time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::{seconds, time};

    #[test]
    fn times_have_three_digits_and_a_unit() {
        let found = [5, 1_234, 12_345, 123_456, 9_876_543, 31_000_000_000].map(time);
        assert_eq!(found, ["5 ns", "1.23 µs", "12.3 µs", "123 µs", "9.88 ms", "31.0 s"]);
        assert_eq!(seconds(61_000_001_999), "61.000001");
    }
}
