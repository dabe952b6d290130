//! REZERO UNIT and SEEK (UFI 1.0 clauses 4.12 and 4.14): there is no head to move, but there are blocks to find.

use super::{Decision, brief, settle};
use crate::lun::row::{Needs, Row};
use crate::lun::{LogicalUnit, Plan};
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const REZERO_UNIT: Row =
    brief(&[0x01, 0, 0, 0, 0, 0x04], Needs { ready: true, ..Needs::UNIT }, |_, _| Plan::Good);

pub(in crate::lun) const SEEK_10: Row = brief(
    &[0x2b, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x04],
    Needs { ready: true, ..Needs::UNIT },
    |context, cdb| settle(seek(context.unit, cdb)),
);

fn seek(unit: &LogicalUnit, cdb: &[u8]) -> Decision {
    let lba = cdb
        .get(2..)
        .and_then(|bytes| bytes.first_chunk())
        .map_or(u32::MAX, |bytes| u32::from_be_bytes(*bytes));
    if u64::from(lba) >= unit.config.capacity.0 {
        let code = AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE;
        return Err(Sense::illegal_request(code));
    }
    Ok(Plan::Good)
}
