//! Builds the guest: a kernel image and an initramfs, kept in the cache until one of their parts changes.
//!
//! The initramfs holds busybox, the tools with the shared libraries that `ldd` names, and kernel modules.
//! It is not compressed: unpacking a hundred megabytes under emulation takes longer than loading them.

use std::{
    collections::BTreeSet,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::kernel::Kernel;
use crate::{Error, Result, child, debian, debian::Suite, scratch, scratch::Scratch};

/// The kernel and the initramfs that QEMU boots.
#[derive(Clone, Debug)]
pub struct Image {
    /// The kernel.
    pub kernel: PathBuf,
    /// The initramfs.
    pub initramfs: PathBuf,
}

impl Image {
    /// The image in the cache, or a new one: installs packages and downloads a kernel where they are missing.
    pub fn prepare(suite: Suite) -> Result<Self> {
        let cache = scratch::cache()?;
        // One builds, the others wait for it.
        let _lock = scratch::lock(&cache)?;
        debian::ensure()?;
        let cache = match suite {
            Suite::Installed => cache,
            newer => cache.join(newer.to_string()),
        };
        scratch::create(&cache)?;
        let kernel = Kernel::prepare(suite, &cache)?;
        let programs = programs()?;
        let initramfs = cache.join(format!("guest-{:016x}.cpio", content_key(&kernel, &programs)?));
        if !initramfs.exists() {
            remove_old_images(&cache)?;
            build(&kernel, &programs, &initramfs)?;
        }
        Ok(Self { kernel: kernel.image, initramfs })
    }
}

/// The programs that scenarios run, beside busybox.
const PROGRAMS: &[&str] = &[
    "fio",
    "lsusb",
    "lspci",
    "iscsi-test-cu",
    "smartctl",
    "hdparm",
    "mkfs.ext4",
    "e2fsck",
    "tune2fs",
    "dumpcap",
    "strace",
    "usbip",
    "usbipd",
];

/// Modules that a scenario may name, with all that they need.
const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_console",
    "virtio_blk",
    "xhci-pci",
    "ehci-pci",
    "uhci-hcd",
    "uas",
    "usb-storage",
    "sd_mod",
    "sr_mod",
    "sg",
    "usbmon",
    "isofs",
    "ext4",
    "xfs",
    "btrfs",
    "vfat",
    "nls_cp437",
    "nls_ascii",
    "crc32c_generic",
    "loop",
    "vhci-hcd",
    "usbip-host",
    "dummy_hcd",
    "vfio_iommu_type1",
    "vfio-pci",
];

const SCRIPTS: &[(&str, &str)] = &[
    ("init", include_str!("init.sh")),
    ("usr/share/interop/agent.sh", include_str!("agent.sh")),
    ("usr/share/interop/disks.sh", include_str!("disks.sh")),
];

/// Where busybox, the tools and every program of sg3-utils are on the host.
fn programs() -> Result<Vec<PathBuf>> {
    let found = |name: &str| {
        debian::find(name).ok_or_else(|| Error::unexpected(format!("find {name}"), "it is not installed"))
    };
    let mut programs = PROGRAMS.iter().map(|name| found(name)).collect::<Result<Vec<_>>>()?;
    programs.push(found("busybox")?);
    let directory = found("sg_inq")?;
    let directory = directory.parent().unwrap_or(&directory);
    let entries = fs::read_dir(directory).map_err(Error::io(format!("list {}", directory.display())))?;
    let names = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut sg: Vec<PathBuf> = names.filter(|path| name_of(path).starts_with("sg_")).collect();
    sg.sort();
    programs.extend(sg);
    Ok(programs)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Changes when any part of the image does. A program is known by its length and time.
fn content_key(kernel: &Kernel, programs: &[PathBuf]) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    (&kernel.release, MODULES, SCRIPTS).hash(&mut hasher);
    for program in programs {
        let meta = fs::metadata(program).map_err(Error::io(format!("look at {}", program.display())))?;
        (program, meta.len(), meta.mtime()).hash(&mut hasher);
    }
    Ok(hasher.finish())
}

fn remove_old_images(cache: &Path) -> Result<()> {
    let entries = fs::read_dir(cache).map_err(Error::io(format!("list {}", cache.display())))?;
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if name_of(&path).starts_with("guest-") {
            fs::remove_file(&path).map_err(Error::io(format!("remove {}", path.display())))?;
        }
    }
    Ok(())
}

fn build(kernel: &Kernel, programs: &[PathBuf], initramfs: &Path) -> Result<()> {
    let staging = Scratch::new()?;
    let root = staging.path("root");
    for directory in ["bin", "sbin", "dev", "proc", "sys", "tmp", "run", "mnt", "etc", "usr/bin", "usr/sbin"]
    {
        scratch::create(&root.join(directory))?;
    }
    let mut libraries = BTreeSet::new();
    for program in programs {
        let name = name_of(program);
        let directory = if name == "busybox" { "bin" } else { "usr/bin" };
        copy(program, &root.join(directory).join(name))?;
        libraries.extend(libraries_of(program));
    }
    for library in libraries {
        copy(&library, &root.join(library.strip_prefix("/").unwrap_or(&library)))?;
    }
    for (path, script) in SCRIPTS {
        let path = root.join(path);
        scratch::create(path.parent().unwrap_or(&path))?;
        fs::write(&path, script)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
            .map_err(Error::io(format!("write {}", path.display())))?;
    }
    kernel.install_modules(MODULES, &root)?;
    // The kernel itself asks for modules by this name: ext4 for its checksum.
    std::os::unix::fs::symlink("/bin/busybox", root.join("sbin/modprobe"))
        .map_err(Error::io("link modprobe"))?;
    pack(&root, initramfs)
}

/// The shared libraries of a program and its loader; none for a static one.
pub(super) fn libraries_of(program: &Path) -> Vec<PathBuf> {
    let listed = child::text_of(Command::new("ldd").arg(program)).unwrap_or_default();
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    listed.lines().filter_map(path).collect()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    scratch::create(to.parent().unwrap_or(to))?;
    fs::copy(from, to).map(drop).map_err(Error::io(format!("copy {} to {}", from.display(), to.display())))
}

/// Packs `root` so that the file appears only once it is whole.
fn pack(root: &Path, initramfs: &Path) -> Result<()> {
    let half = initramfs.with_extension("half");
    let file = fs::File::create(&half).map_err(Error::io(format!("create {}", half.display())))?;
    let packed = Command::new("sh")
        .args(["-c", "find . | LC_ALL=C sort | cpio -o -H newc -R 0:0 --quiet"])
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(file)
        .status()
        .map_err(Error::io("start cpio"))?;
    if !packed.success() {
        return Err(Error::unexpected("pack the initramfs", packed.to_string()));
    }
    fs::rename(&half, initramfs).map_err(Error::io(format!("rename {}", half.display())))
}
