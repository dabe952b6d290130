//! How a command ended: the unit's answer, or why there is none.
//!
//! A SCSI error is an answer. A [`Failure`] means that the transport did not bring one: the command may or may not
//! have been carried out, in part or whole, unless the failure says otherwise.

use alloc::boxed::Box;
use core::fmt;
use wire::scsi::Status;
use wire::scsi::sense::Sense;
use wire::uas::ResponseCode;

/// Bytes of sense data that are kept: as many as Linux has room for behind the header of a SENSE IU.
pub const SENSE_BYTES_MAX: usize = 96;

/// Sense data as it came, cut at [`SENSE_BYTES_MAX`]. It lies apart, since few commands bring any and every outcome is
/// handed on several times.
#[derive(Clone, PartialEq, Eq)]
pub struct SenseBytes(Option<Box<Kept>>);

/// Sense data that there are.
#[derive(Clone, PartialEq, Eq)]
struct Kept {
    /// Zero past the length.
    bytes: [u8; SENSE_BYTES_MAX],
    len: u8,
}

/// The unit's own word about a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How it ended. BOT can only say GOOD and CHECK CONDITION.
    pub status: Status,
    /// When to try again after BUSY and the like (SAM-5 clause 5.3.2); 0 says nothing, and BOT cannot say it.
    pub status_qualifier: u16,
    /// Bytes of the data phase that were moved and that the device has looked at or meant: transfer length less
    /// residue.
    pub moved: u32,
    /// Sense data; empty where there is none.
    pub sense: SenseBytes,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The deadline passed, and the device was brought to let go of the command.
    TimedOut,
    /// The caller took it back.
    Aborted,
    /// It was lost when the device was reset on another command's account.
    Reset,
    /// The device is gone.
    Disconnected,
    /// The ladder of recovery has no rung left; the transport takes no more commands.
    Unrecoverable,
    /// An endpoint was halted more often than is put up with, or in the place of data that the status claims.
    Stalled,
    /// The device sent more than it was asked for.
    Babble,
    /// The bus failed in another way, in any phase.
    Bus,
    /// BOT: device and host do not agree about the data phase (CSW status 2).
    PhaseError,
    /// The status was not one: a CSW that is not valid or not meaningful, an IU that does not decode or is about
    /// another command.
    BadStatus,
    /// UAS: a RESPONSE IU in the place of a status; the command was not carried out.
    Refused(ResponseCode),
}

/// The end of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The unit answered.
    Answered(Answer),
    /// It did not.
    Failed(Failure),
}

impl SenseBytes {
    /// No sense data.
    pub const NONE: Self = Self(None);

    /// Keeps `bytes`; what is past [`SENSE_BYTES_MAX`] is cut.
    #[inline(always)]
    pub fn new(bytes: &[u8]) -> Self {
        if bytes.is_empty() { Self::NONE } else { Self::keep(bytes) }
    }

    #[cold]
    fn keep(bytes: &[u8]) -> Self {
        let len = bytes.len().min(SENSE_BYTES_MAX);
        let mut kept = Kept { bytes: [0; SENSE_BYTES_MAX], len: len as u8 };
        kept.bytes[..len].copy_from_slice(&bytes[..len]);
        Self(Some(Box::new(kept)))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |kept| &kept.bytes[..kept.len.into()])
    }

    /// What they say, if they say anything.
    pub fn decode(&self) -> Option<Sense> {
        Sense::decode(self.as_bytes()).ok()
    }
}

impl Answer {
    /// Whether the unit says that the command went well.
    pub(crate) const fn is_good(&self) -> bool {
        matches!(self.status, Status::Good | Status::ConditionMet)
    }
}

impl Outcome {
    /// A status without sense data.
    pub const fn answered(status: Status, moved: u32) -> Self {
        Self::Answered(Answer { status, status_qualifier: 0, moved, sense: SenseBytes::NONE })
    }

    /// Whether the unit said GOOD.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Answered(answer) if answer.status == Status::Good)
    }
}

impl core::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "timed out",
            Self::Aborted => "aborted by the caller",
            Self::Reset => "lost in a reset for another command",
            Self::Disconnected => "the device is gone",
            Self::Unrecoverable => "no way of recovery is left",
            Self::Stalled => "an endpoint stalled",
            Self::Babble => "the device sent more than was asked for",
            Self::Bus => "the bus failed",
            Self::PhaseError => "phase error",
            Self::BadStatus => "the status is not valid",
            Self::Refused(code) => return write!(f, "refused: {code}"),
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered(answer) => write!(f, "{}, {} bytes moved", answer.status, answer.moved),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl fmt::Debug for SenseBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SenseBytes({:02x?})", self.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_small() {
        assert!(size_of::<Outcome>() <= 16, "{} bytes", size_of::<Outcome>());
    }

    #[test]
    fn sense_past_the_room_is_cut() {
        assert_eq!(SenseBytes::new(&[0x70; 97]).as_bytes(), [0x70; 96]);
        assert_eq!(SenseBytes::NONE.decode(), None);
    }
}
