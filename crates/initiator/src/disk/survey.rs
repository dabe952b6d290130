//! Getting to know a unit: which commands, in which order, and what is taken from their answers (SPC-5, SBC-4).
//!
//! REPORT LUNS if wanted, which is for unit 0 to answer; INQUIRY (36 bytes, which no device chokes on), TEST UNIT READY until it is,
//! READ CAPACITY(10) and, where it can matter, (16), the VPD pages that the unit lists, and the mode pages. A unit that does not claim an
//! SPC is not asked for more than such a unit can stand. If it is wanted, a unit that lists its pages is asked how warm it is
//! ([`temperature`](super::temperature)). Only INQUIRY, readiness and READ CAPACITY(10) are needed; a
//! step that fails otherwise leaves its facts unknown.
//!
//! Silence to what is not needed has two causes. A status may be lost once, and limits would be unknown for that: it is asked
//! again. Or a device does not know what it is asked and never answers, and some have to be reset then: so each time has
//! [`OPTIONAL_TIMEOUT`], what is silent twice is not asked a third time, and after a page that is no other page is asked for. Neither
//! may take long: [`AGAIN_MAX`] commands of a survey are asked again, and none once one was silent twice, in this survey or in one
//! before it, since that device is of the second kind. What can be given up is REPORT LUNS, READ CAPACITY(16), one page and both MODE SENSEs, so that
//! silence costs a survey six such times at most, 30 s, and the transport's recovery after each; 25 s more if the unit stops
//! on the way and is asked from readiness on. The temperature is asked for once, and so is a start, which readiness tells of.
//!
//! Always true: every step goes forward, except that a stopped unit is started once, a page longer than was asked
//! for is asked for again once, and silence is borne with as above; so a survey ends.

use super::geometry::{Doubt, Facts, Geometry, Provisioning};
use super::request::Error;
use super::temperature::{self, AskTemperature, TEMPERATURE_TIMEOUT, TemperatureSource};
use crate::{CommandBlock, Failure};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use units::Duration;
use wire::DecodeError;
use wire::scsi::capacity::{Capacity10, Capacity16};
use wire::scsi::cdb::{
    CdbWidth, Inquiry, ModeSense, ReadCapacity10, ReadCapacity16, ReportLuns, StartStopUnit, TestUnitReady,
};
use wire::scsi::inquiry::{
    Peripheral, PeripheralDeviceType, PeripheralQualifier, SpcVersion, StandardInquiry,
};
use wire::scsi::lun::LunField;
use wire::scsi::mode::{CachingPage, ModeForm, ModePageCode, ModeParameters};
use wire::scsi::report_luns::LunList;
use wire::scsi::vpd::{
    Association, Designator, DeviceIdentification, SupportedVpdPages, UnitSerialNumber, VpdHeader, VpdPage,
    VpdPageCode,
};

/// The longest answer that a survey asks for, in bytes: room for 511 logical unit numbers.
pub const ANSWER_BYTES_MAX: u32 = 4096;

/// The pages that are asked for if they are listed, in this order.
const PAGES: [VpdPageCode; 5] = [
    VpdPageCode::UnitSerialNumber,
    VpdPageCode::DeviceIdentification,
    VpdPageCode::BlockLimits,
    VpdPageCode::BlockDeviceCharacteristics,
    VpdPageCode::LogicalBlockProvisioning,
];

/// How long a unit may take for an answer that it need not give.
const OPTIONAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Commands of a survey that are sent again after silence, where nothing depends on their answers.
const AGAIN_MAX: u8 = 2;

/// What is asked for first of a VPD page: one byte can say it, for devices that look at one byte only.
const PAGE_BYTES: u16 = 252;
/// What Windows asks for of MODE SENSE(6), and so what every device can answer.
const MODE_BYTES: u16 = 192;

/// Where a survey is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Who are you?
    Inquiry,
    /// Are you ready?
    TestUnitReady,
    /// Start, then.
    StartUnit,
    /// Which units are there?
    ReportLuns,
    /// How large are you, in 32 bits?
    ReadCapacity10,
    /// And in 64 bits, with more to say?
    ReadCapacity16,
    /// Which pages do you have?
    SupportedPages,
    /// One of them.
    Page(VpdPageCode),
    /// How warm are you? Asked once, in a short time.
    Temperature(TemperatureSource),
    /// The cache, by MODE SENSE(10).
    CachingPage,
    /// All mode pages, by MODE SENSE(6): for units that know no other.
    AllModePages,
}

