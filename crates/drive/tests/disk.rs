//! A disk on each transport against the whole device: identified, written, read, flushed, unmapped; and the device's own
//! descriptors probed.

mod drive;

use bus::Speed;
use device::Verdict;
use initiator::disk::{
    Disk, DiskConfig, Done, Error, Memory, Operation, Output, Request, RequestId, UnmapMethod,
};
use initiator::turbo::{LookAhead, Turbo, TurboConfig};
use initiator::{Timeouts, Transport};
use quirks::{Answers, Link, Matching, Names, Plan, probe};
use std::collections::HashMap;
use uaskit_drive::Drive;
use uaskit_drive::loopback::{Loopback, plug};
use uaskit_drive::medium::RamMedium;
use units::{BlockCount, BlockSize, ByteCount, Extent, Instant};
use wire::usb::{DescriptorKind, Direction, Recipient, RequestKind, SetupPacket, StandardRequest};

const READ: Operation = Operation::Read { fua: false, dpo: false, may_be_short: false };
const WRITE: Operation = Operation::Write { fua: true, dpo: false };

fn ram_drive(speed: Speed) -> Drive {
    let medium = RamMedium::new(ByteCount(1 << 20), BlockSize::B512).expect("1 MiB");
    drive::drive(speed, 16, Box::new(medium))
}

/// A disk, a transport and a drive, run one after another.
struct Host<T> {
    disk: Disk,
    ends: Loopback<T>,
    memory: HashMap<initiator::CommandId, (Memory, Option<initiator::DataPhase>)>,
    buffers: HashMap<RequestId, Vec<u8>>,
    finished: Vec<(RequestId, Result<Done, Error>)>,
}

impl<T: Transport> Host<T> {
    /// Joins the three and identifies the disk.
    fn new(transport: T, drive: Drive) -> Self {
        let depth = transport.depth() as u16;
        let config = DiskConfig { requests_max: 16, report_luns: true, ..DiskConfig::new(depth, 32 << 10) };
        let mut host = Self {
            disk: Disk::new(config),
            ends: Loopback::new(transport, drive),
            memory: HashMap::new(),
            buffers: HashMap::new(),
            finished: Vec::new(),
        };
        host.disk.start(Instant::ZERO);
        host.run();
        host
    }

    /// Carries everything out until nothing is left to happen.
    fn run(&mut self) {
        let now = Instant::ZERO;
        loop {
            while let Some(output) = self.disk.poll_output() {
                self.carry_out(output);
            }
            self.ends.run_once(now);
            let Some(finished) = self.ends.poll() else {
                assert_eq!(self.disk.commands_in_flight(), 0, "the drive answers what it was asked");
                return;
            };
            let (memory, phase) = self.memory.remove(&finished.id).expect("it was submitted");
            let mut answer = &[][..];
            let range = phase.map_or(0..0, |phase| phase.range.as_usize());
            match memory {
                Memory::Request(id) if phase.is_some_and(|phase| phase.direction == Direction::In) => {
                    let buffer = self.buffers.get_mut(&id).expect("the request is in flight");
                    buffer[range.clone()].copy_from_slice(&finished.buffer[range]);
                }
                Memory::Answer => answer = &finished.buffer,
                _ => {}
            }
            self.disk.handle_outcome(now, finished.id, &finished.outcome, answer);
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Submit(command, memory) => {
                let mut bytes = match memory {
                    Memory::Request(id) => self.buffers[&id].clone(),
                    Memory::Parameters => self.disk.parameters(command.id).to_vec(),
                    Memory::None | Memory::Answer => Vec::new(),
                };
                self.memory.insert(command.id, (memory, command.data_phase));
                self.ends.submit(Instant::ZERO, &command, &mut bytes).expect("the depth was kept");
            }
            Output::Finished(id, result) => self.finished.push((id, result)),
            Output::Identified(result) => assert_eq!(result, Ok(())),
            Output::Abort(_) | Output::Lost(_) => panic!("nothing is aborted or lost here: {output:?}"),
        }
    }

    fn submit(&mut self, id: u64, operation: Operation, extent: Extent, buffer: Vec<u8>) {
        let id = RequestId(id);
        self.buffers.insert(id, buffer);
        self.disk.submit(Instant::ZERO, Request { id, operation, extent }).expect("there is room");
    }

    /// One request, to its end; gives the buffer back.
    #[track_caller]
    fn ask(&mut self, operation: Operation, extent: Extent, buffer: Vec<u8>) -> Vec<u8> {
        self.submit(1, operation, extent, buffer);
        self.run();
        let (id, result) = self.finished.pop().expect("the request ends");
        assert!(result.is_ok(), "{result:?}");
        self.buffers.remove(&id).expect("its buffer is there")
    }

