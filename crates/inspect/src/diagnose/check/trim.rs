//! TRIM: whether the kernel unmaps blocks (`provisioning_mode`, SBC-4 pages B0h and B2h), for each disk.
//!
//! Over Bulk-Only the kernel reads no vital product data: it unmaps by WRITE SAME (16) if READ CAPACITY (16) has LBPME,
//! and not at all if that is not there either. The same drive may have TRIM on UAS and none on the fallback. Without LBPME
//! it sends none over UAS either, whatever page B2h says.

use super::{Check, CheckKind, Health};
use crate::diagnose::advice;
use crate::diagnose::evidence::{Evidence, Reading};
use crate::inventory::{Disk, UnmapCommand, UnmapSupport};

pub(super) fn checks(evidence: &Evidence<'_>) -> Vec<Check> {
    evidence.interface.disks.iter().filter_map(|disk| check(evidence, disk)).collect()
}

fn check(evidence: &Evidence<'_>, disk: &Disk) -> Option<Check> {
    let kind = CheckKind::Trim;
    let node = disk.node.as_deref()?;
    let mode = disk.provisioning_mode.as_deref()?;
    let sends = !["full", "disabled"].contains(&mode) && disk.discard_bytes_max != Some(0);
    let reading = Reading::new(format!("/sys/class/scsi_disk/{}/provisioning_mode", disk.address), mode);
    if sends {
        return Some(
            kind.says(Health::Good, format!("the kernel sends it to /dev/{node}: {mode}")).seen(reading),
        );
    }
    let known = disk.unmap.and_then(UnmapSupport::command);
    let rule = advice::unmap_rule(evidence.device, known.unwrap_or(UnmapCommand::Unmap));
    if mode == "disabled" {
        let because = format!(
            "the kernel sends no TRIM to /dev/{node} any more: the drive refused it, or it was disabled by hand"
        );
        let check = kind.says(Health::Concern, because).seen(reading);
        // Of WRITE SAME it has said so itself.
        let is_asked = matches!(known, None | Some(UnmapCommand::Unmap));
        let check = if is_asked { check.advise(advice::ask_unmap(node)) } else { check };
        return Some(check.advise(rule));
    }
    let Some(support) = disk.unmap else {
        let check = if evidence.driver() == Some("usb-storage") {
            kind.says(
                Health::Unknown,
                format!("the kernel sends none to /dev/{node}: over BOT it does not read the VPD pages that announce it"),
            )
        } else {
            kind.says(
                Health::Unknown,
                format!(
                    "the kernel sends none to /dev/{node} and has not read the VPD pages that announce it"
                ),
            )
        };
        let check =
            check.seen(reading).root_adds("the VPD pages, with sg_vpd").advise(advice::ask_unmap(node));
        return Some(check.advise(rule));
    };
    let pages = Reading::new(format!("{}/vpd_pgb0, vpd_pgb2", disk.path), support_text(support));
    if let Some(command) = known {
        let because = format!("/dev/{node} supports {command}, but the kernel sends none");
        let check = kind.says(Health::Concern, because).seen(reading).seen(pages);
        return Some(check.advise(rule));
    }
    Some(
        kind.says(Health::Good, format!("/dev/{node} reports that it supports none"))
            .seen(reading)
            .seen(pages),
    )
}

/// Describes the support of each command, by the pages.
fn support_text(support: UnmapSupport) -> String {
    let UnmapSupport { lba_count_max, unmap, write_same_16, write_same_10 } = support;
    let [unmap, write_same_16, write_same_10] = [unmap, write_same_16, write_same_10].map(u8::from);
    format!(
        "maximum unmap LBA count {lba_count_max}, LBPU {unmap}, LBPWS {write_same_16}, LBPWS10 {write_same_10}"
    )
}
