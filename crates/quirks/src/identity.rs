//! Identity that a device reports: ids, revision, names. Linux decides some things by these alone.

use core::fmt;
use core::str::FromStr;
use wire::usb::DeviceDescriptor;

/// idVendor and idProduct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId {
    /// idVendor.
    pub vendor: u16,
    /// idProduct.
    pub product: u16,
}

/// Strings of a device, where they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names<'a> {
    /// iManufacturer.
    pub manufacturer: Option<&'a str>,
    /// iProduct.
    pub product: Option<&'a str>,
}

/// Identity that a device reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Its ids.
    pub id: DeviceId,
    /// bcdDevice.
    pub revision: u16,
    /// Its names.
    pub names: Names<'a>,
}

/// Text that is no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoDeviceId;

impl DeviceId {
    /// An id from its two numbers.
    pub const fn new(vendor: u16, product: u16) -> Self {
        Self { vendor, product }
    }
}

impl<'a> Identity<'a> {
    /// Returns the identity in the device descriptor, with the names that were read beside it.
    pub const fn of(device: &DeviceDescriptor, names: Names<'a>) -> Self {
        Self { id: DeviceId::new(device.vendor, device.product), revision: device.device_version.0, names }
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:04x}", self.vendor, self.product)
    }
}

impl FromStr for DeviceId {
    type Err = NoDeviceId;

    /// `174c:55aa`: two hexadecimal numbers.
    fn from_str(text: &str) -> Result<Self, NoDeviceId> {
        let (vendor, product) = text.split_once(':').ok_or(NoDeviceId)?;
        Ok(Self { vendor: number(vendor)?, product: number(product)? })
    }
}

/// Digits alone: the library takes a sign as well.
fn number(digits: &str) -> Result<u16, NoDeviceId> {
    let is_plain = digits.chars().all(|digit| digit.is_ascii_hexdigit());
    let number = is_plain.then(|| u16::from_str_radix(digits, 16).ok());
    number.flatten().ok_or(NoDeviceId)
}

impl fmt::Display for NoDeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not two hexadecimal numbers with a colon between them")
    }
}

impl core::error::Error for NoDeviceId {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        assert_eq!("174c:55aa".parse(), Ok(DeviceId::new(0x174c, 0x55aa)));
        assert_eq!("1:F".parse(), Ok(DeviceId::new(1, 15)));
        assert_eq!(DeviceId::new(1, 0x55aa).to_string(), "0001:55aa");
        for text in ["", ":", "174c", "174c:", "174c:55aa:", "+174c:55aa", "-1:0", "10000:1", "0x1:2"] {
            assert_eq!(text.parse::<DeviceId>(), Err(NoDeviceId), "{text}");
        }
    }
}
