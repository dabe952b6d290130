//! A host controller (xHCI 1.2) that carries out what a driver wrote for it: registers, rings and
//! contexts in memory.
//!
//! A [`Controller`] is a machine: registers are read and written through [`DriverAccess`], the link
//! reports what has moved, and what it wants of link, device and host is taken from
//! [`Controller::poll_output`]. TRBs are read from [`Memory`] when a real one would read them, and
//! refused where a real one refuses them, so that a fault of a driver shows. What it can and what
//! it takes are constants of a [`Part`].
//!
//! ```text
//!   driver ── registers ──► Controller ── LinkAct ──► host's end of the link
//!      ▲ ◄── interrupt ────     │  ▲ ◄── Progress ──
//!      └──── Memory ◄── DMA ────┘  └─── answers of endpoint 0
//! ```
//!
//! Not modelled: isochronous endpoints, interrupt endpoints to a device, service intervals, more
//! than one interrupter, bandwidth negotiation, suspend, virtualisation, and what a driver must not
//! rely upon, such as the order in which rings are served.
//!
//! Invariants: every TD that was fetched is reported once, or is given back by a stop; nothing is
//! read or written where no memory is (that is a Host System Error); nothing depends on a clock.

mod checks;
mod command;
mod configure;
mod control;
mod controller;
mod dma;
mod driver_access;
mod event;
mod fetch;
mod fetch_single;
mod memory;
mod notes;
mod occupancy;
mod output;
mod part;
pub(crate) mod port;
mod register;
mod ring;
mod rules;
mod slot;
mod transfer;

pub use controller::{Controller, Counters};
pub use driver_access::DriverAccess;
pub use event::Tampering;
pub use memory::{Fault, Memory};
pub use output::{ControlAnswer, ControlRequest, DevicePath, LinkAct, Output};
pub use part::{Misbehaviour, Part, PciExpress};

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
