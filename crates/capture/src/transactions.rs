//! Packets of a device as an analyser of USB 2.0 would show them (link type 288).
//!
//! There is no link type for packets of SuperSpeed, and they have no packet identifiers. What they amount to has:
//! every data packet that was taken or refused is one transaction of USB 2.0, told as token, data and handshake when that
//! is settled. So payload, order on each endpoint, refusals and streams are kept; bursts, credits, link commands, ERDY and
//! the acknowledgements by themselves are not, and payload of 1,024 bytes is more than USB 2.0 has. docs/CAPTURE.md has the table.
//!
//! | SuperSpeed | told as |
//! |---|---|
//! | data packet of the device | IN, DATA0 or DATA1 by its number, ACK |
//! | data packet of the host, acknowledged | OUT, DATA0 or DATA1, ACK; NYET if the device has room for no more |
//! | the same, refused by NRDY | OUT, DATA0 or DATA1, NAK; those that followed it come again and are told then |
//! | NRDY for a request | IN, NAK |
//! | NRDY for nothing that was sent, as for Prime | PING, NAK |
//!
//! Packets of a bus of USB 2.0 are told as they are, [`Transactions::crossed`].
//!
//! Always true: transactions do not overlap; at most [`UNDER_WAY_MAX`] data packets are held.

use crate::pcapng::{Interface, InterfaceId, LinkType, Pcapng, Record};
use crate::transfers::Control;
use crate::{Place, WriteError};
use bus::{Direction, TransferStatus};
use std::collections::VecDeque;
use std::io::Write;
use units::Instant;
use wire::usb::{EndpointAddress, PacketId, Token, check_of_payload};

/// The most data packets of the host that wait for their handshake: bursts of 16 on eight endpoints. When there are more the
/// oldest is told without one.
pub const UNDER_WAY_MAX: usize = 128;

/// The packets of one device, in a file.
#[derive(Clone, Debug)]
pub struct Transactions {
    interface: InterfaceId,
    place: Place,
    /// Data packets of the host that are not acknowledged, the oldest first.
    under_way: VecDeque<Sent>,
}

/// A packet that has arrived, on an endpoint whose direction says from whom data come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// Data.
    Data {
        /// The endpoint.
        endpoint: EndpointAddress,
        /// The stream field, as it is on the wire.
        stream: Option<u16>,
        /// The number of the packet, 0 to 31.
        sequence: u8,
        /// What it carries.
        payload: &'a [u8],
    },
    /// An acknowledgement of the device, or of the host.
    Ack {
        /// The endpoint.
        endpoint: EndpointAddress,
        /// The number of the packet that is expected next: those before it have been taken.
        expects: u8,
        /// How many may follow.
        packets: u8,
    },
    /// NRDY: not now.
    NotReady {
        /// The endpoint.
        endpoint: EndpointAddress,
        /// The stream field.
        stream: Option<u16>,
    },
}

/// A packet of a bus of USB 2.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossed<'a> {
    /// IN, OUT, SETUP or PING, for an endpoint.
    Token(PacketId, EndpointAddress),
    /// DATA0 or DATA1, and what it carries.
    Data(PacketId, &'a [u8]),
    /// ACK, NAK, NYET or STALL.
    Handshake(PacketId),
}

/// A data packet of the host.
#[derive(Clone, Debug)]
struct Sent {
    endpoint: EndpointAddress,
    stream: Option<u16>,
    sequence: u8,
    payload: Vec<u8>,
}

impl Transactions {
    /// Tells of a device from now on. A packet has no bus number, so devices of one file need addresses of their own.
    ///
    /// # Errors
    /// As [`Pcapng::add_interface`].
    pub fn new<W: Write>(
        out: &mut Pcapng<W>,
        name: &str,
        description: &str,
        place: Place,
    ) -> Result<Self, WriteError> {
        let link_type = LinkType::Usb2Packets;
        let interface = out.add_interface(&Interface { link_type, name, description })?;
        Ok(Self { interface, place, under_way: VecDeque::new() })
    }

    /// A packet has arrived.
    ///
    /// # Errors
    /// As [`Pcapng::add`].
    pub fn arrived<W: Write>(
        &mut self,
        out: &mut Pcapng<W>,
        at: Instant,
        said: Said<'_>,
    ) -> Result<(), WriteError> {
        match said {
            Said::Data { endpoint, stream, sequence, payload } => match endpoint.direction() {
                Direction::In => {
                    let told = Told { at, endpoint: endpoint.number(), stream };
                    self.transaction(out, &told, PacketId::In, Some((sequence, payload)), Some(PacketId::Ack))
                }
                Direction::Out => {
                    let sent = Sent { endpoint, stream, sequence, payload: payload.to_vec() };
                    self.under_way.push_back(sent);
                    if self.under_way.len() > UNDER_WAY_MAX { self.settle(out, at, 0, None) } else { Ok(()) }
                }
            },
            Said::Ack { endpoint, expects, packets } if endpoint.direction() == Direction::Out => {
                self.taken(out, at, endpoint, (expects, packets))
            }
            Said::Ack { .. } => Ok(()),
            Said::NotReady { endpoint, stream } => self.refused(out, at, endpoint, stream),
        }
    }

