//! TEST UNIT READY (SPC-4 clause 6.47): the readiness check alone.

use crate::lun::Plan;
use crate::lun::row::{Needs, Row};

pub(in crate::lun) const ROW: Row = Row {
    usage: &[0x00, 0, 0, 0, 0, 0x04],
    needs: Needs { ready: true, ..Needs::UNIT },
    timeout_s: 1,
    plan: |_, _| Plan::Good,
    on_list: None,
    on_medium: None,
};

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{Plan, Readiness, UnitEvent};
    use wire::scsi::sense::{AdditionalSense, Sense};

    const CDB: [u8; 6] = [0x00, 0, 0, 0, 0, 0];

    #[test]
    fn a_unit_is_ready_after_its_unit_attention_was_reported() {
        let mut fixture = Fixture::new();
        fixture.unit.handle_event(UnitEvent::BusReset);
        let reset = Sense::unit_attention(AdditionalSense { asc: 0x29, ascq: 0x02 });
        assert_eq!(fixture.check(&CDB), reset);
        assert_eq!(fixture.run(&CDB), Plan::Good);
    }

    #[test]
    fn an_empty_drive_says_so() {
        let mut fixture = Fixture::new();
        fixture.unit.readiness = Readiness::Ejected;
        assert_eq!(fixture.check(&CDB), Sense::not_ready(AdditionalSense { asc: 0x3a, ascq: 0x00 }));
    }
}
