//! vfio-user, protocol version 0.1: a PCI device in another process (vfio-user.rst of QEMU; the structures are those of
//! linux/vfio.h).
//!
//! The *client* is a hypervisor, the *server* has the device. A message is a [`Header`], then the structure of its
//! [`Command`], then for some a payload: data of a region, entries of a vector, JSON text of [`Version`]. All fields are
//! little-endian. Descriptors travel beside the bytes (SCM_RIGHTS, unix(7)); which message they belong to is the session's
//! affair.
//!
//! ```text
//!   client ── Version, DmaMap, DeviceInfo, RegionInfo, IrqInfo, IrqSet, RegionAccess, Reset ──► server
//!   client ◄── reply with the same id ── server
//! ```
//!
//! Left out: migration (commands 6, 14 and 16 to 18), which clients do not use with this server; JSON.
//!
//! Always true: a [`Header`] that decodes has a length between its own and [`MESSAGE_LEN_MAX`].

mod command;
mod device;
mod header;
mod interrupt;
mod memory;
mod region;
mod version;

pub use command::Command;
pub use device::{DeviceFlags, DeviceInfo};
pub use header::{Header, HeaderFlags};
pub use interrupt::{Interrupt, IrqFlags, IrqInfo, IrqSet, IrqSetFlags};
pub use memory::{DmaAccess, DmaFlags, DmaMap, DmaUnmap, UnmapFlags};
pub use region::{
    RegionAccess, RegionFlags, RegionInfo, SparseArea, SparseMmap, WRITES_MAX, WriteMulti, WriteOne,
};
pub use version::Version;

/// The longest message that is accepted, in bytes: the largest transfer that clients announce (1 MiB), with what precedes it.
pub const MESSAGE_LEN_MAX: u32 = (1 << 20) + 4096;

/// Numbers of the regions of a PCI device (linux/vfio.h, `VFIO_PCI_*_REGION_INDEX`).
pub mod region_index {
    /// BAR 0; BAR 1 to 5 follow.
    pub const BAR0: u32 = 0;
    /// The expansion ROM.
    pub const ROM: u32 = 6;
    /// Configuration space.
    pub const CONFIG: u32 = 7;
    /// Legacy VGA.
    pub const VGA: u32 = 8;
    /// How many there are.
    pub const COUNT: u32 = 9;
}
