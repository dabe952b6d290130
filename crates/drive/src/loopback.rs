//! Both ends of the wire in one process: an initiator and a virtual drive, in memory.
//!
//! A [`Loopback`] carries the outputs of any [`initiator::Transport`] to a [`crate::drive::Drive`] and the completions
//! back. There is no link and no clock: its cost is that of the protocol machines and the medium.
//! [`plug`](mod@plug) makes a drive ready and a transport for it.
//!
//! Where a transfer covers all of a command's data, memory changes hands and is not copied. In steady state nothing is
//! allocated per command.

pub mod plug;

mod carry;

pub use carry::{Loopback, LoopbackCompletion};
