//! Command descriptor blocks: what a host asks of a unit (SPC-5, SBC-4, MMC-6, SAT-4).
//!
//! A struct per command, whatever its length: [`Read`] is READ(6), (10), (12) and (16). Each is a table of
//! places (`field.rs`) under typed fields. Decoding is strict about length, operation code and service
//! action and lenient about reserved bits: `usage` says which bits mean something. [`Command`] is any of
//! them. Lengths that a CDB carries (allocation, parameter list) are bytes; LBAs and counts are blocks.
//!
//! Left out: 32-byte CDBs, commands of tapes, changers and enclosures, obsolete link bits, duration limits.

#[macro_use]
mod field;

mod ata;
mod atomic;
mod buffer;
mod cache;
mod capacity;
mod command;
mod copy;
mod diagnostic;
mod format;
mod identity;
mod log;
mod mmc;
mod mode;
mod power;
mod read_write;
mod reservation;
mod supported;
mod verify;
mod write_same;

// All that a family makes public is a command, or a field of one.
pub use ata::*;
pub use atomic::*;
pub use buffer::*;
pub use cache::*;
pub use capacity::*;
pub use command::Command;
pub use copy::*;
pub use diagnostic::*;
pub use format::*;
pub use identity::*;
pub use log::*;
pub use mmc::*;
pub use mode::*;
pub use power::*;
pub use read_write::*;
pub use reservation::*;
pub use supported::*;
pub use verify::*;
pub use write_same::*;

use core::fmt;
use core::ops::Deref;

/// An encoded CDB: 6, 10, 12 or 16 bytes. Dereferences to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cdb {
    /// Zero past the width.
    padded: [u8; 16],
    width: CdbWidth,
}

/// The lengths that CDBs of operation code groups 0 to 5 have (SPC-4 clause 4.2.5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CdbWidth {
    /// 6 bytes.
    Six,
    /// 10 bytes.
    #[default]
    Ten,
    /// 12 bytes.
    Twelve,
    /// 16 bytes.
    Sixteen,
}

/// The CONTROL byte, the last of every CDB (SAM-5 clause 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Control(pub u8);

/// The first bit that is set in `cdb` and not in `usage`: byte, and bit within it.
///
/// `usage` is CDB USAGE DATA: what lies past it is not looked at. A unit may refuse such a bit as reserved or
/// obsolete (SPC-5 clause 3.3), or let it pass.
pub fn stray_bit(cdb: &[u8], usage: &[u8]) -> Option<(u16, u8)> {
    let stray = cdb.iter().zip(usage).map(|(byte, used)| byte & !used);
    let (at, byte) = (0u16..).zip(stray).find(|&(_, stray)| stray != 0)?;
    Some((at, 7 - byte.leading_zeros() as u8))
}

impl Cdb {
    /// The bytes followed by zeroes, as UAS and the Bulk-Only Transport carry them.
    pub const fn padded(&self) -> &[u8; 16] {
        &self.padded
    }

    /// How long it is.
    pub const fn width(&self) -> CdbWidth {
        self.width
    }
}

impl Deref for Cdb {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.padded.get(..self.width.len()).expect("no width exceeds 16 bytes")
    }
}

impl CdbWidth {
    /// Bytes.
    #[allow(clippy::len_without_is_empty, reason = "no width is empty")]
    pub const fn len(self) -> usize {
        match self {
            Self::Six => 6,
            Self::Ten => 10,
            Self::Twelve => 12,
            Self::Sixteen => 16,
        }
    }
}

impl Control {
    /// NACA: an error shall establish an auto contingent allegiance. Units without NORMACA refuse it.
    #[doc(alias = "NACA")]
    pub const fn naca(self) -> bool {
        self.0 & 0x04 != 0
    }
}

impl fmt::Display for Cdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().enumerate().try_for_each(|(at, byte)| {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{byte:02x}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::stray_bit;

    #[test]
    fn the_first_bit_without_a_meaning_is_found() {
        let usage = [0x12, 0x01, 0xff, 0xff, 0xff, 0x04];
        assert_eq!(stray_bit(&[0x12, 0x01, 0xff, 0xff, 0xff, 0x04], &usage), None);
        assert_eq!(stray_bit(&[0x12, 0x02, 0, 0, 36, 0x40], &usage), Some((1, 1)));
        assert_eq!(stray_bit(&[0x12, 0x01, 0, 0, 36, 0xc0, 0xff], &usage), Some((5, 7)));
    }
}
