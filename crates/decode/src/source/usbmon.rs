//! Events as Linux's usbmon tells them, and QEMU (link types 189 and 220).
//!
//! Interrupt and isochronous transfers are passed over: no drive has them.

use super::mark;
use crate::event::{Address, Ended, Event, Phase};
use capture::{ByteOrder, Link, Packet};
use wire::DecodeError;
use wire::usb::SetupPacket;
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
    Ok(Some(Event {
        mark: mark(packet),
        address: Address { bus: header.bus, device: header.device.into() },
        endpoint: header.endpoint,
        id: header.id,
        phase,
        setup: header.setup.map(SetupPacket::from),
        length: Some(header.length),
        bytes: packet.bytes.get(len..).unwrap_or_default(),
        stream: packet.stream,
    }))
}
