//! SEND DIAGNOSTIC and RECEIVE DIAGNOSTIC RESULTS (SPC-5).

use super::field::{bit, bits, bytes};

cdb! {
    /// SEND DIAGNOSTIC (SPC-5): starts a self-test, or sends a diagnostic page.
    pub struct SendDiagnostic: "SEND DIAGNOSTIC" = Six 0x1d {
        /// Which self-test; none while `self_test` is set.
        self_test_code: SelfTestCode = bits(1, 7, 5),
        /// The parameter list is a page, else the vendor's.
        #[doc(alias = "PF")]
        page_format: bool = bit(1, 4),
        /// The default self-test.
        #[doc(alias = "SELFTEST")]
        self_test: bool = bit(1, 2),
        /// The test may affect other units of the device.
        #[doc(alias = "DEVOFFL")]
        device_offline: bool = bit(1, 1),
        /// The test may affect this unit's medium.
        #[doc(alias = "UNITOFFL")]
        unit_offline: bool = bit(1, 0),
        /// Bytes of the parameter list.
        parameter_list_len: u16 = bytes(3, 4),
    }
}

cdb! {
    /// RECEIVE DIAGNOSTIC RESULTS (SPC-5): reads a diagnostic page.
    pub struct ReceiveDiagnosticResults: "RECEIVE DIAGNOSTIC RESULTS" = Six 0x1c {
        /// The page code counts, else the page last sent is wanted.
        #[doc(alias = "PCV")]
        page_code_valid: bool = bit(1, 0),
        /// Which page.
        page_code: u8 = bytes(2, 2),
        /// Bytes that the host has room for.
        allocation_len: u16 = bytes(3, 4),
    }
}

choice! {
    /// SELF-TEST CODE (SPC-5).
    pub enum SelfTestCode {
        /// None: SELFTEST, or a page.
        None = 0 => "none",
        /// Minutes at most, other commands go on.
        BackgroundShort = 1 => "background short self-test",
        /// As long as it takes, other commands go on.
        BackgroundExtended = 2 => "background extended self-test",
        /// No meaning.
        Reserved3 = 3 => "reserved self-test code 3",
        /// Aborts the background self-test in progress.
        AbortBackground = 4 => "abort background self-test",
        /// Minutes at most; the command ends with the test.
        ForegroundShort = 5 => "foreground short self-test",
        /// As long as it takes; the command ends with the test.
        ForegroundExtended = 6 => "foreground extended self-test",
        /// No meaning.
        Reserved7 = 7 => "reserved self-test code 7",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn send_diagnostic_both_ways() {
        assert_both_ways!(
            SendDiagnostic { self_test: true, device_offline: true, unit_offline: true },
            [0x1d, 0x07, 0, 0, 0, 0],
            "SEND DIAGNOSTIC self_test device_offline unit_offline parameter_list_len 0"
        );
        assert_both_ways!(
            SendDiagnostic {
                self_test_code: SelfTestCode::ForegroundShort,
                page_format: true,
                parameter_list_len: 0x0102
            },
            [0x1d, 0xb0, 0, 1, 2, 0],
            "SEND DIAGNOSTIC foreground short self-test page_format parameter_list_len 258"
        );
    }

    #[test]
    fn receive_diagnostic_results_both_ways() {
        assert_both_ways!(
            ReceiveDiagnosticResults { page_code_valid: true, page_code: 0x02, allocation_len: 0x0102 },
            [0x1c, 0x01, 0x02, 1, 2, 0],
            "RECEIVE DIAGNOSTIC RESULTS page_code_valid page_code 0x02 allocation_len 258"
        );
    }
}
