//! A PCI function in the hands of this process, through Linux's VFIO: its registers, memory that it sees, its interrupt.
//!
//! A [`Function`] is had when the driver `vfio-pci` is bound to it, which only the owner of the machine does: whatever
//! is behind the function is lost to the kernel meanwhile. The error says how. An IOMMU is needed: it keeps the device
//! to the memory that it was given. VFIO's mode without one is not offered, since a device, or a mistake of ours, could
//! then write to any memory of the machine.
//!
//! The kernel's documentation: `Documentation/driver-api/vfio.rst`, `include/uapi/linux/vfio.h`. Left out: functions
//! that interrupt by a pin alone, hot resets of several functions, other systems than Linux.

mod addresses;
mod error;
mod function;
mod kernel;

pub use addresses::Addresses;
pub use error::VfioError;
pub use function::{Function, PciAddress, PciId};
pub(crate) use kernel::SharedCells;
pub use kernel::{Registers, SharedMemory};
