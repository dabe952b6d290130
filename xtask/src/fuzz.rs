//! `cargo xtask fuzz`: builds the fuzz targets and runs them, two ways: for a while, or on one input again.
//!
//! The targets are libFuzzer's, as `cargo fuzz` makes them, but built by the stable compiler: the coverage
//! instrumentation is LLVM's and needs no nightly. What stable lacks is AddressSanitizer, which finds little in crates
//! without `unsafe`; for it, run `cargo +nightly fuzz run TARGET` in the same folder.
//!
//! A run of a target starts from three sets of inputs. Two are committed: `fuzz/seeds/TARGET`, made by hand, and
//! `fuzz/found/TARGET.hex`, found by earlier runs. The third, `fuzz/corpus/TARGET`, is not: there each run leaves what
//! it found, for the next one on the same machine. `--keep` replaces what is committed as found by the fewest inputs
//! that cover what all three cover. With `--seed`, as in `cargo xtask test`, a run starts from the committed inputs
//! alone and repeats: a machine that gets further in the same time finds what a slower one finds. What makes a target fail goes to `fuzz/artifacts/TARGET`.

mod found;

use crate::{workers, workspace};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

/// Flags by which LLVM adds what libFuzzer needs: a counter per edge, a table of the edges, and the
/// operands of comparisons.
const INSTRUMENTATION: &[&str] = &[
    "--cfg=fuzzing",
    "-Dwarnings",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
/// Longest input, in bytes: a script of a hundred actions, or the longest packet.
const INPUT_BYTES_MAX: usize = 4096;
/// One input may take this long before it counts as a hang.
const INPUT_SECONDS_MAX: u64 = 20;
/// Longest input that is committed, in bytes: what a long script finds, a short one mostly finds as well.
const KEPT_BYTES_MAX: usize = 512;
/// Memory of one target before it counts as unbounded growth.
const MEMORY_MB_MAX: usize = 1024;
/// The seed of runs that check a change: they find the same on every machine, a slow one less of it.
const CHECK_SEED: u32 = 1;

/// How long each target runs, and what its mutations depend on.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    each: Duration,
    seed: Seed,
}

#[derive(Clone, Copy)]
enum Seed {
    /// Another one each time, and what earlier runs found on this machine is read and added to.
    Random,
    /// Nothing but committed inputs is read, so that two runs do the same.
    Fixed(u32),
}

impl Plan {
    /// A run that checks a change.
    pub(crate) const fn check(each: Duration) -> Self {
        Self { each, seed: Seed::Fixed(CHECK_SEED) }
    }
}

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Targets to run; all of them if none is named
    targets: Vec<String>,
    /// How long each target runs
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    seconds: u64,
    /// Runs with this seed, from the committed inputs alone [default: a random seed, and what was found here before]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    seed: Option<u32>,
    /// Runs the one named target on this input, once
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Finds nothing new, and commits the fewest inputs that cover what was found so far
    #[arg(long, conflicts_with_all = ["seconds", "seed", "replay"])]
    keep: bool,
}

/// Runs what was asked for; whether every target held.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut build = build_command()?;
    if !build.status().context("run cargo")?.success() {
        bail!("the fuzz targets do not build");
    }
    let known = targets()?;
    if let Some(unknown) = options.targets.iter().find(|name| !known.contains(name)) {
        bail!("no target {unknown}; there are {}", known.join(", "));
    }
    if let Some(input) = &options.replay {
        let [name] = &options.targets[..] else { bail!("--replay wants one target") };
        return Ok(Command::new(program(name)?).arg(input).status().context("run the target")?.success());
    }
    let chosen = if options.targets.is_empty() { &known } else { &options.targets };
    if options.keep {
        return chosen.iter().try_fold(true, |all, name| Ok(keep(name)? && all));
    }
    let seed = options.seed.map_or(Seed::Random, Seed::Fixed);
    let verdicts = run_all(chosen, Plan { each: Duration::from_secs(options.seconds), seed })?;
    for verdict in &verdicts {
        println!("{}", verdict.line());
        if !verdict.held {
            println!("{}", verdict.output);
        }
    }
    Ok(verdicts.iter().all(|verdict| verdict.held))
}

