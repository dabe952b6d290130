//! Events of Linux's usbmon, and of QEMU (link types 189 and 220).
//!
//! QEMU does not say how much a transfer to the host asks for, and gives nearly every error the number that Linux has for a read that
//! was short (EREMOTEIO); a write is never that.
//!
//! Isochronous transfers are counted alone: no drive has them.

use super::seen::{Seen, other};
use crate::event::{Address, Event, Mark, Phase, TransferEnd, TransferKind};
use capture::{ByteOrder, Link, Packet};
use wire::DecodeError;
use wire::usb::{Direction, SetupPacket};
use wire::usbmon::{UsbmonEvent, UsbmonHeader, UsbmonKind};

pub(super) fn event<'a>(packet: &Packet<'a>) -> Result<Seen<'a>, DecodeError> {
    let widened;
    let (head, len) = match packet.link {
        Link::UsbmonShort => {
            widened = UsbmonHeader::widened(packet.bytes)?;
            (&widened[..], UsbmonHeader::SHORT_LEN)
        }
        _ => (packet.bytes, UsbmonHeader::LEN),
    };
    let header = match packet.order {
        ByteOrder::Little => UsbmonHeader::decode(head),
        ByteOrder::Big => UsbmonHeader::decode_big_endian(head),
    }?;
    let address = Address { bus: header.bus, device: header.device.into() };
    let is_begin = header.event == UsbmonEvent::Submit;
    let kind = match header.kind {
        UsbmonKind::Control => TransferKind::Control,
        UsbmonKind::Bulk => TransferKind::Bulk,
        UsbmonKind::Interrupt => TransferKind::Interrupt,
        _ => return other(address, TransferKind::Isochronous, is_begin),
    };
    let phase = match header.event {
        UsbmonEvent::Submit => Phase::Submitted,
        UsbmonEvent::Complete | UsbmonEvent::Refuse => Phase::Completed(TransferEnd::of_errno(header.status)),
        UsbmonEvent::Unknown(code) => {
            return Err(DecodeError::Invalid { field: "event", value: code.into() });
        }
    };
    let is_out = header.endpoint.direction() == Direction::Out;
    let phase = match phase {
        Phase::Completed(TransferEnd::Done) if is_out && header.status != 0 => {
            Phase::Completed(TransferEnd::Failed(header.status.into()))
        }
        phase => phase,
    };
    let has_length = header.length > 0 || is_out || phase != Phase::Submitted;
    Ok(Seen::Event(Event {
        mark: Mark::of(packet),
        address,
        kind,
        endpoint: header.endpoint,
        id: header.id,
        phase,
        setup: header.setup.map(SetupPacket::from),
        length: Some(header.length).filter(|_| has_length),
        bytes: packet.bytes.get(len..).unwrap_or_default(),
        stream: packet.stream,
    }))
}
