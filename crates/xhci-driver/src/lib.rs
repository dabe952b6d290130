//! A driver for xHCI host controllers (xHCI 1.2) as a state machine without I/O.
//!
//! It runs over two traits, [`Registers`] and [`DmaMemory`], implemented by a simulated controller
//! or a real one. Inputs are transfers and requests; outputs are completions, answers, and port
//! changes. [`Controller`] is the machine, [`retire`] the table of what an event means for a
//! transfer, [`Hub`] the driver of a hub on top of both.
//!
//! Always true: an accepted transfer completes exactly once, and only when the controller has
//! released its buffer; nothing a controller writes makes the driver panic, loop or grow; every
//! limit has a name ([`limit`]).
//!
//! Left out: isochronous endpoints, interrupt endpoints other than those of hubs, suspend,
//! virtualisation, more than one interrupter.
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
mod types;

pub use capabilities::{Capabilities, Protocol, Unusable};
pub use controller::Controller;
pub use hardware::{DmaLayout, DmaMemory, Hardware, Registers};
pub use hub::{Hub, HubLocation, HubOutput};
pub use quirks::Quirks;
pub use types::{
    Answer, Config, ControlTransfer, Counters, Deadline, DeadlineReason, Death, DeviceId, EndpointPlan,
    HubShape, Location, Output, Refusal, Request, RequestId, Transfer, Translator,
};
