//! Completions and man pages, from the same description as the arguments.

use crate::args::Arguments;
use crate::failure::Failure;
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    // Into memory first: it takes for granted that it can write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "uaskit", &mut script);
    crate::list::print(&String::from_utf8_lossy(&script))
}

/// All man pages into a directory, or the main one to standard output.
pub(crate) fn man_pages(directory: Option<&Path>) -> Result<(), Failure> {
    let written = match directory {
        Some(directory) => clap_mangen::generate_to(Arguments::command(), directory),
        None => clap_mangen::Man::new(Arguments::command()).render(&mut std::io::stdout()),
    };
    written.map_err(|error| {
        Failure::new("cannot write the man pages").because(error).try_this("Name a directory that exists.")
    })
}