    /// A packet has crossed a bus of USB 2.0: it is told as it is.
    ///
    /// # Errors
    /// As [`Pcapng::add`].
    pub fn crossed<W: Write>(
        &self,
        out: &mut Pcapng<W>,
        at: Instant,
        packet: Crossed<'_>,
    ) -> Result<(), WriteError> {
        let mut add =
            |head: &[u8]| out.add(self.interface, &Record { at, head, body: &[], cut: 0, comment: "" });
        match packet {
            Crossed::Token(id, endpoint) => {
                add(&Token { id, address: self.place.device, endpoint: endpoint.number() }.encode())
            }
            Crossed::Data(id, payload) => add(&data_packet(id, payload)),
            Crossed::Handshake(id) => add(&[id.into()]),
        }
    }

    /// A control transfer, whole: its stages in packets of at most 64 bytes.
    ///
    /// # Errors
    /// As [`Pcapng::add`].
    pub fn control<W: Write>(
        &self,
        out: &mut Pcapng<W>,
        at: Instant,
        control: &Control<'_>,
    ) -> Result<(), WriteError> {
        let Control { setup, bytes, status, .. } = *control;
        let told = Told { at, endpoint: 0, stream: None };
        let ends_well = matches!(status, TransferStatus::Done | TransferStatus::Short);
        self.transaction(out, &told, PacketId::Setup, Some((0, &setup.encode())), Some(PacketId::Ack))?;
        let to_host = setup.direction == Direction::In && setup.length > 0;
        let (data, answer) =
            if to_host { (PacketId::In, PacketId::Out) } else { (PacketId::Out, PacketId::In) };
        for (number, packet) in (1..).zip(bytes.chunks(CONTROL_PACKET_BYTES)) {
            self.transaction(out, &told, data, Some((number, packet)), Some(PacketId::Ack))?;
        }
        if ends_well {
            // The status stage is a packet of nothing, the other way, always DATA1 (USB 2.0 clause 8.5.3).
            self.transaction(out, &told, answer, Some((1, &[])), Some(PacketId::Ack))
        } else {
            let stalled = if to_host { PacketId::In } else { answer };
            self.transaction(out, &told, stalled, None, Some(PacketId::Stall))
        }
    }

    /// The device has taken what was sent before a number, and has room for so many more.
    fn taken<W: Write>(
        &mut self,
        out: &mut Pcapng<W>,
        at: Instant,
        endpoint: EndpointAddress,
        (expects, packets): (u8, u8),
    ) -> Result<(), WriteError> {
        while let Some(index) = self.oldest(endpoint) {
            let follows = (self.under_way[index].sequence + 1) % SEQUENCES;
            let ahead = (expects + SEQUENCES - follows) % SEQUENCES;
            // It acknowledges what is at most a burst ago.
            if ahead >= SEQUENCES / 2 {
                break;
            }
            let is_full = ahead == 0 && packets == 0;
            let handshake = if is_full { PacketId::Nyet } else { PacketId::Ack };
            self.settle(out, at, index, Some(handshake))?;
        }
        Ok(())
    }

    fn refused<W: Write>(
        &mut self,
        out: &mut Pcapng<W>,
        at: Instant,
        endpoint: EndpointAddress,
        stream: Option<u16>,
    ) -> Result<(), WriteError> {
        let told = Told { at, endpoint: endpoint.number(), stream };
        match (endpoint.direction(), self.oldest(endpoint)) {
            (Direction::In, _) => self.transaction(out, &told, PacketId::In, None, Some(PacketId::Nak)),
            (Direction::Out, None) => self.transaction(out, &told, PacketId::Ping, None, Some(PacketId::Nak)),
            (Direction::Out, Some(index)) => {
                self.settle(out, at, index, Some(PacketId::Nak))?;
                self.under_way.retain(|sent| sent.endpoint != endpoint);
                Ok(())
            }
        }
    }

    fn oldest(&self, endpoint: EndpointAddress) -> Option<usize> {
        self.under_way.iter().position(|sent| sent.endpoint == endpoint)
    }

