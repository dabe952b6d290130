//! One connection: packets in, packets out.
//!
//! Bytes are taken from a contiguous slice, whole packets at a time. The one exception is a long bulk payload, of
//! which a part may be still to come: its headers and first bytes are taken, and the caller reads the rest straight
//! into [`Session::payload_room`], without a copy in between.

use super::interrupt::is_interrupt;
use super::layout::Layout;
use super::outgoing::Outgoing;
use super::{Exported, Fault, Limits};
use bus::{Pipe, TransferStatus};
use drive::{Body, HostCompletion, HostTransfer, Pool};
use std::io::IoSlice;
use wire::Writer;
use wire::usbredir::{
    BulkPacket, Capabilities, Capability, ControlPacket, Header, Hello, PACKET_LEN_MAX, Packet, PacketType,
    Side, Status,
};

/// Bytes that must fit in the slice given to [`Session::receive`]: the longest packet that is taken in one piece.
pub const CONTIGUOUS_BYTES_MAX: usize = Header::LEN_MAX + PIECE_BYTES_MAX as usize;

/// The longest packet other than bulk, without its header: a control packet with a full data stage.
const PIECE_BYTES_MAX: u32 = ControlPacket::LEN as u32 + 0xffff;

/// Bulk payloads from this many bytes on may come in parts.
const PARTIAL_BYTES_MIN: u32 = 4096;

/// Payload up to this many bytes, such as an information unit, is passed on without a copy.
const MESSAGE_BYTES_MAX: usize = 512;

/// The capabilities that we offer. Left out: filters and read-ahead.
pub(super) const OFFERED: Capabilities = Capabilities::of(&[
    Capability::BulkStreams,
    Capability::ConnectDeviceVersion,
    Capability::DeviceDisconnectAck,
    Capability::EndpointInfoMaxPacketSize,
    Capability::Ids64Bits,
    Capability::BulkLength32Bits,
]);

/// The client, from its hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its version text, printable.
    pub version: String,
    /// The capabilities that both sides have.
    pub capabilities: Capabilities,
}

/// A connection to a client.
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    phase: Phase,
    incoming: Incoming,
    pub(super) layout: Layout,
    outgoing: Outgoing,
}

#[derive(Debug)]
enum Phase {
    /// The client's hello has not come.
    Handshake,
    Open(Peer),
}

/// Kind of the next bytes.
#[derive(Debug)]
enum Incoming {
    Packet,
    Payload(Arriving),
    /// So many bytes that are discarded.
    Unwanted(u32),
}

/// A bulk OUT packet of which payload is missing.
#[derive(Debug)]
struct Arriving {
    transfer: HostTransfer,
    filled: usize,
}

impl Session {
    /// A session with a client that has just connected. Our hello waits to be sent.
    pub fn new(limits: Limits, version: &str, device: &impl Exported) -> Self {
        let mut session = Self {
            limits,
            phase: Phase::Handshake,
            incoming: Incoming::Packet,
            layout: Layout::of(device.device()),
            outgoing: Outgoing::default(),
        };
        session.send_with(0, Hello::new(version), &OFFERED.encode());
        session
    }

    /// The client, once its hello has come.
    pub const fn peer(&self) -> Option<&Peer> {
        match &self.phase {
            Phase::Handshake => None,
            Phase::Open(peer) => Some(peer),
        }
    }

    /// Takes what it can of `bytes`; returns how many it took. What is left begins with a part of a packet, or waits
    /// until [`Session::may_receive`] is true again. Give it again, with more behind it.
    ///
    /// # Errors
    /// The client has broken the protocol. The session is over.
    pub fn receive(&mut self, bytes: &[u8], device: &mut impl Exported) -> Result<usize, Fault> {
        let mut rest = bytes;
        loop {
            let is_welcome = self.may_receive(device);
            let taken = match &mut self.incoming {
                Incoming::Packet if is_welcome => self.packet(rest, device)?,
                Incoming::Packet => None,
                Incoming::Payload(arriving) => {
                    let room = arriving.room();
                    let count = room.len().min(rest.len());
                    room[..count].copy_from_slice(&rest[..count]);
                    self.payload_filled(count, device)?;
                    Some(count)
                }
                Incoming::Unwanted(left) => {
                    let count = (*left).min(rest.len() as u32);
                    *left -= count;
                    if *left == 0 {
                        self.incoming = Incoming::Packet;
                    }
                    Some(count as usize)
                }
            };
            match taken {
                None | Some(0) => return Ok(bytes.len() - rest.len()),
                Some(count) => rest = &rest[count..],
            }
        }
    }

