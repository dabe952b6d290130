//! The ways in which a medium can lie about blocks, by name.
//!
//! Each is a fault of drives that are sold: flash drives with less memory than they announce, caches that acknowledge a
//! flush and keep the data, bridges that return one block too many as capacity. Left out: lies about the protocol, which
//! are faults of the device ([`crate::FaultKind`]).

use std::fmt;
use units::{ByteCount, Lba};

/// Blocks that are stuck by [`Lie::Stuck`], from its LBA on.
pub(super) const STUCK_BLOCKS: u64 = 8;

/// One lie of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Blocks past this size are stored modulo it, over others.
    Wrap(ByteCount),
    /// Writes past this size are acknowledged and lost; reads there return zeros.
    Drop(ByteCount),
    /// UNMAP, and WRITE SAME with UNMAP, are acknowledged, and the blocks keep their data.
    KeepAfterUnmap,
    /// The capacity that is announced is one block more than there is.
    CapacityOffByOne,
    /// A flush is acknowledged, and nothing becomes durable.
    IgnoreFlush,
    /// FUA has no effect: such writes are acknowledged before they are durable.
    IgnoreFua,
    /// A block that is not durable may be partly old and partly new after a power loss.
    TornWrites,
    /// Eight blocks from this one on return one old block: the first that was written to any of them.
    Stuck(Lba),
}

/// An invalid name or value of a lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotALie {
    /// No lie has this name.
    Unknown,
    /// The lie needs a size.
    NeedsSize,
    /// The lie needs an LBA.
    NeedsLba,
    /// The lie has no value.
    HasNoValue,
}

/// A lie for a list: its name, and whether it has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LieDescription {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: LieValue,
}

/// The value of a lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LieValue {
    /// None.
    None,
    /// A size in bytes, as in `wrap=64G`.
    Size,
    /// A block, as in `stuck=1000`.
    Lba,
}

impl Lie {
    /// All lies, in the order of help.
    pub const ALL: &'static [LieDescription] = &[
        LieDescription { name: "wrap", value: LieValue::Size },
        LieDescription { name: "drop", value: LieValue::Size },
        LieDescription { name: "keep-after-unmap", value: LieValue::None },
        LieDescription { name: "capacity-off-by-one", value: LieValue::None },
        LieDescription { name: "ignore-flush", value: LieValue::None },
        LieDescription { name: "ignore-fua", value: LieValue::None },
        LieDescription { name: "torn-writes", value: LieValue::None },
        LieDescription { name: "stuck", value: LieValue::Lba },
    ];

    /// The lie with this name and value: bytes, or an LBA.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn named(name: &str, value: Option<u64>) -> Result<Self, NotALie> {
        let known = Self::ALL.iter().find(|known| known.name == name).ok_or(NotALie::Unknown)?;
        match (known.value, value) {
            (LieValue::Size, None) => return Err(NotALie::NeedsSize),
            (LieValue::Lba, None) => return Err(NotALie::NeedsLba),
            (LieValue::None, Some(_)) => return Err(NotALie::HasNoValue),
            _ => {}
        }
        let value = value.unwrap_or_default();
        Ok(match name {
            "wrap" => Self::Wrap(ByteCount(value)),
            "drop" => Self::Drop(ByteCount(value)),
            "keep-after-unmap" => Self::KeepAfterUnmap,
            "capacity-off-by-one" => Self::CapacityOffByOne,
            "ignore-flush" => Self::IgnoreFlush,
            "ignore-fua" => Self::IgnoreFua,
            "torn-writes" => Self::TornWrites,
            _ => Self::Stuck(Lba(value)),
        })
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wrap(_) => "wrap",
            Self::Drop(_) => "drop",
            Self::KeepAfterUnmap => "keep-after-unmap",
            Self::CapacityOffByOne => "capacity-off-by-one",
            Self::IgnoreFlush => "ignore-flush",
            Self::IgnoreFua => "ignore-fua",
            Self::TornWrites => "torn-writes",
            Self::Stuck(_) => "stuck",
        }
    }

    /// Returns how many of the announced bytes a medium with these lies stores.
    pub fn stored_of(lies: &[Self], announced: ByteCount) -> ByteCount {
        lies.iter().filter_map(|lie| lie.stored()).fold(announced, ByteCount::min)
    }

    /// Returns the size up to which blocks are stored as they should, for a lie that has one.
    pub const fn stored(self) -> Option<ByteCount> {
        match self {
            Self::Wrap(size) | Self::Drop(size) => Some(size),
            _ => None,
        }
    }
}

impl fmt::Display for Lie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Wrap(size) | Self::Drop(size) => write!(f, "={size}"),
            Self::Stuck(lba) => write!(f, "={}", lba.0),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for NotALie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "there is no such lie",
            Self::NeedsSize => "this lie needs a size, as in wrap=64G",
            Self::NeedsLba => "this lie needs an LBA, as in stuck=1000",
            Self::HasNoValue => "this lie has no value",
        })
    }
}

impl std::error::Error for NotALie {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lie_in_the_list_has_its_name_and_value() {
        for known in Lie::ALL {
            let (right, wrong, error) = match known.value {
                LieValue::None => (None, Some(1), NotALie::HasNoValue),
                LieValue::Size => (Some(1 << 20), None, NotALie::NeedsSize),
                LieValue::Lba => (Some(7), None, NotALie::NeedsLba),
            };
            assert_eq!(Lie::named(known.name, right).map(Lie::name), Ok(known.name));
            assert_eq!(Lie::named(known.name, wrong), Err(error));
        }
        assert_eq!(Lie::named("warp", None), Err(NotALie::Unknown));
        assert_eq!(Lie::Wrap(ByteCount(64 << 30)).to_string(), "wrap=64 GiB");
        assert_eq!(Lie::Stuck(Lba(1000)).to_string(), "stuck=1000");
    }
}
