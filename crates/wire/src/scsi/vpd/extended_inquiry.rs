//! Extended INQUIRY data, page 86h (SPC-5): what standard INQUIRY data has no room for.
//!
//! Left out: the NRD bits, the download modes and depopulation fields that later drafts put past byte 18.

use super::header::{VpdPageCode, blank, whole_of};
use crate::DecodeError;
use crate::scsi::inquiry::Peripheral;
use crate::scsi::layout::{be16, bit, bits, set_bit, set_bits};
use core::fmt;

/// More of what the unit supports.
///
/// ```text
///  4      ACTIVATE MICROCODE (7:6), SPT (5:3), GRD_CHK (2), APP_CHK (1), REF_CHK (0)
///  5      UASK_SUP (5), GROUP_SUP (4), PRIOR_SUP (3), HEADSUP (2), ORDSUP (1), SIMPSUP (0)
///  6      WU_SUP (3), CRD_SUP (2), NV_SUP (1), V_SUP (0)
///  7      NO_PI_CHK (5), P_I_I_SUP (4), LUICLR (0)
///  8      LU COLLECTION TYPE (7:5), R_SUP (4), RTD_SUP (3), HSSRELEF (1), CBCS (0)
///  9      multi I_T nexus microcode download (3:0)
/// 10..12  extended self-test completion minutes
/// 12      POA_SUP (7), HRA_SUP (6), VSA_SUP (5), DMS_VALID (4)
/// 13      maximum supported sense data length
/// 14      IBS (7), IAS (6), SAC (2)
/// 15..17  maximum INQUIRY change logs
/// 17..19  maximum mode page change logs
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtendedInquiry {
    /// ACTIVATE MICROCODE, two bits: how downloaded microcode becomes active.
    pub activate_microcode: u8,
    /// SPT, three bits: the protection types that a format may choose (0: type 1, 1: 1 and 2, …, 7: all).
    #[doc(alias = "SPT")]
    pub supported_protection_types: u8,
    /// The guard of protection information is checked.
    #[doc(alias = "GRD_CHK")]
    pub guard_check: bool,
    /// The application tag is checked.
    #[doc(alias = "APP_CHK")]
    pub application_tag_check: bool,
    /// The reference tag is checked.
    #[doc(alias = "REF_CHK")]
    pub reference_tag_check: bool,
    /// Unit attentions carry the sense-key specific field.
    #[doc(alias = "UASK_SUP")]
    pub unit_attention_sense_key_specific: bool,
    /// The GROUP NUMBER of a CDB is supported.
    #[doc(alias = "GROUP_SUP")]
    pub grouping: bool,
    /// Command priority is supported.
    #[doc(alias = "PRIOR_SUP")]
    pub command_priority: bool,
    /// HEAD OF QUEUE is supported.
    #[doc(alias = "HEADSUP")]
    pub head_of_queue: bool,
    /// ORDERED is supported.
    #[doc(alias = "ORDSUP")]
    pub ordered: bool,
    /// SIMPLE is supported.
    #[doc(alias = "SIMPSUP")]
    pub simple: bool,
    /// WRITE UNCORRECTABLE is supported.
    #[doc(alias = "WU_SUP")]
    pub write_uncorrectable: bool,
    /// Correction can be disabled by WRITE LONG.
    #[doc(alias = "CRD_SUP")]
    pub correction_disable: bool,
    /// There is a non-volatile cache.
    #[doc(alias = "NV_SUP")]
    pub non_volatile_cache: bool,
    /// There is a volatile cache.
    #[doc(alias = "V_SUP")]
    pub volatile_cache: bool,
    /// Protection checking can be disabled by VRPROTECT and its like.
    #[doc(alias = "NO_PI_CHK")]
    pub no_protection_check: bool,
    /// More than one protection interval per block is supported.
    #[doc(alias = "P_I_I_SUP")]
    pub protection_interval: bool,
    /// REPORTED LUNS DATA HAS CHANGED is cleared for all units of an I_T nexus once one has reported it.
    #[doc(alias = "LUICLR")]
    pub luns_changed_cleared_per_nexus: bool,
    /// LU COLLECTION TYPE, three bits.
    pub logical_unit_collection_type: u8,
    /// Referrals are supported.
    #[doc(alias = "R_SUP")]
    pub referrals: bool,
    /// A revert to defaults of mode pages is supported.
    #[doc(alias = "RTD_SUP")]
    pub revert_to_defaults: bool,
    /// HSSRELEF: how releasing a history snapshot affects others.
    #[doc(alias = "HSSRELEF")]
    pub history_snapshot_release: bool,
    /// Capability-based command security (obsolete since SPC-5).
    #[doc(alias = "CBCS")]
    pub capability_based_security: bool,
    /// MULTI I_T NEXUS MICROCODE DOWNLOAD, four bits.
    pub multi_nexus_microcode_download: u8,
    /// EXTENDED SELF-TEST COMPLETION MINUTES; 0: not reported.
    pub extended_self_test_minutes: u16,
    /// Power-on activation of microcode is supported.
    #[doc(alias = "POA_SUP")]
    pub power_on_activation: bool,
    /// Hard-reset activation of microcode is supported.
    #[doc(alias = "HRA_SUP")]
    pub hard_reset_activation: bool,
    /// Vendor-specific activation of microcode is supported.
    #[doc(alias = "VSA_SUP")]
    pub vendor_specific_activation: bool,
    /// The download microcode support bytes (19 on, left out here) count.
    #[doc(alias = "DMS_VALID")]
    pub download_support_valid: bool,
    /// MAXIMUM SUPPORTED SENSE DATA LENGTH in bytes; 0: not reported.
    pub maximum_sense_length: u8,
    /// Bind of an implicit subsidiary unit is supported.
    #[doc(alias = "IBS")]
    pub implicit_bind: bool,
    /// Implicit affiliation is supported.
    #[doc(alias = "IAS")]
    pub implicit_affiliation: bool,
    /// SET AFFILIATION is supported.
    #[doc(alias = "SAC")]
    pub set_affiliation: bool,
    /// MAXIMUM INQUIRY CHANGE LOGS.
    pub maximum_inquiry_change_logs: u16,
    /// MAXIMUM MODE PAGE CHANGE LOGS.
    pub maximum_mode_page_change_logs: u16,
}

