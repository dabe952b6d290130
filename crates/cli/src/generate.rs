//! Completions and man pages, from the same description as the arguments.

use crate::command::Arguments;
use crate::compare;
use crate::failure::Failure;
use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use std::path::Path;
use study::parts::Kind;

/// Arguments of `compare` that name a part, and of which kinds.
const NAMED: [(&str, &[Kind]); 6] = [
    ("host", &[Kind::Host]),
    ("driver", &[Kind::Driver]),
    ("controller", &[Kind::Controller, Kind::Sata]),
    ("hub", &[Kind::Hub]),
    ("bridge", &[Kind::Bridge]),
    ("drive", &[Kind::Ssd, Kind::Hdd]),
];

pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    // Into memory first: it takes for granted that it can write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut with_names(Arguments::command())?, "uaskit", &mut script);
    crate::stdout::print(&String::from_utf8_lossy(&script))
}

/// With what a shell can offer and the program does not insist on: further parts and setups lie in files.
fn with_names(command: Command) -> Result<Command, Failure> {
    let catalogue = compare::parts::catalogue(None)?;
    let setups = compare::choice::setup_names(&catalogue)?;
    let values = |names: Vec<String>| PossibleValuesParser::new(names);
    let compare = |mut command: Command| {
        for (argument, kinds) in NAMED {
            let parts = catalogue.entries().filter(|part| kinds.contains(&part.kind()));
            let names = parts.map(|part| part.name.clone()).collect();
            command = command.mut_arg(argument, |argument| argument.value_parser(values(names)));
        }
        let workloads = workload::NAMES.iter().map(|(name, _)| (*name).to_owned()).collect();
        command
            .mut_arg("workload", |argument| argument.value_parser(values(workloads)))
            .mut_arg("setup", |argument| argument.value_parser(values(setups.clone())))
    };
    let why = |command: Command| {
        command.mut_arg("simulate", |argument| argument.value_parser(values(setups.clone())))
    };
    Ok(command.mut_subcommand("compare", compare).mut_subcommand("why", why))
}

/// All man pages into a directory, or the main one to standard output.
pub(crate) fn man_pages(directory: Option<&Path>) -> Result<(), Failure> {
    let Some(directory) = directory else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(Arguments::command()).render(&mut page);
        rendered.map_err(|error| Failure::new("cannot print the man page").because(error))?;
        return crate::stdout::print(&String::from_utf8_lossy(&page));
    };
    clap_mangen::generate_to(Arguments::command(), directory).map_err(|error| {
        Failure::new("cannot write the man pages").because(error).try_this("Name a directory that exists.")
    })
}
