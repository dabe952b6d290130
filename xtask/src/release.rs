//! Long tasks run in an optimised build of this program.

use anyhow::{Context, Result, ensure};
use std::process::Command;

/// Builds this program in release mode, and has that do the work; returns whether it succeeded.
pub(crate) fn hand_over() -> Result<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--release", "--package", "uaskit-xtask"]);
    ensure!(build.status().context("start cargo")?.success(), "the release build failed");
    let here = std::env::current_exe().context("find this program")?;
    let target = here.ancestors().nth(2).context("this program is not in a target directory")?;
    let mut optimised = Command::new(target.join("release").join("uaskit-xtask"));
    optimised.args(std::env::args_os().skip(1));
    Ok(optimised.status().context("start the release build")?.success())
}
