//! PERSISTENT RESERVE OUT, REGISTER AND MOVE (SPC-4 clauses 5.13.8 and 6.16.4): gives the reservation to another
//! I_T nexus.
//!
//! A USB device has one target port and one initiator port in front of it, so every destination that exists is the
//! sender itself, and that one must be refused. The rules are carried out all the same, in their order: whose key,
//! whose reservation, which type, which ports. A host learns the true reason why it cannot move.
//!
//! Always true: the list is as long as its header says, or is refused as a whole.

use super::persistent_reserve_out::{REGISTER, carry_out, fields};
use super::{HOST_TRANSPORT_ID, Moving, Nexus, Refusal, TARGET_PORT};
use crate::lun::row::Row;
use crate::lun::{Context, PARAMETER_BYTES_MAX, Plan};
use wire::scsi::persistent_reserve::RegisterAndMoveList;
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const REGISTER_AND_MOVE: Row = Row {
    usage: &[0x5f, 0x07, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x04],
    plan: |_, cdb| plan(cdb).unwrap_or_else(Plan::Check),
    on_list: Some(|context, _, list| move_by_list(context, list).unwrap_or_else(Plan::Check)),
    ..REGISTER
};

/// A TransportID is this long at least, and a multiple of four bytes (SPC-4 clause 7.6.4.1).
const TRANSPORT_ID_BYTES_MIN: usize = 24;

const LENGTH_ERROR: Sense = Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR);

fn plan(cdb: &[u8]) -> Result<Plan, Sense> {
    let bytes = fields(cdb)?.parameter_list_len;
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    if !(RegisterAndMoveList::HEADER_LEN..=PARAMETER_BYTES_MAX).contains(&len) {
        return Err(LENGTH_ERROR);
    }
    Ok(Plan::List { bytes })
}

fn move_by_list(context: &mut Context<'_>, bytes: &[u8]) -> Result<Plan, Sense> {
    let list = RegisterAndMoveList::decode(bytes).map_err(|_| LENGTH_ERROR)?;
    let id_len = list.transport_id.len();
    if bytes.len() != RegisterAndMoveList::HEADER_LEN + id_len {
        return Err(LENGTH_ERROR);
    }
    if id_len < TRANSPORT_ID_BYTES_MIN || !id_len.is_multiple_of(4) {
        return Err(Sense::invalid_field_in_parameter_list(20, None));
    }
    if list.persist_through_power_loss && !context.unit.config.durable {
        return Err(Sense::invalid_field_in_parameter_list(17, Some(0)));
    }
    let request = Moving {
        key: list.key,
        new_key: list.service_action_key,
        destination: destination(&list),
        unregister: list.unregister,
        outlives_power: list.persist_through_power_loss,
    };
    Ok(carry_out(context, |state| state.register_and_move(Nexus::HOST, request)))
}

/// The nexus that the list names, out of the one there is.
fn destination(list: &RegisterAndMoveList<'_>) -> Result<Nexus, Refusal> {
    if list.relative_target_port != TARGET_PORT {
        return Err(Refusal::TargetPort);
    }
    if list.transport_id != HOST_TRANSPORT_ID {
        return Err(Refusal::InitiatorPort);
    }
    Ok(Nexus::HOST)
}

#[cfg(test)]
mod tests {
    use crate::lun::Plan;
    use crate::lun::fixture::Fixture;
    use wire::scsi::Status;
    use wire::scsi::sense::{AdditionalSense, Sense};

    const CDB: [u8; 10] = [0x5f, 0x07, 0, 0, 0, 0, 0, 0, 48, 0];

    /// Key 7 moves to key 9 at target port 1 and the initiator port of the sender.
    const LIST: [u8; 48] = {
        let mut list = [0; 48];
        (list[7], list[15], list[19], list[23], list[24]) = (7, 9, 1, 24, 0x09);
        list
    };

    fn reserved(type_code: u8) -> Fixture {
        let mut fixture = Fixture::new();
        let list = |key, action_key| {
            [0, 0, 0, 0, 0, 0, 0, key, 0, 0, 0, 0, 0, 0, 0, action_key, 0, 0, 0, 0, 0, 0, 0, 0]
        };
        let register = [0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0];
        assert_eq!(fixture.run_list(&register, &list(0, 7)), Plan::Good);
        if type_code != 0 {
            let reserve = [0x5f, 0x01, type_code, 0, 0, 0, 0, 0, 24, 0];
            assert_eq!(fixture.run_list(&reserve, &list(7, 0)), Plan::Good);
        }
        fixture
    }

    fn with(at: usize, byte: u8) -> [u8; 48] {
        let mut list = LIST;
        list[at] = byte;
        list
    }

    const fn field(byte: u16, bit: Option<u8>) -> Plan {
        Plan::Check(Sense::invalid_field_in_parameter_list(byte, bit))
    }

    #[test]
    fn a_reservation_cannot_be_moved_to_its_holder_nor_to_ports_that_are_not_there() {
        let mut fixture = reserved(0x01);
        assert_eq!(fixture.run_list(&CDB, &LIST), field(24, None), "the sender's own port");
        assert_eq!(fixture.run_list(&CDB, &with(24, 0x06)), field(24, None), "a SAS port");
        assert_eq!(fixture.run_list(&CDB, &with(19, 2)), field(18, None), "a second target port");
        assert_eq!(fixture.run_list(&CDB, &with(15, 0)), field(8, None), "a key of zero");
    }

    #[test]
    fn a_wrong_key_or_a_reservation_of_all_registrants_is_a_conflict() {
        let conflict = Plan::Status(Status::ReservationConflict);
        assert_eq!(reserved(0x01).run_list(&CDB, &with(7, 8)), conflict);
        assert_eq!(reserved(0x07).run_list(&CDB, &LIST), conflict);
        assert_eq!(Fixture::new().run_list(&CDB, &LIST), conflict);
    }

    #[test]
    fn without_a_reservation_there_is_nothing_to_move() {
        let nothing = Plan::Check(Sense::invalid_field_in_cdb(1, Some(4)));
        assert_eq!(reserved(0).run_list(&CDB, &LIST), nothing);
    }

    #[test]
    fn the_list_is_as_long_as_its_transport_identifier_says() {
        let length = Sense::illegal_request(AdditionalSense { asc: 0x1a, ascq: 0x00 });
        for len in [0, 23] {
            assert_eq!(Fixture::new().check(&[0x5f, 0x07, 0, 0, 0, 0, 0, 0, len, 0]), length, "{len}");
        }
        assert_eq!(Fixture::new().check(&[0x5f, 0x07, 0, 0, 0, 0xff, 0, 0, 0, 0]), length);
        assert_eq!(Fixture::new().run_list(&CDB, &with(23, 25)), Plan::Check(length), "longer");
        assert_eq!(Fixture::new().run_list(&CDB, &with(23, 20)), Plan::Check(length), "shorter");
        let short = [0x5f, 0x07, 0, 0, 0, 0, 0, 0, 44, 0];
        assert_eq!(Fixture::new().run_list(&short, &with(23, 20)[..44]), field(20, None));
    }

    #[test]
    fn a_medium_that_keeps_nothing_cannot_be_asked_to() {
        let mut fixture = Fixture::with(|config| config.durable = false);
        assert_eq!(fixture.run_list(&CDB, &with(17, 0x01)), field(17, Some(0)));
    }
}
