//! Reservations: which I_T nexus may use the unit (SPC-5 clause 5.14; RESERVE and RELEASE: SPC-2 clause 5.5).
//!
//! The rules cover any number of I_T nexuses, the commands come from one: a USB device has one target port and
//! sees one initiator port, that of the host it is plugged into, whatever machine that is. SCSI has no name for a
//! USB host, so another machine on the same cable is the same initiator port: a persistent reservation meets it
//! with its registration, and only an unknown key shows that another machine registered.
//! RESERVE holds for the nexus alone and ends with it.
//!
//! Ends: RESERVE with RELEASE, every reset, nexus loss and power loss. Registrations and the persistent
//! reservation only by command, or by power loss unless the host asked that they outlive it (APTPL) and the medium
//! keeps them. The two kinds exclude each other, but for the exception that SPC-3 made for registrants (CRH).
//!
//! Saved reservations that cannot be read after a power cycle are lost, and the unit reports it (SPC-4 clause
//! 5.13.5.3.2, RLR_C = 1): all but a few commands end with DATA PROTECT, PERSISTENT RESERVATION INFORMATION LOST, until a
//! host gives a new reservation by REPLACE LOST RESERVATION.
//!
//! Left out: SPEC_I_PT; the abort part of PREEMPT AND ABORT, since the only commands here are the sender's own.

mod nexus;
mod persistent;
pub(super) mod persistent_reserve_in;
pub(super) mod persistent_reserve_out;
pub(super) mod register_and_move;
pub(super) mod replace_lost_reservation;
pub(super) mod reserve_release;
mod saved;

use super::access::Access;
use super::durable::Damaged;
use super::{Plan, UnitEvent};
use alloc::vec::Vec;
use core::hint::cold_path;
pub use nexus::Nexus;
pub use persistent::{
    Coverage, Moving, Notices, Persistent, REGISTRATIONS_MAX, Refusal, Registering, Registration,
    Reservation, Serves,
};
use wire::scsi::Status;
use wire::scsi::sense::{AdditionalSense, Sense, SenseKey};

/// The TransportID of the host: PROTOCOL IDENTIFIER 9h (UAS), for which SPC-5 defines no further fields.
const HOST_TRANSPORT_ID: [u8; 24] =
    [0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// The relative port identifier of the one target port, as in VPD page 83h.
const TARGET_PORT: u16 = 1;

/// Why a reservation refuses a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// A reservation of the other kind, or of another nexus.
    Conflict,
    /// There may be a reservation, but it cannot be read.
    Lost,
}

impl From<Obstacle> for Plan {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Conflict => Self::Status(Status::ReservationConflict),
            Obstacle::Lost => Self::Check(Sense::new(
                SenseKey::DataProtect,
                AdditionalSense::PERSISTENT_RESERVATION_INFORMATION_LOST,
            )),
        }
    }
}

/// The reservations of a logical unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservations {
    /// The holder of the unit by RESERVE.
    whole: Option<Nexus>,
    persistent: Persistent,
    /// Saved reservations cannot be read; `persistent` is empty.
    lost: bool,
}

impl Reservations {
    /// Restores what survived the power cycle.
    pub fn new(durable_state: Option<&[u8]>) -> Self {
        match durable_state.map_or(Ok(None), saved::decode) {
            Ok(saved) => Self { persistent: saved.unwrap_or_default(), ..Self::default() },
            Err(Damaged) => Self { lost: true, ..Self::default() },
        }
    }

    /// The bytes for [`super::durable::Section::Reservations`]: none unless a host asked for APTPL. What is lost
    /// stays lost whatever else is saved meanwhile.
    pub fn durable_bytes(&self) -> Vec<u8> {
        if self.lost { saved::LOST.into() } else { saved::encode(&self.persistent) }
    }

    /// Whether what was reserved before the last power cycle is not known any more.
    pub const fn are_lost(&self) -> bool {
        self.lost
    }

