//! Records of umockdev: `P:` a device's path below /sys, `A:` an attribute, `L:` a link, `H:` bytes, `E:` a property.

use super::facts::{Facts, InterfaceFact};
use super::section::Reader;
use super::system::{device_attribute, key};

/// Reads such a record.
pub(super) fn read(reader: &Reader<'_>, facts: &mut Facts) {
    let mut path = String::new();
    for line in reader.lines {
        let source = reader.source(line);
        let Some((mark, rest)) = line.text.split_once(": ") else { continue };
        match mark {
            "P" => path = format!("/sys{rest}"),
            "A" => {
                if let Some((name, value)) = rest.split_once('=') {
                    device_attribute(&format!("{path}/{name}"), &value.replace("\\n", ""), facts, source);
                }
            }
            "H" => {
                let name = path.rsplit('/').next().unwrap_or_default();
                let Some((_, digits)) = rest.split_once('=').filter(|(name, _)| *name == "descriptors")
                else {
                    continue;
                };
                let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
                let bytes: Option<Vec<u8>> = digits.trim().as_bytes().chunks(2).map(byte).collect();
                if let Some(bytes) = bytes {
                    facts.device(&key(name)).descriptors.get_or_insert((bytes, source));
                }
            }
            "L" => {
                let name = path.rsplit('/').next().unwrap_or_default();
                let Some((port, numbers)) = name.split_once(':') else { continue };
                let number = numbers.split_once('.').and_then(|(_, number)| number.parse().ok());
                let driver = rest.strip_prefix("driver=").and_then(|target| target.rsplit('/').next());
                if let (Some(number), Some(driver)) = (number, driver) {
                    let interface: &mut InterfaceFact = facts.device(&key(port)).interface(number);
                    interface.driver.get_or_insert_with(|| (Some(driver.to_owned()), source));
                }
            }
            _ => {}
        }
    }
}
