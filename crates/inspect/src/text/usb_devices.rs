//! `/sys/kernel/debug/usb/devices` and the script `usb-devices`, which print the same lines
//! (Documentation/driver-api/usb/usb.rst).

use super::facts::{Facts, Key};
use super::section::{Reader, number};

/// Reads blocks that begin with `T:`.
pub(super) fn read(reader: &Reader<'_>, facts: &mut Facts) {
    // Device numbers of hubs and their ports, by bus.
    let mut places: Vec<(u16, u16, String)> = Vec::new();
    let mut key = Key::default();
    for line in reader.lines {
        let text = line.text.as_ref();
        let source = reader.source(line);
        let value = |name: &str| text.split_once(name).map(|(_, rest)| rest.trim_start());
        match text.get(..2) {
            Some("T:") => {
                let (Some(bus), Some(device)) =
                    (value("Bus=").and_then(number::<u16>), value("Dev#=").and_then(number::<u16>))
                else {
                    continue;
                };
                let level: u16 = value("Lev=").and_then(number).unwrap_or_default();
                let parent: u16 = value("Prnt=").and_then(number).unwrap_or_default();
                let port: u32 = value("Port=").and_then(number::<u32>).unwrap_or_default() + 1;
                let hub = places.iter().find(|(on, at, _)| (*on, *at) == (bus, parent));
                let name = match (level, hub) {
                    (0, _) => format!("usb{bus}"),
                    (1, _) => format!("{bus}-{port}"),
                    (_, Some((_, _, hub))) => format!("{hub}.{port}"),
                    _ => continue,
                };
                places.push((bus, device, name.clone()));
                key = Key { port: Some(name), bus: Some(bus), number: Some(device) };
                let fact = facts.device(&key);
                if let Some(speed) = value("Spd=") {
                    fact.set("speed", speed.split_whitespace().next().unwrap_or_default(), &source);
                }
                if let Some(ports) = value("MxCh=").and_then(number::<u32>).filter(|ports| *ports > 0) {
                    fact.set("maxchild", ports.to_string(), &source);
                }
            }
            Some("P:") => {
                let fact = facts.device(&key);
                let digits =
                    |name: &str| value(name).and_then(|rest| rest.get(..4)).unwrap_or_default().to_owned();
                fact.set("idVendor", digits("Vendor="), &source);
                fact.set("idProduct", digits("ProdID="), &source);
                let revision = value("Rev=").unwrap_or_default().replace('.', "");
                fact.set("bcdDevice", format!("{:0>4}", revision.trim()), &source);
            }
            Some("S:") => {
                let fact = facts.device(&key);
                for (name, attribute) in
                    [("Manufacturer=", "manufacturer"), ("Product=", "product"), ("SerialNumber=", "serial")]
                {
                    if let Some(text) = value(name) {
                        fact.set(attribute, text, &source);
                    }
                }
            }
            Some("C:") if text.starts_with("C:*") => {
                let power = value("MxPwr=").unwrap_or_default().replace(' ', "");
                facts.device(&key).set("bMaxPower", power, &source);
            }
            Some("I:") => interface(text, facts, &key, &source),
            _ => {}
        }
    }
}

/// `I:* If#= 0 Alt= 1 #EPs= 4 Cls=08(stor.) Sub=06 Prot=62 Driver=uas`; the star marks the setting in use.
fn interface(text: &str, facts: &mut Facts, key: &Key, source: &super::Source) {
    let value = |name: &str| text.split_once(name).map(|(_, rest)| rest.trim_start());
    let byte = |name: &str| value(name).and_then(|rest| u8::from_str_radix(rest.get(..2)?, 16).ok());
    let (Some(own), Some(class)) = (value("If#=").and_then(number::<u8>), byte("Cls=")) else { return };
    let is_in_use = text.starts_with("I:*");
    let interface = facts.device(key).interface(own);
    interface.is_storage |= class == 8;
    if !is_in_use {
        return;
    }
    interface.class = Some((class, byte("Sub=").unwrap_or_default(), byte("Prot=").unwrap_or_default()));
    interface.alternate = value("Alt=").and_then(number);
    if let Some(driver) = value("Driver=") {
        let driver = Some(driver.trim())
            .filter(|driver| !driver.is_empty() && *driver != "(none)" && *driver != "[none]");
        interface.driver.get_or_insert_with(|| (driver.map(str::to_owned), source.clone()));
    }
}
