//! The axes of a sweep: kinds of parts, and parameters of a job.
//!
//! Left out: how values are written, which a command line decides.

use crate::parts::{Catalogue, PartKind};
use std::ops::RangeInclusive;
use workload::{DEPTH_MAX, REQUEST_BYTES_MAX};

/// The parameter that a sweep varies, the outermost loop first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Axis {
    /// The host.
    Host,
    /// The driver.
    Driver,
    /// The host controller.
    Controller,
    /// A hub between root port and drive.
    Hub,
    /// The bridge.
    Bridge,
    /// The link.
    Speed,
    /// The drive.
    Drive,
    /// Random or sequential LBAs.
    Access,
    /// Reads or writes.
    Direction,
    /// Bytes of a request.
    Block,
    /// Queue depth.
    Depth,
    /// Random seed.
    Seed,
}

impl Axis {
    /// All axes, in order.
    pub const ALL: [Self; 12] = [
        Self::Host,
        Self::Driver,
        Self::Controller,
        Self::Hub,
        Self::Bridge,
        Self::Speed,
        Self::Drive,
        Self::Access,
        Self::Direction,
        Self::Block,
        Self::Depth,
        Self::Seed,
    ];

    /// Returns the name on command lines and in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Driver => "driver",
            Self::Controller => "controller",
            Self::Hub => "hub",
            Self::Bridge => "bridge",
            Self::Speed => "speed",
            Self::Drive => "drive",
            Self::Access => "access",
            Self::Direction => "direction",
            Self::Block => "block",
            Self::Depth => "depth",
            Self::Seed => "seed",
        }
    }

    /// Returns the kinds of parts that the axis varies; none for a parameter of the job.
    pub const fn kinds(self) -> &'static [PartKind] {
        match self {
            Self::Host => &[PartKind::Host],
            Self::Driver => &[PartKind::Driver],
            Self::Controller => &[PartKind::Controller],
            Self::Hub => &[PartKind::Hub],
            Self::Bridge => &[PartKind::Bridge],
            Self::Speed => &[PartKind::Link],
            Self::Drive => &[PartKind::Ssd, PartKind::Hdd],
            _ => &[],
        }
    }

    /// Returns the allowed numbers of an axis that has numbers.
    pub fn bounds(self) -> Option<RangeInclusive<u64>> {
        match self {
            Self::Block => Some(512..=u64::from(REQUEST_BYTES_MAX)),
            Self::Depth => Some(1..=u64::from(DEPTH_MAX)),
            Self::Seed => Some(0..=u64::MAX),
            _ => None,
        }
    }

    /// Returns the allowed names of an axis that has names.
    pub fn names(self, catalogue: &Catalogue) -> Vec<&str> {
        match self {
            Self::Access => vec!["random", "sequential"],
            Self::Direction => vec!["read", "write"],
            _ => {
                let of_kind = |kind| catalogue.entries().filter(move |entry| entry.kind() == kind);
                self.kinds().iter().copied().flat_map(of_kind).map(|entry| entry.name.as_str()).collect()
            }
        }
    }
}
