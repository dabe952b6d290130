//! Initiator and virtual drive in one process with a medium in memory: the cost of the protocol
//! code alone.
//!
//! The drive is the same on every route; its medium is filled before measuring, so that reads copy
//! real data. Commands that the host has sent wait together for the drive's next poll
//! ([`QueuedMedium`]), so that queue depth has an effect. Left out: waiting. All progress is made
//! in [`Runner::run_once`], which never sleeps, since the only deadlines are Turbo's, of a few
//! microseconds.

use super::queued::QueuedMedium;
use super::{
    AccessError, BenchDevice, BufferLayout, CompletedAccess, DeviceError, DriveInfo, ErrorCounters,
    ObserverFactory, Route, Runner,
};
use bus::{Fifo, Speed};
use device::command::{self, DataLocation, Limits};
use device::lun::{LogicalUnit, LogicalUnitConfig, limits};
use device::medium::{MediumOp, MediumRequest, MediumRequestId};
use device::{Device, DeviceConfig};
use drive::Drive;
use drive::loopback::LoopbackBus;
use drive::loopback::plug::{self, PlugError};
use drive::medium::{Job, Medium, RamMedium};
use initiator::disk::{AskTemperature, DiskConfig, LostWrite, Operation};
use initiator::session::{BufferBlock, BufferId, Session, SessionBuffers, SessionConfig};
use initiator::turbo::{Turbo, TurboConfig};
use initiator::{Timeouts, Transport};
use std::time::Duration;
use units::{BlockCount, BlockSize, ByteCount, ByteRange, Extent, Instant};
use workload::{Access, AccessKind};

/// Streams of the drive: more than any requested depth plus the two that hosts reserve.
const STREAMS: u16 = 256;

/// Bytes of one command: what Linux sends at SuperSpeed on every transport.
const COMMAND_BYTES_MAX: u32 = 1 << 20;

/// The note that explains queue depth here.
const BATCHES: &str = "no medium is involved, and commands complete in batches at the drive's next poll: latencies are \
                       not those of a real drive";

/// A virtual drive in memory with our own initiators.
#[derive(Debug)]
pub struct MemoryDevice {
    up: Option<Box<dyn End>>,
    drive: Option<Drive<QueuedMedium>>,
    identity: DriveInfo,
    factory: Option<Box<dyn ObserverFactory>>,
}

/// A route that can be closed again.
trait End: Runner + std::fmt::Debug {
    fn into_drive(self: Box<Self>) -> Drive<QueuedMedium>;
}

impl MemoryDevice {
    /// Creates a drive of this size.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub fn new(size: ByteCount, block_size: BlockSize, speed: Speed) -> Result<Self, DeviceError> {
        let no_memory = |error| DeviceError::new(format!("cannot allocate {size} of memory: {error}"));
        let mut medium = RamMedium::new(size, block_size).map_err(no_memory)?;
        fill(&mut medium)?;
        let identity = DriveInfo {
            model: Some("uaskit Virtual Drive".into()),
            serial: None,
            firmware: Some(env!("CARGO_PKG_VERSION").into()),
            bytes: medium.capacity().0 * u64::from(block_size.bytes()),
            block_bytes: block_size.bytes(),
            engine: "initiator and drive in memory".into(),
            notes: vec![BATCHES.to_owned()],
        };
        Ok(Self { up: None, drive: Some(drive(medium, speed)), identity, factory: None })
    }
}

impl BenchDevice for MemoryDevice {
    fn watch(&mut self, factory: Box<dyn ObserverFactory>) -> Result<(), DeviceError> {
        self.factory = Some(factory);
        Ok(())
    }

