//! Logical unit numbers: eight bytes on the wire, one unit behind them (SAM-5 clause 4.7).
//!
//! A LUN field is a path of up to four two-byte levels. A drive has one level: peripheral device addressing
//! (00b, bus 0) for units 0 to 255, flat space addressing (01b) for 0 to 16383, and the extended form C1h
//! for well-known units. Left out: deeper levels, other buses, logical unit addressing (10b), long extended
//! forms. Such a field names no unit here, which is for the caller to answer (LOGICAL UNIT NOT SUPPORTED).

use core::fmt;

/// The LUN field as it crosses the wire.
///
/// ```text
///  0      address method (7:6), bus identifier or upper LUN bits (5:0)
///  1      target, LUN, or lower LUN bits
///  2..8   lower levels; zero in a single-level LUN
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LunField(pub [u8; 8]);

/// A unit that a single-level LUN field names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lun {
    /// A logical unit, 0..=16383.
    Unit(u16),
    /// A well-known logical unit.
    WellKnown(WellKnownLun),
}

code! {
    /// The well-known logical units (SPC-5).
    pub enum WellKnownLun: u8 {
        /// Answers REPORT LUNS for the whole device.
        ReportLuns = 0x01 => "REPORT LUNS",
        /// Answers access controls; obsolete.
        AccessControls = 0x02 => "ACCESS CONTROLS",
        /// Answers LOG SENSE for the whole target.
        TargetLogPages = 0x03 => "TARGET LOG PAGES",
    }
}

impl Lun {
    /// The largest number that flat space addressing says.
    pub const UNIT_MAX: u16 = 0x3fff;
}

impl LunField {
    /// Bytes of the field.
    pub const LEN: usize = 8;

    /// The unit named, or `None` where the field's structure is not one that a drive has.
    pub const fn lun(self) -> Option<Lun> {
        let [first, second, 0, 0, 0, 0, 0, 0] = self.0 else { return None };
        match first {
            0x00 => Some(Lun::Unit(second as u16)),
            0x40..=0x7f => Some(Lun::Unit((first as u16 & 0x3f) << 8 | second as u16)),
            0xc1 => Some(Lun::WellKnown(match second {
                0x01 => WellKnownLun::ReportLuns,
                0x02 => WellKnownLun::AccessControls,
                0x03 => WellKnownLun::TargetLogPages,
                other => WellKnownLun::Unknown(other),
            })),
            _ => None,
        }
    }
}

impl From<Lun> for LunField {
    /// Peripheral device addressing up to 255, flat space above.
    ///
    /// A number past [`Lun::UNIT_MAX`] has no single-level field; its upper two bits are lost.
    fn from(lun: Lun) -> Self {
        let (first, second) = match lun {
            Lun::Unit(number @ 0..=0xff) => (0x00, number as u8),
            Lun::Unit(number) => (0x40 | (number >> 8 & 0x3f) as u8, number as u8),
            Lun::WellKnown(well_known) => (0xc1, well_known.into()),
        };
        Self([first, second, 0, 0, 0, 0, 0, 0])
    }
}

impl fmt::Display for LunField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lun() {
            Some(lun) => lun.fmt(f),
            None => write!(f, "LUN {:016x}", u64::from_be_bytes(self.0)),
        }
    }
}

impl fmt::Display for Lun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit(number) => write!(f, "LUN {number}"),
            Self::WellKnown(well_known) => write!(f, "W-LUN {well_known}"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn literal_bytes_both_ways() {
        for (bytes, lun, text) in [
            ([0, 0, 0, 0, 0, 0, 0, 0], Lun::Unit(0), "LUN 0"),
            ([0, 0xff, 0, 0, 0, 0, 0, 0], Lun::Unit(255), "LUN 255"),
            ([0x41, 0x00, 0, 0, 0, 0, 0, 0], Lun::Unit(256), "LUN 256"),
            ([0x7f, 0xff, 0, 0, 0, 0, 0, 0], Lun::Unit(16383), "LUN 16383"),
            ([0xc1, 1, 0, 0, 0, 0, 0, 0], Lun::WellKnown(WellKnownLun::ReportLuns), "W-LUN REPORT LUNS"),
        ] {
            assert_eq!(LunField(bytes).lun(), Some(lun));
            assert_eq!(LunField::from(lun), LunField(bytes));
            assert_eq!(LunField(bytes).to_string(), text);
        }
    }

    #[test]
    fn flat_addressing_names_small_units_too() {
        assert_eq!(LunField([0x40, 7, 0, 0, 0, 0, 0, 0]).lun(), Some(Lun::Unit(7)));
    }

    #[test]
    fn what_a_drive_does_not_have_names_no_unit() {
        for bytes in [
            [0x01, 0, 0, 0, 0, 0, 0, 0],    // bus 1
            [0x00, 1, 0x40, 0, 0, 0, 0, 0], // a second level
            [0x80, 1, 0, 0, 0, 0, 0, 0],    // logical unit addressing
            [0xd2, 0, 0, 1, 0, 0, 0, 0],    // extended flat space
            [0xff; 8],                      // not specified
        ] {
            assert_eq!(LunField(bytes).lun(), None, "{bytes:02x?}");
        }
        assert_eq!(LunField([0x80, 1, 0, 0, 0, 0, 0, 0]).to_string(), "LUN 8001000000000000");
    }

    #[test]
    fn an_unknown_well_known_unit_survives() {
        let field = LunField([0xc1, 0x77, 0, 0, 0, 0, 0, 0]);
        assert_eq!(field.lun(), Some(Lun::WellKnown(WellKnownLun::Unknown(0x77))));
        assert_eq!(field.lun().map(LunField::from), Some(field));
    }

    proptest! {
        #[test]
        fn every_number_comes_back(number in 0u16..=0x3fff) {
            prop_assert_eq!(LunField::from(Lun::Unit(number)).lun(), Some(Lun::Unit(number)));
        }
    }
}
