//! Kernels of newer Debian releases, from the mirror that this machine uses.
//!
//! apt gets its own package lists in a folder of the cache, so the machine's lists and packages do not change. The newest
//! kernel of a suite is found by the pattern of its package's name; image and modules are in one package or in several.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{Error, Result, child, scratch};

/// The Debian suite whose newest kernel a guest runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// The suite in this machine's package lists.
    Installed,
    /// Debian 12, from the mirror whatever this machine is.
    Bookworm,
    /// Debian 13.
    Trixie,
    /// Kernels that Debian has after those of 13.
    TrixieBackports,
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Installed => "installed",
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie",
            Self::TrixieBackports => "trixie-backports",
        })
    }
}

/// Downloads the packages of the suite's newest kernel into `directory`. No root needed.
pub(super) fn fetch_newest_kernel(suite: Suite, directory: &Path) -> Result<Vec<PathBuf>> {
    let apt = Apt::new(suite, directory)?;
    apt.update(suite)?;
    let names = apt.output_of("apt-cache", &["pkgnames", "linux-"])?;
    let names: Vec<&str> = names.lines().collect();
    let packages = newest_kernel(&names);
    if packages.is_empty() {
        return Err(Error::unexpected(format!("find a kernel in {suite}"), names.join(" ")));
    }
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    eprintln!("downloading {} of {suite}: a guest's kernel, not installed", packages.join(" "));
    apt.output_of("apt-get", &[&["download"], &packages[..]].concat())
        .map_err(|error| unreachable(suite, error))?;
    super::packages_in(directory)
}

/// Downloads QEMU of Debian's backports with every library that it needs into `directory`. No root needed.
pub(super) fn fetch_newest_qemu(directory: &Path) -> Result<Vec<PathBuf>> {
    let newest = Suite::TrixieBackports;
    // Its libraries are in the release that it was ported back to.
    let apt = Apt::of_mirror(&mirror()?, &[Suite::Trixie, newest], directory)?;
    apt.update(newest)?;
    eprintln!("downloading the newest QEMU of {newest}: for guests, not installed");
    let suite = newest.to_string();
    let words =
        ["install", "--download-only", "-y", "--no-install-recommends", "-t", &suite, "qemu-system-x86"];
    apt.output_of("apt-get", &words).map_err(|error| unreachable(newest, error))?;
    super::packages_in(&directory.join("cache/archives"))
}

/// The packages of the newest kernel without a flavour such as `-rt`: image, index and modules, which newer ones have in packages of.
fn newest_kernel(names: &[&str]) -> Vec<String> {
    let is_plain =
        |release: &&str| release.starts_with(|sign: char| sign.is_ascii_digit()) && !release.contains('-');
    let releases = names.iter().filter_map(|name| name.strip_prefix("linux-image-")?.strip_suffix("-amd64"));
    let Some(release) = releases.filter(is_plain).max_by_key(|release| numbers(release)) else {
        return Vec::new();
    };
    let parts = ["image", "binary", "base", "modules"].map(|part| format!("linux-{part}-{release}-amd64"));
    parts.into_iter().filter(|part| names.contains(&part.as_str())).collect()
}

/// The numbers of a release, such as 7, 3, 4 and 13 of `7.3.4+deb13`.
fn numbers(release: &str) -> Vec<u64> {
    release.split(|sign: char| !sign.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

/// apt with its lists, its status and its downloads in one folder.
pub(super) struct Apt<'a> {
    directory: &'a Path,
}

/// Time limit of a command of apt: a mirror that stalls is a suite that cannot be reached.
const APT_LIMIT: Duration = Duration::from_secs(240);

/// For how long a suite that could not be reached is not asked again: each of many tests would wait for it.
const UNREACHABLE_FOR: Duration = Duration::from_secs(1_800);

/// The error of a suite that does not answer, which skips what needs it. The suite is noted as one that cannot be reached.
fn unreachable(suite: Suite, error: Error) -> Error {
    let reason = match error {
        Error::Command { status, output, .. } => format!("{status}: {output}"),
        other => other.to_string(),
    };
    // Without the note the next test only waits once more.
    let _ = unreachable_note(suite).map(|note| fs::write(note, &reason));
    skipped(suite, reason)
}

fn skipped(suite: Suite, reason: String) -> Error {
    Error::Unreachable { what: format!("Debian's suite {suite}"), reason }
}

/// Why the suite could not be reached, if that was a short time ago.
fn noted_as_unreachable(suite: Suite) -> Result<Option<String>> {
    let note = unreachable_note(suite)?;
    let written = fs::metadata(&note).and_then(|data| data.modified());
    let is_fresh = written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < UNREACHABLE_FOR));
    Ok(if is_fresh { fs::read_to_string(&note).ok() } else { None })
}

