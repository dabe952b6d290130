//! Texts that are made to take time or memory: what a limit leaves is counted, and each text ends.

use super::super::*;
use crate::diagnose::Diagnoser;
use crate::log::History;
use crate::tree::LOG_LINES_MAX;
use std::fmt::Write;
use std::io::BufReader;
use std::time::{Duration, Instant};

/// Devices that are plugged in at separate ports, one after the other.
fn enumerations(count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        let at = format!("[{:12.6}] usb 2-1.{number}: ", number as f64 / 100.0);
        let _ = writeln!(text, "{at}new SuperSpeed USB device number {} using xhci_hcd", number % 60_000);
        let _ = writeln!(text, "{at}New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 1.00");
    }
    text
}

/// SCSI hosts of drives whose ports no line names, each with a command that was aborted.
fn hosts(count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        let _ = writeln!(text, "[{number:6}.000000] scsi host{number}: uas");
        let _ = writeln!(
            text,
            "[{number:6}.500000] sd {number}:0:0:0: [sda] tag#1 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD"
        );
    }
    text
}

fn read_all(text: &str) -> Inventory {
    let document = Document::read("log", &mut BufReader::new(text.as_bytes())).expect("in memory");
    let inventory = read(&[document]);
    let diagnoser = Diagnoser::of(&inventory);
    let _ = diagnoser.absent();
    for device in inventory.storage() {
        let _ = diagnoser.diagnose(device);
    }
    inventory
}

/// The time that the history of a log takes.
fn time_of(text: &str) -> Duration {
    let lines: Vec<&str> = text.lines().collect();
    let begun = Instant::now();
    assert!(!History::of(lines.iter().copied()).sessions.is_empty());
    begun.elapsed()
}

#[test]
fn eight_times_as_many_sessions_do_not_take_64_times_as_long() {
    const RATIO_MAX: u32 = 20;
    const ATTEMPTS: usize = 5;
    let both = |count| enumerations(count / 2) + &hosts(count / 2);
    for make in [enumerations, hosts, both] {
        let (few, many) = (make(2_000), make(16_000));
        // Other programs run beside a test: one attempt that is quick enough shows it.
        let is_quick = |_| time_of(&many) < time_of(&few) * RATIO_MAX;
        assert!((0..ATTEMPTS).any(is_quick));
    }
}

#[test]
fn more_devices_than_the_limit_are_left_out_and_reported() {
    let inventory = read_all(&enumerations(DEVICES_MAX + 10));
    let report = inventory.report.as_ref().expect("text");
    let drives: Vec<&str> = inventory.storage().map(|device| device.port.as_str()).collect();
    assert!(report.has_more_devices);
    assert_eq!(drives.len(), DEVICES_MAX);
    // The last ones count.
    let last = format!("2-1.{}", DEVICES_MAX + 9);
    assert!(drives.contains(&last.as_str()) && !drives.contains(&"2-1.0"), "{drives:?}");
    let inventory = read_all(&enumerations(DEVICES_MAX));
    assert!(!inventory.report.as_ref().expect("text").has_more_devices);
    let listed: String = (0..2 * DEVICES_MAX)
        .map(|number| format!("Bus 001 Device {number:03}: ID 152d:{number:04x} JMicron\n"))
        .collect();
    let inventory = read_all(&listed);
    assert!(inventory.report.as_ref().expect("text").has_more_devices);
    // The root hub of their bus was added.
    assert!(inventory.devices.len() <= DEVICES_MAX + 1, "{}", inventory.devices.len());
}

#[test]
fn more_lines_than_the_limit_are_counted() {
    let inventory = read_all(&hosts(LOG_LINES_MAX));
    assert_eq!(inventory.readable_log().map(|log| log.lines_left_out), Some(LOG_LINES_MAX));
    let inventory = read_all(&hosts(LOG_LINES_MAX / 2));
    assert_eq!(inventory.readable_log().map(|log| log.lines_left_out), Some(0));
}

#[test]
fn short_lines_are_limited_in_number_and_blank_ones_are_joined() {
    let lines = 4 * (HEAD_LINES_MAX + TAIL_LINES_MAX);
    let read = |text: String| Document::read("x", &mut text.as_bytes()).expect("in memory");
    let blank = read("\n".repeat(lines) + " \r\nx\n");
    assert_eq!((blank.text.as_str(), blank.filled_lines), ("\nx\n", 1));
    let filled = blank.lines().iter().find(|line| !line.text.is_empty()).map(|line| line.number);
    assert_eq!(filled, Some(lines + 2));
    let short = read("x\n".repeat(lines));
    assert_eq!(short.text.lines().count(), HEAD_LINES_MAX + TAIL_LINES_MAX);
    assert_eq!(short.left_out.map(|lines| lines.count), Some(lines - HEAD_LINES_MAX - TAIL_LINES_MAX));
}

#[test]
fn strange_texts_end() {
    const BYTES: usize = 1 << 20;
    let wide: Vec<u8> = enumerations(2_000).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let document = Document::read("w", &mut wide.as_slice()).expect("in memory");
    assert_eq!(document.text, enumerations(2_000));
    for text in [
        "usb ".repeat(BYTES / 4),
        "> ".repeat(BYTES / 2),
        ">".repeat(BYTES) + "\n",
        "sd 0:0:0:0: ".to_owned() + &"[] ".repeat(BYTES / 3),
        "[".repeat(BYTES),
        "usb 2-1: ".to_owned() + &"\0".repeat(BYTES),
        (0..20_000).map(|unit| format!("sd 0:0:0:{unit}: [sda] Attached SCSI disk\n")).collect(),
        (0..20_000).map(|bus| format!("xhci_hcd 0000:{bus:05x}:00.0: HC died; cleaning up\n")).collect(),
        "hwmon hwmon1: Undervoltage detected!\nusb 2-1: reset SuperSpeed USB device number 2\n"
            .repeat(10_000),
    ] {
        read_all(&text);
    }
}
