//! Archive, Debian package and checksums, the same bytes from the same commit.

use super::{build::Program, made::Made, tree};
use crate::command::output_of;
use crate::workspace;
use anyhow::{Context, Result};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Makes all files of a release in `output`; what an earlier run left there under the same names is replaced.
pub(super) fn all(program: &Program, output: &Path) -> Result<Made> {
    let epoch = epoch()?;
    let architecture = output_of(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned();
    let stage = tempfile::tempdir().context("make a folder to lay files out in")?;
    let archive = archive(program, stage.path(), output, &epoch)?;
    let debian = debian(program, &architecture, stage.path(), output, &epoch)?;
    let sums = sums(&[&archive, &debian], output)?;
    Ok(Made {
        version: program.version.clone(),
        architecture,
        output: output.to_owned(),
        archive,
        debian,
        sums,
    })
}

/// Seconds since 1970 of the commit, which every file is dated with (`SOURCE_DATE_EPOCH` of reproducible-builds.org).
/// A tree without git is dated 1980, which every format can represent.
fn epoch() -> Result<String> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    let mut log = Command::new("git");
    log.args(["log", "-1", "--format=%ct"]).current_dir(workspace::root());
    Ok(output_of(&mut log).map_or_else(|_| "315532800".to_owned(), |seconds| seconds.trim().to_owned()))
}

fn archive(program: &Program, stage: &Path, output: &Path, epoch: &str) -> Result<PathBuf> {
    let name = format!("uaskit-{}-{}", program.version, program.triple);
    tree::of_archive(program, &stage.join(&name))?;
    let file = output.join(format!("{name}.tar.xz"));
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--format=gnu",
        &format!("--mtime=@{epoch}"),
    ]);
    tar.arg("-cJf").arg(&file).arg("-C").arg(stage).arg(&name);
    output_of(&mut tar)?;
    Ok(file)
}

fn debian(
    program: &Program,
    architecture: &str,
    stage: &Path,
    output: &Path,
    epoch: &str,
) -> Result<PathBuf> {
    let name = format!("uaskit_{}-1_{architecture}", program.version);
    let root = stage.join(&name);
    tree::of_debian(program, &root)?;
    let size = output_of(Command::new("du").args(["-sk", "--apparent-size"]).arg(&root))?;
    let kibibytes = size.split_whitespace().next().context("du says nothing")?;
    tree::write(&root.join("DEBIAN/control"), &control(&program.version, architecture, kibibytes))?;
    let file = output.join(format!("{name}.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(&file);
    output_of(build.env("SOURCE_DATE_EPOCH", epoch))?;
    Ok(file)
}

/// The control file of a package that depends on nothing (Debian Policy, 5.3).
fn control(version: &str, architecture: &str, kibibytes: &str) -> String {
    format!(
        "Package: uaskit\n\
         Version: {version}-1\n\
         Architecture: {architecture}\n\
         Maintainer: The authors of uaskit <uaskit@localhost>\n\
         Installed-Size: {kibibytes}\n\
         Section: utils\n\
         Priority: optional\n\
         Description: USB Attached SCSI in user space: drive, initiators, simulator\n \
         A virtual USB drive that real kernels use over UAS or Bulk-Only Transport,\n \
         a bench of both transports on real enclosures, a diagnosis of which one a\n \
         drive is on and why, and a simulated world of controllers, bridges and\n \
         drives that says what each would bring.\n"
    )
}

/// Checksums, as `sha256sum --check` reads them.
fn sums(files: &[&Path], output: &Path) -> Result<PathBuf> {
    let mut sum = Command::new("sha256sum");
    sum.arg("--").args(files.iter().filter_map(|file| file.file_name())).current_dir(output);
    let file = output.join("SHA256SUMS");
    tree::write(&file, &output_of(&mut sum)?)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_file_has_one_paragraph_with_a_long_description() {
        let text = control("0.1.0", "amd64", "9000");
        assert!(text.starts_with("Package: uaskit\nVersion: 0.1.0-1\nArchitecture: amd64\n"));
        let (_, long) = text.split_once("Description: ").expect("a description");
        assert!(long.lines().skip(1).all(|line| line.starts_with(' ') && line.len() <= 80), "{long}");
        assert!(!text.contains("\n\n") && text.ends_with('\n'));
    }

    #[test]
    fn sums_name_files_without_their_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.deb");
        std::fs::write(&file, b"abc").expect("written");
        let sums = sums(&[&file], folder.path()).expect("sums");
        let text = std::fs::read_to_string(sums).expect("text");
        assert_eq!(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a.deb\n");
    }
}
