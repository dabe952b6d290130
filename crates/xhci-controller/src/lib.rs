#![doc = include_str!("../README.md")]
//!
//! ## Design
//!
//! A [`Controller`] has no clock, no thread and no I/O. Its owner passes on register accesses of
//! the driver, the progress of transfers on the bus and the answers of devices, each with the
//! present time, and takes requests from [`Controller::poll_output`]. It reads TRBs from
//! [`GuestMemory`] when hardware would read them, each once, and rejects what hardware rejects.
//! Where the standard has a time (a port's reset, interrupt moderation), [`Controller::poll_timeout`]
//! has a deadline. Capabilities and access times are a [`Model`].
//!
//! ```text
//!   driver ── registers ──► Controller ── LinkAct ──► host's end of the bus
//!      ▲ ◄── interrupt ────     │  ▲ ◄── Progress ──
//!      └─ GuestMemory ◄── DMA ──┘  └─── answers of endpoint 0
//! ```
//!
//! Not modelled: isochronous endpoints, interrupt OUT endpoints, service intervals, more than one
//! interrupter, bandwidth negotiation, suspend, virtualisation, and behaviour that a driver must
//! not rely upon, such as the order in which rings are served.
//!
//! Invariants: every fetched TD is reported once, or returned by a stop; an access outside of
//! memory is a Host System Error; nothing that a driver writes makes it panic, loop or grow.
#![no_std]

extern crate alloc;
#[cfg(test)]
#[macro_use]
extern crate std;

mod checks;
mod command;
mod configure;
mod control;
mod controller;
mod controller_fault;
mod counters;
mod dma;
mod doorbells;
mod event;
mod events;
mod fetch;
mod fetch_single;
mod fetches;
mod memory;
mod model;
mod notes;
mod output;
mod payload;
pub mod port;
mod ports;
mod register;
mod ring;
mod rules;
mod slot;
mod slot_command;
mod transfer;

pub use controller::Controller;
pub use controller_fault::{
    ControllerFault, DoorbellFault, NotAControllerFault, PLANNED_FAULTS_MAX, PlannedFault, StopFault,
};
pub use counters::Counters;
pub use event::{EVENTS_WAITING_MAX, EventTraffic, Tampering};
pub use memory::{Fault, GuestMemory};
pub use model::{Misbehaviour, Model, PciExpress};
pub use output::{ControlAnswer, ControlId, ControlRequest, DevicePath, LinkAct, Output};
pub use units::{Duration, Instant};

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
