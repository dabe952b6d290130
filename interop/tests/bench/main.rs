//! `uaskit bench` in a guest: each transport on the drive that it is for, stamps that come back, what is refused, Ctrl-C.
//! Afterwards the kernel's driver has the drive again.

mod broken;
mod units;

use std::time::Duration;

use serde_json::{Value, json};
use uaskit_interop::{
    Result, Shared,
    drive::{self, Drive, Ours},
    guest::{Disk, Guest},
    qemu::{Bus, Machine, Vm},
    scratch::Scratch,
    tools::{capture, uaskit::assert_verified},
};

const PLUG_LIMIT: Duration = Duration::from_secs(60);
const RUN_LIMIT: Duration = Duration::from_secs(180);

/// The serial number of our drive.
const OURS: &str = "bench-ours";

/// A guest with QEMU's drives of both kinds and one of ours.
struct Bench {
    vm: Vm,
    _ours: Drive,
    _images: Scratch,
}

fn boot() -> Result<Bench> {
    let images = Scratch::new()?;
    let [uas, bot] = [images.image("uas", 64 << 20)?, images.image("bot", 64 << 20)?];
    let ours = Drive::serve(OURS, &["--ram", "64M", "--temperature", "41"])?;
    let machine = Machine::new("bench").uas_disk("uas", &uas).storage_disk("bot", &bot);
    let mut vm = machine.redirect(&ours.plug()).boot()?;
    vm.guest.await_disks(3, PLUG_LIMIT)?;
    vm.guest.install(&drive::binary()?)?;
    Ok(Bench { vm, _ours: ours, _images: images })
}

static BENCH: Shared<Bench> = Shared::new(boot);

/// A guest with drives that are slow, odd, or not well.
struct Ward {
    vm: Vm,
    drives: Vec<Drive>,
    _images: Scratch,
}

/// At high speed without streams; and two on which something goes wrong, the second as long as it is plugged in.
const WARD: &[Ours] = &[
    ("bench-high", Bus::Ehci, &["--speed", "high"]),
    ("bench-faulty", Bus::Xhci, &["--fault", "stall-data@100", "--fault", "stall-status@400"]),
    ("bench-pulled", Bus::Xhci, &[]),
];

/// QEMU's drives at the speeds that the other guest has them not at: device, serial number, bus, transports.
const QEMUS: &[(&str, &str, Bus, &[&str])] = &[
    ("usb-uas", "bench-uas-high", Bus::Ehci, &["uas"]),
    ("usb-storage", "bench-storage-high", Bus::Ehci, &["bot", "turbo"]),
    ("usb-bot", "bench-bot-high", Bus::Ehci, &["bot", "turbo"]),
    ("usb-bot", "bench-bot-super", Bus::Xhci, &["bot", "turbo"]),
];

static WARDED: Shared<Ward> = Shared::new(|| {
    let images = Scratch::new()?;
    let mut machine = Machine::new("bench-ward").kernel_words("usb_storage.delay_use=0");
    for (kind, serial, bus, _) in QEMUS {
        machine = machine.numbered_disk(kind, serial, *bus, &images.image(serial, 64 << 20)?);
    }
    let (machine, drives) = drive::serve_all(machine, WARD, "64M")?;
    let mut vm = machine.boot()?;
    vm.guest.await_disks(WARD.len() + QEMUS.len(), PLUG_LIMIT)?;
    vm.guest.install(&drive::binary()?)?;
    Ok(Ward { vm, drives, _images: images })
});

/// The disk of QEMU that is driven by this driver, or ours.
fn disk(guest: &mut Guest, kind: &str) -> Result<Disk> {
    let disks = guest.await_disks(3, PLUG_LIMIT)?;
    let is_it = |disk: &&Disk| match kind {
        OURS => disk.serial == OURS,
        driver => disk.serial != OURS && disk.driver == driver,
    };
    Ok(disks.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} in {disks:?}")).clone())
}

