//! Commands for programs: an object a line, with its `kind`; fields are only added to.
//!
//! Kinds are `command`, `damage`, `dropped`, `stats`, `verdict`, `note`, and at last `end`. Times are nanoseconds, sizes bytes, what was not seen is null.
//! `dropped` is printed for the first places; `end` has how many there were, and how many packets. `stats` of all drives has no device.

use super::counts::{CommandCounts, Losses};
use capture::{Damage, Dropped};
use decode::{
    Address, Command, Decoder, DeviceSummary, Fault, Outcome, Phase, Spread, Stats, Summary, TransferEnd,
    TransferStep, Transport, Verdict,
};
use quirks::quirk::Flag;
use serde_json::{Value, json};
use wire::cbi::CommandStatus;
use wire::usb::ClassCode;

/// A command, with its transfers if all is wanted.
pub(super) fn command(command: &Command, zero_ns: u64, full: bool) -> Value {
    let extent = command.block.extent();
    let sense = command.sense().filter(|_| !command.sense.is_empty());
    let mut value = json!({
        "kind": "command",
        "time_ns": command.began.at_ns.saturating_sub(zero_ns),
        "at_ns": command.began.at_ns,
        "packet": command.began.packet,
        "last_packet": command.last_packet(),
        "device": command.address.to_string(),
        "transport": command.transport.to_string(),
        "lun": command.lun,
        "tag": (command.transport != Transport::Cbi).then_some(command.tag),
        "stream": command.stream,
        "opcode": u8::from(command.block.opcode()),
        "name": command.block.name(),
        "command": command.block.to_string(),
        "cdb": hexadecimal(command.block.bytes()),
        "lba": extent.map(|(lba, _)| lba),
        "blocks": extent.map(|(_, blocks)| blocks),
        "depth": command.depth,
        "asked": command.asked,
        "bytes": command.moved,
        "residue": command.residue,
        "duration_ns": command.duration_ns(),
        "idle_ns": command.idle_ns,
        "outcome": command.outcome.to_string(),
        "status": status(command.outcome),
        "error": command.is_error(),
        "sense": sense.map(|sense| sense.to_string()),
        "sense_bytes": hexadecimal(&command.sense),
    });
    if full {
        value["transfers"] = command.steps.iter().map(step).collect();
        value["transfers_left_off"] = command.steps_left_off.into();
    }
    value
}

fn step(step: &TransferStep) -> Value {
    let (is_end, ended) = match step.phase {
        Phase::Submitted => ("submitted", None),
        Phase::Completed(ended) => ("ended", Some(ended)),
        Phase::Whole(ended) => ("whole", Some(ended)),
    };
    json!({
        "packet": step.mark.packet,
        "at_ns": step.mark.at_ns,
        "part": step.part.to_string(),
        "phase": is_end,
        "end": ended.filter(|ended| *ended != TransferEnd::Done).map(|ended| ended.to_string()),
        "bytes": step.length,
    })
}

/// The byte that ended the command, as its transport has it.
fn status(outcome: Outcome) -> Option<u8> {
    match outcome {
        Outcome::Status(status) => Some(status.into()),
        Outcome::Wrapper(status) => Some(status.into()),
        Outcome::Response(code) => Some(code.into()),
        Outcome::Completion(CommandStatus::Ufi { asc, .. }) => Some(asc),
        Outcome::Completion(CommandStatus::Completion(value)) => Some(value as u8),
        _ => None,
    }
}

/// A verdict or a note.
pub(super) fn verdict(verdict: &Verdict) -> Value {
    let quirk = verdict.quirk();
    let (idle_percent, gap_ns) = match verdict.fault {
        Fault::DepthOne { idle_percent, gap_ns } => (Some(idle_percent), Some(gap_ns)),
        _ => (None, None),
    };
    json!({
        "kind": if verdict.is_note() { "note" } else { "verdict" },
        "fault": verdict.fault.name(),
        "by": verdict.fault.side().to_string(),
        "device": verdict.address.to_string(),
        "transport": verdict.transport.map(|transport| transport.to_string()),
        "opcode": verdict.opcode.map(u8::from),
        "count": verdict.count,
        "packets": verdict.packets,
        "waited_ns": verdict.waited_ns,
        "idle_percent": idle_percent,
        "gap_ns": gap_ns,
        "sure": verdict.is_sure,
        "text": verdict.to_string(),
        "quirk": quirk.map(Flag::meaning),
        "quirk_letter": quirk.and_then(Flag::letter).map(String::from),
    })
}

