//! A driver of xHCI host controllers (xHCI 1.2) as a machine without I/O.
//!
//! It runs over two traits, [`Registers`] and [`DmaMemory`]: a simulated controller or a real one. What it is told is
//! transfers and requests; what it tells is completions, answers, and what happens at ports. [`Controller`] is the
//! machine, [`retire`] the table of what an event means for a transfer, [`Hub`] the driver of a hub above both.
//!
//! Always true: a transfer that was taken completes exactly once, and only when the controller has let go of its
//! buffer; nothing a controller writes makes it panic, loop or grow; every limit has a name ([`limit`]).
//!
//! Left out: isochronous endpoints and interrupt endpoints to a device, suspend, virtualisation, more than one interrupter.
#![no_std]

extern crate alloc;

mod capabilities;
mod controller;
mod device;
mod hardware;
mod hub;
pub mod limit;
mod quirks;
pub mod retire;
mod ring;
#[cfg(test)]
mod script;
mod words;

pub use capabilities::{Capabilities, Protocol, Unusable};
pub use controller::Controller;
pub use hardware::{DmaLayout, DmaMemory, Hardware, Registers};
pub use hub::{Hub, HubOutput, HubPlace};
pub use quirks::Quirks;
pub use words::{
    Answer, Config, ControlTransfer, Counters, Deadline, DeadlineReason, Death, DeviceId, EndpointPlan,
    HubShape, Location, Output, Refusal, Request, RequestId, Transfer, Translator,
};