    /// Memory for payload that is still to come, if that is what comes next: read into it, then call
    /// [`Session::payload_filled`].
    pub fn payload_room(&mut self) -> Option<&mut [u8]> {
        match &mut self.incoming {
            Incoming::Payload(arriving) => Some(arriving.room()),
            _ => None,
        }
    }

    /// Whether the rest of a payload is what comes next.
    pub const fn is_amid_payload(&self) -> bool {
        matches!(self.incoming, Incoming::Payload(_))
    }

    /// The first `count` bytes of [`Session::payload_room`] have come.
    ///
    /// # Errors
    /// As [`Session::receive`].
    pub fn payload_filled(&mut self, count: usize, device: &mut impl Exported) -> Result<(), Fault> {
        let Incoming::Payload(arriving) = &mut self.incoming else { return Ok(()) };
        arriving.filled += count;
        if !arriving.room().is_empty() {
            return Ok(());
        }
        match std::mem::replace(&mut self.incoming, Incoming::Packet) {
            Incoming::Payload(arriving) => self.submit(arriving.transfer, device),
            _ => Ok(()),
        }
    }

    /// Whether further packets are welcome: what waits for the client or for a medium is within limits.
    pub fn may_receive(&self, device: &impl Exported) -> bool {
        let must_wait = device.at_media() > 0 && device.payload_bytes() >= self.limits.payload_bytes_soft;
        !self.is_congested() && !must_wait
    }

    /// Whether the client is behind with reading. Then nothing should be done that makes more for it to read.
    pub const fn is_congested(&self) -> bool {
        self.outgoing.bytes() >= self.limits.outgoing_bytes
    }

    /// Whether the client's guest uses the setting that it has selected: a bulk transfer has come.
    pub const fn is_used(&self) -> bool {
        self.layout.used
    }

    /// Whether answers wait until the client's guest is seen to have taken earlier ones, or has had time to. Then
    /// nothing should be done that makes more of them.
    pub const fn is_held(&self) -> bool {
        self.layout.pace.is_held()
    }

    /// Answers have been held for [`super::PAUSE`]: some may go.
    pub fn release_held(&mut self) {
        self.layout.pace.release_held();
    }

    /// Answers the bulk packets whose transfers have ended, as far as they are not held.
    pub fn collect(&mut self, device: &mut impl Exported) {
        while !self.is_held()
            && let Some(completion) = device.poll()
        {
            if is_interrupt(&completion, device) {
                self.answer_interrupt(completion, device);
            } else {
                self.answer_bulk(completion, device.pool());
            }
        }
    }

    /// Sends the client a disconnect of the device.
    pub fn disconnect(&mut self) {
        if self.peer().is_some() {
            self.send(0, Packet::DeviceDisconnect);
        }
    }

    /// Bytes that wait to be sent.
    pub const fn outgoing_bytes(&self) -> usize {
        self.outgoing.bytes()
    }

