//! Files of the running system, or of a recorded one: everything that is read comes through here.
//!
//! A [`Tree`] has a root: `/` is the running machine, any other directory one that was copied or made up. Or it is a
//! [`Record`] in memory. What it reads may be hostile: every read is limited in bytes, every listing in names, a pipe is
//! not waited for, a loop of links is a file that cannot be read. A path never leaves the root by its `..`. A tree can
//! note what it reads, which is how a machine is [recorded](Tree::record).

mod packed;
mod record;
mod source;

pub use record::{ExpandError, Record, RecordError, expand};

use crate::{archive, text};
use record::Entry;
use source::Source;
use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use wire::Legible;

/// Files below a root.
#[derive(Debug)]
pub struct Tree {
    source: Source,
    /// A record of what was read, if that is noted.
    notes: Option<RefCell<Record>>,
    /// Asks a device itself for its object store.
    object_stores: Option<ObjectStores>,
}

/// Reads the binary device object store of a device, by bus and device number, from the device itself.
pub type ObjectStores = fn(bus: u16, device: u16) -> Result<Vec<u8>, Unread>;

/// Why something was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is not there.
    Absent,
    /// It is there and not for this user.
    Refused,
    /// It is there and cannot be read: a loop of links, a directory, a device that fails.
    Failed,
}

impl Tree {
    /// The running machine.
    pub fn running() -> Self {
        Self::at("/")
    }