/// A survey that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurveyError {
    /// At which step.
    pub step: Step,
    /// Why.
    pub error: Error,
}

/// A survey under way.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    step: Step,
    facts: Facts,
    /// Units behind the device: as many as one answer holds at most.
    luns: Vec<LunField>,
    ask: AskTemperature,
    /// Whether VPD page 89h is listed; `None` where the pages are not.
    lists_ata: Option<bool>,
    started: bool,
    listed: [bool; PAGES.len()],
    page_bytes: u16,
    /// Commands that may still be sent again after silence.
    again_left: u8,
    /// The unit says nothing to what it does not know.
    is_silent: bool,
    /// This command was.
    is_again: bool,
}

impl Survey {
    /// Of a unit that is known to be silent to what it does not know, or is not.
    pub(super) fn new(wants_luns: bool, ask: AskTemperature, is_silent: bool) -> Self {
        Self {
            step: if wants_luns { Step::ReportLuns } else { Step::Inquiry },
            facts: Facts::default(),
            luns: Vec::new(),
            ask,
            lists_ata: None,
            started: false,
            listed: [false; PAGES.len()],
            page_bytes: PAGE_BYTES,
            again_left: AGAIN_MAX,
            is_silent,
            is_again: false,
        }
    }

    pub(super) const fn step(&self) -> Step {
        self.step
    }

    /// The unit that this step is a question to.
    pub(super) fn unit(&self, surveyed: LunField) -> LunField {
        if self.step == Step::ReportLuns { LunField::default() } else { surveyed }
    }

    /// The units that were told of.
    pub(super) fn take_luns(&mut self) -> Vec<LunField> {
        core::mem::take(&mut self.luns)
    }

    /// What it was told to ask.
    pub(super) const fn asks(&self) -> AskTemperature {
        self.ask
    }

    /// The command of this step, and how many bytes it asks for.
    pub(super) fn command(&self) -> (CommandBlock, u32) {
        match self.step {
            Step::Inquiry => {
                let allocation_len = StandardInquiry::LEN_MIN as u16;
                let cdb = Inquiry { allocation_len, ..Inquiry::default() }.encode();
                (cdb.into(), allocation_len.into())
            }
            Step::TestUnitReady => (TestUnitReady::default().encode().into(), 0),
            Step::StartUnit => (StartStopUnit { start: true, ..StartStopUnit::default() }.encode().into(), 0),
            Step::ReportLuns => {
                let allocation_len = ANSWER_BYTES_MAX;
                (ReportLuns { allocation_len, ..ReportLuns::default() }.encode().into(), allocation_len)
            }
            Step::ReadCapacity10 => (ReadCapacity10::default().encode().into(), Capacity10::LEN as u32),
            Step::ReadCapacity16 => {
                let allocation_len = Capacity16::LEN as u32;
                let cdb = ReadCapacity16 { allocation_len, ..ReadCapacity16::default() }.encode();
                (cdb.into(), allocation_len)
            }
            Step::SupportedPages => self.page_command(VpdPageCode::SupportedPages),
            Step::Page(page) => self.page_command(page),
            Step::Temperature(source) => temperature::command(source),
            Step::CachingPage => mode_command(CdbWidth::Ten, ModePageCode::Caching),
            Step::AllModePages => mode_command(CdbWidth::Six, ModePageCode::All),
        }
    }

    fn page_command(&self, page: VpdPageCode) -> (CommandBlock, u32) {
        let allocation_len = self.page_bytes;
        let inquiry = Inquiry { evpd: true, page_code: page.into(), allocation_len, ..Inquiry::default() };
        (inquiry.encode().into(), allocation_len.into())
    }

    /// The answer of this step, GOOD. `true`: there is another step; an error means that the step failed.
    pub(super) fn take(&mut self, answer: &[u8]) -> Result<bool, Error> {
        match self.read(answer) {
            Ok(Read::Whole) => Ok(self.go_on()),
            Ok(Read::Again) => Ok(true),
            Ok(Read::Refused(error)) => Err(error),
            Err(error) => self.fail(Error::Answer(error)),
        }
    }

