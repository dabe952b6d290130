//! Captures of the guest's USB traffic with the drive in Wireshark's dissector.

use std::time::Duration;

use uaskit_interop::{
    Result, Shared,
    drive::Drive,
    qemu::Machine,
    scratch::Scratch,
    tools::capture::{self, Capture},
};

const PLUG_LIMIT: Duration = Duration::from_secs(60);

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

/// `uaskit decode` finds the commands and statuses that tshark finds, on BOT and on UAS with and without streams: as many of each.
#[test]
fn decode_counts_what_tshark_counts() -> Result<()> {
    let capture = CAPTURE.lock()?;
    let decoded = capture.decoded()?;
    let commands = |transport: &str, opcode: u8| {
        decoded.commands(|one| one["transport"] == transport && one["opcode"] == opcode)
    };
    // READ(10), WRITE(10), SYNCHRONIZE CACHE(10), INQUIRY, TEST UNIT READY, READ CAPACITY(16), MODE SENSE(6).
    for opcode in [0x28, 0x2a, 0x35, 0x12, 0x00, 0x9e, 0x1a] {
        let wrapper = format!("usbms.dCBWSignature == 0x43425355 && scsi_sbc.opcode == {opcode}");
        assert_eq!(commands("BOT", opcode), capture.count(&wrapper)?, "{wrapper}");
        let unit = format!("uasp.iu_id == 1 && scsi_sbc.opcode == {opcode}");
        assert_eq!(commands("UAS", opcode), capture.count(&unit)?, "{unit}");
    }
    let ended = |outcome: &str| decoded.commands(|one| one["outcome"] == outcome);
    for (filter, outcome) in [
        ("usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == 0", "passed"),
        ("usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == 1", "failed"),
        ("uasp.iu_id == 3 && uasp.sense.status == 0", "GOOD"),
        ("uasp.iu_id == 3 && uasp.sense.status == 2", "CHECK CONDITION"),
    ] {
        assert_eq!(ended(outcome), capture.count(filter)?, "{filter}");
    }
    let all = decoded.commands(|_| true);
    assert_eq!(all, capture.count("usbms.dCBWSignature == 0x43425355 || uasp.iu_id == 1")?);
    Ok(())
}

/// Four reads and writes of 64 KiB on each of three drives, all of their data found, although usbmon does not record streams; and a drive
/// without faults has no finding.
#[test]
fn decode_gives_each_command_its_data() -> Result<()> {
    let decoded = CAPTURE.lock()?.decoded()?;
    for opcode in [0x28, 0x2a] {
        let all = decoded.commands(|one| one["opcode"] == opcode);
        let whole = decoded.commands(|one| {
            one["opcode"] == opcode
                && one["bytes"].as_u64() == one["blocks"].as_u64().map(|blocks| blocks * 512)
        });
        assert_eq!(whole, all, "{opcode:#x}");
        let long = decoded.commands(|one| one["opcode"] == opcode && one["bytes"] == 65_536);
        assert!(long >= 12, "{opcode:#x}: {long}");
    }
    assert_eq!(decoded.end()["discarded"]["data_without_command"], 0);
    let devices = [
        "residue-too-small",
        "residue-too-large",
        "csw-tag",
        "status-without-command",
        "ready-without-command",
        "good-without-data",
    ];
    let faults = decoded.faults();
    assert!(devices.iter().all(|fault| !faults.contains(fault)), "{faults:?}");
    Ok(())
}

/// The server's own capture has streams, is opened without complaint, and holds the commands that
/// tshark finds.
#[test]
fn a_served_drive_captures_itself() -> Result<()> {
    let place = Scratch::new()?;
    let file = place.path("drive.pcapng");
    let name = file.display().to_string();
    let mut drive = Drive::serve("wire-itself", &["--ram", "16M", "--capture", &name, "--snap", "4K"])?;
    {
        let guest = &mut Machine::new("wire-itself").redirect(&drive.plug()).boot()?.guest;
        for disk in guest.await_disks(1, PLUG_LIMIT)? {
            let disk = disk.path();
            guest
                .stdout_of(&format!("dd if=/dev/urandom of={disk} bs=64k count=4 oflag=direct conv=fsync"))?;
            guest.stdout_of(&format!("dd if={disk} of=/dev/null bs=64k count=4 iflag=direct"))?;
        }
    }
    drive.interrupt()?;
    assert!(drive.printed().contains("0 events dropped"), "{}", drive.printed());
    let capture = capture::written(&file)?;
    assert_eq!(capture.malformed()?, [""; 0]);
    let decoded = capture.decoded()?;
    for opcode in [0x28, 0x2a] {
        let found = decoded.commands(|one| one["opcode"] == opcode && one["stream"] == one["tag"]);
        assert_eq!(found, capture.count(&format!("uasp.iu_id == 1 && scsi_sbc.opcode == {opcode}"))?);
        assert!(found >= 4, "{opcode:#x}: {found}");
    }
    Ok(())
}

/// So is what a benchmark writes, and it has what was measured.
#[test]
fn a_benchmark_captures_itself() -> Result<()> {
    let short = [
        "--size",
        "16M",
        "--rw",
        "randread",
        "--bs",
        "8K",
        "--depth",
        "1",
        "--seconds",
        "0.02",
        "--rounds",
        "1",
    ];
    let (capture, printed) = capture::measured(&[&short[..], &["--json", "--snap", "128"]].concat())?;
    let record: serde_json::Value = serde_json::from_str(&printed).expect("it prints JSON");
    assert_eq!(capture.malformed()?, [""; 0]);
    let decoded = capture.decoded()?;
    let reads = decoded.commands(|one| one["opcode"] == 0x28 && one["stream"] == one["tag"]);
    assert_eq!(reads, capture.count("uasp.iu_id == 1 && scsi_sbc.opcode == 0x28")?);
    assert!(reads as u64 >= record["rows"][0]["ios"].as_u64().expect("a number"), "{reads} reads");
    assert_eq!(decoded.commands(|_| true), capture.count("uasp.iu_id == 1")?);
    Ok(())
}