/// A part of the file that could not be read.
pub(super) fn damage(damage: &Damage) -> Value {
    let Damage { offset, bytes, kind } = damage;
    json!({ "kind": "damage", "offset": offset, "bytes": bytes, "text": kind.to_string() })
}

/// Packets that the file says are missing: before the next packet, or anywhere before.
pub(super) fn dropped(dropped: &Dropped) -> Value {
    let Dropped { offset, packets, is_here } = dropped;
    json!({ "kind": "dropped", "offset": offset, "packets": packets, "here": is_here })
}

/// Where compressed data end in damage.
pub(super) fn unpack_damage(offset: u64, what: &str) -> Value {
    json!({ "kind": "damage", "offset": offset, "bytes": null, "text": format!("compressed data: {what}") })
}

/// Numbers of a drive or of all; times outside of commands and depths are sure if no packet is missing.
pub(super) fn stats(stats: &Stats, device: Option<Address>, is_sure: bool) -> Value {
    let gaps = stats.gaps();
    let (span_ns, idle_ns) = stats.span_ns();
    json!({
        "kind": "stats",
        "device": device.map(|device| device.to_string()),
        "all": summary(stats.all()),
        "by_opcode": stats.by_name().map(|(opcode, name, row)| {
            json!({ "opcode": u8::from(opcode), "name": name, "row": summary(row) })
        }).collect::<Vec<_>>(),
        "by_depth": stats.by_depth().map(|(depth, row)| {
            json!({ "depth": depth, "row": summary(row) })
        }).collect::<Vec<_>>(),
        "gaps": {
            "send": spread(gaps.sending),
            "data": spread(gaps.data),
            "status": spread(gaps.status),
            "next_command": spread(gaps.idle),
        },
        "span_ns": span_ns,
        "outside_commands_ns": idle_ns,
        "is_sure": is_sure,
    })
}

/// The last line.
pub(super) fn end(decoder: &Decoder, commands: CommandCounts, lost: &Losses) -> Value {
    let losses = decoder.losses();
    json!({
        "kind": "end",
        "commands": commands.seen,
        "shown": commands.shown,
        "drives": decoder.drives().map(|drive| json!({
            "device": drive.address.to_string(),
            "transport": drive.transport.to_string(),
            "transports": drive.transports.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "id": drive.id.map(|(vendor, product)| format!("{vendor:04x}:{product:04x}")),
        })).collect::<Vec<_>>(),
        "devices": decoder.contents().map(|device| summary_of(&device)).collect::<Vec<_>>(),
        "clock_tick_ns": decoder.clock_tick_ns(),
        "damages": lost.damages,
        "bytes_not_read": lost.bytes,
        "packets_dropped": lost.dropped,
        "places_dropped": lost.drops,
        "packets_not_understood": decoder.not_understood().count,
        "packets_not_usb": decoder.foreign().count,
        "discarded": {
            "drives": losses.devices,
            "commands": losses.commands,
            "transfers": losses.transfers,
            "faults": losses.faults,
            "data_without_command": losses.data_without_command,
        },
    })
}

fn summary_of(device: &DeviceSummary) -> Value {
    let DeviceSummary { address, id, class, interfaces, transfers } = device;
    let code =
        |class: &ClassCode| format!("{:02x}/{:02x}/{:02x}", class.class, class.subclass, class.protocol);
    json!({
        "device": address.to_string(),
        "id": id.map(|(vendor, product)| format!("{vendor:04x}:{product:04x}")),
        "class": class.as_ref().map(code),
        "interfaces": interfaces.iter().map(code).collect::<Vec<_>>(),
        "transfers": {
            "control": transfers.control,
            "bulk": transfers.bulk,
            "interrupt": transfers.interrupt,
            "isochronous": transfers.isochronous,
        },
    })
}

fn summary(summary: Summary) -> Value {
    let Summary { commands, errors, bytes, latency } = summary;
    json!({ "commands": commands, "errors": errors, "bytes": bytes, "latency": spread(latency) })
}

fn spread(spread: Spread) -> Value {
    let Spread { count, p50_ns, p90_ns, p99_ns, max_ns } = spread;
    json!({ "count": count, "p50_ns": p50_ns, "p90_ns": p90_ns, "p99_ns": p99_ns, "max_ns": max_ns })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
