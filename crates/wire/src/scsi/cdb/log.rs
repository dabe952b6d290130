//! LOG SENSE and LOG SELECT (SPC-5).

use super::field::{bit, bits, bytes};

cdb! {
    /// LOG SENSE (SPC-5): reads a log page.
    pub struct LogSense: "LOG SENSE" = Ten 0x4d {
        /// The parameters shall be saved as well.
        #[doc(alias = "SP")]
        save: bool = bit(1, 0),
        /// Which of the parameters' values.
        #[doc(alias = "PC")]
        page_control: LogPageControl = bits(2, 7, 6),
        /// Page 00h..=3Fh.
        page_code: u8 = bits(2, 5, 0),
        /// Subpage; FFh is all of them.
        subpage_code: u8 = bytes(3, 3),
        /// The first parameter wanted.
        parameter_pointer: u16 = bytes(5, 6),
        /// Bytes that the host has room for.
        allocation_len: u16 = bytes(7, 8),
    }
}

cdb! {
    /// LOG SELECT (SPC-5): sets or resets log parameters.
    pub struct LogSelect: "LOG SELECT" = Ten 0x4c {
        /// Reset the parameters; there is no list then.
        #[doc(alias = "PCR")]
        reset: bool = bit(1, 1),
        /// The parameters shall be saved as well.
        #[doc(alias = "SP")]
        save: bool = bit(1, 0),
        /// Which of the parameters' values.
        #[doc(alias = "PC")]
        page_control: LogPageControl = bits(2, 7, 6),
        /// Page 00h..=3Fh; zero with a list means those in the list.
        page_code: u8 = bits(2, 5, 0),
        /// Subpage.
        subpage_code: u8 = bytes(3, 3),
        /// Bytes of the parameter list.
        parameter_list_len: u16 = bytes(7, 8),
    }
}

choice! {
    /// PAGE CONTROL of the log commands (SPC-5).
    pub enum LogPageControl {
        /// The thresholds in force.
        Threshold = 0 => "threshold",
        /// The counts so far.
        Cumulative = 1 => "cumulative",
        /// The thresholds from the factory.
        DefaultThreshold = 2 => "default threshold",
        /// The counts that a reset gives.
        DefaultCumulative = 3 => "default cumulative",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_sense_both_ways() {
        assert_both_ways!(
            LogSense {
                save: true,
                page_control: LogPageControl::Cumulative,
                page_code: 0x2f,
                subpage_code: 0xff,
                parameter_pointer: 0x0102,
                allocation_len: 0x0304,
            },
            [0x4d, 0x01, 0x6f, 0xff, 0, 0x01, 0x02, 0x03, 0x04, 0],
            "LOG SENSE save cumulative page_code 0x2f subpage_code 0xff \
             parameter_pointer 0x102 allocation_len 772"
        );
    }

    #[test]
    fn log_select_both_ways() {
        assert_both_ways!(
            LogSelect {
                reset: true,
                page_control: LogPageControl::DefaultCumulative,
                page_code: 0x10,
                subpage_code: 0x02,
                parameter_list_len: 0x0a0b,
            },
            [0x4c, 0x02, 0xd0, 0x02, 0, 0, 0, 0x0a, 0x0b, 0],
            "LOG SELECT reset default cumulative page_code 0x10 subpage_code 0x02 parameter_list_len 2571"
        );
    }
}
