//! Reservations: who may use the unit (SPC-5 clause 5.14; RESERVE and RELEASE: SPC-2 clause 5.5).
//!
//! Rules are kept for any number of I_T nexuses, the commands come from one: a USB device has one target port and
//! sees one initiator port, that of the host it is plugged into, whatever machine that is. SCSI has no name for a
//! USB host, so another machine on the same cable is the same initiator port: a persistent reservation meets it
//! with its registration, and only a key that it does not know tells it that it is not the one that registered.
//! RESERVE holds for the nexus alone and ends with it.
//!
//! What ends what: RESERVE with RELEASE, every reset, nexus loss and power loss. Registrations and the persistent
//! reservation only by command, or by power loss unless the host asked that they outlive it (APTPL) and the medium
//! keeps them. The two kinds exclude each other, but for the exception that SPC-3 made for registrants (CRH).
//!
//! Left out: REGISTER AND MOVE, since there is no other initiator port to move to; REPLACE LOST RESERVATION, since
//! none is ever known to be lost; SPEC_I_PT; the abort part of PREEMPT AND ABORT, since the only commands here are
//! the sender's own.

mod kept;
mod persistent;
mod persistent_reserve_in;
mod persistent_reserve_out;
mod reserve_release;

use super::UnitEvent;
use super::table::{Access, Row};
use alloc::vec::Vec;
pub use persistent::{
    Coverage, Notices, Persistent, REGISTRATIONS_MAX, Refusal, Registering, Registration, Reservation, Serves,
};

/// The family's rows.
pub const ROWS: &[Row] = &[
    reserve_release::RESERVE_6,
    reserve_release::RELEASE_6,
    reserve_release::RESERVE_10,
    reserve_release::RELEASE_10,
    persistent_reserve_in::READ_KEYS,
    persistent_reserve_in::READ_RESERVATION,
    persistent_reserve_in::REPORT_CAPABILITIES,
    persistent_reserve_in::READ_FULL_STATUS,
    persistent_reserve_out::REGISTER,
    persistent_reserve_out::RESERVE,
    persistent_reserve_out::RELEASE,
    persistent_reserve_out::CLEAR,
    persistent_reserve_out::PREEMPT,
    persistent_reserve_out::PREEMPT_AND_ABORT,
    persistent_reserve_out::REGISTER_AND_IGNORE_EXISTING_KEY,
];

/// An I_T nexus: an initiator port, as seen from the one target port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nexus(pub u8);

impl Nexus {
    /// The host behind the USB port, the only one there is.
    pub const HOST: Self = Self(0);
}

/// A reservation of the other kind, or of another nexus, stands in the way: RESERVATION CONFLICT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict;

/// Everything that is reserved on a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservations {
    /// Who has the whole unit by RESERVE.
    whole: Option<Nexus>,
    persistent: Persistent,
}

impl Reservations {
    /// What outlived the power cycle, if anything did.
    pub fn new(durable_state: Option<&[u8]>) -> Self {
        Self { whole: None, persistent: durable_state.and_then(kept::decode).unwrap_or_default() }
    }

    /// The bytes for [`super::durable::Section::Reservations`]: none unless a host asked for APTPL.
    pub fn durable_bytes(&self) -> Vec<u8> {
        kept::encode(&self.persistent)
    }

    /// Whether a command of `from` is refused for what it does to the unit.
    pub fn refuse(&self, from: Nexus, access: Access) -> bool {
        let whole = self.whole.is_some_and(|holder| holder != from);
        access != Access::Always && (whole || self.persistent.refuses(from, access))
    }

    /// RESERVE: the unit is the sender's, unless it has it already in another way.
    pub fn reserve(&mut self, from: Nexus) -> Result<(), Conflict> {
        if self.persistent.has_registrations() {
            return self.pass_as_registrant(from);
        }
        if self.whole.is_some_and(|holder| holder != from) {
            return Err(Conflict);
        }
        self.whole = Some(from);
        Ok(())
    }