    /// The tree below that directory; `/` is the running machine.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { source: Source::Directory(root.into()), notes: None, object_stores: None }
    }

    /// The tree that was recorded.
    pub fn of(record: Record) -> Self {
        Self { source: Source::Record(record), notes: None, object_stores: None }
    }

    /// The same tree, which asks devices of the running machine for object stores that its sysfs lacks.
    #[must_use]
    pub fn with_object_stores(self, ask: ObjectStores) -> Self {
        Self { object_stores: Some(ask), ..self }
    }

    /// The same tree, which notes everything that is read from now on.
    #[must_use]
    pub fn recording(self) -> Self {
        Self { notes: Some(RefCell::default()), ..self }
    }

    /// Returns a record of what has been read so far, if the tree [notes](Self::recording) it.
    pub fn record(&self) -> Option<Record> {
        self.notes.as_ref().map(|notes| notes.borrow().clone())
    }

    /// The bytes of a small file, [`FILE_BYTES_MAX`] of them at most.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, Unread> {
        let mut bytes = Vec::new();
        self.source
            .reader(path)?
            .take(FILE_BYTES_MAX)
            .read_to_end(&mut bytes)
            .map_err(|error| Unread::from(&error))?;
        self.note(path, || Entry::Bytes(bytes.clone()));
        Ok(bytes)
    }

    /// Whether it is the running machine, whose devices have nodes here.
    pub(crate) fn is_running(&self) -> bool {
        self.source.is_running()
    }

    /// The binary device object store of a device: the file in sysfs, or on the running machine, where its kernel has no
    /// such file, what the device itself answers. It is noted as if it had been the file.
    pub fn object_store(&self, path: &str, bus: u16, device: u16) -> Result<Vec<u8>, Unread> {
        let found = self.bytes(path);
        let Some(ask) = self.object_stores.filter(|_| found == Err(Unread::Absent) && self.is_running())
        else {
            return found;
        };
        let bytes = ask(bus, device)?;
        self.note(path, || Entry::Bytes(bytes.clone()));
        Ok(bytes)
    }

    /// A small file as text, without the white space around it. What is no UTF-8 is [legible](Legible) all the same.
    pub fn text(&self, path: &str) -> Result<String, Unread> {
        self.bytes(path).map(|bytes| Legible(&bytes).to_string().trim().to_owned())
    }

    /// A number in a file, decimal.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.text(path).ok()?.parse().ok()
    }

    /// A 16-bit number in a file, hexadecimal with or without `0x`.
    pub fn hexadecimal(&self, path: &str) -> Option<u16> {
        let text = self.text(path).ok()?;
        u16::from_str_radix(text.strip_prefix("0x").unwrap_or(&text), 16).ok()
    }

    /// The lines of a long file that `keep` wants, of its first [`LONG_FILE_BYTES_MAX`] bytes.
    pub fn lines(&self, path: &str, keep: impl Fn(&str) -> bool) -> Result<Vec<String>, Unread> {
        let selected = lines(&mut self.source.reader(path)?.take(LONG_FILE_BYTES_MAX), keep)?;
        Ok(self.noted(path, selected))
    }

    /// The same of a file whose lines go on after a backslash at their end, as those of modprobe do: they are joined, and
    /// noted as one.
    pub fn joined_lines(&self, path: &str, keep: impl Fn(&str) -> bool) -> Result<Vec<String>, Unread> {
        let (mut selected, mut begun) = (Vec::new(), String::new());
        each_line(&mut self.source.reader(path)?.take(LONG_FILE_BYTES_MAX), &mut |line| {
            let text = String::from_utf8_lossy(line);
            let text = text.strip_suffix('\n').unwrap_or(&text);
            // Of two, the first one takes the second for a letter.
            let backslashes = text.bytes().rev().take_while(|byte| *byte == b'\\').count();
            match text.strip_suffix('\\').filter(|_| backslashes % 2 == 1) {
                Some(part) => begun.push_str(part),
                None => selected.push(std::mem::take(&mut begun) + text.trim_end()),
            }
        })?;
        selected.push(begun);
        selected.retain(|line| keep(line));
        Ok(self.noted(path, selected))
    }

    /// The lines that `keep` wants of a file that is worth something as a whole only, as gzip packs it or as text, which is
    /// what a record has of it.
    ///
    /// # Errors
    /// [`Unread::Failed`] as well where it is cut short, damaged or larger than [`packed::TEXT_BYTES_MAX`].
    pub(crate) fn whole_lines(&self, path: &str, keep: impl Fn(&str) -> bool) -> Result<Vec<String>, Unread> {
        let selected = packed::lines(self.source.reader(path)?, keep)?;
        Ok(self.noted(path, selected))
    }

    /// Lines that were selected of a file, for the caller and for a record.
    fn noted(&self, path: &str, selected: Vec<String>) -> Vec<String> {
        if let Some(notes) = &self.notes {
            notes.borrow_mut().note_lines(flat("", path), &selected);
        }
        selected
    }

    /// All lines of a long file, of its first [`LONG_FILE_BYTES_MAX`] bytes, as they are: names of files in them need not be UTF-8.
    pub fn byte_lines(&self, path: &str) -> Result<Vec<Vec<u8>>, Unread> {
        let mut all = Vec::new();
        let mut keep = |line: &[u8]| all.push(line.strip_suffix(b"\n").unwrap_or(line).to_vec());
        each_line(&mut self.source.reader(path)?.take(LONG_FILE_BYTES_MAX), &mut keep)?;
        self.note(path, || Entry::Bytes(all.join(&b'\n')));
        Ok(all)
    }

    /// The records of `/dev/kmsg`, or the lines of a text in its place, that `keep` wants; the
    /// last [`LOG_LINES_MAX`] of them.
    ///
    /// # Errors
    /// [`Unread::Failed`] as well for what is no text: nothing would be found in it, and that would pass for a log without errors.
    pub fn log(&self, path: &str, keep: impl Fn(&str) -> bool) -> Result<LogText, Unread> {
        let text = match self.source.kernel_buffer(path)? {
            Some(mut file) => records(&mut file, &keep)?,
            None => text_of_log(self.source.reader(path)?, &keep)?,
        };
        let text = text.with_last_lines();
        self.note(path, || Entry::lines(&text.lines));
        Ok(text)
    }

    /// The names in a directory that `keep` wants, sorted; [`NAMES_MAX`] are looked at.
    pub fn names(&self, path: &str, keep: impl Fn(&str) -> bool) -> Vec<String> {
        let mut names = self.source.names(path, NAMES_MAX);
        names.retain(|name| keep(name));
        names.sort();
        self.note(path, || Entry::Directory);
        for name in &names {
            let child = format!("{path}/{name}");
            if self.source.is_directory(&child) {
                self.note(&child, || Entry::Directory);
            }
        }
        names
    }

    /// Where a link leads, as a path of this tree; `None` if it is none.
    pub fn link(&self, path: &str) -> Option<String> {
        let target = self.source.link(path)?;
        self.note(path, || Entry::Link(target.clone()));
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        Some(if target.starts_with('/') { flat("", &target) } else { flat(parent, &target) })
    }

    /// The last name of where a link leads: a driver, most of the time.
    pub fn link_name(&self, path: &str) -> Option<String> {
        let target = self.link(path)?;
        target.rsplit('/').next().map(str::to_owned)
    }

    /// Whether there is something, of any kind.
    pub fn exists(&self, path: &str) -> bool {
        let exists = self.source.exists(path);
        if exists && self.source.is_directory(path) {
            self.note(path, || Entry::Directory);
        }
        exists
    }

    /// The number of the block device whose node is there, as the kernel writes it: `8:17`. A record has no nodes.
    #[cfg(unix)]
    pub(crate) fn device_number(&self, path: &Path) -> Option<String> {
        self.source.device_number(path).map(|(major, minor)| format!("{major}:{minor}"))
    }

    fn note(&self, path: &str, entry: impl FnOnce() -> Entry) {
        if let Some(notes) = &self.notes {
            notes.borrow_mut().note(flat("", path), entry());
        }
    }
}

