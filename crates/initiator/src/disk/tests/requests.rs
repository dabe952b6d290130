//! Requests on an identified disk, with scripted answers of the unit.

use super::super::*;
use super::fixture::Fixture;
use super::unit::{Unit, check, refused};
use crate::{Answer, Failure, SenseBytes};
use alloc::vec;
use alloc::vec::Vec;
use units::{BlockCount, Duration, Extent, Lba};
use wire::scsi::Status;
use wire::scsi::sense::{AdditionalSense, Sense, SenseKey};

const READ: Operation = Operation::Read { fua: false, dpo: false, may_be_short: false };
const WRITE: Operation = Operation::Write { fua: false, dpo: false };
const FORCED: Operation = Operation::Write { fua: true, dpo: false };

fn good(moved: u32) -> Outcome {
    Outcome::answered(Status::Good, moved)
}

#[test]
fn what_is_written_is_read() {
    let mut fixture = Fixture::identified(Unit::new());
    assert_eq!(fixture.ask(WRITE, Extent::new(3, 5)), Ok(Done { moved: 2560 }));
    assert!(fixture.unit.blocks[3 * 512..8 * 512].iter().all(|&byte| byte == 1));
    assert_eq!(fixture.unit.blocks[8 * 512], 0xee);
    assert_eq!(fixture.ask(READ, Extent::new(7, 2)), Ok(Done { moved: 1024 }));
    assert_eq!(fixture.buffers[&RequestId(1)], [[1; 512], [0xee; 512]].concat());
}

#[test]
fn a_long_request_is_cut_and_its_parts_go_together() {
    let mut fixture = Fixture::identified(Unit::new());
    fixture.submit(1, READ, Extent::new(0, 1000));
    fixture.drain();
    let parts: Vec<_> =
        fixture.in_flight.iter().map(|(command, _)| command.cdb.as_bytes()[5..9].to_vec()).collect();
    assert_eq!(parts, [[0, 0, 0, 128], [128, 0, 0, 128], [0, 0, 0, 128], [128, 0, 0, 128]]);
    fixture.run();
    assert_eq!(fixture.finished, [(RequestId(1), Ok(Done { moved: 512_000 }))]);
    assert_eq!(fixture.unit.log.len(), 8);
}

#[test]
fn a_request_of_no_blocks_ends_at_once() {
    let mut fixture = Fixture::identified(Unit::new());
    assert_eq!(fixture.ask(READ, Extent::new(1024, 0)), Ok(Done { moved: 0 }));
    assert!(fixture.unit.log.is_empty());
}

#[test]
fn blocks_past_the_end_and_too_many_requests_are_refused() {
    let mut fixture = Fixture::identified(Unit::new());
    let request = |id, lba| Request { id: RequestId(id), operation: READ, extent: Extent::new(lba, 1) };
    assert_eq!(fixture.disk.submit(fixture.now, request(1, 1024)), Err(RequestRefusal::OutOfRange));
    for id in 0..8 {
        assert_eq!(fixture.disk.submit(fixture.now, request(id, id)), Ok(()));
    }
    assert_eq!(fixture.disk.submit(fixture.now, request(9, 9)), Err(RequestRefusal::Full));
    assert_eq!((fixture.disk.in_flight(), fixture.disk.commands_in_flight()), (8, 4));
}

#[test]
fn a_medium_error_ends_a_request_with_its_block() {
    let mut unit = Unit::new();
    let additional = AdditionalSense::UNRECOVERED_READ_ERROR;
    unit.then(0x28, check(Sense::medium_error(additional, 5)));
    let mut fixture = Fixture::identified(unit);
    assert_eq!(fixture.ask(READ, Extent::new(4, 4)), Err(Error::Medium { lba: Some(Lba(5)), additional }));
    assert_eq!(fixture.unit.count(0x28), 1);
}

