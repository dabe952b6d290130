//! The value of `usb-storage.quirks=`: `VID:PID:letters`, with commas between entries.
//!
//! The first entry of a device counts. Its letters replace the flags that are built in, so no letters at all mean that
//! UAS is used again for a device that Linux ignores it for. What is no entry is passed over, as in
//! `usb_stor_adjust_quirks`.

use crate::inventory::DeviceId;
use quirks::quirk::{Flag, Flags};

/// Characters that the kernel takes; it refuses the whole of a longer value.
pub(super) const VALUE_BYTES_MAX: usize = 127;

/// Returns the flags of a device in the value; `None` if it has no entry.
pub(super) fn flags_of(value: &str, id: DeviceId) -> Option<Flags> {
    let letters = letters_of(value, id)?;
    let flags = letters.chars().filter_map(Flag::of_letter);
    Some(flags.fold(Flags::NONE, |set, flag| set.union(Flags::of(&[flag]))))
}

/// The letters that the value has for a device, as they were written.
pub(super) fn letters_of(value: &str, id: DeviceId) -> Option<&str> {
    entries(value).find(|(_, other, _)| *other == id).map(|(.., letters)| letters)
}

/// The value with these letters for a device, in place of its entry or at the end.
pub(super) fn with(value: &str, id: DeviceId, letters: &str) -> String {
    let entry = format!("{id}:{letters}");
    let others = without(value, id);
    if others.is_empty() { entry } else { format!("{others},{entry}") }
}

/// The value without the entries of a device, and without those that the kernel passes over.
pub(super) fn without(value: &str, id: DeviceId) -> String {
    let others: Vec<&str> =
        printable(value).filter(|(_, other)| *other != id).map(|(entry, _)| entry).collect();
    others.join(",")
}

/// The value without what the kernel passes over, such as placeholders.
pub(super) fn readable(value: &str) -> String {
    printable(value).map(|(entry, _)| entry).collect::<Vec<_>>().join(",")
}

/// The entries that can be printed in a command: a report may have anything in their place.
pub(super) fn printable(value: &str) -> impl Iterator<Item = (&str, DeviceId)> {
    let is_plain = |entry: &str| entry.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b':');
    entries(value).filter(move |(entry, ..)| is_plain(entry)).map(|(entry, id, _)| (entry, id))
}

/// The entries that the kernel reads: text, ids, letters.
pub(super) fn entries(value: &str) -> impl Iterator<Item = (&str, DeviceId, &str)> {
    value.split(',').filter_map(|entry| {
        let mut parts = entry.splitn(3, ':');
        let vendor = number(parts.next()?)?;
        let product = number(parts.next()?)?;
        Some((entry, DeviceId::new(vendor, product), parts.next()?))
    })
}

/// Hexadecimal, with `0x` if one likes.
fn number(digits: &str) -> Option<u16> {
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
    if digits.starts_with('+') {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: DeviceId = DeviceId::new(0x174c, 0x55aa);

    #[test]
    fn the_first_entry_of_a_device_counts() {
        let value = "0bc2:331a:t,174c:55aa:uf,174C:55AA:g";
        assert_eq!(flags_of(value, ID), Some(Flags::of(&[Flag::IgnoreUas, Flag::NoReportOpcodes])));
        assert_eq!(letters_of(value, ID), Some("uf"));
        assert_eq!(flags_of(value, DeviceId::new(1, 2)), None);
    }

    #[test]
    fn no_letters_are_an_entry_all_the_same() {
        assert_eq!(flags_of("174c:55aa:", ID), Some(Flags::NONE));
        assert_eq!(flags_of("174c:55aa", ID), None);
    }

    #[test]
    fn numbers_are_written_in_many_ways_and_letters_may_be_unknown() {
        assert_eq!(flags_of("0x174c:0X55Aa:Uq!", ID), Some(Flags::of(&[Flag::IgnoreUas])));
    }

    #[test]
    fn what_is_no_entry_is_passed_over() {
        assert_eq!(flags_of(",,x:y:u,+174c:55aa:g,174c:55aa:u", ID), Some(Flags::of(&[Flag::IgnoreUas])));
        assert_eq!(flags_of("10174c:55aa:u", ID), None);
        assert_eq!(flags_of("", ID), None);
    }

    #[test]
    fn an_entry_is_changed_and_the_others_stay() {
        assert_eq!(with("", ID, "u"), "174c:55aa:u");
        assert_eq!(with("1:2:u,174c:55aa:u", ID, ""), "1:2:u,174c:55aa:");
        assert_eq!(without("174c:55aa:u,1:2:u", ID), "1:2:u");
        assert_eq!(without("174c:55aa:u", ID), "");
        assert_eq!(with("idVendor:idProduct:u,174c:55aa,1:2:t", ID, "u"), "1:2:t,174c:55aa:u");
        assert_eq!(readable("1:2:t,VID:PID:u"), "1:2:t");
        assert_eq!(readable("1:2:t,3:4:u;reboot,5:6:$(reboot)"), "1:2:t");
    }

    proptest::proptest! {
        #[test]
        fn what_was_set_is_what_is_found(value: String, letters in "[a-z]{0,22}") {
            let changed = with(&value, ID, &letters);
            proptest::prop_assert_eq!(letters_of(&changed, ID), Some(letters.as_str()));
            let without = without(&changed, ID);
            proptest::prop_assert_eq!(letters_of(&without, ID), None);
        }
    }
}
