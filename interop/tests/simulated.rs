//! Captures of the simulated world in Wireshark's dissector: the commands that ran, no more and no
//! fewer.

use uaskit_interop::{
    Result, Shared,
    tools::capture::{self, Capture},
};

/// Measured commands of each run, and the depth of the run on UAS. On BOT one at a time is in flight.
const COMMANDS: usize = 100;
const DEPTH: usize = 7;

const RUN: &[&str] = &["--commands", "100", "--depth", "7"];

static READS: Shared<Capture> = Shared::new(|| capture::simulated(RUN));
static WRITES: Shared<Capture> = Shared::new(|| capture::simulated(&[RUN, &["--write"]].concat()));
static CUT: Shared<Capture> = Shared::new(|| capture::simulated(&[RUN, &["--snap", "512"]].concat()));
static PACKETS: Shared<Capture> =
    Shared::new(|| capture::simulated(&[RUN, &["--capture-as", "packets"]].concat()));

static PACKETS_WRITTEN: Shared<Capture> =
    Shared::new(|| capture::simulated(&[RUN, &["--capture-as", "packets", "--write"]].concat()));

static AT_HIGH_SPEED: Shared<Capture> =
    Shared::new(|| capture::simulated(&[RUN, &["--capture-as", "packets", "--speed", "high"]].concat()));

/// With parts: measured requests of each run; as many as the depth precede them.
const REQUESTS: usize = 100;
const REQUESTS_AT_ONCE: usize = 4;

const PARTS: &[&str] = &["--block", "64K", "--depth", "4", "--commands", "100"];
/// A drive on a bridge that speaks both, once on BOT and once on UAS.
const BOTH: &[&str] = &["--transport", "bot,uas"];
/// tshark goes by the last alternate setting, and opens BOT where there is no other.
const BOT_ALONE: &[&str] = &["--driver", "windows7-usbstor", "--bridge", "generic-bot"];
const HIGH: &[&str] = &["--link", "high"];

static OF_BOTH: Shared<Capture> = Shared::new(|| capture::compared(&[PARTS, BOTH].concat()));
static OF_BOTH_AT_HIGH_SPEED: Shared<Capture> =
    Shared::new(|| capture::compared(&[PARTS, BOTH, HIGH].concat()));
static OF_BOT: Shared<Capture> = Shared::new(|| capture::compared(&[PARTS, BOT_ALONE].concat()));
static OF_BOT_AT_HIGH_SPEED: Shared<Capture> =
    Shared::new(|| capture::compared(&[PARTS, BOT_ALONE, HIGH].concat()));

static PACKETS_OF_BOTH: Shared<Capture> =
    Shared::new(|| capture::compared(&[PARTS, BOTH, &["--capture-as", "packets"]].concat()));

const TWO_DRIVES: &[&str] = &["--drives", "2", "--hubs", "1"];

static OF_TWO: Shared<Capture> = Shared::new(|| capture::simulated(&[RUN, TWO_DRIVES].concat()));
static PACKETS_OF_TWO: Shared<Capture> =
    Shared::new(|| capture::simulated(&[RUN, TWO_DRIVES, &["--capture-as", "packets"]].concat()));
static PACKETS_OF_TWO_AT_HIGH_SPEED: Shared<Capture> = Shared::new(|| {
    let high = ["--controller", "chipset", "--link", "high", "--capture-as", "packets"];
    capture::simulated(&[RUN, TWO_DRIVES, &high].concat())
});

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
    let plain = [&READS, &WRITES, &CUT, &PACKETS, &PACKETS_WRITTEN, &AT_HIGH_SPEED];
    let of_parts = [&OF_BOTH, &OF_BOTH_AT_HIGH_SPEED, &OF_BOT, &OF_BOT_AT_HIGH_SPEED, &PACKETS_OF_BOTH];
    let of_two = [&OF_TWO, &PACKETS_OF_TWO, &PACKETS_OF_TWO_AT_HIGH_SPEED];
    for capture in plain.into_iter().chain(of_parts).chain(of_two) {
        assert_eq!(capture.lock()?.malformed()?, [""; 0]);
    }
    Ok(())
}

