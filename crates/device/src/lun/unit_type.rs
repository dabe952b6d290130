//! What a logical unit is: the commands that it has depend on it.

use wire::scsi::inquiry::Peripheral;

/// What a logical unit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnitType {
    /// A direct access block device (SBC-4).
    #[default]
    Disk,
    /// A drive of CDs, DVDs and BDs that only reads (MMC-6).
    Optical,
}

impl UnitType {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Disk, Self::Optical];

    /// The first byte of INQUIRY data.
    pub const fn peripheral(self) -> Peripheral {
        match self {
            Self::Disk => Peripheral::DISK,
            Self::Optical => Peripheral::OPTICAL,
        }
    }
}
