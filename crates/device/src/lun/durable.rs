//! State of a unit that survives a power cycle, as bytes that the medium keeps.
//!
//! ```text
//!  0..4   "ukds"                            then sections, in any order, each:
//!  4      format version (01h)               0      what it is
//!  5..8   reserved                           1..3   length of what follows, big-endian
//!  8..12  checksum of everything after it    3..    its bytes, whose layout is its owner's
//! ```
//! These bytes come from a file that anyone may have changed. What does not check is not there: the unit then
//! has its defaults, and never half of what was saved. Who must know that something was there asks [`find`].

use alloc::vec::Vec;
use wire::{DecodeError, Reader};

/// Content of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Section {
    /// Saved values of the mode pages.
    ModePages = 1,
    /// Persistent reservation with APTPL: registrations and their holder.
    Reservations = 2,
    /// A sanitize operation that is not over.
    Sanitize = 3,
}

/// Bytes of state that are read back at most; more were not written by us.
pub const DURABLE_BYTES_MAX: usize = 64 << 10;

/// Puts sections together. Empty ones are left out; a section is at most 65535 bytes, a longer one is left out.
pub fn encode(sections: &[(Section, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for &(section, bytes) in sections {
        if let (Ok(length), false) = (u16::try_from(bytes.len()), bytes.is_empty()) {
            body.push(section as u8);
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(bytes);
        }
    }
    let mut state = Vec::from(MAGIC);
    state.extend_from_slice(&[VERSION, 0, 0, 0]);
    state.extend_from_slice(&checksum(&body).to_be_bytes());
    state.extend_from_slice(&body);
    state
}

/// The bytes are not what [`encode`] writes: something was saved that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl From<DecodeError> for Damaged {
    fn from(_: DecodeError) -> Self {
        Self
    }
}

/// The bytes of a section, if the state is whole and has it.
pub fn section(state: &[u8], wanted: Section) -> Option<&[u8]> {
    find(state, wanted).ok().flatten()
}

/// The bytes of a section, if it has it.
///
/// # Errors
/// [`Damaged`] if the state is not whole.
pub fn find(state: &[u8], wanted: Section) -> Result<Option<&[u8]>, Damaged> {
    let mut reader = Reader::new(state.get(..DURABLE_BYTES_MAX).unwrap_or(state));
    let head = reader.array::<5>()?;
    reader.array::<3>()?;
    let sum = reader.be32()?;
    if !head.starts_with(&MAGIC) || !head.ends_with(&[VERSION]) || sum != checksum(reader.rest()) {
        return Err(Damaged);
    }
    let mut found = None;
    while !reader.rest().is_empty() {
        let kind = reader.u8()?;
        let length = reader.be16()?;
        let bytes = reader.slice(length.into())?;
        if kind == wanted as u8 {
            found = Some(bytes);
        }
    }
    Ok(found)
}

const MAGIC: [u8; 4] = *b"ukds";
const VERSION: u8 = 1;

/// FNV-1a: against bytes that rot or were cut, not against an adversary.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, &byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_come_back_each_by_its_name() {
        let state = encode(&[(Section::ModePages, &[1, 2, 3]), (Section::Reservations, &[4])]);
        assert_eq!(section(&state, Section::ModePages), Some(&[1, 2, 3][..]));
        assert_eq!(section(&state, Section::Reservations), Some(&[4][..]));
        let state = encode(&[(Section::ModePages, &[]), (Section::Reservations, &[4])]);
        assert_eq!(section(&state, Section::ModePages), None);
    }

    #[test]
    fn the_format_is_this_one() {
        let state = encode(&[(Section::ModePages, &[0xaa])]);
        assert_eq!(state[..8], *b"ukds\x01\0\0\0");
        assert_eq!(state[12..], [1, 0, 1, 0xaa]);
    }

    #[test]
    fn any_changed_or_missing_byte_means_nothing_was_saved() {
        let state = encode(&[(Section::ModePages, &[1, 2, 3]), (Section::Reservations, &[4])]);
        for at in (0..state.len()).filter(|at| !(5..8).contains(at)) {
            let mut changed = state.clone();
            changed[at] ^= 0x40;
            assert_eq!(section(&changed, Section::Reservations), None, "byte {at}");
            assert_eq!(find(&changed, Section::Reservations), Err(Damaged), "byte {at}");
            assert_eq!(section(&state[..at], Section::ModePages), None, "cut at {at}");
        }
    }
}