/// Returns the JSON output of `uaskit bench WORDS --json`.
fn measure(guest: &mut Guest, words: &str) -> Result<Value> {
    let line = format!("uaskit bench {words} --seconds 0.5 --rounds 1 --json");
    let printed = guest.stdout_within(RUN_LIMIT, &line)?;
    Ok(serde_json::from_str(&printed).expect("it prints JSON"))
}

/// Random reads and writes with stamps, on these transports; the driver is bound again.
fn stamps_come_back(kind: &str, transport: &str, expected: &[&str]) -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    let guest = &mut bench.vm.guest;
    let before = disk(guest, kind)?;
    let port = &before.port;
    let words = format!(
        "{port} --transport {transport} --rw randrw --bs 8k --depth 8 --size 8M --verify --yes --write={port}"
    );
    let record = measure(guest, &words)?;
    // QEMU's drives have no thermometer; that they were asked has not upset them.
    let (celsius, source) =
        if kind == OURS { (json!(41.0), json!("log-page")) } else { (json!(null), json!(null)) };
    assert_eq!(record["target"]["temperature_c"], json!([celsius, celsius]));
    assert_eq!(record["target"]["temperature_source"], source);
    assert_eq!(
        (&record["error_counters"]["timeouts"], &record["error_counters"]["resets"]),
        (&0.into(), &0.into())
    );
    all_came_back(&record, expected, "zero-copy");
    assert_eq!(
        (&record["target"]["usb_port"], &record["interrupted"]),
        (&port.as_str().into(), &false.into())
    );
    let after = disk(guest, kind)?;
    assert_eq!((after.driver, after.queue_depth), (before.driver, before.queue_depth));
    Ok(())
}

/// Every stamp came back on these transports, and memory was the kernel's own or copied.
#[track_caller]
fn all_came_back(record: &Value, transports: &[&str], memory: &str) {
    assert_verified(record, transports);
    let engine = record["target"]["engine"].as_str().expect("the record names the engine");
    let routes: Vec<&str> = engine.split("; ").skip(1).collect();
    assert_eq!(routes.len(), transports.len(), "{engine}");
    assert!(routes.iter().all(|route| route.ends_with(memory)), "{engine}");
}

#[test]
fn stamps_come_back_over_uas_from_qemus_drive() -> Result<()> {
    stamps_come_back("uas", "uas", &["uas"])
}

#[test]
fn stamps_come_back_over_bot_and_turbo_from_qemus_drive() -> Result<()> {
    stamps_come_back("usb-storage", "bot", &["bot"])?;
    stamps_come_back("usb-storage", "turbo", &["turbo"])
}

#[test]
fn our_drive_is_measured_on_all_three_in_turns() -> Result<()> {
    stamps_come_back(OURS, "all", &["bot", "turbo", "uas"])
}

/// From one transport to the next the drive is ours: the kernel makes a disk of it once, at the end, whatever the end is.
#[test]
fn the_kernel_sees_no_disk_between_transports() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    let guest = &mut bench.vm.guest;
    for (kind, transport, driver) in [(OURS, "all", "uas"), ("usb-storage", "bot,turbo", "usb-storage")] {
        let before = disk(guest, kind)?;
        let port = &before.port;
        // Each depth is set up again on each transport.
        let words =
            format!("bench {port} --transport {transport} --rw randread --depth 1,4 --seconds 0.3 --json");
        for (ends, status) in [("wait $pid", 0), ("sleep 2; kill -INT $pid; wait $pid", 130)] {
            let mark = format!("{kind} {transport} {status}");
            let line = format!(
                "echo '{mark} begins' > /dev/kmsg; uaskit {words} --rounds 3 > /tmp/record & pid=$!; {ends}"
            );
            let output = guest.run(&line)?;
            assert_eq!(output.status, status, "{output:?}");
            let after = disk(guest, kind)?;
            assert_eq!((&after.driver, after.queue_depth), (&before.driver, before.queue_depth));
            let record: Value =
                serde_json::from_str(&guest.stdout_of("cat /tmp/record")?).expect("it prints JSON");
            let rows = record["rows"].as_array().expect("rows");
            let is_measured = |row: &&Value| row["ios"].as_u64() > Some(0);
            assert!(rows.iter().filter(is_measured).count() > 1, "{record}");
            let log = guest.stdout_of(&format!("dmesg | sed -n '/{mark} begins/,$p'"))?;
            let hosts: Vec<&str> = log.lines().filter(|line| line.contains("scsi host")).collect();
            assert!(matches!(hosts[..], [host] if host.contains(&format!(": {driver}"))), "{log}");
        }
    }
    Ok(())
}

