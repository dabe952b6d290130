//! REPORT LUNS (SPC-4 clause 6.33): which logical units the device has.
//!
//! They are numbered from 0. The one well-known unit is the REPORT LUNS unit, which answers for the whole device.

use super::{Decision, fields, settle};
use crate::lun::Reply;
use crate::lun::row::{Needs, Row};
use alloc::vec::Vec;
use wire::scsi::cdb::{ReportLuns, SelectReport};
use wire::scsi::lun::{Lun, LunField, WellKnownLun};
use wire::scsi::report_luns::LunList;
use wire::scsi::sense::Sense;

pub(in crate::lun) const ROW: Row = Row {
    usage: &[0xa0, 0, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x04],
    needs: Needs::NOTHING,
    timeout_s: 1,
    plan: |context, cdb| settle(report_luns(context.reply, cdb, context.units)),
    on_list: None,
    on_medium: None,
};

/// The list of a device with units `0..units`.
pub(in crate::lun) fn report_luns(reply: &mut Reply, cdb: &[u8], units: u8) -> Decision {
    let command = fields(ReportLuns::decode(cdb))?;
    let (logical, well_known) = match command.select_report {
        SelectReport::LogicalUnits => (true, false),
        SelectReport::WellKnown => (false, true),
        SelectReport::All => (true, true),
        _ => return Err(Sense::invalid_field_in_cdb(2, None)),
    };
    if command.allocation_len < ALLOCATION_LENGTH_MIN {
        return Err(Sense::invalid_field_in_cdb(6, None));
    }
    let numbers = (0..units).filter(|_| logical).map(|number| Lun::Unit(number.into()));
    let report_luns = well_known.then_some(Lun::WellKnown(WellKnownLun::ReportLuns));
    let luns: Vec<[u8; 8]> = numbers.chain(report_luns).map(|lun| LunField::from(lun).0).collect();
    Ok(reply.fill(command.allocation_len, |out| LunList::new(&luns).encode(out)))
}

/// Less cannot hold the header and one number.
const ALLOCATION_LENGTH_MIN: u32 = 16;

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use wire::scsi::sense::Sense;

    const fn cdb(select_report: u8, allocation_length: u8) -> [u8; 12] {
        [0xa0, 0, select_report, 0, 0, 0, 0, 0, 0, allocation_length, 0, 0]
    }

    #[test]
    fn all_units_are_reported() {
        let mut fixture = Fixture::new();
        fixture.units = 2;
        let two = [0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(fixture.read(&cdb(0, 255)), two);
        assert_eq!(fixture.read(&cdb(0, 16)), &two[..16]);
    }

    #[test]
    fn the_well_known_unit_is_reported_where_asked_for() {
        let w_lun = [0xc1, 0x01, 0, 0, 0, 0, 0, 0];
        let mut fixture = Fixture::new();
        assert_eq!(fixture.read(&cdb(1, 255)), [&[0, 0, 0, 8, 0, 0, 0, 0], &w_lun[..]].concat());
        assert_eq!(fixture.read(&cdb(2, 255))[16..], w_lun);
    }

    #[test]
    fn too_little_room_and_other_selections_are_refused() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.check(&cdb(0, 15)), Sense::invalid_field_in_cdb(6, None));
        assert_eq!(fixture.check(&cdb(0x10, 255)), Sense::invalid_field_in_cdb(2, None));
    }
}
