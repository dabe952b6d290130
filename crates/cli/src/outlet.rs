//! Files that a command writes: an older one of the same kind is replaced, and never something else.
//!
//! What a name leads to is looked at before anything runs: a page does not take the place of a file of runs, a capture not that of a
//! disk image, and no device is written that was not named to be. Pipes and terminals take whatever comes. Left out: files that are
//! added to, which know their own kind ([`crate::save`], sweeps).
//!
//! Always true: a file is as it was, or is whole.

use crate::called;
use crate::failure::Failure;
use crate::harmless::shown;
use atomic_file::AtomicFile;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An HTML file with charts.
    Page,
    /// A diagram as SVG.
    Picture,
    /// A capture of transfers or packets.
    Capture,
    /// Records of programs: JSON, one or one to a line.
    Records,
    /// A table with commas.
    Table,
    /// What was read of a machine.
    Machine,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Picture => "SVG picture",
            Self::Capture => "capture",
            Self::Records => "file of records",
            Self::Table => "table",
            Self::Machine => "record of a machine",
        }
    }

    /// Whether a file that begins so is one.
    fn begins(self, bytes: &[u8]) -> bool {
        let starts = |all: &[&[u8]]| all.iter().any(|start| bytes.starts_with(start));
        match self {
            Self::Page => starts(&[b"<!doctype html>"]),
            Self::Picture => starts(&[b"<svg", b"<?xml"]),
            // pcapng, and pcap in both byte orders, of microseconds and nanoseconds.
            Self::Capture => starts(&[
                b"\x0a\x0d\x0d\x0a",
                b"\xa1\xb2\xc3\xd4",
                b"\xd4\xc3\xb2\xa1",
                b"\xa1\xb2\x3c\x4d",
                b"\x4d\x3c\xb2\xa1",
            ]),
            Self::Records => starts(&[b"{"]),
            Self::Machine => starts(&[b"# A tree of uaskit"]),
            Self::Table => std::str::from_utf8(bytes.split(|byte| *byte == b'\n').next().unwrap_or_default())
                .is_ok_and(|line| line.contains(',') && !line.contains(char::is_control)),
        }
    }
}

/// Bytes by which a kind is known; the first line of a table has more.
const LOOK_AT_BYTES: u64 = 4096;

/// Looks whether a file can be written: its folder is there, and what is there of that name may be replaced.
///
/// # Errors
/// If not.
pub(crate) fn is_free(file: &Path, kind: Kind) -> Result<(), Failure> {
    let told = || format!("{} cannot be written", shown(file));
    if file.as_os_str() == "-" {
        return Err(Failure::usage(told())
            .because("- is no name of a file here")
            .try_this("Name a file, ./- if it is to be called so, or /dev/stdout."));
    }
    let Ok(there) = fs::metadata(file) else { return has_folder(file) };
    if there.is_dir() {
        return Err(Failure::usage(told()).because("it is a folder").try_this("Name a file in it."));
    }
    #[cfg(unix)]
    if std::os::unix::fs::FileTypeExt::is_block_device(&there.file_type()) {
        return Err(Failure::refused(told()).because("it is a block device").try_this("Name a file."));
    }
    if !there.is_file() {
        return Ok(());
    }
    let mut begins = Vec::new();
    let read = File::open(file).and_then(|open| open.take(LOOK_AT_BYTES).read_to_end(&mut begins));
    read.map_err(|error| Failure::new(told()).because(error))?;
    if begins.is_empty() || kind.begins(&begins) {
        return Ok(());
    }
    Err(Failure::refused(told())
        .because(format!("something else is there already, which is no {}", kind.name()))
        .try_this("Name another file, or move that one away."))
}

fn has_folder(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => Err(Failure::usage(format!("{} cannot be written", shown(file)))
            .because("its folder does not exist")
            .try_this(format!("Make it with: {}", called::making(folder)))),
        None => Ok(()),
    }
}

/// Looks whether files that one command writes are different ones.
///
/// # Errors
/// If two of them are one, with the options that name it.
pub(crate) fn are_apart(files: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let named = files.iter().filter_map(|(option, file)| Some((option, identity((*file)?))));
    let mut before: Vec<(&&str, PathBuf)> = Vec::new();
    for (option, file) in named {
        if let Some((other, _)) = before.iter().find(|(_, known)| *known == file) {
            return Err(Failure::usage(format!("{other} and {option} name one file, {}", shown(file)))
                .try_this("Name two."));
        }
        before.push((option, file));
    }
    Ok(())
}

/// The file behind a name, links followed as far as they lead somewhere.
fn identity(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = || Some(folder.canonicalize().ok()?.join(file.file_name()?));
    file.canonicalize().ok().or_else(beside).unwrap_or_else(|| file.to_owned())
}

/// Writes all of a file, by way of another ([`Beside`]).
///
/// # Errors
/// If it is not free, or cannot be written; an older file is as it was then.
pub(crate) fn write(file: &Path, kind: Kind, bytes: &[u8]) -> Result<(), Failure> {
    is_free(file, kind)?;
    put(file, bytes)
        .map_err(|error| Failure::new(format!("{} cannot be written", shown(file))).because(error))
}

