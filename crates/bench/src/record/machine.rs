//! The machine, and the USB device behind a drive, in a record.

use super::{Machine, Target};
use inspect::inventory::{Interface, Inventory};
use inspect::tree::Tree;

impl Machine {
    /// The machine of a tree.
    pub fn of(tree: &Tree) -> Self {
        let lines = tree.lines("/proc/cpuinfo", |line| line.starts_with("model name")).unwrap_or_default();
        let name = |line: &String| line.split_once(':').map(|(_, name)| name.trim().to_owned());
        Self {
            kernel: tree.text("/proc/sys/kernel/osrelease").ok(),
            processor: lines.first().and_then(name),
            processors: lines.len(),
        }
    }
}

impl Target {
    /// Adds what is known of the USB device at a port.
    pub fn add_usb(&mut self, inventory: &Inventory, port: &str) {
        self.usb_port = Some(port.to_owned());
        let Some(device) = inventory.devices.iter().find(|device| device.port == port) else { return };
        self.usb_id = Some(device.id.to_string());
        self.usb_speed = Some(device.speed.to_string());
        self.driver = Interface::storage_of(device).find_map(|interface| interface.driver.clone());
        self.controller = inventory.controller_of(device).map(|controller| {
            let pci = controller
                .pci
                .map(|(vendor, device)| format!(" {vendor:04x}:{device:04x}"))
                .unwrap_or_default();
            format!("{}{pci} ({})", controller.name, controller.driver.as_deref().unwrap_or("no driver"))
        });
    }
}
