//! The drive in a guest, against QEMU's own UAS drive and against a drive that does nothing.
//!
//! One virtual machine in software emulation has all three, and its fio alternates between them, a third of a second each,
//! another first each time. Images are in memory. Small commands are held against `usb-uas` with `scsi-hd`; large ones against the
//! [`responder`], because QEMU reads a socket 4 KiB at a time, and what that costs is not ours to mend.

use super::arguments::DriveArguments;
use super::figure::Figure;
use super::responder;
use anyhow::{Context, Result, ensure};
use std::time::Duration;
use uaskit_interop::debian;
use uaskit_interop::drive::Drive;
use uaskit_interop::guest::Guest;
use uaskit_interop::qemu::{Machine, Redirect};
use uaskit_interop::scratch::Scratch;
use uaskit_interop::tools::fio::{Load, Pattern};

/// Bytes of each image.
const IMAGE_BYTES: u64 = 256 << 20;
/// Names of our drives, and so their serial numbers.
const DRIVE: &str = "bench-drive";
const NOTHING: &str = "bench-nothing";

/// A load, and the bars of the drive.
struct Workload {
    pattern: Pattern,
    block_bytes: u32,
    depth: u32,
    /// Against QEMU's own drive; 0 where it is printed and not judged.
    qemu_bar: f64,
    /// Against a drive that does nothing.
    nothing_bar: f64,
}

/// How quick a processor is changes from one second to the next where other machines work on the same hardware, and twofold what
/// mostly copies. Drives whose turns are short meet the same. So a round has parts, in each of which all have their turn, and a turn has
/// a share of the time that was asked for.
const PARTS: u32 = 6;
const TURNS_OF_THE_TIME: u128 = 3;
/// The shortest turn.
const TURN_LEAST: Duration = Duration::from_millis(100);

const WORKLOADS: [Workload; 8] = [
    small(Pattern::RandomRead, 1, 0.8),
    small(Pattern::RandomRead, 14, 1.0),
    small(Pattern::RandomRead, 30, 1.0),
    small(Pattern::RandomWrite, 1, 0.8),
    small(Pattern::RandomWrite, 14, 1.0),
    small(Pattern::RandomWrite, 30, 1.0),
    large(Pattern::Read),
    large(Pattern::Write),
];

const fn small(pattern: Pattern, depth: u32, qemu_bar: f64) -> Workload {
    Workload { pattern, block_bytes: 4 << 10, depth, qemu_bar, nothing_bar: 0.0 }
}

const fn large(pattern: Pattern) -> Workload {
    Workload { pattern, block_bytes: 512 << 10, depth: 4, qemu_bar: 0.0, nothing_bar: 0.95 }
}

/// Figures of the drive, by the drive that it is compared with.
#[derive(Debug, serde::Serialize)]
pub(super) struct GuestFigures {
    /// Of QEMU's own drive.
    pub(super) qemu: Vec<Figure>,
    /// Of a drive that does nothing.
    pub(super) nothing: Vec<Figure>,
}

/// How many turns each has at a load, and how long one is.
pub(super) fn turns(arguments: &DriveArguments) -> (u32, Duration) {
    // fio takes milliseconds.
    let turn = Duration::from_millis((arguments.seconds.as_millis() / TURNS_OF_THE_TIME) as u64);
    let turn = turn.max(TURN_LEAST);
    (arguments.rounds.saturating_mul(PARTS), turn)
}

