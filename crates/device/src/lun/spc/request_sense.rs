//! REQUEST SENSE (SPC-4 clause 6.39): sense data as parameter data.
//!
//! First what the last command left behind (on a transport without autosense), then a pending unit attention, which
//! is thereby reported, then what became of work in the background, then why the unit is not ready, else that there is nothing
//! to say. The command itself ends GOOD.

use super::{Decision, fields, settle};
use crate::lun::row::{Needs, Row};
use crate::lun::{LogicalUnit, Plan, Reply};
use wire::scsi::cdb::RequestSense;
use wire::scsi::sense::{Sense, SenseFormat};

pub(in crate::lun) const ROW: Row = Row {
    usage: &[0x03, 0x01, 0, 0, 0xff, 0x04],
    needs: Needs::NOTHING,
    timeout_s: 1,
    plan: |context, cdb| {
        let sense = pending(context.unit);
        settle(report_sense(context.reply, cdb, &sense))
    },
    on_list: None,
    on_medium: None,
};

/// Gives `sense` as parameter data in the format that the CDB asks for.
pub(in crate::lun) fn report_sense(reply: &mut Reply, cdb: &[u8], sense: &Sense) -> Decision {
    let command = fields(RequestSense::decode(cdb))?;
    // Registers of an ATA command come in their descriptor always (see `crate::lun::sat`).
    let descriptors = command.descriptor_format || sense.ata_return.is_some();
    let format = if descriptors { SenseFormat::Descriptor } else { SenseFormat::Fixed };
    Ok(reply.fill(command.allocation_len.into(), |out| sense.encode(format, out)))
}

/// The pending sense data, which is thereby cleared.
fn pending(unit: &mut LogicalUnit) -> Sense {
    if let Some(sense) = unit.held_sense.take() {
        return sense;
    }
    if let Some(attention) = unit.take_attention() {
        return Sense::unit_attention(attention.additional_sense());
    }
    if let Some(sense) = unit.deferred.take() {
        return sense;
    }
    match unit.check_ready() {
        Err(Plan::Check(sense)) => sense,
        _ => Sense::NONE,
    }
}

#[cfg(test)]
mod tests {
    use crate::lun::attention::Attention;
    use crate::lun::fixture::Fixture;
    use crate::lun::{Plan, Readiness};
    use wire::scsi::sense::Sense;

    const CDB: [u8; 6] = [0x03, 0, 0, 0, 252, 0];

    #[test]
    fn nothing_to_say_is_no_sense() {
        let expected = [0x70, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Fixture::new().read(&CDB), expected);
    }

    #[test]
    fn desc_asks_for_descriptor_format() {
        assert_eq!(Fixture::new().read(&[0x03, 0x01, 0, 0, 252, 0]), [0x72, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn what_the_last_command_left_comes_first_and_once() {
        let mut fixture = Fixture::new();
        fixture.unit.held_sense = Some(Sense::invalid_field_in_cdb(2, Some(5)));
        fixture.unit.attentions.establish(Attention::MediumChanged);
        assert_eq!(fixture.read(&CDB), [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0xcd, 0, 2]);
        assert_eq!(fixture.read(&CDB)[2..14], [6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x28, 0]);
        assert_eq!(fixture.read(&CDB)[2], 0);
    }

    #[test]
    fn work_that_failed_unseen_is_reported_as_a_deferred_error() {
        let mut fixture = Fixture::new();
        fixture.unit.deferred = Some(Sense { deferred: true, ..Sense::invalid_field_in_cdb(2, None) });
        assert_eq!(fixture.read(&CDB)[..3], [0x71, 0, 5]);
        assert_eq!(fixture.read(&CDB)[..3], [0x70, 0, 0]);
    }

    #[test]
    fn a_unit_that_formats_reports_its_progress() {
        let mut fixture = Fixture::new();
        fixture.unit.readiness = Readiness::Formatting;
        assert_eq!(fixture.read(&CDB)[2..], [2, 0, 0, 0, 0, 10, 0, 0, 0, 0, 4, 4, 0, 0x80, 0, 0]);
    }

    #[test]
    fn an_empty_drive_says_so_with_good_status() {
        let mut fixture = Fixture::new();
        fixture.unit.readiness = Readiness::Ejected;
        assert_eq!(fixture.read(&CDB)[2..14], [2, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x3a, 0]);
    }

    #[test]
    fn the_allocation_length_cuts() {
        assert_eq!(Fixture::new().read(&[0x03, 0, 0, 0, 4, 0]), [0x70, 0, 0, 0]);
        assert_eq!(Fixture::new().run(&[0x03, 0, 0, 0, 0, 0]), Plan::Reply);
    }
}
