//! One static program, which runs on any Linux of its architecture.

use crate::command::output_of;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::{
    path::{Path, PathBuf},
    process::Command,
};
use uaskit_interop::scratch;

/// The built program.
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// `MAJOR.MINOR.PATCH`.
    pub(super) version: String,
    /// Rust's name of the target.
    pub(super) triple: String,
}

impl Program {
    /// How it is linked, in words.
    pub(super) fn linked(&self) -> &'static str {
        if self.triple.ends_with("-musl") { "static, with musl" } else { "static, with the GNU C library" }
    }
}

/// Builds the program without anything that it would need at run time, and sees that this is so.
pub(super) fn program(quick: bool) -> Result<Program> {
    let triple = triple()?;
    if triple.ends_with("-musl") {
        uaskit_interop::debian::ensure_musl()?;
    }
    let target = target(quick);
    let mut build = Command::new(env!("CARGO"));
    build.args([
        "build",
        "--quiet",
        "--profile",
        "dist",
        "--locked",
        "--package",
        "uaskit",
        "--target",
        &triple,
    ]);
    build.arg("--target-dir").arg(&target).current_dir(workspace::root());
    // Paths of the machine that builds are no use to anybody else, and would differ from machine to machine.
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    for (from, to) in [(workspace::root(), "uaskit"), (cargo_home()?, "cargo")] {
        flags.push(format!("--remap-path-prefix={}={to}", from.display()));
    }
    build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    build.env("CARGO_PROFILE_DIST_STRIP", "symbols").env("CARGO_PROFILE_DIST_DEBUG", "0");
    if quick {
        build.envs([("CARGO_PROFILE_DIST_LTO", "off"), ("CARGO_PROFILE_DIST_CODEGEN_UNITS", "16")]);
        build.env("CARGO_PROFILE_DIST_OPT_LEVEL", "1");
    }
    output_of(&mut build)?;
    let path = target.join(&triple).join(PROGRAM);
    let bytes = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    ensure!(!asks_for_an_interpreter(&bytes)?, "{} is not static", path.display());
    Ok(Program { version: version(&path)?, path, triple })
}

/// Where [`program`] leaves what it builds.
pub(super) fn built(quick: bool) -> Result<PathBuf> {
    Ok(target(quick).join(triple()?).join(PROGRAM))
}

/// The program in the folder of its target.
const PROGRAM: &str = "dist/uaskit";

/// A separate build directory, since the flags differ.
fn target(quick: bool) -> PathBuf {
    scratch::target().join(if quick { "dist-quick" } else { "dist-build" })
}

/// The musl target of this architecture if Rust has it or can get it, else this machine's own.
fn triple() -> Result<String> {
    let host = output_of(Command::new("rustc").arg("-vV"))?;
    let host =
        host.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV has no line `host:`")?;
    let musl = host.replace("-gnu", "-musl");
    let has_musl = || -> Result<bool> {
        let library = output_of(Command::new("rustc").args(["--print", "target-libdir", "--target", &musl]))?;
        Ok(Path::new(library.trim()).is_dir())
    };
    if has_musl()? {
        return Ok(musl);
    }
    eprintln!("installing Rust's library for {musl}: makes a program that needs nothing of the system");
    let added = output_of(Command::new("rustup").args(["target", "add", &musl]));
    match added.and_then(|_| has_musl()) {
        Ok(true) => Ok(musl),
        Ok(false) => Ok(host.to_owned()),
        Err(error) => {
            eprintln!("it is not to be had, so that the GNU C library is linked in place of musl: {error:#}");
            Ok(host.to_owned())
        }
    }
}

/// Returns the version that the program prints.
fn version(program: &Path) -> Result<String> {
    let said = output_of(Command::new(program).arg("--version"))?;
    Ok(said
        .trim()
        .strip_prefix("uaskit ")
        .context("the output of --version does not begin with `uaskit `")?
        .to_owned())
}

fn cargo_home() -> Result<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(home)
        .context("neither CARGO_HOME nor HOME is set")
}

/// Whether a 64-bit little-endian ELF file has a PT_INTERP segment, that is a dynamic linker to be run by
/// (System V ABI, "Program Header").
fn asks_for_an_interpreter(file: &[u8]) -> Result<bool> {
    const PT_INTERP: u32 = 3;
    let number = |at: usize, bytes: usize| -> Result<u64> {
        let field = file.get(at..at + bytes).context("the ELF file ends early")?;
        Ok(field.iter().rev().fold(0, |sum, &byte| (sum << 8) | u64::from(byte)))
    };
    ensure!(file.starts_with(b"\x7fELF\x02\x01"), "not a 64-bit little-endian ELF file");
    let (first, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for index in 0..count {
        let at = usize::try_from(first + index * size)?;
        if number(at, 4)? == u64::from(PT_INTERP) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(segments: &[u32]) -> Vec<u8> {
        let mut file = vec![0; 64 + 56 * segments.len()];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[32] = 64;
        file[54] = 56;
        file[56] = segments.len() as u8;
        for (index, kind) in segments.iter().enumerate() {
            file[64 + 56 * index..][..4].copy_from_slice(&kind.to_le_bytes());
        }
        file
    }

    #[test]
    fn a_program_with_an_interpreter_is_not_static() {
        assert!(asks_for_an_interpreter(&elf(&[1, 3, 1])).expect("an ELF file"));
        assert!(!asks_for_an_interpreter(&elf(&[1, 1, 2])).expect("an ELF file"));
    }

    #[test]
    fn what_is_cut_or_something_else_is_refused() {
        assert!(asks_for_an_interpreter(&elf(&[1, 3])[..70]).is_err());
        assert!(asks_for_an_interpreter(b"#!/bin/sh\n").is_err());
    }

    #[test]
    fn this_very_program_is_not_static() {
        let own = std::env::current_exe().and_then(std::fs::read).expect("this program");
        assert!(asks_for_an_interpreter(&own).expect("an ELF file"));
    }
}