/// Result of one target.
pub(crate) struct Verdict {
    pub(crate) name: String,
    pub(crate) held: bool,
    pub(crate) output: String,
}

impl Verdict {
    /// One line: the target, whether it held, how many inputs it took.
    pub(crate) fn line(&self) -> String {
        let last = self.output.lines().rev().find(|line| line.starts_with("Done "));
        let inputs = last.and_then(|line| line.split(' ').nth(1)).unwrap_or("?");
        let held = if self.held { "ok" } else { "FAILED" };
        format!("{:<16} {held:<6} {inputs} inputs", self.name)
    }

    /// How to run a failed target on the same input again.
    pub(crate) fn repeat(&self) -> String {
        let artifact = self.output.lines().find_map(|line| line.split_once("Test unit written to "));
        match artifact {
            Some((_, path)) => format!("cargo xtask fuzz {} --replay {path}", self.name),
            None => format!("cargo xtask fuzz {}", self.name),
        }
    }
}

/// The names of all targets, as the manifest has them.
pub(crate) fn targets() -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Manifest {
        bin: Vec<Bin>,
    }
    #[derive(Deserialize)]
    struct Bin {
        name: String,
    }
    let text = fs::read_to_string(folder().join("Cargo.toml")).context("read the manifest of fuzz")?;
    let manifest: Manifest = toml::from_str(&text).context("read the manifest of fuzz")?;
    Ok(manifest.bin.into_iter().map(|bin| bin.name).collect())
}

/// The command that builds all targets.
pub(crate) fn build_command() -> Result<Command> {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(folder()).args(["build", "--release", "--bins", "--target", &host()?]);
    // Encoded flags win over any that the environment brings.
    command.env("CARGO_ENCODED_RUSTFLAGS", INSTRUMENTATION.join("\u{1f}"));
    command.env("CARGO_TARGET_DIR", folder().join("target"));
    Ok(command)
}

/// Runs built targets, as many at once as there are cores.
pub(crate) fn run_all(names: &[String], plan: Plan) -> Result<Vec<Verdict>> {
    workers::run(names, workers::processors(), |name| run_one(name, plan))
}

/// Commits the fewest inputs that cover, beside the seeds, what all inputs cover; returns whether the target ran.
fn keep(name: &str) -> Result<bool> {
    let chosen = folder().join("target/chosen").join(name);
    let found = folder().join("target/found").join(name);
    found::write_out(name, &found)?;
    if chosen.exists() {
        fs::remove_dir_all(&chosen).context("forget an earlier choice")?;
    }
    fs::create_dir_all(&chosen).context("make room for a choice")?;
    let mut command = Command::new(program(name)?);
    command.current_dir(workspace::root()).stdin(Stdio::null());
    // By edges: how often each is run through makes thousands of inputs differ.
    command.args(["-set_cover_merge=1", "-use_counters=0", &format!("-max_len={KEPT_BYTES_MAX}")]);
    let output =
        command.arg(&chosen).args([folder_of("seeds", name)?, found, folder_of("corpus", name)?]).output();
    let output = output.with_context(|| format!("run {name}"))?;
    if !output.status.success() {
        println!("{name:<16} FAILED\n{}", String::from_utf8_lossy(&output.stderr));
        return Ok(false);
    }
    let inputs = fs::read_dir(&chosen)?.map(|entry| Ok(fs::read(entry?.path())?)).collect::<Result<_>>()?;
    println!("{name:<16} {} inputs kept", found::commit(name, inputs)?);
    Ok(true)
}

