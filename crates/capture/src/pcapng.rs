//! The blocks of a pcapng file (draft-ietf-opsawg-pcapng): a section, its interfaces, records in them.
//!
//! One section, little-endian, without a length; times in nanoseconds. A record is an Enhanced Packet Block; what
//! no field of a packet has, such as its stream, is its comment. Left out: name resolution, statistics, custom blocks; custom
//! options as well, since they need an enterprise number, and comments are shown by every reader.
//!
//! Invariants: each block is as long as it says at both its ends, and a multiple of four bytes.

use crate::WriteError;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use units::Instant;
use wire::Legible;

/// The most interfaces of a file. A reader may keep something for each.
pub const INTERFACES_MAX: u32 = 1 << 10;
/// The most bytes of a comment; what is past them is cut.
pub const COMMENT_BYTES_MAX: usize = 256;

/// Link type of the records of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// Events of transfers, with usbmon's header of 64 bytes (`LINKTYPE_USB_LINUX_MMAPPED`).
    Usbmon,
    /// Packets of USB 1.1 and 2.0, from packet identifier to check (`LINKTYPE_USB_2_0`).
    Usb2Packets,
}

/// Where records come from.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// Link type of the records.
    pub link_type: LinkType,
    /// A short name.
    pub name: &'a str,
    /// Description in one line.
    pub description: &'a str,
}

/// Names an interface of the file that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// One packet or event.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When, since whatever zero the file has.
    pub at: Instant,
    /// Its description.
    pub head: &'a [u8],
    /// Captured bytes after the head.
    pub body: &'a [u8],
    /// Bytes of it that are not.
    pub cut: u32,
    /// Comments on what no field holds; empty ones are left out.
    pub comments: &'a [&'a str],
}

/// A pcapng file that is being written.
#[derive(Debug)]
pub struct Pcapng<W> {
    out: W,
    file: String,
    interfaces: u32,
    /// Time zero of interfaces that are added, in seconds since 1970.
    begins_s: u64,
    records: u64,
    /// Records that should have come before the next one.
    dropped: u64,
    /// The block in hand, without the bytes of a record.
    block: Vec<u8>,
}

impl Pcapng<BufWriter<File>> {
    /// Makes a file, or empties the one that is there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path, application: &str) -> Result<Self, WriteError> {
        let file = Legible(path.as_os_str().as_encoded_bytes()).to_string();
        match File::create(path) {
            Ok(out) => Self::new(BufWriter::new(out), file, application),
            Err(cause) => Err(WriteError { file, cause }),
        }
    }
}

