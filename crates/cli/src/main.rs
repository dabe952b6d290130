//! The `uaskit` command: parses arguments, resolves them, runs, prints.
//!
//! Exit codes: 0 ok, 1 failed, 2 usage, 3 refused for safety, 4 unknown, 5 the input is damaged. What goes wrong is told on standard error as what
//! happened, why, and what to do.

mod args;
mod bench;
mod called;
mod command;
mod compare;
mod control;
mod decode;
mod diff;
mod failure;
mod generate;
mod harmless;
mod history;
mod in_use;
mod interrupt;
mod list;
mod merge;
mod nearest;
mod outlet;
mod page;
mod progress;
mod quantity;
mod recorder;
mod save;
mod serve;
mod signals;
mod stdout;
mod survey;
mod threads;
mod unprinted;
mod validate;
mod why;

use clap::Parser;
use command::{Arguments, Command};
use failure::Failure;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use study::plural as counted;
use unprinted::aside;

fn main() -> ExitCode {
    match unprinted::or_told(run) {
        Ok(code) => code.unwrap_or(ExitCode::SUCCESS),
        Err(failure) => told(&failure),
    }
}

fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // Help and version as well.
        Err(stop) => return stopped(&stop),
    };
    let outcome = match arguments.command {
        Command::Serve(serve) => serve::run(&serve),
        Command::Control(control) => control::run(&control),
        Command::Bench(bench) => bench::run(&bench),
        Command::Compare(compare) => compare::dispatch::run(&compare),
        Command::Decode(decode) => decode::run(&decode),
        Command::History(history) => history::run(&history),
        Command::Diff(diff) => diff::run(&diff),
        Command::Merge(merge) => merge::run(&merge),
        Command::Validate(validate) => validate::run(&validate),
        Command::List(list) => list::run(&list),
        Command::Why(why) => why::run(&why),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { directory } => generate::man_pages(directory.as_deref()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => told(&failure),
    }
}

/// Prints what clap has to say in place of running, which its own way of ending takes for printed.
fn stopped(stop: &clap::Error) -> ExitCode {
    let printed = stop.print().and_then(|()| std::io::stdout().flush());
    match printed {
        Err(error) if !stop.use_stderr() && error.kind() != ErrorKind::BrokenPipe => {
            told(&Failure::new("standard output cannot be written").because(error))
        }
        _ => u8::try_from(stop.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
    }
}

fn told(failure: &Failure) -> ExitCode {
    aside!("uaskit: {failure}");
    failure.exit_code()
}
