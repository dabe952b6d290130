//! `lsusb.py`, which is `lsusb` on the systems of Synology: a tree with port, ids, class, speed and current.
//!
//! `|__2-2.1 2109:0715:0614 00 3.10 5000MBit/s 8mA 1IF (maker product)`, and with `-i` a line for each interface that names its
//! class and driver: `2-2.1:1.0 (IF) 08:06:50 2EPs (Mass Storage:SCSI:Bulk-Only) usb-storage host6 (sda)`.

use super::facts::Facts;
use super::section::Reader;
use super::system::key;
use quirks::DeviceId;

/// A device.
pub(super) struct PyDevice<'a> {
    port: &'a str,
    id: DeviceId,
    revision: &'a str,
    rest: Vec<&'a str>,
}

/// The device of a line.
pub(super) fn device_line(text: &str) -> Option<PyDevice<'_>> {
    let mut words = text.trim_start().trim_start_matches("|__").split_whitespace();
    let (port, ids) = (words.next()?, words.next()?);
    let is_port = port
        .strip_prefix("usb")
        .unwrap_or(port)
        .bytes()
        .all(|sign| sign.is_ascii_digit() || b"-.".contains(&sign));
    let (id, revision) =
        ids.rsplit_once(':').filter(|(id, revision)| id.len() == 9 && revision.len() == 4)?;
    let id = id.parse().ok().filter(|_| is_port)?;
    Some(PyDevice { port, id, revision, rest: words.collect() })
}

/// The interface of a line: its port, its number, and the words behind.
pub(super) fn interface_line(text: &str) -> Option<(&str, u8, Vec<&str>)> {
    let (name, rest) = text.trim_start().trim_start_matches("|__").split_once(char::is_whitespace)?;
    let (port, numbers) = name.split_once(':')?;
    let number = numbers.split_once('.')?.1.parse().ok()?;
    let mut words = rest.split_whitespace();
    (words.next()? == "(IF)").then(|| (port, number, words.collect()))
}

/// Reads the lines.
pub(super) fn read(reader: &Reader<'_>, facts: &mut Facts) {
    for line in reader.lines {
        let source = reader.source(line);
        if let Some(PyDevice { port, id, revision, rest }) = device_line(&line.text) {
            let device = facts.device(&key(port));
            device.set_id(id, &source);
            device.set("bcdDevice", revision, &source);
            if rest.first() == Some(&"09") {
                device.set("maxchild", "1", &source);
            }
            let ending = |end: &str| rest.iter().find_map(|word| word.strip_suffix(end));
            if let Some(mbps) = ending("MBit/s") {
                device.set("speed", mbps, &source);
            }
            if let Some(milliamperes) = ending("mA").filter(|text| text.parse::<u16>().is_ok()) {
                device.set("bMaxPower", format!("{milliamperes}mA"), &source);
            }
        } else if let Some((port, number, words)) = interface_line(&line.text) {
            let bytes: Vec<u8> = words
                .first()
                .into_iter()
                .flat_map(|class| class.split(':'))
                .filter_map(|byte| u8::from_str_radix(byte, 16).ok())
                .collect();
            let interface = facts.device(&key(port)).interface(number);
            if let [class, subclass, protocol] = bytes.as_slice() {
                interface.class.get_or_insert((*class, *subclass, *protocol));
                interface.is_storage |= *class == 8;
            }
            let driver = words.iter().find(|word| ["uas", "usb-storage"].contains(word));
            if let Some(driver) = driver {
                interface.driver.get_or_insert_with(|| (Some((*driver).to_owned()), source));
            }
        }
    }
}
