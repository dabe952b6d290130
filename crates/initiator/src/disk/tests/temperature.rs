//! Reading the temperature, and its effect on units.

use super::super::*;
use super::fixture::Fixture;
use super::unit::{Unit, check};
use crate::{Failure, Outcome};
use alloc::vec;
use alloc::vec::Vec;
use units::{Duration, Extent};
use wire::scsi::Status;
use wire::scsi::sense::{AdditionalSense, Sense};

const LOG_SENSE: u8 = 0x4d;
const PASS_THROUGH: u8 = 0x85;

/// The temperature page: 35 degrees, 70 at most.
const PAGE: [u8; 16] = [0x8d, 0, 0, 12, 0, 0, 0x03, 2, 0, 35, 0, 1, 0x03, 2, 0, 70];

/// A disk that is identified and asked so.
fn asked(unit: Unit, ask: AskTemperature) -> Fixture {
    let mut fixture = Fixture::new(unit, DiskConfig::new(4, 64 << 10));
    fixture.disk.start_asking(fixture.now, ask);
    fixture.run();
    assert_eq!(fixture.identified.pop(), Some(Ok(())));
    fixture
}

/// Returns the temperature that such a disk has reported, in degrees, and its source.
fn temperature(fixture: &Fixture) -> Option<(u8, TemperatureSource)> {
    let temperature = fixture.disk.geometry().expect("it is identified").temperature?;
    Some((temperature.celsius, temperature.source))
}

/// SMART READ DATA with these attributes: id, and the lowest three bytes of the raw value.
fn smart(attributes: &[(u8, [u8; 3])]) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[0] = 0x10;
    for (at, (id, raw)) in attributes.iter().enumerate() {
        let entry = &mut block[2 + 12 * at..][..12];
        entry[0] = *id;
        entry[5..8].copy_from_slice(raw);
    }
    let sum = block.iter().fold(0u8, |sum: u8, byte| sum.wrapping_add(*byte));
    block[511] = sum.wrapping_neg();
    block
}

/// A disk behind a SCSI / ATA translation without the log page.
fn ata(smart: Vec<u8>) -> Unit {
    Unit { is_ata: true, smart: Some(smart), ..Unit::new() }
}

#[test]
fn the_log_page_has_it_and_nothing_else_is_asked() {
    let unit = Unit { log_page: Some(PAGE.to_vec()), ..ata(smart(&[(194, [50, 0, 0])])) };
    let fixture = asked(unit, AskTemperature::ByLogOrSmart);
    assert_eq!(temperature(&fixture), Some((35, TemperatureSource::LogPage)));
    assert_eq!(fixture.unit.count(PASS_THROUGH), 0);
    let cdb = fixture.unit.log.iter().find(|cdb| cdb[0] == LOG_SENSE).expect("it was asked");
    assert_eq!(cdb[..], [0x4d, 0, 0x4d, 0, 0, 0, 0, 0, 252, 0]);
}

#[test]
fn without_the_page_smart_has_it_where_a_translation_is_listed() {
    let fixture = asked(ata(smart(&[(9, [1, 2, 3]), (194, [41, 0, 20])])), AskTemperature::ByLogOrSmart);
    assert_eq!(temperature(&fixture), Some((41, TemperatureSource::Smart)));
    let cdb = fixture.unit.log.iter().find(|cdb| cdb[0] == PASS_THROUGH).expect("it was asked");
    assert_eq!(cdb[..], [0x85, 0x08, 0x0e, 0, 0xd0, 0, 1, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0]);
    let unlisted = Unit { is_ata: false, ..ata(smart(&[(194, [41, 0, 0])])) };
    let fixture = asked(unlisted, AskTemperature::ByLogOrSmart);
    assert_eq!((temperature(&fixture), fixture.unit.count(PASS_THROUGH)), (None, 0));
}

