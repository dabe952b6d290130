//! Control mode page, 0Ah (SPC-5).

use super::{ModePageCode, blank, whole_of};
use crate::DecodeError;
use crate::scsi::layout::{be16, bit, bits, set_bit, set_bits};
use core::fmt;

/// Task set, sense format, unit attention, write protection.
///
/// ```text
///  2      TST (7:5), TMF_ONLY (4), DPICZ (3), D_SENSE (2), GLTSD (1), RLEC (0)
///  3      queue algorithm modifier (7:4), NUAR (3), QERR (2:1)
///  4      RAC (6), UA_INTLCK_CTRL (5:4), SWP (3)
///  5      ATO (7), TAS (6), ATMPE (5), RWWP (4), SBLP (3), autoload mode (2:0)
///  8..10  busy timeout period
/// 10..12  extended self-test completion time
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlPage {
    /// TST: whom a task set belongs to.
    #[doc(alias = "TST")]
    pub task_set_type: TaskSetType,
    /// During an ACA, only task management functions of the faulted nexus are let in.
    #[doc(alias = "TMF_ONLY")]
    pub task_management_only: bool,
    /// A protection field of zero in a CDB stands for no check.
    #[doc(alias = "DPICZ")]
    pub disable_protection_check_if_zero: bool,
    /// Sense data is in descriptor format.
    #[doc(alias = "D_SENSE")]
    pub descriptor_sense: bool,
    /// Target save of log parameters is off.
    #[doc(alias = "GLTSD")]
    pub log_target_save_disable: bool,
    /// A log parameter that reaches its limit is reported.
    #[doc(alias = "RLEC")]
    pub report_log_exception: bool,
    /// QUEUE ALGORITHM MODIFIER.
    pub queue_algorithm: QueueAlgorithm,
    /// A unit attention on release is not established.
    #[doc(alias = "NUAR")]
    pub no_unit_attention_on_release: bool,
    /// QERR: what a CHECK CONDITION does to other commands.
    #[doc(alias = "QERR")]
    pub queue_error: QueueErrorManagement,
    /// CHECK CONDITION may take the place of a long BUSY.
    #[doc(alias = "RAC")]
    pub report_a_check: bool,
    /// UA_INTLCK_CTRL: when a unit attention is cleared.
    #[doc(alias = "UA_INTLCK_CTRL")]
    pub unit_attention_interlock: UnitAttentionInterlock,
    /// Software write protect.
    #[doc(alias = "SWP")]
    pub software_write_protect: bool,
    /// The application tag is the application client's.
    #[doc(alias = "ATO")]
    pub application_tag_owner: bool,
    /// A command that another nexus aborted ends with TASK ABORTED.
    #[doc(alias = "TAS")]
    pub task_aborted_status: bool,
    /// The application tag mode page counts.
    #[doc(alias = "ATMPE")]
    pub application_tag_mode_page: bool,
    /// A write without protection information is refused.
    #[doc(alias = "RWWP")]
    pub reject_write_without_protection: bool,
    /// Supported block lengths and protection information: the page of that name counts.
    #[doc(alias = "SBLP")]
    pub supported_block_lengths: bool,
    /// AUTOLOAD MODE, three bits.
    pub autoload_mode: u8,
    /// BUSY TIMEOUT PERIOD in units of 100 ms; FFFFh: no limit.
    pub busy_timeout_100_ms: u16,
    /// EXTENDED SELF-TEST COMPLETION TIME in seconds; FFFFh: see VPD page 86h.
    pub extended_self_test_s: u16,
}

code! {
    /// TST, three bits.
    pub enum TaskSetType: u8 {
        /// One task set for all I_T nexuses.
        Shared = 0x00 => "one task set",
        /// One task set for each I_T nexus.
        PerNexus = 0x01 => "one task set per I_T nexus",
    }
}

code! {
    /// QUEUE ALGORITHM MODIFIER, four bits.
    pub enum QueueAlgorithm: u8 {
        /// Simple commands of a nexus keep the order that data integrity asks for.
        Restricted = 0x00 => "restricted reordering",
        /// Simple commands may be in any order.
        Unrestricted = 0x01 => "unrestricted reordering",
    }
}

code! {
    /// QERR, two bits.
    pub enum QueueErrorManagement: u8 {
        /// Nothing.
        Continue = 0x00 => "others go on",
        /// All commands of the task set are aborted.
        AbortAll = 0x01 => "all aborted",
        /// All commands of the nexus are aborted.
        AbortNexus = 0x03 => "all of the I_T nexus aborted",
    }
}

code! {
    /// UA_INTLCK_CTRL, two bits.
    pub enum UnitAttentionInterlock: u8 {
        /// Reporting it clears it.
        Clear = 0x00 => "cleared when reported",
        /// Only REQUEST SENSE clears it.
        Keep = 0x02 => "kept when reported",
        /// As `Keep`; BUSY, TASK SET FULL and RESERVATION CONFLICT establish one.
        Establish = 0x03 => "kept, and established by status",
    }
}

impl ControlPage {
    /// All zeroes: one task set, restricted reordering, fixed format sense.
    pub const ZEROES: Self = Self {
        task_set_type: TaskSetType::Shared,
        task_management_only: false,
        disable_protection_check_if_zero: false,
        descriptor_sense: false,
        log_target_save_disable: false,
        report_log_exception: false,
        queue_algorithm: QueueAlgorithm::Restricted,
        no_unit_attention_on_release: false,
        queue_error: QueueErrorManagement::Continue,
        report_a_check: false,
        unit_attention_interlock: UnitAttentionInterlock::Clear,
        software_write_protect: false,
        application_tag_owner: false,
        task_aborted_status: false,
        application_tag_mode_page: false,
        reject_write_without_protection: false,
        supported_block_lengths: false,
        autoload_mode: 0,
        busy_timeout_100_ms: 0,
        extended_self_test_s: 0,
    };

