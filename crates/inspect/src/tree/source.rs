//! Where the files of a tree are: in a directory, or in a record in memory.
//!
//! Both answer alike. In a record, a link is followed as the system would, [`LINKS_MAX`] of them at most, and a
//! directory is what has something below it.

use super::record::{Entry, Record};
use super::{Unread, flat};
use crate::platform;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use wire::Legible;

/// Links on the way to one file; Linux follows as many.
const LINKS_MAX: usize = 40;

#[derive(Debug)]
pub(super) enum Source {
    Directory(PathBuf),
    Record(Record),
}

impl Source {
    /// The bytes of a file.
    pub(super) fn reader(&self, path: &str) -> Result<Box<dyn BufRead + '_>, Unread> {
        match self {
            Self::Directory(root) => Ok(Box::new(BufReader::new(open(root, path)?))),
            Self::Record(record) => match record.entry(&resolved(record, path, Last::Followed)?) {
                Some(Entry::Bytes(bytes)) => Ok(Box::new(bytes.as_slice())),
                Some(Entry::Link(_)) => Err(Unread::Failed),
                Some(Entry::Directory) => Err(Unread::Failed),
                None if record.has_below(&resolved(record, path, Last::Followed)?) => Err(Unread::Failed),
                None => Err(Unread::Absent),
            },
        }
    }

    /// The kernel's buffer of records, where the path leads to it and to nothing else.
    pub(super) fn kernel_buffer(&self, path: &str) -> Result<Option<File>, Unread> {
        let Self::Directory(root) = self else { return Ok(None) };
        let file = open(root, path)?;
        Ok(is_kernel_buffer(&file)?.then_some(file))
    }

    /// Names in a directory, `max` at most. One that is no UTF-8 is returned as text, so that it is listed; nothing is found
    /// below that.
    pub(super) fn names(&self, path: &str, max: usize) -> Vec<String> {
        match self {
            Self::Directory(root) => {
                let Ok(entries) = fs::read_dir(inside(root, path)) else { return Vec::new() };
                entries.take(max).filter_map(|entry| Some(text(&entry.ok()?.file_name()))).collect()
            }
            Self::Record(record) => {
                let Ok(path) = resolved(record, path, Last::Followed) else { return Vec::new() };
                record.names(&path).take(max).map(str::to_owned).collect()
            }
        }
    }

    /// The text of a link.
    pub(super) fn link(&self, path: &str) -> Option<String> {
        match self {
            Self::Directory(root) => {
                fs::read_link(inside(root, path)).ok().map(|target| text(target.as_os_str()))
            }
            Self::Record(record) => match record.entry(&resolved(record, path, Last::AsIs).ok()?)? {
                Entry::Link(target) => Some(target.clone()),
                Entry::Bytes(_) | Entry::Directory => None,
            },
        }
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        match self {
            Self::Directory(root) => inside(root, path).exists(),
            Self::Record(record) => resolved(record, path, Last::Followed)
                .is_ok_and(|path| record.entry(&path).is_some() || record.has_below(&path)),
        }
    }

    /// Whether it is a directory, and no link to one.
    pub(super) fn is_directory(&self, path: &str) -> bool {
        match self {
            Self::Directory(root) => {
                let place = inside(root, path);
                place.is_dir() && !place.is_symlink()
            }
            Self::Record(record) => resolved(record, path, Last::AsIs).is_ok_and(|path| {
                record
                    .entry(&path)
                    .map_or_else(|| record.has_below(&path), |entry| *entry == Entry::Directory)
            }),
        }
    }

    /// The number of a block device by its node; its path, being the kernel's, has no `..` and need not be UTF-8.
    #[cfg(unix)]
    pub(super) fn device_number(&self, path: &Path) -> Option<(u32, u32)> {
        let Self::Directory(root) = self else { return None };
        platform::block_device_number(&root.join(path.strip_prefix("/").ok()?))
    }

    /// Whether it is the running machine.
    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Directory(root) if root == Path::new("/"))
    }
}

/// Whether the last name of a path is followed if it is a link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Followed,
    AsIs,
}

