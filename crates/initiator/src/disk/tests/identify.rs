//! Identification of units of many kinds.

use super::super::*;
use super::fixture::Fixture;
use super::unit::{Unit, check, refused};
use crate::Failure;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use units::{BlockCount, BlockSize, Duration, Extent};
use wire::scsi::Status;
use wire::scsi::capacity::Capacity10;
use wire::scsi::lun::{Lun, LunField};
use wire::scsi::sense::{AdditionalSense, Sense};
use wire::scsi::vpd::{ProvisioningType, VpdPageCode};
use wire::uas::ResponseCode;

fn fixture(unit: Unit) -> Fixture {
    Fixture::new(unit, DiskConfig::new(4, 1 << 20))
}

/// Identifies a unit and returns the geometry.
fn geometry(unit: Unit) -> Geometry {
    let mut fixture = fixture(unit);
    fixture.identify().unwrap();
    fixture.disk.geometry().unwrap().clone()
}

fn not_ready(ascq: u8) -> crate::Outcome {
    check(Sense::not_ready(AdditionalSense { asc: 0x04, ascq }))
}

#[test]
fn a_modern_unit_is_asked_in_this_order() {
    let mut fixture = fixture(Unit::new());
    fixture.identify().unwrap();
    let asked: Vec<_> = fixture.unit.log.iter().map(|cdb| (cdb[0], cdb[2])).collect();
    let pages = [(0x12, 0x00), (0x12, 0x80), (0x12, 0x83), (0x12, 0xb0), (0x12, 0xb2)];
    let order = [&[(0x12, 0), (0x00, 0), (0x25, 0), (0x9e, 0)][..], &pages, &[(0x5a, 0x08)]].concat();
    assert_eq!(asked, order);
    assert_eq!(fixture.unit.log[0], [0x12, 0, 0, 0, 36, 0]);
}

#[test]
fn what_a_modern_unit_reports_is_known() {
    let unit = Unit { exponent: 3, write_protected: true, ..Unit::new() };
    let found = geometry(unit);
    assert_eq!((found.capacity, found.block_size), (BlockCount(1024), BlockSize::B512));
    assert_eq!((found.physical_blocks(), found.bytes()), (8, 512 << 10));
    assert_eq!(found.to_string(), "ACME Disk of tests 1.0, 1024 blocks of 512 bytes");
    assert_eq!(found.identity.serial.as_deref(), Some("UK0042"));
    assert_eq!(found.identity.name.as_deref(), Some("NAA 3a00000000000001"));
    assert_eq!((found.unmap, found.unmapped_reads_zeroes), (Some(UnmapMethod::Unmap), true));
    assert_eq!(found.provisioning, Some(ProvisioningType::Thin));
    assert!(found.write_protected && found.fua);
    assert_eq!((found.write_cache, found.doubts), (Some(true), vec![]));
}

#[test]
fn a_unit_that_says_nothing_to_what_it_does_not_know_is_identified_all_the_same() {
    let page = |code| Doubt::Page(code);
    let cases = [
        // VPD page 00h: asked twice, and no other is asked for.
        (0x12, 0x00, vec![page(VpdPageCode::SupportedPages)], vec![(0x12, 0x00), (0x12, 0x00), (0x5a, 0x08)]),
        (
            0x12,
            0x83,
            vec![page(VpdPageCode::DeviceIdentification)],
            vec![(0x12, 0x00), (0x12, 0x80), (0x12, 0x83), (0x12, 0x83), (0x5a, 0x08)],
        ),
    ];
    for (opcode, code, doubts, asked) in cases {
        let mut fixture = fixture(Unit::new());
        // The first INQUIRY has no page.
        fixture.disk.start(fixture.now);
        fixture.drain();
        let (inquiry, memory) = fixture.in_flight.remove(0);
        fixture.complete(inquiry, memory);
        fixture.unit.silent_to = vec![(opcode, code)];
        fixture.run();
        let geometry = fixture.disk.geometry().expect("it is identified");
        assert_eq!((geometry.capacity, &geometry.doubts), (BlockCount(1024), &doubts));
        let pages: Vec<_> = fixture.unit.log[1..].iter().map(|cdb| (cdb[0], cdb[2])).collect();
        assert_eq!(pages[3..], asked);
    }
}

