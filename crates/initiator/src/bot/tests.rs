//! The device is played by the test, byte for byte.

use super::*;
use crate::script::{Script, command, read_10, test_unit_ready, write_10};
use alloc::vec::Vec;
use units::Duration;

const IN: EndpointAddress = EndpointAddress::at::<1>(Direction::In);
const OUT: EndpointAddress = EndpointAddress::at::<2>(Direction::Out);
const RESET: BusRequest = BusRequest::MassStorageReset { interface: 0 };
const CLEAR_IN: BusRequest = BusRequest::ClearHalt(IN);
const CLEAR_OUT: BusRequest = BusRequest::ClearHalt(OUT);
const PASSED: u8 = 0;
const FAILED: u8 = 1;
const PHASE_ERROR: u8 = 2;

fn script() -> Script<Bot> {
    let timeouts = Timeouts::default();
    let config = BotConfig { interface: 0, alternate: 0, bulk_in: IN, bulk_out: OUT, timeouts };
    Script::new(Bot::new(config))
}

fn csw(tag: u8, residue: u32, status: u8) -> Vec<u8> {
    let [r0, r1, r2, r3] = residue.to_le_bytes();
    [b'U', b'S', b'B', b'S', tag, 0, 0, 0, r0, r1, r2, r3, status].to_vec()
}

fn answered(status: Status, moved: u32) -> Outcome {
    Outcome::answered(status, moved)
}

fn checked(moved: u32, sense: &[u8]) -> Outcome {
    Outcome::Answered(Answer {
        status: Status::CheckCondition,
        status_qualifier: 0,
        moved,
        sense: SenseBytes::new(sense),
    })
}

impl Script<Bot> {
    /// The wrapper goes; what it says is not looked at.
    #[track_caller]
    fn take_wrapper(&mut self) {
        let wrapper = self.expect_transfer(OUT);
        assert_eq!(wrapper.length, 31);
        self.done(wrapper);
    }

    /// The device sends a status wrapper.
    #[track_caller]
    fn send_status(&mut self, bytes: &[u8]) {
        let status = self.expect_transfer(IN);
        assert_eq!((status.length, status.payload), (13, Payload::Message));
        self.reply(status, bytes);
    }

    #[track_caller]
    fn recover(&mut self) {
        for step in [RESET, CLEAR_IN, CLEAR_OUT] {
            self.grant(step, BusAnswer::Done);
        }
    }

    /// READ of 512 bytes up to the end of its data phase.
    #[track_caller]
    fn read_block(&mut self, slot: u16) {
        self.submit(read_10(slot, 0, 1));
        self.take_wrapper();
        let blocks = self.expect_transfer(IN);
        self.done(blocks);
    }
}

#[test]
fn a_read_is_a_wrapper_then_data_then_a_status() {
    let mut script = script();
    script.submit(read_10(7, 0x0102_0304, 2));
    let mut cbw = [0; 31];
    cbw[..15].copy_from_slice(&[b'U', b'S', b'B', b'C', 1, 0, 0, 0, 0, 4, 0, 0, 0x80, 0, 10]);
    cbw[15..25].copy_from_slice(&[0x28, 0, 1, 2, 3, 4, 0, 0, 2, 0]);
    let wrapper = script.expect_message(OUT, &cbw);
    script.expect_nothing();
    script.done(wrapper);
    let blocks = script.expect_transfer(IN);
    assert_eq!(blocks.length, 1024);
    let piece = BufferRange { command: read_10(7, 0, 0).id, range: units::ByteRange::new(0, 1024) };
    assert_eq!(blocks.payload, Payload::Buffer(piece));
    script.expect_nothing();
    script.done(blocks);
    script.send_status(&csw(1, 0, PASSED));
    assert_eq!(script.expect_finished(7), answered(Status::Good, 1024));
    script.expect_rest();
}

#[test]
fn a_command_without_data_goes_from_wrapper_to_status() {
    let mut script = script();
    script.submit(test_unit_ready(0));
    script.take_wrapper();
    script.send_status(&csw(1, 0, PASSED));
    assert_eq!(script.expect_finished(0), answered(Status::Good, 0));
    script.expect_rest();
}

#[test]
fn each_wrapper_has_a_new_tag() {
    let mut script = script();
    for tag in 1..4 {
        script.submit(test_unit_ready(0));
        script.take_wrapper();
        script.send_status(&csw(tag, 0, PASSED));
        assert!(script.expect_finished(0).is_good());
    }
}

