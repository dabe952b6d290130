//! pcapng files (draft-ietf-opsawg-pcapng): blocks, each with its length at both ends, in sections with interfaces.
//!
//! After a block that makes no sense the next is looked for: a packet, an interface or a section whose two ends say the same length, in
//! either byte order, since a section that was lost may have had the other one. Of interfaces that were lost with it the packets
//! show what they are ([`Link::seen_in`]). Packets are in Enhanced and Simple Packet Blocks. Left out: the obsolete Packet Block,
//! which no writer of USB has used.

use super::damage::{DamageKind, Dropped};
use super::front::{
    ByteOrder, Found, Link, Payload, RECORD_BYTES_MAX, Step, is_full, is_of_added, stream_of,
};
use super::window::Window;
use pcap_parser::pcapng::{
    Block, EnhancedPacketBlock, InterfaceDescriptionBlock, InterfaceStatisticsBlock, OptionCode,
    PcapNGOption, SimplePacketBlock, parse_block_be, parse_block_le,
};
use std::collections::BTreeMap;
use std::io::{self, Read};

/// Kind and length of a block.
const HEAD_BYTES: usize = 8;
/// Kind, two lengths, and nothing between.
const BLOCK_BYTES_MIN: usize = 12;
/// Kind, length, byte order and version of a section.
const SECTION_HEAD_BYTES: usize = 16;
/// A packet that is longer than this is not looked for behind damage.
const LOOK_AHEAD_BYTES: usize = 4 << 20;
/// Of a file that does not begin as pcapng does so many bytes are looked through.
const LOOK_FOR_BEGIN_BYTES: usize = 1 << 20;
/// Where the bytes of a packet are in its block.
const ENHANCED_PAYLOAD_AT: usize = 28;
const SIMPLE_PAYLOAD_AT: usize = 12;
/// The same in either byte order.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const INTERFACE: u32 = 1;
const ENHANCED: u32 = 6;
/// `epb_dropcount`.
const DROP_COUNT: u16 = 4;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Interfaces that are guessed of a section.
const GUESSED_MAX: usize = 64;
const NS_PER_S: u128 = 1_000_000_000;

pub(super) struct Blocks {
    order: ByteOrder,
    /// Of this section.
    interfaces: Vec<Interface>,
    /// Interfaces whose description was lost, inferred from their packets.
    guessed: BTreeMap<u32, Interface>,
    /// Whether something of this section could not be read.
    is_damaged: bool,
    /// Whether what was dropped before the packet at the front has been reported.
    has_reported_drop: bool,
}

struct Interface {
    link: Link,
    /// Ticks of its clock in a second.
    ticks_per_s: u64,
    offset_s: i64,
    /// Packets that were dropped, as far as it was reported.
    dropped: u64,
}

/// Whether the front of a block begins a section.
enum Section {
    /// It begins here, in this byte order.
    Begins(ByteOrder),
    /// It seems to, but it is damaged.
    Damaged,
    /// This is another block.
    Another,
}

