//! VFIO's three kinds of nodes: the container with the IOMMU's table, the group, the device.
//!
//! Each function is one ioctl. A group must be put into a container before its device can be had.

use super::layout::{
    self, DeviceInfo, GroupStatus, IrqInfo, IrqSet, MapDma, RegionInfo, SET_TRIGGER_EVENTFD, UnmapDma,
};
use rustix::ffi::c_void;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// VFIO container: the memory that the devices in it can access.
#[derive(Debug)]
pub(in crate::vfio) struct Container {
    fd: OwnedFd,
}

/// Devices that the IOMMU cannot isolate from each other.
#[derive(Debug)]
pub(in crate::vfio) struct Group {
    fd: OwnedFd,
}

/// A function.
#[derive(Debug)]
pub(in crate::vfio) struct Device {
    fd: OwnedFd,
}

/// A part of a device, by where it is in the device's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::vfio) struct Region {
    /// Bytes; 0 if the device has no such region.
    pub(in crate::vfio) size: u64,
    pub(in crate::vfio) offset: u64,
    /// It can be mapped.
    pub(in crate::vfio) maps: bool,
}

/// One ioctl: a number, and what goes with it.
struct Call {
    opcode: Opcode,
    argument: *mut c_void,
}

// SAFETY: the argument is handed on as it is and the kernel's answer is taken as the number that it
// is. That the argument is good for this ioctl is the contract of [`call`], which alone makes such
// a value.
unsafe impl Ioctl for Call {
    type Output = i32;

    /// The kernel may write to the argument.
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument
    }

    unsafe fn output_from_ptr(output: IoctlOutput, _: *mut c_void) -> Result<i32> {
        Ok(output)
    }
}

/// One ioctl.
///
/// # Safety
/// `argument` must be what the kernel wants for this number: a plain number, or a pointer to
/// what it reads and writes.
unsafe fn call(fd: BorrowedFd<'_>, opcode: Opcode, argument: *mut c_void) -> Result<i32> {
    // SAFETY: as the caller promises.
    unsafe { rustix::ioctl::ioctl(fd, Call { opcode, argument }) }
}

/// One ioctl whose argument is a plain number.
fn call_number(fd: BorrowedFd<'_>, opcode: Opcode, number: u32) -> Result<i32> {
    // SAFETY: these ioctls take a number in the place of a pointer, and look at no memory.
    unsafe { call(fd, opcode, ptr::without_provenance_mut(number as usize)) }
}

fn open(path: &str) -> Result<OwnedFd> {
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}

impl Container {
    /// A container without a group. `NOSYS`: this kernel's VFIO is another one.
    pub(in crate::vfio) fn open() -> Result<Self> {
        let container = Self { fd: open("/dev/vfio/vfio")? };
        let version = call_number(container.fd.as_fd(), layout::GET_API_VERSION, 0)?;
        let has_type1 = call_number(container.fd.as_fd(), layout::CHECK_EXTENSION, layout::TYPE1_V2)?;
        if u32::try_from(version) != Ok(layout::API_VERSION) || has_type1 != 1 {
            return Err(Errno::NOSYS);
        }
        Ok(container)
    }

    /// Chooses the kind of IOMMU, once a group is in.
    pub(in crate::vfio) fn choose_iommu(&self) -> Result<()> {
        call_number(self.fd.as_fd(), layout::SET_IOMMU, layout::TYPE1_V2).map(drop)
    }

    /// Lets devices see memory of this process at a bus address.
    ///
    /// # Safety
    /// From `start` on there must be `size` bytes that are mapped and stay so until
    /// [`Self::unmap`], and a device may write to them at any time.
    pub(super) unsafe fn map(&self, start: *mut u8, size: usize, bus_address: u64) -> Result<()> {
        let mut argument = MapDma {
            bytes: size_of::<MapDma>() as u32,
            flags: layout::MAP_READ_WRITE,
            address: start.expose_provenance() as u64,
            bus_address,
            size: size as u64,
        };
        // SAFETY: the type is that of the number; the caller promises what it names.
        unsafe { call(self.fd.as_fd(), layout::MAP_DMA, ptr::from_mut(&mut argument).cast()) }.map(drop)
    }

    /// Takes memory out of the sight of devices.
    pub(super) fn unmap(&self, size: usize, bus_address: u64) -> Result<()> {
        let mut argument =
            UnmapDma { bytes: size_of::<UnmapDma>() as u32, flags: 0, bus_address, size: size as u64 };
        // SAFETY: the type is that of the number, and holds no pointers.
        unsafe { call(self.fd.as_fd(), layout::UNMAP_DMA, ptr::from_mut(&mut argument).cast()) }.map(drop)
    }
}

