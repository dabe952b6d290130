//! Bulk-Only Transport: endpoint 1 OUT and 1 IN.

use super::*;
use crate::{Outcome, Transport};
use wire::bot::CswStatus;

const READ_10: [u8; 10] = [0x28, 0, 0, 0, 0x10, 0, 0, 0, 8, 0];
const TEST_UNIT_READY: [u8; 6] = [0; 6];
const REQUEST_SENSE: [u8; 6] = [3, 0, 0, 0, 18, 0];

fn cbw(tag: u8, length: u32, flags: u8, command: &[u8]) -> Vec<u8> {
    let mut cbw = vec![b'U', b'S', b'B', b'C', tag, 0, 0, 0];
    cbw.extend(length.to_le_bytes());
    cbw.extend([flags, 0, command.len() as u8]);
    cbw.extend(command);
    cbw.resize(31, 0);
    cbw
}

fn csw(tag: u8, residue: u32, status: u8) -> Vec<u8> {
    let mut csw = vec![b'U', b'S', b'B', b'S', tag, 0, 0, 0];
    csw.extend(residue.to_le_bytes());
    csw.push(status);
    csw
}

/// A read of so many bytes, of which so many come.
fn read(script: &mut Script, tag: u8, asked: u32, moved: usize, residue: u32) -> u64 {
    script.send(1, &cbw(tag, asked, 0x80, &READ_10));
    script.receive(0x81, asked as usize, &vec![0xaa; moved]);
    script.receive(0x81, 13, &csw(tag, residue, 0))
}

#[test]
fn a_wrapper_of_which_only_the_end_was_kept_is_no_data_of_a_read() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 4096, 0x80, &READ_10));
    script.receive(0x81, 4096, &[0xaa; 4096]);
    script.decoder.miss();
    script.end(77, 1, (0, 31), &[]);
    read(&mut script, 3, 4096, 4096, 0);
    let moved: Vec<u64> = script.ended().iter().map(|command| command.moved).collect();
    assert_eq!(moved, [4096, 4096]);
}

#[test]
fn a_read_is_one_command() {
    let mut script = Script::enumerated(0);
    let last = read(&mut script, 1, 4096, 4096, 0);
    let command = script.one();
    assert_eq!((command.transport, command.lun, command.tag, command.depth), (Transport::Bot, Some(0), 1, 1));
    assert_eq!(command.block.bytes(), READ_10);
    assert_eq!(command.block.extent(), Some((4096, 8)));
    assert_eq!((command.asked, command.moved, command.residue), (Some(4096), 4096, Some(0)));
    assert_eq!(command.outcome, Outcome::Wrapper(CswStatus::Passed));
    assert_eq!((command.began.packet, command.last_packet()), (7, last));
    assert_eq!(command.duration_ns(), Some(5_000));
    assert_eq!(command.steps.len(), 6);
    assert_eq!(script.faults(), []);
}

#[test]
fn commands_of_an_optical_drive_have_names() {
    let mut script = Script::enumerated(0);
    let event = [0x4a, 0x01, 0, 0, 0x10, 0, 0, 0, 8, 0];
    script.send(1, &cbw(1, 8, 0x80, &event));
    script.receive(0x81, 8, &[0, 6, 4, 0x10, 2, 2, 0, 0]);
    script.receive(0x81, 13, &csw(1, 0, 0));
    let text = script.one().block.to_string();
    assert_eq!(text, "GET EVENT STATUS NOTIFICATION polled classes 0x10 allocation_len 8");
    assert_eq!(script.faults(), []);
}

#[test]
fn without_descriptors_a_wrapper_says_what_the_endpoints_are() {
    let mut script = Script::new();
    read(&mut script, 1, 4096, 4096, 0);
    assert_eq!(script.one().moved, 4096);
}

#[test]
fn a_write_counts_what_was_taken() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 512, 0, &[0x2a, 0, 0, 0, 0, 1, 0, 0, 1, 0]));
    script.send(1, &[0x55; 512]);
    script.receive(0x81, 13, &csw(1, 0, 0));
    let command = script.one();
    assert_eq!((command.asked, command.moved), (Some(512), 512));
    assert_eq!(script.faults(), []);
}