/// The lines of a log that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogText {
    /// The last of them, [`LOG_LINES_MAX`] at most.
    pub lines: Vec<String>,
    /// Lines in all that are not blank, whether they were asked for or not.
    pub lines_read: usize,
    /// Lines that were asked for and are not among the last.
    pub lines_left_out: usize,
}

impl LogText {
    /// Adds a line, if it is wanted.
    fn add(&mut self, line: &str, keep: &impl Fn(&str) -> bool) {
        self.lines_read += usize::from(!line.trim().is_empty());
        if keep(line) {
            self.lines.push(line.to_owned());
        }
    }

    fn with_last_lines(mut self) -> Self {
        let count = self.lines.len().saturating_sub(LOG_LINES_MAX);
        self.lines.drain(..count);
        self.lines_left_out += count;
        self
    }
}

/// The same as [`Tree::log`] of a file of this machine by its own name, which paths of a tree, being text, may not have.
///
/// # Errors
/// As there.
pub fn log_of(file: &Path, keep: impl Fn(&str) -> bool) -> Result<LogText, Unread> {
    let mut file = source::open_file(file)?;
    let text = if source::is_kernel_buffer(&file)? {
        records(&mut file, &keep)
    } else {
        text_of_log(BufReader::with_capacity(LOG_BUFFER_BYTES, file), &keep)
    };
    text.map(LogText::with_last_lines)
}

/// Bytes of a log that are read at once.
const LOG_BUFFER_BYTES: usize = 256 << 10;

/// The lines of a log that is a text, packed or not, without what pasting adds. A text is read to its end; of what is packed,
/// [`LONG_FILE_BYTES_MAX`] bytes are.
fn text_of_log(mut reader: impl BufRead, keep: impl Fn(&str) -> bool) -> Result<LogText, Unread> {
    let failed = |error: &io::Error| Unread::from(error);
    let documents = if archive::is_text(reader.fill_buf().map_err(|error| failed(&error))?) {
        vec![text::Document::read("log", &mut reader).map_err(|error| failed(&error))?]
    } else {
        let mut bytes = Vec::new();
        let read = reader.take(LONG_FILE_BYTES_MAX).read_to_end(&mut bytes);
        read.map_err(|error| failed(&error))?;
        archive::documents("log", &bytes).map_err(|_| Unread::Failed)?
    };
    if documents.is_empty() {
        return Err(Unread::Failed);
    }
    let mut selected = LogText::default();
    for document in &documents {
        text::lines(&document.text).iter().for_each(|line| selected.add(&line.text, &keep));
        // Lines that the text was read without are about something else, or too many.
        selected.lines_read = selected.lines_read.max(document.filled_lines);
        selected.lines_left_out += document.left_out.map_or(0, |lines| lines.count);
    }
    Ok(selected)
}

impl From<&io::Error> for Unread {
    fn from(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Absent,
            io::ErrorKind::PermissionDenied => Self::Refused,
            _ => Self::Failed,
        }
    }
}

/// The lines that `keep` wants.
fn lines(reader: &mut impl BufRead, keep: impl Fn(&str) -> bool) -> Result<Vec<String>, Unread> {
    let mut selected = Vec::new();
    each_line(reader, &mut |line| {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if keep(text) {
            selected.push(text.to_owned());
        }
    })?;
    Ok(selected)
}

