//! Parts of a file that could not be read: where they are, and the kind of damage.

use std::fmt;

/// A part of a file that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins, in bytes from the beginning of the file.
    pub offset: u64,
    /// How many bytes are passed over.
    pub bytes: u64,
    /// Kind of damage.
    pub kind: DamageKind,
}

/// Packets that the capturing program dropped, according to the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Where the file says so, in bytes from the beginning of the file.
    pub offset: u64,
    /// How many.
    pub packets: u64,
    /// Whether they belong right here, before the next packet; or anywhere before.
    pub is_here: bool,
}

/// Kinds of damage to a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The file ends in the middle of a block or record that has so many bytes.
    Truncated {
        /// Bytes that it says it has.
        needed: u64,
    },
    /// A length that no block or record has.
    Length {
        /// The length.
        length: u32,
    },
    /// The two ends of a block say different lengths.
    Ends {
        /// At its beginning.
        first: u32,
        /// At its end.
        last: u32,
    },
    /// The content of a block is not laid out as its kind demands.
    Block {
        /// Its kind.
        kind: u32,
    },
    /// A block of an unregistered type.
    Unknown {
        /// Its kind.
        kind: u32,
    },
    /// The header of a pcap file: what its records are was inferred from themselves.
    Header,
    /// A section's header, or what should be one at the beginning of the file.
    Section,
    /// A time that has more than a second of fractions.
    Time,
    /// A packet of an interface that the file does not describe.
    Interface {
        /// Its number.
        number: u32,
    },
    /// More interfaces than are kept.
    Interfaces,
    /// A line of usbmon's text that is incomplete or whose fields cannot be parsed.
    Line,
}

impl fmt::Display for Damage {
    /// `at offset 4096: the file ends within 120 bytes; 57 bytes passed over`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, bytes, kind } = self;
        write!(f, "at offset {offset}: {kind}; {bytes} bytes skipped")
    }
}

impl fmt::Display for Dropped {
    /// `at offset 4096: 12 packets were dropped here when they were captured`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, packets, is_here } = self;
        if *packets == 0 {
            return write!(f, "at offset {offset}: events may have been left out here");
        }
        let place = if *is_here { "here" } else { "somewhere before" };
        let (what, were) = if *packets == 1 { ("packet", "was") } else { ("packets", "were") };
        write!(f, "at offset {offset}: {packets} {what} {were} dropped {place} by the capturing program")
    }
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed } => write!(f, "the file ends in the middle of {needed} bytes"),
            Self::Length { length } => write!(f, "implausible length of {length} bytes"),
            Self::Ends { first, last } => {
                write!(f, "block length mismatch: {first} bytes at its beginning, {last} at its end")
            }
            Self::Block { kind } => write!(f, "malformed block of type {kind:#x}"),
            Self::Unknown { kind } => write!(f, "a block of unregistered type {kind:#x}"),
            Self::Header => f.write_str("the header of the file is damaged"),
            Self::Section => f.write_str("the header of a section is damaged"),
            Self::Time => f.write_str("a record's time is invalid"),
            Self::Interface { number } => write!(f, "a packet of interface {number}, which is not described"),
            Self::Line => f.write_str("a line begins as an event of usbmon and does not continue as one"),
            Self::Interfaces => f.write_str("more interfaces than are kept"),
        }
    }
}
