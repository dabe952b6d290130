//! Reservations, old and persistent: RESERVE, RELEASE (SPC-2), PERSISTENT RESERVE IN and OUT (SPC-5).
//!
//! Of SPC-2 only the reservation of the whole unit for the sender is alive; third parties and extents are
//! decoded so that a unit can refuse them.

use super::field::Place::Absent;
use super::field::{bit, bits, bytes};
use crate::scsi::opcode::{PersistentReserveInAction, PersistentReserveOutAction};

cdb! {
    /// RESERVE (SPC-2): the unit is the sender's alone.
    pub struct Reserve, width: ["RESERVE(6)" = Six 0x16, "RESERVE(10)" = Ten 0x56] {
        /// On behalf of another initiator.
        #[doc(alias = "3RDPTY")]
        third_party: bool = [bit(1, 4); 2],
        /// Device id of that initiator, 0..=7 in RESERVE(6).
        third_party_device_id: u8 = [bits(1, 3, 1), bytes(3, 3)],
        /// The device id of that initiator is in the parameter list.
        #[doc(alias = "LONGID")]
        long_id: bool = [Absent, bit(1, 1)],
        /// Obsolete: parts of the medium only.
        extent: bool = [bit(1, 0); 2],
        /// Obsolete: names an extent reservation.
        reservation_identification: u8 = [bytes(2, 2); 2],
        /// Bytes of the parameter list.
        parameter_list_len: u16 = [bytes(3, 4), bytes(7, 8)],
    }
}

cdb! {
    /// RELEASE (SPC-2): the unit is everyone's again.
    pub struct Release, width: ["RELEASE(6)" = Six 0x17, "RELEASE(10)" = Ten 0x57] {
        /// On behalf of another initiator.
        #[doc(alias = "3RDPTY")]
        third_party: bool = [bit(1, 4); 2],
        /// Device id of that initiator, 0..=7 in RELEASE(6).
        third_party_device_id: u8 = [bits(1, 3, 1), bytes(3, 3)],
        /// The device id of that initiator is in the parameter list.
        #[doc(alias = "LONGID")]
        long_id: bool = [Absent, bit(1, 1)],
        /// Obsolete: parts of the medium only.
        extent: bool = [bit(1, 0); 2],
        /// Obsolete: names an extent reservation.
        reservation_identification: u8 = [bytes(2, 2); 2],
        /// Bytes of the parameter list.
        parameter_list_len: u16 = [Absent, bytes(7, 8)],
    }
}

cdb! {
    /// PERSISTENT RESERVE IN (SPC-5): keys and reservations as they are.
    pub struct PersistentReserveIn: "PERSISTENT RESERVE IN" = Ten 0x5e {
        /// Data to return.
        service_action: PersistentReserveInAction = bits(1, 4, 0),
        /// Bytes that the host has room for.
        allocation_len: u16 = bytes(7, 8),
    }
}

cdb! {
    /// PERSISTENT RESERVE OUT (SPC-5): changes them.
    pub struct PersistentReserveOut: "PERSISTENT RESERVE OUT" = Ten 0x5f {
        /// Action to perform.
        service_action: PersistentReserveOutAction = bits(1, 4, 0),
        /// Scope of the reservation: 0 is the unit, all else obsolete.
        scope: u8 = bits(2, 7, 4),
        /// Access that the reservation denies to others.
        #[doc(alias = "TYPE")]
        reservation_type: ReservationType = bits(2, 3, 0),
        /// Bytes of the parameter list: 24 but for a few.
        parameter_list_len: u32 = bytes(5, 8),
    }
}

code! {
    /// TYPE of a persistent reservation (SPC-5).
    pub enum ReservationType: u8 {
        /// Value of service actions that take no type.
        None = 0x0 => "no type",
        /// Others may read; the holder writes.
        WriteExclusive = 0x1 => "write exclusive",
        /// Only the holder reads and writes.
        ExclusiveAccess = 0x3 => "exclusive access",
        /// Others may read; registrants may write.
        WriteExclusiveRegistrantsOnly = 0x5 => "write exclusive - registrants only",
        /// Registrants alone read and write.
        ExclusiveAccessRegistrantsOnly = 0x6 => "exclusive access - registrants only",
        /// The same as 5h, and all registered are holders.
        WriteExclusiveAllRegistrants = 0x7 => "write exclusive - all registrants",
        /// The same as 6h, and all registered are holders.
        ExclusiveAccessAllRegistrants = 0x8 => "exclusive access - all registrants",
    }
}

code_fields!(PersistentReserveInAction, PersistentReserveOutAction, ReservationType);

#[cfg(test)]
mod tests {
    use super::super::CdbWidth;
    use super::*;

    #[test]
    fn reserve_both_ways_in_every_width() {
        assert_both_ways!(
            Reserve {
                width: CdbWidth::Six,
                third_party: true,
                third_party_device_id: 5,
                extent: true,
                reservation_identification: 9,
                parameter_list_len: 0x0102
            },
            [0x16, 0x1b, 9, 1, 2, 0],
            "RESERVE(6) third_party third_party_device_id 0x05 extent reservation_identification 0x09 \
             parameter_list_len 258"
        );
        assert_both_ways!(
            Reserve { third_party: true, third_party_device_id: 0x77, long_id: true, parameter_list_len: 8 },
            [0x56, 0x12, 0, 0x77, 0, 0, 0, 0, 8, 0],
            "RESERVE(10) third_party third_party_device_id 0x77 long_id parameter_list_len 8"
        );
    }

    #[test]
    fn release_both_ways_in_every_width() {
        assert_both_ways!(
            Release { width: CdbWidth::Six, third_party: true, third_party_device_id: 5 },
            [0x17, 0x1a, 0, 0, 0, 0],
            "RELEASE(6) third_party third_party_device_id 0x05 parameter_list_len 0"
        );
        assert_both_ways!(
            Release { long_id: true, extent: true, reservation_identification: 3, parameter_list_len: 8 },
            [0x57, 0x03, 3, 0, 0, 0, 0, 0, 8, 0],
            "RELEASE(10) long_id extent reservation_identification 0x03 parameter_list_len 8"
        );
    }

    #[test]
    fn persistent_reserve_in_both_ways() {
        assert_both_ways!(
            PersistentReserveIn {
                service_action: PersistentReserveInAction::ReadFullStatus,
                allocation_len: 0x0102
            },
            [0x5e, 0x03, 0, 0, 0, 0, 0, 1, 2, 0],
            "PERSISTENT RESERVE IN READ FULL STATUS allocation_len 258"
        );
    }

    #[test]
    fn persistent_reserve_out_both_ways() {
        assert_both_ways!(
            PersistentReserveOut {
                service_action: PersistentReserveOutAction::PreemptAndAbort,
                scope: 0x0f,
                reservation_type: ReservationType::ExclusiveAccessRegistrantsOnly,
                parameter_list_len: 24
            },
            [0x5f, 0x05, 0xf6, 0, 0, 0, 0, 0, 24, 0],
            "PERSISTENT RESERVE OUT PREEMPT AND ABORT scope 0x0f exclusive access - registrants only \
             parameter_list_len 24"
        );
    }
}
