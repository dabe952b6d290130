//! Logical block provisioning, page B2h (SBC-4): how blocks are mapped and unmapped.

use super::header::{VpdHeader, VpdPageCode, body_of, length_16};
use crate::scsi::inquiry::Peripheral;
use crate::scsi::layout::{bit, bits, set_bit, set_bits};
use crate::scsi::vpd::DesignationDescriptor;
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// Which ways to unmap there are, and what an unmapped block reads as.
///
/// ```text
///  4      threshold exponent
///  5      LBPU (7), LBPWS (6), LBPWS10 (5), LBPRZ (4:2), ANC_SUP (1), DP (0)
///  6      minimum percentage (7:3), provisioning type (2:0)
///  7      threshold percentage
///  8..    provisioning group descriptor, if DP
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogicalBlockProvisioning<'a> {
    /// THRESHOLD EXPONENT: a threshold counts in 2 to this power of blocks; 0: no thresholds.
    pub threshold_exponent: u8,
    /// UNMAP unmaps.
    #[doc(alias = "LBPU")]
    pub unmap: bool,
    /// WRITE SAME (16) unmaps.
    #[doc(alias = "LBPWS")]
    pub write_same_16: bool,
    /// WRITE SAME (10) unmaps.
    #[doc(alias = "LBPWS10")]
    pub write_same_10: bool,
    /// Data that reads of unmapped blocks return.
    #[doc(alias = "LBPRZ")]
    pub unmapped_reads: UnmappedReads,
    /// Blocks can be anchored.
    #[doc(alias = "ANC_SUP")]
    pub anchor: bool,
    /// MINIMUM PERCENTAGE (five bits); 0: not reported.
    pub minimum_percentage: u8,
    /// PROVISIONING TYPE.
    pub provisioning_type: ProvisioningType,
    /// THRESHOLD PERCENTAGE; 0: not reported.
    pub threshold_percentage: u8,
    /// PROVISIONING GROUP DESCRIPTOR: who shares the resources, if DP says that it is there.
    #[doc(alias = "DP")]
    pub provisioning_group: Option<DesignationDescriptor<'a>>,
}

code! {
    /// PROVISIONING TYPE, three bits.
    pub enum ProvisioningType: u8 {
        /// Not reported, or fully provisioned.
        NotReported = 0x00 => "not reported or full",
        /// Resource provisioned: every block has its place.
        Resource = 0x01 => "resource",
        /// Thin provisioned: there may be fewer places than blocks.
        Thin = 0x02 => "thin",
    }
}

code! {
    /// LBPRZ, three bits: what a read of an unmapped block returns.
    pub enum UnmappedReads: u8 {
        /// Data of the vendor's choice.
        VendorSpecific = 0x00 => "vendor specific",
        /// Zeroes.
        Zeroes = 0x01 => "zeroes",
        /// The provisioning initialization pattern.
        Pattern = 0x02 => "provisioning initialization pattern",
    }
}

impl<'a> LogicalBlockProvisioning<'a> {
    /// Bytes with the header, without a provisioning group descriptor.
    pub const LEN: usize = 8;

