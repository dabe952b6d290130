//! Cable and port against what the drive can.
//!
//! A drive that can 10 Gb/s has a BOS with a SuperSpeedPlus capability. One that can super speed and is connected at high speed has bcdUSB 2.10 and a BOS with a SuperSpeed capability
//! (USB 3.2 clause 9.6.2). Newer kernels show the BOS in sysfs; on others the drive itself is asked, which root may, and
//! else only bcdUSB gives a hint.

use super::{Check, CheckKind, Health};
use crate::diagnose::advice;
use crate::diagnose::evidence::{Evidence, Reading};
use crate::inventory::LinkSpeed;
use wire::usb::BcdVersion;

pub(super) fn check(evidence: &Evidence<'_>) -> Check {
    let kind = CheckKind::Link;
    let device = evidence.device;
    let speed = evidence.attribute("speed", device.speed.to_string());
    match device.speed {
        LinkSpeed::Super { mbps } => return above_high_speed(evidence, mbps),
        LinkSpeed::Unknown => {
            return kind.says(Health::Unknown, "its speed is not known").seen(speed);
        }
        LinkSpeed::High => {}
        // Of those alone does the kernel say so.
        LinkSpeed::Full | LinkSpeed::Low => {
            if let Some(line) = evidence.log_line("not running at top speed") {
                return kind
                    .says(Health::Concern, "the kernel says that it could be faster")
                    .seen(speed)
                    .seen(line)
                    .advise(faster());
            }
        }
    }
    match (device.able.map(|able| able.super_speed), device.usb_version) {
        (Some(true), _) => kind
            .says(
                Health::Concern,
                format!("the drive supports SuperSpeed but is connected at {}", device.speed),
            )
            .seen(speed)
            .seen(evidence.attribute("bos_descriptors", "SuperSpeed capability"))
            .seen(socket(evidence))
            .advise(faster()),
        (Some(false), _) => kind.says(Health::Good, "the drive supports no higher speed").seen(speed),
        (None, Some(version)) if version.0 >= BcdVersion::USB_2_1.0 => kind
            .says(
                Health::Unknown,
                format!("connected at {}; bcdUSB {version} suggests that the drive is faster", device.speed),
            )
            .seen(speed)
            .seen(evidence.attribute("descriptors", format!("bcdUSB {version}")))
            .seen(socket(evidence))
            .root_adds("its BOS descriptor: whether it has a SuperSpeed capability"),
        (None, None) if evidence.inventory.is_from_text() => kind
            .says(
                Health::Unknown,
                format!("connected at {}; the report does not show the drive's maximum speed", device.speed),
            )
            .seen(speed),
        (None, version) => {
            let version = version.map_or_else(|| "unknown".to_owned(), |version| version.to_string());
            kind.says(Health::Good, "the drive supports no higher speed")
                .seen(speed)
                .seen(evidence.attribute("descriptors", format!("bcdUSB {version}")))
        }
    }
}

/// Of drives at 5 Gb/s and above. How many lanes a drive can use is not known, so one that has a link of its fastest lane
/// is as fast as it says.
fn above_high_speed(evidence: &Evidence<'_>, mbps: u32) -> Check {
    let kind = CheckKind::Link;
    let device = evidence.device;
    let speed = evidence.attribute("speed", device.speed.to_string());
    // 10 Gb/s may be two lanes of 5 Gb/s.
    let own_lane = device.lanes.map_or(mbps, |lanes| lanes.of_lane(mbps));
    if let Some(lane) = device.able.and_then(|able| able.lane_mbps).filter(|lane| *lane > own_lane) {
        let lane = LinkSpeed::Super { mbps: lane };
        let (each, lanes) = match device.lanes {
            Some(lanes) if lanes.receive > 1 => {
                let own = LinkSpeed::Super { mbps: own_lane };
                (" a lane", format!(" by {} lanes of {own}", lanes.receive))
            }
            _ => ("", String::new()),
        };
        let port = port_limit(evidence, lane);
        let because =
            format!("the drive supports {lane}{each} but is connected at {}{lanes}{port}", device.speed);
        return kind
            .says(Health::Concern, because)
            .seen(speed)
            .seen(
                evidence.attribute("bos_descriptors", format!("SuperSpeedPlus capability, a lane of {lane}")),
            )
            .advise(faster());
    }
    match device.usb_version.filter(|_| device.able.is_none() && device.may_be_faster()) {
        Some(version) => kind
            .says(
                Health::Unknown,
                format!("connected at {}; a drive of bcdUSB {version} may be faster or not", device.speed),
            )
            .seen(speed)
            .seen(evidence.attribute("descriptors", format!("bcdUSB {version}")))
            .root_adds("its BOS descriptor: whether it has a SuperSpeedPlus capability"),
        None if device.able.is_none()
            && device.usb_version.is_none()
            && evidence.inventory.is_from_text() =>
        {
            kind.says(
                Health::Unknown,
                format!("connected at {}; the report does not show the drive's maximum speed", device.speed),
            )
            .seen(speed)
        }
        None => kind.says(Health::Good, device.speed.to_string()).seen(speed),
    }
}

/// Describes the speed that the port's hub supports, and suspects the cable unless it is below that of `lane`.
fn port_limit(evidence: &Evidence<'_>, lane: LinkSpeed) -> String {
    let hub = evidence.inventory.hub_of(evidence.device);
    let Some(hub) = hub.filter(|hub| hub.speed.is_super()) else { return String::new() };
    let mbps = |speed: LinkSpeed| if let LinkSpeed::Super { mbps } = speed { mbps } else { 0 };
    if mbps(hub.speed) < mbps(lane) {
        format!("; its port supports only {}", hub.speed)
    } else {
        format!("; its port supports {}: probably the cable", hub.speed)
    }
}

/// Whether the socket has super speed as well.
fn socket(evidence: &Evidence<'_>) -> Reading {
    let port = evidence.device.plugged.as_ref();
    match port.and_then(|port| port.peer.as_ref()) {
        Some(peer) => evidence
            .attribute("port/peer", format!("→ {peer}: the connector also has a port of another speed")),
        None => evidence.attribute("port/peer", "no such link: the connector may be USB 2 only"),
    }
}

fn faster() -> advice::Advice {
    advice::other_port(
        "Connect it at a higher speed",
        "another cable first, then another port",
        "short, marked SS or blue; not through a hub or a front panel",
    )
}
