//! Discs in optical drives: what Linux and its tools make of them over UAS and BOT, media that change, firmware that boots.
//!
//! Debian's kernel and the newest one there is; a suite that cannot be reached makes its test ignored, with the reason.

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Output},
    thread,
    time::{Duration, Instant},
};

use libtest_mimic::{Arguments, Trial};
use uaskit_interop::{
    Error, Result, boot_image,
    debian::{self, Suite},
    disc_image::{self, BLOCK_BYTES},
    drive::{self, Drive},
    guest::Guest,
    qemu::{Bus, Firmware, Machine, Vm},
    scratch::Scratch,
    trial,
};

const PLUG_LIMIT: Duration = Duration::from_secs(60);
/// Firmware under emulation, on a host that is busy with other things.
const BOOT_LIMIT: Duration = Duration::from_secs(60);

const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_console",
    "sd_mod",
    "sr_mod",
    "isofs",
    "sg",
    "usb-storage",
    "uas",
    "ehci-pci",
    "xhci-pci",
];

/// Programs of the guest, beside those that every guest has.
const PROGRAMS: &[&str] = &["blkid", "cd-info", "xorriso", "setcd", "eject"];

/// Blocks of a DVD of two layers, more than 2.36 GB and 4.7 GB, and of a BD.
const DVD_BLOCKS: u64 = 4_000_000;
const BD_BLOCKS: u64 = 12_219_392;

