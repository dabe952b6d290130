//! High and full speed: no streams, and a READY IU before each data phase.

use super::assert_goes_on;
use crate::host_fixture::HostFixture;
use crate::host_fixture::uas::{
    FORMAT_WITH_LIST, SIMPLE, TEST_UNIT_READY, check, command_iu, format_list, good, management_iu, read_10,
    read_ready, response, status, write_10, write_ready,
};
use alloc::vec::Vec;
use bus::{Speed, TransferStatus};

fn host() -> HostFixture {
    HostFixture::uas(Speed::High)
}

#[test]
fn a_command_without_data_brings_a_status_at_once() {
    let mut host = host();
    assert_goes_on(&mut host);
}

#[test]
fn a_read_says_ready_then_moves_then_reports_its_status() {
    let mut host = host();
    let ready = host.command(1, &read_10(3, 1));
    assert_eq!(host.bytes_of(ready), read_ready(1));
    let status = host.want_status(1);
    assert!(host.is_pending(status));
    let data = host.want_data(1, 512);
    assert_eq!(host.bytes_of(data), [3; 512]);
    assert_eq!(host.bytes_of(status), good(1));
    host.assert_order(&[ready, data, status]);
    assert_goes_on(&mut host);
}

#[test]
fn a_write_says_ready_then_moves_then_reports_its_status() {
    let mut host = host();
    let ready = host.command(1, &write_10(3, 1));
    assert_eq!(host.bytes_of(ready), write_ready(1));
    let status = host.want_status(1);
    let data = host.send_data(1, &[7; 512]);
    assert_eq!(host.account_of(data), (TransferStatus::Done, 512));
    assert_eq!(host.bytes_of(status), good(1));
    assert_eq!(host.medium.blocks(3, 1), [7; 512]);
    assert_goes_on(&mut host);
}

#[test]
fn a_data_phase_in_segments_has_one_ready() {
    let mut host = host();
    let ready = host.command(1, &read_10(0, 24));
    assert_eq!(host.bytes_of(ready), read_ready(1));
    let status = host.want_status(1);
    let data = host.want_data(1, 12288);
    assert_eq!(host.account_of(data), (TransferStatus::Done, 12288));
    assert_eq!(host.bytes_of(status), good(1));
    assert_goes_on(&mut host);
}

#[test]
fn reads_take_turns() {
    let mut host = host();
    let statuses: Vec<_> = (1..=3).map(|tag| host.command(tag, &read_10(tag, 1))).collect();
    assert_eq!(host.bytes_of(statuses[0]), read_ready(1));
    assert!(host.is_pending(statuses[1]), "one data phase at a time");
    let first = host.want_data(1, 512);
    assert_eq!(host.bytes_of(first), [1; 512]);
    assert_eq!(host.bytes_of(statuses[1]), read_ready(2));
    assert_eq!(host.bytes_of(statuses[2]), good(1));
    let second = host.want_data(2, 512);
    assert_eq!(host.bytes_of(second), [2; 512]);
    let (ready, status) = (host.want_status(3), host.want_status(2));
    assert_eq!(host.bytes_of(ready), read_ready(3));
    assert_eq!(host.bytes_of(status), good(2));
    let third = host.want_data(3, 512);
    let status = host.want_status(3);
    assert_eq!(host.bytes_of(third), [3; 512]);
    assert_eq!(host.bytes_of(status), good(3));
    assert_goes_on(&mut host);
}

#[test]
fn a_read_and_a_write_have_their_turns_beside_each_other() {
    let mut host = host();
    let read = host.command(1, &read_10(3, 1));
    let write = host.command(2, &write_10(4, 1));
    assert_eq!(host.bytes_of(read), read_ready(1));
    assert_eq!(host.bytes_of(write), write_ready(2));
    let data_out = host.send_data(2, &[7; 512]);
    let data_in = host.want_data(1, 512);
    assert_eq!(host.account_of(data_out), (TransferStatus::Done, 512));
    assert_eq!(host.bytes_of(data_in), [3; 512]);
    let (first, second) = (host.want_status(2), host.want_status(1));
    assert_eq!(host.bytes_of(first), good(2));
    assert_eq!(host.bytes_of(second), good(1));
    assert_goes_on(&mut host);
}

#[test]
fn a_refused_command_has_no_turn() {
    let mut host = host();
    let status = host.command(1, &[0xc0, 0, 0, 0, 0, 0]);
    assert_eq!(host.bytes_of(status), check(1, 0x05, (0x20, 0x00)));
    assert_goes_on(&mut host);
}

