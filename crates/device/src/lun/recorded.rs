//! A logical unit that returns the answers of another one, as they were recorded: INQUIRY, MODE SENSE, LOG SENSE, REPORT
//! SUPPORTED OPERATION CODES, and IDENTIFY DEVICE by ATA PASS-THROUGH.
//!
//! A command is looked up by the fields that select its data; the allocation length cuts them. A page that was not recorded is
//! refused, and so is a command that the recorded unit refused as unknown or does not list. READ CAPACITY (16) has the recorded
//! flags, and the size of the medium. Left out: changes of
//! recorded pages; MODE SELECT refuses them.

use super::plan::{Plan, Reply};
use alloc::vec::Vec;
use wire::Writer;
use wire::scsi::capacity::Capacity16;
use wire::scsi::mode::{CachingPage, ModePages, RawModePage};
use wire::scsi::opcode::{self, MaintenanceIn, OperationCode, ServiceActionIn16};
use wire::scsi::sense::{AdditionalSense, Sense};
use wire::scsi::supported_opcodes::AllCommands;

/// The answers of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedUnit {
    answers: Vec<RecordedAnswer>,
    /// The commands that REPORT SUPPORTED OPERATION CODES lists, if it was answered.
    listed: Option<Vec<(u8, Option<u16>)>>,
    /// WCE of the Caching page; without the page a host assumes that there is no write cache.
    write_cache: bool,
}

/// The answer to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedAnswer {
    /// The command descriptor block.
    pub cdb: Vec<u8>,
    /// How the command ended.
    pub outcome: RecordedOutcome,
}

/// The end of a recorded command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedOutcome {
    /// GOOD, with these parameter data.
    Data(Vec<u8>),
    /// CHECK CONDITION.
    Check(Sense),
}

/// The fields of a CDB that select data, and how many bytes of them the host takes.
struct Request {
    key: Vec<u8>,
    room: u32,
}

/// DBD of MODE SENSE: no block descriptors.
const NO_DESCRIPTORS: u8 = 0x08;
/// The page code of MODE SENSE for all pages.
const ALL_PAGES: u8 = 0x3f;
const CACHING_PAGE: u8 = 0x08;
/// RCTD of REPORT SUPPORTED OPERATION CODES: with timeouts.
const WITH_TIMEOUTS: u8 = 0x80;
/// REPORTING OPTIONS of the same command: zero for all commands.
const REPORTING_OPTIONS: u8 = 0x07;
/// The ATA command IDENTIFY DEVICE.
const IDENTIFY_DEVICE: u8 = 0xec;

impl RecordedUnit {
    /// Takes over the answers of a unit; of two to the same command the first counts.
    pub fn new(answers: Vec<RecordedAnswer>) -> Self {
        let mut unit = Self { answers, listed: None, write_cache: false };
        unit.listed = unit.parameter_data(&key(OperationCode::MaintenanceIn, &[0, 0, 0, 0])).map(listed);
        unit.write_cache = [(OperationCode::ModeSense6, 4), (OperationCode::ModeSense10, 8)]
            .into_iter()
            .flat_map(|form| [(form, CACHING_PAGE), (form, ALL_PAGES)])
            .find_map(|((opcode, header), page)| {
                let data = unit.parameter_data(&key(opcode, &[0, page, 0]))?;
                let caching = pages(data, header).find_map(|page| CachingPage::decode_sensed(&page).ok());
                caching.map(|page| page.write_cache)
            })
            .unwrap_or_default();
        unit
    }

    /// Whether a write may end before it is durable.
    pub(crate) const fn write_cache_enabled(&self) -> bool {
        self.write_cache
    }

    /// Whether the unit does not have a command.
    pub(crate) fn is_refused(&self, opcode: OperationCode, action: Option<u16>) -> bool {
        if matches!(opcode, OperationCode::TestUnitReady | OperationCode::RequestSense) {
            return false;
        }
        let wanted = (u8::from(opcode), action);
        let mut of_command = self.answers.iter().filter(|answer| {
            answer.cdb.first() == Some(&wanted.0) && opcode::service_action(&answer.cdb) == action
        });
        match of_command.next().map(|answer| &answer.outcome) {
            Some(RecordedOutcome::Data(_)) => false,
            Some(RecordedOutcome::Check(sense))
                if sense.additional == AdditionalSense::INVALID_COMMAND_OPERATION_CODE =>
            {
                true
            }
            _ => self.listed.as_ref().is_some_and(|listed| !listed.contains(&wanted)),
        }
    }

