//! Packets of a device as an analyser of USB 2.0 would show them (link type 288).
//!
//! There is no link type for packets of SuperSpeed, and they have no packet identifiers. What they amount to has:
//! every data packet that was taken or refused is one transaction of USB 2.0, written as token, data and handshake when that
//! is settled. So payload, order on each endpoint, refusals and streams are kept; bursts, credits, link commands, ERDY and
//! the acknowledgements by themselves are not, and payload of 1,024 bytes is more than USB 2.0 has. docs/CAPTURE.md has the table.
//!
//! | SuperSpeed | written as |
//! |---|---|
//! | data packet of the device | IN, DATA0 or DATA1, ACK |
//! | data packet of the host, acknowledged | OUT, DATA0 or DATA1, ACK; NYET if the device has room for no more |
//! | the same, refused by NRDY | OUT, DATA0 or DATA1, NAK; those that followed it are sent again and written then |
//! | NRDY for a request | IN, NAK |
//! | NRDY for nothing that was sent, as for Prime | PING, NAK |
//! | the end of a transfer, where readers cannot see it | IN or OUT, a data packet of nothing, ACK |
//!
//! DATA0 and DATA1 take turns on each endpoint, since readers take two of a kind for one that came again; the number that the packet
//! had on the link is a comment. The last row was not on the link at all, and says so.
//!
//! Packets of a bus of USB 2.0 are written as they are, [`Transactions::crossed`].
//!
//! Invariants: transactions do not overlap in the file; at most [`IN_FLIGHT_MAX`] data packets are held, and one transaction.

use crate::ends::Ends;
use crate::pcapng::{Interface, InterfaceId, LinkType, Pcapng, Record};
use crate::rewritten;
use crate::transfers::{Control, Transfer};
use crate::{ADDED, DeviceAddress, WriteError};
use bus::{Direction, TransferId, TransferStatus};
use std::collections::VecDeque;
use std::io::Write;
use units::Instant;
use wire::usb::{EndpointAddress, PacketId, Token, check_of_payload};

/// The most data packets of the host that wait for their handshake: bursts of 16 on eight endpoints. When there are more the
/// oldest is written without one.
pub const IN_FLIGHT_MAX: usize = 128;

/// The packets of one device, in a file.
#[derive(Clone, Debug)]
pub struct Transactions {
    interface: InterfaceId,
    place: DeviceAddress,
    /// Data packets of the host that are not acknowledged, the oldest first.
    in_flight: VecDeque<Sent>,
    /// Transfers that the host has submitted and that have not ended.
    ends: Ends,
    /// Endpoints whose next data packet is DATA1, a bit each.
    turns: u32,
    /// The packets of a transaction on a bus of USB 2.0 that has not ended.
    crossing: Vec<(Instant, Vec<u8>)>,
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
        /// Payload of the packet.
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
    /// Adds an interface for a device. A packet has no bus number, so the devices of one file need distinct addresses.
    ///
    /// # Errors
    /// As [`Pcapng::add_interface`].
    pub fn new<W: Write>(
        out: &mut Pcapng<W>,
        name: &str,
        description: &str,
        place: DeviceAddress,
    ) -> Result<Self, WriteError> {
        let link_type = LinkType::Usb2Packets;
        let interface = out.add_interface(&Interface { link_type, name, description })?;
        Ok(Self {
            interface,
            place,
            in_flight: VecDeque::new(),
            ends: Ends::default(),
            turns: 0,
            crossing: Vec::new(),
        })
    }

    /// The host has submitted a transfer: no packet says where it ends.
    pub fn submitted(&mut self, transfer: &Transfer) {
        self.ends.ask(transfer);
    }

