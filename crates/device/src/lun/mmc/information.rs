//! READ DISC INFORMATION and READ TRACK INFORMATION (MMC-6 clauses 6.21 and 6.26): one closed session, one track.

use super::{Decision, brief, fields, refused, reply, settle};
use crate::lun::Context;
use crate::lun::row::{Needs, Row};
use wire::scsi::cdb::{ReadDiscInformation, ReadTrackInformation, TrackAddress};
use wire::scsi::mmc::{DiscInformation, DiscStatus, SessionState, TrackInformation};
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const READ_DISC_INFORMATION: Row =
    brief(&[0x51, 0x07, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04], Needs::READ, |context, cdb| {
        settle(read_disc_information(context, cdb))
    });

pub(in crate::lun) const READ_TRACK_INFORMATION: Row =
    brief(&[0x52, 0x07, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0x04], Needs::READ, |context, cdb| {
        settle(read_track_information(context, cdb))
    });

fn read_disc_information(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(ReadDiscInformation::decode(cdb))?;
    if command.data_type != 0 {
        return Err(refused(1, 2));
    }
    let disc = DiscInformation {
        erasable: false,
        last_session: SessionState::Complete,
        status: DiscStatus::Finalized,
        first_track: 1,
        sessions: 1,
        last_session_first_track: 1,
        last_session_last_track: 1,
        unrestricted_use: true,
        disc_type: 0,
        lead_in_start: u32::MAX,
        lead_out_start: u32::MAX,
    };
    Ok(reply(context, command.allocation_len, &[&disc.encode()]))
}

fn read_track_information(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(ReadTrackInformation::decode(cdb))?;
    if command.open {
        // No track can be written.
        return Err(refused(1, 2));
    }
    let blocks = super::blocks(context.unit);
    match (command.address_type, command.address) {
        (TrackAddress::Lba, lba) if lba < blocks => {}
        (TrackAddress::Lba, _) => {
            return Err(Sense::illegal_request(AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE));
        }
        (TrackAddress::Track | TrackAddress::Session, 1) => {}
        (TrackAddress::Track | TrackAddress::Session, _) => {
            return Err(Sense::invalid_field_in_cdb(2, None));
        }
        (TrackAddress::Reserved, _) => return Err(refused(1, 1)),
    }
    let track = TrackInformation {
        track: 1,
        session: 1,
        damage: false,
        copy: false,
        track_mode: super::toc::DATA,
        blank: false,
        data_mode: 1,
        start: 0,
        blocks,
    };
    Ok(reply(context, command.allocation_len, &[&track.encode()]))
}
