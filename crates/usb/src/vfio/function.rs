//! A PCI function: found, opened, reset, its registers mapped, its interrupt on a descriptor.
//!
//! Always true: what the device sees of memory is what [`Function::share`] gave it; when the
//! function is dropped the kernel stops it and resets it.

use super::addresses::Addresses;
use super::error::VfioError;
use super::kernel::{Container, Device, Group, Region, Registers, SharedMemory};
use crate::host_bus::Readiness;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use std::ffi::CString;
use std::fmt;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use wire::Legible;

/// Base class, subclass and programming interface of an xHCI controller.
const XHCI_CLASS: u32 = 0x0c_03_30;

/// Indices of VFIO's regions and interrupts of a PCI function.
const BAR_0: u32 = 0;
const CONFIGURATION: u32 = 7;
const MSI: u32 = 1;
const MSI_X: u32 = 2;

/// The command register in configuration space, and its bits for memory accesses of both sides.
const COMMAND: u64 = 0x04;
const MEMORY_AND_MASTER: u16 = 0x06;

/// Bus addresses that are given out: below 4 GiB for controllers that know no more, and off the
/// place to which interrupts are written (FEE0_0000h).
const BUS_START: u64 = 16 << 20;
const BUS_END: u64 = 0xfee0_0000;

/// Where a function is: domain, bus, device, function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress(String);

/// PCI ids of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PciId {
    /// Vendor id.
    pub vendor: u16,
    /// Device id.
    pub device: u16,
}

/// An xHCI controller in our hands.
#[derive(Debug)]
pub struct Function {
    // Dropped in this order: what is mapped, the device, its group; the container lasts as long as
    // any memory.
    registers: Registers,
    device: Device,
    _group: Group,
    container: Arc<Container>,
    addresses: Addresses,
    event: OwnedFd,
    address: PciAddress,
    id: PciId,
}

impl Function {
    /// Opens an xHCI controller that `vfio-pci` has, resets it, and lets it access memory that will
    /// be shared.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn open(address: &PciAddress) -> Result<Self, VfioError> {
        let group_number = group_of(address)?;
        let node = "/dev/vfio/vfio".to_owned();
        let container = Arc::new(Container::open().map_err(VfioError::of_node(node, address))?);
        let node = format!("/dev/vfio/{group_number}");
        let group = Group::open(group_number).map_err(VfioError::of_node(node, address))?;
        if !group.is_viable().map_err(VfioError::of("look at the group"))? {
            return Err(VfioError::Shared { address: address.clone(), group: group_number });
        }
        group.enter(&container).map_err(VfioError::of("put the group into a container"))?;
        container.choose_iommu().map_err(VfioError::of("use the IOMMU"))?;
        let name = CString::new(address.0.as_str()).map_err(|_| VfioError::Address(address.0.clone()))?;
        let device = group.device(&name).map_err(VfioError::of("open the function"))?;
        if device.can_reset().map_err(VfioError::of("look at the function"))? {
            device.reset().map_err(VfioError::of("reset the function"))?;
        }
        let space = device.region(CONFIGURATION).map_err(VfioError::of("find configuration space"))?;
        let id = prepare(&device, space, address)?;
        let bar = device.region(BAR_0).map_err(VfioError::of("find the registers"))?;
        if bar.size == 0 || !bar.maps {
            return Err(VfioError::Failed { action: "map the registers", errno: Errno::NODEV });
        }
        let registers = Registers::map(&device, bar).map_err(VfioError::of("map the registers"))?;
        let event = interrupts(&device, address)?;
        let addresses = Addresses::new(BUS_START, BUS_END);
        Ok(Self {
            registers,
            device,
            _group: group,
            container,
            addresses,
            event,
            address: address.clone(),
            id,
        })
    }

    /// Where it is.
    pub const fn address(&self) -> &PciAddress {
        &self.address
    }

    /// Returns its PCI ids.
    pub const fn id(&self) -> PciId {
        self.id
    }

    /// Its registers.
    pub const fn registers(&mut self) -> &mut Registers {
        &mut self.registers
    }

    /// Memory that the device sees as well, zeroes at first.
    ///
    /// # Errors
    /// If there is none.
    pub fn share(&mut self, bytes: usize) -> Result<SharedMemory, VfioError> {
        let none = || VfioError::Memory { bytes };
        let length = SharedMemory::rounded(bytes) as u64;
        let at = self.addresses.allocate(length, BLOCK, BUS_END.next_power_of_two()).ok_or_else(none)?;
        SharedMemory::share(self.container.clone(), bytes, at).map_err(|_| {
            self.addresses.release(at, length);
            none()
        })
    }

    /// Takes memory out of the device's sight.
    pub fn unshare(&mut self, memory: SharedMemory) {
        let (at, bytes) = (memory.bus_address(), memory.len() as u64);
        drop(memory);
        self.addresses.release(at, bytes);
    }

    /// Waits for an interrupt, a signal, or the end of the time. An interrupt is reported once.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub fn wait(&self, limit: Option<Duration>) -> Result<Readiness, VfioError> {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        match poll(&mut [PollFd::new(&self.event, PollFlags::IN)], limit.as_ref()) {
            Ok(0) => Ok(Readiness::TimeOver),
            Ok(_) => match rustix::io::read(&self.event, &mut [0; 8]) {
                Ok(_) | Err(Errno::AGAIN) => Ok(Readiness::Ready),
                Err(errno) => Err(VfioError::Failed { action: "take an interrupt", errno }),
            },
            Err(Errno::INTR) => Ok(Readiness::Interrupted),
            Err(errno) => Err(VfioError::Failed { action: "wait for an interrupt", errno }),
        }
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // It must not go on writing when the caller that used it is gone; the IOMMU would only
        // complain.
        if let Ok(space) = self.device.region(CONFIGURATION) {
            let _ = set_command(&self.device, space, 0);
        }
    }
}

