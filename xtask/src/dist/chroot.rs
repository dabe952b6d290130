//! The files of a release, tried where nothing else is installed.
//!
//! A Debian of essential packages alone is made once, from the lists that this machine's apt reads, and kept; each
//! check works on a copy. The archive's program is also run in a root that holds nothing but itself, which only a
//! static program survives.

use super::made::Made;
use crate::command::output_of;
use anyhow::{Context, Result, bail, ensure};
use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Where the packages put what they bring, beside the program itself.
const INSTALLED: [&str; 6] = [
    "usr/share/man/man1/uaskit.1.gz",
    "usr/share/man/man1/uaskit-serve.1.gz",
    "usr/share/bash-completion/completions/uaskit",
    "usr/share/zsh/vendor-completions/_uaskit",
    "usr/share/fish/vendor_completions.d/uaskit.fish",
    "usr/share/doc/uaskit/copyright",
];

/// Installs, runs and removes; what held, a sentence each.
pub(super) fn check(made: &Made) -> Result<Vec<String>> {
    ensure!(rustix::process::geteuid().is_root(), "a chroot needs root: sudo cargo xtask dist --check");
    let mut held = Vec::new();
    let sums = made.sums.file_name().context("sums without a name")?;
    output_of(Command::new("sha256sum").arg("--check").arg(sums).current_dir(&made.output))?;
    held.push("the checksums are those of the files".to_owned());
    alone(made)?;
    held.push("the archive's program runs in a root that holds nothing else".to_owned());
    let scratch = tempfile::tempdir().context("make a folder for the chroot")?;
    let root = scratch.path().join("root");
    std::fs::create_dir(&root).with_context(|| format!("create {}", root.display()))?;
    output_of(
        Command::new("tar").arg("-xf").arg(debian(&made.output, &made.architecture)?).arg("-C").arg(&root),
    )?;
    installed(made, &root)?;
    held.push(format!("{} installs in a clean Debian and runs there", name(&made.debian)));
    served(&root)?;
    held.push("it serves a drive there".to_owned());
    inside(&root, &["dpkg", "--remove", "uaskit"])?;
    for file in INSTALLED.iter().chain(&["usr/bin/uaskit"]) {
        ensure!(!root.join(file).exists(), "{file} is still there after the package was removed");
    }
    held.push("removed, it leaves nothing".to_owned());
    Ok(held)
}

/// The archive's program, in a root without libraries.
fn alone(made: &Made) -> Result<()> {
    let scratch = tempfile::tempdir().context("make an empty root")?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(&made.archive).args(["--strip-components=1", "-C"]).arg(scratch.path());
    output_of(&mut unpack)?;
    let said = inside(scratch.path(), &["/uaskit", "--version"])?;
    ensure!(said.trim() == format!("uaskit {}", made.version), "the archive's program says {said}");
    let validated = inside(scratch.path(), &["/uaskit", "compare", "--raw", "--commands", "200"])?;
    ensure!(validated.contains("UAS"), "the archive's program compares nothing: {validated}");
    Ok(())
}

/// The package, in a Debian.
fn installed(made: &Made, root: &Path) -> Result<()> {
    std::fs::copy(&made.debian, root.join("uaskit.deb")).context("copy the package into the chroot")?;
    inside(root, &["dpkg", "--install", "/uaskit.deb"])?;
    let said = inside(root, &["uaskit", "--version"])?;
    ensure!(said.trim() == format!("uaskit {}", made.version), "the installed program says {said}");
    for file in INSTALLED {
        ensure!(root.join(file).is_file(), "the package brings no {file}");
    }
    let page = inside(root, &["sh", "-c", "zcat /usr/share/man/man1/uaskit.1.gz"])?;
    ensure!(page.contains(".TH uaskit 1"), "the manual page is none");
    let completes = inside(
        root,
        &["bash", "-c", ". /usr/share/bash-completion/completions/uaskit && complete -p uaskit"],
    )?;
    ensure!(completes.contains("_uaskit"), "bash completes nothing: {completes}");
    let parts = inside(root, &["uaskit", "compare", "--list-parts"])?;
    ensure!(parts.contains("asm1051e"), "the installed program has no parts: {parts}");
    Ok(())
}

/// A drive in memory, served over a socket in the chroot until it says that it listens.
fn served(root: &Path) -> Result<()> {
    let mut serve = Command::new("chroot");
    serve.arg(root).args(["uaskit", "serve", "--ram", "16M", "--usbredir", "unix:/tmp/drive.sock", "--json"]);
    let mut drive = serve.stdout(Stdio::piped()).spawn().context("start chroot")?;
    let lines = drive.stdout.take().map(|out| BufReader::new(out).lines().map_while(std::result::Result::ok));
    let events = lines.into_iter().flatten().map(|line| serde_json::from_str::<serde_json::Value>(&line));
    let listens = events.map_while(std::result::Result::ok).any(|event| event["event"] == "listening");
    let there = root.join("tmp/drive.sock").exists();
    drive.kill().and_then(|()| drive.wait()).context("stop the drive")?;
    ensure!(listens && there, "the drive ended before it listened, or listens nowhere");
    Ok(())
}

fn inside(root: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new("chroot");
    command
        .arg(root)
        .args(words)
        .env_clear()
        .env("PATH", "/usr/bin:/usr/sbin:/bin:/sbin")
        .stdin(Stdio::null());
    output_of(&mut command).context("in the chroot")
}

/// A Debian of essential packages as an archive, made once, of the release that this machine runs.
fn debian(output: &Path, architecture: &str) -> Result<PathBuf> {
    let release = std::fs::read_to_string("/etc/os-release").context("read /etc/os-release")?;
    let Some(suite) = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME=")) else {
        bail!("/etc/os-release names no release; --check needs Debian");
    };
    let file = output.join(format!("debian-{suite}-{architecture}.tar"));
    if !file.exists() {
        let unfinished = file.with_extension("unfinished.tar");
        let mut make = Command::new("mmdebstrap");
        make.args(["--quiet", "--variant=essential", &format!("--architectures={architecture}"), suite]);
        output_of(make.arg(&unfinished))?;
        std::fs::rename(&unfinished, &file).with_context(|| format!("name {}", file.display()))?;
    }
    Ok(file)
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}