/// Hands out line for line. What fails at once fails; what ends early has lines until then.
fn each_line(reader: &mut impl BufRead, take: &mut dyn FnMut(&[u8])) -> Result<(), Unread> {
    let (mut line, mut is_begun) = (Vec::new(), false);
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => is_begun = true,
            // A directory opens, and fails here.
            Err(error) if !is_begun => return Err(Unread::from(&error)),
            Err(_) => break,
        }
        take(&line);
    }
    Ok(())
}

/// One read of `/dev/kmsg` is one record; a record that was overwritten meanwhile is an error and no end.
fn records(reader: &mut impl Read, keep: &impl Fn(&str) -> bool) -> Result<LogText, Unread> {
    let (mut selected, mut is_begun) = (LogText::default(), false);
    let mut record = [0; RECORD_BYTES_MAX];
    for _ in 0..LOG_RECORDS_MAX {
        match reader.read(&mut record) {
            Ok(0) => break,
            Ok(len) => {
                let text = String::from_utf8_lossy(record.get(..len).unwrap_or_default());
                // "priority,sequence,microseconds,flags;text", then lines of properties.
                let text = text.split_once(';').map_or(&*text, |(_, text)| text);
                // Some messages end with a blank, which a recorded tree and a text do not keep.
                selected.add(text.lines().next().unwrap_or_default().trim_end(), keep);
                is_begun = true;
            }
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => is_begun = true,
            // The last record was read; a buffer that was cleared has none.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if !is_begun => return Err(Unread::from(&error)),
            Err(_) => break,
        }
    }
    Ok(selected)
}