/// Returns the JSON output of `uaskit bench` for random reads and writes with stamps, where usbfs
/// maps its memory so many times and refuses to from then on.
fn measure_refused(guest: &mut Guest, before: &Disk, words: &str, granted_count: usize) -> Result<Value> {
    let first = granted_count + 1;
    let refusal =
        if granted_count == 0 { "error=ENODEV".to_owned() } else { format!("error=ENOMEM:when={first}+") };
    let port = &before.port;
    let node = guest.stdout_of(&format!(
        "printf /dev/bus/usb/%03d/%03d $(cd /sys/bus/usb/devices/{port}; cat busnum devnum)"
    ))?;
    let trace = "/tmp/refused";
    let strace =
        format!("strace -f --seccomp-bpf -q -o {trace} -P {node} -e trace=mmap -e inject=mmap:{refusal}");
    let words = format!("{words} --rw randrw --size 8M --seconds 0.5 --rounds 1 --verify --yes --json");
    let line = format!("{strace} uaskit bench {port} {words} --write={port}");
    let printed = guest.stdout_within(RUN_LIMIT, &line)?;
    let asked = guest.stdout_of(&format!("cat {trace}"))?;
    let (refused, granted): (Vec<&str>, Vec<&str>) =
        asked.lines().filter(|line| line.contains(" mmap(")).partition(|line| line.ends_with(" (INJECTED)"));
    assert_eq!((refused.is_empty(), granted.len()), (false, granted_count), "{asked}");
    let after = guest.await_disk(&before.serial, PLUG_LIMIT)?;
    assert_eq!((&after.driver, after.queue_depth), (&before.driver, before.queue_depth));
    Ok(serde_json::from_str(&printed).expect("it prints JSON"))
}

/// Where a kernel has nothing to map, and where it has less than is wanted, it copies what is moved.
#[test]
fn stamps_come_back_where_memory_is_not_mapped() -> Result<()> {
    let all = ["bot", "turbo", "uas"];
    {
        let guest = &mut BENCH.lock()?.vm.guest;
        let (ours, qemus) = (disk(guest, OURS)?, disk(guest, "uas")?);
        let record = measure_refused(guest, &ours, "--transport all --bs 8k --depth 8", 0)?;
        all_came_back(&record, &all, "copied by the kernel");
        let record = measure_refused(guest, &ours, "--transport all --bs 512k --depth 4", 0)?;
        all_came_back(&record, &all, "copied by the kernel");
        let words = "--transport uas --bs 64k --depth 14";
        let record = measure_refused(guest, &qemus, words, 1)?;
        all_came_back(&record, &["uas"], "copied by the kernel");
    }
    let guest = &mut WARDED.lock()?.vm.guest;
    let high = guest.await_disk("bench-high", PLUG_LIMIT)?;
    let record = measure_refused(guest, &high, "--transport all --bs 64k --depth 4", 0)?;
    all_came_back(&record, &all, "copied by the kernel");
    Ok(())
}

