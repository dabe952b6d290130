//! `cargo xtask test`: every check, in the order of how soon it fails.
//!
//! Formatting, clippy, documentation, tidy, builds for WebAssembly, packages of the public crates, tests, examples in the
//! documentation, fuzzing, and real kernels in QEMU. A step that fails does not stop the others; what failed is listed at the end with the command that repeats it. The
//! last line counts tests: `N passed, N failed`. A check or a fuzz target counts as one test.
//!
//! A step that cannot run here is skipped with its reason, and does not count as passed. Nothing is installed here,
//! except the compiler's target for WebAssembly, the oldest Rust that is supported (a long run) and what the steps with real parts need: Debian's packages, by
//! `interop::debian`, which lists them.

mod count;
mod interop;
mod msrv;
mod package;
mod step;
mod wasm;

use crate::{book, dist, fuzz, pictures, swarm, tidy};
use anyhow::Result;
use count::Count;
use std::{
    io::Write,
    process::Command,
    time::{Duration, Instant},
};
use step::Outcome;
use uaskit_interop::debian;

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Leave out the real kernels, firmware and tools in QEMU
    #[arg(long)]
    no_interop: bool,
    /// Leave out fuzzing
    #[arg(long)]
    no_fuzz: bool,
    /// More seeds, longer fuzzing, slow scenarios, the oldest Rust, packages built, numbers of parts fitted again
    #[arg(long)]
    long: bool,
}

impl Options {
    fn swarm_seeds(&self) -> u64 {
        if self.long { 2_000 } else { 200 }
    }

    fn fuzz_time(&self) -> Duration {
        Duration::from_secs(if self.long { 600 } else { 10 })
    }
}

/// One step: its name and what it does.
type Step<'a> = (&'static str, Box<dyn Fn() -> Result<Outcome> + 'a>);

/// Runs the steps; whether all of them passed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let start = Instant::now();
    let steps = steps(options);
    let total = steps.len();
    let mut count = Count::default();
    let (mut failures, mut skipped, mut unsteady) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (name, run)) in (1..).zip(steps) {
        print!("[{number}/{total}] {name:<9} ");
        std::io::stdout().flush()?;
        let began = Instant::now();
        let outcome = run().unwrap_or_else(|error| Outcome::broken(format!("{error:#}")));
        println!("{} ({:.1} s)", outcome.line(), began.elapsed().as_secs_f64());
        if !outcome.failures.is_empty() || !outcome.unsteady.is_empty() {
            println!("{}", outcome.excerpt());
        }
        unsteady.extend(outcome.unsteady);
        count += outcome.count;
        failures.extend(outcome.failures);
        skipped.extend(outcome.skipped.map(|reason| format!("{name}: {reason}")));
    }
    println!("\n{:.0} s in all", start.elapsed().as_secs_f64());
    if count.ignored > 0 {
        println!(
            "{} tests were left out as slow or as saying nothing about us (--long runs them)",
            count.ignored
        );
    }
    for step in &skipped {
        println!("SKIPPED, not checked: {step}");
    }
    for test in &unsteady {
        println!("UNSTEADY, failed once and passed by itself: {}\n    repeat: {}", test.what, test.repeat);
    }
    for failure in &failures {
        println!("failed: {}\n    repeat: {}", failure.what, failure.repeat);
    }
    println!("{} passed, {} failed", count.passed, count.failed);
    Ok(count.failed == 0)
}

