//! Commands that every logical unit answers (SPC-5): identity, readiness and error reports.
//!
//! TEST UNIT READY, REQUEST SENSE, INQUIRY, REPORT LUNS. All but the first answer even while a unit
//! attention waits. Left out: the obsolete CMDDT bit of INQUIRY.

use super::field::{bit, bytes};

cdb! {
    /// TEST UNIT READY (SPC-5): GOOD if the medium can be accessed.
    pub struct TestUnitReady: "TEST UNIT READY" = Six 0x00 {}
}

cdb! {
    /// REQUEST SENSE (SPC-5): sense data as parameter data.
    pub struct RequestSense: "REQUEST SENSE" = Six 0x03 {
        /// Descriptor format is wanted, else fixed.
        #[doc(alias = "DESC")]
        descriptor_format: bool = bit(1, 0),
        /// Bytes that the host has room for.
        allocation_len: u8 = bytes(4, 4),
    }
}

cdb! {
    /// INQUIRY (SPC-5): the unit's identity, or a vital product data page.
    pub struct Inquiry: "INQUIRY" = Six 0x12 {
        /// A vital product data page is wanted, else standard INQUIRY data.
        evpd: bool = bit(1, 0),
        /// Which page; zero without `evpd`.
        page_code: u8 = bytes(2, 2),
        /// Bytes that the host has room for.
        allocation_len: u16 = bytes(3, 4),
    }
}

cdb! {
    /// REPORT LUNS (SPC-5): the logical units behind this target port.
    pub struct ReportLuns: "REPORT LUNS" = Twelve 0xa0 {
        /// Which kinds of unit are wanted.
        select_report: SelectReport = bytes(2, 2),
        /// Bytes that the host has room for; less than 16 is an error.
        allocation_len: u32 = bytes(6, 9),
    }
}

code! {
    /// SELECT REPORT of REPORT LUNS (SPC-5).
    pub enum SelectReport: u8 {
        /// Units, but no well-known ones.
        LogicalUnits = 0x00 => "logical units",
        /// Well-known units only.
        WellKnown = 0x01 => "well-known",
        /// Both.
        All = 0x02 => "all",
        /// Administrative units only.
        Administrative = 0x10 => "administrative",
    }
}

code_fields!(SelectReport);

#[cfg(test)]
mod tests {
    use super::super::Control;
    use super::*;

    #[test]
    fn test_unit_ready_both_ways() {
        assert_both_ways!(TestUnitReady {}, [0x00, 0, 0, 0, 0, 0], "TEST UNIT READY");
        assert_both_ways!(
            TestUnitReady { control: Control(0x04) },
            [0x00, 0, 0, 0, 0, 0x04],
            "TEST UNIT READY control 0x04"
        );
    }

    #[test]
    fn request_sense_both_ways() {
        assert_both_ways!(
            RequestSense { descriptor_format: true, allocation_len: 0xfc },
            [0x03, 0x01, 0, 0, 0xfc, 0],
            "REQUEST SENSE descriptor_format allocation_len 252"
        );
    }

    #[test]
    fn inquiry_both_ways() {
        assert_both_ways!(
            Inquiry { allocation_len: 36 },
            [0x12, 0, 0, 0, 36, 0],
            "INQUIRY allocation_len 36"
        );
        assert_both_ways!(
            Inquiry { evpd: true, page_code: 0x83, allocation_len: 0x1234 },
            [0x12, 0x01, 0x83, 0x12, 0x34, 0],
            "INQUIRY evpd page_code 0x83 allocation_len 4660"
        );
    }

    #[test]
    fn report_luns_both_ways() {
        assert_both_ways!(
            ReportLuns { select_report: SelectReport::All, allocation_len: 0x0102_0304 },
            [0xa0, 0, 0x02, 0, 0, 0, 1, 2, 3, 4, 0, 0],
            "REPORT LUNS all allocation_len 16909060"
        );
    }

    #[test]
    fn reserved_bits_are_not_looked_at_and_usage_names_the_others() {
        let inquiry = Inquiry::decode(&[0x12, 0xfe, 0, 0, 36, 0]).unwrap();
        assert_eq!(inquiry, Inquiry { allocation_len: 36, ..Inquiry::default() });
        assert_eq!(Inquiry::usage(0x12).unwrap()[..], [0x12, 0x01, 0xff, 0xff, 0xff, 0x04]);
        assert_eq!(Inquiry::usage(0x03), None);
    }

    #[test]
    fn a_cdb_padded_to_sixteen_bytes_decodes() {
        let inquiry = Inquiry { allocation_len: 36, ..Inquiry::default() };
        assert_eq!(Inquiry::decode(inquiry.encode().padded()), Ok(inquiry));
    }
}
