//! ATA information, page 89h (SAT-4): the ATA device as the translation layer found it.

use super::header::{VpdPageCode, blank, body_of};
use crate::DecodeError;
use crate::scsi::ascii::Ascii;
use crate::scsi::inquiry::Peripheral;
use crate::scsi::layout::part;
use core::fmt;

/// Identity of the SATL, and the signature and IDENTIFY data of the ATA device.
///
/// ```text
///  0..4   VPD header                     56      command code of the identification
///  4..8   reserved                       57..60  reserved
///  8..16  SAT vendor identification      60..572 the 512 bytes of IDENTIFY DEVICE data
/// 16..32  SAT product identification
/// 32..36  SAT product revision level
/// 36..56  ATA device signature: a Device to Host register FIS
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtaInformation<'a> {
    /// SAT VENDOR IDENTIFICATION: who made the translation layer.
    pub vendor: Ascii<8>,
    /// SAT PRODUCT IDENTIFICATION.
    pub product: Ascii<16>,
    /// SAT PRODUCT REVISION LEVEL.
    pub revision: Ascii<4>,
    /// ATA DEVICE SIGNATURE: the first register FIS after reset, type 34h.
    pub signature: [u8; 20],
    /// COMMAND CODE: ECh for IDENTIFY DEVICE, A1h for IDENTIFY PACKET DEVICE, 0 if there is none.
    pub command: u8,
    /// The answer to that command, words little-endian.
    pub identify: &'a [u8; 512],
}

impl<'a> AtaInformation<'a> {
    /// Bytes with the header.
    pub const LEN: usize = 572;

    /// Decodes the page; unlike other pages it must be there in full.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let body = body_of(VpdPageCode::AtaInformation, bytes)?;
        let truncated = DecodeError::Truncated { needed: Self::LEN, got: body.len() + 4 };
        let (head, identify) = body.split_first_chunk::<56>().ok_or(truncated)?;
        Ok(Self {
            vendor: Ascii(part::<4, 8, _>(head)),
            product: Ascii(part::<12, 16, _>(head)),
            revision: Ascii(part::<28, 4, _>(head)),
            signature: part::<32, 20, _>(head),
            command: head[52],
            identify: identify.first_chunk().ok_or(truncated)?,
        })
    }

    /// The 572 bytes on the wire.
    pub fn encode(&self, peripheral: Peripheral) -> [u8; 572] {
        let mut out: [u8; 572] = blank(VpdPageCode::AtaInformation, peripheral);
        out[8..16].copy_from_slice(&self.vendor.0);
        out[16..32].copy_from_slice(&self.product.0);
        out[32..36].copy_from_slice(&self.revision.0);
        out[36..56].copy_from_slice(&self.signature);
        out[56] = self.command;
        out[60..].copy_from_slice(self.identify);
        out
    }
}

impl fmt::Display for AtaInformation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vendor, product, revision, command, .. } = self;
        write!(f, "ATA behind {vendor} {product} {revision}, identified by {command:#04x}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn page() -> Vec<u8> {
        let mut bytes = b"\x00\x89\x02\x38\0\0\0\0uaskit  SAT             0.1 ".to_vec();
        bytes.extend([0x34, 0x00, 0x50, 0x01, 0x01, 0, 0, 0, 0, 0, 0, 0, 0x01, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([0xec, 0, 0, 0]);
        bytes.extend((0..512).map(|at| at as u8));
        bytes
    }

    #[test]
    fn literal_bytes_both_ways() {
        let bytes = page();
        let page = AtaInformation::decode(&bytes).unwrap();
        assert_eq!(page.vendor, Ascii::new("uaskit"));
        assert_eq!(page.product, Ascii::new("SAT"));
        assert_eq!(page.revision, Ascii::new("0.1"));
        assert_eq!(page.signature[..4], [0x34, 0x00, 0x50, 0x01]);
        assert_eq!(page.command, 0xec);
        assert_eq!(page.identify[..3], [0, 1, 2]);
        assert_eq!(page.encode(Peripheral::DISK)[..], bytes);
    }

    #[test]
    fn a_page_that_says_less_is_truncated() {
        let mut bytes = page();
        bytes[3] = 0x37;
        let error = DecodeError::Truncated { needed: 572, got: 571 };
        assert_eq!(AtaInformation::decode(&bytes), Err(error));
    }
}
