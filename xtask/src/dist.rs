//! `cargo xtask dist`: what one downloads, made and tried.
//!
//! 1. [`build`] makes one static program: for musl where Rust has that target or can get it, else for the C library of this machine.
//! 2. [`tree`] lays out what belongs to it: manual pages and completions from the program itself, licences, documents.
//! 3. [`package`] makes an archive, a Debian package and their checksums; the same commit gives the same bytes.
//! 4. [`chroot`] installs them in a Debian that holds nothing else, runs them there and removes them again.
//!
//! Everything is in `target/packages`. Nothing is uploaded or signed here.

mod build;
mod chroot;
mod made;
mod package;
mod tree;

use crate::workspace;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// Options of `cargo xtask dist`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where to put what is made
    #[arg(long, default_value = "target/packages")]
    output: PathBuf,
    /// Build faster and run slower: for trying the packages, not for giving them away
    #[arg(long)]
    quick: bool,
    /// Also install, run and remove it in a Debian with nothing else in it (needs root)
    #[arg(long)]
    check: bool,
}

impl Options {
    /// As the test command wants it.
    pub(crate) fn for_tests(quick: bool) -> Self {
        Self { output: "target/packages".into(), quick, check: true }
    }

    /// The command that does the same.
    pub(crate) const REPEAT: &str = "cargo xtask dist --check";
}

/// The program that was built last, for giving away or quickly, if one was.
pub(crate) fn program() -> Option<PathBuf> {
    let built = [true, false].into_iter().filter_map(|quick| build::built(quick).ok());
    built
        .max_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).ok())
        .filter(|path| path.exists())
}

/// Builds everything, checks it if asked to, and prints what was built.
pub(crate) fn run(options: &Options) -> Result<bool> {
    print!("{}", make(options)?);
    Ok(true)
}

/// Builds everything; returns a line for each file and check.
pub(crate) fn make(options: &Options) -> Result<String> {
    uaskit_interop::debian::ensure_packaging()?;
    let output = workspace::root().join(&options.output);
    std::fs::create_dir_all(&output).with_context(|| format!("create {}", output.display()))?;
    let program = build::program(options.quick)?;
    let made = package::all(&program, &output)?;
    let mut lines = format!("{} for {}, {}\n", program.version, program.triple, program.linked());
    for file in [&made.archive, &made.debian, &made.sums] {
        let bytes = std::fs::metadata(file).with_context(|| format!("look at {}", file.display()))?.len();
        lines += &format!("  {} ({:.1} MB)\n", file.display(), bytes as f64 / 1e6);
    }
    if options.check {
        for step in chroot::check(&made)? {
            lines += &format!("  checked: {step}\n");
        }
    }
    Ok(lines)
}
