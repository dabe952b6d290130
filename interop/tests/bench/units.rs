//! Drives with two logical units each.

use super::{PLUG_LIMIT, assert_verified, measure};
use uaskit_interop::{
    Result,
    drive::{self, Drive},
    guest::{Disk, Guest},
    qemu::Machine,
    scratch::Scratch,
};

/// Drives with two units each: kind, serial number, the number of the second unit, transports.
const TWO_UNITS: &[(&str, &str, u8, &[&str])] = &[
    ("usb-uas", "units-uas", 5, &["uas"]),
    ("usb-bot", "units-bot", 1, &["bot", "turbo"]),
    ("ours", "units-ours", 1, &["bot", "turbo", "uas"]),
];

/// Each unit of a drive is measured by its number, and written to if it is named; the other one is as it was, and must not be in use.
#[test]
fn each_unit_of_a_drive_is_measured_by_its_number() -> Result<()> {
    let images = Scratch::new()?;
    let mut machine = Machine::new("bench-units").kernel_words("usb_storage.delay_use=0");
    let mut drives = Vec::new();
    for (kind, serial, lun, _) in TWO_UNITS {
        let [first, second] =
            [images.image(serial, 32 << 20)?, images.image(&format!("{serial}-2"), 32 << 20)?];
        if *kind == "ours" {
            let drive = Drive::serve(serial, &["--ram", "32M", "--lun", &second.display().to_string()])?;
            machine = machine.redirect(&drive.plug());
            drives.push(drive);
        } else {
            machine = machine.units(kind, serial, &[(0, &first), (*lun, &second)]);
        }
    }
    let mut vm = machine.boot()?;
    vm.guest.await_disks(2 * TWO_UNITS.len(), PLUG_LIMIT)?;
    vm.guest.install(&drive::binary()?)?;
    for (kind, serial, lun, transports) in TWO_UNITS {
        for (number, other) in [(*lun, 0), (0, *lun)] {
            let before = unit(&mut vm.guest, serial, number)?;
            let (sum, other_sum) =
                (sum_of(&mut vm.guest, serial, number)?, sum_of(&mut vm.guest, serial, other)?);
            let (port, list) = (&before.port, transports.join(","));
            let name = if number == 0 { port.clone() } else { format!("{port}:lun{number}") };
            let words = format!("{port} --lun {number} --transport {list} --rw randrw --bs 8k --depth 4");
            let record = measure(&mut vm.guest, &format!("{words} --size 8M --verify --yes --write={name}"))?;
            assert_verified(&record, transports);
            let target = &record["target"];
            assert_eq!((&target["lun"], &target["name"]), (&number.into(), &name.as_str().into()));
            if *kind != "ours" {
                assert_eq!(target["serial"], format!("{serial}-{number}"));
            }
            assert_ne!(sum_of(&mut vm.guest, serial, number)?, sum, "{serial}, unit {number}");
            assert_eq!(sum_of(&mut vm.guest, serial, other)?, other_sum, "{serial}, unit {other}");
            let after = unit(&mut vm.guest, serial, number)?;
            assert_eq!((after.driver, after.queue_depth), (before.driver, before.queue_depth));
        }
        is_refused(&mut vm.guest, serial, *lun)?;
    }
    Ok(())
}

/// A unit that is not there, one that is not named, and one beside one that is mounted.
#[track_caller]
fn is_refused(guest: &mut Guest, serial: &str, lun: u8) -> Result<()> {
    let port = &unit(guest, serial, 0)?.port;
    let short = "--seconds 0.1 --rounds 1";
    let missing = guest.run(&format!("uaskit bench {port} --lun 7 --rw read {short}"))?;
    let reason = format!("the drive has no logical unit 7; it has 0 and {lun}");
    assert!(missing.status == 1 && missing.stderr.contains(&reason), "{missing:?}");
    let unnamed =
        guest.run(&format!("uaskit bench {port} --lun {lun} --rw write --yes --write={port} {short}"))?;
    let reason = format!("use --write={port}:lun{lun}");
    assert!(unnamed.status == 3 && unnamed.stderr.contains(&reason), "{unnamed:?}");
    let path = unit(guest, serial, 0)?.path();
    guest.stdout_of(&format!("mkfs.ext4 -q -F {path} && mount -t ext4 {path} /mnt"))?;
    let mounted = guest.run(&format!("uaskit bench {port} --lun {lun} --rw read {short}"))?;
    guest.stdout_of("umount /mnt")?;
    assert!(mounted.status == 3 && mounted.stderr.contains("is mounted at /mnt"), "{mounted:?}");
    Ok(())
}

/// The disk of a unit, when all are there.
fn unit(guest: &mut Guest, serial: &str, lun: u8) -> Result<Disk> {
    let disks = guest.await_disks(2 * TWO_UNITS.len(), PLUG_LIMIT)?;
    let found = disks.iter().find(|disk| disk.serial == serial && disk.lun == u64::from(lun));
    Ok(found.unwrap_or_else(|| panic!("no unit {lun} of {serial} in {disks:?}")).clone())
}

/// Returns the checksum of the beginning of a unit, as the kernel reads it.
fn sum_of(guest: &mut Guest, serial: &str, lun: u8) -> Result<String> {
    let path = unit(guest, serial, lun)?.path();
    guest.stdout_of(&format!("dd if={path} bs=1M count=8 iflag=direct | sha256sum"))
}
