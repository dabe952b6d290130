//! Registrations and the one persistent reservation, as a machine (SPC-5 clause 5.14).
//!
//! Each service action is a method; who sends it, and with which key, are its arguments. It changes everything or,
//! refused, nothing. Unit attentions for other nexuses are returned, since the machine does not know them.
//!
//! Always true: keys are not zero; a nexus is registered once; the holder is registered; a reservation of the "all
//! registrants" kind has at least one registrant.

use super::nexus::Nexus;
use crate::lun::access::Access;
use crate::lun::attention::Attention;
use alloc::vec::Vec;
use core::hint::cold_path;
use wire::scsi::cdb::ReservationType;

/// Nexuses that can be registered at once; one more ends with INSUFFICIENT REGISTRATION RESOURCES.
pub const REGISTRATIONS_MAX: usize = 16;

/// Registrations, reservation, generation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Persistent {
    registrations: Vec<Registration>,
    reservation: Option<Reservation>,
    generation: u32,
    outlives_power: bool,
}

/// A nexus and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Nexus that is registered.
    pub nexus: Nexus,
    /// Its key, not zero.
    pub key: u64,
    /// Whether it registered for all target ports (ALL_TG_PT), which here are one.
    pub all_target_ports: bool,
}

/// A reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Access that it denies, and the nexuses that it serves.
    pub coverage: Coverage,
    /// Nexus that made it. With [`Serves::AllRegistrants`] all registrants hold it alike.
    pub holder: Nexus,
}

/// TYPE of a reservation, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Reads are refused as well (exclusive access), else writes only (write exclusive).
    pub reads_too: bool,
    /// Whom it serves.
    pub serves: Serves,
}

/// Whom a reservation serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// Its holder.
    Holder,
    /// Every registrant.
    Registrants,
    /// Every registrant, and all of them hold it.
    AllRegistrants,
}

/// The parameters of REGISTER and REGISTER AND IGNORE EXISTING KEY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registering {
    /// The key that must be registered, zero for none; `None` where that does not matter.
    pub key: Option<u64>,
    /// The key to register, zero for none.
    pub new_key: u64,
    /// ALL_TG_PT.
    pub all_target_ports: bool,
    /// APTPL.
    pub outlives_power: bool,
}

/// The parameters of REGISTER AND MOVE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moving {
    /// The sender's key.
    pub key: u64,
    /// The key to register for the new holder.
    pub new_key: u64,
    /// The new holder, if there is such a nexus.
    pub destination: Result<Nexus, Refusal>,
    /// UNREG: the sender's registration ends.
    pub unregister: bool,
    /// APTPL.
    pub outlives_power: bool,
}

/// Why a service action is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// RESERVATION CONFLICT.
    Conflict,
    /// INVALID RELEASE OF PERSISTENT RESERVATION: scope or type are not the reservation's.
    InvalidRelease,
    /// A service action reservation key of zero, which names no one.
    ZeroKey,
    /// A reservation would be made, of a type that does not exist.
    Type,
    /// INSUFFICIENT REGISTRATION RESOURCES.
    NoRoom,
    /// A reservation would be moved, and there is none.
    NothingReserved,
    /// A reservation would be moved to a target port that does not exist.
    TargetPort,
    /// A reservation would be moved to an initiator port that is not known, or to the sender's own.
    InitiatorPort,
    /// A lost reservation would be replaced, and none is lost.
    NothingLost,
}

/// Unit attention conditions for other nexuses.
pub type Notices = Vec<(Nexus, Attention)>;

impl TryFrom<ReservationType> for Coverage {
    type Error = Refusal;

    fn try_from(reservation_type: ReservationType) -> Result<Self, Refusal> {
        use ReservationType as Type;
        let (reads_too, serves) = match reservation_type {
            Type::WriteExclusive => (false, Serves::Holder),
            Type::ExclusiveAccess => (true, Serves::Holder),
            Type::WriteExclusiveRegistrantsOnly => (false, Serves::Registrants),
            Type::ExclusiveAccessRegistrantsOnly => (true, Serves::Registrants),
            Type::WriteExclusiveAllRegistrants => (false, Serves::AllRegistrants),
            Type::ExclusiveAccessAllRegistrants => (true, Serves::AllRegistrants),
            Type::None | Type::Unknown(_) => return Err(Refusal::Type),
        };
        Ok(Self { reads_too, serves })
    }
}