/// Where shared memory begins: structures that must not cross 64 KiB fit, and so does a page of any
/// length in use.
const BLOCK: u64 = 64 << 10;

/// The group of a function that vfio-pci has.
fn group_of(address: &PciAddress) -> Result<u32, VfioError> {
    let place = format!("/sys/bus/pci/devices/{address}");
    if !Path::new(&place).exists() {
        return Err(VfioError::NotThere(address.clone()));
    }
    let target = |link: &str| {
        let path = fs::read_link(format!("{place}/{link}")).ok()?;
        Some(Legible(path.file_name()?.as_encoded_bytes()).to_string())
    };
    let driver = target("driver");
    if driver.as_deref() != Some("vfio-pci") {
        return Err(VfioError::Bound { address: address.clone(), driver });
    }
    let number = target("iommu_group").and_then(|number| number.parse().ok());
    let number: u32 = number.ok_or_else(|| VfioError::NoIommu(address.clone()))?;
    if Path::new(&format!("/dev/vfio/noiommu-{number}")).exists() {
        return Err(VfioError::Unguarded(address.clone()));
    }
    Ok(number)
}

/// Sees that it is a controller of our kind, and lets it decode and access memory.
fn prepare(device: &Device, space: Region, address: &PciAddress) -> Result<PciId, VfioError> {
    let mut head = [0; 12];
    let read = rustix::io::pread(device.fd(), &mut head, space.offset);
    read.map_err(VfioError::of("read configuration space"))?;
    let [vendor_low, vendor_high, device_low, device_high, .., interface, subclass, base] = head;
    let class = u32::from_be_bytes([0, base, subclass, interface]);
    if class != XHCI_CLASS {
        return Err(VfioError::OtherClass { address: address.clone(), class });
    }
    set_command(device, space, MEMORY_AND_MASTER).map_err(VfioError::of("let the function access memory"))?;
    Ok(PciId {
        vendor: u16::from_le_bytes([vendor_low, vendor_high]),
        device: u16::from_le_bytes([device_low, device_high]),
    })
}

fn set_command(device: &Device, space: Region, value: u16) -> rustix::io::Result<()> {
    rustix::io::pwrite(device.fd(), &value.to_le_bytes(), space.offset + COMMAND).map(drop)
}

/// Has the first message interrupt signal a descriptor. Every xHCI controller has some (xHCI 1.2
/// clause 5.2.8.3).
fn interrupts(device: &Device, address: &PciAddress) -> Result<OwnedFd, VfioError> {
    let flags = EventfdFlags::NONBLOCK.union(EventfdFlags::CLOEXEC);
    let event = eventfd(0, flags).map_err(VfioError::of("make an event descriptor"))?;
    for kind in [MSI_X, MSI] {
        if device.interrupts(kind).map_err(VfioError::of("look at interrupts"))? > 0 {
            device.signal(kind, event.as_fd()).map_err(VfioError::of("take interrupts"))?;
            return Ok(event);
        }
    }
    Err(VfioError::NoInterrupts(address.clone()))
}

impl FromStr for PciAddress {
    type Err = VfioError;

    /// Takes `0000:00:14.0`, as sysfs and lspci -D have it.
    fn from_str(text: &str) -> Result<Self, VfioError> {
        const SHAPE: &[u8] = b"hhhh:hh:hh.h";
        let fits = |(letter, shape): (u8, u8)| match shape {
            b'h' => letter.is_ascii_digit() || (b'a'..=b'f').contains(&letter),
            other => letter == other,
        };
        if text.len() == SHAPE.len() && text.bytes().zip(SHAPE.iter().copied()).all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(VfioError::Address(text.to_owned()))
        }
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_only_in_its_shape() {
        assert_eq!("0000:00:14.0".parse::<PciAddress>().unwrap().to_string(), "0000:00:14.0");
        for text in ["", "00:14.0", "0000:00:14.00", "0000:00:1g.0", "../../etc/pas", "0000/00:14.0"] {
            assert_eq!(text.parse::<PciAddress>(), Err(VfioError::Address(text.to_owned())));
        }
    }

    #[test]
    fn what_is_not_there_is_reported() {
        let address: PciAddress = "ffff:ff:1f.7".parse().unwrap();
        assert_eq!(Function::open(&address).err(), Some(VfioError::NotThere(address)));
    }
}
