//! Detects a drive that was replaced since the user confirmed it and since other routes were
//! measured.
//!
//! Compares what a drive reports on every transport: USB id, USB serial number, the serial number
//! of the logical unit (VPD page 80h), capacity. A value that one side lacks is filled in from the
//! other, since the kernel requests no VPD page over Bulk-Only. Left out: names, which bridges
//! report differently per transport; identical drives without serial numbers are indistinguishable.
//!
//! Always true: capacities that differ by one block are equal, since the kernel subtracts one on
//! drives known to report one too many.

use initiator::disk::Geometry;
use inspect::inventory::{Disk, UsbDevice};
use quirks::DeviceId;
use units::Capacity;

/// The known identity of the confirmed drive.
#[derive(Clone, Debug, Default)]
pub(super) struct DeviceIdentity {
    id: Option<DeviceId>,
    usb_serial: Option<String>,
    /// Serial number of the logical unit.
    serial: Option<String>,
    bytes: Option<u64>,
}

impl DeviceIdentity {
    /// Takes what an inventory knows of a drive and of the measured logical unit.
    pub(super) fn of(device: &UsbDevice, disk: Option<&Disk>) -> Self {
        Self {
            id: Some(device.id),
            usb_serial: device.serial.clone(),
            serial: disk.and_then(|disk| disk.serial.clone()).filter(|serial| is_plain(serial)),
            // Without a medium there is no capacity.
            bytes: disk.and_then(|disk| disk.bytes).filter(|bytes| *bytes > 0),
        }
    }

    /// Checks the device at the port before anything is claimed.
    ///
    /// # Errors
    ///
    /// The differences between the confirmed device and this one.
    pub(super) fn recognise(&mut self, device: &UsbDevice) -> Result<(), String> {
        let now = Self::of(device, None);
        self.compare(&now)
    }

    /// Checks the logical unit by its own responses.
    ///
    /// # Errors
    ///
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

    /// Fills in missing values.
    fn compare(&mut self, now: &Self) -> Result<(), String> {
        let size = |agreed: &Self| agreed.bytes.map(|bytes| Capacity(bytes).to_string());
        let differences = [
            difference("USB id", self.id, now.id),
            difference("USB serial number", self.usb_serial.as_ref(), now.usb_serial.as_ref()),
            difference("serial number", self.serial.as_ref(), now.serial.as_ref()),
            // Two sizes may format alike.
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

/// A value missing on either side is no difference.
fn difference<T: PartialEq + std::fmt::Display>(
    what: &str,
    agreed: Option<T>,
    now: Option<T>,
) -> Option<String> {
    let (agreed, now) = (agreed?, now?);
    (agreed != now).then(|| format!("{what} {agreed} then, {now} now"))
}

/// Whether a serial number reads alike in the kernel and here: both escape other bytes, each
/// differently.
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
    fn a_different_drive_is_detected() {
        let compared =
            agreed().compare(&DeviceIdentity { id: Some(DeviceId::new(0x174c, 0x1153)), ..agreed() });
        assert_eq!(compared, Err("USB id 174c:55aa then, 174c:1153 now".into()));
        let compared = agreed().compare(&DeviceIdentity { usb_serial: Some("0124".into()), ..agreed() });
        assert_eq!(compared, Err("USB serial number 0123 then, 0124 now".into()));
        let compared = agreed().compare_unit(Some("UNIT2"), 32 << 20, 512);
        assert_eq!(
            compared,
            Err("serial number UNIT1 then, UNIT2 now; capacity 16 MiB then, 32 MiB now".into())
        );
        agreed().compare_unit(Some("UNIT1"), 15 << 20, 512).expect_err("it is smaller");
        agreed().compare_unit(Some("UNIT1"), (16 << 20) + 1024, 512).expect_err("two blocks more");
    }

    #[test]
    fn missing_values_match_and_are_filled_in() {
        let mut agreed = DeviceIdentity { serial: None, bytes: None, ..agreed() };
        agreed.compare(&DeviceIdentity::default()).expect("nothing is known");
        agreed.compare_unit(None, 16 << 20, 4096).expect("it was not known");
        // The kernel had taken off a block.
        agreed.compare_unit(Some("UNIT1"), (16 << 20) + 4096, 4096).expect("it was not known");
        let compared = agreed.compare_unit(Some("UNIT2"), 16 << 20, 4096);
        assert_eq!(compared, Err("serial number UNIT1 then, UNIT2 now".into()));
        // Not readable as the kernel formats it.
        agreed.compare_unit(Some("\\xff1"), 16 << 20, 4096).expect("it is no text");
    }
}
