//! Whether an image or a device may be opened for writing: the one check of `bench`, `serve` and
//! `control insert`. What is served is raw: an image of another format is not served for writing.
//!
//! A file can be in use by a loop device or as swap, a block device by a file system, by other
//! devices on top of it, or by a program that has it open exclusively; [`inspect::block`] finds out.
//! Writing beside such a user destroys its data. Left out: users that come later.

use crate::command_line;
use crate::failure::Failure;
use crate::sanitize::shown;
use inspect::block::{self, BlockDevice, Objection};
use inspect::tree::Tree;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The storage that a path leads to, and its users.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) storage: Storage,
    /// Why it must not be written to; empty if nothing is known to use it.
    pub(crate) objections: Vec<Objection>,
}

/// The file or block device that a path leads to.
#[derive(Debug)]
pub(crate) enum Storage {
    File {
        /// Its path without links.
        path: PathBuf,
        bytes: u64,
    },
    Device(Box<BlockDevice>),
}

/// Why it cannot be found out who uses a path.
#[derive(Debug)]
pub(crate) enum Unchecked {
    /// It cannot be examined.
    Io(io::Error),
    /// It is a block device that sysfs does not have.
    NotInSysfs,
}

/// Finds out who uses the file or block device at a path.
pub(crate) fn check(path: &Path, tree: &Tree) -> Result<Checked, Unchecked> {
    let metadata = std::fs::metadata(path).map_err(Unchecked::Io)?;
    if !metadata.file_type().is_block_device() {
        let path = path.canonicalize().map_err(Unchecked::Io)?;
        let objections = block::objections_to_file(tree, &path);
        return Ok(Checked { storage: Storage::File { path, bytes: metadata.len() }, objections });
    }
    let device = BlockDevice::of_number(tree, metadata.rdev()).ok_or(Unchecked::NotInSysfs)?;
    let mut objections = block::objections(tree, &device);
    objections.extend(block::claim(tree, path).err());
    Ok(Checked { storage: Storage::Device(Box::new(device)), objections })
}

/// Why a path must not be served for writing: something uses it, or it is not a raw image. A path that cannot be
/// opened at all is left to the code that opens it, which has the better error.
pub(crate) fn why_not_served(path: &Path, tree: &Tree) -> Option<String> {
    let objections = match check(path, tree) {
        Ok(checked) => checked.objections,
        Err(Unchecked::Io(_)) => return None,
        Err(unknown @ Unchecked::NotInSysfs) => return Some(unknown.to_string()),
    };
    // Opening it for writing fails for these, and says so.
    let is_left = |objection: &&Objection| {
        !matches!(objection, Objection::ReadOnly { .. } | Objection::Unchecked { .. })
    };
    let all = objections.iter().filter(is_left).map(Objection::to_string);
    let all: Vec<String> = all.chain(why_not_raw(path)).collect();
    (!all.is_empty()).then(|| all.join("\n  "))
}

/// First bytes of image formats that are not raw, with the format's name and the offset of the bytes.
const FORMATS: [(&str, usize, &[u8]); 7] = [
    ("qcow2", 0, b"QFI\xfb"),
    ("VMDK", 0, b"KDMV"),
    ("VMDK", 0, b"# Disk DescriptorFile"),
    ("VHDX", 0, b"vhdxfile"),
    ("VHD", 0, b"conectix"),
    ("VDI", 64, b"\x7f\x10\xda\xbe"),
    ("QED", 0, b"QED\0"),
];
/// Bytes of an image that are compared with [`FORMATS`].
const COMPARED_BYTES: u64 = 128;

