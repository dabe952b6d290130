//! What Linux knows of a drive at a port that our own drivers go by.
//!
//! A bridge that cannot take large commands cannot take ours either, and residues that mean nothing to Linux mean nothing to our BOT,
//! which would learn it of a few commands only. That Linux keeps a drive off UAS is told, with who says so, and nothing more: to see what it does there
//! is what a bench is for. Left out: what is of no use without a file system above.

use super::Route;
use inspect::diagnose::{Evidence, Quirks};
use inspect::inventory::{Inventory, UsbDevice};
use quirks::quirk::table::TableRow;
use quirks::quirk::{Flag, Flags};
use std::fmt;

/// Bytes of 240 sectors and of 64, as the flags of those names have it.
const MAX_BYTES: [(Flag, u32); 2] = [(Flag::MaxSectors64, 64 * 512), (Flag::MaxSectors240, 240 * 512)];

/// The quirks of a drive, as the driver of each route goes by them.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownQuirks {
    uas: Flags,
    storage: Flags,
    /// Who says to ignore UAS.
    ignored_by: Option<Source>,
}

/// Where a quirk comes from.
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
    /// What is in force for a drive.
    pub(super) fn of(inventory: &Inventory, device: &UsbDevice) -> Self {
        let none = Self { uas: Flags::NONE, storage: Flags::NONE, ignored_by: None };
        Evidence::gather(inventory, device).into_iter().fold(none, |all, evidence| Self {
            uas: all.uas.union(evidence.quirks.uas()),
            storage: all.storage.union(evidence.quirks.storage()),
            ignored_by: all.ignored_by.or_else(|| Source::of_ignored_uas(&evidence.quirks)),
        })
    }

    /// The flags of either driver.
    pub(super) const fn flags(self) -> Flags {
        self.uas.union(self.storage)
    }

    /// Whether residues of BOT mean nothing.
    pub(super) const fn ignores_residue(self) -> bool {
        self.storage.contains(Flag::IgnoreResidue)
    }

    /// Whether the drive has unit 0 alone, whatever it says.
    pub(super) const fn has_one_unit(self) -> bool {
        self.flags().contains(Flag::SingleLun)
    }

    const fn on(self, route: Route) -> Flags {
        if matches!(route, Route::Uas) { self.uas } else { self.storage }
    }

    /// Bytes of one command at most, if the drive takes no larger ones.
    pub(super) fn transfer_bytes_max(self, route: Route) -> Option<u32> {
        let flags = self.on(route);
        MAX_BYTES.into_iter().find(|(flag, _)| flags.contains(*flag)).map(|(_, bytes)| bytes)
    }

    /// What is to be said of a route.
    pub(super) fn notes(self, route: Route) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(bytes) = self.transfer_bytes_max(route) {
            let kib = bytes / 1024;
            notes.push(format!("{route}: commands of {kib} KiB at most, since Linux knows that the drive takes no larger ones"));
        }
        if let (Route::Uas, Some(source)) = (route, self.ignored_by) {
            notes.push(format!(
                "uas: Linux keeps this drive off UAS, and it is driven there all the same: {source}"
            ));
        }
        notes
    }
}

impl Source {
    /// Who says to ignore UAS, of those that are in force.
    fn of_ignored_uas(quirks: &Quirks) -> Option<Self> {
        let ignores = |flags: Flags| flags.contains(Flag::IgnoreUas);
        if !ignores(quirks.uas().union(quirks.storage())) {
            return None;
        }
        // An entry replaces what is built in.
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
            Self::User => f.write_str("usb-storage.quirks= has the letter u for it"),
            Self::Row(row) => {
                let TableRow { id, name, .. } = row;
                write!(f, "the row {id} of {} says so, {name}", row.file())
            }
            Self::Code(reason) => write!(f, "uas-detect.h says so, {reason}"),
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

    /// A recorded machine whose drive at port 3-3 the user says this of.
    fn known(quirks: &str) -> KnownQuirks {
        const GUEST: &str = include_str!("../../../inspect/tests/trees/guest.tree");
        let text = format!("{GUEST}\n/sys/module/usb_storage/parameters/quirks = {quirks}\n");
        let tree = Tree::of(text.parse().expect("a record"));
        let inventory = Inventory::read(&tree, Scope::Brief);
        let device = inventory.devices.iter().find(|device| device.port == "3-3").expect("it is recorded");
        KnownQuirks::of(&inventory, device)
    }

    #[test]
    fn a_drive_that_takes_no_large_commands_gets_none() {
        for route in [Route::Bot, Route::Turbo, Route::Uas] {
            assert_eq!(known("").transfer_bytes_max(route), None);
            assert_eq!(known("1209:0001:g").transfer_bytes_max(route), Some(122_880));
            assert_eq!(known("1209:0001:m").transfer_bytes_max(route), Some(32_768));
            assert_eq!(known("1209:0001:gm").transfer_bytes_max(route), Some(32_768));
        }
        let note = &known("1209:0001:g").notes(Route::Turbo)[0];
        assert!(note.contains("commands of 120 KiB at most"), "{note}");
    }

    #[test]
    fn that_linux_keeps_it_off_uas_is_told_of_uas_alone() {
        assert!(known("").notes(Route::Uas).is_empty());
        assert!(known("1209:0001:u").notes(Route::Bot).is_empty());
        let notes = known("1209:0001:u").notes(Route::Uas);
        assert!(notes.len() == 1 && notes[0].contains("keeps this drive off UAS"), "{notes:?}");
        assert!(notes[0].ends_with("usb-storage.quirks= has the letter u for it"), "{notes:?}");
    }

    #[test]
    fn the_row_that_keeps_a_drive_off_uas_is_named() {
        let note = |vendor, product, revision| {
            let id = DeviceId::new(vendor, product);
            let identity = Identity { id, revision, names: Names::default() };
            let quirks = Quirks { built_in: BuiltIn::of(&identity, None), user: None };
            Source::of_ignored_uas(&quirks).map(|source| source.to_string())
        };
        let apricorn = "the row 0984:0301 of unusual_uas.h says so, Apricorn";
        assert_eq!(note(0x0984, 0x0301, 0x0128).as_deref(), Some(apricorn));
        assert_eq!(note(0x0984, 0x0301, 0x0129), None);
        let coded = Some(CodedRule::Hiksemi);
        let quirks = Quirks { built_in: BuiltIn { coded, ..BuiltIn::default() }, user: None };
        let source = Source::of_ignored_uas(&quirks).map(|source| source.to_string());
        assert!(source.is_some_and(|source| source.starts_with("uas-detect.h says so, ")));
        // JMicron JMS567: quirks, and none of them about this.
        assert_eq!(note(0x152d, 0x0578, 0), None);
    }

    #[test]
    fn a_drive_whose_units_are_all_the_same_has_one() {
        assert!(known("1209:0001:s").has_one_unit() && !known("").has_one_unit());
    }

    #[test]
    fn residues_mean_nothing_where_linux_says_so() {
        assert!(known("1209:0001:r").ignores_residue());
        assert!(!known("").ignores_residue() && !known("1209:0001:g").ignores_residue());
    }
}
