//! A file system and stamped blocks on the drive: what was written is what is read, over both transports.

use std::{fs, os::unix::fs::MetadataExt, path::PathBuf, time::Duration};

use uaskit_interop::{
    Result, Shared,
    drive::Drive,
    guest::{Disk, Guest},
    qemu::{Machine, Vm},
    scratch::Scratch,
    tools::fio::{Load, Pattern, Report},
};

/// A guest with drives whose images are sparse files in memory.
struct Bench {
    vm: Vm,
    images: Scratch,
    _drives: Vec<Drive>,
}

const IMAGE_BYTES: u64 = 256 << 20;

/// The name, which is that of the image and the serial number as well; the arguments.
const KINDS: &[(&str, &[&str])] = &[
    ("uas", &[]),
    ("bot", &["--transport", "bot"]),
    ("high", &["--speed", "high"]),
    ("blocks4k", &["--block-size", "4096"]),
    ("two", &[]),
];

const PLUG_LIMIT: Duration = Duration::from_secs(60);

static BENCH: Shared<Bench> = Shared::new(|| {
    let images = Scratch::new()?;
    let second_unit = images.image("second-unit", IMAGE_BYTES / 2)?.display().to_string();
    let mut machine = Machine::new("filesystem");
    let mut drives = Vec::new();
    for &(name, arguments) in KINDS {
        let image = images.image(name, IMAGE_BYTES)?.display().to_string();
        let mut arguments = [&[image.as_str()], arguments].concat();
        if name == "two" {
            arguments.extend(["--lun", &second_unit]);
        }
        let drive = Drive::serve(name, &arguments)?;
        machine = machine.redirect(&drive.plug());
        drives.push(drive);
    }
    let mut vm = machine.boot()?;
    vm.guest.await_disks(KINDS.len() + 1, PLUG_LIMIT)?;
    Ok(Bench { vm, images, _drives: drives })
});

impl Bench {
    fn disk(&mut self, serial: &str) -> Result<Disk> {
        self.vm.guest.await_disk(serial, PLUG_LIMIT)
    }

    /// Bytes of the host's memory or disk that the image occupies.
    fn allocated_bytes(&self, name: &str) -> u64 {
        /// The unit of `st_blocks`, whatever the file system's is.
        const STAT_BLOCK_BYTES: u64 = 512;
        let path: PathBuf = self.images.path(name);
        fs::metadata(path).expect("the image is there").blocks() * STAT_BLOCK_BYTES
    }
}

/// Formats, writes, unmounts, mounts again, compares, deletes, trims, checks.
fn a_file_system_lives(serial: &str) -> Result<()> {
    const FILES_BYTES: u64 = 32 << 20;
    let bench = &mut *BENCH.lock()?;
    let disk = bench.disk(serial)?.path();
    bench.vm.guest.forget_log()?;
    // Nothing is left to be written later: a thread of the kernel would fill tables while blocks are counted.
    let write = format!(
        "set -e; mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 {disk}; mount -t ext4 {disk} /mnt; mkdir /mnt/files
        for n in 1 2 3 4; do dd if=/dev/urandom of=/mnt/files/$n bs=1M count=8; done
        cd /mnt/files; sha256sum * > /tmp/sums; cd /; umount /mnt"
    );
    bench.vm.guest.stdout_of(&write)?;
    let full = bench.allocated_bytes(serial);
    assert!(full >= FILES_BYTES, "{full} bytes hold {FILES_BYTES}");
    // Between `rm` and `fstrim` the file system is unmounted: ext4 frees the blocks of deleted files after a commit, for which
    // `sync` does not always wait.
    let compare = format!(
        "set -e; echo 3 > /proc/sys/vm/drop_caches; mount -t ext4 {disk} /mnt
        cd /mnt/files; sha256sum -c /tmp/sums > /dev/null; rm *; cd /; umount /mnt
        mount -t ext4 {disk} /mnt; fstrim /mnt; umount /mnt; e2fsck -fn {disk}"
    );
    bench.vm.guest.stdout_of(&compare)?;
    let trimmed = bench.allocated_bytes(serial);
    assert!(full - trimmed >= FILES_BYTES, "{full} bytes before fstrim, {trimmed} after");
    no_complaint(&mut bench.vm.guest)
}

