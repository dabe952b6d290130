//! REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS parameter data (SPC-5).

use super::layout::{be32, bit, set_bit};
use crate::DecodeError;
use core::fmt;

/// The task management functions that the unit supports.
///
/// ```text
///  0      ATS (7), ATSS (6), CACAS (5), CTSS (4), LURS (3), QTS (2)
///  1      QAES (2), QTSS (1), ITNRS (0)
///  3      additional length (0, or 12 in the extended form)
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SupportedTaskManagement {
    /// ABORT TASK.
    #[doc(alias = "ATS")]
    pub abort_task: bool,
    /// ABORT TASK SET.
    #[doc(alias = "ATSS")]
    pub abort_task_set: bool,
    /// CLEAR ACA.
    #[doc(alias = "CACAS")]
    pub clear_aca: bool,
    /// CLEAR TASK SET.
    #[doc(alias = "CTSS")]
    pub clear_task_set: bool,
    /// LOGICAL UNIT RESET.
    #[doc(alias = "LURS")]
    pub logical_unit_reset: bool,
    /// QUERY TASK.
    #[doc(alias = "QTS")]
    pub query_task: bool,
    /// QUERY ASYNCHRONOUS EVENT.
    #[doc(alias = "QAES")]
    pub query_asynchronous_event: bool,
    /// QUERY TASK SET.
    #[doc(alias = "QTSS")]
    pub query_task_set: bool,
    /// I_T NEXUS RESET.
    #[doc(alias = "ITNRS")]
    pub i_t_nexus_reset: bool,
    /// The extended form, asked for by REPD.
    #[doc(alias = "REPD")]
    pub timeouts: Option<TaskManagementTimeouts>,
}

/// How long task management takes: bytes 4 to 15.
///
/// ```text
///  4      reserved                     8..12  long timeout
///  5      TMFTMOV (0)                 12..16  short timeout
///  6      ATTS (7), ATSTS (6), CACATS (5), CTSTS (4), LURTS (3), QTTS (2)
///  7      QAETS (2), QTSTS (1), ITNRTS (0)
/// ```
/// The bits of bytes 6 and 7, which function takes the short one, are stored as one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskManagementTimeouts {
    /// TMFTMOV: the timeouts count.
    #[doc(alias = "TMFTMOV")]
    pub valid: bool,
    /// Bytes 6 and 7.
    pub short_functions: [u8; 2],
    /// TASK MANAGEMENT FUNCTIONS LONG TIMEOUT in units of 100 ms.
    pub long_100_ms: u32,
    /// TASK MANAGEMENT FUNCTIONS SHORT TIMEOUT in units of 100 ms.
    pub short_100_ms: u32,
}

impl SupportedTaskManagement {
    /// Bytes of the basic form.
    pub const LEN: usize = 4;
    /// Bytes of the extended form.
    pub const LEN_MAX: usize = 16;

    /// Decodes either form.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (head, rest) = bytes
            .split_first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        let timeouts = if head[3] < 12 {
            None
        } else {
            let truncated = DecodeError::Truncated { needed: Self::LEN_MAX, got: bytes.len() };
            let more = rest.first_chunk::<12>().ok_or(truncated)?;
            Some(TaskManagementTimeouts {
                valid: bit::<0>(more[1]),
                short_functions: [more[2], more[3]],
                long_100_ms: be32::<4, _>(more),
                short_100_ms: be32::<8, _>(more),
            })
        };
        Ok(Self {
            abort_task: bit::<7>(head[0]),
            abort_task_set: bit::<6>(head[0]),
            clear_aca: bit::<5>(head[0]),
            clear_task_set: bit::<4>(head[0]),
            logical_unit_reset: bit::<3>(head[0]),
            query_task: bit::<2>(head[0]),
            query_asynchronous_event: bit::<2>(head[1]),
            query_task_set: bit::<1>(head[1]),
            i_t_nexus_reset: bit::<0>(head[1]),
            timeouts,
        })
    }

    /// Sixteen bytes, of which the first [`Self::encoded_len`] count.
    pub fn encode(&self) -> [u8; 16] {
        let mut out = [0; Self::LEN_MAX];
        out[0] = set_bit::<7>(self.abort_task)
            | set_bit::<6>(self.abort_task_set)
            | set_bit::<5>(self.clear_aca)
            | set_bit::<4>(self.clear_task_set)
            | set_bit::<3>(self.logical_unit_reset)
            | set_bit::<2>(self.query_task);
        out[1] = set_bit::<2>(self.query_asynchronous_event)
            | set_bit::<1>(self.query_task_set)
            | set_bit::<0>(self.i_t_nexus_reset);
        if let Some(timeouts) = &self.timeouts {
            out[3] = 12;
            out[5] = set_bit::<0>(timeouts.valid);
            out[6..8].copy_from_slice(&timeouts.short_functions);
            out[8..12].copy_from_slice(&timeouts.long_100_ms.to_be_bytes());
            out[12..].copy_from_slice(&timeouts.short_100_ms.to_be_bytes());
        }
        out
    }

    /// Bytes on the wire: 4, or 16 with timeouts.
    pub const fn encoded_len(&self) -> usize {
        if self.timeouts.is_some() { Self::LEN_MAX } else { Self::LEN }
    }
}

impl fmt::Display for SupportedTaskManagement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, ..] = self.encode();
        write!(f, "{} task management functions", first.count_ones() + second.count_ones())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn the_basic_form_both_ways() {
        let all = SupportedTaskManagement {
            abort_task: true,
            abort_task_set: true,
            clear_aca: true,
            clear_task_set: true,
            logical_unit_reset: true,
            query_task: true,
            query_asynchronous_event: true,
            query_task_set: true,
            i_t_nexus_reset: true,
            timeouts: None,
        };
        assert_eq!(SupportedTaskManagement::decode(&[0xfc, 0x07, 0, 0]), Ok(all));
        assert_eq!(all.encode()[..all.encoded_len()], [0xfc, 0x07, 0, 0]);
        assert_eq!(all.to_string(), "9 task management functions");
    }

    #[test]
    fn the_extended_form_both_ways() {
        let bytes = [0x88, 0x01, 0, 0x0c, 0, 0x01, 0x80, 0x01, 0, 0, 0, 100, 0, 0, 0, 10];
        let timeouts = TaskManagementTimeouts {
            valid: true,
            short_functions: [0x80, 0x01],
            long_100_ms: 100,
            short_100_ms: 10,
        };
        let supported = SupportedTaskManagement {
            abort_task: true,
            logical_unit_reset: true,
            i_t_nexus_reset: true,
            timeouts: Some(timeouts),
            ..SupportedTaskManagement::default()
        };
        assert_eq!(SupportedTaskManagement::decode(&bytes), Ok(supported));
        assert_eq!(supported.encode()[..supported.encoded_len()], bytes);
        for got in 0..16 {
            let error = DecodeError::Truncated { needed: if got < 4 { 4 } else { 16 }, got };
            assert_eq!(SupportedTaskManagement::decode(&bytes[..got]), Err(error));
        }
    }

    proptest! {
        #[test]
        fn what_decodes_round_trips(bytes: [u8; 16]) {
            let supported = SupportedTaskManagement::decode(&bytes).unwrap();
            prop_assert_eq!(SupportedTaskManagement::decode(&supported.encode()), Ok(supported));
        }
    }
}