impl Group {
    pub(in crate::vfio) fn open(number: u32) -> Result<Self> {
        Ok(Self { fd: open(&format!("/dev/vfio/{number}"))? })
    }

    /// Whether every device of the group is free for a process.
    pub(in crate::vfio) fn is_viable(&self) -> Result<bool> {
        let mut status = GroupStatus { bytes: size_of::<GroupStatus>() as u32, flags: 0 };
        // SAFETY: the type is that of the number, and holds no pointers.
        unsafe { call(self.fd.as_fd(), layout::GROUP_GET_STATUS, ptr::from_mut(&mut status).cast()) }?;
        Ok(status.flags & layout::GROUP_VIABLE != 0)
    }

    pub(in crate::vfio) fn enter(&self, container: &Container) -> Result<()> {
        let mut fd = container.fd.as_raw_fd();
        // SAFETY: this number takes a pointer to a descriptor, which is open.
        unsafe { call(self.fd.as_fd(), layout::GROUP_SET_CONTAINER, ptr::from_mut(&mut fd).cast()) }.map(drop)
    }

    /// The function with this PCI address.
    pub(in crate::vfio) fn device(&self, address: &CStr) -> Result<Device> {
        // SAFETY: this number takes a pointer to a string that ends in zero, and only reads it.
        let fd = unsafe {
            call(self.fd.as_fd(), layout::GROUP_GET_DEVICE, address.as_ptr().cast_mut().cast::<c_void>())
        }?;
        // SAFETY: the kernel has just opened this descriptor for us alone.
        Ok(Device { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }
}

impl Device {
    pub(in crate::vfio) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Whether [`Self::reset`] does something.
    pub(in crate::vfio) fn can_reset(&self) -> Result<bool> {
        let mut found = DeviceInfo { bytes: size_of::<DeviceInfo>() as u32, flags: 0, regions: 0, irqs: 0 };
        // SAFETY: the type is that of the number, and holds no pointers.
        unsafe { call(self.fd.as_fd(), layout::DEVICE_GET_INFO, ptr::from_mut(&mut found).cast()) }?;
        Ok(found.flags & layout::DEVICE_RESETS != 0)
    }

    pub(in crate::vfio) fn reset(&self) -> Result<()> {
        call_number(self.fd.as_fd(), layout::DEVICE_RESET, 0).map(drop)
    }

    pub(in crate::vfio) fn region(&self, index: u32) -> Result<Region> {
        let bytes = size_of::<RegionInfo>() as u32;
        let mut found = RegionInfo { bytes, flags: 0, index, capability_offset: 0, size: 0, offset: 0 };
        // SAFETY: the type is that of the number, and holds no pointers.
        unsafe { call(self.fd.as_fd(), layout::DEVICE_GET_REGION, ptr::from_mut(&mut found).cast()) }?;
        let RegionInfo { flags, size, offset, .. } = found;
        Ok(Region { size, offset, maps: flags & layout::REGION_MAPS != 0 })
    }

    /// How many interrupts of a kind there are that can signal a descriptor.
    pub(in crate::vfio) fn interrupts(&self, index: u32) -> Result<u32> {
        let mut found = IrqInfo { bytes: size_of::<IrqInfo>() as u32, flags: 0, index, count: 0 };
        // SAFETY: the type is that of the number, and holds no pointers.
        unsafe { call(self.fd.as_fd(), layout::DEVICE_GET_IRQ, ptr::from_mut(&mut found).cast()) }?;
        Ok(if found.flags & layout::IRQ_EVENTFD != 0 { found.count } else { 0 })
    }

    /// Has the first interrupt of a kind signal a descriptor.
    pub(in crate::vfio) fn signal(&self, index: u32, eventfd: BorrowedFd<'_>) -> Result<()> {
        let mut argument = IrqSet {
            bytes: size_of::<IrqSet>() as u32,
            flags: SET_TRIGGER_EVENTFD,
            index,
            start: 0,
            count: 1,
            eventfd: eventfd.as_raw_fd(),
        };
        // SAFETY: the type is that of the number with one descriptor, which is open; the kernel
        // keeps its own hold of it.
        unsafe { call(self.fd.as_fd(), layout::DEVICE_SET_IRQS, ptr::from_mut(&mut argument).cast()) }
            .map(drop)
    }
}
