//! The whole medium at once: FORMAT UNIT, SANITIZE, READ DEFECT DATA (SBC-4).

use super::field::Place::Absent;
use super::field::{bit, bits, bytes};
use crate::scsi::opcode::SanitizeAction;

cdb! {
    /// FORMAT UNIT (SBC-4).
    pub struct FormatUnit: "FORMAT UNIT" = Six 0x04 {
        /// Which protection information the blocks shall have, 0..=3.
        #[doc(alias = "FMTPINFO")]
        protection_information: u8 = bits(1, 7, 6),
        /// The parameter list has the long header.
        #[doc(alias = "LONGLIST")]
        long_list: bool = bit(1, 5),
        /// A parameter list comes with the command.
        #[doc(alias = "FMTDATA")]
        format_data: bool = bit(1, 4),
        /// The defect list in it is complete and replaces the grown list.
        #[doc(alias = "CMPLST")]
        complete_list: bool = bit(1, 3),
        /// Form of the defects in it.
        defect_list_format: DefectListFormat = bits(1, 2, 0),
        /// The vendor's.
        vendor_specific: u8 = bytes(2, 2),
        /// Fast format, 0..=3: 1 leaves the blocks' content unspecified.
        #[doc(alias = "FFMT")]
        fast_format: u8 = bits(4, 1, 0),
    }
}

cdb! {
    /// SANITIZE (SBC-4): nothing that was written can be read again, by any means.
    pub struct Sanitize: "SANITIZE" = Ten 0x48 {
        /// GOOD at once, the work follows.
        #[doc(alias = "IMMED")]
        immediate: bool = bit(1, 7),
        /// Zoned units: do not reset the zones.
        #[doc(alias = "ZNR")]
        zone_no_reset: bool = bit(1, 6),
        /// A failure may be left by EXIT FAILURE MODE, not only by another sanitize.
        #[doc(alias = "AUSE")]
        allow_unrestricted_exit: bool = bit(1, 5),
        /// By which means.
        service_action: SanitizeAction = bits(1, 4, 0),
        /// Bytes of the parameter list; zero but for OVERWRITE.
        parameter_list_len: u16 = bytes(7, 8),
    }
}

cdb! {
    /// READ DEFECT DATA (SBC-4): defects from the factory and since.
    pub struct ReadDefectData, width: [
        "READ DEFECT DATA(10)" = Ten 0x37, "READ DEFECT DATA(12)" = Twelve 0xb7,
    ] {
        /// The primary list is wanted.
        #[doc(alias = "REQ_PLIST")]
        primary: bool = [bit(2, 4), bit(1, 4)],
        /// The grown list is wanted.
        #[doc(alias = "REQ_GLIST")]
        grown: bool = [bit(2, 3), bit(1, 3)],
        /// Form of the defects wanted.
        defect_list_format: DefectListFormat = [bits(2, 2, 0), bits(1, 2, 0)],
        /// The first defect wanted, from 0.
        address_descriptor_index: u32 = [Absent, bytes(2, 5)],
        /// Bytes that the host has room for.
        allocation_len: u32 = [bytes(7, 8), bytes(6, 9)],
    }
}

choice! {
    /// Form of the address descriptors in a defect list (SBC-4).
    pub enum DefectListFormat {
        /// 32-bit LBAs.
        ShortBlock = 0 => "short block",
        /// Bytes from index, ranges.
        ExtendedBytesFromIndex = 1 => "extended bytes from index",
        /// Physical sectors, ranges.
        ExtendedPhysicalSector = 2 => "extended physical sector",
        /// 64-bit LBAs.
        LongBlock = 3 => "long block",
        /// Cylinder, head, bytes from index.
        BytesFromIndex = 4 => "bytes from index",
        /// Cylinder, head, sector.
        PhysicalSector = 5 => "physical sector",
        /// The vendor's.
        VendorSpecific = 6 => "vendor specific",
        /// No meaning.
        Reserved = 7 => "reserved defect list format",
    }
}

code_fields!(SanitizeAction);

#[cfg(test)]
mod tests {
    use super::super::CdbWidth;
    use super::*;

    #[test]
    fn format_unit_both_ways() {
        assert_both_ways!(
            FormatUnit {
                protection_information: 2,
                long_list: true,
                format_data: true,
                complete_list: true,
                defect_list_format: DefectListFormat::LongBlock,
                vendor_specific: 0x55,
                fast_format: 1
            },
            [0x04, 0xbb, 0x55, 0, 0x01, 0],
            "FORMAT UNIT protection_information 0x02 long_list format_data complete_list long block \
             vendor_specific 0x55 fast_format 0x01"
        );
    }

    #[test]
    fn sanitize_both_ways() {
        assert_both_ways!(
            Sanitize {
                immediate: true,
                allow_unrestricted_exit: true,
                service_action: SanitizeAction::BlockErase
            },
            [0x48, 0xa2, 0, 0, 0, 0, 0, 0, 0, 0],
            "SANITIZE immediate allow_unrestricted_exit BLOCK ERASE parameter_list_len 0"
        );
        assert_both_ways!(
            Sanitize {
                zone_no_reset: true,
                service_action: SanitizeAction::Overwrite,
                parameter_list_len: 0x0204
            },
            [0x48, 0x41, 0, 0, 0, 0, 0, 2, 4, 0],
            "SANITIZE zone_no_reset OVERWRITE parameter_list_len 516"
        );
    }

    #[test]
    fn read_defect_data_both_ways_in_every_width() {
        assert_both_ways!(
            ReadDefectData {
                primary: true,
                grown: true,
                defect_list_format: DefectListFormat::PhysicalSector,
                allocation_len: 0x0102
            },
            [0x37, 0, 0x1d, 0, 0, 0, 0, 1, 2, 0],
            "READ DEFECT DATA(10) primary grown physical sector address_descriptor_index 0 allocation_len 258"
        );
        assert_both_ways!(
            ReadDefectData {
                width: CdbWidth::Twelve,
                grown: true,
                defect_list_format: DefectListFormat::LongBlock,
                address_descriptor_index: 7,
                allocation_len: 8
            },
            [0xb7, 0x0b, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0],
            "READ DEFECT DATA(12) grown long block address_descriptor_index 7 allocation_len 8"
        );
    }
}
