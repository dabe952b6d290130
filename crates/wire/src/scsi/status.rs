//! The status that ends a command, and its qualifier (SAM-5 clause 5.3).

code! {
    /// Status code (SAM-5 table 36): one byte in a SENSE IU; Bulk-Only Transport has no room for it.
    pub enum Status: u8 {
        /// Done, nothing to report.
        Good = 0x00 => "GOOD",
        /// Sense data says what is the matter.
        CheckCondition = 0x02 => "CHECK CONDITION",
        /// PRE-FETCH: everything asked for fits into the cache.
        ConditionMet = 0x04 => "CONDITION MET",
        /// The unit cannot take the command now; the host may send it again.
        Busy = 0x08 => "BUSY",
        /// Another host holds a reservation that the command goes against.
        ReservationConflict = 0x18 => "RESERVATION CONFLICT",
        /// No room for another command; those in the task set go on.
        TaskSetFull = 0x28 => "TASK SET FULL",
        /// An auto contingent allegiance stands and the command may not pass it.
        AcaActive = 0x30 => "ACA ACTIVE",
        /// Aborted on behalf of another host, with the TAS bit set.
        TaskAborted = 0x40 => "TASK ABORTED",
    }
}

/// STATUS QUALIFIER, the two bytes beside a status (SAM-5 clause 5.3.2): scope in bits 15:14, qualifier in 13:0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusQualifier(pub u16);

impl StatusQualifier {
    /// Beside BUSY and TASK SET FULL: how long not to send the command again, in units of 100 ms, if the device says so
    /// (1 to 3FEFh).
    pub const fn retry_after_100_ms(self) -> Option<u16> {
        match self.0 & 0x3fff {
            0 | 0x3ff0.. => None,
            hundreds_of_ms => Some(hundreds_of_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_codes_of_the_standard() {
        let codes = [0x00, 0x02, 0x04, 0x08, 0x18, 0x28, 0x30, 0x40].map(Status::from);
        let expected = [
            Status::Good,
            Status::CheckCondition,
            Status::ConditionMet,
            Status::Busy,
            Status::ReservationConflict,
            Status::TaskSetFull,
            Status::AcaActive,
            Status::TaskAborted,
        ];
        assert_eq!(codes, expected);
        assert_eq!(Status::TaskSetFull.to_string(), "TASK SET FULL");
    }

    #[test]
    fn a_qualifier_says_when_to_try_again() {
        assert_eq!(StatusQualifier(0x0000).retry_after_100_ms(), None);
        assert_eq!(StatusQualifier(0x4003).retry_after_100_ms(), Some(3));
        assert_eq!(StatusQualifier(0x3fef).retry_after_100_ms(), Some(0x3fef));
        assert_eq!(StatusQualifier(0xfff0).retry_after_100_ms(), None);
    }

    #[test]
    fn an_obsolete_code_survives() {
        assert_eq!(Status::from(0x22), Status::Unknown(0x22)); // COMMAND TERMINATED, SCSI-2
        assert_eq!(u8::from(Status::Unknown(0x22)), 0x22);
    }
}