    /// Writes, flushes, reads in many pieces at once, unmaps, zeroes, fills.
    fn use_all(&mut self) {
        let bytes: Vec<u8> = (0..500 * 512u32).map(|at| (at / 11) as u8).collect();
        self.ask(WRITE, Extent::new(3, 500), bytes.clone());
        self.ask(Operation::Flush, Extent::default(), Vec::new());
        for id in 0..16 {
            self.submit(id, READ, Extent::new(3 + id * 31, 31), vec![0; 31 * 512]);
        }
        self.run();
        for (id, result) in std::mem::take(&mut self.finished) {
            assert_eq!(result, Ok(Done { moved: 31 * 512 }));
            let first = id.0 as usize * 31 * 512;
            assert!(self.buffers[&id] == bytes[first..first + 31 * 512]);
        }
        self.ask(Operation::Unmap, Extent::new(0, 100), Vec::new());
        self.ask(Operation::Zero { may_unmap: true }, Extent::new(100, 100), Vec::new());
        self.ask(Operation::WriteSame, Extent::new(200, 100), vec![0x5a; 512]);
        let read = self.ask(READ, Extent::new(0, 301), vec![1; 301 * 512]);
        assert!(read[..200 * 512].iter().all(|&byte| byte == 0));
        assert!(read[200 * 512..300 * 512].iter().all(|&byte| byte == 0x5a));
        assert!(read[300 * 512..] == bytes[297 * 512..298 * 512]);
        assert_eq!(self.disk.in_flight(), 0);
        assert_eq!(self.disk.counts().transport_failures, 0);
    }
}

#[test]
fn identify_reports_the_configured_drive() {
    let mut drive = ram_drive(Speed::Super);
    let uas = plug::uas(&mut drive, None, Timeouts::default()).expect("the drive has UAS");
    let host = Host::new(uas, drive);
    let found = host.disk.geometry().expect("identification succeeds");
    assert_eq!((found.capacity, found.block_size), (BlockCount(2048), BlockSize::B512));
    assert_eq!(found.identity.to_string(), "uaskit Virtual Drive 1");
    assert_eq!(found.identity.serial.as_deref(), Some("0123456789AB"));
    assert_eq!(found.identity.name.as_deref(), Some("NAA 3000000000000001"));
    assert_eq!(found.unmap, Some(UnmapMethod::Unmap));
    assert!(found.fua && !found.write_protected);
    assert_eq!((host.disk.luns().len(), found.doubts.as_slice()), (1, &[][..]));
    assert_eq!(host.disk.counts().attentions, 1, "power on");
}

#[test]
fn a_disk_over_uas_finds_what_it_wrote() {
    for speed in [Speed::Super, Speed::High, Speed::Full] {
        let mut drive = ram_drive(speed);
        let uas = plug::uas(&mut drive, None, Timeouts::default()).expect("the drive has UAS");
        Host::new(uas, drive).use_all();
    }
}

#[test]
fn a_disk_over_bot_finds_what_it_wrote() {
    for speed in [Speed::Super, Speed::High] {
        let mut drive = ram_drive(speed);
        let bot = plug::bot(&mut drive, Timeouts::default()).expect("the drive has BOT");
        Host::new(bot, drive).use_all();
    }
}

#[test]
fn a_disk_over_turbo_finds_what_it_wrote() {
    let mut drive = ram_drive(Speed::Super);
    let bot = plug::bot_config(&mut drive, Timeouts::default()).expect("the drive has BOT");
    let turbo = Turbo::new(TurboConfig { look_ahead: LookAhead::Never, ..TurboConfig::new(bot) });
    Host::new(turbo, drive).use_all();
}

fn descriptor(drive: &mut Drive, kind: DescriptorKind) -> Vec<u8> {
    let setup = SetupPacket {
        direction: Direction::In,
        kind: RequestKind::Standard,
        recipient: Recipient::Device,
        request: StandardRequest::GetDescriptor.into(),
        value: u16::from(u8::from(kind)) << 8,
        index: 0,
        length: 1024,
    };
    match drive.control(setup, &[]) {
        Verdict::Data(bytes) => bytes.to_vec(),
        other => panic!("{kind}: {other:?}"),
    }
}

#[test]
fn a_probe_finds_the_transport_that_the_drive_was_made_with() {
    for speed in [Speed::Super, Speed::High, Speed::Full] {
        let mut drive = ram_drive(speed);
        let [device, configuration, bos] =
            [DescriptorKind::Device, DescriptorKind::Configuration, DescriptorKind::Bos]
                .map(|kind| descriptor(&mut drive, kind));
        let answers = Answers {
            device: &device,
            configuration: &configuration,
            bos: Some(&bos),
            names: Names::default(),
        };
        let found = probe(&answers, Link { speed, streams_max: 256 }).expect("descriptors");
        assert!(found.configuration.faults.is_empty() && found.link.met);
        assert_eq!(found.interfaces[0].linux.decisive(), None);
        let uas = plug::uas(&mut drive, None, Timeouts::default()).expect("the drive has UAS");
        let Some(Plan::Uas(plan)) = found.best() else { panic!("{:?}", found.best()) };
        let expected = if speed == Speed::Super { "16 streams" } else { "READY IUs" };
        assert_eq!((plan.place.alternate, plan.matching.to_string().as_str()), (1, expected));
        assert_eq!(plan.matching != Matching::Ready, uas.has_streams());
        let ends = [plan.command, plan.status, plan.data_in, plan.data_out].map(|end| end.address);
        use device::device::{COMMAND, DATA_IN, DATA_OUT, STATUS};
        assert_eq!(ends, [COMMAND, STATUS, DATA_IN, DATA_OUT]);
        assert!(found.bot().is_some());
    }
}
