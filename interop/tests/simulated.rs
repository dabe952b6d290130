//! What Wireshark's dissector makes of captures of the simulated world: the commands that ran, no more and no fewer.

use uaskit_interop::{
    Result, Shared,
    tools::capture::{self, Capture},
};

/// Commands of each run that are measured, and the depth of the run on UAS. On BOT one at a time is under way.
const COMMANDS: usize = 100;
const DEPTH: usize = 7;

const RUN: &[&str] = &["--commands", "100", "--depth", "7"];

static READS: Shared<Capture> = Shared::new(|| capture::simulated(RUN));
static WRITES: Shared<Capture> = Shared::new(|| capture::simulated(&[RUN, &["--write"]].concat()));
static CUT: Shared<Capture> = Shared::new(|| capture::simulated(&[RUN, &["--snap", "512"]].concat()));
static PACKETS: Shared<Capture> =
    Shared::new(|| capture::simulated(&[RUN, &["--capture-as", "packets"]].concat()));

static AT_HIGH_SPEED: Shared<Capture> =
    Shared::new(|| capture::simulated(&[RUN, &["--capture-as", "packets", "--speed", "high"]].concat()));

/// Fails for each filter that does not select so many packets.
fn counts(capture: &Shared<Capture>, expected: &[(&str, usize)]) -> Result<()> {
    let capture = capture.lock()?;
    for &(filter, count) in expected {
        assert_eq!(capture.count(filter)?, count, "{filter}");
    }
    Ok(())
}

/// Fails unless as many statuses are found as reached the driver, and perhaps some of the last depth: they have crossed the
/// link when the run ends, and wait for the interrupt.
fn counts_ended(capture: &Shared<Capture>, filter: &str, reached: usize) -> Result<()> {
    let count = capture.lock()?.count(filter)?;
    assert!(
        (reached..=reached + DEPTH).contains(&count),
        "{filter}: {count}, of {reached} and {DEPTH} at most"
    );
    Ok(())
}

#[test]
fn nothing_is_malformed() -> Result<()> {
    for capture in [&READS, &WRITES, &CUT, &PACKETS, &AT_HIGH_SPEED] {
        assert_eq!(capture.lock()?.malformed()?, [""; 0]);
    }
    Ok(())
}

/// TEST UNIT READY fails, since the drive has just been plugged in, and REQUEST SENSE says so; then one command that is not
/// measured, those that are, and the one that is under way when the run ends.
#[test]
fn over_bot_the_commands_that_ran_are_found() -> Result<()> {
    for (capture, operation_code) in [(&READS, "0x28"), (&WRITES, "0x2a")] {
        let wrapper = "usbms.dCBWSignature == 0x43425355 && scsi_sbc.opcode ==";
        counts(
            capture,
            &[
                ("usbms.dCBWSignature == 0x43425355", COMMANDS + 4),
                (&format!("{wrapper} {operation_code}"), COMMANDS + 2),
                (&format!("{wrapper} 0x00"), 1),
                (&format!("{wrapper} 0x03"), 1),
                ("usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == 0", COMMANDS + 2),
                ("usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == 1", 1),
            ],
        )?;
    }
    Ok(())
}

/// As over BOT, but the sense data come with the status, and as many as are under way before and after those that count.
#[test]
fn over_uas_the_commands_that_ran_are_found() -> Result<()> {
    for (capture, operation_code) in [(&READS, "0x28"), (&WRITES, "0x2a")] {
        counts(
            capture,
            &[
                ("uasp.iu_id == 1", COMMANDS + 2 * DEPTH + 1),
                (&format!("uasp.iu_id == 1 && scsi_sbc.opcode == {operation_code}"), COMMANDS + 2 * DEPTH),
                ("uasp.iu_id == 3 && uasp.sense.status == 2", 1),
            ],
        )?;
        counts_ended(capture, "uasp.iu_id == 3 && uasp.sense.status == 0", COMMANDS + DEPTH)?;
    }
    Ok(())
}

