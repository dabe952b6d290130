//! A drive behind an xHCI controller, driven by the xHCI driver and the transports of the initiator
//! in one process: enumeration, streams, BOT, UAS, aborts, hot plug, and random interleavings.

mod machine;
mod memory;

use bus::{Direction, Speed, TransferStatus};
use device::Transports;
use device::device::{COMMAND, DATA_IN, DATA_OUT, STATUS};
use initiator::bot::BotConfig;
use initiator::session::FinishedCommand;
use initiator::uas::{UasConfig, UasEndpoints};
use initiator::{
    Bot, Command, CommandBlock, CommandId, DataPhase, Failure, Outcome, Timeouts, Transport, Uas,
};
use machine::{Host, Session, UAS};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use testkit::host::{Random, cdb_16};
use uaskit_drive::Drive;
use uaskit_drive::medium::RamMedium;
use units::{BlockSize, ByteCount, ByteRange, Duration};
use wire::scsi::Status;
use wire::scsi::lun::LunField;
use wire::uas::TaskAttribute;
use xhci_controller::Model;
use xhci_driver::Config;

const BLOCK: usize = 512;
const BLOCKS: u64 = 4096;
const READ: u8 = 0x88;
const WRITE: u8 = 0x8A;

fn drive(speed: Speed, transports: Transports, streams: u16) -> Drive {
    let medium = RamMedium::new(ByteCount(BLOCKS * BLOCK as u64), BlockSize::B512).expect("memory");
    testkit::drive::drive_of(
        Box::new(medium),
        |_| {},
        |device| {
            device.speed = speed;
            device.transports = transports;
            device.streams = streams;
        },
    )
}

fn uas_config(streams: Option<u16>) -> UasConfig {
    let endpoints = UasEndpoints { command: COMMAND, status: STATUS, data_in: DATA_IN, data_out: DATA_OUT };
    UasConfig { interface: 0, alternate: UAS, endpoints, streams, depth: None, timeouts: Timeouts::default() }
}

fn uas(speed: Speed, streams: u16) -> Session<Uas> {
    let drive = drive(speed, Transports::Dual, streams);
    let mut host = Host::with(drive, Model::IMMEDIATE, Config::default());
    host.enumerate(speed, streams);
    host.configure(UAS);
    let granted = (speed == Speed::Super).then(|| host.allocate_streams(streams));
    let config = uas_config(granted);
    Session::new(host, Uas::new(config).expect("enough streams"))
}

fn bot(speed: Speed) -> Session<Bot> {
    let drive = drive(speed, Transports::Dual, 32);
    let alternate = drive.device().config().transports.bot_alternate().expect("BOT");
    let mut host = Host::with(drive, Model::IMMEDIATE, Config::default());
    host.enumerate(speed, 32);
    host.configure(alternate);
    let (bulk_in, bulk_out, timeouts) = (DATA_IN, DATA_OUT, Timeouts::default());
    Session::new(host, Bot::new(BotConfig { interface: 0, alternate, bulk_in, bulk_out, timeouts }))
}

/// READ (16) or WRITE (16) of `blocks` from `lba` on.
fn command<T>(session: &Session<T>, id: CommandId, opcode: u8, lba: u64, blocks: u16) -> Command {
    let direction = if opcode == READ { Direction::In } else { Direction::Out };
    let range = ByteRange { start: 0, len: u32::from(blocks) * BLOCK as u32 };
    Command {
        id,
        lun: LunField::default(),
        attribute: TaskAttribute::Simple,
        cdb: CommandBlock::new(&cdb_16(opcode, false, lba, blocks)).expect("16 bytes"),
        data_phase: Some(DataPhase { direction, range }),
        deadline: session.host.now + Duration::from_secs(30),
    }
}

const fn id(slot: u16, generation: u32) -> CommandId {
    CommandId { slot, generation }
}

fn is_good(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Answered(answer) if answer.status == Status::Good)
}

/// CHECK CONDITION with the sense key UNIT ATTENTION in fixed format, or with no sense data, since
/// an abort ended REQUEST SENSE.
fn is_attention(outcome: &Outcome) -> bool {
    let Outcome::Answered(answer) = outcome else { return false };
    let key = answer.sense.as_bytes().get(2).map(|byte| byte & 0xF);
    answer.status == Status::CheckCondition && matches!(key, None | Some(6))
}

/// The unit attention of a new nexus is taken by TEST UNIT READY.
fn take_attention<T: Transport>(session: &mut Session<T>) {
    let ready = Command {
        cdb: CommandBlock::new(&[0; 6]).expect("6 bytes"),
        data_phase: None,
        ..command(session, id(0, u32::MAX), READ, 0, 1)
    };
    session.submit(&ready, &[]);
    session.settle_until(|session| !session.finished.is_empty());
    session.finished.clear();
}

