//! The temperature of a unit: LOG SENSE of the Temperature page 0Dh (SPC-5, log parameters), else
//! attribute 194 or 190 of SMART READ DATA by ATA PASS-THROUGH(16) (SAT-4; ACS-3 clause 7.48.6).
//!
//! If requested, identification reads it once before the mode pages, so that the effect of an
//! unknown command on the unit shows in later steps and not in a request. The attribute numbers are
//! a de facto standard (Linux uses them in drivers/hwmon/drivetemp.c), as is the raw value, whose
//! lowest byte is in degrees.
//!
//! Always true: an implausible value counts as not reported.

use crate::CommandBlock;
use core::fmt;
use core::ops::RangeInclusive;
use units::Duration;
use wire::DecodeError;
use wire::ata::{AtaCommand, CommandRegisters, SmartReadings, SmartSubcommand};
use wire::scsi::cdb::{AtaPassThrough, AtaProtocol, AtaTransferLength, CdbWidth, LogPageControl, LogSense};
use wire::scsi::log::{LogPageCode, TemperatureLog};

/// Timeout of the optional command.
pub(super) const TEMPERATURE_TIMEOUT: Duration = Duration::from_secs(3);

/// Bytes that are asked for of the page: its header and two parameters have 16; one byte can say
/// it.
const LOG_BYTES: u16 = 252;

/// Attributes with a temperature, the one that counts first.
const ATTRIBUTES: [u8; 2] = [194, 190];

/// Degrees that a drive at work can have. 0 is what bridges say that have no sensor.
const PLAUSIBLE_C: RangeInclusive<u8> = 1..=125;

/// Whether identification reads the temperature, and how. Unknown commands have made some bridges
/// drop the link: the caller, who knows the device, chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AskTemperature {
    /// Not at all.
    #[default]
    Not,
    /// By LOG SENSE, if the unit claims an SPC version.
    ByLog,
    /// By LOG SENSE, else by SMART if the unit lists VPD page 89h (ATA Information), which every
    /// SCSI / ATA translation has (SAT-4).
    ByLogOrSmart,
}

/// The temperature of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Temperature {
    /// Degrees Celsius.
    pub celsius: u8,
    /// Where it comes from.
    pub source: TemperatureSource,
}

/// The source of a temperature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemperatureSource {
    /// LOG SENSE, page 0Dh.
    LogPage,
    /// SMART READ DATA.
    Smart,
}

/// The command that asks for it, and how many bytes it asks for.
pub(super) fn command(source: TemperatureSource) -> (CommandBlock, u32) {
    match source {
        TemperatureSource::LogPage => {
            let sense = LogSense {
                page_control: LogPageControl::Cumulative,
                page_code: LogPageCode::Temperature.into(),
                allocation_len: LOG_BYTES,
                ..LogSense::default()
            };
            (sense.encode().into(), LOG_BYTES.into())
        }
        TemperatureSource::Smart => {
            let feature = u8::from(SmartSubcommand::ReadData).into();
            let smart =
                CommandRegisters::new(AtaCommand::Smart, feature, 1, CommandRegisters::SMART_SIGNATURE);
            let through = AtaPassThrough {
                width: CdbWidth::Sixteen,
                command: smart.command.into(),
                protocol: AtaProtocol::PioDataIn,
                features: smart.features,
                count: smart.count,
                lba: smart.lba,
                // No LBA: the register is as smartctl and drivetemp leave it.
                device: 0,
                from_device: true,
                in_blocks: true,
                transfer_length: AtaTransferLength::InCount,
                ..AtaPassThrough::default()
            };
            (through.encode().into(), SmartReadings::LEN as u32)
        }
    }
}

/// Decodes the temperature of the answer; `None` if it has none.
pub(super) fn read(source: TemperatureSource, answer: &[u8]) -> Result<Option<Temperature>, DecodeError> {
    let celsius = match source {
        TemperatureSource::LogPage => TemperatureLog::decode(answer)?.celsius,
        TemperatureSource::Smart => {
            let readings = SmartReadings::decode(answer)?;
            let of = |id: u8| readings.attributes().find(|attribute| attribute.id == id);
            // The bytes above have the lowest and the highest so far, in most drives.
            ATTRIBUTES.into_iter().find_map(of).map(|attribute| attribute.raw as u8)
        }
    };
    let plausible = celsius.filter(|celsius| PLAUSIBLE_C.contains(celsius));
    Ok(plausible.map(|celsius| Temperature { celsius, source }))
}

impl fmt::Display for TemperatureSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LogPage => "LOG SENSE of the temperature page",
            Self::Smart => "SMART READ DATA",
        })
    }
}

impl fmt::Display for Temperature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \u{b0}C by {}", self.celsius, self.source)
    }
}