#[test]
fn what_is_not_needed_has_little_time_and_the_first_that_is_silent_is_asked_for_twice() {
    let silent_to = vec![(0x9e, 0x00), (0x5a, 0x08), (0x1a, 0x3f)];
    let mut fixture = fixture(Unit { silent_to, ..Unit::new() });
    fixture.disk.start(fixture.now);
    let mut deadlines = Vec::new();
    loop {
        fixture.drain();
        let Some((command, memory)) = fixture.in_flight.pop() else { break };
        deadlines.push((command.cdb.operation_code(), command.deadline.since(fixture.now)));
        fixture.complete(command, memory);
    }
    let geometry = fixture.disk.geometry().expect("it is identified");
    assert!(geometry.doubts.contains(&Doubt::NoModePages), "{:?}", geometry.doubts);
    let of = |code: u8| deadlines.iter().filter(|one| one.0 == code).map(|one| one.1).collect::<Vec<_>>();
    let (short, usual) = (Duration::from_secs(5), Duration::from_secs(30));
    // Once a unit was silent twice, it is one that is silent to what it does not know.
    assert_eq!((of(0x9e), of(0x5a), of(0x1a)), (vec![short; 2], vec![short], vec![short]));
    assert_eq!((of(0x00), of(0x25)), (vec![usual], vec![usual]));
}

/// Identifies a unit that loses the statuses of some of the commands that need not be answered,
/// counted from 0; what it was asked then, how many were lost, and the geometry.
fn identified_with_lost(is_lost: impl Fn(usize) -> bool) -> (Vec<Vec<u8>>, usize, Geometry) {
    let config = DiskConfig { report_luns: true, ..DiskConfig::new(4, 1 << 20) };
    let mut fixture = Fixture::new(Unit::new(), config);
    fixture.disk.start(fixture.now);
    let (mut asked, mut lost) = (Vec::new(), 0);
    loop {
        fixture.drain();
        let Some((command, memory)) = fixture.in_flight.pop() else { break };
        let cdb = command.cdb.as_bytes().to_vec();
        let is_optional = matches!(cdb[..2], [0xa0 | 0x9e | 0x5a | 0x1a, _] | [0x12, 0x01]);
        if is_optional && is_lost(asked.len()) {
            lost += 1;
            let outcome = crate::Outcome::Failed(Failure::TimedOut);
            fixture.disk.handle_outcome(fixture.now, command.id, &outcome, &[]);
        } else {
            fixture.complete(command, memory);
        }
        asked.extend(is_optional.then_some(cdb));
    }
    assert_eq!(fixture.identified, [Ok(())]);
    let geometry = fixture.disk.geometry().expect("it is identified").clone();
    (asked, lost, geometry)
}

#[test]
fn one_status_that_is_lost_or_two_leave_nothing_unknown() {
    let (all, _, whole) = identified_with_lost(|_| false);
    assert_eq!(all.len(), 8, "{all:x?}");
    assert!(whole.doubts.is_empty() && whole.write_cache.is_some() && whole.unmap.is_some());
    for first in 0..all.len() {
        let (asked, lost, found) = identified_with_lost(|at| at == first);
        assert_eq!((asked.len(), lost, &found), (all.len() + 1, 1, &whole), "{first}");
        assert_eq!(asked[first], asked[first + 1]);
        for second in first + 2..=all.len() {
            let (asked, lost, found) = identified_with_lost(|at| at == first || at == second);
            assert_eq!((asked.len(), lost, &found), (all.len() + 2, 2, &whole), "{first}, {second}");
        }
    }
}

#[test]
fn a_third_status_that_is_lost_is_not_asked_for_again() {
    // REPORT LUNS, READ CAPACITY(16), and page 00h, after which no page is asked for.
    let (asked, lost, found) = identified_with_lost(|at| [0, 2, 4].contains(&at));
    let opcodes: Vec<u8> = asked.iter().map(|cdb| cdb[0]).collect();
    assert_eq!((opcodes.as_slice(), lost), (&[0xa0, 0xa0, 0x9e, 0x9e, 0x12, 0x5a][..], 3));
    assert!(found.doubts.contains(&Doubt::Page(VpdPageCode::SupportedPages)), "{:?}", found.doubts);
}

