//! Linux quirks of a drive at a port that our own drivers honour.
//!
//! A bridge that cannot take large commands cannot take ours either, and residues that Linux
//! ignores mislead our BOT as well. That Linux disables UAS for a drive is only noted with its
//! source: a benchmark may want to see why. Left out: quirks that matter only to file systems.

use super::Route;
use inspect::diagnose::{Evidence, Quirks};
use inspect::inventory::{Inventory, UsbDevice};
use quirks::quirk::table::TableRow;
use quirks::quirk::{Flag, Flags};
use std::fmt;

/// Bytes of 240 and of 64 sectors, as the flags of those names.
const MAX_BYTES: [(Flag, u32); 2] = [(Flag::MaxSectors64, 64 * 512), (Flag::MaxSectors240, 240 * 512)];

/// The quirks of a drive, by route.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownQuirks {
    uas: Flags,
    storage: Flags,
    /// The source of the quirk that disables UAS.
    ignored_by: Option<Source>,
}

/// The source of a quirk.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// The user's entry.
    User,
    /// A row of Linux's tables.
    Row(&'static TableRow),
    /// A rule in the code of `uas`, with its reason.
    Code(&'static str),
}

impl KnownQuirks {
    /// Looks up the effective quirks of a drive.
    pub(super) fn of(inventory: &Inventory, device: &UsbDevice) -> Self {
        let none = Self { uas: Flags::NONE, storage: Flags::NONE, ignored_by: None };
        Evidence::gather(inventory, device).into_iter().fold(none, |all, evidence| Self {
            uas: all.uas.union(evidence.quirks.uas()),
            storage: all.storage.union(evidence.quirks.storage()),
            ignored_by: all.ignored_by.or_else(|| Source::of_ignored_uas(&evidence.quirks)),
        })
    }

    /// Returns the flags of both drivers.
    pub(super) const fn flags(self) -> Flags {
        self.uas.union(self.storage)
    }

    /// Whether BOT residues are to be ignored.
    pub(super) const fn ignores_residue(self) -> bool {
        self.storage.contains(Flag::IgnoreResidue)
    }

    /// Whether the drive has LUN 0 alone, whatever it reports.
    pub(super) const fn has_one_unit(self) -> bool {
        self.flags().contains(Flag::SingleLun)
    }

    const fn on(self, route: Route) -> Flags {
        if matches!(route, Route::Uas) { self.uas } else { self.storage }
    }

    /// Returns the largest command in bytes, if limited.
    pub(super) fn transfer_bytes_max(self, route: Route) -> Option<u32> {
        let flags = self.on(route);
        MAX_BYTES.into_iter().find(|(flag, _)| flags.contains(*flag)).map(|(_, bytes)| bytes)
    }

    /// Returns notes on a route.
    pub(super) fn notes(self, route: Route) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(bytes) = self.transfer_bytes_max(route) {
            let kib = bytes / 1024;
            notes.push(format!(
                "{route}: commands limited to {kib} KiB, the maximum that Linux allows for this drive"
            ));
        }
        if let (Route::Uas, Some(source)) = (route, self.ignored_by) {
            notes.push(format!("uas: Linux disables UAS for this drive, measured here anyway: {source}"));
        }
        notes
    }
}

