//! Error recovery, step by step.

use super::*;
use crate::StreamEndpoints;
use wire::scsi::lun::Lun;

const SELECT: BusRequest = BusRequest::SelectAlternate { interface: 0, alternate: 1 };
const ALLOCATE: BusRequest = BusRequest::AllocateStreams {
    endpoints: StreamEndpoints { status: STATUS, data_in: DATA_IN, data_out: DATA_OUT },
    wanted: 16,
};

impl Script<Uas> {
    /// The next outputs are this function, under one of the two tags after those of commands in
    /// turn; its IU is taken.
    #[track_caller]
    fn expect_function(&mut self, function: u8, managed: u8) -> Transfer {
        let tag = 15 + (self.tag % 2) as u8;
        self.tag += 1;
        let status = self.expect_transfer(STATUS);
        assert_eq!(status.pipe.stream.map(|stream| stream.get()), Some(tag.into()));
        let iu = self.expect_message(COMMAND, &management_iu(tag, function, managed));
        self.done(iu);
        status
    }

    /// The response to a function.
    #[track_caller]
    fn respond(&mut self, status: Transfer, code: u8) {
        let tag = status.pipe.stream.expect("functions have streams here").get() as u8;
        self.reply(status, &response_iu(tag, code));
    }

    #[track_caller]
    pub(super) fn abort_succeeds(&mut self, tag: u8) {
        let status = self.expect_function(0x01, tag);
        self.respond(status, 0);
    }

    #[track_caller]
    pub(super) fn refuse_to_abort(&mut self, tag: u8) {
        let status = self.expect_function(0x01, tag);
        self.respond(status, 5);
    }

    #[track_caller]
    pub(super) fn release_at_unit_reset(&mut self) {
        let status = self.expect_function(0x08, 0);
        self.respond(status, 0);
    }

    /// The function stays without an answer until its time is over.
    #[track_caller]
    fn ignore_function(&mut self, function: u8, managed: u8, reason: DeadlineReason) {
        let status = self.expect_function(function, managed);
        self.expect_timeout(reason);
        self.cancelled(status);
    }

    /// Up to the port.
    #[track_caller]
    fn ignore_every_function(&mut self, managed: u8) {
        self.ignore_function(0x01, managed, DeadlineReason::AbortTask);
        self.ignore_function(0x08, 0, DeadlineReason::LogicalUnitReset);
        self.ignore_function(0x10, 0, DeadlineReason::NexusReset);
    }

    #[track_caller]
    fn reset_port(&mut self) {
        self.grant(BusRequest::ResetPort, BusAnswer::Done);
        self.grant(SELECT, BusAnswer::Done);
        self.grant(ALLOCATE, BusAnswer::Streams(16));
    }
}

/// A command whose time is over.
fn late() -> (Script<Uas>, Started) {
    let mut script = with_streams();
    let read = script.run(read_10(0, 0, 1));
    script.expect_timeout(DeadlineReason::Command(read_10(0, 0, 1).id));
    (script, read)
}

#[test]
fn a_status_that_never_comes_brings_an_abort() {
    let (mut script, read) = late();
    script.abort_succeeds(1);
    script.expect_cancel(read.status.id);
    script.expect_cancel(read.payload.id);
    script.fail(read.status, TransferStatus::Cancelled);
    script.expect_nothing();
    script.fail(read.payload, TransferStatus::Cancelled);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::TimedOut));
    script.expect_rest();
    assert_eq!(script.transport.counters(), Counters { timeouts: 1, task_aborts: 1, ..Counters::default() });
}