#[test]
fn one_command_at_a_time_is_taken() {
    let mut script = script();
    script.submit(test_unit_ready(0));
    assert_eq!(script.try_submit(test_unit_ready(1)), Err(Refusal::Full));
}

#[test]
fn what_a_wrapper_cannot_say_is_refused() {
    let mut script = script();
    let long = command(0, &[0x7f; 17], None);
    assert_eq!(script.try_submit(long), Err(Refusal::CommandBlock { bytes_max: 16 }));
    let mut far = test_unit_ready(0);
    far.lun = Lun::Unit(16).into();
    assert_eq!(script.try_submit(far), Err(Refusal::Lun));
    script.expect_rest();
}

/// The host's results of a data phase and a status wrapper, for 512 bytes each way.
#[test]
fn the_thirteen_cases_end_as_the_status_wrapper_says() {
    use TransferStatus::{Done, Short, Stall};
    let none = None;
    let into = |status, actual| Some((Direction::In, status, actual));
    let out = |status, actual| Some((Direction::Out, status, actual));
    let cases = [
        ("1: Hn = Dn", none, 0, PASSED, Ok(0)),
        ("2: Hn < Di", none, 0, PHASE_ERROR, Err(Failure::PhaseError)),
        ("4: Hi > Dn", into(Short, 0), 512, PASSED, Ok(0)),
        ("4: Hi > Dn, stalled", into(Stall, 0), 512, PASSED, Ok(0)),
        ("5: Hi > Di", into(Short, 100), 412, PASSED, Ok(100)),
        ("5: Hi > Di, stalled", into(Stall, 100), 412, PASSED, Ok(100)),
        ("5: Hi > Di, filled up", into(Done, 512), 412, PASSED, Ok(100)),
        ("6: Hi = Di", into(Done, 512), 0, PASSED, Ok(512)),
        ("7: Hi < Di", into(Done, 512), 0, PHASE_ERROR, Err(Failure::PhaseError)),
        ("8: Hi <> Do", into(Stall, 0), 0, PHASE_ERROR, Err(Failure::PhaseError)),
        ("9: Ho > Dn", out(Stall, 0), 512, PASSED, Ok(0)),
        ("9: Ho > Dn, swallowed", out(Done, 512), 512, PASSED, Ok(0)),
        ("10: Ho <> Di", out(Stall, 0), 0, PHASE_ERROR, Err(Failure::PhaseError)),
        ("11: Ho > Do", out(Stall, 100), 412, PASSED, Ok(100)),
        ("12: Ho = Do", out(Done, 512), 0, PASSED, Ok(512)),
        ("13: Ho < Do", out(Done, 512), 0, PHASE_ERROR, Err(Failure::PhaseError)),
    ];
    for (name, phase, residue, status, expected) in cases {
        let mut script = script();
        script.submit(match phase {
            None => test_unit_ready(0),
            Some((Direction::In, ..)) => read_10(0, 0, 1),
            Some((Direction::Out, ..)) => write_10(0, 0, 1),
        });
        script.take_wrapper();
        if let Some((direction, status, actual)) = phase {
            let endpoint = if direction == Direction::In { IN } else { OUT };
            let blocks = script.expect_transfer(endpoint);
            script.complete(blocks.id, status, actual, &[]);
            if status == Stall {
                script.grant(BusRequest::ClearHalt(endpoint), BusAnswer::Done);
            }
        }
        script.send_status(&csw(1, residue, status));
        if expected.is_err() {
            script.recover();
        }
        let outcome = expected.map_or_else(Outcome::Failed, |moved| answered(Status::Good, moved));
        assert_eq!(script.expect_finished(0), outcome, "case {name}");
        script.expect_rest();
    }
}

#[test]
fn a_halt_in_the_place_of_a_status_is_cleared_and_the_status_read_again() {
    let mut script = script();
    script.read_block(0);
    let status = script.expect_transfer(IN);
    script.fail(status, TransferStatus::Stall);
    script.grant(CLEAR_IN, BusAnswer::Done);
    script.send_status(&csw(1, 0, PASSED));
    assert_eq!(script.expect_finished(0), answered(Status::Good, 512));
}

