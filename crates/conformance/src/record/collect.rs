//! Asks a device for its record.
//!
//! Commands go over BOT where the device has it, else over UAS, one at a time; one that gets no status is left out, after a port
//! reset. Left out: devices with more than one configuration in use at once, which USB does not have.

use super::questions::{
    ALL_MODE_PAGES, ALL_MODE_SUBPAGES, IDENTIFY_DEVICE, INQUIRY_BYTES, LOG_LISTS, LONG, OTHERS,
    PAGE_CONTROLS, READ_CAPACITY_16, SHORT, commands, inquiry, log_sense, mode_sense,
};
use super::serials::{self, SerialNumbers};
use super::{RECORDED_UNITS_MAX, Record, UnitRecord};
use crate::bus::DeviceBus;
use crate::device::TestedDevice;
use crate::limits::WriteLimits;
use crate::probe::Probe;
use device::device::RecordedDescriptor;
use device::lun::{RecordedAnswer, RecordedOutcome};
use quirks::Configuration;
use wire::bot::ClassRequest;
use wire::scsi::capacity::{Capacity10, Capacity16};
use wire::scsi::cdb::CdbWidth;
use wire::scsi::mode::{ModeForm, ModeParameters, PageControl};
use wire::scsi::report_luns::LunList;
use wire::scsi::sense::{AdditionalSense, SenseKey};
use wire::scsi::supported_opcodes::AllCommands;
use wire::usb::{BosDescriptor, DescriptorKind, SetupPacket};

/// Times that a command is sent to a unit that reports a unit attention condition.
const TRIES: usize = 4;

/// Strings that a device may have.
const STRINGS_MAX: usize = 32;

/// Commands of a list of supported ones that are asked for one by one.
const COMMANDS_MAX: usize = 256;

/// Records a device. It is not written to.
///
/// # Errors
///
/// Why it cannot be recorded, in words.
pub fn record(
    bus: &mut dyn DeviceBus,
    device: &TestedDevice,
    serial_numbers: SerialNumbers,
) -> Result<Record, String> {
    let mut probe = Probe::new(bus, device, WriteLimits::default());
    let descriptors = descriptors(&mut probe)?;
    if !is_ready(&mut probe) {
        return Err("the device does not get ready: TEST UNIT READY has no GOOD status".into());
    }
    let mut units = Vec::new();
    for lun in 0..units_of(&mut probe) {
        let mut unit = UnitOf { probe: &mut probe, lun, answers: Vec::new() };
        unit.ask_all()?;
        let (block_bytes, blocks) = unit.size()?;
        units.push(UnitRecord { block_bytes, blocks, answers: unit.answers });
    }
    probe.end_all();
    let configuration = device.probe.configuration.head.value;
    let mut record =
        Record { speed: device.speed, serials: serial_numbers, configuration, descriptors, units };
    if serial_numbers == SerialNumbers::Replaced {
        serials::replace(&mut record);
    }
    Ok(record)
}

fn is_ready(probe: &mut Probe<'_>) -> bool {
    probe.begin_scsi() || (probe.reset_port() && probe.begin_scsi())
}

