//! The `uaskit` command: parses arguments, resolves them, runs, prints.
//!
//! Exit codes: 0 ok, 1 failed, 2 usage, 3 refused for safety. What goes wrong is told on standard error as what
//! happened, why, and what to do.

mod args;
mod bench;
mod compare;
mod control;
mod decode;
mod failure;
mod generate;
mod list;
mod merge;
mod quantity;
mod serve;
mod survey;
mod validate;
mod why;

use args::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Serve(serve) => serve::run(&serve),
        Command::Control(control) => control::run(&control),
        Command::Bench(bench) => bench::run(&bench),
        Command::Compare(compare) => compare::run(&compare),
        Command::Decode(decode) => decode::run(&decode),
        Command::Merge(merge) => merge::run(&merge),
        Command::Validate(validate) => validate::run(&validate),
        Command::List(list) => list::run(&list),
        Command::Why(why) => why::run(&why),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { directory } => generate::man_pages(directory.as_deref()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("uaskit: {failure}");
            failure.exit_code()
        }
    }
}