impl Source {
    /// Returns the effective source of the quirk that disables UAS.
    fn of_ignored_uas(quirks: &Quirks) -> Option<Self> {
        let ignores = |flags: Flags| flags.contains(Flag::IgnoreUas);
        if !ignores(quirks.uas().union(quirks.storage())) {
            return None;
        }
        // A user's entry replaces the built-in one.
        if quirks.user.is_some() {
            return Some(Self::User);
        }
        let built_in = &quirks.built_in;
        let rows = [built_in.row, built_in.storage_row];
        let row = rows.into_iter().flatten().find(|row| ignores(row.flags)).map(Self::Row);
        let coded = built_in.coded.filter(|coded| ignores(coded.flags()));
        row.or_else(|| coded.map(|coded| Self::Code(coded.reason())))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("usb-storage.quirks= has flag u"),
            Self::Row(row) => {
                let TableRow { id, name, .. } = row;
                write!(f, "entry {id} of {}, {name}", row.file())
            }
            Self::Code(reason) => write!(f, "uas-detect.h, {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inspect::inventory::Scope;
    use inspect::tree::Tree;
    use quirks::quirk::{BuiltIn, CodedRule};
    use quirks::{DeviceId, Identity, Names};

    /// A recorded machine with this user quirk for the drive at port 3-3.
    fn known(quirks: &str) -> KnownQuirks {
        const GUEST: &str = include_str!("../../../inspect/tests/trees/guest.tree");
        let text = format!("{GUEST}\n/sys/module/usb_storage/parameters/quirks = {quirks}\n");
        let tree = Tree::of(text.parse().expect("a record"));
        let inventory = Inventory::read(&tree, Scope::Brief);
        let device = inventory.devices.iter().find(|device| device.port == "3-3").expect("it is recorded");
        KnownQuirks::of(&inventory, device)
    }

    #[test]
    fn max_sectors_quirks_limit_commands() {
        for route in [Route::Bot, Route::Turbo, Route::Uas] {
            assert_eq!(known("").transfer_bytes_max(route), None);
            assert_eq!(known("1209:0001:g").transfer_bytes_max(route), Some(122_880));
            assert_eq!(known("1209:0001:m").transfer_bytes_max(route), Some(32_768));
            assert_eq!(known("1209:0001:gm").transfer_bytes_max(route), Some(32_768));
        }
        let note = &known("1209:0001:g").notes(Route::Turbo)[0];
        assert!(note.contains("commands limited to 120 KiB"), "{note}");
    }

    #[test]
    fn a_disabled_uas_is_noted_for_uas_alone() {
        assert!(known("").notes(Route::Uas).is_empty());
        assert!(known("1209:0001:u").notes(Route::Bot).is_empty());
        let notes = known("1209:0001:u").notes(Route::Uas);
        assert!(notes.len() == 1 && notes[0].contains("disables UAS for this drive"), "{notes:?}");
        assert!(notes[0].ends_with("usb-storage.quirks= has flag u"), "{notes:?}");
    }

    #[test]
    fn the_source_of_a_disabled_uas_is_named() {
        let note = |vendor, product, revision| {
            let id = DeviceId::new(vendor, product);
            let identity = Identity { id, revision, names: Names::default() };
            let quirks = Quirks { built_in: BuiltIn::of(&identity, None), user: None, kernel: None };
            Source::of_ignored_uas(&quirks).map(|source| source.to_string())
        };
        let apricorn = "entry 0984:0301 of unusual_uas.h, Apricorn";
        assert_eq!(note(0x0984, 0x0301, 0x0128).as_deref(), Some(apricorn));
        assert_eq!(note(0x0984, 0x0301, 0x0129), None);
        let coded = Some(CodedRule::Hiksemi);
        let quirks = Quirks { built_in: BuiltIn { coded, ..BuiltIn::default() }, user: None, kernel: None };
        let source = Source::of_ignored_uas(&quirks).map(|source| source.to_string());
        assert!(source.is_some_and(|source| source.starts_with("uas-detect.h, ")));
        // JMicron JMS567: quirks, and none of them about this.
        assert_eq!(note(0x152d, 0x0578, 0), None);
    }

    #[test]
    fn single_lun_drives_have_one_logical_unit() {
        assert!(known("1209:0001:s").has_one_unit() && !known("").has_one_unit());
    }

    #[test]
    fn ignore_residue_follows_linux() {
        assert!(known("1209:0001:r").ignores_residue());
        assert!(!known("").ignores_residue() && !known("1209:0001:g").ignores_residue());
    }
}
