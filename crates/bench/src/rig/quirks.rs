//! What Linux knows of a drive at a port that our own drivers go by.
//!
//! A bridge that cannot take large commands cannot take ours either. That Linux keeps a drive off UAS is told, and nothing more: to see
//! what it does there is what a bench is for. Left out: residues that mean nothing, which BOT learns by itself, and what is of no use without a file
//! system above.

use super::Route;
use host::diagnose::Evidence;
use host::inventory::{Inventory, UsbDevice};
use initiator::probe::quirk::{Flag, Flags};

/// Bytes of 240 sectors and of 64, as the flags of those names have it.
const MAX_BYTES: [(Flag, u32); 2] = [(Flag::MaxSectors64, 64 * 512), (Flag::MaxSectors240, 240 * 512)];

/// The quirks of a drive, as the driver of each route goes by them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    uas: Flags,
    storage: Flags,
}

impl Known {
    /// What is in force for a drive.
    pub(super) fn of(inventory: &Inventory, device: &UsbDevice) -> Self {
        let none = Self { uas: Flags::NONE, storage: Flags::NONE };
        Evidence::gather(inventory, device).into_iter().fold(none, |all, evidence| Self {
            uas: all.uas.union(evidence.quirks.uas()),
            storage: all.storage.union(evidence.quirks.storage()),
        })
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
        if matches!(route, Route::Uas) && self.uas.union(self.storage).contains(Flag::IgnoreUas) {
            notes.push("uas: Linux keeps this drive off UAS (a quirk says so, see uaskit why), and it is driven there all the same".into());
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::inventory::Scope;
    use host::tree::Tree;

    /// A recorded machine whose drive at port 3-3 the user says this of.
    fn known(quirks: &str) -> Known {
        const GUEST: &str = include_str!("../../../host/tests/trees/guest.tree");
        let text = format!("{GUEST}\n/sys/module/usb_storage/parameters/quirks = {quirks}\n");
        let tree = Tree::of(text.parse().expect("a record"));
        let inventory = Inventory::read(&tree, Scope::Brief);
        let device = inventory.devices.iter().find(|device| device.port == "3-3").expect("it is recorded");
        Known::of(&inventory, device)
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
    }
}
