//! ATA commands through the CDB: literal bytes in, plans, blocks and sense data out.

use crate::command::{CommandOutput, Executor, Limits, Request};
use crate::lun::fixture::Fixture;
use crate::lun::{DataPhase, MediumPlan, Plan, Readiness, UnitEvent};
use crate::medium::{MediumDone, MediumOp};
use alloc::vec;
use alloc::vec::Vec;
use units::Extent;
use wire::scsi::Status;
use wire::scsi::sense::{Sense, SenseFormat};
use wire::uas::TaskAttribute;

const IDENTIFY: [u8; 12] = [0xa1, 0x08, 0x0e, 0, 1, 0, 0, 0, 0, 0xec, 0, 0];

/// SMART by (12) with CK_COND: the protocol byte, byte 2, FEATURES, COUNT, LBA 7:0.
const fn smart(protocol: u8, flags: u8, features: u8, count: u8, lba: u8) -> [u8; 12] {
    [0xa1, protocol, flags, features, count, lba, 0x4f, 0xc2, 0xa0, 0xb0, 0, 0]
}

/// A non-data command by (12) with CK_COND.
const fn non_data(command: u8, features: u8, count: u8) -> [u8; 12] {
    [0xa1, 0x06, 0x20, features, count, 0, 0, 0, 0xa0, command, 0, 0]
}

const SMART_READ_DATA: [u8; 12] = smart(0x08, 0x0e, 0xd0, 1, 0);
const SMART_STATUS: [u8; 12] = smart(0x06, 0x20, 0xda, 0, 0);
const CHECK_POWER_MODE: [u8; 12] = non_data(0xe5, 0, 0);

/// Sense data as it travels.
fn bytes_of(fixture: &Fixture, sense: &Sense) -> Vec<u8> {
    let mut bytes = [0; 64];
    let len = sense.encode(fixture.unit.sense_format(Some(sense)), &mut bytes).unwrap();
    bytes[..len].to_vec()
}

/// The ATA Status Return descriptor of a command that ends with CHECK CONDITION, and the four bytes before it that
/// matter: response code, sense key, additional sense.
#[track_caller]
fn registers_of(fixture: &mut Fixture, cdb: &[u8]) -> ([u8; 4], [u8; 14]) {
    let sense = fixture.check(cdb);
    let bytes = bytes_of(fixture, &sense);
    assert_eq!(bytes[4..8], [0, 0, 0, 14]);
    (bytes[..4].try_into().unwrap(), bytes[8..].try_into().unwrap())
}

const INFORMATION: [u8; 4] = [0x72, 0x01, 0x00, 0x1d];
const ABORTED: ([u8; 4], [u8; 14]) =
    ([0x72, 0x0b, 0x00, 0x00], [0x09, 12, 0, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x41]);

fn invalid_field(byte: u16, bit: Option<u8>) -> Sense {
    Sense::invalid_field_in_cdb(byte, bit)
}

const fn flush() -> Plan {
    Plan::Medium(MediumPlan::bare(MediumOp::Flush, Extent::new(0, 0)))
}

#[test]
fn identify_reports_the_names_and_the_size_of_the_unit() {
    let mut fixture = Fixture::with(|config| config.naa = 0x5123_4567_89ab_cdef);
    let words = fixture.read(&IDENTIFY);
    assert_eq!(words.len(), 512);
    assert_eq!(words[..2], [0x40, 0]);
    assert_eq!(words[20..40], *b"1032547698BA        ");
    assert_eq!(words[46..54], *b".0 1    ");
    assert_eq!(words[54..74], *b"aukstiv riutlad irev", "uaskit virtual drive");
    assert_eq!(words[120..124], [0x00, 0x08, 0, 0], "sectors, 28 bits");
    assert_eq!(words[200..208], [0x00, 0x08, 0, 0, 0, 0, 0, 0], "sectors, 48 bits");
    assert_eq!(words[216..224], [0x23, 0x51, 0x67, 0x45, 0xab, 0x89, 0xef, 0xcd], "world wide name");
    assert_eq!(words[434..436], [1, 0], "does not turn");
    assert_eq!(words[510], 0xa5);
    assert_eq!(words.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)), 0);
}

#[test]
fn a_name_that_is_not_naa_5_is_not_reported_as_one() {
    let mut fixture = Fixture::new();
    let words = fixture.read(&IDENTIFY);
    assert_eq!((words[175] & 0x01, &words[216..224]), (0, &[0; 8][..]));
}