#[test]
fn a_second_halt_in_the_place_of_a_status_brings_a_reset_recovery() {
    let mut script = script();
    script.read_block(0);
    let status = script.expect_transfer(IN);
    script.fail(status, TransferStatus::Stall);
    script.grant(CLEAR_IN, BusAnswer::Done);
    let status = script.expect_transfer(IN);
    script.fail(status, TransferStatus::Stall);
    script.recover();
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Stalled));
    script.expect_rest();
}

#[test]
fn an_empty_status_is_read_again_once() {
    let mut script = script();
    script.read_block(0);
    script.send_status(&[]);
    script.send_status(&csw(1, 0, PASSED));
    assert_eq!(script.expect_finished(0), answered(Status::Good, 512));
    script.read_block(1);
    script.send_status(&[]);
    script.send_status(&[]);
    script.recover();
    assert_eq!(script.expect_finished(1), Outcome::Failed(Failure::BadStatus));
}

#[test]
fn a_failed_command_is_followed_by_request_sense() {
    const SENSE: [u8; 18] = [0x70, 0, 3, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0];
    let mut script = script();
    script.read_block(0);
    script.send_status(&csw(1, 512, FAILED));
    let mut cbw = [0; 31];
    cbw[..15].copy_from_slice(&[b'U', b'S', b'B', b'C', 2, 0, 0, 0, 18, 0, 0, 0, 0x80, 0, 6]);
    cbw[15..21].copy_from_slice(&[0x03, 0, 0, 0, 18, 0]);
    let wrapper = script.expect_message(OUT, &cbw);
    script.done(wrapper);
    let sense = script.expect_transfer(IN);
    assert_eq!((sense.length, sense.payload), (18, Payload::Message));
    script.reply(sense, &SENSE);
    script.send_status(&csw(2, 0, PASSED));
    assert_eq!(script.expect_finished(0), checked(0, &SENSE));
    script.expect_rest();
}

#[test]
fn a_device_that_has_more_sense_data_is_asked_for_more_from_then_on() {
    let mut sense = [0; 18];
    (sense[0], sense[7]) = (0x72, 20);
    let mut script = script();
    for room in [18, 96] {
        script.submit(test_unit_ready(0));
        let tag = script.transport.last_tag as u8;
        script.take_wrapper();
        script.send_status(&csw(tag, 0, FAILED));
        script.take_wrapper();
        let transfer = script.expect_transfer(IN);
        assert_eq!(transfer.length, room);
        script.reply(transfer, &sense);
        script.send_status(&csw(tag + 1, room - 18, PASSED));
        assert_eq!(script.expect_finished(0), checked(0, &sense));
    }
    assert!(script.transport.quirks().long_sense);
}

#[test]
fn a_request_sense_that_fails_is_not_followed_by_another() {
    let mut script = script();
    script.submit(command(0, &[0x03, 0, 0, 0, 18, 0], Some((Direction::In, 18))));
    script.take_wrapper();
    let sense = script.expect_transfer(IN);
    script.fail(sense, TransferStatus::Short);
    script.send_status(&csw(1, 18, FAILED));
    assert_eq!(script.expect_finished(0), checked(0, &[]));
    script.expect_rest();
}

#[test]
fn a_failed_command_stays_one_when_its_sense_data_never_come() {
    let mut script = script();
    script.submit(test_unit_ready(0));
    script.take_wrapper();
    script.send_status(&csw(1, 0, FAILED));
    script.take_wrapper();
    let sense = script.expect_transfer(IN);
    script.expect_timeout(DeadlineReason::Sense);
    assert_eq!(script.now, Instant::ZERO + Duration::from_secs(10));
    script.cancelled(sense);
    script.recover();
    assert_eq!(script.expect_finished(0), checked(0, &[]));
    script.expect_rest();
}

#[test]
fn a_status_that_is_not_valid_or_not_meaningful_brings_a_reset_recovery() {
    let mut unsigned = csw(4, 0, PASSED);
    unsigned[0] = b'X';
    let bad = [csw(9, 0, PASSED), csw(1, 0, 3), csw(1, 0, PASSED)[..12].to_vec(), csw(1, 513, FAILED)];
    for bytes in bad {
        let mut script = script();
        script.read_block(0);
        script.send_status(&bytes);
        script.recover();
        assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::BadStatus), "{bytes:02x?}");
        script.expect_rest();
    }
}

