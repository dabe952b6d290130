//! Events as Linux's usbmon tells them, and QEMU (link types 189 and 220).
//!
//! QEMU does not say how much a transfer to the host asks for, and gives nearly every error the number that Linux has for a read that
//! was short (EREMOTEIO); a write is never that.
//!
//! Interrupt and isochronous transfers are passed over: no drive has them.

use super::mark;
use crate::event::{Address, Ended, Event, Phase};
use capture::{ByteOrder, Link, Packet};
use wire::DecodeError;
use wire::usb::{Direction, SetupPacket};
use wire::usbmon::{UsbmonEvent, UsbmonHeader, UsbmonKind};

pub(super) fn event<'a>(packet: &Packet<'a>) -> Result<Option<Event<'a>>, DecodeError> {
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
    if !matches!(header.kind, UsbmonKind::Control | UsbmonKind::Bulk) {
        return Ok(None);
    }
    let phase = match header.event {
        UsbmonEvent::Submit => Phase::Submitted,
        UsbmonEvent::Complete | UsbmonEvent::Refuse => Phase::Ended(Ended::of_errno(header.status)),
        UsbmonEvent::Unknown(code) => {
            return Err(DecodeError::Invalid { field: "event", value: code.into() });
        }
    };
    let is_out = header.endpoint.direction() == Direction::Out;
    let phase = match phase {
        Phase::Ended(Ended::Done) if is_out && header.status != 0 => {
            Phase::Ended(Ended::Failed(header.status.into()))
        }
        phase => phase,
    };
    let is_told = header.length > 0 || is_out || phase != Phase::Submitted;
    Ok(Some(Event {
        mark: mark(packet),
        address: Address { bus: header.bus, device: header.device.into() },
        endpoint: header.endpoint,
        id: header.id,
        phase,
        setup: header.setup.map(SetupPacket::from),
        length: Some(header.length).filter(|_| is_told),
        bytes: packet.bytes.get(len..).unwrap_or_default(),
        stream: packet.stream,
    }))
}
