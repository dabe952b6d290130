//! With streams: order, tags, malformed statuses, missing data.

use super::*;
use alloc::vec;

#[test]
fn a_read_queues_status_then_data_then_the_command() {
    let mut script = with_streams();
    script.submit(read_10(5, 0x0102_0304, 8));
    let status = script.expect_transfer(STATUS);
    assert_eq!(status.pipe.stream.map(|stream| stream.get()), Some(1));
    assert_eq!((status.length, status.payload), (112, Payload::Message));
    let payload = script.expect_transfer(DATA_IN);
    assert_eq!(payload.pipe.stream.map(|stream| stream.get()), Some(1));
    let piece = crate::BufferRange { command: read_10(5, 0, 0).id, range: units::ByteRange::new(0, 4096) };
    assert_eq!((payload.length, payload.payload), (4096, Payload::Buffer(piece)));
    let mut iu = [0; 32];
    iu[..4].copy_from_slice(&[1, 0, 0, 1]);
    iu[16..26].copy_from_slice(&[0x28, 0, 1, 2, 3, 4, 0, 0, 8, 0]);
    let command = script.expect_message(COMMAND, &iu);
    assert_eq!(command.pipe.stream, None);
    script.done(command);
    script.done(payload);
    script.expect_nothing();
    script.reply(status, &sense_iu(1, 0));
    assert_eq!(script.expect_finished(5), good(4096));
    script.expect_rest();
}

#[test]
fn a_long_command_block_follows_the_iu_in_whole_dwords() {
    let mut script = with_streams();
    let mut cdb = [0; 18];
    (cdb[0], cdb[16], cdb[17]) = (0x7f, 0xaa, 0xbb);
    script.submit(command(0, &cdb, None));
    script.expect_transfer(STATUS);
    let mut iu = [0; 36];
    iu[..7].copy_from_slice(&[1, 0, 0, 1, 0, 0, 4]);
    (iu[16], iu[32], iu[33]) = (0x7f, 0xaa, 0xbb);
    script.expect_message(COMMAND, &iu);
}

#[test]
fn the_depth_is_two_below_the_streams_by_default() {
    let depth = |streams, depth| Uas::new(UasConfig { depth, ..config(streams) }).map(|uas| uas.depth());
    assert_eq!(depth(Some(16), None), Ok(14));
    assert_eq!(depth(Some(255), None), Ok(253));
    assert_eq!(depth(Some(256), None), Ok(254));
    assert_eq!(depth(Some(65533), None), Ok(254));
    assert_eq!(depth(Some(2), None), Ok(1));
    assert_eq!(depth(Some(16), Some(4)), Ok(4));
    assert_eq!(depth(Some(16), Some(16)), Ok(15));
    assert_eq!(depth(Some(1), None), Err(TooFewStreams { granted: 1 }));
    assert_eq!(depth(None, None), Ok(30));
    assert_eq!(depth(None, Some(300)), Ok(254));
}

#[test]
fn one_more_than_the_depth_is_refused() {
    let mut script = with_streams();
    for slot in 0..14 {
        script.run(test_unit_ready(slot));
    }
    assert_eq!(script.try_submit(test_unit_ready(14)), Err(Refusal::Full));
}

#[test]
fn commands_end_in_any_order_and_tags_are_used_again() {
    let mut script = with_streams();
    let first = script.run(read_10(0, 0, 1));
    let second = script.run(write_10(1, 8, 1));
    script.done(second.payload);
    script.reply(second.status, &sense_iu(2, 0));
    assert_eq!(script.expect_finished(1), good(512));
    let third = script.run(test_unit_ready(2));
    assert_eq!(third.status.pipe.stream.map(|stream| stream.get()), Some(2));
    script.done(first.payload);
    script.reply(first.status, &sense_iu(1, 0));
    assert_eq!(script.expect_finished(0), good(512));
    script.reply(third.status, &sense_iu(2, 0));
    assert_eq!(script.expect_finished(2), good(0));
    script.expect_rest();
}

#[test]
fn a_good_status_before_its_data_waits_for_them() {
    let mut script = with_streams();
    let read = script.run(read_10(0, 0, 8));
    script.reply(read.status, &sense_iu(1, 0));
    script.expect_nothing();
    script.complete(read.payload.id, TransferStatus::Short, 100, &[]);
    assert_eq!(script.expect_finished(0), good(100));
    script.expect_rest();
}

