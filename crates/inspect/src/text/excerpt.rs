//! Long texts, read line by line: what no format needs is dropped on the way, so memory does not grow with the file.
//!
//! Lines of a log that are not about drives are dropped; of what is left, the first and the last megabytes are kept. Lines keep
//! their numbers. Always true: memory is bounded by [`HEAD_BYTES_MAX`], [`HEAD_LINES_MAX`], [`TAIL_BYTES_MAX`], [`TAIL_LINES_MAX`]
//! and [`LINE_BYTES_MAX`]. Left out: archives and recorded machines, which are read whole.

use std::collections::VecDeque;
use std::io::{self, BufRead};

/// Bytes that are kept of the begin of a text.
pub const HEAD_BYTES_MAX: usize = 4 << 20;

/// Bytes that are kept of its end.
pub const TAIL_BYTES_MAX: usize = 4 << 20;

/// Lines that are kept of the begin of a text: short ones cost more than their bytes.
pub const HEAD_LINES_MAX: usize = 16 << 10;

/// Lines that are kept of its end.
pub const TAIL_LINES_MAX: usize = 32 << 10;

/// Bytes of a line that are looked at.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// Lines that were dropped before a line that was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The place of the line among those that were kept, from 0.
    pub before: usize,
    /// How many lines.
    pub lines: usize,
}

/// Lines that would have been needed and were too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The first.
    pub first: usize,
    /// The last.
    pub last: usize,
    /// How many; lines between them that no format needs do not count.
    pub count: usize,
}

/// The part of a text that is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Excerpt {
    pub(super) text: String,
    pub(super) gaps: Vec<Gap>,
    pub(super) left_out: Option<LeftOut>,
    /// Lines of the text that are not blank, whether they are needed or not.
    pub(super) filled: usize,
}

/// Reads a text; of lines of a log those that are needed.
pub(super) fn excerpt(reader: &mut impl BufRead, is_needed: fn(&[u8]) -> bool) -> io::Result<Excerpt> {
    let mut selection = Selection::new(is_needed);
    let mut line = Vec::new();
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        let mut rest = buffer;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (part, after) = rest.split_at(end);
            if line.is_empty() {
                selection.take(part.get(..LINE_BYTES_MAX).unwrap_or(part));
            } else {
                extend(&mut line, part);
                selection.take(&line);
                line.clear();
            }
            rest = after.get(1..).unwrap_or_default();
        }
        extend(&mut line, rest);
        let used = buffer.len();
        reader.consume(used);
    }
    if !line.is_empty() {
        selection.take(&line);
    }
    Ok(selection.finish())
}

/// Adds a part of a line, as far as lines are looked at.
fn extend(line: &mut Vec<u8>, part: &[u8]) {
    let space = LINE_BYTES_MAX.saturating_sub(line.len());
    line.extend_from_slice(part.get(..space).unwrap_or(part));
}

/// A line that is kept, with its number in the file.
type Numbered = (usize, String);

struct Selection {
    is_needed: fn(&[u8]) -> bool,
    /// The number of the last line.
    number: usize,
    /// Lines that are not blank.
    filled: usize,
    head: Vec<Numbered>,
    head_bytes: usize,
    tail: VecDeque<Numbered>,
    tail_bytes: usize,
    left_out: Option<LeftOut>,
    /// The number of the last line of a log that was dropped, and its beginning: its time says up to when the log goes.
    end: Option<(usize, Vec<u8>)>,
    /// Whether the last line was blank: more of them part nothing.
    is_after_blank: bool,
}

impl Selection {
    fn new(is_needed: fn(&[u8]) -> bool) -> Self {
        Self {
            is_needed,
            number: 0,
            filled: 0,
            head: Vec::new(),
            head_bytes: 0,
            tail: VecDeque::new(),
            tail_bytes: 0,
            left_out: None,
            end: None,
            is_after_blank: false,
        }
    }

    fn take(&mut self, line: &[u8]) {
        self.number += 1;
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        self.filled += usize::from(!is_blank);
        let is_repeated = is_blank && self.is_after_blank;
        self.is_after_blank = is_blank;
        if is_repeated {
            return;
        }
        if is_of_log(line) && !(self.is_needed)(line) {
            let end = self.end.get_or_insert_default();
            end.0 = self.number;
            end.1.clear();
            end.1.extend_from_slice(line.get(..END_BYTES_MAX).unwrap_or(line));
            return;
        }
        self.add(self.number, String::from_utf8_lossy(line).into_owned());
    }

