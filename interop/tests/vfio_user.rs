//! A USB controller of ours in virtual machines, over vfio-user: Linux of three releases, SeaBIOS, OVMF.
//!
//! A suite that cannot be reached makes its tests ignored, with the reason, never passed.

use std::{
    process::{Command, ExitCode},
    time::Duration,
};

use libtest_mimic::{Arguments, Trial};
use uaskit_interop::{
    Error, Result, boot_image,
    debian::Suite,
    drive::{Drive, binary},
    guest::{Disk, Guest},
    qemu::{Firmware, Machine},
    scratch::Scratch,
    trial,
};

/// The drives of one controller: serial number, further description, driver, queue depth, speed in Mb/s.
const DRIVES: &[(&str, &str, &str, u32, u32)] = &[
    ("streams", "streams=256", "uas", 254, 5000),
    ("bot", "transport=bot", "usb-storage", 1, 5000),
    ("high", "speed=high", "uas", 30, 480),
    ("full", "speed=full,transport=bot", "usb-storage", 1, 12),
];

/// Faults of the controller, from the mildest to those that end it: what is planned, a line of the guest's log, a cause of
/// `uaskit why`.
const FAULTS: &[(&[&str], &str, &str)] = &[
    (&["unknown-stream@1"], "for unknown stream ring", "stream-events"),
    (&["wrong-code@2"], "HC probably busted", "stream-events"),
    (&["wrong-pointer@2"], "not part of current TD", "stream-events"),
    (&["lose-event@2"], "uas_eh_abort_handler", "transport"),
    (&["ignore-doorbell@1"], "uas_eh_abort_handler", "transport"),
    (&["lose-event@2", "lose-stop@1"], "not responding to stop endpoint command", "controller-died"),
    (&["hse@1"], "Host System Error", "controller-died"),
];

const PLUG_LIMIT: Duration = Duration::from_secs(90);
const RUN_LIMIT: Duration = Duration::from_secs(120);
const BOOT_LIMIT: Duration = Duration::from_secs(90);
const IMAGE_BYTES: u64 = 64 << 20;

/// Times that the driver lets the controller go and takes it again under load.
const UNBINDS: u32 = 5;

