//! ATA: registers, commands, IDENTIFY DEVICE, SMART, and the frames of Serial ATA.
//!
//! Command set: ACS-4 (T13/BSR INCITS 529); frames: Serial ATA 3.x clause 10.5. Multi-byte fields are
//! little-endian, text is byte-swapped in its words. What SCSI makes of it (ATA PASS-THROUGH, the ATA return
//! descriptor) is in [`crate::scsi`].
//!
//! Left out: packet devices (ATAPI), trusted and streaming features, cylinders and heads.
//!
//! Always true: an LBA here has 48 bits; a block of 512 bytes that carries a checksum is decoded only if the
//! checksum holds.

mod block;
mod command;
mod fis;
mod identify;
mod log;
mod registers;
mod smart;
mod statistics;
mod text;
mod trim;

pub use command::{
    AtaCommand, PowerMode, Protocol, SelfTest, SetFeaturesSubcommand, SmartSubcommand, TransferMode,
};
pub use fis::{
    DataFis, DeviceToHostFis, DmaActivateFis, DmaSetupFis, FisType, HostToDeviceFis, PioSetupFis,
    SetDeviceBitsFis,
};
pub use identify::{
    AfterTrim, Feature, FormFactor, IdentifyDevice, RotationRate, SataLink, SataSpeed, SectorLayout, Trim,
};
pub use log::{LogAddress, LogDirectory};
pub use registers::{AtaError, AtaStatus, CommandRegisters, ResultRegisters};
pub use smart::{
    Attribute, AttributeFlags, AttributeThreshold, ErrorEntry, ExtendedErrorLog, ExtendedSelfTestEntry,
    ExtendedSelfTestLog, LoggedCommand, OfflineCapabilities, OfflineStatus, SelectiveSelfTestLog,
    SelfTestEntry, SelfTestLog, SelfTestOutcome, SelfTestStatus, SmartCapabilities, SmartReadings,
    SmartThresholds, SummaryErrorLog,
};
pub use statistics::GeneralStatistics;
pub use text::AtaText;
pub use trim::TrimRange;

/// The LBAs that exist: 48 bits.
pub(crate) const LBA_MASK: u64 = 0xffff_ffff_ffff;