impl From<Coverage> for ReservationType {
    fn from(coverage: Coverage) -> Self {
        match (coverage.reads_too, coverage.serves) {
            (false, Serves::Holder) => Self::WriteExclusive,
            (true, Serves::Holder) => Self::ExclusiveAccess,
            (false, Serves::Registrants) => Self::WriteExclusiveRegistrantsOnly,
            (true, Serves::Registrants) => Self::ExclusiveAccessRegistrantsOnly,
            (false, Serves::AllRegistrants) => Self::WriteExclusiveAllRegistrants,
            (true, Serves::AllRegistrants) => Self::ExclusiveAccessAllRegistrants,
        }
    }
}

impl Persistent {
    /// Restores saved state if it is valid: see the module documentation. The generation restarts at zero.
    pub(super) fn restored(
        registrations: Vec<Registration>,
        reservation: Option<Reservation>,
    ) -> Option<Self> {
        let saved = Self { registrations, reservation, generation: 0, outlives_power: true };
        let keys = saved.registrations.iter().all(|one| one.key != 0);
        let once = saved
            .registrations
            .iter()
            .all(|one| saved.registrations.iter().filter(|other| other.nexus == one.nexus).count() == 1);
        let held = reservation.is_none_or(|held| match held.coverage.serves {
            Serves::AllRegistrants => saved.has_registrations(),
            Serves::Holder | Serves::Registrants => saved.key_of(held.holder).is_some(),
        });
        (keys && once && held && saved.registrations.len() <= REGISTRATIONS_MAX).then_some(saved)
    }

    /// One registration and its reservation, in place of what was lost (SPC-4 clause 5.13.11.3): PRGENERATION is zero.
    pub(super) fn replacing_lost(
        from: Nexus,
        registering: Registering,
        coverage: Coverage,
    ) -> Result<Self, Refusal> {
        let mut state = Self::default();
        state.register(from, registering)?;
        state.reserve(from, registering.new_key, coverage)?;
        Ok(Self { generation: 0, ..state })
    }

    /// PRGENERATION: counts what changed registrations, since power came.
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// Everyone who is registered, in the order in which they came.
    pub fn registrations(&self) -> &[Registration] {
        &self.registrations
    }

    /// The reservation.
    pub const fn reservation(&self) -> Option<Reservation> {
        self.reservation
    }

    /// Whether all this outlives a power loss (APTPL of the last registration).
    pub const fn outlives_power(&self) -> bool {
        self.outlives_power
    }

    /// Whether anyone is registered.
    pub const fn has_registrations(&self) -> bool {
        !self.registrations.is_empty()
    }

    /// The key of a nexus, if it is registered.
    pub fn key_of(&self, nexus: Nexus) -> Option<u64> {
        self.registrations.iter().find(|one| one.nexus == nexus).map(|one| one.key)
    }

    /// Whether a nexus holds the reservation.
    pub fn holds(&self, nexus: Nexus) -> bool {
        self.reservation.is_some_and(|held| match held.coverage.serves {
            Serves::AllRegistrants => self.key_of(nexus).is_some(),
            Serves::Holder | Serves::Registrants => held.holder == nexus,
        })
    }

    /// Whether there is a reservation and it serves a nexus.
    pub fn serves(&self, nexus: Nexus) -> bool {
        self.reservation.is_some_and(|held| match held.coverage.serves {
            Serves::Holder => held.holder == nexus,
            Serves::Registrants | Serves::AllRegistrants => self.key_of(nexus).is_some(),
        })
    }

