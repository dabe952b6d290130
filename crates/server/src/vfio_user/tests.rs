//! A session with messages as a client sends them.

use super::function::Polling;
use super::mapping::Mapping;
use super::session::{DESCRIPTORS_MAX, MESSAGE_BYTES_MAX};
use super::{Fault, Function, Session};
use crate::net::tests::drive;
use proptest::prelude::*;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use wire::vfio_user::{
    Command, DmaFlags, DmaMap, DmaUnmap, Header, HeaderFlags, Interrupt, IrqSet, IrqSetFlags, RegionAccess,
    RegionInfo, UnmapFlags, region_index,
};
use xhci_controller::GuestMemory;

/// A client without a socket.
struct Client {
    session: Session,
    function: Function,
    id: u16,
}

type Reply = Result<Vec<u8>, Errno>;

impl Client {
    fn connected() -> Self {
        let mut client = Self::new();
        let answer = client.ask(Command::Version, &[0, 0, 1, 0]).unwrap();
        assert_eq!(answer[..4], [0, 0, 1, 0]);
        client
    }

    fn new() -> Self {
        Self { session: Session::new(), function: Function::new(vec![drive()]).unwrap(), id: 0 }
    }

    fn message(&mut self, command: Command, flags: HeaderFlags, body: &[u8]) -> Vec<u8> {
        self.id += 1;
        let length = (Header::LEN + body.len()) as u32;
        let header = Header { id: self.id, command, length, flags, error: 0 };
        [&header.encode()[..], body].concat()
    }

    fn receive(&mut self, bytes: &[u8], fds: Vec<OwnedFd>) -> Result<(), Fault> {
        self.session.receive(bytes, fds, &mut self.function)
    }

    /// The replies that wait.
    fn replies(&mut self) -> Vec<(Header, Reply)> {
        let (mut rest, mut replies) = (self.session.outgoing(), Vec::new());
        while !rest.is_empty() {
            let header = Header::decode(rest).unwrap();
            let (body, later) = rest[Header::LEN..].split_at(header.body_len() as usize);
            let is_failed = header.flags.has(HeaderFlags::ERROR);
            let reply = if is_failed {
                Err(Errno::from_raw_os_error(header.error as i32))
            } else {
                Ok(body.to_vec())
            };
            assert!(header.flags.has(HeaderFlags::REPLY));
            replies.push((header, reply));
            rest = later;
        }
        let sent = self.session.outgoing().len();
        self.session.sent(sent);
        replies
    }

    fn ask_with(&mut self, command: Command, body: &[u8], fds: Vec<OwnedFd>) -> Reply {
        let message = self.message(command, HeaderFlags::EMPTY, body);
        self.receive(&message, fds).unwrap();
        let [(header, reply)] = self.replies().try_into().expect("one reply");
        assert_eq!((header.id, header.command), (self.id, command));
        reply
    }

    fn ask(&mut self, command: Command, body: &[u8]) -> Reply {
        self.ask_with(command, body, Vec::new())
    }

    fn read(&mut self, region: u32, offset: u64, count: u32) -> Reply {
        let access = RegionAccess { offset, region, count }.encode();
        self.ask(Command::RegionRead, &access).map(|answer| answer[access.len()..].to_vec())
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Reply {
        let access = RegionAccess { offset, region, count: data.len() as u32 }.encode();
        self.ask(Command::RegionWrite, &[&access[..], data].concat())
    }
}

fn memory(bytes: u64) -> OwnedFd {
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, bytes).unwrap();
    file
}

fn range(address: u64, length: u64) -> DmaMap {
    DmaMap { size: 32, flags: DmaFlags::READ.with(DmaFlags::WRITE), offset: 0, address, length }
}