#[test]
fn the_response_to_an_abort_that_was_given_up_is_not_that_to_the_reset_that_has_its_tag() {
    for (code, stalls) in [(0, false), (0, true), (10, false)] {
        let (mut script, read) = late();
        if stalls {
            let status = script.expect_function(0x01, 1);
            script.fail(status, TransferStatus::Stall);
            script.grant(BusRequest::ClearHalt(STATUS), BusAnswer::Done);
        } else {
            script.ignore_function(0x01, 1, DeadlineReason::AbortTask);
        }
        script.ignore_function(0x08, 0, DeadlineReason::LogicalUnitReset);
        // The third has the tag of the first.
        let reset = script.expect_function(0x10, 0);
        script.respond(reset, code);
        if code == 0 {
            let again = script.expect_transfer(STATUS);
            assert_eq!(again.pipe, reset.pipe);
            script.expect_nothing();
            script.respond(again, 0);
        }
        for transfer in [read.status, read.payload] {
            script.expect_cancel(transfer.id);
        }
        for transfer in [read.status, read.payload] {
            script.fail(transfer, TransferStatus::Cancelled);
        }
        if code != 0 {
            // The overlapped tag was that of the reset, so that the port is next.
            script.reset_port();
        }
        assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::TimedOut));
        script.expect_rest();
    }
}

#[test]
fn a_status_that_comes_while_the_abort_is_in_flight_counts() {
    let (mut script, read) = late();
    let abort = script.expect_function(0x01, 1);
    script.done(read.payload);
    script.reply(read.status, &sense_iu(1, 0));
    assert_eq!(script.expect_finished(0), good(512));
    script.respond(abort, 5);
    script.expect_rest();
}

#[test]
fn other_commands_go_on_during_an_abort() {
    let (mut script, read) = late();
    let abort = script.expect_function(0x01, 1);
    let mut command = test_unit_ready(1);
    command.deadline = script.now + Duration::from_secs(30);
    let other = script.run(command);
    script.reply(other.status, &sense_iu(2, 0));
    assert_eq!(script.expect_finished(1), good(0));
    script.respond(abort, 0);
    script.expect_cancel(read.status.id);
    script.expect_cancel(read.payload.id);
    script.fail(read.status, TransferStatus::Cancelled);
    script.fail(read.payload, TransferStatus::Cancelled);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::TimedOut));
    script.expect_rest();
}

#[test]
fn each_late_command_is_aborted_by_itself() {
    let mut script = with_streams();
    let commands: Vec<_> = (0..3).map(|slot| script.run(test_unit_ready(slot))).collect();
    script.expect_timeout(DeadlineReason::Command(test_unit_ready(0).id));
    let mut abort = script.expect_function(0x01, 1);
    for slot in 0..3u8 {
        script.respond(abort, 0);
        let status = commands[usize::from(slot)].status;
        script.expect_cancel(status.id);
        if slot < 2 {
            abort = script.expect_function(0x01, slot + 2);
        }
        script.fail(status, TransferStatus::Cancelled);
        assert_eq!(script.expect_finished(slot.into()), Outcome::Failed(Failure::TimedOut));
    }
    script.expect_rest();
}

/// A late command under tag 1, whose transfers come back when the device has released it.
#[track_caller]
fn late_again(script: &mut Script<Uas>, release: impl FnOnce(&mut Script<Uas>)) {
    let read = script.run(read_10(0, 0, 1));
    script.expect_timeout(DeadlineReason::Command(read_10(0, 0, 1).id));
    release(script);
    for transfer in [read.status, read.payload] {
        script.expect_cancel(transfer.id);
    }
    for transfer in [read.status, read.payload] {
        script.fail(transfer, TransferStatus::Cancelled);
    }
}

#[test]
fn a_tag_under_which_nothing_is_answered_has_a_later_step_each_time() {
    let mut script = with_streams();
    let steps: [fn(&mut Script<Uas>); 3] = [
        |script| script.abort_succeeds(1),
        |script| script.release_at_unit_reset(),
        |script| {
            let reset = script.expect_function(0x10, 0);
            script.respond(reset, 0);
        },
    ];
    for round in 0..2 {
        for step in steps {
            late_again(&mut script, step);
            assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::TimedOut));
        }
        late_again(&mut script, |_| ());
        script.reset_port();
        assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::TimedOut));
        assert_eq!(script.transport.counters().port_resets, round + 1);
    }
    // An answer between, and all begins again.
    late_again(&mut script, |script| script.abort_succeeds(1));
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::TimedOut));
    let ready = script.run(test_unit_ready(0));
    script.reply(ready.status, &sense_iu(1, 0));
    assert_eq!(script.expect_finished(0), good(0));
    late_again(&mut script, |script| script.abort_succeeds(1));
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::TimedOut));
    script.expect_rest();
}

