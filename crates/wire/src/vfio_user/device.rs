//! DEVICE_GET_INFO: what the device is (vfio-user.rst; linux/vfio.h, `struct vfio_device_info`).

use super::Command;

register_bits! {
    /// Properties of a device.
    pub struct DeviceFlags: u32 {
        /// It can be reset.
        RESET = 0x01 => "reset",
        /// It is a PCI device.
        PCI = 0x02 => "PCI",
    }
}

fixed_layout! {
    /// A question of the client, and the answer in the same structure.
    pub struct DeviceInfo is Command::DeviceInfo => {
        /// Bytes that the client has room for, or that the server would need.
        size: u32 as u32,
        /// Properties.
        flags: DeviceFlags as u32,
        /// How many regions there are.
        regions: u32 as u32,
        /// How many interrupt types there are.
        interrupts: u32 as u32,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_pci_device_that_can_be_reset() {
        let bytes = [16, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0];
        let info = DeviceInfo::decode(&bytes).unwrap();
        assert!(info.flags.has(DeviceFlags::PCI));
        assert_eq!(info.encode(), bytes);
        assert_eq!(info.to_string(), "DEVICE_GET_INFO, size 16, flags reset PCI, regions 9, interrupts 5");
        assert!(DeviceInfo::decode(&bytes[..15]).is_err());
    }
}
