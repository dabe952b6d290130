//! GET EVENT STATUS NOTIFICATION (MMC-6 clause 6.7): discs that came, went, or are asked for.
//!
//! Hosts ask for it every few seconds. There are media events only, the last one of those that no one has read; reading
//! one clears it. Left out: notification without polling.

use super::{Decision, brief, fields, refused, reply, settle};
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, Readiness};
use wire::scsi::cdb::GetEventStatusNotification;
use wire::scsi::mmc::{EventClass, EventHeader, MediaEvent, MediaEventCode};

pub(in crate::lun) const ROW: Row =
    brief(&[0x4a, 0x01, 0, 0, 0xff, 0, 0, 0xff, 0xff, 0x04], Needs::NOTHING, |context, cdb| {
        settle(plan(context, cdb))
    });

fn plan(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(GetEventStatusNotification::decode(cdb))?;
    if !command.polled {
        return Err(refused(1, 0));
    }
    let media = EventClass::Media;
    let wants_media = command.classes & media.mask() != 0;
    let header = EventHeader {
        data_length: if wants_media { (EventHeader::LEN + MediaEvent::LEN - 2) as u16 } else { 2 },
        no_event_available: !wants_media,
        class: if wants_media { media } else { EventClass::None },
        supported_classes: media.mask(),
    };
    if !wants_media {
        return Ok(reply(context, command.allocation_len, &[&header.encode()]));
    }
    // A host that has no room for the event has not read it.
    let is_read = usize::from(command.allocation_len) > EventHeader::LEN;
    let unit = &mut *context.unit;
    let event = MediaEvent {
        code: unit.media_event,
        media_present: unit.has_medium(),
        tray_open: unit.readiness == Readiness::Ejected,
        start_slot: 0,
        end_slot: 0,
    };
    if is_read {
        unit.media_event = MediaEventCode::NoChange;
    }
    Ok(reply(context, command.allocation_len, &[&header.encode(), &event.encode()]))
}
