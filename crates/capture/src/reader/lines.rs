//! Text of Linux's usbmon, `1u` and the older `1t` (Linux, Documentation/usb/usbmon.rst): one line for each event.
//!
//! A line becomes a packet of link type 220: a header and at most 32 bytes of data, which hold a command wrapper (31), a status
//! wrapper (13), a COMMAND IU with a 16-byte command block (32) and the head of a SENSE IU. Lengths are complete. Text that is no
//! event (prose, a mail's header, a log) is skipped; quote marks and other words before an event are ignored, and data that a mail
//! program has wrapped to the next line are read. Where an author's words or `...` stand between two events, others may have been left
//! out: packets are missing there, unless the second event is the end of the first. Left out: isochronous descriptors.
//!
//! Invariants: an event whose fields cannot be read is damage; a line is held only up to [`LINE_BYTES_MAX`]; times never go back by
//! half the range of usbmon's counter, which wraps after 4096 s.

use super::damage::{DamageKind, Dropped};
use super::front::{ByteOrder, Found, Link, Payload, Step};
use super::window::Window;
use std::io::{self, Read};
use wire::usb::{Direction, EndpointAddress};
use wire::usbmon::{UsbmonEvent, UsbmonHeader, UsbmonKind, UsbmonPayload};

/// Bytes of the longest line that is looked at; an event has fewer than 200.
const LINE_BYTES_MAX: usize = 4096;
/// Bytes in which the first event is looked for.
const SEARCH_BYTES: usize = 1 << 20;
/// Words before an event that are ignored: quote marks, a log's stamp.
const WORDS_BEFORE_MAX: usize = 8;
/// Bytes of data in a line (`DATA_MAX` of mon_text.c).
const DATA_BYTES_MAX: usize = 32;
/// The range of the time in a line, in microseconds (`mon_get_timestamp`).
const TIME_WRAPS_US: u64 = 4_096_000_000;

/// A file of lines.
pub(super) struct Lines {
    /// The packet that was made of the latest event.
    packet: Vec<u8>,
    /// Time of the latest event, and what to add since the counter has wrapped.
    latest_us: u64,
    wrapped_us: u64,
    /// The latest event: the transfer's id, and whether it was submitted.
    latest: Option<(u64, bool)>,
    /// Whether words of an author have followed it.
    has_words: bool,
    /// Whether the end of the line at the front is not there yet, so that the line is dropped up to its end.
    is_in_long_line: bool,
}

/// An event, as its line has it.
struct Event {
    id: u64,
    time_us: u64,
    header: UsbmonHeader,
    data: Vec<u8>,
}

/// Kind of a line.
enum Line {
    Event(Box<Event>),
    /// It begins as an event and does not go on as one.
    Damaged,
    /// Words of an author, or a mark by which authors leave something out.
    Words,
    /// Something else.
    Other,
}

impl Lines {
    /// If the file is text with an event in it.
    pub(super) fn of<R: Read>(window: &mut Window<R>) -> io::Result<Option<Self>> {
        if !is_text(window.bytes()) {
            return Ok(None);
        }
        // Somebody may be watching: the first line may be all there is for a while.
        read_line(window)?;
        if !has_event(window.bytes()) {
            window.want(SEARCH_BYTES)?;
        }
        Ok(has_event(window.bytes()).then(|| Self {
            packet: Vec::new(),
            latest_us: 0,
            wrapped_us: 0,
            latest: None,
            has_words: false,
            is_in_long_line: false,
        }))
    }

    /// The packet that [`Payload::Made`] stands for.
    pub(super) fn packet(&self) -> &[u8] {
        &self.packet
    }

    pub(super) fn step<R: Read>(&mut self, window: &mut Window<R>) -> io::Result<Step> {
        let Some(len) = read_line(window)? else { return Ok(Step::End) };
        let bytes = &window.bytes()[..len];
        let is_ended = bytes.last() == Some(&b'\n');
        if std::mem::replace(&mut self.is_in_long_line, !is_ended && len >= LINE_BYTES_MAX) {
            return Ok(Step::Skip(len));
        }
        match line(bytes) {
            Line::Other => Ok(Step::Skip(len)),
            Line::Words => {
                self.has_words = true;
                Ok(Step::Skip(len))
            }
            Line::Damaged => Ok(Step::Damage(DamageKind::Line, len)),
            Line::Event(event) if self.has_gap(&event) => {
                // The line is read again, as what follows the gap.
                self.latest = None;
                Ok(Step::Dropped(Dropped { packets: 0, is_here: true, offset: 0 }, 0))
            }
            Line::Event(event) => self.event(*event, len, window),
        }
    }

