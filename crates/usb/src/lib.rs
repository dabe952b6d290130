//! Real buses of this machine, and disks that our own drivers run over them.
//!
//! [`usbfs`] claims an interface from the kernel's driver and is the bus to it; [`controller`] drives a whole host
//! controller that [`vfio`] gives us. [`attachment`] drives a disk over either, by what [`door`] asks of a bus, and
//! gives it back. Which devices there are and whether one is in use comes from `uaskit-inspect`.

pub mod attachment;
mod clock;
pub mod controller;
pub mod door;
pub mod usbfs;
pub mod vfio;

use inspect::tree::Tree;

/// The running machine, whose devices can be asked for what its sysfs lacks.
pub fn running_tree() -> Tree {
    Tree::running().with_object_stores(usbfs::read_object_store)
}
