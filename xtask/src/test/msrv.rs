//! The workspace builds with the oldest Rust that its manifest names (`rust-version`).
//!
//! rustup installs that toolchain if it is missing. Where that fails (no rustup, no network) the step is skipped with the
//! reason, and does not count as passed.

use super::step::{self, Outcome};
use crate::workspace;
use anyhow::{Context, Result};
use std::process::Command;

/// Checks every crate with that toolchain, in the target directory `target/msrv`.
pub(super) fn checked() -> Result<Outcome> {
    let manifest =
        std::fs::read_to_string(workspace::root().join("Cargo.toml")).context("read Cargo.toml")?;
    let toolchain = format!("{}.0", rust_version(&manifest).context("Cargo.toml has no rust-version")?);
    if let Err(reason) = ensure_toolchain(&toolchain) {
        return Ok(Outcome::skipped(reason));
    }
    let target = workspace::root().join("target/msrv");
    let mut command = Command::new("rustup");
    command.args(["run", &toolchain, "cargo", "check", "--workspace", "--all-targets", "--locked"]);
    // Cargo sets these for xtask; they would select the compiler in use.
    for name in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command.env("CARGO_TARGET_DIR", target);
    step::check(command)
}

/// The version in the manifest of the workspace, such as `1.95`.
fn rust_version(manifest: &str) -> Option<String> {
    let manifest: toml::Table = toml::from_str(manifest).ok()?;
    manifest.get("workspace")?.get("package")?.get("rust-version")?.as_str().map(str::to_owned)
}

/// Installs the toolchain if it is missing; the reason if that fails. One that is there is not updated: other builds may use it.
fn ensure_toolchain(toolchain: &str) -> Result<(), String> {
    if is_installed(toolchain) {
        return Ok(());
    }
    let add = ["toolchain", "install", toolchain, "--profile", "minimal", "--no-self-update"];
    let added = Command::new("rustup").args(add).output();
    let output =
        added.map_err(|error| format!("rustup cannot be run to install Rust {toolchain}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.trim_end().lines().next_back().unwrap_or("no message");
    Err(format!("`rustup toolchain install {toolchain}` failed: {last}"))
}

fn is_installed(toolchain: &str) -> bool {
    let asked = Command::new("rustup").args(["run", toolchain, "rustc", "--version"]).output();
    asked.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_workspace() {
        let manifest = "[workspace.package]\nversion = \"0.1.0\"\nrust-version = \"1.95\"\n";
        assert_eq!(rust_version(manifest).as_deref(), Some("1.95"));
        assert_eq!(rust_version("[workspace]\n"), None);
    }
}
