//! Inputs that earlier runs found and that are committed: `fuzz/found/TARGET.hex`, one input a line, in hexadecimal.
//!
//! They are many and small, too many for a file each; so they are written out where the engine can read them before a
//! target runs. Short ones come first, so that a change of the file shows what is new.

use crate::workspace;
use anyhow::{Context, Result};
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// The committed file of a target.
fn file_of(name: &str) -> PathBuf {
    workspace::root().join("fuzz/found").join(format!("{name}.hex"))
}

/// Writes a target's inputs into a folder, one file each, and removes anything else from it.
pub(super) fn write_out(name: &str, folder: &Path) -> Result<()> {
    let path = file_of(name);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.with_context(|| format!("read {}", path.display()))?,
    };
    emptied(folder.to_path_buf())?;
    for (number, line) in (1..).zip(text.lines()) {
        let input =
            decode(line).with_context(|| format!("{}:{number} is not hexadecimal", path.display()))?;
        fs::write(folder.join(number.to_string()), input).context("write an input")?;
    }
    Ok(())
}

/// Makes a folder with nothing in it.
pub(super) fn emptied(folder: PathBuf) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("empty {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    Ok(folder)
}

/// The files of these folders as the engine reads them: by name, with commas between.
pub(super) fn list(folders: &[PathBuf]) -> Result<String> {
    let mut files = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
            files.push(entry?.path().display().to_string());
        }
    }
    files.sort();
    Ok(files.join(","))
}

/// Commits these inputs and no others; how many there are.
pub(super) fn commit(name: &str, mut inputs: Vec<Vec<u8>>) -> Result<usize> {
    inputs.sort_by(|one, other| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
    inputs.dedup();
    let path = file_of(name);
    fs::create_dir_all(path.parent().unwrap_or(&path)).context("make the folder of what was found")?;
    let text: String = inputs.iter().map(|input| encode(input)).collect();
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    Ok(inputs.len())
}

/// One line, with its end.
fn encode(input: &[u8]) -> String {
    let mut line = input.iter().fold(String::new(), |mut line, byte| {
        // Writing to a string cannot fail.
        let _ = write!(line, "{byte:02x}");
        line
    });
    line.push('\n');
    line
}

fn decode(line: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = line.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| (byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |&[high, low]: &[u8; 2]| Some(digit(high)? * 16 + digit(low)?);
    pairs.iter().map(byte).collect::<Option<Vec<u8>>>().filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_input_in_hexadecimal() {
        assert_eq!(encode(&[0x00, 0xff, 0x5a]), "00ff5a\n");
        assert_eq!(decode("00ff5a"), Some(vec![0x00, 0xff, 0x5a]));
        assert_eq!(decode(""), Some(vec![]));
    }

    #[test]
    fn what_is_not_hexadecimal_is_rejected() {
        for wrong in ["0", "0g", "+1", "00 1"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_committed_can_be_written_out() {
        let folder = std::env::temp_dir().join(format!("uaskit-found-{}", std::process::id()));
        let targets = super::super::targets().expect("a manifest");
        for entry in fs::read_dir(workspace::root().join("fuzz/found")).expect("something was found") {
            let path = entry.expect("it can be listed").path();
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
            assert!(targets.contains(&name), "{name} is no target any more");
            write_out(&name, &folder).expect("it is hexadecimal");
            assert!(fs::read_dir(&folder).expect("it is there").count() > 0, "{name}");
        }
        fs::remove_dir_all(folder).expect("it is ours");
    }
}
