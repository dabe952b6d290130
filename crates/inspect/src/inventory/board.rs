//! The board: a Raspberry Pi limits what its USB ports draw together, and notices when its supply is too low.
//!
//! The model is in the device tree, the supply in hwmon (drivers/hwmon/raspberrypi-hwmon.c: in0_lcrit_alarm) and in the
//! firmware's `get_throttled`, whose bit 0 is now and whose bit 16 is since boot. Limits are those of raspberrypi/documentation,
//! computers/raspberry-pi/power-supplies.adoc: 1.2 A for 2, 3, 4 and 400, 1.6 A for 5 and 500, 600 mA with a supply of 3 A. Left out: compute modules, whose carrier board decides; other boards, which publish no limit.

/// Where the device tree has the name of the board.
pub(crate) const MODEL: &str = "/proc/device-tree/model";

/// Where the firmware of a Raspberry Pi shows what it has throttled.
pub(crate) const THROTTLED: &str = "/sys/devices/platform/soc/soc:firmware/get_throttled";

const POWER: &str = "/proc/device-tree/chosen/power";
const HWMON: &str = "/sys/class/hwmon";

/// Sensors that are looked at.
const SENSORS_MAX: usize = 64;

/// mA of a supply from which on a Raspberry Pi 5 gives its ports all it can.
const FULL_SUPPLY_MA: u32 = 5000;

/// The files that a board is known by.
pub(super) struct BoardFiles<'a> {
    /// Of a path.
    pub(super) bytes: &'a dyn Fn(&str) -> Option<Vec<u8>>,
    /// Names below a path.
    pub(super) names: &'a dyn Fn(&str) -> Vec<String>,
}

impl BoardFiles<'_> {
    fn text(&self, path: &str) -> Option<String> {
        let bytes = (self.bytes)(path)?;
        Some(String::from_utf8_lossy(&bytes).trim_matches(['\0', '\n', ' ']).to_owned())
    }

    /// A cell of a device tree, which is big-endian.
    fn cell(&self, path: &str) -> Option<u32> {
        Some(u32::from_be_bytes(*(self.bytes)(path)?.first_chunk()?))
    }
}

/// A board that is known by its device tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Board {
    /// Its name there.
    pub model: String,
    /// The current that all of its USB ports supply together, in mA.
    pub usb_ma: Option<u32>,
    /// Whether its supply was too low.
    pub supply: Option<Supply>,
}

/// The state of a board's supply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supply {
    /// It is too low now.
    pub is_low: bool,
    /// It was too low since boot.
    pub was_low: bool,
    /// The file.
    pub path: String,
    /// The text of the file.
    pub text: String,
}

impl Board {
    pub(super) fn read(files: &BoardFiles<'_>) -> Option<Self> {
        let model = files.text(MODEL).unwrap_or_default();
        let supply = Supply::of_firmware(files).or_else(|| Supply::of_sensors(files));
        if model.is_empty() && supply.is_none() {
            return None;
        }
        Some(Self { usb_ma: usb_ma(files, &model), model, supply })
    }
}

/// Returns the current that the ports of a model supply together, in mA.
fn usb_ma(files: &BoardFiles<'_>, model: &str) -> Option<u32> {
    let number = model.strip_prefix("Raspberry Pi ")?.split(' ').next()?;
    match number {
        "5" | "500" => {
            let cell = |name: &str| files.cell(&format!("{POWER}/{name}"));
            let is_full = cell("max_current").is_some_and(|ma| ma >= FULL_SUPPLY_MA)
                || cell("usb_max_current_enable").is_some_and(|enable| enable != 0);
            Some(if is_full { 1600 } else { 600 })
        }
        "2" | "3" | "4" | "400" => Some(1200),
        _ => None,
    }
}

impl Supply {
    fn of_firmware(files: &BoardFiles<'_>) -> Option<Self> {
        let text = files.text(THROTTLED)?;
        let digits = text.trim_start_matches("throttled=").trim_start_matches("0x");
        let flags = u32::from_str_radix(digits, 16).ok()?;
        let is_low = flags % 2 == 1;
        let was_low = is_low || flags / 0x1_0000 % 2 == 1;
        Some(Self { is_low, was_low, path: THROTTLED.to_owned(), text })
    }

    fn of_sensors(files: &BoardFiles<'_>) -> Option<Self> {
        let sensors = (files.names)(HWMON);
        sensors.iter().take(SENSORS_MAX).find_map(|sensor| {
            let path = format!("{HWMON}/{sensor}/in0_lcrit_alarm");
            // A pasted line has the alarm alone, and no other sensor has this one.
            if files.text(&format!("{HWMON}/{sensor}/name")).is_some_and(|name| name != "rpi_volt") {
                return None;
            }
            let text = files.text(&path)?;
            let is_low = text == "1";
            Some(Self { is_low, was_low: is_low, path, text })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(files: &[(&str, &[u8])]) -> Option<Board> {
        let bytes = |path: &str| files.iter().find(|file| file.0 == path).map(|file| file.1.to_vec());
        let names = |path: &str| {
            let below = files.iter().filter_map(|file| file.0.strip_prefix(path)?.split('/').nth(1));
            below.map(str::to_owned).collect()
        };
        Board::read(&BoardFiles { bytes: &bytes, names: &names })
    }

    #[test]
    fn ports_of_a_raspberry_pi_share_a_limit() {
        let ma = |model: &str| board(&[(MODEL, model.as_bytes())]).and_then(|board| board.usb_ma);
        assert_eq!(ma("Raspberry Pi 4 Model B Rev 1.4\0"), Some(1200));
        assert_eq!(ma("Raspberry Pi 5 Model B Rev 1.0\0"), Some(600));
        assert_eq!(ma("Raspberry Pi Compute Module 4 Rev 1.0\0"), None);
        assert_eq!(ma("Radxa ROCK 5B\0"), None);
        let model = "Raspberry Pi 5 Model B Rev 1.0\0".as_bytes();
        let full = [0, 0, 0x13, 0x88];
        let five = board(&[(MODEL, model), ("/proc/device-tree/chosen/power/max_current", &full)]);
        assert_eq!(five.and_then(|board| board.usb_ma), Some(1600));
    }

    #[test]
    fn the_supply_is_read_from_hwmon_and_firmware() {
        let low = |files: &[(&str, &[u8])]| {
            let supply = board(files)?.supply?;
            Some((supply.is_low, supply.was_low))
        };
        let alarm = "/sys/class/hwmon/hwmon2/in0_lcrit_alarm";
        assert_eq!(
            low(&[("/sys/class/hwmon/hwmon2/name", b"rpi_volt\n"), (alarm, b"1\n")]),
            Some((true, true))
        );
        assert_eq!(low(&[("/sys/class/hwmon/hwmon2/name", b"nvme\n"), (alarm, b"1\n")]), None);
        assert_eq!(low(&[(alarm, b"0")]), Some((false, false)));
        assert_eq!(low(&[(THROTTLED, b"50000\n")]), Some((false, true)));
        assert_eq!(low(&[(THROTTLED, b"throttled=0x50005")]), Some((true, true)));
        assert_eq!(low(&[]), None);
    }
}