/// The capture that our own drivers wrote of QEMU's drive: opened by tshark without complaint, with
/// the commands that it finds, and the streams that usbmon would not have.
#[test]
fn a_capture_of_our_drivers_has_what_tshark_finds_and_streams() -> Result<()> {
    let place = Scratch::new()?;
    let bench = &mut *BENCH.lock()?;
    let guest = &mut bench.vm.guest;
    for (kind, transport) in [("uas", "uas"), ("usb-storage", "bot")] {
        let port = disk(guest, kind)?.port;
        let file = "/tmp/own.pcapng";
        let words = "--rw randread --bs 8k --depth 4 --seconds 0.2 --rounds 1 --size 8M --snap 256 --json";
        let line =
            format!("uaskit bench {port} --transport {transport} {words} --capture {file} 2>/tmp/stderr");
        let printed = guest.stdout_within(RUN_LIMIT, &line)?;
        let record: Value = serde_json::from_str(&printed).expect("it prints JSON");
        let stderr = guest.stdout_of("cat /tmp/stderr")?;
        assert!(stderr.contains(" 0 events dropped"), "{stderr}");
        let own = place.path(transport);
        std::fs::write(&own, guest.pull(file)?).expect("it can be written");
        let capture = capture::written(&own)?;
        assert_eq!(capture.malformed()?, [""; 0]);
        let decoded = capture.decoded()?;
        let (command, is_right): (&str, fn(&Value) -> bool) = match transport {
            "uas" => ("uasp.iu_id == 1", |one| one["stream"] == one["tag"]),
            _ => ("usbms.dCBWSignature == 0x43425355", |one| one["stream"].is_null()),
        };
        let reads = decoded.commands(|one| one["opcode"] == 0x28 && one["bytes"] == 8192 && is_right(one));
        assert!(reads as u64 >= record["rows"][0]["ios"].as_u64().expect("a number"), "{reads} reads");
        assert_eq!(decoded.commands(|_| true), capture.count(command)?);
    }
    disk(guest, "uas")?;
    disk(guest, "usb-storage").map(drop)
}

#[test]
fn the_kernels_driver_is_measured_on_the_block_device() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    let path = disk(&mut bench.vm.guest, "uas")?.path();
    let words = format!("{path} --rw randwrite --bs 4k --depth 14 --size 8M --verify --yes --write={path}");
    let record = measure(&mut bench.vm.guest, &words)?;
    let row = &record["rows"][0];
    assert!(row["ios"].as_u64() > Some(0) && row["verify"]["wrong"] == 0, "{row}");
    assert_eq!(
        (&record["target"]["kind"], &record["target"]["driver"]),
        (&"block-device".into(), &"uas".into())
    );
    assert!(
        record["target"]["engine"].as_str().is_some_and(|engine| engine.contains("direct I/O")),
        "{record}"
    );
    Ok(())
}

#[test]
fn a_drive_in_use_is_refused_and_a_file_system_is_unharmed() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    let guest = &mut bench.vm.guest;
    let Disk { port, .. } = disk(guest, "uas")?;
    let path = disk(guest, "uas")?.path();
    let make = "mount -t ext4 $disk /mnt; dd if=/dev/urandom of=/mnt/file bs=1M count=8; sha256sum /mnt/file > /tmp/sum";
    guest.stdout_of(&format!("set -e; disk={path}; mkfs.ext4 -q -F $disk; {make}"))?;
    for words in [
        format!("{port} --rw read"),
        format!("{port} --rw write --yes --write={port}"),
        format!("{path} --rw write --yes --write={path}"),
    ] {
        let output = guest.run(&format!("uaskit bench {words} --seconds 0.1"))?;
        assert_eq!(output.status, 3, "{words}: {output:?}");
        assert!(output.stderr.contains("is mounted at /mnt"), "{words}: {output:?}");
    }
    guest.stdout_of("umount /mnt")?;
    measure(guest, &format!("{port} --transport uas --rw read --bs 64k --depth 4"))?;
    let path = disk(guest, "uas")?.path();
    guest.stdout_of(&format!(
        "set -e; mount -t ext4 {path} /mnt; sha256sum -c /tmp/sum; umount /mnt; e2fsck -fn {path}"
    ))?;
    Ok(())
}