/// Boots the machine and measures.
pub(super) fn measure(arguments: &DriveArguments) -> Result<GuestFigures> {
    debian::ensure().context("the guest needs QEMU and a few tools")?;
    let place = Scratch::new()?;
    let [theirs, ours] = [place.image("theirs", IMAGE_BYTES)?, place.image("ours", IMAGE_BYTES)?];
    let size = IMAGE_BYTES.to_string();
    let drive = Drive::serve(DRIVE, &[&*ours.to_string_lossy()])?;
    let behind = Drive::serve(NOTHING, &["--ram", &size])?;
    let nothing = Redirect::new("nothing", &place.path("nothing"));
    responder::start(&nothing.socket, behind.socket())?;
    let machine = Machine::new("bench").uas_disk("theirs", &theirs);
    let mut vm = machine.redirect(&drive.plug()).redirect(&nothing).boot()?;
    let rivals = Rivals::find(&mut vm.guest)?;
    vm.guest.forget_log()?;

    let mut figures = GuestFigures { qemu: Vec::new(), nothing: Vec::new() };
    for workload in &WORKLOADS {
        let (qemu, nothing) = rivals.compare(&mut vm.guest, workload, arguments)?;
        figures.qemu.push(qemu);
        figures.nothing.push(nothing);
    }
    let log = vm.guest.dmesg()?;
    let complaints = log.complaints();
    ensure!(complaints.is_empty(), "the guest's kernel complains:\n{}", complaints.join("\n"));
    Ok(figures)
}

/// The block devices of the guest: QEMU's drive, the one that does nothing, ours.
struct Rivals([String; 3]);

impl Rivals {
    /// Finds each by its serial number, and writes all of it, so that no block is a hole.
    fn find(guest: &mut Guest) -> Result<Self> {
        const PLUG_LIMIT: Duration = Duration::from_secs(60);
        let disks = guest.await_disks(3, PLUG_LIMIT)?;
        let mut rivals = [String::new(), String::new(), String::new()];
        for disk in &disks {
            ensure!(disk.driver == "uas", "{} is driven by {}", disk.path(), disk.driver);
            let place = match disk.serial.as_str() {
                DRIVE => 2,
                NOTHING => 1,
                _ => 0,
            };
            rivals[place] = disk.path();
            let fill = Load::new(&disk.path(), Pattern::Write).block_bytes(512 << 10).depth(4);
            fill.bytes(IMAGE_BYTES).run(guest)?;
        }
        ensure!(rivals.iter().all(|path| !path.is_empty()), "not all drives are there: {disks:?}");
        Ok(Self(rivals))
    }

    /// The drive against QEMU's, and against the one that does nothing.
    fn compare(
        &self,
        guest: &mut Guest,
        workload: &Workload,
        arguments: &DriveArguments,
    ) -> Result<(Figure, Figure)> {
        let what = workload.describe();
        let mut qemu = Figure::new(what.clone(), workload.qemu_bar);
        let mut nothing = Figure::new(what, workload.nothing_bar);
        let (_, turn) = turns(arguments);
        // Another is first in each part.
        let orders: [[usize; 3]; PARTS as usize] =
            std::array::from_fn(|part| [0, 1, 2].map(|place| (part + place) % self.0.len()));
        let rivals = orders.as_flattened().iter();
        let loads: Vec<_> = rivals.map(|rival| workload.load(&self.0[*rival]).time(turn)).collect();
        for _ in 0..arguments.rounds {
            let reports = Load::run_in_turn(&loads, guest)?;
            for (order, reports) in orders.iter().zip(reports.as_chunks::<3>().0) {
                let mut rates = [0.0; 3];
                for (rival, report) in order.iter().zip(reports) {
                    rates[*rival] = report.read.iops + report.write.iops;
                }
                let [qemu_rate, nothing_rate, drive_rate] = rates;
                qemu.push(qemu_rate, drive_rate);
                nothing.push(nothing_rate, drive_rate);
            }
        }
        Ok((qemu, nothing))
    }
}

impl Workload {
    fn load(&self, device: &str) -> Load {
        Load::new(device, self.pattern).block_bytes(self.block_bytes).depth(self.depth)
    }

    fn describe(&self) -> String {
        let pattern = match self.pattern {
            Pattern::Read => "sequential read",
            Pattern::Write => "sequential write",
            Pattern::RandomRead => "random read",
            Pattern::RandomWrite => "random write",
            Pattern::RandomMixed => "random mixed",
        };
        format!("{}K {pattern}, depth {}", self.block_bytes >> 10, self.depth)
    }
}
