//! Unit serial number, page 80h (SPC-5): ASCII, as long as the page says.

use super::header::{VpdPageCode, body_of, encode_with_header};
use crate::scsi::inquiry::Peripheral;
use crate::{DecodeError, NoRoom};
use core::fmt;

/// The serial number of the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitSerialNumber<'a> {
    /// PRODUCT SERIAL NUMBER: ASCII by the standard, any bytes in fact; all spaces if there is none.
    pub serial: &'a [u8],
}

impl<'a> UnitSerialNumber<'a> {
    /// Decodes the page.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Ok(Self { serial: body_of(VpdPageCode::UnitSerialNumber, bytes)? })
    }

    /// Writes the page; the answer is the bytes written.
    pub fn encode(&self, peripheral: Peripheral, out: &mut [u8]) -> Result<usize, NoRoom> {
        encode_with_header(peripheral, VpdPageCode::UnitSerialNumber, self.serial, out)
    }
}

impl fmt::Display for UnitSerialNumber<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "serial number {}", self.serial.trim_ascii().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn literal_bytes_both_ways() {
        let bytes = *b"\x00\x80\x00\x08  UK0042";
        let page = UnitSerialNumber::decode(&bytes).unwrap();
        assert_eq!(page.serial, b"  UK0042");
        assert_eq!(page.to_string(), "serial number UK0042");
        let mut out = [0; 12];
        assert_eq!(page.encode(Peripheral::DISK, &mut out), Ok(12));
        assert_eq!(out, bytes);
    }

    #[test]
    fn a_serial_number_that_no_length_can_say_has_no_room() {
        let page = UnitSerialNumber { serial: &[b'x'; 0x1_0000] };
        let error = NoRoom { needed: 0x1_0000, got: 0xffff };
        assert_eq!(page.encode(Peripheral::DISK, &mut [0; 4]), Err(error));
    }
}
