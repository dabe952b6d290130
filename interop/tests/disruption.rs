//! Things that happen to drives: pulled out, reset, killed, frozen. What was flushed is there afterwards.

use std::{fmt::Write as _, fs, sync::MutexGuard, time::Duration};

use uaskit_interop::{
    Error, Result, Shared,
    drive::Drive,
    guest::{Guest, Job},
    qemu::{Machine, Vm},
    scratch::Scratch,
    tools::fio::{Load, Pattern, Report},
};

/// A guest with a drive for each transport, whose images are files.
struct Bench {
    /// The serial numbers, which name the images as well.
    names: [&'static str; 2],
    vm: Vm,
    uas: Drive,
    bot: Drive,
    images: Scratch,
}

/// At the start of each drive: bytes that no disruption may change.
const KEPT_BYTES: usize = 1 << 20;

const PLUG_LIMIT: Duration = Duration::from_secs(60);

static BENCH: Shared<Bench> = Shared::new(|| Bench::boot("disrupted", ["disrupted-uas", "disrupted-bot"]));

/// For the test that spends most of its time waiting: it runs beside the others.
static FREEZER: Shared<Bench> = Shared::new(|| Bench::boot("frozen", ["frozen-uas", "frozen-bot"]));

/// The bench, with both drives in their places even if the test before has failed half-way.
fn bench() -> Result<MutexGuard<'static, Bench>> {
    let mut bench = BENCH.lock()?;
    let names = bench.names;
    if names.iter().any(|serial| bench.vm.guest.await_disk(serial, PLUG_LIMIT).is_err()) {
        bench.set_up_again()?;
    }
    Ok(bench)
}

/// Prints the bytes that must survive; [`flushed`] has them on the host.
const KEPT: &str = "seq 1 200000 | head -c 1048576";

fn flushed() -> Vec<u8> {
    let mut text = String::new();
    for number in 1.. {
        let _ = writeln!(text, "{number}");
        if text.len() >= KEPT_BYTES {
            break;
        }
    }
    text.into_bytes()[..KEPT_BYTES].to_vec()
}

