//! What a cable runs at, whatever is on it.
//!
//! It says nothing of who is at its ends: hubs and what a controller adds are theirs to tell ([`super::Connection`]).

use super::{superspeed, usb2};
use bus::Speed;

/// The rate of a SuperSpeed link, or of a bus of USB 2.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnyRate {
    /// Of USB 3.
    SuperSpeed(superspeed::Rate),
    /// The bus of USB 2.0.
    Usb2(usb2::Rate),
}

impl AnyRate {
    /// The speed of devices on it.
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