    /// Whether the reservation keeps a nexus from what it wants to do.
    pub fn refuses(&self, nexus: Nexus, access: Access) -> bool {
        let covered = self.reservation.is_some_and(|held| {
            cold_path();
            match access {
                Access::Always => false,
                Access::Read => held.coverage.reads_too,
                Access::Write => true,
            }
        });
        covered && !self.serves(nexus)
    }

    /// REGISTER and REGISTER AND IGNORE EXISTING KEY.
    pub fn register(&mut self, from: Nexus, request: Registering) -> Result<Notices, Refusal> {
        let present = self.registrations.iter().position(|one| one.nexus == from);
        let key = present.map_or(0, |at| self.registrations[at].key);
        if request.key.is_some_and(|claimed| claimed != key) {
            return Err(Refusal::Conflict);
        }
        if present.is_none() && request.new_key != 0 && self.registrations.len() == REGISTRATIONS_MAX {
            return Err(Refusal::NoRoom);
        }
        let mut notices = Notices::new();
        let registration =
            Registration { nexus: from, key: request.new_key, all_target_ports: request.all_target_ports };
        match (present, request.new_key) {
            (None, 0) => {}
            (None, _) => self.registrations.push(registration),
            (Some(at), 0) => notices = self.unregister(at),
            (Some(at), _) => self.registrations[at] = registration,
        }
        self.outlives_power = request.outlives_power;
        self.count();
        Ok(notices)
    }

    /// Takes a registration away, and the reservation with it if it was the holder's.
    fn unregister(&mut self, at: usize) -> Notices {
        let gone = self.registrations.remove(at);
        let Some(held) = self.reservation else { return Notices::new() };
        match held.coverage.serves {
            Serves::AllRegistrants if self.has_registrations() => return Notices::new(),
            Serves::Holder | Serves::Registrants if held.holder != gone.nexus => return Notices::new(),
            _ => self.reservation = None,
        }
        match held.coverage.serves {
            Serves::Registrants => self.notices(gone.nexus, Attention::ReservationsReleased),
            Serves::Holder | Serves::AllRegistrants => Notices::new(),
        }
    }

    /// RESERVE.
    pub fn reserve(&mut self, from: Nexus, key: u64, coverage: Coverage) -> Result<(), Refusal> {
        self.check_key(from, key)?;
        match self.reservation {
            None => self.reservation = Some(Reservation { coverage, holder: from }),
            Some(held) if self.holds(from) && held.coverage == coverage => {}
            Some(_) => return Err(Refusal::Conflict),
        }
        Ok(())
    }

    /// RELEASE. Without a reservation, or with another's, nothing happens.
    pub fn release(
        &mut self,
        from: Nexus,
        key: u64,
        coverage: Result<Coverage, Refusal>,
    ) -> Result<Notices, Refusal> {
        self.check_key(from, key)?;
        let Some(held) = self.reservation.filter(|_| self.holds(from)) else { return Ok(Notices::new()) };
        if coverage != Ok(held.coverage) {
            return Err(Refusal::InvalidRelease);
        }
        self.reservation = None;
        Ok(match held.coverage.serves {
            Serves::Holder => Notices::new(),
            Serves::Registrants | Serves::AllRegistrants => {
                self.notices(from, Attention::ReservationsReleased)
            }
        })
    }

    /// CLEAR: no registrations, no reservation.
    pub fn clear(&mut self, from: Nexus, key: u64) -> Result<Notices, Refusal> {
        self.check_key(from, key)?;
        let notices = self.notices(from, Attention::ReservationsPreempted);
        self.registrations.clear();
        self.reservation = None;
        self.count();
        Ok(notices)
    }

    /// PREEMPT: removes all registrants with the key `preempted_key`, and takes the reservation over if it was
    /// theirs. `coverage` counts in that case only.
    pub fn preempt(
        &mut self,
        from: Nexus,
        key: u64,
        preempted_key: u64,
        coverage: Result<Coverage, Refusal>,
    ) -> Result<Notices, Refusal> {
        self.check_key(from, key)?;
        let takes_over = self.reservation.is_some_and(|held| match held.coverage.serves {
            Serves::AllRegistrants => preempted_key == 0,
            Serves::Holder | Serves::Registrants => self.key_of(held.holder) == Some(preempted_key),
        });
        let notices = if takes_over {
            self.take_over(from, preempted_key, coverage?)
        } else {
            self.remove_key(from, preempted_key)?
        };
        self.count();
        Ok(notices)
    }

