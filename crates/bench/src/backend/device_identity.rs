//! Whether a drive at a port is the one that its owner was asked about, and that other routes were measured on.
//!
//! Compared is what a drive keeps on each transport: USB id, USB serial number, the unit's serial number (VPD page 80h), capacity. What one
//! side does not know is learnt when the other does: the kernel asks for no page over Bulk-Only. Left out: names, which bridges
//! show differently by transport; drives without serial numbers that are alike in all of this cannot be told apart.
//!
//! Always true: one block more or less is the same capacity, since the kernel takes one off where it knows a drive to tell one too many.

use initiator::disk::Geometry;
use inspect::inventory::{Disk, UsbDevice};
use quirks::DeviceId;
use units::Capacity;

/// What is known of the drive that was agreed to.
#[derive(Clone, Debug, Default)]
pub(super) struct DeviceIdentity {
    id: Option<DeviceId>,
    usb_serial: Option<String>,
    /// Of the logical unit.
    serial: Option<String>,
    bytes: Option<u64>,
}

impl DeviceIdentity {
    /// What an inventory knows of a drive and of the unit that is driven.
    pub(super) fn of(device: &UsbDevice, disk: Option<&Disk>) -> Self {
        Self {
            id: Some(device.id),
            usb_serial: device.serial.clone(),
            serial: disk.and_then(|disk| disk.serial.clone()).filter(|serial| is_plain(serial)),
            // Without a medium, none is told.
            bytes: disk.and_then(|disk| disk.bytes).filter(|bytes| *bytes > 0),
        }
    }

    /// Whether the device at the port is the same, before anything of it is taken.
    ///
    /// # Errors
    /// What was agreed to, and what is there.
    pub(super) fn recognise(&mut self, device: &UsbDevice) -> Result<(), String> {
        let now = Self::of(device, None);
        self.compare(&now)
    }

    /// Whether the unit is the same, by its own answers.
    ///
    /// # Errors
    /// As above.
    pub(super) fn recognise_unit(&mut self, geometry: &Geometry) -> Result<(), String> {
        let block_bytes = geometry.block_size.bytes().into();
        self.compare_unit(geometry.identity.serial.as_deref(), geometry.bytes(), block_bytes)
    }

    fn compare_unit(&mut self, serial: Option<&str>, bytes: u64, block_bytes: u64) -> Result<(), String> {
        let bytes = match self.bytes {
            Some(agreed) if agreed.abs_diff(bytes) <= block_bytes => agreed,
            _ => bytes,
        };
        let serial = serial.filter(|serial| is_plain(serial)).map(str::to_owned);
        self.compare(&Self { serial, bytes: Some(bytes), ..Self::default() })
    }

    /// Learns what was not known.
    fn compare(&mut self, now: &Self) -> Result<(), String> {
        let size = |agreed: &Self| agreed.bytes.map(|bytes| Capacity(bytes).to_string());
        let differences = [
            difference("USB id", self.id, now.id),
            difference("USB serial number", self.usb_serial.as_ref(), now.usb_serial.as_ref()),
            difference("serial number", self.serial.as_ref(), now.serial.as_ref()),
            // Two sizes may read alike.
            difference("bytes", self.bytes, now.bytes).filter(|_| size(self) == size(now)),
            difference("capacity", size(self), size(now)),
        ];
        let differences: Vec<String> = differences.into_iter().flatten().collect();
        if !differences.is_empty() {
            return Err(differences.join("; "));
        }
        self.id = self.id.or(now.id);
        self.usb_serial = self.usb_serial.take().or_else(|| now.usb_serial.clone());
        self.serial = self.serial.take().or_else(|| now.serial.clone());
        self.bytes = self.bytes.or(now.bytes);
        Ok(())
    }
}

/// What is not known on one side is no difference.
fn difference<T: PartialEq + std::fmt::Display>(
    what: &str,
    agreed: Option<T>,
    now: Option<T>,
) -> Option<String> {
    let (agreed, now) = (agreed?, now?);
    (agreed != now).then(|| format!("{what} {agreed} then, {now} now"))
}

/// Whether a serial number reads the same whoever has read it: other bytes are escaped in one way by the kernel's reader, in another by ours.
fn is_plain(serial: &str) -> bool {
    serial.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'\\' | b'\'' | b'"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed() -> DeviceIdentity {
        DeviceIdentity {
            id: Some(DeviceId::new(0x174c, 0x55aa)),
            usb_serial: Some("0123".into()),
            serial: Some("UNIT1".into()),
            bytes: Some(16 << 20),
        }
    }

    #[test]
    fn another_drive_is_told_from_the_one_that_was_agreed_to() {
        let told = agreed().compare(&DeviceIdentity { id: Some(DeviceId::new(0x174c, 0x1153)), ..agreed() });
        assert_eq!(told, Err("USB id 174c:55aa then, 174c:1153 now".into()));
        let told = agreed().compare(&DeviceIdentity { usb_serial: Some("0124".into()), ..agreed() });
        assert_eq!(told, Err("USB serial number 0123 then, 0124 now".into()));
        let told = agreed().compare_unit(Some("UNIT2"), 32 << 20, 512);
        assert_eq!(told, Err("serial number UNIT1 then, UNIT2 now; capacity 16 MiB then, 32 MiB now".into()));
        agreed().compare_unit(Some("UNIT1"), 15 << 20, 512).expect_err("it is smaller");
        agreed().compare_unit(Some("UNIT1"), (16 << 20) + 1024, 512).expect_err("two blocks more");
    }

    #[test]
    fn what_is_not_known_is_no_difference_and_learnt() {
        let mut agreed = DeviceIdentity { serial: None, bytes: None, ..agreed() };
        agreed.compare(&DeviceIdentity::default()).expect("nothing is known");
        agreed.compare_unit(None, 16 << 20, 4096).expect("it was not known");
        // The kernel had taken off a block.
        agreed.compare_unit(Some("UNIT1"), (16 << 20) + 4096, 4096).expect("it was not known");
        let told = agreed.compare_unit(Some("UNIT2"), 16 << 20, 4096);
        assert_eq!(told, Err("serial number UNIT1 then, UNIT2 now".into()));
        // Neither reads as the kernel has it.
        agreed.compare_unit(Some("\\xff1"), 16 << 20, 4096).expect("it is no text");
    }
}