fn main() -> ExitCode {
    let trials = vec![
        trial("linux_and_its_tools_read_discs".into(), false, read_discs),
        trial("discs_come_and_go".into(), false, change_discs),
        trial("the_newest_kernel_reads_discs".into(), false, read_discs_in_the_newest_kernel),
        boots("seabios_boots_over_bot_at_super_speed", Firmware::SeaBios, Bus::Xhci, &["--transport", "bot"]),
        boots(
            "seabios_boots_over_bot_at_high_speed",
            Firmware::SeaBios,
            Bus::Ehci,
            &["--speed", "high", "--transport", "bot"],
        ),
        boots(
            "seabios_boots_over_uas_at_high_speed",
            Firmware::SeaBios,
            Bus::Ehci,
            &["--speed", "high", "--transport", "uas"],
        ),
        boots(
            "ovmf_boots_over_bot_at_high_speed",
            Firmware::Ovmf,
            Bus::Ehci,
            &["--speed", "high", "--transport", "bot"],
        ),
        boots("ovmf_boots_over_bot_at_super_speed", Firmware::Ovmf, Bus::Xhci, &["--transport", "bot"]),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A guest with optical drives.
struct Bench {
    vm: Vm,
    drives: Vec<Drive>,
}

impl Bench {
    /// Boots a kernel with drives: their serial numbers, buses and arguments.
    fn boot(name: &str, suite: Suite, drives: &[(&str, Bus, Vec<String>)]) -> Result<Self> {
        debian::ensure_optical()?;
        let mut machine = Machine::new(name).kernel(suite).modules(MODULES);
        let mut served = Vec::new();
        for (serial, bus, arguments) in drives {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let drive = Drive::serve(serial, &arguments)?;
            let mut redirect = drive.plug();
            redirect.bus = *bus;
            machine = machine.redirect(&redirect);
            served.push(drive);
        }
        Ok(Self { vm: machine.boot()?, drives: served })
    }

    fn install(&mut self, programs: &[&str]) -> Result<()> {
        for program in programs {
            let path = debian::find(program).ok_or_else(|| Error::unexpected("find", *program))?;
            self.vm.guest.install(&path)?;
        }
        Ok(())
    }

    /// Memory of every server (the project's bar for a drive).
    fn assert_lean(&self) -> Result<()> {
        const RESIDENT_BYTES_MAX: u64 = 32 << 20;
        for drive in &self.drives {
            let resident = drive.most_resident_bytes()?;
            assert!(resident <= RESIDENT_BYTES_MAX, "{} KiB", resident >> 10);
        }
        Ok(())
    }
}

/// Waits for the optical drive with that serial number: its path, and the driver of its interface.
fn await_optical(guest: &mut Guest, serial: &str) -> Result<(String, String)> {
    let script = format!(
        "for block in /sys/block/sr*; do
            device=$(readlink -f $block/device) interface=${{device%%/host[0-9]*}}
            [ \"$(cat ${{interface%/*}}/serial 2>/dev/null)\" = {serial} ] || continue
            driver=$(readlink $interface/driver); echo /dev/${{block##*/}} ${{driver##*/}}
        done"
    );
    let deadline = Instant::now() + PLUG_LIMIT;
    loop {
        let found = guest.stdout_of(&script)?;
        if let Some((path, driver)) = found.trim().split_once(' ') {
            return Ok((path.into(), driver.into()));
        }
        if Instant::now() > deadline {
            let evidence = guest.dmesg()?.to_string();
            return Err(Error::Timeout { what: format!("drive {serial}"), limit: PLUG_LIMIT, evidence });
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Mounts a disc, and checks its files.
fn assert_files(guest: &mut Guest, path: &str, expected: &str) -> Result<()> {
    let script =
        format!("set -e; mount -t iso9660 -o ro {path} /mnt; cd /mnt; sha256sum *; cd /; umount /mnt");
    assert_eq!(guest.stdout_of(&script)?, expected);
    Ok(())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.into()).collect()
}

/// An image of so many blocks that is a hole but for stamps: in its first block, where file systems of 32 bits end, in the middle, in its
/// last block.
fn sparse(place: &Scratch, name: &str, blocks: u64) -> Result<(PathBuf, Vec<u64>)> {
    let path = place.image(name, blocks * BLOCK_BYTES)?;
    let file = fs::OpenOptions::new().write(true).open(&path).map_err(Error::io("open an image"))?;
    let stamped = vec![0, (1 << 32) / BLOCK_BYTES - 1, (1 << 32) / BLOCK_BYTES, blocks / 2 + 1, blocks - 1];
    for block in &stamped {
        file.write_all_at(&stamp(*block), block * BLOCK_BYTES).map_err(Error::io("write a stamp"))?;
    }
    Ok((path, stamped))
}

fn stamp(block: u64) -> Vec<u8> {
    format!("block {block:08} ").bytes().cycle().take(BLOCK_BYTES as usize).collect()
}

/// Reads the stamps in place, past the guest's cache, and something of what is between them.
fn assert_stamps(guest: &mut Guest, path: &str, blocks: u64, stamped: &[u64]) -> Result<()> {
    let size = guest.stdout_of(&format!("blockdev --getsize64 {path}"))?;
    assert_eq!(size.trim(), (blocks * BLOCK_BYTES).to_string());
    for block in stamped {
        let read = format!("dd if={path} bs={BLOCK_BYTES} skip={block} count=1 iflag=direct 2>/dev/null");
        assert_eq!(guest.stdout_of(&read)?.as_bytes(), stamp(*block), "block {block}");
    }
    let middle = blocks / 2 + 2;
    let zeroes =
        format!("dd if={path} bs={BLOCK_BYTES} skip={middle} count=4096 2>/dev/null | tr -d '\\0' | wc -c");
    assert_eq!(guest.stdout_of(&zeroes)?.trim(), "0");
    Ok(())
}

fn read_discs() -> Result<()> {
    let place = Scratch::new()?;
    let disc = disc_image::files(&place, "FIRST")?;
    let files = disc_image::sums(&place.path("FIRST"))?;
    let (dvd, dvd_stamps) = sparse(&place, "dvd.iso", DVD_BLOCKS)?;
    let (bd, bd_stamps) = sparse(&place, "bd.image", BD_BLOCKS)?;
    let disk = place.image("disk", 64 << 20)?;
    let [disc, dvd, bd, disk] = [disc, dvd, bd, disk].map(|path| path.display().to_string());
    let drives = [
        ("cd", Bus::Xhci, words(&[&disc])),
        ("cd-bot", Bus::Ehci, words(&[&disc, "--speed", "high", "--transport", "bot"])),
        ("dvd", Bus::Ehci, words(&[&dvd, "--speed", "high"])),
        ("bd", Bus::Xhci, words(&[&bd, "--optical", "--transport", "bot"])),
        ("two", Bus::Xhci, words(&[&disk, "--lun", &disc])),
    ];
    let mut bench = Bench::boot("optical", Suite::Installed, &drives)?;
    bench.install(PROGRAMS)?;
    let guest = &mut bench.vm.guest;
    for (serial, driver) in [("cd", "uas"), ("cd-bot", "usb-storage"), ("two", "uas")] {
        let (path, bound) = await_optical(guest, serial)?;
        assert_eq!(bound, driver, "{serial}");
        assert_files(guest, &path, &files)?;
        assert_tools(guest, &path)?;
    }
    for (serial, blocks, stamped, profile) in
        [("dvd", DVD_BLOCKS, dvd_stamps, "DVD-ROM"), ("bd", BD_BLOCKS, bd_stamps, "BD-ROM")]
    {
        let (path, _) = await_optical(guest, serial)?;
        assert_stamps(guest, &path, blocks, &stamped)?;
        let current = guest.stdout_of(&format!("sg_get_config --current {path}"))?;
        assert!(current.contains(profile), "{current}");
    }
    assert_structure(guest)?;
    let disk = guest.await_unit("two", 0, PLUG_LIMIT)?;
    assert_eq!((disk.bytes, disk.driver.as_str()), (64 << 20, "uas"));
    guest.stdout_of(&format!("dd if=/dev/zero of={} bs=1M count=1 conv=fsync", disk.path()))?;
    let log = guest.dmesg()?;
    assert_eq!(log.complaints(), [""; 0], "{log}");
    bench.assert_lean()
}

/// Checks that the guest's programs know the first disc.
fn assert_tools(guest: &mut Guest, path: &str) -> Result<()> {
    let blkid = guest.stdout_of(&format!("blkid -p {path}"))?;
    assert!(blkid.contains("LABEL=\"FIRST\"") && blkid.contains("TYPE=\"iso9660\""), "{blkid}");
    let config = guest.stdout_of(&format!("sg_get_config --current {path}"))?;
    assert!(config.contains("CD-ROM") && config.contains("Loading mechanism: Tray type"), "{config}");
    let info = guest.stdout_of(&format!("cd-info --no-cddb --no-device-info -C {path}"))?;
    assert!(info.contains("CD-ROM") && info.contains("ISO 9660") && info.contains("FIRST"), "{info}");
    let indev = guest.run(&format!("xorriso -indev {path} -toc 2>&1"))?;
    let said = indev.stdout;
    assert!(indev.status == 0 && said.contains("CD-ROM") && said.contains("'FIRST'"), "{said}");
    let setcd = guest.stdout_of(&format!("setcd -i {path}"))?;
    assert!(setcd.contains("Disc found in drive: data disc type 1"), "{setcd}");
    let page = guest.stdout_of(&format!("sg_modes --page=0x2a {path}"))?;
    assert!(page.contains("MM capabilities and mechanical status"), "{page}");
    Ok(())
}

/// The physical format of the DVD, by READ DISC STRUCTURE.
fn assert_structure(guest: &mut Guest) -> Result<()> {
    let (path, _) = await_optical(guest, "dvd")?;
    let raw =
        format!("sg_raw --binary --request=2052 {path} ad 00 00 00 00 00 00 00 08 04 00 00 2>/dev/null");
    let bytes = guest.stdout_of(&format!("{raw} | head -c 16 | hexdump -v -e '1/1 \"%02x\"'"))?;
    assert_eq!(bytes.trim(), "08020000010f31000003000000fcffff");
    Ok(())
}

fn change_discs() -> Result<()> {
    let place = Scratch::new()?;
    let first = disc_image::files(&place, "FIRST")?;
    let second = disc_image::files(&place, "SECOND")?;
    let third = disc_image::files(&place, "THIRD")?;
    let files = ["FIRST", "SECOND", "THIRD"].map(|volume| disc_image::sums(&place.path(volume)));
    let control = format!("unix:{}", place.path("control").display());
    let other = format!("unix:{}", place.path("other").display());
    let drives = [
        ("swap", Bus::Xhci, words(&[&first.display().to_string(), "--control", &control])),
        (
            "empty",
            Bus::Ehci,
            words(&["--optical", "--speed", "high", "--transport", "bot", "--control", &other]),
        ),
    ];
    let mut bench = Bench::boot("optical-swap", Suite::Installed, &drives)?;
    bench.install(&["eject"])?;
    let guest = &mut bench.vm.guest;
    guest.stdout_of("echo 500 > /sys/module/block/parameters/events_dfl_poll_msecs")?;
    let [first_sums, second_sums, third_sums] = files;
    swap_while_mounted(guest, &control, &second, [&first_sums?, &second_sums?])?;
    fill_an_empty_drive(guest, &other, &third, &third_sums?)?;
    bench.assert_lean()
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

/// The owner asks for a disc that is mounted, then takes it and puts another in.
fn swap_while_mounted(guest: &mut Guest, control: &str, second: &Path, sums: [&str; 2]) -> Result<()> {
    let (path, _) = await_optical(guest, "swap")?;
    assert_files(guest, &path, sums[0])?;
    guest.stdout_of(&format!("mount -t iso9660 -o ro {path} /mnt; uevent env > /tmp/uevents 2>&1 &"))?;
    let refused = uaskit(control, &["eject"])?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && said.contains("the host prevents removal"), "{said}");
    let asked =
        "for n in $(seq 100); do grep -q DISK_EJECT_REQUEST=1 /tmp/uevents && exit; sleep 0.1; done; exit 1";
    guest.stdout_of(asked)?;
    succeeds(control, &["eject", "--force"])?;
    assert_ne!(guest.run("echo 3 > /proc/sys/vm/drop_caches; cat /mnt/file2 > /dev/null")?.status, 0);
    succeeds(control, &["insert", &second.display().to_string()])?;
    guest.stdout_of("umount /mnt")?;
    assert_files(guest, &path, sums[1])?;
    // From the guest: out, and in again.
    guest.stdout_of(&format!("eject {path}"))?;
    let status = uaskit(control, &["status"])?;
    assert!(String::from_utf8_lossy(&status.stdout).contains("SECOND.iso"));
    guest.stdout_of(&format!("eject -t {path}"))?;
    assert_files(guest, &path, sums[1])
}

/// A drive that started without a disc.
fn fill_an_empty_drive(guest: &mut Guest, control: &str, disc: &Path, sums: &str) -> Result<()> {
    let (path, driver) = await_optical(guest, "empty")?;
    assert_eq!(driver, "usb-storage");
    let mounted = guest.run(&format!("mount -t iso9660 -o ro {path} /mnt"))?;
    assert!(mounted.status != 0 && mounted.stderr.contains("No medium found"), "{mounted:?}");
    let raw = uaskit(control, &["insert", &cue(disc)?])?;
    assert!(String::from_utf8_lossy(&raw.stderr).contains("cue sheet"), "{raw:?}");
    succeeds(control, &["insert", &disc.display().to_string()])?;
    assert_files(guest, &path, sums)?;
    succeeds(control, &["eject"])?;
    assert_ne!(guest.run(&format!("mount -t iso9660 -o ro {path} /mnt"))?.status, 0);
    Ok(())
}

/// A cue sheet beside the image.
fn cue(disc: &Path) -> Result<String> {
    let path = disc.with_extension("cue");
    fs::write(&path, "FILE \"disc.bin\" BINARY\n").map_err(Error::io("write a cue sheet"))?;
    Ok(path.display().to_string())
}

fn read_discs_in_the_newest_kernel() -> Result<()> {
    let place = Scratch::new()?;
    let disc = disc_image::files(&place, "FIRST")?.display().to_string();
    let files = disc_image::sums(&place.path("FIRST"))?;
    let drives = [
        ("cd", Bus::Xhci, words(&[&disc])),
        ("cd-bot", Bus::Ehci, words(&[&disc, "--speed", "high", "--transport", "bot"])),
    ];
    let mut bench = Bench::boot("optical-newest", Suite::TrixieBackports, &drives)?;
    let guest = &mut bench.vm.guest;
    for (serial, driver) in [("cd", "uas"), ("cd-bot", "usb-storage")] {
        let (path, bound) = await_optical(guest, serial)?;
        assert_eq!(bound, driver, "{serial}");
        assert_files(guest, &path, &files)?;
    }
    let log = guest.dmesg()?;
    assert_eq!(log.complaints(), [""; 0], "{log}");
    Ok(())
}

/// A test in which firmware boots a disc, and waits for its words.
fn boots(name: &'static str, firmware: Firmware, bus: Bus, arguments: &'static [&'static str]) -> Trial {
    trial(name.into(), false, move || {
        let place = Scratch::new()?;
        let image = match firmware {
            Firmware::Ovmf => disc_image::uefi(&place)?,
            _ => disc_image::bios(&place)?,
        };
        let drive = Drive::serve(name, &[&[image.display().to_string().as_str()], arguments].concat())?;
        let mut redirect = drive.plug();
        redirect.bus = bus;
        redirect.boot_index = Some(0);
        let vm = Machine::new(name).firmware(firmware).redirect(&redirect).launch()?;
        vm.await_console(boot_image::WORDS, BOOT_LIMIT)
    })
}
