//! READ DEFECT DATA(10) and (12) (SBC-4 clauses 5.22 and 5.23): there are no defects.
//!
//! An empty list is the same in every format, so any format is given.

use super::{Decision, fields, settle};
use crate::lun::Context;
use crate::lun::row::{Needs, PlanFn, Row};
use wire::Writer;
use wire::scsi::block::{DefectListHeader10, DefectListHeader12};
use wire::scsi::cdb::{CdbWidth, ReadDefectData};
use wire::scsi::sense::Sense;

pub(in crate::lun) const READ_DEFECT_DATA_10: Row = row(&[0x37, 0, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0x04]);
pub(in crate::lun) const READ_DEFECT_DATA_12: Row =
    row(&[0xb7, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04]);

const fn row(usage: &'static [u8]) -> Row {
    let (needs, plan) = (Needs::READ, PLAN);
    Row { usage, needs, timeout_s: 1, plan, on_list: None, on_medium: None }
}

const PLAN: PlanFn = |context, cdb| settle(read_defect_data(context, cdb));

fn read_defect_data(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(ReadDefectData::decode(cdb))?;
    if command.address_descriptor_index != 0 {
        return Err(Sense::invalid_field_in_cdb(2, None));
    }
    let (primary, grown, format) = (command.primary, command.grown, command.defect_list_format as u8);
    Ok(context.reply.fill(command.allocation_len, |out| {
        let mut writer = Writer::new(out);
        match command.width {
            CdbWidth::Twelve => {
                let header = DefectListHeader12 { primary, grown, format, generation: 0, list_len: 0 };
                writer.put(&header.encode())?;
            }
            _ => writer.put(&DefectListHeader10 { primary, grown, format, list_len: 0 }.encode())?,
        }
        Ok(writer.written())
    }))
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use wire::scsi::sense::Sense;

    #[test]
    fn the_lists_asked_for_are_empty() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.read(&[0x37, 0, 0x1d, 0, 0, 0, 0, 0, 32, 0]), [0, 0x1d, 0, 0]);
        assert_eq!(fixture.read(&[0x37, 0, 0, 0, 0, 0, 0, 0, 32, 0]), [0, 0, 0, 0]);
        assert_eq!(fixture.read(&[0xb7, 0x0b, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0]), [0, 0x0b, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn no_defect_has_an_index() {
        let sense = Fixture::new().check(&[0xb7, 0x0b, 0, 0, 0, 1, 0, 0, 0, 32, 0, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(2, None));
    }
}