    /// Fills `slices` with what is to be sent next; returns how many there are.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.outgoing.slices(slices)
    }

    /// The first `bytes` bytes of [`Session::slices`] are sent.
    pub fn sent(&mut self, bytes: usize, pool: &mut Pool) {
        self.outgoing.advance(bytes, pool);
    }

    pub(super) fn capabilities(&self) -> Capabilities {
        self.peer().map_or(Capabilities::NONE, |peer| peer.capabilities)
    }

    pub(super) fn open(&mut self, peer: Peer) {
        self.phase = Phase::Open(peer);
    }

    /// Takes one packet, or its headers and a part of its payload. `None` if more bytes are needed.
    fn packet(&mut self, bytes: &[u8], device: &mut impl Exported) -> Result<Option<usize>, Fault> {
        let capabilities = self.capabilities();
        let head_len = Header::len(capabilities);
        let Some((head, body)) = bytes.split_at_checked(head_len) else { return Ok(None) };
        let malformed = |error| Fault::Malformed(PacketType::Unknown(0), error);
        let header = Header::decode(head, capabilities).map_err(malformed)?;
        let is_open = self.peer().is_some();
        let taken = match header.kind {
            PacketType::BulkPacket if is_open => self.bulk(header, body, device)?,
            kind if is_open && self.is_passed_over(kind) => {
                if header.length > PACKET_LEN_MAX {
                    return Err(Fault::TooLong { kind, length: header.length });
                }
                self.discard(header.length);
                Some(0)
            }
            kind if !is_open && kind != PacketType::Hello => return Err(Fault::BeforeHello(kind)),
            kind if !kind.may_come_from(Side::UsbGuest) => return Err(Fault::WrongDirection(kind)),
            kind => match whole_body(header, body, capabilities)? {
                None => None,
                Some(body) => {
                    let malformed = |error| Fault::Malformed(kind, error);
                    let packet = Packet::decode(kind, body, capabilities).map_err(malformed)?;
                    let payload = &body[kind.header_len(capabilities).unwrap_or(0)..];
                    check_payload(&packet, payload)?;
                    self.request(header.id, packet, payload, device)?;
                    self.collect(device);
                    Some(body.len())
                }
            },
        };
        Ok(taken.map(|count| head_len + count))
    }

    /// Unknown types, and those whose capability was not agreed on, are read over, as the reference parser does.
    fn is_passed_over(&self, kind: PacketType) -> bool {
        let lacks = |capability| !self.capabilities().has(capability);
        // A client that refuses the device is believed without a filter.
        let is_unsought = kind != PacketType::FilterReject && kind.requires().is_some_and(lacks);
        matches!(kind, PacketType::Unknown(_)) || is_unsought && kind.may_come_from(Side::UsbGuest)
    }

    fn discard(&mut self, length: u32) {
        if length > 0 {
            self.incoming = Incoming::Unwanted(length);
        }
    }

    /// A bulk packet; `body` is what there is of it after the header.
    fn bulk(
        &mut self,
        header: Header,
        body: &[u8],
        device: &mut impl Exported,
    ) -> Result<Option<usize>, Fault> {
        let capabilities = self.capabilities();
        let malformed = |error| Fault::Malformed(PacketType::BulkPacket, error);
        let came = header.payload_len(capabilities).map_err(malformed)?;
        let Some((fields, payload)) = body.split_at_checked(BulkPacket::len(capabilities)) else {
            return Ok(None);
        };
        let packet = BulkPacket::decode(fields, capabilities).map_err(malformed)?;
        let said = packet.payload_len(Side::UsbGuest);
        if said != came {
            return Err(Fault::PayloadMismatch { kind: header.kind, said, came });
        }
        let (id, length) = (header.id, packet.length);
        let Some(pipe) = self.layout.pipe(packet.endpoint, packet.stream_id) else {
            self.send_bulk(id, BulkPacket { status: Status::Invalid, length: 0, ..packet });
            self.discard(came);
            return Ok(Some(fields.len()));
        };
        if came == 0 {
            self.submit(HostTransfer { id, pipe, length, payload: Vec::new() }, device)?;
            return Ok(Some(fields.len()));
        }
        let here = payload.len().min(came as usize);
        if here < came as usize && came < PARTIAL_BYTES_MIN {
            return Ok(None);
        }
        let bytes = device.payload_bytes() + came as usize;
        if bytes > self.limits.payload_bytes_hard {
            return Err(Fault::TooMuchPayload { bytes });
        }
        if here == came as usize && here <= MESSAGE_BYTES_MAX {
            self.note_use(pipe);
            device.submit_message(id, pipe, &payload[..here]).map_err(|_| Fault::TooManyTransfers)?;
            self.collect(device);
            return Ok(Some(fields.len() + here));
        }
        let mut memory = device.pool().take(came as usize);
        memory[..here].copy_from_slice(&payload[..here]);
        let transfer = HostTransfer { id, pipe, length, payload: memory };
        if here == came as usize {
            self.submit(transfer, device)?;
        } else {
            self.incoming = Incoming::Payload(Arriving { transfer, filled: here });
        }
        Ok(Some(fields.len() + here))
    }

    fn submit(&mut self, transfer: HostTransfer, device: &mut impl Exported) -> Result<(), Fault> {
        self.note_use(transfer.pipe);
        // An answer now would overtake those of earlier transfers, which QEMU does not survive.
        device.submit(transfer).map_err(|_| Fault::TooManyTransfers)?;
        self.collect(device);
        Ok(())
    }

    /// The guest has a new transfer on a pipe.
    fn note_use(&mut self, pipe: Pipe) {
        self.layout.used = true;
        self.layout.pace.submitted(pipe);
    }

    #[inline(always)]
    fn answer_bulk(&mut self, completion: HostCompletion, pool: &mut Pool) {
        let HostCompletion { id, pipe, status, actual, body, .. } = completion;
        self.layout.pace.answered(pipe);
        let packet = bulk_answer(pipe, status, actual);
        match body {
            Body::Empty if packet.payload_len(Side::UsbHost) > 0 => {
                // Never invent bytes that are reported as moved but missing.
                self.send_bulk(id, BulkPacket { status: Status::IoError, length: 0, ..packet });
            }
            Body::Empty => self.send_bulk(id, packet),
            Body::Inline(inline) => {
                self.send_bulk(id, packet);
                self.outgoing.push(inline.as_bytes().get(..actual as usize).unwrap_or_default());
            }
            Body::Buffer(buffer) => {
                self.send_bulk(id, packet);
                self.outgoing.push_buffer(buffer, actual as usize, pool);
            }
        }
    }

    /// Appends the headers of a bulk packet.
    fn send_bulk(&mut self, id: u64, packet: BulkPacket) {
        let capabilities = self.capabilities();
        let length = BulkPacket::len(capabilities) as u32 + packet.payload_len(Side::UsbHost);
        let header = Header { kind: PacketType::BulkPacket, length, id };
        self.outgoing.push_head(|bytes| {
            let mut writer = Writer::new(bytes);
            let written =
                header.encode(capabilities, &mut writer).and(packet.encode(capabilities, &mut writer));
            written.expect("16 bytes and 10 fit in 32");
            writer.written()
        });
    }

    /// Appends a packet without payload.
    pub(super) fn send(&mut self, id: u64, packet: impl Into<Packet>) {
        self.send_with(id, packet, &[]);
    }

    /// Appends a packet and its payload.
    pub(super) fn send_with(&mut self, id: u64, packet: impl Into<Packet>, payload: &[u8]) {
        let mut bytes = [0; Packet::HEADERS_LEN_MAX];
        let mut writer = Writer::new(&mut bytes);
        let written =
            packet.into().encode_headers(id, payload.len() as u32, self.capabilities(), &mut writer);
        written.expect("no headers are longer than the longest");
        let len = writer.written();
        self.outgoing.push(&bytes[..len]);
        self.outgoing.push(payload);
    }
}

