//! Standard disc information: READ DISC INFORMATION data (MMC-6 clause 6.21).

use super::head;
use crate::DecodeError;
use crate::scsi::layout::{be16, be32, bit, bits, set_bit, set_bits};
use core::fmt;

code! {
    /// DISC STATUS, two bits.
    pub enum DiscStatus: u8 {
        /// Nothing is written.
        Empty = 0x00 => "empty",
        /// More can be written.
        Incomplete = 0x01 => "incomplete",
        /// Nothing more can be written.
        Finalized = 0x02 => "finalized",
        /// It has no sessions.
        Other = 0x03 => "other",
    }
}

code! {
    /// STATE OF LAST SESSION, two bits.
    pub enum SessionState: u8 {
        /// Nothing is written.
        Empty = 0x00 => "empty",
        /// It is open.
        Incomplete = 0x01 => "incomplete",
        /// It is damaged.
        Damaged = 0x02 => "damaged",
        /// It is closed.
        Complete = 0x03 => "complete",
    }
}

/// Standard disc information.
///
/// ```text
///  0..2   disc information length (32)     9   sessions, high byte
///  2      erasable (4), state of last     10   first track of the last session, high byte
///         session (3:2), disc status (1:0) 11  last track of the last session, high byte
///  3      first track                     12..16  disc identification
///  4      sessions, low byte              16..20  start of the last session's lead-in
///  5      first track of the last session 20..24  last possible start of the lead-out
///  6      last track of the last session  24..32  bar code
///  7      DID_V (7), DBC_V (6), URU (5)   32  application code
///  8      disc type                       33  OPC tables
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscInformation {
    /// It can be erased.
    pub erasable: bool,
    /// State of the last session.
    pub last_session: SessionState,
    /// State of the disc.
    pub status: DiscStatus,
    /// The first track of the disc.
    pub first_track: u8,
    /// Sessions.
    pub sessions: u16,
    /// The first track of the last session.
    pub last_session_first_track: u16,
    /// The last track of the last session.
    pub last_session_last_track: u16,
    /// It may be used for anything.
    #[doc(alias = "URU")]
    pub unrestricted_use: bool,
    /// DISC TYPE: 00h is CD-DA or CD-ROM.
    pub disc_type: u8,
    /// Where the last session's lead-in begins; all ones on a disc that is complete.
    pub lead_in_start: u32,
    /// Where the lead-out can begin at the latest; all ones on a disc that is complete.
    pub lead_out_start: u32,
}

impl DiscInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 34;

    /// Decodes the first 34 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        let length = be16::<0, _>(whole);
        if usize::from(length) != Self::LEN - 2 {
            return Err(DecodeError::Invalid { field: "DISC INFORMATION LENGTH", value: length.into() });
        }
        let wide = |high: u8, low: u8| u16::from_be_bytes([high, low]);
        Ok(Self {
            erasable: bit::<4>(whole[2]),
            last_session: bits::<3, 2>(whole[2]).into(),
            status: bits::<1, 0>(whole[2]).into(),
            first_track: whole[3],
            sessions: wide(whole[9], whole[4]),
            last_session_first_track: wide(whole[10], whole[5]),
            last_session_last_track: wide(whole[11], whole[6]),
            unrestricted_use: bit::<5>(whole[7]),
            disc_type: whole[8],
            lead_in_start: be32::<16, _>(whole),
            lead_out_start: be32::<20, _>(whole),
        })
    }

    /// The 34 bytes on the wire.
    pub fn encode(&self) -> [u8; 34] {
        let mut out = [0; Self::LEN];
        out[1] = 32;
        out[2] = set_bit::<4>(self.erasable)
            | set_bits::<3, 2>(self.last_session.into())
            | set_bits::<1, 0>(self.status.into());
        out[3] = self.first_track;
        [out[9], out[4]] = self.sessions.to_be_bytes();
        [out[10], out[5]] = self.last_session_first_track.to_be_bytes();
        [out[11], out[6]] = self.last_session_last_track.to_be_bytes();
        out[7] = set_bit::<5>(self.unrestricted_use);
        out[8] = self.disc_type;
        out[16..20].copy_from_slice(&self.lead_in_start.to_be_bytes());
        out[20..24].copy_from_slice(&self.lead_out_start.to_be_bytes());
        out
    }
}

impl fmt::Display for DiscInformation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} sessions, last {}", self.status, self.sessions, self.last_session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 34] = [
        0, 32, 0x0e, 1, 1, 1, 1, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    fn a_finalized_disc_both_ways() {
        let disc = DiscInformation {
            erasable: false,
            last_session: SessionState::Complete,
            status: DiscStatus::Finalized,
            first_track: 1,
            sessions: 1,
            last_session_first_track: 1,
            last_session_last_track: 1,
            unrestricted_use: true,
            disc_type: 0,
            lead_in_start: u32::MAX,
            lead_out_start: u32::MAX,
        };
        assert_eq!(DiscInformation::decode(&BYTES), Ok(disc));
        assert_eq!(disc.encode(), BYTES);
    }

    #[test]
    fn other_and_truncated_lengths_are_errors() {
        for got in 0..34 {
            let error = DecodeError::Truncated { needed: 34, got };
            assert_eq!(DiscInformation::decode(&BYTES[..got]), Err(error));
        }
        let error = DecodeError::Invalid { field: "DISC INFORMATION LENGTH", value: 0 };
        assert_eq!(DiscInformation::decode(&[0; 34]), Err(error));
    }
}
