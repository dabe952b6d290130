//! Writes a machine with thirty drives behind hubs, to measure how long a list takes.
//!
//! `cargo run -p uaskit-inspect --example thirty_drives DIRECTORY`, then `uaskit list --from DIRECTORY`.

mod text;

use std::path::Path;
use uaskit_inspect::tree::expand;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args_os().nth(1).ok_or("name a directory that exists")?;
    expand(&text::text(), Path::new(&directory))?;
    println!("{} has {} drives and more", Path::new(&directory).display(), text::DRIVES);
    Ok(())
}
