//! `lspci`, with `-nn` and `-k`: host controllers, their ids and drivers.

use super::facts::Facts;
use super::section::Reader;

/// The address that a line begins with, with its domain.
pub(super) fn address(text: &str) -> Option<String> {
    let (address, rest) = text.split_once(' ')?;
    let is_digits =
        |text: &str, len: usize| text.len() == len && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (domain, short) = match address.split(':').count() {
        3 => address.split_once(':')?,
        2 => ("0000", address),
        _ => return None,
    };
    let (bus, function) = short.split_once(':')?;
    let (device, function) = function.split_once('.')?;
    let is_address = is_digits(domain, 4)
        && is_digits(bus, 2)
        && is_digits(device, 2)
        && is_digits(function, 1)
        && !rest.is_empty();
    // A clock has no function, a log line no class before its first colon.
    is_address.then(|| format!("{domain}:{short}"))
}

/// Reads lines of `lspci`; only USB controllers count.
pub(super) fn read(reader: &Reader<'_>, facts: &mut Facts) {
    let mut current: Option<String> = None;
    for line in reader.lines {
        let text = line.text.as_ref();
        if let Some(name) = address(text) {
            let is_usb =
                text.contains("USB controller") || text.contains("[0c03]") || text.contains("Class 0c03");
            current = is_usb.then(|| name.clone());
            if !is_usb {
                continue;
            }
            let source = reader.source(line);
            let controller = facts.controller(&name);
            controller.source.get_or_insert(source);
            controller.pci = controller.pci.or_else(|| ids(text));
        } else if let (Some(name), Some((_, driver))) = (&current, text.split_once("Kernel driver in use: "))
        {
            facts.controller(name).driver = Some(driver.trim().to_owned());
        }
    }
}

/// The last `[8086:a36d]` of a line; the class has no colon.
fn ids(text: &str) -> Option<(u16, u16)> {
    let of = |part: &str| {
        let (vendor, device) = part.split(']').next()?.split_once(':')?;
        Some((u16::from_str_radix(vendor, 16).ok()?, u16::from_str_radix(device, 16).ok()?))
    };
    text.split('[').skip(1).filter_map(of).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_not_an_address() {
        assert_eq!(address("00:14.0 USB controller: x").as_deref(), Some("0000:00:14.0"));
        assert_eq!(address("0000:0c:00.3 USB controller: x").as_deref(), Some("0000:0c:00.3"));
        assert_eq!(address("12:30:01 host kernel: x"), None);
        assert_eq!(ids("00:14.0 USB controller [0c03]: Intel [8086:a36d] (rev 10)"), Some((0x8086, 0xa36d)));
    }
}