fn main() -> ExitCode {
    let suites = [Suite::Installed, Suite::Trixie, Suite::TrixieBackports];
    let mut trials: Vec<Trial> = suites
        .into_iter()
        .map(|suite| trial(format!("four_drives::{suite}"), false, move || four_drives(suite, "messages")))
        .collect();
    trials.extend(suites.into_iter().map(|suite| {
        let is_long = suite == Suite::Trixie;
        trial(format!("mapped_doorbells::{suite}"), is_long, move || four_drives(suite, "mapped"))
    }));
    trials.push(trial("seabios".into(), false, || boots(Firmware::SeaBios)));
    trials.push(trial("ovmf".into(), false, || boots(Firmware::Ovmf)));
    trials.push(trial("a_second_machine".into(), false, a_second_machine));
    trials.push(trial("memory_that_is_not_shared".into(), false, memory_that_is_not_shared));
    trials.push(trial("controller_faults".into(), true, controller_faults));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A controller with the four drives.
fn serve(name: &str, images: &Scratch, doorbells: &str) -> Result<Drive> {
    let mut words = vec!["--doorbells".to_owned(), doorbells.to_owned()];
    for (serial, more, ..) in DRIVES {
        let image = images.image(serial, IMAGE_BYTES)?;
        words.push("--drive".to_owned());
        words.push(format!("image={},serial={serial},{more}", image.display()));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Drive::serve_host(name, &words)
}

fn four_drives(suite: Suite, doorbells: &str) -> Result<()> {
    let images = Scratch::new()?;
    let name = format!("vfio-user-{doorbells}-{suite}");
    let host = serve(&name, &images, doorbells)?;
    let mut vm = Machine::new(&name).kernel(suite).host(host.socket(), None).boot()?;
    let guest = &mut vm.guest;
    guest.await_disks(DRIVES.len(), PLUG_LIMIT)?;
    for (serial, _, driver, depth, speed) in DRIVES {
        let disk = guest.await_disk(serial, PLUG_LIMIT)?;
        let found = (disk.driver.as_str(), disk.queue_depth, disk.speed_mbps, disk.bytes);
        assert_eq!(found, (*driver, *depth, *speed, IMAGE_BYTES), "{serial}");
        if *speed >= 480 {
            holds_files(guest, &disk)?;
        }
    }
    let disk = guest.await_disk("streams", PLUG_LIMIT)?;
    verify(guest, &disk)?;
    let log = guest.dmesg()?;
    assert_eq!(log.complaints(), [""; 0], "{log}");
    unbinds_under_load(guest)?;
    Ok(())
}

/// Makes a file system, writes a file, reads it after the cache was dropped.
fn holds_files(guest: &mut Guest, disk: &Disk) -> Result<()> {
    let node = disk.path();
    let script = format!(
        "set -e; modprobe ext4; mkdir -p /mnt
         mkfs.ext4 -q {node}; mount -t ext4 {node} /mnt
         head -c 8000000 /dev/urandom >/mnt/a; sum=$(md5sum </mnt/a); umount /mnt
         echo 3 >/proc/sys/vm/drop_caches
         mount -t ext4 {node} /mnt; test \"$sum\" = \"$(md5sum </mnt/a)\"; test {} = usb-storage || fstrim /mnt; umount /mnt; e2fsck -fn {node}",
        disk.driver
    );
    guest.stdout_within(RUN_LIMIT, &script).map(drop)
}

/// Random writes at the full depth, each checked.
fn verify(guest: &mut Guest, disk: &Disk) -> Result<()> {
    let script = format!(
        "fio --name=v --filename={} --rw=randwrite --bsrange=512-128k --size=24m --iodepth=128 --ioengine=libaio \
         --direct=1 --verify=crc32c --minimal",
        disk.path()
    );
    guest.stdout_within(RUN_LIMIT, &script).map(drop)
}

/// The driver lets the controller go while all drives are read, and finds them again.
fn unbinds_under_load(guest: &mut Guest) -> Result<()> {
    let script = format!(
        "cd /sys/bus/pci/drivers/xhci_hcd; function=$(ls -d 0000:* | head -1)
         for round in $(seq {UNBINDS}); do
             for disk in /dev/sd?; do dd if=$disk of=/dev/null bs=64k 2>/dev/null & done
             sleep 0.3; echo $function >unbind; wait; echo $function >bind; sleep 2
         done"
    );
    guest.stdout_within(RUN_LIMIT, &script)?;
    guest.await_disks(DRIVES.len(), PLUG_LIMIT)?;
    let disk = guest.await_disk("high", PLUG_LIMIT)?;
    holds_files(guest, &disk)
}

fn boots(firmware: Firmware) -> Result<()> {
    let place = Scratch::new()?;
    let (name, image) = match firmware {
        Firmware::Ovmf => ("vfio-user-ovmf", boot_image::uefi(&place)?),
        _ => ("vfio-user-seabios", boot_image::bios(&place)?),
    };
    let host = Drive::serve_host(name, &[&image.display().to_string()])?;
    let vm = Machine::new(name).firmware(firmware).host(host.socket(), Some(0)).launch()?;
    vm.await_console(boot_image::WORDS, BOOT_LIMIT)
}

/// The server goes on without its machine, and serves the next one. One that is there keeps others out.
fn a_second_machine() -> Result<()> {
    let images = Scratch::new()?;
    let host = serve("vfio-user-second", &images, "messages")?;
    let mut first = Machine::new("vfio-user-first").survives_reboot().host(host.socket(), None).boot()?;
    first.guest.await_disks(DRIVES.len(), PLUG_LIMIT)?;
    first.reboot()?;
    first.guest.await_disks(DRIVES.len(), PLUG_LIMIT)?;
    let refused = Machine::new("vfio-user-refused").host(host.socket(), None).launch();
    assert!(refused.is_err() && host.printed().contains("another client is connected"), "{}", host.printed());
    drop(first);
    let mut second = Machine::new("vfio-user-second").host(host.socket(), None).boot()?;
    second.guest.await_disks(DRIVES.len(), PLUG_LIMIT)?;
    // Without its server a machine goes on; its controller is dead.
    drop(host);
    let dead = "timeout 20 dd if=/dev/sda of=/dev/null count=1 iflag=direct 2>/dev/null
                for second in $(seq 60); do dmesg | grep -q 'HC died' && exit 0; sleep 1; done; exit 1";
    second.guest.stdout_within(RUN_LIMIT, dead).map(drop)
}

/// QEMU gives memory that is not shared without a descriptor: the server says what to add.
fn memory_that_is_not_shared() -> Result<()> {
    let host = Drive::serve_host("vfio-user-private", &["--ram", "64M"])?;
    let refused = Machine::new("vfio-user-private").private_memory().host(host.socket(), None).launch();
    assert!(refused.is_err());
    let printed = host.printed();
    assert!(printed.contains("guest memory is not shared") && printed.contains("share=on"), "{printed}");
    Ok(())
}

/// Each fault shows in the guest's log as on silicon, and `uaskit why` names its cause.
fn controller_faults() -> Result<()> {
    let place = Scratch::new()?;
    let control = format!("unix:{}", place.path("control").display());
    let drive = |serial: &str| format!("ram=64M,streams=32,serial={serial}");
    let words = ["--control", &control, "--drive", &drive("first"), "--drive", &drive("second")];
    let host = Drive::serve_host("vfio-user-faults", &words)?;
    let mut vm = Machine::new("vfio-user-faults").host(host.socket(), None).boot()?;
    let guest = &mut vm.guest;
    let mut wrong = Vec::new();
    guest.await_disks(2, PLUG_LIMIT)?;
    uaskit(&["control", &control, "fault", "dead-port@1"])?;
    uaskit(&["control", &control, "attach", &drive("third")])?;
    await_lines(guest, &["Cannot enable. Maybe the USB cable is bad?"])?;
    wrong.extend(unexplained(&place, guest, "dead-port@1", "link")?);
    // The first drive is at port 16.
    uaskit(&["control", &control, "detach", "--port", "18"])?;
    for (faults, line, cause) in FAULTS {
        let disk = guest.await_disk("first", PLUG_LIMIT)?.name;
        guest.stdout_of(&format!("dmesg -c >/dev/null; echo 2 >/sys/block/{disk}/device/timeout"))?;
        for fault in *faults {
            uaskit(&["control", &control, "fault", fault])?;
        }
        let read = format!("dd if=/dev/{disk} of=/dev/null bs=4k count=16 iflag=direct || true");
        let read = guest.start(&read)?;
        let dies = *cause == "controller-died";
        let end = if dies { "USB disconnect" } else { "reset SuperSpeed USB device" };
        await_lines(guest, &[*line, end])?;
        guest.finish(read, RUN_LIMIT)?;
        wrong.extend(unexplained(&place, guest, &faults.join(" and "), cause)?);
        if dies {
            guest.enumerate_again()?;
        }
    }
    assert_eq!(wrong, [""; 0]);
    Ok(())
}

/// Waits until the guest's log has all of `words`.
fn await_lines(guest: &mut Guest, words: &[&str]) -> Result<()> {
    for words in words {
        let script = format!(
            "for second in $(seq 60); do dmesg | grep -q '{words}' && exit 0; sleep 1; done; dmesg; exit 1"
        );
        guest.stdout_within(RUN_LIMIT, &script)?;
    }
    Ok(())
}

/// Runs uaskit here. Returns what it prints; `why` has an exit code for each answer.
fn uaskit(words: &[&str]) -> Result<String> {
    let output = Command::new(binary()?).args(words).output().map_err(Error::io("run uaskit"))?;
    let failed = !output.status.success() && words[0] != "why";
    assert!(!failed, "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the answer of `uaskit why` to the guest's log alone, if it does not contain the cause.
fn unexplained(place: &Scratch, guest: &mut Guest, fault: &str, cause: &str) -> Result<Option<String>> {
    let (log, file) = (guest.dmesg()?.to_string(), place.path("dmesg"));
    std::fs::write(&file, &log).map_err(Error::io("write a log"))?;
    let answer = uaskit(&["why", "--json", "--from", &file.display().to_string()])?;
    let is_found = answer.contains(&format!("\"{cause}\""));
    Ok((!is_found).then(|| format!("{fault}: {answer}\n{log}")))
}