/// Writes patterns at all slots at once, reads them back, and compares.
fn write_and_read_back<T: Transport>(session: &mut Session<T>, slots: u16) {
    take_attention(session);
    for (generation, opcode) in [(1, WRITE), (2, READ)] {
        for slot in 0..slots {
            let bytes = if opcode == WRITE { vec![slot as u8 + 1; 8 * BLOCK] } else { vec![0; 8 * BLOCK] };
            let sent = command(session, id(slot, generation), opcode, u64::from(slot) * 8, 8);
            session.submit(&sent, &bytes);
        }
        session.settle_until(|session| session.finished.len() == usize::from(slots));
        for FinishedCommand { id, outcome, .. } in std::mem::take(&mut session.finished) {
            assert!(is_good(&outcome), "{id:?}: {outcome:?}");
            assert_eq!(session.bytes(id, 8 * BLOCK), vec![id.slot as u8 + 1; 8 * BLOCK], "{id:?}");
        }
    }
    assert_eq!(session.host.memory.faults(), 0);
}

#[test]
fn uas_with_streams_reads_what_it_wrote_at_all_tags() {
    let mut session = uas(Speed::Super, 32);
    let depth = session.commands.transport().depth() as u16;
    assert!(depth >= 30, "{depth}");
    write_and_read_back(&mut session, depth);
}

#[test]
fn two_hundred_and_fifty_four_commands_run_at_once() {
    let drive = {
        let medium = RamMedium::new(ByteCount(BLOCKS * BLOCK as u64), BlockSize::B512).expect("memory");
        testkit::drive::drive_of(
            Box::new(medium),
            |_| {},
            |device| {
                device.streams = 256;
                device.limits.commands = 256;
            },
        )
    };
    let mut host = Host::with(drive, Model::IMMEDIATE, Config { ring_segments: 2, ..Config::default() });
    host.enumerate(Speed::Super, 256);
    host.configure(UAS);
    assert_eq!(host.allocate_streams(256), 256);
    let mut session = Session::new(host, Uas::new(uas_config(Some(256))).expect("streams"));
    assert_eq!(session.commands.transport().depth(), 254);
    write_and_read_back(&mut session, 254);
}

#[test]
fn uas_at_high_speed_reads_what_it_wrote() {
    let mut session = uas(Speed::High, 32);
    write_and_read_back(&mut session, 4);
}

#[test]
fn bot_reads_what_it_wrote_at_every_speed() {
    for speed in [Speed::Full, Speed::High, Speed::Super] {
        let mut session = bot(speed);
        take_attention(&mut session);
        write_and_read_back(&mut session, 1);
    }
}

#[test]
fn a_descriptor_that_does_not_exist_is_a_stall_and_endpoint_0_goes_on() {
    let mut session = bot(Speed::Super);
    let unknown = wire::usb::SetupPacket::get_descriptor(wire::usb::DescriptorKind::String, 200, 4);
    assert_eq!(session.host.control(unknown).0, TransferStatus::Stall);
    write_and_read_back(&mut session, 1);
}

#[test]
fn an_aborted_command_ends_and_others_go_on() {
    let mut session = uas(Speed::Super, 32);
    take_attention(&mut session);
    for slot in 0..8 {
        let sent = command(&session, id(slot, 1), WRITE, u64::from(slot), 1);
        session.submit(&sent, &[7; BLOCK]);
    }
    // The first reach the rings; the driver has seen no event yet.
    for _ in 0..6 {
        session.carry_out_next();
    }
    session.commands.transport_mut().abort(session.host.now, id(0, 1));
    session.settle_until(|session| session.finished.len() == 8);
    let ids: BTreeSet<_> = session.finished.iter().map(|ended| ended.id.slot).collect();
    assert_eq!(ids.len(), 8, "each ends once");
    assert!(session.finished.iter().all(|ended| ended.id.slot == 0 || is_good(&ended.outcome)));
}

#[test]
fn a_drive_that_is_unplugged_in_mid_write_can_be_plugged_in_again() {
    let mut session = uas(Speed::Super, 32);
    take_attention(&mut session);
    for slot in 0..16 {
        let sent = command(&session, id(slot, 1), WRITE, u64::from(slot), 1);
        session.submit(&sent, &[9; BLOCK]);
    }
    for _ in 0..20 {
        session.carry_out_next();
    }
    session.host.run_controller();
    let drive = session.host.unplug();
    session.settle();
    session.commands.transport_mut().handle_disconnect(session.host.now);
    session.settle_until(|session| session.finished.len() == 16);
    let mut host = session.host;
    assert_eq!(host.driver.counters().command_timeouts, 0, "endpoints stop although the drive is gone");
    host.plug(drive);
    host.enumerate(Speed::Super, 32);
    host.configure(UAS);
    let granted = host.allocate_streams(32);
    let mut session = Session::new(host, Uas::new(uas_config(Some(granted))).expect("streams"));
    write_and_read_back(&mut session, 30);
}

