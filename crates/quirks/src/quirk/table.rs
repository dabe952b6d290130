//! The tables of quirks, row by row: ids, revisions, flags (Linux 7.0, drivers/usb/storage).
//!
//! [`UAS`] is unusual_uas.h, whole. [`STORAGE`] is unusual_devs.h as far as disks and bridges to disks go; cameras,
//! players, telephones, sticks, card readers and modems are left out. Of the row of VL817 there is what came after 7.0 as well: it is
//! the one that says to ignore UAS where `uas` does not look, so that whichever driver is asked first has the drive.
//!
//! `usb-storage` looks through its own table and then through that of `uas`; the first row that fits counts, so that the
//! two drivers may see different flags. A row counts for a range of bcdDevice, most for all. An older kernel has fewer
//! rows, or wider ones; a newer one may have more. The versions of a row are given where they are known for certain;
//! others are taken for those of every kernel.

use super::{Flag, Flags, KernelVersion, Versions};
use crate::identity::DeviceId;

/// A row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// The device.
    pub id: DeviceId,
    /// The first and the last bcdDevice that is meant.
    pub revisions: (u16, u16),
    /// What Linux does otherwise for it.
    pub flags: Flags,
    /// Maker and product.
    pub name: &'static str,
    /// The versions of Linux that have the row.
    pub versions: Versions,
}

/// The version of Linux of which the tables are.
pub const TABLES_OF: KernelVersion = KernelVersion::new(7, 0);

impl TableRow {
    /// The file of Linux that has it, in drivers/usb/storage.
    pub fn file(&self) -> &'static str {
        if UAS.contains(self) { "unusual_uas.h" } else { "unusual_devs.h" }
    }

    /// The row, which came with a version.
    const fn since(self, major: u16, minor: u16) -> Self {
        let since = Some(KernelVersion::new(major, minor));
        Self { versions: Versions { since, ..self.versions }, ..self }
    }

    /// The row, which went with a version.
    const fn before(self, major: u16, minor: u16) -> Self {
        let before = Some(KernelVersion::new(major, minor));
        Self { versions: Versions { before, ..self.versions }, ..self }
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

/// The row for a device that came after a kernel, be it of `uas` or of `usb-storage` alone. A stable branch may have taken it over.
pub fn later_row(id: DeviceId, revision: u16, kernel: KernelVersion) -> Option<&'static TableRow> {
    let is_later = |row: &TableRow| row.versions.since.is_some_and(|since| since > kernel);
    UAS.iter().chain(STORAGE).find(|row| row.is_for(id, revision) && is_later(row))
}

const fn row(vendor: u16, product: u16, flags: &[Flag], name: &'static str) -> TableRow {
    rows(vendor, product, (0x0000, 0x9999), flags, name)
}

const fn rows(
    vendor: u16,
    product: u16,
    revisions: (u16, u16),
    flags: &[Flag],
    name: &'static str,
) -> TableRow {
    TableRow {
        id: DeviceId::new(vendor, product),
        revisions,
        flags: Flags::of(flags),
        name,
        versions: Versions { since: None, before: None },
    }
}