#[test]
fn who_may_not_open_the_block_device_reads_at_the_port_and_does_not_write() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    let guest = &mut bench.vm.guest;
    let before = disk(guest, "uas")?;
    let (port, path) = (&before.port, before.path());
    let numbers = format!("$(cd /sys/bus/usb/devices/{port}; cat busnum devnum)");
    let node = guest.stdout_of(&format!("printf /dev/bus/usb/%03d/%03d {numbers}"))?;
    // As the rule of `uaskit list --udev` does.
    guest.stdout_of(&format!("chmod 666 {node}; chmod 600 {path}"))?;
    let unprivileged = "echo tester:x:65534:65534::/:/bin/sh > /etc/passwd; start-stop-daemon -S -c tester -x /usr/bin/uaskit --";
    let mut ask = |words: &str| {
        let words = format!("bench {port} --transport uas {words} --seconds 0.2 --rounds 1");
        guest.run(&format!("{unprivileged} {words}"))
    };
    let (read, written) = (ask("--rw read"), ask(&format!("--rw write --yes --write={port}")));
    guest.stdout_of(&format!("chmod 600 {node}"))?;
    let (read, written) = (read?, written?);
    assert_eq!((read.status, written.status), (0, 3), "{read:?} {written:?}");
    let unchecked = format!("this user may not open {path}, so that it is not known");
    assert!(
        read.stderr.contains(&format!("{port} is in use was checked in sysfs and procfs only: {unchecked}")),
        "{read:?}"
    );
    assert!(written.stderr.contains(&format!("refusing to overwrite {port}: {unchecked}")), "{written:?}");
    assert_eq!(disk(guest, "uas")?.driver, before.driver);
    Ok(())
}

#[test]
fn a_row_that_lacks_memory_ends_the_program_with_1() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    let guest = &mut bench.vm.guest;
    let port = disk(guest, "uas")?.port;
    let parameter = "/sys/module/usbcore/parameters/usbfs_memory_mb";
    let words = "--transport uas --rw read --bs 512k --depth 32,1 --seconds 0.2 --rounds 1 --json";
    guest.stdout_of(&format!("echo 1 > {parameter}"))?;
    let tight = guest.run(&format!("uaskit bench {port} {words}"))?;
    let remedy = tight.stderr.split('`').find(|quoted| quoted.ends_with(parameter)).unwrap_or_default();
    // In the guest everybody is root.
    let remedied = guest.run(&format!("{} && uaskit bench {port} {words}", remedy.replace("sudo ", "")));
    guest.stdout_of(&format!("echo 16 > {parameter}"))?;
    assert_eq!(tight.status, 1, "{tight:?}");
    assert!(tight.stderr.contains("usbfs memory limit exceeded"), "{tight:?}");
    let record: Value = serde_json::from_str(&tight.stdout).expect("it prints JSON");
    let (lacking, other) = (&record["rows"][0], &record["rows"][1]);
    assert!(lacking["failed"] == true && other["iops"].as_f64() > Some(0.0), "{record}");
    let remedied = remedied?;
    assert_eq!(remedied.status, 0, "after `{remedy}`: {remedied:?}");
    Ok(())
}

#[test]
fn ctrl_c_gives_the_driver_back_and_keeps_the_figures() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    let guest = &mut bench.vm.guest;
    let before = disk(guest, "uas")?;
    let line = format!(
        "uaskit bench {} --transport uas --rw randread --depth 4 --warm-up 0 --seconds 600 --json > /tmp/record & pid=$!
        sleep 3; kill -INT $pid; wait $pid; echo $?; cat /tmp/record",
        before.port
    );
    let printed = guest.stdout_within(RUN_LIMIT, &line)?;
    let (code, record) = printed.split_once('\n').expect("a code and a record");
    assert_eq!(code.trim(), "130");
    let record: Value = serde_json::from_str(record).expect("it prints JSON");
    assert!(record["interrupted"] == true && record["iops"].as_f64() > Some(0.0), "{record}");
    assert_eq!(disk(guest, "uas")?.driver, before.driver);
    Ok(())
}