/// TEST UNIT READY fails, since the drive has just been plugged in, and REQUEST SENSE says so; then as many unmeasured commands
/// as the depth, the measured ones, and the one that is in flight when the run ends.
#[test]
fn over_bot_the_commands_that_ran_are_found() -> Result<()> {
    for (capture, operation_code) in [(&READS, "0x28"), (&WRITES, "0x2a")] {
        let wrapper = "usbms.dCBWSignature == 0x43425355 && scsi_sbc.opcode ==";
        counts(
            capture,
            &[
                ("usbms.dCBWSignature == 0x43425355", COMMANDS + DEPTH + 3),
                (&format!("{wrapper} {operation_code}"), COMMANDS + DEPTH + 1),
                (&format!("{wrapper} 0x00"), 1),
                (&format!("{wrapper} 0x03"), 1),
                ("usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == 0", COMMANDS + DEPTH + 1),
                ("usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == 1", 1),
            ],
        )?;
    }
    Ok(())
}

/// As over BOT, but the sense data come with the status, and as many unmeasured commands as the depth precede and follow the measured ones.
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
                // A status and data for each command, and a status for TEST UNIT READY. Of the commands in flight at the
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
            ("usb.bus_id == 1 && frame.cap_len < frame.len", COMMANDS + DEPTH),
            ("uasp.iu_id == 1", COMMANDS + 2 * DEPTH + 1),
        ],
    )
}

/// With 512 bytes a packet the dissector puts transfers together, and opens what is inside of BOT. Of UAS it finds what is an IU,
/// and does not say which. The command that is in flight when the run ends has not been sent. Data of
/// whole packets do not end for the dissector before the status, which it takes for a part of them.
#[test]
fn packets_of_high_speed_are_opened() -> Result<()> {
    counts(
        &AT_HIGH_SPEED,
        &[
            ("usbll.invalid_pid_sequence || usbll.invalid_pid || usbll.undecoded", 0),
            ("usbll.crc5.status == \"Bad\" || usbll.crc16.status == \"Bad\"", 0),
            ("usbms.dCBWSignature == 0x43425355", COMMANDS + DEPTH + 2),
            ("usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == 0", 1),
            ("usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == 1", 1),
        ],
    )?;
    assert!(AT_HIGH_SPEED.lock()?.count("uasp && usbll.dst == \"2.4\"")? > COMMANDS);
    Ok(())
}

