//! Files that a command writes: an older file of the same kind is replaced, any other file never.
//!
//! Every command checks its output files before it measures or simulates anything: the folder exists and is writable, and what has the
//! name already is an older output of the same kind. A page does not replace a file of runs, a table not the setup that it is made of, a
//! capture not a disk image, and no block device is written. Pipes and terminals take any kind. Left out: files that are appended to,
//! which check their own contents ([`crate::save`], sweeps) and use [`check_writable`].
//!
//! Invariant: after an error the older file is unchanged; otherwise the new one is complete.

use crate::command_line;
use crate::failure::Failure;
use crate::sanitize::shown;
use atomic_file::AtomicFile;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The kind of an output file.
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
    /// A record of a machine.
    Machine,
    /// A man page of this program.
    ManPage,
    /// Results of tests as JUnit XML.
    TestResults,
    /// A pass over all blocks that is continued later.
    SavedRun,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Page => "an HTML page of uaskit",
            Self::Picture => "an SVG picture",
            Self::Capture => "a capture",
            Self::Records => "a file of records",
            Self::Table => "a table",
            Self::Machine => "a record of a machine",
            Self::ManPage => "a man page of uaskit",
            Self::TestResults => "a file of test results of uaskit",
            Self::SavedRun => "a run of uaskit check",
        }
    }

    /// Whether a file that begins with these bytes is of this kind.
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
            // Other JSON and other tables exist; these are the first field and the first column that this program writes.
            Self::Records => starts(&[RECORDS_BEGIN]),
            Self::Table => starts(&[TABLE_BEGIN]),
            Self::Machine => starts(&[b"# A tree of uaskit"]),
            Self::TestResults => {
                bytes.windows(TEST_RESULTS_HAVE.len()).any(|window| window == TEST_RESULTS_HAVE)
            }
            Self::SavedRun => bytes.windows(SAVED_RUN_HAS.len()).any(|window| window == SAVED_RUN_HAS),
            Self::ManPage => bytes.windows(MAN_PAGE_HAS.len()).any(|window| window == MAN_PAGE_HAS),
        }
    }
}

/// How the head of a file of records begins.
const RECORDS_BEGIN: &[u8] = b"{\"plan\":";

/// How the head of a table begins.
const TABLE_BEGIN: &[u8] = b"point,";

/// Text in the title line of a man page.
const MAN_PAGE_HAS: &[u8] = b".TH uaskit";

/// The beginning of the root element of test results.
const TEST_RESULTS_HAVE: &[u8] = b"<testsuites name=\"uaskit check\"";

/// The first field of a run of `check`.
const SAVED_RUN_HAS: &[u8] = b"\"check_run\"";

/// Bytes by which a kind is recognised.
const LOOK_AT_BYTES: u64 = 4096;

/// Checks that a file can be written: its folder exists and is writable, and what has its name already may be replaced.
///
/// # Errors
/// If not.
pub(crate) fn check_replaceable(file: &Path, kind: Kind) -> Result<(), Failure> {
    check_writable(file)?;
    if !fs::metadata(file).is_ok_and(|there| there.is_file()) {
        return Ok(());
    }
    let mut begins = Vec::new();
    let read = File::open(file).and_then(|open| open.take(LOOK_AT_BYTES).read_to_end(&mut begins));
    read.map_err(|error| unwritable(file, &error))?;
    if begins.is_empty() || kind.begins(&begins) {
        return Ok(());
    }
    Err(Failure::refused(cannot_write(file))
        .because(format!("it exists and is not {}", kind.name()))
        .try_this("Name another file, or move this one."))
}

/// Checks that a file can be created or opened for writing, whatever is in it, and leaves everything as it is.
///
/// # Errors
/// If not, or if the name is `-` or a block device.
pub(crate) fn check_writable(file: &Path) -> Result<(), Failure> {
    if file.as_os_str() == "-" {
        return Err(Failure::usage(cannot_write(file))
            .because("this option does not accept - for standard output")
            .try_this("Name a file (./- for a file of that name) or /dev/stdout."));
    }
    let Ok(there) = fs::metadata(file) else {
        check_parent(file)?;
        return Replacement::create(file).map(drop).map_err(|error| unwritable(file, &error));
    };
    if there.is_dir() {
        return Err(Failure::usage(cannot_write(file))
            .because("it is a folder")
            .try_this("Name a file in it."));
    }
    #[cfg(unix)]
    if std::os::unix::fs::FileTypeExt::is_block_device(&there.file_type()) {
        return Err(Failure::refused(cannot_write(file))
            .because("it is a block device")
            .try_this("Name a file."));
    }
    // A pipe without a reader would block here.
    if !there.is_file() {
        return Ok(());
    }
    File::options().write(true).open(file).map(drop).map_err(|error| unwritable(file, &error))
}

