//! READ TOC/PMA/ATIP (MMC-6 clause 6.25): one session with one data track.
//!
//! For DVDs and BDs as well, whose table a drive makes up (MMC-6 clause 6.25.3.2.5). Left out: PMA, ATIP and CD-Text.

use super::{Decision, brief, disc, fields, refused, reply, settle};
use crate::lun::Context;
use crate::lun::row::{Needs, Row};
use wire::scsi::cdb::ReadToc;
use wire::scsi::mmc::{LEAD_OUT_TRACK, Msf, Profile, RawTocEntry, TocEntry, TocFormat, TocHeader};
use wire::scsi::sense::Sense;

pub(in crate::lun) const ROW: Row =
    brief(&[0x43, 0x02, 0x0f, 0, 0, 0, 0xff, 0xff, 0xff, 0x04], Needs::READ, |context, cdb| {
        settle(plan(context, cdb))
    });

/// ADR: the Q subchannel has positions.
const POSITIONS: u8 = 1;
/// CONTROL: data, copying prohibited.
pub(super) const DATA: u8 = 4;

fn plan(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(ReadToc::decode(cdb))?;
    let room = command.allocation_len;
    let lead_out = super::blocks(context.unit);
    let entry = |track, lba| TocEntry {
        adr: POSITIONS,
        control: DATA,
        track,
        start: if command.msf { u32::from_be_bytes(Msf::of_lba(lba).field()) } else { lba },
    };
    let (first, last) = (entry(1, 0).encode(), entry(LEAD_OUT_TRACK, lead_out).encode());
    match command.format {
        TocFormat::Tracks => match command.track {
            0 | 1 => Ok(reply(context, room, &[&header(2 * TocEntry::LEN), &first, &last])),
            LEAD_OUT_TRACK => Ok(reply(context, room, &[&header(TocEntry::LEN), &last])),
            _ => Err(Sense::invalid_field_in_cdb(6, None)),
        },
        TocFormat::Sessions => Ok(reply(context, room, &[&header(TocEntry::LEN), &first])),
        TocFormat::Raw if disc::profile(context.unit) == Profile::CdRom => {
            if command.track > 1 {
                return Err(Sense::invalid_field_in_cdb(6, None));
            }
            let entries = raw(lead_out).map(|entry| entry.encode());
            Ok(reply(context, room, &[&header(entries.as_flattened().len()), entries.as_flattened()]))
        }
        _ => Err(refused(2, 3)),
    }
}

/// One track, or one session.
fn header(bytes: usize) -> [u8; 4] {
    TocHeader { data_length: (bytes + 2) as u16, first: 1, last: 1 }.encode()
}

/// The Q subchannel of the lead-in: first track and disc type, last track, lead-out, the track.
fn raw(lead_out: u32) -> [RawTocEntry; 4] {
    let entry = |point, value| RawTocEntry {
        session: 1,
        adr: POSITIONS,
        control: DATA,
        track: 0,
        point,
        time: Msf::default(),
        value,
    };
    let one = Msf { minute: 1, second: 0, frame: 0 };
    [entry(0xa0, one), entry(0xa1, one), entry(0xa2, Msf::of_lba(lead_out)), entry(1, Msf::of_lba(0))]
}
