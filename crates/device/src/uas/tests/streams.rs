//! Super speed: the tag of a command is the stream of its status and its data.

use super::assert_goes_on;
use crate::Verdict;
use crate::host_fixture::HostFixture;
use crate::host_fixture::uas::{
    FORMAT_WITH_LIST, SIMPLE, TEST_UNIT_READY, check, command_iu, format_list, good, read_10, status,
    write_10,
};
use alloc::vec::Vec;
use bus::{Speed, TransferStatus};

fn host() -> HostFixture {
    HostFixture::uas(Speed::Super)
}

#[test]
fn a_command_without_data_brings_a_status() {
    let mut host = host();
    let status = host.command(1, &TEST_UNIT_READY);
    assert_eq!(host.bytes_of(status), good(1));
    assert_goes_on(&mut host);
}

#[test]
fn a_read_brings_its_data_before_its_status() {
    let mut host = host();
    let read = host.read_command(5, 1024, &read_10(3, 2));
    assert_eq!(host.bytes_of(read.data), [[3; 512], [4; 512]].concat());
    assert_eq!(host.bytes_of(read.status), good(5));
    host.assert_order(&[read.data, read.status]);
    assert_goes_on(&mut host);
}

#[test]
fn a_write_takes_its_data_before_its_status() {
    let mut host = host();
    let write = host.write_command(5, &[7; 1024], &write_10(3, 2));
    assert_eq!(host.account_of(write.data), (TransferStatus::Done, 1024));
    assert_eq!(host.bytes_of(write.status), good(5));
    host.assert_order(&[write.data, write.status]);
    assert_eq!(host.medium.blocks(3, 2), [7; 1024]);
    assert_goes_on(&mut host);
}

#[test]
fn a_read_in_segments_arrives_whole() {
    let mut host = host();
    host.hold_medium();
    let read = host.read_command(1, 12288, &read_10(0, 24));
    assert_eq!(host.medium.requests.len(), 3);
    host.answer_medium(2);
    host.answer_medium(0);
    assert!(host.is_pending(read.data));
    host.answer_medium(0);
    let expected: Vec<u8> = (0..24).flat_map(|block| [block; 512]).collect();
    assert_eq!(host.bytes_of(read.data), expected);
    assert_eq!(host.bytes_of(read.status), good(1));
    assert_goes_on(&mut host);
}

#[test]
fn commands_end_in_the_order_of_the_medium() {
    let mut host = host();
    host.hold_medium();
    let first = host.read_command(1, 512, &read_10(3, 1));
    let second = host.read_command(2, 512, &read_10(4, 1));
    let third = host.write_command(3, &[7; 512], &write_10(5, 1));
    host.answer_medium(2);
    assert_eq!(host.bytes_of(third.status), good(3));
    host.answer_medium(1);
    assert_eq!(host.bytes_of(second.data), [4; 512]);
    assert_eq!(host.bytes_of(second.status), good(2));
    assert!(host.is_pending(first.data));
    host.answer_medium(0);
    assert_eq!(host.bytes_of(first.data), [3; 512]);
    host.assert_order(&[third.status, second.status, first.status]);
    assert_goes_on(&mut host);
}

#[test]
fn a_host_with_too_large_a_buffer_gets_a_short_transfer() {
    for blocks in [1, 2] {
        let mut host = host();
        let read = host.read_command(1, 4096, &read_10(3, blocks));
        assert_eq!(host.account_of(read.data), (TransferStatus::Short, 512 * usize::from(blocks)));
        assert_eq!(host.bytes_of(read.status), good(1));
        assert_goes_on(&mut host);
    }
}

#[test]
fn a_host_with_too_small_a_buffer_may_add_another() {
    let mut host = host();
    let read = host.read_command(1, 1024, &read_10(3, 4));
    assert_eq!(host.bytes_of(read.data), [[3; 512], [4; 512]].concat());
    assert!(host.is_pending(read.status));
    let rest = host.want_data(1, 1024);
    assert_eq!(host.bytes_of(rest), [[5; 512], [6; 512]].concat());
    assert_eq!(host.bytes_of(read.status), good(1));
    assert_goes_on(&mut host);
}

#[test]
fn a_host_with_room_for_part_of_a_packet_is_reported_by_babble() {
    let mut host = host();
    let read = host.read_command(1, 100, &read_10(3, 1));
    assert_eq!(host.account_of(read.data), (TransferStatus::Babble, 0));
    assert_eq!(host.bytes_of(read.status), good(1));
    assert_goes_on(&mut host);
}

#[test]
fn data_that_a_command_does_not_have_is_ended() {
    let mut host = host();
    let (data_in, data_out) = (host.want_data(1, 512), host.send_data(1, &[7; 512]));
    let status = host.command(1, &TEST_UNIT_READY);
    assert_eq!(host.account_of(data_in), (TransferStatus::Short, 0));
    assert_eq!(host.account_of(data_out), (TransferStatus::Done, 512));
    assert_eq!(host.bytes_of(status), good(1));
    assert_goes_on(&mut host);
}

