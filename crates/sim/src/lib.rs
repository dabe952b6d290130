//! A USB storage machine in virtual time: host and device exchange packets on simulated links.
//!
//! [`engine`] orders events in virtual time. [`link`] models the wires between a host controller
//! and a device, to the symbol. [`xhc`] is a host controller that executes what its driver wrote
//! into memory. [`machine`] connects the initiator and the device model over a link; [`ahci`] is
//! the same drive on a SATA port, for comparison. [`stack`] is the host's class driver, which turns
//! requests into commands. [`power`] accounts for energy. [`fault`] injects faults, and [`check`]
//! holds the invariants. Parts by name, experiments and random machines are in crate `study`.
//!
//! Invariant: no code here reads a clock, starts a thread or depends on hash order, so equal seeds
//! give equal digests.

pub mod ahci;
pub mod bridge;
pub mod check;
pub mod components;
pub mod drive;
pub mod engine;
pub mod fault;
pub mod hub;
mod index_set;
pub mod link;
pub mod machine;
pub mod power;
pub mod sata;
pub mod stack;
mod vec_map;
mod vec_pool;
pub mod xhc;
