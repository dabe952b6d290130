//! Without streams: READY IUs, statuses with unknown tags.

use super::*;

impl Script<Uas> {
    /// Submits a command; its status transfer and the COMMAND IU, which is taken.
    #[track_caller]
    fn run_in_turn(&mut self, command: Command) -> Transfer {
        self.submit(command);
        let status = self.expect_transfer(STATUS);
        assert_eq!(status.pipe.stream, None);
        let iu = self.expect_transfer(COMMAND);
        self.done(iu);
        status
    }
}

#[test]
fn a_ready_iu_first_brings_a_new_status_transfer_and_then_the_data() {
    let mut script = without_streams();
    let first = script.run_in_turn(read_10(0, 0, 8));
    script.expect_nothing();
    script.reply(first, &[6, 0, 0, 1]);
    let second = script.expect_transfer(STATUS);
    let payload = script.expect_transfer(DATA_IN);
    assert_eq!((payload.length, payload.pipe.stream), (4096, None));
    script.done(payload);
    script.reply(second, &sense_iu(1, 0));
    assert_eq!(script.expect_finished(0), good(4096));
    script.expect_rest();
}

#[test]
fn a_write_waits_for_its_write_ready() {
    let mut script = without_streams();
    let first = script.run_in_turn(write_10(0, 0, 8));
    script.reply(first, &[7, 0, 0, 1]);
    let second = script.expect_transfer(STATUS);
    let payload = script.expect_transfer(DATA_OUT);
    script.done(payload);
    script.reply(second, &sense_iu(1, 0));
    assert_eq!(script.expect_finished(0), good(4096));
    script.expect_rest();
}

#[test]
fn any_status_transfer_may_bring_any_status() {
    let mut script = without_streams();
    let first = script.run_in_turn(test_unit_ready(0));
    let second = script.run_in_turn(test_unit_ready(1));
    script.reply(first, &sense_iu(2, 0));
    assert_eq!(script.expect_finished(1), good(0));
    script.reply(second, &sense_iu(1, 0));
    assert_eq!(script.expect_finished(0), good(0));
    script.expect_rest();
}

#[test]
fn a_command_that_ends_without_being_asked_for_its_data_has_moved_none() {
    let mut script = without_streams();
    let status = script.run_in_turn(read_10(0, 0, 8));
    script.reply(status, &sense_iu(1, 0));
    assert_eq!(script.expect_finished(0), good(0));
    script.expect_rest();
}

#[test]
fn no_more_than_sixteen_status_transfers_are_queued() {
    let mut script = without_streams();
    let mut statuses = Vec::new();
    for slot in 0..30 {
        if slot < 16 {
            statuses.push(script.run_in_turn(test_unit_ready(slot)));
        } else {
            script.submit(test_unit_ready(slot));
            let iu = script.expect_transfer(COMMAND);
            script.done(iu);
        }
    }
    for (index, tag) in (1..=30u8).enumerate() {
        script.reply(statuses[index], &sense_iu(tag, 0));
        assert_eq!(script.expect_finished(u16::from(tag) - 1), good(0));
        if index < 14 {
            statuses.push(script.expect_transfer(STATUS));
        }
    }
    script.expect_rest();
}

#[test]
fn ius_with_unknown_tags_are_dropped() {
    let mut script = without_streams();
    let mut status = script.run_in_turn(test_unit_ready(0));
    for iu in [&sense_iu(2, 0)[..], &[6, 0, 0, 9], &response_iu(31, 0), &sense_iu(0, 0), &[0xff], &[]] {
        script.reply(status, iu);
        status = script.expect_transfer(STATUS);
    }
    script.reply(status, &sense_iu(1, 0));
    assert_eq!(script.expect_finished(0), good(0));
    assert_eq!(script.transport.counters().odd_statuses, 6);
    script.expect_rest();
}

/// The last of the statuses that are tolerated is the one that completes when the device is
/// gone.
#[test]
fn a_status_transfer_that_comes_back_from_a_device_that_is_gone_resets_no_port() {
    let mut script = without_streams();
    let mut status = script.run_in_turn(test_unit_ready(0));
    for _ in 0..16 {
        script.reply(status, &sense_iu(2, 0));
        status = script.expect_transfer(STATUS);
    }
    script.disconnect();
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Disconnected));
    script.cancelled(status);
    script.expect_rest();
}

#[test]
fn a_second_status_of_a_command_is_dropped() {
    let mut script = without_streams();
    let first = script.run_in_turn(test_unit_ready(0));
    let second = script.run_in_turn(test_unit_ready(1));
    script.reply(first, &sense_iu(1, 0));
    assert_eq!(script.expect_finished(0), good(0));
    script.reply(second, &sense_iu(1, 2));
    let third = script.expect_transfer(STATUS);
    script.reply(third, &sense_iu(2, 0));
    assert_eq!(script.expect_finished(1), good(0));
    script.expect_rest();
}

