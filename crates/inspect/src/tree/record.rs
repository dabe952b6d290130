//! A recorded tree as one text file, and back to files.
//!
//! One line is one entry, sorted by path:
//!
//! ```text
//! /sys/bus/usb/devices/2-1 -> ../../../devices/pci0000:00/0000:00:03.0/usb2/2-1
//! /sys/devices/pci0000:00/0000:00:03.0/usb2/2-1/speed = 5000
//! /sys/devices/pci0000:00/0000:00:03.0/usb2/2-1/descriptors : 1201000300000009
//! /sys/bus/usb/drivers/uas /
//! ```
//!
//! `->` a link, `=` text (a backslash escapes itself and `n`), `:` bytes in hexadecimal, `/` a directory. A line that
//! begins with `#` says something to people; the first says that the last is [`END`], so that a record that was cut short on
//! its way is not taken for a machine that lacks what is missing. Serial numbers are replaced, equal ones by equal ones. Left out: modes,
//! times, what was not read, and names with white space.

use crate::platform;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::Path;
use std::str::FromStr;
use std::{fs, io};

/// The first line of a record: a record that has it has [`END`] as well.
const HEADER: &str = "# A tree of uaskit: what was read of a machine, up to a line `# End of the tree`; serial numbers are replaced.";

/// The last line. More may follow, to say what is otherwise.
const END: &str = "# End of the tree";

/// The entries that were read of a tree, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Bytes(Vec<u8>),
    Link(String),
    Directory,
}

impl Record {
    pub(super) fn note(&mut self, path: String, entry: Entry) {
        // The root is there without being recorded.
        if path != "/" {
            self.entries.insert(path, entry);
        }
    }

    /// Adds a file of text. A line feed ends it, as in sysfs.
    pub(crate) fn put_text(&mut self, path: &str, text: &str) {
        self.note(path.to_owned(), Entry::Bytes(format!("{text}\n").into_bytes()));
    }

    /// Adds a file of bytes.
    pub(crate) fn put_bytes(&mut self, path: &str, bytes: &[u8]) {
        self.note(path.to_owned(), Entry::Bytes(bytes.to_vec()));
    }

    /// Adds a link.
    pub(crate) fn put_link(&mut self, path: &str, target: &str) {
        self.note(path.to_owned(), Entry::Link(target.to_owned()));
    }

    /// Adds a directory, unless something is there.
    pub(crate) fn put_directory(&mut self, path: &str) {
        self.entries.entry(path.to_owned()).or_insert(Entry::Directory);
    }

