//! How a command ends whose medium request failed: the sense data of each medium error.

use super::{LogicalUnit, Plan, Readiness, row::Row};
use crate::medium::MediumError;
use units::Extent;
use wire::scsi::opcode::OperationCode;
use wire::scsi::sense::{AdditionalSense, Sense, SenseKey};

/// Ends a command whose medium request failed. `extent` is the requested range, `row` the command.
pub(crate) fn medium_failure(
    unit: Option<&mut LogicalUnit>,
    row: Option<&Row>,
    error: MediumError,
    extent: Extent,
) -> Plan {
    use AdditionalSense as Code;
    let sense = match error {
        MediumError::Unreadable { lba } => Sense::medium_error(Code::UNRECOVERED_READ_ERROR, lba.0),
        MediumError::Unwritable { lba } => Sense::medium_error(Code::WRITE_ERROR, lba.0),
        MediumError::OutOfSpace => {
            Sense::new(SenseKey::DataProtect, Code::SPACE_ALLOCATION_FAILED_WRITE_PROTECT)
        }
        MediumError::WriteProtected => Sense::new(SenseKey::DataProtect, Code::WRITE_PROTECTED),
        MediumError::Shrunk => Sense::medium_error(Code::UNRECOVERED_READ_ERROR, extent.lba.0),
        MediumError::Miscompare { offset } => {
            Sense::new(SenseKey::Miscompare, Code::MISCOMPARE_DURING_VERIFY_OPERATION)
                .with_information(offset.into())
        }
        MediumError::Absent => Sense::not_ready(Code::MEDIUM_NOT_PRESENT),
        MediumError::Unreachable => Sense::not_ready(Code::NOT_READY_BECOMING_READY),
        MediumError::Unsupported => Sense::new(SenseKey::HardwareError, Code::INTERNAL_TARGET_FAILURE),
    };
    let Some(unit) = unit else { return Plan::Check(sense) };
    unit.logs.record_failure(error);
    match (unit.readiness, row.map(|row| row.opcode())) {
        // Blocks that were not written are unchanged.
        (Readiness::Formatting, Some(OperationCode::FormatUnit)) => unit.readiness = Readiness::Ready,
        (Readiness::Sanitizing { unrestricted_exit }, Some(OperationCode::Sanitize)) => {
            if let Some(before) = unit.sanitizing.withdraw() {
                unit.readiness = before;
                return Plan::Check(sense);
            }
            // The host sees this sense data whatever the cause (SBC-4 clause 4.11.4).
            unit.readiness = Readiness::SanitizeFailed { unrestricted_exit };
            let failed = Sense::new(SenseKey::MediumError, Code::SANITIZE_COMMAND_FAILED);
            return Plan::Check(Sense { information: sense.information, ..failed });
        }
        _ => {}
    }
    Plan::Check(sense)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{BlockCount, Lba};
    use wire::scsi::sense::SenseFormat;

    /// VALID and response code, sense key, INFORMATION, additional sense code and qualifier, in fixed format.
    fn sense_of(error: MediumError) -> (u8, u8, [u8; 4], [u8; 2]) {
        let extent = Extent { lba: Lba(0x100), blocks: BlockCount(8) };
        let Plan::Check(sense) = medium_failure(None, None, error, extent) else { panic!("no sense data") };
        let mut bytes = [0; 18];
        sense.encode(SenseFormat::Fixed, &mut bytes).unwrap();
        (bytes[0], bytes[2], [bytes[3], bytes[4], bytes[5], bytes[6]], [bytes[12], bytes[13]])
    }

    #[test]
    fn each_failure_of_a_medium_has_its_sense_data() {
        let none = [0; 4];
        for (error, expected) in [
            (MediumError::Unreadable { lba: Lba(0x102) }, (0xf0, 0x03, [0, 0, 1, 2], [0x11, 0x00])),
            (MediumError::Unwritable { lba: Lba(0x102) }, (0xf0, 0x03, [0, 0, 1, 2], [0x0c, 0x00])),
            (MediumError::OutOfSpace, (0x70, 0x07, none, [0x27, 0x07])),
            (MediumError::WriteProtected, (0x70, 0x07, none, [0x27, 0x00])),
            (MediumError::Shrunk, (0xf0, 0x03, [0, 0, 1, 0], [0x11, 0x00])),
            (MediumError::Miscompare { offset: 5 }, (0xf0, 0x0e, [0, 0, 0, 5], [0x1d, 0x00])),
            (MediumError::Absent, (0x70, 0x02, none, [0x3a, 0x00])),
            (MediumError::Unreachable, (0x70, 0x02, none, [0x04, 0x01])),
            (MediumError::Unsupported, (0x70, 0x04, none, [0x44, 0x00])),
        ] {
            assert_eq!(sense_of(error), expected, "{error:?}");
        }
    }
}
