//! Images of discs: ISO 9660 file systems with files, and discs that firmware boots.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Error, Result, boot_image, child, debian, scratch, scratch::Scratch};

/// Bytes of a block of a disc.
pub const BLOCK_BYTES: u64 = 2048;

/// An ISO image of this volume name with a few files, each of which begins with that name.
pub fn files(place: &Scratch, volume: &str) -> Result<PathBuf> {
    const FILES: u8 = 3;
    const FILE_BYTES: usize = 1 << 20;
    let root = tree(place, volume)?;
    for number in 0..FILES {
        let mut bytes = volume.as_bytes().to_vec();
        // No two blocks are alike.
        bytes.extend((0..FILE_BYTES).map(|at| (at / 7 + at / 2048 * usize::from(number + 3)) as u8));
        write(root.join(format!("file{number}")), &bytes)?;
    }
    make(place, volume, &[])
}

/// Checksums of the files in a folder, by name, as `sha256sum *` prints them there.
pub fn sums(folder: &Path) -> Result<String> {
    child::text_of(Command::new("sh").args(["-c", "cd \"$0\" && sha256sum *"]).arg(folder))
}

/// A disc that a BIOS boots without emulation of a floppy or a disk: it prints [`boot_image::WORDS`].
pub fn bios(place: &Scratch) -> Result<PathBuf> {
    let root = tree(place, "BIOS")?;
    write(root.join("boot.bin"), &boot_image::el_torito())?;
    let sectors = (boot_image::EL_TORITO_BYTES / 512).to_string();
    make(place, "BIOS", &["-b", "boot.bin", "-no-emul-boot", "-boot-load-size", &sectors])
}

/// A disc that UEFI firmware boots: a FAT file system with an application that prints [`boot_image::WORDS`].
pub fn uefi(place: &Scratch) -> Result<PathBuf> {
    let inner = Scratch::new()?;
    let system = boot_image::uefi(&inner)?;
    let root = tree(place, "UEFI")?;
    fs::copy(&system, root.join("efi.img")).map_err(Error::io("copy a file system"))?;
    make(place, "UEFI", &["-e", "efi.img", "-no-emul-boot"])
}

/// The folder of the files of an image.
fn tree(place: &Scratch, volume: &str) -> Result<PathBuf> {
    debian::ensure_optical()?;
    let root = place.path(volume);
    scratch::create(&root)?;
    Ok(root)
}

fn write(path: PathBuf, bytes: &[u8]) -> Result<()> {
    fs::write(&path, bytes).map_err(Error::io(format!("write {}", path.display())))
}

fn make(place: &Scratch, volume: &str, options: &[&str]) -> Result<PathBuf> {
    let image = place.path(&format!("{volume}.iso"));
    let mut command = Command::new("xorriso");
    command.args(["-as", "mkisofs", "-quiet", "-r", "-J", "-V", volume]).args(options);
    child::output_of(command.arg("-o").arg(&image).arg(place.path(volume)))?;
    Ok(image)
}