/// What `uas` knows, in the order of ids.
pub const UAS: &[TableRow] = &[
    // In the list of changes of 5.9-rc3, August 2020; stable branches have taken it over.
    row(0x054c, 0x087d, &[Flag::NoReportOpcodes], "Sony PSZ-HA*").since(5, 9),
    // Of the USB fixes for 5.7-rc5, May 2020, in stable branches since that month; NoSame is of December 2020.
    row(0x059f, 0x105f, &[Flag::NoReportOpcodes, Flag::NoSame], "LaCie 2Big Quadra USB3").since(5, 7),
    // In the list of changes of 5.14-rc3, July 2021, and again otherwise of the USB fixes for 5.15-rc3.
    row(0x059f, 0x1061, &[Flag::IgnoreUas], "LaCie Rugged USB3-FW").since(5, 14).before(5, 15),
    row(0x059f, 0x1061, &[Flag::NoReportOpcodes, Flag::NoSame], "LaCie Rugged USB3-FW").since(5, 15),
    // Of May 2025; in stable branches since June of that year, from 6.15.2 down to 5.4.
    row(0x0781, 0x55e8, &[Flag::IgnoreUas], "SanDisk").since(6, 16),
    // Of September 2022, "USB / Thunderbolt driver fixes for 6.0-final"; in stable branches since October, from 5.19.14 down to 4.19.261.
    row(0x090c, 0x2000, &[Flag::IgnoreUas], "Hiksemi External HDD").since(6, 0),
    rows(0x0984, 0x0301, (0x0128, 0x0128), &[Flag::IgnoreUas], "Apricorn"),
    // In the list of changes of 6.0-rc4, September 2022; stable branches have taken it over.
    row(0x0b05, 0x1932, &[Flag::IgnoreUas], "ASUS External HDD").since(6, 0),
    row(0x0bc2, 0x331a, &[Flag::NoReportLuns], "Seagate Expansion Desk"),
    // As that of Hiksemi, and gone with "USB driver fixes for 6.2-rc5", January 2023, for a rule in the code: others use the chip as well.
    // Stable branches have taken both over: the row down to 4.19.261, its end from 6.1.8 down to 4.19.271.
    row(0x0bda, 0x9210, &[Flag::IgnoreUas], "Hiksemi External HDD").since(6, 0).before(6, 2),
    // In the list of changes of 6.15-rc4, April 2025; stable branches have taken it over.
    rows(0x125f, 0xa94a, (0x0160, 0x0160), &[Flag::NoAta1x], "ADATA Portable HDD CH94").since(6, 15),
    // Every revision up to Linux 6.18; stable branches have taken the narrower row over.
    row(0x13fd, 0x3940, &[Flag::NoAta1x, Flag::IgnoreResidue], "Initio INIC-3069").before(6, 19),
    rows(0x13fd, 0x3940, (0x0000, 0x0309), &[Flag::NoAta1x, Flag::IgnoreResidue], "Initio INIC-3069")
        .since(6, 19),
    row(0x152d, 0x0539, &[Flag::NoReportOpcodes], "JMicron JMS539"),
    row(0x152d, 0x0567, &[Flag::BrokenFua, Flag::NoReportOpcodes], "JMicron JMS567"),
    row(0x152d, 0x0578, &[Flag::BrokenFua], "JMicron JMS567"),
    // Of the USB fixes for 6.3-rc4, March 2023.
    row(0x152d, 0x0583, &[Flag::NoReportOpcodes], "JMicron JMS583Gen 2").since(6, 3),
    // In stable branches by 6.1.192 and in 7.3; which version brought it is not known for certain.
    row(0x154b, 0xf009, &[Flag::NoAta1x, Flag::NoReportOpcodes], "PNY Pro Elite SSD").since(7, 1),
    // In the lists of changes of 5.11-rc3, January 2021, and of 5.9-rc3, August 2020; stable branches have taken both over.
    row(0x154b, 0xf00b, &[Flag::NoAta1x], "PNY Pro Elite SSD").since(5, 11),
    row(0x154b, 0xf00d, &[Flag::NoAta1x], "PNY Pro Elite SSD").since(5, 9),
    // As that of Hiksemi.
    row(0x17ef, 0x3899, &[Flag::IgnoreUas], "Thinkplus External HDD").since(6, 0),
    row(0x2109, 0x0711, &[Flag::NoAta1x], "VIA VL711"),
    row(0x2537, 0x1068, &[Flag::IgnoreUas], "Norelsys NS1068X"),
    row(0x357d, 0x7788, &[Flag::NoReportOpcodes, Flag::IgnoreUas], "JMicron JMS566"),
    row(0x4971, 0x1012, &[Flag::IgnoreUas], "Hitachi External HDD"),
    row(0x4971, 0x8017, &[Flag::NoReportOpcodes], "SimpleTech External HDD"),
    row(0x4971, 0x8024, &[Flag::AlwaysSync], "SimpleTech External HDD"),
];