    /// Answers a command, if the record has what it asks for.
    pub(crate) fn answer(&self, cdb: &[u8], own: Capacity16, reply: &mut Reply) -> Option<Plan> {
        let opcode = OperationCode::from(*cdb.first()?);
        let Request { key, room } = request(opcode, cdb)?;
        if !self.answers.iter().any(|answer| is_alike(&answer.cdb, cdb)) {
            return None;
        }
        let data = match self.find(&key) {
            Some(RecordedOutcome::Data(data)) => data.clone(),
            Some(RecordedOutcome::Check(sense)) => return Some(Plan::Check(*sense)),
            None => match self.derived(opcode, &key) {
                Ok(data) => data,
                Err(sense) => return Some(Plan::Check(sense)),
            },
        };
        let data = if opcode == OperationCode::ServiceActionIn16 { with_size(data, own) } else { data };
        Some(reply.fill(room, |out| {
            let mut writer = Writer::new(out);
            writer.put(&data).map(|()| data.len())
        }))
    }

    /// The data of a command that was not recorded as it is, from those of one that differs little; else why it is refused.
    fn derived(&self, opcode: OperationCode, key: &[u8]) -> Result<Vec<u8>, Sense> {
        let refusal = Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB);
        let header = match opcode {
            OperationCode::ModeSense6 => 4,
            OperationCode::ModeSense10 => 8,
            OperationCode::MaintenanceIn => {
                let without = [&key[..1], &[key[1] & !WITH_TIMEOUTS], &key[2..]].concat();
                // Not in the record: the command is not supported.
                let no = [0, 1, 0, 0];
                return Ok(self
                    .parameter_data(&without)
                    .filter(|_| key[1] & REPORTING_OPTIONS != 0)
                    .unwrap_or(&no)
                    .to_vec());
            }
            _ => return Err(refusal),
        };
        let mut with_descriptors = key.to_vec();
        with_descriptors[1] &= !NO_DESCRIPTORS;
        if let Some(data) = self.parameter_data(&with_descriptors) {
            return Ok(without_descriptors(data, header));
        }
        // Values that the unit does not have are refused in the same way for each page.
        with_descriptors[2] |= ALL_PAGES;
        with_descriptors[3] = 0;
        match self.find(&with_descriptors) {
            Some(RecordedOutcome::Check(sense)) => Err(*sense),
            _ => Err(refusal),
        }
    }

    fn find(&self, wanted: &[u8]) -> Option<&RecordedOutcome> {
        let is_it = |answer: &&RecordedAnswer| {
            let opcode = answer.cdb.first().map(|byte| OperationCode::from(*byte));
            opcode.and_then(|opcode| request(opcode, &answer.cdb)).is_some_and(|found| found.key == wanted)
        };
        self.answers.iter().find(is_it).map(|answer| &answer.outcome)
    }

    fn parameter_data(&self, wanted: &[u8]) -> Option<&[u8]> {
        match self.find(wanted)? {
            RecordedOutcome::Data(data) => Some(data),
            RecordedOutcome::Check(_) => None,
        }
    }
}

/// Whether two CDBs are of one command.
fn is_alike(one: &[u8], other: &[u8]) -> bool {
    one.first() == other.first() && opcode::service_action(one) == opcode::service_action(other)
}

fn key(opcode: OperationCode, fields: &[u8]) -> Vec<u8> {
    [&[u8::from(opcode)][..], fields].concat()
}

