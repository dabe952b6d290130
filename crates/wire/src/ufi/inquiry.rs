//! INQUIRY data of UFI (UFI 1.0 clause 4.3): 36 bytes without a version of SCSI.

use super::head;
use crate::DecodeError;
use crate::scsi::ascii::Ascii;

/// Identity of a floppy drive.
///
/// ```text
///  0      00h, direct access      3      01h, response data format      8..16   vendor
///  1      80h, removable          4      1Fh, additional length         16..32  product
///                                                                       32..36  revision
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UfiInquiry {
    /// VENDOR INFORMATION.
    pub vendor: Ascii<8>,
    /// PRODUCT IDENTIFICATION.
    pub product: Ascii<16>,
    /// PRODUCT REVISION LEVEL.
    pub revision: Ascii<4>,
}

impl UfiInquiry {
    /// Bytes of the data.
    pub const LEN: usize = 36;

    /// Decodes the names; the fixed bytes before them are not looked at.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        let mut text = crate::Reader::new(whole);
        text.slice(8)?;
        Ok(Self {
            vendor: Ascii(text.array()?),
            product: Ascii(text.array()?),
            revision: Ascii(text.array()?),
        })
    }

    /// The 36 bytes on the wire.
    pub fn encode(&self) -> [u8; 36] {
        let fixed = [0x00, 0x80, 0x00, 0x01, 0x1f, 0, 0, 0];
        let names = self.vendor.0.iter().chain(&self.product.0).chain(&self.revision.0);
        let mut out = [0; Self::LEN];
        for (place, byte) in out.iter_mut().zip(fixed.iter().chain(names)) {
            *place = *byte;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let inquiry = UfiInquiry {
            vendor: Ascii(*b"ACME    "),
            product: Ascii(*b"USB Floppy      "),
            revision: Ascii(*b"1.00"),
        };
        let bytes = *b"\x00\x80\x00\x01\x1f\x00\x00\x00ACME    USB Floppy      1.00";
        assert_eq!((inquiry.encode(), UfiInquiry::decode(&bytes)), (bytes, Ok(inquiry)));
        assert!(UfiInquiry::decode(&bytes[..35]).is_err());
    }
}