/// The path without links on its way.
fn resolved(record: &Record, path: &str, last: Last) -> Result<String, Unread> {
    let mut path = flat("", path);
    for _ in 0..=LINKS_MAX {
        let Some(next) = without_first_link(record, &path, last) else { return Ok(path) };
        path = next;
    }
    Err(Unread::Failed)
}

/// The path with its first link replaced by where that leads; `None` if it has none.
fn without_first_link(record: &Record, path: &str, last: Last) -> Option<String> {
    let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
    for end in ends {
        let (head, tail) = path.split_at(end);
        if let Some(Entry::Link(target)) = record.entry(head)
            && (last == Last::Followed || !tail.is_empty())
        {
            let parent = head.rsplit_once('/').map_or("", |(parent, _)| parent);
            let base = if target.starts_with('/') { "" } else { parent };
            return Some(flat(&flat(base, target), tail));
        }
    }
    None
}

fn open(root: &Path, path: &str) -> Result<File, Unread> {
    open_file(&inside(root, path))
}

/// Opens without waiting for the other end of a pipe.
pub(super) fn open_file(path: &Path) -> Result<File, Unread> {
    platform::open_without_waiting(path).map_err(|error| Unread::from(&error))
}

/// Whether it is the kernel's buffer of records.
pub(super) fn is_kernel_buffer(file: &File) -> Result<bool, Unread> {
    platform::is_kernel_buffer(file).map_err(|error| Unread::from(&error))
}

/// A name as text.
fn text(name: &OsStr) -> String {
    Legible(name.as_encoded_bytes()).to_string()
}

fn inside(root: &Path, path: &str) -> PathBuf {
    root.join(Path::new(flat("", path).trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::ffi::OsStrExt;

    const RECORD: &str = "\
/a/b/file = 1
/a/empty /
/to-b -> a/b
/up/to-file -> ../to-b/file
/round -> round
/out -> /../../a
";

    fn both() -> (Source, Source, tempfile::TempDir) {
        let place = tempfile::tempdir().expect("a temporary directory");
        super::super::expand(RECORD, place.path()).expect("a tree");
        let record = RECORD.parse().expect("a record");
        (Source::Record(record), Source::Directory(place.path().to_owned()), place)
    }

    fn text_of(source: &Source, path: &str) -> Result<String, Unread> {
        let mut text = String::new();
        source.reader(path)?.read_to_string(&mut text).map_err(|error| Unread::from(&error))?;
        Ok(text)
    }

    #[test]
    fn a_record_answers_as_its_files_would() {
        let (record, files, _place) = both();
        for path in ["/a/b/file", "/to-b/file", "/up/to-file", "/up/../a/b/file"] {
            assert_eq!(text_of(&record, path), Ok("1\n".into()), "{path}");
            assert_eq!(text_of(&files, path), Ok("1\n".into()), "{path}");
        }
        for path in ["/", "/a", "/a/b", "/a/empty", "/to-b", "/a/b/file", "/nothing", "/round", "/a/b/file/x"]
        {
            assert_eq!(record.exists(path), files.exists(path), "{path}");
            assert_eq!(record.is_directory(path), files.is_directory(path), "{path}");
            assert_eq!(record.link(path), files.link(path), "{path}");
            let mut names = files.names(path, 10);
            names.sort();
            assert_eq!(record.names(path, 10), names, "{path}");
            assert_eq!(text_of(&record, path), text_of(&files, path), "{path}");
        }
    }

    #[test]
    fn names_and_links_that_are_not_utf_8_are_reported() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let name = OsStr::from_bytes(b"a\\\xff");
        fs::write(place.path().join(name), "1").expect("written");
        std::os::unix::fs::symlink(name, place.path().join("link")).expect("linked");
        let files = Source::Directory(place.path().to_owned());
        let mut names = files.names("/", 10);
        names.sort();
        assert_eq!(names, ["a\\\\\\xff", "link"]);
        assert_eq!(files.link("/link"), Some("a\\\\\\xff".into()));
        assert_eq!(text_of(&files, "/link"), Ok("1".into()));
    }

    #[test]
    fn in_a_record_no_link_leads_out() {
        let (record, ..) = both();
        assert_eq!(text_of(&record, "/out/b/file"), Ok("1\n".into()));
    }
}
