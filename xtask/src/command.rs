//! Other programs, run to their end.

use anyhow::{Context, Result, bail};
use std::process::Command;

/// Runs a command to its end and returns what it printed on its standard output.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|w| w.to_string_lossy())
        .collect();
    let line = words.join(" ");
    let output = command.output().with_context(|| format!("start `{line}`"))?;
    if !output.status.success() {
        bail!(
            "`{line}` ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
