//! The file of a record: TOML, version 1, with bytes in hexadecimal. docs/RECORD.md describes it.
//!
//! Left out: comments of a file that is read. Always true: what is written is read again as the same record; an error has
//! its line.

use super::questions::name;
use super::{RECORDED_UNITS_MAX, Record, SerialNumbers, UnitRecord};
use bus::Speed;
use device::device::RecordedDescriptor;
use device::lun::{PARAMETER_BYTES_MAX, RecordedAnswer, RecordedOutcome};
use serde::Deserialize;
use std::fmt::{self, Write as _};
use std::ops::RangeInclusive;
use toml::Spanned;
use wire::scsi::sense::{Sense, SenseFormat};
use wire::usb::DescriptorKind;

/// The version of the format.
const VERSION: u32 = 1;

/// Bytes of a line.
const LINE_BYTES: usize = 32;

/// Answers that a unit can have.
const ANSWERS_MAX: usize = 2048;

/// Descriptors that a device can have.
const DESCRIPTORS_MAX: usize = 64;

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// Its line, from 1, if it is of one line.
    pub line: Option<usize>,
    /// The error, and what was expected.
    pub what: String,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for RecordError {}

impl Record {
    /// Returns the file.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "# A USB drive, as `uaskit record` found it. `uaskit serve --as FILE` presents it.")?;
        writeln!(out, "version = {VERSION}")?;
        writeln!(out, "speed = \"{}\"", speed_name(self.speed))?;
        let serials = if self.serials == SerialNumbers::Original { "original" } else { "replaced" };
        writeln!(out, "serials = \"{serials}\"")?;
        writeln!(out, "configuration = {}", self.configuration)?;
        for RecordedDescriptor { kind, index, bytes } in &self.descriptors {
            writeln!(out, "\n[[descriptor]] # {kind}\ntype = {}\nindex = {index}", u8::from(*kind))?;
            write_bytes(out, "bytes", bytes)?;
        }
        for (lun, unit) in self.units.iter().enumerate() {
            writeln!(out, "\n[[unit]] # LUN {lun}")?;
            writeln!(out, "block_bytes = {}\nblocks = {}", unit.block_bytes, unit.blocks)?;
            for RecordedAnswer { cdb, outcome } in &unit.answers {
                writeln!(out, "\n[[unit.answer]] # {}", name(cdb))?;
                write_bytes(out, "cdb", cdb)?;
                match outcome {
                    RecordedOutcome::Data(bytes) => write_bytes(out, "data", bytes)?,
                    RecordedOutcome::Check(sense) => {
                        let mut bytes = [0; Sense::DESCRIPTOR_LEN_MAX];
                        let length = sense.encode(SenseFormat::Fixed, &mut bytes).unwrap_or_default();
                        writeln!(out, "# {sense}")?;
                        write_bytes(out, "sense", &bytes[..length])?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// See [`RecordError`].
    pub fn parse(text: &str) -> Result<Self, RecordError> {
        let file: File = toml::from_str(text).map_err(|error| RecordError {
            line: error.span().map(|span| line_at(text, span.start)),
            what: error.message().to_owned(),
        })?;
        let reader = Reader { text };
        if *file.version.get_ref() != VERSION {
            let what = format!("version {} is not supported; this is for {VERSION}", file.version.get_ref());
            return Err(reader.error(&file.version, what));
        }
        let speed = [Speed::Full, Speed::High, Speed::Super]
            .into_iter()
            .find(|speed| speed_name(*speed) == file.speed.get_ref())
            .ok_or_else(|| reader.error(&file.speed, "speed is full, high or super".into()))?;
        if file.descriptor.len() > DESCRIPTORS_MAX || file.unit.len() > RECORDED_UNITS_MAX {
            let what =
                format!("too many descriptors (maximum {DESCRIPTORS_MAX}) or units ({RECORDED_UNITS_MAX})");
            return Err(RecordError { line: None, what });
        }
        let serials = match file.serials {
            Serials::Original => SerialNumbers::Original,
            Serials::Replaced => SerialNumbers::Replaced,
        };
        let descriptors = file.descriptor.iter().map(|descriptor| reader.descriptor(descriptor));
        let descriptors = descriptors.collect::<Result<_, _>>()?;
        let units = file.unit.iter().map(|unit| reader.unit(unit)).collect::<Result<_, _>>()?;
        Ok(Self { speed, serials, configuration: file.configuration, descriptors, units })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Spanned<u32>,
    speed: Spanned<String>,
    serials: Serials,
    configuration: u8,
    descriptor: Vec<Descriptor>,
    #[serde(default)]
    unit: Vec<Unit>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Serials {
    Original,
    Replaced,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Descriptor {
    r#type: u8,
    index: u8,
    bytes: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unit {
    block_bytes: u32,
    blocks: u64,
    #[serde(default)]
    answer: Vec<Answer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    cdb: Spanned<String>,
    data: Option<Spanned<String>>,
    sense: Option<Spanned<String>>,
}

/// Reads the parts of a text, whose lines errors name.
struct Reader<'t> {
    text: &'t str,
}

impl Reader<'_> {
    fn error<T>(&self, place: &Spanned<T>, what: String) -> RecordError {
        RecordError { line: Some(line_at(self.text, place.span().start)), what }
    }

    fn bytes(
        &self,
        digits: &Spanned<String>,
        allowed: RangeInclusive<usize>,
    ) -> Result<Vec<u8>, RecordError> {
        let mut bytes = Vec::new();
        for (number, line) in digits.get_ref().lines().enumerate() {
            for word in line.split_ascii_whitespace() {
                let byte = u8::from_str_radix(word, 16).ok().filter(|_| word.len() == 2);
                let Some(byte) = byte else {
                    let mut error =
                        self.error(digits, format!("{word:?} is not a byte: two hexadecimal digits"));
                    // A line feed after the opening quotes is not part of a text of several lines.
                    let is_long = self.text.get(digits.span()).is_some_and(|raw| raw.starts_with("\"\"\"\n"));
                    error.line = error.line.map(|line| line + number + usize::from(is_long));
                    return Err(error);
                };
                bytes.push(byte);
            }
        }
        if !allowed.contains(&bytes.len()) {
            let (least, most) = allowed.into_inner();
            let what = format!("{} bytes; {least} to {most} are allowed here", bytes.len());
            return Err(self.error(digits, what));
        }
        Ok(bytes)
    }

    fn descriptor(&self, descriptor: &Descriptor) -> Result<RecordedDescriptor, RecordError> {
        let bytes = self.bytes(&descriptor.bytes, 2..=PARAMETER_BYTES_MAX)?;
        let kind = DescriptorKind::from(descriptor.r#type);
        if bytes.get(1) != Some(&descriptor.r#type) {
            let what = format!("the second byte of this descriptor is not its type, {}", descriptor.r#type);
            return Err(self.error(&descriptor.bytes, what));
        }
        Ok(RecordedDescriptor { kind, index: descriptor.index, bytes })
    }

    fn unit(&self, unit: &Unit) -> Result<UnitRecord, RecordError> {
        if unit.answer.len() > ANSWERS_MAX {
            let what = format!("{} answers of one unit (maximum {ANSWERS_MAX})", unit.answer.len());
            return Err(RecordError { line: None, what });
        }
        let answers = unit.answer.iter().map(|answer| self.answer(answer)).collect::<Result<_, _>>()?;
        Ok(UnitRecord { block_bytes: unit.block_bytes, blocks: unit.blocks, answers })
    }

    fn answer(&self, answer: &Answer) -> Result<RecordedAnswer, RecordError> {
        const CDB_BYTES_MAX: usize = 16;
        let cdb = self.bytes(&answer.cdb, 1..=CDB_BYTES_MAX)?;
        let outcome = match (&answer.data, &answer.sense) {
            (Some(bytes), None) => RecordedOutcome::Data(self.bytes(bytes, 0..=PARAMETER_BYTES_MAX)?),
            (None, Some(bytes)) => {
                let sense = Sense::decode(&self.bytes(bytes, 1..=252)?);
                RecordedOutcome::Check(
                    sense.map_err(|error| self.error(bytes, format!("not sense data: {error}")))?,
                )
            }
            _ => {
                let what = "an answer has either data or sense".to_owned();
                return Err(self.error(&answer.cdb, what));
            }
        };
        Ok(RecordedAnswer { cdb, outcome })
    }
}

const fn speed_name(speed: Speed) -> &'static str {
    match speed {
        Speed::Full => "full",
        Speed::High => "high",
        Speed::Super => "super",
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or_default().matches('\n').count() + 1
}

fn write_bytes(out: &mut String, key: &str, bytes: &[u8]) -> fmt::Result {
    let mut lines = bytes
        .chunks(LINE_BYTES)
        .map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "));
    if bytes.len() <= LINE_BYTES {
        return writeln!(out, "{key} = \"{}\"", lines.next().unwrap_or_default());
    }
    writeln!(out, "{key} = \"\"\"")?;
    lines.try_for_each(|line| writeln!(out, "{line}"))?;
    writeln!(out, "\"\"\"")
}
