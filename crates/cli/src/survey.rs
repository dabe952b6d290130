//! The machine that `list` and `why` look at: this one, or a recorded one.
//!
//! A recorded machine is a file of `list --record`, which becomes a temporary directory for as long as it is looked at.

use crate::args::MachineArguments;
use crate::failure::Failure;
use host::tree::{Tree, expand};
use std::path::{Path, PathBuf};

/// A tree, and the directory that was made for it, if one was.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) tree: Tree,
    place: Option<PathBuf>,
}

impl Machine {
    /// The machine that the arguments name.
    pub(crate) fn new(arguments: &MachineArguments) -> Result<Self, Failure> {
        match &arguments.from {
            None => Ok(Self { tree: Tree::running(), place: None }),
            Some(path) if path.is_dir() => Ok(Self { tree: Tree::at(path), place: None }),
            Some(file) => Self::recorded(file),
        }
    }

    fn recorded(file: &Path) -> Result<Self, Failure> {
        let what = || format!("cannot look at the machine recorded in {}", file.display());
        let text = std::fs::read_to_string(file).map_err(|error| Failure::new(what()).because(error))?;
        let place = std::env::temp_dir().join(format!("uaskit-{}", std::process::id()));
        let made = std::fs::create_dir(&place).map_err(|error| Failure::new(what()).because(error));
        made.and_then(|()| {
            // From here on the directory goes away with the machine.
            let machine = Self { tree: Tree::at(&place), place: Some(place.clone()) };
            expand(&text, &place).map_err(|error| Failure::new(what()).because(error))?;
            Ok(machine)
        })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            let _ = std::fs::remove_dir_all(place);
        }
    }
}