#[test]
fn attribute_194_counts_before_190_and_190_where_it_is_alone() {
    let both = asked(ata(smart(&[(190, [30, 0, 0]), (194, [40, 0, 0])])), AskTemperature::ByLogOrSmart);
    assert_eq!(temperature(&both), Some((40, TemperatureSource::Smart)));
    let alone = asked(ata(smart(&[(190, [30, 0, 0])])), AskTemperature::ByLogOrSmart);
    assert_eq!(temperature(&alone), Some((30, TemperatureSource::Smart)));
}

#[test]
fn a_page_that_says_unknown_or_nonsense_leads_on_to_smart() {
    let mut unknown = PAGE;
    unknown[9] = 0xff;
    let mut frozen = PAGE;
    frozen[9] = 0;
    for page in [&unknown[..], &frozen, &PAGE[..9], &[0; 16], &[0xff; 252], &[]] {
        let unit = Unit { log_page: Some(page.to_vec()), ..ata(smart(&[(194, [41, 0, 0])])) };
        let fixture = asked(unit, AskTemperature::ByLogOrSmart);
        assert_eq!(temperature(&fixture), Some((41, TemperatureSource::Smart)), "{page:02x?}");
    }
}

#[test]
fn smart_readings_that_cannot_be_are_none() {
    let mut broken = smart(&[(194, [41, 0, 0])]);
    broken[100] ^= 1;
    let impossible = smart(&[(194, [200, 0, 0])]);
    let without = smart(&[(9, [41, 0, 0])]);
    for readings in [broken, impossible, without, vec![0xff; 512], vec![0; 40], Vec::new()] {
        let fixture = asked(ata(readings.clone()), AskTemperature::ByLogOrSmart);
        assert_eq!(temperature(&fixture), None, "{readings:02x?}");
    }
}

#[test]
fn no_unit_is_asked_for_more_than_was_allowed() {
    let unit = || Unit { log_page: Some(PAGE.to_vec()), ..ata(smart(&[(194, [41, 0, 0])])) };
    let fixture = asked(unit(), AskTemperature::Not);
    assert_eq!((fixture.unit.count(LOG_SENSE), fixture.unit.count(PASS_THROUGH)), (0, 0));
    let by_log = Unit { log_page: None, ..unit() };
    let fixture = asked(by_log, AskTemperature::ByLog);
    assert_eq!((fixture.unit.count(LOG_SENSE), fixture.unit.count(PASS_THROUGH)), (1, 0));
    for little in [Unit { version: 0, ..unit() }, Unit { missing: vec![0x12], ..unit() }] {
        let mut fixture = Fixture::new(little, DiskConfig::new(4, 64 << 10));
        fixture.disk.start_asking(fixture.now, AskTemperature::ByLogOrSmart);
        fixture.run();
        assert_eq!((fixture.unit.count(LOG_SENSE), fixture.unit.count(PASS_THROUGH)), (0, 0));
    }
}

#[test]
fn a_unit_without_the_commands_is_identified_as_if_it_was_not_asked() {
    let lacking = || Unit { missing: vec![LOG_SENSE, PASS_THROUGH], is_ata: true, ..Unit::new() };
    let fixture = asked(lacking(), AskTemperature::ByLogOrSmart);
    let expected = asked(lacking(), AskTemperature::Not);
    assert_eq!(fixture.disk.geometry(), expected.disk.geometry());
    assert_eq!((fixture.unit.count(LOG_SENSE), fixture.unit.count(PASS_THROUGH)), (1, 1));
}

