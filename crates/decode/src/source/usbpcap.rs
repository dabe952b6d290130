//! Events of USBPcap (link type 249).
//!
//! On its way down a transfer to the host has no length, on its way up one to the device has none. USBPcap 1.0 has one record of each
//! transfer: of one to the device the way down, of one to the host the way up. A control transfer comes in stages: the setup packet,
//! perhaps with bytes to the device behind it, and the end, with bytes from it. Of early versions, which have
//! data and status as stages, the first of them is the end of a read and the last that of a write.

use super::seen::{Seen, other};
use crate::event::{Address, Event, Mark, Phase, TransferEnd, TransferKind};
use capture::Packet;
use wire::DecodeError;
use wire::usb::{Direction, SetupPacket};
use wire::usbpcap::{ControlStage, UsbdStatus, UsbpcapHeader, UsbpcapKind};

pub(super) fn event<'a>(packet: &Packet<'a>) -> Result<Seen<'a>, DecodeError> {
    let header = UsbpcapHeader::decode(packet.bytes)?;
    let bytes = packet.bytes.get(header.header_len.into()..).unwrap_or_default();
    let event = Event {
        mark: Mark::of(packet),
        address: Address { bus: header.bus, device: header.device },
        kind: match header.kind {
            UsbpcapKind::Control => TransferKind::Control,
            UsbpcapKind::Interrupt => TransferKind::Interrupt,
            _ => TransferKind::Bulk,
        },
        endpoint: header.endpoint,
        id: header.id,
        phase: if header.is_up() { Phase::Completed(ended(header.status)) } else { Phase::Submitted },
        setup: None,
        length: Some(header.length),
        bytes,
        stream: packet.stream,
    };
    match (header.kind, header.stage) {
        (UsbpcapKind::Bulk | UsbpcapKind::Interrupt, _) => {
            let is_asked = header.is_up() || header.endpoint.direction() == Direction::Out;
            Ok(Seen::Event(Event { length: event.length.filter(|_| is_asked), ..event }))
        }
        (UsbpcapKind::Control, Some(ControlStage::Setup)) => {
            let setup = SetupPacket::decode(bytes)?;
            let (bytes, length) = (&bytes[SetupPacket::LEN..], Some(setup.length.into()));
            Ok(Seen::Event(Event { phase: Phase::Submitted, setup: Some(setup), length, bytes, ..event }))
        }
        (UsbpcapKind::Control, Some(ControlStage::Complete)) => {
            Ok(Seen::Event(Event { phase: Phase::Completed(ended(header.status)), ..event }))
        }
        // In early versions the data of a read are a stage, and so is the end of a write.
        (UsbpcapKind::Control, Some(ControlStage::Data)) if header.endpoint.direction() == Direction::In => {
            Ok(Seen::Event(Event { phase: Phase::Completed(ended(header.status)), ..event }))
        }
        (UsbpcapKind::Control, Some(ControlStage::Status)) => {
            Ok(Seen::Event(Event { phase: Phase::Completed(ended(header.status)), ..event }))
        }
        (UsbpcapKind::Isochronous, _) => other(event.address, TransferKind::Isochronous, header.is_up()),
        _ => Ok(Seen::Nothing),
    }
}

fn ended(status: UsbdStatus) -> TransferEnd {
    match status {
        UsbdStatus::Success | UsbdStatus::ErrorShortTransfer => TransferEnd::Done,
        UsbdStatus::StallPid | UsbdStatus::EndpointHalted => TransferEnd::Stalled,
        UsbdStatus::Canceled | UsbdStatus::Timeout => TransferEnd::Cancelled,
        UsbdStatus::DeviceGone | UsbdStatus::DeviceNotResponding => TransferEnd::Gone,
        UsbdStatus::DataOverrun => TransferEnd::Babble,
        other => TransferEnd::Failed(u32::from(other).into()),
    }
}