fn steps(options: &Options) -> Vec<Step<'_>> {
    const WITHOUT_INTEROP: [&str; 3] = ["--workspace", "--exclude", "uaskit-interop"];
    let cases = options.long.then_some(("PROPTEST_CASES", "10000"));
    let cargo = |words: &[&[&str]]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(words.concat());
        command
    };
    let mut steps: Vec<Step<'_>> = vec![
        (
            "format",
            Box::new(move || {
                let mut outcome = step::check(cargo(&[&["fmt", "--all", "--check"]]))?;
                outcome += step::check(cargo(&[&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]]))?;
                Ok(outcome)
            }),
        ),
        (
            "clippy",
            Box::new(move || {
                step::check(cargo(&[&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]]))
            }),
        ),
        (
            "docs",
            Box::new(move || {
                let mut command = cargo(&[&["doc", "--workspace", "--no-deps"]]);
                command.env("RUSTDOCFLAGS", "-D warnings");
                step::check(command)
            }),
        ),
        ("tidy", Box::new(tidied)),
        ("wasm", Box::new(wasm::checked)),
        ("package", Box::new(|| package::checked(options.long))),
        (
            "tests",
            Box::new(move || {
                let targets = ["--lib", "--bins", "--tests", "--no-fail-fast"];
                let mut command = cargo(&[&["test"], &WITHOUT_INTEROP, &targets]);
                command.envs(cases);
                step::tests_under_load(command)
            }),
        ),
        (
            "examples",
            Box::new(move || {
                step::tests(cargo(&[&["test"], &WITHOUT_INTEROP, &["--doc", "--no-fail-fast"]]))
            }),
        ),
    ];
    steps.push(("swarm", Box::new(|| Ok(swarmed(options.swarm_seeds())))));
    if options.long {
        steps.push(("msrv", Box::new(msrv::checked)));
        steps.push(("fit", Box::new(move || step::check(cargo(&[&["xtask", "fit"]])))));
    }
    if !options.no_fuzz {
        steps.push(("fuzz", Box::new(|| fuzzed(options.fuzz_time()))));
    }
    if !options.no_interop {
        steps.extend(with_real_parts(options.long));
    }
    steps
}

/// Returns the steps that need Debian's packages: the book, our own packages, pictures, and guests
/// in QEMU.
fn with_real_parts<'a>(long: bool) -> [Step<'a>; 4] {
    [
        ("book", Box::new(|| Ok(bound()))),
        ("dist", Box::new(move || Ok(distributed(long)))),
        ("pictures", Box::new(|| Ok(shown()))),
        ("interop", Box::new(move || interop::checked(long))),
    ]
}

fn tidied() -> Result<Outcome> {
    let findings = tidy::findings()?;
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    Ok(Outcome::of_check(findings.is_empty(), "tidy", "cargo xtask tidy", lines.join("\n")))
}

/// Random simulations, and known bugs that they must find.
fn swarmed(seeds: u64) -> Outcome {
    const CANARY_SEEDS: u64 = 30;
    let verdicts = swarm::hunt(0..seeds);
    let repeat = format!("cargo xtask swarm --seeds {seeds}");
    let mut outcome =
        Outcome::of_check(verdicts.red.is_empty(), &format!("swarm of {seeds} seeds"), &repeat, {
            verdicts.red.iter().map(swarm::summary).collect::<Vec<_>>().join("\n")
        });
    for caught in swarm::canary(0..CANARY_SEEDS) {
        let what = format!("seeded bug {}", caught.bug);
        let repeat = format!("cargo xtask swarm --canary --seeds {CANARY_SEEDS}");
        let not_found = format!("{what}: none of {CANARY_SEEDS} seeds finds it\n");
        outcome += Outcome::of_check(caught.first.is_some(), &what, &repeat, not_found);
    }
    outcome
}

/// The packages, made and tried in a clean Debian; only a long run builds them as they are published, which takes three minutes more.
fn distributed(long: bool) -> Outcome {
    let made = dist::make(&dist::Options::for_tests(!long));
    let error = made.as_ref().err().map(|error| format!("{error:#}")).unwrap_or_default();
    Outcome::of_check(made.is_ok(), "dist", dist::Options::REPEAT, error)
}

/// The README's pictures, which are what the program says and draws.
fn shown() -> Outcome {
    const REPEAT: &str = "cargo xtask pictures --check";
    match pictures::outdated() {
        Ok(stale) => Outcome::of_check(
            stale.is_empty(),
            "pictures",
            REPEAT,
            format!("out of date: {}", stale.join(", ")),
        ),
        Err(error) => Outcome::of_check(false, "pictures", REPEAT, format!("{error:#}")),
    }
}

/// The book, with links that lead somewhere.
fn bound() -> Outcome {
    let made = book::make();
    let error = made.as_ref().err().map(|error| format!("{error:#}")).unwrap_or_default();
    Outcome::of_check(made.is_ok(), "book", "cargo xtask book", error)
}

fn fuzzed(each: Duration) -> Result<Outcome> {
    debian::ensure_compiler()?;
    let built = step::check(fuzz::build_command()?)?;
    if built.is_failed() {
        return Ok(built);
    }
    let mut outcome = Outcome::default();
    for verdict in fuzz::run_all(&fuzz::targets()?, fuzz::Plan::check(each))? {
        let tail = format!("{}\n{}", verdict.line(), verdict.output);
        outcome += Outcome::of_check(verdict.held, &verdict.name, &verdict.repeat(), tail);
    }
    Ok(outcome)
}