impl Blocks {
    /// If the file begins as pcapng does.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let order = order_of(bytes)?;
        Some(Self::in_order(order))
    }

    const fn in_order(order: ByteOrder) -> Self {
        Self {
            order,
            interfaces: Vec::new(),
            guessed: BTreeMap::new(),
            is_damaged: false,
            has_reported_drop: false,
        }
    }

    /// If blocks follow each other somewhere behind the beginning, which is damaged.
    pub(super) fn behind_damage<R: Read>(window: &mut Window<R>) -> io::Result<Option<Self>> {
        window.want(LOOK_FOR_BEGIN_BYTES)?;
        let bytes = window.bytes();
        let is_followed = |at: usize, order| {
            let len = number(bytes.get(at + 4..).unwrap_or_default(), order) as usize;
            bytes.get(at + len..).is_some_and(|rest| block_in(rest, order).is_some())
        };
        let found = (1..bytes.len())
            .any(|at| block_in(&bytes[at..], ByteOrder::Little).is_some_and(|order| is_followed(at, order)));
        Ok(found.then_some(Self { is_damaged: true, ..Self::in_order(ByteOrder::Little) }))
    }

    pub(super) fn step<R: Read>(&mut self, window: &mut Window<R>) -> io::Result<Step> {
        if !window.want(HEAD_BYTES)? {
            return Ok(match window.bytes().len() {
                0 => Step::End,
                len => Step::Damage(DamageKind::Truncated { needed: BLOCK_BYTES_MIN as u64 }, len),
            });
        }
        // A section says its byte order behind its length.
        window.want(SECTION_HEAD_BYTES)?;
        let is_begin = window.offset() == 0;
        let section = section_in(window.bytes());
        let is_another = !is_begin && matches!(section, Section::Begins(_));
        match section {
            Section::Begins(order) => self.begin_section(order),
            Section::Another if !is_begin => {}
            Section::Another | Section::Damaged => {
                self.begin_section(self.order);
                return self.damage(DamageKind::Section, window);
            }
        }
        let length = self.number(window.bytes(), 4);
        let len = length as usize;
        if !is_length(length) {
            return self.damage(DamageKind::Length { length }, window);
        }
        if !window.want(len)? {
            return self.damage(DamageKind::Truncated { needed: len as u64 }, window);
        }
        let last = self.number(window.bytes(), len - 4);
        if last != length {
            return self.damage(DamageKind::Ends { first: length, last }, window);
        }
        Ok(match self.block(&window.bytes()[..len]) {
            Step::Skip(len) if is_another => Step::Section(len),
            step => step,
        })
    }

    fn begin_section(&mut self, order: ByteOrder) {
        self.order = order;
        self.interfaces.clear();
        self.guessed.clear();
        self.is_damaged = false;
    }

    /// The block at the front is not to be read: damage up to what looks like the next one.
    fn damage<R: Read>(&mut self, kind: DamageKind, window: &mut Window<R>) -> io::Result<Step> {
        self.is_damaged = true;
        window.want(LOOK_AHEAD_BYTES)?;
        let bytes = window.bytes();
        let found =
            (1..bytes.len()).find_map(|at| block_in(&bytes[at..], self.order).map(|order| (at, order)));
        let (distance, order) = found.unwrap_or((bytes.len(), self.order));
        if order != self.order {
            // What was lost is a section, with its interfaces.
            self.begin_section(order);
            self.is_damaged = true;
        }
        Ok(Step::Damage(kind, distance))
    }

    /// Reads a whole block.
    fn block(&mut self, bytes: &[u8]) -> Step {
        let parse = match self.order {
            ByteOrder::Little => parse_block_le,
            ByteOrder::Big => parse_block_be,
        };
        let kind = self.number(bytes, 0);
        match parse(bytes) {
            Ok((_, Block::InterfaceDescription(_))) if is_full(self.interfaces.len()) => {
                Step::Damage(DamageKind::Interfaces, bytes.len())
            }
            Ok((_, Block::InterfaceDescription(block))) => {
                self.interfaces.push(Interface::of(&block, self.order));
                Step::Skip(bytes.len())
            }
            Ok((_, Block::EnhancedPacket(block))) => self.enhanced(&block, bytes.len()),
            Ok((_, Block::SimplePacket(block))) => self.simple(&block, bytes.len()),
            Ok((_, Block::InterfaceStatistics(block))) => self.statistics(&block, bytes.len()),
            Ok((_, Block::Unknown(_))) if !is_registered(kind) => {
                self.is_damaged = true;
                Step::Damage(DamageKind::Unknown { kind }, bytes.len())
            }
            Ok(_) => Step::Skip(bytes.len()),
            Err(_) => {
                self.is_damaged = true;
                Step::Damage(DamageKind::Block { kind }, bytes.len())
            }
        }
    }

    fn enhanced(&mut self, block: &EnhancedPacketBlock<'_>, len: usize) -> Step {
        let number = block.if_id;
        let [high, low] = [block.ts_high, block.ts_low].map(u64::from);
        let ticks = high << u32::BITS | low;
        let bytes = &block.data[..(block.caplen as usize).min(block.data.len())];
        let Some(interface) = self.interfaces.get(number as usize).or_else(|| self.guessed.get(&number))
        else {
            self.guess(number, bytes, ticks);
            return Step::Damage(DamageKind::Interface { number }, len);
        };
        let dropped = block.options.iter().find_map(|option| self.dropped_in(option)).unwrap_or(0);
        if dropped > 0 && !self.has_reported_drop {
            self.has_reported_drop = true;
            return Step::Dropped(Dropped { packets: dropped, is_here: true, ..Dropped::default() }, 0);
        }
        self.has_reported_drop = false;
        Step::Packet(Found {
            at_ns: interface.at_ns(ticks),
            link: interface.link,
            order: self.order,
            interface: block.if_id,
            cut: block.origlen.saturating_sub(block.caplen),
            stream: block.options.iter().filter_map(comment_in).find_map(stream_of),
            is_added: block.options.iter().filter_map(comment_in).any(is_of_added),
            payload: Payload::At(ENHANCED_PAYLOAD_AT..ENHANCED_PAYLOAD_AT + bytes.len()),
            len,
        })
    }

    /// An interface whose description was lost: the packets behind this one are read as this one looks.
    fn guess(&mut self, number: u32, bytes: &[u8], ticks: u64) {
        let is_room = self.guessed.len() < GUESSED_MAX;
        if let Some(link) = Link::seen_in(bytes, self.order).filter(|_| self.is_damaged && is_room) {
            let ticks_per_s = ticks_of(link, bytes, self.order, ticks);
            self.guessed.insert(number, Interface { link, ticks_per_s, offset_s: 0, dropped: 0 });
        }
    }

    /// Reads an interface's count of the packets that it has dropped since the capture began.
    fn statistics(&mut self, block: &InterfaceStatisticsBlock<'_>, len: usize) -> Step {
        let count = |code| {
            let option = block.options.iter().find(|option| option.code == code);
            option.and_then(|option| self.long(option.value())).unwrap_or(0)
        };
        let all = count(OptionCode::IsbIfDrop).saturating_add(count(OptionCode::IsbOsDrop));
        let Some(interface) = self.interfaces.get_mut(block.if_id as usize) else {
            return Step::Skip(len);
        };
        let packets = all.saturating_sub(interface.dropped);
        interface.dropped = interface.dropped.max(all);
        match packets {
            0 => Step::Skip(len),
            _ => Step::Dropped(Dropped { packets, is_here: false, ..Dropped::default() }, len),
        }
    }

    /// Packets that were dropped since the one before, if an option says so.
    fn dropped_in(&self, option: &PcapNGOption<'_>) -> Option<u64> {
        (option.code == OptionCode(DROP_COUNT)).then(|| self.long(option.value()))?
    }

    fn long(&self, bytes: &[u8]) -> Option<u64> {
        self.order.low_first(bytes).map(u64::from_le_bytes)
    }

    fn simple(&self, block: &SimplePacketBlock<'_>, len: usize) -> Step {
        let Some(interface) = self.interfaces.first() else {
            return Step::Damage(DamageKind::Interface { number: 0 }, len);
        };
        let captured = (block.origlen as usize).min(block.data.len());
        Step::Packet(Found {
            at_ns: 0,
            link: interface.link,
            order: self.order,
            interface: 0,
            cut: block.origlen.saturating_sub(captured as u32),
            stream: None,
            is_added: false,
            payload: Payload::At(SIMPLE_PAYLOAD_AT..SIMPLE_PAYLOAD_AT + captured),
            len,
        })
    }

    fn number(&self, bytes: &[u8], at: usize) -> u32 {
        number(bytes.get(at..).unwrap_or_default(), self.order)
    }
}

