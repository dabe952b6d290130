//! Third-party copies: EXTENDED COPY, RECEIVE COPY RESULTS and their kin (SPC-5).
//!
//! Left out: all but the service action and the length. The units here refuse these commands.

use super::field::{bits, bytes};

cdb! {
    /// THIRD-PARTY COPY OUT (SPC-5): 00h is EXTENDED COPY(LID1), 10h POPULATE TOKEN.
    pub struct ThirdPartyCopyOut: "THIRD-PARTY COPY OUT" = Sixteen 0x83 {
        /// Which of them.
        service_action: u8 = bits(1, 4, 0),
        /// Bytes of the parameter list.
        parameter_list_len: u32 = bytes(10, 13),
    }
}

cdb! {
    /// THIRD-PARTY COPY IN (SPC-5): 03h is RECEIVE COPY OPERATING PARAMETERS, 07h RECEIVE ROD TOKEN.
    pub struct ThirdPartyCopyIn: "THIRD-PARTY COPY IN" = Sixteen 0x84 {
        /// Which of them.
        service_action: u8 = bits(1, 4, 0),
        /// Bytes that the host has room for.
        allocation_len: u32 = bytes(10, 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn third_party_copy_out_both_ways() {
        assert_both_ways!(
            ThirdPartyCopyOut { service_action: 0x10, parameter_list_len: 0x0102_0304 },
            [0x83, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0],
            "THIRD-PARTY COPY OUT service_action 0x10 parameter_list_len 16909060"
        );
    }

    #[test]
    fn third_party_copy_in_both_ways() {
        assert_both_ways!(
            ThirdPartyCopyIn { service_action: 0x03, allocation_len: 16 },
            [0x84, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0],
            "THIRD-PARTY COPY IN service_action 0x03 allocation_len 16"
        );
    }
}
