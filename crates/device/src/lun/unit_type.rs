//! Types of logical units: the commands of a unit depend on its type.

use core::fmt;
use wire::scsi::inquiry::Peripheral;

/// Type of a logical unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnitType {
    /// A direct access block device (SBC-4).
    #[default]
    Disk,
    /// A drive of CDs, DVDs and BDs that only reads (MMC-6).
    Optical,
    /// A floppy drive (UFI 1.0).
    Floppy,
}

impl UnitType {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Disk, Self::Optical, Self::Floppy];

    /// The first byte of INQUIRY data.
    pub const fn peripheral(self) -> Peripheral {
        match self {
            Self::Disk | Self::Floppy => Peripheral::DISK,
            Self::Optical => Peripheral::OPTICAL,
        }
    }
}

impl fmt::Display for UnitType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk => "disk",
            Self::Optical => "optical",
            Self::Floppy => "floppy",
        })
    }
}