    /// Tells of a data packet of the host.
    fn settle<W: Write>(
        &mut self,
        out: &mut Pcapng<W>,
        at: Instant,
        index: usize,
        handshake: Option<PacketId>,
    ) -> Result<(), WriteError> {
        let Some(sent) = self.under_way.remove(index) else { return Ok(()) };
        let told = Told { at, endpoint: sent.endpoint.number(), stream: sent.stream };
        self.transaction(out, &told, PacketId::Out, Some((sent.sequence, &sent.payload)), handshake)
    }

    fn transaction<W: Write>(
        &self,
        out: &mut Pcapng<W>,
        told: &Told,
        token: PacketId,
        data: Option<(u8, &[u8])>,
        handshake: Option<PacketId>,
    ) -> Result<(), WriteError> {
        let Told { at, endpoint, stream } = *told;
        let comment = stream.map_or_else(String::new, name);
        let mut add = |head: &[u8], body: &[u8]| {
            out.add(self.interface, &Record { at, head, body, cut: 0, comment: &comment })
        };
        add(&Token { id: token, address: self.place.device, endpoint }.encode(), &[])?;
        if let Some((number, payload)) = data {
            let id = if number % 2 == 0 { PacketId::Data0 } else { PacketId::Data1 };
            add(&data_packet(id, payload), &[])?;
        }
        handshake.map_or(Ok(()), |handshake| add(&[handshake.into()], &[]))
    }
}

fn data_packet(id: PacketId, payload: &[u8]) -> Vec<u8> {
    [&[u8::from(id)], payload, &check_of_payload(payload)].concat()
}

/// When and where a transaction is.
#[derive(Clone, Copy)]
struct Told {
    at: Instant,
    endpoint: u8,
    stream: Option<u16>,
}

/// `stream 7`, as in captures of transfers; the two that name none by their names (USB 3.2 table 8-24).
fn name(stream: u16) -> String {
    match stream {
        PRIME => "stream Prime".to_owned(),
        NO_STREAM => "stream NoStream".to_owned(),
        stream => format!("stream {stream}"),
    }
}

