#![doc = include_str!("../README.md")]
//!
//! ## Design
//!
//! [`usbfs`] claims an interface from the kernel driver and is the host bus to it; [`controller`]
//! drives a whole host controller passed through by [`vfio`]. [`attachment`] drives a disk over
//! either, through the trait in [`host_bus`], and reattaches the kernel driver afterwards.
//! [`inspect`] lists devices and detects whether they are in use.

pub mod attachment;
mod clock;
pub mod controller;
pub mod host_bus;
pub mod usbfs;
pub mod vfio;

pub use {initiator, inspect, units};

use inspect::tree::Tree;

/// Returns the sysfs tree of this machine, with descriptors that sysfs lacks read from the devices.
pub fn running_tree() -> Tree {
    Tree::running().with_object_stores(usbfs::read_object_store)
}
