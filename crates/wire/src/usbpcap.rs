//! The header that USBPcap, Windows's usbmon, puts before each event of a transfer (link type 249, its
//! `USBPCAP_BUFFER_PACKET_HEADER`).
//!
//! A transfer goes down to the device's driver and comes back up; [`UsbpcapHeader::is_up`] says which. What comes back has its
//! bytes if it brings any; a transfer to the host does not say how much it asked for. The events of a control transfer are
//! its stages. Left out: isochronous packets, which follow the header. USBPcap does not record streams.

use crate::DecodeError;
use crate::usb::EndpointAddress;
use core::fmt;

/// Header that precedes the bytes of an event. Little-endian.
///
/// ```text
///  0..2   bytes of the header, what its kind adds included       19..21 device
///  2..10  id of the request (IRP)                                21     endpoint
/// 10..14  status (USBD_STATUS)                                   22     kind of endpoint
/// 14..16  function (URB_FUNCTION)                                23..27 bytes that follow
/// 16      bit 0: on its way up                                   27     stage, of control transfers
/// 17..19  bus
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsbpcapHeader {
    /// Bytes before those of the transfer.
    pub header_len: u16,
    /// The same at submission and completion; may come again afterwards.
    pub id: u64,
    /// Completion status; 0 at submission.
    pub status: UsbdStatus,
    /// Function of the URB, by Windows's number.
    pub function: u16,
    /// Bit 0 is [`Self::is_up`]; the others are reserved.
    pub flags: u8,
    /// Number of the bus; the machine's.
    pub bus: u16,
    /// Address of the device.
    pub device: u16,
    /// The endpoint.
    pub endpoint: EndpointAddress,
    /// Kind of endpoint.
    pub kind: UsbpcapKind,
    /// Bytes that follow the header.
    pub length: u32,
    /// Of a control transfer.
    pub stage: Option<ControlStage>,
}

code! {
    /// Kind of endpoint.
    pub enum UsbpcapKind: u8 {
        /// Isochronous.
        Isochronous = 0x00 => "isochronous",
        /// Interrupt.
        Interrupt = 0x01 => "interrupt",
        /// Control.
        Control = 0x02 => "control",
        /// Bulk.
        Bulk = 0x03 => "bulk",
        /// A Windows notification rather than a transfer.
        Request = 0xfe => "request",
    }
}

code! {
    /// Which stage of a control transfer is recorded.
    pub enum ControlStage: u8 {
        /// The setup packet, and the bytes to the device if there are any.
        Setup = 0x00 => "setup",
        /// Bytes, in captures of early versions.
        Data = 0x01 => "data",
        /// The status stage, in captures of early versions.
        Status = 0x02 => "status",
        /// The end, and the bytes from the device.
        Complete = 0x03 => "complete",
    }
}

code! {
    /// How a transfer ended (Windows's usb.h, `USBD_STATUS`).
    pub enum UsbdStatus: u32 {
        /// Well.
        Success = 0x0000_0000 => "success",
        /// Not yet.
        Pending = 0x4000_0000 => "pending",
        /// The endpoint answered STALL.
        StallPid = 0xc000_0004 => "stall",
        /// The device does not answer.
        DeviceNotResponding = 0xc000_0005 => "device not responding",
        /// More bytes came than there was room for.
        DataOverrun = 0xc000_0008 => "data overrun",
        /// The endpoint was halted before.
        EndpointHalted = 0xc000_0030 => "endpoint halted",
        /// Fewer bytes came than the driver allows.
        ErrorShortTransfer = 0x8000_0900 => "short transfer",
        /// The driver's own time limit.
        Timeout = 0xc000_6000 => "time-out",
        /// The device is not there any more.
        DeviceGone = 0xc000_7000 => "device gone",
        /// The driver cancelled it.
        Canceled = 0xc001_0000 => "cancelled",
    }
}

impl UsbpcapHeader {
    /// Bytes that every header has.
    pub const LEN: usize = 27;

