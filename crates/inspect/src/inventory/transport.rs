//! The transport that carries the commands of an interface now, by the driver that is bound to it.

use super::{Interface, UsbDevice};
use std::fmt;

/// The transport that carries the commands of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// USB Attached SCSI: the driver `uas`.
    Uas {
        /// Commands have streams; below super speed they take turns.
        streams: bool,
    },
    /// Bulk-Only Transport, or one of its forerunners: the driver `usb-storage`.
    Bot,
    /// A program has claimed it through usbfs.
    Claimed,
    /// Another driver has it.
    Other(String),
    /// No driver has it.
    None,
    /// A report in text does not say.
    Unknown,
}

impl Transport {
    /// The transport of an interface of a device.
    pub fn of(device: &UsbDevice, interface: &Interface) -> Self {
        match interface.driver.as_deref().or(device.taken_by()) {
            Some("uas") => Self::Uas { streams: device.speed.is_super() },
            Some("usb-storage") => Self::Bot,
            Some("usbfs") => Self::Claimed,
            Some(other) => Self::Other(other.to_owned()),
            None if !interface.is_driver_known => Self::Unknown,
            None => Self::None,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uas { .. } => f.write_str("UAS"),
            Self::Bot => f.write_str("BOT"),
            Self::Claimed => f.write_str("claimed"),
            Self::Other(driver) => f.write_str(driver),
            Self::None => f.write_str("no driver"),
            Self::Unknown => f.write_str("driver unknown"),
        }
    }
}
