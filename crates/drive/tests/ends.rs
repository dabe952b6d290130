//! Each transport against the whole device, when all is well.

use bus::Speed;
use initiator::turbo::{LookAhead, Turbo, TurboConfig};
use initiator::{CommandId, Outcome, Timeouts, Transport};
use testkit::command::{BLOCK, command};
use testkit::drive::ram_drive;
use uaskit_drive::Drive;
use uaskit_drive::loopback::{Loopback, LoopbackCompletion, plug};
use units::{Duration, Instant};

struct Host<T> {
    ends: Loopback<T>,
    commands: u32,
}

impl<T: Transport> Host<T> {
    /// Joins the two and takes the unit attention that comes first.
    fn new(transport: T, drive: Drive) -> Self {
        let mut host = Self { ends: Loopback::new(transport, drive), commands: 0 };
        host.submit(0, false, (0, 0), Vec::new());
        assert!(!host.next().outcome.is_good(), "power on");
        host
    }

    fn submit(&mut self, slot: u16, writes: bool, blocks: (u32, u16), mut buffer: Vec<u8>) {
        self.commands += 1;
        let id = CommandId { slot, generation: self.commands };
        let deadline = Instant::ZERO + Duration::from_secs(30);
        self.ends
            .submit(Instant::ZERO, &command(id, writes, blocks, deadline), &mut buffer)
            .expect("there is room");
    }

    #[track_caller]
    fn next(&mut self) -> LoopbackCompletion {
        self.ends.run_once(Instant::ZERO);
        self.ends.poll().expect("a command has ended")
    }

    /// Writes blocks in several commands and reads them in one, and the other way round.
    fn write_and_read(&mut self) {
        let bytes: Vec<u8> = (0..16 * BLOCK).map(|at| (at / 7) as u8).collect();
        for (slot, piece) in (0..4u16).zip(bytes.chunks(4 * BLOCK as usize)) {
            self.submit(slot, true, (u32::from(slot) * 4, 4), piece.to_vec());
        }
        for _ in 0..4 {
            assert!(self.next().outcome.is_good());
        }
        self.submit(0, false, (0, 16), Vec::new());
        let read = self.next();
        assert!(matches!(read.outcome, Outcome::Answered(answer) if answer.moved == 16 * BLOCK));
        assert!(read.buffer[..bytes.len()] == bytes);
        for slot in 0..4 {
            self.submit(slot, false, (u32::from(slot) * 4, 4), Vec::new());
        }
        for _ in 0..4 {
            let read = self.next();
            let first = usize::from(read.id.slot) * 4 * BLOCK as usize;
            let len = 4 * BLOCK as usize;
            assert!(read.outcome.is_good() && read.buffer[..len] == bytes[first..first + len]);
        }
        assert_eq!(self.ends.transport().in_flight(), 0);
        assert!(self.ends.drive().device().is_idle());
        assert_eq!(self.ends.transport().counters(), initiator::Counters::default());
    }
}

#[test]
fn uas_finds_what_it_wrote_with_streams_and_without_streams() {
    for speed in [Speed::Super, Speed::High, Speed::Full] {
        let mut drive = ram_drive(speed, 16);
        let uas = plug::uas(&mut drive, None, Timeouts::default()).expect("the drive has UAS");
        assert_eq!(uas.has_streams(), speed == Speed::Super);
        Host::new(uas, drive).write_and_read();
    }
}

/// BOT takes one command at a time, and its drive fails the first for the power-on: REQUEST SENSE is part of it.
#[test]
fn bot_finds_what_it_wrote() {
    for speed in [Speed::Super, Speed::High, Speed::Full] {
        let mut drive = ram_drive(speed, 16);
        let bot = plug::bot(&mut drive, Timeouts::default()).expect("the drive has BOT");
        let mut host = Host::new(bot, drive);
        let bytes: Vec<u8> = (0..8 * BLOCK).map(|at| (at / 5) as u8).collect();
        host.submit(0, true, (8, 8), bytes.clone());
        assert!(host.next().outcome.is_good());
        host.submit(0, false, (8, 8), Vec::new());
        let read = host.next();
        assert!(read.outcome.is_good() && read.buffer[..bytes.len()] == bytes);
        assert_eq!(host.ends.transport().counters(), initiator::Counters::default());
    }
}

#[test]
fn turbo_finds_what_it_wrote() {
    let mut drive = ram_drive(Speed::Super, 16);
    let bot = plug::bot_config(&mut drive, Timeouts::default()).expect("the drive has BOT");
    let turbo = Turbo::new(TurboConfig { look_ahead: LookAhead::Never, ..TurboConfig::new(bot) });
    Host::new(turbo, drive).write_and_read();
}

#[test]
fn a_drive_without_a_transport_says_so() {
    let mut bare = ram_drive(Speed::Super, 1);
    let refused = plug::uas(&mut bare, None, Timeouts::default());
    assert!(matches!(refused, Err(plug::PlugError::Streams(_))), "{refused:?}");
}
