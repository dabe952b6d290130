//! The lines of a log, parsed once and found by their source or disk.
//!
//! Every rule asks for lines of one device: without an index each answer would read the whole log. Always true: places are
//! those of the lines, in their order. Left out: which device was at a port when, which [`crate::log`] has.

use crate::log::LogLine;
use std::collections::BTreeMap;

/// An index of the lines of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogIndex {
    /// Bytes of the source and of the text of each line; the text is its end.
    parts: Vec<(usize, usize)>,
    by_source: BTreeMap<String, Vec<usize>>,
    by_disk_in_error: BTreeMap<String, Vec<usize>>,
}

impl LogIndex {
    pub(super) fn of(lines: &[String]) -> Self {
        let mut index = Self::default();
        for (at, raw) in lines.iter().enumerate() {
            let line = LogLine::of(raw);
            index.parts.push((line.source.len(), line.text.len()));
            index.by_source.entry(line.source.to_owned()).or_default().push(at);
            if let Some(disk) = line.disk_in_error() {
                index.by_disk_in_error.entry(disk.to_owned()).or_default().push(at);
            }
        }
        index
    }

    /// The parts of a line.
    pub(super) fn line<'a>(&self, at: usize, raw: &'a str) -> LogLine<'a> {
        const SEPARATOR: &str = ": ";
        let (source_len, text_len) = self.parts.get(at).copied().unwrap_or((0, raw.len()));
        let begin = raw.len().saturating_sub(text_len);
        let end = begin.saturating_sub(SEPARATOR.len());
        let source =
            if source_len == 0 { "" } else { raw.get(end.saturating_sub(source_len)..end).unwrap_or("") };
        LogLine { source, text: raw.get(begin..).unwrap_or_default() }
    }

    /// The lines of a source.
    pub(super) fn of_source(&self, source: &str) -> &[usize] {
        self.by_source.get(source).map_or(&[], Vec::as_slice)
    }

    /// The lines of sources that begin so, unsorted.
    pub(super) fn of_sources<'a>(&'a self, start: &'a str) -> impl Iterator<Item = usize> + 'a {
        let sources = self.by_source.range(start.to_owned()..);
        sources.take_while(move |(source, _)| source.starts_with(start)).flat_map(|(_, at)| at).copied()
    }

    /// The lines of sources whose last word is a name, unsorted.
    pub(super) fn of_name<'a>(&'a self, name: &'a str) -> impl Iterator<Item = usize> + 'a {
        let is_named = move |source: &str| source.rsplit_once(' ').is_some_and(|(_, own)| own == name);
        self.by_source.iter().filter(move |(source, _)| is_named(source)).flat_map(|(_, at)| at).copied()
    }

    /// The lines of the block layer about an error of a disk.
    pub(super) fn of_disk_in_error(&self, disk: &str) -> &[usize] {
        self.by_disk_in_error.get(disk).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_parts_that_the_parser_finds() {
        let lines = [
            "[    1.0] usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd",
            "Nov 26 09:23:06 host kernel: usb 2-1: Product: a: b",
            "[    1.1] : x",
            "[    1.2] GPT:9 != 1",
            "I/O error, dev sdc, sector 77",
            "usb 2-1: ",
            "",
        ]
        .map(str::to_owned);
        let index = LogIndex::of(&lines);
        for (at, raw) in lines.iter().enumerate() {
            assert_eq!(index.line(at, raw), LogLine::of(raw), "{raw}");
        }
        assert_eq!(index.of_source("usb 2-1"), [0, 1, 5]);
        assert_eq!(index.of_disk_in_error("sdc"), [4]);
    }

    proptest::proptest! {
        #[test]
        fn any_line_has_the_parts_that_the_parser_finds(raw in "[\\[\\]<>0-9. :a-z\u{e9}]{0,40}") {
            let index = LogIndex::of(std::slice::from_ref(&raw));
            proptest::prop_assert_eq!(index.line(0, &raw), LogLine::of(&raw));
        }
    }
}
