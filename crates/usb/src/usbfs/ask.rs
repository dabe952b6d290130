//! One question to a device that nobody has to be parted from: its binary device object store (USB 3.2 clause 9.6.2).
//!
//! GET_DESCRIPTOR goes to endpoint 0, which no driver owns: nothing is claimed, and the kernel has asked the same when
//! the device was plugged in. Newer kernels show the answer in sysfs.

use super::door::unopened;
use super::error::UsbfsError;
use super::kernel::Node;
use inspect::tree::Unread;
use rustix::io::Errno;
use std::time::Duration;
use wire::usb::{DescriptorKind, SetupPacket};

/// Bytes of the answer that are looked at; devices have some dozens.
pub const OBJECT_STORE_BYTES_MAX: u16 = 1024;

/// How long a device may take to answer.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The binary device object store of a device.
///
/// # Errors
/// Why it cannot be asked, or what it answered with.
pub fn object_store(bus: u16, device: u16) -> Result<Vec<u8>, UsbfsError> {
    let path = format!("/dev/bus/usb/{bus:03}/{device:03}");
    let node = Node::open(&path).map_err(|errno| unopened(path, errno))?;
    let mut bytes = vec![0; OBJECT_STORE_BYTES_MAX.into()];
    let setup = SetupPacket::get_descriptor(DescriptorKind::Bos, 0, OBJECT_STORE_BYTES_MAX);
    let moved = node.control(setup, &mut bytes, TIMEOUT);
    bytes.truncate(moved.map_err(|errno| UsbfsError::of("ask for the object store", errno))?);
    Ok(bytes)
}

/// The same for a [`Tree`](inspect::tree::Tree): a stall is the answer of a device that has none.
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
