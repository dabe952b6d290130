//! What can go wrong between a controller of ours and a device.

use crate::door::DoorError;
use crate::vfio::VfioError;
use bus::TransferStatus;
use std::fmt;
use wire::DecodeError;
use xhci_driver::{Answer, Death, Refusal};

/// Why a controller or a device does not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerError {
    /// The controller cannot be had.
    Vfio(VfioError),
    /// It is of no use any more.
    Died(Death),
    /// It does not run in time.
    NotRunning,
    /// The driver does not take that on.
    Refused {
        /// What was asked for.
        action: &'static str,
        /// Why.
        refusal: Refusal,
    },
    /// The controller did not do it.
    Unanswered {
        /// What was asked for.
        action: &'static str,
        /// What came of it.
        answer: Answer,
    },
    /// The device refused a request with a stall.
    Stalled {
        /// What was asked for.
        action: &'static str,
    },
    /// A transfer ended otherwise than it should.
    Transfer {
        /// What was asked for.
        action: &'static str,
        /// How it ended.
        status: TransferStatus,
    },
    /// It was not over in time.
    TimedOut {
        /// What was asked for.
        action: &'static str,
    },
    /// There is nothing behind that port.
    EmptyPort(u8),
    /// The device behind that port is in use already.
    Taken(u8),
    /// The device has a speed for which there are no disks.
    Speed {
        /// Where it is.
        port: u8,
        /// The controller's name for the speed.
        speed_id: u8,
    },
    /// The device's descriptors are none.
    Descriptors(DecodeError),
    /// Another device answers behind the port since it was reset.
    Changed,
    /// The device has no such interface or setting.
    NoSetting {
        /// bInterfaceNumber.
        interface: u8,
        /// bAlternateSetting.
        alternate: u8,
    },
    /// Transfers of the endpoint are under way.
    Busy,
    /// The device is gone.
    Disconnected,
}

impl From<VfioError> for ControllerError {
    fn from(error: VfioError) -> Self {
        Self::Vfio(error)
    }
}

impl DoorError for ControllerError {
    fn is_stall(&self) -> bool {
        matches!(self, Self::Stalled { .. })
    }

    fn is_disconnect(&self) -> bool {
        *self == Self::Disconnected
    }
}

impl fmt::Display for ControllerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vfio(error) => error.fmt(f),
            Self::Died(death) => write!(f, "the controller is of no use any more: {death}"),
            Self::NotRunning => f.write_str("the controller does not run in time"),
            Self::Refused { action, refusal } => write!(f, "cannot {action}: {refusal}"),
            Self::Unanswered { action, answer } => write!(f, "the controller did not {action}: {answer}"),
            Self::Stalled { action } => write!(f, "the device refused to {action}"),
            Self::Transfer { action, status } => {
                write!(f, "cannot {action}: the transfer ended as {status:?}")
            }
            Self::TimedOut { action } => write!(f, "there was no time left to {action}"),
            Self::EmptyPort(port) => write!(f, "there is no device behind port {port}"),
            Self::Taken(port) => write!(f, "the device behind port {port} is in use already"),
            Self::Speed { port, speed_id } => {
                write!(f, "the device behind port {port} has the speed {speed_id}, which no disk has")
            }
            Self::Descriptors(error) => write!(f, "the device's descriptors are none: {error}"),
            Self::Changed => f.write_str("another device answers since the port was reset"),
            Self::NoSetting { interface, alternate } => {
                write!(f, "the device has no setting {alternate} of interface {interface}")
            }
            Self::Busy => f.write_str("transfers of the endpoint are under way"),
            Self::Disconnected => f.write_str("the device is gone"),
        }
    }
}

impl std::error::Error for ControllerError {}
