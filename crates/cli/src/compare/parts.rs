//! `--list-parts` and `--parts`: the catalogue of parts that come with the program, and of those in a folder.
//!
//! A folder has one for each kind of part, with a TOML file for each part, as `crates/study/parts` has. Its parts take the
//! place of others of the same name.

use super::table::wrapped;
use crate::failure::Failure;
use crate::nearest;
use crate::sanitize::{self, shown};
use crate::stdout::Output;
use crate::text_file;
use report::TextTable;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use study::parts::{Catalogue, Entry, Origin, PartKind};

/// Bytes of a file of a part at most.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 20;

/// Prints all parts.
pub(super) fn list(folder: Option<&Path>, as_json: bool, out: &mut Output<'_>) -> Result<(), Failure> {
    let catalogue = catalogue(folder)?;
    if as_json {
        let parts: Value = catalogue.entries().map(Entry::to_json).collect();
        writeln!(out, "{}", sanitize::json(&format!("{parts:#}")))?;
    } else {
        writeln!(out, "{}", wrapped(&table(&catalogue)))?;
    }
    Ok(())
}

/// The parts that come with the program, and over them those of a folder.
pub(crate) fn catalogue(folder: Option<&Path>) -> Result<Catalogue, Failure> {
    let broken = "a built-in part is invalid (a bug of uaskit)";
    let mut catalogue = Catalogue::built_in().map_err(|error| Failure::new(broken).because(error))?;
    let Some(folder) = folder else { return Ok(catalogue) };
    let all = entries(folder)?;
    if !all.iter().any(|entry| entry.is_dir()) {
        let kinds = PartKind::ALL.map(PartKind::folder).join(", ");
        return Err(Failure::usage(format!("the folder {} has no folders of parts", shown(folder)))
            .try_this(format!("Name the folder above them; they are named {kinds}.")));
    }
    for of_kind in all {
        let name = shown(of_kind.file_name().unwrap_or_default());
        if !of_kind.is_dir() {
            continue;
        }
        let kind = PartKind::of_folder(&name).ok_or_else(|| {
            let hint = nearest::hint(&name, "folders of parts", PartKind::ALL.map(PartKind::folder));
            Failure::new(format!("{} is not a folder of parts", shown(&of_kind))).try_this(hint)
        })?;
        for file in
            entries(&of_kind)?.into_iter().filter(|file| file.extension().is_some_and(|end| end == "toml"))
        {
            let name = shown(file.file_stem().unwrap_or_default());
            catalogue
                .add(kind, &name, &shown(&file), &text_file::read(&file, "part", FILE_BYTES_MAX)?)
                .map_err(|error| Failure::new(error.to_string()))?;
        }
    }
    Ok(catalogue)
}

/// Returns the paths of the entries of a folder, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error| Failure::unreadable(folder, &error);
    let all = fs::read_dir(folder).map_err(unreadable)?;
    let mut paths = all.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

fn table(catalogue: &Catalogue) -> TextTable {
    let heads = ["kind", "name", "title", "constants", "fitted"];
    let mut table =
        TextTable::new(heads).words([0, 2]).names([1]).keys(2).leave_out_first(&["fitted", "constants"]);
    for entry in catalogue.entries() {
        let fitted = entry.constants.iter().filter(|constant| matches!(constant.origin, Origin::Fitted(_)));
        table.row([
            entry.kind().to_string(),
            entry.name.clone(),
            entry.title.clone(),
            entry.constants.len().to_string(),
            fitted.count().to_string(),
        ]);
    }
    table
}