#[test]
fn a_second_transfer_for_data_that_is_over_is_ended() {
    let mut host = host();
    let (first, second) = (host.want_data(1, 512), host.want_data(1, 512));
    let status = host.command(1, &read_10(3, 1));
    assert_eq!(host.bytes_of(first), [3; 512]);
    assert_eq!(host.account_of(second), (TransferStatus::Short, 0));
    assert_eq!(host.bytes_of(status), good(1));
    assert_goes_on(&mut host);
}

#[test]
fn a_refused_read_ends_its_data_and_then_reports_why() {
    let mut host = host();
    let read = host.read_command(1, 512, &[0xc0, 0, 0, 0, 0, 0]);
    assert_eq!(host.account_of(read.data), (TransferStatus::Short, 0));
    assert_eq!(host.bytes_of(read.status), check(1, 0x05, (0x20, 0x00)));
    host.assert_order(&[read.data, read.status]);
    assert_goes_on(&mut host);
}

#[test]
fn a_refused_write_swallows_its_data_and_then_reports_why() {
    let mut host = host();
    let write = host.write_command(1, &[7; 2048], &[0xc0, 0, 0, 0, 0, 0]);
    assert_eq!(host.account_of(write.data), (TransferStatus::Done, 2048));
    assert_eq!(host.bytes_of(write.status), check(1, 0x05, (0x20, 0x00)));
    assert_goes_on(&mut host);
}

#[test]
fn a_read_error_in_the_middle_ends_the_data_there() {
    let mut host = host();
    host.medium.bad = Some(12);
    let read = host.read_command(1, 8192, &read_10(0, 16));
    assert_eq!(host.account_of(read.data), (TransferStatus::Short, 4096));
    let sense = host.bytes_of(read.status);
    // MEDIUM ERROR, UNRECOVERED READ ERROR, with the block as information.
    assert_eq!(sense[..6], [0x03, 0, 0, 1, 0, 0]);
    assert_eq!(sense[16..32], [0xf0, 0, 0x03, 0, 0, 0, 12, 10, 0, 0, 0, 0, 0x11, 0x00, 0, 0]);
    assert_goes_on(&mut host);
}

#[test]
fn a_write_error_in_the_middle_takes_all_data() {
    let mut host = host();
    host.medium.bad = Some(4);
    let write = host.write_command(1, &[7; 8192], &write_10(0, 16));
    assert_eq!(host.account_of(write.data), (TransferStatus::Done, 8192));
    assert_eq!(host.bytes_of(write.status)[16..30], [0xf0, 0, 0x03, 0, 0, 0, 4, 10, 0, 0, 0, 0, 0x0c, 0x00]);
    assert_goes_on(&mut host);
}

#[test]
fn a_write_that_the_host_cuts_short_is_aborted() {
    let mut host = host();
    let write = host.write_command(1, &[7; 700], &write_10(3, 2));
    assert_eq!(host.account_of(write.data), (TransferStatus::Done, 700));
    assert_eq!(host.bytes_of(write.status), check(1, 0x0b, (0x4b, 0x00)));
    assert_eq!(host.medium.blocks(3, 2), [[3; 512], [4; 512]].concat());
    assert_goes_on(&mut host);
}

#[test]
fn a_status_waits_for_the_host() {
    let mut host = host();
    host.send_iu(&command_iu(1, SIMPLE, 0, &TEST_UNIT_READY));
    let status = host.want_status(1);
    assert_eq!(host.bytes_of(status), good(1));
    assert_goes_on(&mut host);
}

#[test]
fn a_full_task_set_is_reported_and_its_data_ended() {
    let mut host = host();
    host.hold_medium();
    let reads = [1, 2, 3, 4, 5, 6].map(|tag| host.read_command(tag, 512, &read_10(tag, 1)));
    let seventh = host.read_command(7, 512, &read_10(7, 1));
    assert_eq!(host.account_of(seventh.data), (TransferStatus::Short, 0));
    assert_eq!(host.bytes_of(seventh.status), status(7, 0x28));
    host.release_medium();
    for (tag, read) in (1..).zip(reads) {
        assert_eq!(host.bytes_of(read.data), [tag; 512]);
        assert_eq!(host.bytes_of(read.status), good(tag));
    }
    assert_goes_on(&mut host);
}