#[test]
fn a_failed_command_has_the_sense_data_that_were_asked_for() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 0, 0, &TEST_UNIT_READY));
    script.receive(0x81, 13, &csw(1, 0, 1));
    assert_eq!(script.ended(), [], "the host may ask why");
    let mut sense = [0; 18];
    [sense[0], sense[2], sense[7], sense[12]] = [0x70, 0x02, 10, 0x3a];
    script.send(1, &cbw(2, 18, 0x80, &REQUEST_SENSE));
    script.receive(0x81, 18, &sense);
    script.receive(0x81, 13, &csw(2, 0, 0));
    let [failed, asked] = &script.ended()[..] else { panic!("two") };
    assert_eq!(failed.sense().unwrap().to_string(), "NOT READY, MEDIUM NOT PRESENT");
    assert_eq!(asked.block.name(), "REQUEST SENSE");
    assert_eq!(script.faults(), []);
}

#[test]
fn sense_that_is_not_asked_for_is_the_hosts_fault() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 0, 0, &TEST_UNIT_READY));
    let failed = script.receive(0x81, 13, &csw(1, 0, 1));
    read(&mut script, 2, 512, 512, 0);
    assert_eq!(script.ended().len(), 2);
    assert_eq!(script.faults(), [(Fault::SenseNotAsked, 1, &[failed][..])]);
}

#[test]
fn a_residue_larger_than_what_did_not_move_has_a_quirk_and_a_smaller_one_has_none() {
    let mut script = Script::enumerated(0);
    // All came and it reports that 512 bytes did not; 512 did not and it reports that all did.
    let packets = [read(&mut script, 1, 4096, 4096, 512), read(&mut script, 2, 4096, 3584, 0)];
    assert_eq!(
        script.faults(),
        [
            (Fault::ResidueTooLarge, 1, &[7, packets[0]][..]),
            (Fault::ResidueTooSmall, 1, &[13, packets[1]][..])
        ]
    );
    let quirks =
        script.decoder.verdicts().iter().map(|verdict| verdict.quirk().and_then(|flag| flag.letter()));
    assert_eq!(quirks.collect::<Vec<_>>(), [Some('r'), None]);
}

#[test]
fn short_parameter_data_without_a_residue_are_a_note() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 192, 0x80, &[0x1a, 0, 0x3f, 0, 0xc0, 0]));
    script.receive(0x81, 192, &[11; 12]);
    let packet = script.receive(0x81, 13, &csw(1, 0, 0));
    assert_eq!(script.faults(), [(Fault::ShortWithoutResidue, 1, &[7, packet][..])]);
    let note = &script.decoder.verdicts()[0];
    assert!(note.is_note() && note.quirk().is_none());
}

/// Of a transfer to the device its submission, of one to the host its end.
fn one_record_write(script: &mut Script, tag: u8, residue: u32) {
    script.submit(1, 1, 31, &cbw(tag, 512, 0, &[0x2a, 0, 0, 0, 0, 1, 0, 0, 1, 0]));
    script.submit(2, 1, 512, &[0x55; 512]);
    script.end(3, 0x81, (0, 13), &csw(tag, residue, 0));
}

#[test]
fn of_transfers_with_one_record_a_write_that_passed_has_moved_what_was_submitted() {
    let mut script = Script::new();
    (1..4).for_each(|tag| one_record_write(&mut script, tag, 0));
    let moved: Vec<_> = script.ended().iter().map(|command| (command.asked, command.moved)).collect();
    assert_eq!(moved, [(Some(512), 512); 3]);
    script.decoder.finish();
    assert_eq!(script.faults(), []);
}

#[test]
fn a_transfer_whose_end_is_not_in_the_capture_is_not_judged() {
    let mut script = Script::enumerated(0);
    // The data's end is missing, then a status's, and the last command has none.
    script.send(1, &cbw(1, 4096, 0x80, &READ_10));
    script.submit(90, 0x81, 4096, &[]);
    script.receive(0x81, 13, &csw(1, 512, 0));
    script.send(1, &cbw(2, 0, 0, &TEST_UNIT_READY));
    script.submit(91, 0x81, 13, &[]);
    script.send(1, &cbw(3, 0, 0, &TEST_UNIT_READY));
    script.wait_ms(40_000);
    script.submit(92, 0x81, 13, &[]);
    script.decoder.finish();
    assert_eq!(script.faults(), []);
    let outcomes: Vec<_> = script.ended().iter().map(|command| command.outcome).collect();
    assert_eq!(outcomes, [Outcome::Wrapper(CswStatus::Passed), Outcome::NotKept, Outcome::Unfinished]);
}

