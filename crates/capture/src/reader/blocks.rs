//! pcapng files (draft-ietf-opsawg-pcapng): blocks, each with its length at both ends, in sections with interfaces.
//!
//! After a block that makes no sense the next is looked for: a packet or a section whose two ends say the same length. Packets are in
//! Enhanced and Simple Packet Blocks. Left out: the obsolete Packet Block, which no writer of USB has used.

use super::window::Window;
use super::{ByteOrder, DamageKind, Found, Link, RECORD_BYTES_MAX, Step, is_full, stream_of};
use pcap_parser::pcapng::{
    Block, EnhancedPacketBlock, InterfaceDescriptionBlock, OptionCode, PcapNGOption, SimplePacketBlock,
    parse_block_be, parse_block_le,
};
use std::io::{self, Read};

/// Kind and length of a block.
const HEAD_BYTES: usize = 8;
/// Kind, two lengths, and nothing between.
const BLOCK_BYTES_MIN: usize = 12;
/// Where the bytes of a packet are in its block.
const ENHANCED_PAYLOAD_AT: usize = 28;
const SIMPLE_PAYLOAD_AT: usize = 12;
/// The same in either byte order.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const ENHANCED: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const NS_PER_S: u128 = 1_000_000_000;

pub(super) struct Blocks {
    order: ByteOrder,
    /// Of this section.
    interfaces: Vec<Interface>,
}

struct Interface {
    link: Link,
    /// Ticks of its clock in a second.
    ticks_per_s: u64,
    offset_s: i64,
}

impl Blocks {
    /// If the file begins as pcapng does.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let order = order_of(bytes)?;
        Some(Self { order, interfaces: Vec::new() })
    }

    pub(super) fn step<R: Read>(&mut self, window: &mut Window<R>) -> io::Result<Step> {
        if !window.want(HEAD_BYTES)? {
            return Ok(match window.bytes().len() {
                0 => Step::End,
                len => Step::Damage(DamageKind::Truncated { needed: BLOCK_BYTES_MIN as u64 }, len),
            });
        }
        // A section says its byte order behind its length.
        if window.bytes().starts_with(&SECTION) {
            window.want(BLOCK_BYTES_MIN)?;
            if let Some(order) = order_of(window.bytes()) {
                self.order = order;
                self.interfaces.clear();
            }
        }
        let length = self.number(window.bytes(), 4);
        let len = length as usize;
        if !is_length(length) {
            let distance = self.distance_to_next(window)?;
            return Ok(Step::Damage(DamageKind::Length { length }, distance));
        }
        if !window.want(len)? {
            let distance = self.distance_to_next(window)?;
            return Ok(Step::Damage(DamageKind::Truncated { needed: len as u64 }, distance));
        }
        let last = self.number(window.bytes(), len - 4);
        if last != length {
            let distance = self.distance_to_next(window)?;
            return Ok(Step::Damage(DamageKind::Ends { first: length, last }, distance));
        }
        Ok(self.block(&window.bytes()[..len]))
    }

    /// What a whole block tells.
    fn block(&mut self, bytes: &[u8]) -> Step {
        let parse = match self.order {
            ByteOrder::Little => parse_block_le,
            ByteOrder::Big => parse_block_be,
        };
        let damage = Step::Damage(DamageKind::Block { kind: self.number(bytes, 0) }, bytes.len());
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
            Ok(_) => Step::Skip(bytes.len()),
            Err(_) => damage,
        }
    }

    fn enhanced(&self, block: &EnhancedPacketBlock<'_>, len: usize) -> Step {
        let Some(interface) = self.interfaces.get(block.if_id as usize) else {
            return Step::Damage(DamageKind::Interface { number: block.if_id }, len);
        };
        let [high, low] = [block.ts_high, block.ts_low].map(u64::from);
        let ticks = high << u32::BITS | low;
        let end = ENHANCED_PAYLOAD_AT + (block.caplen as usize).min(block.data.len());
        Step::Packet(Found {
            at_ns: interface.at_ns(ticks),
            link: interface.link,
            order: self.order,
            interface: block.if_id,
            cut: block.origlen.saturating_sub(block.caplen),
            stream: block.options.iter().find_map(stream_in),
            bytes: ENHANCED_PAYLOAD_AT..end,
            len,
        })
    }

    fn simple(&self, block: &SimplePacketBlock<'_>, len: usize) -> Step {
        let Some(interface) = self.interfaces.first() else {
            return Step::Damage(DamageKind::Interface { number: 0 }, len);
        };
        let kept = (block.origlen as usize).min(block.data.len());
        Step::Packet(Found {
            at_ns: 0,
            link: interface.link,
            order: self.order,
            interface: 0,
            cut: block.origlen.saturating_sub(kept as u32),
            stream: None,
            bytes: SIMPLE_PAYLOAD_AT..SIMPLE_PAYLOAD_AT + kept,
            len,
        })
    }

    fn number(&self, bytes: &[u8], at: usize) -> u32 {
        number(bytes.get(at..).unwrap_or_default(), self.order)
    }

    /// Bytes from the front to what looks like the next block, or to the end of what is looked at.
    fn distance_to_next<R: Read>(&self, window: &mut Window<R>) -> io::Result<usize> {
        // A packet that is longer than this is not looked for behind damage.
        const LOOK_AHEAD_BYTES: usize = 4 << 20;
        window.want(LOOK_AHEAD_BYTES)?;
        let bytes = window.bytes();
        let found = (1..bytes.len()).find(|&at| self.is_block(&bytes[at..]));
        Ok(found.unwrap_or(bytes.len()))
    }

    /// Whether a packet or a section begins here.
    fn is_block(&self, bytes: &[u8]) -> bool {
        let order = match bytes {
            [0x0a, 0x0d, 0x0d, 0x0a, ..] => match order_of(bytes) {
                Some(order) => order,
                None => return false,
            },
            _ if number(bytes, self.order) == ENHANCED => self.order,
            _ => return false,
        };
        let length = number(bytes.get(4..).unwrap_or_default(), order);
        let end = (length as usize).saturating_sub(4);
        is_length(length) && bytes.get(end..).is_some_and(|tail| number(tail, order) == length)
    }
}

