//! Linux's sources as Debian packages them, of which single files are read.
//!
//! The package is downloaded into a directory that goes away: it is 150 MB, and two files of it are needed.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::{Suite, suite::Apt};
use crate::{Error, Result, child, scratch::Scratch};

/// Files of Linux's sources.
#[derive(Debug)]
pub struct LinuxSource {
    /// The release, such as `6.12.118`.
    pub release: String,
    /// The text of each file that was asked for, in their order.
    pub files: Vec<String>,
}

/// Reads files of the newest sources of Linux in a suite.
pub fn linux_source(suite: Suite, names: &[&str]) -> Result<LinuxSource> {
    let place = Scratch::on_disk()?;
    let directory = place.path("");
    let apt = Apt::new(suite, &directory)?;
    apt.update(suite)?;
    let listed = apt.output_of("apt-cache", &["pkgnames", "linux-source-"])?;
    let package =
        newest(&listed).ok_or_else(|| Error::unexpected(format!("find sources in {suite}"), &*listed))?;
    eprintln!("downloading {package} of {suite}");
    apt.output_of("apt-get", &["download", package])?;
    let deb = super::packages_in(&directory)?.into_iter().next();
    let deb =
        deb.ok_or_else(|| Error::unexpected(format!("apt-get download {package}"), "left no .deb file"))?;
    let version = child::text_of(Command::new("dpkg-deb").args(["-f"]).arg(&deb).arg("Version"))?;
    let root = directory.join("root");
    child::output_of(Command::new("dpkg").arg("-x").arg(&deb).arg(&root))?;
    let archive = root.join(format!("usr/src/{package}.tar.xz"));
    let files = unpacked(&archive, package, names, &directory)?;
    Ok(LinuxSource { release: release(&version), files })
}

/// The files of the archive, which is unpacked once.
fn unpacked(archive: &Path, package: &str, names: &[&str], directory: &Path) -> Result<Vec<String>> {
    let members: Vec<String> = names.iter().map(|name| format!("{package}/{name}")).collect();
    let mut tar = Command::new("tar");
    tar.arg("-xJf").arg(archive).arg("-C").arg(directory).args(&members);
    child::output_of(&mut tar)?;
    let read = |member: &String| {
        let path: PathBuf = directory.join(member);
        std::fs::read_to_string(&path).map_err(Error::io(format!("read {}", path.display())))
    };
    members.iter().map(read).collect()
}

/// The package of the newest version: `linux-source-6.12` without what follows in other packages.
fn newest(names: &str) -> Option<&str> {
    let version = |name: &&str| -> Option<(u32, u32)> {
        let (major, minor) = name.strip_prefix("linux-source-")?.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    names.lines().filter(|name| version(name).is_some()).max_by_key(|name| version(name))
}

/// `6.1.192` of `6.1.192-1`, `7.3.4` of `7.3.4-1~bpo13+1`.
fn release(version: &str) -> String {
    version.trim().split(['-', '~', '+']).next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_source_is_found_by_its_numbers() {
        let names = "linux-source-6.9\nlinux-source-6.12\nlinux-source-6.12-rt\nlinux-source-all\n";
        assert_eq!(newest(names), Some("linux-source-6.12"));
        assert_eq!(newest("linux-source-all"), None);
        assert_eq!((release("6.1.192-1\n"), release("7.3.4-1~bpo13+1")), ("6.1.192".into(), "7.3.4".into()));
    }
}