    /// The host has a transfer back.
    ///
    /// # Errors
    /// As [`Pcapng::add`].
    pub fn completed<W: Write>(
        &mut self,
        out: &mut Pcapng<W>,
        at: Instant,
        id: TransferId,
    ) -> Result<(), WriteError> {
        let Some(pipe) = self.ends.hidden_of(id) else { return Ok(()) };
        self.end(out, &TransactionInfo::of(at, pipe.endpoint, pipe.stream.map(|stream| stream.get())))
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
                    let info = TransactionInfo::of(at, endpoint, stream).numbered(sequence);
                    self.move_data(out, &info, payload, Some(PacketId::Ack))
                }
                Direction::Out => {
                    let sent = Sent { endpoint, stream, sequence, payload: payload.to_vec() };
                    self.in_flight.push_back(sent);
                    if self.in_flight.len() > IN_FLIGHT_MAX { self.settle(out, at, 0, None) } else { Ok(()) }
                }
            },
            Said::Ack { endpoint, expects, packets } if endpoint.direction() == Direction::Out => {
                self.taken(out, at, endpoint, expects, packets)
            }
            Said::Ack { .. } => Ok(()),
            Said::NotReady { endpoint, stream } => self.refused(out, at, endpoint, stream),
        }
    }

    /// A packet has crossed a bus of USB 2.0: it is written as it is, when its transaction has ended, since devices on other buses have theirs
    /// meanwhile and packets have no address.
    ///
    /// # Errors
    /// As [`Pcapng::add`].
    pub fn crossed<W: Write>(
        &mut self,
        out: &mut Pcapng<W>,
        at: Instant,
        packet: Crossed<'_>,
    ) -> Result<(), WriteError> {
        match packet {
            Crossed::Token(id, endpoint) => {
                self.flush(out)?;
                let token = Token { id, address: self.place.device, endpoint: endpoint.number() };
                self.crossing.push((at, token.encode().to_vec()));
                Ok(())
            }
            Crossed::Data(id, payload) => {
                self.crossing.push((at, data_packet(id, payload)));
                Ok(())
            }
            Crossed::Handshake(id) => {
                self.crossing.push((at, vec![id.into()]));
                self.flush(out)
            }
        }
    }

    /// Writes the packets of an unfinished transaction.
    ///
    /// # Errors
    /// As [`Pcapng::add`].
    pub fn flush<W: Write>(&mut self, out: &mut Pcapng<W>) -> Result<(), WriteError> {
        let mut packets = self.crossing.drain(..);
        packets.try_for_each(|(at, packet)| {
            out.add(self.interface, &Record { at, head: &packet, body: &[], cut: 0, comments: &[] })
        })
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
        let info = TransactionInfo::of(at, EndpointAddress::at::<0>(Direction::Out), None);
        let rewritten = rewritten::data_stage(control);
        let ends_well = matches!(status, TransferStatus::Done | TransferStatus::Short);
        self.transaction(out, &info, PacketId::Setup, Some((PacketId::Data0, &setup.encode())), ACK)?;
        let to_host = setup.direction == Direction::In && setup.length > 0;
        let (data, answer) =
            if to_host { (PacketId::In, PacketId::Out) } else { (PacketId::Out, PacketId::In) };
        let on_link = bytes.chunks(CONTROL_PACKET_BYTES);
        let packets = rewritten.as_deref().unwrap_or(bytes).chunks(CONTROL_PACKET_BYTES);
        for ((packet, on_link), id) in
            packets.zip(on_link).zip([PacketId::Data1, PacketId::Data0].iter().cycle())
        {
            let info = if packet == on_link { info.clone() } else { info.rewritten(on_link) };
            self.transaction(out, &info, data, Some((*id, packet)), ACK)?;
        }
        if ends_well {
            // The status stage is a packet of nothing, the other way, always DATA1 (USB 2.0 clause 8.5.3).
            self.transaction(out, &info, answer, Some((PacketId::Data1, &[])), ACK)
        } else {
            let stalled = if to_host { PacketId::In } else { answer };
            self.transaction(out, &info, stalled, None, Some(PacketId::Stall))
        }
    }

    /// The device has taken what was sent before a number, and has room for so many more.
    fn taken<W: Write>(
        &mut self,
        out: &mut Pcapng<W>,
        at: Instant,
        endpoint: EndpointAddress,
        expects: u8,
        packets: u8,
    ) -> Result<(), WriteError> {
        while let Some(index) = self.oldest(endpoint) {
            let follows = (self.in_flight[index].sequence + 1) % SEQUENCES;
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
        let info = TransactionInfo::of(at, endpoint, stream);
        match (endpoint.direction(), self.oldest(endpoint)) {
            (Direction::In, _) => self.transaction(out, &info, PacketId::In, None, Some(PacketId::Nak)),
            (Direction::Out, None) => self.transaction(out, &info, PacketId::Ping, None, Some(PacketId::Nak)),
            (Direction::Out, Some(index)) => {
                self.settle(out, at, index, Some(PacketId::Nak))?;
                self.in_flight.retain(|sent| sent.endpoint != endpoint);
                Ok(())
            }
        }
    }

    fn oldest(&self, endpoint: EndpointAddress) -> Option<usize> {
        self.in_flight.iter().position(|sent| sent.endpoint == endpoint)
    }

    /// Writes a data packet of the host.
    fn settle<W: Write>(
        &mut self,
        out: &mut Pcapng<W>,
        at: Instant,
        index: usize,
        handshake: Option<PacketId>,
    ) -> Result<(), WriteError> {
        let Some(sent) = self.in_flight.remove(index) else { return Ok(()) };
        let info = TransactionInfo::of(at, sent.endpoint, sent.stream).numbered(sent.sequence);
        self.move_data(out, &info, &sent.payload, handshake)
    }

    /// Writes a data packet on a bulk endpoint, and the end of a transfer that it hides.
    fn move_data<W: Write>(
        &mut self,
        out: &mut Pcapng<W>,
        info: &TransactionInfo,
        payload: &[u8],
        handshake: Option<PacketId>,
    ) -> Result<(), WriteError> {
        self.take_turn(out, info, payload, handshake)?;
        let is_taken = matches!(handshake, Some(PacketId::Ack | PacketId::Nyet));
        if is_taken && self.ends.is_hidden_after(info.endpoint, info.stream, payload.len()) {
            return self.end(out, &TransactionInfo::of(info.at, info.endpoint, info.stream));
        }
        Ok(())
    }

    /// Adds an empty packet that was not on the link, to show readers the end of a transfer.
    fn end<W: Write>(&mut self, out: &mut Pcapng<W>, info: &TransactionInfo) -> Result<(), WriteError> {
        self.take_turn(out, &info.added(), &[], ACK)
    }

    /// Writes a data packet as DATA0 or DATA1 by the endpoint's toggle, which changes if the packet is accepted.
    fn take_turn<W: Write>(
        &mut self,
        out: &mut Pcapng<W>,
        info: &TransactionInfo,
        payload: &[u8],
        handshake: Option<PacketId>,
    ) -> Result<(), WriteError> {
        let turn = 1 << info.endpoint.index();
        let id = if self.turns & turn == 0 { PacketId::Data0 } else { PacketId::Data1 };
        if matches!(handshake, Some(PacketId::Ack | PacketId::Nyet)) {
            self.turns ^= turn;
        }
        self.transaction(out, info, info.token(), Some((id, payload)), handshake)
    }

    fn transaction<W: Write>(
        &self,
        out: &mut Pcapng<W>,
        info: &TransactionInfo,
        token: PacketId,
        data: Option<(PacketId, &[u8])>,
        handshake: Option<PacketId>,
    ) -> Result<(), WriteError> {
        let &TransactionInfo { at, endpoint, stream, ref remark } = info;
        let stream = stream.map_or_else(String::new, name);
        let (of_all, of_data) = match remark {
            Remark::OfAll(remark) => (&remark[..], &remark[..]),
            Remark::OfData(remark) => ("", &remark[..]),
        };
        let mut add = |head: &[u8], remark| {
            let comments = &[&stream[..], remark];
            out.add(self.interface, &Record { at, head, body: &[], cut: 0, comments })
        };
        add(&Token { id: token, address: self.place.device, endpoint: endpoint.number() }.encode(), of_all)?;
        if let Some((id, payload)) = data {
            add(&data_packet(id, payload), of_data)?;
        }
        handshake.map_or(Ok(()), |handshake| add(&[handshake.into()], of_all))
    }
}

