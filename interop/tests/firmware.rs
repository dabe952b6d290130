//! Firmware boots from the drive: SeaBIOS in the way of a BIOS, OVMF in the way of UEFI.

use std::{path::Path, time::Duration};

use uaskit_interop::{
    Result, boot_image,
    drive::Drive,
    qemu::{Bus, Firmware, Machine},
    scratch::Scratch,
};

/// Firmware under emulation, on a host that is busy with other things.
const BOOT_LIMIT: Duration = Duration::from_secs(60);

/// Boots and waits for the words. The image is already there.
fn boots(firmware: Firmware, name: &str, image: &Path, bus: Bus, arguments: &[&str]) -> Result<()> {
    let image = image.display().to_string();
    let drive = Drive::serve(name, &[&[image.as_str()], arguments].concat())?;
    let mut redirect = drive.plug();
    redirect.bus = bus;
    redirect.boot_index = Some(0);
    let vm = Machine::new(name).firmware(firmware).redirect(&redirect).launch()?;
    vm.await_console(boot_image::WORDS, BOOT_LIMIT)
}

#[test]
fn seabios_boots_over_bot_at_super_speed() -> Result<()> {
    let place = Scratch::new()?;
    boots(Firmware::SeaBios, "seabios-super", &boot_image::bios(&place)?, Bus::Xhci, &[])
}

#[test]
fn seabios_boots_over_bot_at_high_speed() -> Result<()> {
    let place = Scratch::new()?;
    let arguments = ["--speed", "high", "--transport", "bot"];
    boots(Firmware::SeaBios, "seabios-bot", &boot_image::bios(&place)?, Bus::Ehci, &arguments)
}

/// Behind EHCI: SeaBIOS 1.16 takes a short packet from its xHCI driver for a failure, and every IU is short.
#[test]
fn seabios_boots_over_uas_at_high_speed() -> Result<()> {
    let place = Scratch::new()?;
    let arguments = ["--speed", "high", "--transport", "uas"];
    boots(Firmware::SeaBios, "seabios-uas", &boot_image::bios(&place)?, Bus::Ehci, &arguments)
}

#[test]
fn ovmf_boots_over_bot_at_super_speed() -> Result<()> {
    let place = Scratch::new()?;
    boots(Firmware::Ovmf, "ovmf-super", &boot_image::uefi(&place)?, Bus::Xhci, &[])
}
