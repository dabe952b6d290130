//! A record of QEMU's drives, served: programs of a guest see the same drive as the original.

use std::{fs, time::Duration};

use uaskit_interop::{
    Result, drive,
    drive::Drive,
    guest::{Disk, Guest},
    qemu::{Bus, Machine},
    scratch::Scratch,
};

const PLUG_LIMIT: Duration = Duration::from_secs(60);

/// Bytes of the disk, which are those of the image that the record is served with.
const DISK_BYTES: u64 = 64 << 20;

/// Programs that print what a drive says of itself; `DISK` and `NODE` are its nodes, `ID` its USB id.
const PROGRAMS: &[&str] = &[
    "smartctl -i DISK",
    "smartctl -i -d scsi DISK",
    "smartctl -i -d sat DISK",
    "sg_inq DISK",
    "sg_vpd -a DISK",
    "sg_opcodes NODE",
    "sg_opcodes -c 12h NODE",
    "sg_modes -a DISK",
    "sg_modes -6 -c 2 -a DISK",
    "sg_logs -a DISK",
    "sg_readcap -l DISK",
    "lsusb -v -d ID",
];

/// The output of each program, without the addresses and times that it has.
fn printed(guest: &mut Guest, disk: &Disk, id: &str) -> Result<Vec<Vec<String>>> {
    let mut texts = Vec::new();
    for program in PROGRAMS {
        let line =
            program.replace("DISK", &disk.path()).replace("NODE", &disk.generic_path()).replace("ID", id);
        let output = guest.run(&line)?;
        let text = format!("{}{}", output.stdout, output.stderr);
        let same = |line: &&str| !line.starts_with("Local Time is:") && !line.trim().is_empty();
        let lines = text.lines().filter(same).map(|line| match line.split_once(": ID ") {
            Some((_, id)) => format!("ID {id}"),
            None => line.to_owned(),
        });
        texts.push([vec![format!("$ {program}, status {}", output.status)], lines.collect()].concat());
    }
    Ok(texts)
}

/// Records QEMU's drive of that kind, serves the record, and compares what programs print of both.
fn same_after_recording(kind: &str, bus: Bus, name: &str, id: &str) -> Result<()> {
    let files = Scratch::new()?;
    let image = files.image(name, DISK_BYTES)?;
    let machine = Machine::new(&format!("record-{name}")).numbered_disk(kind, name, bus, &image);
    let mut vm = machine.kernel_words("usb_storage.delay_use=0").boot()?;
    vm.guest.install(&drive::binary()?)?;
    let disk = vm.guest.await_disk(name, PLUG_LIMIT)?;
    let original = printed(&mut vm.guest, &disk, id)?;
    let recorded = vm.guest.stdout_of(&format!("uaskit record {} --keep-serials", disk.port))?;
    let replaced = vm.guest.stdout_of(&format!("uaskit record {}", disk.port))?;
    assert_ne!(recorded, replaced);
    // The string descriptor: UTF-16, on one line.
    let string = name.bytes().map(|byte| format!("{byte:02x} 00")).collect::<Vec<_>>().join(" ");
    assert!(recorded.contains(&string) && !replaced.contains(&string), "{replaced}");
    vm.guest.await_disk(name, PLUG_LIMIT)?;
    drop(vm);
    let file = files.path("box.toml");
    fs::write(&file, &recorded).expect("the scratch folder is writable");
    let arguments = ["--ram", "64M", "--as", file.to_str().expect("a path of the scratch folder")];
    let drive = Drive::serve_as(&format!("served-{name}"), &arguments)?;
    let mut plug = drive.plug();
    plug.bus = bus;
    let machine = Machine::new(&format!("served-{name}")).redirect(&plug);
    let mut vm = machine.kernel_words("usb_storage.delay_use=0").boot()?;
    vm.guest.install(&drive::binary()?)?;
    let disk = vm.guest.await_disk(name, PLUG_LIMIT)?;
    let served = printed(&mut vm.guest, &disk, id)?;
    assert_eq!(served, original);
    let again = vm.guest.stdout_of(&format!("uaskit record {} --keep-serials", disk.port))?;
    assert_eq!(again, recorded);
    Ok(())
}

#[test]
fn a_guest_sees_a_recorded_uas_drive_as_the_original() -> Result<()> {
    same_after_recording("usb-uas", Bus::Xhci, "record-uas", "46f4:0003")
}

#[test]
fn a_guest_sees_a_recorded_uas_drive_of_high_speed_as_the_original() -> Result<()> {
    same_after_recording("usb-uas", Bus::Ehci, "record-high", "46f4:0003")
}

#[test]
fn a_guest_sees_a_recorded_bot_drive_as_the_original() -> Result<()> {
    same_after_recording("usb-storage", Bus::Xhci, "record-bot", "46f4:0001")
}
