//! Events out of packets of USB 2.0 (link type 288): each data packet that was taken is a transfer by itself.
//!
//! Where a transfer ends is not on the wire. Wrappers and information units are a packet each, and data are counted as they come, so
//! that commands need no more. Control transfers are put together from setup, data and status stages. A packet says no bus, so
//! that it is the number of the file's interface. What is refused (NAK, PING) is passed over, and so is
//! what uaskit has added for other readers.

use crate::event::{Address, Event, Mark, Phase, TransferEnd, TransferKind};
use capture::Packet;
use std::collections::BTreeMap;
use wire::DecodeError;
use wire::usb::{Direction, EndpointAddress, PacketId, SetupPacket, Token};

/// Control transfers that are put together at a time, one for each device.
const CONTROLS_MAX: usize = 128;
/// The most bytes of one.
const CONTROL_BYTES_MAX: usize = 1 << 16;
/// Bytes of a data packet besides its payload: identifier and check.
const AROUND_PAYLOAD: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Transactions {
    /// The transaction on the bus.
    current: Option<Transaction>,
    /// Payload of its data packet.
    payload: Vec<u8>,
    controls: BTreeMap<Address, Control>,
    transfers: u64,
}

#[derive(Clone, Copy, Debug)]
struct Transaction {
    token: Token,
    has_payload: bool,
    stream: Option<u16>,
}

#[derive(Debug)]
struct Control {
    setup: SetupPacket,
    bytes: Vec<u8>,
}

impl Transactions {
    pub(super) fn event(&mut self, packet: &Packet<'_>) -> Result<Option<Event<'_>>, DecodeError> {
        let Some(&id) = packet.bytes.first() else {
            return Err(DecodeError::Truncated { needed: 1, got: 0 });
        };
        match PacketId::from(id) {
            PacketId::Out | PacketId::In | PacketId::Setup => {
                let token = Token::decode(packet.bytes)?;
                self.current = Some(Transaction { token, has_payload: false, stream: packet.stream });
                Ok(None)
            }
            PacketId::Data0 | PacketId::Data1 if packet.is_added => {
                self.current = None;
                Ok(None)
            }
            PacketId::Data0 | PacketId::Data1 => {
                let payload = packet.bytes.len().saturating_sub(AROUND_PAYLOAD);
                self.payload.clear();
                self.payload.extend(packet.bytes.iter().skip(1).take(payload));
                if let Some(current) = &mut self.current {
                    current.has_payload = true;
                }
                Ok(None)
            }
            PacketId::Ack | PacketId::Nyet => Ok(self.taken(packet)),
            PacketId::Stall => Ok(self.stalled(packet)),
            _ => {
                self.current = None;
                Ok(None)
            }
        }
    }

    /// The data packet was taken.
    fn taken(&mut self, packet: &Packet<'_>) -> Option<Event<'_>> {
        let Transaction { token, stream, .. } = self.current.take().filter(|current| current.has_payload)?;
        if token.endpoint == 0 {
            return self.control(packet, token);
        }
        let event = self.whole(packet, token, TransferEnd::Done)?;
        Some(Event { length: Some(self.payload.len() as u32), bytes: &self.payload, stream, ..event })
    }

    fn stalled(&mut self, packet: &Packet<'_>) -> Option<Event<'_>> {
        let Transaction { token, stream, .. } = self.current.take()?;
        let event = self.whole(packet, token, TransferEnd::Stalled)?;
        let Some(control) = self.controls.remove(&event.address).filter(|_| token.endpoint == 0) else {
            return Some(Event { stream, ..event });
        };
        self.payload = control.bytes;
        let length = Some(self.payload.len() as u32);
        Some(Event { setup: Some(control.setup), length, bytes: &self.payload, stream, ..event })
    }

    /// A data packet on endpoint 0 was taken: the control transfer, if it is its last.
    fn control(&mut self, packet: &Packet<'_>, token: Token) -> Option<Event<'_>> {
        let address = address(packet, token);
        if token.id == PacketId::Setup {
            let setup = SetupPacket::decode(&self.payload).ok()?;
            if self.controls.len() < CONTROLS_MAX || self.controls.contains_key(&address) {
                self.controls.insert(address, Control { setup, bytes: Vec::new() });
            }
            return None;
        }
        let control = self.controls.get_mut(&address)?;
        let has_data = control.setup.length > 0;
        let is_in = control.setup.direction == Direction::In && has_data;
        if (token.id == PacketId::In) == is_in && has_data {
            let room = CONTROL_BYTES_MAX - control.bytes.len();
            control.bytes.extend(self.payload.iter().take(room));
            return None;
        }
        let Control { setup, bytes } = self.controls.remove(&address)?;
        self.payload = bytes;
        let event = self.whole(packet, token, TransferEnd::Done)?;
        let length = Some(self.payload.len() as u32);
        Some(Event { setup: Some(setup), length, bytes: &self.payload, ..event })
    }

    /// A transfer that is this packet alone.
    fn whole<'a>(&mut self, packet: &Packet<'_>, token: Token, ended: TransferEnd) -> Option<Event<'a>> {
        let direction = if token.id == PacketId::In { Direction::In } else { Direction::Out };
        self.transfers += 1;
        Some(Event {
            mark: Mark::of(packet),
            address: address(packet, token),
            kind: if token.endpoint == 0 { TransferKind::Control } else { TransferKind::Bulk },
            endpoint: EndpointAddress::new(token.endpoint, direction)?,
            id: self.transfers,
            phase: Phase::Whole(ended),
            setup: None,
            length: Some(0),
            bytes: &[],
            stream: None,
        })
    }
}

fn address(packet: &Packet<'_>, token: Token) -> Address {
    let bus = u16::try_from(packet.interface).unwrap_or(u16::MAX).saturating_add(1);
    Address { bus, device: token.address.into() }
}