fn unreachable_note(suite: Suite) -> Result<PathBuf> {
    Ok(scratch::cache()?.join(format!("unreachable-{suite}")))
}

impl<'a> Apt<'a> {
    pub(super) fn new(suite: Suite, directory: &'a Path) -> Result<Self> {
        Self::of_mirror(&mirror()?, &[suite], directory)
    }

    fn of_mirror(mirror: &str, suites: &[Suite], directory: &'a Path) -> Result<Self> {
        const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let lists = directory.join("lists/partial");
        scratch::create(&lists)?;
        scratch::create(&directory.join("cache/archives/partial"))?;
        let suites = suites.iter().map(Suite::to_string).collect::<Vec<_>>().join(" ");
        let source =
            format!("Types: deb\nURIs: {mirror}\nSuites: {suites}\nComponents: main\nSigned-By: {KEYS}\n");
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            fs::write(&path, text).map_err(Error::io(format!("write {}", path.display())))
        };
        write("suite.sources", &source)?;
        write("status", "")?;
        Ok(Self { directory })
    }

    /// Reads the suite's list of packages, unless the suite could not be reached a short time ago.
    pub(super) fn update(&self, suite: Suite) -> Result<()> {
        if let Some(reason) = noted_as_unreachable(suite)? {
            return Err(skipped(suite, reason));
        }
        self.output_of("apt-get", &["update"]).map(drop).map_err(|error| unreachable(suite, error))
    }

    pub(super) fn output_of(&self, program: &str, words: &[&str]) -> Result<String> {
        let place = |name: &str| self.directory.join(name).display().to_string();
        let options = [
            format!("Dir::Etc::SourceList={}", place("suite.sources")),
            "Dir::Etc::SourceParts=-".into(),
            format!("Dir::State::Lists={}", place("lists")),
            format!("Dir::State::status={}", place("status")),
            format!("Dir::Cache={}", place("cache")),
            "Acquire::Languages=none".into(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".into(),
            "APT::Sandbox::User=root".into(),
            // Without it apt-get update reports success when no list could be read.
            "APT::Update::Error-Mode=any".into(),
            "Acquire::http::Timeout=20".into(),
        ];
        let mut command = Command::new(program);
        command.arg("-qq").args(options.iter().flat_map(|option| ["-o", option.as_str()])).args(words);
        let printed = child::output_within(APT_LIMIT, command.current_dir(self.directory))?;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }
}

/// The mirror in this machine's sources.
fn mirror() -> Result<String> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian"]);
    let named = |targets: &mut Command| {
        let listed = child::text_of(targets)?;
        let first = listed.lines().next().map(str::to_owned);
        first.ok_or_else(|| Error::unexpected("find Debian's mirror", "this machine's apt names none"))
    };
    named(&mut targets).or_else(|_| {
        super::update()?;
        named(&mut targets)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_is_found_by_its_numbers() {
        let names = [
            "linux-image-6.12.9+deb13-amd64",
            "linux-image-6.12.107+deb13-amd64",
            "linux-image-6.12.107+deb13-amd64-dbg",
            "linux-image-6.12.107+deb13-amd64-unsigned",
            "linux-image-6.12.117+deb13-rt-amd64",
            "linux-image-amd64",
        ];
        assert_eq!(newest_kernel(&names), ["linux-image-6.12.107+deb13-amd64"]);
    }

    #[test]
    fn modules_in_a_separate_package_come_along() {
        let names = [
            "linux-modules-7.3.4+deb13-amd64",
            "linux-image-7.3.4+deb13-amd64",
            "linux-binary-7.3.4+deb13-amd64",
            "linux-binary-unsigned-7.3.4+deb13-amd64",
            "linux-base-7.3.4+deb13-amd64",
            "linux-image-7.2.12+deb13-amd64",
        ];
        let packages = newest_kernel(&names);
        assert_eq!(
            packages,
            ["image", "binary", "base", "modules"].map(|part| format!("linux-{part}-7.3.4+deb13-amd64"))
        );
    }

    #[test]
    fn a_mirror_that_does_not_answer_is_unreachable_and_no_failure() {
        let place = scratch::Scratch::new().expect("a directory");
        let directory = place.path("");
        // Port 9 of this machine: nothing listens there.
        let apt = Apt::of_mirror("http://127.0.0.1:9/debian", &[Suite::Trixie], &directory).expect("files");
        let error = apt.update(Suite::Trixie).expect_err("nothing answers");
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains("trixie"), "{error}");
    }

    #[test]
    fn a_suite_without_a_kernel_has_none() {
        assert_eq!(newest_kernel(&["linux-image-amd64", "linux-libc-dev"]), [""; 0]);
    }
}
