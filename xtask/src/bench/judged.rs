//! Results with limits: printed, and judged.
//!
//! Left out: what is measured. Always true: the printed verdict is the one that is returned.

use anyhow::Result;
use serde::Serialize;

/// Something with bars.
pub(super) trait Judged: Serialize {
    /// Whether every bar was reached.
    fn passes(&self) -> bool;
}

/// Says what was measured, to programs or by `print` to people; whether every bar was reached.
pub(super) fn conclude(report: &impl Judged, json: bool, print: impl FnOnce()) -> Result<bool> {
    let passes = report.passes();
    if json {
        println!("{}", serde_json::to_string_pretty(report)?);
    } else {
        print();
        println!("{}", if passes { "Every bar is reached." } else { "A bar is NOT reached." });
    }
    Ok(passes)
}
