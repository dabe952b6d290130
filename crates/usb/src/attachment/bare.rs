//! An interface claimed for its own sake: transfers and control requests of the caller's, without a transport or a disk.
//!
//! Left out: what the caller leaves behind in the device. When it is closed or dropped, the kernel driver is bound again and
//! sets the device up again.

use super::claimed::refuse_if_in_use;
use super::open::{Prospect, URBS_MAX, enumerated, interface_name, interface_of, plan};
use super::{AttachError, TransportChoice};
use crate::host_bus::BufferBlock;
use crate::usbfs::UsbInterface;
use initiator::session::BufferId;
use inspect::inventory::UsbDevice;
use inspect::tree::Tree;

/// A claimed interface of mass storage.
#[derive(Debug)]
pub struct BareInterface {
    /// The bus to it.
    pub bus: UsbInterface,
    /// The first buffer of the block that was asked for.
    pub first: BufferId,
    /// The device descriptor.
    pub device: Vec<u8>,
    /// The configuration in use, with everything in it.
    pub configuration: Vec<u8>,
}

impl BareInterface {
    /// Claims the interface from the kernel driver, unless the system uses one of its disks.
    ///
    /// `device` must be from a current inventory of `tree`, which must be the running machine.
    ///
    /// # Errors
    ///
    /// See [`AttachError`]. Everything is unchanged then.
    pub fn open(tree: &Tree, device: &UsbDevice, buffers: BufferBlock) -> Result<Self, AttachError> {
        let descriptors = Prospect::descriptors(tree, device)?;
        let read = enumerated(&descriptors, device)?;
        let interface = interface_of(device, plan(&read, device, TransportChoice::Best)?)?;
        refuse_if_in_use(tree, interface)?;
        let mut bus = UsbInterface::open(interface_name(device, interface))?;
        let [first] = bus.allocate(URBS_MAX, [buffers]).map_err(AttachError::Bus)?;
        let (device, configuration) = (read.device.to_vec(), read.configuration.to_vec());
        Ok(Self { bus, first, device, configuration })
    }
}