#[test]
fn a_client_finds_the_function() {
    let mut client = Client::connected();
    let info = client.ask(Command::DeviceInfo, &[16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    assert_eq!(info, [16, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0]);
    assert_eq!(client.read(region_index::CONFIG, 8, 4), Ok(vec![0x01, 0x30, 0x03, 0x0c]));
    // CAPLENGTH 20h, HCIVERSION 0110h; and as a wide access.
    assert_eq!(client.read(region_index::BAR0, 0, 4), Ok(vec![0x20, 0, 0x10, 0x01]));
    assert_eq!(client.read(region_index::BAR0, 2, 2), Ok(vec![0x10, 0x01]));
    assert_eq!(client.read(region_index::BAR0, 0, 8).unwrap()[..4], [0x20, 0, 0x10, 0x01]);
    for index in 0..region_index::COUNT {
        let question =
            RegionInfo { size: 32, flags: 0.into(), index, capability_offset: 0, length: 0, offset: 0 };
        let answer =
            RegionInfo::decode(&client.ask(Command::RegionInfo, &question.encode()).unwrap()).unwrap();
        let length = match index {
            region_index::BAR0 => 0x8000,
            region_index::CONFIG => 4096,
            _ => 0,
        };
        assert_eq!((answer.length, answer.index), (length, index));
    }
}

#[test]
fn a_part_of_a_register_is_written_as_a_part() {
    let mut client = Client::connected();
    // The slots of CONFIG, 58h.
    client.write(region_index::BAR0, 0x58, &[5]).unwrap();
    assert_eq!(client.read(region_index::BAR0, 0x58, 4), Ok(vec![5, 0, 0, 0]));
    client.write(region_index::BAR0, 0x50, &[0x40, 1, 2, 3, 4, 5, 6, 7]).unwrap();
    assert_eq!(client.read(region_index::BAR0, 0x50, 8), Ok(vec![0x40, 1, 2, 3, 4, 5, 6, 7]));
}

#[test]
fn what_is_wrong_in_a_command_is_an_error_number() {
    let mut client = Client::connected();
    let beyond = (region_index::BAR0, 0x7ffd, 4);
    for (region, offset, count) in [beyond, (region_index::CONFIG, u64::MAX, 1), (4, 0, 1), (77, 0, 4)] {
        assert_eq!(client.read(region, offset, count), Err(Errno::INVAL));
    }
    assert_eq!(client.read(region_index::BAR0, 0, u32::MAX), Err(Errno::INVAL));
    assert_eq!(client.ask(Command::RegionRead, &[0; 15]), Err(Errno::INVAL));
    let access = RegionAccess { offset: 0, region: region_index::BAR0, count: 4 }.encode();
    assert_eq!(client.ask(Command::RegionWrite, &[&access[..], &[0; 3]].concat()), Err(Errno::INVAL));
    assert_eq!(client.ask(Command::DirtyPages, &[]), Err(Errno::NOTSUP));
    assert_eq!(client.ask(Command::from(999), &[0; 100]), Err(Errno::NOTSUP));
    assert_eq!(
        client.ask(Command::IrqInfo, &[16, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]),
        Err(Errno::INVAL)
    );
}

#[test]
fn what_is_against_the_protocol_ends_the_session() {
    let mut client = Client::new();
    let early = client.message(Command::DeviceInfo, HeaderFlags::EMPTY, &[0; 16]);
    assert_eq!(client.receive(&early, Vec::new()), Err(Fault::BeforeVersion(Command::DeviceInfo)));
    for (body, reason) in [
        (&[1, 0, 0, 0][..], "major version 1"),
        (b"\0\0\0\0{]\0", "capabilities"),
        (b"\0\0\0\0{}", "last byte"),
        (&[0, 0], "2 bytes"),
    ] {
        let mut client = Client::new();
        let message = client.message(Command::Version, HeaderFlags::EMPTY, body);
        let Err(Fault::Version(text)) = client.receive(&message, Vec::new()) else { panic!("{reason}") };
        assert!(text.contains(reason), "{text}");
    }
    let mut client = Client::connected();
    let mut long = client.message(Command::RegionWrite, HeaderFlags::EMPTY, &[]);
    long[4..8].copy_from_slice(&(MESSAGE_BYTES_MAX as u32 + 1).to_le_bytes());
    assert_eq!(client.receive(&long, Vec::new()), Err(Fault::TooLong(MESSAGE_BYTES_MAX as u32 + 1)));
}

#[test]
fn main_memory_without_a_descriptor_is_refused_with_what_to_add() {
    let mut client = Client::connected();
    let message = client.message(Command::DmaMap, HeaderFlags::EMPTY, &range(0, 0xa_0000).encode());
    let fault = client.receive(&message, Vec::new()).unwrap_err();
    assert_eq!(fault, Fault::MemoryNotShared);
    assert!(fault.to_string().contains("memory-backend-memfd") && fault.to_string().contains("share=on"));
    // A ROM, and memory of another device.
    let mut client = Client::connected();
    let rom = DmaMap { flags: DmaFlags::READ, ..range(0xc_0000, 0x1000) };
    assert_eq!(client.ask(Command::DmaMap, &rom.encode()), Ok(Vec::new()));
    assert_eq!(client.ask(Command::DmaMap, &range(0xfd00_0000, 0x1000).encode()), Ok(Vec::new()));
}

#[test]
fn descriptors_belong_to_the_message_with_their_last_byte() {
    let mut client = Client::connected();
    let first = client.message(Command::DmaMap, HeaderFlags::EMPTY, &range(0x100_0000, 0x1000).encode());
    let second = client.message(Command::DmaMap, HeaderFlags::EMPTY, &range(0x200_0000, 0x2000).encode());
    client.receive(&[first, second].concat(), vec![memory(0x2000)]).unwrap();
    let replies: Vec<_> = client.replies().into_iter().map(|(_, reply)| reply).collect();
    assert_eq!(replies, [Ok(Vec::new()), Ok(Vec::new())]);
    let memory_at = |client: &Client, at| {
        let mut byte = [0];
        GuestMemory::read_bytes(&client.function.memory, at, &mut byte).is_ok()
    };
    assert!(!memory_at(&client, 0x100_0000) && memory_at(&client, 0x200_1fff));

    // A message whose first half comes with them.
    let third = client.message(Command::DmaMap, HeaderFlags::EMPTY, &range(0x300_0000, 0x1000).encode());
    client.receive(&third[..20], vec![memory(0x1000)]).unwrap();
    client.receive(&third[20..], Vec::new()).unwrap();
    assert_eq!(client.replies().len(), 1);
    assert!(memory_at(&client, 0x300_0000));

    let unmap = DmaUnmap { size: 24, flags: UnmapFlags::EMPTY, address: 0x300_0000, length: 0x1000 };
    assert_eq!(client.ask(Command::DmaUnmap, &unmap.encode()), Ok(unmap.encode().to_vec()));
    assert!(!memory_at(&client, 0x300_0000));
}

#[test]
fn more_descriptors_than_announced_end_the_session() {
    let mut client = Client::connected();
    let message = client.message(Command::IrqSet, HeaderFlags::EMPTY, &[0; 20]);
    client.receive(&message[..4], (0..DESCRIPTORS_MAX).map(|_| memory(1)).collect()).unwrap();
    assert_eq!(client.receive(&message[4..], vec![memory(1)]), Err(Fault::TooManyDescriptors));
}

#[test]
fn vectors_are_set_and_signaled() {
    let mut client = Client::connected();
    let event = || rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).unwrap();
    let set = |flags: IrqSetFlags, count| {
        IrqSet { size: 20, flags: flags.with(IrqSetFlags::TRIGGER), kind: Interrupt::MsiX, start: 0, count }
            .encode()
    };
    let ours = event();
    let theirs = ours.try_clone().unwrap();
    // As QEMU does: eventfds without a descriptor, none, then the descriptor.
    assert_eq!(client.ask(Command::IrqSet, &set(IrqSetFlags::DATA_EVENTFD, 1)), Ok(Vec::new()));
    assert_eq!(client.ask(Command::IrqSet, &set(IrqSetFlags::DATA_NONE, 0)), Ok(Vec::new()));
    assert_eq!(
        client.ask_with(Command::IrqSet, &set(IrqSetFlags::DATA_EVENTFD, 1), vec![theirs]),
        Ok(Vec::new())
    );
    client.ask(Command::IrqSet, &set(IrqSetFlags::DATA_NONE, 1)).unwrap();
    client.function.interrupts.signal();
    let mut count = [0; 8];
    rustix::io::read(&ours, &mut count).unwrap();
    assert_eq!(u64::from_ne_bytes(count), 2);
    let refused =
        client.ask_with(Command::IrqSet, &set(IrqSetFlags::DATA_EVENTFD, 2), vec![event(), event()]);
    assert_eq!(refused, Err(Errno::INVAL));
}

#[test]
fn a_posted_write_has_no_reply() {
    let mut client = Client::connected();
    let access = RegionAccess { offset: 0x58, region: region_index::BAR0, count: 4 }.encode();
    let body = [&access[..], &[7, 0, 0, 0]].concat();
    let message = client.message(Command::RegionWrite, HeaderFlags::NO_REPLY, &body);
    client.receive(&message, Vec::new()).unwrap();
    assert!(client.replies().is_empty());
    assert_eq!(client.read(region_index::BAR0, 0x58, 4), Ok(vec![7, 0, 0, 0]));
    assert_eq!(client.ask(Command::DeviceReset, &[]), Ok(Vec::new()));
    assert_eq!(client.read(region_index::BAR0, 0x58, 4), Ok(vec![0; 4]));
}

/// A client that maps registers, and a second view of them.
struct Mapped {
    client: Client,
    area: Mapping,
}

impl Mapped {
    /// Memory of the guest at 0.
    const BYTES: u64 = 0x10_0000;
    const COMMANDS: u64 = 0x1000;
    const EVENTS: u64 = 0x2000;
    const TABLE: u64 = 0x3000;
    const CONTEXTS: u64 = 0x4000;

    fn connected() -> Self {
        let mut client = Client::connected();
        client.function = Function::new(vec![drive()]).unwrap().with_mapped_doorbells().unwrap();
        let area = Self::area(&client);
        client.ask_with(Command::DmaMap, &range(0, Self::BYTES).encode(), vec![memory(Self::BYTES)]).unwrap();
        Self { client, area }
    }

    /// Maps what a client does.
    fn area(client: &Client) -> Mapping {
        let file = client.function.memory.registers.as_ref().unwrap().file().try_clone_to_owned().unwrap();
        Mapping::new(std::os::fd::AsFd::as_fd(&file), 0x1000, 0x2000, true).unwrap()
    }

    /// A driver's store to BAR 0.
    fn store(&self, at: usize, value: u32) {
        self.area.store(at - 0x1000, value).unwrap();
    }

    fn load(&self, at: usize) -> u32 {
        self.area.load(at - 0x1000).unwrap()
    }

    fn write_memory(&mut self, at: u64, bytes: &[u8]) {
        self.client.function.memory.write(at, bytes).unwrap();
    }

    /// The number and completion code of an event, if it is there.
    fn event(&self, number: u64) -> Option<(u32, u8)> {
        let trb: [u8; 16] = self.client.function.memory.read(Self::EVENTS + 16 * number).unwrap();
        (trb[12] & 1 == 1).then(|| (u32::from(trb[13] >> 2), trb[11]))
    }

    /// Places the rings as a driver does, and starts.
    fn start(&mut self) {
        self.write_memory(Self::TABLE, &[Self::EVENTS.to_le_bytes(), 16u64.to_le_bytes()].concat());
        self.store(0x1028, 1);
        self.store(0x1030, Self::TABLE as u32);
        self.store(0x1034, 0);
        self.store(0x1038, Self::EVENTS as u32);
        self.store(0x103c, 0);
        self.store(0x1024, 0);
        self.store(0x1020, 2);
        let register = |client: &mut Client, at, value: u64| {
            client.write(region_index::BAR0, at, &(value as u32).to_le_bytes()).unwrap();
        };
        register(&mut self.client, 0x50, Self::CONTEXTS);
        register(&mut self.client, 0x54, 0);
        register(&mut self.client, 0x58, 8);
        register(&mut self.client, 0x38, Self::COMMANDS | 1);
        register(&mut self.client, 0x3c, 0);
        register(&mut self.client, 0x20, 5);
    }

    /// Queues a No Op command at a place of the ring.
    fn queue(&mut self, number: u64) {
        self.write_memory(
            Self::COMMANDS + 16 * number,
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 23 << 2, 0, 0],
        );
    }
}

