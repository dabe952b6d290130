//! Events as USBPcap tells them (link type 249).
//!
//! On its way down a transfer to the host does not say how much it asks for, on its way up one to the device not how much was taken. A control transfer is told in stages: the setup packet,
//! perhaps with bytes to the device behind it, and the end, with bytes from it. Stages that early versions tell apart are
//! passed over.

use super::mark;
use crate::event::{Address, Ended, Event, Phase};
use capture::Packet;
use wire::DecodeError;
use wire::usb::{Direction, SetupPacket};
use wire::usbpcap::{ControlStage, UsbdStatus, UsbpcapHeader, UsbpcapKind};

pub(super) fn event<'a>(packet: &Packet<'a>) -> Result<Option<Event<'a>>, DecodeError> {
    let header = UsbpcapHeader::decode(packet.bytes)?;
    let bytes = packet.bytes.get(header.header_len.into()..).unwrap_or_default();
    let event = Event {
        mark: mark(packet),
        address: Address { bus: header.bus, device: header.device },
        endpoint: header.endpoint,
        id: header.id,
        phase: if header.is_up() { Phase::Ended(ended(header.status)) } else { Phase::Submitted },
        setup: None,
        length: Some(header.length),
        bytes,
        stream: packet.stream,
    };
    match (header.kind, header.stage) {
        (UsbpcapKind::Bulk, _) => {
            let is_asked = header.is_up() || header.endpoint.direction() == Direction::Out;
            Ok(Some(Event { length: event.length.filter(|_| is_asked), ..event }))
        }
        (UsbpcapKind::Control, Some(ControlStage::Setup)) => {
            let setup = SetupPacket::decode(bytes)?;
            let (bytes, length) = (&bytes[SetupPacket::LEN..], Some(setup.length.into()));
            Ok(Some(Event { phase: Phase::Submitted, setup: Some(setup), length, bytes, ..event }))
        }
        (UsbpcapKind::Control, Some(ControlStage::Complete)) => {
            Ok(Some(Event { phase: Phase::Ended(ended(header.status)), ..event }))
        }
        _ => Ok(None),
    }
}

fn ended(status: UsbdStatus) -> Ended {
    match status {
        UsbdStatus::Success | UsbdStatus::ErrorShortTransfer => Ended::Done,
        UsbdStatus::StallPid | UsbdStatus::EndpointHalted => Ended::Stalled,
        UsbdStatus::Canceled | UsbdStatus::Timeout => Ended::Cancelled,
        UsbdStatus::DeviceGone | UsbdStatus::DeviceNotResponding => Ended::Gone,
        UsbdStatus::DataOverrun => Ended::Babble,
        other => Ended::Failed(u32::from(other).into()),
    }
}
