//! Results of parsing a block, record or line at the front of the window.
//!
//! Left out: how each format decides that. Always true: the bytes of a packet stay in the window until
//! the next one is read.

use super::damage::{DamageKind, Dropped};
use crate::{ADDED, pcapng::INTERFACES_MAX};
use std::ops::Range;

/// The most bytes of one block or record; a length past it is damage. Wireshark takes as many for USB.
pub const RECORD_BYTES_MAX: usize = 128 << 20;

/// Link type: the header that begins a packet, by the numbers that tcpdump.org keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// usbmon's header of 48 bytes (189).
    UsbmonShort,
    /// usbmon's header of 64 bytes (220).
    Usbmon,
    /// USBPcap's header (249).
    Usbpcap,
    /// The header of FreeBSD's usbpf (186).
    Usbpf,
    /// Packets of USB 1.1 and 2.0, from packet identifier to check (288, and 293 to 295, which say the speed).
    Usb2Packets,
    /// Something else.
    Other(u32),
}

/// Which end of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The low one.
    Little,
    /// The high one.
    Big,
}

impl ByteOrder {
    /// The bytes of the number at the front, the low one first; none if there are fewer.
    pub(super) fn low_first<const N: usize>(self, bytes: &[u8]) -> Option<[u8; N]> {
        let mut number = *bytes.first_chunk()?;
        if self == Self::Big {
            number.reverse();
        }
        Some(number)
    }
}

/// Result of parsing the front of the window.
pub(super) enum Step {
    /// A packet in a block or record of so many bytes.
    Packet(Found),
    /// So many bytes without a packet.
    Skip(usize),
    /// So many bytes that begin another section.
    Section(usize),
    /// So many bytes that make no sense.
    Damage(DamageKind, usize),
    /// So many bytes that report dropped packets; their offset is added.
    Dropped(Dropped, usize),
    /// Nothing.
    End,
}

/// A packet, but for its bytes, which are in the window.
pub(super) struct Found {
    pub(super) at_ns: u64,
    pub(super) link: Link,
    pub(super) order: ByteOrder,
    pub(super) interface: u32,
    pub(super) cut: u32,
    pub(super) stream: Option<u16>,
    pub(super) is_added: bool,
    pub(super) payload: Payload,
    /// Bytes of the block, record or line.
    pub(super) len: usize,
}

/// Where the bytes of a packet are.
pub(super) enum Payload {
    /// In the window.
    At(Range<usize>),
    /// Made of a line of text: `Lines::packet`.
    Made,
}

/// The stream in a comment (docs/CAPTURE.md): `stream 7`.
pub(super) fn stream_of(comment: &[u8]) -> Option<u16> {
    let digits = comment.strip_prefix(b"stream ")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Whether a comment says that its record was not on the link (docs/CAPTURE.md).
pub(super) fn is_of_added(comment: &[u8]) -> bool {
    comment.starts_with(ADDED.as_bytes())
}

/// Whether so many interfaces are more than are kept.
pub(super) const fn is_full(interfaces: usize) -> bool {
    interfaces >= INTERFACES_MAX as usize
}
