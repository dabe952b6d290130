//! CD/DVD capabilities and mechanical status mode page, 2Ah (MMC-3 clause 6.3.11).
//!
//! MMC-4 and later report features instead, but hosts still look here: Linux's `sr` learns from it what a drive can do.
//! Left out: audio, which decodes to nothing and encodes as zero, and speeds of writing.

use super::{ModePageCode, blank, whole_of};
use crate::DecodeError;
use crate::scsi::layout::{be16, bit, bits, set_bit, set_bits};
use core::fmt;

/// Kinds of discs that the drive can read, and how a disc comes in and out.
///
/// ```text
///  2  reads DVD-RAM (5), DVD-R (4), DVD-ROM (3), by method 2 (2), CD-RW (1), CD-R (0)
///  3  writes the same (5, 4), CD-RW (1), CD-R (0)
///  4  multi session (6), mode 2 form 2 (5), mode 2 form 1 (4)
///  6  loading mechanism (7:5), eject (3), prevent jumper (2), lock state (1), lock (0)
///  8..10  maximum read speed in kB/s (obsolete)      12..14  buffer in KiB
/// 14..16  current read speed in kB/s (obsolete)
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapabilitiesPage {
    /// It reads DVD-RAM.
    pub reads_dvd_ram: bool,
    /// It reads DVD-R.
    pub reads_dvd_r: bool,
    /// It reads DVD-ROM.
    pub reads_dvd_rom: bool,
    /// It reads packets of CD-R by addressing method 2.
    pub reads_method_2: bool,
    /// It reads CD-RW.
    pub reads_cd_rw: bool,
    /// It reads CD-R.
    pub reads_cd_r: bool,
    /// LOADING MECHANISM TYPE, three bits: 1 is a tray.
    pub loading_mechanism: u8,
    /// START STOP UNIT ejects.
    pub eject: bool,
    /// The disc is locked in.
    pub lock_state: bool,
    /// The disc can be locked in.
    pub lock: bool,
    /// Maximum read speed in units of 1000 bytes a second.
    pub maximum_kb_per_s: u16,
    /// BUFFER SIZE SUPPORTED in KiB.
    pub buffer_kib: u16,
    /// Current read speed in units of 1000 bytes a second.
    pub current_kb_per_s: u16,
}

impl CapabilitiesPage {
    /// Bytes with the header.
    pub const LEN: usize = 32;

    /// Decodes the page at the front of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let page: &[u8; Self::LEN] = whole_of(ModePageCode::Capabilities, None, bytes)?;
        Ok(Self {
            reads_dvd_ram: bit::<5>(page[2]),
            reads_dvd_r: bit::<4>(page[2]),
            reads_dvd_rom: bit::<3>(page[2]),
            reads_method_2: bit::<2>(page[2]),
            reads_cd_rw: bit::<1>(page[2]),
            reads_cd_r: bit::<0>(page[2]),
            loading_mechanism: bits::<7, 5>(page[6]),
            eject: bit::<3>(page[6]),
            lock_state: bit::<1>(page[6]),
            lock: bit::<0>(page[6]),
            maximum_kb_per_s: be16::<8, _>(page),
            buffer_kib: be16::<12, _>(page),
            current_kb_per_s: be16::<14, _>(page),
        })
    }

    /// The 32 bytes on the wire.
    pub fn encode(&self, saveable: bool) -> [u8; 32] {
        let mut out: [u8; Self::LEN] = blank(ModePageCode::Capabilities, None, saveable);
        out[2] = set_bit::<5>(self.reads_dvd_ram)
            | set_bit::<4>(self.reads_dvd_r)
            | set_bit::<3>(self.reads_dvd_rom)
            | set_bit::<2>(self.reads_method_2)
            | set_bit::<1>(self.reads_cd_rw)
            | set_bit::<0>(self.reads_cd_r);
        out[6] = set_bits::<7, 5>(self.loading_mechanism)
            | set_bit::<3>(self.eject)
            | set_bit::<1>(self.lock_state)
            | set_bit::<0>(self.lock);
        out[8..10].copy_from_slice(&self.maximum_kb_per_s.to_be_bytes());
        out[12..14].copy_from_slice(&self.buffer_kib.to_be_bytes());
        out[14..16].copy_from_slice(&self.current_kb_per_s.to_be_bytes());
        out
    }
}

impl fmt::Display for CapabilitiesPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reads DVD-ROM {}, eject {}, lock {}", self.reads_dvd_rom, self.eject, self.lock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let mut bytes = [0; 32];
        bytes[..16]
            .copy_from_slice(&[0x2a, 0x1e, 0x1f, 0, 0, 0, 0x2b, 0, 0x21, 0x13, 0, 0, 0x02, 0x00, 0x10, 0x89]);
        let page = CapabilitiesPage {
            reads_dvd_ram: false,
            reads_dvd_r: true,
            reads_dvd_rom: true,
            reads_method_2: true,
            reads_cd_rw: true,
            reads_cd_r: true,
            loading_mechanism: 1,
            eject: true,
            lock_state: true,
            lock: true,
            maximum_kb_per_s: 8467,
            buffer_kib: 512,
            current_kb_per_s: 4233,
        };
        assert_eq!(CapabilitiesPage::decode(&bytes), Ok(page));
        assert_eq!(page.encode(false), bytes);
        assert!(CapabilitiesPage::decode(&bytes[..31]).is_err());
    }
}