#[test]
fn a_read_error_in_the_middle_ends_the_data_before_the_status() {
    let mut host = host();
    host.medium.bad = Some(12);
    let ready = host.command(1, &read_10(0, 16));
    assert_eq!(host.bytes_of(ready), read_ready(1));
    let status = host.want_status(1);
    assert!(host.is_pending(status));
    let data = host.want_data(1, 8192);
    assert_eq!(host.account_of(data), (TransferStatus::Short, 4096));
    assert_eq!(host.bytes_of(status)[6], 0x02);
    host.assert_order(&[ready, data, status]);
    assert_goes_on(&mut host);
}

#[test]
fn a_turn_passes_on_when_its_holder_is_aborted() {
    let mut host = host();
    let first = host.command(1, &read_10(3, 16));
    let second = host.command(2, &read_10(4, 1));
    assert_eq!(host.bytes_of(first), read_ready(1));
    let data = host.want_data(1, 2048);
    assert_eq!(host.account_of(data), (TransferStatus::Done, 2048));
    let rest = host.want_data(1, 2048);
    assert!(host.is_pending(second));
    let third = host.manage(3, 0x01, 1);
    assert!(!host.is_pending(rest));
    assert_eq!(host.bytes_of(second), read_ready(2));
    assert_eq!(host.bytes_of(third), response(3, 0x00));
    let (data, status) = (host.want_data(2, 512), host.want_status(2));
    assert_eq!(host.bytes_of(data), [4; 512]);
    assert_eq!(host.bytes_of(status), good(2));
    assert_goes_on(&mut host);
}

#[test]
fn an_aborted_write_is_answered_when_the_medium_has_released_it() {
    let mut host = host();
    host.hold_medium();
    let ready = host.command(1, &write_10(3, 1));
    assert_eq!(host.bytes_of(ready), write_ready(1));
    let data = host.send_data(1, &[7; 512]);
    assert_eq!(host.account_of(data), (TransferStatus::Done, 512));
    let answer = host.manage(2, 0x01, 1);
    assert!(host.is_pending(answer), "the medium has not released it");
    host.release_medium();
    assert_eq!(host.bytes_of(answer), response(2, 0x00));
    assert_goes_on(&mut host);
}

#[test]
fn one_who_is_aborted_while_waiting_gets_no_turn() {
    let mut host = host();
    let first = host.command(1, &read_10(3, 1));
    let second = host.command(2, &read_10(4, 1));
    assert_eq!(host.bytes_of(first), read_ready(1));
    host.send_iu(&management_iu(3, 0x01, 2, 0));
    assert_eq!(host.bytes_of(second), response(3, 0x00));
    let (data, status) = (host.want_data(1, 512), host.want_status(1));
    assert_eq!(host.bytes_of(data), [3; 512]);
    assert_eq!(host.bytes_of(status), good(1));
    assert_goes_on(&mut host);
}

#[test]
fn a_turn_does_not_pass_to_one_who_is_aborted_too() {
    let mut host = host();
    let first = host.command(1, &read_10(3, 1));
    let second = host.command(2, &read_10(4, 1));
    assert_eq!(host.bytes_of(first), read_ready(1));
    host.send_iu(&management_iu(3, 0x02, 0, 0));
    assert_eq!(host.bytes_of(second), response(3, 0x00));
    assert_goes_on(&mut host);
}

/// The first one's end gives the second the memory that it waited for, just before that one ends too.
#[test]
fn memory_that_comes_to_one_who_is_aborted_too_brings_no_turn() {
    let mut host = host();
    let first = host.command(1, &write_10(0, 80));
    let second = host.command(2, &write_10(80, 80));
    assert_eq!(host.bytes_of(first), write_ready(1));
    host.send_iu(&management_iu(3, 0x02, 0, 0));
    assert_eq!(host.bytes_of(second), response(3, 0x00));
    assert_goes_on(&mut host);
}

#[test]
fn a_ready_that_the_host_has_not_taken_goes_with_its_command() {
    let mut host = host();
    host.send_iu(&command_iu(1, SIMPLE, 0, &read_10(3, 1)));
    host.send_iu(&management_iu(2, 0x01, 1, 0));
    let answer = host.want_status(2);
    assert_eq!(host.bytes_of(answer), response(2, 0x00));
    assert_goes_on(&mut host);
}