/// Reads the descriptors: those of the device, of each configuration, the BOS, the strings that they name.
fn descriptors(probe: &mut Probe<'_>) -> Result<Vec<RecordedDescriptor>, String> {
    let mut found = Vec::new();
    let device = descriptor(probe, DescriptorKind::Device, 0).ok_or("the device descriptor is missing")?;
    let count = probe.device().probe.device.configurations.clamp(1, 8);
    found.push(device);
    let mut strings = Vec::new();
    let of_device = &probe.device().probe.device;
    strings.extend([of_device.manufacturer_string, of_device.product_string, of_device.serial_string]);
    for index in 0..count {
        let Some(configuration) = descriptor(probe, DescriptorKind::Configuration, index) else { continue };
        if let Ok(decoded) = Configuration::decode(&configuration.bytes) {
            strings.push(decoded.head.string);
            strings.extend(decoded.settings.iter().map(|setting| setting.interface.string));
        }
        found.push(configuration);
    }
    for kind in
        [DescriptorKind::Bos, DescriptorKind::DeviceQualifier, DescriptorKind::OtherSpeedConfiguration]
    {
        found.extend(descriptor(probe, kind, 0));
    }
    let languages = descriptor(probe, DescriptorKind::String, 0);
    let language = languages.as_ref().and_then(|table| table.bytes.get(2..4)?.first_chunk().copied());
    found.extend(languages);
    strings.sort_unstable();
    strings.dedup();
    for index in strings.into_iter().filter(|index| *index != 0).take(STRINGS_MAX) {
        let setup = SetupPacket {
            index: u16::from_le_bytes(language.unwrap_or_default()),
            ..SetupPacket::get_descriptor(DescriptorKind::String, index, 255)
        };
        if let Ok(bytes) = probe.control_in(setup)
            && is_of_kind(&bytes, DescriptorKind::String)
        {
            found.push(RecordedDescriptor { kind: DescriptorKind::String, index, bytes });
        }
    }
    Ok(found)
}

/// Reads a descriptor with all that belongs to it. `None`: the device does not have it.
fn descriptor(probe: &mut Probe<'_>, kind: DescriptorKind, index: u8) -> Option<RecordedDescriptor> {
    const HEAD_BYTES: u16 = 9;
    let asked = match kind {
        // Of what follows them, the first bytes say how much there is.
        DescriptorKind::Configuration | DescriptorKind::OtherSpeedConfiguration => HEAD_BYTES,
        DescriptorKind::Bos => BosDescriptor::LEN as u16,
        _ => 255,
    };
    let head = probe.control_in(SetupPacket::get_descriptor(kind, index, asked)).ok()?;
    let whole = match asked {
        255 => head,
        _ => {
            let total = u16::from_le_bytes(*head.get(2..4)?.first_chunk()?).min(LONG);
            probe.control_in(SetupPacket::get_descriptor(kind, index, total)).ok()?
        }
    };
    is_of_kind(&whole, kind).then_some(RecordedDescriptor { kind, index, bytes: whole })
}

/// Returns whether bytes are a descriptor of that kind: a device that returns another one does not have it.
fn is_of_kind(bytes: &[u8], kind: DescriptorKind) -> bool {
    bytes.get(1) == Some(&kind.into())
}

/// Returns how many logical units there are.
fn units_of(probe: &mut Probe<'_>) -> u8 {
    const LIST_BYTES: u16 = 8 + 8 * RECORDED_UNITS_MAX as u16;
    if let Some(plan) = probe.device().bot {
        let setup = ClassRequest::GetMaxLun { interface: plan.place.interface }.encode();
        let max = probe.control_in(setup).ok().and_then(|bytes| bytes.first().copied()).unwrap_or_default();
        return max.min(RECORDED_UNITS_MAX as u8 - 1) + 1;
    }
    let [high, low] = LIST_BYTES.to_be_bytes();
    let answer = probe.scsi(0, &[0xa0, 0, 0, 0, 0, 0, 0, 0, high, low, 0, 0], LIST_BYTES.into());
    let luns = answer.ok().and_then(|answer| LunList::decode(&answer.data).ok().map(|list| list.luns.len()));
    luns.unwrap_or(1).clamp(1, RECORDED_UNITS_MAX) as u8
}

/// A unit that is recorded.
struct UnitOf<'p, 'd> {
    probe: &'p mut Probe<'d>,
    lun: u8,
    answers: Vec<RecordedAnswer>,
}