/// A late command of unit 0 beside one of unit 0 and one of unit 1 that have more time.
fn late_among_others() -> (Script<Uas>, Started, [Started; 2]) {
    let mut script = with_streams();
    let read = script.run(read_10(0, 0, 1));
    let others = [(1, 0), (2, 1)].map(|(slot, unit)| {
        let mut command = test_unit_ready(slot);
        command.lun = Lun::Unit(unit).into();
        command.deadline = command.deadline + Duration::from_secs(60);
        script.run(command)
    });
    script.expect_timeout(DeadlineReason::Command(read_10(0, 0, 1).id));
    (script, read, others)
}

#[test]
fn a_unit_reset_ends_the_unit_s_commands_and_no_others() {
    let (mut script, read, [neighbour, other_unit]) = late_among_others();
    script.refuse_to_abort(1);
    script.release_at_unit_reset();
    for transfer in [read.status, read.payload, neighbour.status] {
        script.expect_cancel(transfer.id);
    }
    for transfer in [read.status, read.payload, neighbour.status] {
        script.fail(transfer, TransferStatus::Cancelled);
    }
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::TimedOut));
    assert_eq!(script.expect_finished(1), Outcome::Failed(Failure::Reset));
    script.reply(other_unit.status, &sense_iu(3, 0));
    assert_eq!(script.expect_finished(2), good(0));
    script.expect_rest();
}

#[test]
fn a_nexus_reset_ends_the_commands_of_all_units() {
    let (mut script, read, [neighbour, other_unit]) = late_among_others();
    script.refuse_to_abort(1);
    script.ignore_function(0x08, 0, DeadlineReason::LogicalUnitReset);
    let reset = script.expect_function(0x10, 0);
    script.respond(reset, 0);
    let transfers = [read.status, read.payload, neighbour.status, other_unit.status];
    for transfer in transfers {
        script.expect_cancel(transfer.id);
    }
    for transfer in transfers {
        script.fail(transfer, TransferStatus::Cancelled);
    }
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::TimedOut));
    assert_eq!(script.expect_finished(1), Outcome::Failed(Failure::Reset));
    assert_eq!(script.expect_finished(2), Outcome::Failed(Failure::Reset));
    script.expect_rest();
}

#[test]
fn a_port_reset_takes_everything_back_first_and_sets_the_device_up_again() {
    let (mut script, read, [neighbour, other_unit]) = late_among_others();
    script.ignore_every_function(1);
    let transfers = [read.status, read.payload, neighbour.status, other_unit.status];
    for transfer in transfers {
        script.expect_cancel(transfer.id);
    }
    for transfer in transfers {
        script.expect_nothing();
        script.fail(transfer, TransferStatus::Cancelled);
    }
    script.reset_port();
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::TimedOut));
    assert_eq!(script.expect_finished(1), Outcome::Failed(Failure::Reset));
    assert_eq!(script.expect_finished(2), Outcome::Failed(Failure::Reset));
    script.expect_rest();
    let counted = script.transport.counters();
    let climbed = [counted.task_aborts, counted.unit_resets, counted.nexus_resets, counted.port_resets];
    assert_eq!(climbed, [1; 4]);
}

