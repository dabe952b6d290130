//! The machine that `list` and `why` look at: this one, or a recorded one.

use crate::args::MachineArguments;
use crate::failure::Failure;
use host::tree::{Record, Tree};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a recorded machine; a large one has some hundred thousand.
const RECORD_BYTES_MAX: u64 = 64 << 20;

/// The files of the machine that the arguments name: the running one, a directory in place of `/`, or a record.
pub(crate) fn tree(arguments: &MachineArguments) -> Result<Tree, Failure> {
    match &arguments.from {
        None => Ok(Tree::running()),
        Some(path) if path.is_dir() => Ok(Tree::at(path)),
        Some(file) => Ok(Tree::of(recorded(file)?)),
    }
}

fn recorded(file: &Path) -> Result<Record, Failure> {
    let what = || format!("cannot look at the machine recorded in {}", file.display());
    let mut text = String::new();
    File::open(file)
        .and_then(|file| file.take(RECORD_BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| Failure::new(what()).because(error))?;
    text.parse().map_err(|error: host::tree::RecordError| Failure::new(what()).because(error))
}