    /// Whether events may have been left out before this one.
    fn has_gap(&self, event: &Event) -> bool {
        let is_end = event.header.event != UsbmonEvent::Submit;
        self.has_words
            && self.latest.is_some_and(|(id, is_submitted)| !(is_submitted && is_end && id == event.id))
    }

    fn event<R: Read>(&mut self, mut event: Event, len: usize, window: &mut Window<R>) -> io::Result<Step> {
        self.latest = Some((event.id, event.header.event == UsbmonEvent::Submit));
        self.has_words = false;
        let wanted = (event.header.length as usize).min(DATA_BYTES_MAX);
        let mut all = len;
        if !event.data.is_empty() && event.data.len() < wanted {
            all += wrapped_data(window, len, wanted, &mut event.data)?;
        }
        let captured = event.data.len();
        let header = UsbmonHeader { id: event.id, captured: captured as u32, ..event.header };
        self.packet.clear();
        self.packet.extend(header.encode());
        self.packet.extend(&event.data);
        Ok(Step::Packet(Found {
            at_ns: self.at_us(event.time_us).saturating_mul(1_000),
            link: Link::Usbmon,
            order: ByteOrder::Little,
            interface: 0,
            cut: 0,
            stream: None,
            is_added: false,
            payload: Payload::Made,
            len: all,
        }))
    }

    /// The time, as if the counter did not wrap.
    fn at_us(&mut self, time_us: u64) -> u64 {
        if time_us + TIME_WRAPS_US / 2 < self.latest_us {
            self.wrapped_us += TIME_WRAPS_US;
        }
        self.latest_us = time_us;
        self.wrapped_us + time_us
    }
}

/// Reads a line into the window, or the part of a long one that is looked at: how long it is.
fn read_line<R: Read>(window: &mut Window<R>) -> io::Result<Option<usize>> {
    read_line_at(window, 0)
}

/// The same of the line that begins here in the window.
fn read_line_at<R: Read>(window: &mut Window<R>, start: usize) -> io::Result<Option<usize>> {
    let mut searched = start;
    loop {
        let bytes = window.bytes();
        if let Some(end) = bytes.iter().skip(searched).take(LINE_BYTES_MAX).position(|&byte| byte == b'\n') {
            return Ok(Some(searched + end + 1 - start));
        }
        searched = bytes.len().max(start);
        if searched - start >= LINE_BYTES_MAX {
            return Ok(Some(LINE_BYTES_MAX));
        }
        if !window.want(searched + 1)? {
            let rest = window.bytes().len().saturating_sub(start);
            return Ok((rest > 0).then_some(rest));
        }
    }
}

/// Data that go on in the line behind an event: bytes of that line, which are added.
fn wrapped_data<R: Read>(
    window: &mut Window<R>,
    start: usize,
    wanted: usize,
    data: &mut Vec<u8>,
) -> io::Result<usize> {
    let Some(len) = read_line_at(window, start)? else { return Ok(0) };
    let text = String::from_utf8_lossy(&window.bytes()[start..start + len]).into_owned();
    let more: Option<Vec<Vec<u8>>> = words(&text).map(data_word).collect();
    match more.map(|more| more.concat()) {
        Some(more) if !more.is_empty() && data.len() + more.len() <= wanted => {
            data.extend(more);
            Ok(len)
        }
        _ => Ok(0),
    }
}

/// The words of a line, without the marks by which mails quote.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.trim_start_matches(['>', '|', ' ', '\t']).split_ascii_whitespace()
}

/// Whether bytes may be text: no control character but those that text has.
fn is_text(bytes: &[u8]) -> bool {
    let is_of_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x1b | b' '..);
    !bytes.is_empty() && bytes.iter().take(LINE_BYTES_MAX).all(is_of_text)
}

pub(super) fn has_event(bytes: &[u8]) -> bool {
    if !is_text(bytes) {
        return false;
    }
    bytes.split(|&byte| byte == b'\n').any(|text| matches!(line(text), Line::Event(_)))
}

fn line(bytes: &[u8]) -> Line {
    let Ok(text) = std::str::from_utf8(bytes) else { return Line::Other };
    let words: Vec<&str> = words(text).collect();
    for start in 0..words.len().min(WORDS_BEFORE_MAX) {
        if let [tag, time, event, address, rest @ ..] = &words[start..]
            && let (Some(id), Some(time_us)) = (tag_in(tag), time_in(time))
            && let (Some(event), Some(address)) = (event_in(event), Address::of(address))
        {
            let header = address.header(event);
            return match fields(header, rest) {
                Some((header, data)) => Line::Event(Box::new(Event { id, time_us, header, data })),
                None => Line::Damaged,
            };
        }
    }
    if is_prose(&words) { Line::Words } else { Line::Other }
}

