//! The plan, the interface and the buffers for the attachment of a device.
//!
//! Nothing is changed here; a [`ClaimedInterface`](super::ClaimedInterface) claims the interface.

use super::setup::{choose, session_config};
use super::{AttachConfig, AttachError, Attachment, ClaimedInterface, TransportChoice};
use crate::host_bus::Enumerated;
use crate::usbfs::{InterfaceName, UsbInterface, UsbfsError};
use initiator::session::SessionConfig;
use inspect::inventory::{Disk, Interface, UsbDevice, active_configuration};
use inspect::tree::Tree;
use quirks::{Answers, Names, Plan};
use wire::usb::DeviceDescriptor;

impl Attachment {
    /// Claims a disk from the kernel driver and identifies it.
    ///
    /// `device` must be from a current inventory of `tree`, which must be the running machine.
    ///
    /// # Errors
    ///
    /// See [`AttachError`]. Everything is unchanged then.
    pub fn open(tree: &Tree, device: &UsbDevice, config: &AttachConfig) -> Result<Self, AttachError> {
        ClaimedInterface::default().attach(tree, device, config)
    }
}

/// Returns the disks of a device that an [`Attachment`] drives: this LUN of the interface that each
/// transport would use, mostly the same. Its other disks only lose the kernel driver for that time.
/// Empty if the device's descriptors cannot be read.
pub fn driven_disks<'a>(tree: &Tree, device: &'a UsbDevice, lun: u8) -> Vec<&'a Disk> {
    let Ok(descriptors) = Prospect::descriptors(tree, device) else { return Vec::new() };
    let Ok(read) = enumerated(&descriptors, device) else { return Vec::new() };
    let choices = [TransportChoice::Uas, TransportChoice::Bot];
    let plans = choices.into_iter().filter_map(|choice| plan(&read, device, choice).ok());
    let interfaces = plans.filter_map(|plan| interface_of(device, plan).ok());
    let units =
        interfaces.filter_map(|interface| interface.disks.iter().find(|disk| disk.lun == u64::from(lun)));
    let mut disks: Vec<&Disk> = Vec::new();
    for disk in units {
        if !disks.iter().any(|known| known.address == disk.address) {
            disks.push(disk);
        }
    }
    disks
}

/// Maximum of URBs: three for each command, and some for split transfers.
pub(super) const URBS_MAX: u16 = 1024;

/// Device, descriptors, plan and configuration from which a disk is attached.
pub(super) struct Prospect<'a> {
    device: &'a UsbDevice,
    /// The descriptors, as the kernel read them.
    pub(super) read: Enumerated<'a>,
    pub(super) plan: Plan,
    pub(super) interface: &'a Interface,
    pub(super) session_config: SessionConfig,
}

impl<'a> Prospect<'a> {
    /// Reads the device's descriptors from sysfs.
    pub(super) fn descriptors(tree: &Tree, device: &UsbDevice) -> Result<Vec<u8>, AttachError> {
        tree.bytes(&format!("{}/descriptors", device.path)).map_err(|_| AttachError::Descriptors)
    }

    pub(super) fn of(
        descriptors: &'a [u8],
        device: &'a UsbDevice,
        config: &AttachConfig,
    ) -> Result<Self, AttachError> {
        let read = enumerated(descriptors, device)?;
        let plan = plan(&read, device, config.transport)?;
        let interface = interface_of(device, plan)?;
        Ok(Self { device, read, plan, interface, session_config: session_config(plan, config) })
    }

    pub(super) fn name(&self) -> InterfaceName {
        interface_name(self.device, self.interface)
    }
}

/// Returns what an interface is claimed by.
pub(super) fn interface_name(device: &UsbDevice, interface: &Interface) -> InterfaceName {
    InterfaceName {
        bus: device.bus,
        device: device.number,
        number: interface.number,
        name: interface.name.clone(),
        driver: interface.driver.clone(),
    }
}

pub(super) fn enumerated<'a>(
    descriptors: &'a [u8],
    device: &UsbDevice,
) -> Result<Enumerated<'a>, AttachError> {
    let value = device.configuration.as_ref().ok_or(AttachError::Descriptors)?.head.value;
    let configuration = active_configuration(descriptors, value).ok_or(AttachError::Descriptors)?;
    let device = descriptors.get(..DeviceDescriptor::LEN).ok_or(AttachError::Descriptors)?;
    Ok(Enumerated { device, configuration, value })
}

/// Chooses the transport.
pub(super) fn plan(
    read: &Enumerated<'_>,
    device: &UsbDevice,
    choice: TransportChoice,
) -> Result<Plan, AttachError> {
    let Enumerated { device: of_device, configuration, .. } = *read;
    let answers = Answers { device: of_device, configuration, bos: None, names: Names::default() };
    choose(&answers, device.speed.on_the_bus(), choice)
}

pub(super) fn interface_of(device: &UsbDevice, plan: Plan) -> Result<&Interface, AttachError> {
    let number = plan.place().interface;
    device.interfaces.iter().find(|interface| interface.number == number).ok_or(AttachError::Descriptors)
}

/// Rejects more copied memory than the kernel will have: buffers that could not be mapped are
/// copied by the kernel within the same limit, and running out later would interrupt the run.
pub(super) fn refuse_too_much(bus: &UsbInterface, config: &AttachConfig) -> Result<(), AttachError> {
    match bus.lacks_memory() {
        Some(UsbfsError::Memory { limit_mb: Some(limit), wanted_bytes }) if limit > 0 => {
            let copied = u64::from(config.slots) * u64::from(config.slot_bytes);
            let room = limit.saturating_mul(1 << 20) / 2;
            if copied <= room {
                return Ok(());
            }
            Err(UsbfsError::Memory { limit_mb: Some(limit), wanted_bytes }.into())
        }
        _ => Ok(()),
    }
}
