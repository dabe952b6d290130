//! A host that does what a script says on a drive in memory, and counts: each transfer completes once.
//!
//! The host knows the standard no better than the script does. What it checks holds for any host: a completion has
//! the name and the pipe of a transfer that was submitted and has not completed; no more bytes are moved than asked
//! for; when the host is gone, every transfer has completed and no command is left.

use bus::{Pipe, Speed, TransferStatus};
use device::{
    Device, DeviceConfig, Transports, Verdict,
    command::Limits,
    lun::{LogicalUnit, LogicalUnitConfig, UnitType},
};
use drive::{Body, Drive, HostCompletion, HostTransfer, medium::RamMedium};
use std::collections::BTreeMap;
use units::{BlockCount, BlockSize, ByteCount};
use wire::usb::SetupPacket;

/// The kind of drive that the host is given.
#[derive(Clone, Copy, Debug)]
pub struct DriveKind {
    pub speed: Speed,
    pub streams: u16,
    pub units: u8,
    pub block_size: BlockSize,
    pub removable: bool,
    pub read_only: bool,
    /// Whether the last unit is an optical drive.
    pub optical: bool,
    /// The transport of a floppy drive; its disk has 720 KB, and its device one unit.
    pub floppy: Option<Transports>,
}

/// Bytes of the medium of each disk and disc.
const MEDIUM_BYTES: u64 = 256 << 10;
/// Bytes of a floppy disk of 720 KB.
const FLOPPY_BYTES: u64 = 737_280;

pub struct Host {
    drive: Drive,
    next_id: u64,
    outstanding: BTreeMap<u64, (Pipe, u32)>,
    /// Completions that the script has not looked at.
    completed: Vec<HostCompletion>,
}

impl DriveKind {
    /// A drive of one unit at super speed.
    pub fn plain() -> Self {
        let block_size = BlockSize::B512;
        let (removable, read_only, optical) = (false, false, false);
        let speed = Speed::Super;
        Self { speed, streams: 16, units: 1, block_size, removable, read_only, optical, floppy: None }
    }

    /// A floppy drive.
    pub fn floppy(transport: Transports) -> Self {
        Self { speed: Speed::Full, removable: true, floppy: Some(transport), ..Self::plain() }
    }

    /// One of the drives that a byte can name.
    pub fn from_byte(byte: u8) -> Self {
        let bit = |n: u8| byte >> n & 1 == 1;
        let speed = match byte & 3 {
            0 => Speed::High,
            1 => Speed::Full,
            _ => Speed::Super,
        };
        let block_size = if bit(2) { BlockSize::B4096 } else { BlockSize::B512 };
        let (units, removable, read_only) = (1 + u8::from(bit(3)), bit(4), bit(5));
        let (streams, optical) = (if bit(6) { 256 } else { 8 }, bit(7));
        Self { speed, streams, units, block_size, removable, read_only, optical, floppy: None }
    }

    /// The drive, just powered on.
    pub fn drive(&self) -> Drive {
        let config = DeviceConfig {
            streams: self.streams,
            product_id: 0x0001,
            product: "drive".into(),
            serial: "0123456789ab".into(),
            limits: Limits { commands: 32, buffer_bytes: 1 << 20, segment_bytes: 64 << 10 },
            transports: self.floppy.unwrap_or(Transports::Dual),
            ..DeviceConfig::new(self.speed)
        };
        let units = (0..self.units).map(|number| self.unit(number)).collect();
        let medium = |number| {
            RamMedium::new(ByteCount(self.medium_bytes()), self.block_size(number)).expect("there is memory")
        };
        let media = (0..self.units).map(|number| Box::new(medium(number)) as _).collect();
        Drive::new(Device::new(config, units), media)
    }

    fn medium_bytes(&self) -> u64 {
        if self.floppy.is_some() { FLOPPY_BYTES } else { MEDIUM_BYTES }
    }

    fn is_optical(&self, number: u8) -> bool {
        self.optical && number + 1 == self.units
    }

    fn block_size(&self, number: u8) -> BlockSize {
        if self.is_optical(number) { BlockSize::B2048 } else { self.block_size }
    }

    fn unit(&self, number: u8) -> LogicalUnit {
        let (is_optical, block_size) = (self.is_optical(number), self.block_size(number));
        LogicalUnit::new(LogicalUnitConfig {
            unit_type: match (is_optical, self.floppy) {
                (true, _) => UnitType::Optical,
                (false, Some(_)) => UnitType::Floppy,
                (false, None) => UnitType::Disk,
            },
            product: "drive".into(),
            serial: "0123456789ab".into(),
            read_only: self.read_only || is_optical,
            removable: self.removable || is_optical,
            durable: !is_optical,
            atomic_writes: !is_optical,
            ..LogicalUnitConfig::new(
                block_size,
                BlockCount(self.medium_bytes() / u64::from(block_size.bytes())),
            )
        })
    }
}

