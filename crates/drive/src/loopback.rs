//! Both ends of the wire in one process: an initiator and a virtual drive, in memory.
//!
//! A [`Loopback`] carries the outputs of any [`initiator::Transport`] to a [`crate::drive::Drive`] and the completions
//! back. Nothing is on the way, no link and no clock: what it does is what the protocol machines and the medium cost.
//! [`plug`](mod@plug) makes a drive ready and a transport for it.
//!
//! Where a transfer covers all of a command's data, memory changes hands and is not copied. In steady state nothing is
//! allocated per command.

pub mod plug;

mod carry;

pub use carry::{Finished, Loopback};
