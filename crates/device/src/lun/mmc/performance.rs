//! GET PERFORMANCE (MMC-6 clause 6.8) and SET CD SPEED (MMC-6 clause 6.36): one speed for the whole disc.
//!
//! A host may set a speed and the drive stays as fast as it is, as a drive may that has no such speed. Left out: types
//! of performance data other than speeds, and writing.

use super::{Decision, brief, disc, fields, refused, settle};
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, Plan};
use wire::scsi::cdb::{GetPerformance, SetCdSpeed};
use wire::scsi::mmc::{PerformanceDescriptor, PerformanceHeader};
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const GET_PERFORMANCE: Row = brief(
    &[0xac, 0x1f, 0xff, 0xff, 0xff, 0xff, 0, 0, 0xff, 0xff, 0xff, 0x04],
    Needs::READ,
    |context, cdb| settle(get_performance(context, cdb)),
);

pub(in crate::lun) const SET_CD_SPEED: Row =
    brief(&[0xbb, 0x03, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0x04], Needs::UNIT, |_, cdb| {
        settle(fields(SetCdSpeed::decode(cdb)).map(|_| Plan::Good))
    });

/// TOLERANCE of ten percent, the only one there is.
const TEN_PERCENT: u8 = 2;
/// EXCEPT: the one value without a meaning.
const EXCEPT_RESERVED: u8 = 3;

fn get_performance(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(GetPerformance::decode(cdb))?;
    if command.performance_type != 0 {
        return Err(Sense::invalid_field_in_cdb(10, None));
    }
    if command.tolerance != TEN_PERCENT || command.exceptions == EXCEPT_RESERVED {
        return Err(refused(1, 4));
    }
    let (write, exceptions) = (command.write, command.exceptions != 0);
    let blocks = super::blocks(context.unit);
    if command.lba >= blocks {
        return Err(Sense::illegal_request(AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE));
    }
    let speed = disc::kb_per_s(disc::profile(context.unit));
    let nominal = PerformanceDescriptor {
        start_lba: 0,
        start_kb_per_s: speed,
        end_lba: blocks.saturating_sub(1),
        end_kb_per_s: speed,
    };
    let nominal = nominal.encode();
    // Nothing is written, and no part of the disc is an exception.
    let all: &[u8] = if write || exceptions { &[] } else { &nominal };
    let descriptors = if command.count == 0 { &[] } else { all };
    let header =
        PerformanceHeader { data_length: (PerformanceHeader::LEN - 4 + all.len()) as u32, write, exceptions };
    Ok(context.reply.fill(u32::MAX, |out| super::put(out, &[&header.encode(), descriptors])))
}