#[test]
fn each_drive_is_measured_at_its_speed_on_its_transports_in_turns() -> Result<()> {
    let guest = &mut WARDED.lock()?.vm.guest;
    let ours = ("bench-high", Bus::Ehci, &["bot", "turbo", "uas"][..]);
    let qemus = QEMUS.iter().map(|&(_, serial, bus, transports)| (serial, bus, transports));
    for (serial, bus, transports) in qemus.chain([ours]) {
        let before = guest.await_disk(serial, PLUG_LIMIT)?;
        let (port, list) = (&before.port, transports.join(","));
        let words = "--rw randrw --bs 8k --depth 4 --size 8M --verify --yes";
        let record = measure(guest, &format!("{port} --transport {list} {words} --write={port}"))?;
        let speed = record["target"]["usb_speed"].as_str().unwrap_or_default();
        assert!(speed.contains(if bus == Bus::Ehci { "480 Mb/s" } else { "5 Gb/s" }), "{speed}: {record}");
        assert_verified(&record, transports);
        let after = guest.await_disk(serial, PLUG_LIMIT)?;
        assert_eq!((after.driver, after.queue_depth), (before.driver, before.queue_depth), "{serial}");
    }
    Ok(())
}

#[test]
fn recovered_faults_are_counted_in_the_record() -> Result<()> {
    let guest = &mut WARDED.lock()?.vm.guest;
    let port = guest.await_disk("bench-faulty", PLUG_LIMIT)?.port;
    let words = "--transport uas --rw randread --bs 4k --depth 4 --seconds 2 --rounds 1 --json";
    let printed = guest.stdout_within(RUN_LIMIT, &format!("uaskit bench {port} {words}"))?;
    let record: Value = serde_json::from_str(&printed).expect("it prints JSON");
    let (row, counters) = (&record["rows"][0], &record["error_counters"]);
    assert!(row["ios"].as_u64() > Some(500) && row["errors"] == 0, "{record}");
    assert!(counters["stalls"].as_u64() > Some(0) && counters["retries"].as_u64() > Some(0), "{counters}");
    Ok(())
}

#[test]
fn a_drive_that_is_unplugged_ends_its_row_and_the_program_with_1() -> Result<()> {
    let ward = &mut *WARDED.lock()?;
    let drive =
        ward.drives.iter().find(|drive| drive.plug().id == "bench-pulled").expect("it is served").plug();
    let disk = ward.vm.guest.await_disk("bench-pulled", PLUG_LIMIT)?;
    let (port, claimed) = (&disk.port, until_claimed(&disk));
    let words = "--transport bot,uas --rw randread --depth 4 --warm-up 0 --seconds 2 --rounds 50 --steady 0.01 --json";
    let job = ward.vm.guest.start(&format!("uaskit bench {port} {words}"))?;
    // Both transports have had a round by then, and another is in progress.
    ward.vm.guest.stdout_of(&format!("{claimed}sleep 5"))?;
    ward.vm.detach(&drive.id)?;
    let output = ward.vm.guest.finish(job, RUN_LIMIT)?;
    ward.vm.attach(&drive)?;
    assert_eq!(output.status, 1, "{}{}", output.stdout, output.stderr);
    let record: Value = serde_json::from_str(&output.stdout).expect("it prints JSON");
    let rows = record["rows"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["failed"] == true), "{record}");
    assert!(record["errors"].as_u64() > Some(0), "{record}");
    ward.vm.guest.await_disk("bench-pulled", PLUG_LIMIT).map(drop)
}

/// Waits until a program has the disk's interface.
fn until_claimed(disk: &Disk) -> String {
    let driver = format!("/sys/bus/usb/devices/{}:1.0/driver", disk.port);
    format!("while [ \"$(basename $(readlink {driver}))\" != usbfs ]; do sleep 0.1; done; ")
}