impl Interface {
    fn of(block: &InterfaceDescriptionBlock<'_>, order: ByteOrder) -> Self {
        let mut interface = Self {
            link: Link::of(u32::from(block.linktype.0 as u16)),
            ticks_per_s: 1_000_000,
            offset_s: 0,
            dropped: 0,
        };
        for option in &block.options {
            let value = option.value();
            match option.code {
                OptionCode::IfTsresol => {
                    interface.ticks_per_s =
                        value.first().and_then(|&code| resolution(code)).unwrap_or(1_000_000);
                }
                OptionCode::IfTsoffset => {
                    interface.offset_s = order.low_first(value).map_or(0, i64::from_le_bytes);
                }
                _ => {}
            }
        }
        interface
    }

    /// A time of this interface's clock; one that does not fit is as late as can be represented.
    fn at_ns(&self, ticks: u64) -> u64 {
        let since = u128::from(ticks) * NS_PER_S / u128::from(self.ticks_per_s);
        let offset = i128::from(self.offset_s) * NS_PER_S as i128;
        let at = i128::try_from(since).unwrap_or(i128::MAX).saturating_add(offset);
        u64::try_from(at.max(0)).unwrap_or(u64::MAX)
    }
}

/// Ticks of a clock in a second, by `if_tsresol`: a negative power of ten, or of two with the upper bit set.
fn resolution(code: u8) -> Option<u64> {
    match code {
        0..=127 => 10_u64.checked_pow(code.into()),
        128.. => 2_u64.checked_pow(u32::from(code) - 128),
    }
}

