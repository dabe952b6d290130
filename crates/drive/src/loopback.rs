//! Both ends of the wire in one process: an initiator and a virtual drive, in memory.
//!
//! A [`LoopbackBus`] makes a host bus of a [`crate::drive::Drive`], for an [`initiator::session::Session`]; a [`Loopback`]
//! runs single commands over it. There is no link and no clock: its cost is that of the protocol machines and the medium.
//! [`plug`](mod@plug) makes a drive ready and a transport for it.
//!
//! Where a transfer covers all of a command's data, memory changes hands and is not copied. In steady state nothing is
//! allocated per command.

pub mod plug;

mod commands;
mod host_bus;

pub use commands::{Loopback, LoopbackCompletion};
pub use host_bus::LoopbackBus;
