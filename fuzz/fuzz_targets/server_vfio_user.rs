//! A vfio-user client that says what it likes, with descriptors, and a guest that writes registers and memory as it likes.
//!
//! Whatever it does, each of its commands that wants a reply gets one.
#![no_main]

use arbitrary::Arbitrary;
use fuzz::DriveKind;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use server::vfio_user::{Function, Session};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use wire::vfio_user::*;

/// Bytes of the guest's memory.
const MEMORY_BYTES: u64 = 1 << 20;

#[derive(Arbitrary, Debug)]
enum Action<'a> {
    /// Anything at all. Replies are not counted from then on.
    Raw(&'a [u8]),
    Command {
        command: u8,
        body: &'a [u8],
        fds: u8,
    },
    /// Maps or unmaps pages of the guest's memory.
    Map {
        page: u8,
        pages: u8,
    },
    Unmap {
        page: u8,
        pages: u8,
    },
    /// A register by its word.
    Write {
        word: u16,
        value: u32,
    },
    Read {
        word: u16,
    },
    /// The doorbell of a slot.
    Doorbell {
        slot: u8,
        target: u8,
        stream: u8,
    },
    /// The guest writes its memory, in units of 16 bytes.
    Memory {
        unit: u16,
        bytes: [u8; 16],
    },
    Shrink(u8),
    Run,
}

libfuzzer_sys::fuzz_target!(|script: (u8, Vec<Action>)| {
    let (kind, actions) = script;
    let mut client = Client::connect(DriveKind::from_byte(kind));
    for action in actions.into_iter().take(200) {
        client.act(action);
        if client.is_over {
            return;
        }
    }
});

struct Client {
    session: Session,
    function: Function,
    memory: std::fs::File,
    commands: usize,
    is_counted: bool,
    is_over: bool,
}

impl Client {
    fn connect(kind: DriveKind) -> Self {
        let memory = memfd_create("guest", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&memory, MEMORY_BYTES).expect("memory");
        let function = Function::new(vec![kind.drive()]).expect("a free port");
        let memory = std::fs::File::from(memory);
        let (session, commands) = (Session::new(), 0);
        let mut client = Self { session, function, memory, commands, is_counted: true, is_over: false };
        client.command(Command::Version, &[0; 4], Vec::new());
        client
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Raw(bytes) => {
                self.is_counted = false;
                self.receive(bytes, Vec::new());
            }
            Action::Command { command, body, fds } => {
                let fds = (0..fds % 20).map(|_| self.descriptor()).collect();
                self.command(Command::from(u16::from(command)), body, fds);
            }
            Action::Map { page, pages } => {
                let (address, length) = (u64::from(page) << 12, u64::from(pages) << 12);
                let flags = DmaFlags::READ.with(DmaFlags::WRITE);
                let map = DmaMap { size: 32, flags, offset: address, address, length };
                let fd = self.descriptor();
                self.command(Command::DmaMap, &map.encode(), vec![fd]);
            }
            Action::Unmap { page, pages } => {
                let (address, length) = (u64::from(page) << 12, u64::from(pages) << 12);
                let unmap = DmaUnmap { size: 24, flags: UnmapFlags::EMPTY, address, length };
                self.command(Command::DmaUnmap, &unmap.encode(), Vec::new());
            }
            Action::Write { word, value } => self.write(u64::from(word) * 4 % 0x3000, value),
            Action::Doorbell { slot, target, stream } => {
                let value = u32::from(target) | u32::from(stream) << 16;
                self.write(0x2000 + 4 * u64::from(slot), value);
            }
            Action::Read { word } => {
                let offset = u64::from(word) * 4 % 0x8000;
                let access = RegionAccess { offset, region: region_index::BAR0, count: 4 };
                self.command(Command::RegionRead, &access.encode(), Vec::new());
            }
            Action::Memory { unit, bytes } => {
                // Beyond the end of a file that has shrunk it grows again.
                self.memory.write_all_at(&bytes, u64::from(unit) * 16).expect("memory");
            }
            Action::Shrink(pages) => ftruncate(&self.memory, u64::from(pages) << 12).expect("memory"),
            Action::Run => self.function.run(),
        }
        self.check_replies();
    }

    fn descriptor(&self) -> OwnedFd {
        self.memory.try_clone().expect("a descriptor").into()
    }

    fn write(&mut self, offset: u64, value: u32) {
        let access = RegionAccess { offset, region: region_index::BAR0, count: 4 };
        let body = [&access.encode()[..], &value.to_le_bytes()].concat();
        self.command(Command::RegionWrite, &body, Vec::new());
    }

    fn command(&mut self, command: Command, body: &[u8], fds: Vec<OwnedFd>) {
        let length = (Header::LEN + body.len()) as u32;
        let header = Header { id: 7, command, length, flags: HeaderFlags::EMPTY, error: 0 };
        self.commands += 1;
        self.receive(&[&header.encode()[..], body].concat(), fds);
    }

    fn receive(&mut self, bytes: &[u8], fds: Vec<OwnedFd>) {
        self.is_over = self.session.receive(bytes, fds, &mut self.function).is_err();
    }

    /// Every command that was carried out has one reply.
    fn check_replies(&mut self) {
        let mut rest = self.session.outgoing();
        let sent = rest.len();
        while !rest.is_empty() {
            let header = Header::decode(rest).expect("the session speaks well");
            assert!(header.flags.has(HeaderFlags::REPLY));
            rest = &rest[header.length as usize..];
            self.commands = self.commands.saturating_sub(1);
        }
        self.session.sent(sent);
        assert!(self.is_over || !self.is_counted || self.commands == 0, "{} have no reply", self.commands);
    }
}
