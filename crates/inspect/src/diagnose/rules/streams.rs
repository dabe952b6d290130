//! Whether the controller of a drive's bus has streams that Linux uses (`can_do_streams` of a host controller's driver).
//!
//! Events come before what is known: a drive that is on `uas`, then the kernel's own word about this controller,
//! then drivers and chips of which the answer is known, then what the controller's registers say. Always true: below super
//! speed it is met.

use super::{Judgement, Rule, Verdict};
use crate::diagnose::advice;
use crate::diagnose::evidence::{Evidence, Reading};
use crate::inventory::{Controller, LinkSpeed, StreamArrays};
use crate::tree::Unread;

pub(super) fn judge(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::Streams;
    if !evidence.speaks_uas() {
        return rule.says(Verdict::NotAsked, "an earlier rule has decided");
    }
    let speed = evidence.attribute("speed", evidence.device.speed.to_string());
    // A text may have the kernel's refusal, and neither the speed nor the controller.
    if evidence.inventory.is_from_text()
        && evidence.driver() != Some("uas")
        && let Some(line) =
            evidence.log_line("USB controller ").filter(|line| line.found.contains("not support streams"))
    {
        return rule
            .says(Verdict::Refused, "the kernel logged that the controller has no streams")
            .seen(line)
            .advise(advice::other_controller());
    }
    if evidence.device.speed == LinkSpeed::Unknown {
        return if evidence.driver() == Some("uas") {
            rule.says(Verdict::Met, "uas is bound, which requires it").seen(evidence.driver_reading())
        } else {
            rule.says(Verdict::Unknown, "its speed is not known").seen(speed)
        };
    }
    if !evidence.device.speed.is_super() {
        return rule.says(Verdict::Met, "below super speed none are needed").seen(speed);
    }
    let Some(controller) = evidence.controller else {
        return rule.says(Verdict::Unknown, "the controller is unknown").seen(speed);
    };
    if evidence.driver() == Some("uas") {
        return rule.says(Verdict::Met, "uas is bound, which requires it").seen(evidence.driver_reading());
    }
    if let Some(line) =
        evidence.log_line(&format!("USB controller {} does not support streams", controller.name))
    {
        return rule
            .says(Verdict::Refused, "the kernel logged that the controller has no streams")
            .seen(line)
            .advise(advice::other_controller());
    }
    if let Some(judgement) = known(controller) {
        return judgement;
    }
    match &controller.stream_arrays {
        Ok(arrays) => by_registers(controller, arrays),
        Err(unread) => by_neighbours(evidence, controller, *unread),
    }
}

/// Judges by the driver or the chip alone, where the answer is known.
fn known(controller: &Controller) -> Option<Judgement> {
    let rule = Rule::Streams;
    let driver = controller.driver.as_deref().unwrap_or_default();
    if NEVER_STREAMS.contains(&driver) {
        let judgement = rule
            .says(Verdict::Refused, format!("{driver} never has streams"))
            .seen(driver_of(controller))
            .advise(advice::without_streams(driver));
        return Some(judgement);
    }
    let (vendor, device, name) = BROKEN_STREAMS.iter().find(|row| controller.pci == Some((row.0, row.1)))?;
    let found = format!("{vendor:04x}:{device:04x}, {name}");
    let because = format!("Linux does not use the streams of the {name}, which are broken");
    let judgement = rule
        .says(Verdict::Refused, because)
        .seen(Reading::new(format!("{}/device", controller.path), found))
        .advise(advice::other_controller());
    Some(judgement)
}

