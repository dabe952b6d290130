//! Log findings beside the drives that are attached: drives that are gone, ports and controllers that failed, the
//! board's supply, SCSI disks whose port no line names.
//!
//! A drive that is gone is diagnosed as one that is attached: a device is made of its last session, and the causes are looked
//! for in the same lines. Always true: nothing is reported of a port at which a device is attached now; devices that are no
//! drives are not reported, unless they never got as far as saying what they are.

mod drive;
mod machine;

use super::advice::Advice;
use super::cause::{self, CauseKind};
use super::evidence::Reading;
use crate::inventory::{Inventory, UsbDevice};
use crate::log::History;
use quirks::DeviceId;
use std::collections::{BTreeMap, BTreeSet};

/// Why it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AbsentKind {
    /// The host controller died, did not start, or reports events that its driver cannot match.
    Controller,
    /// The board's supply was too low.
    Supply,
    /// A drive was there and the log shows a failure.
    Dropped,
    /// The log has errors of a SCSI disk, and not its port.
    WithoutPort,
    /// Something is plugged in and was never enumerated.
    NeverEnumerated,
    /// A port switched off.
    OverCurrent,
    /// A hub or dock disconnected with everything behind it, or does not answer.
    Hub,
    /// A drive was disconnected and the log shows no failure.
    Unplugged,
    /// A device that looked like a drive became another device.
    Switched,
}

impl AbsentKind {
    /// Its name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Supply => "supply",
            Self::Dropped => "dropped",
            Self::WithoutPort => "without-port",
            Self::NeverEnumerated => "never-enumerated",
            Self::OverCurrent => "over-current",
            Self::Hub => "hub",
            Self::Unplugged => "unplugged",
            Self::Switched => "switched",
        }
    }
}

/// A drive, port or controller that is not there, or that the log alone has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The port, the disk, or the name of the controller.
    pub place: String,
    /// Why.
    pub kind: AbsentKind,
    /// idVendor and idProduct, where the log has them.
    pub id: Option<DeviceId>,
    /// The event, in a sentence without a full stop.
    pub because: String,
    /// The causes, the one that explains most first.
    pub causes: Vec<CauseKind>,
    /// The lines.
    pub readings: Vec<Reading>,
    /// Advice on it.
    pub advice: Vec<Advice>,
}

/// Everything that the log speaks of and that is not there.
pub(super) fn find(inventory: &Inventory, history: &History<'_>) -> Vec<Absent> {
    let Some(log) = inventory.readable_log() else { return Vec::new() };
    let attached: BTreeMap<&str, &UsbDevice> =
        inventory.devices.iter().rev().map(|device| (device.port.as_str(), device)).collect();
    let mut all = machine::dead_controllers(history, &log.path, false);
    all.extend(machine::removed_controllers(history, &log.path));
    let shown = inventory.storage().flat_map(|drive| cause::sessions_of(history, inventory, drive));
    let shown: BTreeSet<usize> = shown.collect();
    for port in history.sessions.ports() {
        all.extend(drive::replaced(inventory, history, &log.path, port));
        if attached.get(port).is_some_and(|device| !may_be_a_drive(inventory, device)) {
            continue;
        }
        all.extend(drive::at_port(inventory, history, &log.path, port, &shown));
    }
    all.extend(machine::over_currents(inventory, history, &log.path, &all));
    if inventory.storage().next().is_none() {
        all.extend(machine::failing_hubs(history, &log.path, &all));
        all.extend(machine::stream_events(history, &log.path, &all));
        all.extend(machine::supply(inventory, history, &log.path, &all));
    }
    if all.is_empty() && inventory.storage().next().is_none() {
        all.extend(machine::dead_controllers(history, &log.path, true));
    }
    if all.is_empty() {
        all.extend(machine::lost_hub(inventory, history, &log.path));
    }
    without_lost(&mut all);
    if let Some(report) = &inventory.report {
        all.iter_mut().flat_map(|one| &mut one.readings).for_each(|reading| report.cite(reading));
    }
    all.sort_by(|one, other| (one.kind, &one.place).cmp(&(other.kind, &other.place)));
    all
}

/// Whether a device that is attached may be the drive that a report is about: it names none, and does not say what this one is.
fn may_be_a_drive(inventory: &Inventory, device: &UsbDevice) -> bool {
    inventory.is_from_text()
        && inventory.storage().next().is_none()
        && device.hub_ports == 0
        && !device.is_root_hub()
        && device.interfaces.is_empty()
}

/// A controller takes its drives along: they are named with it and not reported again.
fn without_lost(all: &mut Vec<Absent>) {
    let controllers = all.iter().filter(|one| one.kind == AbsentKind::Controller);
    let because: Vec<String> = controllers.map(|one| one.because.clone()).collect();
    let is_named = |one: &Absent| {
        because.iter().any(|because| because.split([' ', ',', ';']).any(|word| word == one.place))
    };
    let is_lost = |one: &Absent| {
        one.kind == AbsentKind::WithoutPort && is_named(one)
            || one.causes.first() == Some(&CauseKind::ControllerDied) && !because.is_empty()
    };
    all.retain(|one| one.kind == AbsentKind::Controller || !is_lost(one));
}
