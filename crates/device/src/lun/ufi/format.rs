//! FORMAT UNIT (UFI 1.0 clause 4.2): the disk, or one side of one cylinder, reads as zero afterwards.
//!
//! The list names a capacity, which must be the one that the disk has.

use super::{Decision, brief, fields, format_of, settle};
use crate::lun::row::{Needs, Row};
use crate::lun::{LogicalUnit, MediumPlan, Plan};
use crate::medium::MediumOp;
use units::Extent;
use wire::scsi::sense::{AdditionalSense, Sense};
use wire::ufi::{DiskFormat, FormatTrack, FormatUnit};

pub(in crate::lun) const ROW: Row = Row {
    timeout_s: 300,
    on_list: Some(|context, cdb, list| settle(format(context.unit, cdb, list))),
    ..brief(&[0x04, 0x1f, 0xff, 0, 0, 0x04], Needs::WRITE.exclusive(), |_, cdb| settle(fetch(cdb)))
};

/// DEFECT LIST FORMAT of UFI.
const DEFECT_LIST_FORMAT: u8 = 7;

fn fetch(cdb: &[u8]) -> Decision {
    let command = fields(FormatUnit::decode(cdb))?;
    if !command.format_data {
        return Err(Sense::invalid_field_in_cdb(1, Some(4)));
    }
    if command.defect_list_format != DEFECT_LIST_FORMAT {
        return Err(Sense::invalid_field_in_cdb(1, Some(2)));
    }
    if usize::from(command.parameter_list_len) != FormatTrack::LEN {
        return Err(Sense::invalid_field_in_cdb(7, None));
    }
    Ok(Plan::List { bytes: FormatTrack::LEN as u32 })
}

fn format(unit: &LogicalUnit, cdb: &[u8], list: &[u8]) -> Decision {
    let command = fields(FormatUnit::decode(cdb))?;
    let length_error = Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR);
    let list = FormatTrack::decode(list).map_err(|_| length_error)?;
    let disk = format_of(unit);
    let Some(disk) = disk.filter(|disk| is_named(*disk, list)) else {
        return Err(Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST));
    };
    let extent = if list.single_track {
        if u16::from(command.track) >= disk.cylinders() {
            return Err(Sense::invalid_field_in_cdb(2, None));
        }
        let sectors = u64::from(disk.sectors());
        let track = u64::from(command.track) * u64::from(DiskFormat::HEADS) + u64::from(list.side);
        Extent::new(track * sectors, sectors)
    } else {
        Extent::new(0, disk.blocks().into())
    };
    Ok(Plan::Medium(MediumPlan::bare(MediumOp::WriteZeroes, extent)))
}

fn is_named(disk: DiskFormat, list: FormatTrack) -> bool {
    disk.blocks() == list.blocks && u32::from(disk.block_bytes()) == list.block_length
}