/// `relative` seen from `base`, with `.` and `..` taken out; it ends at the root, not above it.
fn flat(base: &str, relative: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in base.split('/').chain(relative.split('/')) {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// Bytes of a small file; attributes of sysfs are a page at most, descriptors of a device 64 KiB.
pub const FILE_BYTES_MAX: u64 = 64 << 10;

/// Bytes of a file of which lines are looked for, such as the index of all modules.
pub const LONG_FILE_BYTES_MAX: u64 = 16 << 20;

/// Names of a directory.
pub const NAMES_MAX: usize = 4096;

/// Lines of the kernel's log that are selected.
pub const LOG_LINES_MAX: usize = 4096;

/// Records of the kernel's log that are looked at; its buffer holds fewer.
const LOG_RECORDS_MAX: usize = 1 << 20;

/// The kernel's own limit of one record (Documentation/ABI/testing/dev-kmsg).
const RECORD_BYTES_MAX: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    #[test]
    fn lines_that_go_on_are_joined_and_noted_as_one() {
        let record = "/a = one \\\\\\n  two\\nthree\\\\\\\\\\nfour \\nfive\\\\\n".parse().expect("a record");
        let tree = Tree::of(record).recording();
        let lines = tree.joined_lines("/a", |line| !line.is_empty());
        let joined: Vec<String> = ["one   two", "three\\\\", "four", "five"].map(str::to_owned).into();
        assert_eq!(lines, Ok(joined.clone()));
        let again = Tree::of(tree.record().expect("it was noted"));
        let noted = again.joined_lines("/a", |line| line.starts_with("one") || line == "four");
        assert_eq!(noted, Ok(vec![joined[0].clone(), joined[2].clone()]));
    }

    fn place() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary directory")
    }

    #[test]
    fn a_path_does_not_leave_the_root() {
        assert_eq!(flat("/sys/bus/usb", "../../../devices/x"), "/devices/x");
        assert_eq!(flat("", "/../../etc/./passwd"), "/etc/passwd");
        let place = place();
        fs::write(place.path().join("inside"), "1").expect("written");
        assert_eq!(Tree::at(place.path()).text("/../../inside"), Ok("1".into()));
    }

    #[test]
    fn absent_refused_and_broken_files_differ() {
        let place = place();
        symlink("loop", place.path().join("loop")).expect("linked");
        let tree = Tree::at(place.path());
        assert_eq!(tree.text("/nothing"), Err(Unread::Absent));
        assert_eq!(tree.text("/loop"), Err(Unread::Failed));
        assert_eq!(tree.text("/"), Err(Unread::Failed));
        assert_eq!(tree.lines("/", |_| true), Err(Unread::Failed));
    }

    #[test]
    fn a_huge_file_is_read_to_the_limit() {
        let place = place();
        File::create(place.path().join("huge")).and_then(|file| file.set_len(1 << 40)).expect("made");
        let tree = Tree::at(place.path());
        assert_eq!(tree.bytes("/huge").map(|bytes| bytes.len() as u64), Ok(FILE_BYTES_MAX));
        assert_eq!(tree.lines("/huge", |line| !line.starts_with('\0')), Ok(vec![]));
    }

    #[test]
    fn a_pipe_without_writer_does_not_block() {
        let place = place();
        let path = place.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a pipe");
        assert_eq!(Tree::at(place.path()).text("/pipe"), Ok(String::new()));
    }

    #[test]
    fn what_is_no_log_is_none_without_lines() {
        let place = place();
        let write = |name: &str, bytes: &[u8]| fs::write(place.path().join(name), bytes).expect("written");
        write("binary", b"\x7fELF\x02\x01\x01\0\0\nusb\n");
        write("text", b"usb 1\nother\nusb 2\n");
        write("empty", b"");
        let log = |path: &str| {
            Tree::at(place.path()).log(path, |line| line.starts_with("usb")).map(|text| text.lines)
        };
        assert_eq!(log("/binary"), Err(Unread::Failed));
        assert_eq!(log("/"), Err(Unread::Failed));
        assert_eq!(log("/text"), Ok(vec!["usb 1".into(), "usb 2".into()]));
        assert_eq!(log("/empty"), Ok(vec![]));
        assert_eq!(Tree::running().log("/dev/zero", |_| true), Err(Unread::Failed));
    }

    /// Answers reads one after another, as `/dev/kmsg` does.
    struct Buffer(Vec<Result<&'static str, io::ErrorKind>>);

    impl Read for Buffer {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let text = self.0.remove(0).map_err(io::Error::from)?;
            into[..text.len()].copy_from_slice(text.as_bytes());
            Ok(text.len())
        }
    }

    #[test]
    fn records_end_where_there_are_no_more_and_fail_where_there_are_none() {
        use io::ErrorKind::{BrokenPipe, IsADirectory, Other, PermissionDenied, WouldBlock};
        let read = |answers: Vec<_>| records(&mut Buffer(answers), &|_| true).map(|text| text.lines);
        let all = vec![Ok("6,1,0,-;one \n KEY=x\n"), Err(BrokenPipe), Ok("6,3,9,-;two\n"), Err(WouldBlock)];
        assert_eq!(read(all), Ok(vec!["one".into(), "two".into()]));
        assert_eq!(read(vec![Err(WouldBlock)]), Ok(vec![]));
        assert_eq!(read(vec![Err(PermissionDenied)]), Err(Unread::Refused));
        assert_eq!(read(vec![Err(IsADirectory)]), Err(Unread::Failed));
        assert_eq!(read(vec![Ok("6,1,0,-;one\n"), Err(Other)]), Ok(vec!["one".into()]));
    }

    #[test]
    fn a_link_is_followed_by_its_text() {
        let place = place();
        fs::create_dir_all(place.path().join("bus/usb")).expect("made");
        symlink("../../devices/pci/usb1", place.path().join("bus/usb/usb1")).expect("linked");
        let tree = Tree::at(place.path());
        assert_eq!(tree.link("/bus/usb/usb1"), Some("/devices/pci/usb1".into()));
        assert_eq!(tree.link_name("/bus/usb/usb1"), Some("usb1".into()));
        assert_eq!(tree.link("/bus"), None);
    }

    #[test]
    fn numbers_are_read_as_sysfs_writes_them() {
        let place = place();
        fs::write(place.path().join("a"), " 30\n").expect("written");
        fs::write(place.path().join("b"), "174c\n").expect("written");
        fs::write(place.path().join("c"), "0x1b21\n").expect("written");
        let tree = Tree::at(place.path());
        assert_eq!((tree.number("/a"), tree.number("/b")), (Some(30), None));
        assert_eq!((tree.hexadecimal("/b"), tree.hexadecimal("/c")), (Some(0x174c), Some(0x1b21)));
    }
}
