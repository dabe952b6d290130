//! SEND DIAGNOSTIC (SPC-4 clause 6.42): self-tests and diagnostic pages.
//!
//! There is no mechanism that could wear out, so every self-test passes at once; what it was goes into the self-test
//! results log page. The one diagnostic page is the list of pages.

use super::{Decision, check_undisturbed, fetch_list, fields, settle};
use crate::lun::access::Access;
use crate::lun::row::{Needs, Row};
use crate::lun::{LogicalUnit, Plan};
use wire::scsi::cdb::{SelfTestCode, SendDiagnostic};
use wire::scsi::diagnostic::{DiagnosticHeader, SupportedDiagnosticPages};
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const ROW: Row = Row {
    usage: &[0x1d, 0xf7, 0, 0xff, 0xff, 0x04],
    needs: Needs { access: Access::Write, ..Needs::UNIT },
    timeout_s: 5,
    plan: |context, cdb| settle(plan(context.unit, cdb)),
    on_list: Some(|_, _, list| settle(look_at_page(list))),
    on_medium: None,
};

fn plan(unit: &mut LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(SendDiagnostic::decode(cdb))?;
    check_undisturbed(unit)?;
    let code = command.self_test_code;
    let tests = command.self_test || code != SelfTestCode::None;
    if command.self_test && code != SelfTestCode::None {
        return Err(Sense::invalid_field_in_cdb(1, Some(7)));
    }
    if (tests || !command.page_format) && command.parameter_list_len != 0 {
        return Err(Sense::invalid_field_in_cdb(3, None));
    }
    match code {
        SelfTestCode::None if command.self_test => Ok(Plan::Good),
        SelfTestCode::None => fetch_list(command.parameter_list_len.into(), 3),
        SelfTestCode::BackgroundShort
        | SelfTestCode::BackgroundExtended
        | SelfTestCode::ForegroundShort
        | SelfTestCode::ForegroundExtended => {
            unit.logs.record_self_test(code);
            Ok(Plan::Good)
        }
        // No background self-test is ever found running.
        SelfTestCode::AbortBackground | SelfTestCode::Reserved3 | SelfTestCode::Reserved7 => {
            Err(Sense::invalid_field_in_cdb(1, Some(7)))
        }
    }
}

/// The list may hold page 00h, which is empty, and nothing else.
fn look_at_page(list: &[u8]) -> Decision {
    if list.is_empty() {
        return Ok(Plan::Good);
    }
    let cut = Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR);
    let page = DiagnosticHeader::decode(list).map_err(|_| cut)?;
    match (page.code, page.page_length) {
        (SupportedDiagnosticPages::CODE, 0) => Ok(Plan::Good),
        (SupportedDiagnosticPages::CODE, _) => Err(Sense::invalid_field_in_parameter_list(2, None)),
        _ => Err(Sense::invalid_field_in_parameter_list(0, None)),
    }
}

#[cfg(test)]
mod tests {
    use crate::lun::Plan;
    use crate::lun::fixture::Fixture;
    use wire::scsi::sense::Sense;

    #[test]
    fn the_default_self_test_passes() {
        assert_eq!(Fixture::new().run(&[0x1d, 0x04, 0, 0, 0, 0]), Plan::Good);
    }

    #[test]
    fn a_self_test_is_found_in_the_log_newest_first() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&[0x1d, 0x20, 0, 0, 0, 0]), Plan::Good);
        assert_eq!(fixture.run(&[0x1d, 0xc0, 0, 0, 0, 0]), Plan::Good);
        let log = fixture.read(&[0x4d, 0, 0x50, 0, 0, 0, 0, 0x10, 0, 0]);
        assert_eq!(log[..10], [0x90, 0, 0x01, 0x90, 0, 1, 0x03, 16, 0xc0, 0]);
        assert_eq!(log[24..30], [0, 2, 0x03, 16, 0x20, 0]);
        assert_eq!(log[44..50], [0, 3, 0x03, 16, 0x00, 0]);
    }

    #[test]
    fn there_is_no_self_test_to_abort() {
        let mut fixture = Fixture::new();
        for code in [0x80, 0x60, 0xe0, 0x24] {
            let sense = fixture.check(&[0x1d, code, 0, 0, 0, 0]);
            assert_eq!(sense, Sense::invalid_field_in_cdb(1, Some(7)), "{code:#x}");
        }
    }

    #[test]
    fn a_self_test_has_no_parameter_list() {
        let sense = Fixture::new().check(&[0x1d, 0x04, 0, 0, 4, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(3, None));
    }

    #[test]
    fn the_list_of_pages_is_the_one_page() {
        let mut fixture = Fixture::new();
        let cdb = [0x1d, 0x10, 0, 0, 4, 0];
        assert_eq!(fixture.run_list(&cdb, &[0, 0, 0, 0]), Plan::Good);
        let page_code = Sense::invalid_field_in_parameter_list(0, None);
        assert_eq!(fixture.run_list(&cdb, &[0x40, 0, 0, 0]), Plan::Check(page_code));
        let page_length = Sense::invalid_field_in_parameter_list(2, None);
        assert_eq!(fixture.run_list(&cdb, &[0, 0, 0, 1]), Plan::Check(page_length));
    }
}
