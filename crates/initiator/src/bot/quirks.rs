//! Deviations from the standard that are tolerated.
//!
//! Each is learnt from the behaviour of the device or set by the caller, never guessed from the
//! device's name. Linux has the same ones.

use super::status::{DataEnd, Due, Judgement};
use wire::bot::{Csw, CswStatus};

/// Deviations that a device has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// The signature of its CSWs, once the first has arrived.
    pub signature: Option<[u8; 4]>,
    /// Its residues are meaningless: it reported one although every byte was transferred.
    pub ignore_residue: bool,
    /// It has more sense data than the mandatory 18 bytes.
    pub long_sense: bool,
}

/// Bytes of sense data that every device can send: fixed format.
const SENSE_LEN: u8 = 18;
/// Bytes requested from a device with more.
const LONG_SENSE_LEN: u8 = 96;

const INQUIRY: u8 = 0x12;
const READ_CAPACITY: u8 = 0x25;

impl Quirks {
    /// Returns how much sense data to request.
    pub(super) const fn sense_len(&self) -> u8 {
        if self.long_sense { LONG_SENSE_LEN } else { SENSE_LEN }
    }

    /// Learns whether there are more sense data. Byte 7 counts the bytes after it.
    pub(super) fn see_sense(&mut self, bytes: &[u8]) {
        if bytes.get(7).is_some_and(|&additional| additional > SENSE_LEN - 8) {
            self.long_sense = true;
        }
    }

    /// Returns whether data-phase bytes are the CSW of this command.
    pub(super) fn is_status(&self, bytes: &[u8], tag: u32) -> bool {
        self.wrapper(bytes).is_some_and(|csw| csw.tag == tag)
    }

    /// Judges a CSW.
    pub(super) fn judge(&mut self, bytes: &[u8], due: Due, data: DataEnd) -> Judgement {
        let Some(csw) = self.wrapper_or_first(bytes).filter(|csw| csw.tag == due.tag) else {
            return Judgement::Invalid;
        };
        self.signature = bytes.first_chunk().copied();
        if csw.status == CswStatus::Passed && data.moved == due.bytes && !data.babble {
            self.see_residue(csw.residue, due.bytes, due.operation_code);
        }
        let residue = if self.ignore_residue { 0 } else { csw.residue };
        if !(Csw { residue, ..csw }).is_meaningful(due.bytes) {
            return Judgement::Invalid;
        }
        let moved = data.moved.min(due.bytes.saturating_sub(residue));
        match csw.status {
            CswStatus::Passed => Judgement::Passed { moved },
            CswStatus::Failed => Judgement::Failed { moved },
            _ => Judgement::PhaseError,
        }
    }

    /// Learns that residues are meaningless from commands whose length is certain, and from a
    /// residue above the transfer length.
    const fn see_residue(&mut self, residue: u32, expected: u32, operation_code: u8) {
        let whole = matches!((operation_code, expected), (INQUIRY, 36) | (READ_CAPACITY, 8));
        if residue > expected || residue > 0 && whole {
            self.ignore_residue = true;
        }
    }

    /// Decodes a CSW with the signature of this device.
    fn wrapper(&self, bytes: &[u8]) -> Option<Csw> {
        let expected = self.signature.unwrap_or(Csw::SIGNATURE.to_le_bytes());
        if *bytes.first_chunk::<4>()? != expected {
            return None;
        }
        decode_unsigned(bytes)
    }

    /// Decodes a CSW; the first may have any signature.
    fn wrapper_or_first(&self, bytes: &[u8]) -> Option<Csw> {
        if self.signature.is_none() { decode_unsigned(bytes) } else { self.wrapper(bytes) }
    }
}

/// Decodes a CSW with any signature.
fn decode_unsigned(bytes: &[u8]) -> Option<Csw> {
    let mut csw: [u8; Csw::LEN] = bytes.try_into().ok()?;
    csw[..4].copy_from_slice(&Csw::SIGNATURE.to_le_bytes());
    Csw::decode(&csw).ok()
}
