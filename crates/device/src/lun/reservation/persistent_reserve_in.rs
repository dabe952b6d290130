//! PERSISTENT RESERVE IN (SPC-4 clause 6.15): keys, reservation, capabilities, full status.
//!
//! It reports the state of [`super::persistent`] and changes nothing, not even the generation. Lists are
//! reported with their full length, whatever the allocation length.

use super::{HOST_TRANSPORT_ID, Persistent, TARGET_PORT};
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, Plan};
use wire::NoRoom;
use wire::scsi::cdb::{PersistentReserveIn, ReservationType};
use wire::scsi::persistent_reserve::{
    FullStatus, FullStatusDescriptor, HeldReservation, ReadReservation, ReservationCapabilities,
    ReservationKeys, ReservationTypes,
};
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const READ_KEYS: Row = Row {
    usage: &[0x5e, 0x00, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04],
    needs: Needs::UNIT,
    timeout_s: 1,
    plan: |context, cdb| {
        report(context, cdb, |state, out| {
            let keys = state.registrations().iter().map(|one| one.key);
            ReservationKeys::encode_list(state.generation(), keys, out)
        })
    },
    on_list: None,
    on_medium: None,
};

pub(in crate::lun) const READ_RESERVATION: Row = Row {
    usage: &[0x5e, 0x01, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04],
    plan: |context, cdb| {
        report(context, cdb, |state, out| {
            ReadReservation { generation: state.generation(), held: held(state) }.encode(out)
        })
    },
    ..READ_KEYS
};

pub(in crate::lun) const REPORT_CAPABILITIES: Row = Row {
    usage: &[0x5e, 0x02, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04],
    plan: |context, cdb| {
        let durable = context.unit.config.durable;
        report(context, cdb, |state, out| put(&capabilities(state, durable).encode(), out))
    },
    ..READ_KEYS
};

pub(in crate::lun) const READ_FULL_STATUS: Row = Row {
    usage: &[0x5e, 0x03, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04],
    plan: |context, cdb| report(context, cdb, full_status),
    ..READ_KEYS
};

fn report(
    context: &mut Context<'_>,
    cdb: &[u8],
    write: impl FnOnce(&Persistent, &mut [u8]) -> Result<usize, NoRoom>,
) -> Plan {
    let Ok(command) = PersistentReserveIn::decode(cdb) else {
        return Plan::Check(Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB));
    };
    match context.unit.reservations.persistent() {
        Ok(state) => context.reply.fill(command.allocation_len.into(), |out| write(state, out)),
        Err(obstacle) => obstacle.into(),
    }
}

/// The reservation as reported: that of all registrants is no one's, its key is zero.
fn held(state: &Persistent) -> Option<HeldReservation> {
    use super::Serves;
    state.reservation().map(|held| HeldReservation {
        key: match held.coverage.serves {
            Serves::AllRegistrants => 0,
            Serves::Holder | Serves::Registrants => state.key_of(held.holder).unwrap_or_default(),
        },
        scope: 0,
        reservation_type: held.coverage.into(),
    })
}

const fn capabilities(state: &Persistent, durable: bool) -> ReservationCapabilities {
    ReservationCapabilities {
        replace_lost: true,
        compatible_reservations: true,
        specify_initiator_ports: false,
        all_target_ports: true,
        persist_through_power_loss: durable,
        allow_commands: 0,
        persist_through_power_loss_active: state.outlives_power(),
        types: Some(ReservationTypes::ALL),
    }
}

fn full_status(state: &Persistent, out: &mut [u8]) -> Result<usize, NoRoom> {
    let kind = state.reservation().map(|held| ReservationType::from(held.coverage));
    let descriptors = state.registrations().iter().map(|one| FullStatusDescriptor {
        key: one.key,
        all_target_ports: one.all_target_ports,
        holds: kind.filter(|_| state.holds(one.nexus)).map(|kind| (0, kind)),
        relative_target_port: TARGET_PORT,
        transport_id: &HOST_TRANSPORT_ID,
    });
    FullStatus::encode_list(state.generation(), descriptors, out)
}

fn put(bytes: &[u8], out: &mut [u8]) -> Result<usize, NoRoom> {
    let got = out.len();
    let place = out.get_mut(..bytes.len()).ok_or(NoRoom { needed: bytes.len(), got })?;
    place.copy_from_slice(bytes);
    Ok(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::super::{Coverage, Nexus, Registering, Serves};
    use crate::lun::fixture::Fixture;
    use wire::scsi::sense::Sense;

    const fn cdb(action: u8, room: u8) -> [u8; 10] {
        [0x5e, action, 0, 0, 0, 0, 0, 0, room, 0]
    }

    fn reserved(serves: Serves) -> Fixture {
        let mut fixture = Fixture::new();
        let state = fixture.unit.reservations.persistent_mut().unwrap();
        let request = Registering { new_key: 0x1122, all_target_ports: true, ..Registering::default() };
        state.register(Nexus::HOST, request).unwrap();
        state.reserve(Nexus::HOST, 0x1122, Coverage { reads_too: true, serves }).unwrap();
        fixture
    }

    #[test]
    fn a_new_unit_has_no_keys_and_no_reservation() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.read(&cdb(0, 255)), [0; 8]);
        assert_eq!(fixture.read(&cdb(1, 255)), [0; 8]);
        assert_eq!(fixture.read(&cdb(3, 255)), [0; 8]);
    }

    #[test]
    fn keys_and_their_number_are_reported_also_where_there_is_no_room() {
        let mut fixture = reserved(Serves::Holder);
        assert_eq!(fixture.read(&cdb(0, 255)), [0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0x11, 0x22]);
        assert_eq!(fixture.read(&cdb(0, 8)), [0, 0, 0, 1, 0, 0, 0, 8]);
    }

    #[test]
    fn the_reservation_is_reported_with_its_key_and_type() {
        let reported = [0, 0, 0, 1, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0x11, 0x22, 0, 0, 0, 0, 0, 0x03, 0, 0];
        assert_eq!(reserved(Serves::Holder).read(&cdb(1, 255)), reported);
    }

    #[test]
    fn a_reservation_of_all_registrants_has_no_key() {
        let reported = [0, 0, 0, 1, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0, 0];
        assert_eq!(reserved(Serves::AllRegistrants).read(&cdb(1, 255)), reported);
    }

    #[test]
    fn capabilities_depend_on_what_the_medium_keeps() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.read(&cdb(2, 8)), [0, 8, 0x95, 0x80, 0xea, 0x01, 0, 0]);
        let mut fixture = Fixture::with(|config| config.durable = false);
        assert_eq!(fixture.read(&cdb(2, 8)), [0, 8, 0x94, 0x80, 0xea, 0x01, 0, 0]);
    }

    #[test]
    fn the_full_status_names_the_host_and_what_it_holds() {
        let mut fixture = reserved(Serves::Holder);
        let reported = fixture.read(&cdb(3, 255));
        assert_eq!(reported[..8], [0, 0, 0, 1, 0, 0, 0, 48]);
        assert_eq!(
            reported[8..32],
            [0, 0, 0, 0, 0, 0, 0x11, 0x22, 0, 0, 0, 0, 0x03, 0x03, 0, 0, 0, 0, 0, 1, 0, 0, 0, 24]
        );
        assert_eq!((reported.len(), reported[32], &reported[33..]), (56, 0x09, &[0; 23][..]));
    }

    #[test]
    fn an_unknown_service_action_is_an_invalid_field() {
        assert_eq!(Fixture::new().check(&cdb(4, 8)), Sense::invalid_field_in_cdb(1, Some(4)));
    }
}