#[test]
fn data_that_do_not_come_after_a_good_status_are_cancelled_in_the_end() {
    let mut script = with_streams();
    let read = script.run(read_10(0, 0, 8));
    script.reply(read.status, &sense_iu(1, 0));
    script.expect_timeout(DeadlineReason::DataAfterStatus(read_10(0, 0, 8).id));
    assert_eq!(script.now, Instant::ZERO + Duration::from_ms(200));
    script.expect_cancel(read.payload.id);
    script.complete(read.payload.id, TransferStatus::Cancelled, 1024, &[]);
    assert_eq!(script.expect_finished(0), good(1024));
    script.expect_rest();
}

#[test]
fn an_unsuccessful_status_takes_the_data_back_at_once() {
    let mut script = with_streams();
    let read = script.run(read_10(0, 0, 8));
    let sense = [0x72, 0x03, 0x11, 0, 0, 0, 0, 0];
    let mut iu = sense_iu(1, 2).to_vec();
    iu[15] = 8;
    iu.extend(sense);
    script.reply(read.status, &iu);
    script.cancelled(read.payload);
    let answer = Answer {
        status: Status::CheckCondition,
        status_qualifier: 0,
        moved: 0,
        sense: SenseBytes::new(&sense),
    };
    assert_eq!(script.expect_finished(0), Outcome::Answered(answer));
    script.expect_rest();
}

#[test]
fn sense_data_shorter_than_their_length_says_are_taken_as_they_are() {
    let mut script = with_streams();
    let command = script.run(test_unit_ready(0));
    let mut iu = sense_iu(1, 2).to_vec();
    iu[14..].copy_from_slice(&[0x01, 0x00]);
    iu.extend([0x70, 0, 2]);
    script.reply(command.status, &iu);
    let Outcome::Answered(answer) = script.expect_finished(0) else { panic!("it was answered") };
    assert_eq!(answer.sense.as_bytes(), [0x70, 0, 2]);
}

#[test]
fn sense_data_longer_than_their_length_says_are_cut() {
    let mut script = with_streams();
    let command = script.run(test_unit_ready(0));
    let mut iu = sense_iu(1, 2).to_vec();
    iu[15] = 2;
    iu.extend([0x70, 0, 2, 9, 9]);
    script.reply(command.status, &iu);
    let Outcome::Answered(answer) = script.expect_finished(0) else { panic!("it was answered") };
    assert_eq!(answer.sense.as_bytes(), [0x70, 0]);
}

#[test]
fn a_status_qualifier_comes_through() {
    let mut script = with_streams();
    let command = script.run(test_unit_ready(0));
    let mut iu = sense_iu(1, 0x28);
    iu[5] = 7;
    script.reply(command.status, &iu);
    let Outcome::Answered(answer) = script.expect_finished(0) else { panic!("it was answered") };
    assert_eq!((answer.status, answer.status_qualifier), (Status::TaskSetFull, 7));
}

#[test]
fn a_response_in_the_place_of_a_status_ends_the_command() {
    use wire::uas::ResponseCode;
    let codes = [
        (0x02, ResponseCode::InvalidIu),
        (0x09, ResponseCode::IncorrectLun),
        (0x0a, ResponseCode::OverlappedTag),
    ];
    for (code, expected) in codes {
        let mut script = with_streams();
        let read = script.run(read_10(0, 0, 1));
        script.reply(read.status, &response_iu(1, code));
        script.cancelled(read.payload);
        assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Refused(expected)));
        script.expect_rest();
    }
}

#[test]
fn a_ready_iu_uses_up_no_status() {
    let mut script = with_streams();
    let read = script.run(read_10(0, 0, 1));
    script.reply(read.status, &[6, 0, 0, 1]);
    let status = script.expect_transfer(STATUS);
    assert_eq!(status.pipe, read.status.pipe);
    script.done(read.payload);
    script.reply(status, &sense_iu(1, 0));
    assert_eq!(script.expect_finished(0), good(512));
    script.expect_rest();
}

