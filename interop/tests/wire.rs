//! What Wireshark's dissector makes of the guest's USB traffic with the drive.

use std::time::Duration;

use uaskit_interop::{
    Result, Shared,
    drive::Drive,
    qemu::Machine,
    tools::capture::{self, Capture},
};

const PLUG_LIMIT: Duration = Duration::from_secs(20);

/// The arrival of a drive for each transport, and some writes, a flush and some reads on each.
static CAPTURE: Shared<Capture> = Shared::new(|| {
    let drives = [
        Drive::serve("wire-bot", &["--ram", "16M", "--transport", "bot"])?,
        Drive::serve("wire-uas", &["--ram", "16M"])?,
        Drive::serve("wire-high", &["--ram", "16M", "--speed", "high"])?,
    ];
    let machine = drives.iter().fold(Machine::new("wire"), |machine, drive| machine.redirect(&drive.plug()));
    let guest = &mut machine.boot()?.guest;
    guest.await_disks(drives.len(), PLUG_LIMIT)?;
    let running = capture::start(guest, 0)?;
    guest.enumerate_again()?;
    for disk in guest.await_disks(drives.len(), PLUG_LIMIT)? {
        let disk = disk.path();
        guest.stdout_of(&format!("dd if=/dev/urandom of={disk} bs=64k count=4 oflag=direct conv=fsync"))?;
        guest.stdout_of(&format!("dd if={disk} of=/dev/null bs=64k count=4 iflag=direct"))?;
    }
    running.stop(guest)
});

/// Each of these filters selects something.
fn is_dissected(filters: &[&str]) -> Result<()> {
    let capture = CAPTURE.lock()?;
    for filter in filters {
        assert!(!capture.packets(filter)?.is_empty(), "nothing is {filter}");
    }
    Ok(())
}

#[test]
fn nothing_is_malformed() -> Result<()> {
    assert_eq!(CAPTURE.lock()?.malformed()?, [""; 0]);
    Ok(())
}

#[test]
fn bot_is_dissected_down_to_scsi() -> Result<()> {
    is_dissected(&[
        "usbms.setup.maxlun == 0",
        "usbms.dCBWSignature == 0x43425355 && scsi_sbc.opcode == 0x28",
        "usbms.dCBWSignature == 0x43425355 && scsi_sbc.opcode == 0x2a",
        "usbms.dCBWSignature == 0x43425355 && scsi_sbc.opcode == 0x35",
        "usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == 0",
    ])
}

#[test]
fn uas_with_streams_is_dissected_down_to_scsi() -> Result<()> {
    const AT_SUPER_SPEED: &str = "uasp && !uasp.tag_read_ready_frame && !uasp.tag_write_ready_frame";
    for filter in ["scsi_sbc.opcode == 0x28", "scsi_sbc.opcode == 0x2a", "uasp.sense.status == 0"] {
        is_dissected(&[&format!("{AT_SUPER_SPEED} && {filter}")])?;
    }
    is_dissected(&["uasp.pipe_usage.bPipeID == 1", "uasp.pipe_usage.bPipeID == 4"])
}

/// At high speed the dissector finds the data of each command.
#[test]
fn uas_without_streams_is_dissected_with_its_data() -> Result<()> {
    is_dissected(&[
        "uasp.iu_id == 6",
        "uasp.iu_id == 7",
        "uasp.tag_read_ready_frame",
        "uasp.tag_write_ready_frame",
    ])
}
