//! Floppy drives: which images are disks of theirs, and what such a drive does not have.

use super::assemble;
use crate::args::{DriveArguments, TransportArgument};
use crate::failure::Failure;
use crate::sanitize::shown;
use device::lun::UnitType;
use drive::medium::Medium;
use std::fs;
use std::path::Path;
use units::BlockSize;
use wire::ufi::DiskFormat;

/// Bytes of the image, from its size or the file.
fn image_bytes(arguments: &DriveArguments) -> Option<u64> {
    let of_file = || fs::metadata(arguments.image.as_ref()?).ok().map(|metadata| metadata.len());
    arguments.size.or(arguments.ram).map(|size| size.0).or_else(of_file)
}

/// The block length of the disk: 1024 bytes of 1.25 MB, else 512.
pub(super) fn block_size(arguments: &DriveArguments) -> BlockSize {
    match image_bytes(arguments).and_then(DiskFormat::of_size) {
        Some(DiskFormat::High1250) => BlockSize::B1024,
        _ => BlockSize::B512,
    }
}

/// Refuses images without a format of UFI, and transports that do not fit the drive.
pub(super) fn check(arguments: &DriveArguments) -> Result<(), Failure> {
    let is_cbi = matches!(arguments.transport, TransportArgument::Cbi | TransportArgument::Cb);
    if is_cbi && !arguments.floppy {
        return Err(Failure::usage("--transport cbi and --transport cb need --floppy")
            .because("CBI is the transport of floppy drives"));
    }
    if !arguments.floppy {
        return Ok(());
    }
    if matches!(arguments.transport, TransportArgument::Uas | TransportArgument::Bot) {
        return Err(Failure::usage("a floppy drive has neither UAS nor BOT")
            .try_this("Use --transport cbi or --transport cb."));
    }
    match image_bytes(arguments) {
        Some(bytes) if DiskFormat::of_size(bytes).is_none() => {
            let name =
                arguments.image.as_deref().map_or_else(|| "--ram".into(), |image| shown(image).to_string());
            Err(Failure::usage(format!("{name} is not a floppy disk: it has {bytes} bytes"))
                .because("a disk of UFI has 737280, 1261568 or 1474560 bytes")
                .try_this("Create one with --size 1440K, or serve the image without --floppy."))
        }
        _ => Ok(()),
    }
}

/// Opens the disk.
pub(super) fn open(image: &Path, arguments: &DriveArguments) -> Result<Box<dyn Medium + Send>, Failure> {
    let how_to_create = "To create it, add --size 1440K; to start without a disk, leave the image out.";
    assemble::file(image, arguments, UnitType::Floppy, how_to_create)
}
