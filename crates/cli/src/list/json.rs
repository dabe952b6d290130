//! The list for programs: one object, whose fields are only added to.

use inspect::diagnose::Absent;
use inspect::inventory::{
    Controller, Disk, Interface, Inventory, LinkSpeed, Transport, UsbDevice, bridge_family,
};
use inspect::text::ForeignSystem;
use serde_json::{Value, json};

/// The whole list; every device with `all`, else drives.
pub(super) fn inventory(inventory: &Inventory, all: bool) -> Value {
    let shown = inventory.devices.iter().filter(|device| all || device.is_storage());
    json!({
        "kernel": inventory.release,
        "controllers": inventory.controllers.iter().map(controller).collect::<Vec<_>>(),
        "devices": shown.map(device).collect::<Vec<_>>(),
        "quirks_in_force": inventory.quirks.in_force,
        "absent": inspect::diagnose::absent(inventory).iter().map(absent).collect::<Vec<_>>(),
        "other_systems": other_systems(inventory),
    })
}

/// A drive, port or controller that the log speaks of and that is not there; `why` prints it as well.
pub(crate) fn absent(absent: &Absent) -> Value {
    json!({
        "place": absent.place,
        "kind": absent.kind.name(),
        "id": absent.id.map(|id| id.to_string()),
        "because": absent.because,
    })
}

/// Drives of Windows and macOS, in a report that is text of them.
pub(crate) fn other_systems(inventory: &Inventory) -> Value {
    let drives = inventory.report.iter().flat_map(|report| &report.foreign);
    drives
        .map(|drive| {
            json!({
                "system": match drive.system {
                    ForeignSystem::Windows => "windows",
                    ForeignSystem::MacOs => "macos",
                    ForeignSystem::FreeBsd => "freebsd",
                    ForeignSystem::OtherBsd => "bsd",
                },
                "id": drive.id.to_string(),
                "name": drive.name,
                "driver": drive.driver,
                "transport": drive.transport,
                "speed": drive.speed,
                "error": drive.error,
            })
        })
        .collect()
}

fn controller(controller: &Controller) -> Value {
    json!({
        "name": controller.name,
        "buses": controller.buses,
        "driver": controller.driver,
        "pci": controller.pci.map(|(vendor, device)| format!("{vendor:04x}:{device:04x}")),
    })
}

/// One device; `why` prints it as well.
pub(crate) fn device(device: &UsbDevice) -> Value {
    json!({
        "port": device.port,
        "bus": device.bus,
        "number": device.number,
        "tier": device.tier(),
        "id": device.id.to_string(),
        "family": bridge_family(device.id),
        "manufacturer": device.manufacturer,
        "product": device.product,
        "serial": device.serial,
        "revision": format!("{:04x}", device.revision),
        "usb_version": device.usb_version.map(|version| version.to_string()),
        "speed_mbps": mbps(device.speed),
        "max_power_ma": device.wanted_ma(),
        "configured": device.is_configured(),
        "authorized": device.authorized,
        "hub_ports": device.hub_ports,
        "interfaces": Interface::storage_of(device).map(|one| interface(device, one)).collect::<Vec<_>>(),
    })
}

fn interface(device: &UsbDevice, interface: &Interface) -> Value {
    let transport = Transport::of(device, interface);
    json!({
        "name": interface.name,
        "alternate": interface.alternate,
        "driver": interface.driver,
        "transport": transport_word(&transport),
        "streams": matches!(transport, Transport::Uas { streams: true }),
        "disks": interface.disks.iter().map(disk).collect::<Vec<_>>(),
    })
}

fn disk(disk: &Disk) -> Value {
    json!({
        "address": disk.address,
        "node": disk.node.as_ref().map(|node| format!("/dev/{node}")),
        "generic": disk.generic.as_ref().map(|node| format!("/dev/{node}")),
        "lun": disk.lun,
        "vendor": disk.vendor,
        "model": disk.model,
        "revision": disk.revision,
        "bytes": disk.bytes,
        "queue_depth": disk.queue_depth,
        "rotational": disk.rotational,
        "provisioning_mode": disk.provisioning_mode,
    })
}

/// A transport as one word.
pub(crate) const fn transport_word(transport: &Transport) -> &'static str {
    match transport {
        Transport::Uas { .. } => "uas",
        Transport::Bot => "bot",
        Transport::Claimed => "claimed",
        Transport::Other(_) => "other",
        Transport::None => "none",
        Transport::Unknown => "unknown",
    }
}

fn mbps(speed: LinkSpeed) -> Option<f64> {
    match speed {
        LinkSpeed::Low => Some(1.5),
        LinkSpeed::Full => Some(12.0),
        LinkSpeed::High => Some(480.0),
        LinkSpeed::Super { mbps } => Some(f64::from(mbps)),
        LinkSpeed::Unknown => None,
    }
}