#[test]
fn a_command_that_the_host_cancels_at_the_end_of_the_capture_had_no_response() {
    let mut script = Script::enumerated(0);
    let began = script.submit(9, 1, 31, &cbw(1, 18, 0x80, &REQUEST_SENSE));
    script.wait_ms(30_500);
    let cancelled = script.end(9, 1, (-104, 0), &[]);
    script.decoder.finish();
    assert_eq!(script.faults(), [(Fault::NoResponse, 1, &[began, cancelled][..])]);
    assert_eq!(
        script.decoder.verdicts()[0].to_string(),
        format!(
            "2.5: no response in 30.5 s, then aborted, with REQUEST SENSE: once (packets {began}, {cancelled})"
        )
    );
    assert_eq!(script.one().outcome, Outcome::Aborted);
}

#[test]
fn what_a_host_cancels_of_data_that_were_short_is_no_abort() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 8192, 0x80, &READ_10));
    script.submit(90, 0x81, 4096, &[]);
    script.submit(91, 0x81, 4096, &[]);
    script.end(90, 0x81, (-121, 512), &[0xaa; 512]);
    script.end(91, 0x81, (-104, 0), &[]);
    script.decoder.finish();
    assert_eq!(script.faults(), []);
    assert_eq!(script.one().outcome, Outcome::Unfinished);
}

#[test]
fn a_residue_of_padded_data_does_not_lie() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 255, 0x80, &[0x12, 0, 0, 0, 255, 0]));
    script.receive(0x81, 255, &[0; 255]);
    script.receive(0x81, 13, &csw(1, 219, 0));
    assert_eq!(script.faults(), []);
}

#[test]
fn a_residue_of_more_than_was_asked_for_is_reported() {
    let mut script = Script::enumerated(0);
    let packet = read(&mut script, 1, 512, 512, 513);
    assert_eq!(script.faults(), [(Fault::ResidueTooLong, 1, &[7, packet][..])]);
}

#[test]
fn a_status_of_another_command_is_reported() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(2, 0, 0, &TEST_UNIT_READY));
    let packet = script.receive(0x81, 13, &csw(1, 0, 0));
    assert_eq!(script.faults(), [(Fault::WrapperTag, 1, &[7, packet][..])]);
    assert_eq!(script.one().outcome, Outcome::Broken);
}

#[test]
fn what_is_no_status_is_reported() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 0, 0, &TEST_UNIT_READY));
    let mut bytes = csw(1, 0, 0);
    bytes[3] = b'C';
    let packet = script.receive(0x81, 13, &bytes);
    assert_eq!(script.faults(), [(Fault::WrapperSignature, 1, &[7, packet][..])]);
}

#[test]
fn a_status_of_no_bytes_is_reported_and_asked_for_again() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 0, 0, &TEST_UNIT_READY));
    let packet = script.receive(0x81, 13, &[]);
    script.receive(0x81, 13, &csw(1, 0, 0));
    assert_eq!(script.faults(), [(Fault::WrapperEmpty, 1, &[7, packet][..])]);
    assert_eq!(script.one().outcome, Outcome::Wrapper(CswStatus::Passed));
}

#[test]
fn a_stall_ends_the_data_and_the_status_follows() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 192, 0x80, &[0x1a, 0, 0x3f, 0, 192, 0]));
    script.submit(9, 0x81, 192, &[]);
    let packet = script.end(9, 0x81, (STALL, 0), &[]);
    script.control([0x02, 1, 0, 0, 0x81, 0, 0, 0], &[]);
    script.receive(0x81, 13, &csw(1, 192, 1));
    script.decoder.finish();
    assert_eq!(
        script.faults(),
        [(Fault::StallEndsData, 1, &[packet][..])],
        "who knows whether the host would have asked"
    );
    assert_eq!(script.one().outcome, Outcome::Wrapper(CswStatus::Failed));
}