#[test]
fn of_two_errors_the_one_at_the_first_blocks_is_reported() {
    let mut fixture = Fixture::identified(Unit::new());
    fixture.submit(1, READ, Extent::new(0, 256));
    fixture.drain();
    let additional = AdditionalSense::UNRECOVERED_READ_ERROR;
    for (at, lba) in [(1, 200), (0, 7)] {
        let outcome = check(Sense::medium_error(additional, lba));
        fixture.disk.handle_outcome(fixture.now, fixture.in_flight[at].0.id, &outcome, &[]);
    }
    fixture.drain();
    let error = Error::Medium { lba: Some(Lba(7)), additional };
    assert_eq!(fixture.finished, [(RequestId(1), Err(error))]);
}

#[test]
fn an_aborted_command_is_sent_again_up_to_the_limit() {
    let aborted = Sense::new(SenseKey::AbortedCommand, AdditionalSense { asc: 0x47, ascq: 0 });
    let mut unit = Unit::new();
    (0..4).for_each(|_| unit.then(0x28, check(aborted)));
    let mut fixture = Fixture::identified(unit);
    assert_eq!(fixture.ask(READ, Extent::new(0, 1)), Ok(Done { moved: 512 }));
    (0..5).for_each(|_| fixture.unit.then(0x28, check(aborted)));
    assert_eq!(fixture.ask(READ, Extent::new(0, 1)), Err(Error::AbortedCommand(aborted.additional)));
    assert_eq!(fixture.unit.count(0x28), 10);
}

#[test]
fn a_write_that_ends_with_a_check_condition_about_nothing_is_sent_again_and_is_no_success() {
    let nothing = Sense::new(SenseKey::NoSense, AdditionalSense { asc: 0, ascq: 0 });
    // All bytes went over the bus, which says nothing of the medium.
    let lost = || match check(nothing) {
        Outcome::Answered(answer) => Outcome::Answered(Answer { moved: 512, ..answer }),
        other => other,
    };
    let mut unit = Unit::new();
    unit.then(0x2a, lost());
    let mut fixture = Fixture::identified(unit);
    let write = Operation::Write { fua: false, dpo: false };
    assert_eq!(fixture.ask(write, Extent::new(0, 1)), Ok(Done { moved: 512 }));
    assert_eq!((fixture.unit.count(0x2a), fixture.disk.counts().sent_again), (2, 1));
    (0..5).for_each(|_| fixture.unit.then(0x2a, lost()));
    let Sense { key, additional, .. } = nothing;
    assert_eq!(fixture.ask(write, Extent::new(0, 1)), Err(Error::Sense { key, additional }));
}

#[test]
fn a_full_task_set_is_given_time() {
    let mut unit = Unit::new();
    let full = |status_qualifier| {
        let sense = SenseBytes::NONE;
        Outcome::Answered(Answer { status: Status::TaskSetFull, status_qualifier, moved: 0, sense })
    };
    unit.then(0x28, full(0));
    unit.then(0x28, full(0));
    unit.then(0x28, full(0x0002));
    let mut fixture = Fixture::identified(unit);
    assert_eq!(fixture.ask(READ, Extent::new(0, 1)), Ok(Done { moved: 512 }));
    assert_eq!(fixture.now.since(Instant::ZERO), Duration::from_ms(1 + 2 + 200));
    assert_eq!(fixture.disk.counts().busy, 3);
}

#[test]
fn a_busy_unit_is_left_alone_with_all_commands() {
    let mut fixture = Fixture::identified(Unit::new());
    fixture.submit(1, READ, Extent::new(0, 1));
    fixture.drain();
    let (command, _) = fixture.in_flight.remove(0);
    fixture.disk.handle_outcome(fixture.now, command.id, &Outcome::answered(Status::Busy, 0), &[]);
    fixture.submit(2, READ, Extent::new(1, 1));
    fixture.drain();
    assert!(fixture.in_flight.is_empty());
    // Even if the one that it was too busy for is cancelled.
    fixture.disk.abort(fixture.now, RequestId(1));
    let at = fixture.now + Duration::from_ms(1);
    assert_eq!(fixture.disk.poll_timeout(), Some(DiskDeadline { at, reason: WaitReason::Busy }));
    fixture.run();
    assert_eq!(fixture.finished[1], (RequestId(2), Ok(Done { moved: 512 })));
}