fn put(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let (beside, mut out) = Beside::create(file)?;
    out.write_all(bytes)?;
    beside.take_name()
}

/// A file that replaces an older one when it is complete ([`AtomicFile`]); until then the older one
/// is unchanged.
#[derive(Debug)]
pub(crate) struct Beside {
    /// `None` if the file is written where it is to be.
    replacement: Option<AtomicFile>,
}

impl Beside {
    /// Creates a file that is to replace `file`. What is not a regular file is written directly,
    /// and so is a file in a directory that takes no other.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn create(file: &Path) -> io::Result<(Self, File)> {
        // The user has named this path: a link stays one, and what it leads to is replaced.
        let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let there = fs::metadata(&target).ok();
        let directly = || Ok((Self { replacement: None }, File::create(&target)?));
        if target.file_name().is_none() || there.as_ref().is_some_and(|there| !there.is_file()) {
            return directly();
        }
        if there.is_some() {
            // Who may not write the older one may not replace it either.
            File::options().write(true).open(&target)?;
        }
        let replacement = match AtomicFile::create(&target, 0o666) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return directly(),
            replacement => replacement?,
        };
        if let Some(there) = there {
            // Who may read the older one may read this one.
            replacement.file().set_permissions(there.permissions())?;
        }
        let out = replacement.file().try_clone()?;
        Ok((Self { replacement: Some(replacement) }, out))
    }

    /// Replaces the older file: the new one is complete.
    ///
    /// # Errors
    /// If that fails. The older file is unchanged then.
    pub(crate) fn take_name(self) -> io::Result<()> {
        self.replacement.map_or(Ok(()), AtomicFile::commit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("uaskit-outlet-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("a folder can be made");
            Self(folder)
        }

        fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
            let file = self.0.join(name);
            fs::write(&file, bytes).expect("a file can be written");
            file
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_something_else_stays() {
        let place = Place::new("else");
        let runs = place.file("runs", b"SQLite format 3\0");
        for kind in [Kind::Page, Kind::Picture, Kind::Capture, Kind::Records, Kind::Table] {
            let told = write(&runs, kind, b"new").expect_err("it is refused").to_string();
            assert!(told.contains("something else is there already, which is no "), "{told}");
        }
        assert_eq!(fs::read(&runs).expect("is there"), b"SQLite format 3\0");
        // No file of this name is left behind by who meant standard output.
        let told = is_free(Path::new("-"), Kind::Page).expect_err("it is refused").to_string();
        assert!(told.contains("- cannot be written"), "{told}");
    }

    #[test]
    fn an_older_one_of_the_kind_is_replaced_whole() {
        let place = Place::new("older");
        let older: [(Kind, &[u8]); 6] = [
            (Kind::Page, b"<!doctype html>\n<html>"),
            (Kind::Picture, b"<svg xmlns=\"\">"),
            (Kind::Capture, b"\x0a\x0d\x0d\x0a\x1c"),
            (Kind::Records, b"{\"a\": 1}\n"),
            (Kind::Table, b"a,b\n1,2\n"),
            (Kind::Page, b""),
        ];
        for (kind, bytes) in older {
            let file = place.file("older", bytes);
            write(&file, kind, b"new").expect("it is replaced");
            assert_eq!(fs::read(&file).expect("is there"), b"new");
        }
        assert_eq!(fs::read_dir(&place.0).expect("a folder").count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_folder_that_is_not_there_is_told_with_how_to_make_it() {
        let place = Place::new("folder");
        let told = is_free(&place.0.join("no/p.html"), Kind::Page).expect_err("no folder").to_string();
        assert!(told.contains("its folder does not exist") && told.contains("mkdir -p"), "{told}");
        let told = is_free(&place.0, Kind::Page).expect_err("a folder").to_string();
        assert!(told.contains("it is a folder"), "{told}");
    }

    #[test]
    fn one_file_is_not_named_twice() {
        let place = Place::new("twice");
        let (one, other) =
            (place.0.join("x"), place.0.join("../").join(place.0.file_name().expect("a name")).join("x"));
        let told = are_apart(&[("--report", Some(&one)), ("--save", None), ("--capture", Some(&other))]);
        let told = told.expect_err("they are one").to_string();
        assert!(told.starts_with("--report and --capture name one file, "), "{told}");
        assert!(are_apart(&[("--report", Some(&one)), ("--capture", Some(&place.0.join("y")))]).is_ok());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&one, place.0.join("link")).expect("a link can be made");
            fs::write(&one, "").expect("is written");
            let link = place.0.join("link");
            assert!(are_apart(&[("--report", Some(&one)), ("--capture", Some(&link))]).is_err());
            write(&link, Kind::Page, b"new").expect("it is written");
            assert_eq!((fs::read(&one).expect("is there"), link.is_symlink()), (b"new".to_vec(), true));
        }
    }
}
