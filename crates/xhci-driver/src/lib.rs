#![doc = include_str!("../README.md")]
//!
//! ## Design
//!
//! Inputs are transfers and requests; outputs are completions, answers, and port changes.
//! [`Controller`] is the machine, over [`Registers`] and [`DmaMemory`]; [`retire`] is the table of what
//! an event means for a transfer, [`Hub`] the driver of a hub on top of both. Limits are in [`limit`].
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

pub use {bus, units, wire};

pub use capabilities::{Capabilities, Protocol, Unusable};
pub use controller::Controller;
pub use hardware::{DmaLayout, DmaMemory, Hardware, Registers};
pub use hub::{Hub, HubLocation, HubOutput};
pub use quirks::Quirks;
pub use types::{
    Answer, Config, ControlTransfer, Counters, Deadline, DeadlineReason, Death, DeviceId, EndpointPlan,
    HubShape, Location, Output, Refusal, Request, RequestId, Transfer, Translator,
};
