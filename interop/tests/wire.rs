//! What Wireshark's dissector makes of the guest's USB traffic with the drive.

use std::time::Duration;

use uaskit_interop::{
    Result, Shared,
    drive::Drive,
    qemu::{Machine, Vm},
    tools::capture::{self, Capture},
};

/// A capture of each transport: plugged in, read, written, flushed.
struct Bench {
    vm: Vm,
    _drives: Vec<Drive>,
}

const PLUG_LIMIT: Duration = Duration::from_secs(20);

static BENCH: Shared<Bench> = Shared::new(|| {
    let bot = Drive::serve("wire-bot", &["--ram", "16M", "--transport", "bot"])?;
    let uas = Drive::serve("wire-uas", &["--ram", "16M"])?;
    let high = Drive::serve("wire-high", &["--ram", "16M", "--speed", "high"])?;
    let drives = vec![bot, uas, high];
    let machine = drives.iter().fold(Machine::new("wire"), |machine, drive| machine.redirect(&drive.plug()));
    let mut vm = machine.boot()?;
    vm.guest.await_disks(drives.len(), PLUG_LIMIT)?;
    Ok(Bench { vm, _drives: drives })
});

/// Captures the arrival of all drives, and some reads and writes on one.
fn captured(serial: &str) -> Result<Capture> {
    let guest = &mut BENCH.lock()?.vm.guest;
    let running = capture::start(guest, 0)?;
    guest.enumerate_again()?;
    guest.await_disks(3, PLUG_LIMIT)?;
    let disk = guest.await_disk(serial, PLUG_LIMIT)?.path();
    guest.stdout_of(&format!(
        "dd if=/dev/urandom of={disk} bs=64k count=8 oflag=direct conv=fsync; dd if={disk} of=/dev/null bs=64k count=8 iflag=direct"
    ))?;
    running.stop(guest)
}

/// Every filter selects something, and nothing is malformed.
fn is_dissected(capture: &Capture, filters: &[&str]) -> Result<()> {
    assert_eq!(capture.malformed()?, [""; 0]);
    for filter in filters {
        assert!(!capture.packets(filter)?.is_empty(), "nothing is {filter}");
    }
    Ok(())
}

#[test]
fn bot_is_dissected_down_to_scsi() -> Result<()> {
    let capture = captured("wire-bot")?;
    is_dissected(
        &capture,
        &[
            "usbms.dCBWSignature == 0x43425355 && scsi_sbc.opcode == 0x28",
            "usbms.dCBWSignature && scsi_sbc.opcode == 0x2a",
            "usbms.dCBWSignature && scsi_sbc.opcode == 0x35",
            "usbms.dCSWStatus == 0",
            "usbms.setup.maxlun == 0",
        ],
    )
}

#[test]
fn uas_is_dissected_down_to_scsi() -> Result<()> {
    is_dissected(
        &captured("wire-uas")?,
        &["uasp && scsi_sbc.opcode == 0x28", "uasp && scsi_sbc.opcode == 0x2a", "uasp && scsi.status == 0"],
    )
}

#[test]
fn the_ready_units_of_high_speed_are_dissected() -> Result<()> {
    is_dissected(&captured("wire-high")?, &["uasp.iu_id == 6", "uasp.iu_id == 7", "uasp.iu_id == 3"])
}
