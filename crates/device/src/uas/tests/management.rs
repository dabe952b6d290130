//! Task management, tags that are used twice, task attributes, and auto contingent allegiance.

use super::assert_goes_on;
use crate::host_fixture::HostFixture;
use crate::host_fixture::uas::{
    ACA, CommandTransfers, HEAD_OF_QUEUE, ORDERED, SIMPLE, TEST_UNIT_READY, check, command_iu, good,
    management_iu, read_10, response, status, write_10,
};
use bus::{Speed, TransferStatus};

const ABORT_TASK: u8 = 0x01;
const ABORT_TASK_SET: u8 = 0x02;
const CLEAR_TASK_SET: u8 = 0x04;
const LOGICAL_UNIT_RESET: u8 = 0x08;
const IT_NEXUS_RESET: u8 = 0x10;
const CLEAR_ACA: u8 = 0x40;
const QUERY_TASK: u8 = 0x80;
const QUERY_TASK_SET: u8 = 0x81;
const QUERY_ASYNCHRONOUS_EVENT: u8 = 0x82;

const EVERY_FUNCTION: [u8; 9] = [
    ABORT_TASK,
    ABORT_TASK_SET,
    CLEAR_TASK_SET,
    LOGICAL_UNIT_RESET,
    IT_NEXUS_RESET,
    CLEAR_ACA,
    QUERY_TASK,
    QUERY_TASK_SET,
    QUERY_ASYNCHRONOUS_EVENT,
];

fn host() -> HostFixture {
    HostFixture::uas(Speed::Super)
}

/// Two reads, of blocks 1 and 2, whose blocks the medium keeps.
fn host_with_two_reads() -> (HostFixture, [CommandTransfers; 2]) {
    let mut host = host();
    host.hold_medium();
    let reads = [1, 2].map(|tag| host.read_command(tag, 512, &read_10(tag, 1)));
    (host, reads)
}

/// Cancels the status transfers, since an aborted command has no status.
fn give_up(host: &mut HostFixture, reads: &[CommandTransfers]) {
    for read in reads {
        assert!(host.is_pending(read.status), "an aborted command has no status");
        host.cancel(read.status);
    }
}

#[test]
fn every_function_is_complete_where_there_is_nothing_to_do() {
    for function in EVERY_FUNCTION {
        let mut host = host();
        let answer = host.manage(3, function, 1);
        assert_eq!(host.bytes_of(answer), response(3, 0x00), "function {function:#04x}");
        host.calm();
        assert_goes_on(&mut host);
    }
}

#[test]
fn every_function_but_the_nexus_reset_looks_at_the_unit() {
    for function in EVERY_FUNCTION {
        let (mut host, _) = host_with_two_reads();
        if function != IT_NEXUS_RESET {
            let answer = host.want_status(3);
            host.send_iu(&management_iu(3, function, 1, 7));
            assert_eq!(host.bytes_of(answer), response(3, 0x09), "function {function:#04x}");
        }
    }
}

#[test]
fn an_unknown_function_is_not_supported() {
    let (mut host, reads) = host_with_two_reads();
    let answer = host.manage(3, 0x33, 1);
    assert_eq!(host.bytes_of(answer), response(3, 0x04));
    host.release_medium();
    assert_eq!(host.bytes_of(reads[0].status), good(1));
    assert_goes_on(&mut host);
}

#[test]
fn abort_task_answers_when_the_medium_has_released_it() {
    let (mut host, reads) = host_with_two_reads();
    let answer = host.manage(3, ABORT_TASK, 1);
    assert_eq!(host.account_of(reads[0].data), (TransferStatus::Short, 0));
    assert!(host.is_pending(answer));
    host.answer_medium(0);
    assert_eq!(host.bytes_of(answer), response(3, 0x00));
    host.release_medium();
    assert_eq!(host.bytes_of(reads[1].data), [2; 512]);
    assert_eq!(host.bytes_of(reads[1].status), good(2));
    give_up(&mut host, &reads[..1]);
    assert_goes_on(&mut host);
}

#[test]
fn abort_task_of_an_unknown_tag_is_complete() {
    let (mut host, reads) = host_with_two_reads();
    let answer = host.manage(3, ABORT_TASK, 4);
    assert_eq!(host.bytes_of(answer), response(3, 0x00));
    host.release_medium();
    assert_eq!(host.bytes_of(reads[0].status), good(1));
    assert_eq!(host.bytes_of(reads[1].status), good(2));
    assert_goes_on(&mut host);
}

