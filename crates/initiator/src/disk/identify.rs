//! Identification of a logical unit: the commands, their order, and the data used (SPC-5, SBC-4).
//!
//! REPORT LUNS to LUN 0 if requested; INQUIRY (36 bytes, supported by every device), TEST UNIT
//! READY until ready, READ CAPACITY(10) and, where useful, (16), the VPD pages that the unit lists,
//! and mode pages. A unit that claims no SPC version gets only what such units tolerate. If
//! requested, a unit that lists its VPD pages is asked for its temperature
//! ([`temperature`](super::temperature)). Only INQUIRY, readiness and READ CAPACITY(10) are
//! required; if another step fails, its data stay unknown.
//!
//! A timeout of an optional step has two causes. A status may be lost once: the step is repeated.
//! Or the device never answers commands it does not know, and some must be reset then: each step
//! has [`OPTIONAL_TIMEOUT`], a step that times out twice is not repeated again, and after a VPD
//! page that times out no other is read. At most [`AGAIN_MAX`] steps are repeated, and none once
//! one timed out twice, in this sequence or an earlier one. REPORT LUNS, READ CAPACITY(16), one
//! page and both MODE SENSEs can be given up, so that timeouts cost at most six times the limit, 30
//! s, plus the transport's recovery after each; 25 s more if the unit stops and is identified again
//! from readiness on. The temperature is read once, and the unit is started once.
//!
//! Always true: every step goes forward, except that a stopped unit is started once, a page longer
//! than the buffer is read again once, and timeouts are repeated as above; so the sequence ends.

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

/// The longest answer requested, in bytes: room for 511 LUNs.
pub const ANSWER_BYTES_MAX: u32 = 4096;

/// The VPD pages read if listed, in this order.
const PAGES: [VpdPageCode; 5] = [
    VpdPageCode::UnitSerialNumber,
    VpdPageCode::DeviceIdentification,
    VpdPageCode::BlockLimits,
    VpdPageCode::BlockDeviceCharacteristics,
    VpdPageCode::LogicalBlockProvisioning,
];

/// Timeout of an optional step.
const OPTIONAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Optional steps repeated after a timeout.
const AGAIN_MAX: u8 = 2;

/// First allocation length of a VPD page: fits one byte, for devices that look at one byte only.
const PAGE_BYTES: u16 = 252;
/// Allocation length of MODE SENSE(6) in Windows, so that every device supports it.
const MODE_BYTES: u16 = 192;

/// A step of the identify sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentifyStep {
    /// INQUIRY.
    Inquiry,
    /// TEST UNIT READY.
    TestUnitReady,
    /// START STOP UNIT.
    StartUnit,
    /// REPORT LUNS.
    ReportLuns,
    /// READ CAPACITY(10).
    ReadCapacity10,
    /// READ CAPACITY(16).
    ReadCapacity16,
    /// INQUIRY of the list of VPD pages.
    SupportedPages,
    /// INQUIRY of one VPD page.
    Page(VpdPageCode),
    /// The temperature. Sent once, with a short timeout.
    Temperature(TemperatureSource),
    /// The caching page, by MODE SENSE(10).
    CachingPage,
    /// All mode pages, by MODE SENSE(6), for units without MODE SENSE(10).
    AllModePages,
}

/// Identification failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentifyError {
    /// The step that failed.
    pub step: IdentifyStep,
    /// The reason.
    pub error: Error,
}

/// An identify sequence in progress.
#[derive(Clone, Debug)]
pub(super) struct Identify {
    step: IdentifyStep,
    facts: Facts,
    /// Logical units of the device: at most as many as one answer holds.
    luns: Vec<LunField>,
    ask: AskTemperature,
    /// Whether VPD page 89h is listed; `None` if the list is unknown.
    lists_ata: Option<bool>,
    started: bool,
    listed: [bool; PAGES.len()],
    page_bytes: u16,
    /// Steps that may still be repeated after a timeout.
    again_left: u8,
    /// The unit does not answer commands it does not know.
    is_silent: bool,
    /// The current step is a repetition.
    is_again: bool,
}

