//! LOG SENSE (SPC-5 clause 6.9): a log page.
//!
//! Left out: thresholds, which no counter here has, and saving.

use super::{Decision, fields, settle};
use crate::lun::Context;
use crate::lun::logs::{self, LogPage, LogValues, PAGES};
use crate::lun::row::{Needs, Row};
use wire::scsi::cdb::{LogPageControl, LogSense};
use wire::scsi::log::{ALL_SUBPAGES, LogPageCode};
use wire::scsi::sense::Sense;

pub(in crate::lun) const ROW: Row = Row {
    usage: &[0x4d, 0x01, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0xff, 0x04],
    needs: Needs::UNIT,
    timeout_s: 1,
    plan: |context, cdb| settle(plan(context, cdb)),
    on_list: None,
    on_medium: None,
};

fn plan(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(LogSense::decode(cdb))?;
    if command.save {
        return Err(Sense::invalid_field_in_cdb(1, Some(0)));
    }
    let code = LogPageCode::from(command.page_code);
    let last_parameter = last_parameter(code)?;
    match (code, command.subpage_code) {
        (_, 0) | (LogPageCode::SupportedPages, ALL_SUBPAGES) => {}
        _ => return Err(Sense::invalid_field_in_cdb(3, None)),
    }
    let values = match command.page_control {
        LogPageControl::Cumulative => LogValues::Cumulative,
        LogPageControl::DefaultCumulative => LogValues::DefaultCumulative,
        _ if has_counters(code) => return Err(Sense::invalid_field_in_cdb(2, Some(7))),
        _ => LogValues::Cumulative,
    };
    if command.parameter_pointer > last_parameter {
        return Err(Sense::invalid_field_in_cdb(5, None));
    }
    let unit = &*context.unit;
    let page = LogPage { code, subpage: command.subpage_code, values, pointer: command.parameter_pointer };
    let len = command.allocation_len.into();
    Ok(context.reply.fill(len, |out| logs::encode(&unit.logs, &unit.config, page, out)))
}

/// The code of the last parameter of a page, if there is such a page.
pub(super) fn last_parameter(code: LogPageCode) -> Result<u16, Sense> {
    let page = PAGES.into_iter().find(|&(page, _)| page == code);
    page.map(|(_, last)| last).ok_or(Sense::invalid_field_in_cdb(2, Some(5)))
}

/// Whether a page is made of counters, which could have thresholds; the other pages are lists, to which the page
/// control does not matter.
const fn has_counters(code: LogPageCode) -> bool {
    use LogPageCode as Page;
    matches!(code, Page::WriteErrors | Page::ReadErrors | Page::VerifyErrors | Page::NonMediumErrors)
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use alloc::vec::Vec;
    use wire::scsi::sense::Sense;

    /// PC = 01b: cumulative values.
    const fn cdb(page: u8, subpage: u8) -> [u8; 10] {
        [0x4d, 0, 0x40 | page, subpage, 0, 0, 0, 0x10, 0, 0]
    }

    #[test]
    fn the_list_of_pages_names_pages_that_are_there() {
        let mut fixture = Fixture::new();
        let list = fixture.read(&cdb(0, 0)).to_vec();
        assert_eq!(list, [0x00, 0, 0, 11, 0x00, 0x02, 0x03, 0x05, 0x06, 0x0d, 0x0e, 0x10, 0x11, 0x19, 0x2f]);
        for &page in &list[4..] {
            let bytes = fixture.read(&cdb(page, 0));
            assert_eq!(bytes[0] & 0x3f, page);
            assert_eq!(bytes.len(), 4 + usize::from(u16::from_be_bytes([bytes[2], bytes[3]])));
        }
    }

    #[test]
    fn the_list_of_subpages_has_itself_second() {
        let bytes = Fixture::new().read(&cdb(0, 0xff)).to_vec();
        assert_eq!(bytes[..10], [0x40, 0xff, 0, 24, 0x00, 0x00, 0x00, 0xff, 0x02, 0x00]);
    }

    #[test]
    fn bytes_and_errors_are_counters_of_eight_bytes() {
        let mut fixture = Fixture::new();
        fixture.unit.logs.reads.bytes = 0x0123_4567;
        fixture.unit.logs.reads.uncorrected_errors = 2;
        let bytes = fixture.read(&[0x4d, 0, 0x43, 0, 0, 0, 5, 0, 255, 0]);
        let mut expected = Vec::from([0x83, 0, 0, 24]);
        expected.extend([0, 5, 0, 8, 0, 0, 0, 0, 0x01, 0x23, 0x45, 0x67]);
        expected.extend([0, 6, 0, 8, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn default_values_are_zero_and_thresholds_are_not_there() {
        let mut fixture = Fixture::new();
        fixture.unit.logs.reads.bytes = 7;
        let bytes = fixture.read(&[0x4d, 0, 0xc3, 0, 0, 0, 5, 0, 16, 0]);
        assert_eq!(bytes[4..], [0, 5, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
        let page_control = Sense::invalid_field_in_cdb(2, Some(7));
        assert_eq!(fixture.check(&[0x4d, 0, 0x03, 0, 0, 0, 0, 0, 16, 0]), page_control);
        assert_eq!(
            fixture.read(&[0x4d, 0, 0x2f, 0, 0, 0, 0, 0, 255, 0]),
            [0xaf, 0, 0, 8, 0, 0, 3, 4, 0, 0, 255, 0]
        );
    }

    #[test]
    fn a_temperature_is_reported_if_the_owner_has_said_one() {
        let page = |fixture: &mut Fixture, code| fixture.read(&cdb(code, 0)).to_vec();
        let mut cold = Fixture::new();
        assert_eq!(page(&mut cold, 0x0d), [0x8d, 0, 0, 6, 0, 0, 0x03, 2, 0, 0xff], "not known");
        let mut warm = Fixture::with(|config| config.temperature_c = Some(38));
        assert_eq!(page(&mut warm, 0x0d), [0x8d, 0, 0, 12, 0, 0, 0x03, 2, 0, 38, 0, 1, 0x03, 2, 0, 70]);
        assert_eq!(page(&mut warm, 0x2f), [0xaf, 0, 0, 8, 0, 0, 0x03, 4, 0, 0, 38, 0]);
    }

    #[test]
    fn general_statistics_count_commands_and_blocks() {
        let mut fixture = Fixture::new();
        fixture.unit.logs.writes.commands = 3;
        fixture.unit.logs.writes.command_bytes = 4096;
        let bytes = fixture.read(&cdb(0x19, 0));
        assert_eq!(bytes[..8], [0x99, 0, 0, 68, 0, 1, 3, 64]);
        assert_eq!(bytes[16..32], [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 8]);
    }

    #[test]
    fn what_is_not_there_is_refused_at_its_field() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.check(&cdb(0x15, 0)), Sense::invalid_field_in_cdb(2, Some(5)));
        assert_eq!(fixture.check(&cdb(0x02, 1)), Sense::invalid_field_in_cdb(3, None));
        let pointer = Sense::invalid_field_in_cdb(5, None);
        assert_eq!(fixture.check(&[0x4d, 0, 0x42, 0, 0, 0, 7, 0, 255, 0]), pointer);
        assert_eq!(
            fixture.check(&[0x4d, 1, 0x42, 0, 0, 0, 0, 0, 255, 0]),
            Sense::invalid_field_in_cdb(1, Some(0))
        );
    }
}
