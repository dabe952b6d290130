//! `cargo xtask profiled`: the program, built with a profile of its branches.
//!
//! A compiler does not know which way a branch mostly goes, and mixes rare code with frequent code. With a profile it does better. So
//! the program is built with counters in it, does for some seconds what it is mostly used for ([`TRAINING`]), and is built again with
//! what was counted. Counts depend on time, so that two builds differ in their bytes: `cargo xtask dist`, whose bytes do not, goes
//! without. Needs LLVM's tools of this very compiler, which `rustup` has.

use crate::command::output_of;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use uaskit_interop::scratch;

/// Options of `cargo xtask profiled`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where to put the program
    #[arg(long, default_value = "target/profiled/uaskit")]
    output: PathBuf,
}

/// The most frequent uses of the program: transports in memory, simulated worlds, captures.
/// [`train_server`] does the rest.
const TRAINING: &[&str] = &[
    "bench --virtual --transport all --rw randrw --depth 32 --seconds 1 --rounds 1",
    "bench --virtual --transport all --rw rw --bs 512k --seconds 1 --rounds 1",
    "compare",
    "compare --raw --capture training.pcapng",
    "decode training.pcapng",
];

/// Builds the program, and says where it is.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let built = build("uaskit", |counting, place| {
        for arguments in TRAINING {
            let mut program = Command::new(counting);
            program.args(arguments.split(' ')).current_dir(place).stdin(Stdio::null());
            output_of(&mut program)?;
        }
        train_server(counting)
    })?;
    let output = workspace::root().join(&options.output);
    if let Some(folder) = output.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    std::fs::copy(&built, &output).with_context(|| format!("write {}", output.display()))?;
    println!("{}", output.display());
    Ok(true)
}

/// Has a server answer the load of the bench over a socket. Which bars it reaches is nothing to us.
fn train_server(counting: &Path) -> Result<()> {
    let mut bench = Command::new(std::env::current_exe().context("find this program")?);
    bench.args(["bench", "drive", "--only", "socket", "--rounds", "1", "--seconds", "0.3", "--json"]);
    bench.env("UASKIT_BIN", counting).stdout(Stdio::null());
    bench.status().context("run the load")?;
    Ok(())
}

/// Builds a package's program with a profile of what `train` has it do, given the program that counts and a folder to be in; where
/// it is.
pub(crate) fn build(package: &str, train: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<PathBuf> {
    let merge = profdata()?;
    let target = scratch::target().join("profiled-build");
    let counts = target.join("counts");
    // What another build has counted is of no use.
    if counts.exists() {
        std::fs::remove_dir_all(&counts).with_context(|| format!("clear {}", counts.display()))?;
    }
    std::fs::create_dir_all(&counts).with_context(|| format!("create {}", counts.display()))?;
    eprintln!("building {package} with counters");
    let counting = cargo_build(package, &target, "-Cprofile-generate=", &counts)?;
    eprintln!("counting");
    train(&counting, &counts)?;
    let profile = target.join("branches.profdata");
    output_of(Command::new(merge).arg("merge").arg("-o").arg(&profile).args(counted(&counts)?))?;
    eprintln!("building {package} with what was counted");
    cargo_build(package, &target, "-Cprofile-use=", &profile)
}

/// Lists the profiles that instrumented programs have written.
fn counted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("list {}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "profraw") {
            files.push(path);
        }
    }
    ensure!(!files.is_empty(), "nothing was counted in {}", folder.display());
    Ok(files)
}

/// A release build with one more flag, in a separate folder.
fn cargo_build(package: &str, target: &Path, flag: &str, path: &Path) -> Result<PathBuf> {
    let mut last = OsString::from(flag);
    last.push(path);
    let usual = std::env::var("RUSTFLAGS").unwrap_or_default();
    let mut flags: Vec<OsString> = usual.split_whitespace().map(OsString::from).collect();
    flags.push(last);
    let mut build = Command::new(env!("CARGO"));
    build
        .args(["build", "--quiet", "--profile", "dist", "--locked", "--package", package, "--target-dir"])
        .arg(target);
    build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}".as_ref())).current_dir(workspace::root());
    output_of(&mut build)?;
    Ok(target.join("dist").join(package))
}

/// LLVM's tool that merges counts, of the compiler's own version: others do not read what it writes.
fn profdata() -> Result<PathBuf> {
    let library = output_of(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let path =
        Path::new(library.trim()).parent().context("the compiler has no library")?.join("bin/llvm-profdata");
    if !path.exists() {
        eprintln!("installing LLVM's tools of this compiler");
        output_of(Command::new("rustup").args(["component", "add", "llvm-tools"]))
            .context("a profile needs `llvm-profdata` of this very compiler, which `rustup component add llvm-tools` installs")?;
    }
    ensure!(path.exists(), "{} is not there", path.display());
    Ok(path)
}