#[test]
fn a_ready_iu_for_the_wrong_direction_or_twice_makes_the_command_faulty() {
    for again in [[7, 0, 0, 1], [6, 0, 0, 1]] {
        let mut script = without_streams();
        let status = script.run_in_turn(read_10(0, 0, 1));
        script.reply(status, &[6, 0, 0, 1]);
        let status = script.expect_transfer(STATUS);
        let payload = script.expect_transfer(DATA_IN);
        script.reply(status, &again);
        let first = script.expect_transfer(STATUS);
        script.expect_cancel(payload.id);
        script.expect_nothing();
        script.fail(payload, TransferStatus::Cancelled);
        let _second = script.expect_transfer(STATUS);
        let abort = script.expect_message(COMMAND, &management_iu(31, 1, 1));
        script.done(abort);
        script.reply(first, &response_iu(31, 0));
        assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::BadStatus));
    }
}

#[test]
fn an_endless_row_of_useless_statuses_brings_a_port_reset() {
    let mut script = without_streams();
    let mut status = script.run_in_turn(test_unit_ready(0));
    for _ in 0..LOST_STATUSES_MAX {
        script.fail(status, TransferStatus::Error);
        script.grant(BusRequest::ClearHalt(STATUS), BusAnswer::Done);
        status = script.expect_transfer(STATUS);
    }
    script.fail(status, TransferStatus::Error);
    script.grant(BusRequest::ResetPort, BusAnswer::Done);
    script.grant(BusRequest::SelectAlternate { interface: 0, alternate: 1 }, BusAnswer::Done);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Reset));
    script.expect_rest();
}

/// The device still has packets of this command, and the next one's come after them. It throws away
/// what it takes for a packet that has come before, or the host does.
#[test]
fn a_data_pipe_that_has_failed_is_cleared_before_anything_else_moves_there() {
    let mut script = without_streams();
    let first = script.run_in_turn(read_10(0, 0, 16));
    let second = script.run_in_turn(read_10(1, 0, 8));
    script.reply(first, &[6, 0, 0, 1]);
    let third = script.expect_transfer(STATUS);
    let payload = script.expect_transfer(DATA_IN);
    script.complete(payload.id, TransferStatus::Error, 3008, &[]);
    let clear = script.expect_request(BusRequest::ClearHalt(DATA_IN));
    script.expect_nothing();
    script.transport.handle_answer(script.now, clear, BusAnswer::Done);
    script.expect_transfer(STATUS);
    let abort = script.expect_message(COMMAND, &management_iu(31, 1, 1));
    script.done(abort);
    script.reply(second, &response_iu(31, 0));
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Bus));
    script.reply(third, &[6, 0, 0, 2]);
    let payload = script.expect_transfer(DATA_IN);
    assert_eq!(payload.length, 4096);
}

#[test]
fn a_halted_status_pipe_is_cleared_before_a_new_transfer_is_queued() {
    let mut script = without_streams();
    let status = script.run_in_turn(test_unit_ready(0));
    script.fail(status, TransferStatus::Stall);
    script.grant(BusRequest::ClearHalt(STATUS), BusAnswer::Done);
    let status = script.expect_transfer(STATUS);
    script.reply(status, &sense_iu(1, 0));
    assert_eq!(script.expect_finished(0), good(0));
    script.expect_rest();
}

/// A device that has released a write would take its data for those of the next.
#[test]
fn a_task_to_be_aborted_is_given_no_data_any_more() {
    let mut script = without_streams();
    let status = script.run_in_turn(write_10(0, 0, 8));
    script.abort(0);
    let other = script.expect_transfer(STATUS);
    let abort = script.expect_message(COMMAND, &management_iu(31, 1, 1));
    script.done(abort);
    script.reply(status, &[7, 0, 0, 1]);
    script.expect_transfer(STATUS);
    script.expect_nothing();
    script.reply(other, &response_iu(31, 0));
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Aborted));
}

#[test]
fn a_command_that_was_answered_and_never_taken_is_cancelled() {
    let mut script = without_streams();
    script.submit(test_unit_ready(0));
    let status = script.expect_transfer(STATUS);
    let iu = script.expect_transfer(COMMAND);
    script.reply(status, &sense_iu(1, 0));
    script.cancelled(iu);
    assert_eq!(script.expect_finished(0), good(0));
    script.expect_rest();
}