#[test]
fn the_recovery_steps_have_two_then_five_then_five_then_ten_seconds() {
    let mut script = with_streams();
    let command = script.run(test_unit_ready(0));
    script.expect_timeout(DeadlineReason::Command(test_unit_ready(0).id));
    let mut at = Vec::new();
    for (function, reason) in [
        (0x01, DeadlineReason::AbortTask),
        (0x08, DeadlineReason::LogicalUnitReset),
        (0x10, DeadlineReason::NexusReset),
    ] {
        script.ignore_function(function, u8::from(function == 1), reason);
        at.push(script.now);
    }
    script.cancelled(command.status);
    script.expect_request(BusRequest::ResetPort);
    script.expect_timeout(DeadlineReason::PortReset);
    at.push(script.now);
    assert_eq!(at, [32, 37, 42, 52].map(|seconds| Instant::ZERO + Duration::from_secs(seconds)));
}

#[test]
fn commands_that_come_during_a_reset_are_sent_after_it() {
    let (mut script, read) = late();
    script.refuse_to_abort(1);
    let reset = script.expect_function(0x08, 0);
    let mut command = test_unit_ready(1);
    command.deadline = script.now + Duration::from_secs(30);
    script.submit(command);
    script.expect_nothing();
    script.respond(reset, 0);
    script.expect_cancel(read.status.id);
    script.expect_cancel(read.payload.id);
    let started = script.expect_started(command);
    script.done(started.command);
    script.reply(started.status, &sense_iu(2, 0));
    assert_eq!(script.expect_finished(1), good(0));
    script.fail(read.status, TransferStatus::Cancelled);
    script.fail(read.payload, TransferStatus::Cancelled);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::TimedOut));
    script.expect_rest();
}

#[test]
fn a_command_that_waits_for_a_reset_has_its_deadline_all_the_same() {
    let (mut script, _read) = late();
    script.refuse_to_abort(1);
    script.expect_function(0x08, 0);
    let mut command = test_unit_ready(1);
    command.deadline = script.now + Duration::from_secs(1);
    script.submit(command);
    script.expect_timeout(DeadlineReason::Command(command.id));
    assert_eq!(script.expect_finished(1), Outcome::Failed(Failure::TimedOut));
}

#[test]
fn a_command_that_waits_for_a_reset_is_aborted_without_the_device() {
    let (mut script, _read) = late();
    script.refuse_to_abort(1);
    script.expect_function(0x08, 0);
    script.submit(test_unit_ready(1));
    script.abort(1);
    assert_eq!(script.expect_finished(1), Outcome::Failed(Failure::Aborted));
}

#[test]
fn the_caller_s_abort_goes_to_the_device_once() {
    let mut script = with_streams();
    let command = script.run(test_unit_ready(0));
    script.abort(0);
    script.abort(0);
    script.abort(7);
    script.abort_succeeds(1);
    script.cancelled(command.status);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Aborted));
    script.expect_rest();
}

#[test]
fn an_answer_of_another_kind_to_a_function_fails_it() {
    let (mut script, _read) = late();
    let abort = script.expect_function(0x01, 1);
    script.reply(abort, &sense_iu(15, 0));
    script.expect_function(0x08, 0);
}

#[test]
fn a_function_whose_iu_stalls_fails_and_the_halt_is_cleared_before_the_next() {
    let (mut script, _read) = late();
    let status = script.expect_transfer(STATUS);
    let iu = script.expect_transfer(COMMAND);
    script.tag += 1;
    script.fail(iu, TransferStatus::Stall);
    script.expect_cancel(status.id);
    let clear = script.expect_request(BusRequest::ClearHalt(COMMAND));
    script.fail(status, TransferStatus::Cancelled);
    script.expect_nothing();
    script.transport.handle_answer(script.now, clear, BusAnswer::Done);
    script.expect_function(0x08, 0);
}

#[test]
fn a_halt_that_cannot_be_cleared_brings_a_port_reset() {
    let mut script = with_streams();
    let read = script.run(read_10(0, 0, 1));
    script.fail(read.payload, TransferStatus::Stall);
    script.grant(BusRequest::ClearHalt(DATA_IN), BusAnswer::Stalled);
    script.cancelled(read.status);
    script.reset_port();
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Reset));
    script.expect_rest();
}

