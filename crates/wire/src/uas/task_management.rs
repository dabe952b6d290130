//! TASK MANAGEMENT information unit (UAS-2 clause 6.2.7).

use super::header::{IuId, expect_id};
use crate::DecodeError;
use core::fmt;

/// One task management function on its way to the device.
///
/// ```text
///  0      id (05h)                  5      reserved
///  1      reserved                  6..8   TAG OF TASK TO BE MANAGED
///  2..4   tag                       8..16  LOGICAL UNIT NUMBER
///  4      TASK MANAGEMENT FUNCTION
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskManagementIu {
    /// Names the function itself; its RESPONSE IU carries it.
    pub tag: u16,
    /// Task management function to perform.
    pub function: TaskManagementFunction,
    /// The command meant by ABORT TASK and QUERY TASK; the other functions ignore it.
    pub managed_tag: u16,
    /// The eight bytes of the logical unit number (SAM-5 clause 4.7); I_T NEXUS RESET ignores it.
    pub lun: [u8; 8],
}

code! {
    /// Task management function (UAS-2 clause 6.2.7; what each does: SAM-5 clause 7).
    pub enum TaskManagementFunction: u8 {
        /// Ends one command of this host, without a status.
        AbortTask = 0x01 => "ABORT TASK",
        /// Ends this host's commands at the unit.
        AbortTaskSet = 0x02 => "ABORT TASK SET",
        /// Ends every host's commands at the unit.
        ClearTaskSet = 0x04 => "CLEAR TASK SET",
        /// Brings the unit back to its state after power on, in what matters.
        LogicalUnitReset = 0x08 => "LOGICAL UNIT RESET",
        /// Ends everything between this host and the device, at every unit.
        ItNexusReset = 0x10 => "I_T NEXUS RESET",
        /// Ends an auto contingent allegiance.
        ClearAca = 0x40 => "CLEAR ACA",
        /// Asks whether one command is in the task set.
        QueryTask = 0x80 => "QUERY TASK",
        /// Asks whether any command of this host is in the task set.
        QueryTaskSet = 0x81 => "QUERY TASK SET",
        /// Asks whether a unit attention condition is pending.
        QueryAsynchronousEvent = 0x82 => "QUERY ASYNCHRONOUS EVENT",
    }
}

impl TaskManagementIu {
    /// Bytes of the IU.
    pub const LEN: usize = 16;

    /// Decodes an IU; bytes past it are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let iu = bytes
            .first_chunk::<16>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        expect_id(IuId::TaskManagement, iu[0])?;
        Ok(Self {
            tag: u16::from_be_bytes([iu[2], iu[3]]),
            function: TaskManagementFunction::from(iu[4]),
            managed_tag: u16::from_be_bytes([iu[6], iu[7]]),
            lun: [iu[8], iu[9], iu[10], iu[11], iu[12], iu[13], iu[14], iu[15]],
        })
    }

    /// The whole IU.
    pub fn encode(&self) -> [u8; 16] {
        let (tag, managed) = (self.tag.to_be_bytes(), self.managed_tag.to_be_bytes());
        let [l0, l1, l2, l3, l4, l5, l6, l7] = self.lun;
        let (id, function) = (IuId::TaskManagement.into(), self.function.into());
        let [m0, m1] = managed;
        [id, 0, tag[0], tag[1], function, 0, m0, m1, l0, l1, l2, l3, l4, l5, l6, l7]
    }
}

impl fmt::Display for TaskManagementIu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TASK MANAGEMENT tag {} {}", self.tag, self.function)?;
        match self.function {
            TaskManagementFunction::AbortTask | TaskManagementFunction::QueryTask => {
                write!(f, " of tag {}", self.managed_tag)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// ABORT TASK of tag 0x0304 at LUN 2, itself tag 9.
    const ABORT_TASK: [u8; 16] =
        [0x05, 0x00, 0x00, 0x09, 0x01, 0x00, 0x03, 0x04, 0x00, 0x02, 0, 0, 0, 0, 0, 0];

    #[test]
    fn literal_bytes_both_ways() {
        let iu = TaskManagementIu::decode(&ABORT_TASK).unwrap();
        assert_eq!(iu.tag, 9);
        assert_eq!(iu.function, TaskManagementFunction::AbortTask);
        assert_eq!(iu.managed_tag, 0x0304);
        assert_eq!(iu.lun, [0, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(iu.encode(), ABORT_TASK);
        assert_eq!(iu.to_string(), "TASK MANAGEMENT tag 9 ABORT TASK of tag 772");
    }

    #[test]
    fn the_nine_functions_of_the_standard() {
        let codes = [0x01, 0x02, 0x04, 0x08, 0x10, 0x40, 0x80, 0x81, 0x82].map(TaskManagementFunction::from);
        let expected = [
            TaskManagementFunction::AbortTask,
            TaskManagementFunction::AbortTaskSet,
            TaskManagementFunction::ClearTaskSet,
            TaskManagementFunction::LogicalUnitReset,
            TaskManagementFunction::ItNexusReset,
            TaskManagementFunction::ClearAca,
            TaskManagementFunction::QueryTask,
            TaskManagementFunction::QueryTaskSet,
            TaskManagementFunction::QueryAsynchronousEvent,
        ];
        assert_eq!(codes, expected);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..ABORT_TASK.len() {
            let error = TaskManagementIu::decode(&ABORT_TASK[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 16, got: len });
        }
    }

    #[test]
    fn another_id_is_another_kind() {
        let mut bytes = ABORT_TASK;
        bytes[0] = 0x01;
        assert_eq!(TaskManagementIu::decode(&bytes), Err(DecodeError::WrongKind { expected: 5, found: 1 }));
    }

    #[test]
    fn an_unknown_function_survives() {
        let mut bytes = ABORT_TASK;
        bytes[4] = 0x20;
        let iu = TaskManagementIu::decode(&bytes).unwrap();
        assert_eq!(iu.function, TaskManagementFunction::Unknown(0x20));
        assert_eq!(iu.encode(), bytes);
        assert_eq!(iu.to_string(), "TASK MANAGEMENT tag 9 unknown (0x20)");
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..32)) {
            let _ = TaskManagementIu::decode(&bytes);
        }

        #[test]
        fn decode_undoes_encode(tag: u16, function: u8, managed_tag: u16, lun: [u8; 8]) {
            let iu = TaskManagementIu { tag, function: function.into(), managed_tag, lun };
            prop_assert_eq!(TaskManagementIu::decode(&iu.encode()).unwrap(), iu);
        }
    }
}
