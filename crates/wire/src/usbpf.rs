//! The header that FreeBSD's usbpf puts before each event of a transfer (link type 186; FreeBSD, sys/dev/usb/usb_pf.h), and the
//! frames behind it.
//!
//! A transfer is two events: it is submitted, and it is done. An event has frames, each with its length and, if bytes went in the
//! direction of the event, the bytes, padded to four. A control transfer has its setup packet as the first frame. FreeBSD gives
//! transfers no id: on an endpoint they complete in the order of their submission. Left out: isochronous frames, speed, flags.

use crate::DecodeError;
use crate::usb::EndpointAddress;
use core::fmt;

/// Header that precedes the frames. Little-endian.
///
/// ```text
///  0..4  bytes in all, with frames    11     kind of endpoint       32..36 largest packet
///  4..8  bus                          12..16 flags                  36..40 packets at once
///  8     device                       16..20 status                 40..44 endpoint
///  9     0: the host's side           20..24 error                  44     speed
/// 10     0: submitted, 1: done        24..28 interval               45..128 reserved
///                                     28..32 frames
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsbpfHeader {
    /// Number of the bus (`usbus0` is 0).
    pub bus: u32,
    /// Index of the device on it.
    pub device: u8,
    /// Submitted or done.
    pub event: UsbpfEvent,
    /// Kind of endpoint.
    pub kind: UsbpfKind,
    /// How the transfer ended; 0 when it is submitted.
    pub error: UsbpfError,
    /// Frames that follow.
    pub frames: u32,
    /// The endpoint; of a control transfer, without the direction of its data.
    pub endpoint: EndpointAddress,
}

/// A frame of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsbpfFrame<'a> {
    /// Bytes requested or moved.
    pub length: u32,
    /// Whether they go to the host.
    pub is_read: bool,
    /// The bytes that were captured.
    pub bytes: &'a [u8],
}

/// The frames of an event, in their order; ends at the first that is not there.
#[derive(Clone, Copy, Debug)]
pub struct UsbpfFrames<'a> {
    left: u32,
    bytes: &'a [u8],
}

code! {
    /// Types of events of a transfer.
    pub enum UsbpfEvent: u8 {
        /// The driver submitted it.
        Submit = 0x00 => "submit",
        /// It is complete.
        Done = 0x01 => "done",
    }
}

code! {
    /// Kind of endpoint, as in descriptors.
    pub enum UsbpfKind: u8 {
        /// Control.
        Control = 0x00 => "control",
        /// Isochronous.
        Isochronous = 0x01 => "isochronous",
        /// Bulk.
        Bulk = 0x02 => "bulk",
        /// Interrupt.
        Interrupt = 0x03 => "interrupt",
    }
}

code! {
    /// How a transfer ended (FreeBSD's usbdi.h, `usb_error_t`).
    pub enum UsbpfError: u32 {
        /// As it should.
        Normal = 0 => "success",
        /// The driver cancelled it.
        Cancelled = 5 => "cancelled",
        /// The bus or the controller failed.
        Io = 18 => "I/O error",
        /// The driver's time limit.
        Timeout = 20 => "time-out",
        /// Fewer bytes than the driver allows.
        ShortTransfer = 21 => "short transfer",
        /// The endpoint stalled.
        Stalled = 22 => "stall",
        /// The device was detached.
        Interrupted = 23 => "interrupted",
    }
}

impl UsbpfHeader {
    /// Bytes of the header.
    pub const LEN: usize = 128;

    /// Decodes a header; bytes past it are ignored.
    ///
    /// # Errors
    /// Bytes that are too few, an endpoint with reserved bits.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let truncated = DecodeError::Truncated { needed: Self::LEN, got: bytes.len() };
        let head = bytes.first_chunk::<{ Self::LEN }>().ok_or(truncated)?;
        let (&[_, _, _, _, b0, b1, b2, b3, device, _, event, kind], rest) =
            head.split_first_chunk::<12>().ok_or(truncated)?;
        let (&[_, _, _, _, _, _, _, _, e0, e1, e2, e3, _, _, _, _, n0, n1, n2, n3], rest) =
            rest.split_first_chunk::<20>().ok_or(truncated)?;
        let &[_, _, _, _, _, _, _, _, endpoint, ..] = rest else { return Err(truncated) };
        Ok(Self {
            bus: u32::from_le_bytes([b0, b1, b2, b3]),
            device,
            event: event.into(),
            kind: kind.into(),
            error: u32::from_le_bytes([e0, e1, e2, e3]).into(),
            frames: u32::from_le_bytes([n0, n1, n2, n3]),
            endpoint: EndpointAddress::try_from(endpoint)?,
        })
    }

    /// The frames of an event whose bytes these are, with the header.
    pub fn frames_in<'a>(&self, bytes: &'a [u8]) -> UsbpfFrames<'a> {
        UsbpfFrames { left: self.frames, bytes: bytes.get(Self::LEN..).unwrap_or_default() }
    }
}

