//! A Debian kernel, unpacked in the cache: the image that QEMU boots, and its modules.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{Error, Result, child, debian, debian::Suite, scratch};

/// An unpacked kernel package.
#[derive(Debug)]
pub(super) struct Kernel {
    /// The release, as `uname -r` prints it.
    pub(super) release: String,
    /// The file that QEMU boots.
    pub(super) image: PathBuf,
    /// The directory that holds `lib/modules`.
    root: PathBuf,
}

impl Kernel {
    /// The cached kernel, downloaded and unpacked first if there is none.
    pub(super) fn prepare(suite: Suite, cache: &Path) -> Result<Self> {
        let root = cache.join("kernel");
        let image = root.join("boot/image");
        if !image.exists() {
            unpack(suite, cache, &root)?;
        }
        let modules = root.join("lib/modules");
        let release = only_entry(&modules)?.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { release, image, root })
    }

    /// The files of `module` and of all it needs, in the order in which they must be loaded.
    /// Empty when it is built in; `None` when this kernel lacks it.
    pub(super) fn module_files(&self, module: &str) -> Result<Option<Vec<PathBuf>>> {
        let mut command = Command::new(program("modprobe"));
        command.arg("-d").arg(&self.root).args(["-S", &self.release, "--show-depends", module]);
        match child::text_of(&mut command) {
            Ok(listed) => {
                let files = listed.lines().filter_map(|line| line.strip_prefix("insmod "));
                Ok(Some(files.map(|file| PathBuf::from(file.trim())).collect()))
            }
            Err(Error::Command { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts `modules` and all they need under `root`, with the index that the guest's modprobe reads.
    pub(super) fn install_modules(&self, modules: &[&str], root: &Path) -> Result<()> {
        for &module in modules {
            let Some(files) = self.module_files(module)? else {
                eprintln!("the guest's kernel {} has no module {module}", self.release);
                continue;
            };
            for file in files {
                let inside = file.strip_prefix(&self.root).unwrap_or(&file);
                copy_module(&file, &root.join(inside))?;
            }
        }
        let index = root.join("lib/modules").join(&self.release);
        for name in ["modules.order", "modules.builtin"] {
            let from = self.root.join("lib/modules").join(&self.release).join(name);
            fs::copy(&from, index.join(name)).map_err(Error::io(format!("copy {}", from.display())))?;
        }
        child::output_of(Command::new(program("depmod")).arg("-b").arg(root).arg(&self.release)).map(drop)
    }
}

/// A program that may be outside this user's path.
fn program(name: &str) -> PathBuf {
    debian::find(name).unwrap_or_else(|| PathBuf::from(name))
}

/// Copies a module to the same place; a compressed one is unpacked, since busybox loads only plain ones.
fn copy_module(from: &Path, to: &Path) -> Result<()> {
    scratch::create(to.parent().unwrap_or(to))?;
    if from.extension().is_some_and(|extension| extension == "xz") {
        let module = child::output_of(Command::new("xz").arg("-dc").arg(from))?;
        let to = to.with_extension("");
        return fs::write(&to, module).map_err(Error::io(format!("write {}", to.display())));
    }
    fs::copy(from, to).map(drop).map_err(Error::io(format!("copy {}", from.display())))
}

fn unpack(suite: Suite, cache: &Path, root: &Path) -> Result<()> {
    let download = cache.join("download");
    // Whatever an interrupted run left there is not to be trusted.
    for stale in [&download, &root.to_owned()] {
        let _ = fs::remove_dir_all(stale);
    }
    scratch::create(&download)?;
    for package in debian::fetch_kernel(suite, &download)? {
        child::output_of(Command::new("dpkg").arg("-x").arg(&package).arg(root))?;
    }
    // Newer packages keep their modules below usr, and modprobe looks in lib.
    let lib = root.join("lib");
    if !lib.exists() {
        std::os::unix::fs::symlink("usr/lib", &lib).map_err(Error::io("link lib to usr/lib"))?;
    }
    let release = only_entry(&root.join("lib/modules"))?;
    let release = release.file_name().unwrap_or_default();
    child::output_of(Command::new(program("depmod")).arg("-b").arg(root).arg(release))?;
    let boot = root.join("boot");
    scratch::create(&boot)?;
    // Since Linux 6.19 Debian has the image beside the modules.
    let places = [
        boot.join(format!("vmlinuz-{}", release.to_string_lossy())),
        root.join("lib/modules").join(release).join("vmlinuz"),
    ];
    let packed = places.into_iter().find(|place| place.exists());
    let packed = packed.ok_or_else(|| Error::unexpected("find the kernel's image", "not in its packages"))?;
    let packed = fs::read(&packed).map_err(Error::io(format!("read {}", packed.display())))?;
    let image = boot.join("image");
    fs::write(&image, unpacked_image(&packed)?.unwrap_or(packed)).map_err(Error::io("write the kernel"))?;
    fs::remove_dir_all(&download).map_err(Error::io("remove the downloaded package"))
}

/// The ELF image inside a bzImage packed with xz or zstd. QEMU starts it through its PVH entry, which saves the
/// guest from unpacking it under emulation: 3 of 6 seconds of every boot. `None`: packed otherwise.
fn unpacked_image(packed: &[u8]) -> Result<Option<Vec<u8>>> {
    const MAGICS: [(&[u8], &str); 2] = [(b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd")];
    let Some(payload) = payload(packed) else { return Ok(None) };
    let Some((_, program)) = MAGICS.into_iter().find(|(magic, _)| payload.starts_with(magic)) else {
        return Ok(None);
    };
    // The build appends the unpacked length, which would be taken for a broken second stream.
    let Some((stream, length)) = payload.split_last_chunk::<4>() else { return Ok(None) };
    let mut unpacker = Command::new(program)
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(Error::io(format!("start {program}")))?;
    let input = unpacker.stdin.take();
    let image = std::thread::scope(|scope| {
        scope.spawn(|| input.map(|mut input| std::io::Write::write_all(&mut input, stream)));
        unpacker.wait_with_output().map_err(Error::io("unpack the kernel"))
    })?
    .stdout;
    if image.len() as u64 != u64::from(u32::from_le_bytes(*length)) {
        return Err(Error::unexpected("unpack the kernel", format!("{} bytes came out", image.len())));
    }
    Ok(Some(image))
}

/// The packed kernel in a bzImage (Linux boot protocol 2.08: `setup_sects`, `payload_offset`, `payload_length`).
fn payload(bz_image: &[u8]) -> Option<&[u8]> {
    const SECTOR_BYTES: usize = 512;
    let word = |at: usize| Some(u32::from_le_bytes(*bz_image.get(at..)?.first_chunk()?) as usize);
    let setup_sectors = match *bz_image.get(0x1f1)? {
        0 => 4,
        count => usize::from(count),
    };
    let start = (setup_sectors + 1) * SECTOR_BYTES + word(0x248)?;
    bz_image.get(start..start.checked_add(word(0x24c)?)?)
}

fn only_entry(directory: &Path) -> Result<PathBuf> {
    let what = || format!("look into {}", directory.display());
    let mut entries = fs::read_dir(directory).map_err(Error::io(what()))?;
    match (entries.next(), entries.next()) {
        (Some(Ok(entry)), None) => Ok(entry.path()),
        _ => Err(Error::unexpected(what(), "one entry expected")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_of_a_boot_image_follows_its_setup_sectors() {
        let mut image = vec![0; 2048];
        image[0x1f1] = 2;
        image[0x248..0x24c].copy_from_slice(&[0x10, 0, 0, 0]);
        image[0x24c..0x250].copy_from_slice(&[4, 0, 0, 0]);
        image[1536 + 16..1536 + 20].copy_from_slice(b"core");
        assert_eq!(payload(&image), Some(&b"core"[..]));
    }

    #[test]
    fn a_boot_image_cut_short_has_no_payload() {
        assert_eq!(payload(&[0; 0x24c]), None);
    }
}
