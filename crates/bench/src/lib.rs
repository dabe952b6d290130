//! `uaskit bench`: measures a drive over each transport that it supports.
//!
//! A [`workload`] is a list of jobs, by name, by flags, or from an IOMeter or fio file. A
//! [`backend`] submits block requests to a drive: our own drivers at a USB port, a device node that
//! the kernel drives, or initiator and drive in memory. [`measure`](mod@measure) runs jobs on
//! devices, drops the warm-up, repeats until the figures are steady, and alternates between
//! transports. [`verify`] stamps written blocks and checks them on read. [`record`] holds the
//! results. [`inspect::block`] decides whether a device may be written.
//!
//! Always true: nothing is written unless the caller allows it; errors and retries are counted and
//! reported with the figures; in steady state this crate allocates nothing per request.

pub mod backend;
pub mod measure;
mod payload;
pub mod record;
pub mod verify;
