//! The harness on QEMU's own UAS drive: the baseline to which a drive of ours is compared.

use std::time::Duration;

use uaskit_interop::{
    Result, Shared,
    guest::Disk,
    qemu::{Machine, Vm},
    scratch::Scratch,
    tools::{
        capture,
        conformance::Suite,
        fio::{Load, Pattern},
    },
};

/// A guest with one disk, whose image is in memory.
struct Bench {
    vm: Vm,
    disk: Disk,
    _images: Scratch,
}

static BENCH: Shared<Bench> = Shared::new(|| {
    let images = Scratch::new()?;
    let image = images.image("disk", 64 << 20)?;
    let mut vm = Machine::new("qemu-uas").uas_disk("disk0", &image).boot()?;
    let disk = vm.guest.await_disks(1, Duration::from_secs(10))?.remove(0);
    Ok(Bench { vm, disk, _images: images })
});

#[test]
fn the_kernel_binds_uas_with_14_commands_in_flight() -> Result<()> {
    let mut bench = BENCH.lock()?;
    let Disk { driver, queue_depth, bytes, speed_mbps, .. } = bench.disk.clone();
    assert_eq!((driver.as_str(), queue_depth), ("uas", 14));
    assert_eq!((bytes, speed_mbps), (64 << 20, 5000));
    let tree = bench.vm.guest.stdout_of("lsusb -t")?;
    assert!(tree.contains("Driver=uas, 5000M"), "{tree}");
    Ok(())
}

#[test]
fn fio_moves_data_without_a_complaint_of_the_kernel() -> Result<()> {
    let Bench { vm, disk, .. } = &mut *BENCH.lock()?;
    vm.guest.forget_log()?;
    let report = Load::new(&disk.path(), Pattern::RandomRead).depth(14).seconds(1).run(&mut vm.guest)?;
    assert!(report.read.iops > 100.0, "{report:?}");
    assert_eq!(report.write.bytes, 0);
    let stamped = Load::new(&disk.path(), Pattern::RandomWrite).depth(14).bytes(4 << 20).verify();
    assert_eq!(stamped.run(&mut vm.guest)?.write.bytes, 4 << 20);
    let log = vm.guest.dmesg()?;
    assert_eq!(log.complaints(), [""; 0], "{log}");
    Ok(())
}

#[test]
fn the_conformance_suite_separates_passed_failed_and_skipped() -> Result<()> {
    let Bench { vm, disk, .. } = &mut *BENCH.lock()?;
    let verdict = Suite::new().tests("SCSI.Inquiry").writes().run(&mut vm.guest, &disk.generic_path())?;
    println!("{verdict}");
    // QEMU 7.2: the allocation length and the block limits page fail, the rest passes.
    assert!(verdict.passed.iter().any(|test| test == "Inquiry.Standard"), "{verdict}");
    assert!(verdict.failed.iter().any(|failure| failure.test == "Inquiry.BlockLimits"), "{verdict}");
    Ok(())
}

#[test]
#[ignore = "takes a minute and says nothing about a drive of ours"]
fn the_whole_conformance_suite_gives_the_known_baseline() -> Result<()> {
    let Bench { vm, disk, .. } = &mut *BENCH.lock()?;
    let verdict = Suite::new().writes().run(&mut vm.guest, &disk.generic_path())?;
    println!("{verdict}");
    assert_eq!((verdict.passed.len(), verdict.failed.len(), verdict.skips.len()), (516, 99, 452));
    Ok(())
}

#[test]
fn wireshark_dissects_the_captured_traffic() -> Result<()> {
    let Bench { vm, disk, .. } = &mut *BENCH.lock()?;
    let running = capture::start(&mut vm.guest, 0)?;
    vm.guest.enumerate_again()?;
    *disk = vm.guest.await_disks(1, Duration::from_secs(10))?.remove(0);
    vm.guest.stdout_of(&format!("dd if={} of=/dev/null bs=64k count=16", disk.path()))?;
    let capture = running.stop(&mut vm.guest)?;
    assert_eq!(capture.malformed()?, [""; 0]);
    let reads = capture.packets("uasp && scsi_sbc.opcode == 0x28")?;
    assert!(!reads.is_empty(), "no READ(10) among {:#?}", capture.packets("uasp")?);
    Ok(())
}

#[test]
fn files_go_to_the_guest_and_come_back() -> Result<()> {
    let mut bench = BENCH.lock()?;
    let place = Scratch::new()?;
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(place.path("file"), &bytes).expect("written");
    bench.vm.guest.push(&place.path("file"), "/tmp/file")?;
    assert!(bench.vm.guest.pull("/tmp/file")? == bytes, "the file has changed on its way");
    assert!(bench.vm.guest.pull("/tmp/nothing").is_err());
    Ok(())
}

#[test]
fn a_command_that_hangs_is_given_up_and_the_next_one_runs() -> Result<()> {
    let mut bench = BENCH.lock()?;
    let hung = bench.vm.guest.run_within(Duration::from_secs(1), "sleep 60").expect_err("hangs");
    assert!(hung.to_string().contains("not within 1s"), "{hung}");
    let output = bench.vm.guest.run("echo out; echo err >&2; exit 3")?;
    assert_eq!((output.status, output.stdout.as_str(), output.stderr.as_str()), (3, "out\n", "err\n"));
    Ok(())
}
