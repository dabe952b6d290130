//! The tables of quirks, row by row: ids, revisions, flags (Linux 7.3.4, drivers/usb/storage).
//!
//! [`UAS`] is unusual_uas.h, [`STORAGE`] the rows of unusual_devs.h that have flags; rows that name a protocol or an initialisation alone
//! are left out. Rows that Linux changed or removed are there with the versions that had them.
//!
//! `usb-storage` looks through its own table and then through that of `uas`; the first row that fits counts, so that the
//! two drivers may see different flags. A row counts for a range of bcdDevice, most for all. Of what Linux changed since
//! [`OLDEST`](super::OLDEST), each row has the mainline version and the releases of stable branches as far as they were found.

mod storage;

pub use storage::STORAGE;

use super::history;
use super::{Change, Flag, Flags, KernelVersion, Presence, Versions};
use crate::identity::DeviceId;

/// A row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// The device.
    pub id: DeviceId,
    /// The first and the last bcdDevice that is meant.
    pub revisions: (u16, u16),
    /// Flags that Linux applies to the device.
    pub flags: Flags,
    /// Maker and product.
    pub name: &'static str,
    /// The versions of Linux that have the row.
    pub versions: Versions,
}

/// The version of Linux of which the tables are.
pub const TABLES_OF: KernelVersion = KernelVersion::new(7, 3);

impl TableRow {
    /// The file of Linux that has it, in drivers/usb/storage.
    pub fn file(&self) -> &'static str {
        if UAS.contains(self) { "unusual_uas.h" } else { "unusual_devs.h" }
    }

    /// The row for these revisions alone.
    const fn of(self, first: u16, last: u16) -> Self {
        Self { revisions: (first, last), ..self }
    }

    /// The row, which came with a change.
    const fn since(self, change: &'static Change) -> Self {
        Self { versions: Versions { since: Some(change), ..self.versions }, ..self }
    }

    /// The row, which went with a change.
    const fn before(self, change: &'static Change) -> Self {
        Self { versions: Versions { before: Some(change), ..self.versions }, ..self }
    }

    /// Whether the row is for a device with these ids and this bcdDevice.
    pub fn is_for(&self, id: DeviceId, revision: u16) -> bool {
        self.id == id && (self.revisions.0..=self.revisions.1).contains(&revision)
    }
}

/// The row of a device as `uas` finds it in a kernel; `None` is the newest that is known.
pub fn uas_row(id: DeviceId, revision: u16, kernel: Option<KernelVersion>) -> Option<&'static TableRow> {
    UAS.iter().find(|row| row.is_for(id, revision) && row.versions.contain(kernel))
}

/// The row of a device as `usb-storage` finds it in a kernel; `None` is the newest that is known.
pub fn storage_row(id: DeviceId, revision: u16, kernel: Option<KernelVersion>) -> Option<&'static TableRow> {
    STORAGE.iter().chain(UAS).find(|row| row.is_for(id, revision) && row.versions.contain(kernel))
}

/// The row for a device, be it of `uas` or of `usb-storage` alone, that is younger than a kernel's version and that the kernel may have
/// or not.
pub fn later_row(id: DeviceId, revision: u16, kernel: KernelVersion) -> Option<&'static TableRow> {
    younger_row(id, revision, kernel, Presence::Unknown)
}

/// The same that the kernel does not have for certain, since its branch took it over in a later release.
pub fn missing_row(id: DeviceId, revision: u16, kernel: KernelVersion) -> Option<&'static TableRow> {
    younger_row(id, revision, kernel, Presence::Absent)
}

fn younger_row(
    id: DeviceId,
    revision: u16,
    kernel: KernelVersion,
    presence: Presence,
) -> Option<&'static TableRow> {
    let is_younger =
        |row: &TableRow| row.versions.since.is_some_and(|since| since.presence(kernel) == presence);
    UAS.iter().chain(STORAGE).find(|row| row.is_for(id, revision) && is_younger(row))
}

const fn row(vendor: u16, product: u16, flags: &[Flag], name: &'static str) -> TableRow {
    TableRow {
        id: DeviceId::new(vendor, product),
        revisions: (0x0000, 0x9999),
        flags: Flags::of(flags),
        name,
        versions: Versions { since: None, before: None },
    }
}

