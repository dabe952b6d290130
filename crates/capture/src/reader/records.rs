//! pcap files (draft-ietf-opsawg-pcap): a header, then records one after the other.
//!
//! Nothing marks the beginning of a record. After one that makes no sense, the next is looked for by what a record is like: a time
//! not far from the last one, fewer bytes captured than there were, and another such record or the end of the file behind it. If the header
//! is damaged, the same is asked in both byte orders where the first record should begin, and the link type is what packets look like.

use super::damage::DamageKind;
use super::front::{ByteOrder, Found, Link, Payload, RECORD_BYTES_MAX, Step};
use super::window::Window;
use pcap_parser::pcap::{
    LegacyPcapBlock, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified, parse_pcap_header,
};
use std::io::{self, Read};

/// Bytes of the header of a file.
pub(super) const HEADER_BYTES: usize = 24;
/// Bytes before those of a record.
const RECORD_HEADER_BYTES: usize = 16;
/// The same in files of kernels with a patch of 1999.
const MODIFIED_HEADER_BYTES: usize = 24;
/// Bytes in which records are looked for if the header is damaged.
const LOOK_FOR_BEGIN_BYTES: usize = 1 << 20;
const NS_PER_S: u64 = 1_000_000_000;
/// How far the time of a record may be from the last one, in seconds, when one is looked for.
const SECONDS_APART_MAX: u64 = 86_400;

pub(super) struct Records {
    /// The header of the file makes no sense, which is not reported yet.
    is_damaged: bool,
    order: ByteOrder,
    is_modified: bool,
    /// Nanoseconds of a unit of a record's fraction.
    ns_per_fraction: u64,
    link: Link,
    latest_s: Option<u64>,
}

/// Header of a record.
struct Head {
    seconds: u64,
    fraction: u64,
    captured: u32,
    whole: u32,
}