impl<'a> Iterator for UsbpfFrames<'a> {
    type Item = UsbpfFrame<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        const READ: u32 = 1;
        const DATA_FOLLOWS: u32 = 2;
        self.left = self.left.checked_sub(1)?;
        let (&[l0, l1, l2, l3, f0, f1, f2, f3], rest) = self.bytes.split_first_chunk::<8>()?;
        let (length, flags) = (u32::from_le_bytes([l0, l1, l2, l3]), u32::from_le_bytes([f0, f1, f2, f3]));
        let follows = if flags & DATA_FOLLOWS == 0 { 0 } else { length as usize };
        let bytes = rest.get(..follows).unwrap_or(rest);
        self.bytes =
            follows.checked_next_multiple_of(4).and_then(|padded| rest.get(padded..)).unwrap_or_default();
        Some(UsbpfFrame { length, is_read: flags & READ != 0, bytes })
    }
}

impl fmt::Display for UsbpfHeader {
    /// `done bulk 1 IN of 0.2: 1 frames, success`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, kind, endpoint, bus, device, frames, error } = self;
        write!(f, "{event} {kind} {endpoint} of {bus}.{device}: {frames} frames, {error}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::usb::Direction;
    use std::string::ToString;
    use std::vec::Vec;

    /// A transfer on endpoint 1 IN of device 2 on bus 1: event, error, frames.
    fn header(event: u8, error: u8, frames: u8) -> [u8; 128] {
        let mut bytes = [0; 128];
        bytes[..12].copy_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0, 2, 0, event, 2]);
        (bytes[20], bytes[28], bytes[40], bytes[44]) = (error, frames, 0x81, 3);
        bytes
    }

    #[test]
    fn a_header_has_its_fields() {
        let decoded = UsbpfHeader::decode(&header(1, 22, 1)).unwrap();
        let expected = UsbpfHeader {
            bus: 1,
            device: 2,
            event: UsbpfEvent::Done,
            kind: UsbpfKind::Bulk,
            error: UsbpfError::Stalled,
            frames: 1,
            endpoint: EndpointAddress::at::<1>(Direction::In),
        };
        assert_eq!(decoded, expected);
        assert_eq!(decoded.to_string(), "done bulk 1 IN of 1.2: 1 frames, stall");
    }

    #[test]
    fn frames_are_padded_to_four_bytes_and_may_lack_their_data() {
        let mut bytes = header(1, 0, 4).to_vec();
        bytes.extend([13, 0, 0, 0, 3, 0, 0, 0]);
        bytes.extend(*b"USBS123456789\0\0\0");
        bytes.extend([0, 2, 0, 0, 0, 0, 0, 0]);
        bytes.extend([8, 0, 0, 0, 2, 0, 0, 0, 1, 2, 3]);
        let frames: Vec<_> = UsbpfHeader::decode(&bytes).unwrap().frames_in(&bytes).collect();
        let frame = |length, is_read, bytes| UsbpfFrame { length, is_read, bytes };
        assert_eq!(
            frames,
            [frame(13, true, b"USBS123456789"), frame(512, false, b""), frame(8, false, &[1, 2, 3])]
        );
    }

    #[test]
    fn fewer_bytes_are_no_header() {
        let whole = header(0, 0, 0);
        for len in 0..whole.len() {
            let error = DecodeError::Truncated { needed: 128, got: len };
            assert_eq!(UsbpfHeader::decode(&whole[..len]), Err(error));
        }
    }

    #[test]
    fn a_length_of_four_gigabytes_ends_the_frames() {
        let mut bytes = header(1, 0, 255).to_vec();
        bytes.extend([0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0, 1, 2]);
        let frames: Vec<_> = UsbpfHeader::decode(&bytes).unwrap().frames_in(&bytes).collect();
        assert_eq!((frames.len(), frames[0].bytes), (1, &[1, 2][..]));
    }
}