impl<W: Write> Pcapng<W> {
    /// Begins a file on `out`, which should have a buffer. `file` is what errors call it, `application` who writes.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(out: W, file: String, application: &str) -> Result<Self, WriteError> {
        let block = Vec::with_capacity(1 << 10);
        let mut pcapng = Self { out, file, interfaces: 0, begins_s: 0, records: 0, dropped: 0, block };
        pcapng.begin(Block::Section);
        pcapng.put(&BYTE_ORDER.to_le_bytes());
        pcapng.put(&[1, 0, 0, 0]);
        pcapng.put(&LENGTH_UNKNOWN.to_le_bytes());
        pcapng.put_option(OptionCode::Application, application.as_bytes());
        pcapng.put_option(OptionCode::End, &[]);
        pcapng.end()?;
        Ok(pcapng)
    }

    /// The zero of interfaces that are added from now on, in seconds since 1970 (`if_tsoffset`); 0 by default.
    pub const fn begin_at(&mut self, seconds: u64) {
        self.begins_s = seconds;
    }

    /// Counts records that were dropped here; the next one reports them (`epb_dropcount`).
    pub const fn drop_before_next(&mut self, records: u64) {
        self.dropped = self.dropped.saturating_add(records);
    }

    /// Adds an interface.
    ///
    /// # Errors
    /// If it cannot be written, or there are [`INTERFACES_MAX`].
    pub fn add_interface(&mut self, interface: &Interface<'_>) -> Result<InterfaceId, WriteError> {
        if self.interfaces >= INTERFACES_MAX {
            let text = format!("it has {INTERFACES_MAX} interfaces already");
            return Err(self.failed(io::Error::new(io::ErrorKind::QuotaExceeded, text)));
        }
        self.begin(Block::Interface);
        let [low, high] = interface.link_type.code().to_le_bytes();
        // No limit: records have their original length.
        self.put(&[low, high, 0, 0, 0, 0, 0, 0]);
        self.put_option(OptionCode::InterfaceName, interface.name.as_bytes());
        self.put_option(OptionCode::InterfaceDescription, interface.description.as_bytes());
        self.put_option(OptionCode::TimeResolution, &[NANOSECONDS]);
        if self.begins_s != 0 {
            self.put_option(OptionCode::TimeOffset, &self.begins_s.to_le_bytes());
        }
        self.put_option(OptionCode::End, &[]);
        self.end()?;
        self.interfaces += 1;
        Ok(InterfaceId(self.interfaces - 1))
    }

    /// Adds a record.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, interface: InterfaceId, record: &Record<'_>) -> Result<(), WriteError> {
        let Record { at, head, body, cut, comments } = *record;
        let captured = head.len() + body.len();
        let length = u32::try_from(captured).map_err(|_| self.too_long())?;
        let time = at.as_ps() / PS_PER_TICK;
        let [high, low] = [time >> u32::BITS, time & u64::from(u32::MAX)].map(|half| half as u32);
        self.begin(Block::Packet);
        for field in [interface.0, high, low, length, length.saturating_add(cut)] {
            self.put(&field.to_le_bytes());
        }
        self.put(head);
        // A long body is not copied: its block is written around it.
        let before = self.block.len();
        self.pad(captured);
        let comments = comments.iter().filter(|comment| !comment.is_empty());
        for comment in comments.clone() {
            self.put_option(OptionCode::Comment, cut_to(comment, COMMENT_BYTES_MAX).as_bytes());
        }
        if self.dropped > 0 {
            self.put_option(OptionCode::DROP_COUNT, &self.dropped.to_le_bytes());
        }
        if comments.count() > 0 || self.dropped > 0 {
            self.put_option(OptionCode::End, &[]);
        }
        self.end_around(before, body)?;
        self.dropped = 0;
        self.records += 1;
        Ok(())
    }

    /// Records so far.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Hands everything that was added to whatever is below.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.out.flush().map_err(|cause| self.failed(cause))
    }

    /// Flushes, and gives back what was written to.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, block: Block) {
        self.block.clear();
        self.put(&block.code().to_le_bytes());
        // The length, when it is known.
        self.put(&[0; 4]);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn put_option(&mut self, code: OptionCode, value: &[u8]) {
        let value = &value[..value.len().min(COMMENT_BYTES_MAX)];
        self.put(&(code as u16).to_le_bytes());
        self.put(&(value.len() as u16).to_le_bytes());
        self.put(value);
        self.pad(value.len());
    }

    /// Fills up after so many bytes.
    fn pad(&mut self, len: usize) {
        self.put(&[0; 3][..len.next_multiple_of(4) - len]);
    }

    fn end(&mut self) -> Result<(), WriteError> {
        self.end_around(self.block.len(), &[])
    }

    /// Writes the block, with `body` after its first `before` bytes.
    fn end_around(&mut self, before: usize, body: &[u8]) -> Result<(), WriteError> {
        let length = self.block.len() + body.len() + size_of::<u32>();
        let length = u32::try_from(length).map_err(|_| self.too_long())?.to_le_bytes();
        self.put(&length);
        self.block[4..8].copy_from_slice(&length);
        let (front, back) = self.block.split_at(before);
        let written = [front, body, back].into_iter().try_for_each(|part| self.out.write_all(part));
        written.map_err(|cause| self.failed(cause))
    }

    fn failed(&self, cause: io::Error) -> WriteError {
        WriteError { file: self.file.clone(), cause }
    }

    fn too_long(&self) -> WriteError {
        self.failed(io::Error::new(io::ErrorKind::InvalidInput, "a record has 4 GiB or more"))
    }
}