impl Records {
    /// If the file begins as pcap does.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let (_, header) = parse_pcap_header(bytes).ok()?;
        let order = if header.is_bigendian() { ByteOrder::Big } else { ByteOrder::Little };
        let ns_per_fraction = if header.is_nanosecond_precision() { 1 } else { 1_000 };
        // The upper bits say whether frames have a check at their end; USB has none.
        let [low, high, _, _] = header.network.0.to_le_bytes();
        let link = Link::of(u16::from_le_bytes([low, high]).into());
        let is_modified = header.is_modified_format();
        Some(Self { is_damaged: false, order, is_modified, ns_per_fraction, link, latest_s: None })
    }

    /// If records follow each other behind a header that is damaged.
    pub(super) fn behind_damage<R: Read>(window: &mut Window<R>) -> io::Result<Option<Self>> {
        window.want(LOOK_FOR_BEGIN_BYTES)?;
        let Some(bytes) = window.bytes().get(HEADER_BYTES..) else { return Ok(None) };
        Ok([ByteOrder::Little, ByteOrder::Big].into_iter().find_map(|order| Self::guessed(bytes, order)))
    }

    /// Infers the link type and the unit of fractions from the records at the front, in this byte order.
    fn guessed(bytes: &[u8], order: ByteOrder) -> Option<Self> {
        /// Microseconds of a second; a larger fraction is one of nanoseconds.
        const MICROSECONDS: u64 = 1_000_000;
        let link = Link::Other(0);
        let mut all =
            Self { is_damaged: true, order, is_modified: false, ns_per_fraction: 1, link, latest_s: None };
        let (mut at, mut count, mut largest, mut seen) = (0, 0_u32, 0, None);
        while let Some(len) = all.plausible(&bytes[at..])
            && let Some(record) = bytes.get(at..at + len)
            && let Some(head) = all.head(record)
        {
            all.latest_s = Some(head.seconds);
            largest = largest.max(head.fraction);
            seen = seen.or_else(|| Link::seen_in(&record[RECORD_HEADER_BYTES..], order));
            (at, count) = (at + len, count + 1);
        }
        // Of one record alone it is certain if the file ends behind it.
        let is_followed = count > 1 || count == 1 && at == bytes.len();
        all.ns_per_fraction = if largest < MICROSECONDS { 1_000 } else { 1 };
        all.link = seen.filter(|_| is_followed)?;
        Some(Self { latest_s: None, ..all })
    }

    pub(super) fn step<R: Read>(&mut self, window: &mut Window<R>) -> io::Result<Step> {
        if std::mem::take(&mut self.is_damaged) {
            return Ok(Step::Damage(DamageKind::Header, HEADER_BYTES));
        }
        let header_len = self.header_len();
        if !window.want(header_len)? {
            return Ok(match window.bytes().len() {
                0 => Step::End,
                len => Step::Damage(DamageKind::Truncated { needed: header_len as u64 }, len),
            });
        }
        let Some(head) = self.head(window.bytes()) else { return Ok(Step::End) };
        let captured = head.captured as usize;
        if captured > RECORD_BYTES_MAX {
            let len = self.distance_to_next(window)?;
            return Ok(Step::Damage(DamageKind::Length { length: head.captured }, len));
        }
        if head.fraction * self.ns_per_fraction >= NS_PER_S {
            let len = self.distance_to_next(window)?;
            return Ok(Step::Damage(DamageKind::Time, len));
        }
        let len = header_len + captured;
        if !window.want(len)? {
            // Either the end is missing, or the length is wrong and there are more records.
            let rest = window.bytes().len();
            let next = self.distance_to_next(window)?;
            let needed = DamageKind::Truncated { needed: len as u64 };
            return Ok(Step::Damage(needed, next.min(rest)));
        }
        self.latest_s = Some(head.seconds);
        Ok(Step::Packet(Found {
            at_ns: head.seconds.saturating_mul(NS_PER_S).saturating_add(head.fraction * self.ns_per_fraction),
            link: self.link,
            order: self.order,
            interface: 0,
            cut: head.whole.saturating_sub(head.captured),
            stream: None,
            is_added: false,
            payload: Payload::At(header_len..len),
            len,
        }))
    }

    const fn header_len(&self) -> usize {
        if self.is_modified { MODIFIED_HEADER_BYTES } else { RECORD_HEADER_BYTES }
    }

    /// Parses the header of the record at the front.
    fn head(&self, bytes: &[u8]) -> Option<Head> {
        // Its bytes are left to later: they may not be there.
        let len = self.header_len();
        let mut head = [0; MODIFIED_HEADER_BYTES];
        head[..len].copy_from_slice(bytes.get(..len)?);
        let captured = u32::from_le_bytes(self.order.low_first(&head[8..])?);
        head[8..12].fill(0);
        let parse = match (self.order, self.is_modified) {
            (ByteOrder::Little, false) => parse_pcap_frame,
            (ByteOrder::Big, _) => parse_pcap_frame_be,
            (ByteOrder::Little, true) => parse_pcap_frame_modified,
        };
        let (_, LegacyPcapBlock { ts_sec, ts_usec, origlen, .. }) = parse(&head[..len]).ok()?;
        Some(Head { seconds: ts_sec.into(), fraction: ts_usec.into(), captured, whole: origlen })
    }

    /// Bytes from the front to what looks like the next record, or to the end.
    fn distance_to_next<R: Read>(&self, window: &mut Window<R>) -> io::Result<usize> {
        // A record that is longer than this is not looked for behind damage.
        const LOOK_AHEAD_BYTES: usize = 4 << 20;
        window.want(LOOK_AHEAD_BYTES)?;
        let bytes = window.bytes();
        let found = (1..bytes.len()).find(|&at| self.is_record(&bytes[at..]));
        Ok(found.unwrap_or(bytes.len()))
    }

    /// Whether a record seems to begin here, and another behind it.
    fn is_record(&self, bytes: &[u8]) -> bool {
        let Some(len) = self.plausible(bytes) else { return false };
        let Some(rest) = bytes.get(len..) else { return false };
        rest.is_empty() || self.plausible(rest).is_some()
    }

    /// Bytes of a record that may begin here.
    fn plausible(&self, bytes: &[u8]) -> Option<usize> {
        let head = self.head(bytes)?;
        let is_near = self.latest_s.is_none_or(|latest| latest.abs_diff(head.seconds) <= SECONDS_APART_MAX);
        let is_time = head.fraction * self.ns_per_fraction < NS_PER_S;
        let is_length = (self.least_bytes()..=RECORD_BYTES_MAX as u32).contains(&head.captured);
        let is_sane = is_near && is_time && is_length && head.captured <= head.whole;
        is_sane.then_some(self.header_len() + head.captured as usize)
    }

    /// Bytes that a packet of this link has at least.
    const fn least_bytes(&self) -> u32 {
        match self.link {
            Link::UsbmonShort => 48,
            Link::Usbmon => 64,
            Link::Usbpcap => 27,
            Link::Usbpf => 128,
            Link::Usb2Packets | Link::Other(_) => 1,
        }
    }
}