/// How a clock counts whose interface was lost: usbmon's header says the time again.
fn ticks_of(link: Link, bytes: &[u8], order: ByteOrder, ticks: u64) -> u64 {
    const NS_TICKS_PER_S: u64 = 1_000_000_000;
    let is_usbmon = matches!(link, Link::Usbmon | Link::UsbmonShort);
    let low = if order == ByteOrder::Little { 16 } else { 20 };
    let seconds = u64::from(number(bytes.get(low..).unwrap_or_default(), order));
    if is_usbmon && ticks / NS_TICKS_PER_S == seconds { NS_TICKS_PER_S } else { 1_000_000 }
}

/// Whether a block begins here, whole, that can be read by itself or describes how to read others: its byte order. A packet has the one
/// that is expected: three bytes before it there seems to be one of the other order, since its small numbers have zeroes around them.
fn block_in(bytes: &[u8], expected: ByteOrder) -> Option<ByteOrder> {
    let other = match expected {
        ByteOrder::Little => ByteOrder::Big,
        ByteOrder::Big => ByteOrder::Little,
    };
    let is_whole = |order: ByteOrder| {
        let length = number(bytes.get(4..).unwrap_or_default(), order);
        let end = (length as usize).saturating_sub(4);
        is_length(length) && bytes.get(end..).is_some_and(|tail| number(tail, order) == length)
    };
    if bytes.starts_with(&SECTION) {
        return order_of(bytes).filter(|&order| is_whole(order));
    }
    let is_block = |order: ByteOrder| match number(bytes, order) {
        ENHANCED => order == expected && is_whole(order),
        INTERFACE => is_interface(bytes, order) && is_whole(order),
        _ => false,
    };
    [expected, other].into_iter().find(|&order| is_block(order))
}

/// Whether an interface description may begin here: of a link type that has a number, nothing where nothing is to be.
fn is_interface(bytes: &[u8], order: ByteOrder) -> bool {
    const LINK_TYPE_MAX: u16 = 0x1ff;
    let half = |at: usize| {
        let bytes = bytes.get(at..).and_then(|bytes| order.low_first(bytes));
        bytes.map_or(0, u16::from_le_bytes)
    };
    let (link_type, reserved) = (half(8), half(10));
    reserved == 0 && (1..=LINK_TYPE_MAX).contains(&link_type)
}

/// Determines whether the front of a block begins a section, by its kind, and by byte order and version behind its
/// length, which no other block has there.
fn section_in(bytes: &[u8]) -> Section {
    if let Some(order) = order_of(bytes) {
        return Section::Begins(order);
    }
    let is_kind = bytes.starts_with(&SECTION);
    let is_marked = [[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0], [0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0]]
        .iter()
        .any(|mark| bytes.get(8..16) == Some(&mark[..]));
    if is_kind || is_marked { Section::Damaged } else { Section::Another }
}

/// Whether a kind of block is somebody's, so that it may be passed over in silence (section 10.1 of the draft).
const fn is_registered(kind: u32) -> bool {
    matches!(kind, 2..=0xa | 0x101..=0x10f | 0x201..=0x22f | 0xbad | 0x4000_0bad | 0x8000_0001)
}

/// The byte order of a section that begins here.
fn order_of(bytes: &[u8]) -> Option<ByteOrder> {
    let mark = bytes.strip_prefix(&SECTION)?.get(4..)?;
    [ByteOrder::Little, ByteOrder::Big].into_iter().find(|&order| number(mark, order) == BYTE_ORDER)
}

/// The number at the front; 0 if there is none.
fn number(bytes: &[u8], order: ByteOrder) -> u32 {
    order.low_first(bytes).map_or(0, u32::from_le_bytes)
}

fn is_length(length: u32) -> bool {
    (BLOCK_BYTES_MIN..=RECORD_BYTES_MAX).contains(&(length as usize)) && length.is_multiple_of(4)
}

/// The comment that an option is, if it is one.
fn comment_in<'a>(option: &'a PcapNGOption<'_>) -> Option<&'a [u8]> {
    let comment = option.value().get(..option.len.into())?;
    (option.code == OptionCode::Comment).then_some(comment)
}
