//! `serve --as`: the record that a drive presents.
//!
//! Left out: what a record may have, which the crate `conformance` checks.

use crate::args::DriveArguments;
use crate::failure::Failure;
use crate::sanitize::shown;
use crate::text_file;
use conformance::record::{Record, RecordError, UnitRecord};
use device::DeviceConfig;
use std::path::Path;
use units::BlockSize;

/// Bytes of the longest file that is read.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// A record, and the file that it is from.
#[derive(Debug)]
pub(super) struct Presented<'a> {
    file: &'a Path,
    record: Record,
}

impl<'a> Presented<'a> {
    /// Reads the record that a drive is to present, if it is to, and checks that it fits the images.
    pub(super) fn read(arguments: &'a DriveArguments) -> Result<Option<Self>, Failure> {
        let Some(file) = arguments.record.as_deref() else { return Ok(None) };
        let text = text_file::read(file, "record", FILE_BYTES_MAX)?;
        let record = Record::parse(&text).map_err(|error| unfit(file, &error))?;
        let presented = Self { file, record };
        presented.check(arguments)?;
        Ok(Some(presented))
    }

    fn check(&self, arguments: &DriveArguments) -> Result<(), Failure> {
        let (units, media) = (self.record.units.len(), 1 + arguments.luns.len());
        let file = shown(self.file);
        if units != media {
            return Err(Failure::usage(format!(
                "{file} has {units} logical units, and {media} media are named"
            ))
            .try_this("Name an image for each: uaskit serve IMAGE --lun IMAGE..."));
        }
        let given = BlockSize::from(arguments.block_size).bytes();
        for (number, unit) in self.record.units.iter().enumerate() {
            // Zero: it had no medium.
            if ![0, given].contains(&unit.block_bytes) {
                let bytes = unit.block_bytes;
                return Err(Failure::usage(format!(
                    "{file}: LUN {number} has blocks of {bytes} bytes, not {given}"
                ))
                .try_this("Add --block-size with that number, 512 or 4096; others cannot be served."));
            }
        }
        Ok(())
    }

    /// Returns the configuration of the device that presents the record.
    pub(super) fn device(&self, config: DeviceConfig) -> Result<DeviceConfig, Failure> {
        self.record.device(config).map_err(|error| unfit(self.file, &error))
    }

    /// Returns what the record has of a unit.
    pub(super) fn unit(&self, number: usize) -> Option<&UnitRecord> {
        self.record.units.get(number)
    }
}

fn unfit(file: &Path, error: &RecordError) -> Failure {
    Failure::new(format!("cannot present {}: {error}", shown(file)))
}
