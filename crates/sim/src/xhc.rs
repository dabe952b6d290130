//! A model of an xHCI 1.2 host controller: registers, rings and contexts in memory.
//!
//! A [`Controller`] is a state machine: the driver accesses registers through [`DriverAccess`], the
//! link reports progress, and requests to link, device and host are taken from
//! [`Controller::poll_output`]. TRBs are read from [`Memory`] when hardware would read them, and
//! rejected where hardware rejects them, so that driver bugs show. Capabilities and timing are
//! constants of a [`Part`].
//!
//! ```text
//!   driver ── registers ──► Controller ── LinkAct ──► host's end of the link
//!      ▲ ◄── interrupt ────     │  ▲ ◄── Progress ──
//!      └──── Memory ◄── DMA ────┘  └─── answers of endpoint 0
//! ```
//!
//! Not modelled: isochronous endpoints, interrupt OUT endpoints, service intervals, more than one
//! interrupter, bandwidth negotiation, suspend, virtualisation, and behaviour that a driver must
//! not rely upon, such as the order in which rings are served.
//!
//! Invariants: every fetched TD is reported once, or returned by a stop; an access outside of
//! memory is a Host System Error; nothing depends on a clock.

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
