//! Capture files, read as a stream: pcap and pcapng, in both byte orders, whatever their length.
//!
//! [`Reader::next_item`] gives one packet after the other, and between them what could not be read: a [`Damage`] says what, where and
//! how much. After damage the reader looks for the next block or record that makes sense and goes on there. What is in a
//! block or a record is for the crate `pcap-parser`; which bytes are one is decided here, so that no length in a file makes the
//! reader wait for bytes or memory that are not there.
//!
//! Invariants: memory does not grow with the file; each byte is in a packet, in a damage, or in a block without a packet; the
//! reader ends when the file does.

mod blocks;
mod damage;
mod front;
mod lines;
mod records;
mod window;

pub use damage::{Damage, DamageKind, Dropped};
pub use front::{ByteOrder, Link, RECORD_BYTES_MAX};

use crate::ReadError;
use blocks::Blocks;
use front::{Found, Payload, Step};
use lines::Lines;
use records::Records;
use std::io::{self, Read};
use window::Window;

/// One packet or event of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its number, from 1, as Wireshark counts.
    pub number: u64,
    /// When, in nanoseconds since the file's zero, which is 1970 unless it was simulated.
    pub at_ns: u64,
    /// Link type: the header that the packet begins with.
    pub link: Link,
    /// The byte order of the file, and of headers in the order of the machine.
    pub order: ByteOrder,
    /// Which interface of the file it is from; one that a pcap file has is 0.
    pub interface: u32,
    /// Captured bytes.
    pub bytes: &'a [u8],
    /// Bytes of it that are not.
    pub cut: u32,
    /// The stream in its comment, if there is one.
    pub stream: Option<u16>,
    /// Whether a comment says that it was not on the link: who wrote it has added it for readers.
    pub is_added: bool,
}

/// Next item of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A packet.
    Packet(Packet<'a>),
    /// Something that could not be read.
    Damage(Damage),
    /// Packets that the file says are missing.
    Dropped(Dropped),
    /// Another section begins, behind the first: what comes is another capture, or the same one's next file.
    Section,
}

/// A capture file that is being read.
pub struct Reader<R> {
    window: Window<R>,
    file: String,
    form: Form,
    packets: u64,
    /// Bytes of the packet that was given last.
    given: usize,
}

/// How the file is made.
enum Form {
    Blocks(Blocks),
    Records(Records),
    Lines(Lines),
}

impl Form {
    /// Of a file that does not begin as a capture does.
    fn behind_damage<R: Read>(window: &mut Window<R>) -> io::Result<Option<Self>> {
        // Blocks may be anywhere, records where the first of them belongs: who is more certain is asked first.
        if let Some(records) = Records::behind_damage(window)? {
            return Ok(Some(Self::Records(records)));
        }
        Ok(Blocks::behind_damage(window)?.map(Self::Blocks))
    }
}

impl<R: Read> Reader<R> {
    /// Begins to read; `file` is what errors call it.
    ///
    /// # Errors
    /// If it cannot be read, or does not begin as a capture does.
    pub fn new(input: R, file: String) -> Result<Self, ReadError> {
        let mut window = Window::new(input);
        let fail = |file: &str, cause| ReadError { file: file.to_owned(), cause };
        window.want(records::HEADER_BYTES).map_err(|cause| fail(&file, cause))?;
        let form = if let Some(blocks) = Blocks::of(window.bytes()) {
            Form::Blocks(blocks)
        } else if let Some(records) = Records::of(window.bytes()) {
            window.skip(records::HEADER_BYTES);
            Form::Records(records)
        } else if let Some(lines) = Lines::of(&mut window).map_err(|cause| fail(&file, cause))? {
            Form::Lines(lines)
        } else if let Some(form) = Form::behind_damage(&mut window).map_err(|cause| fail(&file, cause))? {
            form
        } else {
            let text = refusal(window.bytes());
            return Err(fail(&file, io::Error::new(io::ErrorKind::InvalidData, text)));
        };
        Ok(Self { window, file, form, packets: 0, given: 0 })
    }