/// Clause 6.7.2, case 5: the data end with a short packet, and the STALL meets the transfer for the status.
#[test]
fn a_stall_behind_short_data_is_no_fault_once() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 192, 0x80, &[0x12, 0, 0, 0, 192, 0]));
    script.submit(9, 0x81, 192, &[]);
    script.end(9, 0x81, (0, 36), &[0; 36]);
    script.submit(10, 0x81, 13, &[]);
    let stalled = script.end(10, 0x81, (STALL, 0), &[]);
    script.control([0x02, 1, 0, 0, 0x81, 0, 0, 0], &[]);
    script.receive(0x81, 13, &csw(1, 156, 0));
    assert_eq!(script.faults(), [(Fault::StallEndsData, 1, &[stalled][..])]);
    assert_eq!(script.one().outcome, Outcome::Wrapper(CswStatus::Passed));
}

/// Linux clears such a halt and reads the status again, so that it does no harm.
#[test]
fn a_stall_behind_whole_data_is_noted_once_the_status_follows() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 36, 0x80, &[0x12, 0, 0, 0, 36, 0]));
    script.submit(9, 0x81, 36, &[]);
    script.end(9, 0x81, (0, 36), &[0; 36]);
    script.submit(10, 0x81, 13, &[]);
    let stalled = script.end(10, 0x81, (STALL, 0), &[]);
    script.control([0x02, 1, 0, 0, 0x81, 0, 0, 0], &[]);
    script.receive(0x81, 13, &csw(1, 0, 0));
    assert_eq!(script.faults(), [(Fault::StallEndsData, 1, &[stalled][..])]);
    assert_eq!(script.one().outcome, Outcome::Wrapper(CswStatus::Passed));
}

#[test]
fn a_command_before_the_status_is_the_hosts_fault() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 4096, 0x80, &READ_10));
    script.receive(0x81, 4096, &[0xaa; 4096]);
    let second = script.send(1, &cbw(2, 0, 0, &TEST_UNIT_READY));
    assert_eq!(script.faults(), [(Fault::CommandBeforeStatus, 1, &[7, second][..])]);
    assert_eq!(script.one().outcome, Outcome::Overtaken);
}

#[test]
fn a_command_without_an_answer_is_aborted_by_the_reset() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 512, 0x80, &[0xa1, 0x08, 0x0e, 0, 1, 0, 0, 0, 0, 0xec, 0, 0]));
    script.submit(9, 0x81, 512, &[]);
    let gave_up = script.wait_ms(30_000).end(9, 0x81, (CANCELLED, 0), &[]);
    script.control([0x21, 0xff, 0, 0, 0, 0, 0, 0], &[]);
    let command = script.one();
    assert_eq!(command.outcome, Outcome::Aborted);
    assert_eq!(command.duration_ns(), Some(30_000_003_000));
    let faults = script.faults();
    assert_eq!(faults[0].0, Fault::Reset);
    assert_eq!(faults[1], (Fault::NoResponse, 1, &[7, gave_up][..]));
    let verdict = &script.decoder.verdicts()[1];
    assert_eq!(verdict.waited_ns, Some(30_000_003_000));
    assert_eq!(verdict.quirk().and_then(|flag| flag.letter()), Some('t'), "no ATA PASS-THROUGH");
}

#[test]
fn a_read_that_failed_and_comes_again_is_a_retry() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 4096, 0x80, &READ_10));
    script.receive(0x81, 4096, &[]);
    script.receive(0x81, 13, &csw(1, 4096, 2));
    read(&mut script, 2, 4096, 4096, 0);
    let faults = script.faults();
    assert_eq!(faults[0].0, Fault::PhaseError);
    assert_eq!(faults[1].0, Fault::Retried);
    assert_eq!(faults[1].2[0], 7);
}

#[test]
fn a_status_that_was_cut_off_is_not_judged() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 0, 0, &TEST_UNIT_READY));
    script.submit(9, 0x81, 13, &[]);
    script.end(9, 0x81, (0, 13), &csw(1, 0, 0)[..4]);
    assert_eq!(script.one().outcome, Outcome::NotKept);
    assert_eq!(script.faults(), []);
}

#[test]
fn at_the_end_of_a_capture_a_command_is_in_flight() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 512, 0x80, &READ_10));
    script.decoder.finish();
    let command = script.one();
    assert_eq!((command.outcome, command.ended), (Outcome::Unfinished, None));
}

