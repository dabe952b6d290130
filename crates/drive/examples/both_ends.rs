//! Initiator and target as libraries: commands queued over UAS to a drive whose medium is ours.
//!
//! Both are machines without I/O. The transport takes commands, requests transfers and is notified how they
//! ended; the device takes transfers, requests medium operations and is notified how they ended. Here a [`Loopback`]
//! carries transfers from one to the other; `uaskit serve` carries them over usbredir, `uaskit bench` over usbfs.

use bus::{Direction, Speed};
use device::command::Limits;
use device::lun::{LogicalUnit, LogicalUnitConfig};
use device::{Device, DeviceConfig};
use initiator::{Command, CommandBlock, CommandId, DataPhase, Outcome, Timeouts, Transport};
use std::io;
use std::os::fd::BorrowedFd;
use uaskit_drive::Drive;
use uaskit_drive::loopback::{Loopback, plug};
use uaskit_drive::medium::{CompletedJob, Job, Medium, RamMedium};
use units::{BlockCount, BlockSize, ByteCount, ByteRange, Duration, Instant};
use wire::scsi::lun::LunField;
use wire::uas::TaskAttribute;

const BLOCK: u32 = 512;
const BLOCKS: u16 = 8;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // ANCHOR: initiator
    let mut drive = drive(Box::new(Printing(RamMedium::new(ByteCount(1 << 20), BlockSize::B512)?)));
    let uas = plug::uas(&mut drive, None, Timeouts::default())?;
    println!(
        "UAS, {}, {} commands at once",
        if uas.has_streams() { "streams" } else { "no streams" },
        uas.depth()
    );
    let mut ends = Loopback::new(uas, drive);

    // A drive that was just plugged in fails the first command, to report the power-on (SAM-5, clause 5.14).
    submit(&mut ends, 0, &[0; 6], None, Vec::new());
    let first = next(&mut ends);
    println!("TEST UNIT READY: {:?}", sense_of(&first.outcome));

    // Four writes are in flight together; each has its own tag and stream.
    for slot in 0..4 {
        let pattern = vec![slot as u8 + 1; usize::from(BLOCKS) * BLOCK as usize];
        submit(&mut ends, slot, &ten(0x2a, slot * BLOCKS), Some(Direction::Out), pattern);
    }
    for _ in 0..4 {
        let ended = next(&mut ends);
        println!(
            "WRITE(10) of slot {}: {}",
            ended.id.slot,
            if ended.outcome.is_good() { "good" } else { "failed" }
        );
    }
    submit(&mut ends, 0, &ten(0x28, 2 * BLOCKS), Some(Direction::In), Vec::new());
    println!("READ(10) at block {}: {:?} …", 2 * BLOCKS, &next(&mut ends).buffer[..4]);
    // ANCHOR_END: initiator
    Ok(())
}

// ANCHOR: medium
/// Memory that logs its operations. Your own medium has the same methods: anything that can read and write
/// blocks becomes a drive.
#[derive(Debug)]
struct Printing(RamMedium);

impl Medium for Printing {
    fn submit(&mut self, job: Job) -> Option<CompletedJob> {
        let request = job.request;
        println!(
            "    medium: {:?}, {} blocks at {}",
            request.op, request.extent.blocks.0, request.extent.lba.0
        );
        self.0.submit(job)
    }

    fn flush_submissions(&mut self) {
        self.0.flush_submissions();
    }

    fn poll(&mut self) -> Option<CompletedJob> {
        self.0.poll()
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.event_fd()
    }

    fn capacity(&self) -> BlockCount {
        self.0.capacity()
    }

    fn block_size(&self) -> BlockSize {
        self.0.block_size()
    }

    fn is_read_only(&self) -> bool {
        self.0.is_read_only()
    }

    fn writes_atomically(&self) -> bool {
        self.0.writes_atomically()
    }

    fn keeps_state(&self) -> bool {
        self.0.keeps_state()
    }

    fn save_state(&mut self, state: &[u8]) -> io::Result<()> {
        self.0.save_state(state)
    }

    fn load_state(&self) -> io::Result<Option<Vec<u8>>> {
        self.0.load_state()
    }

    fn describe(&self) -> String {
        format!("{}, logged", self.0.describe())
    }
}
// ANCHOR_END: medium

/// READ(10) or WRITE(10) of [`BLOCKS`] blocks (SBC-4, clauses 5.16 and 5.40).
fn ten(operation_code: u8, lba: u16) -> [u8; 10] {
    let ([l0, l1], [b0, b1]) = (lba.to_be_bytes(), BLOCKS.to_be_bytes());
    [operation_code, 0, 0, 0, l0, l1, 0, b0, b1, 0]
}

fn submit<T: Transport>(
    ends: &mut Loopback<T>,
    slot: u16,
    cdb: &[u8],
    direction: Option<Direction>,
    mut buffer: Vec<u8>,
) {
    let range = ByteRange::new(0, u32::from(BLOCKS) * BLOCK);
    let command = Command {
        // A slot is used again after its command has ended, under another generation.
        id: CommandId { slot, generation: u32::from(cdb[0]) },
        lun: LunField([0; 8]),
        attribute: TaskAttribute::Simple,
        cdb: CommandBlock::new(cdb).expect("at most 16 bytes"),
        data_phase: direction.map(|direction| DataPhase { direction, range }),
        deadline: Instant::ZERO + Duration::from_secs(30),
    };
    ends.submit(Instant::ZERO, &command, &mut buffer).expect("the transport has room");
}

fn next<T: Transport>(ends: &mut Loopback<T>) -> uaskit_drive::loopback::LoopbackCompletion {
    ends.run_once(Instant::ZERO);
    ends.poll().expect("memory answers at once")
}

/// Sense key and additional sense code, where a command failed.
fn sense_of(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answered(answer) => format!("{:?}", answer.sense),
        other => format!("{other:?}"),
    }
}

// ANCHOR: drive
/// A drive with one logical unit on that medium.
fn drive(medium: Box<dyn Medium + Send>) -> Drive {
    let unit = LogicalUnit::new(LogicalUnitConfig {
        vendor: "example".into(),
        read_only: medium.is_read_only(),
        durable: medium.keeps_state(),
        atomic_writes: medium.writes_atomically(),
        ..LogicalUnitConfig::new(medium.block_size(), medium.capacity())
    });
    let config = DeviceConfig {
        manufacturer: "example".into(),
        limits: Limits { commands: 64, buffer_bytes: 16 << 20, segment_bytes: 4096 },
        ..DeviceConfig::new(Speed::Super)
    };
    Drive::new(Device::new(config, vec![unit]), vec![medium])
}
// ANCHOR_END: drive
