//! Things that happen to drives: pulled out, reset, killed, frozen. What was flushed is there afterwards.

use std::{
    fmt::Write as _,
    fs,
    time::{Duration, Instant},
};

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
    vm: Vm,
    uas: Drive,
    bot: Drive,
    images: Scratch,
}

const UAS: &str = "disrupted-uas";
const BOT: &str = "disrupted-bot";

/// At the start of each drive: bytes that no disruption may change.
const KEPT_BYTES: usize = 1 << 20;

const PLUG_LIMIT: Duration = Duration::from_secs(30);

static BENCH: Shared<Bench> = Shared::new(|| {
    const IMAGE_BYTES: u64 = 128 << 20;
    let images = Scratch::new()?;
    let image = |name| Ok::<_, Error>(images.image(name, IMAGE_BYTES)?.display().to_string());
    let uas = Drive::serve(UAS, &[&image(UAS)?, "--streams", "256"])?;
    let bot = Drive::serve(BOT, &[&image(BOT)?, "--transport", "bot"])?;
    let machine = Machine::new("disruption").survives_reboot();
    let mut vm = machine.redirect(&uas.plug()).redirect(&bot.plug()).boot()?;
    for serial in [UAS, BOT] {
        let disk = vm.guest.await_disk(serial, PLUG_LIMIT)?.path();
        vm.guest.stdout_of(&format!("{KEPT} | dd of={disk} bs=64k iflag=fullblock conv=fsync"))?;
    }
    Ok(Bench { vm, uas, bot, images })
});

/// Prints the bytes to be kept; [`kept`] has them on the host.
const KEPT: &str = "seq 1 200000 | head -c 1048576";

fn kept() -> Vec<u8> {
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
    /// Waits for both drives; what was flushed at the beginning is read by the guest and is in the images.
    fn is_whole(&mut self) -> Result<()> {
        for serial in [UAS, BOT] {
            let disk = self.vm.guest.await_disk(serial, PLUG_LIMIT)?.path();
            let sum = |source: &str| format!("$({source} | sha256sum)");
            let read = format!("dd if={disk} bs=64k count=16 iflag=direct");
            self.vm.guest.stdout_of(&format!("[ \"{}\" = \"{}\" ]", sum(&read), sum(KEPT)))?;
            let image = fs::read(self.images.path(serial)).expect("the image is readable");
            assert!(image[..KEPT_BYTES] == kept(), "the image of {serial} has lost what was flushed");
        }
        self.is_usable()
    }

    /// Stamped blocks come back from both drives.
    fn is_usable(&mut self) -> Result<()> {
        for serial in [UAS, BOT] {
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
        let lines = [UAS, BOT].map(|serial| Ok::<_, Error>(self.load(serial)?.seconds(30).line()));
        let jobs = lines.into_iter().map(|line| self.vm.guest.start(&line?)).collect::<Result<Vec<_>>>()?;
        self.await_writes()?;
        Ok(jobs)
    }

    /// Waits until both disks have taken writes since now.
    fn await_writes(&mut self) -> Result<()> {
        for serial in [UAS, BOT] {
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
#[ignore = "minutes long, and not yet seen steady on a busy machine"]
fn pulled_out_in_mid_write_and_plugged_in_again() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
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
#[ignore = "minutes long, and not yet seen steady on a busy machine"]
fn the_guest_reboots_and_is_reset_in_mid_write() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    bench.vm.reboot()?;
    bench.is_whole()?;
    bench.write()?;
    bench.vm.reset()?;
    bench.is_whole()
}

#[test]
#[ignore = "minutes long, and not yet seen steady on a busy machine"]
fn the_server_is_killed_in_mid_write_and_started_again() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
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
#[ignore = "minutes long, and not yet seen steady on a busy machine"]
fn the_server_is_interrupted_and_says_that_it_has_flushed() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    let jobs = bench.write()?;
    for drive in [&mut bench.uas, &mut bench.bot] {
        assert_eq!(drive.interrupt()?, "exit status: 0", "{}", drive.printed());
        assert!(drive.printed().contains("Everything is written"), "{}", drive.printed());
    }
    bench.vm.guest.await_disks(0, PLUG_LIMIT)?;
    have_failed(&mut bench.vm.guest, jobs)?;
    bench.uas.restart()?;
    bench.bot.restart()?;
    bench.is_whole()
}

/// Longer than the thirty seconds after which the kernel takes a command for lost.
#[test]
#[ignore = "minutes long, and not yet seen steady on a busy machine"]
fn a_server_that_is_frozen_for_40_seconds_goes_on_after_the_kernels_recovery() -> Result<()> {
    const FROZEN: Duration = Duration::from_secs(40);
    const LIMIT: Duration = Duration::from_secs(150);
    let bench = &mut *BENCH.lock()?;
    bench.vm.guest.forget_log()?;
    let mut jobs = Vec::new();
    for serial in [UAS, BOT] {
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
        assert!(log.tells(words), "{words:?} in\n{log}");
    }
    bench.is_whole()
}

#[test]
#[ignore = "minutes long, and not yet seen steady on a busy machine"]
fn the_server_stays_small_with_253_commands_in_flight() -> Result<()> {
    const RESIDENT_BYTES_MAX: u64 = 32 << 20;
    const LIMIT: Duration = Duration::from_secs(60);
    let bench = &mut *BENCH.lock()?;
    let disk = bench.vm.guest.await_disk(UAS, PLUG_LIMIT)?;
    assert_eq!(disk.queue_depth, 253);
    for block_bytes in [4 << 10, 128 << 10] {
        let load = Load::new(&disk.path(), Pattern::RandomMixed).depth(253).block_bytes(block_bytes);
        let job = bench.vm.guest.start(&load.options("--offset=4m").seconds(4).line())?;
        let (start, mut most) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_secs(5) {
            most = most.max(bench.uas.resident_bytes()?);
            std::thread::sleep(Duration::from_millis(20));
        }
        Report::parse(&bench.vm.guest.finish(job, LIMIT)?.stdout)?;
        println!("{block_bytes} bytes a command: {most} bytes resident");
        assert!(most <= RESIDENT_BYTES_MAX, "{most} bytes resident with {block_bytes} bytes a command");
    }
    Ok(())
}