/// Returns the objection to an image of another format than raw. A guest would take its tables for
/// an empty disk.
fn why_not_raw(path: &Path) -> Option<String> {
    let kind = std::fs::metadata(path).ok()?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return None;
    }
    let mut begins = Vec::new();
    File::open(path).ok()?.take(COMPARED_BYTES).read_to_end(&mut begins).ok()?;
    let is_of = |(_, offset, magic): &&(&str, usize, &[u8])| {
        begins.get(*offset..).is_some_and(|bytes| bytes.starts_with(magic))
    };
    let (name, ..) = FORMATS.iter().find(is_of)?;
    let raw = path.with_extension("raw");
    let words = ["qemu-img", "convert", "-O", "raw"].map(OsStr::new);
    let convert = command_line::line(&[&words[..], &[path.as_os_str(), raw.as_os_str()]].concat());
    Some(format!(
        "it is a {name} image, and its bytes would be served as they are, not the disk in it; convert it first: {convert}"
    ))
}

/// Refuses to serve a path for writing if anything is known to use it, or if it is not a raw image.
pub(crate) fn refuse_to_serve(path: &Path, tree: &Tree) -> Result<(), Failure> {
    why_not_served(path, tree).map_or(Ok(()), |why| {
        Err(Failure::refused(format!("refusing to serve {} for writing", shown(path)))
            .because(why)
            .try_this("To serve it without writing, add --read-only."))
    })
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NotInSysfs => f.write_str("sysfs has no such device, so its users are unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// An image, and a machine whose `loop3` is made of `backing`.
    fn machine(backing: &Path) -> tempfile::TempDir {
        let machine = tempfile::tempdir().expect("a directory");
        let folder = machine.path().join("sys/block/loop3/loop");
        fs::create_dir_all(&folder).expect("made");
        fs::write(folder.join("backing_file"), format!("{}\n", backing.display())).expect("written");
        machine
    }

    #[test]
    fn an_image_behind_a_loop_device_is_refused_by_each_of_its_names() {
        let place = tempfile::tempdir().expect("a directory");
        let [image, link, other] = ["a.img", "link.img", "b.img"].map(|name| place.path().join(name));
        fs::write(&image, [0; 512]).expect("written");
        fs::write(&other, [0; 512]).expect("written");
        std::os::unix::fs::symlink(&image, &link).expect("linked");
        let machine = machine(&image);
        let tree = Tree::at(machine.path());
        for name in [&image, &link] {
            let failure = refuse_to_serve(name, &tree).expect_err("it is in use").to_string();
            assert!(failure.starts_with("refusing to serve "), "{failure}");
            assert!(failure.contains("loop3"), "{failure}");
            assert!(failure.ends_with("To serve it without writing, add --read-only."), "{failure}");
        }
        assert!(refuse_to_serve(&other, &tree).is_ok());
        assert!(refuse_to_serve(&place.path().join("none.img"), &tree).is_ok(), "opening it fails");
    }

    #[test]
    fn an_image_of_another_format_is_refused_with_the_command_that_converts_it() {
        let place = tempfile::tempdir().expect("a directory");
        let tree = Tree::at(place.path());
        let image = place.path().join("disk.img");
        let vdi = [&[b'<'; 64][..], b"\x7f\x10\xda\xbe"].concat();
        let others: [(&str, &[u8]); 4] =
            [("qcow2", b"QFI\xfb\0\0\0\x03"), ("VMDK", b"KDMV\x01"), ("VHDX", b"vhdxfile"), ("VDI", &vdi)];
        for (name, bytes) in others {
            fs::write(&image, bytes).expect("written");
            let failure = refuse_to_serve(&image, &tree).expect_err("it is not raw");
            assert_eq!(failure.exit_code(), std::process::ExitCode::from(3));
            let (text, image) = (failure.to_string(), image.display());
            assert!(text.contains(&format!("it is a {name} image")), "{text}");
            assert!(text.contains(&format!("qemu-img convert -O raw {image} ")), "{text}");
        }
        for raw in [&b""[..], b"QFI", &[0; 512]] {
            fs::write(&image, raw).expect("written");
            assert!(refuse_to_serve(&image, &tree).is_ok(), "{raw:?}");
        }
    }
}
