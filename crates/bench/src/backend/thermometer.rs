//! The drive's own temperature, before the first run and after the last.
//!
//! Our drivers read it while identifying the drive, which is not measured; Linux quirks say which
//! commands are safe. The quirks of both drivers apply, since we use the drive both ways. Left out:
//! the kernel's sensor.
//!
//! Always true: a drive that reported nothing is not asked again, and one that failed on the
//! request is opened without it.

use super::quirks::KnownQuirks;
use initiator::disk::{AskTemperature, Temperature, TemperatureSource};
use quirks::quirk::{Flag, Flags};

/// Whether a drive was asked for its temperature, and its readings.
#[derive(Debug, Default)]
pub(super) struct Thermometer {
    is_asked: bool,
    readings: [Option<Temperature>; 2],
}

impl Thermometer {
    /// How to ask a drive that is opened: once.
    pub(super) fn asks(&self, known: KnownQuirks) -> AskTemperature {
        if self.is_asked { AskTemperature::Not } else { allowed(known.flags()) }
    }

    /// Records the first reading, also if the drive failed on the request.
    pub(super) fn note_before(&mut self, reading: Option<Temperature>) {
        if !self.is_asked {
            (self.is_asked, self.readings[0]) = (true, reading);
        }
    }

    /// How to ask at the end: as at the beginning, if that worked.
    pub(super) fn asks_again(&self) -> Option<AskTemperature> {
        match self.readings {
            [Some(Temperature { source: TemperatureSource::LogPage, .. }), None] => {
                Some(AskTemperature::ByLog)
            }
            [Some(Temperature { source: TemperatureSource::Smart, .. }), None] => {
                Some(AskTemperature::ByLogOrSmart)
            }
            _ => None,
        }
    }

    pub(super) fn note_after(&mut self, reading: Option<Temperature>) {
        self.readings[1] = reading;
    }

    /// Returns the readings before the first run and after the last.
    pub(super) const fn readings(&self) -> [Option<Temperature>; 2] {
        self.readings
    }
}

/// Which requests are safe with these effective Linux flags.
const fn allowed(flags: Flags) -> AskTemperature {
    if flags.contains(Flag::NoReportOpcodes) {
        // One unknown command is too much for it.
        AskTemperature::Not
    } else if flags.contains(Flag::NoAta1x) {
        AskTemperature::ByLog
    } else {
        AskTemperature::ByLogOrSmart
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inspect::inventory::{Inventory, Scope};
    use inspect::tree::Tree;

    /// A recorded machine with these ids at port 3-3 and these user quirks.
    fn asks(id: (&str, &str), quirks: &str) -> AskTemperature {
        const GUEST: &str = include_str!("../../../inspect/tests/trees/guest.tree");
        const DEVICE: &str = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-3";
        const QUIRKS: &str = "/sys/module/usb_storage/parameters/quirks";
        let (vendor, product) = id;
        let text = format!(
            "{GUEST}\n{DEVICE}/idVendor = {vendor}\n{DEVICE}/idProduct = {product}\n{QUIRKS} = {quirks}\n"
        );
        let tree = Tree::of(text.parse().expect("a record"));
        let inventory = Inventory::read(&tree, Scope::Brief);
        let device = inventory.devices.iter().find(|device| device.port == "3-3").expect("it is recorded");
        assert_eq!(device.id.to_string(), format!("{vendor}:{product}"));
        Thermometer::default().asks(KnownQuirks::of(&inventory, device))
    }

    #[test]
    fn linux_quirks_limit_temperature_requests() {
        assert_eq!(asks(("46f4", "0003"), ""), AskTemperature::ByLogOrSmart);
        // VL711 has ATA pass-through blocked, as has all of Seagate; JMS567 hangs on REPORT
        // SUPPORTED OPERATION CODES.
        assert_eq!(asks(("2109", "0711"), ""), AskTemperature::ByLog);
        assert_eq!(asks(("0bc2", "2312"), ""), AskTemperature::ByLog);
        assert_eq!(asks(("152d", "0567"), ""), AskTemperature::Not);
    }

    #[test]
    fn user_quirks_replace_built_in_ones() {
        assert_eq!(asks(("46f4", "0003"), "46f4:0003:t"), AskTemperature::ByLog);
        assert_eq!(asks(("46f4", "0003"), "46f4:0003:f"), AskTemperature::Not);
        assert_eq!(asks(("2109", "0711"), "2109:0711:"), AskTemperature::ByLogOrSmart);
    }

    #[test]
    fn temperature_is_read_once_before_and_once_after() {
        let warm = |celsius, source| Some(Temperature { celsius, source });
        let mut silent = Thermometer::default();
        silent.note_before(None);
        assert_eq!((silent.is_asked, silent.asks_again()), (true, None));
        let mut by_log = Thermometer::default();
        by_log.note_before(warm(35, TemperatureSource::LogPage));
        // Another transport is opened, and was not asked.
        by_log.note_before(None);
        assert_eq!(by_log.asks_again(), Some(AskTemperature::ByLog));
        by_log.note_after(warm(41, TemperatureSource::LogPage));
        assert_eq!(
            by_log.readings().map(|reading| reading.map(|reading| reading.celsius)),
            [Some(35), Some(41)]
        );
        assert_eq!(by_log.asks_again(), None);
        let mut smart = Thermometer::default();
        smart.note_before(warm(35, TemperatureSource::Smart));
        assert_eq!(smart.asks_again(), Some(AskTemperature::ByLogOrSmart));
    }
}