#[test]
fn whatever_is_lost_identification_waits_six_times_at_most() {
    // Every choice of lost statuses among the first commands that need not be answered; there are
    // 11 at most.
    let mut longest = 0;
    for lost in 0..1_u32 << 11 {
        let (asked, waits, found) = identified_with_lost(|at| lost & 1 << at != 0);
        assert!(asked.len() <= 11 && waits <= 6, "{lost:b}: {asked:x?}");
        for cdb in &asked {
            let times = asked.iter().filter(|other| *other == cdb).count();
            assert!(times <= 2, "{lost:b}: {cdb:x?} {times} times");
        }
        assert_eq!(found.capacity, BlockCount(1024), "{lost:b}");
        longest = longest.max(waits);
    }
    assert_eq!(longest, 6);
}

#[test]
fn a_unit_that_was_silent_twice_is_asked_once_in_later_identifications() {
    let mut fixture = fixture(Unit { silent_to: vec![(0x9e, 0x00)], ..Unit::new() });
    let times = [(); 3].map(|()| {
        fixture.identify().unwrap();
        core::mem::take(&mut fixture.unit.log).iter().filter(|cdb| cdb[0] == 0x9e).count()
    });
    assert_eq!(times, [2, 1, 1]);
    // One that lost two by chance has all asked, if once each.
    fixture.unit.silent_to.clear();
    fixture.identify().unwrap();
    assert_eq!((fixture.unit.log.len(), fixture.disk.geometry().unwrap().doubts.len()), (10, 0));
}

#[test]
fn a_start_that_is_silent_is_not_sent_again() {
    let mut unit = Unit::new();
    unit.then(0x00, not_ready(0x02));
    unit.then(0x1b, crate::Outcome::Failed(Failure::TimedOut));
    let mut fixture = fixture(unit);
    fixture.identify().unwrap();
    assert_eq!((fixture.unit.count(0x1b), fixture.unit.count(0x00)), (1, 2));
}

#[test]
fn a_unit_that_claims_no_standard_is_asked_for_little() {
    let mut fixture = fixture(Unit { version: 0, ..Unit::new() });
    fixture.identify().unwrap();
    let asked: Vec<_> = fixture.unit.log.iter().map(|cdb| cdb[0]).collect();
    assert_eq!(asked, [0x12, 0x00, 0x25, 0x1a]);
    let found = fixture.disk.geometry().unwrap();
    assert_eq!((found.unmap, found.write_cache, found.fua), (None, Some(true), true));
}

#[test]
fn a_unit_without_mode_pages_leaves_them_unknown() {
    let found = geometry(Unit { missing: vec![0x5a, 0x1a], ..Unit::new() });
    assert_eq!((found.fua, found.write_protected, found.write_cache), (false, false, None));
    assert_eq!(found.doubts, [Doubt::NoModePages]);
}

#[test]
fn more_than_32_bits_of_blocks_need_the_longer_command() {
    let large = || Unit { last_lba: 0x1_2345_6789, version: 0, ..Unit::new() };
    assert_eq!(geometry(large()).capacity, BlockCount(0x1_2345_678a));
    let result = fixture(Unit { missing: vec![0x9e], ..large() }).identify();
    assert_eq!(result, Err(IdentifyError { step: IdentifyStep::ReadCapacity16, error: Error::Unsupported }));
}

#[test]
fn capacities_that_disagree_are_reported_and_the_short_one_counts() {
    let mut unit = Unit::new();
    unit.last_lba = 2047;
    let mut fixture = fixture(unit);
    fixture.disk.start(fixture.now);
    // The unit grows between the two commands, and says nothing.
    for _ in 0..3 {
        fixture.drain();
        let (command, memory) = fixture.in_flight.remove(0);
        fixture.complete(command, memory);
    }
    fixture.unit.last_lba = 4095;
    fixture.run();
    let found = fixture.disk.geometry().unwrap();
    let ten = Capacity10 { last_lba: 2047, block_length: 512 };
    assert_eq!(found.capacity, BlockCount(2048));
    assert!(found.doubts.contains(&Doubt::Capacities { ten, last_lba: 4095 }));
}

#[test]
fn unmapping_that_is_offered_but_not_enabled_is_reported() {
    let found = geometry(Unit { provisioned: false, ..Unit::new() });
    assert_eq!((found.unmap, found.doubts), (None, vec![Doubt::UnmapNotEnabled]));
}