    /// This step failed for good. `true`: there is another step; an error means that there can be none.
    pub(super) fn fail(&mut self, error: Error) -> Result<bool, Error> {
        if matches!(error, Error::Gone | Error::Aborted) || self.is_needed() {
            return Err(error);
        }
        match self.step {
            Step::SupportedPages | Step::Page(_) if is_silence(error) => {
                let page = if let Step::Page(page) = self.step { page } else { VpdPageCode::SupportedPages };
                self.facts.doubt(Doubt::Page(page));
                (self.listed, self.lists_ata) = ([false; PAGES.len()], None);
            }
            Step::Page(page) => self.facts.doubt(Doubt::Page(page)),
            Step::AllModePages => self.facts.doubt(Doubt::NoModePages),
            // One that has not even refused is not asked otherwise.
            Step::Temperature(_) if !is_refusal(error) => self.lists_ata = None,
            _ => {}
        }
        Ok(self.go_on())
    }

    /// Whether there is no geometry without this step.
    fn is_needed(&self) -> bool {
        match self.step {
            Step::Inquiry | Step::TestUnitReady | Step::ReadCapacity10 => true,
            // Nothing above 2^32 blocks is known without it.
            Step::ReadCapacity16 => self.is_large(),
            _ => false,
        }
    }

    /// Whether this step is not sent again after such an error: nothing depends on its answer, and it was sent again already, or
    /// enough others were. If it is, that counts.
    pub(super) fn gives_up_after(&mut self, error: Error) -> bool {
        match self.step {
            Step::Temperature(_) => return true,
            // The units that there are may be unknown.
            Step::ReportLuns if !is_silence(error) => return true,
            _ if !is_silence(error) || self.is_needed() => return false,
            Step::StartUnit => return true,
            _ => {}
        }
        self.is_silent |= self.is_again;
        let gives_up = self.is_silent || self.again_left == 0;
        self.again_left = self.again_left.saturating_sub(1);
        self.is_again = true;
        gives_up
    }

    /// Whether the unit was found to say nothing to what it does not know.
    pub(super) const fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// How long this step may take of what a command usually may.
    pub(super) fn timeout(&self, usual: Duration) -> Duration {
        match self.step {
            Step::Temperature(_) => usual.min(TEMPERATURE_TIMEOUT),
            // A unit that spins up takes its time.
            Step::StartUnit => usual,
            _ if self.is_needed() => usual,
            _ => usual.min(OPTIONAL_TIMEOUT),
        }
    }

    /// The unit is stopped. `true`: it is told to start, once.
    pub(super) const fn start_unit(&mut self) -> bool {
        // A unit answers INQUIRY stopped or not, and nothing goes on without it.
        let first = !self.started && !matches!(self.step, Step::ReportLuns | Step::Inquiry | Step::StartUnit);
        if first {
            self.started = true;
            self.step = Step::StartUnit;
        }
        first
    }

    pub(super) fn into_geometry(self) -> Result<Geometry, Error> {
        self.facts.into_geometry()
    }

    /// Goes to the next step. `false`: there is none.
    fn go_on(&mut self) -> bool {
        self.page_bytes = PAGE_BYTES;
        self.is_again = false;
        let next = match self.step {
            Step::ReportLuns => Some(Step::Inquiry),
            Step::Inquiry | Step::StartUnit => Some(Step::TestUnitReady),
            Step::TestUnitReady => Some(Step::ReadCapacity10),
            Step::ReadCapacity10 if self.claims(SpcVersion::Spc3) || self.is_large() => {
                Some(Step::ReadCapacity16)
            }
            Step::ReadCapacity10 | Step::ReadCapacity16 if self.claims(SpcVersion::Spc) => {
                Some(Step::SupportedPages)
            }
            Step::ReadCapacity10 | Step::ReadCapacity16 => Some(Step::AllModePages),
            Step::SupportedPages => Some(self.page_from(0)),
            Step::Page(page) => {
                let at = PAGES.iter().position(|&known| known == page).unwrap_or(PAGES.len());
                Some(self.page_from(at + 1))
            }
            Step::Temperature(source) => Some(self.temperature_after(Some(source))),
            Step::CachingPage if self.facts.device_specific.is_none() => Some(Step::AllModePages),
            Step::CachingPage | Step::AllModePages => None,
        };
        self.step = next.unwrap_or(self.step);
        next.is_some()
    }

