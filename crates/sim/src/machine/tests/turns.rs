//! The same two commands on a high-speed bus, where UAS has no streams.
//!
//! Times are bytes of the bus, 60 in a microsecond: each begins where the one before has ended, or
//! when its endpoint may be asked again. The whole of the read lies in one microframe.

use super::streams::{ATTENTION, GOOD, READ_10, TEST_UNIT_READY};
use super::*;
use std::cell::RefCell;
use std::rc::Rc;

/// Start of frame, and a token: SYNC 4, PID 1, fields 2, end of packet and the delay behind it 12.
const TOKEN: u64 = 19;
/// The same without fields.
const HANDSHAKE: u64 = 17;
const MICROFRAME: u64 = 7_500;
/// After a NAK an endpoint is not asked for 10 us.
const QUIESCE_TIME: u64 = 600;
/// The time of the drive for a request: as long as the bus needs for 1,200 bytes.
const MEDIUM: Duration = Duration::from_us(20);
/// When the host is asked to read: at the beginning of the third microframe.
const READ_AT: u64 = 2 * MICROFRAME;

/// A data packet: SYNC, PID, CRC-16 2, end of packet and delay.
const fn data(bytes: u64) -> u64 {
    19 + bytes
}

/// When so many bytes have passed; picoseconds are whole and no packet begins too early.
const fn after(bytes: u64) -> u64 {
    (bytes * 1_000_000).div_ceil(60)
}

/// Packets: byte time of the start, and text.
#[derive(Default)]
struct Expected(Vec<(u64, String)>);

impl Expected {
    /// Appends consecutive packets from a byte time on; returns the byte time after them.
    fn say(&mut self, at: u64, said: &[(&str, u64)]) -> u64 {
        said.iter().fold(at, |at, &(packet, bytes)| {
            self.0.push((after(at), packet.to_string()));
            at + bytes
        })
    }

    /// The host polls for a status, and gets NAK.
    fn no_status(&mut self, at: u64) -> u64 {
        self.say(at, &[("-> IN 3", TOKEN), ("<- NAK", HANDSHAKE)])
    }

    fn status(&mut self, at: u64, packet: &str, bytes: u64) -> u64 {
        self.say(at, &[("-> IN 3", TOKEN), (packet, data(bytes)), ("-> ACK", HANDSHAKE)])
    }

    /// 512 bytes of the blocks.
    fn blocks(&mut self, at: u64, toggle: &str) -> u64 {
        let packet = format!("<- {toggle} 512 bytes");
        self.say(at, &[("-> IN 1", TOKEN), (&packet, data(512)), ("-> ACK", HANDSHAKE)])
    }

    fn command(&mut self, at: u64, toggle: &str) -> u64 {
        let packet = format!("-> {toggle} 32 bytes");
        self.say(at, &[("-> OUT 4", TOKEN), (&packet, data(32)), ("<- NYET", HANDSHAKE)])
    }

    /// From zero on. When the host has the status, at whose end the ACK goes.
    fn test_unit_ready(&mut self) -> u64 {
        let no_status = self.no_status(TOKEN);
        self.command(no_status, "DATA0");
        self.status(no_status + QUIESCE_TIME, "<- DATA0 34 bytes", 34) - HANDSHAKE
    }

    /// The same of the read.
    fn read(&mut self) -> u64 {
        // NYET was the last that the device has said of commands, so it is asked first.
        let room = self.say(READ_AT + TOKEN, &[("-> PING 4", TOKEN), ("<- ACK", HANDSHAKE)]);
        let first = self.no_status(room);
        self.command(first, "DATA1");
        // The medium is done 1,200 bytes after the command has come: after the third time, and
        // before the fourth.
        let second = self.no_status(first + QUIESCE_TIME);
        let third = self.no_status(second + QUIESCE_TIME);
        // READ READY. From now on the host has room for the blocks, and for the next status, which
        // it asks for in turn.
        let ready = self.status(third + QUIESCE_TIME, "<- DATA1 4 bytes", 4);
        let mut at = self.blocks(ready, "DATA0");
        for _ in 0..3 {
            let no_status = self.no_status(at);
            // Two packets are 1,134 bytes: the endpoint of statuses may be asked again behind them,
            // and not between.
            at = self.blocks(no_status, "DATA1");
            at = self.blocks(at, "DATA0");
        }
        let no_status = self.no_status(at);
        self.blocks(no_status, "DATA1");
        // The status is there, and the bus rests until it may be asked for.
        self.status(no_status + QUIESCE_TIME, "<- DATA0 16 bytes", 16) - HANDSHAKE
    }
}

/// READ READY IU, tag 1.
const READ_READY: [u8; 4] = [0x06, 0, 0, 0x01];

/// Packets, and payloads that are not blocks.
#[derive(Default)]
struct Script {
    lines: Vec<(u64, String)>,
    units: Vec<Vec<u8>>,
}

impl Observer for Script {
    fn crossed(&mut self, sent: &usb2::Sent, bytes: &[u8]) {
        let arrow = if sent.from == Side::Host { "->" } else { "<-" };
        self.lines.push((sent.begins.as_ps(), format!("{arrow} {}", sent.packet)));
        if (1..512).contains(&bytes.len()) {
            self.units.push(bytes.to_vec());
        }
    }
}

#[test]
fn a_read_of_4_kib_without_streams_packet_by_packet() {
    let plain = plain(MEDIUM, 1);
    let connection = Connection::from(usb2::Rate::High);
    let device = plain.device_with(device::Transports::Dual, connection.speed());
    let mut machine = DirectMachine::new(connection, uas(device, None).unwrap(), plain);
    let seen = Rc::new(RefCell::new(Script::default()));
    machine.observe(Box::new(Rc::clone(&seen)));
    let mut expected = Expected::default();
    first(&mut machine);
    assert_eq!(machine.now().as_ps(), after(expected.test_unit_ready()));
    assert!(machine.run_until(Some(Instant::from_ps(after(READ_AT)))).unwrap().is_none());
    ask(&mut machine, &command(2, false, 0, 1), vec![0; BLOCK as usize]);
    assert_eq!(machine.now().as_ps(), after(expected.read()));
    // The last acknowledgement goes after the end of the command.
    while seen.borrow().lines.len() < expected.0.len() && machine.step() {}
    let seen = seen.borrow();
    assert_eq!(seen.lines, expected.0, "{:#?}", seen.lines);
    assert_eq!(seen.units, [&TEST_UNIT_READY[..], &ATTENTION, &READ_10, &READ_READY, &GOOD]);
}
