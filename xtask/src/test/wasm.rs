//! Crates without files, clocks and sockets build for `wasm32-unknown-unknown`, so that a page can run them.
//!
//! The target is installed by rustup if it is missing. Where that fails (no rustup, no network) the step is skipped
//! with the reason, and does not count as passed.

use super::step::{self, Outcome};
use crate::workspace;
use anyhow::Result;
use std::{path::Path, process::Command};

const TARGET: &str = "wasm32-unknown-unknown";
/// Folders below `crates/`; those that are not there are left out.
const CRATES: &[&str] = &[
    "units",
    "wire",
    "bus",
    "device",
    "initiator",
    "quirks",
    "xhci-driver",
    "xhci-controller",
    "inspect",
    "capture",
    "decode",
    "sim",
    "study",
];

/// Checks each crate, which counts as one test.
pub(super) fn checked() -> Result<Outcome> {
    if let Err(reason) = ensure_target() {
        return Ok(Outcome::skipped(reason));
    }
    let mut outcome = Outcome::default();
    for name in present(&workspace::root()) {
        let mut command = Command::new(env!("CARGO"));
        command.args(["check", "--target", TARGET, "-p", &format!("uaskit-{name}")]);
        outcome += step::check(command)?;
    }
    Ok(outcome)
}

fn present(root: &Path) -> Vec<&'static str> {
    let exists = |name: &&str| root.join("crates").join(name).join("Cargo.toml").exists();
    CRATES.iter().copied().filter(exists).collect()
}

/// Installs the target if it is missing; the reason if that fails.
fn ensure_target() -> Result<(), String> {
    if is_installed() {
        return Ok(());
    }
    let added = Command::new("rustup").args(["target", "add", TARGET]).output();
    let output =
        added.map_err(|error| format!("{TARGET} is not installed and rustup cannot be run: {error}"))?;
    if output.status.success() && is_installed() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.trim_end().lines().next_back().unwrap_or("no message");
    Err(format!("{TARGET} is not installed and `rustup target add` failed: {last}"))
}

/// Whether the compiler has a standard library for the target.
fn is_installed() -> bool {
    let asked = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let folder = asked.ok().filter(|output| output.status.success());
    folder.is_some_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_that_are_not_there_are_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let manifest = folder.path().join("crates/wire/Cargo.toml");
        std::fs::create_dir_all(manifest.parent().expect("a parent")).expect("made");
        std::fs::write(manifest, "").expect("written");
        assert_eq!(present(folder.path()), ["wire"]);
    }

    #[test]
    fn the_list_names_crates_of_the_workspace() {
        let found = present(&workspace::root());
        assert!(["units", "wire", "bus", "initiator"].iter().all(|name| found.contains(name)), "{found:?}");
    }
}
