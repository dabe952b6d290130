//! The machine that `list` and `why` look at: this one, or a recorded one.

use crate::args::MachineArguments;
use crate::failure::Failure;
use crate::harmless::shown;
use inspect::tree::{Record, RecordError, Tree};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a recorded machine; a large one has some hundred thousand.
const RECORD_BYTES_MAX: u64 = 16 << 20;

/// The files of the machine that the arguments name: the running one, a directory in place of `/`, or a record.
pub(crate) fn tree(arguments: &MachineArguments) -> Result<Tree, Failure> {
    let Some(from) = &arguments.from else { return Ok(usb::running_tree()) };
    let tree = if from.is_dir() { Tree::at(from) } else { Tree::of(recorded(from)?) };
    // A machine without USB has nothing to list; what is no machine at all must not be taken for one.
    if tree.names("sys", |_| true).is_empty() {
        return Err(Failure::usage(format!("{} is no machine: it has nothing in `sys`", shown(from)))
            .try_this("give a directory that stands for `/`, or what `uaskit list --record FILE` wrote"));
    }
    Ok(tree)
}

fn recorded(file: &Path) -> Result<Record, Failure> {
    let what = || format!("cannot look at the machine recorded in {}", shown(file));
    let mut text = String::new();
    let len = File::open(file)
        .and_then(|file| file.take(RECORD_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(|error| Failure::new(what()).because(error))?;
    if len as u64 > RECORD_BYTES_MAX {
        return Err(Failure::new(what()).because(format!("it is longer than {} MiB", RECORD_BYTES_MAX >> 20)));
    }
    text.parse().map_err(|error: RecordError| {
        let failure = Failure::new(what()).because(&error);
        match error {
            RecordError::CutShort { .. } => {
                failure.try_this("Have it sent again, or recorded again with `uaskit list --record FILE`.")
            }
            RecordError::NoEntry { .. } => failure,
        }
    })
}