#[test]
fn a_page_that_cannot_be_read_is_a_doubt() {
    let mut fixture = fixture(Unit::new());
    fixture.disk.start(fixture.now);
    while fixture.disk.geometry().is_none() {
        fixture.drain();
        let (command, memory) = fixture.in_flight.remove(0);
        if command.cdb.as_bytes()[..3] == [0x12, 0x01, 0xb0] {
            fixture.unit.then(0x12, refused(AdditionalSense::INVALID_FIELD_IN_CDB));
        }
        fixture.complete(command, memory);
    }
    assert_eq!(
        fixture.disk.geometry().unwrap().doubts,
        [Doubt::Page(VpdPageCode::BlockLimits), Doubt::NoWayToUnmap]
    );
}

#[test]
fn unit_0_is_asked_first_which_units_there_are_if_that_is_wanted() {
    let lun = LunField::from(Lun::Unit(5));
    let config = DiskConfig { lun, report_luns: true, ..DiskConfig::new(1, 4096) };
    let mut fixture = Fixture::new(Unit::new(), config);
    fixture.disk.start(fixture.now);
    fixture.drain();
    let asked = fixture.in_flight[0].0;
    assert_eq!((asked.lun, asked.cdb.operation_code()), (LunField([0; 8]), 0xa0));
    fixture.identify().unwrap();
    assert_eq!(fixture.disk.luns(), [LunField([0; 8])]);
    // Everything else is for the unit itself.
    fixture.submit(1, Operation::Flush, Extent::default());
    fixture.drain();
    assert_eq!(fixture.in_flight[0].0.lun, LunField([0, 5, 0, 0, 0, 0, 0, 0]));
}

#[test]
fn a_unit_that_is_not_there_is_reported_with_those_that_are() {
    let config = DiskConfig { report_luns: true, ..DiskConfig::new(1, 4096) };
    let mut units: Vec<Unit> =
        [0x7f, 0x20].map(|peripheral| Unit { peripheral, ..Unit::new() }).into_iter().collect();
    let mut refusing = Unit::new();
    refusing.then(0x12, refused(AdditionalSense::LOGICAL_UNIT_NOT_SUPPORTED));
    units.push(refusing);
    for unit in units {
        let mut fixture = Fixture::new(unit, config);
        let error = fixture.identify().unwrap_err();
        assert!(error.is_no_unit(), "{error}");
        assert_eq!(fixture.disk.luns(), [LunField([0; 8])]);
    }
    let no_disk = IdentifyError { step: IdentifyStep::Inquiry, error: Error::NotADisk(0x05) };
    assert!(!no_disk.is_no_unit());
}

#[test]
fn a_device_that_does_not_report_its_units_is_identified() {
    for outcome in [refused(AdditionalSense::INVALID_COMMAND_OPERATION_CODE), not_ready(0x01)] {
        let mut unit = Unit::new();
        unit.then(0xa0, outcome);
        let mut fixture = Fixture::new(unit, DiskConfig { report_luns: true, ..DiskConfig::new(1, 4096) });
        fixture.identify().unwrap();
        assert_eq!((fixture.unit.count(0xa0), fixture.disk.luns()), (1, &[][..]));
    }
}

#[test]
fn the_unit_attention_after_power_on_is_reported_and_skipped() {
    let mut unit = Unit::new();
    let power_on = AdditionalSense::POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED;
    unit.then(0x00, check(Sense::unit_attention(power_on)));
    let mut fixture = fixture(unit);
    fixture.identify().unwrap();
    assert_eq!((fixture.unit.count(0x00), fixture.disk.counts().attentions), (2, 1));
}

#[test]
fn a_disk_that_spins_up_is_waited_for() {
    let mut unit = Unit::new();
    for _ in 0..8 {
        unit.then(0x00, not_ready(0x01));
    }
    let mut fixture = fixture(unit);
    fixture.identify().unwrap();
    assert_eq!(fixture.now.since(Instant::ZERO), Duration::from_secs(2));
}

#[test]
fn a_disk_that_never_gets_ready_is_given_up_in_time() {
    let mut unit = Unit::new();
    for _ in 0..1000 {
        unit.then(0x00, not_ready(0x01));
    }
    let mut fixture = fixture(unit);
    let error = Error::NotReady(AdditionalSense::NOT_READY_BECOMING_READY);
    assert_eq!(fixture.identify(), Err(IdentifyError { step: IdentifyStep::TestUnitReady, error }));
    assert_eq!(fixture.now.since(Instant::ZERO), Duration::from_secs(30));
}

#[test]
fn a_stopped_disk_is_started_once() {
    let mut unit = Unit::new();
    unit.then(0x00, not_ready(0x02));
    let mut fixture = fixture(unit);
    fixture.identify().unwrap();
    assert_eq!(fixture.unit.log[2], [0x1b, 0, 0, 0, 0x01, 0]);
    assert_eq!(fixture.unit.count(0x1b), 1);
}

