//! SCSI / ATA translation (SAT-4): the ATA device that hosts look for behind a USB bridge.
//!
//! There is none; the unit answers as one would. Tools that ask a drive about itself do so by ATA PASS-THROUGH
//! (smartctl, hdparm, udisks), as drives behind bridges require. The ATA device reports what the
//! SCSI unit reports: the same names, capacity, write cache, counters and self-tests, seen from the other side.
//! `pass_through` takes a CDB apart and puts the answer together; the other files are the ATA commands (ACS-4).
//!
//! Left out: NCQ, resets by PROTOCOL, security, host protected areas, SCT, selective self-tests, off-line
//! collection by itself. A command that is not here is aborted, as ACS-4 has it.
//!
//! Always true: SMART reports nothing that was not counted. There is no clock here, so there are no power-on hours,
//! and no temperature but the configured one; nothing predicts a failure.

mod ata_device;
mod blocks;
mod features;
mod identify;
mod logs;
pub(super) mod pass_through;
mod smart;

use super::{MediumPlan, Plan};
use alloc::vec::Vec;
pub use ata_device::AtaDevice;
pub use identify::{ata_information, identify};
use wire::ata::ResultRegisters;

/// The next step of an ATA command.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    /// Completed, with success or an error, with these registers.
    End(ResultRegisters),
    /// Whole blocks of 512 bytes for the host; then success.
    Send(Vec<u8>),
    /// So many bytes of parameter data from the host.
    Receive(u32),
    /// Something for the medium.
    Medium(MediumPlan),
    /// Refused by the SCSI unit before the ATA command runs.
    Refuse(Plan),
}

impl Action {
    /// Success, without registers to report.
    const DONE: Self = Self::End(ResultRegisters::GOOD);
    /// The device does not support the command.
    const ABORT: Self = Self::End(ResultRegisters::ABORTED);
}

#[cfg(test)]
mod tests;