impl UnitOf<'_, '_> {
    fn ask_all(&mut self) -> Result<(), String> {
        for _ in 0..TRIES {
            // Takes what a reset has left.
            let _ = self.probe.scsi(self.lun, &[0; 6], 0);
        }
        self.inquiries()?;
        for width in [CdbWidth::Six, CdbWidth::Ten] {
            self.mode_pages(width)?;
        }
        self.log_pages()?;
        self.supported_commands()?;
        self.keep(&READ_CAPACITY_16, 32)?;
        for cdb in IDENTIFY_DEVICE {
            self.keep(cdb, 512)?;
        }
        for (cdb, length) in OTHERS {
            let answer = self.ask(cdb, length)?;
            self.keep_refusal(cdb, answer);
        }
        Ok(())
    }

    /// Sends a command. `None`: it has no status, even after a port reset.
    fn ask(&mut self, cdb: &[u8], length: u32) -> Result<Option<RecordedOutcome>, String> {
        for _ in 0..TRIES {
            let Ok(answer) = self.probe.scsi(self.lun, cdb, length) else {
                if self.probe.is_gone() || !(self.probe.reset_port() && self.probe.begin_scsi()) {
                    return Err("the device does not get ready again after a command without a status".into());
                }
                return Ok(None);
            };
            if answer.is_good() {
                return Ok(Some(RecordedOutcome::Data(answer.data)));
            }
            match answer.sense {
                Some(sense) if sense.key == SenseKey::UnitAttention => {}
                Some(sense) => return Ok(Some(RecordedOutcome::Check(sense))),
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Sends a command and keeps its answer; returns the data.
    fn keep(&mut self, cdb: &[u8], length: u32) -> Result<Option<Vec<u8>>, String> {
        let Some(outcome) = self.ask(cdb, length)? else { return Ok(None) };
        let found = match &outcome {
            RecordedOutcome::Data(bytes) => Some(bytes.clone()),
            RecordedOutcome::Check(_) => None,
        };
        self.answers.push(RecordedAnswer { cdb: cdb.to_vec(), outcome });
        Ok(found)
    }

    /// Keeps that the unit does not know a command.
    fn keep_refusal(&mut self, cdb: &[u8], answer: Option<RecordedOutcome>) {
        if let Some(RecordedOutcome::Check(sense)) = answer
            && sense.additional == AdditionalSense::INVALID_COMMAND_OPERATION_CODE
        {
            let outcome = RecordedOutcome::Check(sense);
            self.answers.push(RecordedAnswer { cdb: cdb.to_vec(), outcome });
        }
    }

    /// Asks for a page whose length is a field of it, with the room that it needs.
    fn page(
        &mut self,
        cdb: impl Fn(u16) -> wire::scsi::cdb::Cdb,
        first: u16,
        length: impl Fn(&[u8]) -> Option<usize>,
    ) -> Result<Option<Vec<u8>>, String> {
        let cdb_first = cdb(first);
        let Some(outcome) = self.ask(&cdb_first, first.into())? else { return Ok(None) };
        if let RecordedOutcome::Data(bytes) = &outcome
            && let Some(wanted) = length(bytes).filter(|wanted| *wanted > first.into())
        {
            let room = wanted.min(LONG.into()) as u16;
            return self.keep(&cdb(room), room.into());
        }
        let found = match &outcome {
            RecordedOutcome::Data(bytes) => Some(bytes.clone()),
            RecordedOutcome::Check(_) => None,
        };
        self.answers.push(RecordedAnswer { cdb: cdb_first.to_vec(), outcome });
        Ok(found)
    }

    fn inquiries(&mut self) -> Result<(), String> {
        let after_byte_4 = |bytes: &[u8]| Some(usize::from(*bytes.get(4)?) + 5);
        self.page(|room| inquiry(None, room), INQUIRY_BYTES, after_byte_4)?;
        let pages = self.page(|room| inquiry(Some(0), room), SHORT, |bytes| page_bytes(bytes, 2))?;
        let pages = pages.unwrap_or_default();
        for page in pages.iter().skip(4).filter(|page| **page != 0) {
            self.page(|room| inquiry(Some(*page), room), SHORT, |bytes| page_bytes(bytes, 2))?;
        }
        Ok(())
    }

    fn mode_pages(&mut self, width: CdbWidth) -> Result<(), String> {
        let length = |bytes: &[u8]| match width {
            CdbWidth::Six => None,
            _ => Some(page_bytes(bytes, 0)? - 2),
        };
        let form = if width == CdbWidth::Six { ModeForm::Six } else { ModeForm::Ten };
        let mut pages = Vec::new();
        for control in PAGE_CONTROLS {
            let all = self.page(|room| mode_sense(width, control, ALL_MODE_PAGES, room), SHORT, length)?;
            let Some(all) = all else { continue };
            if control == PageControl::Current {
                pages = mode_page_codes(form, &all);
                self.page(|room| mode_sense(width, control, ALL_MODE_SUBPAGES, room), SHORT, length)?;
            }
            for page in &pages {
                self.page(|room| mode_sense(width, control, *page, room), SHORT, length)?;
            }
        }
        Ok(())
    }

    fn log_pages(&mut self) -> Result<(), String> {
        let length = |bytes: &[u8]| page_bytes(bytes, 2);
        let mut pages = Vec::new();
        for list in LOG_LISTS {
            let found = self.page(|room| log_sense(list, room), SHORT, length)?.unwrap_or_default();
            match list {
                (_, 0) => pages.extend(found.iter().skip(4).map(|page| (*page, 0))),
                _ => {
                    pages.extend(found.get(4..).unwrap_or_default().chunks_exact(2).map(|of| (of[0], of[1])))
                }
            }
        }
        pages.retain(|page| !LOG_LISTS.contains(page));
        pages.sort_unstable();
        pages.dedup();
        for page in pages {
            self.page(|room| log_sense(page, room), SHORT, length)?;
        }
        Ok(())
    }

    fn supported_commands(&mut self) -> Result<(), String> {
        let list = self.keep(&commands(None, false), LONG.into())?;
        let Some(list) = list else { return Ok(()) };
        self.keep(&commands(None, true), LONG.into())?;
        let Ok(all) = AllCommands::decode(&list) else { return Ok(()) };
        let listed: Vec<_> = all.iter().flatten().take(COMMANDS_MAX).collect();
        for command in listed {
            for timeouts in [false, true] {
                let one = commands(Some((command.opcode, command.service_action)), timeouts);
                self.keep(&one, LONG.into())?;
            }
        }
        Ok(())
    }

    /// Returns bytes of a block, and how many there are; zeros without a medium.
    fn size(&mut self) -> Result<(u32, u64), String> {
        let cdb = [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let Some(RecordedOutcome::Data(bytes)) = self.ask(&cdb, Capacity10::LEN as u32)? else {
            return Ok((0, 0));
        };
        let Ok(short) = Capacity10::decode(&bytes) else { return Ok((0, 0)) };
        if short.last_lba == u32::MAX
            && let Some(RecordedOutcome::Data(bytes)) = self.ask(&READ_CAPACITY_16, 32)?
            && let Ok(long) = Capacity16::decode(&bytes)
        {
            return Ok((long.block_length, long.last_lba.saturating_add(1)));
        }
        Ok((short.block_length, u64::from(short.last_lba) + 1))
    }
}

/// Bytes of parameter data whose length is in two bytes at this place, which end with the header.
fn page_bytes(bytes: &[u8], at: usize) -> Option<usize> {
    let length = u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?);
    Some(usize::from(length) + 4)
}

/// The codes and subpage codes of the pages in mode parameters.
fn mode_page_codes(form: ModeForm, all: &[u8]) -> Vec<(u8, u8)> {
    let Ok(sensed) = ModeParameters::decode_sensed(form, all) else { return Vec::new() };
    let mut codes: Vec<(u8, u8)> = sensed
        .pages()
        .flatten()
        .map(|page| (u8::from(page.header.code), page.header.subpage.unwrap_or_default()))
        .collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}