/// Reads a CDB of a command whose answers are recorded. `None`: another command, or a CDB that is too short.
fn request(opcode: OperationCode, cdb: &[u8]) -> Option<Request> {
    let word = |at: usize| Some(u32::from(u16::from_be_bytes(*cdb.get(at..)?.first_chunk()?)));
    let long = |at: usize| Some(u32::from_be_bytes(*cdb.get(at..)?.first_chunk()?));
    let (fields, room) = match opcode {
        OperationCode::Inquiry => (cdb.get(1..3)?.to_vec(), word(3)?),
        OperationCode::ModeSense6 => {
            ([cdb.get(1)? & NO_DESCRIPTORS, *cdb.get(2)?, *cdb.get(3)?].to_vec(), (*cdb.get(4)?).into())
        }
        OperationCode::ModeSense10 => {
            ([cdb.get(1)? & NO_DESCRIPTORS, *cdb.get(2)?, *cdb.get(3)?].to_vec(), word(7)?)
        }
        OperationCode::LogSense => ([*cdb.get(2)? & ALL_PAGES, *cdb.get(3)?].to_vec(), word(7)?),
        OperationCode::MaintenanceIn => {
            let codes = u16::from(u8::from(MaintenanceIn::ReportSupportedOperationCodes));
            let fields = cdb.get(2..6)?.to_vec();
            (fields, (opcode::service_action(cdb) == Some(codes)).then_some(long(6)?)?)
        }
        OperationCode::ServiceActionIn16 => {
            let capacity = u16::from(u8::from(ServiceActionIn16::ReadCapacity16));
            (Vec::new(), (opcode::service_action(cdb) == Some(capacity)).then_some(long(10)?)?)
        }
        OperationCode::AtaPassThrough16 if cdb.get(14) == Some(&IDENTIFY_DEVICE) => (Vec::new(), u32::MAX),
        OperationCode::AtaPassThrough12 if cdb.get(9) == Some(&IDENTIFY_DEVICE) => (Vec::new(), u32::MAX),
        _ => return None,
    };
    Some(Request { key: key(opcode, &fields), room })
}

/// The commands of a list of REPORT SUPPORTED OPERATION CODES.
fn listed(data: &[u8]) -> Vec<(u8, Option<u16>)> {
    let Ok(list) = AllCommands::decode(data) else { return Vec::new() };
    list.iter().flatten().map(|command| (command.opcode, command.service_action)).collect()
}

/// Bytes of the block descriptors, by the mode parameter header.
fn descriptor_bytes(data: &[u8], header: usize) -> usize {
    match header {
        4 => data.get(3).map_or(0, |byte| (*byte).into()),
        _ => data.get(6..8).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]).into()),
    }
}

/// The mode pages of parameter data.
fn pages(data: &[u8], header: usize) -> impl Iterator<Item = RawModePage<'_>> {
    ModePages::new(data.get(header + descriptor_bytes(data, header)..).unwrap_or_default()).flatten()
}

/// Mode parameter data without their block descriptors.
fn without_descriptors(data: &[u8], header: usize) -> Vec<u8> {
    let skipped = descriptor_bytes(data, header);
    let mut bytes = data.to_vec();
    bytes.drain(header.min(data.len())..(header + skipped).min(data.len()));
    match (header, &mut *bytes) {
        (4, [length, _, _, descriptors, ..]) => {
            (*length, *descriptors) = (length.saturating_sub(skipped as u8), 0);
        }
        (_, [high, low, _, _, _, _, first, second, ..]) => {
            let length = u16::from_be_bytes([*high, *low]).saturating_sub(skipped as u16);
            [*high, *low] = length.to_be_bytes();
            (*first, *second) = (0, 0);
        }
        _ => {}
    }
    bytes
}