    /// Decodes a header; bytes past it are ignored.
    ///
    /// # Errors
    /// Bytes that are too few, a length that is less than the header has, an endpoint with reserved bits.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let truncated = DecodeError::Truncated { needed: Self::LEN, got: bytes.len() };
        let (&[l0, l1, id @ .., s0, s1, s2, s3, f0, f1, flags], rest) =
            bytes.split_first_chunk::<17>().ok_or(truncated)?;
        let (&[b0, b1, d0, d1, endpoint, kind, n0, n1, n2, n3], rest) =
            rest.split_first_chunk::<10>().ok_or(truncated)?;
        let header_len = u16::from_le_bytes([l0, l1]);
        if usize::from(header_len) < Self::LEN {
            return Err(DecodeError::Invalid { field: "headerLen", value: header_len.into() });
        }
        let kind = UsbpcapKind::from(kind);
        let has_stage = kind == UsbpcapKind::Control && usize::from(header_len) > Self::LEN;
        Ok(Self {
            header_len,
            id: u64::from_le_bytes(id),
            status: u32::from_le_bytes([s0, s1, s2, s3]).into(),
            function: u16::from_le_bytes([f0, f1]),
            flags,
            bus: u16::from_le_bytes([b0, b1]),
            device: u16::from_le_bytes([d0, d1]),
            endpoint: EndpointAddress::try_from(endpoint)?,
            kind,
            length: u32::from_le_bytes([n0, n1, n2, n3]),
            stage: rest.first().filter(|_| has_stage).map(|&stage| stage.into()),
        })
    }

    /// Whether it comes back from the device's driver.
    pub const fn is_up(&self) -> bool {
        self.flags & 1 != 0
    }
}

impl fmt::Display for UsbpcapHeader {
    /// `down bulk 1 IN of 2.5: 0 bytes, success`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, endpoint, bus, device, length, status, .. } = self;
        let way = if self.is_up() { "up" } else { "down" };
        write!(f, "{way} {kind} {endpoint} of {bus}.{device}: {length} bytes, {status}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::usb::Direction;
    use std::string::ToString;

    /// A stall on endpoint 1 IN of device 5 on bus 2, come back.
    const STALLED: [u8; 27] = [
        0x1b, 0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80, 0x04, 0x00, 0x00, 0xc0, 0x09,
        0x00, //
        0x01, 0x02, 0x00, 0x05, 0x00, 0x81, 0x03, 0x00, 0x00, 0x00, 0x00,
    ];

    #[test]
    fn a_stall_is_what_it_says() {
        let header = UsbpcapHeader::decode(&STALLED).unwrap();
        let expected = UsbpcapHeader {
            header_len: 27,
            id: 0x8070_6050_4030_2010,
            status: UsbdStatus::StallPid,
            function: 9,
            flags: 1,
            bus: 2,
            device: 5,
            endpoint: EndpointAddress::at::<1>(Direction::In),
            kind: UsbpcapKind::Bulk,
            length: 0,
            stage: None,
        };
        assert_eq!(header, expected);
        assert!(header.is_up());
        assert_eq!(header.to_string(), "up bulk 1 IN of 2.5: 0 bytes, stall");
    }

    #[test]
    fn a_control_transfer_says_its_stage() {
        let mut bytes = [0; 28];
        bytes[..27].copy_from_slice(&STALLED);
        [bytes[0], bytes[16], bytes[22], bytes[27]] = [28, 0, 2, 3];
        let header = UsbpcapHeader::decode(&bytes).unwrap();
        assert_eq!((header.stage, header.is_up()), (Some(ControlStage::Complete), false));
    }

    #[test]
    fn fewer_bytes_are_no_header() {
        for len in 0..STALLED.len() {
            let error = DecodeError::Truncated { needed: 27, got: len };
            assert_eq!(UsbpcapHeader::decode(&STALLED[..len]), Err(error));
        }
    }

    #[test]
    fn a_length_shorter_than_the_header_is_an_error() {
        let mut bytes = STALLED;
        bytes[0] = 26;
        let error = DecodeError::Invalid { field: "headerLen", value: 26 };
        assert_eq!(UsbpcapHeader::decode(&bytes), Err(error));
    }
}
