//! The header that Linux's usbmon puts before each event of a transfer (Linux, Documentation/usb/usbmon.rst, `struct
//! mon_bin_hdr` of drivers/usb/mon/mon_bin.c), as it is in captures of link type 220.
//!
//! A transfer is two events: it is submitted, and it is completed or could not be submitted. A capture is in the byte
//! order of the machine that took it: [`UsbmonHeader::decode`] takes the little-endian one, [`UsbmonHeader::decode_big_endian`] the
//! other. Captures of link type 189 have its first 48 bytes only: [`UsbmonHeader::widened`]. Left out: isochronous
//! transfers, whose descriptors follow the header; their place in it is read as nothing. usbmon does not record streams.

use crate::DecodeError;
use crate::usb::EndpointAddress;
use core::fmt;

/// Header that precedes the bytes of an event.
///
/// ```text
///  0..8   id of the transfer            24..28 microseconds           48..52 interval
///  8      event                         28..32 status                 52..56 start frame
///  9      kind of endpoint              32..36 bytes of the transfer  56..60 transfer flags
/// 10      endpoint                      36..40 bytes that follow      60..64 isochronous descriptors
/// 11      device                        40..48 setup packet
/// 12..14  bus
/// 14      0: a setup packet is there; else '-'
/// 15      0: bytes follow; else '<', '>' or an error
/// 16..24  seconds
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsbmonHeader {
    /// The same in both events of a transfer; may come again after the second.
    pub id: u64,
    /// Type of the event.
    pub event: UsbmonEvent,
    /// Kind of endpoint.
    pub kind: UsbmonKind,
    /// The endpoint. Endpoint 0 has the direction of its data stage.
    pub endpoint: EndpointAddress,
    /// Address of the device.
    pub device: u8,
    /// Number of the bus; the machine's, 1 is the first.
    pub bus: u16,
    /// The setup packet of a control transfer, when it is submitted.
    pub setup: Option<[u8; 8]>,
    /// Whether bytes follow, and if not, why.
    pub payload: UsbmonPayload,
    /// Time stamp: seconds since the epoch of the capturing system.
    pub seconds: i64,
    /// And microseconds.
    pub microseconds: i32,
    /// A negative error number of Linux, or 0.
    pub status: i32,
    /// Bytes that were asked for, or in the end moved.
    pub length: u32,
    /// Bytes that follow the header.
    pub captured: u32,
    /// Of interrupt and isochronous endpoints.
    pub interval: i32,
    /// Of isochronous endpoints.
    pub start_frame: i32,
    /// Linux's own, such as [`Self::TO_HOST`].
    pub flags: u32,
    /// Isochronous descriptors between the header and the bytes.
    pub descriptors: u32,
}

code! {
    /// Types of events of a transfer.
    pub enum UsbmonEvent: u8 {
        /// It was handed to the controller's driver.
        Submit = 0x53 => "submit",
        /// It came back.
        Complete = 0x43 => "complete",
        /// It could not be submitted.
        Refuse = 0x45 => "refuse",
    }
}

code! {
    /// Kind of endpoint; not numbered as in descriptors.
    pub enum UsbmonKind: u8 {
        /// Isochronous.
        Isochronous = 0x00 => "isochronous",
        /// Interrupt.
        Interrupt = 0x01 => "interrupt",
        /// Control.
        Control = 0x02 => "control",
        /// Bulk.
        Bulk = 0x03 => "bulk",
    }
}

code! {
    /// Whether bytes follow the header.
    pub enum UsbmonPayload: u8 {
        /// They do, or there are none at all.
        Present = 0x00 => "bytes follow",
        /// They come from the device later.
        Later = 0x3c => "bytes come later",
        /// They went to the device before.
        Before = 0x3e => "bytes went before",
    }
}

impl UsbmonHeader {
    /// Bytes of the header.
    pub const LEN: usize = 64;
    /// Bytes of it in captures of link type 189.
    pub const SHORT_LEN: usize = 48;
    /// [`Self::flags`]: the data stage goes to the host (`URB_DIR_IN`).
    pub const TO_HOST: u32 = 0x0200;
    /// [`Self::status`] of a transfer that has just been submitted (`-EINPROGRESS`).
    pub const IN_PROGRESS: i32 = -115;

