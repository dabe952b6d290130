//! Events of FreeBSD's usbpf (link type 186).
//!
//! A transfer has no id: on an endpoint the oldest that was submitted is the one that is done. Its frames are put together; the first
//! of a control transfer is the setup packet. FreeBSD cancels a transfer itself when its time limit has passed.
//!
//! Invariants: at most [`ENDPOINTS_MAX`] endpoints and [`TRANSFERS_MAX`] transfers of each are kept; bytes grow with one packet only.

use super::seen::{Seen, other};
use crate::event::{Address, Event, Mark, Phase, TransferEnd, TransferKind};
use capture::Packet;
use std::collections::{BTreeMap, VecDeque};
use wire::DecodeError;
use wire::usb::{EndpointAddress, SetupPacket};
use wire::usbpf::{UsbpfError, UsbpfEvent, UsbpfHeader, UsbpfKind};

/// Endpoints with transfers in flight.
const ENDPOINTS_MAX: usize = 1 << 10;
/// Transfers in flight on an endpoint.
const TRANSFERS_MAX: usize = 1 << 8;

/// Transfers in flight, by endpoint.
#[derive(Debug, Default)]
pub(super) struct Usbpf {
    in_flight: BTreeMap<(Address, u8), VecDeque<u64>>,
    submitted: u64,
    /// Bytes of an event that has several frames.
    bytes: Vec<u8>,
}

impl Usbpf {
    pub(super) fn event<'a>(&'a mut self, packet: &Packet<'a>) -> Result<Seen<'a>, DecodeError> {
        let header = UsbpfHeader::decode(packet.bytes)?;
        let bus = u16::try_from(header.bus).unwrap_or(u16::MAX);
        let address = Address { bus, device: header.device.into() };
        let kind = match header.kind {
            UsbpfKind::Control => TransferKind::Control,
            UsbpfKind::Bulk => TransferKind::Bulk,
            UsbpfKind::Interrupt => TransferKind::Interrupt,
            _ => TransferKind::Isochronous,
        };
        let is_submitted = match header.event {
            UsbpfEvent::Submit => true,
            UsbpfEvent::Done => false,
            UsbpfEvent::Unknown(code) => {
                return Err(DecodeError::Invalid { field: "type", value: code.into() });
            }
        };
        if kind == TransferKind::Isochronous {
            return other(address, kind, is_submitted);
        }
        let id = self.id(address, header.endpoint, is_submitted);
        let (setup, length) = self.gather(&header, packet.bytes);
        let endpoint = match setup {
            Some(setup) => EndpointAddress::new(header.endpoint.number(), setup.direction),
            None => Some(header.endpoint),
        };
        Ok(Seen::Event(Event {
            mark: Mark::of(packet),
            address,
            kind,
            endpoint: endpoint.unwrap_or(header.endpoint),
            id,
            phase: if is_submitted { Phase::Submitted } else { Phase::Completed(ended(header.error)) },
            setup: setup.filter(|_| is_submitted),
            length: Some(length),
            bytes: &self.bytes,
            stream: packet.stream,
        }))
    }

    /// Packets are missing: which transfers are in flight is not known.
    pub(super) fn miss(&mut self) {
        self.in_flight.clear();
    }

    fn id(&mut self, address: Address, endpoint: EndpointAddress, is_submitted: bool) -> u64 {
        let number = if endpoint.number() == 0 { 0 } else { endpoint.into() };
        let is_full =
            self.in_flight.len() >= ENDPOINTS_MAX && !self.in_flight.contains_key(&(address, number));
        if is_full {
            self.in_flight.pop_first();
        }
        let queue = self.in_flight.entry((address, number)).or_default();
        if is_submitted {
            self.submitted += 1;
            queue.truncate(TRANSFERS_MAX - 1);
            queue.push_back(self.submitted);
            return self.submitted;
        }
        // One that was submitted before the capture began has an id of no other.
        queue.pop_front().unwrap_or(0)
    }

