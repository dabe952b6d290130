//! The binary device object store as `lsusb -v` prints it, rebuilt (USB 3.2 clause 9.6.2).
//!
//! Only what decides about speed is rebuilt: the SuperSpeed and SuperSpeedPlus capabilities. Always true: a field that
//! the text lacks is zero, and the store is as long as what is in it.

/// Sections of the store, by how their titles begin.
pub(super) const STORE: &str = "Binary Object Store";
pub(super) const SUPER_SPEED: &str = "SuperSpeed USB Device Capability";
pub(super) const SUPER_SPEED_PLUS: &str = "SuperSpeedPlus USB Device Capability";
/// Capabilities that do not matter, whose fields have the same names.
pub(super) const OTHERS: [&str; 6] = [
    "USB 2.0 Extension Device Capability",
    "Container ID Device Capability",
    "Platform Device Capability",
    "Billboard Capability",
    "Configuration Summary Device Capability",
    "Precision Time Measurement",
];

const DEVICE_CAPABILITY: u8 = 0x10;
const SUBLINKS_MAX: usize = 32;

/// Collects the fields of a store.
#[derive(Default)]
pub(super) struct Store {
    is_there: bool,
    super_speed: Option<[u8; 10]>,
    /// The attributes of each sublink.
    sublinks: Option<Vec<[u8; 4]>>,
}

impl Store {
    pub(super) fn begin(&mut self, title: &str) {
        self.is_there |= title == STORE;
        match title {
            SUPER_SPEED => self.super_speed = Some([10, DEVICE_CAPABILITY, 3, 0, 0, 0, 0, 0, 0, 0]),
            SUPER_SPEED_PLUS => self.sublinks = Some(Vec::new()),
            _ => {}
        }
    }

    pub(super) fn field(&mut self, title: &str, name: &str, value: &str) {
        let Some(number) = number(value) else { return };
        let bytes = number.to_le_bytes();
        match (title, name) {
            (SUPER_SPEED, "wSpeedsSupported") => {
                if let Some(capability) = &mut self.super_speed {
                    capability[4..6].copy_from_slice(&bytes[..2]);
                }
            }
            (SUPER_SPEED_PLUS, name) if name.starts_with("bmSublinkSpeedAttr") => {
                if let Some(sublinks) = self.sublinks.as_mut().filter(|all| all.len() < SUBLINKS_MAX) {
                    sublinks.push(bytes);
                }
            }
            _ => {}
        }
    }

    /// The store; `None` if the text has none.
    pub(super) fn finish(self) -> Option<Vec<u8>> {
        if !self.is_there {
            return None;
        }
        let mut capabilities: Vec<u8> = self.super_speed.into_iter().flatten().collect();
        let mut count = u8::from(!capabilities.is_empty());
        if let Some(sublinks) = self.sublinks.filter(|sublinks| !sublinks.is_empty()) {
            // bmAttributes begins with the number of sublinks less one.
            let last = u8::try_from(sublinks.len() - 1).unwrap_or_default();
            let len = u8::try_from(12 + 4 * sublinks.len()).unwrap_or(u8::MAX);
            capabilities.extend([len, DEVICE_CAPABILITY, 10, 0, last, 0, 0, 0, 0, 0, 0, 0]);
            capabilities.extend(sublinks.into_iter().flatten());
            count += 1;
        }
        let total = u16::try_from(5 + capabilities.len()).ok()?.to_le_bytes();
        Some([&[5, 15, total[0], total[1], count][..], &capabilities].concat())
    }
}

/// `0x000e`, `3`.
fn number(value: &str) -> Option<u32> {
    let word = value.split_whitespace().next()?;
    match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quirks::{fastest_lane_mbps, fastest_speed};

    #[test]
    fn a_store_has_the_speeds_that_the_text_prints() {
        let mut store = Store::default();
        store.begin(STORE);
        store.begin(SUPER_SPEED);
        store.field(SUPER_SPEED, "wSpeedsSupported", "0x000e");
        assert_eq!(fastest_speed(&store.finish().expect("a store")), Some(bus::Speed::Super));
        let mut store = Store::default();
        store.begin(STORE);
        store.begin(SUPER_SPEED_PLUS);
        store.field(SUPER_SPEED_PLUS, "bmSublinkSpeedAttr[0]", "0x000a4030");
        store.field(SUPER_SPEED_PLUS, "bmSublinkSpeedAttr[1]", "0x000a40b0");
        assert_eq!(fastest_lane_mbps(&store.finish().expect("a store")), Some(10_000));
        assert_eq!(Store::default().finish(), None);
    }
}