    fn open_route(&mut self, route: Route, _layout: BufferLayout) -> Result<&mut dyn Runner, DeviceError> {
        let mut drive = match self.up.take() {
            Some(end) => end.into_drive(),
            None => self
                .drive
                .take()
                .ok_or_else(|| DeviceError::new("the drive is no longer usable after an earlier failure"))?,
        };
        drive.bus_reset();
        drive.run_once();
        while drive.poll().is_some() {}
        let refused = |error| {
            let what = format!("cannot configure the virtual drive: {error}");
            if error == PlugError::NotOffered {
                DeviceError::not_offered(what)
            } else {
                DeviceError::new(what)
            }
        };
        if let Some(factory) = &self.factory {
            drive.observe(factory.observer());
            plug::read_descriptors(&mut drive).map_err(refused)?;
        }
        let timeouts = Timeouts::default();
        let up: Box<dyn End> = match route {
            Route::Kernel => return Err(DeviceError::not_offered("the virtual drive has no kernel driver")),
            Route::Bot => {
                let bot = plug::bot(&mut drive, timeouts).map_err(refused)?;
                Box::new(MemoryRunner::new(bot, drive)?)
            }
            Route::Turbo => {
                let bot = plug::bot_config(&mut drive, timeouts).map_err(refused)?;
                Box::new(MemoryRunner::new(Turbo::new(TurboConfig::new(bot)), drive)?)
            }
            Route::Uas => {
                let uas = plug::uas(&mut drive, None, timeouts).map_err(refused)?;
                Box::new(MemoryRunner::new(uas, drive)?)
            }
        };
        Ok(self.up.insert(up).as_mut())
    }

    fn identity(&self) -> DriveInfo {
        self.identity.clone()
    }
}

/// Writes every block, so that reads copy real data.
fn fill(medium: &mut RamMedium) -> Result<(), DeviceError> {
    const PIECE_BYTES: u64 = 1 << 20;
    let block_bytes = u64::from(medium.block_size().bytes());
    let mut buffer = vec![0; PIECE_BYTES as usize];
    fastrand::Rng::with_seed(1).fill(&mut buffer);
    let (piece, capacity) = (PIECE_BYTES / block_bytes, medium.capacity().0);
    let mut next = 0;
    while next < capacity {
        let blocks = piece.min(capacity - next);
        let command = command::CommandId { slot: 0, generation: 0 };
        let request = MediumRequest {
            id: MediumRequestId { command, part: 0 },
            unit: 0,
            op: MediumOp::Write { fua: false },
            extent: Extent::new(next, blocks),
            location: DataLocation::Buffer,
            range: ByteRange::new(0, (blocks * block_bytes) as u32),
        };
        let finished = medium
            .submit(Job { request, buffer })
            .ok_or_else(|| DeviceError::new("memory waits for nothing"))?;
        finished.completion.result.map_err(|error| DeviceError::new(format!("memory fails: {error:?}")))?;
        buffer = finished.buffer;
        next += blocks;
    }
    Ok(())
}

fn drive(medium: RamMedium, speed: Speed) -> Drive<QueuedMedium> {
    let name = || "uaskit".to_owned();
    let serial = || "BENCH0000001".to_owned();
    let unit = LogicalUnit::new(LogicalUnitConfig {
        vendor: name(),
        serial: serial(),
        ..LogicalUnitConfig::new(medium.block_size(), medium.capacity())
    });
    let config = DeviceConfig {
        streams: STREAMS,
        manufacturer: name(),
        serial: serial(),
        limits: Limits {
            commands: STREAMS + 1,
            buffer_bytes: 64 << 20,
            segment_bytes: limits::TRANSFER_BYTES_MAX,
        },
        ..DeviceConfig::new(speed)
    };
    Drive::new(Device::new(config, vec![unit]), vec![Box::new(QueuedMedium::new(medium))])
}

/// A disk on a transport, connected to the drive.
#[derive(Debug)]
struct MemoryRunner<T> {
    session: Session<LoopbackBus<QueuedMedium>, T>,
    /// The first buffer of requests.
    first: BufferId,
    began: std::time::Instant,
    /// The time of the last poll, exact enough for requests submitted before the next.
    at: Instant,
    /// Requests that were rejected.
    rejected: Fifo<CompletedAccess>,
}