impl Interface {
    fn of(block: &InterfaceDescriptionBlock<'_>, order: ByteOrder) -> Self {
        let mut interface =
            Self { link: Link::of(u32::from(block.linktype.0 as u16)), ticks_per_s: 1_000_000, offset_s: 0 };
        for option in &block.options {
            let value = option.value();
            match option.code {
                OptionCode::IfTsresol => {
                    interface.ticks_per_s =
                        value.first().and_then(|&code| resolution(code)).unwrap_or(1_000_000);
                }
                OptionCode::IfTsoffset => {
                    let offset = value.first_chunk().copied().unwrap_or_default();
                    interface.offset_s = match order {
                        ByteOrder::Little => i64::from_le_bytes(offset),
                        ByteOrder::Big => i64::from_be_bytes(offset),
                    };
                }
                _ => {}
            }
        }
        interface
    }

    /// A time of this interface's clock; one that does not fit is as late as can be told.
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

/// The byte order of a section that begins here.
fn order_of(bytes: &[u8]) -> Option<ByteOrder> {
    let mark = bytes.strip_prefix(&SECTION)?.get(4..)?;
    [ByteOrder::Little, ByteOrder::Big].into_iter().find(|&order| number(mark, order) == BYTE_ORDER)
}

/// The number at the front; 0 if there is none.
fn number(bytes: &[u8], order: ByteOrder) -> u32 {
    let bytes = bytes.first_chunk().copied().unwrap_or_default();
    match order {
        ByteOrder::Little => u32::from_le_bytes(bytes),
        ByteOrder::Big => u32::from_be_bytes(bytes),
    }
}

fn is_length(length: u32) -> bool {
    (BLOCK_BYTES_MIN..=RECORD_BYTES_MAX).contains(&(length as usize)) && length.is_multiple_of(4)
}

/// The stream that an option tells, if it is a comment.
fn stream_in(option: &PcapNGOption<'_>) -> Option<u16> {
    let comment = option.value().get(..option.len.into())?;
    stream_of(comment).filter(|_| option.code == OptionCode::Comment)
}
