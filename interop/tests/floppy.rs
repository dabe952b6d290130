//! A floppy drive over CBI: Linux binds `usb-storage`, reads, writes, formats and mounts its disks; OVMF boots from it.
//!
//! Both protocols are used: 00h with interrupts, 01h without. SeaBIOS has drivers of BOT and UAS alone, and boots another disk
//! beside a floppy drive.

use std::{
    fs,
    process::{Command, ExitCode, Output},
    thread,
    time::{Duration, Instant},
};

use libtest_mimic::{Arguments, Trial};
use uaskit_interop::{
    Error, Result, boot_image,
    debian::{self, Suite},
    drive::{self, Drive},
    guest::{Disk, Guest},
    qemu::{Firmware, Machine, Vm},
    scratch::Scratch,
    tools::capture,
    trial,
};

const PLUG_LIMIT: Duration = Duration::from_secs(60);
const BOOT_LIMIT: Duration = Duration::from_secs(60);
const RESIDENT_BYTES_MAX: u64 = 32 << 20;

const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_console",
    "sd_mod",
    "sg",
    "vfat",
    "nls_cp437",
    "nls_ascii",
    "usb-storage",
    "usbmon",
    "xhci-pci",
];

const BYTES_1440: u64 = 1_474_560;
const BYTES_1250: u64 = 1_261_568;
const BYTES_720: u64 = 737_280;

fn main() -> ExitCode {
    let trials: Vec<Trial> = vec![
        trial("linux_uses_a_floppy_drive_with_interrupts".into(), false, || use_drive("cbi")),
        trial("linux_uses_a_floppy_drive_without_interrupts".into(), false, || use_drive("cb")),
        trial("seabios_boots_past_a_floppy_drive".into(), false, boot_past_it),
        trial("ovmf_boots_a_floppy_with_interrupts".into(), false, || boot_it("cbi")),
        trial("ovmf_boots_a_floppy_without_interrupts".into(), false, || boot_it("cb")),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn uaskit(control: &str, words: &[&str]) -> Result<Output> {
    let mut command = Command::new(drive::binary()?);
    command.args(["control", control]).args(words).output().map_err(Error::io("run uaskit control"))
}

#[track_caller]
fn succeeds(control: &str, words: &[&str]) -> Result<()> {
    let report = uaskit(control, words)?;
    assert_eq!(report.status.code(), Some(0), "{}", String::from_utf8_lossy(&report.stderr));
    Ok(())
}

/// Bytes that differ everywhere.
fn pattern(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at ^ (at / 509) ^ (at / 131_071)) as u8).collect()
}

fn use_drive(transport: &str) -> Result<()> {
    let place = Scratch::new()?;
    let first = place.path("first.img");
    fs::write(&first, pattern(BYTES_1440)).map_err(Error::io("write an image"))?;
    let second = place.image("second.img", BYTES_720)?;
    let third = place.path("third.img");
    fs::write(&third, pattern(BYTES_1250)).map_err(Error::io("write an image"))?;
    let [first_name, second_name, third_name] =
        [&first, &second, &third].map(|path| path.display().to_string());
    let control = format!("unix:{}", place.path("control").display());
    let floppy = ["--floppy", "--transport", transport];
    let served =
        Drive::serve("flop", &[&[first_name.as_str(), "--control", &control], &floppy[..]].concat())?;
    let read_only = Drive::serve("flopro", &[&[third_name.as_str(), "--read-only"], &floppy[..]].concat())?;
    let machine = Machine::new(&format!("floppy-{transport}"))
        .kernel(Suite::Installed)
        .modules(MODULES)
        .redirect(&served.plug())
        .redirect(&read_only.plug());
    let mut vm: Vm = machine.boot()?;
    let guest = &mut vm.guest;
    let disk = guest.await_unit("flop", 0, PLUG_LIMIT)?;
    assert_eq!((disk.bytes, disk.driver.as_str()), (BYTES_1440, "usb-storage"));
    let protocol = if transport == "cbi" { "00" } else { "01" };
    let triple = guest.stdout_of(&format!(
        "interface=$(readlink -f /sys/block/{}/device); interface=${{interface%%/host[0-9]*}}; cd $interface
        echo $(cat bInterfaceClass bInterfaceSubClass bInterfaceProtocol)",
        disk.path().trim_start_matches("/dev/"),
    ))?;
    assert_eq!(triple.trim(), format!("08 04 {protocol}"));
    assert_data(guest, &disk, &first)?;
    assert_decoded(guest, &disk, transport)?;
    make_file_system(guest, &disk)?;
    change_disks(guest, &disk, &control, &second_name)?;
    assert_protected(guest, &third)?;
    for drive in [&served, &read_only] {
        let resident = drive.most_resident_bytes()?;
        assert!(resident <= RESIDENT_BYTES_MAX, "{} KiB", resident >> 10);
    }
    let log = guest.dmesg()?;
    assert!(!log.contains("reset full-speed"), "{log}");
    Ok(())
}

