//! What is known of one interface before the rules look at it, and where it was read.

use super::quirk::coded::CodedRule;
use super::quirk::table::{self, TableRow};
use super::quirk::{Flag, Flags, setting};
use crate::inventory::{Controller, Interface, Inventory, KernelLog, UsbDevice};
use crate::tree::Unread;
use initiator::probe::configuration::{Endpoint, Setting};
use wire::uas::PipeUsage;
use wire::usb::ClassCode;

/// What was read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The file, or what stands for one.
    pub place: String,
    /// What was found there.
    pub found: String,
}

impl Reading {
    /// A reading.
    pub fn new(place: impl Into<String>, found: impl Into<String>) -> Self {
        Self { place: place.into(), found: found.into() }
    }
}

/// One storage interface, and what is around it.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// The machine.
    pub inventory: &'a Inventory,
    /// The drive.
    pub device: &'a UsbDevice,
    /// Its interface.
    pub interface: &'a Interface,
    /// The alternate settings of the interface.
    pub settings: Vec<&'a Setting>,
    /// The first of them that speaks UAS.
    pub uas: Option<&'a Setting>,
    /// The controller of its bus.
    pub controller: Option<&'a Controller>,
    /// Its quirks.
    pub quirks: Quirks,
}

/// The flags of a device, by where they come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// Its row in the table.
    pub row: Option<&'static TableRow>,
    /// The rule in the code that holds for it.
    pub coded: Option<CodedRule>,
    /// What the user says.
    pub user: Option<Flags>,
}

impl Quirks {
    /// What is built into `uas`.
    pub fn built_in(&self) -> Flags {
        let row = self.row.map_or(Flags::NONE, |row| row.flags);
        row.union(self.coded.map_or(Flags::NONE, CodedRule::flags))
    }

    /// What `uas` goes by.
    pub fn in_force(&self) -> Flags {
        self.user.map_or(self.built_in(), |user| self.built_in().replaced_by(user))
    }
}

impl<'a> Evidence<'a> {
    /// The evidence on each storage interface of a device.
    pub fn gather(inventory: &'a Inventory, device: &'a UsbDevice) -> Vec<Self> {
        Interface::storage_of(device).map(|interface| Self::of(inventory, device, interface)).collect()
    }

    fn of(inventory: &'a Inventory, device: &'a UsbDevice, interface: &'a Interface) -> Self {
        let settings: Vec<&Setting> =
            device.configuration.iter().flat_map(|one| one.settings_of(interface.number)).collect();
        let uas = settings.iter().copied().find(|setting| setting.interface.class == ClassCode::UAS);
        let quirks = Quirks {
            row: table::row_of(device),
            coded: uas.and_then(|uas| CodedRule::of(device, uas)),
            user: setting::flags_of(inventory.quirks.value(), device.id),
        };
        let controller = inventory.controller_of(device);
        Self { inventory, device, interface, settings, uas, controller, quirks }
    }

    /// Whether `usb-storage` binds when `uas` declines: alternate setting 0 is Bulk-Only, or older, and the device is
    /// not to be ignored.
    pub fn usb_storage_takes_it(&self) -> bool {
        let first = self.settings.first().map_or(self.interface.class, |setting| setting.interface.class);
        let speaks = first.class == ClassCode::BOT.class && first.protocol != ClassCode::UAS.protocol;
        speaks && !self.quirks.user.is_some_and(|user| user.contains(Flag::IgnoreDevice))
    }

    /// The name of the driver that is bound.
    pub fn driver(&self) -> Option<&str> {
        self.interface.driver.as_deref()
    }

    /// The driver that is bound, as a reading.
    pub fn driver_reading(&self) -> Reading {
        let found = self.driver().map_or_else(|| "no such link".to_owned(), |driver| format!("→ {driver}"));
        Reading::new(self.interface.attribute("driver"), found)
    }

    /// An attribute of the device, as a reading.
    pub fn attribute(&self, name: &str, found: impl Into<String>) -> Reading {
        Reading::new(self.device.attribute(name), found)
    }

    /// The kernel's log, if it could be read.
    pub fn log(&self) -> Option<&'a KernelLog> {
        self.inventory.log.as_ref().and_then(|log| log.as_ref().ok())
    }

    /// Whether the kernel's log is there and for root only.
    pub fn log_is_refused(&self) -> bool {
        self.inventory.log == Some(Err(Unread::Refused))
    }

    /// The last line of the log about the device that contains `words`.
    pub fn log_line(&self, words: &str) -> Option<Reading> {
        let log = self.log()?;
        log.last(self.device, words).map(|line| Reading::new(&log.path, line))
    }
}

/// The endpoint of a pipe in a setting that speaks UAS; the last one if several claim it, as in `uas_find_endpoints`.
pub(super) fn pipe(setting: &Setting, usage: PipeUsage) -> Option<&Endpoint> {
    setting.endpoints.iter().rfind(|endpoint| endpoint.usage == Some(usage))
}
