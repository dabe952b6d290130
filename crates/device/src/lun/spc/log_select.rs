//! LOG SELECT (SPC-5 clause 6.8): resets counters.
//!
//! By PCR, or by asking for the default cumulative values. Left out: setting parameters to values of the host; there
//! is none for which that would mean something.

use super::log_sense::last_parameter;
use super::{Decision, fetch_list, fields, settle};
use crate::lun::access::Access;
use crate::lun::row::{Needs, Row};
use crate::lun::{LogicalUnit, Plan};
use wire::scsi::cdb::{LogPageControl, LogSelect};
use wire::scsi::log::{LogPage, LogPageCode};
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const ROW: Row = Row {
    usage: &[0x4c, 0x03, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0x04],
    needs: Needs { access: Access::Write, ..Needs::UNIT },
    timeout_s: 1,
    plan: |context, cdb| settle(plan(context.unit, cdb)),
    on_list: Some(|_, _, list| settle(refuse(list))),
    on_medium: None,
};

fn plan(unit: &mut LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(LogSelect::decode(cdb))?;
    if command.save {
        return Err(Sense::invalid_field_in_cdb(1, Some(0)));
    }
    if command.parameter_list_len > 0 {
        return match command.reset {
            true => Err(Sense::invalid_field_in_cdb(7, None)),
            false => fetch_list(command.parameter_list_len.into(), 7),
        };
    }
    let code = LogPageCode::from(command.page_code);
    last_parameter(code)?;
    if command.subpage_code != 0 {
        return Err(Sense::invalid_field_in_cdb(3, None));
    }
    if command.reset || command.page_control == LogPageControl::DefaultCumulative {
        unit.logs.reset((code != LogPageCode::SupportedPages).then_some(code));
    }
    Ok(Plan::Good)
}

/// No parameter can be set: the first one is refused, or the page that has none.
fn refuse(list: &[u8]) -> Decision {
    if list.is_empty() {
        return Ok(Plan::Good);
    }
    let page = LogPage::decode(list)
        .map_err(|_| Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR))?;
    let guilty = match last_parameter(page.header.code) {
        Ok(_) if page.body.is_empty() => return Ok(Plan::Good),
        Ok(_) => (4, None),
        Err(_) => (0, Some(5)),
    };
    Err(Sense::invalid_field_in_parameter_list(guilty.0, guilty.1))
}

#[cfg(test)]
mod tests {
    use crate::lun::Plan;
    use crate::lun::fixture::Fixture;
    use wire::scsi::sense::{AdditionalSense, Sense};

    fn counted() -> Fixture {
        let mut fixture = Fixture::new();
        fixture.unit.logs.reads.bytes = 512;
        fixture.unit.logs.writes.bytes = 512;
        fixture
    }

    #[test]
    fn pcr_resets_all_pages_or_the_one_named() {
        let mut fixture = counted();
        assert_eq!(fixture.run(&[0x4c, 0x02, 0x43, 0, 0, 0, 0, 0, 0, 0]), Plan::Good);
        assert_eq!((fixture.unit.logs.reads.bytes, fixture.unit.logs.writes.bytes), (0, 512));
        let mut fixture = counted();
        assert_eq!(fixture.run(&[0x4c, 0x02, 0xc0, 0, 0, 0, 0, 0, 0, 0]), Plan::Good);
        assert_eq!((fixture.unit.logs.reads.bytes, fixture.unit.logs.writes.bytes), (0, 0));
    }

    #[test]
    fn default_cumulative_values_are_a_reset_and_cumulative_ones_are_none() {
        let mut fixture = counted();
        assert_eq!(fixture.run(&[0x4c, 0x00, 0x40, 0, 0, 0, 0, 0, 0, 0]), Plan::Good);
        assert_eq!(fixture.unit.logs.reads.bytes, 512);
        assert_eq!(fixture.run(&[0x4c, 0x00, 0xc0, 0, 0, 0, 0, 0, 0, 0]), Plan::Good);
        assert_eq!(fixture.unit.logs.reads.bytes, 0);
    }

    #[test]
    fn no_parameter_can_be_set() {
        let mut fixture = counted();
        let cdb = [0x4c, 0x00, 0x40, 0, 0, 0, 0, 0, 12, 0];
        let parameter = Sense::invalid_field_in_parameter_list(4, None);
        let list = [0x03, 0, 0, 8, 0, 5, 0, 4, 0, 0, 0, 0];
        assert_eq!(fixture.run_list(&cdb, &list), Plan::Check(parameter));
        let page = Sense::invalid_field_in_parameter_list(0, Some(5));
        let list = [0x15, 0, 0, 8, 0, 5, 0, 4, 0, 0, 0, 0];
        assert_eq!(fixture.run_list(&cdb, &list), Plan::Check(page));
        let cut = Sense::illegal_request(AdditionalSense { asc: 0x1a, ascq: 0 });
        let list = [0x03, 0, 0, 9, 0, 5, 0, 4, 0, 0, 0, 0];
        assert_eq!(fixture.run_list(&cdb, &list), Plan::Check(cut));
    }

    #[test]
    fn pcr_with_a_list_and_sp_are_refused() {
        let mut fixture = Fixture::new();
        assert_eq!(
            fixture.check(&[0x4c, 0x02, 0, 0, 0, 0, 0, 0, 8, 0]),
            Sense::invalid_field_in_cdb(7, None)
        );
        assert_eq!(
            fixture.check(&[0x4c, 0x01, 0, 0, 0, 0, 0, 0, 0, 0]),
            Sense::invalid_field_in_cdb(1, Some(0))
        );
    }
}