#[test]
fn a_unit_that_is_silent_busy_or_fails_is_asked_once_and_not_otherwise() {
    let not_ready = check(Sense::not_ready(AdditionalSense { asc: 0x04, ascq: 0x01 }));
    let stopped = check(Sense::not_ready(AdditionalSense { asc: 0x04, ascq: 0x02 }));
    let endings = [
        Outcome::Failed(Failure::TimedOut),
        Outcome::answered(Status::Busy, 0),
        Outcome::answered(Status::TaskAborted, 0),
        not_ready,
        stopped,
    ];
    for ending in endings {
        let mut unit = ata(smart(&[(194, [41, 0, 0])]));
        unit.then(LOG_SENSE, ending.clone());
        let mut fixture = asked(unit, AskTemperature::ByLogOrSmart);
        assert_eq!((temperature(&fixture), fixture.unit.count(LOG_SENSE)), (None, 1), "{ending:?}");
        assert_eq!((fixture.unit.count(PASS_THROUGH), fixture.unit.count(0x1b)), (0, 0), "{ending:?}");
        let read = Operation::Read { fua: false, dpo: false, may_be_short: false };
        assert_eq!(fixture.ask(read, Extent::new(0, 8)), Ok(Done { moved: 4096 }), "{ending:?}");
    }
}

#[test]
fn the_answer_times_out_after_three_seconds() {
    let mut fixture = Fixture::new(Unit::new(), DiskConfig::new(4, 64 << 10));
    fixture.disk.start_asking(fixture.now, AskTemperature::ByLog);
    let mut waits = Vec::new();
    while fixture.disk.geometry().is_none() {
        fixture.drain();
        let (command, memory) = fixture.in_flight.remove(0);
        waits.push((command.cdb.operation_code(), command.deadline.since(fixture.now)));
        fixture.complete(command, memory);
    }
    assert!(waits.contains(&(LOG_SENSE, Duration::from_secs(3))), "{waits:?}");
    assert!(waits.contains(&(0x00, Duration::from_secs(30))), "{waits:?}");
}

#[test]
fn unit_attentions_after_a_reset_are_reported_before_identification_ends() {
    let mut unit = Unit::new();
    unit.then(LOG_SENSE, Outcome::Failed(Failure::TimedOut));
    let reset = AdditionalSense::POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED;
    unit.then(0x5a, check(Sense::unit_attention(reset)));
    let mut fixture = asked(unit, AskTemperature::ByLog);
    let before = fixture.disk.counts();
    let read = Operation::Read { fua: false, dpo: false, may_be_short: false };
    assert_eq!(fixture.ask(read, Extent::new(0, 8)), Ok(Done { moved: 4096 }));
    let after = fixture.disk.counts();
    assert_eq!((after.sent_again, after.attentions), (before.sent_again, before.attentions));
    assert_eq!(before.attentions, 1);
}

#[test]
fn a_unit_attention_puts_the_question_off_and_an_identification_that_it_asks_for_does_not_ask() {
    let mut unit = Unit { log_page: Some(PAGE.to_vec()), ..Unit::new() };
    let reset = AdditionalSense::POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED;
    unit.then(LOG_SENSE, check(Sense::unit_attention(reset)));
    let mut fixture = asked(unit, AskTemperature::ByLog);
    assert_eq!(temperature(&fixture), Some((35, TemperatureSource::LogPage)));
    assert_eq!(fixture.unit.count(LOG_SENSE), 2);
    fixture.unit.then(0x28, check(Sense::unit_attention(AdditionalSense::MODE_PARAMETERS_CHANGED)));
    let read = Operation::Read { fua: false, dpo: false, may_be_short: false };
    assert_eq!(fixture.ask(read, Extent::new(0, 8)), Ok(Done { moved: 4096 }));
    assert_eq!((fixture.disk.counts().identify_runs, fixture.unit.count(LOG_SENSE)), (2, 2));
}

#[test]
fn a_device_that_goes_when_it_is_asked_is_gone() {
    let mut unit = Unit::new();
    unit.then(LOG_SENSE, Outcome::Failed(Failure::Disconnected));
    let mut fixture = Fixture::new(unit, DiskConfig::new(4, 64 << 10));
    fixture.disk.start_asking(fixture.now, AskTemperature::ByLog);
    fixture.run();
    let step = IdentifyStep::Temperature(TemperatureSource::LogPage);
    assert_eq!(fixture.identified, [Err(IdentifyError { step, error: Error::Gone })]);
}
