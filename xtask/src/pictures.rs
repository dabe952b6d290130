//! `cargo xtask pictures`: what the README shows, made again.
//!
//! 1. What exact commands print: a block of the README that begins with `$ uaskit …` is what that prints, as far as it was shown before
//!    ([`block`]). Exact are commands of simulated worlds and recorded machines; what is measured, on this machine or in a guest, is left
//!    as it is, and its block names the command that measures.
//! 2. Drawings in `docs/pictures`, which the program draws itself.
//! 3. A photograph of a report, by Debian's Chromium.
//!
//! `--check` changes nothing and says what is out of date; of the photograph only that it is there, since fonts differ from machine to machine.

mod block;

use crate::{command::output_of, dist, workspace};
use anyhow::{Context, Result, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use uaskit_interop::{debian, drive, scratch::Scratch, tools::browser};

/// Options of `cargo xtask pictures`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Change nothing, and say what is out of date
    #[arg(long)]
    check: bool,
}

/// The file whose blocks are redrawn.
const README: &str = "README.md";

/// Drawings, and the words that draw them; the file comes last.
const DRAWINGS: &[(&str, &[&str])] = &[
    ("docs/pictures/timeline.svg", &["compare", "--timeline"]),
    ("docs/pictures/platter.svg", &["compare", "--drive", "disk-7200", "--platter"]),
];

/// The photograph, the size of its window in pixels, and the words that make the page.
const PHOTOGRAPH: &str = "docs/pictures/report.png";
const WINDOW: [u32; 2] = [1200, 1740];
const PAGE: &[&str] = &["compare", "--report"];

/// Makes pictures, or looks at them; whether all are (or were) as they should be.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let root = workspace::root();
    let stale = stale(&root)?;
    if options.check {
        for (name, _) in &stale {
            println!("{name} is out of date: cargo xtask pictures");
        }
        return Ok(stale.is_empty());
    }
    fs::create_dir_all(root.join("docs/pictures")).context("create docs/pictures")?;
    for (name, bytes) in stale {
        fs::write(root.join(&name), bytes).with_context(|| format!("write {name}"))?;
        println!("{name}");
    }
    photograph(&root)?;
    println!("{PHOTOGRAPH}");
    Ok(true)
}

/// The names of what is out of date, for the test command.
pub(crate) fn outdated() -> Result<Vec<String>> {
    Ok(stale(&workspace::root())?.into_iter().map(|(name, _)| name).collect())
}

/// Returns the outdated files, each with its new contents.
fn stale(root: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let studio = Studio::new(root)?;
    let readme = fs::read_to_string(root.join(README)).context("read the README")?;
    let mut made =
        vec![(README.to_owned(), block::redrawn(&readme, |line| studio.printed(line))?.into_bytes())];
    for (name, words) in DRAWINGS {
        made.push(((*name).to_owned(), studio.drawn(words)?));
    }
    let is_there = |name: &str, bytes: &[u8]| fs::read(root.join(name)).is_ok_and(|there| there == bytes);
    made.retain(|(name, bytes)| !is_there(name, bytes));
    ensure!(
        !readme.contains(PHOTOGRAPH) || root.join(PHOTOGRAPH).exists(),
        "{PHOTOGRAPH} is missing: cargo xtask pictures"
    );
    Ok(made)
}

/// Where commands are called: an empty folder, in which the repository's files go by their names.
struct Studio {
    folder: Scratch,
    program: PathBuf,
}

impl Studio {
    fn new(root: &Path) -> Result<Self> {
        let program = dist::program().map_or_else(drive::binary, Ok)?;
        let folder = Scratch::new()?;
        std::os::unix::fs::symlink(root.join("crates"), folder.path("crates")).context("link the crates")?;
        Ok(Self { folder, program })
    }

    /// Runs a line of the README and returns its output; `None` for a line whose output is not
    /// exact.
    fn printed(&self, line: &str) -> Result<Option<String>> {
        let line = line.replacen("cargo run --release -- ", "uaskit ", 1);
        let words: Vec<&str> = line.split_whitespace().collect();
        let [first, rest @ ..] = &words[..] else { return Ok(None) };
        if *first != "uaskit" || !is_exact(rest) {
            return Ok(None);
        }
        let mut command = Command::new(&self.program);
        output_of(command.args(rest).current_dir(self.folder.path(""))).map(Some)
    }

    fn drawn(&self, words: &[&str]) -> Result<Vec<u8>> {
        let file = self.folder.path("drawing");
        self.made(words, &file)?;
        fs::read(&file).with_context(|| format!("read what `uaskit {}` draws", words.join(" ")))
    }

    fn made(&self, words: &[&str], file: &Path) -> Result<()> {
        output_of(Command::new(&self.program).args(words).arg(file)).map(drop)
    }
}

/// Whether a command prints the same on every machine and at any time.
fn is_exact(words: &[&str]) -> bool {
    match words {
        ["compare" | "validate" | "decode", ..] => true,
        ["list" | "why", rest @ ..] => rest.iter().any(|word| ["--from", "--simulate"].contains(word)),
        _ => false,
    }
}

fn photograph(root: &Path) -> Result<()> {
    debian::ensure().context("the photograph needs a browser")?;
    let studio = Studio::new(root)?;
    let page = studio.folder.path("page.html");
    studio.made(PAGE, &page)?;
    Ok(browser::photograph(&page, WINDOW, &root.join(PHOTOGRAPH))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_not_redrawn() {
        assert!(is_exact(&["compare"]) && is_exact(&["list", "--from", "a.tree"]));
        assert!(!is_exact(&["list"]) && !is_exact(&["bench", "--virtual"]) && !is_exact(&["serve", "a.img"]));
    }
}
