//! Debian's newer kernels: one boot of each in every run; with `--include-ignored`, every kernel with every speed,
//! transport and file system.
//!
//! A suite that cannot be reached makes its tests ignored, with the reason, never passed.

use std::{process::ExitCode, time::Duration};

use libtest_mimic::{Arguments, Trial};
use uaskit_interop::{
    Error, Result,
    debian::{self, Suite},
    drive::{self, Drive, Ours},
    guest::{Disk, Guest},
    qemu::{Bus, Machine, Vm},
    scratch::Scratch,
    tools::{
        texts,
        uaskit::{MET, ask, assert_verified, refused, verdict},
    },
    trial,
};

/// A drive, and what the kernel and `uaskit why` make of it.
#[derive(Clone, Copy)]
struct Case {
    ours: Ours,
    driver: &'static str,
    queue_depth: u32,
    speed_mbps: u32,
    verdict: [&'static str; 3],
}

const fn on_uas(ours: Ours, speed_mbps: u32) -> Case {
    Case { ours, driver: "uas", queue_depth: 30, speed_mbps, verdict: MET }
}

const fn on_bot(ours: Ours, speed_mbps: u32) -> Case {
    Case { ours, driver: "usb-storage", queue_depth: 1, speed_mbps, verdict: refused("alternate-setting") }
}

const CASES: &[Case] = &[
    on_uas(("super", Bus::Xhci, &[]), 5000),
    on_uas(("high-ehci", Bus::Ehci, &["--speed", "high"]), 480),
    on_bot(("super-bot", Bus::Xhci, &["--transport", "bot"]), 5000),
    on_uas(("high", Bus::Xhci, &["--speed", "high"]), 480),
    on_bot(("high-bot", Bus::Ehci, &["--speed", "high", "--transport", "bot"]), 480),
    on_bot(("full-bot", Bus::Xhci, &["--speed", "full", "--transport", "bot"]), 12),
];

/// Those of the boot in every run: streams, UAS without them, BOT, and UAS that the user's quirk forbids.
const DAILY: &[Case] = &[
    CASES[0],
    CASES[1],
    CASES[2],
    Case {
        verdict: refused("not-ignored"),
        ..on_bot(("quirk", Bus::Xhci, &["--usb-id", "1209:0003"]), 5000)
    },
];

const QUIRK: &str = "usb_storage.quirks=1209:0003:u";

/// A file system: how it is made, and how it is checked.
struct FileSystem {
    name: &'static str,
    make: &'static str,
    check: &'static str,
}

const EXT4: FileSystem = FileSystem {
    name: "ext4",
    make: "mkfs.ext4 -q -E nodiscard,lazy_itable_init=0,lazy_journal_init=0",
    check: "e2fsck -fn",
};

const FILE_SYSTEMS: &[FileSystem] = &[
    EXT4,
    FileSystem { name: "xfs", make: "mkfs.xfs -q -f -K", check: "xfs_repair -n" },
    FileSystem { name: "btrfs", make: "mkfs.btrfs -q -f --nodiscard", check: "btrfs check" },
    FileSystem { name: "vfat", make: "mkfs.vfat", check: "fsck.vfat -n" },
];

/// Their programs, which the guest does not have by itself.
const PROGRAMS: &[&str] = &["mkfs.xfs", "xfs_repair", "mkfs.btrfs", "btrfs", "mkfs.vfat", "fsck.vfat"];

/// The least size of some file systems is above 300 MiB.
const IMAGE_BYTES: u64 = 512 << 20;

const PLUG_LIMIT: Duration = Duration::from_secs(60);
const RUN_LIMIT: Duration = Duration::from_secs(180);

fn main() -> ExitCode {
    let newer = [(Suite::Trixie, (6, 12)), (Suite::TrixieBackports, (7, 3))];
    let daily =
        newer.map(|(suite, least)| trial(suite.to_string(), false, move || check_daily(suite, least)));
    let mut trials: Vec<Trial> = daily.into();
    for suite in [Suite::Installed, Suite::Trixie, Suite::TrixieBackports] {
        for case in CASES {
            let name = format!("matrix::{suite}::{}", case.ours.0);
            trials.push(trial(name, true, move || check_all_file_systems(suite, case)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A guest with drives of ours.
struct Bench {
    vm: Vm,
    drives: Vec<Drive>,
    _images: Scratch,
}

/// The serial number of a drive; its server's log and its connection have it as their name.
fn serial(suite: Suite, name: &str) -> String {
    format!("{suite}-{name}")
}

/// Boots the suite's newest kernel with these drives, and puts `uaskit` in.
fn boot(suite: Suite, ours: &[Ours]) -> Result<Bench> {
    let images = Scratch::new()?;
    let mut machine = Machine::new(&format!("newer-{suite}-{}", ours[0].0)).kernel(suite).kernel_words(QUIRK);
    let mut drives = Vec::new();
    for (name, bus, arguments) in ours {
        let image = images.image(name, IMAGE_BYTES)?.display().to_string();
        let drive = Drive::serve(&serial(suite, name), &[&[image.as_str()], *arguments].concat())?;
        let mut redirect = drive.plug();
        redirect.bus = *bus;
        machine = machine.redirect(&redirect);
        drives.push(drive);
    }
    let mut vm = machine.boot()?;
    vm.guest.await_disks(ours.len(), PLUG_LIMIT)?;
    vm.guest.install(&drive::binary()?)?;
    Ok(Bench { vm, drives, _images: images })
}

/// The boot in every run, of a kernel that is at least so new.
fn check_daily(suite: Suite, least: (u32, u32)) -> Result<()> {
    let mut ours: Vec<Ours> = DAILY.iter().map(|case| case.ours).collect();
    ours.push(("dying", Bus::Xhci, &["--usb-id", "1209:0004", "--fault", "lose-status@100"]));
    let mut bench = boot(suite, &ours)?;
    let guest = &mut bench.vm.guest;
    let release = guest.stdout_of("uname -r")?;
    assert!(version(&release) >= Some(least), "the newest kernel of {suite} is {release}");
    let log = guest.dmesg()?;
    let is_expected =
        |line: &&str| line.contains("UAS is ignored for this device, using usb-storage instead");
    assert!(log.complaints().iter().all(is_expected), "{log}");
    for case in DAILY {
        check_case(guest, suite, case, &[EXT4])?;
    }
    let dying = guest.await_disk(&serial(suite, "dying"), PLUG_LIMIT)?;
    guest.read_impatiently(&dying)?;
    assert!(guest.dmesg()?.contains(&format!("usb {}: reset SuperSpeed", dying.port)), "{}", guest.dmesg()?);
    texts::assert_same_verdicts(guest)?;
    if let Some(drive) = bench.drives.last_mut() {
        drive.kill();
    }
    guest.await_disks(DAILY.len(), PLUG_LIMIT)?;
    texts::assert_same_verdicts(guest)
}

/// Major and minor number of a release such as `7.3.4+deb13-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split('.').map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// A cell of the matrix: one drive with every file system.
fn check_all_file_systems(suite: Suite, case: &Case) -> Result<()> {
    debian::ensure_file_systems()?;
    let mut bench = boot(suite, &[case.ours])?;
    for program in PROGRAMS {
        let path = debian::find(program).ok_or_else(|| Error::unexpected("find", *program))?;
        bench.vm.guest.install(&path)?;
    }
    check_case(&mut bench.vm.guest, suite, case, FILE_SYSTEMS)
}

/// Checks what the kernel and `uaskit` make of a drive, and that it holds files.
fn check_case(guest: &mut Guest, suite: Suite, case: &Case, file_systems: &[FileSystem]) -> Result<()> {
    let serial = serial(suite, case.ours.0);
    let disk = guest.await_disk(&serial, PLUG_LIMIT)?;
    let settled = (disk.driver.as_str(), disk.queue_depth, disk.speed_mbps, disk.bytes);
    assert_eq!(settled, (case.driver, case.queue_depth, case.speed_mbps, IMAGE_BYTES), "{serial}");
    assert_eq!(verdict(guest, &serial)?, case.verdict, "{serial}");
    let before = guest.dmesg()?;
    for file_system in file_systems {
        holds_files(guest, &disk, file_system)?;
    }
    let log = guest.dmesg()?;
    assert_eq!(log.complaints(), before.complaints(), "{serial}: {log}");
    is_measured(guest, &disk, case)
}

fn holds_files(guest: &mut Guest, disk: &Disk, FileSystem { name, make, check }: &FileSystem) -> Result<()> {
    let path = disk.path();
    guest
        .stdout_within(
            RUN_LIMIT,
            &format!(
                "set -e; {make} {path} > /dev/null; mount -t {name} {path} /mnt
        for n in 1 2; do dd if=/dev/urandom of=/mnt/$n bs=1M count=4; done
        cd /mnt; sha256sum 1 2 > /tmp/sums; cd /; umount /mnt; echo 3 > /proc/sys/vm/drop_caches
        mount -t {name} {path} /mnt; cd /mnt; sha256sum -c /tmp/sums; cd /; umount /mnt; {check} {path}"
            ),
        )
        .map(drop)
}

/// Our own driver measures the drive through usbfs, and the kernel's has it again afterwards.
fn is_measured(guest: &mut Guest, disk: &Disk, case: &Case) -> Result<()> {
    let transport = case.verdict[0];
    let words = format!(
        "bench {0} --transport {transport} --rw randrw --bs 8k --depth 8 --size 8M --seconds 0.5 --rounds 1 --verify --yes --write={0}",
        disk.port
    );
    assert_verified(&ask(guest, &words)?, &[transport]);
    let after = guest.await_disk(&disk.serial, PLUG_LIMIT)?;
    assert_eq!((&after.driver, after.queue_depth), (&disk.driver, disk.queue_depth));
    Ok(())
}
