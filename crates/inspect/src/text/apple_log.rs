//! The kernel's log of macOS: mass storage that it found, and errors of disks.
//!
//! The log does not name ports, drivers or speeds. An error of a disk belongs to a drive that has its name, or to the only drive of
//! the text; errors of the first two disks, which are those of the machine, are left out.

use quirks::DeviceId;

/// The line of the USB family for each interface of mass storage: the serial number if there is one, idVendor, idProduct, bcdDevice.
const FOUND: &str = "USBMSC Identifier (non-unique): ";

/// Errors of the storage family, as the log has them after the disk.
const ERRORS: [&str; 4] =
    ["I/O error", "media is not present", "device/channel is not attached", "no such device"];

/// Whether a line is of this log and about mass storage.
pub(super) fn is_line(text: &str) -> bool {
    text.contains(FOUND)
}

/// Returns the ids of a line that reports mass storage, and its serial number.
pub(super) fn found(text: &str) -> Option<(DeviceId, Option<&str>)> {
    let (_, rest) = text.split_once(FOUND)?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let number = |word: &str| u16::from_str_radix(word.strip_prefix("0x")?.trim_end_matches(','), 16).ok();
    // A serial number may have blanks: the ids are the first two of three numbers in a row.
    let at = words.windows(3).position(|three| three.iter().all(|word| number(word).is_some()))?;
    let id = DeviceId::new(number(words.get(at)?)?, number(words.get(at + 1)?)?);
    let serial = rest.split_once(" 0x").map(|(serial, _)| serial.trim()).filter(|_| at > 0);
    Some((id, serial.filter(|serial| !serial.is_empty())))
}

/// Splits `disk2s1: I/O error.` into the disk, the volume and the error.
pub(super) fn disk_error(text: &str) -> Option<(&str, &str, &'static str)> {
    let (before, error) =
        ERRORS.iter().find_map(|error| Some((text.split_once(&format!(": {error}"))?.0, *error)))?;
    let volume = before.rsplit([' ', '\t']).next()?;
    let digits = volume.strip_prefix("disk")?;
    let end = digits.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(digits.len());
    let is_volume = digits.get(end..).is_some_and(|rest| rest.is_empty() || rest.starts_with('s'));
    (end > 0 && is_volume)
        .then(|| volume.get(.."disk".len() + end))
        .flatten()
        .map(|disk| (disk, volume, error))
}
