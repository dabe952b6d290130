#![doc = include_str!("../README.md")]
//!
//! ## Design
//!
//! [`tree`] reads the files in which Linux describes itself (sysfs, procfs, modprobe's), below any root, so that a
//! recorded tree is as good as the running machine. [`inventory`] makes values of them: controllers, buses, devices,
//! disks, modules, quirks. [`diagnose`] applies Linux's rules to one drive and names the rule that decided, with what
//! was read and where. [`text`] makes the same of pasted reports, [`log`] a history of the kernel's log. [`archive`] unpacks
//! reports. [`block`] knows block devices and what uses them.
//!
//! Always true: nothing here changes a machine or needs root; what root would add is reported where it is missing.
#![forbid(unsafe_code)]

pub mod archive;
#[cfg(unix)]
pub mod block;
pub mod diagnose;
pub mod inventory;
pub mod log;
mod platform;
pub mod text;
pub mod tree;
