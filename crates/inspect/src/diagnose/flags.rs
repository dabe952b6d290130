//! The flags of a device: what is built into the drivers, and what the user says instead.
//!
//! Each driver goes by its own: `uas` by its table and the rules in its code, `usb-storage` by both tables and none of
//! those rules. A user's entry replaces every flag that has a letter, in both. What is built in is the business of
//! [`quirks::quirk`]; a user's entry is read by [`entry`](super::entry).

use quirks::quirk::{BuiltIn, Flag, Flags, KernelVersion};

/// The flags of a device, by where they come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// Flags that are built into the drivers.
    pub built_in: BuiltIn,
    /// Flags of the user's entry.
    pub user: Option<Flags>,
    /// The version of the kernel, which decides what a user's entry replaces; `None` is the newest that is known.
    pub kernel: Option<KernelVersion>,
}

impl Quirks {
    /// Returns the flags that `uas` goes by.
    pub fn uas(&self) -> Flags {
        self.replaced(self.built_in.uas())
    }

    /// Returns the flags that `usb-storage` goes by.
    pub fn storage(&self) -> Flags {
        self.replaced(self.built_in.storage())
    }

    /// Whether `usb-storage` alone ignores UAS for it, by its own table: both drivers would have the drive then.
    pub fn only_storage_ignores_uas(&self) -> bool {
        self.storage().contains(Flag::IgnoreUas) && !self.uas().contains(Flag::IgnoreUas)
    }

    /// Returns the flags that the driver of that name goes by; those of `uas` where none is bound.
    pub fn of_driver(&self, driver: Option<&str>) -> Flags {
        if driver == Some("usb-storage") { self.storage() } else { self.uas() }
    }

    fn replaced(&self, built_in: Flags) -> Flags {
        self.user.map_or(built_in, |user| built_in.replaced_by(user, self.kernel))
    }
}