const PRIME: u16 = 0xfffe;
const NO_STREAM: u16 = 0xffff;
/// Numbers of data packets.
const SEQUENCES: u8 = 32;
/// Of endpoint 0 at high speed.
const CONTROL_PACKET_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use bus::TransferId;
    use wire::usb::SetupPacket;

    const IN_1: EndpointAddress = EndpointAddress::at::<1>(Direction::In);
    const OUT_2: EndpointAddress = EndpointAddress::at::<2>(Direction::Out);

    /// What was written: each packet by its identifier (a token by its place, data by their bytes) and its comment.
    fn told(tell: impl Fn(&mut Transactions, &mut Pcapng<Vec<u8>>)) -> Vec<String> {
        let mut out = Pcapng::new(Vec::new(), "memory".into(), "").unwrap();
        let mut packets = Transactions::new(&mut out, "", "", Place { bus: 1, device: 5 }).unwrap();
        tell(&mut packets, &mut out);
        let file = out.finish().unwrap();
        let mut rest = &file[..];
        let mut lines = Vec::new();
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let (block, after) = rest.split_at(word(4) as usize);
            if word(0) == 6 {
                let packet = &block[28..28 + word(20) as usize];
                let options = &block[28 + packet.len().next_multiple_of(4)..block.len() - 4];
                let comment = options.get(4..4 + usize::from(options.get(2).copied().unwrap_or(0)));
                let comment = String::from_utf8(comment.unwrap_or(&[]).to_vec()).unwrap();
                let id = PacketId::from(packet[0]);
                let text = match packet {
                    [_] => id.to_string(),
                    _ if id.is_token() => Token::decode(packet).unwrap().to_string(),
                    [_, payload @ .., low, high] => {
                        assert_eq!([*low, *high], check_of_payload(payload));
                        format!("{id} {payload:02x?}")
                    }
                    _ => panic!("{packet:?}"),
                };
                lines.push(format!("{text}{}{comment}", if comment.is_empty() { "" } else { ", " }));
            }
            rest = after;
        }
        lines
    }

    const fn out_data(sequence: u8, payload: &[u8]) -> Said<'_> {
        Said::Data { endpoint: OUT_2, stream: None, sequence, payload }
    }

    #[test]
    fn data_of_the_device_are_a_transaction() {
        let lines = told(|packets, out| {
            let said = Said::Data { endpoint: IN_1, stream: Some(7), sequence: 3, payload: &[1, 2] };
            packets.arrived(out, Instant::ZERO, said).unwrap();
            let ack = Said::Ack { endpoint: IN_1, expects: 4, packets: 0 };
            packets.arrived(out, Instant::ZERO, ack).unwrap();
        });
        assert_eq!(lines, ["IN 5.1, stream 7", "DATA1 [01, 02], stream 7", "ACK, stream 7"]);
    }

    #[test]
    fn packets_of_usb_2_are_told_as_they_are() {
        let lines = told(|packets, out| {
            for packet in [
                Crossed::Token(PacketId::Ping, OUT_2),
                Crossed::Handshake(PacketId::Nak),
                Crossed::Token(PacketId::Out, OUT_2),
                Crossed::Data(PacketId::Data1, &[1, 2]),
                Crossed::Handshake(PacketId::Nyet),
            ] {
                packets.crossed(out, Instant::ZERO, packet).unwrap();
            }
        });
        assert_eq!(lines, ["PING 5.2", "NAK", "OUT 5.2", "DATA1 [01, 02]", "NYET"]);
    }

    #[test]
    fn data_of_the_host_wait_for_their_handshake() {
        let lines = told(|packets, out| {
            for said in [
                out_data(31, &[1]),
                out_data(0, &[2]),
                Said::Ack { endpoint: OUT_2, expects: 0, packets: 1 },
                Said::Ack { endpoint: OUT_2, expects: 1, packets: 0 },
            ] {
                packets.arrived(out, Instant::ZERO, said).unwrap();
            }
        });
        assert_eq!(lines, ["OUT 5.2", "DATA1 [01]", "ACK", "OUT 5.2", "DATA0 [02]", "NYET"]);
    }

    #[test]
    fn an_acknowledgement_of_earlier_packets_takes_no_later_one() {
        let lines = told(|packets, out| {
            packets.arrived(out, Instant::ZERO, out_data(4, &[])).unwrap();
            let ack = Said::Ack { endpoint: OUT_2, expects: 4, packets: 1 };
            packets.arrived(out, Instant::ZERO, ack).unwrap();
        });
        assert_eq!(lines, [""; 0]);
    }

    #[test]
    fn of_a_burst_that_is_refused_the_first_is_told() {
        let lines = told(|packets, out| {
            let refusal = Said::NotReady { endpoint: OUT_2, stream: None };
            for said in [out_data(0, &[1]), out_data(1, &[2]), refusal, refusal] {
                packets.arrived(out, Instant::ZERO, said).unwrap();
            }
        });
        assert_eq!(lines, ["OUT 5.2", "DATA0 [01]", "NAK", "PING 5.2", "NAK"]);
    }

    #[test]
    fn a_request_that_is_refused_is_told_with_its_stream() {
        let lines = told(|packets, out| {
            for stream in [0xfffe, 0xffff, 9] {
                let said = Said::NotReady { endpoint: IN_1, stream: Some(stream) };
                packets.arrived(out, Instant::ZERO, said).unwrap();
            }
        });
        let expected = ["stream Prime", "stream NoStream", "stream 9"]
            .iter()
            .flat_map(|stream| [format!("IN 5.1, {stream}"), format!("NAK, {stream}")]);
        assert_eq!(lines, expected.collect::<Vec<_>>());
    }

    #[test]
    fn what_is_never_answered_is_held_up_to_a_limit() {
        let lines = told(|packets, out| {
            for sequence in 0..=UNDER_WAY_MAX as u8 {
                packets.arrived(out, Instant::ZERO, out_data(sequence % 32, &[])).unwrap();
            }
            assert_eq!(packets.under_way.len(), UNDER_WAY_MAX);
        });
        assert_eq!(lines, ["OUT 5.2", "DATA0 []"]);
    }

    #[test]
    fn a_control_transfer_has_three_stages() {
        let setup = SetupPacket::decode(&[0x80, 6, 0, 1, 0, 0, 2, 0]).unwrap();
        let control = Control { id: TransferId(1), setup, bytes: &[18, 1], status: TransferStatus::Done };
        let lines = told(|packets, out| packets.control(out, Instant::ZERO, &control).unwrap());
        assert_eq!(
            lines,
            [
                "SETUP 5.0",
                "DATA0 [80, 06, 00, 01, 00, 00, 02, 00]",
                "ACK",
                "IN 5.0",
                "DATA1 [12, 01]",
                "ACK",
                "OUT 5.0",
                "DATA1 []",
                "ACK"
            ]
        );
    }

    #[test]
    fn a_request_that_the_device_does_not_know_stalls() {
        let setup = SetupPacket::decode(&[0, 9, 7, 0, 0, 0, 0, 0]).unwrap();
        let control = Control { id: TransferId(1), setup, bytes: &[], status: TransferStatus::Stall };
        let lines = told(|packets, out| packets.control(out, Instant::ZERO, &control).unwrap());
        assert_eq!(lines[2..], ["ACK", "IN 5.0", "STALL"]);
    }
}
