#![doc = include_str!("../README.md")]
//!
//! ## Design
//!
//! A [`Drive`] joins a [`device::Device`] with the media of its logical units; [`medium`] stores blocks, in memory or in
//! a file; [`loopback`] joins a drive with an initiator in the same process, without a link or a clock in between;
//! [`host_controller`] puts drives behind an xHCI controller.
//!
//! Left out: sockets, registers and other ways to export a drive; those are in the server.

mod drive;
pub mod host_controller;
pub mod loopback;
pub mod medium;

pub use {bus, device, initiator, units, wire};

pub use drive::{
    Body, Counters, Drive, FAULTS_MAX, Fault, FaultKind, FlushError, HostCompletion, HostTransfer, NotAFault,
    Pool, SlotError,
};