#[test]
fn memory_that_does_not_exist_halts_the_controller() {
    let mut session = uas(Speed::Super, 32);
    session.host.controller.controller_mut().break_down();
    session.host.run_controller();
    let status = session.host.controller.read_register(session.host.now, 0x24);
    assert_eq!(status & 0b101, 0b101, "USBSTS: host system error, halted");
}

/// Checker of a run of random steps: each command ends once, as good unless it was aborted,
/// and a read returns what the last write there wrote.
struct Checker {
    /// The byte that fills a block.
    blocks: BTreeMap<u64, u8>,
    in_flight: BTreeMap<u16, (CommandId, u8, u64)>,
    aborted: BTreeSet<CommandId>,
    /// Aborts so far; each may lead to a reset.
    resets: u64,
    ended: u64,
}

impl Checker {
    fn take<T: Transport>(&mut self, session: &mut Session<T>) {
        for FinishedCommand { id, outcome, .. } in std::mem::take(&mut session.finished) {
            let (own, fill, lba) = self.in_flight.remove(&id.slot).expect("it was in flight");
            assert_eq!(own, id, "each command ends once");
            self.ended += 1;
            if self.aborted.remove(&id) && matches!(outcome, Outcome::Failed(Failure::Aborted)) {
                // Written or not: the next write decides.
                self.blocks.remove(&lba);
                continue;
            }
            if is_attention(&outcome) && self.resets > 0 {
                // Recovery from an abort may reset: the next command reports that, and does nothing.
                continue;
            }
            assert!(is_good(&outcome), "{id:?}: {outcome:?}");
            if fill != 0 {
                self.blocks.insert(lba, fill);
            } else if let Some(expected) = self.blocks.get(&lba) {
                assert!(
                    session.bytes(id, BLOCK).iter().all(|byte| byte == expected),
                    "block {lba} of {id:?}"
                );
            }
        }
    }
}

fn random_steps<T: Transport>(mut session: Session<T>, seed: u64, steps: u32) -> u64 {
    take_attention(&mut session);
    let mut random = Random(seed);
    let (depth, mut generation) = (session.commands.transport().depth() as u64, 1);
    let mut checker = Checker {
        blocks: BTreeMap::new(),
        in_flight: BTreeMap::new(),
        aborted: BTreeSet::new(),
        resets: 0,
        ended: 0,
    };
    for _ in 0..steps {
        // Interrupts are moderated: time has to pass between them.
        session.host.now = session.host.now + Duration::from_us(random.below(40));
        match random.below(16) {
            0..4 => {
                let slot = random.below(depth) as u16;
                // One command at a time for a block: their order is not defined.
                if let Entry::Vacant(vacant) = checker.in_flight.entry(slot) {
                    generation += 1;
                    let (id, lba) = (id(slot, generation), u64::from(slot));
                    let fill = if random.below(2) == 0 { 0 } else { 1 + random.below(255) as u8 };
                    let opcode = if fill == 0 { READ } else { WRITE };
                    let sent = command(&session, id, opcode, lba, 1);
                    session.submit(&sent, &[fill; BLOCK]);
                    vacant.insert((id, fill, lba));
                }
            }
            4..9 => drop(session.carry_out_next()),
            9..12 => session.host.run_controller(),
            12..15 => session.take_completions(),
            _ if random.below(8) == 0 => {
                if let Some((id, ..)) = checker.in_flight.values().next() {
                    checker.aborted.insert(*id);
                    checker.resets += 1;
                    session.commands.transport_mut().abort(session.host.now, *id);
                }
            }
            _ => session.settle(),
        }
        checker.take(&mut session);
    }
    let left = checker.in_flight.len();
    session.settle_until(|session| session.finished.len() == left);
    checker.take(&mut session);
    assert_eq!(session.host.memory.faults(), 0, "the driver stays within its memory");
    checker.ended
}

#[test]
fn each_command_ends_once_whatever_the_interleaving() {
    let seed = std::env::var("UASKIT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("UASKIT_SEED={seed}");
    let mut ended = 0;
    for run in 0..20 {
        ended += random_steps(uas(Speed::Super, 32), seed + run, 2500);
        ended += random_steps(uas(Speed::High, 32), seed + run, 1500);
        ended += random_steps(bot(Speed::Super), seed + run, 1000);
    }
    assert!(ended > 10_000, "{ended} commands of 100,000 steps");
}