    /// Decodes the page.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let body = body_of(VpdPageCode::LogicalBlockProvisioning, bytes)?;
        let truncated = DecodeError::Truncated { needed: Self::LEN, got: VpdHeader::LEN + body.len() };
        let (page, group) = body.split_first_chunk::<4>().ok_or(truncated)?;
        let provisioning_group =
            if bit::<0>(page[1]) { Some(DesignationDescriptor::decode(group)?) } else { None };
        Ok(Self {
            threshold_exponent: page[0],
            unmap: bit::<7>(page[1]),
            write_same_16: bit::<6>(page[1]),
            write_same_10: bit::<5>(page[1]),
            unmapped_reads: bits::<4, 2>(page[1]).into(),
            anchor: bit::<1>(page[1]),
            minimum_percentage: bits::<7, 3>(page[2]),
            provisioning_type: bits::<2, 0>(page[2]).into(),
            threshold_percentage: page[3],
            provisioning_group,
        })
    }

    /// Writes the page; the answer is the bytes written.
    pub fn encode(&self, peripheral: Peripheral, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        let page = VpdPageCode::LogicalBlockProvisioning;
        writer.put(&VpdHeader { peripheral, page, page_length: 0 }.encode())?;
        writer.put(&[
            self.threshold_exponent,
            set_bit::<7>(self.unmap)
                | set_bit::<6>(self.write_same_16)
                | set_bit::<5>(self.write_same_10)
                | set_bits::<4, 2>(self.unmapped_reads.into())
                | set_bit::<1>(self.anchor)
                | set_bit::<0>(self.provisioning_group.is_some()),
            set_bits::<7, 3>(self.minimum_percentage) | set_bits::<2, 0>(self.provisioning_type.into()),
            self.threshold_percentage,
        ])?;
        if let Some(group) = &self.provisioning_group {
            group.put(&mut writer)?;
        }
        let page_length = length_16(writer.written() - VpdHeader::LEN)?;
        writer.patch(2, &page_length.to_be_bytes())?;
        Ok(writer.written())
    }
}

impl fmt::Display for LogicalBlockProvisioning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "provisioning {}, unmapped blocks read as {}", self.provisioning_type, self.unmapped_reads)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Association, CodeSet, Designator};
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let bytes = [0x00, 0xb2, 0x00, 0x04, 0x09, 0xe6, 0x2a, 0x50];
        let page = LogicalBlockProvisioning {
            threshold_exponent: 9,
            unmap: true,
            write_same_16: true,
            write_same_10: true,
            unmapped_reads: UnmappedReads::Zeroes,
            anchor: true,
            minimum_percentage: 5,
            provisioning_type: ProvisioningType::Thin,
            threshold_percentage: 80,
            provisioning_group: None,
        };
        assert_eq!(LogicalBlockProvisioning::decode(&bytes), Ok(page));
        let mut out = [0xff; 8];
        assert_eq!(page.encode(Peripheral::DISK, &mut out), Ok(8));
        assert_eq!(out, bytes);
    }

    #[test]
    fn a_provisioning_group_follows() {
        let bytes = [0x00, 0xb2, 0x00, 0x0a, 0, 0x81, 0x01, 0, 0x01, 0x00, 0, 2, 0xab, 0xcd];
        let page = LogicalBlockProvisioning::decode(&bytes).unwrap();
        let group = DesignationDescriptor {
            code_set: CodeSet::Binary,
            association: Association::LogicalUnit,
            protocol: None,
            designator: Designator::VendorSpecific(&[0xab, 0xcd]),
        };
        assert_eq!(page.provisioning_group, Some(group));
        let mut out = [0; 14];
        assert_eq!(page.encode(Peripheral::DISK, &mut out), Ok(14));
        assert_eq!(out, bytes);
    }

    #[test]
    fn every_truncated_body_is_an_error() {
        for len in 0..4u8 {
            let bytes = [0x00, 0xb2, 0x00, len, 0, 0, 0, 0];
            let error = DecodeError::Truncated { needed: 8, got: 4 + usize::from(len) };
            assert_eq!(LogicalBlockProvisioning::decode(&bytes), Err(error));
        }
    }

    #[test]
    fn unknown_codes_survive() {
        let bytes = [0x00, 0xb2, 0x00, 0x04, 0x00, 0x1c, 0x07, 0x00];
        let page = LogicalBlockProvisioning::decode(&bytes).unwrap();
        assert_eq!(page.unmapped_reads, UnmappedReads::Unknown(7));
        assert_eq!(page.provisioning_type, ProvisioningType::Unknown(7));
        let mut out = [0; 8];
        assert_eq!(page.encode(Peripheral::DISK, &mut out), Ok(8));
        assert_eq!(out, bytes);
    }
}