impl Bench {
    fn boot(machine: &str, names: [&'static str; 2]) -> Result<Self> {
        const IMAGE_BYTES: u64 = 128 << 20;
        let images = Scratch::new()?;
        let image = |name| Ok::<_, Error>(images.image(name, IMAGE_BYTES)?.display().to_string());
        let uas = Drive::serve(names[0], &[&image(names[0])?, "--streams", "256"])?;
        let bot = Drive::serve(names[1], &[&image(names[1])?, "--transport", "bot"])?;
        let machine = Machine::new(machine).survives_reboot();
        let mut vm = machine.redirect(&uas.plug()).redirect(&bot.plug()).boot()?;
        for serial in names {
            let disk = vm.guest.await_disk(serial, PLUG_LIMIT)?.path();
            vm.guest.stdout_of(&format!("{KEPT} | dd of={disk} bs=64k iflag=fullblock conv=fsync"))?;
        }
        Ok(Self { names, vm, uas, bot, images })
    }

    /// Whatever became of servers, plugs and guest.
    fn set_up_again(&mut self) -> Result<()> {
        self.uas.restart()?;
        self.bot.restart()?;
        for drive in [&self.uas, &self.bot] {
            // It is there already, or it is missing; QEMU refuses the one that is not so.
            let _ = self.vm.detach(&drive.plug().id);
            self.vm.attach(&drive.plug())?;
        }
        self.vm.reset()?;
        self.is_whole()
    }

    /// Waits for both drives; what was flushed at the beginning is read by the guest and is in the images.
    fn is_whole(&mut self) -> Result<()> {
        for serial in self.names {
            let disk = self.vm.guest.await_disk(serial, PLUG_LIMIT)?.path();
            let sum = |source: &str| format!("$({source} | sha256sum)");
            let read = format!("dd if={disk} bs=64k count=16 iflag=direct");
            self.vm.guest.stdout_of(&format!("[ \"{}\" = \"{}\" ]", sum(&read), sum(KEPT)))?;
            let image = fs::read(self.images.path(serial)).expect("the image is readable");
            assert!(image[..KEPT_BYTES] == flushed(), "the image of {serial} has lost what was flushed");
        }
        self.is_usable()
    }

    /// Stamped blocks come back from both drives.
    fn is_usable(&mut self) -> Result<()> {
        for serial in self.names {
            let load = self.load(serial)?.bytes(2 << 20).verify();
            assert_eq!(load.run(&mut self.vm.guest)?.read.bytes, 2 << 20);
        }
        Ok(())
    }

    /// Random writes behind the bytes to be kept.
    fn load(&mut self, serial: &str) -> Result<Load> {
        let disk = self.vm.guest.await_disk(serial, PLUG_LIMIT)?;
        Ok(Load::new(&disk.path(), Pattern::RandomWrite).depth(30).options("--offset=4m"))
    }

    /// Starts to write to both drives, for longer than any disruption takes to begin.
    fn write(&mut self) -> Result<Vec<Job>> {
        let lines = self.names.map(|serial| Ok::<_, Error>(self.load(serial)?.seconds(30).line()));
        let jobs = lines.into_iter().map(|line| self.vm.guest.start(&line?)).collect::<Result<Vec<_>>>()?;
        self.await_writes()?;
        Ok(jobs)
    }

    /// Waits until both disks have taken writes since now.
    fn await_writes(&mut self) -> Result<()> {
        for serial in self.names {
            let name = self.vm.guest.await_disk(serial, PLUG_LIMIT)?.name;
            let written = format!("$(awk '{{print $5}}' /sys/block/{name}/stat)");
            let wait = format!("was={written}; while [ {written} -lt $((was + 100)) ]; do sleep 0.05; done");
            self.vm.guest.stdout_of(&wait)?;
        }
        Ok(())
    }
}

/// Waits for writes whose disk has gone away: they fail.
fn have_failed(guest: &mut Guest, jobs: Vec<Job>) -> Result<()> {
    const LIMIT: Duration = Duration::from_secs(60);
    for job in jobs {
        let output = guest.finish(job, LIMIT)?;
        assert_ne!(output.status, 0, "fio has written to a drive that is not there: {output:?}");
    }
    Ok(())
}

#[test]
fn unplugged_in_mid_write_and_plugged_in_again() -> Result<()> {
    let bench = &mut *bench()?;
    let jobs = bench.write()?;
    for drive in [&bench.uas, &bench.bot] {
        bench.vm.detach(&drive.plug().id)?;
    }
    bench.vm.guest.await_disks(0, PLUG_LIMIT)?;
    have_failed(&mut bench.vm.guest, jobs)?;
    for drive in [&bench.uas, &bench.bot] {
        bench.vm.attach(&drive.plug())?;
    }
    bench.is_whole()
}

#[test]
fn the_guest_reboots_and_is_reset_in_mid_write() -> Result<()> {
    let bench = &mut *bench()?;
    bench.vm.reboot()?;
    bench.is_whole()?;
    bench.write()?;
    bench.vm.reset()?;
    bench.is_whole()
}

#[test]
fn the_server_is_killed_in_mid_write_and_started_again() -> Result<()> {
    let bench = &mut *bench()?;
    let jobs = bench.write()?;
    bench.uas.kill();
    bench.bot.kill();
    bench.vm.guest.await_disks(0, PLUG_LIMIT)?;
    have_failed(&mut bench.vm.guest, jobs)?;
    bench.uas.restart()?;
    bench.bot.restart()?;
    bench.is_whole()
}

#[test]
fn the_server_is_interrupted_and_says_that_it_has_flushed() -> Result<()> {
    let bench = &mut *bench()?;
    let jobs = bench.write()?;
    for drive in [&mut bench.uas, &mut bench.bot] {
        assert_eq!(drive.interrupt()?, "exit status: 0", "{}", drive.printed());
        assert!(drive.printed().contains("All data flushed"), "{}", drive.printed());
    }
    bench.vm.guest.await_disks(0, PLUG_LIMIT)?;
    have_failed(&mut bench.vm.guest, jobs)?;
    bench.uas.restart()?;
    bench.bot.restart()?;
    bench.is_whole()
}

/// Longer than the thirty seconds after which the kernel takes a command for lost.
#[test]
fn a_server_that_is_frozen_for_40_seconds_goes_on_after_the_kernels_recovery() -> Result<()> {
    const FROZEN: Duration = Duration::from_secs(40);
    const LIMIT: Duration = Duration::from_secs(150);
    let bench = &mut *FREEZER.lock()?;
    bench.vm.guest.forget_log()?;
    let mut jobs = Vec::new();
    for serial in bench.names {
        let load = bench.load(serial)?.bytes(16 << 20).verify().options("--offset=4m --rate_iops=1000");
        jobs.push(bench.vm.guest.start(&load.line())?);
    }
    bench.await_writes()?;
    bench.uas.freeze()?;
    bench.bot.freeze()?;
    std::thread::sleep(FROZEN);
    bench.uas.thaw()?;
    bench.bot.thaw()?;
    for job in jobs {
        let output = bench.vm.guest.finish(job, LIMIT)?;
        let report = Report::parse(&output.stdout)?;
        assert_eq!(report.read.bytes, 16 << 20, "{}", bench.vm.guest.dmesg()?);
    }
    let log = bench.vm.guest.dmesg()?;
    for words in
        ["uas_eh_abort_handler", "uas_eh_device_reset_handler success", "reset SuperSpeed USB device"]
    {
        assert!(log.contains(words), "{words:?} in\n{log}");
    }
    bench.is_whole()
}

/// At full depth QEMU can lose what the drive answers too fast, and a host can send more than the drive has room for.
#[test]
fn at_depth_253_the_server_stays_small_and_the_kernel_finds_nothing_to_complain_about() -> Result<()> {
    const RESIDENT_BYTES_MAX: u64 = 32 << 20;
    let bench = &mut *bench()?;
    let disk = bench.vm.guest.await_disk(bench.names[0], PLUG_LIMIT)?;
    assert_eq!(disk.queue_depth, 253);
    bench.vm.guest.forget_log()?;
    for block_bytes in [4 << 10, 64 << 10, 512 << 10] {
        let load = Load::new(&disk.path(), Pattern::RandomMixed).depth(253).block_bytes(block_bytes);
        load.options("--offset=4m").seconds(4).run(&mut bench.vm.guest)?;
        let stamped = Load::new(&disk.path(), Pattern::RandomWrite).depth(253).block_bytes(block_bytes);
        stamped.options("--offset=4m").bytes(16 << 20).verify().run(&mut bench.vm.guest)?;
        let most = bench.uas.most_resident_bytes()?;
        println!("{block_bytes} bytes a request: {most} bytes resident at most");
        assert!(most <= RESIDENT_BYTES_MAX, "{most} bytes resident with {block_bytes} bytes a request");
    }
    let log = bench.vm.guest.dmesg()?;
    assert_eq!(log.complaints(), [""; 0], "{log}");
    Ok(())
}