    /// Puts the frames together: the setup packet, and bytes requested or moved.
    fn gather(&mut self, header: &UsbpfHeader, bytes: &[u8]) -> (Option<SetupPacket>, u32) {
        self.bytes.clear();
        let (mut setup, mut length) = (None, 0_u32);
        for (index, frame) in header.frames_in(bytes).enumerate() {
            if header.kind == UsbpfKind::Control && index == 0 && !frame.is_read {
                setup = SetupPacket::decode(frame.bytes).ok();
                continue;
            }
            length = length.saturating_add(frame.length);
            self.bytes.extend(frame.bytes);
        }
        (setup, length)
    }
}

fn ended(error: UsbpfError) -> TransferEnd {
    match error {
        UsbpfError::Normal | UsbpfError::ShortTransfer => TransferEnd::Done,
        UsbpfError::Stalled => TransferEnd::Stalled,
        UsbpfError::Cancelled | UsbpfError::Timeout => TransferEnd::Cancelled,
        UsbpfError::Interrupted => TransferEnd::Gone,
        other => TransferEnd::Failed(u32::from(other).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::{ByteOrder, Link};

    /// Event, error, kind and endpoint of a transfer, and its frames: length, flags, bytes.
    fn packet(event: u8, error: u8, [kind, endpoint]: [u8; 2], frames: &[(u32, u8, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 128];
        (bytes[8], bytes[10], bytes[11], bytes[20]) = (2, event, kind, error);
        (bytes[28], bytes[40]) = (frames.len() as u8, endpoint);
        for (length, flags, data) in frames {
            bytes.extend(length.to_le_bytes());
            bytes.extend([*flags, 0, 0, 0]);
            bytes.extend(*data);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    fn take(usbpf: &mut Usbpf, number: u64, bytes: &[u8]) -> (u64, Phase, Option<u32>, Vec<u8>, bool) {
        let packet = Packet {
            number,
            at_ns: number,
            link: Link::Usbpf,
            order: ByteOrder::Little,
            interface: 0,
            bytes,
            cut: 0,
            stream: None,
            is_added: false,
        };
        match usbpf.event(&packet) {
            Ok(Seen::Event(event)) => {
                (event.id, event.phase, event.length, event.bytes.to_vec(), event.setup.is_some())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn transfers_of_an_endpoint_are_done_in_the_order_of_their_submission() {
        let mut usbpf = Usbpf::default();
        let submitted = packet(0, 0, [2, 0x81], &[(512, 1, &[])]);
        let done = packet(1, 0, [2, 0x81], &[(13, 3, b"USBS123456789")]);
        let stalled = packet(1, 22, [2, 0x81], &[]);
        assert_eq!(take(&mut usbpf, 1, &submitted), (1, Phase::Submitted, Some(512), vec![], false));
        assert_eq!(take(&mut usbpf, 2, &submitted).0, 2);
        let (id, phase, length, bytes, _) = take(&mut usbpf, 3, &done);
        assert_eq!((id, phase, length), (1, Phase::Completed(TransferEnd::Done), Some(13)));
        assert_eq!(bytes, b"USBS123456789");
        assert_eq!(take(&mut usbpf, 4, &stalled).1, Phase::Completed(TransferEnd::Stalled));
        assert_eq!(take(&mut usbpf, 5, &done).0, 0, "it was submitted before");
    }

    #[test]
    fn a_control_transfer_has_its_setup_packet_in_its_first_frame() {
        let mut usbpf = Usbpf::default();
        let setup = [0x80, 6, 0, 1, 0, 0, 18, 0];
        let submitted = packet(0, 0, [0, 0], &[(8, 2, &setup), (18, 1, &[])]);
        assert_eq!(take(&mut usbpf, 1, &submitted), (1, Phase::Submitted, Some(18), vec![], true));
        let done = packet(1, 0, [0, 0], &[(8, 0, &[]), (18, 3, &[0x12; 18])]);
        let (id, _, length, bytes, _) = take(&mut usbpf, 2, &done);
        assert_eq!((id, length, bytes.len()), (1, Some(18), 18));
    }
}