impl<T: Transport + std::fmt::Debug> MemoryRunner<T> {
    /// Identifies the disk.
    fn new(transport: T, drive: Drive<QueuedMedium>) -> Result<Self, DeviceError> {
        let config = SessionConfig {
            merged_bytes: COMMAND_BYTES_MAX,
            slots: 0,
            slot_bytes: 0,
            ..SessionConfig::of(&transport)
        };
        let disk = DiskConfig {
            requests_max: workload::DEPTH_MAX,
            ..DiskConfig::new(config.commands, COMMAND_BYTES_MAX)
        };
        let mut bus = LoopbackBus::new(drive);
        let buffers = SessionBuffers::new(bus.allocate(SessionBuffers::blocks(&config)), &config);
        let mut runner = Self {
            session: Session::new(disk, transport, bus, buffers),
            first: buffers.slots(),
            began: std::time::Instant::now(),
            at: Instant::ZERO,
            rejected: Fifo::new(),
        };
        runner.session.identify(runner.now(), AskTemperature::Not);
        // A few dozen commands; each poll completes at least one.
        for _ in 0..IDENTIFY_POLLS_MAX {
            runner.advance();
            if runner.session.disk().geometry().is_some() {
                return Ok(runner);
            }
        }
        Err(DeviceError::new("timed out identifying the drive"))
    }

    fn now(&self) -> Instant {
        Instant::from_ps((self.began.elapsed().as_nanos() as u64).saturating_mul(1000))
    }

    /// Makes all progress that is possible in one pass.
    fn advance(&mut self) {
        let now = self.now();
        self.at = now;
        if self.session.poll_timeout().is_some_and(|due| due <= now) {
            self.session.handle_timeout(now);
        }
        self.session.settle(now);
        self.session.bus_mut().run_once();
        self.session.settle(now);
    }

    fn submit(&mut self, slot: u16, operation: Operation, extent: Extent) {
        if self.session.submit(self.at, slot, operation, extent).is_err() {
            // Only a unit that is gone takes no request that fits.
            let result = Err(AccessError::Disk(initiator::disk::Error::Gone));
            self.rejected.push_back(CompletedAccess { slot, result });
        }
    }
}

/// Polls allowed for identification.
const IDENTIFY_POLLS_MAX: u32 = 10_000;

impl<T: Transport + std::fmt::Debug> Runner for MemoryRunner<T> {
    fn block_size(&self) -> BlockSize {
        self.session.disk().geometry().map_or(BlockSize::B512, |geometry| geometry.block_size)
    }

    fn capacity(&self) -> BlockCount {
        self.session.disk().geometry().map_or(BlockCount(0), |geometry| geometry.capacity)
    }

    fn prepare(&mut self, depth: u16, bytes: u32) -> Result<(), DeviceError> {
        let bus = self.session.bus_mut();
        bus.free_from(self.first);
        // Buffers are reused rather than allocated again: a command's data exists at the host and
        // at the drive.
        bus.pool().keep_also(2 * usize::from(depth) * bytes as usize);
        bus.allocate([BufferBlock { count: depth, bytes }]);
        self.session.replace_slots(depth, bytes);
        self.session.expect(depth);
        Ok(())
    }

    fn memory(&mut self, slot: u16) -> &mut [u8] {
        self.session.buffer(slot).unwrap_or_default()
    }

    fn start(&mut self, slot: u16, access: Access) {
        let operation = match access.kind {
            AccessKind::Read => Operation::Read { fua: false, dpo: false, may_be_short: false },
            AccessKind::Write => Operation::Write { fua: false, dpo: false },
        };
        self.submit(slot, operation, access.extent);
    }

    fn start_flush(&mut self, slot: u16) {
        self.submit(slot, Operation::Flush, Extent::default());
    }

    fn poll_lost(&mut self) -> Option<LostWrite> {
        self.session.poll_lost()
    }

    fn run_once(&mut self, _timeout: Duration) -> Result<(), DeviceError> {
        self.advance();
        Ok(())
    }

    fn poll(&mut self) -> Option<CompletedAccess> {
        self.session.poll().map(CompletedAccess::from).or_else(|| self.rejected.pop_front())
    }

    fn error_counters(&self) -> ErrorCounters {
        ErrorCounters::of(self.session.disk().counts(), self.session.transport().counters())
    }
}