impl ExtendedInquiry {
    /// Bytes with the header.
    pub const LEN: usize = 64;

    /// Decodes the page; fields past its end are zero.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let page: [u8; Self::LEN] = whole_of(VpdPageCode::ExtendedInquiry, bytes)?;
        Ok(Self {
            activate_microcode: bits::<7, 6>(page[4]),
            supported_protection_types: bits::<5, 3>(page[4]),
            guard_check: bit::<2>(page[4]),
            application_tag_check: bit::<1>(page[4]),
            reference_tag_check: bit::<0>(page[4]),
            unit_attention_sense_key_specific: bit::<5>(page[5]),
            grouping: bit::<4>(page[5]),
            command_priority: bit::<3>(page[5]),
            head_of_queue: bit::<2>(page[5]),
            ordered: bit::<1>(page[5]),
            simple: bit::<0>(page[5]),
            write_uncorrectable: bit::<3>(page[6]),
            correction_disable: bit::<2>(page[6]),
            non_volatile_cache: bit::<1>(page[6]),
            volatile_cache: bit::<0>(page[6]),
            no_protection_check: bit::<5>(page[7]),
            protection_interval: bit::<4>(page[7]),
            luns_changed_cleared_per_nexus: bit::<0>(page[7]),
            logical_unit_collection_type: bits::<7, 5>(page[8]),
            referrals: bit::<4>(page[8]),
            revert_to_defaults: bit::<3>(page[8]),
            history_snapshot_release: bit::<1>(page[8]),
            capability_based_security: bit::<0>(page[8]),
            multi_nexus_microcode_download: bits::<3, 0>(page[9]),
            extended_self_test_minutes: be16::<10, _>(&page),
            power_on_activation: bit::<7>(page[12]),
            hard_reset_activation: bit::<6>(page[12]),
            vendor_specific_activation: bit::<5>(page[12]),
            download_support_valid: bit::<4>(page[12]),
            maximum_sense_length: page[13],
            implicit_bind: bit::<7>(page[14]),
            implicit_affiliation: bit::<6>(page[14]),
            set_affiliation: bit::<2>(page[14]),
            maximum_inquiry_change_logs: be16::<15, _>(&page),
            maximum_mode_page_change_logs: be16::<17, _>(&page),
        })
    }

    /// The 64 bytes on the wire.
    pub fn encode(&self, peripheral: Peripheral) -> [u8; 64] {
        let mut out: [u8; Self::LEN] = blank(VpdPageCode::ExtendedInquiry, peripheral);
        out[4] = set_bits::<7, 6>(self.activate_microcode)
            | set_bits::<5, 3>(self.supported_protection_types)
            | set_bit::<2>(self.guard_check)
            | set_bit::<1>(self.application_tag_check)
            | set_bit::<0>(self.reference_tag_check);
        out[5] = set_bit::<5>(self.unit_attention_sense_key_specific)
            | set_bit::<4>(self.grouping)
            | set_bit::<3>(self.command_priority)
            | set_bit::<2>(self.head_of_queue)
            | set_bit::<1>(self.ordered)
            | set_bit::<0>(self.simple);
        out[6] = set_bit::<3>(self.write_uncorrectable)
            | set_bit::<2>(self.correction_disable)
            | set_bit::<1>(self.non_volatile_cache)
            | set_bit::<0>(self.volatile_cache);
        out[7] = set_bit::<5>(self.no_protection_check)
            | set_bit::<4>(self.protection_interval)
            | set_bit::<0>(self.luns_changed_cleared_per_nexus);
        out[8] = set_bits::<7, 5>(self.logical_unit_collection_type)
            | set_bit::<4>(self.referrals)
            | set_bit::<3>(self.revert_to_defaults)
            | set_bit::<1>(self.history_snapshot_release)
            | set_bit::<0>(self.capability_based_security);
        out[9] = set_bits::<3, 0>(self.multi_nexus_microcode_download);
        out[10..12].copy_from_slice(&self.extended_self_test_minutes.to_be_bytes());
        out[12] = set_bit::<7>(self.power_on_activation)
            | set_bit::<6>(self.hard_reset_activation)
            | set_bit::<5>(self.vendor_specific_activation)
            | set_bit::<4>(self.download_support_valid);
        out[13] = self.maximum_sense_length;
        out[14] = set_bit::<7>(self.implicit_bind)
            | set_bit::<6>(self.implicit_affiliation)
            | set_bit::<2>(self.set_affiliation);
        out[15..17].copy_from_slice(&self.maximum_inquiry_change_logs.to_be_bytes());
        out[17..19].copy_from_slice(&self.maximum_mode_page_change_logs.to_be_bytes());
        out
    }
}

