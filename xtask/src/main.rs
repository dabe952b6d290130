//! The chores of the repository, as `cargo xtask CHORE`.
//!
//! Each chore is a module and a subcommand. A chore prints what it finds and ends with status 0 or 1; a chore
//! that could not run at all says why and ends with status 1 too. Chores are run from anywhere in the tree.

mod bench;
mod book;
mod command;
mod demo;
mod dist;
mod figures;
mod fit;
mod fuzz;
mod pictures;
mod profiled;
mod release;
mod swarm;
mod test;
mod tidy;
mod workers;
mod workspace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The chores of the uaskit repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Measure, and fail below the bar.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Show the main job: a real Linux in QEMU drives one image, over UAS and over BOT.
    Demo {
        /// How long each measurement takes, in seconds.
        #[arg(long, default_value_t = 2)]
        seconds: u32,
    },
    /// Make the tutorials for a browser.
    Book,
    /// Make the pictures of the README again: what exact commands print, drawings, and a photograph of a report.
    Pictures(pictures::Options),
    /// Make a static program, a Debian package, completions, manual pages and checksums.
    Dist(dist::Options),
    /// Build the program with a profile of its branches: some minutes, for a quicker one.
    Profiled(profiled::Options),
    /// Check what the compiler and clippy do not: layers, lengths, docs, names, words, import circles.
    Tidy(tidy::Options),
    /// Run every check, with real kernels and tools; the last line counts tests.
    Test(test::Options),
    /// Run random worlds in which random things go wrong, and see what must hold all the same.
    Swarm(swarm::Options),
    /// Compare the simulated figures of two builds of the program: equal, bit for bit.
    Figures(figures::Options),
    /// Find the numbers of parts again that published rows determine, and hold the files of parts against them.
    Fit(fit::Options),
    /// Build the fuzz targets and run them for a while, or on one input again.
    Fuzz(fuzz::Options),
}

fn main() -> ExitCode {
    let Arguments { chore } = Arguments::parse();
    let clean = match chore {
        Chore::Bench(bench) => bench::run(bench),
        Chore::Demo { seconds } => demo::run(seconds),
        Chore::Tidy(options) => tidy::run(&options),
        Chore::Book => book::run(),
        Chore::Pictures(options) => pictures::run(&options),
        Chore::Dist(options) => dist::run(&options),
        Chore::Profiled(options) => profiled::run(&options),
        Chore::Test(options) => test::run(&options),
        Chore::Figures(options) => figures::run(&options),
        Chore::Fit(options) => fit::run(&options),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::Swarm(options) => swarm::run(&options),
    };
    match clean {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