    /// The first page at or after this place that is listed, else what comes after the pages.
    fn page_from(&self, at: usize) -> Step {
        let mut rest = PAGES.into_iter().zip(self.listed).skip(at);
        let page = rest.find_map(|(page, listed)| listed.then_some(Step::Page(page)));
        page.unwrap_or_else(|| self.temperature_after(None))
    }

    /// The next way to ask for the temperature after this one, else what comes after it.
    fn temperature_after(&self, asked: Option<TemperatureSource>) -> Step {
        let ask = if self.facts.temperature.is_some() { AskTemperature::Not } else { self.ask };
        match (asked, ask, self.lists_ata) {
            (None, AskTemperature::ByLog | AskTemperature::ByLogOrSmart, Some(_)) => {
                Step::Temperature(TemperatureSource::LogPage)
            }
            (Some(TemperatureSource::LogPage), AskTemperature::ByLogOrSmart, Some(true)) => {
                Step::Temperature(TemperatureSource::Smart)
            }
            _ => Step::CachingPage,
        }
    }

    fn claims(&self, version: SpcVersion) -> bool {
        self.facts.inquiry.is_some_and(|inquiry| u8::from(inquiry.version) >= u8::from(version))
    }

    fn is_large(&self) -> bool {
        self.facts.ten.is_some_and(|ten| ten.last_lba == u32::MAX)
    }

    fn read(&mut self, answer: &[u8]) -> Result<Read, DecodeError> {
        match self.step {
            Step::Inquiry => {
                let inquiry = StandardInquiry::decode(answer)?;
                self.facts.inquiry = Some(inquiry);
                if !is_disk(inquiry.peripheral) {
                    return Ok(Read::Refused(Error::NotADisk(inquiry.peripheral.byte())));
                }
            }
            Step::TestUnitReady | Step::StartUnit => {}
            Step::ReportLuns => {
                self.luns = LunList::decode(answer)?.luns.iter().map(|&lun| LunField(lun)).collect();
            }
            Step::ReadCapacity10 => self.facts.ten = Some(Capacity10::decode(answer)?),
            Step::ReadCapacity16 => self.facts.sixteen = Some(Capacity16::decode(answer)?),
            Step::SupportedPages | Step::Page(_) => return self.read_page(answer),
            Step::Temperature(source) => self.facts.temperature = temperature::read(source, answer)?,
            Step::CachingPage => self.read_mode(ModeForm::Ten, answer)?,
            Step::AllModePages => self.read_mode(ModeForm::Six, answer)?,
        }
        Ok(Read::Whole)
    }

    fn read_page(&mut self, answer: &[u8]) -> Result<Read, DecodeError> {
        let header = VpdHeader::decode(answer)?;
        let whole = VpdHeader::LEN as u32 + u32::from(header.page_length);
        let room = u32::from(self.page_bytes);
        if whole > room && room == u32::from(PAGE_BYTES) && whole <= ANSWER_BYTES_MAX {
            self.page_bytes = whole as u16;
            self.is_again = false;
            return Ok(Read::Again);
        }
        match self.step {
            Step::SupportedPages => {
                let pages = SupportedVpdPages::decode(answer)?;
                let is_listed = |page| pages.pages().any(|listed| listed == page);
                self.listed = PAGES.map(is_listed);
                self.lists_ata = Some(is_listed(VpdPageCode::AtaInformation));
            }
            Step::Page(page) if header.page != page => {
                let (expected, found) = (u8::from(page).into(), u8::from(header.page).into());
                return Err(DecodeError::WrongKind { expected, found });
            }
            _ => self.take_page(&VpdPage::decode(answer)?),
        }
        Ok(Read::Whole)
    }

    fn take_page(&mut self, page: &VpdPage<'_>) {
        let facts = &mut self.facts;
        match page {
            VpdPage::UnitSerialNumber(page) => facts.serial = serial(page),
            VpdPage::DeviceIdentification(page) => facts.name = best_name(page),
            VpdPage::BlockLimits(page) => facts.limits = Some(*page),
            VpdPage::BlockDeviceCharacteristics(page) => facts.characteristics = Some(*page),
            VpdPage::LogicalBlockProvisioning(page) => facts.provisioning = Some(Provisioning::of(page)),
            _ => {}
        }
    }

