//! A flush that is waited for: when a drive ends, and when a medium leaves it.

use super::{CompletedJob, Job, Medium};
use device::command::{CommandId, DataLocation};
use device::medium::{MediumError, MediumOp, MediumRequest, MediumRequestId};
use rustix::event::{PollFd, PollFlags, poll};
use units::{BlockCount, ByteRange, Extent, Lba};

/// No command has this name: slots are counted from 0 up to a limit far below.
const OURS: MediumRequestId =
    MediumRequestId { command: CommandId { slot: u16::MAX, generation: u16::MAX }, part: u16::MAX };

/// Makes everything written to a medium durable, and blocks until it is. Other jobs that end meanwhile go to `stray`.
///
/// # Errors
/// Returns the error of the medium.
pub fn flush(medium: &mut dyn Medium, mut stray: impl FnMut(CompletedJob)) -> Result<(), MediumError> {
    if medium.is_read_only() {
        return Ok(());
    }
    let request = MediumRequest {
        id: OURS,
        unit: 0,
        op: MediumOp::Flush,
        extent: Extent { lba: Lba(0), blocks: BlockCount(0) },
        location: DataLocation::Buffer,
        range: ByteRange { start: 0, len: 0 },
    };
    let mut finished = medium.submit(Job { request, buffer: Vec::new() });
    medium.flush_submissions();
    loop {
        match finished.take().or_else(|| medium.poll()) {
            Some(CompletedJob { completion, .. }) if completion.id == OURS => {
                return completion.result.map(|_| ());
            }
            Some(finished) => stray(finished),
            None => match medium.event_fd() {
                // A signal that cuts the wait short is as good as an event.
                Some(event) => drop(poll(&mut [PollFd::new(&event, PollFlags::IN)], None)),
                None => return Ok(()),
            },
        }
    }
}