    /// RELEASE: the unit is everyone's, if it was the sender's; if not, nothing happens.
    pub fn release(&mut self, from: Nexus) -> Result<(), Conflict> {
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
    fn pass_as_registrant(&self, from: Nexus) -> Result<(), Conflict> {
        if self.persistent.serves(from) { Ok(()) } else { Err(Conflict) }
    }

    /// Registrations and persistent reservation. Out of reach while RESERVE holds, also for who holds it
    /// (SPC-2 clause 5.5.1).
    pub fn persistent(&self) -> Result<&Persistent, Conflict> {
        if self.whole.is_some() { Err(Conflict) } else { Ok(&self.persistent) }
    }

    /// The same, to change them.
    pub fn persistent_mut(&mut self) -> Result<&mut Persistent, Conflict> {
        if self.whole.is_some() { Err(Conflict) } else { Ok(&mut self.persistent) }
    }

    /// What `event` leaves.
    pub fn handle_event(&mut self, event: UnitEvent) {
        self.whole = None;
        if event == UnitEvent::PowerOn {
            self.persistent.lose_power();
        }
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(reservations.reserve(OTHER), Err(Conflict));
        assert_eq!(reservations.release(OTHER), Ok(()));
        assert!(reservations.refuse(OTHER, Access::Read));
        assert!(!reservations.refuse(OTHER, Access::Always));
        assert!(!reservations.refuse(Nexus::HOST, Access::Write));
        assert_eq!(reservations.release(Nexus::HOST), Ok(()));
        assert!(!reservations.refuse(OTHER, Access::Write));
    }

    #[test]
    fn every_event_ends_a_reserve() {
        use UnitEvent::*;
        for event in [PowerOn, BusReset, LogicalUnitReset, NexusLoss] {
            let mut reservations = Reservations::default();
            reservations.reserve(OTHER).unwrap();
            reservations.handle_event(event);
            assert!(!reservations.refuse(Nexus::HOST, Access::Write), "{event:?}");
        }
    }

    #[test]
    fn registrations_end_with_power_and_with_nothing_less() {
        use UnitEvent::*;
        let mut reservations = registered(&[Nexus::HOST], Some(Serves::Holder));
        for event in [BusReset, LogicalUnitReset, NexusLoss] {
            reservations.handle_event(event);
            assert!(reservations.refuse(OTHER, Access::Write), "{event:?}");
        }
        reservations.handle_event(PowerOn);
        assert_eq!(reservations, Reservations::default());
    }

    #[test]
    fn a_reserve_keeps_persistent_reservations_away_even_from_its_holder() {
        let mut reservations = Reservations::default();
        reservations.reserve(Nexus::HOST).unwrap();
        assert_eq!(reservations.persistent(), Err(Conflict));
        assert_eq!(reservations.persistent_mut(), Err(Conflict));
    }

    #[test]
    fn a_registration_keeps_reserve_away() {
        let mut reservations = registered(&[Nexus::HOST], None);
        assert_eq!(reservations.reserve(Nexus::HOST), Err(Conflict));
        assert_eq!(reservations.release(OTHER), Err(Conflict));
    }

    #[test]
    fn whom_a_persistent_reservation_serves_may_reserve_without_effect() {
        let mut reservations = registered(&[Nexus::HOST, OTHER], Some(Serves::Holder));
        let before = reservations.clone();
        assert_eq!(reservations.reserve(Nexus::HOST), Ok(()));
        assert_eq!(reservations.release(Nexus::HOST), Ok(()));
        assert_eq!(reservations.reserve(OTHER), Err(Conflict));
        assert_eq!(reservations, before);
        let mut reservations = registered(&[Nexus::HOST, OTHER], Some(Serves::Registrants));
        assert_eq!(reservations.reserve(OTHER), Ok(()));
        assert_eq!(reservations.reserve(Nexus(2)), Err(Conflict));
    }
}
