//! Evidence on one interface before the rules look at it, and where it was read.
//!
//! Left out: what the controller can, which the rules ask themselves. Always true: quirks are those of the kernel's version
//! as far as the versions of their rows are known, unless the kernel shows that it has a later row, or has one no more.

use super::entry;
use super::flags::Quirks;
use crate::inventory::{
    ConfigChoice, Controller, Interface, Inventory, KernelConfig, KernelFound, KernelLog, UsbDevice,
};
use crate::tree::Unread;
use quirks::configuration::Setting;
use quirks::quirk::table::{self, TABLES_OF, TableRow};
use quirks::quirk::{BuiltIn, Change, Flag, KernelVersion, Presence, Versions};
use quirks::{Finding, Link, LinuxJudgement, Rule, STREAMS_MAX};
use wire::usb::ClassCode;

/// A value that was read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The file, or what stands for one.
    pub place: String,
    /// The value found there.
    pub found: String,
}

impl Reading {
    /// A row of a table of Linux, with the versions that have it.
    pub(super) fn of_row(row: &TableRow) -> Self {
        let versions = if row.versions == Versions::default() {
            format!("Linux {TABLES_OF}")
        } else {
            row.versions.to_string()
        };
        Self::new(format!("{versions}, {}", row.file()), format!("{}: {}", row.name, row.flags))
    }

    /// The kernel, by whose version rows count.
    pub(super) fn of_kernel(kernel: KernelFound<'_>) -> Self {
        Self::new(kernel.path, kernel.text)
    }

    /// A reading.
    pub fn new(place: impl Into<String>, found: impl Into<String>) -> Self {
        Self { place: place.into(), found: found.into() }
    }
}

impl KernelConfig {
    /// Returns its choice for an option, as a reading.
    pub(super) fn reading(&self, option: &str, choice: ConfigChoice) -> Reading {
        Reading::new(&self.path, choice.of_option(option))
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
    /// The judgement of Linux's rules as far as descriptors decide; `None` where there are none to be read.
    pub linux: Option<LinuxJudgement>,
    /// The controller of its bus.
    pub controller: Option<&'a Controller>,
    /// Its quirks.
    pub quirks: Quirks,
    /// A row that came after this kernel, which may have taken it over.
    pub later_row: Option<&'static TableRow>,
    /// A row that a later release of this kernel's branch has, and this kernel has not.
    pub missing_row: Option<&'static TableRow>,
    /// A row that ignores UAS and went after this kernel, which may have dropped it already.
    pub leaving_row: Option<&'static TableRow>,
}

impl<'a> Evidence<'a> {
    /// The evidence on each storage interface of a device.
    pub fn gather(inventory: &'a Inventory, device: &'a UsbDevice) -> Vec<Self> {
        Interface::storage_of(device).map(|interface| Self::of(inventory, device, interface)).collect()
    }

    fn of(inventory: &'a Inventory, device: &'a UsbDevice, interface: &'a Interface) -> Self {
        let settings: Vec<&Setting> =
            device.described().into_iter().flat_map(|one| one.settings_of(interface.number)).collect();
        // What the controller can is asked elsewhere: descriptors do not say.
        let link = Link { speed: device.speed_of_link(), streams_max: STREAMS_MAX };
        let identity = device.identity();
        let user = entry::flags_of(inventory.quirks.value(), device.id);
        let judged = |kernel| {
            let of = |configuration| {
                LinuxJudgement::in_kernel(&identity, configuration, interface.number, link, kernel)
            };
            device.described().map(of)
        };
        let built_in = |linux: Option<&LinuxJudgement>, kernel| {
            linux.map_or_else(|| BuiltIn::in_kernel(&identity, None, kernel), |linux| linux.built_in)
        };
        let driver = interface.driver.as_deref();
        let Tables { version, later_row, leaving_row } = match user {
            Some(_) => Tables::of_release(inventory, device),
            None => Tables::of(inventory, device, driver, |kernel| built_in(judged(kernel).as_ref(), kernel)),
        };
        let linux = judged(version);
        let built_in = built_in(linux.as_ref(), version);
        let quirks = Quirks { built_in, user, kernel: version };
        let controller = inventory.controller_of(device);
        let kernel = inventory.kernel().map(|found| found.version);
        let missing_row = kernel.and_then(|kernel| table::missing_row(device.id, device.revision, kernel));
        Self {
            inventory,
            device,
            interface,
            settings,
            linux,
            controller,
            quirks,
            later_row,
            missing_row,
            leaving_row,
        }
    }

    /// Its quirks after the next boot, by files and command line; where they have no entry of it, those in force.
    pub fn quirks_at_boot(&self) -> Quirks {
        let user = entry::flags_of(self.inventory.quirks.at_boot(), self.device.id);
        Quirks { user: user.or(self.quirks.user), ..self.quirks }
    }

    /// Returns the finding of a rule about descriptors; `None` if it could not be asked.
    pub fn finding(&self, rule: Rule) -> Option<&Finding> {
        self.linux.as_ref()?.finding(rule)
    }

    /// Whether a setting speaks UAS.
    pub fn speaks_uas(&self) -> bool {
        match self.finding(Rule::UasSetting) {
            Some(finding) => finding.met,
            None => self.is_shown_to_speak_uas(),
        }
    }

