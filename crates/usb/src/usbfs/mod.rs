//! Devices driven by ourselves, through Linux's usbfs: the bus door of real hardware.
//!
//! A [`Door`] is one interface, taken from the kernel's driver for as long as it lives and given back whatever happens.
//! It takes transfers, with streams where there are some, and tells how each ended; it is waited at by readiness. Memory
//! lies in cells, which the controller itself reads and writes where the kernel lets us map them.
//! [`Order`](crate::door::Order)s longer
//! than the kernel takes at once are cut up below.
//!
//! [`object_store`] asks a device one thing and takes nothing from anybody.
//!
//! The kernel's documentation of usbfs: `Documentation/driver-api/usb/usb.rst`, `include/uapi/linux/usbdevice_fs.h`.
//! Why not a library: `docs/decisions`. Left out: isochronous and interrupt transfers, other configurations than the
//! one in use, other systems than Linux.

mod ask;
mod door;
mod error;
mod kernel;
mod pieces;

pub use ask::{OBJECT_STORE_BYTES_MAX, object_store, read_object_store};
pub use door::{Door, InterfaceName};
pub use error::UsbfsError;
