//! The table of `uas` (Linux 6.16, drivers/usb/storage/unusual_uas.h), row by row.
//!
//! An older kernel has fewer rows; a newer one may have more. A row counts for a range of bcdDevice, most for all.

use super::{Flag, Flags};
use crate::inventory::{DeviceId, UsbDevice};

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// The device.
    pub id: DeviceId,
    /// The first and the last bcdDevice that is meant.
    pub revisions: (u16, u16),
    /// What Linux does otherwise for it.
    pub flags: Flags,
    /// Maker and product, as the table names them.
    pub name: &'static str,
}

/// The row of a device.
pub fn row_of(device: &UsbDevice) -> Option<&'static TableRow> {
    let (id, revision) = (device.id, device.revision);
    TABLE.iter().find(|row| row.id == id && (row.revisions.0..=row.revisions.1).contains(&revision))
}

const fn row(vendor: u16, product: u16, flags: &[Flag], name: &'static str) -> TableRow {
    TableRow {
        id: DeviceId::new(vendor, product),
        revisions: (0x0000, 0x9999),
        flags: Flags::of(flags),
        name,
    }
}

const fn row_at(revision: u16, row: TableRow) -> TableRow {
    TableRow { revisions: (revision, revision), ..row }
}

/// Every row, in the order of ids.
pub const TABLE: &[TableRow] = &[
    row(0x054c, 0x087d, &[Flag::NoReportOpcodes], "Sony PSZ-HA*"),
    row(0x059f, 0x105f, &[Flag::NoReportOpcodes, Flag::NoSame], "LaCie 2Big Quadra USB3"),
    row(0x059f, 0x1061, &[Flag::NoReportOpcodes, Flag::NoSame], "LaCie Rugged USB3-FW"),
    row(0x0781, 0x55e8, &[Flag::IgnoreUas], "SanDisk"),
    row(0x090c, 0x2000, &[Flag::IgnoreUas], "Hiksemi External HDD"),
    row_at(0x0128, row(0x0984, 0x0301, &[Flag::IgnoreUas], "Apricorn")),
    row(0x0b05, 0x1932, &[Flag::IgnoreUas], "ASUS External HDD"),
    row(0x0bc2, 0x331a, &[Flag::NoReportLuns], "Seagate Expansion Desk"),
    row_at(0x0160, row(0x125f, 0xa94a, &[Flag::NoAta1x], "ADATA Portable HDD CH94")),
    row(0x13fd, 0x3940, &[Flag::NoAta1x, Flag::IgnoreResidue], "Initio INIC-3069"),
    row(0x152d, 0x0539, &[Flag::NoReportOpcodes], "JMicron JMS539"),
    row(0x152d, 0x0567, &[Flag::BrokenFua, Flag::NoReportOpcodes], "JMicron JMS567"),
    row(0x152d, 0x0578, &[Flag::BrokenFua], "JMicron JMS567"),
    row(0x152d, 0x0583, &[Flag::NoReportOpcodes], "JMicron JMS583Gen 2"),
    row(0x154b, 0xf00b, &[Flag::NoAta1x], "PNY Pro Elite SSD"),
    row(0x154b, 0xf00d, &[Flag::NoAta1x], "PNY Pro Elite SSD"),
    row(0x17ef, 0x3899, &[Flag::IgnoreUas], "Thinkplus External HDD"),
    row(0x2109, 0x0711, &[Flag::NoAta1x], "VIA VL711"),
    row(0x2537, 0x1068, &[Flag::IgnoreUas], "Norelsys NS1068X"),
    row(0x357d, 0x7788, &[Flag::NoReportOpcodes, Flag::IgnoreUas], "JMicron JMS566"),
    row(0x4971, 0x1012, &[Flag::IgnoreUas], "Hitachi External HDD"),
    row(0x4971, 0x8017, &[Flag::NoReportOpcodes], "SimpleTech External HDD"),
    row(0x4971, 0x8024, &[Flag::AlwaysSync], "SimpleTech External HDD"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_there_once() {
        assert!(TABLE.is_sorted_by_key(|row| row.id));
        assert!(TABLE.windows(2).all(|rows| rows[0].id != rows[1].id));
        assert_eq!(TABLE.len(), 23);
    }
}
