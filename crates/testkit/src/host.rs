//! A host for the tests of a whole drive: it plugs the drive in at super speed, chooses UAS, and gives commands on
//! streams as Linux does, any number at once.
//!
//! It allocates nothing per command, so that a test can count what the drive allocates.

use crate::drive::drive_of;
use ::drive::medium::{Medium, create_image};
use ::drive::{Body, Drive, HostTransfer};
use bus::{EndpointAddress, Pipe, StreamId};
use device::Verdict;
use device::command::Limits;
use device::device::{COMMAND, DATA_IN, DATA_OUT, STATUS};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use units::ByteCount;
use wire::scsi::Status;
use wire::uas::{CommandIu, SenseIu, TaskAttribute};
use wire::usb::SetupPacket;

/// Streams of the drive: tags are `1..=STREAMS`.
pub const STREAMS: u16 = 32;

/// Bytes of room for a status.
const STATUS_BYTES: u32 = 112;

/// A host and its drive.
pub struct Host {
    drive: Drive,
    /// By tag: data that came, until the status does.
    read: Vec<Vec<u8>>,
}

/// The data phase of a command.
pub enum Data {
    /// No data phase.
    None,
    /// Bytes that the host wants.
    In(u32),
    /// Memory that begins with so many bytes for the device.
    Out(Vec<u8>, u32),
}

/// A command that is over.
pub struct CompletedCommand {
    /// The tag of the command.
    pub tag: u16,
    /// Its SCSI status.
    pub status: Status,
    /// Memory that begins with the data that came, or none. To be given back with [`Host::put`].
    pub data: Vec<u8>,
}

/// Which transfer of a command: the number that its name leaves when divided by [`KINDS`].
const KIND_STATUS: u64 = 0;
const KIND_DATA: u64 = 1;
const KIND_COMMAND: u64 = 2;
const KINDS: u64 = 3;

impl Host {
    /// A host that is through with enumeration and has seen the unit attention that comes first.
    pub fn plug(medium: Box<dyn Medium + Send>) -> Self {
        let drive = drive(medium);
        let mut host = Self { drive, read: vec![Vec::new(); usize::from(STREAMS) + 1] };
        // SET_ADDRESS 1, SET_CONFIGURATION 1, SET_INTERFACE 0 to alternate setting 1.
        for setup in [[0, 5, 1, 0, 0, 0, 0, 0], [0, 9, 1, 0, 0, 0, 0, 0], [1, 11, 1, 0, 0, 0, 0, 0]] {
            let setup = SetupPacket::decode(&setup).expect("eight bytes");
            assert_eq!(host.drive.control(setup, &[]), Verdict::Done);
        }
        host.start(1, [0; 16], Data::None);
        assert_eq!(host.wait().status, Status::CheckCondition, "power on");
        host
    }

    /// Queues status, data and command.
    pub fn start(&mut self, tag: u16, cdb: [u8; 16], data: Data) {
        self.submit(tag, KIND_STATUS, STATUS, STATUS_BYTES, Vec::new());
        match data {
            Data::None => {}
            Data::In(length) => self.submit(tag, KIND_DATA, DATA_IN, length, Vec::new()),
            Data::Out(memory, length) => self.submit(tag, KIND_DATA, DATA_OUT, length, memory),
        }
        let attribute = TaskAttribute::Simple;
        let iu =
            CommandIu { tag, attribute, priority: 0, lun: [0; 8], cdb: &cdb, additional_cdb: &[] }.encode();
        let mut memory = self.take(iu.len());
        memory[..iu.len()].copy_from_slice(&iu);
        self.submit(tag, KIND_COMMAND, COMMAND, iu.len() as u32, memory);
    }

    fn submit(&mut self, tag: u16, kind: u64, endpoint: EndpointAddress, length: u32, payload: Vec<u8>) {
        let pipe = Pipe { endpoint, stream: StreamId::new(tag).filter(|_| endpoint != COMMAND) };
        let id = u64::from(tag) * KINDS + kind;
        self.drive.submit(HostTransfer { id, pipe, length, payload }).expect("there are few transfers");
    }

    /// The next command that is over. Waits for it.
    pub fn wait(&mut self) -> CompletedCommand {
        for _ in 0..1000 {
            self.drive.run_once();
            if let Some(ended) = self.poll() {
                return ended;
            }
            self.sleep();
        }
        panic!("no command ends");
    }

    /// The next command that is over already.
    fn poll(&mut self) -> Option<CompletedCommand> {
        while let Some(completion) = self.drive.poll() {
            let tag = (completion.id / KINDS) as u16;
            let read = &mut self.read[usize::from(tag)];
            match (completion.id % KINDS, completion.body) {
                (KIND_STATUS, Body::Inline(iu)) => {
                    let status = SenseIu::decode(iu.as_bytes()).expect("a SENSE IU").status;
                    return Some(CompletedCommand { tag, status, data: std::mem::take(read) });
                }
                (KIND_DATA, Body::Buffer(memory)) => *read = memory,
                (KIND_STATUS, body) => panic!("the status of tag {tag} is {body:?}"),
                (_, _) => {}
            }
        }
        None
    }

    /// Until the medium has done something; no longer than 20 ms.
    fn sleep(&self) {
        let Some(fd) = self.drive.event_fds().next() else { return };
        let mut set = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
        let limit = Duration::from_millis(20).try_into().expect("it is short");
        // Interrupted or timed out: ask again.
        let _ = rustix::event::poll(&mut set, Some(&limit));
    }

    /// Memory for at least so many bytes.
    pub fn take(&mut self, bytes: usize) -> Vec<u8> {
        self.drive.pool().take(bytes)
    }

    /// Gives memory back.
    pub fn put(&mut self, memory: Vec<u8>) {
        self.drive.pool().put(memory);
    }
}

/// A drive with one unit.
pub fn drive(medium: Box<dyn Medium + Send>) -> Drive {
    let limits = Limits { commands: 65, buffer_bytes: 8 << 20, segment_bytes: 8 << 20 };
    drive_of(
        medium,
        |unit| unit.atomic_writes = true,
        |device| (device.streams, device.limits) = (STREAMS, limits),
    )
}

/// A directory that goes with the test.
pub struct Scratch(PathBuf);

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// Creates the directory, under a name that no other test has.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("uaskit-drive-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("there is a directory for temporary files");
        Self(path)
    }

    /// The path of a new image in it.
    pub fn image(&self, size: ByteCount) -> PathBuf {
        let path = self.0.join("image");
        create_image(&path, size).expect("the image is the first");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A random number generator whose seed is all of its state (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// Returns the next number.
    #[expect(clippy::should_implement_trait, reason = "it has no end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// READ(16) or WRITE(16), WRITE ATOMIC(16), SYNCHRONIZE CACHE(16).
pub fn cdb_16(opcode: u8, fua: bool, lba: u64, blocks: u16) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[1] = if fua { 0x08 } else { 0 };
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    // WRITE ATOMIC has two bytes of length, the others four; they end at the same place.
    cdb[12..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}