#[test]
fn requests_that_end_at_64_kib_are_cut_by_the_host() {
    let mut script = Script::enumerated(0);
    for piece in 0..10_u8 {
        script.send(1, &cbw(piece, 65_536, 0x80, &[0x28, 0, 0, 0, 0, 0, 0, 0, 128, 0].map(|byte| byte)));
        script.receive(0x81, 65_536, &vec![0; 65_536]);
        script.receive(0x81, 13, &csw(piece, 0, 0));
    }
    script.decoder.finish();
    assert_eq!(script.faults(), [], "the same blocks again are no pieces");
    let mut script = Script::enumerated(0);
    for piece in 0..10_u8 {
        let [high, low] = (u16::from(piece) * 128).to_be_bytes();
        script.send(1, &cbw(piece, 65_536, 0x80, &[0x28, 0, 0, 0, high, low, 0, 0, 128, 0]));
        script.receive(0x81, 65_536, &vec![0; 65_536]);
        script.receive(0x81, 13, &csw(piece, 0, 0));
    }
    script.decoder.finish();
    assert_eq!(script.faults()[0].0, Fault::CutInPieces(64));
}

#[test]
fn blocks_that_are_never_unmapped_are_reported() {
    let mut script = Script::enumerated(0);
    let page = [0, 0xb2, 0, 4, 0, 0x80, 2, 0];
    script.send(1, &cbw(1, 8, 0x80, &[0x12, 1, 0xb2, 0, 8, 0]));
    let page_at = script.receive(0x81, 8, &page) + 2;
    script.receive(0x81, 13, &csw(1, 0, 0));
    let write = script.send(1, &cbw(2, 512, 0, &[0x2a, 0, 0, 0, 0, 1, 0, 0, 1, 0]));
    script.send(1, &[0; 512]);
    script.receive(0x81, 13, &csw(2, 0, 0));
    script.decoder.finish();
    assert_eq!(script.faults(), [(Fault::TrimNeverSent, 1, &[page_at, write][..])]);
}

#[test]
fn bytes_that_are_no_wrapper_are_reported() {
    let mut script = Script::enumerated(0);
    script.send(1, &[0x55; 31]);
    assert_eq!(script.faults(), [], "they may be data of a command before the capture");
    script.send(1, &cbw(1, 0, 0, &TEST_UNIT_READY));
    script.receive(0x81, 13, &csw(1, 0, 0));
    let packet = script.send(1, &[0x55; 31]);
    assert_eq!(script.faults(), [(Fault::CommandWrapper, 1, &[packet][..])]);
}

#[test]
fn a_status_after_the_status_is_reported() {
    let mut script = Script::enumerated(0);
    read(&mut script, 1, 512, 512, 0);
    let packet = script.receive(0x81, 13, &csw(1, 0, 0));
    assert_eq!(script.faults(), [(Fault::StatusWithoutCommand, 1, &[packet][..])]);
}

/// How a read ends whose data do not: by the error that the kernel gives.
#[test]
fn failed_transfers_are_reported_by_cause() {
    for (errno, fault) in [(-71, Fault::BusError), (-75, Fault::Babble), (-108, Fault::Gone)] {
        let mut script = Script::enumerated(0);
        script.send(1, &cbw(1, 512, 0x80, &READ_10));
        script.submit(9, 0x81, 512, &[]);
        let failed = script.end(9, 0x81, (errno, 0), &[]);
        assert_eq!(script.faults(), [(fault, 1, &[failed][..])]);
    }
}

/// The bus fails and the host resets the device: it did not take the command back for nothing.
#[test]
fn a_command_that_failed_on_the_bus_is_not_aborted() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 512, 0x80, &READ_10));
    script.submit(9, 0x81, 512, &[]);
    script.end(9, 0x81, (-71, 0), &[]);
    script.control([0x00, 9, 1, 0, 0, 0, 0, 0], &[]);
    let faults: Vec<_> = script.faults().iter().map(|fault| fault.0).collect();
    assert_eq!(faults, [Fault::BusError, Fault::Reset]);
    assert_eq!(script.one().outcome, Outcome::Aborted);
}

#[test]
fn a_command_that_ends_soon_without_status_is_aborted_by_the_host() {
    let mut script = Script::enumerated(0);
    let began = script.send(1, &cbw(1, 512, 0x80, &READ_10));
    script.submit(9, 0x81, 512, &[]);
    let gave_up = script.wait_ms(20).end(9, 0x81, (CANCELLED, 0), &[]);
    script.control([0x21, 0xff, 0, 0, 0, 0, 0, 0], &[]);
    let faults = script.faults();
    assert_eq!(faults[1], (Fault::Aborted, 1, &[began, gave_up][..]));
}