#[test]
fn abort_task_names_a_command_of_its_unit() {
    let (mut host, reads) = host_with_two_reads();
    let answer = host.want_status(3);
    host.send_iu(&management_iu(3, ABORT_TASK, 1, 1));
    assert_eq!(host.bytes_of(answer), response(3, 0x00));
    host.release_medium();
    assert_eq!(host.bytes_of(reads[0].status), good(1));
    assert_eq!(host.bytes_of(reads[1].status), good(2));
    assert_goes_on(&mut host);
}

#[test]
fn functions_for_a_unit_end_all_its_commands() {
    for function in [ABORT_TASK_SET, CLEAR_TASK_SET, LOGICAL_UNIT_RESET, IT_NEXUS_RESET] {
        let (mut host, reads) = host_with_two_reads();
        let answer = host.manage(3, function, 0);
        assert_eq!(host.account_of(reads[0].data), (TransferStatus::Short, 0));
        assert_eq!(host.account_of(reads[1].data), (TransferStatus::Short, 0));
        host.answer_medium(1);
        assert!(host.is_pending(answer), "function {function:#04x}");
        host.answer_medium(0);
        assert_eq!(host.bytes_of(answer), response(3, 0x00), "function {function:#04x}");
        give_up(&mut host, &reads);
        host.release_medium();
        host.calm();
        assert_goes_on(&mut host);
    }
}

#[test]
fn functions_for_a_unit_leave_the_other_alone() {
    for function in [ABORT_TASK_SET, CLEAR_TASK_SET, LOGICAL_UNIT_RESET, CLEAR_ACA] {
        let (mut host, reads) = host_with_two_reads();
        let answer = host.want_status(3);
        host.send_iu(&management_iu(3, function, 0, 1));
        assert_eq!(host.bytes_of(answer), response(3, 0x00), "function {function:#04x}");
        host.release_medium();
        assert_eq!(host.bytes_of(reads[0].status), good(1));
        assert_eq!(host.bytes_of(reads[1].status), good(2));
        assert_goes_on(&mut host);
    }
}

#[test]
fn a_nexus_reset_ends_the_commands_of_every_unit() {
    let (mut host, reads) = host_with_two_reads();
    let answer = host.want_status(3);
    host.send_iu(&management_iu(3, IT_NEXUS_RESET, 0, 1));
    host.release_medium();
    assert_eq!(host.bytes_of(answer), response(3, 0x00));
    give_up(&mut host, &reads);
}

#[test]
fn resets_are_reported_by_a_unit_attention() {
    for (function, code) in [(LOGICAL_UNIT_RESET, (0x29, 0x03)), (IT_NEXUS_RESET, (0x29, 0x07))] {
        let mut host = host();
        host.manage(3, function, 0);
        let reported = host.command(1, &TEST_UNIT_READY);
        assert_eq!(host.bytes_of(reported), check(1, 0x06, code));
        assert_goes_on(&mut host);
    }
}

#[test]
fn queries_find_commands_and_end_none() {
    let (mut host, reads) = host_with_two_reads();
    for (function, managed, code) in
        [(QUERY_TASK, 1, 0x08), (QUERY_TASK, 4, 0x00), (QUERY_TASK_SET, 0, 0x08), (CLEAR_ACA, 0, 0x00)]
    {
        let answer = host.manage(3, function, managed);
        assert_eq!(host.bytes_of(answer), response(3, code), "function {function:#04x} of {managed}");
    }
    let answer = host.want_status(3);
    host.send_iu(&management_iu(3, QUERY_TASK_SET, 0, 1));
    assert_eq!(host.bytes_of(answer), response(3, 0x00));
    host.release_medium();
    assert_eq!(host.bytes_of(reads[0].status), good(1));
    assert_eq!(host.bytes_of(reads[1].status), good(2));
    assert_goes_on(&mut host);
}

#[test]
fn an_asynchronous_event_is_reported_and_stays() {
    let mut host = host();
    host.manage(3, LOGICAL_UNIT_RESET, 0);
    for _ in 0..2 {
        let answer = host.manage(3, QUERY_ASYNCHRONOUS_EVENT, 0);
        assert_eq!(host.bytes_of(answer), [0x04, 0, 0, 3, 0x16, 0x29, 0x03, 0x08]);
    }
}

#[test]
fn a_later_function_waits_for_what_an_earlier_one_ends() {
    let (mut host, reads) = host_with_two_reads();
    let first = host.manage(3, ABORT_TASK, 1);
    let second = host.manage(4, ABORT_TASK, 1);
    let third = host.manage(5, ABORT_TASK, 2);
    host.answer_medium(1);
    assert_eq!(host.bytes_of(third), response(5, 0x00));
    assert!(host.is_pending(first));
    assert!(host.is_pending(second));
    host.answer_medium(0);
    assert_eq!(host.bytes_of(first), response(3, 0x00));
    assert_eq!(host.bytes_of(second), response(4, 0x00));
    give_up(&mut host, &reads);
    host.release_medium();
    assert_goes_on(&mut host);
}