impl Identify {
    /// Starts a sequence; `is_silent` is what an earlier one learnt of the unit.
    pub(super) fn new(wants_luns: bool, ask: AskTemperature, is_silent: bool) -> Self {
        Self {
            step: if wants_luns { IdentifyStep::ReportLuns } else { IdentifyStep::Inquiry },
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

    pub(super) const fn step(&self) -> IdentifyStep {
        self.step
    }

    /// Returns the LUN that this step is addressed to.
    pub(super) fn unit(&self, identified: LunField) -> LunField {
        if self.step == IdentifyStep::ReportLuns { LunField::default() } else { identified }
    }

    /// Returns the reported logical units.
    pub(super) fn take_luns(&mut self) -> Vec<LunField> {
        core::mem::take(&mut self.luns)
    }

    /// Returns how the temperature is to be read.
    pub(super) const fn asks(&self) -> AskTemperature {
        self.ask
    }

    /// Returns the command of this step and its allocation length.
    pub(super) fn command(&self) -> (CommandBlock, u32) {
        match self.step {
            IdentifyStep::Inquiry => {
                let allocation_len = StandardInquiry::LEN_MIN as u16;
                let cdb = Inquiry { allocation_len, ..Inquiry::default() }.encode();
                (cdb.into(), allocation_len.into())
            }
            IdentifyStep::TestUnitReady => (TestUnitReady::default().encode().into(), 0),
            IdentifyStep::StartUnit => {
                (StartStopUnit { start: true, ..StartStopUnit::default() }.encode().into(), 0)
            }
            IdentifyStep::ReportLuns => {
                let allocation_len = ANSWER_BYTES_MAX;
                (ReportLuns { allocation_len, ..ReportLuns::default() }.encode().into(), allocation_len)
            }
            IdentifyStep::ReadCapacity10 => {
                (ReadCapacity10::default().encode().into(), Capacity10::LEN as u32)
            }
            IdentifyStep::ReadCapacity16 => {
                let allocation_len = Capacity16::LEN as u32;
                let cdb = ReadCapacity16 { allocation_len, ..ReadCapacity16::default() }.encode();
                (cdb.into(), allocation_len)
            }
            IdentifyStep::SupportedPages => self.page_command(VpdPageCode::SupportedPages),
            IdentifyStep::Page(page) => self.page_command(page),
            IdentifyStep::Temperature(source) => temperature::command(source),
            IdentifyStep::CachingPage => mode_command(CdbWidth::Ten, ModePageCode::Caching),
            IdentifyStep::AllModePages => mode_command(CdbWidth::Six, ModePageCode::All),
        }
    }

    fn page_command(&self, page: VpdPageCode) -> (CommandBlock, u32) {
        let allocation_len = self.page_bytes;
        let inquiry = Inquiry { evpd: true, page_code: page.into(), allocation_len, ..Inquiry::default() };
        (inquiry.encode().into(), allocation_len.into())
    }

    /// Handles the answer of a successful step. `true`: there is another step; an error ends the
    /// sequence.
    pub(super) fn take(&mut self, answer: &[u8]) -> Result<bool, Error> {
        match self.read(answer) {
            Ok(Read::Whole) => Ok(self.go_on()),
            Ok(Read::Again) => Ok(true),
            Ok(Read::Refused(error)) => Err(error),
            Err(error) => self.fail(Error::Answer(error)),
        }
    }

    /// Handles a step that failed for good. `true`: there is another step; an error ends the
    /// sequence.
    pub(super) fn fail(&mut self, error: Error) -> Result<bool, Error> {
        if matches!(error, Error::Gone | Error::Aborted) || self.is_needed() {
            return Err(error);
        }
        match self.step {
            IdentifyStep::SupportedPages | IdentifyStep::Page(_) if is_silence(error) => {
                let page =
                    if let IdentifyStep::Page(page) = self.step { page } else { VpdPageCode::SupportedPages };
                self.facts.doubt(Doubt::Page(page));
                (self.listed, self.lists_ata) = ([false; PAGES.len()], None);
            }
            IdentifyStep::Page(page) => self.facts.doubt(Doubt::Page(page)),
            IdentifyStep::AllModePages => self.facts.doubt(Doubt::NoModePages),
            // One that has not even refused is not asked otherwise.
            IdentifyStep::Temperature(_) if !is_refusal(error) => self.lists_ata = None,
            _ => {}
        }
        Ok(self.go_on())
    }

    /// Returns whether the sequence fails without this step.
    fn is_needed(&self) -> bool {
        match self.step {
            IdentifyStep::Inquiry | IdentifyStep::TestUnitReady | IdentifyStep::ReadCapacity10 => true,
            // Nothing above 2^32 blocks is known without it.
            IdentifyStep::ReadCapacity16 => self.is_large(),
            _ => false,
        }
    }

    /// Returns whether this step is not repeated after such an error: it is optional and was
    /// repeated already, or enough others were. Counts the repetition otherwise.
    pub(super) fn gives_up_after(&mut self, error: Error) -> bool {
        match self.step {
            IdentifyStep::Temperature(_) => return true,
            // The units that there are may be unknown.
            IdentifyStep::ReportLuns if !is_silence(error) => return true,
            _ if !is_silence(error) || self.is_needed() => return false,
            IdentifyStep::StartUnit => return true,
            _ => {}
        }
        self.is_silent |= self.is_again;
        let gives_up = self.is_silent || self.again_left == 0;
        self.again_left = self.again_left.saturating_sub(1);
        self.is_again = true;
        gives_up
    }

    /// Returns whether the unit was found not to answer commands it does not know.
    pub(super) const fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Returns the timeout of this step.
    pub(super) fn timeout(&self, usual: Duration) -> Duration {
        match self.step {
            IdentifyStep::Temperature(_) => usual.min(TEMPERATURE_TIMEOUT),
            // A unit that spins up takes its time.
            IdentifyStep::StartUnit => usual,
            _ if self.is_needed() => usual,
            _ => usual.min(OPTIONAL_TIMEOUT),
        }
    }

    /// Handles a stopped unit. `true`: it is started, once.
    pub(super) const fn start_unit(&mut self) -> bool {
        // A unit answers INQUIRY stopped or not, and nothing goes on without it.
        let first = !self.started
            && !matches!(
                self.step,
                IdentifyStep::ReportLuns | IdentifyStep::Inquiry | IdentifyStep::StartUnit
            );
        if first {
            self.started = true;
            self.step = IdentifyStep::StartUnit;
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
            IdentifyStep::ReportLuns => Some(IdentifyStep::Inquiry),
            IdentifyStep::Inquiry | IdentifyStep::StartUnit => Some(IdentifyStep::TestUnitReady),
            IdentifyStep::TestUnitReady => Some(IdentifyStep::ReadCapacity10),
            IdentifyStep::ReadCapacity10 if self.claims(SpcVersion::Spc3) || self.is_large() => {
                Some(IdentifyStep::ReadCapacity16)
            }
            IdentifyStep::ReadCapacity10 | IdentifyStep::ReadCapacity16 if self.claims(SpcVersion::Spc) => {
                Some(IdentifyStep::SupportedPages)
            }
            IdentifyStep::ReadCapacity10 | IdentifyStep::ReadCapacity16 => Some(IdentifyStep::AllModePages),
            IdentifyStep::SupportedPages => Some(self.page_from(0)),
            IdentifyStep::Page(page) => {
                let at = PAGES.iter().position(|&known| known == page).unwrap_or(PAGES.len());
                Some(self.page_from(at + 1))
            }
            IdentifyStep::Temperature(source) => Some(self.temperature_after(Some(source))),
            IdentifyStep::CachingPage if self.facts.device_specific.is_none() => {
                Some(IdentifyStep::AllModePages)
            }
            IdentifyStep::CachingPage | IdentifyStep::AllModePages => None,
        };
        self.step = next.unwrap_or(self.step);
        next.is_some()
    }

    /// Returns the first listed page from this index on, else the step after the pages.
    fn page_from(&self, at: usize) -> IdentifyStep {
        let mut rest = PAGES.into_iter().zip(self.listed).skip(at);
        let page = rest.find_map(|(page, listed)| listed.then_some(IdentifyStep::Page(page)));
        page.unwrap_or_else(|| self.temperature_after(None))
    }

    /// Returns the next way to read the temperature, else the step after it.
    fn temperature_after(&self, asked: Option<TemperatureSource>) -> IdentifyStep {
        let ask = if self.facts.temperature.is_some() { AskTemperature::Not } else { self.ask };
        match (asked, ask, self.lists_ata) {
            (None, AskTemperature::ByLog | AskTemperature::ByLogOrSmart, Some(_)) => {
                IdentifyStep::Temperature(TemperatureSource::LogPage)
            }
            (Some(TemperatureSource::LogPage), AskTemperature::ByLogOrSmart, Some(true)) => {
                IdentifyStep::Temperature(TemperatureSource::Smart)
            }
            _ => IdentifyStep::CachingPage,
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
            IdentifyStep::Inquiry => {
                let inquiry = StandardInquiry::decode(answer)?;
                self.facts.inquiry = Some(inquiry);
                if !is_disk(inquiry.peripheral) {
                    return Ok(Read::Refused(Error::NotADisk(inquiry.peripheral.byte())));
                }
            }
            IdentifyStep::TestUnitReady | IdentifyStep::StartUnit => {}
            IdentifyStep::ReportLuns => {
                self.luns = LunList::decode(answer)?.luns.iter().map(|&lun| LunField(lun)).collect();
            }
            IdentifyStep::ReadCapacity10 => self.facts.ten = Some(Capacity10::decode(answer)?),
            IdentifyStep::ReadCapacity16 => self.facts.sixteen = Some(Capacity16::decode(answer)?),
            IdentifyStep::SupportedPages | IdentifyStep::Page(_) => return self.read_page(answer),
            IdentifyStep::Temperature(source) => self.facts.temperature = temperature::read(source, answer)?,
            IdentifyStep::CachingPage => self.read_mode(ModeForm::Ten, answer)?,
            IdentifyStep::AllModePages => self.read_mode(ModeForm::Six, answer)?,
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
            IdentifyStep::SupportedPages => {
                let pages = SupportedVpdPages::decode(answer)?;
                let is_listed = |page| pages.pages().any(|listed| listed == page);
                self.listed = PAGES.map(is_listed);
                self.lists_ata = Some(is_listed(VpdPageCode::AtaInformation));
            }
            IdentifyStep::Page(page) if header.page != page => {
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

/// Returns whether the command timed out.
const fn is_silence(error: Error) -> bool {
    matches!(error, Error::Transport(Failure::TimedOut))
}

/// Returns whether the unit answered, if with an error: another command may work.
const fn is_refusal(error: Error) -> bool {
    matches!(error, Error::Unsupported | Error::IllegalRequest { .. } | Error::Answer(_))
}

/// The result of decoding an answer.
enum Read {
    Whole,
    /// The page is longer than the buffer: read it again.
    Again,
    /// Decoded, but not acceptable.
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

/// Returns the most specific name of the unit: NAA, then EUI-64, then SCSI name, then T10.
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

impl fmt::Display for IdentifyStep {
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

impl fmt::Display for IdentifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.error)
    }
}

impl IdentifyError {
    /// Returns whether the logical unit does not exist: the device reports so, or nothing is
    /// connected there (peripheral qualifiers 3 and 1).
    ///
    /// A disconnected device reports the same; the caller knows whether it is.
    pub fn is_no_unit(&self) -> bool {
        let is_absent = match self.error {
            Error::Gone => true,
            Error::NotADisk(peripheral) => {
                Peripheral::from_byte(peripheral).qualifier != PeripheralQualifier::Connected
            }
            _ => false,
        };
        self.step == IdentifyStep::Inquiry && is_absent
    }
}

impl core::error::Error for IdentifyError {}