/// Reads the whole disk, writes a part of it, and looks at the image.
fn assert_data(guest: &mut Guest, disk: &Disk, image: &std::path::Path) -> Result<()> {
    let path = disk.path();
    let sum = guest.stdout_of(&format!("dd if={path} bs=64k iflag=direct 2>/dev/null | sha256sum"))?;
    let host = Command::new("sha256sum").arg(image).output().map_err(Error::io("run sha256sum"))?;
    assert_eq!(
        sum.split_whitespace().next(),
        String::from_utf8_lossy(&host.stdout).split_whitespace().next()
    );
    guest
        .stdout_of(&format!("dd if=/dev/zero of={path} bs=512 seek=100 count=300 oflag=direct conv=fsync"))?;
    let bytes = fs::read(image).map_err(Error::io("read an image"))?;
    assert!(bytes[100 * 512..400 * 512].iter().all(|byte| *byte == 0));
    assert_eq!(bytes[..100 * 512], pattern(BYTES_1440)[..100 * 512]);
    assert_eq!(bytes[400 * 512..], pattern(BYTES_1440)[400 * 512..]);
    Ok(())
}

/// `uaskit decode` finds the commands, status blocks and bytes that tshark finds, in a capture without descriptors.
fn assert_decoded(guest: &mut Guest, disk: &Disk, transport: &str) -> Result<()> {
    /// URBs are submitted (S) and completed (C).
    const BLOCKS: &str = "usb.bmRequestType == 0x21 && usb.setup.bRequest == 0 && usb.urb_type == 'S'";
    const STATUS: &str = "usb.transfer_type == 0x01 && usb.urb_type == 'C' && usb.urb_len == 2";
    const DATA: &str = "usb.transfer_type == 0x03 && usb.urb_type == 'C'";
    let path = disk.path();
    let running = capture::start(guest, 0)?;
    guest.stdout_of(&format!(
        "dd if=/dev/zero of={path} bs=16k seek=20 count=4 oflag=direct conv=fsync
        dd if={path} of=/dev/null bs=16k count=9 iflag=direct"
    ))?;
    let capture = running.stop(guest)?;
    let decoded = capture.decoded()?;
    let blocks = capture.count(BLOCKS)?;
    assert!(blocks >= 13, "{blocks}");
    assert_eq!(decoded.commands(|one| one["transport"] == "CBI" && one["tag"].is_null()), blocks);
    assert_eq!(decoded.commands(|one| one["opcode"] == 0x2a && one["bytes"] == 16384), 4);
    assert_eq!(decoded.commands(|one| one["opcode"] == 0x28 && one["bytes"] == 16384), 9);
    assert_eq!(decoded.bytes(), capture.sum(DATA, "usb.urb_len")?);
    let statuses = capture.count(STATUS)?;
    assert_eq!(statuses > 0, transport == "cbi");
    assert_eq!(decoded.commands(|one| one["outcome"] == "good" && !one["status"].is_null()), statuses);
    assert_eq!(decoded.faults(), [""; 0]);
    Ok(())
}