/// READ CAPACITY (16) data with the size of the medium in place of the recorded one.
fn with_size(mut data: Vec<u8>, own: Capacity16) -> Vec<u8> {
    if let Some(place) = data.get_mut(..8) {
        place.copy_from_slice(&own.last_lba.to_be_bytes());
    }
    if let Some(place) = data.get_mut(8..12) {
        place.copy_from_slice(&own.block_length.to_be_bytes());
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lun::fixture::Fixture;
    use alloc::vec;

    fn answer(cdb: &[u8], data: &[u8]) -> RecordedAnswer {
        RecordedAnswer { cdb: cdb.to_vec(), outcome: RecordedOutcome::Data(data.to_vec()) }
    }

    fn check(cdb: &[u8], sense: Sense) -> RecordedAnswer {
        RecordedAnswer { cdb: cdb.to_vec(), outcome: RecordedOutcome::Check(sense) }
    }

    fn fixture(answers: Vec<RecordedAnswer>) -> Fixture {
        Fixture::with(|config| config.recorded = Some(RecordedUnit::new(answers).into()))
    }

    const UNKNOWN: Sense = Sense::illegal_request(AdditionalSense::INVALID_COMMAND_OPERATION_CODE);
    const REFUSED: Sense = Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB);

    #[test]
    fn recorded_data_are_cut_at_the_allocation_length() {
        let mut fixture = fixture(vec![
            answer(&[0x12, 0, 0, 0, 36, 0], b"\0\0\x05\x02\x1f"),
            answer(&[0x12, 1, 0x80, 0, 252, 0], b"\0\x80\0\x01A"),
        ]);
        assert_eq!(fixture.read(&[0x12, 0, 0, 0, 255, 0]), b"\0\0\x05\x02\x1f");
        assert_eq!(fixture.read(&[0x12, 0, 0, 0, 2, 0]), b"\0\0");
        assert_eq!(fixture.read(&[0x12, 1, 0x80, 0, 255, 0]), b"\0\x80\0\x01A");
        assert_eq!(fixture.check(&[0x12, 1, 0x83, 0, 255, 0]), REFUSED);
    }

    #[test]
    fn block_descriptors_are_left_out_on_request() {
        let ten = [0, 18, 0, 0, 0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0x08, 2, 4, 0];
        let mut fixture = fixture(vec![
            answer(&[0x1a, 0, 0x3f, 0, 252, 0], &[15, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0x08, 2, 4, 0]),
            answer(&[0x5a, 0, 0x08, 0, 0, 0, 0, 0, 252, 0], &ten),
        ]);
        assert_eq!(fixture.read(&[0x1a, 8, 0x3f, 0, 252, 0]), [7, 0, 0, 0, 0x08, 2, 4, 0]);
        assert_eq!(
            fixture.read(&[0x5a, 8, 0x08, 0, 0, 0, 0, 0, 252, 0]),
            [0, 10, 0, 0, 0, 0, 0, 0, 0x08, 2, 4, 0]
        );
        assert!(fixture.unit.write_cache_enabled());
    }

    #[test]
    fn values_that_cannot_be_saved_are_refused_as_recorded() {
        let sense = Sense::illegal_request(AdditionalSense::SAVING_PARAMETERS_NOT_SUPPORTED);
        let mut fixture = fixture(vec![
            answer(&[0x1a, 0, 0x08, 0, 252, 0], &[7, 0, 0, 0, 0x08, 2, 0, 0]),
            check(&[0x1a, 0, 0xff, 0, 252, 0], sense),
        ]);
        assert_eq!(fixture.check(&[0x1a, 0, 0xc8, 0, 252, 0]), sense);
        assert_eq!(fixture.check(&[0x1a, 0, 0x0a, 0, 252, 0]), REFUSED);
        assert!(!fixture.unit.write_cache_enabled());
        let in_list = Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST);
        assert_eq!(
            fixture.run_list(&[0x15, 0x10, 0, 0, 8, 0], &[0, 0, 0, 0, 0x08, 2, 0, 0]),
            Plan::Check(in_list)
        );
    }

    #[test]
    fn commands_that_were_refused_or_are_not_listed_are_unknown() {
        let mut refused =
            fixture(vec![check(&[0x85; 16], UNKNOWN), check(&[0x4d, 0, 0x40, 0, 0, 0, 0, 0, 4, 0], UNKNOWN)]);
        assert_eq!(refused.check(&[0x85; 16]), UNKNOWN);
        assert_eq!(refused.check(&[0x4d, 0, 0x40, 0, 0, 0, 0, 0, 4, 0]), UNKNOWN);
        let list = [0, 0, 0, 16, 0x12, 0, 0, 0, 0, 0, 0, 6, 0x9e, 0, 0, 0x10, 0, 1, 0, 16];
        let mut listed = fixture(vec![answer(&[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0], &list)]);
        assert_eq!(listed.check(&[0x4d, 0, 0x40, 0, 0, 0, 0, 0, 4, 0]), UNKNOWN);
        assert_eq!(listed.read(&[0xa3, 0x0c, 1, 0x4d, 0, 0, 0, 0, 0, 16, 0, 0]), [0, 1, 0, 0]);
        let mut capacity = [0; 16];
        (capacity[0], capacity[1], capacity[13]) = (0x9e, 0x10, 32);
        assert_eq!(listed.read(&capacity).len(), 32);
    }

    #[test]
    fn capacity_has_recorded_flags_and_the_size_of_the_medium() {
        let mut capacity = [0; 16];
        (capacity[0], capacity[1], capacity[13]) = (0x9e, 0x10, 32);
        let recorded = [&[0xff; 12][..], &[0, 3, 0x40, 0]].concat();
        let mut fixture = fixture(vec![answer(&capacity, &recorded)]);
        assert_eq!(fixture.read(&capacity), [0, 0, 0, 0, 0, 0, 7, 255, 0, 0, 2, 0, 0, 3, 0x40, 0]);
    }
}
