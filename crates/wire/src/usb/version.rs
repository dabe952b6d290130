//! Versions in binary-coded decimal: `bcdUSB` and `bcdDevice`.

use core::fmt;

/// A version: the high byte before the point, the low byte after it, 0320h is 3.20.
///
/// Any two bytes are a version, also when a digit is above 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BcdVersion(pub u16);

impl BcdVersion {
    /// USB 2.0.
    pub const USB_2_0: Self = Self(0x0200);
    /// USB 2.0 speeds, by a device that has a BOS (USB 2.0 link power management, or a USB 3 device).
    pub const USB_2_1: Self = Self(0x0210);
    /// USB 3.0.
    pub const USB_3_0: Self = Self(0x0300);
    /// USB 3.2.
    pub const USB_3_2: Self = Self(0x0320);
}

impl fmt::Display for BcdVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor] = self.0.to_be_bytes();
        write!(f, "{major:x}.{minor:02x}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_version_reads_as_its_digits() {
        assert_eq!(BcdVersion(0x0210).to_string(), "2.10");
        assert_eq!(BcdVersion(0x1203).to_string(), "12.03");
        assert!(BcdVersion::USB_2_1 < BcdVersion::USB_3_0);
    }
}
