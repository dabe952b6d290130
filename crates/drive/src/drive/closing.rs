//! The end of a drive: everything written becomes durable.

use super::Drive;
use crate::medium;
use device::medium::MediumError;
use std::error::Error;
use std::fmt;

/// The flush of a medium has failed: what was written since the last one may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushError {
    /// The logical unit of that medium.
    pub unit: u8,
    /// Its error.
    pub error: MediumError,
}

impl Drive {
    /// Makes everything written durable. Blocks until it is: for shutdown, when nothing is at the media.
    ///
    /// # Errors
    /// The first medium that could not. The others were flushed all the same.
    pub fn flush_media(&mut self) -> Result<(), FlushError> {
        let mut outcome = Ok(());
        for unit in 0..self.media.len() {
            let mut strays = Vec::new();
            if let Err(error) = medium::flush(&mut *self.media[unit], |finished| strays.push(finished)) {
                outcome = outcome.and(Err(FlushError { unit: unit as u8, error }));
            }
            for finished in strays {
                self.handle_finished(finished);
            }
        }
        outcome
    }
}

impl fmt::Display for FlushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot flush the medium of LUN {}: {:?}", self.unit, self.error)
    }
}

impl Error for FlushError {}