#[test]
fn a_unit_whose_task_set_was_full_gets_fewer_commands_for_a_while() {
    let mut fixture = Fixture::identified(Unit::new());
    (1..=4).for_each(|id| fixture.submit(id, READ, Extent::new(id, 1)));
    fixture.drain();
    let (last, _) = fixture.in_flight.pop().unwrap();
    fixture.disk.handle_outcome(fixture.now, last.id, &Outcome::answered(Status::TaskSetFull, 0), &[]);
    fixture.submit(5, READ, Extent::new(5, 1));
    fixture.drain();
    assert_eq!(fixture.disk.commands_in_flight(), 3);
    fixture.run();
    assert_eq!(fixture.finished.len(), 5);
    // 32 that go well bring the fourth back: five have, so the count begins there.
    for id in 6..6 + 27 {
        fixture.submit(id, READ, Extent::new(1, 1));
        fixture.run();
    }
    (100..108).for_each(|id| fixture.submit(id, READ, Extent::new(2, 1)));
    fixture.drain();
    assert_eq!(fixture.disk.commands_in_flight(), 4);
}

#[test]
fn zeroes_reach_the_blocks_of_a_unit_without_write_same() {
    let mut fixture = Fixture::identified(Unit { missing: vec![0x41, 0x93], ..Unit::new() });
    assert_eq!(fixture.ask(Operation::Zero { may_unmap: true }, Extent::new(1, 300)), Ok(Done { moved: 0 }));
    assert!(fixture.unit.blocks[512..301 * 512].iter().all(|&byte| byte == 0));
    assert_eq!((fixture.unit.blocks[511], fixture.unit.blocks[301 * 512]), (0xee, 0xee));
    let log: Vec<_> = fixture.unit.log.iter().map(|cdb| (cdb[0], cdb[8])).collect();
    assert_eq!(log, [(0x41, 44), (0x2a, 128), (0x2a, 128), (0x2a, 44)]);
    // It is not asked again, and a block that is not of zeroes cannot be helped.
    assert_eq!(fixture.ask(Operation::Zero { may_unmap: false }, Extent::new(400, 1)), Ok(Done { moved: 0 }));
    assert_eq!(fixture.unit.count(0x41), 1);
    assert_eq!(fixture.ask(Operation::WriteSame, Extent::new(0, 1)), Err(Error::Unsupported));
}

#[test]
fn a_unit_that_zeroes_by_unmapping_and_refuses_gets_a_plain_write_same() {
    let mut fixture = Fixture::identified(Unit { ways_to_unmap: 0x40, ..Unit::new() });
    fixture.unit.then(0x93, refused(AdditionalSense::INVALID_FIELD_IN_CDB));
    for _ in 0..2 {
        assert_eq!(
            fixture.ask(Operation::Zero { may_unmap: true }, Extent::new(0, 9)),
            Ok(Done { moved: 0 })
        );
    }
    let log: Vec<_> = fixture.unit.log.iter().map(|cdb| (cdb[0], cdb[1])).collect();
    assert_eq!(log, [(0x93, 0x08), (0x41, 0), (0x41, 0)]);
    assert!(fixture.unit.blocks[..9 * 512].iter().all(|&byte| byte == 0));
}

