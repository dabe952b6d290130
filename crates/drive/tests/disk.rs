//! A disk on each transport against the whole device: identified, written, read, flushed, unmapped; and the device's own
//! descriptors probed.

use bus::Speed;
use device::Verdict;
use initiator::disk::{Operation, UnmapMethod};
use initiator::session::{FinishedRequest, Session};
use initiator::turbo::{LookAhead, Turbo, TurboConfig};
use initiator::{Timeouts, Transport};
use quirks::{Answers, Link, Matching, Names, Plan, probe};
use testkit::disk::{identified, run};
use testkit::drive::ram_drive;
use uaskit_drive::Drive;
use uaskit_drive::loopback::{LoopbackBus, plug};
use units::{BlockCount, BlockSize, Extent, Instant};
use wire::usb::{DescriptorKind, Direction, Recipient, RequestKind, SetupPacket, StandardRequest};

const NOW: Instant = Instant::ZERO;
const READ: Operation = Operation::Read { fua: false, dpo: false, may_be_short: false };
const WRITE: Operation = Operation::Write { fua: true, dpo: false };

/// A disk, a transport and a drive.
struct Host<T> {
    session: Session<LoopbackBus, T>,
}

impl<T: Transport> Host<T> {
    /// Joins the three and identifies the disk.
    fn new(transport: T, drive: Drive) -> Self {
        Self { session: identified(transport, drive, 16, 512 * 512) }
    }

    /// Carries everything out until nothing is left to happen.
    fn run(&mut self) {
        run(&mut self.session);
    }

    fn submit(&mut self, slot: u16, operation: Operation, extent: Extent, bytes: &[u8]) {
        self.session.buffer(slot).expect("the slot is free")[..bytes.len()].copy_from_slice(bytes);
        self.session.submit(NOW, slot, operation, extent).expect("there is room");
    }

    /// The result of the next request that ended, and the first bytes of its buffer.
    #[track_caller]
    fn next(&mut self, bytes: usize) -> (u16, &[u8]) {
        let FinishedRequest { slot, result } = self.session.poll().expect("the request ends");
        assert!(result.is_ok(), "{result:?}");
        (slot, &self.session.buffer(slot).expect("the slot is free again")[..bytes])
    }

    /// One request, to its end; returns its buffer.
    #[track_caller]
    fn ask(&mut self, operation: Operation, extent: Extent, bytes: &[u8]) -> &[u8] {
        self.submit(1, operation, extent, bytes);
        self.run();
        self.next(extent.blocks.0 as usize * 512).1
    }

    /// Writes, flushes, reads in many pieces at once, unmaps, zeroes, fills.
    fn use_all(&mut self) {
        let bytes: Vec<u8> = (0..500 * 512u32).map(|at| (at / 11) as u8).collect();
        self.ask(WRITE, Extent::new(3, 500), &bytes);
        self.ask(Operation::Flush, Extent::default(), &[]);
        for slot in 0..16 {
            self.submit(slot, READ, Extent::new(3 + u64::from(slot) * 31, 31), &[0; 31 * 512]);
        }
        self.run();
        for _ in 0..16 {
            let (slot, read) = self.next(31 * 512);
            let first = usize::from(slot) * 31 * 512;
            assert!(*read == bytes[first..first + 31 * 512]);
        }
        self.ask(Operation::Unmap, Extent::new(0, 100), &[]);
        self.ask(Operation::Zero { may_unmap: true }, Extent::new(100, 100), &[]);
        self.ask(Operation::WriteSame, Extent::new(200, 100), &[0x5a; 512]);
        let read = self.ask(READ, Extent::new(0, 301), &[1; 301 * 512]);
        assert!(read[..200 * 512].iter().all(|&byte| byte == 0));
        assert!(read[200 * 512..300 * 512].iter().all(|&byte| byte == 0x5a));
        assert!(read[300 * 512..] == bytes[297 * 512..298 * 512]);
        assert!(self.session.is_at_rest() && self.session.disk().in_flight() == 0);
        assert_eq!(self.session.disk().counts().transport_failures, 0);
    }
}

#[test]
fn identify_reports_the_configured_drive() {
    let mut drive = ram_drive(Speed::Super, 16);
    let uas = plug::uas(&mut drive, None, Timeouts::default()).expect("the drive has UAS");
    let host = Host::new(uas, drive);
    let found = host.session.disk().geometry().expect("identification succeeds");
    assert_eq!((found.capacity, found.block_size), (BlockCount(2048), BlockSize::B512));
    assert_eq!(found.identity.to_string(), "uaskit Virtual Drive 1");
    assert_eq!(found.identity.serial.as_deref(), Some("0123456789AB"));
    assert_eq!(found.identity.name.as_deref(), Some("NAA 3000000000000001"));
    assert_eq!(found.unmap, Some(UnmapMethod::Unmap));
    assert!(found.fua && !found.write_protected);
    assert_eq!((host.session.disk().luns().len(), found.doubts.as_slice()), (1, &[][..]));
    assert_eq!(host.session.disk().counts().attentions, 1, "power on");
}

#[test]
fn a_disk_over_uas_finds_what_it_wrote() {
    for speed in [Speed::Super, Speed::High, Speed::Full] {
        let mut drive = ram_drive(speed, 16);
        let uas = plug::uas(&mut drive, None, Timeouts::default()).expect("the drive has UAS");
        Host::new(uas, drive).use_all();
    }
}

#[test]
fn a_disk_over_bot_finds_what_it_wrote() {
    for speed in [Speed::Super, Speed::High] {
        let mut drive = ram_drive(speed, 16);
        let bot = plug::bot(&mut drive, Timeouts::default()).expect("the drive has BOT");
        Host::new(bot, drive).use_all();
    }
}

#[test]
fn a_disk_over_turbo_finds_what_it_wrote() {
    let mut drive = ram_drive(Speed::Super, 16);
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
        let mut drive = ram_drive(speed, 16);
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