impl fmt::Display for ExtendedInquiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { simple, ordered, head_of_queue, volatile_cache, .. } = self;
        write!(f, "simple {simple}, ordered {ordered}, head of queue {head_of_queue}, ")?;
        write!(f, "volatile cache {volatile_cache}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let mut bytes = [0; 64];
        bytes[..19].copy_from_slice(&[
            0x00, 0x86, 0x00, 0x3c, 0x7d, 0x27, 0x01, 0x20, 0x50, 0x03, 0x00, 0x02, 0x80, 0xfc, 0x04, 0x00,
            0x05, 0x00, 0x06,
        ]);
        let expected = ExtendedInquiry {
            activate_microcode: 1,
            supported_protection_types: 7,
            guard_check: true,
            reference_tag_check: true,
            unit_attention_sense_key_specific: true,
            head_of_queue: true,
            ordered: true,
            simple: true,
            volatile_cache: true,
            no_protection_check: true,
            logical_unit_collection_type: 2,
            referrals: true,
            multi_nexus_microcode_download: 3,
            extended_self_test_minutes: 2,
            power_on_activation: true,
            maximum_sense_length: 252,
            set_affiliation: true,
            maximum_inquiry_change_logs: 5,
            maximum_mode_page_change_logs: 6,
            ..ExtendedInquiry::default()
        };
        assert_eq!(ExtendedInquiry::decode(&bytes), Ok(expected));
        assert_eq!(expected.encode(Peripheral::DISK), bytes);
    }

    #[test]
    fn every_bit_has_its_own_field() {
        // All defined bits; the reserved ones are cleared here as encode clears them.
        let masks =
            [0xff, 0x3f, 0x0f, 0x31, 0xfb, 0x0f, 0xff, 0xff, 0xf0, 0xff, 0xc4, 0xff, 0xff, 0xff, 0xff];
        for (at, mask) in masks.into_iter().enumerate() {
            for bit in (0..8).map(|n| 1 << n).filter(|bit| mask & bit != 0) {
                let mut bytes = [0; 64];
                bytes[..4].copy_from_slice(&[0x00, 0x86, 0x00, 0x3c]);
                bytes[4 + at] = bit;
                let decoded = ExtendedInquiry::decode(&bytes).unwrap();
                assert_eq!(decoded.encode(Peripheral::DISK), bytes);
            }
        }
    }
}