#[test]
fn short_data_with_good_status_are_asked_for_again() {
    let mut unit = Unit::new();
    unit.then(0x28, good(511));
    unit.then(0x2a, good(0));
    let mut fixture = Fixture::identified(unit);
    assert_eq!(fixture.ask(READ, Extent::new(0, 1)), Ok(Done { moved: 512 }));
    assert_eq!(fixture.ask(WRITE, Extent::new(0, 1)), Ok(Done { moved: 512 }));
    assert_eq!(fixture.unit.log.iter().map(|cdb| cdb[0]).collect::<Vec<_>>(), [0x28, 0x28, 0x2a, 0x2a]);
}

#[test]
fn short_data_with_good_status_are_an_error_if_they_stay_short() {
    let mut unit = Unit::new();
    for _ in 0..20 {
        unit.then(0x28, good(511));
        unit.then(0x2a, good(0));
    }
    let mut fixture = Fixture::identified(unit);
    assert_eq!(fixture.ask(READ, Extent::new(0, 1)), Err(Error::Residue { moved: 511, expected: 512 }));
    assert_eq!(fixture.ask(WRITE, Extent::new(0, 1)), Err(Error::Residue { moved: 0, expected: 512 }));
}

#[test]
fn short_data_is_reported_where_it_may_be() {
    let mut unit = Unit::new();
    unit.then(0x28, good(65_536));
    unit.then(0x28, good(1000));
    let mut fixture = Fixture::identified(unit);
    let read = Operation::Read { fua: false, dpo: false, may_be_short: true };
    assert_eq!(fixture.ask(read, Extent::new(0, 1000)), Ok(Done { moved: 66_536 }));
}

#[test]
fn more_data_than_asked_for_is_an_error() {
    let mut unit = Unit::new();
    unit.then(0x28, good(513));
    let mut fixture = Fixture::identified(unit);
    assert_eq!(fixture.ask(READ, Extent::new(0, 1)), Err(Error::Residue { moved: 513, expected: 512 }));
}

#[test]
fn a_flush_reports_a_lost_write() {
    let lost = Sense { deferred: true, ..Sense::medium_error(AdditionalSense::WRITE_ERROR, 77) };
    let mut fixture = Fixture::identified(Unit::new());
    fixture.unit.then(0x28, check(lost));
    assert_eq!(fixture.ask(READ, Extent::new(0, 1)), Ok(Done { moved: 512 }));
    let key = SenseKey::MediumError;
    let lost = LostWrite { key, additional: AdditionalSense::WRITE_ERROR, lba: Some(Lba(77)) };
    assert_eq!(fixture.lost, [lost]);
    assert_eq!(fixture.ask(Operation::Flush, Extent::default()), Err(Error::LostWrite(lost)));
    assert_eq!(fixture.ask(Operation::Flush, Extent::default()), Ok(Done { moved: 0 }));
    assert_eq!(fixture.unit.count(0x35), 2);
}

#[test]
fn a_flush_without_a_cache_sends_nothing() {
    let mut fixture = Fixture::identified(Unit { write_cache: false, ..Unit::new() });
    assert_eq!(fixture.ask(Operation::Flush, Extent::default()), Ok(Done { moved: 0 }));
    assert!(fixture.unit.log.is_empty());
}

#[test]
fn a_unit_that_cannot_flush_what_it_caches_is_reported() {
    let mut fixture = Fixture::identified(Unit { missing: vec![0x35], ..Unit::new() });
    assert_eq!(fixture.ask(Operation::Flush, Extent::default()), Err(Error::Unsupported));
    let unknown = Unit { missing: vec![0x35, 0x5a, 0x1a], ..Unit::new() };
    let mut fixture = Fixture::identified(unknown);
    assert_eq!(fixture.ask(Operation::Flush, Extent::default()), Ok(Done { moved: 0 }));
    assert_eq!(fixture.ask(Operation::Flush, Extent::default()), Ok(Done { moved: 0 }));
    assert_eq!(fixture.unit.count(0x35), 1);
}