    /// The next packet or damage; nothing at the end of the file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, ReadError> {
        self.window.skip(std::mem::take(&mut self.given));
        loop {
            let step = match &mut self.form {
                Form::Blocks(blocks) => blocks.step(&mut self.window),
                Form::Records(records) => records.step(&mut self.window),
                Form::Lines(lines) => lines.step(&mut self.window),
            };
            match step.map_err(|cause| ReadError { file: self.file.clone(), cause })? {
                Step::Packet(found) => return Ok(Some(Item::Packet(self.give(found)))),
                Step::Skip(len) => self.window.skip(len),
                Step::Section(len) => {
                    self.window.skip(len);
                    return Ok(Some(Item::Section));
                }
                Step::Damage(kind, len) => {
                    let damage = Damage { offset: self.window.offset(), bytes: len as u64, kind };
                    self.window.skip(len);
                    return Ok(Some(Item::Damage(damage)));
                }
                Step::Dropped(dropped, len) => {
                    let offset = self.window.offset();
                    self.window.skip(len);
                    return Ok(Some(Item::Dropped(Dropped { offset, ..dropped })));
                }
                Step::End => return Ok(None),
            }
        }
    }

    /// Bytes of the file that were read and used so far.
    pub fn offset(&self) -> u64 {
        self.window.offset()
    }

    fn give(&mut self, found: Found) -> Packet<'_> {
        self.packets += 1;
        self.given = found.len;
        let Found { at_ns, link, order, interface, cut, stream, is_added, payload, .. } = found;
        let bytes = match (payload, &self.form) {
            (Payload::At(range), _) => &self.window.bytes()[range],
            (Payload::Made, Form::Lines(lines)) => lines.packet(),
            (Payload::Made, _) => &[],
        };
        Packet { number: self.packets, at_ns, link, order, interface, bytes, cut, stream, is_added }
    }
}

impl Link {
    /// Infers the link type from the bytes of a packet; returns `None` if they do not prove one.
    fn seen_in(bytes: &[u8], order: ByteOrder) -> Option<Self> {
        let word = |at: usize, order: ByteOrder| order.low_first(bytes.get(at..)?).map(u32::from_le_bytes);
        let is_usbmon = matches!(bytes.get(8..10)?, [b'S' | b'C' | b'E', 0..=3]);
        let behind = |head: usize| bytes.len().checked_sub(head).and_then(|len| u32::try_from(len).ok());
        // Both headers of usbmon say how many bytes follow them, and USBPcap's says its own length as well.
        let follows = word(36, order).filter(|_| is_usbmon);
        let head = bytes.first_chunk().map(|&head| u16::from_le_bytes(head)).unwrap_or_default();
        let is_usbpcap = (27..=64).contains(&head) && word(27 - 4, ByteOrder::Little) == behind(head.into());
        match (follows, is_usbpcap) {
            (Some(follows), _) if behind(64) == Some(follows) => Some(Self::Usbmon),
            (Some(follows), _) if behind(48) == Some(follows) => Some(Self::UsbmonShort),
            (_, true) => Some(Self::Usbpcap),
            _ => None,
        }
    }

    const fn of(code: u32) -> Self {
        match code {
            186 => Self::Usbpf,
            189 => Self::UsbmonShort,
            220 => Self::Usbmon,
            249 => Self::Usbpcap,
            288 | 293..=295 => Self::Usb2Packets,
            other => Self::Other(other),
        }
    }
}

impl std::fmt::Display for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UsbmonShort => f.write_str("usbmon, 48 bytes (189)"),
            Self::Usbmon => f.write_str("usbmon, 64 bytes (220)"),
            Self::Usbpcap => f.write_str("USBPcap (249)"),
            Self::Usbpf => f.write_str("USB of FreeBSD (186)"),
            Self::Usb2Packets => f.write_str("packets of USB 2.0 (288)"),
            Self::Other(code) => {
                write!(f, "link type {code}")?;
                match code {
                    1 => f.write_str(" (Ethernet)"),
                    105 | 127 => f.write_str(" (Wi-Fi)"),
                    113 | 276 => f.write_str(" (Linux cooked)"),
                    187 | 201 => f.write_str(" (Bluetooth)"),
                    266 => f.write_str(" (USB of macOS)"),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// Whether bytes begin as a capture does.
pub(crate) fn is_capture(bytes: &[u8]) -> bool {
    Blocks::of(bytes).is_some() || Records::of(bytes).is_some() || lines::has_event(bytes)
}

/// Why a file is no capture.
fn refusal(bytes: &[u8]) -> &'static str {
    /// How other files begin that hold captures, and what to do with them.
    const OTHERS: [(&[u8], &str); 2] = [
        (b"\x04\x22\x4d\x18", "it is compressed with LZ4: give what `lz4 -dc` makes of it to standard input"),
        (b"BZh", "it is compressed with bzip2: give what `bzip2 -dc` makes of it to standard input"),
    ];
    match OTHERS.iter().find(|(begins, _)| bytes.starts_with(begins)) {
        Some((_, what)) => what,
        None if bytes.is_empty() => "it is empty",
        None => "it is not a capture: neither pcap, pcapng nor text of usbmon",
    }
}

#[cfg(test)]
mod tests;
