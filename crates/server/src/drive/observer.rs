//! Somebody who looks on at the transfers of a host, to write them down.
//!
//! What is told is what the host sees: a transfer when it is taken on, and when its end is fetched; control transfers whole. A drive
//! without an observer pays for a comparison. Left out: what happens at the media.

use super::{Body, HostCompletion};
use bus::{Pipe, TransferStatus};
use std::fmt;
use target::Verdict;
use wire::usb::SetupPacket;

/// Looks on. It is called on the thread of the drive, and should not keep it.
pub trait Observer: Send + fmt::Debug {
    /// A transfer begins; `bytes` go to the device.
    fn submitted(&mut self, id: u64, pipe: Pipe, length: u32, bytes: &[u8]);
    /// A transfer has ended, with so many bytes moved; `bytes` came from the device.
    fn completed(&mut self, id: u64, pipe: Pipe, end: (TransferStatus, u32), bytes: &[u8]);
    /// A control transfer, whole: bytes to the device, and what came of it.
    fn control(&mut self, setup: SetupPacket, bytes: &[u8], verdict: &Verdict);
}

/// Tells of the end of a transfer.
pub(super) fn tell_end(observer: &mut dyn Observer, completion: &HostCompletion) {
    let HostCompletion { id, pipe, status, actual, body, .. } = completion;
    let bytes = match body {
        Body::Empty => &[],
        Body::Inline(inline) => inline.as_bytes(),
        Body::Buffer(buffer) => buffer.get(..*actual as usize).unwrap_or(buffer),
    };
    observer.completed(*id, *pipe, (*status, *actual), bytes);
}
