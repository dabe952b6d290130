//! The first two UAS commands on a SuperSpeed Gen 1 link, packet by packet: TEST UNIT READY, which
//! returns the power-on unit attention, and READ(10) of 4 KiB. Transport and device are the real
//! ones; there is neither driver nor controller.
//!
//! When a packet begins is what caused it and a sum of the lengths below, worked out by hand:
//! docs/MODEL.md has these. A port acts on a packet when it has come as a whole, over the cable,
//! and its turn-round is over. LGOOD and LCRD for a packet go the other way as soon as it has come;
//! here the lane is idle then, and they are over long before what follows, but for those that come
//! during the burst. So are skips (two symbols after each 354), but for those that are due within
//! the burst.

use super::*;
use std::cell::RefCell;
use std::rc::Rc;

// In picoseconds.
const SYMBOL: u64 = 2_000;
/// Framing 4, header 12, CRC-16 2, link control word 2.
const HEADER: u64 = 20 * SYMBOL;
/// LGOOD and LCRD: framing 4 and the word twice, each.
const LINK_COMMANDS: u64 = 16 * SYMBOL;
const SKIP: u64 = 2 * SYMBOL;
const CABLE: u64 = 5_000;
/// From the last symbol that is sent to what a port does: the cable, and 200 ns of a device or 100
/// ns of a host.
const UNTIL_DEVICE_ACTS: u64 = CABLE + 200_000;
const UNTIL_HOST_ACTS: u64 = CABLE + 100_000;
/// The time of the drive for a request, in picoseconds.
const MEDIUM: u64 = 20_000_000;
/// When the host is asked to read. The first timestamp goes at 125 us, when all of this is over.
const READ_AT: u64 = 50_000_000;

/// A data packet: a header packet, framing 4 + 4, CRC-32 4.
const fn data(bytes: u64) -> u64 {
    HEADER + (12 + bytes) * SYMBOL
}

