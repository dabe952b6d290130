//! `uaskit bench`: what a drive is worth, on each transport that can carry it.
//!
//! A [`workload`] is a list of jobs, by name, by flags, or from a file of IOMeter or fio. A [`bench_device`] brings requests for
//! blocks to a drive: our own drivers at a USB port, a device node that the kernel drives, or initiator and drive in
//! memory. [`measure`](mod@measure) runs jobs on rigs, drops the warm-up, repeats until the figures are steady, and
//! compares transports in turns. [`verify`] stamps what is written and checks what is read. [`record`] is what comes
//! out. Whether a device may be written is asked of [`inspect::block`].
//!
//! Always true: nothing is written unless the caller says so; errors and retries are counted and come out with the
//! figures; in steady state this crate allocates nothing per request.

pub mod backend;
pub mod measure;
mod payload;
pub mod record;
pub mod verify;