    fn add(&mut self, number: usize, line: String) {
        let bytes = line.len() + 1;
        let is_of_head = self.head_bytes + bytes <= HEAD_BYTES_MAX && self.head.len() < HEAD_LINES_MAX;
        if is_of_head && self.tail.is_empty() {
            self.head_bytes += bytes;
            self.head.push((number, line));
            return;
        }
        self.tail_bytes += bytes;
        self.tail.push_back((number, line));
        while (self.tail_bytes > TAIL_BYTES_MAX || self.tail.len() > TAIL_LINES_MAX)
            && let Some((number, line)) = self.tail.pop_front()
        {
            self.tail_bytes -= line.len() + 1;
            let left_out = self.left_out.get_or_insert(LeftOut { first: number, last: number, count: 0 });
            left_out.last = number;
            left_out.count += 1;
        }
    }

    fn finish(mut self) -> Excerpt {
        let last = self.tail.back().or(self.head.last()).map_or(0, |(number, _)| *number);
        if let Some((number, line)) = self.end.take().filter(|(number, _)| *number > last) {
            self.add(number, String::from_utf8_lossy(&line).into_owned());
        }
        let mut text = String::with_capacity(self.head_bytes + self.tail_bytes);
        let mut gaps = Vec::new();
        let mut last = 0;
        for (at, (number, line)) in self.head.into_iter().chain(self.tail).enumerate() {
            if number > last + 1 {
                gaps.push(Gap { before: at, lines: number - last - 1 });
            }
            last = number;
            text.push_str(&line);
            text.push('\n');
        }
        Excerpt { text, gaps, left_out: self.left_out, filled: self.filled }
    }
}

/// Bytes that are kept of a line for its time alone.
const END_BYTES_MAX: usize = 200;

/// Whether a line is one of a log, by how it begins: a time in brackets, a level, a date. Others may be of any format.
fn is_of_log(line: &[u8]) -> bool {
    const DATES: [&[u8]; 19] = [
        b"Jan ", b"Feb ", b"Mar ", b"Apr ", b"May ", b"Jun ", b"Jul ", b"Aug ", b"Sep ", b"Oct ", b"Nov ",
        b"Dec ", b"Mon ", b"Tue ", b"Wed ", b"Thu ", b"Fri ", b"Sat ", b"Sun ",
    ];
    let is_mark = |byte: &&u8| matches!(**byte, b' ' | b'\t' | b'>');
    let line = line.get(line.iter().take_while(is_mark).count()..).unwrap_or_default();
    match line {
        [b'[', second, ..] => {
            second.is_ascii_digit() || *second == b' ' || *second == b'+' || second.is_ascii_uppercase()
        }
        [b'<', second, ..] => second.is_ascii_digit(),
        [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'-', ..] => true,
        _ => DATES.iter().any(|date| line.starts_with(date)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Excerpt {
        let is_needed = |line: &[u8]| {
            [&b"usb "[..], b"sd "].iter().any(|word| line.windows(word.len()).any(|part| part == *word))
        };
        excerpt(&mut text.as_bytes(), is_needed).expect("it is in memory")
    }

    #[test]
    fn what_no_format_needs_is_dropped_and_lines_keep_their_numbers() {
        let text = "[ 1.0] audit: x\n[ 1.1] usb 2-1: new\nBus 002 Device 002: ID 152d:0578\n[ 2.0] eth0: up\n\
                    [ 2.1] sd 0:0:0:0: [sda]\n[ 9.0] eth0: down\n";
        let excerpt = of(text);
        let lines: Vec<&str> = excerpt.text.lines().collect();
        assert_eq!(
            lines,
            [
                "[ 1.1] usb 2-1: new",
                "Bus 002 Device 002: ID 152d:0578",
                "[ 2.1] sd 0:0:0:0: [sda]",
                "[ 9.0] eth0: down",
            ]
        );
        assert_eq!(excerpt.gaps, [Gap { before: 0, lines: 1 }, Gap { before: 2, lines: 1 }]);
        assert_eq!(excerpt.left_out, None);
    }

    #[test]
    fn too_many_lines_lose_the_middle() {
        let line = format!("[ 1.0] usb 2-1: {}\n", "x".repeat(1000));
        let count = 3 * HEAD_BYTES_MAX / line.len();
        let document = of(&line.repeat(count));
        let left_out = document.left_out.expect("some");
        assert!(document.text.len() <= HEAD_BYTES_MAX + TAIL_BYTES_MAX, "{}", document.text.len());
        assert!(left_out.first > 1 && left_out.last < count, "{left_out:?}");
        let dropped: usize = document.gaps.iter().map(|gap| gap.lines).sum();
        assert_eq!(document.text.lines().count() + dropped, count);
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let document = of(&"usb ".repeat(LINE_BYTES_MAX));
        assert_eq!(document.text.len(), LINE_BYTES_MAX + 1);
    }
}