impl<T: Transport + std::fmt::Debug> End for MemoryRunner<T> {
    fn into_drive(self: Box<Self>) -> Drive<QueuedMedium> {
        self.session.into_bus().into_drive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::{Completion, Front};
    use initiator::turbo::LookAhead;
    use initiator::{
        Answer, BufferRange, BusAnswer, Command, CommandId, Deadline, Outcome, Output as TransportOutput,
        PackId, Refusal, SenseBytes,
    };
    use wire::scsi::Status;

    const LAYOUT: BufferLayout = BufferLayout { slots: 2, bytes: 3 << 20 };

    fn wait(runner: &mut dyn Runner) -> CompletedAccess {
        for _ in 0..1_000_000 {
            runner.run_once(Duration::ZERO).expect("it goes on");
            if let Some(ended) = runner.poll() {
                return ended;
            }
        }
        panic!("nothing ends");
    }

    #[test]
    fn queued_commands_reach_the_drive_together() {
        let medium = RamMedium::new(ByteCount(16 << 20), BlockSize::B512).expect("16 MiB");
        let mut drive = drive(medium, Speed::Super);
        let uas = plug::uas(&mut drive, None, Timeouts::default()).expect("UAS");
        let mut runner = MemoryRunner::new(uas, drive).expect("a disk");
        runner.prepare(8, 4096).expect("memory");
        for slot in 0..8 {
            let extent = Extent::new(u64::from(slot) * 8, 8);
            runner.start(slot, Access { kind: AccessKind::Read, extent });
        }
        runner.session.settle(runner.now());
        assert_eq!(runner.session.bus().drive().at_media(), 8);
        let ended: Vec<u16> = (0..8).map(|_| wait(&mut runner).slot).collect();
        assert_eq!(ended, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn turbo_does_not_delay_a_single_request() {
        let medium = RamMedium::new(ByteCount(16 << 20), BlockSize::B512).expect("16 MiB");
        let mut drive = drive(medium, Speed::Super);
        let bot = plug::bot_config(&mut drive, Timeouts::default()).expect("BOT");
        let look_ahead = LookAhead::AfterNeighbour(units::Duration::from_secs(3600));
        let turbo = Turbo::new(TurboConfig { look_ahead, ..TurboConfig::new(bot) });
        let mut runner = MemoryRunner::new(turbo, drive).expect("a disk");
        runner.prepare(1, 4096).expect("memory");
        for lba in [0, 8, 16] {
            runner.start(0, Access { kind: AccessKind::Read, extent: Extent::new(lba, 8) });
            assert_eq!(wait(&mut runner), CompletedAccess { slot: 0, result: Ok(()) });
        }
    }

    /// A drive that answers some commands with a deferred error (response code 71h) without
    /// executing them.
    #[derive(Debug)]
    struct Forgetful<T> {
        transport: T,
        /// Operation codes to answer so, once each.
        due: Vec<u8>,
        marked: Vec<CommandId>,
    }

    impl<T: Transport> Transport for Forgetful<T> {
        fn submit(&mut self, now: Instant, command: &Command) -> Result<(), Refusal> {
            if let Some(at) = self.due.iter().position(|code| command.cdb.as_bytes().first() == Some(code)) {
                self.due.remove(at);
                self.marked.push(command.id);
            }
            self.transport.submit(now, command)
        }

        fn poll_output(&mut self) -> Option<Front<'_, TransportOutput>> {
            /// MEDIUM ERROR at LBA 77: WRITE ERROR, of an earlier command.
            const SENSE: [u8; 18] = [0xf1, 0, 3, 0, 0, 0, 77, 10, 0, 0, 0, 0, 0x0c, 0, 0, 0, 0, 0];
            let mut output = self.transport.poll_output()?;
            if let TransportOutput::Finished(id, outcome) = &mut *output
                && let Some(at) = self.marked.iter().position(|marked| marked == id)
            {
                self.marked.remove(at);
                let (status, sense) = (Status::CheckCondition, SenseBytes::new(&SENSE));
                *outcome = Outcome::Answered(Answer { status, status_qualifier: 0, moved: 0, sense });
            }
            Some(output)
        }

        fn abort(&mut self, now: Instant, id: CommandId) {
            self.transport.abort(now, id);
        }

        fn handle_completion(&mut self, now: Instant, completion: Completion, bytes: &[u8]) {
            self.transport.handle_completion(now, completion, bytes);
        }

        fn handle_answer(&mut self, now: Instant, id: initiator::RequestId, answer: BusAnswer) {
            self.transport.handle_answer(now, id, answer);
        }

        fn handle_disconnect(&mut self, now: Instant) {
            self.transport.handle_disconnect(now);
        }

        fn handle_timeout(&mut self, now: Instant) {
            self.transport.handle_timeout(now);
        }

        fn poll_timeout(&self) -> Option<Deadline> {
            self.transport.poll_timeout()
        }

        fn transfers_max(&self) -> usize {
            self.transport.transfers_max()
        }

        fn depth(&self) -> usize {
            self.transport.depth()
        }

        fn in_flight(&self) -> usize {
            self.transport.in_flight()
        }

        fn counters(&self) -> initiator::Counters {
            self.transport.counters()
        }

        fn pieces(&self, pack: PackId) -> &[BufferRange] {
            self.transport.pieces(pack)
        }
    }

    #[test]
    fn deferred_errors_are_reported_with_the_next_command_and_at_the_flush() {
        let medium = RamMedium::new(ByteCount(16 << 20), BlockSize::B512).expect("16 MiB");
        let mut drive = drive(medium, Speed::Super);
        let transport = plug::uas(&mut drive, None, Timeouts::default()).expect("UAS");
        let forgetful = Forgetful { transport, due: vec![0x2a, 0x35], marked: Vec::new() };
        let mut runner = MemoryRunner::new(forgetful, drive).expect("a disk");
        runner.prepare(1, 4096).expect("memory");
        runner.start(0, Access { kind: AccessKind::Write, extent: Extent::new(8, 8) });
        assert_eq!(wait(&mut runner), CompletedAccess { slot: 0, result: Ok(()) });
        let lost = runner.poll_lost().expect("an earlier write");
        assert_eq!(lost.lba, Some(units::Lba(77)));
        runner.start_flush(0);
        let expected = Err(AccessError::Disk(initiator::disk::Error::LostWrite(lost)));
        assert_eq!(wait(&mut runner), CompletedAccess { slot: 0, result: expected });
        assert_eq!((runner.poll_lost(), runner.poll_lost()), (Some(lost), None));
        assert_eq!((runner.error_counters().lost_writes, runner.error_counters().retries), (2, 2));
        runner.start_flush(0);
        assert_eq!(wait(&mut runner), CompletedAccess { slot: 0, result: Ok(()) });
    }

    #[test]
    fn data_written_on_one_route_is_read_on_another() {
        let mut bench_device =
            MemoryDevice::new(ByteCount(16 << 20), BlockSize::B512, Speed::Super).expect("16 MiB");
        // Longer than one command, so that it is split.
        let extent = Extent::new(3, (3 << 20) / 512);
        let runner = bench_device.open_route(Route::Uas, LAYOUT).expect("UAS");
        runner.prepare(1, 3 << 20).expect("memory");
        runner.memory(0).iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 13) as u8);
        runner.start(0, Access { kind: AccessKind::Write, extent });
        assert_eq!(wait(runner), CompletedAccess { slot: 0, result: Ok(()) });
        for route in [Route::Bot, Route::Turbo, Route::Uas] {
            let runner = bench_device.open_route(route, LAYOUT).expect("it is offered");
            assert_eq!((runner.block_size(), runner.capacity()), (BlockSize::B512, BlockCount(32_768)));
            // Over BOT each short response ends with a STALL.
            let stalls = runner.error_counters().stalls;
            runner.prepare(2, 3 << 20).expect("memory");
            runner.start(1, Access { kind: AccessKind::Read, extent });
            assert_eq!(wait(runner), CompletedAccess { slot: 1, result: Ok(()) });
            assert!(
                runner.memory(1).iter().enumerate().all(|(at, byte)| *byte == (at / 13) as u8),
                "{route}"
            );
            assert_eq!(runner.error_counters().stalls, stalls);
        }
        assert!(bench_device.open_route(Route::Kernel, LAYOUT).is_err());
    }
}