#[test]
fn an_odd_signature_is_learnt_from_the_first_status_and_then_kept_to() {
    let odd = |tag: u8| [&b"USBX"[..], &csw(tag, 0, PASSED)[4..]].concat();
    let mut script = script();
    for tag in 1..3 {
        script.read_block(0);
        script.send_status(&odd(tag));
        assert!(script.expect_finished(0).is_good());
    }
    script.read_block(0);
    script.send_status(&csw(3, 0, PASSED));
    script.recover();
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::BadStatus));
}

#[test]
fn a_status_in_the_place_of_data_is_the_status() {
    let mut script = script();
    script.submit(read_10(0, 0, 1));
    script.take_wrapper();
    let blocks = script.expect_transfer(IN);
    script.reply(blocks, &csw(1, 512, PASSED));
    assert_eq!(script.expect_finished(0), answered(Status::Good, 0));
    script.expect_rest();
}

#[test]
fn thirteen_bytes_of_data_that_are_no_status_are_data() {
    let mut script = script();
    script.submit(read_10(0, 0, 1));
    script.take_wrapper();
    let blocks = script.expect_transfer(IN);
    script.reply(blocks, &csw(2, 0, PASSED));
    script.send_status(&csw(1, 499, PASSED));
    assert_eq!(script.expect_finished(0), answered(Status::Good, 13));
}

#[test]
fn a_device_that_sends_too_much_and_says_that_all_is_well_is_not_believed() {
    let mut script = script();
    script.submit(read_10(0, 0, 1));
    script.take_wrapper();
    let blocks = script.expect_transfer(IN);
    script.complete(blocks.id, TransferStatus::Babble, 512, &[]);
    // The controller counts packets of the pipe again, and so must the device.
    script.grant(CLEAR_IN, BusAnswer::Done);
    script.send_status(&csw(1, 0, PASSED));
    let sense = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0, 0, 0];
    assert_eq!(script.expect_finished(0), checked(512, &sense));
}

#[test]
fn a_residue_after_a_whole_inquiry_means_nothing_from_then_on() {
    let mut script = script();
    script.submit(command(0, &[0x12, 0, 0, 0, 36, 0], Some((Direction::In, 36))));
    script.take_wrapper();
    let inquiry = script.expect_transfer(IN);
    script.done(inquiry);
    script.send_status(&csw(1, 36, PASSED));
    assert_eq!(script.expect_finished(0), answered(Status::Good, 36));
    script.read_block(0);
    script.send_status(&csw(2, 400, PASSED));
    assert_eq!(script.expect_finished(0), answered(Status::Good, 512));
}

#[test]
fn a_residue_longer_than_what_was_moved_in_full_means_nothing() {
    let mut script = script();
    script.read_block(0);
    script.send_status(&csw(1, 0x1000, PASSED));
    assert_eq!(script.expect_finished(0), answered(Status::Good, 512));
    assert!(script.transport.quirks().ignore_residue);
}

#[test]
fn a_residue_of_other_commands_is_believed() {
    let mut script = script();
    script.read_block(0);
    script.send_status(&csw(1, 512, PASSED));
    assert_eq!(script.expect_finished(0), answered(Status::Good, 0));
    assert!(!script.transport.quirks().ignore_residue);
}

#[test]
fn a_command_that_takes_too_long_is_cancelled_before_the_device_is_reset() {
    let mut script = script();
    script.submit(read_10(0, 0, 1));
    script.take_wrapper();
    let blocks = script.expect_transfer(IN);
    script.expect_timeout(DeadlineReason::Command(read_10(0, 0, 1).id));
    script.expect_cancel(blocks.id);
    script.expect_nothing();
    script.fail(blocks, TransferStatus::Cancelled);
    script.recover();
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::TimedOut));
    script.expect_rest();
}

#[test]
fn a_wrapper_that_is_not_taken_is_sent_once_more_after_a_reset_recovery() {
    let mut script = script();
    script.submit(test_unit_ready(0));
    let wrapper = script.expect_transfer(OUT);
    script.fail(wrapper, TransferStatus::Stall);
    script.recover();
    let wrapper = script.expect_transfer(OUT);
    script.fail(wrapper, TransferStatus::Stall);
    script.recover();
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Stalled));
    script.expect_rest();
}

#[test]
fn a_reset_recovery_that_fails_at_any_step_brings_a_port_reset() {
    let steps = [RESET, CLEAR_IN, CLEAR_OUT];
    for failing in 0..3 {
        let mut script = script();
        script.read_block(0);
        script.send_status(&csw(1, 0, PHASE_ERROR));
        for (index, step) in steps[..=failing].iter().enumerate() {
            script.grant(*step, if index == failing { BusAnswer::Stalled } else { BusAnswer::Done });
        }
        script.grant(BusRequest::ResetPort, BusAnswer::Done);
        assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::PhaseError));
        script.expect_rest();
    }
}

