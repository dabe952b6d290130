//! The end of a drive: everything written becomes durable.

use super::Drive;
use crate::medium::{Finished, Job};
use rustix::event::{PollFd, PollFlags, poll};
use std::error::Error;
use std::fmt;
use target::command::{CommandId, Place};
use target::medium::{MediumError, MediumOp, MediumRequest, MediumRequestId};
use units::{BlockCount, ByteRange, Extent, Lba};

/// The flush of a medium has failed: what was written since the last one may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushError {
    /// Whose medium.
    pub unit: u8,
    /// What it said.
    pub error: MediumError,
}

/// No command has this name: slots are counted from 0 up to a limit far below.
const OURS: MediumRequestId =
    MediumRequestId { command: CommandId { slot: u16::MAX, generation: u16::MAX }, part: u16::MAX };

impl Drive {
    /// Makes everything written durable. Blocks until it is: for shutdown, when nothing is at the media.
    ///
    /// # Errors
    /// The first medium that could not. The others were flushed all the same.
    pub fn flush_media(&mut self) -> Result<(), FlushError> {
        let mut outcome = Ok(());
        for unit in 0..self.media.len() {
            if self.media[unit].is_read_only() {
                continue;
            }
            let unit = unit as u8;
            if let Err(error) = self.flush_medium(unit) {
                outcome = outcome.and(Err(FlushError { unit, error }));
            }
        }
        outcome
    }

    fn flush_medium(&mut self, unit: u8) -> Result<(), MediumError> {
        let request = MediumRequest {
            id: OURS,
            unit,
            op: MediumOp::Flush,
            extent: Extent { lba: Lba(0), blocks: BlockCount(0) },
            place: Place::Buffer,
            range: ByteRange { start: 0, len: 0 },
        };
        let medium = &mut self.media[usize::from(unit)];
        let mut finished = medium.submit(Job { request, buffer: Vec::new() });
        medium.flush_submissions();
        loop {
            let medium = &mut self.media[usize::from(unit)];
            match finished.take().or_else(|| medium.poll()) {
                Some(Finished { completion, .. }) if completion.id == OURS => {
                    return completion.result.map(|_| ());
                }
                Some(finished) => self.handle_finished(finished),
                None => match medium.event_fd() {
                    // A signal that cuts the wait short is as good as an event.
                    Some(event) => drop(poll(&mut [PollFd::new(&event, PollFlags::IN)], None)),
                    None => return Ok(()),
                },
            }
        }
    }
}

impl fmt::Display for FlushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the medium of unit {} could not be flushed: {:?}", self.unit, self.error)
    }
}

impl Error for FlushError {}
