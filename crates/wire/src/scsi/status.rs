//! The status that ends a command (SAM-5 clause 5.3.1).

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
    fn an_obsolete_code_survives() {
        assert_eq!(Status::from(0x22), Status::Unknown(0x22)); // COMMAND TERMINATED, SCSI-2
        assert_eq!(u8::from(Status::Unknown(0x22)), 0x22);
    }
}