    /// Bytes with the header.
    pub const LEN: usize = 12;

    /// Decodes the page at the front of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let page: &[u8; Self::LEN] = whole_of(ModePageCode::Control, None, bytes)?;
        Ok(Self {
            task_set_type: bits::<7, 5>(page[2]).into(),
            task_management_only: bit::<4>(page[2]),
            disable_protection_check_if_zero: bit::<3>(page[2]),
            descriptor_sense: bit::<2>(page[2]),
            log_target_save_disable: bit::<1>(page[2]),
            report_log_exception: bit::<0>(page[2]),
            queue_algorithm: bits::<7, 4>(page[3]).into(),
            no_unit_attention_on_release: bit::<3>(page[3]),
            queue_error: bits::<2, 1>(page[3]).into(),
            report_a_check: bit::<6>(page[4]),
            unit_attention_interlock: bits::<5, 4>(page[4]).into(),
            software_write_protect: bit::<3>(page[4]),
            application_tag_owner: bit::<7>(page[5]),
            task_aborted_status: bit::<6>(page[5]),
            application_tag_mode_page: bit::<5>(page[5]),
            reject_write_without_protection: bit::<4>(page[5]),
            supported_block_lengths: bit::<3>(page[5]),
            autoload_mode: bits::<2, 0>(page[5]),
            busy_timeout_100_ms: be16::<8, _>(page),
            extended_self_test_s: be16::<10, _>(page),
        })
    }

    /// The twelve bytes on the wire.
    pub fn encode(&self, saveable: bool) -> [u8; 12] {
        let mut out: [u8; Self::LEN] = blank(ModePageCode::Control, None, saveable);
        out[2] = set_bits::<7, 5>(self.task_set_type.into())
            | set_bit::<4>(self.task_management_only)
            | set_bit::<3>(self.disable_protection_check_if_zero)
            | set_bit::<2>(self.descriptor_sense)
            | set_bit::<1>(self.log_target_save_disable)
            | set_bit::<0>(self.report_log_exception);
        out[3] = set_bits::<7, 4>(self.queue_algorithm.into())
            | set_bit::<3>(self.no_unit_attention_on_release)
            | set_bits::<2, 1>(self.queue_error.into());
        out[4] = set_bit::<6>(self.report_a_check)
            | set_bits::<5, 4>(self.unit_attention_interlock.into())
            | set_bit::<3>(self.software_write_protect);
        out[5] = set_bit::<7>(self.application_tag_owner)
            | set_bit::<6>(self.task_aborted_status)
            | set_bit::<5>(self.application_tag_mode_page)
            | set_bit::<4>(self.reject_write_without_protection)
            | set_bit::<3>(self.supported_block_lengths)
            | set_bits::<2, 0>(self.autoload_mode);
        out[8..10].copy_from_slice(&self.busy_timeout_100_ms.to_be_bytes());
        out[10..].copy_from_slice(&self.extended_self_test_s.to_be_bytes());
        out
    }
}

impl Default for ControlPage {
    fn default() -> Self {
        Self::ZEROES
    }
}

impl fmt::Display for ControlPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task_set_type, queue_algorithm, descriptor_sense, software_write_protect, .. } = self;
        write!(f, "{task_set_type}, {queue_algorithm}, descriptor sense {descriptor_sense}, ")?;
        write!(f, "write protect {software_write_protect}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let bytes = [0x8a, 0x0a, 0x26, 0x16, 0x28, 0x41, 0, 0, 0x00, 0x64, 0x00, 0x3c];
        let page = ControlPage {
            task_set_type: TaskSetType::PerNexus,
            descriptor_sense: true,
            log_target_save_disable: true,
            queue_algorithm: QueueAlgorithm::Unrestricted,
            queue_error: QueueErrorManagement::AbortNexus,
            unit_attention_interlock: UnitAttentionInterlock::Keep,
            software_write_protect: true,
            task_aborted_status: true,
            autoload_mode: 1,
            busy_timeout_100_ms: 100,
            extended_self_test_s: 60,
            ..ControlPage::default()
        };
        assert_eq!(ControlPage::decode(&bytes), Ok(page));
        assert_eq!(page.encode(true), bytes);
        assert_eq!(ControlPage::default().encode(false), [0x0a, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn every_bit_has_its_own_field() {
        for (at, mask) in [(2, 0xff_u8), (3, 0xfe), (4, 0x78), (5, 0xff)] {
            for bit in (0..8).map(|n| 1 << n).filter(|bit| mask & bit != 0) {
                let mut bytes = [0x0a, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                bytes[at] = bit;
                assert_eq!(ControlPage::decode(&bytes).unwrap().encode(false), bytes);
            }
        }
    }

    #[test]
    fn unknown_codes_survive() {
        let bytes = [0x0a, 0x0a, 0xe0, 0xf4, 0x10, 0, 0, 0, 0, 0, 0, 0];
        let page = ControlPage::decode(&bytes).unwrap();
        assert_eq!(page.task_set_type, TaskSetType::Unknown(7));
        assert_eq!(page.queue_algorithm, QueueAlgorithm::Unknown(15));
        assert_eq!(page.queue_error, QueueErrorManagement::Unknown(2));
        assert_eq!(page.unit_attention_interlock, UnitAttentionInterlock::Unknown(1));
        assert_eq!(page.encode(false), bytes);
    }
}
