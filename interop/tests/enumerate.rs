//! Enumeration of the drive by a Linux kernel at each speed and over each transport, before its
//! first use.

use std::time::Duration;

use uaskit_interop::{
    Result, Shared,
    drive::Drive,
    guest::Disk,
    qemu::{Bus, Machine, Vm},
};

/// Every kind of drive, in one guest.
struct Bench {
    vm: Vm,
    _drives: Vec<Drive>,
}

/// The name, which is the serial number as well; the controller; the arguments.
const KINDS: &[(&str, Bus, &[&str])] = &[
    ("super", Bus::Xhci, &[]),
    ("super256", Bus::Xhci, &["--streams", "256"]),
    ("super-uas", Bus::Xhci, &["--transport", "uas"]),
    ("super-bot", Bus::Xhci, &["--transport", "bot"]),
    ("high", Bus::Xhci, &["--speed", "high"]),
    ("high-bot", Bus::Xhci, &["--speed", "high", "--transport", "bot"]),
    ("high-ehci", Bus::Ehci, &["--speed", "high"]),
    ("full-bot", Bus::Xhci, &["--speed", "full", "--transport", "bot"]),
];

const PLUG_LIMIT: Duration = Duration::from_secs(60);

static BENCH: Shared<Bench> = Shared::new(|| {
    let mut machine = Machine::new("enumerate");
    let mut drives = Vec::new();
    for &(name, bus, arguments) in KINDS {
        let ram = ["--ram", "16M"];
        let drive = Drive::serve(name, &[&ram[..], arguments].concat())?;
        let mut redirect = drive.plug();
        redirect.bus = bus;
        machine = machine.redirect(&redirect);
        drives.push(drive);
    }
    let mut vm = machine.boot()?;
    vm.guest.await_disks(KINDS.len(), PLUG_LIMIT)?;
    Ok(Bench { vm, _drives: drives })
});

/// Driver, queue depth and speed in Mbit/s that the kernel has settled on.
fn settled(serial: &str) -> Result<(String, u32, u32)> {
    let disk: Disk = BENCH.lock()?.vm.guest.await_disk(serial, PLUG_LIMIT)?;
    assert_eq!(disk.bytes, 16 << 20, "{disk:#?}");
    Ok((disk.driver, disk.queue_depth, disk.speed_mbps))
}

/// The verbose listing of one device.
fn lsusb(serial: &str) -> Result<String> {
    let mut bench = BENCH.lock()?;
    let disk = bench.vm.guest.await_disk(serial, PLUG_LIMIT)?;
    let sysfs = format!("/sys/bus/usb/devices/{}", disk.port);
    bench.vm.guest.stdout_of(&format!("lsusb -v -s $(cat {sysfs}/busnum):$(cat {sysfs}/devnum)"))
}

#[test]
fn at_super_speed_uas_keeps_30_commands_on_32_streams() -> Result<()> {
    assert_eq!(settled("super")?, ("uas".into(), 30, 5000));
    Ok(())
}

/// Linux asks for 256 streams, QEMU's controller grants 255, and `uas` keeps two back.
#[test]
fn at_super_speed_uas_keeps_253_commands_on_256_streams() -> Result<()> {
    assert_eq!(settled("super256")?, ("uas".into(), 253, 5000));
    Ok(())
}

#[test]
fn a_drive_that_is_uas_alone_is_bound_as_well() -> Result<()> {
    assert_eq!(settled("super-uas")?, ("uas".into(), 30, 5000));
    Ok(())
}

#[test]
fn at_high_speed_uas_keeps_30_commands_without_streams() -> Result<()> {
    assert_eq!(settled("high")?, ("uas".into(), 30, 480));
    assert_eq!(settled("high-ehci")?, ("uas".into(), 30, 480));
    Ok(())
}

#[test]
fn a_drive_that_is_bot_alone_is_bound_at_every_speed() -> Result<()> {
    assert_eq!(settled("super-bot")?, ("usb-storage".into(), 1, 5000));
    assert_eq!(settled("high-bot")?, ("usb-storage".into(), 1, 480));
    assert_eq!(settled("full-bot")?, ("usb-storage".into(), 1, 12));
    Ok(())
}

#[test]
fn lsusb_names_driver_and_speed_of_each_drive() -> Result<()> {
    let tree = BENCH.lock()?.vm.guest.stdout_of("lsusb -t")?;
    let count = |words: &str| tree.lines().filter(|line| line.trim_end().ends_with(words)).count();
    for (words, drives) in [
        ("Driver=uas, 5000M", 3),
        ("Driver=uas, 480M", 2),
        ("Driver=usb-storage, 5000M", 1),
        ("Driver=usb-storage, 480M", 1),
        ("Driver=usb-storage, 12M", 1),
    ] {
        assert_eq!(count(words), drives, "{words} in\n{tree}");
    }
    Ok(())
}

#[test]
fn lsusb_reads_both_transports_out_of_the_descriptors() -> Result<()> {
    let listed = lsusb("super")?;
    for words in [
        "bcdUSB               3.",
        "bMaxPacketSize0         9",
        "idVendor           0x1209",
        "iSerial                 3 super",
        "bNumInterfaces          1",
        "bInterfaceProtocol     80",
        "bInterfaceProtocol     98",
        "Binary Object Store Descriptor:",
        "SuperSpeed USB Device Capability:",
    ] {
        assert!(listed.contains(words), "{words:?} in\n{listed}");
    }
    let pipes = ["Command pipe", "Status pipe", "Data-in pipe", "Data-out pipe"];
    assert!(pipes.iter().all(|pipe| listed.contains(pipe)), "{listed}");
    assert_eq!(listed.matches("MaxStreams             32").count(), 3, "{listed}");
    Ok(())
}

#[test]
fn below_super_speed_there_are_no_streams() -> Result<()> {
    let listed = lsusb("high")?;
    assert!(!listed.contains("MaxStreams"), "{listed}");
    assert_eq!(listed.matches("wMaxPacketSize     0x0200").count(), 6, "{listed}");
    assert_eq!(lsusb("full-bot")?.matches("wMaxPacketSize     0x0040").count(), 2);
    Ok(())
}

/// lsusb marks what it cannot make sense of.
#[test]
fn no_descriptor_is_strange_to_lsusb() -> Result<()> {
    for (serial, _, _) in KINDS {
        let listed = lsusb(serial)?;
        for strange in ["junk at", "unknown", "UNRECOGNIZED", "Warning", "can't get", "invalid"] {
            let line = listed.lines().find(|line| line.to_lowercase().contains(&strange.to_lowercase()));
            assert_eq!(line, None, "of {serial}\n{listed}");
        }
    }
    Ok(())
}

#[test]
fn the_kernel_finds_nothing_to_complain_about() -> Result<()> {
    let guest = &mut BENCH.lock()?.vm.guest;
    for disk in guest.disks()? {
        guest.stdout_of(&format!("dd if={0} of=/dev/null bs=1M iflag=direct && dd if=/dev/zero of={0} bs=1M count=4 oflag=direct conv=fsync", disk.path()))?;
    }
    let log = guest.dmesg()?;
    assert_eq!(log.complaints(), [""; 0], "{log}");
    Ok(())
}