    /// The reservation becomes `from`'s. A preempted key of zero means everyone else.
    fn take_over(&mut self, from: Nexus, preempted_key: u64, coverage: Coverage) -> Notices {
        let is_preempted =
            |one: &Registration| one.nexus != from && (preempted_key == 0 || one.key == preempted_key);
        let removed = self.registrations.extract_if(.., |one| is_preempted(one));
        let mut notices: Notices =
            removed.map(|one| (one.nexus, Attention::RegistrationsPreempted)).collect();
        let old = self.reservation.replace(Reservation { coverage, holder: from });
        if old.is_some_and(|old| old.coverage != coverage) {
            notices.extend(self.notices(from, Attention::ReservationsReleased));
        }
        notices
    }

    /// Only registrations go, the sender's own too if it has that key.
    fn remove_key(&mut self, from: Nexus, preempted_key: u64) -> Result<Notices, Refusal> {
        if preempted_key == 0 {
            return Err(Refusal::ZeroKey);
        }
        let removed: Vec<_> = self.registrations.extract_if(.., |one| one.key == preempted_key).collect();
        if removed.is_empty() {
            return Err(Refusal::Conflict);
        }
        if !self.has_registrations() {
            self.reservation = None;
        }
        let others = removed.iter().filter(|one| one.nexus != from);
        Ok(others.map(|one| (one.nexus, Attention::RegistrationsPreempted)).collect())
    }

    /// REGISTER AND MOVE: gives the reservation, as it is, to another nexus (SPC-4 clause 5.13.8).
    pub fn register_and_move(&mut self, from: Nexus, request: Moving) -> Result<Notices, Refusal> {
        self.check_key(from, request.key)?;
        let held = self.reservation.ok_or(Refusal::NothingReserved)?;
        if held.holder != from || held.coverage.serves == Serves::AllRegistrants {
            return Err(Refusal::Conflict);
        }
        if request.new_key == 0 {
            return Err(Refusal::ZeroKey);
        }
        let holder = request.destination?;
        if holder == from {
            return Err(Refusal::InitiatorPort);
        }
        match self.registrations.iter().position(|one| one.nexus == holder) {
            Some(at) => self.registrations[at].key = request.new_key,
            None if self.registrations.len() == REGISTRATIONS_MAX => return Err(Refusal::NoRoom),
            None => {
                let registration =
                    Registration { nexus: holder, key: request.new_key, all_target_ports: false };
                self.registrations.push(registration);
            }
        }
        self.reservation = Some(Reservation { holder, ..held });
        if request.unregister {
            self.registrations.retain(|one| one.nexus != from);
        }
        self.outlives_power = request.outlives_power;
        self.count();
        Ok(Notices::new())
    }

    /// Resets the generation, and drops registrations and reservation unless they survive a power loss.
    pub fn lose_power(&mut self) {
        self.generation = 0;
        if !self.outlives_power {
            *self = Self::default();
        }
    }

    fn check_key(&self, from: Nexus, key: u64) -> Result<(), Refusal> {
        if self.key_of(from) == Some(key) { Ok(()) } else { Err(Refusal::Conflict) }
    }

    /// The same notice for everyone who is registered but the sender.
    fn notices(&self, from: Nexus, attention: Attention) -> Notices {
        let others = self.registrations.iter().filter(|one| one.nexus != from);
        others.map(|one| (one.nexus, attention)).collect()
    }

