//! The ways in which a medium can lie about blocks, by name.
//!
//! Each is a fault of drives that are sold: flash drives with less memory than they announce, caches that acknowledge a
//! flush and keep the data, bridges that return one block too many as capacity. Left out: lies about the protocol, which
//! are faults of the device ([`crate::FaultKind`]).

use std::fmt;
use units::ByteCount;

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
}

/// An invalid name or value of a lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotALie {
    /// No lie has this name.
    Unknown,
    /// The lie needs a size.
    NeedsSize,
    /// The lie has no value.
    HasNoValue,
}

/// A lie for a list: its name, and whether it has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LieDescription {
    /// Its name.
    pub name: &'static str,
    /// Whether it has a size as value, as in `wrap=64G`.
    pub has_size: bool,
}

impl Lie {
    /// All lies, in the order of help.
    pub const ALL: &'static [LieDescription] = &[
        LieDescription { name: "wrap", has_size: true },
        LieDescription { name: "drop", has_size: true },
        LieDescription { name: "keep-after-unmap", has_size: false },
        LieDescription { name: "capacity-off-by-one", has_size: false },
    ];

    /// The lie with this name and value.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn named(name: &str, size: Option<ByteCount>) -> Result<Self, NotALie> {
        let known = Self::ALL.iter().find(|known| known.name == name).ok_or(NotALie::Unknown)?;
        match (known.has_size, size) {
            (true, None) => return Err(NotALie::NeedsSize),
            (false, Some(_)) => return Err(NotALie::HasNoValue),
            _ => {}
        }
        let size = size.unwrap_or_default();
        Ok(match name {
            "wrap" => Self::Wrap(size),
            "drop" => Self::Drop(size),
            "keep-after-unmap" => Self::KeepAfterUnmap,
            _ => Self::CapacityOffByOne,
        })
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wrap(_) => "wrap",
            Self::Drop(_) => "drop",
            Self::KeepAfterUnmap => "keep-after-unmap",
            Self::CapacityOffByOne => "capacity-off-by-one",
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
        self.stored().map_or(Ok(()), |size| write!(f, "={size}"))
    }
}

impl fmt::Display for NotALie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "there is no such lie",
            Self::NeedsSize => "this lie needs a size, as in wrap=64G",
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
            let size = known.has_size.then_some(ByteCount(1 << 20));
            assert_eq!(Lie::named(known.name, size).map(Lie::name), Ok(known.name));
            let wrong = if known.has_size { NotALie::NeedsSize } else { NotALie::HasNoValue };
            let size = (!known.has_size).then_some(ByteCount(1));
            assert_eq!(Lie::named(known.name, size), Err(wrong));
        }
        assert_eq!(Lie::named("warp", None), Err(NotALie::Unknown));
        assert_eq!(Lie::Wrap(ByteCount(64 << 30)).to_string(), "wrap=64 GiB");
    }
}
