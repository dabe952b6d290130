//! Errors of a host controller driven by this crate, and of its devices.

use crate::host_bus::HostBusError;
use crate::vfio::VfioError;
use bus::TransferStatus;
use std::fmt;
use wire::DecodeError;
use xhci_driver::{Answer, Death, Refusal};

/// Why an operation of a controller or a device failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerError {
    /// VFIO failed.
    Vfio(VfioError),
    /// The controller failed for good.
    Died(Death),
    /// The controller did not start in time.
    NotRunning,
    /// The driver rejected the request.
    Refused {
        /// The operation.
        action: &'static str,
        /// The reason.
        refusal: Refusal,
    },
    /// The controller did not carry it out.
    Unanswered {
        /// The operation.
        action: &'static str,
        /// Its answer.
        answer: Answer,
    },
    /// The device stalled the request.
    Stalled {
        /// The operation.
        action: &'static str,
    },
    /// A transfer failed.
    Transfer {
        /// The operation.
        action: &'static str,
        /// Its status.
        status: TransferStatus,
    },
    /// It timed out.
    TimedOut {
        /// The operation.
        action: &'static str,
    },
    /// No device is connected to that port.
    EmptyPort(u8),
    /// The device on that port is already in use.
    Taken(u8),
    /// The device has an unsupported speed.
    Speed {
        /// Its port.
        port: u8,
        /// The speed id of the controller.
        speed_id: u8,
    },
    /// Malformed descriptors.
    Descriptors(DecodeError),
    /// Another device is on the port since its reset.
    Changed,
    /// The device has no such interface or alternate setting.
    NoSetting {
        /// bInterfaceNumber.
        interface: u8,
        /// bAlternateSetting.
        alternate: u8,
    },
    /// The endpoint has transfers in flight.
    Busy,
    /// The device is disconnected.
    Disconnected,
}

impl From<VfioError> for ControllerError {
    fn from(error: VfioError) -> Self {
        Self::Vfio(error)
    }
}

impl HostBusError for ControllerError {
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
            Self::Died(death) => write!(f, "host controller failed: {death}"),
            Self::NotRunning => f.write_str("host controller did not start in time"),
            Self::Refused { action, refusal } => write!(f, "cannot {action}: {refusal}"),
            Self::Unanswered { action, answer } => write!(f, "cannot {action}: {answer}"),
            Self::Stalled { action } => write!(f, "cannot {action}: stalled by the device"),
            Self::Transfer { action, status } => {
                write!(f, "cannot {action}: transfer failed with {status:?}")
            }
            Self::TimedOut { action } => write!(f, "timed out: {action}"),
            Self::EmptyPort(port) => write!(f, "no device on port {port}"),
            Self::Taken(port) => write!(f, "the device on port {port} is already in use"),
            Self::Speed { port, speed_id } => {
                write!(f, "unsupported speed id {speed_id} of the device on port {port}")
            }
            Self::Descriptors(error) => write!(f, "malformed descriptors: {error}"),
            Self::Changed => f.write_str("the device changed during the port reset"),
            Self::NoSetting { interface, alternate } => {
                write!(f, "interface {interface} has no alternate setting {alternate}")
            }
            Self::Busy => f.write_str("the endpoint has transfers in flight"),
            Self::Disconnected => f.write_str("device disconnected"),
        }
    }
}

impl std::error::Error for ControllerError {}
