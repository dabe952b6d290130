//! Drives that fail in mid-write: what was acknowledged is there, and what lies beside it is as it was.

use super::{PLUG_LIMIT, RUN_LIMIT, until_claimed};
use serde_json::Value;
use uaskit_interop::{
    Result,
    drive::{self, Drive, Ours},
    guest::{Disk, Output},
    qemu::{Bus, Machine, Vm},
};

/// Drives on which something goes wrong while they are written to, at a status that the kernel has not come to when it has looked at a
/// disk. The last two are stopped for a while and pulled out.
const BROKEN: &[Ours] = &[
    (LOST, Bus::Xhci, &["--fault", "lose-status@250"]),
    ("bench-lost-high", Bus::Ehci, &["--fault", "lose-status@250", "--speed", "high"]),
    ("bench-lost-bot", Bus::Xhci, &["--fault", "lose-status@250"]),
    ("bench-halted", Bus::Xhci, &["--fault", "stall-status@250"]),
    ("bench-halted-high", Bus::Ehci, &["--fault", "stall-status@250", "--speed", "high"]),
    ("bench-halted-bot", Bus::Xhci, &["--fault", "stall-status@250"]),
    (SLOW, Bus::Xhci, &[]),
    (UNPLUGGED, Bus::Xhci, &[]),
];

/// A status transfer that waits on a stream is cancelled, for which its endpoint is stopped. QEMU's controller forgets then on which lap the
/// rings of all streams are, and Linux does not remind it: so none may have come to its second lap, with 510 transfers.
const LOST: &str = "bench-lost";
const SLOW: &str = "bench-slow";
const UNPLUGGED: &str = "bench-unplugged";

/// Longer than a command is waited for, which is 30 seconds; no longer than until a reset of the unit is given up, 7 seconds later.
const STOPPED_SECONDS: u32 = 33;

/// Most drives are written to at the same time, since what is lost is waited for half a minute. One whose port is reset is by itself.
#[test]
fn what_was_acknowledged_is_there_when_a_drive_fails_in_mid_write() -> Result<()> {
    let (mut vm, drives) = boot_broken("bench-broken", BROKEN)?;
    let find = |serial| drives.iter().find(|drive| drive.plug().id == serial).expect("it is served");
    let (slow, unplugged) = (find(SLOW), find(UNPLUGGED).plug());
    let others: Vec<&str> = BROKEN.iter().map(|(serial, ..)| *serial).filter(|one| *one != SLOW).collect();
    are_written(&mut vm, &others, |vm| {
        vm.detach(&unplugged.id)?;
        vm.guest.stdout_of("sleep 1")?;
        vm.attach(&unplugged)
    })?;
    are_written(&mut vm, &[SLOW], |vm| {
        slow.freeze()?;
        vm.guest.stdout_of(&format!("sleep {STOPPED_SECONDS}"))?;
        slow.thaw()
    })
}

/// A guest with these drives, and in it a file system as a file, and its sum.
fn boot_broken(name: &str, ours: &[Ours]) -> Result<(Vm, Vec<Drive>)> {
    let machine = Machine::new(name).kernel_words("usb_storage.delay_use=0");
    let (machine, drives) = drive::serve_all(machine, ours, "64M")?;
    let mut vm = machine.boot()?;
    vm.guest.await_disks(ours.len(), PLUG_LIMIT)?;
    vm.guest.install(&drive::binary()?)?;
    let files = "-O ^has_journal -d /usr/share/interop";
    vm.guest
        .stdout_of(&format!("mkfs.ext4 -q {files} /tmp/files 8M && sha256sum < /tmp/files > /tmp/sum"))?;
    Ok((vm, drives))
}

/// Writes to the first blocks of these drives, and meanwhile something happens. What lies behind those blocks is as it was, and so is the
/// file system in it.
fn are_written(vm: &mut Vm, serials: &[&str], happens: impl FnOnce(&mut Vm) -> Result<()>) -> Result<()> {
    let (mut befores, mut jobs) = (Vec::new(), Vec::new());
    for serial in serials {
        let disk = vm.guest.await_disk(serial, PLUG_LIMIT)?;
        vm.guest.stdout_of(&format!("dd if=/tmp/files of={} bs=1M seek=32 oflag=direct", disk.path()))?;
        befores.push(disk);
    }
    for Disk { port, serial, .. } in &befores {
        let transport = if serial.contains("bot") { "bot" } else { "uas" };
        let (depth, seconds) = if *serial == LOST { (30, 3) } else { (8, 8) };
        let words =
            format!("--rw randwrite --bs 8k --depth {depth} --size 8M --seconds {seconds} --rounds 1");
        let line = format!(
            "uaskit bench {port} --transport {transport} {words} --verify --yes --json --write={port}"
        );
        jobs.push(vm.guest.start(&line)?);
    }
    vm.guest.stdout_of(&format!("{}sleep 3", befores.iter().map(until_claimed).collect::<String>()))?;
    happens(vm)?;
    for (before, job) in befores.iter().zip(jobs) {
        let Output { status, stdout, stderr } = vm.guest.finish(job, RUN_LIMIT)?;
        let record: Value =
            serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"));
        println!("{}: {status}, {}\n{stderr}", before.serial, record["error_counters"]);
        is_recorded(&before.serial, status, &record);
        let after = vm.guest.await_disk(&before.serial, PLUG_LIMIT)?;
        assert_eq!((&after.driver, after.queue_depth), (&before.driver, before.queue_depth), "{after:?}");
        let (path, copy) = (after.path(), "/tmp/copy");
        let read = format!("dd if={path} of={copy} bs=1M skip=32 count=8 iflag=direct");
        vm.guest.stdout_of(&format!("{read} && sha256sum < {copy} | cmp - /tmp/sum && e2fsck -fn {copy}"))?;
    }
    Ok(())
}

/// The record counts the faults of a broken drive, and recovered commands are not errors.
#[track_caller]
fn is_recorded(serial: &str, status: u8, record: &Value) {
    let (row, counters) = (&record["rows"][0], &record["error_counters"]);
    assert!(row["verify"]["checked"].as_u64() > Some(0) || serial == UNPLUGGED, "{record}");
    assert!(matches!(row["verify"]["wrong"].as_u64(), None | Some(0)), "{record}");
    if serial == UNPLUGGED {
        assert_eq!((status, &row["failed"]), (1, &true.into()), "{record}");
        assert!(record["errors"].as_u64() > Some(0), "{record}");
        return;
    }
    assert_eq!((status, &row["errors"]), (0, &0.into()), "{serial}: {record}");
    let (counted, never): (&[&str], &[&str]) = match serial {
        LOST | "bench-lost-high" => (&["timeouts", "task_aborts", "retries"], &["resets"]),
        "bench-lost-bot" => (&["timeouts", "resets", "retries"], &["task_aborts"]),
        // Whether the port is reset depends on what else is in flight.
        "bench-halted" => (&["stalls"], &["timeouts"]),
        SLOW => (&["timeouts", "task_aborts", "retries"], &[]),
        _ => (&["stalls"], &["timeouts", "resets"]),
    };
    for counter in counted {
        assert!(counters[counter].as_u64() > Some(0), "{serial}, {counter}: {counters}");
    }
    for counter in never {
        assert_eq!(counters[counter], 0, "{serial}, {counter}: {counters}");
    }
}