impl LinkType {
    const fn code(self) -> u16 {
        match self {
            Self::Usbmon => 220,
            Self::Usb2Packets => 288,
        }
    }
}

/// Kinds of blocks.
#[derive(Clone, Copy)]
enum Block {
    Section,
    Interface,
    Packet,
}

impl Block {
    const fn code(self) -> u32 {
        match self {
            // The same in either byte order, and spoilt by a transfer as text.
            Self::Section => 0x0a0d_0d0a,
            Self::Interface => 1,
            Self::Packet => 6,
        }
    }
}

/// Options. A code has a meaning in the blocks that know it.
#[derive(Clone, Copy)]
enum OptionCode {
    End = 0,
    Comment = 1,
    InterfaceName = 2,
    InterfaceDescription = 3,
    /// `shb_userappl`, of a section.
    Application = 4,
    /// `if_tsresol`.
    TimeResolution = 9,
    /// `if_tsoffset`.
    TimeOffset = 14,
}

impl OptionCode {
    /// `epb_dropcount`, of a packet, where the code of the application means this.
    const DROP_COUNT: Self = Self::Application;
}

/// Reversed for readers of the other byte order.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const LENGTH_UNKNOWN: i64 = -1;
/// A negative power of ten.
const NANOSECONDS: u8 = 9;
const PS_PER_TICK: u64 = 1_000;