/// Judges by the controller's own registers.
fn by_registers(controller: &Controller, arrays: &StreamArrays) -> Judgement {
    let rule = Rule::Streams;
    let size = arrays.max_psa_size;
    let reading = Reading::new(&arrays.path, max_psa_size(size));
    if size < MAX_PSA_SIZE_MIN {
        let because = format!("the controller has no streams: MaxPSASize is {size}");
        return rule.says(Verdict::Refused, because).seen(reading).advise(advice::other_controller());
    }
    let may_be_broken = controller.driver.as_deref() == Some(MEDIATEK) && size == MEDIATEK_PSA_SIZE;
    match arrays.version {
        Some(version) if may_be_broken && version < XHCI_1_0 => rule
            .says(
                Verdict::Refused,
                "Linux does not use the streams of MediaTek's xHCI before 1.0 with MaxPSASize 1, which are broken",
            )
            .seen(driver_of(controller))
            .seen(reading)
            .seen(Reading::new(&arrays.path, format!("HCIVERSION {:x}.{:02x}", version >> 8, version & 0xff)))
            .advise(advice::other_controller()),
        None if may_be_broken => rule
            .says(
                Verdict::Unknown,
                "MediaTek's xHCI before 1.0 with MaxPSASize 1 has streams that Linux does not use; the version could not be read",
            )
            .seen(driver_of(controller))
            .seen(reading),
        _ => rule.says(Verdict::Met, "it supports large enough stream arrays").seen(reading),
    }
}

/// The field with what it means: n stands for arrays of 2^(n+1) contexts (xHCI 1.2 clause 5.3.6).
fn max_psa_size(size: u8) -> String {
    match size {
        0 => "MaxPSASize 0: no streams".to_owned(),
        _ => format!("MaxPSASize {size}: arrays of {} contexts", 2_u32 << size.min(15)),
    }
}

/// Judges by other drives of the bus, where the registers could not be read.
fn by_neighbours(evidence: &Evidence<'_>, controller: &Controller, unread: Unread) -> Judgement {
    let rule = Rule::Streams;
    let on_bus = evidence.inventory.devices.iter().filter(|device| device.bus == evidence.device.bus);
    let bound = on_bus.flat_map(|device| &device.interfaces).find(|one| one.driver.as_deref() == Some("uas"));
    if let Some(interface) = bound {
        return rule
            .says(Verdict::Met, "another drive of this bus is on UAS")
            .seen(Reading::new(interface.attribute("driver"), "→ uas"));
    }
    let because = if controller.driver.as_deref() == Some(MEDIATEK) {
        "Linux uses the streams of some MediaTek controllers; this one's MaxPSASize is unknown"
    } else {
        "most xHCI controllers have streams; this one's MaxPSASize is unknown"
    };
    let mut judgement = rule
        .says(Verdict::Unknown, because)
        .seen(evidence.attribute("speed", evidence.device.speed.to_string()));
    if unread == Unread::Refused {
        judgement.root_adds = Some("debugfs shows MaxPSASize, and the kernel's log shows refusals".into());
    }
    judgement
}

fn driver_of(controller: &Controller) -> Reading {
    let driver = controller.driver.as_deref().unwrap_or_default();
    Reading::new(format!("{}/driver", controller.path), format!("→ {driver}"))
}

/// Controllers' drivers that never set `can_do_streams`.
const NEVER_STREAMS: [&str; 2] = ["vhci_hcd", "dummy_hcd"];

/// The least MaxPSASize with which Linux uses streams: `HCC_MAX_PSA` is the number of contexts, not the field, and is to
/// be four or more (drivers/usb/host/xhci-caps.h, xhci-pci.c).
const MAX_PSA_SIZE_MIN: u8 = 1;

/// The driver of the controllers in MediaTek's chips, which are not on PCI. Of those with an xHCI before 1.0, this
/// MaxPSASize, four contexts, means broken streams, and 3 means streams that work (drivers/usb/host/xhci-mtk.c).
const MEDIATEK: &str = "xhci-mtk";
const MEDIATEK_PSA_SIZE: u8 = 1;
const XHCI_1_0: u16 = 0x0100;

/// Controllers on PCI of which Linux knows that their streams are broken (drivers/usb/host/xhci-pci.c).
pub(in crate::diagnose) const BROKEN_STREAMS: [(u16, u16, &str); 6] = [
    (0x1106, 0x3432, "VIA VL80x"),
    (0x1b21, 0x1042, "ASMedia ASM1042"),
    (0x1b6f, 0x7023, "Etron EJ168"),
    (0x1b6f, 0x7052, "Etron EJ188"),
    (0x1b73, 0x1000, "Fresco Logic FL1000"),
    (0x1b73, 0x1009, "Fresco Logic FL1009"),
];