#[test]
fn a_full_task_set_is_reported_and_can_be_managed() {
    let mut host = host();
    host.hold_medium();
    let statuses: Vec<_> = (1..=6).map(|tag| host.command(tag, &read_10(tag, 1))).collect();
    host.send_iu(&command_iu(7, SIMPLE, 0, &TEST_UNIT_READY));
    assert_eq!(host.bytes_of(statuses[0]), status(7, 0x28));
    host.send_iu(&management_iu(8, 0x02, 0, 0));
    host.release_medium();
    assert_eq!(host.bytes_of(statuses[1]), response(8, 0x00));
    for id in &statuses[2..] {
        host.cancel(*id);
    }
    assert_goes_on(&mut host);
}

#[test]
fn answers_that_the_host_does_not_take_stop_the_command_pipe() {
    let mut host = host();
    host.hold_medium();
    let mut taken = 0;
    let waiting = loop {
        let iu = command_iu(taken, SIMPLE, 0, &read_10(3, 1));
        let next = host.send(bus::Pipe::plain(crate::device::COMMAND), &iu);
        if host.is_pending(next) {
            break next;
        }
        taken += 1;
    };
    assert_eq!(taken, 30, "six commands, eight slots to spare, sixteen answers without a slot");
    let refusals: Vec<_> = (0..9).map(|_| host.want_status(0)).collect();
    assert_eq!(host.bytes_of(refusals[0]), status(6, 0x28));
    assert_eq!(host.bytes_of(refusals[8]), status(14, 0x28));
    assert!(!host.is_pending(waiting));
}

#[test]
fn ius_queued_before_uas_is_selected_are_cancelled() {
    let mut host = HostFixture::bot(Speed::High);
    let command = bus::Pipe::plain(crate::device::COMMAND);
    let inquiry = command_iu(1, SIMPLE, 0, &[0x12, 0, 0, 0, 36, 0]);
    let queued = [&inquiry, &inquiry].map(|iu| host.send(command, iu));
    host.configure(1);
    for id in queued {
        assert_eq!(host.end_of(id).status, bus::TransferStatus::Cancelled);
    }
    assert_goes_on(&mut host);
}

#[test]
fn a_long_iu_is_joined_of_its_packets_at_full_speed() {
    let mut host = HostFixture::uas(Speed::Full);
    // 36 additional bytes: 68 in all, which is a packet and four bytes.
    let mut iu = command_iu(1, SIMPLE, 0, &[0xc0]);
    iu[6] = 36;
    iu.resize(68, 0);
    let status = host.want_status(1);
    host.send_iu(&iu);
    assert_eq!(host.bytes_of(status), check(1, 0x05, (0x20, 0x00)));
    assert_goes_on(&mut host);
}

#[test]
fn an_iu_of_one_whole_packet_is_taken_at_full_speed() {
    for ends_with_an_empty_packet in [false, true] {
        let mut host = HostFixture::uas(Speed::Full);
        let mut iu = command_iu(1, SIMPLE, 0, &[0xc0]);
        iu[6] = 32;
        iu.resize(64, 0);
        let status = host.want_status(1);
        host.send_iu(&iu);
        if ends_with_an_empty_packet {
            host.send_iu(&[]);
        }
        assert_eq!(host.bytes_of(status), check(1, 0x05, (0x20, 0x00)));
        assert_goes_on(&mut host);
    }
}

#[test]
fn a_list_that_reports_its_own_length_comes_in_one_turn() {
    for bytes in [9, 63, 64, 65, 128, 512, 520] {
        let mut host = host();
        let ready = host.command(1, &FORMAT_WITH_LIST);
        assert_eq!(host.bytes_of(ready), write_ready(1), "{bytes}");
        let status = host.want_status(1);
        let list = host.send_data(1, &format_list(bytes));
        assert_eq!(host.account_of(list), (TransferStatus::Done, bytes.into()), "{bytes}");
        assert_eq!(host.bytes_of(status), good(1), "{bytes}");
        assert_eq!(host.medium.blocks(2047, 1), [0xa5; 512]);
        assert_goes_on(&mut host);
    }
}

#[test]
fn a_list_that_is_refused_by_its_head_leaves_the_turn_to_others() {
    let mut host = host();
    let ready = host.command(1, &FORMAT_WITH_LIST);
    assert_eq!(host.bytes_of(ready), write_ready(1));
    let refused = host.want_status(1);
    let mut list = format_list(200);
    list[4] = 0x20;
    host.send_data(1, &list);
    assert_eq!(host.bytes_of(refused)[6], 0x02);
    let ready = host.command(2, &write_10(3, 1));
    assert_eq!(host.bytes_of(ready), write_ready(2));
    let status = host.want_status(2);
    host.send_data(2, &[7; 512]);
    assert_eq!(host.bytes_of(status), good(2));
    assert_eq!(host.medium.blocks(3, 1), [7; 512]);
    assert_goes_on(&mut host);
}