/// The longest beginning that is no longer than so many bytes.
fn cut_to(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> Pcapng<Vec<u8>> {
        Pcapng::new(Vec::new(), "memory".into(), "uaskit").unwrap()
    }

    fn usbmon(pcapng: &mut Pcapng<Vec<u8>>) -> InterfaceId {
        let interface = Interface { link_type: LinkType::Usbmon, name: "uas", description: "" };
        pcapng.add_interface(&interface).unwrap()
    }

    /// The blocks of a file after the first `from` bytes, each whole.
    fn blocks(file: &[u8], from: usize) -> Vec<&[u8]> {
        let (mut rest, mut blocks) = (&file[from..], Vec::new());
        while !rest.is_empty() {
            let length = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
            let (block, after) = rest.split_at(length);
            assert_eq!(block[4..8], block[length - 4..], "both ends say the same length");
            assert_eq!(length % 4, 0);
            blocks.push(block);
            rest = after;
        }
        blocks
    }

    #[test]
    fn a_file_begins_with_its_section() {
        let file = begun().finish().unwrap();
        #[rustfmt::skip]
        let section = [
            0x0a, 0x0d, 0x0d, 0x0a, 44, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            4, 0, 6, 0, b'u', b'a', b's', b'k', b'i', b't', 0, 0, 0, 0, 0, 0, 44, 0, 0, 0,
        ];
        assert_eq!(file, section);
    }

    #[test]
    fn an_interface_says_its_link_type_and_counts_nanoseconds() {
        let mut pcapng = begun();
        usbmon(&mut pcapng);
        let file = pcapng.finish().unwrap();
        #[rustfmt::skip]
        let interface = [
            1, 0, 0, 0, 44, 0, 0, 0, 220, 0, 0, 0, 0, 0, 0, 0,
            2, 0, 3, 0, b'u', b'a', b's', 0, 3, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0,
        ];
        assert_eq!(blocks(&file, 44), [interface]);
    }

    #[test]
    fn an_interface_says_its_zero_if_it_has_one() {
        let mut pcapng = begun();
        pcapng.begin_at(0x0102_0304);
        usbmon(&mut pcapng);
        let file = pcapng.finish().unwrap();
        assert_eq!(blocks(&file, 44)[0][36..48], [14, 0, 8, 0, 4, 3, 2, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn missing_records_are_counted_in_the_next() {
        let mut pcapng = begun();
        let interface = usbmon(&mut pcapng);
        let record = Record { at: Instant::ZERO, head: &[1], body: &[], cut: 0, comments: &[] };
        pcapng.drop_before_next(2);
        pcapng.drop_before_next(3);
        pcapng.add(interface, &record).unwrap();
        pcapng.add(interface, &record).unwrap();
        let file = pcapng.finish().unwrap();
        let blocks = blocks(&file, 44 + 44);
        let option = [4, 0, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0];
        assert_eq!((&blocks[0][32..], blocks[1].len()), (&option[..], 36));
    }

    #[test]
    fn a_record_has_its_time_its_bytes_and_its_comment() {
        let mut pcapng = begun();
        let interface = usbmon(&mut pcapng);
        // 2³² + 5 ns, and a part of one.
        let at = Instant::from_ps(4_294_967_301_999);
        let record = Record { at, head: &[1, 2], body: &[3, 4, 5], cut: 7, comments: &["stream 7"] };
        pcapng.add(interface, &record).unwrap();
        assert_eq!(pcapng.records(), 1);
        let file = pcapng.finish().unwrap();
        #[rustfmt::skip]
        let packet = [
            6, 0, 0, 0, 56, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 12, 0, 0, 0,
            1, 2, 3, 4, 5, 0, 0, 0,
            1, 0, 8, 0, b's', b't', b'r', b'e', b'a', b'm', b' ', b'7', 0, 0, 0, 0, 56, 0, 0, 0,
        ];
        assert_eq!(blocks(&file, 44)[1], packet);
    }

    #[test]
    fn a_record_of_no_bytes_without_a_comment_has_no_options() {
        let mut pcapng = begun();
        let interface = usbmon(&mut pcapng);
        pcapng
            .add(interface, &Record { at: Instant::ZERO, head: &[], body: &[], cut: 0, comments: &[] })
            .unwrap();
        assert_eq!(blocks(&pcapng.finish().unwrap(), 44)[1].len(), 32);
    }

    #[test]
    fn a_long_comment_is_cut_between_characters() {
        let mut pcapng = begun();
        let interface = usbmon(&mut pcapng);
        let comment = "ä".repeat(200);
        pcapng
            .add(
                interface,
                &Record { at: Instant::ZERO, head: &[], body: &[], cut: 0, comments: &[&comment] },
            )
            .unwrap();
        assert_eq!(blocks(&pcapng.finish().unwrap(), 44)[1].len(), 32 + 4 + 256 + 4);
    }

    #[test]
    fn interfaces_have_a_limit() {
        let mut pcapng = begun();
        (0..INTERFACES_MAX).for_each(|_| {
            usbmon(&mut pcapng);
        });
        let one_more = Interface { link_type: LinkType::Usbmon, name: "", description: "" };
        let error = pcapng.add_interface(&one_more).unwrap_err();
        assert_eq!(error.to_string(), "the capture memory cannot be written: it has 1024 interfaces already");
    }

    #[test]
    fn an_error_names_the_file() {
        let full = Path::new("/dev/full");
        let mut pcapng = Pcapng::create(full, "uaskit").unwrap();
        let error = pcapng.flush().unwrap_err();
        assert!(
            error.to_string().starts_with("the capture /dev/full cannot be written: No space left"),
            "{error}"
        );
        assert!(Pcapng::create(Path::new("/nowhere/a.pcapng"), "").is_err());
    }

    #[test]
    fn memory_does_not_grow_with_the_file() {
        let mut pcapng = Pcapng::new(io::sink(), "nothing".into(), "uaskit").unwrap();
        let interface = Interface { link_type: LinkType::Usbmon, name: "", description: "" };
        let interface = pcapng.add_interface(&interface).unwrap();
        let body = vec![0; 1 << 20];
        for _ in 0..100 {
            let record =
                Record { at: Instant::ZERO, head: &[0; 64], body: &body, cut: 0, comments: &["stream 1"] };
            pcapng.add(interface, &record).unwrap();
        }
        assert!(pcapng.block.capacity() <= 1 << 10);
    }
}