/// Stamped random writes, 30 deep, then all read back; first small blocks, then mixed ones.
fn stamps_come_back(serial: &str) -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    let disk = bench.disk(serial)?;
    bench.vm.guest.forget_log()?;
    let small = Load::new(&disk.path(), Pattern::RandomWrite).depth(30).bytes(16 << 20).verify();
    let report = small.run(&mut bench.vm.guest)?;
    assert_eq!((report.write.bytes, report.read.bytes), (16 << 20, 16 << 20));
    let mixed = Load::new(&disk.path(), Pattern::RandomMixed).depth(30).bytes(64 << 20).verify();
    let mixed = mixed.options("--bsrange=4k-1m --bs_unaligned=0 --io_size=64m --fsync=16");
    assert!(mixed.run(&mut bench.vm.guest)?.write.bytes > 0);
    no_complaint(&mut bench.vm.guest)
}

fn no_complaint(guest: &mut Guest) -> Result<()> {
    let log = guest.dmesg()?;
    assert_eq!(log.complaints(), [""; 0], "{log}");
    Ok(())
}

/// Runs loads at the same time; each must move all of `bytes` and find them again.
fn at_once(guest: &mut Guest, disks: &[String], bytes: u64) -> Result<()> {
    const LIMIT: Duration = Duration::from_secs(120);
    let load = |disk: &String| Load::new(disk, Pattern::RandomWrite).depth(30).bytes(bytes).verify();
    let jobs = disks.iter().map(|disk| guest.start(&load(disk).line())).collect::<Result<Vec<_>>>()?;
    for job in jobs {
        let report = Report::parse(&guest.finish(job, LIMIT)?.stdout)?;
        assert_eq!((report.write.bytes, report.read.bytes), (bytes, bytes));
    }
    Ok(())
}

#[test]
fn a_file_system_lives_on_the_drive_over_uas() -> Result<()> {
    a_file_system_lives("uas")
}

#[test]
fn a_file_system_lives_on_the_drive_over_bot() -> Result<()> {
    {
        // usb-storage asks for no VPD pages, so the kernel has to be configured to unmap.
        let bench = &mut *BENCH.lock()?;
        let name = bench.disk("bot")?.name;
        let mode = format!("/sys/block/{name}/device/scsi_disk/*/provisioning_mode");
        bench.vm.guest.stdout_of(&format!("for mode in {mode}; do echo unmap > $mode; done"))?;
    }
    a_file_system_lives("bot")
}

#[test]
fn a_file_system_lives_on_the_drive_without_streams() -> Result<()> {
    a_file_system_lives("high")
}

#[test]
fn a_file_system_lives_on_blocks_of_4096_bytes() -> Result<()> {
    let block = {
        let bench = &mut *BENCH.lock()?;
        let name = bench.disk("blocks4k")?.name;
        bench.vm.guest.stdout_of(&format!("cat /sys/block/{name}/queue/logical_block_size"))?
    };
    assert_eq!(block, "4096\n");
    a_file_system_lives("blocks4k")
}

#[test]
fn stamped_blocks_come_back_over_uas() -> Result<()> {
    stamps_come_back("uas")
}

#[test]
fn stamped_blocks_come_back_over_bot() -> Result<()> {
    stamps_come_back("bot")
}

#[test]
fn stamped_blocks_come_back_without_streams() -> Result<()> {
    stamps_come_back("high")
}

#[test]
fn two_drives_are_used_at_once() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    let disks = [bench.disk("uas")?.path(), bench.disk("bot")?.path()];
    bench.vm.guest.forget_log()?;
    at_once(&mut bench.vm.guest, &disks, 16 << 20)?;
    no_complaint(&mut bench.vm.guest)
}

#[test]
fn two_logical_units_of_a_drive_are_two_disks() -> Result<()> {
    let guest = &mut BENCH.lock()?.vm.guest;
    let units = [guest.await_unit("two", 0, PLUG_LIMIT)?, guest.await_unit("two", 1, PLUG_LIMIT)?];
    assert_eq!(units[0].port, units[1].port);
    assert_eq!([units[0].bytes, units[1].bytes], [IMAGE_BYTES, IMAGE_BYTES / 2]);
    guest.forget_log()?;
    at_once(guest, &units.map(|unit| unit.path()), 16 << 20)?;
    no_complaint(guest)
}
