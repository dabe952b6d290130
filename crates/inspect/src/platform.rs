//! Functions of the operating system that the module [`tree`](crate::tree) needs beyond `std`.
//!
//! Unix opens files without waiting, numbers devices and makes links. On other targets, such as WebAssembly in a
//! browser, there is no machine to read: recorded trees and texts work, directories have no devices.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use other::{is_kernel_buffer, open_without_waiting, symlink};
#[cfg(unix)]
pub(crate) use unix::{block_device_number, is_kernel_buffer, open_without_waiting, symlink};
