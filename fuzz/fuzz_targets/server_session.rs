//! A usbredir client that says what it likes, in pieces of any size, and reads when it likes.
//!
//! As long as the client keeps to the protocol, each of its bulk packets is answered once: all of them at the latest
//! when it has taken them back.
#![no_main]

use arbitrary::Arbitrary;
use drive::Drive;
use fuzz::DriveKind;
use server::usbredir::{Limits, SLICES_MAX, Session};
use std::{collections::BTreeSet, io::IoSlice};
use wire::{Writer, usbredir::*};

#[derive(Arbitrary, Debug)]
enum Action<'a> {
    /// Anything at all. What is answered is not counted from then on.
    Raw(&'a [u8]),
    Bulk {
        endpoint: u8,
        stream: u8,
        length: u16,
    },
    /// A bulk packet with this payload: commands.
    Message {
        endpoint: u8,
        payload: &'a [u8],
    },
    Cancel(u8),
    Control {
        setup: [u8; 8],
    },
    Configuration(u8),
    Interface(bool),
    AllocateStreams {
        endpoints: u32,
        count: u8,
    },
    FreeStreams {
        endpoints: u32,
    },
    Reset,
    GetConfiguration,
    Turn,
    /// Sends what waits, so many bytes at once.
    Send {
        piece: u8,
    },
    Read {
        bytes: u16,
    },
}

libfuzzer_sys::fuzz_target!(|script: (u8, u8, Vec<Action>)| {
    let (kind, capabilities, actions) = script;
    let mut client =
        Client::connect(DriveKind::from_byte(kind), Capabilities::from(u32::from(capabilities)).sound());
    for action in actions.into_iter().take(96) {
        client.act(action);
        if client.is_over {
            break;
        }
    }
    client.leave();
});

struct Client {
    drive: Drive,
    session: Session,
    capabilities: Capabilities,
    next_id: u64,
    /// Bytes that the session has not taken.
    unsent: Vec<u8>,
    /// Bytes that do not make a whole packet yet.
    unread: Vec<u8>,
    is_greeted: bool,
    unanswered: BTreeSet<u64>,
    keeps_to_protocol: bool,
    is_over: bool,
}

