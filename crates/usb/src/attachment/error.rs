//! Why a disk cannot be attached.

use super::TransportChoice;
use crate::usbfs::UsbfsError;
use initiator::disk::IdentifyError;
use quirks::{Finding, Rule};
use std::fmt;
use wire::bot::LUN_MAX;

/// Why there is no attachment. All changes made on the way are undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachError<E = UsbfsError> {
    /// The system uses the disk.
    InUse {
        /// Its block device.
        disk: String,
        /// The user.
        by: String,
    },
    /// The descriptors cannot be read or are malformed.
    Descriptors,
    /// The requested transport does not work on this device and link.
    NotOffered {
        /// The transport.
        transport: TransportChoice,
        /// The first unmet requirement.
        because: Option<Finding>,
    },
    /// The host bus failed.
    Bus(E),
    /// The device has too few streams for a command and its recovery.
    Streams {
        /// Streams granted.
        granted: u16,
    },
    /// The drive has no such logical unit.
    NoUnit {
        /// Its number.
        lun: u8,
        /// The existing ones, as far as reported.
        units: Vec<u16>,
    },
    /// Bulk-Only Transport cannot address this LUN: it has four bits.
    UnitOutOfReach {
        /// The LUN.
        lun: u8,
    },
    /// The identify sequence failed.
    Identify(IdentifyError),
    /// The identify sequence timed out.
    IdentifyTimedOut,
    /// A signal interrupted the identify sequence.
    IdentifyInterrupted,
}

impl<E> From<E> for AttachError<E> {
    fn from(error: E) -> Self {
        Self::Bus(error)
    }
}

impl AttachError {
    /// Returns whether device, link or controller lack the requested transport, without a failure.
    pub const fn is_not_offered(&self) -> bool {
        let is_of_device = matches!(self, Self::NotOffered { .. } | Self::UnitOutOfReach { .. });
        is_of_device || matches!(self, Self::Streams { .. } | Self::Bus(UsbfsError::NoStreams))
    }

    /// Returns whether the drive is unaffected and may be used otherwise.
    pub(super) const fn spares_the_drive(&self) -> bool {
        let is_of_ours = matches!(self, Self::NoUnit { .. } | Self::Bus(UsbfsError::Memory { .. }));
        is_of_ours || self.is_not_offered()
    }
}

impl<E: fmt::Display> fmt::Display for AttachError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { disk, by } => write!(f, "/dev/{disk} is in use: {by}"),
            Self::Descriptors => f.write_str("cannot read the device's descriptors from sysfs"),
            Self::NotOffered { transport, because } => {
                write!(f, "the device does not support {transport} here")?;
                match because {
                    Some(Finding { rule: Rule::HostStreams, .. }) => {
                        f.write_str(": its host controller does not support streams")
                    }
                    Some(finding) => write!(f, ": {finding}"),
                    None => Ok(()),
                }
            }
            Self::Bus(error) => error.fmt(f),
            Self::Streams { granted } => {
                write!(
                    f,
                    "device granted {granted} stream{}; UAS needs at least 2",
                    if *granted == 1 { "" } else { "s" }
                )
            }
            Self::NoUnit { lun, units } => {
                write!(f, "the drive has no logical unit {lun}")?;
                match &units[..] {
                    [] => Ok(()),
                    [only] => write!(f, "; the only one is {only}"),
                    [all @ .., last] => {
                        let all = all.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
                        write!(f, "; it has {all} and {last}")
                    }
                }
            }
            Self::UnitOutOfReach { lun } => {
                write!(f, "BOT cannot address LUN {lun} (maximum {LUN_MAX})")
            }
            Self::Identify(error) => error.fmt(f),
            Self::IdentifyInterrupted => f.write_str("interrupted while identifying the disk"),
            Self::IdentifyTimedOut => f.write_str("timed out identifying the disk"),
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
    fn unsupported_transports_are_distinguished_from_failures() {
        let not_offered = AttachError::NotOffered { transport: TransportChoice::Uas, because: None };
        for error in
            [not_offered, AttachError::Streams { granted: 1 }, AttachError::Bus(UsbfsError::NoStreams)]
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
    fn a_missing_logical_unit_is_reported_with_those_present() {
        let text = |units: &[u16]| {
            let error = AttachError::<UsbfsError>::NoUnit { lun: 7, units: units.into() };
            assert!(!error.is_not_offered() && error.spares_the_drive());
            error.to_string()
        };
        assert_eq!(text(&[]), "the drive has no logical unit 7");
        assert_eq!(text(&[0]), "the drive has no logical unit 7; the only one is 0");
        assert_eq!(text(&[0, 1, 300]), "the drive has no logical unit 7; it has 0, 1 and 300");
        let far = AttachError::<UsbfsError>::UnitOutOfReach { lun: 16 };
        assert!(far.is_not_offered());
        assert_eq!(far.to_string(), "BOT cannot address LUN 16 (maximum 15)");
    }
}