#[test]
fn a_status_before_its_command_is_a_late_one_of_an_earlier() {
    let mut script = with_streams();
    let command = script.start(test_unit_ready(0));
    script.reply(command.status, &sense_iu(1, 2));
    let status = script.expect_transfer(STATUS);
    script.done(command.command);
    script.reply(status, &sense_iu(1, 0));
    assert_eq!(script.expect_finished(0), good(0));
    assert_eq!(script.transport.counters().odd_statuses, 1);
}

#[test]
fn a_status_before_its_command_of_which_no_data_have_moved_is_a_late_one_as_well() {
    let mut script = with_streams();
    let read = script.start(read_10(0, 0, 8));
    script.reply(read.status, &sense_iu(1, 0));
    let status = script.expect_transfer(STATUS);
    script.done(read.payload);
    script.done(read.command);
    script.expect_nothing();
    script.reply(status, &sense_iu(1, 2));
    let Outcome::Answered(answer) = script.expect_finished(0) else { panic!("it was answered") };
    assert_eq!(answer.status, Status::CheckCondition);
    assert_eq!(script.transport.counters().odd_statuses, 1);
}

/// The device has acknowledged the IU, and that was lost: the host asks once more when the command
/// has ended.
#[test]
fn a_status_after_the_data_is_that_of_the_command_whose_iu_is_in_flight() {
    for command in [read_10(0, 0, 8), write_10(0, 0, 8)] {
        let mut script = with_streams();
        let started = script.start(command);
        script.done(started.payload);
        script.reply(started.status, &sense_iu(1, 0));
        script.expect_nothing();
        script.done(started.command);
        assert_eq!(script.expect_finished(0), good(4096));
        assert_eq!(script.transport.counters().odd_statuses, 0);
        script.expect_rest();
    }
}

#[test]
fn an_iu_that_was_answered_and_does_not_end_is_cancelled() {
    let mut script = with_streams();
    let read = script.start(read_10(0, 0, 8));
    script.done(read.payload);
    script.reply(read.status, &sense_iu(1, 0));
    script.expect_timeout(DeadlineReason::DataAfterStatus(read_10(0, 0, 8).id));
    assert_eq!(script.now, Instant::ZERO + Duration::from_ms(200));
    script.cancelled(read.command);
    assert_eq!(script.expect_finished(0), good(4096));
    script.expect_rest();
}

#[test]
fn statuses_that_are_none_have_an_end() {
    let mut script = with_streams();
    let mut status = script.run(test_unit_ready(0)).status;
    for _ in 0..ODD_STATUSES_MAX {
        script.reply(status, &[]);
        status = script.expect_transfer(STATUS);
    }
    script.reply(status, &[]);
    script.refuse_to_abort(1);
    script.release_at_unit_reset();
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::BadStatus));
}

#[test]
fn an_iu_that_is_none_or_of_another_tag_makes_the_command_faulty() {
    let bad = [vec![9; 16], vec![3, 0, 0], sense_iu(2, 0).to_vec(), response_iu(3, 0).to_vec()];
    for iu in bad {
        let mut script = with_streams();
        let command = script.run(test_unit_ready(0));
        script.reply(command.status, &iu);
        script.abort_succeeds(1);
        assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::BadStatus), "{iu:02x?}");
        script.expect_rest();
    }
}

#[test]
fn an_iu_that_is_too_long_makes_the_command_faulty() {
    let mut script = with_streams();
    let read = script.run(read_10(0, 0, 1));
    script.complete(read.status.id, TransferStatus::Babble, 112, &[3; 112]);
    script.grant(BusRequest::ClearHalt(STATUS), BusAnswer::Done);
    script.abort_succeeds(1);
    script.cancelled(read.payload);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Babble));
    script.expect_rest();
}

#[test]
fn a_halted_data_pipe_is_cleared_and_the_status_decides() {
    let mut script = with_streams();
    let read = script.run(read_10(0, 0, 8));
    script.complete(read.payload.id, TransferStatus::Stall, 512, &[]);
    script.grant(BusRequest::ClearHalt(DATA_IN), BusAnswer::Done);
    script.reply(read.status, &sense_iu(1, 2));
    let Outcome::Answered(answer) = script.expect_finished(0) else { panic!("it was answered") };
    assert_eq!((answer.status, answer.moved), (Status::CheckCondition, 512));
    script.expect_rest();
}