#[test]
fn a_forced_write_is_flushed_where_the_unit_cannot_force() {
    let mut fixture = Fixture::identified(Unit { dpo_fua: false, ..Unit::new() });
    assert_eq!(fixture.ask(FORCED, Extent::new(0, 1)), Ok(Done { moved: 512 }));
    let log: Vec<_> = fixture.unit.log.iter().map(|cdb| (cdb[0], cdb[1])).collect();
    assert_eq!(log, [(0x2a, 0x00), (0x35, 0x00)]);
}

#[test]
fn a_unit_that_lies_about_forcing_is_found_out_once() {
    let mut fixture = Fixture::identified(Unit::new());
    fixture.unit.dpo_fua = false;
    for _ in 0..2 {
        assert_eq!(fixture.ask(FORCED, Extent::new(0, 1)), Ok(Done { moved: 512 }));
    }
    let log: Vec<_> = fixture.unit.log.iter().map(|cdb| (cdb[0], cdb[1])).collect();
    assert_eq!(log, [(0x2a, 0x08), (0x2a, 0x00), (0x35, 0x00), (0x2a, 0x00), (0x35, 0x00)]);
}

#[test]
fn a_unit_of_old_is_found_out_and_gets_six_bytes() {
    let mut fixture = Fixture::identified(Unit { missing: vec![0x28], ..Unit::new() });
    fixture.disk = Disk::new(DiskConfig::new(4, 1 << 20));
    fixture.identify().unwrap();
    fixture.unit.log.clear();
    (0..600).for_each(|block| fixture.unit.blocks[block * 512] = (block / 3) as u8);
    assert_eq!(fixture.ask(READ, Extent::new(0, 600)), Ok(Done { moved: 307_200 }));
    assert_eq!(fixture.buffers[&RequestId(1)], fixture.unit.blocks[..307_200]);
    let log: Vec<_> = fixture.unit.log.iter().map(|cdb| cdb[0]).collect();
    assert_eq!(log, [0x28, 0x08, 0x08, 0x08]);
}

#[test]
fn a_write_protected_unit_is_not_written() {
    let mut fixture = Fixture::identified(Unit { write_protected: true, ..Unit::new() });
    for operation in [WRITE, Operation::Unmap, Operation::Zero { may_unmap: false }, Operation::WriteSame] {
        assert_eq!(fixture.ask(operation, Extent::new(0, 1)), Err(Error::WriteProtected));
    }
    assert!(fixture.unit.log.is_empty());
    assert_eq!(fixture.ask(READ, Extent::new(0, 1)), Ok(Done { moved: 512 }));
}

#[test]
fn unmapping_zeroing_and_filling_reach_the_blocks() {
    let mut fixture = Fixture::identified(Unit::new());
    assert_eq!(fixture.ask(Operation::Unmap, Extent::new(0, 600)), Ok(Done { moved: 0 }));
    assert!(fixture.unit.blocks[..600 * 512].iter().all(|&byte| byte == 0));
    assert_eq!((fixture.unit.blocks[600 * 512], fixture.unit.count(0x42)), (0xee, 3));
    assert_eq!(fixture.ask(Operation::WriteSame, Extent::new(600, 2)), Ok(Done { moved: 0 }));
    assert!(fixture.unit.blocks[600 * 512..602 * 512].iter().all(|&byte| byte == 1));
    assert_eq!(fixture.ask(Operation::Zero { may_unmap: true }, Extent::new(600, 1)), Ok(Done { moved: 0 }));
    assert_eq!((fixture.unit.blocks[600 * 512], fixture.unit.blocks[601 * 512]), (0, 1));
}

/// A unit that takes eight runs of 256 blocks in all.
fn unit_of_many_runs() -> Unit {
    let mut unit = Unit::new();
    unit.limits.maximum_unmap_block_descriptor_count = 8;
    unit
}

