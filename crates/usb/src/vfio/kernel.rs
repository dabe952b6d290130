//! The kernel's side of VFIO: ioctls, registers and shared memory (Linux,
//! `include/uapi/linux/vfio.h`).
//!
//! Its `unsafe` is sound for these reasons: registers and memory are mapped for as long as the values
//! that hold them live; memory leaves the IOMMU before it leaves the process; memory that a device may
//! write to is read and written through pointers, and never referred to while a transfer is in it.
#![allow(unsafe_code)]

mod buffers;
mod layout;
mod memory;
mod node;
mod registers;

pub(crate) use buffers::SharedBuffers;
pub use memory::SharedMemory;
pub(super) use node::{Container, Device, Group, Region};
pub use registers::Registers;
