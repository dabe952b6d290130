//! Statistics of the components of a run, as text and as JSON.
//!
//! Fields for programs are those of `docs/JSON.md`. Left out: how they are laid out beside the run that they are of, which those who print
//! it know. Always true: components that a world has not have no lines.

use serde_json::{Value, json};
use sim::components::{
    BridgeLoad, BusLoad, Components, ControllerLoad, CoreLoad, LaneLoad, QueueLoad, StoreLoad,
};
use study::plural::counted;
use units::Duration;

/// Column titles of a component's line: name, busy time, payload rate, mean and maximum queue, and
/// what is counted.
pub(super) const HEAD: [&str; 6] = ["component", "busy %", "MB/s", "mean queue", "max queue", "count"];

/// A line for each component.
pub(super) fn lines(all: &Components) -> Vec<[String; 6]> {
    let none = String::new;
    let mut lines = wires(all);
    if let Some(ControllerLoad { tds, interrupts, rings_full }) = all.controller {
        let full =
            if rings_full > 0 { format!(", {}", counted(rings_full.into(), "full ring")) } else { none() };
        let count = format!("{}, {}{full}", counted(tds, "TD"), counted(interrupts, "interrupt"));
        lines.push(["controller".to_owned(), none(), none(), none(), none(), count]);
    }
    if let Some(CoreLoad { busy, queue }) = all.core {
        let [mean, most] = numbers(all, queue);
        let count = counted(queue.arrived, "task");
        lines.push(["host core".to_owned(), percent(all, busy), none(), mean, most, count]);
    }
    for (number, medium) in (1..).zip(&all.media) {
        let [mean, most] = numbers(all, *medium);
        let count = counted(medium.arrived, "request");
        lines.push([format!("medium {number}"), none(), none(), mean, most, count]);
    }
    for (number, &BridgeLoad { busy, firmware, queue, memory }) in (1..).zip(&all.bridges) {
        let [mean, most] = numbers(all, queue);
        let count = counted(queue.arrived, "task");
        lines.push([format!("bridge {number}"), percent(all, busy), none(), none(), none(), none()]);
        lines.push([format!("bridge {number} firmware"), percent(all, firmware), none(), mean, most, count]);
        if memory > Duration::ZERO {
            lines.push([
                format!("bridge {number} memory"),
                percent(all, memory),
                none(),
                none(),
                none(),
                none(),
            ]);
        }
    }
    for (number, &StoreLoad { cable, drive }) in (1..).zip(&all.stores) {
        let (moved, count) = (rate(all, cable.payload_bytes), counted(cable.frames, "frame"));
        lines.push([format!("SATA cable {number}"), percent(all, cable.busy), moved, none(), none(), count]);
        lines.push([format!("drive {number}"), percent(all, drive), none(), none(), none(), none()]);
    }
    lines
}

/// Those of links and buses.
fn wires(all: &Components) -> Vec<[String; 6]> {
    let none = String::new;
    let mut lines = Vec::new();
    for (what, links) in [("link", &all.links), ("link below hubs", &all.links_below)] {
        for (number, lanes) in (1..).zip(links) {
            for (direction, lane) in ["host to device", "device to host"].into_iter().zip(lanes) {
                let (name, moved) =
                    (format!("{what} {number}, {direction}"), rate(all, lane.traffic.payload));
                lines.push([name, percent(all, lane.busy), moved, none(), none(), none()]);
            }
        }
    }
    for (what, buses) in [("bus", &all.buses), ("bus below a translator", &all.buses_below)] {
        for (number, &BusLoad { payload, busy }) in (1..).zip(buses) {
            let name = format!("{what} {number}");
            lines.push([name, percent(all, busy), rate(all, payload), none(), none(), none()]);
        }
    }
    lines
}

fn percent(all: &Components, busy: Duration) -> String {
    format!("{:.1}", 100.0 * all.share(busy))
}

fn rate(all: &Components, bytes: u64) -> String {
    format!("{:.1}", bytes as f64 * 1e6 / (all.span.as_ps() as f64).max(1.0))
}

fn numbers(all: &Components, queue: QueueLoad) -> [String; 2] {
    [format!("{:.2}", all.mean(queue)), queue.most.to_string()]
}

/// Everything, for programs.
pub(super) fn record(all: &Components) -> Value {
    let queue =
        |queue: QueueLoad| json!({ "arrived": queue.arrived, "mean": all.mean(queue), "most": queue.most });
    let lane = |LaneLoad { traffic, busy }: &LaneLoad| {
        json!({
            "busy": all.share(*busy),
            "payload_bytes": traffic.payload,
            "packet_symbols": traffic.packets,
            "link_command_symbols": traffic.commands,
            "skip_symbols": traffic.skips,
        })
    };
    let link = |[host, device]: &[LaneLoad; 2]| json!({ "host": lane(host), "device": lane(device) });
    let bus =
        |BusLoad { payload, busy }: &BusLoad| json!({ "busy": all.share(*busy), "payload_bytes": payload });
    let controller = all.controller.map(|ControllerLoad { tds, interrupts, rings_full }| {
        json!({ "tds": tds, "interrupts": interrupts, "event_rings_full": rings_full })
    });
    let bridge = |load: &BridgeLoad| {
        json!({
            "busy": all.share(load.busy),
            "firmware_busy": all.share(load.firmware),
            "firmware_queue": queue(load.queue),
            "memory_busy": all.share(load.memory),
        })
    };
    let store = |StoreLoad { cable, drive }: &StoreLoad| {
        json!({
            "cable_busy": all.share(cable.busy),
            "payload_bytes": cable.payload_bytes,
            "frames": cable.frames,
            "drive_busy": all.share(*drive),
        })
    };
    let payload: Vec<u64> = all.buses.iter().map(|bus| bus.payload).collect();
    json!({
        "links": all.links.iter().map(link).collect::<Vec<_>>(),
        "links_below": all.links_below.iter().map(link).collect::<Vec<_>>(),
        "bus_payload_bytes": payload,
        "buses": all.buses.iter().map(bus).collect::<Vec<_>>(),
        "buses_below": all.buses_below.iter().map(bus).collect::<Vec<_>>(),
        "controller": controller,
        "core": all.core.map(|core| json!({ "busy": all.share(core.busy), "queue": queue(core.queue) })),
        "media": all.media.iter().map(|medium| queue(*medium)).collect::<Vec<_>>(),
        "bridges": all.bridges.iter().map(bridge).collect::<Vec<_>>(),
        "stores": all.stores.iter().map(store).collect::<Vec<_>>(),
    })
}