#[test]
fn unmapping_of_several_requests_goes_in_one_command() {
    let mut fixture = Fixture::identified(unit_of_many_runs());
    // The first four fill the depth with reads; the rest waits, and goes together.
    (1..=4).for_each(|id| fixture.submit(id, READ, Extent::new(900 + id, 1)));
    for (id, extent) in [
        (5, Extent::new(0, 10)),
        (6, Extent::new(20, 200)),
        (7, Extent::new(300, 47)),
        (8, Extent::new(1, 1)),
    ] {
        fixture.submit(id, Operation::Unmap, extent);
    }
    fixture.run();
    // 257 blocks are one too many: the last of them has a separate command.
    assert_eq!((fixture.unit.count(0x42), fixture.finished.len()), (2, 8));
    assert!(fixture.finished.iter().all(|(_, result)| result.is_ok()));
    let list_bytes: Vec<u8> =
        fixture.unit.log.iter().filter(|cdb| cdb[0] == 0x42).map(|cdb| cdb[8]).collect();
    assert_eq!(list_bytes, [8 + 2 * 16, 8 + 2 * 16]);
    for (block, byte) in
        [(0, 0), (9, 0), (10, 0xee), (20, 0), (219, 0), (220, 0xee), (300, 0), (346, 0), (347, 0xee)]
    {
        assert_eq!(fixture.unit.blocks[block * 512], byte, "{block}");
    }
}

#[test]
fn a_shared_command_that_fails_is_the_first_requests_alone() {
    let mut fixture = Fixture::identified(unit_of_many_runs());
    (1..=4).for_each(|id| fixture.submit(id, READ, Extent::new(900 + id, 1)));
    (5..=7).for_each(|id| fixture.submit(id, Operation::Unmap, Extent::new(id, 1)));
    fixture.unit.then(0x42, refused(AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST));
    fixture.run();
    let result = |id: u64| fixture.finished.iter().find(|(own, _)| own.0 == id).unwrap().1;
    assert!(matches!(result(5), Err(Error::IllegalRequest { .. })));
    assert_eq!((result(6), result(7)), (Ok(Done { moved: 0 }), Ok(Done { moved: 0 })));
    assert_eq!(fixture.unit.count(0x42), 3);
}

#[test]
fn a_shared_command_is_sent_again_with_all_that_it_had() {
    let mut fixture = Fixture::identified(unit_of_many_runs());
    (1..=4).for_each(|id| fixture.submit(id, READ, Extent::new(900 + id, 1)));
    (5..=7).for_each(|id| fixture.submit(id, Operation::Unmap, Extent::new(id, 1)));
    fixture.unit.then(0x42, Outcome::answered(Status::Busy, 0));
    fixture.run();
    assert_eq!((fixture.finished.len(), fixture.unit.count(0x42)), (7, 2));
    assert!((5..8).all(|block| fixture.unit.blocks[block * 512] == 0));
}

#[test]
fn a_merged_request_that_is_cancelled_while_its_command_waits_leaves_it() {
    let mut fixture = Fixture::identified(unit_of_many_runs());
    (1..=4).for_each(|id| fixture.submit(id, READ, Extent::new(900 + id, 1)));
    (5..=6).for_each(|id| fixture.submit(id, Operation::Unmap, Extent::new(id, 1)));
    fixture.drain();
    for (command, memory) in core::mem::take(&mut fixture.in_flight) {
        fixture.complete(command, memory);
    }
    fixture.drain();
    let (command, _) = fixture.in_flight.remove(0);
    fixture.disk.handle_outcome(fixture.now, command.id, &Outcome::answered(Status::Busy, 0), &[]);
    fixture.disk.abort(fixture.now, RequestId(6));
    fixture.run();
    let result = |id: u64| fixture.finished.iter().find(|(own, _)| own.0 == id).unwrap().1;
    assert_eq!((result(5), result(6)), (Ok(Done { moved: 0 }), Err(Error::Aborted)));
    assert_eq!((fixture.unit.blocks[5 * 512], fixture.unit.blocks[6 * 512]), (0, 0xee));
}