/// Whether a line has words, or stands for what was left out. A line of dashes and carets marks a part of an event.
fn is_prose(words: &[&str]) -> bool {
    let is_elision =
        words.first().is_some_and(|word| word.starts_with("...") || word.starts_with('\u{2026}'));
    is_elision || words.iter().any(|word| word.chars().any(char::is_alphanumeric))
}

/// Parses the fields that follow the address: status or setup packet, length, data.
fn fields(header: UsbmonHeader, rest: &[&str]) -> Option<(UsbmonHeader, Vec<u8>)> {
    let mut header = header;
    let (&first, mut rest) = rest.split_first()?;
    match first.split(':').next()?.parse() {
        Ok(status) => header.status = status,
        // A letter for the setup packet; where it was not kept, there are lines in place of digits.
        Err(_) if first.len() == 1 => {
            let (setup, behind) = rest.split_at_checked(5)?;
            (header.setup, header.status) = (setup_in(setup), UsbmonHeader::IN_PROGRESS);
            rest = behind;
        }
        Err(_) => return None,
    }
    if header.kind == UsbmonKind::Isochronous {
        // Descriptors come before the length; no drive has any.
        return Some((header, Vec::new()));
    }
    let (length, rest) = rest.split_first()?;
    header.length = length.parse().ok()?;
    let data = match rest {
        [] => Vec::new(),
        ["=", words @ ..] => {
            let data = words.iter().map_while(|word| data_word(word)).collect::<Vec<_>>().concat();
            data.into_iter().take(DATA_BYTES_MAX.min(header.length as usize)).collect()
        }
        ["<", ..] => {
            header.payload = UsbmonPayload::Later;
            Vec::new()
        }
        [_, ..] => {
            header.payload = UsbmonPayload::Before;
            Vec::new()
        }
    };
    Some((header, data))
}

/// `Bo:1:005:2`: kind and direction, bus, device, endpoint; `1t` has no bus.
struct Address {
    kind: UsbmonKind,
    bus: u16,
    device: u8,
    endpoint: EndpointAddress,
}

impl Address {
    fn of(word: &str) -> Option<Self> {
        let mut parts = word.split(':');
        let (kind, direction) = match *parts.next()?.as_bytes() {
            [kind, b'i'] => (kind, Direction::In),
            [kind, b'o'] => (kind, Direction::Out),
            _ => return None,
        };
        let kind = match kind {
            b'C' => UsbmonKind::Control,
            b'B' => UsbmonKind::Bulk,
            b'I' => UsbmonKind::Interrupt,
            b'Z' => UsbmonKind::Isochronous,
            _ => return None,
        };
        let numbers: Vec<u16> = parts.map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let (bus, device, endpoint) = match numbers[..] {
            [device, endpoint] => (0, device, endpoint),
            [bus, device, endpoint] => (bus, device, endpoint),
            _ => return None,
        };
        let endpoint = EndpointAddress::new(endpoint.try_into().ok()?, direction)?;
        Some(Self { kind, bus, device: device.try_into().ok()?, endpoint })
    }

    /// A header with what is known so far.
    fn header(&self, event: UsbmonEvent) -> UsbmonHeader {
        let Self { kind, bus, device, endpoint } = *self;
        UsbmonHeader {
            id: 0,
            event,
            kind,
            endpoint,
            device,
            bus,
            setup: None,
            payload: UsbmonPayload::Present,
            seconds: 0,
            microseconds: 0,
            status: 0,
            length: 0,
            captured: 0,
            interval: 0,
            start_frame: 0,
            flags: if endpoint.direction() == Direction::In { UsbmonHeader::TO_HOST } else { 0 },
            descriptors: 0,
        }
    }
}

/// A number of up to 16 hexadecimal digits: where the kernel keeps the transfer.
fn tag_in(word: &str) -> Option<u64> {
    let is_tag = (1..=16).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_tag.then(|| u64::from_str_radix(word, 16).ok())?
}

fn time_in(word: &str) -> Option<u64> {
    let is_time = word.bytes().all(|byte| byte.is_ascii_digit());
    is_time.then(|| word.parse::<u32>().ok().map(u64::from))?
}

fn event_in(word: &str) -> Option<UsbmonEvent> {
    Some(match word {
        "S" => UsbmonEvent::Submit,
        "C" => UsbmonEvent::Complete,
        "E" => UsbmonEvent::Refuse,
        _ => return None,
    })
}

