//! What is borne with in devices that do not keep to the letter of the standard.
//!
//! Each is learnt once, from what the device does, or told by whoever knows the device; here none is guessed from its name. Linux
//! knows the same ones.

use super::status::{DataEnd, Due, Judgement};
use wire::bot::{Csw, CswStatus};

/// Deviations that a device has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// The signature that its status wrappers have, once the first has come.
    pub signature: Option<[u8; 4]>,
    /// Its residues mean nothing: it told one where every byte was moved, or is known to.
    pub ignore_residue: bool,
    /// It has more sense data than the 18 bytes that every device can send.
    pub long_sense: bool,
}

/// Bytes of sense data that every device can send: fixed format.
const SENSE_LEN: u8 = 18;
/// Bytes to ask a device for that has said it has more.
const LONG_SENSE_LEN: u8 = 96;

const INQUIRY: u8 = 0x12;
const READ_CAPACITY: u8 = 0x25;

impl Quirks {
    /// How much sense data to ask for.
    pub(super) const fn sense_len(&self) -> u8 {
        if self.long_sense { LONG_SENSE_LEN } else { SENSE_LEN }
    }

    /// Looks whether there was more of it. Byte 7 counts what follows byte 7.
    pub(super) fn see_sense(&mut self, bytes: &[u8]) {
        if bytes.get(7).is_some_and(|&additional| additional > SENSE_LEN - 8) {
            self.long_sense = true;
        }
    }

    /// Whether these bytes are the status wrapper of this command, in a place where data were due.
    pub(super) fn is_status(&self, bytes: &[u8], tag: u32) -> bool {
        self.wrapper(bytes).is_some_and(|csw| csw.tag == tag)
    }

    /// What a status wrapper says about a command.
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

    /// A residue where every byte was moved is none: for two commands whose length is beyond doubt, and where it is
    /// more than there was to move.
    const fn see_residue(&mut self, residue: u32, expected: u32, operation_code: u8) {
        let whole = matches!((operation_code, expected), (INQUIRY, 36) | (READ_CAPACITY, 8));
        if residue > expected || residue > 0 && whole {
            self.ignore_residue = true;
        }
    }

    /// A wrapper with the signature that this device uses.
    fn wrapper(&self, bytes: &[u8]) -> Option<Csw> {
        let expected = self.signature.unwrap_or(Csw::SIGNATURE.to_le_bytes());
        if *bytes.first_chunk::<4>()? != expected {
            return None;
        }
        decode_unsigned(bytes)
    }

    /// The same; of the first wrapper any signature is taken.
    fn wrapper_or_first(&self, bytes: &[u8]) -> Option<Csw> {
        if self.signature.is_none() { decode_unsigned(bytes) } else { self.wrapper(bytes) }
    }
}

/// A wrapper whatever its signature.
fn decode_unsigned(bytes: &[u8]) -> Option<Csw> {
    let mut csw: [u8; Csw::LEN] = bytes.try_into().ok()?;
    csw[..4].copy_from_slice(&Csw::SIGNATURE.to_le_bytes());
    Csw::decode(&csw).ok()
}