#[test]
fn packets_are_transactions_with_good_checks() -> Result<()> {
    counts(
        &PACKETS,
        &[
            ("usbll.invalid_pid_sequence || usbll.invalid_pid || usbll.undecoded", 0),
            ("usbll.crc5.status == \"Bad\" || usbll.crc16.status == \"Bad\"", 0),
            ("usb.setup.bRequest == 9", 2),
            // Four packets of 1,024 bytes for each read that has ended; identifier and check are three more.
            ("usbll.src == \"1.1\" && frame.len == 1027", 4 * (COMMANDS + DEPTH)),
        ],
    )?;
    assert!(PACKETS.lock()?.count(r#"frame.comment == "stream Prime" && usbll.pid == 0x5a"#)? > 0);
    Ok(())
}

/// Ends of transfers are added where the dissector cannot see them, and so the class inside is opened. What is in flight when the run ends may
/// not have been sent.
#[test]
fn packets_of_super_speed_are_opened() -> Result<()> {
    for (capture, opcode) in [(&PACKETS, "0x28"), (&PACKETS_WRITTEN, "0x2a")] {
        let wrapper = "usbms.dCBWSignature == 0x43425355";
        let status = "usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus ==";
        counts(
            capture,
            &[
                (&format!("{wrapper} && scsi_sbc.opcode == {opcode}"), COMMANDS + DEPTH),
                (&format!("{wrapper} && scsi_sbc.opcode == 0x00"), 1),
                (&format!("{wrapper} && scsi_sbc.opcode == 0x03"), 1),
                (&format!("{status} 0"), COMMANDS + DEPTH + 1),
                (&format!("{status} 1"), 1),
                ("uasp.iu_id == 1 && scsi_sbc.opcode == 0x00", 1),
                ("uasp.iu_id == 3 && uasp.sense.status == 2", 1),
                ("scsi.sns.key == 6", 2),
            ],
        )?;
        counts_ended(capture, &format!("uasp.iu_id == 1 && scsi_sbc.opcode == {opcode}"), COMMANDS + DEPTH)?;
        counts_ended(capture, "uasp.iu_id == 3 && uasp.sense.status == 0", COMMANDS + DEPTH)?;
        let of_stream_3 = r#"frame.comment == "stream 3" && uasp.iu_id == 3 && uasp.tag"#;
        let count = |tag: &str| capture.lock()?.count(&format!("{of_stream_3} {tag}"));
        let (same, other) = (count("== 3")?, count("!= 3")?);
        assert!(same > 0 && other == 0, "the tag of a status is its stream: {same}, {other}");
    }
    Ok(())
}

/// The packets that were on the link are as many and as long as without those that were added for the dissector.
#[test]
fn what_was_added_for_the_dissector_is_marked() -> Result<()> {
    const ADDED: &str = r#"frame.comment == "not on the link: end of the transfer""#;
    for capture in [&PACKETS, &PACKETS_WRITTEN] {
        let capture = capture.lock()?;
        // Token, data and handshake, of the data of each command; a status is short.
        let added = capture.count(ADDED)?;
        assert!((6 * (COMMANDS + DEPTH)..=6 * (COMMANDS + 2 * DEPTH)).contains(&added), "{added}");
        assert_eq!(capture.count(&format!("{ADDED} && usbll.data"))?, 0, "nothing is in them");
        let numbered = r#"frame.comment matches "^sequence [0-9]+$""#;
        assert_eq!(
            capture.count(numbered)?,
            capture.count("usbll.crc16 && usbll.addr matches \"[.][1-4]$\"")? - added / 3
        );
        // The configuration, in two packets for BOT and three for UAS.
        assert!(capture.count(r#"frame.comment matches "^on the link [0-9a-f]+$""#)? >= 2);
    }
    Ok(())
}

/// The same commands and statuses as tshark finds, by transport and operation code.
#[test]
fn decode_counts_what_tshark_counts() -> Result<()> {
    let all = [(&READS, 0x28), (&WRITES, 0x2a), (&CUT, 0x28), (&PACKETS, 0x28), (&PACKETS_WRITTEN, 0x2a)];
    for (capture, opcode) in all {
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

/// Of each transport two devices, each with the commands that decode finds of it; they share what is measured.
#[test]
fn of_two_drives_behind_a_hub_each_is_a_device_with_its_commands() -> Result<()> {
    for (capture, buses, has_packets) in
        [(&OF_TWO, ["1", "1", "2", "2"], false), (&PACKETS_OF_TWO, ["1", "2", "3", "4"], true)]
    {
        let decoded = capture.lock()?.decoded()?;
        assert_eq!(decoded.faults(), [""; 0]);
        for (address, bus) in ["1", "2", "3", "4"].into_iter().zip(buses) {
            let device = format!("{bus}.{address}");
            let of = |key: &str, value: serde_json::Value| {
                decoded.commands(|one| one["device"] == *device && one[key] == value)
            };
            let is_there = match has_packets {
                true => format!(r#"usbll.addr matches "^{address}[.]""#),
                false => format!("usb.device_address == {address}"),
            };
            let (command, good, ended) = match address {
                "1" | "2" => (
                    "usbms.dCBWSignature == 0x43425355",
                    "usbms.dCSWStatus == 0",
                    of("outcome", "passed".into()),
                ),
                _ => (
                    "uasp.iu_id == 1",
                    "uasp.iu_id == 3 && uasp.sense.status == 0",
                    of("outcome", "GOOD".into()),
                ),
            };
            let reads = of("opcode", 0x28.into());
            assert!((COMMANDS / 2..COMMANDS / 2 + 3 * DEPTH).contains(&reads), "{device}: {reads}");
            counts(
                capture,
                &[
                    (&format!("{is_there} && {command} && scsi_sbc.opcode == 0x28"), reads),
                    (&format!("{is_there} && {good}"), ended),
                ],
            )?;
        }
    }
    Ok(())
}

/// Transactions of two devices do not overlap in the file.
#[test]
fn packets_of_two_drives_are_transactions_with_good_checks() -> Result<()> {
    for capture in [&PACKETS_OF_TWO, &PACKETS_OF_TWO_AT_HIGH_SPEED] {
        counts(
            capture,
            &[
                ("usbll.invalid_pid_sequence || usbll.invalid_pid || usbll.undecoded", 0),
                ("usbll.crc5.status == \"Bad\" || usbll.crc16.status == \"Bad\"", 0),
                ("usb.setup.bRequest == 9", 4),
            ],
        )?;
    }
    Ok(())
}

/// A request is one command of 64 KiB. The run ends with the last measured one, when the others of the depth have begun: these
/// have no status, and no others. At high speed READ READY says whose data come next.
#[test]
fn of_parts_on_uas_each_command_has_a_status_but_those_in_flight_at_the_end() -> Result<()> {
    let in_flight = REQUESTS_AT_ONCE - 1;
    for (capture, has_turns) in [(&OF_BOTH, false), (&OF_BOTH_AT_HIGH_SPEED, true)] {
        counts(
            capture,
            &[
                ("uasp.iu_id == 1 && scsi_sbc.opcode == 0x28", REQUESTS + REQUESTS_AT_ONCE + in_flight),
                // Of the power-on.
                ("uasp.iu_id == 3 && uasp.sense.status == 2", 1),
            ],
        )?;
        let count = |unit: u8| capture.lock()?.count(&format!("uasp.iu_id == {unit}"));
        assert_eq!(count(1)?, count(3)? + in_flight);
        let turns = count(6)?;
        let expected = if has_turns { REQUESTS + REQUESTS_AT_ONCE..usize::MAX } else { 0..1 };
        assert!(expected.contains(&turns), "{turns}");
    }
    Ok(())
}

/// One at a time, and so none is in flight when the last one completes.
#[test]
fn of_parts_on_bot_each_command_has_a_status() -> Result<()> {
    for capture in [&OF_BOT, &OF_BOT_AT_HIGH_SPEED] {
        let reads = "usbms.dCBWSignature == 0x43425355 && scsi_sbc.opcode == 0x28";
        counts(
            capture,
            &[
                (reads, REQUESTS + REQUESTS_AT_ONCE),
                ("usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == 1", 1),
            ],
        )?;
        let count = |filter| capture.lock()?.count(filter);
        let commands = count("usbms.dCBWSignature == 0x43425355")?;
        assert_eq!(commands, count("usbms.dCSWSignature == 0x53425355")?);
    }
    // Where the drive speaks UAS as well they are there, behind 64 bytes of usbmon, and stay closed.
    for capture in [&OF_BOTH, &OF_BOTH_AT_HIGH_SPEED] {
        let count =
            |signature| capture.lock()?.count(&format!("usb.bus_id == 1 && frame[64:4] == {signature}"));
        let commands = count("55:53:42:43")?;
        assert!(commands > REQUESTS + REQUESTS_AT_ONCE, "{commands}");
        assert_eq!(commands, count("55:53:42:53")?);
    }
    Ok(())
}

/// Of packets as well: the bridge speaks both, and so the dissector opens UAS.
#[test]
fn of_packets_of_parts_decode_counts_what_tshark_counts() -> Result<()> {
    let decoded = PACKETS_OF_BOTH.lock()?.decoded()?;
    let of_uas = |key: &str, value: serde_json::Value| {
        decoded.commands(|one| one["transport"] == "UAS" && one[key] == value)
    };
    counts(
        &PACKETS_OF_BOTH,
        &[
            ("uasp.iu_id == 1 && scsi_sbc.opcode == 0x28", of_uas("opcode", 0x28.into())),
            ("uasp.iu_id == 3 && uasp.sense.status == 0", of_uas("outcome", "GOOD".into())),
            ("uasp.iu_id == 3 && uasp.sense.status == 2", of_uas("outcome", "CHECK CONDITION".into())),
        ],
    )?;
    assert!(of_uas("opcode", 0x28.into()) >= REQUESTS + REQUESTS_AT_ONCE);
    assert_eq!(decoded.faults(), [""; 0]);
    Ok(())
}

/// As above of link and protocols alone.
#[test]
fn of_parts_decode_counts_what_tshark_counts() -> Result<()> {
    for capture in [&OF_BOTH, &OF_BOTH_AT_HIGH_SPEED, &OF_BOT, &OF_BOT_AT_HIGH_SPEED] {
        let decoded = capture.lock()?.decoded()?;
        let on = |transport: &str| decoded.commands(|one| one["transport"] == transport);
        let ended = |outcome: &str| decoded.commands(|one| one["outcome"] == outcome);
        counts(
            capture,
            &[
                ("frame[64:4] == 55:53:42:43", on("BOT")),
                ("frame[64:4] == 55:53:42:53", ended("passed") + ended("failed")),
                ("uasp.iu_id == 1", on("UAS")),
                ("uasp.iu_id == 3 && uasp.sense.status == 0", ended("GOOD")),
                ("uasp.iu_id == 3 && uasp.sense.status == 2", ended("CHECK CONDITION")),
            ],
        )?;
        // Over BOT the bridge ends INQUIRY and MODE SENSE by a stall, since both ask for more than
        // there is (BOT 1.0, clause 6.7.2).
        assert_eq!(decoded.faults(), ["stall-ends-data"; 2]);
    }
    Ok(())
}
