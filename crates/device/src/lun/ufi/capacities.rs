//! READ FORMAT CAPACITIES (UFI 1.0 clause 4.10): the format of the disk, or the largest there could be.

use super::{Decision, brief, fields, format_of, settle};
use crate::lun::Context;
use crate::lun::row::{Needs, Row};
use wire::Writer;
use wire::scsi::cdb::ReadFormatCapacities;
use wire::scsi::mmc::{CapacityDescriptor, CapacityType, FormatCapacities};
use wire::ufi::DiskFormat;

pub(in crate::lun) const ROW: Row =
    brief(&[0x23, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04], Needs::UNIT, |context, cdb| {
        settle(plan(context, cdb))
    });

fn plan(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(ReadFormatCapacities::decode(cdb))?;
    let (format, kind) = match format_of(context.unit) {
        Some(format) => (format, CapacityType::Formatted),
        None => (DiskFormat::High1440, CapacityType::NoMedium),
    };
    let current =
        CapacityDescriptor { blocks: format.blocks(), kind, block_length: format.block_bytes().into() };
    let list = FormatCapacities { current }.encode();
    let room = command.allocation_len.into();
    Ok(context.reply.fill(room, |out| Writer::new(out).put(&list).map(|()| list.len())))
}
