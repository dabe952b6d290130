//! The `uaskit` command: parses arguments, resolves them, runs, prints.
//!
//! Exit codes: 0 ok, 1 failed, 2 usage, 3 refused for safety, 4 unknown, 5 the input is damaged, 130 interrupted. An error
//! on standard error names what failed, why, and what to do. A reader that closes standard output ends the program
//! quietly, with the exit code 0.

mod args;
mod bench;
mod check;
mod command;
mod command_line;
mod compare;
mod control;
mod decode;
mod diff;
mod failure;
mod generate;
mod history;
mod in_use;
mod interrupt;
mod list;
mod merge;
mod messages;
mod nearest;
mod output_file;
mod page;
mod progress;
mod record;
mod recorder;
mod sanitize;
mod save;
mod serve;
mod signals;
mod source;
mod stdout;
mod text_file;
mod threads;
mod validate;
mod why;

use args::together::{self, Conflict};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches};
use command::{Arguments, Command};
use failure::Failure;
use messages::message;
use std::process::ExitCode;
use stdout::Output;

fn main() -> ExitCode {
    let mut stdout = std::io::stdout();
    let mut out = Output::new(&mut stdout);
    let ended = match parse() {
        Ok(arguments) => run(arguments.command, &mut out).map(|()| ExitCode::SUCCESS),
        Err(NotParsed::Usage(error)) => print_usage(&error, &mut out),
        Err(NotParsed::Conflict(conflict)) => {
            Err(Failure::usage(conflict.what).because(conflict.because).try_this(conflict.remedy))
        }
    };
    ended.unwrap_or_else(|failure| {
        if !failure.is_closed_pipe() {
            message!("uaskit: {failure}");
        }
        failure.exit_code()
    })
}

/// Why arguments were not accepted, or which text clap prints in place of a command.
enum NotParsed {
    Usage(clap::Error),
    Conflict(Conflict),
}

fn parse() -> Result<Arguments, NotParsed> {
    let mut command = Arguments::command();
    let matches = command
        .try_get_matches_from_mut(std::env::args_os())
        .map_err(|error| NotParsed::Usage(without_value_tip(error)))?;
    if let Some((name, matches)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        together::check(name, command, matches).map_err(NotParsed::Conflict)?;
    }
    Arguments::from_arg_matches(&matches).map_err(|error| NotParsed::Usage(error.format(&mut command)))
}

fn run(command: Command, out: &mut Output<'_>) -> Result<(), Failure> {
    match command {
        Command::Serve(serve) => serve::run(&serve),
        Command::Control(control) => control::run(&control, out),
        Command::Bench(bench) => bench::run(&bench, out),
        Command::Check(check) => check::run(&check, out),
        Command::Record(record) => record::run(&record, out),
        Command::Compare(compare) => compare::dispatch::run(&compare, out),
        Command::Decode(decode) => decode::run(&decode),
        Command::History(history) => history::run(&history, out),
        Command::Diff(diff) => diff::run(&diff, out),
        Command::Merge(merge) => merge::run(&merge, out),
        Command::Validate(validate) => validate::run(&validate, out),
        Command::List(list) => list::run(&list, out),
        Command::Why(why) => why::run(&why, out),
        Command::Completions { shell } => generate::completions(shell, out),
        Command::Man { directory } => generate::man_pages(directory.as_deref(), out),
    }?;
    out.flush()
}

/// Removes the tip to pass a misspelt option as a value: no value of a command begins with a dash.
fn without_value_tip(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().starts_with("to pass "));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    error
}

/// Prints clap's text: an error on standard error, or help and version on standard output.
fn print_usage(error: &clap::Error, out: &mut Output<'_>) -> Result<ExitCode, Failure> {
    let printed = error.print().map_err(Failure::output).and_then(|()| out.flush());
    if !error.use_stderr() {
        printed?;
    }
    Ok(u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_option_is_not_offered_as_a_value() {
        let usage = |words: &[&str]| {
            let error =
                Arguments::command().try_get_matches_from(words).expect_err("there is no such option");
            without_value_tip(error).to_string()
        };
        let text = usage(&["uaskit", "bench", "--time", "5"]);
        assert!(text.contains("'--time'") && !text.contains("as a value"), "{text}");
        let text = usage(&["uaskit", "bench", "--dept", "5"]);
        assert!(text.contains("'--depth'"), "{text}");
    }
}
