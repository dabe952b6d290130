//! Reads the binary device object store without claiming anything (USB 3.2 clause 9.6.2).
//!
//! GET_DESCRIPTOR goes to endpoint 0, which no driver owns; the kernel made the same request at
//! enumeration. Newer kernels show the answer in sysfs.

use super::error::UsbfsError;
use super::interface::unopened;
use super::kernel::Node;
use inspect::tree::Unread;
use rustix::io::Errno;
use std::time::Duration;
use wire::usb::{DescriptorKind, SetupPacket};

/// Maximum length read; devices have some dozens of bytes.
pub const OBJECT_STORE_BYTES_MAX: u16 = 1024;

/// Timeout of the request.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Reads the binary device object store of a device.
///
/// # Errors
/// Why it cannot be asked, or what it answered with.
pub fn object_store(bus: u16, device: u16) -> Result<Vec<u8>, UsbfsError> {
    let path = format!("/dev/bus/usb/{bus:03}/{device:03}");
    let node = Node::open(&path).map_err(|errno| unopened(path, errno))?;
    let mut bytes = vec![0; OBJECT_STORE_BYTES_MAX.into()];
    let setup = SetupPacket::get_descriptor(DescriptorKind::Bos, 0, OBJECT_STORE_BYTES_MAX);
    let moved = node.control(setup, &mut bytes, TIMEOUT);
    bytes.truncate(moved.map_err(|errno| UsbfsError::of("read the binary device object store", errno))?);
    Ok(bytes)
}

/// Reads it for a [`Tree`](inspect::tree::Tree): a stall means that the device has none.
///
/// # Errors
/// Why it cannot be read, as of a file.
pub fn read_object_store(bus: u16, device: u16) -> Result<Vec<u8>, Unread> {
    object_store(bus, device).or_else(|error| match error {
        UsbfsError::Permission { .. } => Err(Unread::Refused),
        UsbfsError::NoNode { .. } | UsbfsError::Disconnected => Err(Unread::Absent),
        UsbfsError::Failed { errno: Errno::PIPE, .. } => Ok(Vec::new()),
        _ => Err(Unread::Failed),
    })
}