fn data_packet(id: PacketId, payload: &[u8]) -> Vec<u8> {
    [&[u8::from(id)], payload, &check_of_payload(payload)].concat()
}

/// When and where a transaction is, and what besides is to be said of it.
#[derive(Clone)]
struct TransactionInfo {
    at: Instant,
    endpoint: EndpointAddress,
    stream: Option<u16>,
    remark: Remark,
}

/// Additional text of a comment.
#[derive(Clone)]
enum Remark {
    /// Of the data packet; nothing if empty.
    OfData(String),
    /// Of each packet.
    OfAll(String),
}

impl TransactionInfo {
    const fn of(at: Instant, endpoint: EndpointAddress, stream: Option<u16>) -> Self {
        Self { at, endpoint, stream, remark: Remark::OfData(String::new()) }
    }

    /// With the number of its packet on the link.
    fn numbered(self, sequence: u8) -> Self {
        Self { remark: Remark::OfData(format!("sequence {sequence}")), ..self }
    }

    /// With what its packet was on the link.
    fn rewritten(&self, on_link: &[u8]) -> Self {
        let digits: String = on_link.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { remark: Remark::OfData(format!("on the link {digits}")), ..self.clone() }
    }

    /// That was not on the link.
    fn added(&self) -> Self {
        Self { remark: Remark::OfAll(format!("{ADDED}: end of the transfer")), ..self.clone() }
    }

