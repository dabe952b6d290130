//! Models of a case's drives, and driver costs: parts of the catalogue.
//!
//! The bridges differ: one with a small buffer and no queue, one that forwards data immediately,
//! one that collects long runs. Contents, cache and block faults are those of the fixed-latency
//! medium. Left out: bridges with other transports than a case needs, since each device offers
//! both.
//!
//! Always true: parts are reset in each session; only the medium persists.

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

/// The drive model behind the endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// A medium with a fixed latency.
    Plain,
    /// A bridge with NCQ and an SSD.
    QueueingFlash,
    /// The same, forwarding data immediately.
    SendingFlash,
    /// The same, collecting long runs, with a hard disk.
    PiecesDisk,
    /// A bridge without queueing, and an SSD.
    SingleFlash,
    /// The same with a hard disk.
    SingleDisk,
}

/// Names in a line.
pub(super) const NAMES: [(&str, Parts); 6] = [
    ("plain", Parts::Plain),
    ("queueing-flash", Parts::QueueingFlash),
    ("sending-flash", Parts::SendingFlash),
    ("pieces-disk", Parts::PiecesDisk),
    ("single-flash", Parts::SingleFlash),
    ("single-disk", Parts::SingleDisk),
];

/// Minimum queue depth of a bridge: the tags of SATA.
const COMMANDS: u16 = 32;
/// One of this many seeds has parts.
const ONE_OF: u64 = 4;

// Embedded files; a test checks that each part exists.
static CATALOGUE: LazyLock<Option<Catalogue>> = LazyLock::new(|| Catalogue::built_in().ok());

impl Parts {
    /// Chooses parts by seed.
    pub(super) fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed, "parts");
        if random.below(ONE_OF) > 0 {
            return Self::Plain;
        }
        let (_, parts) = NAMES[1 + random.below(NAMES.len() as u64 - 1) as usize];
        parts
    }

    /// The bridge, if any.
    pub(super) fn chip(self) -> Option<Chip> {
        let name = match self {
            Self::Plain => return None,
            Self::QueueingFlash => "asm1153",
            Self::SendingFlash => "asm1051",
            Self::PiecesDisk => "asm1051e",
            Self::SingleFlash | Self::SingleDisk => "apricorn",
        };
        let mut chip = CATALOGUE.as_ref()?.bridge(name).map(assembly::chip)?;
        // A BOT-only bridge has a depth of one, but a case may use UAS with it.
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

/// Costs of a catalogue driver on a catalogue host.
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