impl Arriving {
    fn room(&mut self) -> &mut [u8] {
        &mut self.transfer.payload[self.filled..self.transfer.length as usize]
    }
}

/// All bytes after the header of a packet that is taken in one piece; `None` if some are still to come.
fn whole_body(header: Header, body: &[u8], capabilities: Capabilities) -> Result<Option<&[u8]>, Fault> {
    let Header { kind, length, .. } = header;
    header.payload_len(capabilities).map_err(|error| Fault::Malformed(kind, error))?;
    if length > PIECE_BYTES_MAX {
        return Err(Fault::TooLong { kind, length });
    }
    Ok(body.get(..length as usize))
}

fn check_payload(packet: &Packet, payload: &[u8]) -> Result<(), Fault> {
    let came = payload.len() as u32;
    match packet.payload_len(Side::UsbGuest) {
        Some(said) if said != came => Err(Fault::PayloadMismatch { kind: packet.kind(), said, came }),
        _ => Ok(()),
    }
}

fn bulk_answer(pipe: Pipe, status: TransferStatus, actual: u32) -> BulkPacket {
    let status = match status {
        TransferStatus::Done | TransferStatus::Short => Status::Success,
        TransferStatus::Stall => Status::Stall,
        TransferStatus::Cancelled => Status::Cancelled,
        TransferStatus::Babble => Status::Babble,
        TransferStatus::Disconnected | TransferStatus::Error => Status::IoError,
    };
    BulkPacket {
        endpoint: pipe.endpoint.into(),
        status,
        length: actual,
        stream_id: pipe.stream.map_or(0, |stream| stream.get().into()),
    }
}
