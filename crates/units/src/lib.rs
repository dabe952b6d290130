#![doc = include_str!("../README.md")]
//!
//! ## Design
//!
//! A bare integer does not say whether it counts bytes, blocks or picoseconds, so above this crate none
//! is passed around for those. Only arithmetic with a meaning exists: two block counts add up, two block
//! addresses do not; their difference is a block count.
//!
//! Left out: floating point, calendars, and everything that would need a clock. An [`Instant`] is what a
//! back end says it is: virtual time in a simulation, the operating system's monotonic clock elsewhere.
#![no_std]

mod block;
mod bytes;
mod time;

pub use block::{BlockCount, BlockSize, Extent, Lba};
pub use bytes::{ByteCount, ByteRange, Capacity};
pub use time::{Duration, Instant};
