//! The Debian packages that the scenarios need, each with its reason.
//!
//! A fresh machine has Rust and apt, nothing else. Run as root, [`ensure`] prints what it installs and why,
//! and installs it; run as somebody else it prints the one line for the administrator. The guest's kernel and its udev
//! are downloaded and unpacked in the cache, never installed: that needs no root.

mod source;
mod suite;

pub use source::{LinuxSource, linux_source};
pub use suite::Suite;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Error, Result, child, scratch};

/// A package, a file by which one sees that it is there, and why it is wanted.
struct Package {
    name: &'static str,
    /// A program on the path, or an absolute path.
    sign: &'static str,
    why: &'static str,
}

const fn package(name: &'static str, sign: &'static str, why: &'static str) -> Package {
    Package { name, sign, why }
}

const PACKAGES: &[Package] = &[
    package("qemu-system-x86", "qemu-system-x86_64", "the machine that the drive is plugged into"),
    package("qemu-utils", "qemu-img", "disk images"),
    package("seabios", "/usr/share/seabios/bios-256k.bin", "firmware that boots from the drive"),
    package("ovmf", "/usr/share/ovmf/OVMF.fd", "UEFI firmware that boots from the drive"),
    package("busybox-static", "busybox", "the guest's user space"),
    package("cpio", "cpio", "packs the guest's initramfs"),
    package("kmod", "modprobe", "finds the guest's kernel modules"),
    package("xz-utils", "xz", "unpacks the guest's kernel"),
    package("zstd", "zstd", "unpacks newer kernels"),
    package("e2fsprogs", "mkfs.ext4", "a file system on the drive"),
    package("mtools", "mformat", "a file system that UEFI firmware boots from"),
    package("fio", "fio", "load, verification, measurement"),
    package("pciutils", "lspci", "the controllers that the guest sees"),
    package("usbutils", "lsusb", "what the guest sees on its bus"),
    package("sg3-utils", "sg_inq", "SCSI commands from the guest"),
    package("libiscsi-bin", "iscsi-test-cu", "the SCSI conformance suite"),
    package("smartmontools", "smartctl", "SMART through ATA pass-through"),
    package("hdparm", "hdparm", "IDENTIFY through ATA pass-through"),
    package("strace", "strace", "refuses a program of the guest what the kernel would grant"),
    package("usbip", "usbipd", "drives that the guest exports to itself over USB/IP"),
    package("tshark", "tshark", "captures and dissects the guest's USB traffic"),
    package("chromium", "chromium", "opens reports"),
    package("nodejs", "node", "drives the browser"),
    package("npm", "npm", "fetches what drives it, and what checks accessibility"),
];

/// File systems besides ext4, for the matrix of kernels.
const FILE_SYSTEMS: &[Package] = &[
    package("xfsprogs", "mkfs.xfs", "makes and checks XFS"),
    package("btrfs-progs", "mkfs.btrfs", "makes and checks btrfs"),
    package("dosfstools", "mkfs.vfat", "makes and checks FAT"),
];

/// Servers of remote images.
const NBD: &[Package] = &[
    package("nbdkit", "nbdkit", "serves memory, files, web pages and errors as network block devices"),
    package("qemu-utils", "qemu-nbd", "serves qcow2 images as network block devices"),
];

/// Discs: images of them, and programs that ask a drive about one.
const OPTICAL: &[Package] = &[
    package("xorriso", "xorriso", "makes ISO images, and reads discs in the guest"),
    package("libcdio-utils", "cd-info", "asks a drive about its disc"),
    package("setcd", "setcd", "asks the kernel about a drive and its disc"),
    package("eject", "eject", "opens and closes the tray"),
];

/// Packages that building the fuzz targets needs besides Rust.
const COMPILER: &[Package] = &[package("g++", "c++", "builds the engine of the fuzz targets")];

/// Packages that build and test our own packages.
const PACKAGING: &[Package] = &[
    package("xz-utils", "xz", "packs the archive"),
    package("mmdebstrap", "mmdebstrap", "makes a Debian with nothing in it, to install the package in"),
];

/// Packages that a program for musl needs besides, for its parts in C.
const MUSL: &[Package] = &[package("musl-tools", "musl-gcc", "compiles for musl what is C")];

/// Sees to it that every package is there: installs as root, else fails with the line to type.
pub fn ensure() -> Result<()> {
    ensure_all(PACKAGES)
}

/// As [`ensure`], for programs of file systems besides ext4.
pub fn ensure_file_systems() -> Result<()> {
    ensure_all(FILE_SYSTEMS)
}

/// As [`ensure`], for servers of network block devices.
pub fn ensure_nbd() -> Result<()> {
    ensure_all(NBD)
}

/// As [`ensure`], for images of discs and programs of optical drives.
pub fn ensure_optical() -> Result<()> {
    ensure_all(OPTICAL)
}

/// As [`ensure`], for the C++ compiler that fuzzing needs and the guests do not.
pub fn ensure_compiler() -> Result<()> {
    ensure_all(COMPILER)
}

/// As [`ensure`], for building our own packages.
pub fn ensure_packaging() -> Result<()> {
    ensure_all(PACKAGING)
}

/// As [`ensure`], for a program that is linked with musl.
pub fn ensure_musl() -> Result<()> {
    ensure_all(MUSL)
}