    const fn count(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    const A: Nexus = Nexus(0);
    const B: Nexus = Nexus(1);
    const C: Nexus = Nexus(2);

    const WRITE_EXCLUSIVE: Coverage = Coverage { reads_too: false, serves: Serves::Holder };
    const EXCLUSIVE_REGISTRANTS: Coverage = Coverage { reads_too: true, serves: Serves::Registrants };
    const WRITE_ALL: Coverage = Coverage { reads_too: false, serves: Serves::AllRegistrants };

    /// A, B and C with the keys 10, 11, 12; A has reserved.
    fn three(coverage: Coverage) -> Persistent {
        let mut state = Persistent::default();
        for (nexus, new_key) in [(A, 10), (B, 11), (C, 12)] {
            state.register(nexus, Registering { new_key, ..Registering::default() }).unwrap();
        }
        state.reserve(A, 10, coverage).unwrap();
        state
    }

    fn registering(key: u64, new_key: u64) -> Registering {
        Registering { key: Some(key), new_key, ..Registering::default() }
    }

    #[test]
    fn a_key_is_registered_changed_and_removed_by_who_knows_it() {
        let mut state = Persistent::default();
        assert_eq!(state.register(A, registering(5, 10)), Err(Refusal::Conflict));
        assert_eq!(state.register(A, registering(0, 10)), Ok(vec![]));
        assert_eq!(state.register(A, registering(0, 11)), Err(Refusal::Conflict));
        assert_eq!(state.register(A, registering(10, 11)), Ok(vec![]));
        assert_eq!(state.key_of(A), Some(11));
        assert_eq!(state.register(A, registering(11, 0)), Ok(vec![]));
        assert_eq!((state.key_of(A), state.generation()), (None, 3));
    }

    #[test]
    fn more_registrations_than_there_is_room_for_are_refused() {
        let mut state = Persistent::default();
        for nexus in 0..16 {
            state.register(Nexus(nexus), registering(0, 1)).unwrap();
        }
        assert_eq!(state.register(Nexus(16), registering(0, 1)), Err(Refusal::NoRoom));
        assert_eq!(state.register(Nexus(15), registering(1, 2)), Ok(vec![]));
    }

    #[test]
    fn who_may_do_what_under_each_type() {
        let allowed = |coverage| {
            let state = three(coverage);
            [A, B, Nexus(9)]
                .map(|who| (!state.refuses(who, Access::Read), !state.refuses(who, Access::Write)))
        };
        let all = (true, true);
        let coverage = |reads_too, serves| Coverage { reads_too, serves };
        assert_eq!(allowed(coverage(false, Serves::Holder)), [all, (true, false), (true, false)]);
        assert_eq!(allowed(coverage(true, Serves::Holder)), [all, (false, false), (false, false)]);
        for serves in [Serves::Registrants, Serves::AllRegistrants] {
            assert_eq!(allowed(coverage(false, serves)), [all, all, (true, false)]);
            assert_eq!(allowed(coverage(true, serves)), [all, all, (false, false)]);
        }
    }

    #[test]
    fn a_reservation_is_one_and_may_be_asked_for_again_only_as_it_is() {
        let mut state = three(WRITE_EXCLUSIVE);
        assert_eq!(state.reserve(A, 10, WRITE_EXCLUSIVE), Ok(()));
        assert_eq!(state.reserve(A, 10, WRITE_ALL), Err(Refusal::Conflict));
        assert_eq!(state.reserve(B, 11, WRITE_EXCLUSIVE), Err(Refusal::Conflict));
        assert_eq!(state.reserve(Nexus(9), 0, WRITE_EXCLUSIVE), Err(Refusal::Conflict));
        assert_eq!(three(WRITE_ALL).reserve(B, 11, WRITE_ALL), Ok(()));
    }

    #[test]
    fn release_is_the_holders_and_must_name_the_type() {
        let mut state = three(EXCLUSIVE_REGISTRANTS);
        assert_eq!(state.release(B, 11, Ok(EXCLUSIVE_REGISTRANTS)), Ok(vec![]));
        assert_eq!(state.release(A, 99, Ok(EXCLUSIVE_REGISTRANTS)), Err(Refusal::Conflict));
        assert_eq!(state.release(A, 10, Ok(WRITE_ALL)), Err(Refusal::InvalidRelease));
        let released = |nexus| (nexus, Attention::ReservationsReleased);
        assert_eq!(state.release(A, 10, Ok(EXCLUSIVE_REGISTRANTS)), Ok(vec![released(B), released(C)]));
        assert_eq!(state.reservation(), None);
        assert_eq!(three(WRITE_EXCLUSIVE).release(A, 10, Ok(WRITE_EXCLUSIVE)), Ok(vec![]));
    }

    #[test]
    fn a_holder_that_unregisters_gives_the_reservation_up() {
        let mut state = three(EXCLUSIVE_REGISTRANTS);
        let released = |nexus| (nexus, Attention::ReservationsReleased);
        assert_eq!(state.register(A, registering(10, 0)), Ok(vec![released(B), released(C)]));
        assert_eq!(state.reservation(), None);
    }

    #[test]
    fn a_reservation_of_all_registrants_lasts_as_long_as_one_of_them() {
        let mut state = three(WRITE_ALL);
        state.register(A, registering(10, 0)).unwrap();
        state.register(B, registering(11, 0)).unwrap();
        assert!(state.holds(C));
        state.register(C, registering(12, 0)).unwrap();
        assert_eq!(state.reservation(), None);
    }

    #[test]
    fn clear_leaves_nothing_and_reports_the_others() {
        let mut state = three(WRITE_EXCLUSIVE);
        assert_eq!(state.clear(B, 10), Err(Refusal::Conflict));
        let preempted = |nexus| (nexus, Attention::ReservationsPreempted);
        assert_eq!(state.clear(B, 11), Ok(vec![preempted(A), preempted(C)]));
        assert_eq!((state.registrations(), state.reservation()), (&[][..], None));
        assert_eq!(state.generation(), 4);
    }

    #[test]
    fn preempting_the_holder_takes_the_reservation_over() {
        let mut state = three(WRITE_EXCLUSIVE);
        let notices = state.preempt(B, 11, 10, Ok(EXCLUSIVE_REGISTRANTS)).unwrap();
        let expected = [(A, Attention::RegistrationsPreempted), (C, Attention::ReservationsReleased)];
        assert_eq!(notices, expected);
        assert_eq!(state.reservation(), Some(Reservation { coverage: EXCLUSIVE_REGISTRANTS, holder: B }));
        assert_eq!(state.key_of(A), None);
        assert_eq!(three(WRITE_EXCLUSIVE).preempt(B, 11, 10, Err(Refusal::Type)), Err(Refusal::Type));
    }

    #[test]
    fn preempting_another_removes_its_registration_only() {
        let mut state = three(WRITE_EXCLUSIVE);
        let notices = state.preempt(B, 11, 12, Err(Refusal::Type)).unwrap();
        assert_eq!(notices, [(C, Attention::RegistrationsPreempted)]);
        assert!(state.holds(A));
        assert_eq!(state.preempt(B, 11, 12, Ok(WRITE_ALL)), Err(Refusal::Conflict));
        assert_eq!(state.preempt(B, 11, 0, Ok(WRITE_ALL)), Err(Refusal::ZeroKey));
    }

    #[test]
    fn a_holder_may_preempt_itself_to_change_the_type() {
        let mut state = three(WRITE_EXCLUSIVE);
        let notices = state.preempt(A, 10, 10, Ok(WRITE_ALL)).unwrap();
        assert_eq!(notices, [(B, Attention::ReservationsReleased), (C, Attention::ReservationsReleased)]);
        assert_eq!((state.key_of(A), state.holds(C)), (Some(10), true));
    }

    #[test]
    fn a_key_of_zero_preempts_all_registrants() {
        let mut state = three(WRITE_ALL);
        let preempted = |nexus| (nexus, Attention::RegistrationsPreempted);
        assert_eq!(state.preempt(C, 12, 0, Ok(WRITE_ALL)), Ok(vec![preempted(A), preempted(B)]));
        assert_eq!(state.registrations().len(), 1);
        assert!(state.holds(C));
    }

    const TO_B: Moving =
        Moving { key: 10, new_key: 20, destination: Ok(B), unregister: false, outlives_power: false };

    #[test]
    fn a_holder_moves_its_reservation_to_another_nexus() {
        let mut state = three(WRITE_EXCLUSIVE);
        assert_eq!(state.register_and_move(A, TO_B), Ok(vec![]));
        assert_eq!(state.reservation(), Some(Reservation { coverage: WRITE_EXCLUSIVE, holder: B }));
        assert_eq!((state.key_of(A), state.key_of(B)), (Some(10), Some(20)));
        let new = Moving { key: 20, destination: Ok(Nexus(9)), unregister: true, ..TO_B };
        assert_eq!(state.register_and_move(B, new), Ok(vec![]));
        assert_eq!((state.key_of(B), state.holds(Nexus(9))), (None, true));
    }

    #[test]
    fn moving_needs_a_reservation_of_the_senders_own_and_somewhere_to_go() {
        let refused = |coverage, from, request| three(coverage).register_and_move(from, request).unwrap_err();
        let refusals = [
            (Refusal::Conflict, refused(WRITE_EXCLUSIVE, A, Moving { key: 9, ..TO_B })),
            (Refusal::Conflict, refused(WRITE_EXCLUSIVE, C, Moving { key: 12, ..TO_B })),
            (Refusal::Conflict, refused(WRITE_ALL, A, TO_B)),
            (Refusal::ZeroKey, refused(WRITE_EXCLUSIVE, A, Moving { new_key: 0, ..TO_B })),
            (Refusal::InitiatorPort, refused(WRITE_EXCLUSIVE, A, Moving { destination: Ok(A), ..TO_B })),
        ];
        for (expected, refusal) in refusals {
            assert_eq!(refusal, expected);
        }
        let nowhere = Moving { destination: Err(Refusal::TargetPort), ..TO_B };
        assert_eq!(refused(WRITE_EXCLUSIVE, A, nowhere), Refusal::TargetPort);
        let mut free = Persistent::default();
        free.register(A, registering(0, 10)).unwrap();
        assert_eq!(free.register_and_move(A, TO_B), Err(Refusal::NothingReserved));
    }

    #[test]
    fn power_takes_what_is_not_to_outlive_it() {
        let mut state = three(WRITE_ALL);
        state.register(A, Registering { outlives_power: true, ..registering(10, 10) }).unwrap();
        state.lose_power();
        assert_eq!((state.generation(), state.registrations().len()), (0, 3));
        state.register(A, registering(10, 10)).unwrap();
        state.lose_power();
        assert_eq!(state, Persistent::default());
    }

    fn actions() -> impl Strategy<Value = (u8, u8, u64, u64, u8)> {
        (0u8..7, 0u8..3, 0u64..4, 0u64..4, 0u8..9)
    }

    proptest! {
        #[test]
        fn whatever_comes_the_state_is_one_that_could_be_kept(
            script in prop::collection::vec(actions(), 0..60),
        ) {
            let mut state = Persistent::default();
            for (action, nexus, key, other_key, code) in script {
                let from = Nexus(nexus);
                let coverage = Coverage::try_from(ReservationType::from(code));
                let before = state.clone();
                let refused = match action {
                    0 => state.register(from, registering(key, other_key)).is_err(),
                    1 => {
                        let request = Registering { key: None, ..registering(0, other_key) };
                        state.register(from, request).is_err()
                    }
                    2 => coverage.is_ok_and(|coverage| state.reserve(from, key, coverage).is_err()),
                    3 => state.release(from, key, coverage).is_err(),
                    4 => state.clear(from, key).is_err(),
                    5 => {
                        let destination = Ok(Nexus(code % 3));
                        let unregister = code % 2 == 0;
                        let request =
                            Moving { key, new_key: other_key, destination, unregister, outlives_power: false };
                        state.register_and_move(from, request).is_err()
                    }
                    _ => state.preempt(from, key, other_key, coverage).is_err(),
                };
                prop_assert!(!refused || state == before);
                let (registrations, reservation) = (state.registrations.clone(), state.reservation);
                prop_assert!(Persistent::restored(registrations, reservation).is_some());
            }
        }
    }
}