#[test]
fn the_overall_health_is_in_the_registers() {
    let mut fixture = Fixture::new();
    let descriptor = [0x09, 12, 0, 0, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2, 0x40, 0x40];
    assert_eq!(registers_of(&mut fixture, &SMART_STATUS), (INFORMATION, descriptor));
    assert_eq!(fixture.run(&smart(0x06, 0x00, 0xda, 0, 0)), Plan::Good, "without CK_COND");
}

#[test]
fn registers_are_a_descriptor_whatever_d_sense_and_desc_say() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.unit.sense_format(None), SenseFormat::Fixed);
    let sense = fixture.check(&SMART_STATUS);
    fixture.unit.held_sense = Some(sense);
    let reported = fixture.read(&[0x03, 0, 0, 0, 96, 0]);
    assert_eq!((reported.len(), reported[0], reported[7], reported[8]), (22, 0x72, 14, 0x09));
}

#[test]
fn the_registers_of_the_last_command_can_be_asked_for() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.run(&smart(0x06, 0x00, 0xda, 0, 0)), Plan::Good);
    let response = [0xa1, 0x1e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let descriptor = [0x09, 12, 0, 0, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2, 0x40, 0x40];
    assert_eq!(registers_of(&mut fixture, &response), (INFORMATION, descriptor));
}