#[test]
fn a_drive_without_a_medium_is_reported_and_can_be_identified_again() {
    let mut unit = Unit::new();
    unit.then(0x00, check(Sense::not_ready(AdditionalSense::MEDIUM_NOT_PRESENT)));
    let mut fixture = fixture(unit);
    assert_eq!(
        fixture.identify(),
        Err(IdentifyError { step: IdentifyStep::TestUnitReady, error: Error::NoMedium })
    );
    let request = Request { id: RequestId(1), operation: Operation::Flush, extent: Extent::default() };
    assert_eq!(fixture.disk.submit(fixture.now, request), Err(RequestRefusal::NotIdentified));
    assert_eq!(fixture.identify(), Ok(()));
}

#[test]
fn what_is_not_a_disk_is_reported() {
    let result = fixture(Unit { peripheral: 0x05, ..Unit::new() }).identify();
    assert_eq!(result, Err(IdentifyError { step: IdentifyStep::Inquiry, error: Error::NotADisk(0x05) }));
    let absent = fixture(Unit { peripheral: 0x7f, ..Unit::new() }).identify();
    assert_eq!(absent, Err(IdentifyError { step: IdentifyStep::Inquiry, error: Error::NotADisk(0x7f) }));
}

#[test]
fn blocks_of_an_odd_length_are_reported() {
    let result = fixture(Unit { block_length: 520, ..Unit::new() }).identify();
    assert_eq!(result.map_err(|error| error.error), Err(Error::BlockLength(520)));
}

#[test]
fn a_unit_that_goes_while_it_is_identified_is_waited_for() {
    let mut fixture = Fixture::identified(Unit::new());
    let read = Operation::Read { fua: false, dpo: false, may_be_short: false };
    fixture.submit(1, read, Extent::new(0, 1));
    fixture.disk.start(fixture.now);
    fixture.drain();
    let [(read, _), (inquiry, _)] = core::mem::take(&mut fixture.in_flight)[..] else {
        panic!("two commands")
    };
    let no_unit = Outcome::Failed(Failure::Refused(ResponseCode::IncorrectLun));
    fixture.disk.handle_outcome(fixture.now, read.id, &no_unit, &[]);
    fixture.drain();
    assert_eq!(fixture.finished, [(RequestId(1), Err(Error::Gone))]);
    assert_eq!((fixture.aborted.as_slice(), fixture.disk.commands_in_flight()), (&[inquiry.id][..], 1));
    assert_eq!(fixture.identified, []);
    // Even a good answer comes too late.
    fixture.disk.handle_outcome(fixture.now, inquiry.id, &Outcome::answered(Status::Good, 0), &[]);
    fixture.drain();
    assert_eq!(fixture.identified, [Err(IdentifyError { step: IdentifyStep::Inquiry, error: Error::Gone })]);
    assert_eq!((fixture.disk.commands_in_flight(), fixture.in_flight.len()), (0, 0));
}

#[test]
fn a_device_that_goes_ends_the_identification_for_good() {
    let mut fixture = fixture(Unit::new());
    fixture.disk.start(fixture.now);
    fixture.fail_all(Failure::Disconnected);
    assert_eq!(fixture.identified, [Err(IdentifyError { step: IdentifyStep::Inquiry, error: Error::Gone })]);
    fixture.disk.start(fixture.now);
    fixture.drain();
    assert!(fixture.in_flight.is_empty());
}

#[test]
fn a_unit_that_changes_during_the_identification_is_identified_again() {
    let mut unit = Unit::new();
    unit.then(0x5a, check(Sense::unit_attention(AdditionalSense::CAPACITY_DATA_HAS_CHANGED)));
    let mut fixture = fixture(unit);
    fixture.identify().unwrap();
    assert_eq!((fixture.unit.count(0x25), fixture.disk.counts().identify_runs), (2, 2));
}

#[test]
fn a_transport_that_fails_again_and_again_ends_the_identification() {
    let mut unit = Unit::new();
    for _ in 0..5 {
        unit.then(0x12, crate::Outcome::Failed(Failure::TimedOut));
    }
    let error = Error::Transport(Failure::TimedOut);
    assert_eq!(fixture(unit).identify(), Err(IdentifyError { step: IdentifyStep::Inquiry, error }));
}