/// Endpoint 1 brings data, 2 takes them, 3 brings statuses, 4 takes commands, and has no streams.
#[test]
fn each_record_of_an_endpoint_with_streams_says_which() -> Result<()> {
    const ON_UAS: &str = "usb.bus_id == 2 && usb.endpoint_address.number";
    for capture in [&READS, &WRITES] {
        counts(
            capture,
            &[
                (&format!("{ON_UAS} in {{1..3}} && !frame.comment"), 0),
                (&format!("{ON_UAS} == 4 && frame.comment"), 0),
                ("usb.bus_id == 1 && frame.comment", 0),
                // A status and data for each command, and a status for TEST UNIT READY. Of what is under way at the
                // end some data have ended, and no status.
                ("frame.comment && usb.urb_type == 'S'", 2 * (COMMANDS + 2 * DEPTH) + 1),
            ],
        )?;
        let ended = format!("{ON_UAS} == 3 && frame.comment && usb.urb_type == 'C'");
        counts_ended(capture, &ended, COMMANDS + DEPTH + 1)?;
        let same =
            capture.lock()?.count(r#"frame.comment == "stream 3" && uasp.iu_id == 3 && uasp.tag == 3"#)?;
        let other =
            capture.lock()?.count(r#"frame.comment == "stream 3" && uasp.iu_id == 3 && uasp.tag != 3"#)?;
        assert!(same > 0 && other == 0, "the tag of a status is its stream: {same}, {other}");
    }
    Ok(())
}

#[test]
fn payload_that_was_cut_does_not_hide_a_command() -> Result<()> {
    counts(
        &CUT,
        &[
            ("usb.bus_id == 1 && frame.cap_len < frame.len", COMMANDS + 1),
            ("uasp.iu_id == 1", COMMANDS + 2 * DEPTH + 1),
        ],
    )
}

/// With 512 bytes a packet the dissector puts transfers together, and opens what is inside of BOT. Of UAS it finds what is an IU,
/// and does not say which. The command that is under way when the run ends has not been sent. Data of
/// whole packets do not end for the dissector before the status, which it takes for a part of them.
#[test]
fn packets_of_high_speed_are_opened() -> Result<()> {
    counts(
        &AT_HIGH_SPEED,
        &[
            ("usbll.invalid_pid_sequence || usbll.invalid_pid || usbll.undecoded", 0),
            ("usbll.crc5.status == \"Bad\" || usbll.crc16.status == \"Bad\"", 0),
            ("usbms.dCBWSignature == 0x43425355", COMMANDS + 3),
            ("usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == 0", 1),
            ("usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == 1", 1),
        ],
    )?;
    assert!(AT_HIGH_SPEED.lock()?.count("uasp && usbll.dst == \"2.4\"")? > COMMANDS);
    Ok(())
}

/// Bulk packets of 1,024 bytes are no transfers to a dissector of USB 2.0, so the class inside stays closed.
#[test]
fn packets_are_transactions_with_good_checks() -> Result<()> {
    counts(
        &PACKETS,
        &[
            ("usbll.invalid_pid_sequence || usbll.invalid_pid || usbll.undecoded", 0),
            ("usbll.crc5.status == \"Bad\" || usbll.crc16.status == \"Bad\"", 0),
            ("usb.setup.bRequest == 9", 2),
            // Four packets of 1,024 bytes for each read that has ended; identifier and check are three more.
            ("usbll.src == \"1.1\" && frame.len == 1027", 4 * (COMMANDS + 1)),
        ],
    )?;
    assert!(PACKETS.lock()?.count(r#"frame.comment == "stream Prime" && usbll.pid == 0x5a"#)? > 0);
    Ok(())
}

/// The same commands and statuses as tshark finds, by transport and operation code.
#[test]
fn decode_counts_what_tshark_counts() -> Result<()> {
    for (capture, opcode) in [(&READS, 0x28), (&WRITES, 0x2a), (&CUT, 0x28)] {
        let decoded = capture.lock()?.decoded()?;
        let commands = |transport: &str, opcode: u8| {
            decoded.commands(|one| one["transport"] == transport && one["opcode"] == opcode)
        };
        let ended = |outcome: &str| decoded.commands(|one| one["outcome"] == outcome);
        let wrapper = "usbms.dCBWSignature == 0x43425355 && scsi_sbc.opcode ==";
        let status = "usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus ==";
        counts(
            capture,
            &[
                (&format!("{wrapper} {opcode}"), commands("BOT", opcode)),
                (&format!("{wrapper} 0"), commands("BOT", 0)),
                (&format!("{wrapper} 3"), commands("BOT", 3)),
                (&format!("{status} 0"), ended("passed")),
                (&format!("{status} 1"), ended("failed")),
                (&format!("uasp.iu_id == 1 && scsi_sbc.opcode == {opcode}"), commands("UAS", opcode)),
                ("uasp.iu_id == 1 && scsi_sbc.opcode == 0", commands("UAS", 0)),
                ("uasp.iu_id == 3 && uasp.sense.status == 0", ended("GOOD")),
                ("uasp.iu_id == 3 && uasp.sense.status == 2", ended("CHECK CONDITION")),
            ],
        )?;
        assert_eq!(decoded.faults(), [""; 0]);
    }
    Ok(())
}
