//! How a command ended: the logical unit's answer, or why there is none.
//!
//! A SCSI error is an answer. A [`Failure`] means that the transport has no answer: the command may
//! have been executed in part, in whole or not at all, unless the failure says otherwise.

use alloc::boxed::Box;
use core::fmt;
use wire::scsi::Status;
use wire::scsi::sense::Sense;
use wire::uas::ResponseCode;

/// Bytes of sense data buffer: as many as Linux reserves behind the header of a SENSE IU.
pub const SENSE_BYTES_MAX: usize = 96;

/// Raw sense data, truncated to [`SENSE_BYTES_MAX`]. Boxed, since few commands bring any and
/// outcomes are moved often.
#[derive(Clone, PartialEq, Eq)]
pub struct SenseBytes(Option<Box<SenseBuffer>>);

/// Sense data that are present.
#[derive(Clone, PartialEq, Eq)]
struct SenseBuffer {
    /// Zero past the length.
    bytes: [u8; SENSE_BYTES_MAX],
    len: u8,
}

/// The logical unit's answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The SCSI status. BOT distinguishes GOOD and CHECK CONDITION only.
    pub status: Status,
    /// When to retry after BUSY and the like (SAM-5 clause 5.3.2); 0 if not specified, always 0
    /// over BOT.
    pub status_qualifier: u16,
    /// Bytes of the data phase that the device processed: transfer length less residue.
    pub moved: u32,
    /// Sense data, or empty.
    pub sense: SenseBytes,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The deadline passed, and error recovery made the device drop the command.
    TimedOut,
    /// Aborted by the caller.
    Aborted,
    /// Lost when the device was reset because of another command.
    Reset,
    /// The device is disconnected.
    Disconnected,
    /// All recovery steps failed; the transport accepts no more commands.
    Unrecoverable,
    /// An endpoint halted more often than tolerated, or instead of sending data that the status
    /// claims.
    Stalled,
    /// The device sent more than requested.
    Babble,
    /// Another bus error, in any phase.
    Bus,
    /// BOT: device and host disagree about the data phase (CSW status 2).
    PhaseError,
    /// Malformed status: an invalid or not meaningful CSW, or an IU that does not decode or carries
    /// another tag.
    BadStatus,
    /// UAS: a RESPONSE IU instead of a status; the command was not executed.
    Refused(ResponseCode),
}

/// The end of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The logical unit answered.
    Answered(Answer),
    /// It did not.
    Failed(Failure),
}

impl SenseBytes {
    /// No sense data.
    pub const NONE: Self = Self(None);

    /// Copies `bytes`, truncated to [`SENSE_BYTES_MAX`].
    #[inline(always)]
    pub fn new(bytes: &[u8]) -> Self {
        if bytes.is_empty() { Self::NONE } else { Self::keep(bytes) }
    }

    #[cold]
    fn keep(bytes: &[u8]) -> Self {
        let len = bytes.len().min(SENSE_BYTES_MAX);
        let mut buffer = SenseBuffer { bytes: [0; SENSE_BYTES_MAX], len: len as u8 };
        buffer.bytes[..len].copy_from_slice(&bytes[..len]);
        Self(Some(Box::new(buffer)))
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |buffer| &buffer.bytes[..buffer.len.into()])
    }

    /// Decodes the sense data; `None` if they are absent or malformed.
    pub fn decode(&self) -> Option<Sense> {
        Sense::decode(self.as_bytes()).ok()
    }
}

impl Answer {
    /// Returns whether the command succeeded.
    pub(crate) const fn is_good(&self) -> bool {
        matches!(self.status, Status::Good | Status::ConditionMet)
    }
}

impl Outcome {
    /// Creates an answer without sense data.
    pub const fn answered(status: Status, moved: u32) -> Self {
        Self::Answered(Answer { status, status_qualifier: 0, moved, sense: SenseBytes::NONE })
    }

    /// Returns whether the status is GOOD.
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
            Self::Reset => "lost in a reset caused by another command",
            Self::Disconnected => "device disconnected",
            Self::Unrecoverable => "all recovery steps failed",
            Self::Stalled => "endpoint stalled",
            Self::Babble => "babble: the device sent more than requested",
            Self::Bus => "bus error",
            Self::PhaseError => "phase error",
            Self::BadStatus => "malformed status",
            Self::Refused(code) => return write!(f, "rejected by the device: {code}"),
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
    fn sense_data_are_truncated() {
        assert_eq!(SenseBytes::new(&[0x70; 97]).as_bytes(), [0x70; 96]);
        assert_eq!(SenseBytes::NONE.decode(), None);
    }
}