    /// Decodes a header; bytes past it are ignored.
    ///
    /// # Errors
    /// Bytes that are too few, an endpoint with reserved bits.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let truncated = DecodeError::Truncated { needed: Self::LEN, got: bytes.len() };
        let &[i0, i1, i2, i3, i4, i5, i6, i7, event, kind, endpoint, device, b0, b1, has_setup, payload] =
            bytes.first_chunk().ok_or(truncated)?;
        let (seconds, rest) = bytes.get(16..).and_then(|rest| rest.split_first_chunk()).ok_or(truncated)?;
        let (&[m0, m1, m2, m3, s0, s1, s2, s3, l0, l1, l2, l3, c0, c1, c2, c3], rest) =
            rest.split_first_chunk().ok_or(truncated)?;
        let (setup, rest) = rest.split_first_chunk().ok_or(truncated)?;
        let &[v0, v1, v2, v3, f0, f1, f2, f3, t0, t1, t2, t3, d0, d1, d2, d3] =
            rest.first_chunk().ok_or(truncated)?;
        Ok(Self {
            id: u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]),
            event: event.into(),
            kind: kind.into(),
            endpoint: EndpointAddress::try_from(endpoint)?,
            device,
            bus: u16::from_le_bytes([b0, b1]),
            setup: (has_setup == 0).then_some(*setup),
            payload: payload.into(),
            seconds: i64::from_le_bytes(*seconds),
            microseconds: i32::from_le_bytes([m0, m1, m2, m3]),
            status: i32::from_le_bytes([s0, s1, s2, s3]),
            length: u32::from_le_bytes([l0, l1, l2, l3]),
            captured: u32::from_le_bytes([c0, c1, c2, c3]),
            interval: i32::from_le_bytes([v0, v1, v2, v3]),
            start_frame: i32::from_le_bytes([f0, f1, f2, f3]),
            flags: u32::from_le_bytes([t0, t1, t2, t3]),
            descriptors: u32::from_le_bytes([d0, d1, d2, d3]),
        })
    }

    /// As [`Self::decode`], from a machine whose byte order is the other one.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn decode_big_endian(bytes: &[u8]) -> Result<Self, DecodeError> {
        let header = Self::decode(bytes)?;
        Ok(Self {
            id: header.id.swap_bytes(),
            bus: header.bus.swap_bytes(),
            seconds: header.seconds.swap_bytes(),
            microseconds: header.microseconds.swap_bytes(),
            status: header.status.swap_bytes(),
            length: header.length.swap_bytes(),
            captured: header.captured.swap_bytes(),
            interval: header.interval.swap_bytes(),
            start_frame: header.start_frame.swap_bytes(),
            flags: header.flags.swap_bytes(),
            descriptors: header.descriptors.swap_bytes(),
            ..header
        })
    }

    /// A header of link type 189 as one that can be decoded: what it does not have is zero.
    ///
    /// # Errors
    /// Bytes that are too few; further ones are ignored.
    pub fn widened(bytes: &[u8]) -> Result<[u8; Self::LEN], DecodeError> {
        let truncated = DecodeError::Truncated { needed: Self::SHORT_LEN, got: bytes.len() };
        let short = bytes.first_chunk::<{ Self::SHORT_LEN }>().ok_or(truncated)?;
        let mut whole = [0; Self::LEN];
        for (place, byte) in whole.iter_mut().zip(short) {
            *place = *byte;
        }
        Ok(whole)
    }

    /// The whole header.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let fields: [&[u8]; 15] = [
            &self.id.to_le_bytes(),
            &[self.event.into(), self.kind.into(), self.endpoint.into(), self.device],
            &self.bus.to_le_bytes(),
            &[if self.setup.is_some() { 0 } else { b'-' }],
            &[self.payload.into()],
            &self.seconds.to_le_bytes(),
            &self.microseconds.to_le_bytes(),
            &self.status.to_le_bytes(),
            &self.length.to_le_bytes(),
            &self.captured.to_le_bytes(),
            &self.setup.unwrap_or_default(),
            &self.interval.to_le_bytes(),
            &self.start_frame.to_le_bytes(),
            &self.flags.to_le_bytes(),
            &self.descriptors.to_le_bytes(),
        ];
        for (place, byte) in bytes.iter_mut().zip(fields.into_iter().flatten()) {
            *place = *byte;
        }
        bytes
    }
}

