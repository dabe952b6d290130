//! The source that `list` and `why` read: this machine, a recorded one, or a report in text.
//!
//! A file is a recorded machine if it reads as one, else it is unpacked if it is an archive, else it is text. A directory is
//! a machine if it has `sys`, else a folder of texts. Several files are one report; of a recorded machine among them the
//! texts add the log.

use crate::args::MachineArguments;
use crate::failure::Failure;
use crate::sanitize::shown;
use inspect::archive;
use inspect::inventory::{Inventory, Scope};
use inspect::text::{self, Document};
use inspect::tree::{Record, RecordError, Tree};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes of a file of a report that is no text of lines.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Files of a folder, and how deep folders nest.
const FILES_MAX: usize = 4096;
const FOLDERS_DEEP_MAX: usize = 6;

/// How a recorded machine begins.
const RECORD_HEADER: &str = "# A tree of uaskit";

/// The input: a machine, texts, or both.
pub(crate) enum Source {
    /// A machine, running or recorded.
    Machine(Tree),
    /// A recorded machine and texts about it.
    MachineAnd(Tree, Vec<Document>),
    /// Texts.
    Texts(Vec<Document>),
}

impl Source {
    /// Reads the inventory. A log among texts is that of a recorded machine.
    pub(crate) fn inventory(&self, scope: Scope<'_>) -> Inventory {
        match self {
            Self::Machine(tree) => Inventory::read(tree, scope),
            Self::MachineAnd(tree, documents) => {
                let mut inventory = Inventory::read(tree, scope);
                inventory.log = text::read(documents).log;
                inventory
            }
            Self::Texts(documents) => text::read(documents),
        }
    }

    /// The files of a machine; `None` of texts.
    pub(crate) fn tree(self) -> Option<Tree> {
        match self {
            Self::Machine(tree) | Self::MachineAnd(tree, _) => Some(tree),
            Self::Texts(_) => None,
        }
    }
}

/// The files that the arguments name, and a drive if the last of several does not exist as a file.
pub(crate) fn files(
    arguments: &MachineArguments,
    drive: Option<&OsString>,
) -> (Vec<PathBuf>, Option<OsString>) {
    let mut files = arguments.from.clone();
    // `--from FILE 2-1` takes the drive for a file.
    let last = files.last().filter(|last| files.len() > 1 && drive.is_none() && !is_there(last)).cloned();
    if last.is_some() {
        files.pop();
    }
    (files, drive.cloned().or(last.map(PathBuf::into_os_string)))
}

fn is_there(path: &Path) -> bool {
    path == Path::new("-") || path.exists()
}

/// Opens the files; without files, the running machine.
pub(crate) fn open(files: &[PathBuf]) -> Result<Source, Failure> {
    let mut machine: Option<Tree> = None;
    let mut documents: Vec<Document> = Vec::new();
    if files.is_empty() {
        return Ok(Source::Machine(usb::running_tree()));
    }
    for file in files {
        if file.is_dir() {
            let tree = Tree::at(file);
            if tree.names("sys", |_| true).is_empty() {
                folder(file, &mut documents, 0)?;
            } else {
                machine = Some(tree);
            }
            continue;
        }
        match read(file)? {
            Content::Text(document) => documents.push(document),
            Content::Whole(bytes) => match recorded(file, &bytes)? {
                Some(tree) => machine = Some(tree),
                None => documents.extend(unpacked(file, &bytes)?),
            },
        }
    }
    let named = || files.iter().map(shown).collect::<Vec<_>>().join(", ");
    Ok(match machine {
        Some(tree) if documents.is_empty() => Source::Machine(tree),
        Some(tree) => Source::MachineAnd(tree, documents),
        None if documents.iter().all(|document| document.text.trim().is_empty()) => {
            return Err(Failure::usage(format!("{} contains no text", named())).try_this(
                "Name a file of `uaskit list --record`, or output of dmesg, lsusb -t or lsusb -v.",
            ));
        }
        None => Source::Texts(documents),
    })
}

/// The files of a folder, in order of their names.
fn folder(path: &Path, documents: &mut Vec<Document>, depth: usize) -> Result<(), Failure> {
    let unreadable = |error| Failure::unreadable(path, &error);
    let mut entries: Vec<PathBuf> = std::fs::read_dir(path)
        .map_err(unreadable)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .take(FILES_MAX)
        .collect();
    entries.sort();
    for entry in entries {
        // Links may lead out.
        let Ok(metadata) = entry.symlink_metadata() else { continue };
        if metadata.is_dir() && depth < FOLDERS_DEEP_MAX {
            folder(&entry, documents, depth + 1)?;
        } else if metadata.is_file() && documents.len() < FILES_MAX {
            match read(&entry)? {
                Content::Text(document) => documents.push(document),
                Content::Whole(bytes) => documents.extend(unpacked(&entry, &bytes)?),
            }
        }
    }
    Ok(())
}

/// The content of a file.
enum Content {
    /// A text, read line by line.
    Text(Document),
    /// Anything else.
    Whole(Vec<u8>),
}

/// Reads a file. A text is not kept whole, however long it is.
fn read(file: &Path) -> Result<Content, Failure> {
    let unreadable = |error| Failure::unreadable(file, &error);
    if file == Path::new("-") {
        return content(file, std::io::stdin().lock());
    }
    content(file, File::open(file).map_err(unreadable)?)
}

fn content(file: &Path, reader: impl Read) -> Result<Content, Failure> {
    const BUFFER_BYTES: usize = 256 << 10;
    let unreadable = |error| Failure::unreadable(file, &error);
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, reader);
    if archive::is_text(reader.fill_buf().map_err(unreadable)?) {
        return Document::read(name_of(file), &mut reader).map(Content::Text).map_err(unreadable);
    }
    let mut bytes = Vec::new();
    let len = reader.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if len as u64 > FILE_BYTES_MAX {
        return Err(Failure::new(format!("cannot read {}", shown(file)))
            .because(format!("it is longer than {} MiB", FILE_BYTES_MAX >> 20))
            .try_this("Unpack it, and name the texts in it."));
    }
    Ok(Content::Whole(bytes))
}

fn name_of(file: &Path) -> String {
    if file == Path::new("-") { "stdin".to_owned() } else { shown(file.file_name().unwrap_or_default()) }
}

fn unpacked(file: &Path, bytes: &[u8]) -> Result<Vec<Document>, Failure> {
    archive::documents(&name_of(file), bytes)
        .map_err(|error| Failure::new(format!("cannot unpack {}", shown(file))).because(error))
}

/// The recorded machine that a file is, if it is one.
fn recorded(file: &Path, bytes: &[u8]) -> Result<Option<Tree>, Failure> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(None) };
    let parsed: Result<Record, RecordError> = text.parse();
    match parsed {
        Ok(record) => {
            let tree = Tree::of(record);
            Ok(Some(tree).filter(|tree| !tree.names("sys", |_| true).is_empty()))
        }
        Err(error) if text.starts_with(RECORD_HEADER) => {
            let failure =
                Failure::new(format!("cannot read the recorded machine in {}", shown(file))).because(&error);
            Err(match error {
                RecordError::CutShort { .. } => failure.try_this(
                    "Ask for the complete file, or record it again with `uaskit list --record FILE`.",
                ),
                _ => failure,
            })
        }
        Err(_) => Ok(None),
    }
}