/// What `usb-storage` alone knows of disks and bridges, in the order of ids.
pub const STORAGE: &[TableRow] = &[
    rows(0x03f0, 0x070c, (0x0000, 0x0000), &[Flag::SaneSense], "HP Personal Media Drive"),
    rows(0x04c5, 0x2028, (0x0001, 0x0001), &[Flag::NotLockable], "iODD 2531/2541"),
    // Two rows: revisions before 026c have tags that are wrong as well, which no flag here says.
    rows(0x04ce, 0x0002, (0x0000, 0x026c), &[Flag::FixCapacity], "ScanLogic SL11R-IDE"),
    row(0x0525, 0xa4a5, &[Flag::CapacityOk], "Linux mass storage gadget"),
    rows(0x059f, 0x0651, (0x0000, 0x0000), &[Flag::NoWriteProtectDetect], "LaCie External HDD"),
    rows(
        0x05e3,
        0x0702,
        (0x0000, 0xffff),
        &[Flag::GoSlow, Flag::MaxSectors64, Flag::IgnoreResidue],
        "Genesys USB to IDE",
    ),
    rows(0x05e3, 0x0723, (0x9451, 0x9451), &[Flag::SaneSense], "Genesys USB to SATA"),
    rows(0x067b, 0x2317, (0x0001, 0x0001), &[Flag::NotLockable], "Prolific PL2317"),
    rows(0x067b, 0x2507, (0x0001, 0x0100), &[Flag::FixCapacity, Flag::GoSlow], "Prolific PL2507"),
    rows(0x067b, 0x3507, (0x0001, 0x0101), &[Flag::FixCapacity, Flag::GoSlow], "Prolific PL3507"),
    row(0x07ab, 0xfccd, &[Flag::FixCapacity], "Freecom FHD-Classic"),
    rows(0x0840, 0x0082, (0x0001, 0x0001), &[Flag::FixCapacity], "Argosy Storage"),
    rows(0x0840, 0x0084, (0x0001, 0x0001), &[Flag::FixCapacity], "Argosy Storage"),
    rows(0x0840, 0x0085, (0x0001, 0x0001), &[Flag::FixCapacity], "Argosy Storage"),
    rows(0x090c, 0x3350, (0x0000, 0xffff), &[Flag::BadSense], "SMI SM3350 UFS to USB"),
    row(0x0bc2, 0x2300, &[Flag::WriteCache], "Seagate Portable HDD"),
    rows(0x0bc2, 0x3010, (0x0000, 0x0000), &[Flag::SaneSense], "Seagate FreeAgent Pro"),
    row(0x0bc2, 0x3332, &[Flag::NoWriteProtectDetect], "Seagate External"),
    row(0x0d49, 0x7310, &[Flag::SaneSense], "Maxtor USB to SATA"),
    rows(0x0dc4, 0x0073, (0x0000, 0x0000), &[Flag::FixCapacity], "Macpower 3.5\" enclosure"),
    row(0x1058, 0x0704, &[Flag::SaneSense], "Western Digital External HDD"),
    row(0x1058, 0x070a, &[Flag::WriteCache], "Western Digital My Passport"),
    rows(0x14cd, 0x6600, (0x0201, 0x0201), &[Flag::IgnoreResidue], "Super Top USB to IDE"),
    rows(0x152d, 0x0567, (0x0114, 0x0117), &[Flag::BrokenFua], "JMicron JMS567"),
    row(0x152d, 0x0578, &[Flag::BrokenFua], "JMicron JMS567"),
    rows(0x152d, 0x2329, (0x0100, 0x0100), &[Flag::IgnoreResidue, Flag::SaneSense], "JMicron USB to ATA"),
    rows(0x152d, 0x2566, (0x0114, 0x0114), &[Flag::BrokenFua], "JMicron USB to ATA"),
    rows(0x152d, 0x2567, (0x0117, 0x0117), &[Flag::BrokenFua], "JMicron USB to ATA"),
    row(0x152d, 0x9561, &[Flag::NoReportOpcodes], "JMicron JMS56x"),
    rows(0x1652, 0x6600, (0x0201, 0x0201), &[Flag::IgnoreResidue], "Teac HD-35PUK-B"),
    rows(0x174c, 0x55aa, (0x0100, 0x0100), &[Flag::NeedsCapacity16], "ASMedia AS2105"),
    rows(0x1e68, 0x001b, (0x0000, 0x0000), &[Flag::IgnoreResidue, Flag::SaneSense], "TrekStor DataStation"),
    // In the list of changes of 5.17-rc2, January 2022, in stable branches since February, down to 4.4. For every revision after 7.0 of
    // April 2026, which stable branches have taken over, 7.0 among them.
    rows(0x2109, 0x0715, (0x9999, 0x9999), &[Flag::IgnoreUas], "VIA VL817").since(5, 17).before(7, 1),
    row(0x2109, 0x0715, &[Flag::IgnoreUas], "VIA VL817").since(7, 1),
    row(0x2ca3, 0x0031, &[Flag::NoAta1x], "DJI CineSSD"),
    rows(0x357d, 0x7788, (0x0114, 0x0114), &[Flag::BrokenFua, Flag::IgnoreUas], "JMicron USB to ATA"),
    row(0x4971, 0x8024, &[Flag::AlwaysSync], "SimpleTech External HDD"),
    rows(0xed06, 0x4500, (0x0001, 0x0001), &[Flag::CapacityHeuristics], "DataStor USB4500"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_there_once_in_a_kernel() {
        let kernels = [(5, 13), (5, 14), (5, 15), (6, 1), (6, 5), (6, 15), (6, 16), (6, 18), (6, 19), (7, 1)]
            .map(|(major, minor)| Some(KernelVersion::new(major, minor)));
        for (table, len) in [(UAS, 27), (STORAGE, 38)] {
            assert!(table.is_sorted_by_key(|row| row.id));
            assert!(table.iter().all(|row| row.revisions.0 <= row.revisions.1));
            for kernel in kernels.into_iter().chain([Some(TABLES_OF), None]) {
                let mut rows = table.iter().filter(|row| row.versions.contain(kernel)).map(|row| row.id);
                assert!(rows.clone().zip(rows.by_ref().skip(1)).all(|(one, next)| one != next), "{kernel:?}");
            }
            assert_eq!(table.len(), len);
        }
    }

    #[test]
    fn a_row_counts_for_its_revisions_alone() {
        let apricorn = DeviceId::new(0x0984, 0x0301);
        let ignored = Some(Flags::of(&[Flag::IgnoreUas]));
        assert_eq!(uas_row(apricorn, 0x0128, None).map(|row| row.flags), ignored);
        assert_eq!(uas_row(apricorn, 0x0127, None), None);
        assert_eq!(uas_row(apricorn, 0x0129, None), None);
        assert_eq!(uas_row(DeviceId::new(0x2109, 0x0711), 0xf001, None), None);
    }

    #[test]
    fn a_row_counts_in_its_kernels_alone() {
        let (sandisk, initio) = (DeviceId::new(0x0781, 0x55e8), DeviceId::new(0x13fd, 0x3940));
        let old = KernelVersion::new(6, 1);
        let has = |id, revision, kernel| uas_row(id, revision, kernel).is_some();
        assert!(!has(sandisk, 0x0001, Some(old)) && has(sandisk, 0x0001, Some(KernelVersion::new(6, 16))));
        assert_eq!(later_row(sandisk, 0x0001, old), uas_row(sandisk, 0x0001, None));
        assert_eq!(later_row(sandisk, 0x0001, TABLES_OF), None);
        for id in [(0x090c, 0x2000), (0x0b05, 0x1932), (0x17ef, 0x3899)] {
            let id = DeviceId::new(id.0, id.1);
            let (before, since) = (KernelVersion::new(5, 19), KernelVersion::new(6, 0));
            assert!(!has(id, 0x0001, Some(before)) && has(id, 0x0001, Some(since)) && has(id, 0x0001, None));
            assert!(later_row(id, 0x0001, before).is_some(), "{id}");
        }
        assert!(has(initio, 0x0310, Some(KernelVersion::new(6, 18))));
        assert!(!has(initio, 0x0310, Some(KernelVersion::new(6, 19))) && !has(initio, 0x0310, None));
        assert!(has(initio, 0x0309, Some(old)) && has(initio, 0x0309, None));
        assert_eq!(later_row(initio, 0x0310, old), None);
    }

    #[test]
    fn of_a_row_that_was_changed_each_kernel_has_its_own() {
        let flags = |id: (u16, u16), revision, kernel: (u16, u16)| {
            let kernel = Some(KernelVersion::new(kernel.0, kernel.1));
            let id = DeviceId::new(id.0, id.1);
            storage_row(id, revision, kernel).map(|row| row.flags.letters())
        };
        let rugged = |kernel| flags((0x059f, 0x1061), 0x0001, kernel);
        let letters = [(5, 13), (5, 14), (5, 15), (7, 0)].map(rugged);
        assert_eq!(letters, [None, Some("u".into()), Some("fk".into()), Some("fk".into())]);
        let rtl9210 = |kernel| flags((0x0bda, 0x9210), 0x0001, kernel);
        let letters = [(5, 19), (6, 0), (6, 1), (6, 2)].map(rtl9210);
        assert_eq!(letters, [None, Some("u".into()), Some("u".into()), None]);
        let vl817 = |revision| {
            [(5, 16), (5, 17), (7, 0), (7, 1)].map(|kernel| flags((0x2109, 0x0715), revision, kernel))
        };
        let ignored = Some(alloc::string::String::from("u"));
        assert_eq!(vl817(0x9999), [None, ignored.clone(), ignored.clone(), ignored.clone()]);
        assert_eq!(vl817(0x0843), [None, None, None, ignored]);
        // As of each of them before its version.
        for (id, revision, since) in [
            ((0x054c, 0x087d), 1, (5, 9)),
            ((0x059f, 0x105f), 1, (5, 7)),
            ((0x125f, 0xa94a), 0x0160, (6, 15)),
            ((0x152d, 0x0583), 1, (6, 3)),
            ((0x154b, 0xf00b), 1, (5, 11)),
            ((0x154b, 0xf00d), 1, (5, 9)),
        ] {
            let (before, new) = (flags(id, revision, (since.0, since.1 - 1)), flags(id, revision, since));
            assert!(before.is_none() && new.is_some(), "{id:04x?}");
        }
    }

    #[test]
    fn usb_storage_looks_into_its_own_table_first() {
        let jms567 = DeviceId::new(0x152d, 0x0567);
        let flags = |row: Option<&TableRow>| row.map(|row| row.flags);
        assert_eq!(flags(storage_row(jms567, 0x0114, None)), Some(Flags::of(&[Flag::BrokenFua])));
        let of_uas = Flags::of(&[Flag::BrokenFua, Flag::NoReportOpcodes]);
        assert_eq!(flags(uas_row(jms567, 0x0114, None)), Some(of_uas));
        assert_eq!(flags(storage_row(jms567, 0x0118, None)), Some(of_uas));
    }

    /// Otherwise `uas` would leave a device to `usb-storage`, and `usb-storage` to `uas`. With VL817 it is the other way round.
    #[test]
    fn both_drivers_agree_on_whom_to_ignore_but_for_vl817() {
        for row in UAS {
            for revision in [row.revisions.0, row.revisions.1] {
                let kernel = row.versions.since.or(Some(KernelVersion::new(6, 1)));
                let seen = storage_row(row.id, revision, kernel).expect("it looks here as well");
                let ignores = |flags: Flags| flags.contains(Flag::IgnoreUas);
                assert_eq!(ignores(row.flags), ignores(seen.flags), "{}", row.name);
            }
        }
        for row in STORAGE.iter().filter(|row| row.flags.contains(Flag::IgnoreUas)) {
            let seen =
                uas_row(row.id, row.revisions.0, None).map(|seen| seen.flags.contains(Flag::IgnoreUas));
            let is_vl817 = row.id == DeviceId::new(0x2109, 0x0715);
            assert_eq!(seen, if is_vl817 { None } else { Some(true) }, "{}", row.name);
        }
        // So a device that usb-storage leaves alone is one that the user says so of.
        assert!(STORAGE.iter().chain(UAS).all(|row| !row.flags.contains(Flag::IgnoreDevice)));
    }
}
