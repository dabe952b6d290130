//! USB 2.0 and 3.2: setup packets and descriptors.

mod address;

pub use address::EndpointAddress;

use core::fmt;

/// Which way bytes travel, seen from the host. A choice, not a code: one bit wherever it is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Host to device.
    Out,
    /// Device to host.
    In,
}

impl Direction {
    /// The direction in bit 7 of `byte`: of an endpoint address, `bmRequestType` or `bmCBWFlags`.
    pub const fn from_bit_7(byte: u8) -> Self {
        if byte & 0x80 == 0 { Self::Out } else { Self::In }
    }

    /// 80h for [`Self::In`], 0 for [`Self::Out`].
    pub const fn bit_7(self) -> u8 {
        match self {
            Self::Out => 0x00,
            Self::In => 0x80,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Out => "OUT",
            Self::In => "IN",
        })
    }
}
