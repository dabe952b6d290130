//! The bytes of registrations and reservation that outlive a power cycle ([`crate::lun::durable`]).
//!
//! ```text
//!  0      TYPE of the reservation, 0 for none      2..   registrations of 10 bytes each:
//!  1      nexus of its holder                       0    nexus
//!                                                   1    1 if for all target ports
//!                                                   2..  key
//! ```
//! [`LOST`] alone stands for what was lost earlier.

use super::nexus::Nexus;
use super::persistent::{Coverage, Persistent, Registration, Reservation};
use crate::lun::durable::{self, Damaged, Section};
use alloc::vec::Vec;
use wire::scsi::cdb::ReservationType;
use wire::{DecodeError, Reader};

/// The bytes that record a loss: a type that does not exist.
pub(super) const LOST: [u8; 1] = [0xff];

/// The bytes, none if nothing is to outlive a power cycle.
pub(super) fn encode(state: &Persistent) -> Vec<u8> {
    if !state.outlives_power() {
        return Vec::new();
    }
    let (code, holder) = match state.reservation() {
        Some(held) => (ReservationType::from(held.coverage), held.holder),
        None => (ReservationType::None, Nexus::HOST),
    };
    let mut bytes = Vec::from([code.into(), holder.0]);
    for one in state.registrations() {
        bytes.extend_from_slice(&[one.nexus.0, u8::from(one.all_target_ports)]);
        bytes.extend_from_slice(&one.key.to_be_bytes());
    }
    bytes
}

/// Decodes saved reservations from `durable_state`, if there are any.
///
/// # Errors
/// [`Damaged`] if it is not what [`encode`] writes.
pub(super) fn decode(durable_state: &[u8]) -> Result<Option<Persistent>, Damaged> {
    let Some(bytes) = durable::find(durable_state, Section::Reservations)? else { return Ok(None) };
    restore(bytes).map(Some).ok_or(Damaged)
}

fn restore(bytes: &[u8]) -> Option<Persistent> {
    let mut reader = Reader::new(bytes);
    let (code, holder) = (ReservationType::from(reader.u8().ok()?), Nexus(reader.u8().ok()?));
    let reservation = match code {
        ReservationType::None => None,
        code => Some(Reservation { coverage: Coverage::try_from(code).ok()?, holder }),
    };
    let mut registrations = Vec::new();
    while !reader.rest().is_empty() {
        registrations.push(registration(&mut reader).ok()?);
    }
    Persistent::restored(registrations, reservation)
}

fn registration(reader: &mut Reader<'_>) -> Result<Registration, DecodeError> {
    let (nexus, all_target_ports) = (Nexus(reader.u8()?), reader.u8()? != 0);
    Ok(Registration { nexus, all_target_ports, key: reader.be64()? })
}

#[cfg(test)]
mod tests {
    use super::super::persistent::{Registering, Serves};
    use super::*;

    const BYTES: [u8; 12] = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x0a];

    fn decoded(bytes: &[u8]) -> Option<Persistent> {
        decode(&durable::encode(&[(Section::Reservations, bytes)])).ok().flatten()
    }

    #[test]
    fn a_reservation_comes_back() {
        let mut state = Persistent::default();
        let request = Registering {
            new_key: 10,
            all_target_ports: true,
            outlives_power: true,
            ..Registering::default()
        };
        state.register(Nexus::HOST, request).unwrap();
        state.reserve(Nexus::HOST, 10, Coverage { reads_too: false, serves: Serves::Registrants }).unwrap();
        assert_eq!(encode(&state), BYTES);
        let back = decoded(&BYTES).unwrap();
        assert_eq!(back.registrations(), state.registrations());
        assert_eq!(back.reservation(), state.reservation());
        assert!(back.outlives_power());
    }

    #[test]
    fn bytes_that_break_a_rule_are_no_reservation() {
        assert!(decoded(&BYTES).is_some());
        let broken = |at: usize, byte: u8| {
            let mut bytes = BYTES;
            bytes[at] = byte;
            decoded(&bytes)
        };
        assert_eq!(broken(0, 2), None, "a type that does not exist");
        assert_eq!(broken(1, 7), None, "a holder who is not registered");
        assert_eq!(broken(11, 0), None, "a key of zero");
        assert_eq!(decoded(&BYTES[..11]), None, "cut");
        let lost = durable::encode(&[(Section::Reservations, &LOST)]);
        assert_eq!(decode(&lost), Err(Damaged));
        assert_eq!(decode(&durable::encode(&[])), Ok(None));
    }
}