    pub(super) fn entry(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// Whether something is below a path without links.
    pub(super) fn has_below(&self, path: &str) -> bool {
        self.names(path).next().is_some()
    }

    /// The names right below a path without links, in order.
    pub(super) fn names<'a>(&'a self, path: &str) -> impl Iterator<Item = &'a str> {
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let mut last = "";
        self.entries
            .range(prefix.clone()..)
            .map_while(move |(path, _)| path.strip_prefix(&prefix))
            .filter_map(|below| below.split('/').next())
            .filter(move |name| std::mem::replace(&mut last, name) != *name)
    }

    /// Notes lines of a file of which other lines may have been noted before: several may look for several things in it.
    pub(super) fn note_lines(&mut self, path: String, lines: &[String]) {
        let mut known = match self.entries.remove(&path) {
            Some(Entry::Bytes(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => String::new(),
        };
        for line in lines {
            if !known.lines().any(|other| other == line) {
                known += line;
                known.push('\n');
            }
        }
        self.note(path, Entry::Bytes(known.into_bytes()));
    }

    /// The entries with serial numbers replaced: `SERIAL-1` for the first, and so on.
    fn without_serials(&self) -> BTreeMap<&str, Entry> {
        let mut known: Vec<Vec<u8>> = Vec::new();
        let mut replaced = |serial: &[u8]| {
            let at = known.iter().position(|other| other == serial).unwrap_or_else(|| {
                known.push(serial.to_vec());
                known.len() - 1
            });
            format!("SERIAL-{}", at + 1).into_bytes()
        };
        self.entries
            .iter()
            .map(|(path, entry)| {
                let entry = match entry {
                    // The serial number of a root hub is the address of its controller.
                    Entry::Bytes(bytes) if path.ends_with("/serial") && !is_root_hub(path) => {
                        Entry::Bytes(replaced(bytes.trim_ascii()))
                    }
                    Entry::Bytes(bytes) if path.ends_with("/vpd_pg80") => {
                        let serial = replaced(bytes.get(4..).unwrap_or_default().trim_ascii());
                        let len = u8::try_from(serial.len()).unwrap_or(u8::MAX);
                        Entry::Bytes([&[0, 0x80, 0, len], &serial[..]].concat())
                    }
                    other => other.clone(),
                };
                (path.as_str(), entry)
            })
            .collect()
    }
}

impl Entry {
    pub(super) fn lines(lines: &[String]) -> Self {
        Self::Bytes(lines.join("\n").into_bytes())
    }
}

fn is_root_hub(path: &str) -> bool {
    let device = path.trim_end_matches("/serial").rsplit('/').next().unwrap_or_default();
    device.starts_with("usb")
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        for (path, entry) in self.without_serials() {
            let breaks = |text: &str| text.contains(char::is_whitespace);
            match entry {
                // The first space ends a path, and a line a link.
                _ if breaks(path) => writeln!(f, "# not recorded: {}", path.escape_debug())?,
                Entry::Link(target) if breaks(&target) => writeln!(f, "# not recorded: {path}")?,
                Entry::Link(target) => writeln!(f, "{path} -> {target}")?,
                Entry::Directory => {
                    // Any entry below it makes the directory as well.
                    let below = format!("{path}/");
                    if self
                        .entries
                        .range(below.clone()..)
                        .next()
                        .is_none_or(|(next, _)| !next.starts_with(&below))
                    {
                        writeln!(f, "{path} /")?;
                    }
                }
                Entry::Bytes(bytes) => match plain(&bytes) {
                    Some(text) => writeln!(f, "{path} = {text}")?,
                    None => writeln!(f, "{path} : {}", hexadecimal(&bytes)?)?,
                },
            }
        }
        writeln!(f, "{END}")
    }
}

/// The bytes as text on one line, if that is what they are.
fn plain(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_plain = |letter: char| letter == '\n' || letter == '\t' || !letter.is_control();
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.chars().all(is_plain).then(|| text.replace('\\', "\\\\").replace('\n', "\\n"))
}

fn hexadecimal(bytes: &[u8]) -> Result<String, fmt::Error> {
    bytes.iter().try_fold(String::new(), |mut text, byte| write!(text, "{byte:02x}").map(|()| text))
}

/// Why a text is no record of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// A line is no entry.
    NoEntry {
        /// Its number, from one.
        number: usize,
        /// Its text, or as much of it as is worth showing.
        text: String,
    },
    /// It says that it has an end, and has none.
    CutShort {
        /// Lines that there are.
        lines: usize,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEntry { number, text } => {
                write!(f, "line {number} is not an entry of a tree: {}", text.escape_debug())
            }
            Self::CutShort { lines } => {
                write!(f, "it is cut short: its end is missing after line {lines}")
            }
        }
    }
}

impl std::error::Error for RecordError {}

impl FromStr for Record {
    type Err = RecordError;

    /// A later entry of a path replaces an earlier one, so that a test can say what is different about its machine.
    fn from_str(text: &str) -> Result<Self, RecordError> {
        // Before its lines: the last of a record that was cut short may be no entry for that reason alone.
        if text.starts_with(HEADER) && !text.lines().any(|line| line == END) {
            return Err(RecordError::CutShort { lines: text.lines().count() });
        }
        let mut entries = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let broken = || {
                let mut text: String = line.chars().take(SHOWN_LETTERS_MAX).collect();
                if text.len() < line.len() {
                    text.push('…');
                }
                RecordError::NoEntry { number: index + 1, text }
            };
            let (path, entry) = parsed(line).ok_or_else(broken)?;
            match entry {
                Some(entry) => drop(entries.insert(path.to_owned(), entry)),
                None => drop(entries.remove(path)),
            }
        }
        Ok(Self { entries })
    }
}