/// A packet: when its first symbol is sent, and its text.
type Line = (u64, &'static str);

/// Packets, and payloads that are not blocks.
#[derive(Default)]
struct Script {
    lines: Vec<(u64, String)>,
    units: Vec<Vec<u8>>,
}

impl Observer for Script {
    fn sent(&mut self, from: Side, message: &Message, crossing: &Crossing, bytes: &[u8]) {
        let arrow = if from == Side::Host { "->" } else { "<-" };
        let pending = if matches!(message, Message::Ack { is_pending: true, .. }) { ", PP" } else { "" };
        self.lines.push((crossing.begins.as_ps(), format!("{arrow} {message}{pending}")));
        if (1..1024).contains(&bytes.len()) {
            self.units.push(bytes.to_vec());
        }
    }
}

/// From zero on: the packets, and when the host has the status.
fn test_unit_ready() -> (Vec<Line>, u64) {
    // Buffers for the status, before the command; of streams the pipe knows nothing yet.
    let prime = 0;
    let command = prime + HEADER;
    let refused = prime + HEADER + UNTIL_DEVICE_ACTS;
    let heard = command + data(32) + UNTIL_DEVICE_ACTS;
    // The device acknowledges, has room for another command, and has a status at once: three
    // packets, one after the other.
    let room = heard + HEADER;
    let proposal = room + HEADER;
    let goes_along = proposal + HEADER + UNTIL_HOST_ACTS;
    let status = goes_along + HEADER + UNTIL_DEVICE_ACTS;
    // SENSE IU with sense data of 18 bytes.
    let ended = status + data(16 + 18) + UNTIL_HOST_ACTS;
    let lines = vec![
        (prime, "-> ACK 3 IN stream Prime expects 0, takes 1"),
        (command, "-> DATA 4 OUT number 0, 32 bytes, the last"),
        (refused, "<- NRDY 3 IN stream Prime"),
        (heard, "<- ACK 4 OUT expects 1, takes 0"),
        (room, "<- ERDY 4 OUT for 1"),
        (proposal, "<- ERDY 3 IN stream 1 for 1"),
        (goes_along, "-> ACK 3 IN stream 1 expects 0, takes 1, PP"),
        (status, "<- DATA 3 IN stream 1 number 0, 34 bytes, the last"),
        (ended, "-> ACK 3 IN stream 1 expects 1, takes 0"),
    ];
    (lines, ended)
}

/// From [`READ_AT`] on: the packets, and when the device has heard of the command.
fn read_command() -> (Vec<Line>, u64) {
    // The tag is 1 again, so the status pipe has buffers for the stream that moved last: the host
    // starts that by itself. The pipe for data has never had any.
    let status = READ_AT;
    let prime = status + HEADER;
    let command = prime + HEADER;
    let [status_refused, prime_refused] = [status, prime].map(|at| at + HEADER + UNTIL_DEVICE_ACTS);
    let heard = command + data(32) + UNTIL_DEVICE_ACTS;
    let room = heard + HEADER;
    let lines = vec![
        (status, "-> ACK 3 IN stream 1 expects 1, takes 1, PP"),
        (prime, "-> ACK 1 IN stream Prime expects 0, takes 1"),
        (command, "-> DATA 4 OUT number 1, 32 bytes, the last"),
        (status_refused, "<- NRDY 3 IN stream 1"),
        (prime_refused, "<- NRDY 1 IN stream Prime"),
        (heard, "<- ACK 4 OUT expects 2, takes 0"),
        (room, "<- ERDY 4 OUT for 1"),
    ];
    (lines, heard)
}

/// From when the device has the blocks: the packets, and when it has heard that all were taken.
fn read_blocks(has_blocks: u64) -> (Vec<Line>, u64) {
    let goes_along = has_blocks + HEADER + UNTIL_HOST_ACTS;
    let first = goes_along + HEADER + UNTIL_DEVICE_ACTS;
    let ends = |begins| begins + data(1024);
    let acknowledges = |begins| ends(begins) + UNTIL_HOST_ACTS;
    // The device's lane has carried 358 symbols when it has asked: 64 of LGOOD and LCRD, 80 of
    // header packets and 66 of SENSE IU for the first command, 48 and 100 for this one. A set went
    // unseen, 4 are left; with 16 for the last acknowledgement and 1,056 of data that makes 1,076:
    // three sets are due, and 14 symbols are left.
    let second = ends(first) + 3 * SKIP;
    // 1,070: three sets again. The first acknowledgement has come while the second packet was on
    // the lane: LGOOD and LCRD now.
    let third = ends(second) + 3 * SKIP + LINK_COMMANDS;
    // 8 left, 16 and 1,056 are 1,080: the same.
    let fourth = ends(third) + 3 * SKIP + LINK_COMMANDS;
    let lines = vec![
        (has_blocks, "<- ERDY 1 IN stream 1 for 4"),
        (goes_along, "-> ACK 1 IN stream 1 expects 0, takes 4, PP"),
        (first, "<- DATA 1 IN stream 1 number 0, 1024 bytes"),
        (second, "<- DATA 1 IN stream 1 number 1, 1024 bytes"),
        (acknowledges(first), "-> ACK 1 IN stream 1 expects 1, takes 3, PP"),
        (third, "<- DATA 1 IN stream 1 number 2, 1024 bytes"),
        (acknowledges(second), "-> ACK 1 IN stream 1 expects 2, takes 2, PP"),
        (fourth, "<- DATA 1 IN stream 1 number 3, 1024 bytes, the last"),
        (acknowledges(third), "-> ACK 1 IN stream 1 expects 3, takes 1, PP"),
        (acknowledges(fourth), "-> ACK 1 IN stream 1 expects 4, takes 0"),
    ];
    (lines, acknowledges(fourth) + HEADER + UNTIL_DEVICE_ACTS)
}

/// From when the device has a status: the packets, and when the host has it.
fn read_status(has_status: u64) -> (Vec<Line>, u64) {
    let goes_along = has_status + HEADER + UNTIL_HOST_ACTS;
    let status = goes_along + HEADER + UNTIL_DEVICE_ACTS;
    let ended = status + data(16) + UNTIL_HOST_ACTS;
    let lines = vec![
        (has_status, "<- ERDY 3 IN stream 1 for 1"),
        (goes_along, "-> ACK 3 IN stream 1 expects 1, takes 1, PP"),
        (status, "<- DATA 3 IN stream 1 number 1, 16 bytes, the last"),
        (ended, "-> ACK 3 IN stream 1 expects 2, takes 0"),
    ];
    (lines, ended)
}

/// COMMAND IU, tag 1: TEST UNIT READY.
pub(super) const TEST_UNIT_READY: [u8; 32] = {
    let mut unit = [0; 32];
    (unit[0], unit[3]) = (0x01, 0x01);
    unit
};
/// COMMAND IU, tag 1: READ(10), block 0, one block of 4,096 bytes.
pub(super) const READ_10: [u8; 32] = {
    let mut unit = TEST_UNIT_READY;
    (unit[16], unit[24]) = (0x28, 0x01);
    unit
};
/// SENSE IU, tag 1: CHECK CONDITION, 18 bytes; UNIT ATTENTION, POWER ON OCCURRED (29h, 01h).
pub(super) const ATTENTION: [u8; 34] = {
    let mut unit = [0; 34];
    (unit[0], unit[3], unit[6], unit[15]) = (0x03, 0x01, 0x02, 18);
    (unit[16], unit[18], unit[23], unit[28], unit[29]) = (0x70, 0x06, 10, 0x29, 0x01);
    unit
};
/// SENSE IU, tag 1: GOOD.
pub(super) const GOOD: [u8; 16] = [0x03, 0, 0, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn a_read_of_4_kib_over_streams_packet_by_packet() {
    let plain = plain(Duration::from_ps(MEDIUM), 1);
    let mut machine = DirectMachine::new(Rate::Gen1, uas(plain.device(), None).unwrap(), plain);
    let seen = Rc::new(RefCell::new(Script::default()));
    machine.observe(Box::new(Rc::clone(&seen)));
    let (mut expected, attention) = test_unit_ready();
    first(&mut machine);
    assert_eq!(machine.now(), Instant::from_ps(attention));
    assert!(machine.run_until(Some(Instant::from_ps(READ_AT))).unwrap().is_none());
    ask(&mut machine, &command(2, false, 0, 1), vec![0; BLOCK as usize]);
    let (lines, heard) = read_command();
    expected.extend(lines);
    let (lines, all_taken) = read_blocks(heard + MEDIUM);
    expected.extend(lines);
    let (lines, ended) = read_status(all_taken);
    expected.extend(lines);
    assert_eq!(machine.now(), Instant::from_ps(ended));
    let seen = seen.borrow();
    let lines: Vec<(u64, &str)> = seen.lines.iter().map(|(at, line)| (*at, line.as_str())).collect();
    assert_eq!(lines, expected, "{lines:#?}");
    assert_eq!(seen.units, [&TEST_UNIT_READY[..], &ATTENTION, &READ_10, &GOOD]);
}
