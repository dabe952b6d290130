//! Which images are discs, and what an optical drive does not have.
//!
//! LUN 0 is an optical drive if the user says so; any image is a disc by its name, unless the user says that it is not.
//! Left out: what is in an image, which is checked when it is opened.

use crate::args::{BlockSizeArgument, DriveArguments};
use crate::failure::Failure;
use crate::sanitize::shown;
use device::lun::UnitType;
use std::path::Path;

/// Ends of names of discs. A cue sheet is named so that it is refused as one.
const SUFFIXES: [&str; 2] = ["iso", "cue"];

/// Returns the type of a logical unit.
pub(super) fn unit_type(arguments: &DriveArguments, lun: usize) -> UnitType {
    if arguments.floppy && lun == 0 {
        return UnitType::Floppy;
    }
    let image = match lun.checked_sub(1) {
        None if arguments.optical => return UnitType::Optical,
        None => arguments.image.as_ref(),
        Some(index) => arguments.luns.get(index),
    };
    image.map_or(UnitType::Disk, |image| unit_type_by_name(image, arguments))
}

/// Returns the type of the unit of an image by its name.
pub(super) fn unit_type_by_name(image: &Path, arguments: &DriveArguments) -> UnitType {
    let has = |suffix| image.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(suffix));
    if !arguments.disk && SUFFIXES.into_iter().any(has) { UnitType::Optical } else { UnitType::Disk }
}

/// Refuses options of a disk beside an image that is a disc by its name. Beside `--optical` the table of options does.
pub(super) fn check(arguments: &DriveArguments) -> Result<(), Failure> {
    let is_optical = unit_type(arguments, 0) == UnitType::Optical;
    let Some(image) = arguments.image.as_deref().filter(|_| is_optical) else { return Ok(()) };
    let given = [
        (arguments.size.is_some(), "--size"),
        (arguments.record.is_some(), "--as"),
        (arguments.block_size != BlockSizeArgument::B512, "--block-size"),
        (arguments.rotational, "--rotational"),
        (arguments.temperature.is_some(), "--temperature"),
        (!arguments.lies.is_empty(), "--lie"),
    ];
    let Some((_, option)) = given.into_iter().find(|(is_given, _)| *is_given) else { return Ok(()) };
    Err(Failure::usage(format!("{option} cannot be combined with {}", shown(image)))
        .because("it describes a disk, and an image with this name is served as a disc in an optical drive")
        .try_this("Add --disk to serve it as a disk, or leave the option out."))
}
