//! The signalling rate of a link of either bus.
//!
//! Hubs and the pacing of a controller are in [`super::Connection`].

use super::{superspeed, usb2};
use bus::Speed;

/// The rate of a SuperSpeed link or of a USB 2.0 bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnyRate {
    /// A USB 3 rate.
    SuperSpeed(superspeed::Rate),
    /// A USB 2.0 rate.
    Usb2(usb2::Rate),
}

impl AnyRate {
    /// Returns the speed of devices at this rate.
    pub const fn speed(self) -> Speed {
        match self {
            Self::SuperSpeed(_) => Speed::Super,
            Self::Usb2(usb2::Rate::High) => Speed::High,
            Self::Usb2(usb2::Rate::Full) => Speed::Full,
        }
    }
}

impl From<superspeed::Rate> for AnyRate {
    fn from(rate: superspeed::Rate) -> Self {
        Self::SuperSpeed(rate)
    }
}

impl From<usb2::Rate> for AnyRate {
    fn from(rate: usb2::Rate) -> Self {
        Self::Usb2(rate)
    }
}
