//! Somebody who looks on at the transfers of a host, to write them down.
//!
//! What is told is what the host sees: a transfer when it is taken on, and when its end is fetched; control transfers whole. Whoever lets
//! somebody look on calls in that order, and each transfer that began is told to end once, unless the device is let go of before.

use crate::{Pipe, TransferStatus};
use core::fmt;
use wire::usb::SetupPacket;

/// Looks on. It is called where transfers are carried, and should not keep them.
pub trait Observer: Send + fmt::Debug {
    /// How many bytes of a transfer are wanted at most: what is past them need not be brought.
    fn snap(&self) -> usize {
        usize::MAX
    }

    /// A transfer begins; `bytes` go to the device.
    fn submitted(&mut self, id: u64, pipe: Pipe, length: u32, bytes: &[u8]);

    /// A transfer has ended, with so many bytes moved; `bytes` came from the device.
    fn completed(&mut self, id: u64, pipe: Pipe, end: (TransferStatus, u32), bytes: &[u8]);

    /// A control transfer, whole: the bytes of its data stage in either direction, and how it ended.
    fn control(&mut self, setup: SetupPacket, bytes: &[u8], status: TransferStatus);
}
