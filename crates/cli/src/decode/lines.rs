//! Commands for people: a line each, with columns that stay where they are; below them verdicts, and what was not seen.
//!
//! An outcome is told only if it is not the one hoped for, and so are bytes that were asked for and did not move.

use crate::counted::counted;
use decode::{Command, Decoder, Drive, Ended, Losses, Outcome, Phase, Step, Transport};
use std::io::{self, Write};
use wire::bot::CswStatus;
use wire::scsi::Status;

/// Above the columns.
pub(super) const HEAD: &str =
    "      time  device  via lun        tag  stream  depth   bytes       took  command";

/// A command, and its transfers if all is wanted.
pub(super) fn command(out: &mut impl Write, command: &Command, zero_ns: u64, full: bool) -> io::Result<()> {
    let lun = command.lun.map_or_else(|| "?".to_owned(), |lun| lun.to_string());
    let stream = command.stream.map_or_else(|| "-".to_owned(), |stream| stream.to_string());
    let tag = match command.transport {
        Transport::Bot => format!("{:#010x}", command.tag),
        Transport::Uas => command.tag.to_string(),
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

/// How it ended, unless as it should.
fn ending(command: &Command) -> String {
    let outcome = match command.outcome {
        Outcome::Status(Status::Good) | Outcome::Wrapper(CswStatus::Passed) => String::new(),
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

fn step(out: &mut impl Write, step: &Step, zero_ns: u64) -> io::Result<()> {
    let Step { mark, part, phase, length } = step;
    let length = length.map_or_else(|| "?".to_owned(), |length| length.to_string());
    let phase = match phase {
        Phase::Submitted => "submitted".to_owned(),
        Phase::Ended(Ended::Done) => "ended".to_owned(),
        Phase::Whole(Ended::Done) => "moved".to_owned(),
        Phase::Ended(ended) | Phase::Whole(ended) => ended.to_string(),
    };
    let at = match mark.at_ns.checked_sub(zero_ns) {
        Some(after) => format!("+{}", time(after)),
        None => format!("-{}", time(zero_ns - mark.at_ns)),
    };
    let part = part.to_string();
    writeln!(out, "{:12}packet {:<8} {at:>11}  {part:<8}  {phase}, {length} bytes", "", mark.packet)
}

/// What went wrong, and what is told besides.
pub(super) fn verdicts(out: &mut impl Write, decoder: &Decoder) -> io::Result<()> {
    let of = |is_note| decoder.verdicts().iter().filter(move |verdict| verdict.is_note() == is_note);
    if of(false).next().is_some() {
        writeln!(out, "\nVerdicts")?;
    }
    for verdict in of(false) {
        writeln!(out, "  {verdict}")?;
        let Some(flag) = verdict.quirk() else { continue };
        let id = decoder.drives().find(|drive| drive.address == verdict.address).and_then(|drive| drive.id);
        let id = id
            .map_or_else(|| "VID:PID".to_owned(), |(vendor, product)| format!("{vendor:04x}:{product:04x}"));
        match flag.letter() {
            Some(letter) => {
                writeln!(
                    out,
                    "    Linux bears with it by usb-storage.quirks={id}:{letter} ({})",
                    flag.meaning()
                )?;
            }
            None => writeln!(
                out,
                "    Linux has a quirk for it ({}) in its table only: no letter sets it",
                flag.meaning()
            )?,
        }
    }
    if of(true).next().is_some() {
        writeln!(out, "\nNotes")?;
    }
    of(true).try_for_each(|note| writeln!(out, "  {note}"))
}

/// How much was seen, and what was not.
pub(super) fn end(out: &mut impl Write, decoder: &Decoder, (seen, shown): (u64, u64)) -> io::Result<()> {
    let drives = decoder.drives().count();
    let of_all = if shown == seen { String::new() } else { format!(", {shown} shown") };
    let verdicts = decoder.verdicts().iter().filter(|verdict| !verdict.is_note()).count();
    let [commands, drives, verdicts] =
        [(seen, "command"), (drives as u64, "drive"), (verdicts as u64, "verdict")]
            .map(|(number, what)| counted(number, what));
    writeln!(out, "\n{commands} of {drives}{of_all}; {verdicts}")?;
    for Drive { address, transports, .. } in decoder.drives().filter(|drive| drive.transports.len() > 1) {
        let names: Vec<String> = transports.iter().map(ToString::to_string).collect();
        writeln!(out, "drive {address} has spoken {}", names.join(", then "))?;
    }
    for (what, left) in
        [("not what their link type says", decoder.not_understood()), ("not USB", decoder.foreign())]
    {
        if let Some(first) = left.first {
            writeln!(out, "{what}: {}, the first is {first}", counted(left.count, "packet"))?;
        }
    }
    let Losses { devices, commands, transfers, faults, data_without_command } = decoder.losses();
    for (what, of, count) in [
        ("forgotten for others", "drive", devices),
        ("let go of", "command", commands),
        ("forgotten", "transfer", transfers),
        ("not kept", "fault", faults),
        ("of no command that was seen", "data transfer", data_without_command),
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
        let told = [5, 1_234, 12_345, 123_456, 9_876_543, 31_000_000_000].map(time);
        assert_eq!(told, ["5 ns", "1.23 µs", "12.3 µs", "123 µs", "9.88 ms", "31.0 s"]);
        assert_eq!(seconds(61_000_001_999), "61.000001");
    }
}