    /// Refuses a command of `from` for what it does to the unit.
    pub fn check(&self, from: Nexus, access: Access) -> Result<(), Obstacle> {
        let whole = self.whole.is_some_and(|holder| holder != from) && access != Access::Always;
        if whole || self.persistent.refuses(from, access) {
            cold_path();
            return Err(Obstacle::Conflict);
        }
        Ok(())
    }

    const fn check_known(&self) -> Result<(), Obstacle> {
        if self.lost { Err(Obstacle::Lost) } else { Ok(()) }
    }

    /// RESERVE: the sender becomes the holder, unless registrations exist.
    pub fn reserve(&mut self, from: Nexus) -> Result<(), Obstacle> {
        self.check_known()?;
        if self.persistent.has_registrations() {
            return self.pass_as_registrant(from);
        }
        if self.whole.is_some_and(|holder| holder != from) {
            return Err(Obstacle::Conflict);
        }
        self.whole = Some(from);
        Ok(())
    }

    /// RELEASE: frees the unit if the sender holds it; otherwise nothing happens.
    pub fn release(&mut self, from: Nexus) -> Result<(), Obstacle> {
        self.check_known()?;
        if self.persistent.has_registrations() {
            return self.pass_as_registrant(from);
        }
        if self.whole == Some(from) {
            self.whole = None;
        }
        Ok(())
    }

    /// The compatible reservation handling exception (CRH, SPC-3 clause 5.6.3): RESERVE and RELEASE do nothing, and
    /// say GOOD, to a nexus that the persistent reservation serves. To others they conflict.
    fn pass_as_registrant(&self, from: Nexus) -> Result<(), Obstacle> {
        if self.persistent.serves(from) { Ok(()) } else { Err(Obstacle::Conflict) }
    }

    /// Registrations and persistent reservation. Out of reach while RESERVE holds, also for who holds it
    /// (SPC-2 clause 5.5.1).
    pub fn persistent(&self) -> Result<&Persistent, Obstacle> {
        self.check_known()?;
        if self.whole.is_some() { Err(Obstacle::Conflict) } else { Ok(&self.persistent) }
    }

    /// The same, to change them.
    pub fn persistent_mut(&mut self) -> Result<&mut Persistent, Obstacle> {
        self.check_known()?;
        if self.whole.is_some() { Err(Obstacle::Conflict) } else { Ok(&mut self.persistent) }
    }

    /// REPLACE LOST RESERVATION: replaces lost state by the registration and the reservation of `from`.
    pub fn replace_lost(
        &mut self,
        from: Nexus,
        registering: Registering,
        coverage: Coverage,
    ) -> Result<(), Refusal> {
        if !self.lost {
            return Err(Refusal::NothingLost);
        }
        (self.persistent, self.lost) = (Persistent::replacing_lost(from, registering, coverage)?, false);
        Ok(())
    }