#[test]
fn a_unit_that_cannot_unmap_is_not_asked_to() {
    let mut fixture = Fixture::identified(Unit { provisioned: false, ..Unit::new() });
    assert_eq!(fixture.ask(Operation::Unmap, Extent::new(0, 1)), Err(Error::Unsupported));
    assert!(fixture.unit.log.is_empty());
}

#[test]
fn a_unit_that_grows_is_looked_at_again_and_the_request_goes_on() {
    let mut fixture = Fixture::identified(Unit::new());
    fixture.unit.last_lba = 2047;
    fixture.unit.then(0x28, check(Sense::unit_attention(AdditionalSense::CAPACITY_DATA_HAS_CHANGED)));
    assert_eq!(fixture.ask(READ, Extent::new(0, 1)), Ok(Done { moved: 512 }));
    assert_eq!(fixture.disk.geometry().unwrap().capacity, BlockCount(2048));
    assert_eq!(fixture.identified, [Ok(())]);
}

#[test]
fn a_unit_that_shrinks_ends_what_lies_past_its_new_end() {
    let mut fixture = Fixture::identified(Unit::new());
    fixture.unit.last_lba = 9;
    fixture.unit.then(0x28, check(Sense::unit_attention(AdditionalSense::MEDIUM_MAY_HAVE_CHANGED)));
    assert_eq!(fixture.ask(READ, Extent::new(8, 4)), Err(Error::OutOfRange));
    assert_eq!(fixture.unit.count(0x28), 1);
}

#[test]
fn a_medium_that_was_taken_out_ends_everything_until_the_next_identification() {
    let mut fixture = Fixture::identified(Unit::new());
    fixture.unit.then(0x28, check(Sense::unit_attention(AdditionalSense::MEDIUM_MAY_HAVE_CHANGED)));
    fixture.unit.then(0x00, check(Sense::not_ready(AdditionalSense::MEDIUM_NOT_PRESENT)));
    assert_eq!(fixture.ask(READ, Extent::new(0, 1)), Err(Error::NoMedium));
    let request = Request { id: RequestId(2), operation: READ, extent: Extent::new(0, 1) };
    assert_eq!(fixture.disk.submit(fixture.now, request), Err(RequestRefusal::NotIdentified));
    assert_eq!(fixture.identified.len(), 1);
    assert_eq!(fixture.identify(), Ok(()));
}

#[test]
fn a_disk_that_stops_is_started_and_the_request_goes_on() {
    let mut fixture = Fixture::identified(Unit::new());
    let stopped = check(Sense::not_ready(AdditionalSense::NOT_READY_INITIALIZING_COMMAND_REQUIRED));
    fixture.unit.then(0x28, stopped.clone());
    fixture.unit.then(0x00, stopped);
    assert_eq!(fixture.ask(READ, Extent::new(0, 1)), Ok(Done { moved: 512 }));
    assert_eq!(fixture.unit.count(0x1b), 1);
}

#[test]
fn a_reservation_of_another_host_is_reported() {
    let mut fixture = Fixture::identified(Unit::new());
    fixture.unit.then(0x2a, Outcome::answered(Status::ReservationConflict, 0));
    assert_eq!(fixture.ask(WRITE, Extent::new(0, 1)), Err(Error::ReservationConflict));
}

#[test]
fn an_illegal_request_names_its_field() {
    let mut fixture = Fixture::identified(Unit::new());
    fixture.unit.then(0x28, check(Sense::invalid_field_in_cdb(6, None)));
    let field = Some(Field { in_cdb: true, byte: 6, bit: None });
    let additional = AdditionalSense::INVALID_FIELD_IN_CDB;
    assert_eq!(fixture.ask(READ, Extent::new(0, 1)), Err(Error::IllegalRequest { additional, field }));
    fixture.unit.then(0x2a, refused(AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE));
    assert_eq!(fixture.ask(WRITE, Extent::new(0, 1)), Err(Error::OutOfRange));
}

