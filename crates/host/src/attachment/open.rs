//! From a device of the system to a disk that is driven by us over usbfs: plan, claim, then what every door needs.
//!
//! Nothing is changed before the plan is made and the disk is known to be unused; whatever fails after that, the door's
//! end sets back.

use super::setup::{Cells, Memory, choose};
use super::{AttachConfig, AttachError, Attachment, TransportChoice, in_use};
use crate::door::{BusDoor, Enumerated, Watched};
use crate::inventory::{Disk, Interface, UsbDevice, active_configuration};
use crate::tree::Tree;
use crate::usbfs::{Door, InterfaceName, UsbfsError};
use bus::Observer;
use initiator::probe::{Answers, Names, Plan};
use wire::usb::DeviceDescriptor;

/// URBs at once: three for each command, and some for transfers in many pieces.
const URBS_MAX: u16 = 1024;

impl Attachment {
    /// Takes a disk from the kernel's driver and surveys it.
    ///
    /// `device` is what an inventory of `tree`, which must be the running machine, has just found.
    ///
    /// # Errors
    /// See [`AttachError`]. Then everything is as it was.
    pub fn open(tree: &Tree, device: &UsbDevice, config: &AttachConfig) -> Result<Self, AttachError> {
        open(tree, device, config, |door, _, _| door)
    }
}

impl Attachment<Watched<Door>> {
    /// The same, with somebody who looks on at the transfers.
    ///
    /// # Errors
    /// See [`AttachError`]. Then everything is as it was.
    pub fn open_watched(
        tree: &Tree,
        device: &UsbDevice,
        config: &AttachConfig,
        observer: Box<dyn Observer>,
    ) -> Result<Self, AttachError> {
        open(tree, device, config, |door, number, read| Watched::new(door, number, observer, read))
    }
}

/// The disks of a device that an [`Attachment`] drives: unit 0 of the interface that each transport would use, mostly the same.
/// Its other disks lose the kernel's driver meanwhile, and nothing else. None where the device's descriptors cannot be read.
pub fn driven_disks<'a>(tree: &Tree, device: &'a UsbDevice) -> Vec<&'a Disk> {
    let Ok(blob) = tree.bytes(&format!("{}/descriptors", device.path)) else { return Vec::new() };
    let Ok(read) = enumerated(&blob, device) else { return Vec::new() };
    let choices = [TransportChoice::Uas, TransportChoice::Bot];
    let plans = choices.into_iter().filter_map(|choice| plan(&read, device, choice).ok());
    let interfaces = plans.filter_map(|plan| interface_of(device, plan).ok());
    let units = interfaces.filter_map(|interface| interface.disks.iter().find(|disk| disk.lun == 0));
    let mut disks: Vec<&Disk> = Vec::new();
    for disk in units {
        if !disks.iter().any(|known| known.address == disk.address) {
            disks.push(disk);
        }
    }
    disks
}

/// Takes the disk with the kernel's door, on which something may be put: by the number of the interface and what the device told.
fn open<D: BusDoor<Error = UsbfsError>>(
    tree: &Tree,
    device: &UsbDevice,
    config: &AttachConfig,
    put_on: impl FnOnce(Door, u8, &Enumerated<'_>) -> D,
) -> Result<Attachment<D>, AttachError> {
    let blob = tree.bytes(&format!("{}/descriptors", device.path)).map_err(|_| AttachError::Descriptors)?;
    let read = enumerated(&blob, device)?;
    let plan = plan(&read, device, config.transport)?;
    let interface = interface_of(device, plan)?;
    for disk in &interface.disks {
        if let Some(by) = in_use::user_of(tree, disk) {
            return Err(AttachError::InUse { disk: disk.node.clone().unwrap_or_default(), by });
        }
    }
    let (door, cells) = open_door(device, interface, plan, config)?;
    let door = put_on(door, interface.number, &read);
    Attachment::set_up(door, cells, (plan, interface.alternate), config)
}

/// What the kernel has read of the device.
fn enumerated<'a>(blob: &'a [u8], device: &UsbDevice) -> Result<Enumerated<'a>, AttachError> {
    let value = device.configuration.as_ref().ok_or(AttachError::Descriptors)?.head.value;
    let configuration = active_configuration(blob, value).ok_or(AttachError::Descriptors)?;
    let device = blob.get(..DeviceDescriptor::LEN).ok_or(AttachError::Descriptors)?;
    Ok(Enumerated { device, configuration, value })
}

/// What to drive the device with.
fn plan(read: &Enumerated<'_>, device: &UsbDevice, choice: TransportChoice) -> Result<Plan, AttachError> {
    let Enumerated { device: of_device, configuration, .. } = *read;
    let answers = Answers { device: of_device, configuration, bos: None, names: Names::default() };
    choose(&answers, device.speed.on_the_bus(), choice)
}

fn interface_of(device: &UsbDevice, plan: Plan) -> Result<&Interface, AttachError> {
    let number = plan.place().interface;
    device.interfaces.iter().find(|interface| interface.number == number).ok_or(AttachError::Descriptors)
}

fn open_door(
    device: &UsbDevice,
    interface: &Interface,
    plan: Plan,
    config: &AttachConfig,
) -> Result<(Door, Cells), AttachError> {
    let name = InterfaceName {
        bus: device.bus,
        device: device.number,
        number: interface.number,
        name: interface.name.clone(),
        driver: interface.driver.clone(),
    };
    let memory = Memory::of(plan, config);
    let (door, firsts) = Door::open(name, URBS_MAX, memory.blocks)?;
    refuse_too_much(&door, config)?;
    Ok((door, memory.cells(firsts)))
}

/// Memory that cannot be mapped for want of room is copied by the kernel, within the same limit: too much of it is
/// told now and not in the middle of a run.
fn refuse_too_much(door: &Door, config: &AttachConfig) -> Result<(), AttachError> {
    match door.lacks_memory() {
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