    /// Applies an event: ends RESERVE, and at power-on drops what does not survive a power loss.
    pub fn handle_event(&mut self, event: UnitEvent) {
        self.whole = None;
        if event == UnitEvent::PowerOn {
            self.persistent.lose_power();
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const OTHER: Nexus = Nexus(1);

    fn registered(who: &[Nexus], reserved: Option<Serves>) -> Reservations {
        let mut reservations = Reservations::default();
        for &nexus in who {
            let request = Registering { new_key: 7, ..Registering::default() };
            reservations.persistent.register(nexus, request).unwrap();
        }
        if let Some(serves) = reserved {
            let coverage = Coverage { reads_too: false, serves };
            reservations.persistent.reserve(who[0], 7, coverage).unwrap();
        }
        reservations
    }

    #[test]
    fn the_unit_is_reserved_for_one_nexus_until_that_one_releases_it() {
        let mut reservations = Reservations::default();
        assert_eq!(reservations.reserve(Nexus::HOST), Ok(()));
        assert_eq!(reservations.reserve(OTHER), Err(Obstacle::Conflict));
        assert_eq!(reservations.release(OTHER), Ok(()));
        assert_eq!(reservations.check(OTHER, Access::Read), Err(Obstacle::Conflict));
        assert_eq!(reservations.check(OTHER, Access::Always), Ok(()));
        assert_eq!(reservations.check(Nexus::HOST, Access::Write), Ok(()));
        assert_eq!(reservations.release(Nexus::HOST), Ok(()));
        assert_eq!(reservations.check(OTHER, Access::Write), Ok(()));
    }

    #[test]
    fn every_event_ends_a_reserve() {
        use UnitEvent::*;
        for event in [PowerOn, BusReset, LogicalUnitReset, NexusLoss] {
            let mut reservations = Reservations::default();
            reservations.reserve(OTHER).unwrap();
            reservations.handle_event(event);
            assert_eq!(reservations.check(Nexus::HOST, Access::Write), Ok(()), "{event:?}");
        }
    }

    #[test]
    fn registrations_end_with_power_and_with_nothing_less() {
        use UnitEvent::*;
        let mut reservations = registered(&[Nexus::HOST], Some(Serves::Holder));
        for event in [BusReset, LogicalUnitReset, NexusLoss] {
            reservations.handle_event(event);
            assert_eq!(reservations.check(OTHER, Access::Write), Err(Obstacle::Conflict), "{event:?}");
        }
        reservations.handle_event(PowerOn);
        assert_eq!(reservations, Reservations::default());
    }

    #[test]
    fn a_reserve_keeps_persistent_reservations_away_even_from_its_holder() {
        let mut reservations = Reservations::default();
        reservations.reserve(Nexus::HOST).unwrap();
        assert_eq!(reservations.persistent(), Err(Obstacle::Conflict));
        assert_eq!(reservations.persistent_mut(), Err(Obstacle::Conflict));
    }

    #[test]
    fn a_registration_keeps_reserve_away() {
        let mut reservations = registered(&[Nexus::HOST], None);
        assert_eq!(reservations.reserve(Nexus::HOST), Err(Obstacle::Conflict));
        assert_eq!(reservations.release(OTHER), Err(Obstacle::Conflict));
    }

    #[test]
    fn a_registrant_of_a_persistent_reservation_may_reserve_without_effect() {
        let mut reservations = registered(&[Nexus::HOST, OTHER], Some(Serves::Holder));
        let before = reservations.clone();
        assert_eq!(reservations.reserve(Nexus::HOST), Ok(()));
        assert_eq!(reservations.release(Nexus::HOST), Ok(()));
        assert_eq!(reservations.reserve(OTHER), Err(Obstacle::Conflict));
        assert_eq!(reservations, before);
        let mut reservations = registered(&[Nexus::HOST, OTHER], Some(Serves::Registrants));
        assert_eq!(reservations.reserve(OTHER), Ok(()));
        assert_eq!(reservations.reserve(Nexus(2)), Err(Obstacle::Conflict));
    }

    #[test]
    fn what_cannot_be_read_any_more_is_lost_until_it_is_replaced() {
        let mut reservations = Reservations::new(Some(b"not what was saved"));
        assert_eq!(reservations.reserve(Nexus::HOST), Err(Obstacle::Lost));
        assert_eq!(reservations.persistent(), Err(Obstacle::Lost));
        let coverage = Coverage { reads_too: true, serves: Serves::Holder };
        let request = Registering { new_key: 7, ..Registering::default() };
        assert_eq!(reservations.replace_lost(Nexus::HOST, request, coverage), Ok(()));
        assert_eq!(reservations.check(Nexus::HOST, Access::Write), Ok(()));
        assert_eq!(reservations.check(OTHER, Access::Read), Err(Obstacle::Conflict));
        let again = reservations.replace_lost(Nexus::HOST, request, coverage);
        assert_eq!(again, Err(Refusal::NothingLost));
    }

    #[test]
    fn lost_reservations_stay_lost_over_a_power_cycle() {
        let lost = Reservations::new(Some(b"not what was saved")).durable_bytes();
        let state = crate::lun::durable::encode(&[(crate::lun::durable::Section::Reservations, &lost)]);
        assert!(Reservations::new(Some(&state)).are_lost());
        assert!(!Reservations::new(None).are_lost());
    }
}
