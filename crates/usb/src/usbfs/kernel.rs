//! The kernel's side of usbfs: ioctls and memory (Linux, `include/uapi/linux/usbdevice_fs.h`,
//! `drivers/usb/core/devio.c`).
//!
//! Why its `unsafe` is sound: URBs lie in a table and their payload in buffers, neither of which
//! moves while the kernel uses any of them, and what the kernel uses is neither referenced nor
//! changed. The kernel writes to a process's memory only inside of the call that reaps; to usbfs's
//! memory, which is mapped, the controller writes at any time, so a buffer with an URB in it is
//! never borrowed. Ioctls carry the type of their argument, whose length is compared with the
//! kernel's number when this is compiled.
#![allow(unsafe_code)]

mod layout;
mod memory;
mod node;
mod urbs;

pub(super) use memory::Memory;
pub(super) use node::{Capabilities, Node, USBFS};
pub(super) use urbs::{Reaped, status_of_errno};

use super::pieces::Piece;
use crate::host_bus::BufferId;
use rustix::io::{Errno, Result};
use urbs::Urbs;

/// An open device with its memory and its URBs.
#[derive(Debug)]
pub(super) struct Device {
    node: Node,
    capabilities: Capabilities,
    urbs: Urbs,
    memory: Memory,
}

// SAFETY: the pointers inside lead to memory that this value alone owns, and nothing of it belongs
// to a thread: the kernel looks at the process that reaps, not at the thread.
unsafe impl Send for Device {}

impl Device {
    /// An open device with room for nothing yet.
    pub(super) fn new(node: Node) -> Result<Self> {
        let capabilities = node.capabilities()?;
        Ok(Self { node, capabilities, urbs: Urbs::new(0), memory: Memory::new(capabilities) })
    }

    /// Lets all memory go, and makes room for so many URBs at once. `EBUSY`: the kernel has URBs of
    /// before, which it will write to.
    pub(super) fn renew(&mut self, urbs_max: u16) -> Result<()> {
        if self.urbs.in_flight() > 0 {
            return Err(Errno::BUSY);
        }
        (self.urbs, self.memory) = (Urbs::new(urbs_max), Memory::new(self.capabilities));
        Ok(())
    }

    pub(super) const fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    pub(super) const fn node(&self) -> &Node {
        &self.node
    }

    pub(super) const fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    pub(super) const fn memory_ref(&self) -> &Memory {
        &self.memory
    }

    /// See [`Memory::add`].
    pub(super) fn add_buffers(&mut self, count: u16, bytes: u32) -> Result<BufferId> {
        self.memory.add(&self.node, count, bytes)
    }

    /// See [`Urbs::submit`].
    pub(super) fn submit(&mut self, piece: &Piece) -> Result<()> {
        self.urbs.submit(&self.node, &mut self.memory, piece)
    }

    /// See [`Urbs::discard`].
    pub(super) fn discard(&self, transfer: u32) {
        self.urbs.discard(&self.node, transfer);
    }

    /// See [`Urbs::reap`].
    pub(super) fn reap(&mut self) -> Result<Option<Reaped>> {
        self.urbs.reap(&self.node, &mut self.memory)
    }
}
