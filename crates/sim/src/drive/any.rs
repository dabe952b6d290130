//! A drive whose type is chosen at run time.

use super::disk::Disk;
use super::solid::Solid;
use super::{Deferred, DriveCommand, DriveEvent, Mechanism, Tag};
use units::Instant;

/// A drive.
#[derive(Clone, Debug)]
pub enum AnyDrive {
    /// A hard disk.
    Disk(Box<Disk>),
    /// A solid-state drive.
    Solid(Box<Solid>),
}

impl From<Disk> for AnyDrive {
    fn from(disk: Disk) -> Self {
        Self::Disk(Box::new(disk))
    }
}

impl From<Solid> for AnyDrive {
    fn from(solid: Solid) -> Self {
        Self::Solid(Box::new(solid))
    }
}

/// Delegates to the variant.
macro_rules! either {
    ($drive:expr, $inner:ident => $ask:expr) => {
        match $drive {
            AnyDrive::Disk($inner) => $ask,
            AnyDrive::Solid($inner) => $ask,
        }
    };
}

impl Mechanism for AnyDrive {
    fn submit(&mut self, now: Instant, order: DriveCommand) {
        either!(self, drive => drive.submit(now, order));
    }

    fn handle_sectors(&mut self, now: Instant, tag: Tag, sectors: u32) {
        either!(self, drive => drive.handle_sectors(now, tag, sectors));
    }

    fn poll_event(&mut self) -> Option<DriveEvent> {
        either!(self, drive => drive.poll_event())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        either!(self, drive => drive.poll_timeout())
    }

    fn handle_timeout(&mut self, now: Instant) {
        either!(self, drive => drive.handle_timeout(now));
    }

    fn sectors(&self) -> u64 {
        either!(self, drive => drive.sectors())
    }

    fn deferred(&self) -> Deferred {
        either!(self, drive => drive.deferred())
    }
}