#[test]
fn a_device_that_goes_ends_every_request_once() {
    let mut fixture = Fixture::identified(Unit::new());
    (1..=8).for_each(|id| fixture.submit(id, READ, Extent::new(id, 2)));
    fixture.fail_all(Failure::Disconnected);
    fixture.run();
    assert_eq!(fixture.finished.len(), 8);
    assert!(fixture.finished.iter().all(|(_, result)| *result == Err(Error::Gone)));
    let request = Request { id: RequestId(9), operation: READ, extent: Extent::new(0, 1) };
    assert_eq!(fixture.disk.submit(fixture.now, request), Err(RequestRefusal::Gone));
}

#[test]
fn a_request_that_is_cancelled_ends_when_its_commands_do() {
    let mut fixture = Fixture::identified(Unit::new());
    fixture.submit(1, READ, Extent::new(0, 1000));
    fixture.drain();
    fixture.disk.abort(fixture.now, RequestId(1));
    fixture.drain();
    assert_eq!((fixture.aborted.len(), fixture.finished.len()), (4, 0));
    fixture.fail_all(Failure::Aborted);
    assert_eq!(fixture.finished, [(RequestId(1), Err(Error::Aborted))]);
    fixture.disk.abort(fixture.now, RequestId(1));
    fixture.run();
    assert_eq!(fixture.finished.len(), 1);
}

#[test]
fn a_request_that_ended_well_before_it_was_cancelled_did() {
    let mut fixture = Fixture::identified(Unit::new());
    fixture.submit(1, WRITE, Extent::new(0, 1));
    fixture.drain();
    fixture.disk.abort(fixture.now, RequestId(1));
    fixture.run();
    assert_eq!(fixture.finished, [(RequestId(1), Ok(Done { moved: 512 }))]);
}

#[test]
fn a_request_that_waits_is_cancelled_at_once() {
    let mut fixture = Fixture::identified(Unit::new());
    fixture.submit(1, READ, Extent::new(0, 1));
    fixture.drain();
    let (command, _) = fixture.in_flight.remove(0);
    fixture.disk.handle_outcome(fixture.now, command.id, &Outcome::answered(Status::Busy, 0), &[]);
    fixture.disk.abort(fixture.now, RequestId(1));
    fixture.drain();
    assert_eq!(fixture.finished, [(RequestId(1), Err(Error::Aborted))]);
    assert_eq!(fixture.disk.poll_timeout(), None);
}

#[test]
fn a_transport_without_room_is_asked_again_later() {
    let mut fixture = Fixture::identified(Unit::new());
    fixture.submit(1, READ, Extent::new(0, 1));
    fixture.drain();
    let (command, _) = fixture.in_flight.remove(0);
    fixture.disk.handle_refusal(fixture.now, command.id, Refusal::Full);
    let at = fixture.now + Duration::from_ms(10);
    let reason = WaitReason::Transport;
    assert_eq!(fixture.disk.poll_timeout(), Some(DiskDeadline { at, reason }));
    fixture.run();
    assert_eq!(fixture.finished, [(RequestId(1), Ok(Done { moved: 512 }))]);
}

#[test]
fn an_outcome_of_an_earlier_sending_finds_nothing() {
    let mut fixture = Fixture::identified(Unit::new());
    fixture.submit(1, READ, Extent::new(0, 1));
    fixture.drain();
    let (command, _) = fixture.in_flight.remove(0);
    fixture.disk.handle_outcome(fixture.now, command.id, &Outcome::Failed(Failure::TimedOut), &[]);
    fixture.drain();
    assert_ne!(fixture.in_flight[0].0.id, command.id);
    fixture.disk.handle_outcome(fixture.now, command.id, &good(512), &[]);
    fixture.drain();
    assert!(fixture.finished.is_empty());
}