#[test]
fn smart_readings_are_what_was_counted() {
    let mut fixture = Fixture::new();
    let read_8_blocks = [0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0];
    assert!(matches!(fixture.run(&read_8_blocks), Plan::Medium(_)));
    let reported = fixture.read(&SMART_READ_DATA);
    assert_eq!(reported[..2], [16, 0]);
    assert_eq!(reported[2..14], [5, 0x13, 0, 100, 100, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(reported[14..26], [12, 0x12, 0, 100, 100, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(reported[26..38], [187, 0x12, 0, 100, 100, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(reported[38..50], [241, 0x12, 0, 100, 100, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(reported[50..62], [242, 0x12, 0, 100, 100, 8, 0, 0, 0, 0, 0, 0]);
    assert_eq!(reported[62..362], [0; 300]);
    assert_eq!(reported[362..375], [0, 0, 0, 0, 0, 0x11, 0, 0, 1, 0, 1, 1, 0]);
    assert_eq!(reported.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)), 0);
}

#[test]
fn thresholds_are_in_the_order_of_the_attributes() {
    let mut fixture = Fixture::new();
    let reported = fixture.read(&smart(0x08, 0x0e, 0xd1, 1, 0));
    let ids: Vec<_> =
        (0..6).map(|location| (reported[2 + 12 * location], reported[3 + 12 * location])).collect();
    assert_eq!(ids, [(5, 10), (12, 0), (187, 0), (241, 0), (242, 0), (0, 0)]);
}

#[test]
fn a_temperature_is_attribute_194_between_its_neighbours() {
    let mut fixture = Fixture::with(|config| config.temperature_c = Some(38));
    let reported = fixture.read(&SMART_READ_DATA);
    assert_eq!(reported[26..28], [187, 0x12]);
    assert_eq!(reported[38..50], [194, 0x02, 0, 62, 62, 38, 0, 0, 0, 0, 0, 0]);
    assert_eq!((reported[50], reported[62], &reported[74..362]), (241, 242, &[0; 288][..]));
    assert_eq!(reported.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)), 0);
    let reported = fixture.read(&smart(0x08, 0x0e, 0xd1, 1, 0));
    assert_eq!(
        [26, 38, 50, 62].map(|at| (reported[at], reported[at + 1])),
        [(187, 0), (194, 0), (241, 0), (242, 0)]
    );
}

#[test]
fn a_value_of_a_temperature_past_100_stays_one() {
    let mut fixture = Fixture::with(|config| config.temperature_c = Some(254));
    assert_eq!(fixture.read(&SMART_READ_DATA)[38..44], [194, 0x02, 0, 1, 1, 254]);
}

#[test]
fn smart_wants_its_signature_and_to_be_on() {
    let mut fixture = Fixture::new();
    let mut unsigned = SMART_STATUS;
    unsigned[6] = 0;
    assert_eq!(registers_of(&mut fixture, &unsigned), ABORTED);
    assert_eq!(fixture.run(&smart(0x06, 0, 0xd9, 0, 0)), Plan::Good, "disable");
    assert_eq!(registers_of(&mut fixture, &SMART_STATUS), ABORTED);
    assert_eq!(fixture.read(&IDENTIFY)[170] & 0x01, 0);
    assert_eq!(fixture.run(&smart(0x06, 0, 0xd8, 0, 0)), Plan::Good, "enable");
    assert_eq!(fixture.run(&SMART_READ_DATA), Plan::Reply);
}

#[test]
fn a_self_test_stands_in_the_logs_of_both_sides() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.run(&smart(0x06, 0, 0xd4, 0, 0x01)), Plan::Good, "short");
    let (_, captive) = registers_of(&mut fixture, &smart(0x06, 0x20, 0xd4, 0, 0x82));
    assert_eq!((captive[9], captive[11]), (0x4f, 0xc2));
    let log = fixture.read(&smart(0x08, 0x0e, 0xd5, 1, 0x06));
    assert_eq!(log[..12], [1, 0, 0x01, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0]);
    assert_eq!((log[26], log[508]), (0x82, 2));
    let page = fixture.read(&[0x4d, 0, 0x50, 0, 0, 0, 0, 0x10, 0, 0]);
    assert_eq!((page[8] >> 5, page[28] >> 5), (6, 1));
    assert_eq!(registers_of(&mut fixture, &smart(0x06, 0x20, 0xd4, 0, 0x04)), ABORTED, "selective");
}

#[test]
fn smart_logs_are_found_by_their_directory() {
    let mut fixture = Fixture::new();
    let directory = fixture.read(&smart(0x08, 0x0e, 0xd5, 1, 0x00)).to_vec();
    let pages: Vec<_> =
        (0..256).filter(|at| directory[2 * at] != 0).map(|at| (at, directory[2 * at])).collect();
    assert_eq!(pages, [(0, 1), (1, 1), (2, 1), (4, 2), (6, 1), (9, 1)]);
    for (address, pages) in pages {
        let log = fixture.read(&smart(0x08, 0x0e, 0xd5, pages, address as u8));
        assert_eq!(log.len(), 512 * usize::from(pages), "{address}");
    }
    assert_eq!(registers_of(&mut fixture, &smart(0x08, 0x0e, 0xd5, 2, 0x01)), ABORTED, "too many pages");
    assert_eq!(registers_of(&mut fixture, &smart(0x08, 0x0e, 0xd5, 1, 0x0a)), ABORTED, "no such log");
}

#[test]
fn general_purpose_logs_report_no_errors_and_the_same_self_tests() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.run(&smart(0x06, 0, 0xd4, 0, 0x01)), Plan::Good, "short");
    let read_log = |address| [0x85, 0x09, 0x0e, 0, 0, 0, 1, 0, address, 0, 0, 0, 0, 0xa0, 0x2f, 0];
    let directory = fixture.read(&read_log(0x00)).to_vec();
    let pages: Vec<_> =
        (1..256).filter(|at| directory[2 * at] != 0).map(|at| (at, directory[2 * at])).collect();
    assert_eq!(pages, [(3, 1), (4, 2), (7, 1)]);
    let errors = fixture.read(&read_log(0x03));
    assert_eq!((errors.len(), errors[0], &errors[1..511]), (512, 1, &[0; 510][..]));
    let tests = fixture.read(&read_log(0x07));
    assert_eq!(tests[..15], [1, 0, 1, 0, 0x01, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
}

#[test]
fn device_statistics_are_read_page_by_page() {
    let mut fixture = Fixture::new();
    assert!(matches!(fixture.run(&[0x2a, 0, 0, 0, 0, 0, 0, 0, 4, 0]), Plan::Medium(_)));
    let mut read_log_ext = [0x85, 0x09, 0x0e, 0, 0, 0, 1, 0, 0x04, 0, 1, 0, 0, 0xa0, 0x2f, 0];
    let general = fixture.read(&read_log_ext);
    assert_eq!(general[..3], [1, 0, 1]);
    assert_eq!(general[8..24], [1, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(general[24..40], [4, 0, 0, 0, 0, 0, 0, 0xc0, 1, 0, 0, 0, 0, 0, 0, 0xc0]);
    read_log_ext[10] = 2;
    let (condition, descriptor) = registers_of(&mut fixture, &read_log_ext);
    assert_eq!((condition, descriptor[2], descriptor[3]), ([0x72, 0x0b, 0, 0], 1, 0x04), "no such page");
}

#[test]
fn power_modes_are_reported_until_a_command_needs_the_medium() {
    let mut fixture = Fixture::new();
    let mode = |fixture: &mut Fixture| registers_of(fixture, &CHECK_POWER_MODE).1[5];
    assert_eq!(mode(&mut fixture), 0xff);
    assert_eq!(fixture.run(&non_data(0xe0, 0, 0)), flush(), "standby");
    let after = fixture.run_medium(&non_data(0xe0, 0, 0), MediumDone::Done);
    assert!(matches!(after, Plan::Check(sense) if sense.ata_return.is_some()));
    assert_eq!(mode(&mut fixture), 0x00);
    assert_eq!(fixture.run(&[0x00, 0, 0, 0, 0, 0]), Plan::Good);
    assert_eq!(mode(&mut fixture), 0x00, "TEST UNIT READY leaves it asleep");
    assert!(matches!(fixture.run(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]), Plan::Medium(_)));
    assert_eq!(mode(&mut fixture), 0xff);
    registers_of(&mut fixture, &non_data(0xe1, 0, 0));
    assert_eq!(mode(&mut fixture), 0x80, "idle");
    fixture.unit.readiness = Readiness::Stopped;
    assert_eq!(mode(&mut fixture), 0x00);
}

#[test]
fn the_write_cache_is_the_one_of_the_mode_page() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.read(&IDENTIFY)[170] & 0x20, 0x20);
    assert_eq!(fixture.run(&non_data(0xef, 0x82, 0)), flush());
    assert_eq!(fixture.read(&IDENTIFY)[170] & 0x20, 0x00);
    assert!(!fixture.unit.write_cache_enabled());
    registers_of(&mut fixture, &non_data(0xef, 0x02, 0));
    assert!(fixture.unit.write_cache_enabled());
    assert_eq!(registers_of(&mut fixture, &non_data(0xef, 0x05, 0x80)), ABORTED, "no APM");
}

#[test]
fn the_last_address_is_reported_in_28_and_48_bits() {
    let mut fixture = Fixture::new();
    let (_, short) = registers_of(&mut fixture, &non_data(0xf8, 0, 0));
    assert_eq!(short[6..13], [0, 0xff, 0, 0x07, 0, 0, 0x40]);
    let ext = [0x85, 0x07, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x27, 0];
    let (_, long) = registers_of(&mut fixture, &ext);
    assert_eq!((long[2], long[7], long[9]), (1, 0xff, 0x07));
}

#[test]
fn the_diagnosis_ends_with_the_signature() {
    let mut fixture = Fixture::new();
    let diagnose = [0xa1, 0x10, 0x20, 0, 0, 0, 0, 0, 0, 0x90, 0, 0];
    let (condition, descriptor) = registers_of(&mut fixture, &diagnose);
    assert_eq!(condition, INFORMATION);
    assert_eq!(descriptor, [0x09, 12, 0, 0x01, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0x40]);
}

#[test]
fn reads_and_writes_move_blocks() {
    let mut fixture = Fixture::new();
    let read_dma_ext = [0x85, 0x0d, 0x0e, 0, 0, 0, 8, 0, 16, 0, 0, 0, 0, 0x40, 0x25, 0];
    let (extent, bytes) = (Extent::new(16, 8), 4096);
    let read = MediumPlan { op: MediumOp::Read, extent, data: DataPhase::In, bytes };
    assert_eq!(fixture.run(&read_dma_ext), Plan::Medium(read));
    assert_eq!(fixture.run_medium(&read_dma_ext, MediumDone::Done), Plan::Good);
    let write_dma = [0xa1, 0x0c, 0x06, 0, 8, 16, 0, 0, 0x40, 0xca, 0, 0];
    let write = MediumPlan { op: MediumOp::Write { fua: false }, extent, data: DataPhase::Out, bytes };
    assert_eq!(fixture.run(&write_dma), Plan::Medium(write));
    let write_fua = [0x85, 0x0d, 0x06, 0, 0, 0, 8, 0, 16, 0, 0, 0, 0, 0x40, 0x3d, 0];
    let write = MediumPlan { op: MediumOp::Write { fua: true }, ..write };
    assert_eq!(fixture.run(&write_fua), Plan::Medium(write));
    let all_256 = [0xa1, 0x08, 0x0e, 0, 0, 0, 0, 0, 0x40, 0x20, 0, 0];
    let read = MediumPlan { extent: Extent::new(0, 256), bytes: 131_072, ..read };
    assert_eq!(fixture.run(&all_256), Plan::Medium(read));
}

#[test]
fn a_sector_that_does_not_exist_is_not_found() {
    let mut fixture = Fixture::new();
    let beyond = [0x85, 0x0d, 0x0e, 0, 0, 0, 8, 0, 0xfc, 0, 0x07, 0, 0, 0x40, 0x25, 0];
    let (condition, descriptor) = registers_of(&mut fixture, &beyond);
    assert_eq!(condition, [0x72, 0x05, 0x21, 0x00]);
    assert_eq!(descriptor, [0x09, 12, 1, 0x10, 0, 0, 0, 0x00, 0, 0x08, 0, 0, 0x40, 0x41]);
}

#[test]
fn a_command_for_the_medium_needs_one_that_may_be_written() {
    let mut fixture = Fixture::with(|config| config.read_only = true);
    let write = [0xa1, 0x0c, 0x06, 0, 8, 16, 0, 0, 0x40, 0xca, 0, 0];
    assert_eq!(
        bytes_of(&Fixture::new(), &fixture.check(&write))[..14],
        [0x70, 0, 0x07, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x27, 0x00]
    );
    fixture.unit.readiness = Readiness::Stopped;
    let sense = fixture.check(&[0xa1, 0x0c, 0x0e, 0, 8, 0, 0, 0, 0x40, 0xc8, 0, 0]);
    assert_eq!(bytes_of(&Fixture::new(), &sense)[2], 0x02);
    assert_eq!(fixture.run(&IDENTIFY), Plan::Reply, "asking who it is needs none");
}

#[test]
fn trim_unmaps_each_range_once_all_are_known_to_exist() {
    let mut fixture = Fixture::new();
    let trim = [0x85, 0x0d, 0x06, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0x06, 0];
    let mut ranges = vec![0; 512];
    ranges[..8].copy_from_slice(&[8, 0, 0, 0, 0, 0, 4, 0]);
    ranges[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 0, 1, 0]);
    let unmap = |lba, blocks| Plan::Medium(MediumPlan::bare(MediumOp::Unmap, Extent::new(lba, blocks)));
    assert_eq!(fixture.run_list(&trim, &ranges), unmap(8, 4));
    assert_eq!(fixture.run_medium(&trim, MediumDone::Done), unmap(256, 1));
    assert_eq!(fixture.run_medium(&trim, MediumDone::Done), Plan::Good);
    ranges[24..32].copy_from_slice(&[0xff, 0x07, 0, 0, 0, 0, 2, 0]);
    let Plan::Check(sense) = fixture.run_list(&trim, &ranges) else { panic!("one sector too many") };
    assert_eq!(bytes_of(&fixture, &sense)[..4], [0x72, 0x05, 0x21, 0x00]);
}