    /// Whether what happened shows that it speaks UAS, where its descriptors are not known: the kernel asks for a setting
    /// first (`uas_use_uas_driver`).
    pub fn is_shown_to_speak_uas(&self) -> bool {
        let has_line = |words: &str| self.log().is_some_and(|log| log.last(self.device, words).is_some());
        self.driver() == Some("uas")
            || IGNORED_WORDS.iter().any(|words| has_line(words))
            || has_line("USB controller ")
            || has_line("The driver for the USB controller ")
            || self.log().is_some_and(|log| log.last_of_driver(self.device, "uas").is_some())
    }

    /// Whether alternate setting 0 is Bulk-Only, or older: what `usb-storage` speaks.
    pub fn speaks_bot(&self) -> bool {
        let first = self.settings.first().map_or(self.interface.class, |setting| setting.interface.class);
        first.class == ClassCode::BOT.class && first.protocol != ClassCode::UAS.protocol
    }

    /// Whether it speaks Bulk-Only, or its settings are not known: a drive that speaks UAS alone is rare.
    pub fn speaks_bot_or_unknown(&self) -> bool {
        self.settings.is_empty() || self.speaks_bot()
    }

    /// Whether a quirk has `usb-storage` leave the device alone; `uas` does not mind it.
    pub fn is_left_alone(&self) -> bool {
        self.quirks.storage().contains(Flag::IgnoreDevice)
    }

    /// Whether `usb-storage` binds when `uas` declines.
    pub fn usb_storage_takes_it(&self) -> bool {
        self.speaks_bot() && !self.is_left_alone() && !self.inventory.drivers.is_without_usb_storage()
    }

    /// Whether `usb-storage` is registered.
    pub fn usb_storage_is_there(&self) -> bool {
        self.inventory.drivers.has_usb_storage()
    }

    /// The name of the driver that is bound to the interface, or has taken the whole device.
    pub fn driver(&self) -> Option<&str> {
        self.interface.driver.as_deref().or(self.device.taken_by())
    }

    /// The driver that is bound, as a reading.
    pub fn driver_reading(&self) -> Reading {
        let found = self.driver().map_or_else(|| "no such link".to_owned(), |driver| format!("→ {driver}"));
        let is_whole = self.interface.driver.is_none() && self.driver().is_some();
        let place =
            if is_whole { self.device.attribute("driver") } else { self.interface.attribute("driver") };
        Reading::new(place, found)
    }

    /// An attribute of the device, as a reading.
    pub fn attribute(&self, name: &str, found: impl Into<String>) -> Reading {
        Reading::new(self.device.attribute(name), found)
    }

    /// The kernel's log, if it could be read.
    pub fn log(&self) -> Option<&'a KernelLog> {
        self.inventory.readable_log()
    }

    /// Whether the kernel's log is there and for root only.
    pub fn log_is_refused(&self) -> bool {
        self.inventory.log == Some(Err(Unread::Refused))
    }

    /// The last line of the log about the device, since it was plugged in, that says `words` first.
    pub fn log_line(&self, words: &str) -> Option<Reading> {
        let log = self.log()?;
        log.last(self.device, words).map(|line| Reading::new(&log.path, line))
    }

    /// The last line of the log about a driver at the device, since it was plugged in.
    pub fn log_line_of(&self, driver: &str) -> Option<Reading> {
        let log = self.log()?;
        log.last_of_driver(self.device, driver).map(|line| Reading::new(&log.path, line))
    }
}

/// By which tables a device is judged.
struct Tables {
    /// Those of this version; `None` is the newest that is known.
    version: Option<KernelVersion>,
    later_row: Option<&'static TableRow>,
    leaving_row: Option<&'static TableRow>,
}

impl Tables {
    /// By the kernel's version alone.
    fn of_release(inventory: &Inventory, device: &UsbDevice) -> Self {
        let version = inventory.kernel().map(|found| found.version);
        let later_row = version.and_then(|kernel| table::later_row(device.id, device.revision, kernel));
        Self { version, later_row, leaving_row: None }
    }

    /// By what the kernel shows as well, where the user sets nothing for the device. One that says that it ignores UAS for it
    /// has taken a later row over, or still has one that has gone since; one that has it on `uas` has dropped that.
    fn of(
        inventory: &Inventory,
        device: &UsbDevice,
        driver: Option<&str>,
        built_in: impl Fn(Option<KernelVersion>) -> BuiltIn,
    ) -> Self {
        let by_release = Self::of_release(inventory, device);
        let has_line = |log: &KernelLog| IGNORED_WORDS.iter().any(|words| log.last(device, words).is_some());
        if driver != Some("uas") && inventory.readable_log().is_some_and(has_line) {
            let since = by_release.later_row.filter(|row| row.flags.contains(Flag::IgnoreUas));
            return match since.and_then(|row| row.versions.since) {
                Some(since) => Self { version: Some(since.mainline), later_row: None, leaving_row: None },
                None => by_release,
            };
        }
        let row = built_in(by_release.version).row.filter(|row| row.flags.contains(Flag::IgnoreUas));
        let may_be_gone = |before: &&Change| {
            by_release.version.is_some_and(|kernel| before.presence(kernel) == Presence::Unknown)
                && !built_in(Some(before.mainline)).ignores_uas()
        };
        match row.and_then(|row| row.versions.before).filter(may_be_gone) {
            Some(before) => Self { version: Some(before.mainline), later_row: None, leaving_row: row },
            None => by_release,
        }
    }
}

/// Messages of the kernel where it ignores UAS for a device, of this and of older versions.
pub(super) const IGNORED_WORDS: [&str; 2] =
    ["UAS is ignored for this device", "UAS is blacklisted for this device"];
