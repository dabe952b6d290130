//! Devices driven in user space through Linux usbfs: the host bus of real hardware.
//!
//! A [`UsbInterface`] is one interface, claimed from the kernel driver for as long as it lives; the
//! kernel driver is reattached however it ends. It accepts transfers, with streams where supported,
//! and is waited for by readiness. Buffers are accessed by the controller directly where the kernel
//! allows to map them. [`TransferRequest`](crate::host_bus::TransferRequest)s longer than one URB
//! are split.
//!
//! [`object_store()`] reads one descriptor and claims nothing.
//!
//! The kernel's documentation of usbfs: `Documentation/driver-api/usb/usb.rst`,
//! `include/uapi/linux/usbdevice_fs.h`. Why not a library: `docs/decisions`. Left out: isochronous
//! and interrupt transfers, configurations other than the active one, systems other than Linux.

mod error;
mod interface;
mod kernel;
mod object_store;
mod pieces;

pub use error::UsbfsError;
pub use interface::{InterfaceName, UsbInterface};
pub use object_store::{OBJECT_STORE_BYTES_MAX, object_store, read_object_store};