#[test]
fn what_the_device_does_not_know_is_aborted() {
    let mut fixture = Fixture::new();
    for command in [0x00, 0x08, 0xa1, 0xb4, 0xf5] {
        let (protocol, flags) = if command == 0xa1 { (0x08, 0x0e) } else { (0x06, 0x20) };
        let cdb = [0xa1, protocol, flags, 0, 1, 0, 0, 0, 0xa0, command, 0, 0];
        assert_eq!(registers_of(&mut fixture, &cdb), ABORTED, "{command:#04x}");
    }
}

#[test]
fn a_transfer_that_the_command_does_not_make_is_an_invalid_field() {
    let mut fixture = Fixture::new();
    let mut with = |at: usize, byte: u8| {
        let mut cdb = IDENTIFY;
        cdb[at] = byte;
        fixture.check(&cdb)
    };
    assert_eq!(with(1, 0x00), invalid_field(1, Some(4)), "hard reset");
    assert_eq!(with(1, 0x18), invalid_field(1, Some(4)), "NCQ");
    assert_eq!(with(1, 0x06), invalid_field(1, Some(4)), "non-data");
    assert_eq!(with(1, 0x0c), invalid_field(1, Some(4)), "DMA");
    assert_eq!(with(2, 0x06), invalid_field(2, Some(3)), "to the device");
    assert_eq!(with(2, 0x08), invalid_field(2, None), "no length");
    assert_eq!(with(2, 0x0a), invalid_field(4, None), "one byte");
    assert_eq!(with(2, 0x0d), invalid_field(3, None), "as many as FEATURES says");
    assert_eq!(with(4, 0), invalid_field(4, None), "no blocks");
    let data_for_flush = [0xa1, 0x06, 0x0e, 0, 1, 0, 0, 0, 0, 0xe7, 0, 0];
    assert_eq!(fixture.check(&data_for_flush), invalid_field(4, None));
    let half = [0x85, 0x0d, 0x0d, 0, 4, 0, 8, 0, 16, 0, 0, 0, 0, 0x40, 0x25, 0];
    assert_eq!(fixture.check(&half), invalid_field(3, None), "four blocks of eight");
}

