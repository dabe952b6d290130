//! MODE SENSE and MODE SELECT (UFI 1.0 clauses 4.5 and 4.6): the flexible disk page, which nothing changes.

use super::{Decision, brief, fields, format_of, settle};
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, LogicalUnit, Plan};
use wire::Writer;
use wire::scsi::cdb::ModeSelect;
use wire::scsi::sense::{AdditionalSense, Sense};
use wire::ufi::{DiskFormat, FlexibleDiskPage, ModePages, UfiModeHeader};

pub(in crate::lun) const SENSE: Row =
    brief(&[0x5a, 0x08, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0x04], Needs::UNIT, |context, cdb| {
        settle(sense(context, cdb))
    });

pub(in crate::lun) const SELECT: Row = Row {
    on_list: Some(|context, _, list| settle(select(context.unit, list))),
    ..brief(&[0x55, 0x11, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04], Needs::UNIT, |_, cdb| settle(fetch(cdb)))
};

/// PAGE CODE of the flexible disk page.
const FLEXIBLE_DISK: u8 = 0x05;
/// PAGE CONTROL of changeable values.
const CHANGEABLE: u8 = 1;
/// PAGE CONTROL of saved values.
const SAVED: u8 = 3;
/// The longest list: header and page.
const LIST_BYTES_MAX: usize = UfiModeHeader::LEN + FlexibleDiskPage::LEN;

fn sense(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let pages = fields(ModePages::decode(cdb))?;
    if pages.control == SAVED {
        return Err(Sense::illegal_request(AdditionalSense::SAVING_PARAMETERS_NOT_SUPPORTED));
    }
    if !matches!(pages.code, FLEXIBLE_DISK | ModePages::ALL) {
        return Err(Sense::invalid_field_in_cdb(2, Some(5)));
    }
    let mut page = page(context.unit);
    if pages.control == CHANGEABLE
        && let Some(values) = page.get_mut(2..)
    {
        values.fill(0);
    }
    let header = UfiModeHeader {
        length: (LIST_BYTES_MAX - 2) as u16,
        medium_type: format_of(context.unit).map_or(0, DiskFormat::medium_type),
        write_protected: context.unit.is_write_protected(),
    };
    Ok(context.reply.fill(pages.room.into(), |out| {
        let mut writer = Writer::new(out);
        writer.put(&header.encode())?;
        writer.put(&page)?;
        Ok(writer.written())
    }))
}

/// The page of the disk, or of the largest that there could be.
fn page(unit: &LogicalUnit) -> [u8; FlexibleDiskPage::LEN] {
    FlexibleDiskPage { format: format_of(unit).unwrap_or(DiskFormat::High1440) }.encode()
}

fn fetch(cdb: &[u8]) -> Decision {
    let command = fields(ModeSelect::decode(cdb))?;
    if command.save {
        return Err(Sense::invalid_field_in_cdb(1, Some(0)));
    }
    if usize::from(command.parameter_list_len) > LIST_BYTES_MAX {
        return Err(Sense::invalid_field_in_cdb(7, None));
    }
    Ok(Plan::List { bytes: command.parameter_list_len.into() })
}

/// The list may hold the page as it is, or no page.
fn select(unit: &LogicalUnit, list: &[u8]) -> Decision {
    match list.get(UfiModeHeader::LEN..) {
        None if list.is_empty() => Ok(Plan::Good),
        None => Err(Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR)),
        Some([]) => Ok(Plan::Good),
        Some(bytes) if *bytes == page(unit) => Ok(Plan::Good),
        Some(_) => Err(Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST)),
    }
}
