//! How long `uaskit list` runs on a machine with thirty drives: the whole program, from its start to its end.
//!
//! The machine is made up in a directory, of files as a recorded guest had them. The quickest of some runs counts:
//! whatever disturbs one only ever adds time.

use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use uaskit_interop::drive;

#[path = "../../../../crates/inspect/examples/thirty_drives/text.rs"]
mod thirty_drives;

/// The most that it may take.
pub(super) const BAR: Duration = Duration::from_millis(50);

const RUNS: usize = 20;

/// The quickest run.
pub(super) fn measure() -> Result<Duration> {
    let place = tempfile::tempdir().context("a directory for the machine")?;
    inspect::tree::expand(&thirty_drives::text(), place.path())?;
    let program = drive::binary()?;
    let mut quickest = Duration::MAX;
    for _ in 0..RUNS {
        let mut list = Command::new(&program);
        list.arg("list").arg("--from").arg(place.path()).stdin(Stdio::null());
        let begun = Instant::now();
        let output = list.output().context("run uaskit list")?;
        quickest = quickest.min(begun.elapsed());
        let lines = String::from_utf8_lossy(&output.stdout).lines().count();
        ensure!(output.status.success() && lines >= thirty_drives::DRIVES, "uaskit list shows {lines} lines");
    }
    Ok(quickest)
}