fn ensure_all(packages: &[Package]) -> Result<()> {
    let missing: Vec<&Package> = packages.iter().filter(|package| find(package.sign).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let reasons: String = missing.iter().map(|p| format!("  {:<16} {}\n", p.name, p.why)).collect();
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    if !rustix::process::geteuid().is_root() {
        return Err(Error::Missing { reasons, remedy: install_line(&names) });
    }
    eprintln!("installing:\n{reasons}");
    // The lists may be absent (a fresh container) or stale; asking for them is only worth it then.
    install(&names).or_else(|_| {
        update()?;
        install(&names)
    })
}

/// Downloads the packages of a suite's newest kernel into `directory` and returns their paths. No root needed.
pub(crate) fn fetch_kernel(suite: Suite, directory: &Path) -> Result<Vec<PathBuf>> {
    if suite != Suite::Installed {
        return suite::fetch_newest_kernel(suite, directory);
    }
    let name = kernel_name().or_else(|_| {
        update()?;
        kernel_name()
    })?;
    eprintln!("downloading {name}: the guest's kernel, unpacked in {}, not installed", directory.display());
    fetch(&name, directory).map(|package| vec![package])
}

/// Downloads a package into a directory without others and returns its path. No root needed.
fn fetch(name: &str, directory: &Path) -> Result<PathBuf> {
    let mut download = Command::new("apt-get");
    download.args(["download", name]).current_dir(directory);
    child::output_of(&mut download).or_else(|_| {
        update()?;
        child::output_of(&mut download)
    })?;
    let package = packages_in(directory)?.into_iter().next();
    package.ok_or_else(|| Error::unexpected(format!("apt-get download {name}"), "left no .deb file"))
}

/// Every package file in a directory.
fn packages_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory).map_err(Error::io(format!("list {}", directory.display())))?;
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "deb")).collect())
}

/// Returns the directory that holds the files of a package, downloaded and unpacked in the cache
/// where it is not there yet. The package is never installed: a daemon of the guest's is none of
/// this machine's.
pub(crate) fn unpacked(name: &str) -> Result<PathBuf> {
    unpacked_once(&format!("packages/{name}"), |download| {
        eprintln!("downloading {name}: for guests, unpacked in the cache, not installed");
        fetch(name, download).map(|package| vec![package])
    })
}

/// The newest QEMU of Debian's backports, unpacked below the directory that comes back and never installed: that of an older
/// release does not know vfio-user.
pub(crate) fn newest_qemu() -> Result<PathBuf> {
    unpacked_once("newest-qemu", suite::fetch_newest_qemu)
}

/// Unpacks the packages that `fetch` puts into a directory, unless the cache has `place` already. Returns where they are.
fn unpacked_once(place: &str, fetch: impl FnOnce(&Path) -> Result<Vec<PathBuf>>) -> Result<PathBuf> {
    let cache = scratch::cache()?;
    // One downloads, the others wait for it.
    let _lock = scratch::lock(&cache)?;
    let root = cache.join(place);
    if root.exists() {
        return Ok(root);
    }
    let download = cache.join("download-package");
    // Whatever an interrupted run left there is not to be trusted.
    let _ = std::fs::remove_dir_all(&download);
    let half = download.join("root");
    scratch::create(&half)?;
    scratch::create(root.parent().unwrap_or(&cache))?;
    for package in fetch(&download)? {
        child::output_of(Command::new("dpkg").arg("-x").arg(&package).arg(&half))?;
    }
    std::fs::rename(&half, &root).map_err(Error::io(format!("rename {}", half.display())))?;
    std::fs::remove_dir_all(&download).map_err(Error::io("remove the downloaded packages"))?;
    Ok(root)
}

/// Where a program is; `sbin` counts, whether or not it is on the path of this user.
pub fn find(program: &str) -> Option<PathBuf> {
    if program.starts_with('/') {
        return Some(PathBuf::from(program)).filter(|path| path.exists());
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let directories = path.split(':').chain(["/usr/bin", "/usr/sbin", "/bin", "/sbin"]);
    directories.map(|directory| Path::new(directory).join(program)).find(|path| path.is_file())
}

/// The package that `linux-image-amd64` stands for today.
fn kernel_name() -> Result<String> {
    const ALIAS: &str = "linux-image-amd64";
    let depends = child::text_of(Command::new("apt-cache").args(["depends", ALIAS]))?;
    depended_kernel(&depends)
        .map(str::to_owned)
        .ok_or_else(|| Error::unexpected(format!("apt-cache depends {ALIAS}"), depends))
}

fn depended_kernel(depends: &str) -> Option<&str> {
    let names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.map(str::trim).find(|name| name.starts_with("linux-image-") && name.ends_with("-amd64"))
}

fn update() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        let reasons = "  the package lists, to find the guest's kernel\n".to_owned();
        return Err(Error::Missing { reasons, remedy: "sudo apt-get update".into() });
    }
    eprintln!("updating the package lists");
    child::output_of(Command::new("apt-get").args(["update", "-qq"])).map(drop)
}

fn install(names: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command.args(["install", "-y", "-qq", "--no-install-recommends"]).args(names);
    child::output_within(child::BUILD_LIMIT, &mut command).map(drop)
}

fn install_line(names: &[&str]) -> String {
    let install = "sudo apt-get install -y --no-install-recommends";
    format!("sudo apt-get update && {install} {}", names.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_what_its_alias_depends_on() {
        let printed = "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n  Breaks: other\n";
        assert_eq!(depended_kernel(printed), Some("linux-image-6.1.0-56-amd64"));
        assert_eq!(depended_kernel("linux-image-amd64\n"), None);
    }

    #[test]
    fn the_remedy_is_one_line_that_can_be_pasted() {
        assert_eq!(
            install_line(&["fio", "cpio"]),
            "sudo apt-get update && sudo apt-get install -y --no-install-recommends fio cpio"
        );
    }

    #[test]
    fn a_program_outside_the_users_path_is_found() {
        assert!(find("sh").is_some());
        assert!(find("/bin/sh").is_some());
        assert!(find("no-such-program").is_none());
    }
}