#[test]
fn a_part_of_bar_0_can_be_mapped_where_doorbells_are() {
    let mut client = Client::connected();
    let question = |size| {
        let info = RegionInfo { size, flags: 0.into(), index: 0, capability_offset: 0, length: 0, offset: 0 };
        info.encode()
    };
    let answer = client.ask(Command::RegionInfo, &question(64)).unwrap();
    assert_eq!((answer.len(), &answer[..8]), (32, &[32, 0, 0, 0, 3, 0, 0, 0][..]));
    client.function = Function::new(vec![drive()]).unwrap().with_mapped_doorbells().unwrap();
    // A client that has no room learns how much it needs, and gets no file.
    let answer = client.ask(Command::RegionInfo, &question(32)).unwrap();
    let head = [64, 0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0];
    assert_eq!((answer.len(), &answer[..16]), (32, &head[..]));
    let before = client.message(Command::RegionRead, HeaderFlags::EMPTY, &[0; 16]);
    let message = client.message(Command::RegionInfo, HeaderFlags::EMPTY, &question(64));
    client.receive(&[&before[..], &message, &message].concat(), Vec::new()).unwrap();
    // The file comes with the first byte of its reply, each with its own.
    let mut parts = Vec::new();
    while !client.session.outgoing().is_empty() {
        let (bytes, brings_file) = client.session.next_outgoing();
        parts.push((bytes.len(), brings_file));
        let first = bytes.len().min(7);
        client.session.sent(first);
    }
    let files: Vec<_> = parts.iter().filter(|(_, brings_file)| *brings_file).collect();
    assert_eq!(files, [&(16 + 64, true), &(16 + 64, true)], "{parts:?}");
    let mapped = client.ask(Command::RegionInfo, &question(64)).unwrap();
    assert_eq!(mapped[32..48], [1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(mapped[48..], [0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn stores_to_mapped_registers_are_found() {
    let mut mapped = Mapped::connected();
    mapped.start();
    mapped.queue(0);
    mapped.client.function.run();
    assert_eq!(mapped.event(0), None, "it was not written");
    mapped.store(0x2000, 0);
    mapped.client.function.run();
    assert_eq!(mapped.event(0), Some((33, 1)), "a command completion, with success");
    assert_eq!(mapped.client.function.polling(), Polling::Continuous);
    // The next interrupt comes after the driver is done with the first.
    let events = EVENTFDS.with(|event| event.try_clone().unwrap());
    let set = IrqSetFlags::DATA_EVENTFD.with(IrqSetFlags::TRIGGER);
    let set = IrqSet { size: 20, flags: set, kind: Interrupt::MsiX, start: 0, count: 1 }.encode();
    mapped.client.ask_with(Command::IrqSet, &set, vec![events]).unwrap();
    mapped.queue(1);
    mapped.store(0x2000, 0);
    mapped.client.function.run();
    assert!(mapped.event(1).is_some() && !has_interrupt());
    mapped.store(0x1038, (Mapped::EVENTS as u32 + 16) | 8);
    mapped.client.function.run();
    assert!(has_interrupt());
    assert_eq!(mapped.load(0x1038), Mapped::EVENTS as u32 + 16, "Event Handler Busy is taken");
    // What the driver has stored counts before a message that it sends afterwards.
    mapped.queue(2);
    mapped.store(0x2000, 0);
    assert_eq!(mapped.client.read(region_index::BAR0, 0x1038, 4).unwrap()[..2], [0x10, 0x20]);
    mapped.client.write(region_index::BAR0, 0x24, &[8, 0, 0, 0]).unwrap();
    mapped.client.function.run();
    assert!(mapped.event(2).is_some());
    assert!(mapped.load(0x1000) > 0 || mapped.client.function.now().as_ps() < 125_000_000);
}

thread_local! {
    static EVENTFDS: OwnedFd = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
}

/// Whether the eventfd was signaled since the last call.
fn has_interrupt() -> bool {
    EVENTFDS.with(|event| rustix::io::read(event, &mut [0; 8]).is_ok())
}

#[test]
fn doorbells_are_empty_after_a_reset_and_a_new_file_after_a_client() {
    let mut mapped = Mapped::connected();
    mapped.start();
    mapped.queue(0);
    mapped.store(0x2000, 0);
    assert_eq!(mapped.client.ask(Command::DeviceReset, &[]), Ok(Vec::new()));
    assert_eq!([0x1028, 0x1030, 0x1038].map(|at| mapped.load(at)), [0; 3]);
    mapped.client.function.run();
    assert_eq!((mapped.event(0), mapped.client.function.polling()), (None, Polling::Off));
    // A doorbell of a controller that is halted is lost, as on hardware.
    mapped.store(0x2000, 0);
    mapped.start();
    mapped.client.function.run();
    assert_eq!(mapped.event(0), None);
    mapped.client.function.disconnect();
    let area = Mapped::area(&mapped.client);
    mapped.store(0x2004, 77);
    assert_eq!(area.load(0x1004), Some(0), "a client that has gone stores to its own file");
}

#[test]
fn memory_that_is_unmapped_is_not_accessed_for_a_doorbell() {
    let mut mapped = Mapped::connected();
    mapped.start();
    mapped.queue(0);
    let unmap = DmaUnmap { size: 24, flags: UnmapFlags::EMPTY, address: 0, length: Mapped::BYTES };
    mapped.client.ask(Command::DmaUnmap, &unmap.encode()).unwrap();
    mapped.store(0x2000, 0);
    mapped.client.function.run();
    let status = mapped.client.read(region_index::BAR0, 0x24, 4).unwrap();
    assert_eq!(status[0] & 0x05, 0x05, "halted with a Host System Error");
    assert_eq!(mapped.client.function.polling(), Polling::Off);
}

/// Commands that a client may send, right and wrong.
fn command() -> impl Strategy<Value = (u16, Vec<u8>)> {
    (1u16..18, prop::collection::vec(any::<u8>(), 0..64))
}

proptest! {
    #[test]
    fn nothing_depends_on_how_bytes_are_cut(commands in prop::collection::vec(command(), 0..20), cut in 1usize..40) {
        let answers = |size: usize| {
            let mut client = Client::connected();
            let bytes: Vec<u8> = commands
                .iter()
                .flat_map(|(command, body)| client.message(Command::from(*command), HeaderFlags::EMPTY, body))
                .collect();
            let mut outcome = Ok(());
            for part in bytes.chunks(size) {
                outcome = outcome.and_then(|()| client.receive(part, Vec::new()));
            }
            client.function.run();
            (outcome, client.session.outgoing().to_vec())
        };
        prop_assert_eq!(answers(cut), answers(usize::MAX));
    }

    #[test]
    fn mapped_registers_take_any_value(writes in prop::collection::vec((0usize..0x800, any::<u32>(), 0u8..3), 0..200)) {
        let mut mapped = Mapped::connected();
        mapped.start();
        for (word, value, then) in writes {
            mapped.store(0x1000 + 4 * word, value);
            match then {
                0 => mapped.client.function.run(),
                1 => mapped.client.write(region_index::BAR0, 4 * word as u64, &value.to_le_bytes()).map(drop).unwrap(),
                _ => {}
            }
        }
        mapped.client.function.run();
    }

    #[test]
    fn registers_take_any_value(writes in prop::collection::vec((0u64..0x8000, any::<u32>()), 0..200)) {
        let mut client = Client::connected();
        client.ask_with(Command::DmaMap, &range(0, 0x10_0000).encode(), vec![memory(0x10_0000)]).unwrap();
        for (offset, value) in writes {
            let length = (0x8000 - offset).min(4) as usize;
            client.write(region_index::BAR0, offset, &value.to_le_bytes()[..length]).unwrap();
            client.function.run();
        }
    }
}