#[test]
fn a_status_that_the_host_has_not_taken_goes_with_its_command() {
    for function in [ABORT_TASK, ABORT_TASK_SET, IT_NEXUS_RESET] {
        let mut host = host();
        host.send_iu(&command_iu(1, SIMPLE, 0, &TEST_UNIT_READY));
        let answer = host.manage(3, function, 1);
        assert_eq!(host.bytes_of(answer), response(3, 0x00));
        host.calm();
        let next = host.command(1, &[0xc0, 0, 0, 0, 0, 0]);
        assert_eq!(host.bytes_of(next), check(1, 0x05, (0x20, 0x00)));
        assert_goes_on(&mut host);
    }
}

#[test]
fn a_command_that_still_waits_is_aborted_at_once() {
    let (mut host, _) = host_with_two_reads();
    let ordered = host.command_as(4, ORDERED, &TEST_UNIT_READY);
    let answer = host.manage(3, ABORT_TASK, 4);
    assert_eq!(host.bytes_of(answer), response(3, 0x00));
    assert!(host.is_pending(ordered));
}

#[test]
fn a_write_is_aborted_in_its_data_phase() {
    let mut host = host();
    let status = host.want_status(1);
    host.send_iu(&command_iu(1, SIMPLE, 0, &write_10(0, 16)));
    let data = host.send_data(1, &[7; 4096]);
    assert_eq!(host.account_of(data), (TransferStatus::Done, 4096));
    let answer = host.manage(3, ABORT_TASK, 1);
    assert_eq!(host.bytes_of(answer), response(3, 0x00));
    host.cancel(status);
    assert_goes_on(&mut host);
}

#[test]
fn a_used_tag_ends_every_command_with_one_status() {
    let (mut host, reads) = host_with_two_reads();
    host.send_iu(&command_iu(1, SIMPLE, 0, &read_10(9, 1)));
    assert_eq!(host.account_of(reads[0].data), (TransferStatus::Short, 0));
    assert_eq!(host.account_of(reads[1].data), (TransferStatus::Short, 0));
    host.answer_medium(0);
    assert!(host.is_pending(reads[0].status), "the other command drains too");
    host.answer_medium(0);
    assert_eq!(host.bytes_of(reads[0].status), check(1, 0x0b, (0x4e, 0x00)));
    give_up(&mut host, &reads[1..]);
    host.release_medium();
    assert_goes_on(&mut host);
}

#[test]
fn a_tag_is_in_use_until_its_status_is_taken() {
    let mut host = host();
    host.send_iu(&command_iu(1, SIMPLE, 0, &TEST_UNIT_READY));
    host.send_iu(&command_iu(1, SIMPLE, 0, &TEST_UNIT_READY));
    let status = host.want_status(1);
    assert_eq!(host.bytes_of(status), check(1, 0x0b, (0x4e, 0x00)));
    assert_goes_on(&mut host);
}

#[test]
fn a_tag_is_in_use_while_its_command_drains() {
    let (mut host, reads) = host_with_two_reads();
    let answer = host.manage(3, ABORT_TASK, 1);
    host.send_iu(&command_iu(1, SIMPLE, 0, &TEST_UNIT_READY));
    host.release_medium();
    assert_eq!(host.bytes_of(answer), response(3, 0x00));
    assert_eq!(host.bytes_of(reads[0].status), check(1, 0x0b, (0x4e, 0x00)));
    give_up(&mut host, &reads[1..]);
    assert_goes_on(&mut host);
}

#[test]
fn a_function_under_a_used_tag_is_refused() {
    let (mut host, reads) = host_with_two_reads();
    host.send_iu(&management_iu(1, ABORT_TASK_SET, 0, 0));
    assert_eq!(host.bytes_of(reads[0].status), response(1, 0x0a));
    let status = host.want_status(1);
    host.release_medium();
    assert_eq!(host.bytes_of(status), good(1));
    assert_eq!(host.bytes_of(reads[1].status), good(2));
    assert_goes_on(&mut host);
}

#[test]
fn a_command_under_the_tag_of_a_function_is_refused() {
    let (mut host, reads) = host_with_two_reads();
    let first = host.manage(3, ABORT_TASK, 1);
    host.send_iu(&command_iu(3, SIMPLE, 0, &TEST_UNIT_READY));
    assert_eq!(host.bytes_of(first), response(3, 0x0a));
    let second = host.want_status(3);
    host.release_medium();
    assert_eq!(host.bytes_of(second), response(3, 0x00));
    give_up(&mut host, &reads[..1]);
    assert_goes_on(&mut host);
}