#[test]
fn a_good_status_after_data_that_stalled_or_babbled_is_not_believed() {
    for (status, failure) in
        [(TransferStatus::Stall, Failure::Stalled), (TransferStatus::Babble, Failure::Babble)]
    {
        let mut script = with_streams();
        let read = script.run(read_10(0, 0, 1));
        script.fail(read.payload, status);
        script.grant(BusRequest::ClearHalt(DATA_IN), BusAnswer::Done);
        script.reply(read.status, &sense_iu(1, 0));
        assert_eq!(script.expect_finished(0), Outcome::Failed(failure));
        script.expect_rest();
    }
}

/// The host's end counts packets again, and the device's would take the next for one that comes
/// again.
#[test]
fn a_pipe_that_has_failed_is_cleared_before_the_command_is_aborted() {
    for (pipe, which) in [(STATUS, 0), (DATA_IN, 1), (COMMAND, 2)] {
        let mut script = with_streams();
        let read = script.start(read_10(0, 0, 8));
        let failed = [read.status, read.payload, read.command][which];
        script.fail(failed, TransferStatus::Error);
        let clear = script.expect_request(BusRequest::ClearHalt(pipe));
        script.expect_nothing();
        script.transport.handle_answer(script.now, clear, BusAnswer::Done);
        script.abort_succeeds(1);
    }
}

#[test]
fn while_an_endpoint_is_halted_new_commands_wait() {
    let mut script = with_streams();
    let write = script.run(write_10(0, 0, 1));
    script.fail(write.payload, TransferStatus::Stall);
    let clear = script.expect_request(BusRequest::ClearHalt(DATA_OUT));
    script.submit(test_unit_ready(1));
    script.expect_nothing();
    script.transport.handle_answer(script.now, clear, BusAnswer::Done);
    let command = script.expect_started(test_unit_ready(1));
    script.done(command.command);
    script.reply(command.status, &sense_iu(2, 0));
    assert_eq!(script.expect_finished(1), good(0));
}

#[test]
fn a_halted_status_pipe_is_cleared_and_every_status_waited_for_again() {
    let mut script = with_streams();
    let commands: Vec<_> = (0..2).map(|slot| script.run(test_unit_ready(slot))).collect();
    for command in &commands {
        script.fail(command.status, TransferStatus::Stall);
    }
    script.grant(BusRequest::ClearHalt(STATUS), BusAnswer::Done);
    for (slot, command) in (0..).zip(&commands) {
        let status = script.expect_transfer(STATUS);
        assert_eq!(status.pipe, command.status.pipe);
        script.reply(status, &sense_iu(slot + 1, 0));
    }
    for slot in 0..2 {
        assert_eq!(script.expect_finished(slot), good(0));
    }
    script.expect_rest();
}

#[test]
fn a_command_that_stalls_is_sent_once_more() {
    let mut script = with_streams();
    let command = script.start(test_unit_ready(0));
    script.fail(command.command, TransferStatus::Stall);
    script.grant(BusRequest::ClearHalt(COMMAND), BusAnswer::Done);
    let again = script.expect_transfer(COMMAND);
    assert_eq!(again.payload, command.command.payload);
    script.fail(again, TransferStatus::Stall);
    script.grant(BusRequest::ClearHalt(COMMAND), BusAnswer::Done);
    script.abort_succeeds(1);
    script.cancelled(command.status);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Stalled));
    script.expect_rest();
}

#[test]
fn a_command_outlives_its_device_until_its_transfers_are_back() {
    let mut script = with_streams();
    let read = script.run(read_10(0, 0, 1));
    script.disconnect();
    script.expect_cancel(read.status.id);
    script.expect_cancel(read.payload.id);
    script.fail(read.payload, TransferStatus::Disconnected);
    script.expect_nothing();
    script.fail(read.status, TransferStatus::Disconnected);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Disconnected));
    assert_eq!(script.try_submit(test_unit_ready(0)), Err(Refusal::Gone));
    script.expect_rest();
}

#[test]
fn a_transfer_that_says_the_device_is_gone_is_believed() {
    let mut script = with_streams();
    let read = script.run(read_10(0, 0, 1));
    script.fail(read.status, TransferStatus::Disconnected);
    script.cancelled(read.payload);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Disconnected));
    script.expect_rest();
}
