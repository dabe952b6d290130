//! Quirks that Linux has built in: what it does otherwise for one device.
//!
//! They come from tables by ids ([`table`]) and from rules in the code that look at more than ids ([`CodedRule`]). The
//! driver `uas` has one table and the rules; `usb-storage` has its own table before that of `uas`, and not the
//! rules. [`BuiltIn`] is what holds for one device. Left out: the user's entries, which replace what is built in.

mod coded;
mod flags;
mod history;
pub mod table;
mod version;

pub use coded::{BridgeFacts, CodedRule};
pub use flags::{Flag, Flags};
pub use history::{Change, OLDEST, Presence, Versions};
pub use version::KernelVersion;

use super::identity::Identity;
use table::TableRow;

/// Quirks that the drivers have built in for one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuiltIn {
    /// Its row in the table of `uas`.
    pub row: Option<&'static TableRow>,
    /// The rule in the code of `uas` that holds for it; none where no setting is UAS.
    pub coded: Option<CodedRule>,
    /// Its row as `usb-storage` finds it.
    pub storage_row: Option<&'static TableRow>,
}

impl BuiltIn {
    /// Returns the quirks of a device; the coded rules look at `bridge`, where a setting is UAS.
    pub fn of(identity: &Identity<'_>, bridge: Option<BridgeFacts>) -> Self {
        Self::in_kernel(identity, bridge, None)
    }

    /// The same by the tables of a version of Linux; `None` is the newest that is known.
    pub fn in_kernel(
        identity: &Identity<'_>,
        bridge: Option<BridgeFacts>,
        kernel: Option<KernelVersion>,
    ) -> Self {
        Self {
            row: table::uas_row(identity.id, identity.revision, kernel),
            coded: bridge.and_then(|facts| CodedRule::in_kernel(identity, facts, kernel)),
            storage_row: table::storage_row(identity.id, identity.revision, kernel),
        }
    }

    /// Returns the flags that `uas` applies.
    pub fn uas(&self) -> Flags {
        let coded = self.coded.map_or(Flags::NONE, CodedRule::flags);
        self.row.map_or(Flags::NONE, |row| row.flags).union(coded)
    }

    /// Whether `uas` does not get the device: it ignores it, or `usb-storage` alone does, which is asked before it. Where both are built
    /// into the kernel `uas` is asked first, which is not to be seen here.
    pub fn ignores_uas(&self) -> bool {
        self.uas().union(self.storage()).contains(Flag::IgnoreUas)
    }

    /// Returns the flags that `usb-storage` applies once it has the device.
    pub fn storage(&self) -> Flags {
        self.storage_row.map_or(Flags::NONE, |row| row.flags)
    }
}