/// Makes a FAT, mounts it, and finds its file again.
fn make_file_system(guest: &mut Guest, disk: &Disk) -> Result<()> {
    let program = debian::find("mkfs.vfat").ok_or_else(|| Error::unexpected("find", "mkfs.vfat"))?;
    guest.install(&program)?;
    let path = disk.path();
    let script = format!(
        "set -e; mkfs.vfat -I {path} >/dev/null; mkdir -p /mnt; mount -t vfat {path} /mnt
        head -c 300000 /dev/urandom > /mnt/file; sha256sum < /mnt/file > /tmp/sum; umount /mnt
        echo 3 > /proc/sys/vm/drop_caches; mount -t vfat {path} /mnt; sha256sum < /mnt/file | cmp - /tmp/sum
        umount /mnt"
    );
    guest.stdout_of(&script)?;
    Ok(())
}

/// The owner takes the disk out, and puts in another of 720 KB.
fn change_disks(guest: &mut Guest, disk: &Disk, control: &str, second: &str) -> Result<()> {
    let path = disk.path();
    succeeds(control, &["eject"])?;
    assert_ne!(guest.run(&format!("dd if={path} bs=512 count=1 of=/dev/null"))?.status, 0);
    let refused = uaskit(control, &["insert", "/etc/hostname"])?;
    assert_eq!(refused.status.code(), Some(1));
    succeeds(control, &["insert", second])?;
    let deadline = Instant::now() + PLUG_LIMIT;
    while guest.stdout_of(&format!("blockdev --getsize64 {path} 2>/dev/null || true"))?.trim()
        != BYTES_720.to_string()
    {
        assert!(Instant::now() < deadline, "{}", guest.dmesg()?);
        thread::sleep(Duration::from_millis(100));
    }
    let zeroes =
        guest.stdout_of(&format!("dd if={path} bs=64k iflag=direct 2>/dev/null | tr -d '\\0' | wc -c"))?;
    assert_eq!(zeroes.trim(), "0");
    Ok(())
}

/// A disk of 1.25 MB has blocks of 1024 bytes; this one cannot be written.
fn assert_protected(guest: &mut Guest, image: &std::path::Path) -> Result<()> {
    let disk = guest.await_unit("flopro", 0, PLUG_LIMIT)?;
    assert_eq!(disk.bytes, BYTES_1250);
    let path = disk.path();
    assert_eq!(guest.stdout_of(&format!("blockdev --getss {path}; blockdev --getro {path}"))?, "1024\n1\n");
    let sum = guest.stdout_of(&format!("dd if={path} bs=64k iflag=direct 2>/dev/null | sha256sum"))?;
    let host = Command::new("sha256sum").arg(image).output().map_err(Error::io("run sha256sum"))?;
    assert_eq!(
        sum.split_whitespace().next(),
        String::from_utf8_lossy(&host.stdout).split_whitespace().next()
    );
    assert_ne!(guest.run(&format!("dd if=/dev/zero of={path} bs=1024 count=1 conv=fsync"))?.status, 0);
    Ok(())
}

fn boot_past_it() -> Result<()> {
    let place = Scratch::new()?;
    let image = boot_image::bios(&place)?.display().to_string();
    let floppy = place.image("floppy.img", BYTES_1440)?.display().to_string();
    let floppy = Drive::serve("seabios-flop", &[floppy.as_str(), "--floppy"])?;
    let disk = Drive::serve("seabios-disk", &[image.as_str()])?;
    let mut redirect = floppy.plug();
    redirect.boot_index = Some(0);
    let mut other = disk.plug();
    other.boot_index = Some(1);
    let vm = Machine::new("seabios-flop")
        .firmware(Firmware::SeaBios)
        .redirect(&redirect)
        .redirect(&other)
        .launch()?;
    vm.await_console(boot_image::WORDS, BOOT_LIMIT)?;
    let printed = floppy.printed();
    assert!(!printed.contains("uses CBI"), "{printed}");
    Ok(())
}

/// EDK II has drivers of both protocols.
fn boot_it(transport: &str) -> Result<()> {
    let place = Scratch::new()?;
    let image = boot_image::uefi_floppy(&place)?.display().to_string();
    let id = format!("ovmf-{transport}");
    let served = Drive::serve(&id, &[image.as_str(), "--floppy", "--transport", transport])?;
    let vm = Machine::new(&id).firmware(Firmware::Ovmf).redirect(&served.plug()).launch()?;
    vm.await_console(boot_image::WORDS, BOOT_LIMIT)?;
    let printed = served.printed();
    assert!(printed.contains("uses CBI"), "{printed}");
    Ok(())
}