    const fn token(&self) -> PacketId {
        match self.endpoint.direction() {
            Direction::In => PacketId::In,
            Direction::Out => PacketId::Out,
        }
    }
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
const ACK: Option<PacketId> = Some(PacketId::Ack);
/// Of endpoint 0 at high speed.
const CONTROL_PACKET_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use bus::{Pipe, StreamId};
    use wire::usb::SetupPacket;

    const IN_1: EndpointAddress = EndpointAddress::at::<1>(Direction::In);
    const OUT_2: EndpointAddress = EndpointAddress::at::<2>(Direction::Out);

    /// Returns the packets written: identifier (with the place of a token, the bytes of data) and comment of each.
    fn written(write_into: impl Fn(&mut Transactions, &mut Pcapng<Vec<u8>>)) -> Vec<String> {
        let mut out = Pcapng::new(Vec::new(), "memory".into(), "").unwrap();
        let mut packets = Transactions::new(&mut out, "", "", DeviceAddress { bus: 1, device: 5 }).unwrap();
        write_into(&mut packets, &mut out);
        lines(&out.finish().unwrap())
    }

    /// The packets of a file.
    fn lines(file: &[u8]) -> Vec<String> {
        let mut rest = file;
        let mut lines = Vec::new();
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let (block, after) = rest.split_at(word(4) as usize);
            if word(0) == 6 {
                let packet = &block[28..28 + word(20) as usize];
                let mut options = &block[28 + packet.len().next_multiple_of(4)..block.len() - 4];
                let mut comments = String::new();
                while let [1, 0, len, 0, after @ ..] = options {
                    let (comment, after) = after.split_at(usize::from(*len).next_multiple_of(4));
                    comments += ", ";
                    comments += std::str::from_utf8(&comment[..usize::from(*len)]).unwrap();
                    options = after;
                }
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
                lines.push(text + &comments);
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
        let lines = written(|packets, out| {
            let said = Said::Data { endpoint: IN_1, stream: Some(7), sequence: 3, payload: &[1, 2] };
            packets.arrived(out, Instant::ZERO, said).unwrap();
            let ack = Said::Ack { endpoint: IN_1, expects: 4, packets: 0 };
            packets.arrived(out, Instant::ZERO, ack).unwrap();
        });
        assert_eq!(lines, ["IN 5.1, stream 7", "DATA0 [01, 02], stream 7, sequence 3", "ACK, stream 7"]);
    }

    #[test]
    fn packets_of_usb_2_are_written_unchanged() {
        let lines = written(|packets, out| {
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
    fn transactions_of_two_buses_are_written_one_after_the_other() {
        let mut out = Pcapng::new(Vec::new(), "memory".into(), "").unwrap();
        let [mut one, mut other] = [5, 6]
            .map(|device| Transactions::new(&mut out, "", "", DeviceAddress { bus: 1, device }).unwrap());
        let mut at =
            |device: &mut Transactions, packet| device.crossed(&mut out, Instant::ZERO, packet).unwrap();
        at(&mut one, Crossed::Token(PacketId::In, IN_1));
        at(&mut other, Crossed::Token(PacketId::Out, OUT_2));
        at(&mut one, Crossed::Data(PacketId::Data0, &[1]));
        at(&mut other, Crossed::Data(PacketId::Data0, &[2]));
        at(&mut one, Crossed::Handshake(PacketId::Ack));
        // Nothing answers the other one, which goes on.
        at(&mut other, Crossed::Token(PacketId::Ping, OUT_2));
        other.flush(&mut out).unwrap();
        assert_eq!(
            lines(&out.finish().unwrap()),
            ["IN 5.1", "DATA0 [01]", "ACK", "OUT 6.2", "DATA0 [02]", "PING 6.2"]
        );
    }

    #[test]
    fn data_of_the_host_wait_for_their_handshake() {
        let lines = written(|packets, out| {
            for said in [
                out_data(31, &[1]),
                out_data(0, &[2]),
                Said::Ack { endpoint: OUT_2, expects: 0, packets: 1 },
                Said::Ack { endpoint: OUT_2, expects: 1, packets: 0 },
            ] {
                packets.arrived(out, Instant::ZERO, said).unwrap();
            }
        });
        assert_eq!(
            lines,
            ["OUT 5.2", "DATA0 [01], sequence 31", "ACK", "OUT 5.2", "DATA1 [02], sequence 0", "NYET"]
        );
    }

    #[test]
    fn an_acknowledgement_of_earlier_packets_takes_no_later_one() {
        let lines = written(|packets, out| {
            packets.arrived(out, Instant::ZERO, out_data(4, &[])).unwrap();
            let ack = Said::Ack { endpoint: OUT_2, expects: 4, packets: 1 };
            packets.arrived(out, Instant::ZERO, ack).unwrap();
        });
        assert_eq!(lines, [""; 0]);
    }

    #[test]
    fn of_a_refused_burst_the_first_packet_is_written() {
        let lines = written(|packets, out| {
            let refusal = Said::NotReady { endpoint: OUT_2, stream: None };
            for said in [out_data(0, &[1]), out_data(1, &[2]), refusal, refusal] {
                packets.arrived(out, Instant::ZERO, said).unwrap();
            }
        });
        assert_eq!(lines, ["OUT 5.2", "DATA0 [01], sequence 0", "NAK", "PING 5.2", "NAK"]);
    }

    #[test]
    fn a_refused_request_is_written_with_its_stream() {
        let lines = written(|packets, out| {
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
    fn data_that_are_refused_come_again_as_the_same() {
        let lines = written(|packets, out| {
            for said in [
                out_data(5, &[1]),
                Said::NotReady { endpoint: OUT_2, stream: None },
                out_data(5, &[1]),
                Said::Ack { endpoint: OUT_2, expects: 6, packets: 1 },
                out_data(6, &[2]),
                Said::Ack { endpoint: OUT_2, expects: 7, packets: 1 },
            ] {
                packets.arrived(out, Instant::ZERO, said).unwrap();
            }
        });
        let data: Vec<_> = lines.iter().filter(|line| line.starts_with("DATA")).collect();
        assert_eq!(data, ["DATA0 [01], sequence 5", "DATA0 [01], sequence 5", "DATA1 [02], sequence 6"]);
    }

    /// The lines after the first three, of a read of 2 KiB, and perhaps of its end at the host.
    fn read_of_two_packets(stream: Option<u16>, last_bytes: usize, ends: bool) -> Vec<String> {
        let pipe = Pipe { endpoint: IN_1, stream: stream.and_then(StreamId::new) };
        let lines = written(|packets, out| {
            packets.submitted(&Transfer { id: TransferId(1), pipe, length: 2048 });
            for (sequence, len) in [(0, 1024), (1, last_bytes)] {
                let said = Said::Data { endpoint: IN_1, stream, sequence, payload: &[0; 1024][..len] };
                packets.arrived(out, Instant::ZERO, said).unwrap();
            }
            if ends {
                packets.completed(out, Instant::ZERO, TransferId(1)).unwrap();
            }
        });
        lines[6..].to_vec()
    }

    #[test]
    fn the_end_of_a_transfer_behind_a_whole_packet_is_added_for_readers() {
        const ADDED: &str = "not on the link: end of the transfer";
        for ends in [false, true] {
            assert_eq!(
                read_of_two_packets(None, 1024, ends),
                [format!("IN 5.1, {ADDED}"), format!("DATA0 [], {ADDED}"), format!("ACK, {ADDED}")]
            );
            assert_eq!(read_of_two_packets(None, 511, ends), [""; 0], "a short packet shows it");
        }
        assert_eq!(read_of_two_packets(Some(7), 600, false)[1], format!("DATA0 [], stream 7, {ADDED}"));
    }

    #[test]
    fn the_end_of_a_transfer_that_is_broken_off_is_added_when_the_host_has_it_back() {
        let lines = written(|packets, out| {
            packets.submitted(&Transfer { id: TransferId(1), pipe: Pipe::plain(IN_1), length: 4096 });
            let said = Said::Data { endpoint: IN_1, stream: None, sequence: 0, payload: &[0; 1024] };
            packets.arrived(out, Instant::ZERO, said).unwrap();
            packets.completed(out, Instant::ZERO, TransferId(1)).unwrap();
        });
        assert_eq!(lines[4], "DATA1 [], not on the link: end of the transfer");
    }

    #[test]
    fn a_rewritten_configuration_has_its_original_in_a_comment() {
        let setup = SetupPacket::decode(&[0x80, 6, 0, 2, 0, 0, 25, 0]).unwrap();
        let bytes = [9, 2, 25, 0, 1, 1, 0, 0xc0, 0, 9, 4, 0, 0, 1, 8, 6, 0x50, 0, 7, 5, 0x81, 2, 0, 4, 0];
        let control = Control { id: TransferId(1), setup, bytes: &bytes, status: TransferStatus::Done };
        let lines = written(|packets, out| packets.control(out, Instant::ZERO, &control).unwrap());
        let [.., last] = lines[4].split(", ").collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!(last, "on the link 09021900010100c00009040000010806500007058102000400");
        assert!(lines[4].contains("07, 05, 81, 02, 00, 02, 00]"), "{}", lines[4]);
    }

    #[test]
    fn what_is_never_answered_is_held_up_to_a_limit() {
        let lines = written(|packets, out| {
            for sequence in 0..=IN_FLIGHT_MAX as u8 {
                packets.arrived(out, Instant::ZERO, out_data(sequence % 32, &[])).unwrap();
            }
            assert_eq!(packets.in_flight.len(), IN_FLIGHT_MAX);
        });
        assert_eq!(lines, ["OUT 5.2", "DATA0 [], sequence 0"]);
    }

    #[test]
    fn a_control_transfer_has_three_stages() {
        let setup = SetupPacket::decode(&[0x80, 6, 0, 1, 0, 0, 2, 0]).unwrap();
        let control = Control { id: TransferId(1), setup, bytes: &[18, 1], status: TransferStatus::Done };
        let lines = written(|packets, out| packets.control(out, Instant::ZERO, &control).unwrap());
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
        let lines = written(|packets, out| packets.control(out, Instant::ZERO, &control).unwrap());
        assert_eq!(lines[2..], ["ACK", "IN 5.0", "STALL"]);
    }
}