impl Client {
    fn connect(kind: DriveKind, offered: Capabilities) -> Self {
        let drive = kind.drive();
        let limits = Limits {
            outgoing_bytes: 64 << 10,
            payload_bytes_soft: 128 << 10,
            payload_bytes_hard: 512 << 10,
            ..Limits::default()
        };
        let session = Session::new(limits, "fuzz", &drive);
        let mut client = Self {
            drive,
            session,
            capabilities: Capabilities::NONE,
            next_id: 0,
            unsent: Vec::new(),
            unread: Vec::new(),
            is_greeted: false,
            unanswered: BTreeSet::new(),
            keeps_to_protocol: true,
            is_over: false,
        };
        client.say_as(0, Hello::new("client").into(), &offered.encode());
        client.send(usize::MAX);
        client.capabilities = client.session.peer().map_or(Capabilities::NONE, |peer| peer.capabilities);
        client
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Raw(bytes) => {
                self.keeps_to_protocol = false;
                self.unsent.extend_from_slice(bytes);
            }
            Action::Bulk { endpoint, stream, length } => {
                let address = [0x81, 0x02, 0x83, 0x04][usize::from(endpoint % 4)];
                let payload = vec![stream; if address < 0x80 { length.into() } else { 0 }];
                self.bulk(address, stream, length.into(), &payload);
            }
            Action::Message { endpoint, payload } => {
                let address = if endpoint % 2 == 0 { 0x02 } else { 0x04 };
                self.bulk(address, 0, payload.len() as u32, payload);
            }
            Action::Cancel(nth) => {
                if let Some(id) = self.unanswered.iter().nth(nth.into()).copied() {
                    self.say_as(id, Packet::CancelDataPacket, &[]);
                }
            }
            Action::Control { setup } => self.control(setup),
            Action::Configuration(configuration) => self.say(SetConfiguration { configuration }),
            Action::Interface(uas) => self.say(SetAltSetting { interface: 0, alternate: uas.into() }),
            Action::AllocateStreams { endpoints, count } => {
                self.say(AllocBulkStreams { endpoints: EndpointSet::from(endpoints), count: count.into() });
            }
            Action::FreeStreams { endpoints } => {
                self.say(FreeBulkStreams { endpoints: EndpointSet::from(endpoints) });
            }
            Action::Reset => self.say(Packet::Reset),
            Action::GetConfiguration => self.say(Packet::GetConfiguration),
            Action::Turn => self.run_once(),
            Action::Send { piece } => self.send(1 + usize::from(piece)),
            Action::Read { bytes } => self.read(bytes.into()),
        }
    }

    fn bulk(&mut self, endpoint: u8, stream: u8, length: u32, payload: &[u8]) {
        self.next_id += 1;
        self.unanswered.insert(self.next_id);
        let packet = BulkPacket { endpoint, status: Status::Success, length, stream_id: stream.into() };
        self.say_as(self.next_id, packet.into(), payload);
    }

    fn control(&mut self, [request_type, request, v0, v1, i0, i1, l0, _]: [u8; 8]) {
        let packet = ControlPacket {
            endpoint: request_type & 0x80,
            request,
            request_type,
            status: Status::Success,
            value: u16::from_le_bytes([v0, v1]),
            index: u16::from_le_bytes([i0, i1]),
            length: l0.into(),
        };
        self.next_id += 1;
        let payload = vec![0; if request_type < 0x80 { l0.into() } else { 0 }];
        self.say_as(self.next_id, packet.into(), &payload);
    }

    fn say(&mut self, packet: impl Into<Packet>) {
        self.next_id += 1;
        self.say_as(self.next_id, packet.into(), &[]);
    }

    fn say_as(&mut self, id: u64, packet: Packet, payload: &[u8]) {
        let mut headers = [0; Packet::HEADERS_LEN_MAX];
        let mut writer = Writer::new(&mut headers);
        let headers_len = packet
            .encode_headers(id, payload.len() as u32, self.capabilities, &mut writer)
            .map(|()| writer.written())
            .expect("there is room for it");
        self.unsent.extend_from_slice(&headers[..headers_len]);
        self.unsent.extend_from_slice(payload);
        // No client keeps much to itself.
        if self.unsent.len() > 64 << 10 {
            self.send(usize::MAX);
        }
    }

    /// Gives the session the unsent bytes, `piece` at a time, as long as it accepts them.
    fn send(&mut self, piece: usize) {
        let mut given = 0;
        while !self.is_over && given < self.unsent.len() {
            given = given.saturating_add(piece).min(self.unsent.len());
            match self.session.receive(&self.unsent[..given], &mut self.drive) {
                Ok(taken) => {
                    self.unsent.drain(..taken);
                    given -= taken;
                }
                Err(_) => self.is_over = true,
            }
        }
        self.session.collect(&mut self.drive);
    }

    fn run_once(&mut self) {
        self.drive.run_once();
        self.session.collect(&mut self.drive);
    }

    /// Reads at most so many bytes, and looks at the whole packets among them.
    fn read(&mut self, limit: usize) {
        let mut left = limit;
        while left > 0 && self.session.outgoing_bytes() > 0 {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = self.session.slices(&mut slices);
            let mut piece: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect();
            piece.truncate(left);
            assert!(!piece.is_empty(), "what waits to be sent is offered");
            left -= piece.len();
            self.session.sent(piece.len(), self.drive.pool());
            self.unread.extend_from_slice(&piece);
        }
        while self.read_packet().is_some() {}
    }

    /// Takes one whole packet off what was read.
    fn read_packet(&mut self) -> Option<()> {
        // A hello goes out before anything is agreed on.
        let capabilities = if self.is_greeted { self.capabilities } else { Capabilities::NONE };
        let header = Header::decode(&self.unread, capabilities).ok()?;
        let head_len = Header::len(capabilities);
        let whole = head_len + header.length as usize;
        let body = self.unread.get(head_len..whole)?;
        let packet = Packet::decode(header.kind, body, capabilities).expect("the session speaks well");
        match packet {
            Packet::Hello(_) => self.is_greeted = true,
            Packet::BulkPacket(_) if self.keeps_to_protocol => {
                assert!(
                    self.unanswered.remove(&header.id),
                    "{} was answered twice or never asked",
                    header.id
                );
            }
            _ => {}
        }
        self.unread.drain(..whole);
        Some(())
    }

    /// Takes everything back, reads everything, goes away.
    fn leave(mut self) {
        for _ in 0..64 {
            self.send(usize::MAX);
            self.run_once();
            self.read(usize::MAX);
            if self.unsent.is_empty() {
                break;
            }
        }
        for id in std::mem::take(&mut self.unanswered) {
            self.unanswered.insert(id);
            self.say_as(id, Packet::CancelDataPacket, &[]);
        }
        for _ in 0..64 {
            self.send(usize::MAX);
            self.run_once();
            self.read(usize::MAX);
        }
        if self.keeps_to_protocol && !self.is_over {
            assert!(self.unsent.is_empty(), "{} bytes were never taken", self.unsent.len());
            assert!(self.unanswered.is_empty(), "never answered: {:?}", self.unanswered);
        }
        drop(self.session);
        self.drive.nexus_loss();
        self.drive.run_once();
        assert!(self.drive.device().is_idle(), "commands are left");
        assert_eq!(self.drive.outstanding(), 0, "transfers are left");
    }
}