fn run_one(name: &str, plan: Plan) -> Result<Verdict> {
    let [artifacts, seeds] = ["artifacts", "seeds"].map(|kind| folder_of(kind, name));
    let (artifacts, seeds) = (artifacts?, seeds?);
    let target = folder().join("target");
    let found = target.join("found").join(name);
    found::write_out(name, &found)?;
    // The engine reads a list in its order, and a folder in the file system's.
    let inputs = target.join("found").join(format!("{name}.list"));
    fs::write(&inputs, found::list(&[seeds, found])?).context("write the list of inputs")?;
    let mut command = match plan.seed {
        Seed::Fixed(_) => at_fixed_addresses(&program(name)?),
        Seed::Random => Command::new(program(name)?),
    };
    command.current_dir(workspace::root()).stdin(Stdio::null());
    command.args([
        format!("-max_total_time={}", plan.each.as_secs()),
        format!("-timeout={INPUT_SECONDS_MAX}"),
        format!("-max_len={INPUT_BYTES_MAX}"),
        format!("-rss_limit_mb={MEMORY_MB_MAX}"),
        format!("-artifact_prefix={}/", artifacts.display()),
        format!("-seed_inputs=@{}", inputs.display()),
    ]);
    let additions = match plan.seed {
        Seed::Random => folder_of("corpus", name)?,
        Seed::Fixed(seed) => {
            command.arg(format!("-seed={seed}"));
            found::emptied(target.join("checked").join(name))?
        }
    };
    command.arg(additions);
    let output = command.output().with_context(|| format!("run {name}"))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(Verdict { name: name.into(), held: output.status.success() && is_guided(&text), output: text })
}

/// A program without random addresses, where the system allows that: the engine's choices depend on addresses of code.
fn at_fixed_addresses(program: &Path) -> Command {
    let fixed = |program: &Path| {
        let mut command = Command::new("setarch");
        command.arg("--addr-no-randomize").arg(program);
        command
    };
    let probe = fixed(Path::new("true")).stderr(Stdio::null()).status();
    if probe.is_ok_and(|status| status.success()) { fixed(program) } else { Command::new(program) }
}

/// Whether the fuzzer saw coverage; blind, it finds nothing and says so only in passing.
fn is_guided(output: &str) -> bool {
    output.contains("inline 8-bit counters")
}

fn program(name: &str) -> Result<PathBuf> {
    Ok(folder().join("target").join(host()?).join("release").join(name))
}

/// The target's folder of that kind, which is made if it is not there.
fn folder_of(kind: &str, name: &str) -> Result<PathBuf> {
    let folder = folder().join(kind).join(name);
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    Ok(folder)
}

fn folder() -> PathBuf {
    workspace::root().join(Path::new("fuzz"))
}

/// The triple of this machine: naming it keeps the instrumentation out of build scripts.
pub(crate) fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("ask rustc for its host")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc names no host")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(held: bool, output: &str) -> Verdict {
        Verdict { name: "wire_bot".into(), held, output: output.into() }
    }

    #[test]
    fn a_verdict_counts_the_inputs() {
        let line = verdict(true, "#1 INITED\nDone 10995165 runs in 9 second(s)\n").line();
        assert_eq!(line, "wire_bot         ok     10995165 inputs");
    }

    #[test]
    fn a_failure_is_repeated_from_its_input() {
        let output = "artifact_prefix='a/'; Test unit written to a/crash-1\nBase64: YQ==\n";
        assert_eq!(verdict(false, output).repeat(), "cargo xtask fuzz wire_bot --replay a/crash-1");
        assert_eq!(verdict(false, "").repeat(), "cargo xtask fuzz wire_bot");
    }

    #[test]
    fn a_blind_fuzzer_is_noticed() {
        assert!(is_guided("INFO: Loaded 1 modules   (7892 inline 8-bit counters): 7892"));
        assert!(!is_guided("WARNING: no interesting inputs were found so far."));
    }

    #[test]
    fn every_target_of_the_manifest_has_a_file_and_seeds() {
        for name in targets().expect("a manifest") {
            assert!(folder().join("fuzz_targets").join(format!("{name}.rs")).is_file(), "{name}");
            assert!(folder().join("seeds").join(&name).is_dir(), "{name} has no seeds");
        }
    }
}
