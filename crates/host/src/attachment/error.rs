//! Why a disk is not driven by us.

use super::TransportChoice;
use crate::usbfs::UsbfsError;
use initiator::disk::SurveyError;
use initiator::probe::{Finding, Rule};
use std::fmt;

/// Why there is no attachment. What was changed on the way is set back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachError<E = UsbfsError> {
    /// The system uses the disk.
    InUse {
        /// Its node.
        disk: String,
        /// By what.
        by: String,
    },
    /// The kernel does not tell the device's descriptors, or they are none.
    Descriptors,
    /// The transport that was asked for does not work on this device and link.
    NotOffered {
        /// Which.
        transport: TransportChoice,
        /// The first of our needs that is not met.
        because: Option<Finding>,
    },
    /// The door does not do what it must.
    Door(E),
    /// The device has too few streams for a command and its recovery.
    Streams {
        /// How many it gave.
        granted: u16,
    },
    /// The disk does not tell what it is.
    Survey(SurveyError),
    /// The survey was not over in time.
    SurveyTimedOut,
    /// A signal came in before the survey was over.
    SurveyInterrupted,
}

impl<E> From<E> for AttachError<E> {
    fn from(error: E) -> Self {
        Self::Door(error)
    }
}

impl AttachError {
    /// Whether nothing has failed, but device, link or controller do not have the transport that was asked for.
    pub const fn is_not_offered(&self) -> bool {
        matches!(self, Self::NotOffered { .. } | Self::Streams { .. } | Self::Door(UsbfsError::NoStreams))
    }
}

impl<E: fmt::Display> fmt::Display for AttachError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { disk, by } => write!(f, "/dev/{disk} is in use: {by}"),
            Self::Descriptors => f.write_str("the kernel does not show the device's descriptors"),
            Self::NotOffered { transport, because } => {
                write!(f, "the device has no {transport} that works here")?;
                match because {
                    Some(Finding { rule: Rule::HostStreams, .. }) => {
                        f.write_str(": its controller has no streams")
                    }
                    Some(finding) => write!(f, ": {finding}"),
                    None => Ok(()),
                }
            }
            Self::Door(error) => error.fmt(f),
            Self::Streams { granted } => {
                write!(f, "the device gave {granted} streams, where 2 are the least")
            }
            Self::Survey(error) => error.fmt(f),
            Self::SurveyInterrupted => f.write_str("a signal came in before the disk had told what it is"),
            Self::SurveyTimedOut => f.write_str("the disk has not told what it is in time"),
        }
    }
}

impl<E: std::error::Error> std::error::Error for AttachError<E> {}

impl fmt::Display for TransportChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Best => "transport",
            Self::Bot | Self::Turbo => "BOT",
            Self::Uas => "UAS",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_offered_is_told_from_what_has_failed() {
        let not_offered = AttachError::NotOffered { transport: TransportChoice::Uas, because: None };
        for error in
            [not_offered, AttachError::Streams { granted: 1 }, AttachError::Door(UsbfsError::NoStreams)]
        {
            assert!(error.is_not_offered(), "{error}");
        }
        let memory = UsbfsError::Memory { limit_mb: Some(16), wanted_bytes: None };
        let busy = UsbfsError::Busy { interface: "2-1:1.0".into(), holder: None };
        let in_use = AttachError::InUse { disk: "sda".into(), by: "it is mounted at /".into() };
        for error in [memory.into(), busy.into(), UsbfsError::Disconnected.into(), in_use] {
            assert!(!error.is_not_offered(), "{error}");
        }
    }
}