#[test]
fn commands_wait_for_memory_in_order() {
    let mut host = host();
    host.hold_medium();
    let first = host.read_command(1, 40960, &read_10(0, 80));
    let second = host.read_command(2, 40960, &read_10(80, 80));
    assert_eq!(host.medium.requests.len(), 10, "the buffers of both do not fit into 64 KiB");
    host.release_medium();
    assert_eq!(host.bytes_of(first.status), good(1));
    assert_eq!(host.bytes_of(second.status), good(2));
    assert_goes_on(&mut host);
}

#[test]
fn a_command_of_a_unit_that_is_not_there_is_refused() {
    let mut host = host();
    let status = host.want_status(1);
    host.send_iu(&command_iu(1, SIMPLE, 7, &TEST_UNIT_READY));
    assert_eq!(host.bytes_of(status), check(1, 0x05, (0x25, 0x00)));
    assert_goes_on(&mut host);
}

#[test]
fn a_tag_without_a_stream_is_not_answered() {
    let mut host = host();
    host.send_iu(&command_iu(0, SIMPLE, 0, &TEST_UNIT_READY));
    host.send_iu(&command_iu(9, SIMPLE, 0, &TEST_UNIT_READY));
    assert_goes_on(&mut host);
}

#[test]
fn an_earlier_setting_leaves_nothing_on_the_pipes() {
    let mut host = host();
    host.send_iu(&command_iu(1, SIMPLE, 0, &TEST_UNIT_READY));
    // A used tag: an answer without a slot.
    host.send_iu(&crate::host_fixture::uas::management_iu(1, 0x80, 2, 0));
    host.configure(1);
    let status = host.want_status(1);
    assert!(host.is_pending(status));
    host.send_iu(&command_iu(1, SIMPLE, 0, &TEST_UNIT_READY));
    assert_eq!(host.bytes_of(status), good(1));
    assert_goes_on(&mut host);
}

#[test]
fn a_write_from_before_a_reset_lands_before_the_next() {
    let mut host = host();
    host.hold_medium();
    host.write_command(1, &[1; 512], &write_10(3, 1));
    host.reset_port();
    host.configure(1);
    host.calm();
    let write = host.write_command(1, &[2; 512], &write_10(3, 1));
    let inquiry = host.read_command(2, 36, &[0x12, 0, 0, 0, 36, 0]);
    assert_eq!(host.bytes_of(inquiry.status), good(2), "what is not for the medium does not wait");
    assert_eq!(host.medium.requests.len(), 1);
    assert!(host.is_pending(write.status));
    host.release_medium();
    assert_eq!(host.bytes_of(write.status), good(1));
    assert_eq!(host.medium.blocks(3, 1), [2; 512]);
    assert_goes_on(&mut host);
}

#[test]
fn a_reset_in_the_middle_of_a_data_phase_gives_the_buffer_back() {
    let mut host = host();
    host.want_status(1);
    host.send_iu(&command_iu(1, SIMPLE, 0, &write_10(0, 16)));
    host.send_data(1, &[7; 4096]);
    host.reset_port();
    host.assert_at_rest();
    host.configure(1);
    host.calm();
    assert_goes_on(&mut host);
}

#[test]
fn a_host_that_cancels_its_transfers_can_bring_others() {
    let mut host = host();
    host.hold_medium();
    let read = host.read_command(1, 512, &read_10(3, 1));
    host.cancel(read.data);
    host.cancel(read.status);
    host.release_medium();
    let (data, status) = (host.want_data(1, 512), host.want_status(1));
    assert_eq!(host.bytes_of(data), [3; 512]);
    assert_eq!(host.bytes_of(status), good(1));
    assert_goes_on(&mut host);
}

#[test]
fn a_halted_data_pipe_goes_on_when_it_is_cleared() {
    let mut host = host();
    let halt = [0x02, 0x03, 0, 0, 0x81, 0, 0, 0];
    assert_eq!(host.control(halt, &[]), Verdict::Done);
    let read = host.read_command(1, 512, &read_10(3, 1));
    assert_eq!(host.account_of(read.data), (TransferStatus::Stall, 0));
    host.clear_halt(crate::device::DATA_IN);
    let data = host.want_data(1, 512);
    assert_eq!(host.bytes_of(data), [3; 512]);
    assert_eq!(host.bytes_of(read.status), good(1));
    assert_goes_on(&mut host);
}

#[test]
fn a_list_that_reports_its_own_length_comes_on_its_stream() {
    for bytes in [9, 64, 65, 520] {
        let mut host = host();
        let status = host.want_status(3);
        let list = host.send_data(3, &format_list(bytes));
        host.send_iu(&command_iu(3, SIMPLE, 0, &FORMAT_WITH_LIST));
        assert_eq!(host.account_of(list), (TransferStatus::Done, bytes.into()), "{bytes}");
        assert_eq!(host.bytes_of(status), good(3), "{bytes}");
        assert_eq!(host.medium.blocks(0, 1), [0xa5; 512]);
        assert_goes_on(&mut host);
    }
}