#[test]
fn the_length_may_be_the_transports() {
    let mut cdb = IDENTIFY;
    cdb[2] = 0x0b;
    assert_eq!(Fixture::new().read(&cdb).len(), 512);
}

#[test]
fn blocks_are_512_bytes_or_logical_sectors() {
    let mut fixture = Fixture::with(|config| config.block_size = units::BlockSize::B4096);
    let mut read = [0x85, 0x0d, 0x1e, 0, 0, 0, 2, 0, 16, 0, 0, 0, 0, 0x40, 0x25, 0];
    let plan =
        MediumPlan { op: MediumOp::Read, extent: Extent::new(16, 2), data: DataPhase::In, bytes: 8192 };
    assert_eq!(fixture.run(&read), Plan::Medium(plan));
    read[2] = 0x0e;
    assert_eq!(fixture.check(&read), invalid_field(5, None));
}

#[test]
fn power_cycles_are_counted_and_settings_return() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.run(&smart(0x06, 0, 0xd9, 0, 0)), Plan::Good);
    fixture.unit.handle_event(UnitEvent::BusReset);
    fixture.unit.attentions = Default::default();
    assert_eq!(registers_of(&mut fixture, &SMART_STATUS), ABORTED, "a reset leaves SMART off");
    fixture.unit.handle_event(UnitEvent::PowerOn);
    fixture.unit.attentions = Default::default();
    assert_eq!(fixture.read(&SMART_READ_DATA)[14..20], [12, 0x12, 0, 100, 100, 2]);
}

