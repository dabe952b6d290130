//! Makes a machine with thirty drives behind hubs, to measure how long a list takes.
//!
//! `cargo run -p uaskit-host --example crowd DIRECTORY`, then `uaskit list --from DIRECTORY`. Every drive is a copy of
//! the one in a recorded guest that has the most to read: two settings, a disk, its pages.

use std::path::Path;

/// Drives of the machine.
pub(crate) const DRIVES: usize = 30;

const GUEST: &str = include_str!("../tests/trees/guest.tree");

/// Writes the machine below a directory that exists.
pub(crate) fn expand(directory: &Path) -> Result<(), host::tree::ExpandError> {
    let copies = (1..=DRIVES).map(|drive| {
        // Five drives a hub: 3-3 is a hub here, too.
        let port = format!("3-{}.{}", 4 + (drive - 1) / 5, 1 + (drive - 1) % 5);
        let lines = GUEST.lines().filter(|line| line.contains("/3-3"));
        let text: String = lines.map(|line| format!("{}\n", line.replace("3-3", &port))).collect();
        // SCSI hosts have numbers of their own.
        text.replace("host3", &format!("host{}", 100 + drive)).replace("sdc", &format!("sd{drive}"))
    });
    host::tree::expand(&format!("{GUEST}\n{}", copies.collect::<String>()), directory)
}

#[allow(dead_code, reason = "a test has the function alone")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args_os().nth(1).ok_or("name a directory that exists")?;
    expand(Path::new(&directory))?;
    println!("{} has {DRIVES} drives and more", Path::new(&directory).display());
    Ok(())
}
