//! Why a disk is not driven by us.

use super::TransportChoice;
use crate::usbfs::UsbfsError;
use initiator::disk::SurveyError;
use quirks::{Finding, Rule};
use std::fmt;
use wire::bot::LUN_MAX;

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
    /// The drive has no such logical unit.
    NoUnit {
        /// Its number.
        lun: u8,
        /// Those that there are, as far as the drive tells.
        units: Vec<u16>,
    },
    /// Bulk-Only Transport has no word for a unit with this number: it has four bits.
    UnitOutOfReach {
        /// The number.
        lun: u8,
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
        let is_of_device = matches!(self, Self::NotOffered { .. } | Self::UnitOutOfReach { .. });
        is_of_device || matches!(self, Self::Streams { .. } | Self::Door(UsbfsError::NoStreams))
    }

    /// Whether the drive is as well as before, and may be asked for something else.
    pub(super) const fn spares_the_drive(&self) -> bool {
        let is_of_ours = matches!(self, Self::NoUnit { .. } | Self::Door(UsbfsError::Memory { .. }));
        is_of_ours || self.is_not_offered()
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
            Self::NoUnit { lun, units } => {
                write!(f, "the drive has no logical unit {lun}")?;
                match &units[..] {
                    [] => Ok(()),
                    [only] => write!(f, ": there is {only} alone"),
                    [all @ .., last] => {
                        let all = all.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
                        write!(f, ": there are {all} and {last}")
                    }
                }
            }
            Self::UnitOutOfReach { lun } => {
                write!(f, "BOT has no word for logical unit {lun}: {LUN_MAX} is the highest")
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
            assert!(error.is_not_offered() && error.spares_the_drive(), "{error}");
        }
        let memory = UsbfsError::Memory { limit_mb: Some(16), wanted_bytes: None };
        let busy = UsbfsError::Busy { interface: "2-1:1.0".into(), holder: None };
        let in_use = AttachError::InUse { disk: "sda".into(), by: "it is mounted at /".into() };
        for error in [memory.into(), busy.into(), UsbfsError::Disconnected.into(), in_use] {
            assert!(!error.is_not_offered(), "{error}");
        }
    }

    #[test]
    fn a_unit_that_is_not_there_is_told_with_those_that_are() {
        let told = |units: &[u16]| {
            let error = AttachError::<UsbfsError>::NoUnit { lun: 7, units: units.into() };
            assert!(!error.is_not_offered() && error.spares_the_drive());
            error.to_string()
        };
        assert_eq!(told(&[]), "the drive has no logical unit 7");
        assert_eq!(told(&[0]), "the drive has no logical unit 7: there is 0 alone");
        assert_eq!(told(&[0, 1, 300]), "the drive has no logical unit 7: there are 0, 1 and 300");
        let far = AttachError::<UsbfsError>::UnitOutOfReach { lun: 16 };
        assert!(far.is_not_offered());
        assert_eq!(far.to_string(), "BOT has no word for logical unit 16: 15 is the highest");
    }
}
