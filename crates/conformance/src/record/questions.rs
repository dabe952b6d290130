//! The commands that a unit is asked for a record: none writes, and none changes what a later one returns.
//!
//! Left out: how long they may take, and what their answers are. The names of commands are comments of the file.

use wire::scsi::cdb::{Cdb, Command, Inquiry, LogPageControl, LogSense, ModeSense};
use wire::scsi::cdb::{CdbWidth, ReportSupportedOperationCodes, ReportingOptions};
use wire::scsi::log::LogPageCode;
use wire::scsi::mode::PageControl;

/// Bytes that pages are asked for first: some bridges hang on more, or return less.
pub(super) const SHORT: u16 = 252;

/// Bytes that a page may have at most.
pub(super) const LONG: u16 = 4096;

/// Bytes of the INQUIRY data that every device has, which is all that some bridges may be asked for.
pub(super) const INQUIRY_BYTES: u16 = 36;

/// Page code, and subpage code.
pub(super) type PageAddress = (u8, u8);

/// Page code, and subpage code, of all mode pages.
pub(super) const ALL_MODE_PAGES: (u8, u8) = (0x3f, 0);

/// The same with all subpages.
pub(super) const ALL_MODE_SUBPAGES: (u8, u8) = (0x3f, 0xff);

/// Pages of log pages and subpages.
pub(super) const LOG_LISTS: [(u8, u8); 2] = [(0, 0), (0, 0xff)];

/// The values of mode pages, with what they are.
pub(super) const PAGE_CONTROLS: [PageControl; 4] =
    [PageControl::Current, PageControl::Changeable, PageControl::Default, PageControl::Saved];

/// INQUIRY: standard data, or a page.
pub(super) fn inquiry(page: Option<u8>, room: u16) -> Cdb {
    let (evpd, page_code) = (page.is_some(), page.unwrap_or_default());
    Inquiry { evpd, page_code, allocation_len: room, ..Inquiry::default() }.encode()
}

/// MODE SENSE (6) or (10).
pub(super) fn mode_sense(width: CdbWidth, page_control: PageControl, page: PageAddress, room: u16) -> Cdb {
    let (page, subpage_code) = page;
    let sense = ModeSense { width, page_control, subpage_code, ..ModeSense::default() };
    ModeSense { page_code: page, allocation_len: room, ..sense }.encode()
}

/// LOG SENSE, cumulative values.
pub(super) fn log_sense(page: PageAddress, room: u16) -> Cdb {
    let (page, subpage_code) = page;
    let (page_control, page_code) = (LogPageControl::Cumulative, LogPageCode::from(page).into());
    LogSense { page_control, page_code, subpage_code, allocation_len: room, ..LogSense::default() }.encode()
}

/// REPORT SUPPORTED OPERATION CODES: all, or one with its service action.
pub(super) fn commands(one: Option<(u8, Option<u16>)>, timeouts: bool) -> Cdb {
    let (opcode, action) = one.unwrap_or_default();
    let reporting_options = match (one, action) {
        (None, _) => ReportingOptions::All,
        (Some(_), None) => ReportingOptions::OperationCode,
        (Some(_), Some(_)) => ReportingOptions::ServiceAction,
    };
    ReportSupportedOperationCodes {
        timeouts,
        reporting_options,
        requested_operation_code: opcode,
        requested_service_action: action.unwrap_or_default(),
        allocation_len: LONG.into(),
        ..ReportSupportedOperationCodes::default()
    }
    .encode()
}

/// READ CAPACITY (16).
pub(super) const READ_CAPACITY_16: [u8; 16] = [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0];

/// IDENTIFY DEVICE by ATA PASS-THROUGH (16) and (12): PIO data-in of one block (SAT-3 clause 12.2).
pub(super) const IDENTIFY_DEVICE: [&[u8]; 2] = [
    &[0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0],
    &[0xa1, 0x08, 0x0e, 0, 1, 0, 0, 0, 0, 0xec, 0, 0],
];

/// Commands that only read, of which a record has whether the unit knows them, and the bytes that they return at most.
pub(super) const OTHERS: [(&[u8], u32); 12] = [
    (&[0x1c, 0x01, 0, 0, 252, 0], 252),
    (&[0x28, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0),
    (&[0x2f, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0),
    (&[0x37, 0, 0, 0, 0, 0, 0, 0, 4, 0], 4),
    (&[0x3c, 0x03, 0, 0, 0, 0, 0, 0, 4, 0], 4),
    (&[0x5e, 0x00, 0, 0, 0, 0, 0, 0, 8, 0], 8),
    (&[0x5e, 0x02, 0, 0, 0, 0, 0, 0, 8, 0], 8),
    (&[0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0),
    (&[0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0], 24),
    (&[0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0], 16),
    (&[0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0], 4),
    (&[0xa8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0),
];

/// Names a command, for readers of the file.
pub(super) fn name(cdb: &[u8]) -> String {
    Command::decode(cdb).map_or_else(|_| "another command".to_owned(), |command| command.to_string())
}
