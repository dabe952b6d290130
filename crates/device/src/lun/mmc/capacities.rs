//! READ FORMAT CAPACITIES (MMC-6 clause 6.23): the capacity of the disc, or the largest there could be.

use super::{Decision, brief, disc, fields, reply, settle};
use crate::lun::Context;
use crate::lun::row::{Needs, Row};
use wire::scsi::cdb::ReadFormatCapacities;
use wire::scsi::mmc::{CapacityDescriptor, CapacityType, FormatCapacities};

pub(in crate::lun) const ROW: Row =
    brief(&[0x23, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04], Needs::UNIT, |context, cdb| {
        settle(plan(context, cdb))
    });

fn plan(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(ReadFormatCapacities::decode(cdb))?;
    let (blocks, kind) = match context.unit.has_medium() {
        true => (super::blocks(context.unit), CapacityType::Formatted),
        false => (u32::MAX, CapacityType::NoMedium),
    };
    let current = CapacityDescriptor { blocks, kind, block_length: disc::BLOCK_BYTES };
    Ok(reply(context, command.allocation_len, &[&FormatCapacities { current }.encode()]))
}
