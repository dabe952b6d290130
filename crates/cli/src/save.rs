//! `--save`: a run into the file of runs, for `uaskit history` and `uaskit diff`.
//!
//! The file is opened before anything is measured, so that one that cannot be written does not cost a run; and once more to save,
//! since a long run gives others time. After that, a message on standard error names the place.

use crate::args::SaveArguments;
use crate::command_line;
use crate::failure::Failure;
use crate::messages::message;
use crate::sanitize::shown;
use records::{Run, Store, StoreError};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Keeps a run.
#[derive(Debug)]
pub(crate) struct Keeper {
    path: PathBuf,
    label: Option<String>,
    began_unix_s: u64,
}

impl SaveArguments {
    /// The keeper of the run that begins now, if `--save` was given.
    pub(crate) fn keeper(&self) -> Result<Option<Keeper>, Failure> {
        let Some(save) = &self.save else { return Ok(None) };
        let path = place(save.as_deref())?;
        if save.is_none() {
            make_folder(&path)?;
        }
        Store::to_write(&path).map_err(failure)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Some(Keeper { path, label: self.label.clone(), began_unix_s: now.as_secs() }))
    }
}

impl Keeper {
    /// Keeps it, and says where.
    pub(crate) fn keep(&self, run: &Run) -> Result<(), Failure> {
        let run = Run { label: self.label.clone(), began_unix_s: self.began_unix_s, ..run.clone() };
        let mut store = Store::to_write(&self.path).map_err(failure)?;
        let id = store.save(&run).map_err(failure)?;
        message!("saved as run {id} in {}", shown(&self.path));
        Ok(())
    }
}

/// The data folder is made if it is not there; where somebody names a file, a folder that is not there may be a slip.
fn make_folder(path: &Path) -> Result<(), Failure> {
    let Some(folder) = path.parent() else { return Ok(()) };
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::new(format!("cannot create the data folder {}", shown(folder)))
            .because(error)
            .try_this("Name a file: --save=FILE, and --file FILE for uaskit history and uaskit diff.")
    })
}

/// The file that is named, or the one in the user's data folder.
pub(crate) fn place(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let usual = || records::default_path(|name| std::env::var_os(name));
    named.map(Path::to_owned).or_else(usual).ok_or_else(|| {
        Failure::usage("no data folder: neither XDG_DATA_HOME nor HOME is set")
            .try_this("Name a file: --save=FILE, and --file FILE for uaskit history and uaskit diff.")
    })
}

/// The line that lists the runs of a file, as its user would have to write it.
pub(crate) fn listing(path: &Path) -> String {
    calling(&["history"], path)
}

/// The line that saves a run into a file.
pub(crate) fn saving(path: &Path) -> String {
    let mut save = std::ffi::OsString::from("--save=");
    save.push(path);
    let words = [OsStr::new("uaskit"), OsStr::new("bench"), OsStr::new("--virtual"), &save];
    format!("To save a run: {}", command_line::line(&words))
}

/// The line that calls the program on a file of runs.
pub(crate) fn calling(words: &[impl AsRef<OsStr>], path: &Path) -> String {
    let usual = records::default_path(|name| std::env::var_os(name));
    let named = usual.is_none_or(|usual| usual != path);
    let file = named.then(|| [OsStr::new("--file"), path.as_os_str()]);
    let words = std::iter::once(OsStr::new("uaskit")).chain(words.iter().map(AsRef::as_ref));
    command_line::line(&words.chain(file.into_iter().flatten()).collect::<Vec<_>>())
}

/// Converts an error of the file to a failure with a remedy.
pub(crate) fn failure(error: StoreError) -> Failure {
    let remedy = match &error {
        StoreError::Absent { path } => return Failure::new(error.to_string()).try_this(saving(path)),
        StoreError::NoFolder { folder } => {
            let make = command_line::mkdir(folder);
            let remedy =
                format!("Create it: {make}; or name another file; --save alone uses your data folder.");
            return Failure::new(error.to_string()).try_this(remedy);
        }
        StoreError::Foreign { .. } => "Name another file.",
        StoreError::Newer { .. } => "Use a newer version of uaskit, or another file.",
        StoreError::Damaged { .. } => "The file was not changed. Move it away to start a new one.",
        _ => return Failure::new(error.to_string()),
    };
    Failure::new(error.to_string()).try_this(remedy)
}
