//! The four pipes of a UAS setting, found by their pipe usage descriptors (UAS-2 clause 5.2.3).

use super::configuration::{Endpoint, Setting};
use wire::uas::PipeUsage;

/// The endpoints that say to be the pipes. Whether they can be is not looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipes<'a> {
    pub(super) command: &'a Endpoint,
    pub(super) status: &'a Endpoint,
    pub(super) data_in: &'a Endpoint,
    pub(super) data_out: &'a Endpoint,
}

impl<'a> Pipes<'a> {
    /// The pipes of a setting, if all four are there. Of two endpoints with one usage the last wins, as in Linux.
    pub(super) fn of(setting: &'a Setting) -> Option<Self> {
        let last = |usage| setting.endpoints.iter().rfind(|endpoint| endpoint.usage == Some(usage));
        Some(Self {
            command: last(PipeUsage::Command)?,
            status: last(PipeUsage::Status)?,
            data_in: last(PipeUsage::DataIn)?,
            data_out: last(PipeUsage::DataOut)?,
        })
    }

    /// All four, with what they say to be.
    pub(super) const fn all(&self) -> [(PipeUsage, &'a Endpoint); 4] {
        [
            (PipeUsage::Command, self.command),
            (PipeUsage::Status, self.status),
            (PipeUsage::DataIn, self.data_in),
            (PipeUsage::DataOut, self.data_out),
        ]
    }

    /// Streams of status, data-in and data-out pipe; 0 is none.
    pub(super) fn streams(&self) -> [u32; 3] {
        [self.status, self.data_in, self.data_out].map(Endpoint::streams)
    }
}
