//! USB drives on this machine: what is attached, over which transport, and why not over another.
//!
//! [`tree`] reads the files in which Linux tells (sysfs, procfs, modprobe's), below any root, so that a recorded tree
//! is as good as the running machine. [`inventory`] makes values of them: controllers, buses, devices, disks, modules,
//! quirks. [`diagnose`] applies Linux's rules to one drive and says which of them decided, with what was read and where.
//!
//! These three change nothing, and nothing of them needs root; what root would add is said where it is missing.
//!
//! [`block`] knows block devices and who uses them.
//!
//! [`usbfs`] takes an interface from the kernel's driver and is the bus to it; [`controller`] drives a whole host controller
//! that [`vfio`] gives us. [`attachment`] drives a disk over either, for a benchmark or for whoever wants its blocks, by what
//! [`door`] asks of a bus, and gives it back.

pub mod attachment;
pub mod block;
mod clock;
pub mod controller;
pub mod diagnose;
pub mod door;
pub mod inventory;
pub mod tree;
pub mod usbfs;
pub mod vfio;
