//! What the drives of a case are made of, and what its driver takes: parts of the catalogue.
//!
//! The bridges differ in what meets: one with a small buffer that queues nothing, one that sends what comes, one that waits for long
//! pieces. Contents, cache and faults of blocks are the plain medium's, whatever is around it. Left out: bridges that offer
//! other transports than a case asks for, since each device offers both.
//!
//! Always true: parts are new in each life; what outlives one is the medium's.

use super::case::CaseTransport;
use crate::assembly;
use crate::parts::Catalogue;
use sim::bridge::Chip;
use sim::drive::AnyDrive;
use sim::drive::disk::Disk;
use sim::drive::solid::{Contents, Solid};
use sim::engine::Random;
use sim::machine::xhci::HostCosts;
use std::sync::LazyLock;

/// What is behind the endpoints of each drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Nothing but a medium with a latency.
    Plain,
    /// A bridge that queues by tag, and flash.
    QueueingFlash,
    /// The same, which sends what comes.
    SendingFlash,
    /// The same, which waits for long pieces, and a disk.
    PiecesDisk,
    /// A bridge that gives its drive one command at a time, and flash.
    SingleFlash,
    /// The same, and a disk.
    SingleDisk,
}

/// Their names on a line.
pub(super) const NAMES: [(&str, Parts); 6] = [
    ("plain", Parts::Plain),
    ("queueing-flash", Parts::QueueingFlash),
    ("sending-flash", Parts::SendingFlash),
    ("pieces-disk", Parts::PiecesDisk),
    ("single-flash", Parts::SingleFlash),
    ("single-disk", Parts::SingleDisk),
];

/// Commands that a bridge takes at least: as many as tags of SATA.
const COMMANDS: u16 = 32;
/// Of so many seeds one has parts.
const ONE_OF: u64 = 4;

// Files that came with the program; a test says that each part is there.
static CATALOGUE: LazyLock<Option<Catalogue>> = LazyLock::new(|| Catalogue::built_in().ok());

impl Parts {
    /// As dice have it.
    pub(super) fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed, "parts");
        if random.below(ONE_OF) > 0 {
            return Self::Plain;
        }
        let (_, parts) = NAMES[1 + random.below(NAMES.len() as u64 - 1) as usize];
        parts
    }

    /// The bridge, if there is one.
    pub(super) fn chip(self) -> Option<Chip> {
        let name = match self {
            Self::Plain => return None,
            Self::QueueingFlash => "asm1153",
            Self::SendingFlash => "asm1051",
            Self::PiecesDisk => "asm1051e",
            Self::SingleFlash | Self::SingleDisk => "apricorn",
        };
        let mut chip = CATALOGUE.as_ref()?.bridge(name).map(assembly::chip)?;
        // One for BOT alone takes one command, and a case may speak UAS to it.
        chip.limits.commands = chip.limits.commands.max(COMMANDS);
        Some(chip)
    }

    /// The drive behind the bridge.
    pub(super) fn drive(self) -> Option<AnyDrive> {
        let catalogue = CATALOGUE.as_ref()?;
        match self {
            Self::Plain => None,
            Self::QueueingFlash | Self::SendingFlash | Self::SingleFlash => {
                catalogue.ssd("vertex3-240").map(|part| Solid::new(part.clone(), Contents::FRESH).into())
            }
            Self::PiecesDisk | Self::SingleDisk => {
                catalogue.hdd("disk-7200").map(|part| Disk::new(part.clone()).into())
            }
        }
    }
}

/// What a driver of the catalogue takes on a host of the catalogue.
pub(super) fn costs(wire: CaseTransport) -> HostCosts {
    let name = match wire {
        CaseTransport::Uas => "linux-uas",
        CaseTransport::Bot => "linux-usb-storage",
        CaseTransport::Turbo => "turbo",
    };
    let found = CATALOGUE.as_ref().and_then(|catalogue| {
        let driver = catalogue.driver(name)?;
        catalogue.host("desktop-2012").map(|host| host.costs(&driver.costs))
    });
    found.unwrap_or(HostCosts::FREE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_in_the_catalogue() {
        for (name, parts) in NAMES {
            let is_plain = parts == Parts::Plain;
            assert_eq!((parts.chip().is_none(), parts.drive().is_none()), (is_plain, is_plain), "{name}");
        }
        for wire in [CaseTransport::Uas, CaseTransport::Bot, CaseTransport::Turbo] {
            assert!(!costs(wire).is_free(), "{wire:?}");
        }
    }

    #[test]
    fn a_quarter_of_all_seeds_has_parts_and_each_kind_is_among_them() {
        let all: Vec<_> = (0..400).map(Parts::of_seed).collect();
        for (name, parts) in NAMES {
            let count = all.iter().filter(|of| **of == parts).count();
            let expected = if parts == Parts::Plain { 260..340 } else { 8..40 };
            assert!(expected.contains(&count), "{name}: {count}");
        }
    }
}
