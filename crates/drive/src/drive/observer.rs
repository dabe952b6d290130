//! Reports the transfers of a drive's host to an observer.
//!
//! Without an observer the cost is one comparison. Left out: what happens at the media.

use super::host_transfer::{Body, HostCompletion};
use bus::{Direction, Observer, TransferStatus};
use device::Verdict;
use wire::usb::SetupPacket;

/// Reports a completed transfer.
pub(super) fn report_completion(observer: &mut dyn Observer, completion: &HostCompletion) {
    let HostCompletion { id, pipe, status, actual, body, .. } = completion;
    let bytes = match body {
        Body::Empty => &[],
        Body::Inline(inline) => inline.as_bytes(),
        Body::Buffer(buffer) => buffer.get(..*actual as usize).unwrap_or(buffer),
    };
    observer.completed(*id, *pipe, *status, *actual, bytes);
}

/// Reports a control transfer, with the bytes that it moved.
pub(super) fn report_control(
    observer: &mut dyn Observer,
    setup: SetupPacket,
    sent: &[u8],
    verdict: &Verdict,
) {
    let (answer, status) = match verdict {
        Verdict::Data(answer) => (&answer[..], TransferStatus::Done),
        Verdict::Done => (&[][..], TransferStatus::Done),
        Verdict::Stall => (&[][..], TransferStatus::Stall),
    };
    let bytes = if setup.direction == Direction::In { answer } else { sent };
    observer.control(setup, bytes, status);
}
