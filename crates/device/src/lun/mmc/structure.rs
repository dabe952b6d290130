//! READ DISC STRUCTURE (MMC-6 clause 6.22): the physical format and the copyright of a DVD.
//!
//! A CD has none, and of a BD there is only the list that says so. Left out: structures that need an image of the
//! lead-in.

use super::{Decision, brief, disc, fields, refused, reply, settle};
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, Plan};
use wire::scsi::cdb::ReadDiscStructure;
use wire::scsi::mmc::{DvdPhysicalFormat, Profile, StructureEntry, StructureFormat, StructureHeader};
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const ROW: Row = brief(
    &[0xad, 0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc0, 0x04],
    Needs::READ,
    |context, cdb| settle(plan(context, cdb)),
);

/// MEDIA TYPE.
const DVD: u8 = 0;
const BD: u8 = 1;

/// Bytes of a physical format: those with a meaning, and zeroes.
const PHYSICAL_BYTES: usize = 2048;
const COPYRIGHT_BYTES: usize = 4;

/// The first physical sector of the data area of a DVD.
const DVD_DATA_START: u32 = 0x03_0000;
/// Sector numbers of layer 1 are the complements of those of layer 0 below them.
const SECTOR_MASK: u32 = 0xff_ffff;

fn plan(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(ReadDiscStructure::decode(cdb))?;
    let room = command.allocation_len;
    let is_dvd = match (disc::profile(context.unit), command.media_type) {
        (Profile::DvdRom, DVD) => true,
        (Profile::BdRom, BD) => false,
        (Profile::DvdRom | Profile::BdRom, _) => return Err(refused(1, 3)),
        _ => {
            let code = AdditionalSense::CANNOT_READ_MEDIUM_INCOMPATIBLE_FORMAT;
            return Err(Sense::illegal_request(code));
        }
    };
    match command.format {
        StructureFormat::List => Ok(list(context, room, is_dvd)),
        StructureFormat::Physical if is_dvd => {
            let format = physical_format(super::blocks(context.unit));
            if command.layer > format.layers {
                return Err(Sense::invalid_field_in_cdb(6, None));
            }
            let zeroes = [0; PHYSICAL_BYTES - DvdPhysicalFormat::LEN];
            Ok(reply(context, room, &[&header(PHYSICAL_BYTES), &format.encode(), &zeroes]))
        }
        // No protection, no region.
        StructureFormat::Copyright if is_dvd => {
            Ok(reply(context, room, &[&header(COPYRIGHT_BYTES), &[0; COPYRIGHT_BYTES]]))
        }
        _ => Err(Sense::invalid_field_in_cdb(7, None)),
    }
}

fn header(bytes: usize) -> [u8; 4] {
    // The field does not count itself, but the two bytes after it.
    StructureHeader { data_length: (bytes + 2) as u16 }.encode()
}

fn list(context: &mut Context<'_>, room: u16, is_dvd: bool) -> Plan {
    let entry = |format, bytes: usize| StructureEntry {
        format,
        sendable: false,
        readable: true,
        structure_length: (bytes + StructureHeader::LEN) as u16,
    };
    let of_dvd = [
        entry(StructureFormat::Physical, PHYSICAL_BYTES).encode(),
        entry(StructureFormat::Copyright, COPYRIGHT_BYTES).encode(),
    ];
    let before = if is_dvd { of_dvd.as_flattened() } else { &[] };
    let bytes = before.len() + StructureEntry::LEN;
    let last = entry(StructureFormat::List, bytes).encode();
    reply(context, room, &[&header(bytes), before, &last])
}

/// A DVD-ROM of 120 mm. With two layers, the second is read backwards from where the first ends.
fn physical_format(blocks: u32) -> DvdPhysicalFormat {
    let is_dual = u64::from(blocks) > disc::DVD_LAYER_BLOCKS_MAX;
    let first_layer = if is_dual { blocks.div_ceil(2) } else { blocks };
    let first_end = DVD_DATA_START + first_layer.saturating_sub(1);
    let second_start = !first_end & SECTOR_MASK;
    DvdPhysicalFormat {
        category: 0,
        version: 1,
        size: 0,
        maximum_rate: 15,
        layers: is_dual.into(),
        opposite_track_path: is_dual,
        layer_type: 1,
        data_start: DVD_DATA_START,
        data_end: if is_dual { second_start + (blocks - first_layer).saturating_sub(1) } else { first_end },
        layer_0_end: if is_dual { first_end } else { 0 },
    }
}
