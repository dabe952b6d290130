//! Which chip is behind an id, where ids identify it.
//!
//! Vendors of enclosures reuse ids for several chips, and vendors of chips for whole lines of them, so a name here is
//! a hint and never evidence. Sources: the comments of Linux's unusual_uas.h, usb.ids, and smartmontools' list of bridges.

use super::DeviceId;

/// The chip, or the line of chips, that uses that id.
pub fn bridge_family(id: DeviceId) -> Option<&'static str> {
    FAMILIES.iter().find(|family| family.0 == id.vendor && family.1 == id.product).map(|family| family.2)
}

/// Whether an id is that of a storage device, by a vendor that makes little else. A hint for texts that do not name a
/// driver.
pub fn is_storage_id(id: DeviceId) -> bool {
    const VENDORS: [u16; 22] = [
        0x0480, 0x059f, 0x0634, 0x067b, 0x0781, 0x090c, 0x0984, 0x0bc2, 0x1058, 0x125f, 0x13fd, 0x14cd,
        0x152d, 0x154b, 0x174c, 0x17ef, 0x18a5, 0x1f75, 0x2537, 0x357d, 0x4971, 0x7825,
    ];
    let is_realtek = id.vendor == 0x0bda && matches!(id.product, 0x9201..=0x9230);
    let is_via = id.vendor == 0x2109 && matches!(id.product, 0x0700..=0x07ff);
    let is_samsung = id.vendor == 0x04e8 && matches!(id.product, 0x4001 | 0x6000..=0x61ff);
    let is_lenovo_other = id.vendor == 0x17ef && id.product != 0x3899;
    bridge_family(id).is_some()
        || is_realtek
        || is_via
        || is_samsung
        || VENDORS.contains(&id.vendor) && !is_lenovo_other
}

const FAMILIES: &[(u16, u16, &str)] = &[
    (0x067b, 0x2773, "Prolific PL2773"),
    (0x0bda, 0x9210, "Realtek RTL9210"),
    (0x0bda, 0x9220, "Realtek RTL9220"),
    (0x13fd, 0x3940, "Initio INIC-3069"),
    (0x152d, 0x0539, "JMicron JMS539"),
    (0x152d, 0x0562, "JMicron JMS562"),
    (0x152d, 0x0567, "JMicron JMS567"),
    (0x152d, 0x0578, "JMicron JMS578"),
    (0x152d, 0x0580, "JMicron JMS580"),
    (0x152d, 0x0583, "JMicron JMS583"),
    (0x174c, 0x2362, "ASMedia ASM2362"),
    (0x174c, 0x2364, "ASMedia ASM2364"),
    (0x174c, 0x5106, "ASMedia ASM1051"),
    (0x174c, 0x5136, "ASMedia ASM1053"),
    (0x174c, 0x51d6, "ASMedia ASM1051W"),
    (0x174c, 0x55aa, "ASMedia ASM1051, 1053 or 1153"),
    (0x2109, 0x0711, "VIA VL711"),
    (0x2109, 0x0715, "VIA VL715, 716 or 817"),
    (0x2537, 0x1068, "Norelsys NS1068X"),
    (0x357d, 0x7788, "JMicron JMS566"),
    (0x46f4, 0x0001, "QEMU usb-storage"),
    (0x46f4, 0x0003, "QEMU usb-uas"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_id_has_a_family_and_another_has_none() {
        assert_eq!(bridge_family(DeviceId::new(0x152d, 0x0567)), Some("JMicron JMS567"));
        assert_eq!(bridge_family(DeviceId::new(0x152d, 0xffff)), None);
    }

    #[test]
    fn no_id_is_there_twice() {
        let mut ids: Vec<_> = FAMILIES.iter().map(|family| (family.0, family.1)).collect();
        ids.dedup();
        assert!(ids.is_sorted());
        assert_eq!(ids.len(), FAMILIES.len());
    }
}