impl Host {
    /// Plugs the drive in; nothing is configured yet.
    pub fn plug(kind: DriveKind) -> Self {
        Self { drive: kind.drive(), next_id: 0, outstanding: BTreeMap::new(), completed: Vec::new() }
    }

    /// SET_ADDRESS, SET_CONFIGURATION 1 and SET_INTERFACE: 0 is BOT, 1 is UAS.
    pub fn configure(&mut self, alternate: u8) {
        if self.drive.device().configuration() == 0 {
            self.control([0x00, 5, 1, 0, 0, 0, 0, 0], &[]);
        }
        assert_eq!(self.control([0x00, 9, 1, 0, 0, 0, 0, 0], &[]), Verdict::Done);
        assert_eq!(self.control([0x01, 11, alternate, 0, 0, 0, 0, 0], &[]), Verdict::Done);
    }

    /// A control transfer. An answer is no longer than asked for.
    pub fn control(&mut self, setup: [u8; 8], data_out: &[u8]) -> Verdict {
        let setup = SetupPacket::decode(&setup).expect("eight bytes");
        let verdict = self.drive.control(setup, data_out);
        if let Verdict::Data(data) = &verdict {
            assert!(data.len() <= usize::from(setup.length), "{} bytes to {setup}", data.len());
        }
        self.drain();
        verdict
    }

    /// CLEAR_FEATURE(ENDPOINT_HALT).
    pub fn clear_halt(&mut self, endpoint: u8) {
        self.control([0x02, 1, 0, 0, endpoint, 0, 0, 0], &[]);
    }

    /// Submits an In transfer; its name, or nothing if the bus is full.
    pub fn read(&mut self, pipe: Pipe, length: u32) -> Option<u64> {
        self.submit(pipe, length, Vec::new())
    }

    /// Submits an Out transfer; its name, or nothing if the bus is full.
    pub fn write(&mut self, pipe: Pipe, bytes: &[u8]) -> Option<u64> {
        let mut payload = self.drive.pool().take(bytes.len());
        payload.clear();
        payload.extend_from_slice(bytes);
        self.submit(pipe, bytes.len() as u32, payload)
    }

    fn submit(&mut self, pipe: Pipe, length: u32, payload: Vec<u8>) -> Option<u64> {
        let id = self.next_id;
        self.next_id += 1;
        // Before the call: it may complete within.
        self.outstanding.insert(id, (pipe, length));
        if self.drive.submit(HostTransfer { id, pipe, length, payload }).is_err() {
            self.outstanding.remove(&id);
            return None;
        }
        self.drain();
        Some(id)
    }

    /// Cancels the `nth` of the outstanding transfers. It completes at once.
    pub fn cancel(&mut self, nth: u8) {
        let Some(id) = self.outstanding.keys().nth(nth.into()).copied() else { return };
        assert!(self.drive.cancel(id), "a transfer that has not completed can be cancelled");
        self.drain();
        assert!(!self.outstanding.contains_key(&id), "a cancelled transfer has completed");
    }

    pub fn bus_reset(&mut self) {
        self.drive.bus_reset();
        self.drain();
        assert!(self.outstanding.is_empty(), "a bus reset ends every transfer: {:?}", self.outstanding);
    }

    /// Lets the media work until they are done.
    pub fn run_once(&mut self) {
        self.drive.run_once();
        self.drain();
    }

    /// The end of a transfer, if it has come; how it ended and the bytes it brought.
    pub fn take(&mut self, id: u64) -> Option<(TransferStatus, Vec<u8>)> {
        let at = self.completed.iter().position(|completion| completion.id == id)?;
        let completion = self.completed.remove(at);
        let actual = completion.actual as usize;
        let bytes = match &completion.body {
            Body::Empty => Vec::new(),
            Body::Inline(inline) => inline.as_bytes()[..actual].to_vec(),
            Body::Buffer(bytes) => bytes[..actual].to_vec(),
        };
        Some((completion.status, bytes))
    }

    /// The host goes away; nothing may be left.
    pub fn unplug(mut self) {
        self.run_once();
        self.drive.nexus_loss();
        self.run_once();
        assert!(self.outstanding.is_empty(), "transfers that never completed: {:?}", self.outstanding);
        assert!(self.drive.device().is_idle(), "{} commands never ended", self.drive.device().depth());
        assert_eq!(self.drive.at_media(), 0, "requests that no medium answered");
        assert_eq!(self.drive.payload_bytes(), 0, "payload without an owner");
    }

    fn drain(&mut self) {
        while let Some(completion) = self.drive.poll() {
            let submitted = self.outstanding.remove(&completion.id);
            assert_eq!(
                submitted,
                Some((completion.pipe, completion.length)),
                "completes once: {completion:?}"
            );
            assert!(completion.actual <= completion.length, "{completion:?}");
            self.completed.push(completion);
        }
        // No target reads the old ones.
        let extra = self.completed.len().saturating_sub(64);
        self.completed.drain(..extra);
    }
}