#[test]
fn a_failure_before_a_reset_needs_no_sense() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 0, 0, &TEST_UNIT_READY));
    script.receive(0x81, 13, &csw(1, 0, 1));
    script.control([0x00, 9, 1, 0, 0, 0, 0, 0], &[]);
    read(&mut script, 2, 512, 512, 0);
    let faults: Vec<_> = script.faults().iter().map(|fault| fault.0).collect();
    assert_eq!(faults, [Fault::ConfiguredAgain]);
}

#[test]
fn a_stall_that_no_status_follows_is_the_devices_fault() {
    let mut script = Script::enumerated(0);
    let began = script.send(1, &cbw(1, 192, 0x80, &[0x1a, 0, 0x3f, 0, 192, 0]));
    script.submit(9, 0x81, 192, &[]);
    let data = script.end(9, 0x81, (STALL, 0), &[]);
    script.submit(10, 0x81, 13, &[]);
    let status = script.end(10, 0x81, (STALL, 0), &[]);
    script.control([0x21, 0xff, 0, 0, 0, 0, 0, 0], &[]);
    let faults = script.faults();
    assert_eq!(
        faults,
        [
            (Fault::Reset, 1, &[status + 2][..]),
            (Fault::Aborted, 1, &[began, status + 2]),
            (Fault::Stall, 2, &[data, status]),
        ]
    );
}

/// The status of one command and the wrapper of the next were not captured.
#[test]
fn a_status_of_a_command_that_was_lost_is_no_fault() {
    for second in [csw(2, 0, 0), vec![0xaa; 512]] {
        let mut script = Script::enumerated(0);
        script.send(1, &cbw(1, 0, 0, &TEST_UNIT_READY));
        script.decoder.miss();
        script.receive(0x81, 512, &second);
        let command = script.one();
        assert_eq!((command.outcome, command.is_error()), (Outcome::NotKept, false));
        assert_eq!(command.duration_ns(), None, "when it ended is not known");
        read(&mut script, 3, 512, 512, 0);
        assert_eq!(script.one().idle_ns, None);
        assert_eq!(script.faults(), []);
    }
}

/// Packets are missing where the device may have answered.
#[test]
fn an_answer_that_may_be_lost_is_not_denied() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 512, 0x80, &READ_10));
    script.decoder.miss();
    script.wait_ms(30_000).control([0x21, 0xff, 0, 0, 0, 0, 0, 0], &[]);
    let recorded: Vec<_> =
        script.decoder.verdicts().iter().map(|one| (one.fault, one.is_sure, one.quirk())).collect();
    assert_eq!(recorded, [(Fault::Reset, false, None), (Fault::NoResponse, false, None)]);
}

#[test]
fn a_question_that_fails_was_asked() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 0, 0, &TEST_UNIT_READY));
    script.receive(0x81, 13, &csw(1, 0, 1));
    script.send(1, &cbw(2, 18, 0x80, &REQUEST_SENSE));
    script.receive(0x81, 18, &[]);
    script.receive(0x81, 13, &csw(2, 18, 1));
    read(&mut script, 3, 512, 512, 0);
    assert_eq!(script.ended().len(), 3);
    assert_eq!(script.faults(), []);
}

#[test]
fn a_stall_where_the_status_is_read_ends_the_data_as_well() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 192, 0x80, &[0x1a, 0, 0x3f, 0, 192, 0]));
    script.receive(0x81, 192, &[0x23; 36]);
    script.submit(9, 0x81, 13, &[]);
    let stalled = script.end(9, 0x81, (STALL, 0), &[]);
    script.control([0x02, 1, 0, 0, 0x81, 0, 0, 0], &[]);
    script.receive(0x81, 13, &csw(1, 156, 0));
    assert_eq!(script.faults(), [(Fault::StallEndsData, 1, &[stalled][..])]);
    assert!(script.decoder.verdicts()[0].is_note());
}

/// An author has cut the transfers to the host out of a text.
#[test]
fn where_no_status_is_in_the_capture_no_command_comes_too_early() {
    let mut script = Script::enumerated(0);
    script.send(1, &cbw(1, 0, 0, &TEST_UNIT_READY));
    script.send(1, &cbw(2, 0, 0, &TEST_UNIT_READY));
    assert_eq!(script.faults(), []);
    assert_eq!(script.one().outcome, Outcome::NotKept);
}