fn cannot_write(file: &Path) -> String {
    format!("cannot write {}", shown(file))
}

/// Why the system refuses to write a file, and what helps.
pub(crate) fn unwritable(file: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(cannot_write(file)).because(error);
    match error.kind() {
        ErrorKind::PermissionDenied => {
            failure.try_this("Name a file in a folder with write permission, such as your home folder.")
        }
        ErrorKind::ReadOnlyFilesystem => failure.try_this("Name a file on a writable file system."),
        // The folder was found before: its file system creates no files there, as /proc does not.
        ErrorKind::NotFound => failure.try_this("Name a file in a folder that accepts new files."),
        ErrorKind::StorageFull => failure.try_this("Free some space, or name a file on another file system."),
        _ => failure,
    }
}

fn check_parent(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), |folder| check_folder(folder, || cannot_write(file)))
}

/// Checks that a folder exists; `what` is what fails without it.
///
/// # Errors
/// If not.
pub(crate) fn check_folder(folder: &Path, what: impl Fn() -> String) -> Result<(), Failure> {
    match fs::metadata(folder) {
        Ok(there) if there.is_dir() => Ok(()),
        Ok(_) => Err(Failure::usage(what()).because(format!("{} is not a folder", shown(folder)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Failure::usage(what())
            .because(format!("its folder {} does not exist", shown(folder)))
            .try_this(format!("Create it: {}", command_line::mkdir(folder)))),
        Err(error) => Err(Failure::new(what()).because(error)),
    }
}

/// Checks that the files that one command writes are different ones.
///
/// # Errors
/// If two of them are one, with the options that name it.
pub(crate) fn check_distinct(files: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let named = files.iter().filter_map(|(option, file)| Some((option, identity((*file)?))));
    let mut before: Vec<(&&str, PathBuf)> = Vec::new();
    for (option, file) in named {
        if let Some((other, _)) = before.iter().find(|(_, known)| *known == file) {
            return Err(Failure::usage(format!("{other} and {option} name the same file, {}", shown(file)))
                .try_this("Name two different files."));
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

/// Writes all of a file, by way of another ([`Replacement`]).
///
/// # Errors
/// If it is not free, or cannot be written; an older file is as it was then.
pub(crate) fn write(file: &Path, kind: Kind, bytes: &[u8]) -> Result<(), Failure> {
    check_replaceable(file, kind)?;
    put(file, bytes).map_err(|error| unwritable(file, &error))
}

fn put(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let (beside, mut out) = Replacement::create(file)?;
    out.write_all(bytes)?;
    beside.commit()
}

/// A file that replaces an older one when it is complete ([`AtomicFile`]); until then the older one
/// is unchanged.
#[derive(Debug)]
pub(crate) struct Replacement {
    /// `None` if the file is written where it is to be.
    replacement: Option<AtomicFile>,
}

impl Replacement {
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
    pub(crate) fn commit(self) -> io::Result<()> {
        self.replacement.map_or(Ok(()), AtomicFile::commit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let folder =
                std::env::temp_dir().join(format!("uaskit-output-file-{name}-{}", std::process::id()));
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

    const KINDS: [Kind; 7] =
        [Kind::Page, Kind::Picture, Kind::Capture, Kind::Records, Kind::Table, Kind::Machine, Kind::ManPage];

    #[test]
    fn a_file_of_another_kind_is_never_replaced() {
        let place = Place::new("else");
        let foreign: [&[u8]; 6] = [
            b"SQLite format 3\0",
            &[0; 4096],
            b"# A setup, with its parts\ntitle = \"mine\"\n",
            b"{\"name\": \"package\"}\n",
            b"name,price\nbridge,12\n",
            b".TH LS 1\n",
        ];
        for bytes in foreign {
            let file = place.file("foreign", bytes);
            for kind in KINDS {
                let failure = write(&file, kind, b"new").expect_err("it is refused");
                assert_eq!(failure.exit_code(), std::process::ExitCode::from(3));
                let refusal = failure.to_string();
                assert!(refusal.contains("it exists and is not a"), "{refusal}");
            }
            assert_eq!(fs::read(&file).expect("is there"), bytes);
        }
        // A user who means standard output must not get a file of this name.
        let refusal = check_replaceable(Path::new("-"), Kind::Page).expect_err("it is refused").to_string();
        assert!(refusal.contains("cannot write -"), "{refusal}");
    }

    #[test]
    fn an_older_file_of_the_same_kind_is_replaced_whole() {
        let place = Place::new("older");
        let older: [(Kind, &[u8]); 8] = [
            (Kind::Page, b"<!doctype html>\n<html>"),
            (Kind::Picture, b"<svg xmlns=\"\">"),
            (Kind::Capture, b"\x0a\x0d\x0d\x0a\x1c"),
            (Kind::Records, b"{\"plan\":\"00ff\"}\n"),
            (Kind::Table, b"point,variant\n1,2\n"),
            (Kind::Machine, b"# A tree of uaskit\n"),
            (Kind::ManPage, b".ie \\n(.g .ds Aq \\(aq\n.TH uaskit-serve 1\n"),
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
    fn a_missing_folder_is_refused_with_the_command_that_creates_it() {
        let place = Place::new("folder");
        let refusal =
            check_replaceable(&place.0.join("no/p.html"), Kind::Page).expect_err("no folder").to_string();
        assert!(refusal.contains("does not exist") && refusal.contains("mkdir -p"), "{refusal}");
        let refusal = check_replaceable(&place.0, Kind::Page).expect_err("a folder").to_string();
        assert!(refusal.contains("it is a folder"), "{refusal}");
        let file = place.file("file", b"");
        let refusal = check_replaceable(&file.join("p.html"), Kind::Page).expect_err("no folder").to_string();
        assert!(refusal.contains("is not a folder") && !refusal.contains("mkdir"), "{refusal}");
    }

    #[test]
    fn a_folder_that_takes_no_file_is_refused_before_anything_is_written() {
        // Root may write anywhere but here.
        let refusal =
            check_replaceable(Path::new("/proc/self/p.html"), Kind::Page).expect_err("not writable");
        let refusal = refusal.to_string();
        assert!(refusal.starts_with("cannot write /proc/self/p.html: "), "{refusal}");
        assert!(refusal.ends_with("Name a file in a folder that accepts new files."), "{refusal}");
        let place = Place::new("check");
        check_replaceable(&place.0.join("p.html"), Kind::Page).expect("it can be written");
        let older = place.file("older.html", b"<!doctype html>");
        check_replaceable(&older, Kind::Page).expect("it can be replaced");
        assert_eq!(fs::read(&older).expect("is there"), b"<!doctype html>", "checking changes nothing");
        assert_eq!(fs::read_dir(&place.0).expect("a folder").count(), 1, "checking leaves nothing");
    }

    #[test]
    fn one_file_is_not_named_twice() {
        let place = Place::new("twice");
        let (one, other) =
            (place.0.join("x"), place.0.join("../").join(place.0.file_name().expect("a name")).join("x"));
        let both = check_distinct(&[("--report", Some(&one)), ("--save", None), ("--capture", Some(&other))]);
        let refusal = both.expect_err("they are one").to_string();
        assert!(refusal.starts_with("--report and --capture name the same file, "), "{refusal}");
        assert!(check_distinct(&[("--report", Some(&one)), ("--capture", Some(&place.0.join("y")))]).is_ok());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&one, place.0.join("link")).expect("a link can be made");
            fs::write(&one, "").expect("is written");
            let link = place.0.join("link");
            assert!(check_distinct(&[("--report", Some(&one)), ("--capture", Some(&link))]).is_err());
            write(&link, Kind::Page, b"new").expect("it is written");
            assert_eq!((fs::read(&one).expect("is there"), link.is_symlink()), (b"new".to_vec(), true));
        }
    }
}