/// The outputs to the transport for one command that it accepts.
fn outputs_of(cdb: &[u8]) -> Vec<CommandOutput> {
    let limits = Limits { commands: 4, buffer_bytes: 1 << 20, segment_bytes: 65536 };
    let mut executor = Executor::new(vec![Fixture::new().unit], limits);
    let request = Request { lun: [0; 8], attribute: TaskAttribute::Simple, cdb, asks: true };
    executor.submit(request).unwrap();
    let mut outputs = Vec::new();
    while let Some(output) = executor.poll_output() {
        match &output {
            CommandOutput::Begin { id, .. } => executor.proceed(*id),
            CommandOutput::DataIn { id, .. } => executor.handle_data_in(*id),
            _ => {}
        }
        outputs.push(output);
    }
    outputs
}

#[test]
fn data_comes_before_the_check_condition_that_reports_the_registers() {
    let mut cdb = IDENTIFY;
    cdb[2] = 0x2e;
    match &outputs_of(&cdb)[..] {
        [
            CommandOutput::Begin { intent, .. },
            CommandOutput::DataIn { range, last: true, .. },
            CommandOutput::Completed { outcome, .. },
        ] => {
            assert_eq!((intent.bytes, range.len), (512, 512));
            assert_eq!((outcome.status, outcome.format), (Status::CheckCondition, SenseFormat::Descriptor));
            assert!(outcome.sense.as_ref().is_some_and(|sense| sense.ata_return.is_some()));
        }
        others => panic!("{others:?}"),
    }
}

#[test]
fn all_that_smartctl_asks_of_a_drive_succeeds() {
    let mut fixture = Fixture::new();
    let log_directory = [0x85, 0x09, 0x0e, 0, 0, 0, 1, 0, 0x00, 0, 0, 0, 0, 0xa0, 0x2f, 0];
    let replies: [&[u8]; 8] = [
        &IDENTIFY,
        &SMART_READ_DATA,
        &smart(0x08, 0x0e, 0xd1, 1, 0),
        &smart(0x08, 0x0e, 0xd5, 1, 0x00),
        &smart(0x08, 0x0e, 0xd5, 1, 0x01),
        &smart(0x08, 0x0e, 0xd5, 1, 0x06),
        &log_directory,
        &smart(0x08, 0x0e, 0xd5, 2, 0x04),
    ];
    for cdb in replies {
        assert_eq!(fixture.run(cdb), Plan::Reply, "{cdb:02x?}");
    }
    for cdb in [&SMART_STATUS, &CHECK_POWER_MODE] {
        assert_eq!(registers_of(&mut fixture, cdb).0, INFORMATION, "{cdb:02x?}");
    }
}