#[test]
fn without_streams_functions_share_the_status_transfers() {
    let mut script = without_streams();
    script.submit(test_unit_ready(0));
    let first = script.expect_transfer(STATUS);
    let iu = script.expect_transfer(COMMAND);
    script.done(iu);
    script.abort(0);
    let second = script.expect_transfer(STATUS);
    let abort = script.expect_message(COMMAND, &management_iu(31, 0x01, 1));
    script.done(abort);
    script.reply(first, &response_iu(31, 0));
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Aborted));
    script.submit(test_unit_ready(1));
    let iu = script.expect_transfer(COMMAND);
    script.done(iu);
    script.reply(second, &sense_iu(1, 0));
    assert_eq!(script.expect_finished(1), good(0));
    script.expect_rest();
}

#[test]
fn fewer_streams_after_a_reset_make_a_smaller_depth() {
    let (mut script, read) = late();
    script.ignore_every_function(1);
    script.cancelled(read.status);
    script.cancelled(read.payload);
    script.grant(BusRequest::ResetPort, BusAnswer::Done);
    script.grant(SELECT, BusAnswer::Done);
    script.grant(ALLOCATE, BusAnswer::Streams(4));
    script.expect_finished(0);
    assert_eq!(script.transport.depth(), 2);
    for slot in 1..3 {
        let started = script.run(test_unit_ready(slot));
        assert!(started.status.pipe.stream.is_some_and(|stream| stream.get() <= 2));
    }
    assert_eq!(script.try_submit(test_unit_ready(3)), Err(Refusal::Full));
}

#[test]
fn a_device_without_streams_after_a_reset_is_given_up() {
    let (mut script, read) = late();
    script.ignore_every_function(1);
    script.cancelled(read.status);
    script.cancelled(read.payload);
    script.grant(BusRequest::ResetPort, BusAnswer::Done);
    script.grant(SELECT, BusAnswer::Done);
    script.grant(ALLOCATE, BusAnswer::Streams(1));
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Unrecoverable));
    assert_eq!(script.try_submit(test_unit_ready(1)), Err(Refusal::Gone));
    script.expect_rest();
}

#[test]
fn a_port_that_cannot_be_reset_is_tried_three_times() {
    let (mut script, read) = late();
    script.ignore_every_function(1);
    script.cancelled(read.status);
    script.cancelled(read.payload);
    for answer in [BusAnswer::Failed, BusAnswer::Stalled, BusAnswer::Failed] {
        script.grant(BusRequest::ResetPort, answer);
    }
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Unrecoverable));
    script.expect_rest();
}

#[test]
fn a_device_that_disconnects_during_recovery_ends_it() {
    let (mut script, read) = late();
    let abort = script.expect_function(0x01, 1);
    script.disconnect();
    script.expect_cancel(abort.id);
    script.expect_cancel(read.status.id);
    script.expect_cancel(read.payload.id);
    for transfer in [abort, read.status, read.payload] {
        script.fail(transfer, TransferStatus::Disconnected);
    }
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Disconnected));
    script.expect_rest();
}

#[test]
fn a_late_response_to_an_earlier_function_is_dropped() {
    let (mut script, read) = late();
    script.ignore_function(0x01, 1, DeadlineReason::AbortTask);
    let status = script.expect_transfer(STATUS);
    let iu = script.expect_transfer(COMMAND);
    script.reply(status, &response_iu(16, 0));
    let status = script.expect_transfer(STATUS);
    script.expect_nothing();
    script.done(iu);
    script.respond(status, 0);
    script.expect_cancel(read.status.id);
    script.expect_cancel(read.payload.id);
    script.fail(read.status, TransferStatus::Cancelled);
    script.fail(read.payload, TransferStatus::Cancelled);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::TimedOut));
    script.expect_rest();
}
