//! READ TOC/PMA/ATIP data (MMC-6 clause 6.25): a header, and entries whose form depends on the format.
//!
//! ```text
//! header  0..2  data length (bytes that follow)   2  first track or session   3  last one
//! entry   1     ADR (7:4), CONTROL (3:0)          2  track                    4..8  start address
//! raw     0     session   1  ADR, CONTROL   2  TNO   3  POINT   4..7  MSF   7  zero   8..11  PMSF
//! ```
//! Left out: PMA, ATIP and CD-Text.

use super::{Msf, head};
use crate::DecodeError;
use crate::scsi::layout::{be16, be32, bits, part, set_bits};
use core::fmt;

code! {
    /// FORMAT of READ TOC/PMA/ATIP, four bits.
    pub enum TocFormat: u8 {
        /// Tracks.
        Tracks = 0x00 => "tracks",
        /// Where the last session begins.
        Sessions = 0x01 => "sessions",
        /// The Q subchannel of the lead-in.
        Raw = 0x02 => "raw",
        /// Program memory area.
        Pma = 0x03 => "PMA",
        /// Absolute time in pregroove.
        Atip = 0x04 => "ATIP",
        /// Texts.
        CdText = 0x05 => "CD-Text",
    }
}

/// The track number that stands for the lead-out.
pub const LEAD_OUT_TRACK: u8 = 0xaa;

/// TOC header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TocHeader {
    /// TOC DATA LENGTH: bytes that follow the field.
    pub data_length: u16,
    /// The first track, or the first session.
    pub first: u8,
    /// The last one.
    pub last: u8,
}

/// TOC track descriptor; in the format of sessions, the first track of the last session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TocEntry {
    /// ADR, four bits: what the Q subchannel holds; 1 is positions.
    pub adr: u8,
    /// CONTROL, four bits: 4 is data.
    pub control: u8,
    /// Its number; AAh is the lead-out.
    pub track: u8,
    /// The start, an LBA or the bytes of an [`Msf`] field.
    pub start: u32,
}

/// Descriptor of the raw format: an entry of the Q subchannel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawTocEntry {
    /// The session.
    pub session: u8,
    /// ADR, four bits.
    pub adr: u8,
    /// CONTROL, four bits.
    pub control: u8,
    /// TNO: zero in a lead-in.
    pub track: u8,
    /// POINT: which entry; a track, or A0h to A2h.
    pub point: u8,
    /// Running time.
    pub time: Msf,
    /// Value of the entry, an address for a track and for A2h.
    pub value: Msf,
}

impl TocHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes the first four bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        Ok(Self { data_length: be16::<0, _>(whole), first: whole[2], last: whole[3] })
    }

    /// The four bytes on the wire.
    pub const fn encode(&self) -> [u8; 4] {
        let [high, low] = self.data_length.to_be_bytes();
        [high, low, self.first, self.last]
    }
}

impl fmt::Display for TocHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.first, self.last)
    }
}

impl TocEntry {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Decodes the first eight bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        Ok(Self {
            adr: bits::<7, 4>(whole[1]),
            control: bits::<3, 0>(whole[1]),
            track: whole[2],
            start: be32::<4, _>(whole),
        })
    }

    /// The eight bytes on the wire.
    pub fn encode(&self) -> [u8; 8] {
        let mut out = [0; Self::LEN];
        out[1] = set_bits::<7, 4>(self.adr) | set_bits::<3, 0>(self.control);
        out[2] = self.track;
        out[4..].copy_from_slice(&self.start.to_be_bytes());
        out
    }
}

impl fmt::Display for TocEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "track {}, control {:#x}, at {}", self.track, self.control, self.start)
    }
}

impl RawTocEntry {
    /// Bytes on the wire.
    pub const LEN: usize = 11;

    /// Decodes the first eleven bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        let msf = |[minute, second, frame]: [u8; 3]| Msf { minute, second, frame };
        Ok(Self {
            session: whole[0],
            adr: bits::<7, 4>(whole[1]),
            control: bits::<3, 0>(whole[1]),
            track: whole[2],
            point: whole[3],
            time: msf(part::<4, 3, _>(whole)),
            value: msf(part::<8, 3, _>(whole)),
        })
    }

    /// The eleven bytes on the wire.
    pub fn encode(&self) -> [u8; 11] {
        let Self { session, adr, control, track, point, time, value } = *self;
        let kind = set_bits::<7, 4>(adr) | set_bits::<3, 0>(control);
        let front = [session, kind, track, point, time.minute, time.second, time.frame, 0];
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&front);
        out[8..].copy_from_slice(&[value.minute, value.second, value.frame]);
        out
    }
}

impl fmt::Display for RawTocEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {}, point {:#04x}, {}", self.session, self.point, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let header = TocHeader { data_length: 18, first: 1, last: 1 };
        assert_eq!(header.encode(), [0, 18, 1, 1]);
        assert_eq!(TocHeader::decode(&[0, 18, 1, 1]), Ok(header));
        let lead_out = TocEntry { adr: 1, control: 4, track: LEAD_OUT_TRACK, start: 0x0102_0304 };
        assert_eq!(lead_out.encode(), [0, 0x14, 0xaa, 0, 1, 2, 3, 4]);
        assert_eq!(TocEntry::decode(&[0, 0x14, 0xaa, 0, 1, 2, 3, 4]), Ok(lead_out));
        let raw = RawTocEntry {
            session: 1,
            adr: 1,
            control: 4,
            track: 0,
            point: 0xa2,
            time: Msf::default(),
            value: Msf { minute: 79, second: 59, frame: 74 },
        };
        assert_eq!(raw.encode(), [1, 0x14, 0, 0xa2, 0, 0, 0, 0, 79, 59, 74]);
        assert_eq!(RawTocEntry::decode(&[1, 0x14, 0, 0xa2, 0, 0, 0, 0, 79, 59, 74]), Ok(raw));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..11 {
            let bytes = &[0; 11][..got];
            assert_eq!(RawTocEntry::decode(bytes), Err(DecodeError::Truncated { needed: 11, got }));
            assert_eq!(TocEntry::decode(bytes).is_err(), got < 8);
            assert_eq!(TocHeader::decode(bytes).is_err(), got < 4);
        }
    }
}
