//! Completions and man pages, from the same description as the arguments.

use crate::command::Arguments;
use crate::compare;
use crate::failure::Failure;
use crate::output_file;
use crate::sanitize::shown;
use crate::stdout::Output;
use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use std::path::Path;
use study::parts::PartKind;

/// Arguments of `compare` that name a part, and of which kinds.
const NAMED: [(&str, &[PartKind]); 6] = [
    ("host", &[PartKind::Host]),
    ("driver", &[PartKind::Driver]),
    ("controller", &[PartKind::Controller, PartKind::Sata]),
    ("hub", &[PartKind::Hub]),
    ("bridge", &[PartKind::Bridge]),
    ("drive", &[PartKind::Ssd, PartKind::Hdd]),
];

pub(crate) fn completions(shell: Shell, out: &mut Output<'_>) -> Result<(), Failure> {
    // Into memory first: it takes for granted that it can write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut with_names(Arguments::command())?, "uaskit", &mut script);
    out.print(&String::from_utf8_lossy(&script))
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
pub(crate) fn man_pages(directory: Option<&Path>, out: &mut Output<'_>) -> Result<(), Failure> {
    let Some(directory) = directory else {
        let (_, page) = man_page(Arguments::command())?;
        return out.print(&String::from_utf8_lossy(&page));
    };
    output_file::check_folder(directory, || format!("cannot write the man pages to {}", shown(directory)))?;
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    all_man_pages(command, &mut pages)?;
    // All of them are checked before the first one is written.
    for (name, _) in &pages {
        output_file::check_replaceable(&directory.join(name), output_file::Kind::ManPage)?;
    }
    for (name, page) in &pages {
        output_file::write(&directory.join(name), output_file::Kind::ManPage, page)?;
    }
    Ok(())
}

/// A page for a command and for each of its subcommands, by the name of its file.
fn all_man_pages(command: Command, pages: &mut Vec<(String, Vec<u8>)>) -> Result<(), Failure> {
    for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        all_man_pages(subcommand.clone(), pages)?;
    }
    pages.push(man_page(command)?);
    Ok(())
}

/// The name of the file, and the page.
fn man_page(command: Command) -> Result<(String, Vec<u8>), Failure> {
    let (page, mut text) = (clap_mangen::Man::new(command), Vec::new());
    page.render(&mut text).map_err(|error| Failure::new("cannot render the man page").because(error))?;
    Ok((page.get_filename(), text))
}