    fn read_mode(&mut self, form: ModeForm, answer: &[u8]) -> Result<(), DecodeError> {
        let parameters = ModeParameters::decode_sensed(form, answer)?;
        self.facts.device_specific = Some(parameters.header.device_specific);
        // A page cut short by the allocation length ends the list, which is no error here.
        let caching = parameters.pages().flatten().find_map(|page| CachingPage::decode_sensed(&page).ok());
        self.facts.write_cache = caching.map(|page| page.write_cache);
        Ok(())
    }
}

/// Whether the unit has not answered at all.
const fn is_silence(error: Error) -> bool {
    matches!(error, Error::Transport(Failure::TimedOut))
}

/// Whether the unit has answered, if with nothing: it may be asked otherwise.
const fn is_refusal(error: Error) -> bool {
    matches!(error, Error::Unsupported | Error::IllegalRequest { .. } | Error::Answer(_))
}

/// What a step made of its answer.
enum Read {
    Whole,
    /// There is more than was asked for: ask again.
    Again,
    /// It is clear, and not good.
    Refused(Error),
}

fn is_disk(peripheral: Peripheral) -> bool {
    let kinds = [PeripheralDeviceType::DirectAccess, PeripheralDeviceType::SimplifiedDirectAccess];
    peripheral.qualifier == PeripheralQualifier::Connected && kinds.contains(&peripheral.device_type)
}

fn mode_command(width: CdbWidth, page: ModePageCode) -> (CommandBlock, u32) {
    let sense = ModeSense {
        width,
        disable_block_descriptors: width == CdbWidth::Ten,
        page_code: page.into(),
        allocation_len: MODE_BYTES,
        ..ModeSense::default()
    };
    (sense.encode().into(), MODE_BYTES.into())
}

fn serial(page: &UnitSerialNumber<'_>) -> Option<String> {
    let trimmed = page.serial.trim_ascii();
    (!trimmed.is_empty()).then(|| trimmed.escape_ascii().to_string())
}

/// The name of the unit that says most: NAA, then EUI-64, then a SCSI name, then T10.
fn best_name(page: &DeviceIdentification<'_>) -> Option<String> {
    let rank = |designator: &Designator<'_>| match designator {
        Designator::Naa(_) => 4,
        Designator::Eui64(_) => 3,
        Designator::ScsiName(_) => 2,
        Designator::T10Vendor { .. } => 1,
        _ => 0,
    };
    page.iter()
        .flatten()
        .filter(|descriptor| descriptor.association == Association::LogicalUnit)
        .map(|descriptor| descriptor.designator)
        .filter(|designator| rank(designator) > 0)
        .max_by_key(rank)
        .map(|designator| designator.to_string())
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inquiry => f.write_str("INQUIRY"),
            Self::TestUnitReady => f.write_str("TEST UNIT READY"),
            Self::StartUnit => f.write_str("START STOP UNIT"),
            Self::ReportLuns => f.write_str("REPORT LUNS"),
            Self::ReadCapacity10 => f.write_str("READ CAPACITY(10)"),
            Self::ReadCapacity16 => f.write_str("READ CAPACITY(16)"),
            Self::SupportedPages => f.write_str("INQUIRY of the list of VPD pages"),
            Self::Page(page) => write!(f, "INQUIRY of VPD page {page}"),
            Self::Temperature(source) => source.fmt(f),
            Self::CachingPage => f.write_str("MODE SENSE(10) of the caching page"),
            Self::AllModePages => f.write_str("MODE SENSE(6) of all pages"),
        }
    }
}

impl fmt::Display for SurveyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.error)
    }
}

impl SurveyError {
    /// Whether there is no such unit: the device says so, or it has nothing connected there (peripheral qualifiers 3 and 1).
    ///
    /// A device that is gone says the same as one that refuses the unit; who asks knows whether it is.
    pub fn is_no_unit(&self) -> bool {
        let is_absent = match self.error {
            Error::Gone => true,
            Error::NotADisk(peripheral) => {
                Peripheral::from_byte(peripheral).qualifier != PeripheralQualifier::Connected
            }
            _ => false,
        };
        self.step == Step::Inquiry && is_absent
    }
}

impl core::error::Error for SurveyError {}
