//! A PCI function accessed by this process through Linux VFIO: registers, shared memory,
//! interrupts.
//!
//! A [`Function`] requires that the driver `vfio-pci` is bound to it, which takes all devices
//! behind it from the kernel; the error text says how. An IOMMU is required: it confines the device
//! to shared memory. VFIO no-IOMMU mode is not supported, since a device or a bug could then write
//! to any memory.
//!
//! The kernel's documentation: `Documentation/driver-api/vfio.rst`, `include/uapi/linux/vfio.h`.
//! Left out: functions with pin interrupts only, hot resets of several functions, systems other
//! than Linux.

mod addresses;
mod error;
mod function;
mod kernel;

pub use addresses::Addresses;
pub use error::VfioError;
pub use function::{Function, PciAddress, PciId};
pub(crate) use kernel::SharedBuffers;
pub use kernel::{Registers, SharedMemory};
