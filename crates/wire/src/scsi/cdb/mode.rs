//! MODE SENSE and MODE SELECT, (6) and (10) (SPC-5).
//!
//! The two widths differ in the length they can ask for and in the header of the parameter data.

use super::field::Place::Absent;
use super::field::{bit, bits, bytes};

cdb! {
    /// MODE SENSE (SPC-5): reads mode pages.
    pub struct ModeSense, width: ["MODE SENSE(6)" = Six 0x1a, "MODE SENSE(10)" = Ten 0x5a] {
        /// Block descriptors with 64-bit counts are accepted.
        #[doc(alias = "LLBAA")]
        long_lba_accepted: bool = [Absent, bit(1, 4)],
        /// No block descriptors shall be sent.
        #[doc(alias = "DBD")]
        disable_block_descriptors: bool = [bit(1, 3); 2],
        /// Which of the pages' values.
        #[doc(alias = "PC")]
        page_control: PageControl = [bits(2, 7, 6); 2],
        /// Page 00h..=3Fh; 3Fh is all of them.
        page_code: u8 = [bits(2, 5, 0); 2],
        /// Subpage; FFh is all of them.
        subpage_code: u8 = [bytes(3, 3); 2],
        /// Bytes that the host has room for.
        allocation_len: u16 = [bytes(4, 4), bytes(7, 8)],
    }
}

cdb! {
    /// MODE SELECT (SPC-5): sets mode pages.
    pub struct ModeSelect, width: ["MODE SELECT(6)" = Six 0x15, "MODE SELECT(10)" = Ten 0x55] {
        /// The list is made of pages, else it is the vendor's.
        #[doc(alias = "PF")]
        page_format: bool = [bit(1, 4); 2],
        /// Back to the defaults; there is no list then.
        #[doc(alias = "RTD")]
        revert_to_defaults: bool = [bit(1, 1); 2],
        /// The pages shall be saved as well.
        #[doc(alias = "SP")]
        save: bool = [bit(1, 0); 2],
        /// Bytes of the parameter list.
        parameter_list_len: u16 = [bytes(4, 4), bytes(7, 8)],
    }
}

choice! {
    /// PAGE CONTROL of MODE SENSE (SPC-5).
    pub enum PageControl {
        /// The values in force.
        Current = 0 => "current",
        /// A one for every bit that MODE SELECT can change.
        Changeable = 1 => "changeable",
        /// The values from the factory.
        Default = 2 => "default",
        /// The values that a reset brings back.
        Saved = 3 => "saved",
    }
}

#[cfg(test)]
mod tests {
    use super::super::CdbWidth;
    use super::*;

    #[test]
    fn mode_sense_both_ways() {
        assert_both_ways!(
            ModeSense {
                width: CdbWidth::Six,
                disable_block_descriptors: true,
                page_control: PageControl::Changeable,
                page_code: 0x3f,
                subpage_code: 0xff,
                allocation_len: 192,
            },
            [0x1a, 0x08, 0x7f, 0xff, 192, 0],
            "MODE SENSE(6) disable_block_descriptors changeable page_code 0x3f subpage_code 0xff \
             allocation_len 192"
        );
        assert_both_ways!(
            ModeSense { long_lba_accepted: true, page_code: 0x08, allocation_len: 0x0102 },
            [0x5a, 0x10, 0x08, 0, 0, 0, 0, 0x01, 0x02, 0],
            "MODE SENSE(10) long_lba_accepted page_code 0x08 allocation_len 258"
        );
    }

    #[test]
    fn mode_select_both_ways() {
        assert_both_ways!(
            ModeSelect { width: CdbWidth::Six, page_format: true, save: true, parameter_list_len: 24 },
            [0x15, 0x11, 0, 0, 24, 0],
            "MODE SELECT(6) page_format save parameter_list_len 24"
        );
        assert_both_ways!(
            ModeSelect { revert_to_defaults: true },
            [0x55, 0x02, 0, 0, 0, 0, 0, 0, 0, 0],
            "MODE SELECT(10) revert_to_defaults parameter_list_len 0"
        );
    }

    #[test]
    fn a_length_past_a_byte_takes_the_wider_cdb() {
        let sense = ModeSense { width: CdbWidth::Six, allocation_len: 256, ..ModeSense::default() };
        assert_eq!(sense.encode()[..], [0x5a, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
    }
}
