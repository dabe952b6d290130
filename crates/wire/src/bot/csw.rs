//! Command Status Wrapper (Bulk-Only Transport 1.0 clause 5.2).

use crate::DecodeError;
use core::fmt;

/// The end of one command. Little-endian.
///
/// ```text
///  0..4   dCSWSignature (53425355h, "USBS")       8..12  dCSWDataResidue (bytes)
///  4..8   dCSWTag                                12      bCSWStatus
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Csw {
    /// The tag of the command that ends.
    #[doc(alias = "dCSWTag")]
    pub tag: u32,
    /// Bytes that the host expected and that were not moved, or not looked at.
    #[doc(alias = "dCSWDataResidue")]
    pub residue: u32,
    /// How the command ended.
    #[doc(alias = "bCSWStatus")]
    pub status: CswStatus,
}

code! {
    /// Command block status (Bulk-Only Transport 1.0 table 5.3).
    pub enum CswStatus: u8 {
        /// The command did what it was asked to.
        Passed = 0x00 => "passed",
        /// It did not; REQUEST SENSE reports why.
        Failed = 0x01 => "failed",
        /// The two sides do not agree about the data phase; the host resets the device.
        PhaseError = 0x02 => "phase error",
    }
}

impl Csw {
    /// Bytes of the wrapper, no more and no less.
    pub const LEN: usize = 13;
    /// "USBS", read little-endian.
    #[doc(alias = "dCSWSignature")]
    pub const SIGNATURE: u32 = 0x5342_5355;

    /// Decodes a wrapper whose length and signature are right (clause 6.3.1).
    ///
    /// The third condition of a valid wrapper, the tag of the command, is the caller's to compare.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let got = bytes.len();
        let csw = bytes.first_chunk::<13>().ok_or(DecodeError::Truncated { needed: Self::LEN, got })?;
        if got != Self::LEN {
            return Err(DecodeError::Invalid { field: "length of the CSW", value: got as u64 });
        }
        let signature = u32::from_le_bytes([csw[0], csw[1], csw[2], csw[3]]);
        if signature != Self::SIGNATURE {
            return Err(DecodeError::WrongKind { expected: Self::SIGNATURE, found: signature });
        }
        Ok(Self {
            tag: u32::from_le_bytes([csw[4], csw[5], csw[6], csw[7]]),
            residue: u32::from_le_bytes([csw[8], csw[9], csw[10], csw[11]]),
            status: CswStatus::from(csw[12]),
        })
    }

    /// The whole wrapper.
    pub fn encode(&self) -> [u8; 13] {
        let [s0, s1, s2, s3] = Self::SIGNATURE.to_le_bytes();
        let [t0, t1, t2, t3] = self.tag.to_le_bytes();
        let [r0, r1, r2, r3] = self.residue.to_le_bytes();
        [s0, s1, s2, s3, t0, t1, t2, t3, r0, r1, r2, r3, self.status.into()]
    }

    /// Whether the wrapper is *meaningful* for a command that expected `transfer_len` bytes (clause 6.3.2):
    /// passed or failed with a residue no longer than that, or a phase error with any residue.
    pub fn is_meaningful(&self, transfer_len: u32) -> bool {
        match self.status {
            CswStatus::Passed | CswStatus::Failed => self.residue <= transfer_len,
            CswStatus::PhaseError => true,
            CswStatus::Unknown(_) => false,
        }
    }
}

impl fmt::Display for Csw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CSW tag {:#010x} {}, residue {}", self.tag, self.status, self.residue)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// Failed, tag 0x0a0b0c0d, residue 512.
    const FAILED: [u8; 13] = [0x55, 0x53, 0x42, 0x53, 0x0d, 0x0c, 0x0b, 0x0a, 0x00, 0x02, 0x00, 0x00, 0x01];

    #[test]
    fn literal_bytes_both_ways() {
        let csw = Csw::decode(&FAILED).unwrap();
        assert_eq!(csw, Csw { tag: 0x0a0b_0c0d, residue: 512, status: CswStatus::Failed });
        assert_eq!(csw.encode(), FAILED);
        assert_eq!(csw.to_string(), "CSW tag 0x0a0b0c0d failed, residue 512");
    }

    #[test]
    fn a_short_csw_is_an_error() {
        for len in 0..13 {
            let error = Csw::decode(&FAILED[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 13, got: len });
        }
    }

    #[test]
    fn one_byte_too_many_is_not_valid() {
        let long = [&FAILED[..], &[0]].concat();
        let error = DecodeError::Invalid { field: "length of the CSW", value: 14 };
        assert_eq!(Csw::decode(&long), Err(error));
    }

    #[test]
    fn another_signature_is_not_valid() {
        let mut bytes = FAILED;
        bytes[3] = 0x43; // "USBC", a command wrapper's
        let error = DecodeError::WrongKind { expected: 0x5342_5355, found: 0x4342_5355 };
        assert_eq!(Csw::decode(&bytes), Err(error));
    }

    #[test]
    fn the_codes_of_the_standard() {
        let codes = [0, 1, 2].map(CswStatus::from);
        assert_eq!(codes, [CswStatus::Passed, CswStatus::Failed, CswStatus::PhaseError]);
    }

    #[test]
    fn an_unknown_status_survives() {
        let mut bytes = FAILED;
        bytes[12] = 0x05;
        let csw = Csw::decode(&bytes).unwrap();
        assert_eq!(csw.status, CswStatus::Unknown(5));
        assert_eq!(csw.encode(), bytes);
    }

    #[test]
    fn a_residue_past_the_transfer_has_no_meaning_unless_the_phases_differ() {
        let with = |status, residue| Csw { tag: 1, residue, status };
        assert!(with(CswStatus::Passed, 512).is_meaningful(512));
        assert!(!with(CswStatus::Passed, 513).is_meaningful(512));
        assert!(!with(CswStatus::Failed, 513).is_meaningful(512));
        assert!(with(CswStatus::PhaseError, 513).is_meaningful(512));
        assert!(!with(CswStatus::Unknown(3), 0).is_meaningful(512));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 11..16)) {
            let mut bytes = bytes;
            bytes[..4].copy_from_slice(b"USBS");
            if let Ok(csw) = Csw::decode(&bytes) {
                prop_assert_eq!(&csw.encode()[..], &bytes[..]);
            }
        }

        #[test]
        fn decode_undoes_encode(tag: u32, residue: u32, status: u8) {
            let csw = Csw { tag, residue, status: status.into() };
            prop_assert_eq!(Csw::decode(&csw.encode()).unwrap(), csw);
        }
    }
}