/// Table of `uas`, in the order of ids.
pub static UAS: &[TableRow] = &[
    row(0x054c, 0x087d, &[Flag::NoReportOpcodes], "Sony PSZ-HA*").since(&history::SONY_PSZ),
    row(0x059f, 0x105f, &[Flag::NoReportOpcodes], "LaCie 2Big Quadra USB3")
        .since(&history::LACIE_2BIG)
        .before(&history::LACIE_2BIG_NO_SAME),
    row(0x059f, 0x105f, &[Flag::NoReportOpcodes, Flag::NoSame], "LaCie 2Big Quadra USB3")
        .since(&history::LACIE_2BIG_NO_SAME),
    row(0x059f, 0x1061, &[Flag::IgnoreUas], "LaCie Rugged USB3-FW")
        .since(&history::LACIE_RUGGED_IGNORED)
        .before(&history::LACIE_RUGGED_UAS),
    row(0x059f, 0x1061, &[Flag::NoReportOpcodes, Flag::NoSame], "LaCie Rugged USB3-FW")
        .since(&history::LACIE_RUGGED_UAS),
    row(0x0781, 0x55e8, &[Flag::IgnoreUas], "SanDisk").since(&history::SANDISK_IGNORED),
    row(0x090c, 0x2000, &[Flag::IgnoreUas], "Hiksemi External HDD").since(&history::HIKSEMI_DISK),
    row(0x0984, 0x0301, &[Flag::IgnoreUas], "Apricorn").of(0x0128, 0x0128),
    row(0x0b05, 0x1932, &[Flag::IgnoreUas], "ASUS External HDD").since(&history::ASUS),
    row(0x0bc2, 0x331a, &[Flag::NoReportLuns], "Seagate Expansion Desk"),
    // Others use the chip as well: a rule in the code took its place.
    row(0x0bda, 0x9210, &[Flag::IgnoreUas], "Hiksemi External HDD")
        .since(&history::HIKSEMI_RTL9210)
        .before(&history::HIKSEMI_BY_NAMES),
    row(0x125f, 0xa94a, &[Flag::NoAta1x], "ADATA Portable HDD CH94")
        .of(0x0160, 0x0160)
        .since(&history::ADATA_CH94),
    row(0x13fd, 0x3940, &[Flag::NoAta1x, Flag::IgnoreResidue], "Initio INIC-3069")
        .before(&history::INITIO_NARROWED),
    row(0x13fd, 0x3940, &[Flag::NoAta1x, Flag::IgnoreResidue], "Initio INIC-3069")
        .of(0x0000, 0x0309)
        .since(&history::INITIO_NARROWED),
    row(0x152d, 0x0539, &[Flag::NoReportOpcodes], "JMicron JMS539"),
    row(0x152d, 0x0567, &[Flag::BrokenFua, Flag::NoReportOpcodes], "JMicron JMS567"),
    row(0x152d, 0x0578, &[Flag::BrokenFua], "JMicron JMS567"),
    row(0x152d, 0x0583, &[Flag::NoReportOpcodes], "JMicron JMS583Gen 2").since(&history::JMS583),
    row(0x154b, 0xf009, &[Flag::NoAta1x, Flag::NoReportOpcodes], "PNY Pro Elite SSD")
        .since(&history::PNY_ELITE),
    row(0x154b, 0xf00b, &[Flag::NoAta1x], "PNY Pro Elite SSD").since(&history::PNY_PORTABLE),
    row(0x154b, 0xf00d, &[Flag::NoAta1x], "PNY Pro Elite SSD").since(&history::PNY_PRO_ELITE),
    row(0x17ef, 0x3899, &[Flag::IgnoreUas], "Thinkplus External HDD").since(&history::THINKPLUS),
    row(0x2109, 0x0711, &[Flag::NoAta1x], "VIA VL711"),
    row(0x2537, 0x1068, &[Flag::IgnoreUas], "Norelsys NS1068X"),
    row(0x357d, 0x7788, &[Flag::NoReportOpcodes], "JMicron JMS566").before(&history::JMS566_IGNORED),
    row(0x357d, 0x7788, &[Flag::NoReportOpcodes, Flag::IgnoreUas], "JMicron JMS566")
        .since(&history::JMS566_IGNORED),
    row(0x4971, 0x1012, &[Flag::IgnoreUas], "Hitachi External HDD"),
    row(0x4971, 0x8017, &[Flag::NoReportOpcodes], "SimpleTech External HDD"),
    row(0x4971, 0x8024, &[Flag::AlwaysSync], "SimpleTech External HDD"),
];

#[cfg(test)]
mod tests;