/// `a3 00 0000 0003 0004`: two bytes and three numbers, which the packet has low byte first.
fn setup_in(words: &[&str]) -> Option<[u8; 8]> {
    let [kind, request, value, index, length] = *words else { return None };
    let byte = |word: &str| u8::from_str_radix(word, 16).ok();
    let number = |word: &str| u16::from_str_radix(word, 16).ok().map(u16::to_le_bytes);
    let (kind, request) = (byte(kind)?, byte(request)?);
    let ([v0, v1], [i0, i1], [l0, l1]) = (number(value)?, number(index)?, number(length)?);
    Some([kind, request, v0, v1, i0, i1, l0, l1])
}

/// One to four bytes in hexadecimal, in their order.
fn data_word(word: &str) -> Option<Vec<u8>> {
    let is_word = matches!(word.len(), 2 | 4 | 6 | 8) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = |at: usize| u8::from_str_radix(word.get(at..at + 2)?, 16).ok();
    is_word.then(|| (0..word.len()).step_by(2).filter_map(byte).collect())
}

#[cfg(test)]
mod tests {
    use crate::{Item, Link, Packet, Reader};
    use wire::usbmon::{UsbmonEvent, UsbmonHeader, UsbmonKind};

    /// Time in microseconds, header, data; and damages.
    fn read(text: &str) -> (Vec<(u64, UsbmonHeader, Vec<u8>)>, usize) {
        let mut reader = Reader::new(text.as_bytes(), "memory".into()).unwrap();
        let (mut packets, mut damages) = (Vec::new(), 0);
        while let Some(item) = reader.next_item().unwrap() {
            match item {
                Item::Packet(Packet { at_ns, link, bytes, .. }) => {
                    assert_eq!(link, Link::Usbmon);
                    let header = UsbmonHeader::decode(bytes).unwrap();
                    packets.push((at_ns / 1_000, header, bytes[64..].to_vec()));
                }
                Item::Damage(_) => damages += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(reader.offset(), text.len() as u64);
        (packets, damages)
    }

    #[test]
    fn an_event_of_1u_has_bus_device_endpoint_status_length_and_data() {
        let (packets, damages) = read(
            "ffff888100000001 1000000 S Bo:1:005:2 -115 31 = 55534243 01000000 00000000 00000615 10000000 00000000 \
             00000000 000000\nffff888100000002 1000200 C Bi:1:005:1 -104 0\n",
        );
        assert_eq!(damages, 0);
        let [(at, sent, data), (_, ended, none)] = &packets[..] else { panic!("{packets:?}") };
        assert_eq!((*at, data.len(), &data[..4], data[15]), (1_000_000, 31, &b"USBC"[..], 0x15));
        assert_eq!((sent.id, sent.bus, sent.device), (0xffff_8881_0000_0001, 1, 5));
        assert_eq!(
            (sent.event, sent.kind, u8::from(sent.endpoint)),
            (UsbmonEvent::Submit, UsbmonKind::Bulk, 2)
        );
        assert_eq!((sent.status, sent.length, sent.captured), (-115, 31, 31));
        assert_eq!((ended.event, ended.status, ended.length), (UsbmonEvent::Complete, -104, 0));
        assert_eq!((u8::from(ended.endpoint), none.len()), (0x81, 0));
    }

    #[test]
    fn an_event_of_1t_has_no_bus() {
        let (packets, _) = read("c31f414c 744561854 C Bi:005:01 0 13 = 55534253 00000000 00000000 00\n");
        let (_, header, data) = &packets[0];
        assert_eq!((header.bus, header.device, u8::from(header.endpoint)), (0, 5, 0x81));
        assert_eq!(data.len(), 13);
    }

    #[test]
    fn a_control_transfer_has_its_setup_packet() {
        let (packets, damages) = read(
            "d5ea89a0 3575914555 S Ci:1:001:0 s a3 00 0000 0003 0004 4 <\n\
             d5ea89a0 3575914560 C Ci:1:001:0 0 4 = 01050000\n\
             d5ea89a0 3575914570 S Co:1:001:0 ? __ __ ____ ____ ____ 0\n",
        );
        assert_eq!(damages, 0);
        assert_eq!(packets[0].1.setup, Some([0xa3, 0, 0, 0, 3, 0, 4, 0]));
        assert_eq!((packets[0].1.status, packets[0].1.length), (-115, 4));
        assert_eq!(packets[1].2, [1, 5, 0, 0]);
        assert_eq!(packets[2].1.setup, None);
    }

    #[test]
    fn a_quoted_mail_with_prose_and_wrapped_data_is_read() {
        let (packets, damages) = read(
            "On Sat, 18 Feb 2006, somebody wrote:\n\n> Thanks for the trace!\n>\n\
             > > c31f414c 744561726 S Bo:005:02 -115 31 = 55534243 00000000 00000000 00000600 00000000 00000000\n\
             > > 00000000 000000\n> > c31f414c 744561854 C Bo:005:02 0 31 >\n\nThis is fine.\n",
        );
        assert_eq!((packets.len(), damages), (2, 0));
        assert_eq!(packets[0].2.len(), 31);
    }

    #[test]
    fn data_past_32_bytes_are_not_in_the_text_and_the_length_is() {
        let (packets, _) = read(
            "ffff9d6259400b40 1000187 C Bi:1:002:3 0 4096 = 00000000 00000000 00000000 00000000 00000000 00000000 \
             00000000 00000000\n",
        );
        assert_eq!((packets[0].1.length, packets[0].1.captured, packets[0].2.len()), (4096, 32, 32));
    }

    #[test]
    fn the_time_wraps_after_4096_seconds() {
        let (packets, _) = read(
            "f0 4095999000 S Bi:1:005:1 -115 13 <\nf0 1000 C Bi:1:005:1 -2 0\nf1 900 S Bi:1:005:1 -115 13 <\n",
        );
        let times: Vec<u64> = packets.iter().map(|packet| packet.0).collect();
        assert_eq!(times, [4_095_999_000, 4_096_001_000, 4_096_000_900]);
    }

    #[test]
    fn interrupt_and_isochronous_events_are_read() {
        let (packets, damages) = read(
            "f0 1 S Ii:1:001:1 -115:2048 4 <\nf0 2 C Zi:1:002:1 0:1:0:0 2 0:0:3072 0:3072:3072 6144 = 00\n",
        );
        assert_eq!((packets.len(), damages), (2, 0));
        assert_eq!(packets[0].1.kind, UsbmonKind::Interrupt);
    }

    #[test]
    fn an_event_that_breaks_off_is_damage() {
        let (packets, damages) =
            read("f0 1 S Bi:1:005:1 -115 13 <\nf0 2 C Bi:1:005:1\nf0 3 C Bi:1:005:1 0 x\nf0 4 C Bi:1:0");
        assert_eq!((packets.len(), damages), (1, 3));
    }

    #[test]
    fn a_line_without_end_does_not_grow_memory() {
        let text = format!("f0 1 S Bi:1:005:1 -115 13 <\n{}\nf0 2 C Bi:1:005:1 0 0\n", "f0 ".repeat(100_000));
        let (packets, _) = read(&text);
        assert_eq!(packets.len(), 2);
    }

    /// Where packets are missing, by the number of the packet that follows.
    fn gaps(text: &str) -> Vec<u64> {
        let mut reader = Reader::new(text.as_bytes(), "memory".into()).unwrap();
        let (mut packets, mut gaps) = (0, Vec::new());
        while let Some(item) = reader.next_item().unwrap() {
            match item {
                Item::Packet(packet) => packets = packet.number,
                Item::Dropped(dropped) => gaps.push(packets + u64::from(dropped.is_here)),
                other => panic!("{other:?}"),
            }
        }
        gaps
    }

    #[test]
    fn where_words_stand_between_events_others_may_be_missing() {
        let [begin, end] = ["f0 1 S Bi:1:005:1 -115 13 <\n", "f0 2 C Bi:1:005:1 0 0\n"];
        assert_eq!(gaps(&format!("Hello,\n> {begin}> {end}\nBye\n")), [], "before and behind all of them");
        assert_eq!(gaps(&format!("{begin}{end}-----^^\n\n>\n{begin}{end}")), [], "no words");
        assert_eq!(gaps(&format!("{begin}{end}> ...\n{begin}{end}That is a test.\n\n{begin}")), [3, 5]);
        assert_eq!(gaps(&format!("{begin}And 30 s later:\n{end}")), [], "the end of the same transfer");
        assert_eq!(gaps(&format!("{begin}[snip]\n{}", end.replace("f0", "f1"))), [2]);
    }

    #[test]
    fn text_without_an_event_is_no_capture() {
        for text in ["dear diary", "f0 1 S Bi", "[ 1.0] usb 1-1: reset high-speed USB device number 5\n"] {
            assert!(Reader::new(text.as_bytes(), "memory".into()).is_err(), "{text}");
        }
    }
}
