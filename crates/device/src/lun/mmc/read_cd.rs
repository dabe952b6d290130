//! READ CD (MMC-6 clause 6.19) for the user data of data sectors, which is what READ returns.
//!
//! Accepted for DVDs and BDs as well, as hosts use it for any disc. Left out: synchronization, headers, error correction
//! codes and subchannels, which an image of 2048 bytes a block does not have.

use super::{Decision, fields, refused, settle};
use crate::lun::row::{Needs, Row};
use crate::lun::{DataPhase, LogicalUnit, Plan, limits, sbc};
use crate::medium::MediumOp;
use wire::scsi::cdb::ReadCd;
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const ROW: Row = Row::planned(
    &[0xbe, 0x1c, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x07, 0x04],
    Needs::READ,
    |context, cdb| settle(plan(context.unit, cdb)),
);

/// EXPECTED SECTOR TYPE of any sector, and of mode 1.
const ANY: u8 = 0;
const MODE_1: u8 = 2;

fn plan(unit: &LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(ReadCd::decode(cdb))?;
    if ![ANY, MODE_1].contains(&command.sector_type) {
        return Err(Sense::illegal_request(AdditionalSense::ILLEGAL_MODE_FOR_THIS_TRACK));
    }
    if command.subchannel != 0 {
        return Err(refused(10, 2));
    }
    if command.sync || command.header_codes != 0 || command.correction_codes || command.c2_error != 0 {
        return Err(Sense::invalid_field_in_cdb(9, None));
    }
    let extent = sbc::existing(unit, command.lba.into(), command.blocks.into())?;
    if !command.user_data {
        // Nothing of the sectors is asked for, which is no error.
        return Ok(Plan::Good);
    }
    if command.blocks > limits::transfer_blocks_max(unit.config.block_size) {
        return Err(Sense::invalid_field_in_cdb(6, None));
    }
    Ok(sbc::moving(unit, MediumOp::Read, extent, DataPhase::In))
}