impl fmt::Display for UsbmonHeader {
    /// `submit bulk 1 IN of 2.5: 4096 bytes, status -115`: endpoint 1 IN of device 5 on bus 2.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, kind, endpoint, bus, device, length, status, .. } = self;
        write!(f, "{event} {kind} {endpoint} of {bus}.{device}: {length} bytes, status {status}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::usb::Direction;
    use std::string::ToString;

    /// GET_DESCRIPTOR of a device, 18 bytes, as recorded by a kernel of 2017.
    const SUBMIT: [u8; 64] = [
        0xc0, 0x19, 0xd7, 0x51, 0x01, 0x88, 0xff, 0xff, 0x53, 0x02, 0x80, 0x28, 0x02, 0x00, 0x00,
        0x3c, //
        0x9a, 0x48, 0x86, 0x58, 0x00, 0x00, 0x00, 0x00, 0xd9, 0x34, 0x08, 0x00, 0x8d, 0xff, 0xff,
        0xff, //
        0x12, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x06, 0x00, 0x01, 0x00, 0x00, 0x12,
        0x00, //
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    ];

    fn submit() -> UsbmonHeader {
        UsbmonHeader {
            id: 0xffff_8801_51d7_19c0,
            event: UsbmonEvent::Submit,
            kind: UsbmonKind::Control,
            endpoint: EndpointAddress::at::<0>(Direction::In),
            device: 40,
            bus: 2,
            setup: Some([0x80, 0x06, 0x00, 0x01, 0x00, 0x00, 0x12, 0x00]),
            payload: UsbmonPayload::Later,
            seconds: 0x5886_489a,
            microseconds: 0x0008_34d9,
            status: -115,
            length: 18,
            captured: 0,
            interval: 0,
            start_frame: 0,
            flags: 0x200,
            descriptors: 0,
        }
    }

    #[test]
    fn a_submission_is_what_a_kernel_recorded() {
        assert_eq!(UsbmonHeader::decode(&SUBMIT), Ok(submit()));
        assert_eq!(submit().encode(), SUBMIT);
    }

    #[test]
    fn without_a_setup_packet_its_place_is_empty() {
        let complete = UsbmonHeader { setup: None, ..submit() };
        let bytes = complete.encode();
        assert_eq!((bytes[14], &bytes[40..48]), (0x2d, &[0; 8][..]));
        assert_eq!(UsbmonHeader::decode(&bytes), Ok(complete));
    }

    #[test]
    fn fewer_bytes_are_no_header() {
        for len in 0..SUBMIT.len() {
            let error = DecodeError::Truncated { needed: 64, got: len };
            assert_eq!(UsbmonHeader::decode(&SUBMIT[..len]), Err(error));
        }
    }

    #[test]
    fn a_machine_of_the_other_byte_order_reports_the_same() {
        let mut bytes = SUBMIT;
        let fields = [0..8, 12..14, 16..24, 24..28, 28..32, 32..36, 36..40, 48..52, 52..56, 56..60, 60..64];
        for field in fields {
            bytes[field].reverse();
        }
        assert_eq!(UsbmonHeader::decode_big_endian(&bytes), Ok(submit()));
        let error = DecodeError::Truncated { needed: 64, got: 63 };
        assert_eq!(UsbmonHeader::decode_big_endian(&bytes[..63]), Err(error));
    }

    #[test]
    fn a_short_header_has_no_flags() {
        let whole = UsbmonHeader::widened(&SUBMIT[..48]).unwrap();
        assert_eq!(UsbmonHeader::decode(&whole), Ok(UsbmonHeader { flags: 0, ..submit() }));
        let error = DecodeError::Truncated { needed: 48, got: 47 };
        assert_eq!(UsbmonHeader::widened(&SUBMIT[..47]), Err(error));
    }

    #[test]
    fn codes_that_are_not_known_survive() {
        let mut bytes = SUBMIT;
        [bytes[8], bytes[9], bytes[15]] = [0x58, 0x07, 0x44];
        let header = UsbmonHeader::decode(&bytes).unwrap();
        assert_eq!(header.event, UsbmonEvent::Unknown(0x58));
        assert_eq!(header.encode(), bytes);
    }

    #[test]
    fn a_header_prints_what_happened_where() {
        assert_eq!(submit().to_string(), "submit control 0 IN of 2.40: 18 bytes, status -115");
    }
}