/// Letters of a line that is no entry that are shown.
const SHOWN_LETTERS_MAX: usize = 60;

/// Why a recorded tree did not become files.
#[derive(Debug)]
pub enum ExpandError {
    /// It is no record.
    Record(RecordError),
    /// A file could not be made.
    Io(io::Error),
}

impl fmt::Display for ExpandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ExpandError {}

impl From<io::Error> for ExpandError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Makes the files of a recorded tree below `root`, a directory that exists.
pub fn expand(text: &str, root: &Path) -> Result<(), ExpandError> {
    let record: Record = text.parse().map_err(ExpandError::Record)?;
    for (path, entry) in record.entries {
        let place = root.join(path.trim_start_matches('/'));
        match entry {
            Entry::Directory => fs::create_dir_all(&place)?,
            Entry::Link(target) => {
                fs::create_dir_all(place.parent().unwrap_or(root))?;
                platform::symlink(&target, &place)?;
            }
            Entry::Bytes(bytes) => {
                fs::create_dir_all(place.parent().unwrap_or(root))?;
                fs::write(&place, bytes)?;
            }
        }
    }
    Ok(())
}

/// A line's path and entry; no entry if the line takes an earlier one back (`PATH -`).
fn parsed(line: &str) -> Option<(&str, Option<Entry>)> {
    let (path, rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut names = path.strip_prefix('/')?.split('/');
    if names.any(|name| ["", ".", ".."].contains(&name)) {
        return None;
    }
    let (mark, value) = rest.split_once(' ').unwrap_or((rest, ""));
    let entry = match mark {
        "-" => return Some((path, None)),
        "/" => Entry::Directory,
        "->" => Entry::Link(value.to_owned()),
        "=" => Entry::Bytes(unescaped(value).into_bytes()),
        ":" => Entry::Bytes(from_hexadecimal(value)?),
        _ => return None,
    };
    Some((path, Some(entry)))
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => out.extend(letters.next().map(|next| if next == 'n' { '\n' } else { next })),
            letter => out.push(letter),
        }
    }
    out.push('\n');
    out
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim().as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    const TREE: &str = "\
/a/link -> ../b
/a/speed = 5000
/b/blob : 00ff
/b/serial = ABC\\nDEF
/c /
";

    fn expanded(text: &str) -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("a temporary directory");
        expand(text, place.path()).expect("a tree");
        place
    }

    #[test]
    fn what_is_recorded_is_what_was_expanded() {
        let place = expanded(TREE);
        let tree = Tree::at(place.path()).recording();
        assert_eq!(tree.link("/a/link"), Some("/b".into()));
        assert_eq!(tree.text("/a/speed"), Ok("5000".into()));
        assert_eq!(tree.bytes("/b/blob"), Ok(vec![0x00, 0xff]));
        assert_eq!(tree.text("/b/serial"), Ok("ABC\nDEF".into()));
        assert!(tree.exists("/c"));
        let text = tree.record().expect("it records").to_string();
        let body = text.strip_suffix("# End of the tree\n").expect("it has an end");
        let entries: String = body.lines().skip(1).map(|line| format!("{line}\n")).collect();
        assert_eq!(entries, TREE.replace("ABC\\nDEF", "SERIAL-1"));
    }

    #[test]
    fn lines_that_two_have_looked_for_are_both_recorded() {
        let tree = Tree::of("/a = 1 one\\n2 two\\n3 three".parse().expect("a record")).recording();
        for wanted in ["one", "three", "one", "four"] {
            tree.lines("/a", |line| line.ends_with(wanted)).expect("read");
        }
        let text = tree.record().expect("it records").to_string();
        assert!(text.ends_with("/a = 1 one\\n3 three\n# End of the tree\n"), "{text}");
    }

    #[test]
    fn names_that_would_break_a_line_are_left_out_and_reported() {
        let place = expanded("/a = 1\n");
        std::fs::write(place.path().join("my file\nb = 2"), "3").expect("written");
        let tree = Tree::at(place.path()).recording();
        tree.names("/", |_| true).iter().for_each(|name| drop(tree.text(&format!("/{name}"))));
        let text = tree.record().expect("it records").to_string();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines, ["/a = 1", "# not recorded: /my file\\nb = 2", "# End of the tree"]);
    }

    #[test]
    fn equal_serials_stay_equal() {
        let place = expanded(
            "/1/serial = X\n/2/serial = Y\n/3/serial = X\n/usb1/serial = 0000:00:03.0\n/4/vpd_pg80 : 0080000158\n",
        );
        let tree = Tree::at(place.path()).recording();
        for path in ["/1/serial", "/2/serial", "/3/serial", "/usb1/serial", "/4/vpd_pg80"] {
            tree.bytes(path).expect("read");
        }
        let text = tree.record().expect("it records").to_string();
        let serial = |path: &str| text.lines().find_map(|line| line.strip_prefix(path)).map(str::to_owned);
        assert_eq!(serial("/1/serial = "), Some("SERIAL-1".into()));
        assert_eq!(serial("/2/serial = "), Some("SERIAL-2".into()));
        assert_eq!(serial("/3/serial = "), Some("SERIAL-1".into()));
        assert_eq!(serial("/usb1/serial = "), Some("0000:00:03.0".into()));
        assert_eq!(serial("/4/vpd_pg80 : 00800008"), Some("53455249414c2d31".into()));
    }

    #[test]
    fn a_later_line_replaces_or_removes_an_earlier_one() {
        let place = expanded("/a = 1\n/b = 1\n/a = 2\n/b -\n");
        let tree = Tree::at(place.path());
        assert_eq!(tree.text("/a"), Ok("2".into()));
        assert!(!tree.exists("/b"));
    }

    #[test]
    fn a_line_that_is_not_an_entry_is_reported() {
        for wrong in
            ["a = 1", "/a", "/a ? 1", "/../a = 1", "/a : 0", "/a : zz", "/a//b = 1", "/a/ = 1", "/./a = 1"]
        {
            let error = format!("# a tree\n{wrong}\n").parse::<Record>().expect_err("no entry");
            assert_eq!(error, RecordError::NoEntry { number: 2, text: wrong.into() });
        }
    }

    #[test]
    fn a_truncated_record_is_reported() {
        let tree = Tree::at(expanded(TREE).path()).recording();
        for path in ["/a/speed", "/b/blob", "/b/serial"] {
            let _ = tree.bytes(path);
        }
        let text = tree.record().expect("it records").to_string();
        let header = text.lines().next().expect("a header").len();
        for end in header..text.len() - 1 {
            let lines = text[..end].lines().count();
            assert_eq!(text[..end].parse::<Record>(), Err(RecordError::CutShort { lines }), "{end}");
        }
        let whole: Record = text.parse().expect("it is whole");
        let changed: Record = format!("{text}/a/speed = 480\n").parse().expect("more may follow");
        assert_ne!(whole, changed);
        assert!(TREE.parse::<Record>().is_ok(), "one that says nothing of an end needs none");
    }

    #[test]
    fn a_long_line_that_is_not_an_entry_is_shortened() {
        let error = "\0".repeat(1 << 20).parse::<Record>().expect_err("no entry");
        assert_eq!(error, RecordError::NoEntry { number: 1, text: "\0".repeat(60) + "…" });
    }

    proptest::proptest! {
        /// Whatever is in a record that somebody sends, what is read of it and recorded again says the same.
        #[test]
        fn any_record_is_read_and_recorded_again(
            lines in proptest::collection::vec("(/[ab.]{0,2}){1,4} (->|=|:|/|-) [ab/.\\\\n0]{0,8}", 0..12),
            junk in "[ -~\n]{0,40}",
        ) {
            let _ = junk.parse::<Record>();
            let Ok(record) = lines.join("\n").parse::<Record>() else { return Ok(()) };
            let tree = Tree::of(record).recording();
            for path in ["/", "/a", "/a/b", "/b/a/a", "/a/../b"] {
                let _ = (tree.text(path), tree.link(path), tree.exists(path));
                proptest::prop_assert!(tree.names(path, |_| true).len() <= lines.len());
            }
            let text = tree.record().unwrap_or_default().to_string();
            let again: Record = text.parse().expect("what was printed is a record");
            proptest::prop_assert_eq!(again.to_string(), text);
        }
    }
}