#[test]
fn an_ordered_command_waits_and_is_waited_for() {
    let mut host = host();
    host.hold_medium();
    let read = host.read_command(1, 512, &read_10(3, 1));
    let ordered = host.command_as(2, ORDERED, &TEST_UNIT_READY);
    let simple = host.command(3, &TEST_UNIT_READY);
    let head = host.command_as(4, HEAD_OF_QUEUE, &TEST_UNIT_READY);
    assert_eq!(host.bytes_of(head), good(4));
    assert!(host.is_pending(ordered));
    assert!(host.is_pending(simple));
    host.release_medium();
    host.assert_order(&[head, read.status, ordered, simple]);
    assert_goes_on(&mut host);
}

/// READ(10) past the end with NACA set, which brings CHECK CONDITION.
const FAULTY: [u8; 10] = [0x28, 0, 0xff, 0, 0, 0, 0, 0, 1, 0x04];

#[test]
fn naca_brings_an_auto_contingent_allegiance() {
    let mut host = host();
    let fault = host.command(1, &FAULTY);
    assert_eq!(host.bytes_of(fault)[6], 0x02);
    let refused = host.command(2, &TEST_UNIT_READY);
    assert_eq!(host.bytes_of(refused), status(2, 0x30));
    let allowed = host.command_as(3, ACA, &TEST_UNIT_READY);
    assert_eq!(host.bytes_of(allowed), good(3));
    let other_unit = host.want_status(4);
    host.send_iu(&command_iu(4, SIMPLE, 1, &TEST_UNIT_READY));
    assert_eq!(host.bytes_of(other_unit), good(4));
    let cleared = host.manage(5, CLEAR_ACA, 0);
    assert_eq!(host.bytes_of(cleared), response(5, 0x00));
    assert_goes_on(&mut host);
}

#[test]
fn without_naca_there_is_no_allegiance() {
    let mut host = host();
    let fault = host.command(1, &[0x28, 0, 0xff, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(host.bytes_of(fault)[6], 0x02);
    assert_goes_on(&mut host);
}

#[test]
fn one_aca_command_at_a_time() {
    let mut host = host();
    host.command(1, &FAULTY);
    host.hold_medium();
    let first = host.want_status(2);
    let data = host.want_data(2, 512);
    host.send_iu(&command_iu(2, ACA, 0, &read_10(3, 1)));
    let second = host.command_as(3, ACA, &TEST_UNIT_READY);
    assert_eq!(host.bytes_of(second), status(3, 0x30));
    host.release_medium();
    assert_eq!(host.bytes_of(data), [3; 512]);
    assert_eq!(host.bytes_of(first), good(2));
}

#[test]
fn clear_aca_ends_the_aca_command() {
    let mut host = host();
    host.command(1, &FAULTY);
    host.hold_medium();
    let read = host.want_status(2);
    host.send_iu(&command_iu(2, ACA, 0, &read_10(3, 1)));
    let cleared = host.manage(3, CLEAR_ACA, 0);
    assert!(host.is_pending(cleared));
    host.release_medium();
    assert_eq!(host.bytes_of(cleared), response(3, 0x00));
    host.cancel(read);
    assert_goes_on(&mut host);
}

#[test]
fn the_aca_attribute_needs_an_allegiance() {
    let mut host = host();
    let refused = host.command_as(1, ACA, &TEST_UNIT_READY);
    assert_eq!(host.bytes_of(refused), check(1, 0x05, (0x49, 0x00)));
    assert_goes_on(&mut host);
}

#[test]
fn commands_that_wait_are_held_up_by_an_allegiance() {
    let mut host = host();
    host.hold_medium();
    let read = host.read_command(1, 512, &read_10(3, 1));
    let ordered = host.command_as(2, ORDERED, &TEST_UNIT_READY);
    host.command_as(3, HEAD_OF_QUEUE, &FAULTY);
    host.release_medium();
    assert_eq!(host.bytes_of(read.status), good(1));
    assert!(host.is_pending(ordered));
    let cleared = host.manage(4, CLEAR_ACA, 0);
    assert_eq!(host.bytes_of(cleared), response(4, 0x00));
    assert_eq!(host.bytes_of(ordered), good(2));
    assert_goes_on(&mut host);
}

#[test]
fn a_unit_reset_ends_an_allegiance() {
    let mut host = host();
    host.command(1, &FAULTY);
    host.manage(2, LOGICAL_UNIT_RESET, 0);
    host.calm();
    assert_goes_on(&mut host);
}