#[test]
fn a_step_without_an_answer_is_given_up_and_its_late_answer_ignored() {
    let mut script = script();
    script.read_block(0);
    script.send_status(&csw(1, 0, PHASE_ERROR));
    let late = script.expect_request(RESET);
    script.expect_timeout(DeadlineReason::MassStorageReset);
    let port = script.expect_request(BusRequest::ResetPort);
    script.transport.handle_answer(script.now, late, BusAnswer::Done);
    script.expect_nothing();
    script.transport.handle_answer(script.now, port, BusAnswer::Done);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::PhaseError));
}

#[test]
fn after_a_port_reset_the_alternate_setting_is_chosen_again() {
    let timeouts = Timeouts::default();
    let config = BotConfig { interface: 2, alternate: 1, bulk_in: IN, bulk_out: OUT, timeouts };
    let mut script = Script::new(Bot::new(config));
    script.read_block(0);
    script.send_status(&csw(1, 0, PHASE_ERROR));
    script.grant(BusRequest::MassStorageReset { interface: 2 }, BusAnswer::Failed);
    script.grant(BusRequest::ResetPort, BusAnswer::Done);
    script.grant(BusRequest::SelectAlternate { interface: 2, alternate: 1 }, BusAnswer::Done);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::PhaseError));
}

#[test]
fn repeated_recovery_escalates_to_a_port_reset_and_then_gives_up() {
    let mut script = script();
    for turn in 1..=6 {
        script.submit(test_unit_ready(0));
        script.take_wrapper();
        script.send_status(&csw(turn, 0, PHASE_ERROR));
        match turn {
            1 | 2 => script.recover(),
            3..=5 => script.grant(BusRequest::ResetPort, BusAnswer::Done),
            _ => {}
        }
        let failure = if turn == 6 { Failure::Unrecoverable } else { Failure::PhaseError };
        assert_eq!(script.expect_finished(0), Outcome::Failed(failure));
    }
    assert_eq!(script.try_submit(test_unit_ready(0)), Err(Refusal::Gone));
    script.expect_rest();
}

#[test]
fn a_command_in_order_ends_the_row() {
    let mut script = script();
    for turn in 0..6 {
        script.submit(test_unit_ready(0));
        script.take_wrapper();
        script.send_status(&csw(2 * turn + 1, 0, PHASE_ERROR));
        script.recover();
        script.expect_finished(0);
        script.submit(test_unit_ready(0));
        script.take_wrapper();
        script.send_status(&csw(2 * turn + 2, 0, PASSED));
        assert!(script.expect_finished(0).is_good());
    }
}

#[test]
fn an_abort_takes_the_transfer_back_and_resets() {
    let mut script = script();
    script.submit(write_10(3, 0, 1));
    script.take_wrapper();
    let blocks = script.expect_transfer(OUT);
    script.abort(4);
    script.expect_nothing();
    script.abort(3);
    script.abort(3);
    script.cancelled(blocks);
    script.recover();
    assert_eq!(script.expect_finished(3), Outcome::Failed(Failure::Aborted));
    script.expect_rest();
}

#[test]
fn a_command_outlives_its_device_until_its_transfer_is_back() {
    let mut script = script();
    script.submit(read_10(0, 0, 1));
    script.take_wrapper();
    let blocks = script.expect_transfer(IN);
    script.disconnect();
    script.expect_nothing();
    script.fail(blocks, TransferStatus::Disconnected);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Disconnected));
    assert_eq!(script.try_submit(test_unit_ready(0)), Err(Refusal::Gone));
    script.expect_rest();
}

#[test]
fn a_device_that_goes_in_the_middle_of_a_recovery_ends_it() {
    let mut script = script();
    script.read_block(0);
    script.send_status(&csw(1, 0, PHASE_ERROR));
    script.expect_request(RESET);
    script.disconnect();
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Disconnected));
    script.expect_rest();
}

#[test]
fn a_transfer_that_says_the_device_is_gone_is_believed() {
    let mut script = script();
    script.submit(test_unit_ready(0));
    let wrapper = script.expect_transfer(OUT);
    script.fail(wrapper, TransferStatus::Disconnected);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Disconnected));
    script.expect_rest();
}
