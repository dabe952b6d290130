//! The harness on QEMU's own BOT drive, and what happens to a machine: pulling out, reset, reboot.

use std::time::Duration;

use serde_json::json;
use uaskit_interop::{
    Result, Shared,
    qemu::{Machine, Redirect, Vm},
    scratch::Scratch,
    tools::fio::{Load, Pattern},
};

struct Bench {
    vm: Vm,
    _images: Scratch,
}

static BENCH: Shared<Bench> = Shared::new(|| {
    let images = Scratch::new()?;
    let image = images.image("disk", 64 << 20)?;
    let vm = Machine::new("qemu-storage").storage_disk("disk0", &image).survives_reboot().boot()?;
    Ok(Bench { vm, _images: images })
});

const PLUG_LIMIT: Duration = Duration::from_secs(10);

#[test]
fn the_kernel_binds_usb_storage() -> Result<()> {
    let vm = &mut BENCH.lock()?.vm;
    let disk = vm.guest.await_disks(1, PLUG_LIMIT)?.remove(0);
    assert_eq!((disk.driver.as_str(), disk.queue_depth, disk.lun), ("usb-storage", 1, 0));
    let report =
        Load::new(&disk.path(), Pattern::Read).block_bytes(512 << 10).seconds(1).run(&mut vm.guest)?;
    assert!(report.read.bytes > 0, "{report:?}");
    Ok(())
}

#[test]
fn the_disk_is_there_again_after_reboot_and_reset() -> Result<()> {
    let vm = &mut BENCH.lock()?.vm;
    vm.reboot()?;
    assert_eq!(vm.guest.await_disks(1, PLUG_LIMIT)?[0].driver, "usb-storage");
    vm.reset()?;
    assert_eq!(vm.guest.await_disks(1, PLUG_LIMIT)?[0].driver, "usb-storage");
    Ok(())
}

#[test]
fn a_unplugged_disk_is_gone_and_comes_back() -> Result<()> {
    let vm = &mut BENCH.lock()?.vm;
    vm.guest.await_disks(1, PLUG_LIMIT)?;
    vm.detach("disk0-bridge")?;
    vm.guest.await_disks(0, PLUG_LIMIT)?;
    let device = json!({ "driver": "usb-storage", "id": "disk0-bridge", "drive": "disk0", "bus": "xhci.0" });
    vm.qmp.execute("device_add", device)?;
    vm.guest.await_disks(1, PLUG_LIMIT)?;
    Ok(())
}

#[test]
fn a_redirected_drive_without_server_can_be_plugged_in_and_out() -> Result<()> {
    let vm = &mut BENCH.lock()?.vm;
    let place = Scratch::new()?;
    let unserved = Redirect::new("unserved", &place.path("usbredir"));
    for _ in 0..2 {
        vm.attach(&unserved)?;
        vm.detach(&unserved.id)?;
    }
    let refused = vm.detach(&unserved.id).expect_err("is not plugged in");
    assert!(refused.to_string().contains("DeviceNotFound"), "{refused}");
    Ok(())
}

#[test]
fn a_file_system_is_made_mounted_and_checked() -> Result<()> {
    let vm = &mut BENCH.lock()?.vm;
    let disk = vm.guest.await_disks(1, PLUG_LIMIT)?.remove(0).path();
    vm.guest.forget_log()?;
    vm.guest
        .stdout_of(&format!("mkfs.ext4 -q {disk} && mount -t ext4 {disk} /mnt && echo kept > /mnt/file"))?;
    vm.guest.stdout_of("umount /mnt")?;
    vm.guest.stdout_of(&format!("e2fsck -fn {disk}"))?;
    let text = vm.guest.stdout_of(&format!("mount -t ext4 {disk} /mnt && cat /mnt/file && umount /mnt"))?;
    assert_eq!(text, "kept\n");
    let log = vm.guest.dmesg()?;
    assert_eq!(log.complaints(), [""; 0], "{log}");
    Ok(())
}
