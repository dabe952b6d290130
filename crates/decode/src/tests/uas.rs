//! USB Attached SCSI: endpoint 4 takes commands, 3 brings statuses, 1 brings data, 2 takes them.

use super::*;
use crate::{Outcome, Transport};
use wire::scsi::Status;
use wire::uas::ResponseCode;

const READ_10: [u8; 10] = [0x28, 0, 0, 0, 0x10, 0, 0, 0, 8, 0];
const WRITE_10_FUA: [u8; 10] = [0x2a, 0x08, 0, 0, 0x10, 0, 0, 0, 1, 0];

fn command(tag: u8, cdb: &[u8]) -> Vec<u8> {
    let mut iu = vec![1, 0, 0, tag];
    iu.resize(16, 0);
    iu.extend(cdb);
    iu.resize(32, 0);
    iu
}

fn sense(tag: u8, status: u8, sense: &[u8]) -> Vec<u8> {
    let mut iu = vec![3, 0, 0, tag, 0, 0, status, 0, 0, 0, 0, 0, 0, 0, 0, sense.len() as u8];
    iu.extend(sense);
    iu
}

/// Submits the transfers of Linux for a read with streams: status, data, command. Ids are the tag
/// and its place.
fn submit_read(script: &mut Script, tag: u8) -> u64 {
    let id = u64::from(tag) * 10;
    script.submit(id, 0x83, 112, &[]);
    script.submit(id + 1, 0x81, 4096, &[]);
    script.submit(id + 2, 4, 32, &command(tag, &READ_10))
}

fn end_read(script: &mut Script, tag: u8) -> u64 {
    let id = u64::from(tag) * 10;
    script.end(id + 1, 0x81, (0, 4096), &[0xaa; 512]);
    script.end(id, 0x83, (0, 16), &sense(tag, 0, &[]))
}

#[test]
fn a_read_is_one_command() {
    let mut script = Script::enumerated(1);
    let began = submit_read(&mut script, 7);
    script.end(72, 4, (0, 32), &[]);
    let last = end_read(&mut script, 7);
    let command = script.one();
    assert_eq!(
        (command.transport, command.lun, command.tag, command.stream),
        (Transport::Uas, Some(0), 7, None)
    );
    assert_eq!((command.asked, command.moved), (Some(4096), 4096));
    assert_eq!(command.outcome, Outcome::Status(Status::Good));
    assert_eq!((command.began.packet, command.ended.map(|mark| mark.packet)), (began, Some(last)));
    assert_eq!(script.faults(), []);
}

#[test]
fn a_drive_that_used_both_transports_has_both() {
    let mut script = Script::enumerated(1);
    submit_read(&mut script, 7);
    end_read(&mut script, 7);
    let spoken = |script: &Script| {
        let drive = script.decoder.drives().next().expect("a drive");
        (drive.transports.to_vec(), drive.transport)
    };
    assert_eq!(spoken(&script), (vec![Transport::Uas], Transport::Uas));
    script.control([0x01, 11, 0, 0, 0, 0, 0, 0], &[]);
    script.send(1, &good::cbw(1, 0, 0, &[0; 6]));
    script.receive(0x81, 13, &good::csw(1, 0));
    assert_eq!(spoken(&script), (vec![Transport::Uas, Transport::Bot], Transport::Bot));
}

#[test]
fn data_are_of_the_command_that_they_were_submitted_for() {
    let mut script = Script::enumerated(1);
    for tag in [1, 2, 3] {
        submit_read(&mut script, tag);
    }
    // They end in another order, and differ.
    for (tag, moved) in [(3_u8, 1_usize), (1, 2), (2, 3)] {
        let id = u64::from(tag) * 10;
        script.end(id + 1, 0x81, (0, moved), &[]);
        script.end(id, 0x83, (0, 16), &sense(tag, 0, &[]));
    }
    let ended: Vec<_> = script.ended().iter().map(|one| (one.tag, one.moved, one.depth)).collect();
    assert_eq!(ended, [(3, 1, 3), (1, 2, 1), (2, 3, 2)]);
}

#[test]
fn a_captured_stream_names_the_command() {
    let mut script = Script::enumerated(1);
    // Data of both before either command, the wrong way round.
    script.on(2).submit(21, 0x81, 4096, &[]);
    script.on(1).submit(11, 0x81, 4096, &[]);
    script.on(None).submit(12, 4, 32, &command(1, &READ_10));
    script.submit(22, 4, 32, &command(2, &READ_10));
    script.on(1).end(11, 0x81, (0, 100), &[]);
    script.on(2).end(21, 0x81, (0, 200), &[]);
    script.on(1).receive(0x83, 112, &sense(1, 0, &[]));
    script.on(2).receive(0x83, 112, &sense(2, 0, &[]));
    let ended: Vec<_> = script.ended().iter().map(|one| (one.tag, one.stream, one.moved)).collect();
    assert_eq!(ended, [(1, Some(1), 100), (2, Some(2), 200)]);
}

#[test]
fn good_before_the_data_waits_for_them() {
    let mut script = Script::enumerated(1);
    submit_read(&mut script, 1);
    script.end(10, 0x83, (0, 16), &sense(1, 0, &[]));
    assert_eq!(script.ended(), []);
    script.end(11, 0x81, (0, 4096), &[]);
    assert_eq!(script.one().moved, 4096);
    assert_eq!(script.faults(), []);
}

#[test]
fn good_without_the_data_is_the_devices_fault() {
    let mut script = Script::enumerated(1);
    let began = submit_read(&mut script, 1);
    script.end(10, 0x83, (0, 16), &sense(1, 0, &[]));
    let gave_up = script.wait_ms(30_000).end(11, 0x81, (CANCELLED, 0), &[]);
    assert_eq!(script.faults(), [(Fault::GoodWithoutData, 1, &[began, gave_up][..])]);
}

#[test]
fn a_check_condition_is_spelt_out() {
    let mut script = Script::enumerated(1);
    script.submit(10, 0x83, 112, &[]);
    script.submit(12, 4, 32, &command(1, &[0; 6]));
    let data = [0x70, 0, 2, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x3a, 0, 0, 0, 0, 0];
    script.end(10, 0x83, (0, 34), &sense(1, 2, &data));
    let command = script.one();
    assert_eq!(command.outcome, Outcome::Status(Status::CheckCondition));
    assert!(command.is_error());
    assert_eq!(command.sense().unwrap().to_string(), "NOT READY, MEDIUM NOT PRESENT");
}

#[test]
fn a_check_condition_without_sense_data_is_reported() {
    let mut script = Script::enumerated(1);
    script.submit(12, 4, 32, &command(1, &[0; 6]));
    let packet = script.receive(0x83, 112, &sense(1, 2, &[]));
    assert_eq!(script.faults(), [(Fault::SenseMissing, 1, &[packet][..])]);
}

#[test]
fn without_streams_data_follow_ready() {
    let mut script = Script::enumerated(1);
    for tag in [1, 2] {
        script.submit(u64::from(tag) * 10 + 2, 4, 32, &command(tag, &READ_10));
    }
    for tag in [2_u8, 1] {
        script.receive(0x83, 112, &[6, 0, 0, tag]);
        // In two pieces.
        script.receive(0x81, 2048, &[tag; 2048]);
        script.receive(0x81, 2048, &[tag; 2048]);
        script.receive(0x83, 112, &sense(tag, 0, &[]));
    }
    let ended: Vec<_> = script.ended().iter().map(|one| (one.tag, one.asked, one.moved)).collect();
    assert_eq!(ended, [(2, Some(4096), 4096), (1, Some(4096), 4096)]);
    assert_eq!(script.faults(), []);
}

#[test]
fn ready_without_a_command_is_the_devices_fault() {
    let mut script = Script::enumerated(1);
    script.submit(12, 4, 32, &command(1, &READ_10));
    let packet = script.receive(0x83, 112, &[6, 0, 0, 9]);
    assert_eq!(script.faults(), [(Fault::ReadyWithoutCommand, 1, &[packet][..])]);
}

#[test]
fn ready_on_streams_is_the_devices_fault() {
    let mut script = Script::enumerated(1);
    script.on(1).submit(11, 0x81, 4096, &[]);
    script.on(None).submit(12, 4, 32, &command(1, &READ_10));
    let packet = script.on(1).receive(0x83, 112, &[6, 0, 0, 1]);
    assert_eq!(script.faults(), [(Fault::ReadyOnStreams, 1, &[packet][..])]);
}

#[test]
fn a_status_without_a_command_is_the_devices_fault() {
    let mut script = Script::enumerated(1);
    submit_read(&mut script, 1);
    end_read(&mut script, 1);
    let packet = script.receive(0x83, 112, &sense(1, 0, &[]));
    assert_eq!(script.faults(), [(Fault::StatusWithoutCommand, 1, &[packet][..])]);
}

#[test]
fn statuses_of_commands_before_the_capture_are_no_fault() {
    let mut script = Script::enumerated(1);
    script.receive(0x83, 112, &sense(4, 0, &[]));
    assert_eq!(script.faults(), []);
}

#[test]
fn an_overlapped_tag_is_the_hosts_fault() {
    let mut script = Script::enumerated(1);
    let first = submit_read(&mut script, 1);
    let second = script.submit(99, 4, 32, &command(1, &READ_10));
    assert_eq!(script.faults(), [(Fault::OverlappedTag, 1, &[first, second][..])]);
    assert_eq!(script.one().outcome, Outcome::Overtaken);
}

#[test]
fn an_overlap_that_the_device_alone_sees_is_its_fault() {
    let mut script = Script::enumerated(1);
    let began = submit_read(&mut script, 1);
    let packet = script.receive(0x83, 112, &[4, 0, 0, 1, 0, 0, 0, 0x0a]);
    assert_eq!(script.one().outcome, Outcome::Response(ResponseCode::OverlappedTag));
    assert_eq!(script.faults(), [(Fault::OverlapNotSeen, 1, &[began, packet][..])]);
}

#[test]
fn bytes_that_are_no_unit_are_reported() {
    let mut script = Script::enumerated(1);
    submit_read(&mut script, 1);
    let status = script.receive(0x83, 112, &[9, 0, 0, 1]);
    let sent = script.send(4, &[1, 0, 0, 2]);
    assert_eq!(script.faults(), [(Fault::InformationUnit, 2, &[status, sent][..])]);
}

#[test]
fn commands_without_an_answer_end_with_the_reset() {
    let mut script = Script::enumerated(1);
    let began = [submit_read(&mut script, 1), submit_read(&mut script, 2)];
    let gave_up = script.wait_ms(30_000).end(11, 0x81, (CANCELLED, 0), &[]);
    // The port of the hub, then configuration and setting.
    script.control([0x23, 3, 4, 0, 1, 0, 0, 0], &[]);
    script.control([0x00, 9, 1, 0, 0, 0, 0, 0], &[]);
    let ended = script.ended();
    assert_eq!(ended.iter().map(|one| one.outcome).collect::<Vec<_>>(), [Outcome::Aborted; 2]);
    let faults = script.faults();
    assert_eq!(faults[0].0, Fault::Reset);
    assert_eq!((faults[1].0, faults[1].1), (Fault::NoResponse, 2));
    assert_eq!(faults[1].2[..3], [began[0], gave_up, began[1]]);
    let verdict = &script.decoder.verdicts()[1];
    assert_eq!(verdict.quirk().and_then(|flag| flag.letter()), Some('u'));
}

#[test]
fn an_aborted_task_ends_with_the_response() {
    let mut script = Script::enumerated(1);
    submit_read(&mut script, 1);
    let mut abort = [5, 0, 0, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let sent = script.wait_ms(2_000).send(4, &abort);
    script.receive(0x83, 112, &[4, 0, 0, 2, 0, 0, 0, 0]);
    assert_eq!(script.one().outcome, Outcome::Aborted);
    assert_eq!(script.faults()[0], (Fault::NoResponse, 1, &[6 + 3, sent][..]));
    abort[4] = 8;
    submit_read(&mut script, 1);
    script.send(4, &abort);
    script.receive(0x83, 112, &[4, 0, 0, 2, 0, 0, 0, 0]);
    assert_eq!(script.one().outcome, Outcome::Aborted);
    assert!(script.faults().iter().any(|fault| fault.0 == Fault::Reset));
}

#[test]
fn fua_that_is_refused_is_reported_with_its_quirk() {
    let mut script = Script::enumerated(1);
    let data = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0, 0, 0];
    let began = script.submit(12, 4, 32, &command(1, &WRITE_10_FUA));
    let ended = script.receive(0x83, 112, &sense(1, 2, &data));
    assert_eq!(script.faults(), [(Fault::FuaRefused, 1, &[began, ended][..])]);
    assert!(script.decoder.verdicts()[0].quirk().is_some_and(|flag| flag.letter().is_none()));
}

#[test]
fn a_queue_that_is_never_used_is_reported() {
    let mut script = Script::enumerated(1);
    for nth in 0..32 {
        // Once soon after the one before, else later.
        script.wait_ms(if nth == 7 { 1 } else { 3 });
        submit_read(&mut script, 1);
        end_read(&mut script, 1);
    }
    script.decoder.finish();
    let commands = script.ended();
    let [note] = script.decoder.verdicts() else { panic!("one") };
    let Fault::DepthOne { idle_percent, gap_ns } = note.fault else { panic!("{note}") };
    assert!(note.is_note() && note.count == 32 && idle_percent > 90, "{note}");
    assert!((1_000_000..2_000_000).contains(&gap_ns), "{note}");
    let [before, after] = [&commands[6], &commands[7]];
    assert_eq!(note.packets, [before.ended.expect("it ended").packet, after.began.packet]);
    // One more that begins before another has ended, and there is nothing to report.
    let mut script = Script::enumerated(1);
    for _ in 0..16 {
        submit_read(&mut script, 1);
        submit_read(&mut script, 2);
        end_read(&mut script, 1);
        end_read(&mut script, 2);
    }
    script.decoder.finish();
    assert_eq!(script.faults(), []);
}

#[test]
fn without_descriptors_a_unit_says_what_the_endpoints_are() {
    let mut script = Script::new();
    for tag in [1, 2, 3] {
        submit_read(&mut script, tag);
        end_read(&mut script, tag);
    }
    let ended = script.ended();
    assert_eq!(ended.iter().map(|one| one.tag).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(ended[2].moved, 4096);
    assert_eq!(script.faults(), []);
}

#[test]
fn a_setting_that_was_not_seen_chosen_is_found_out() {
    let mut script = Script::new();
    script.control([0x80, 6, 0, 2, 0, 0, 85, 0], &CONFIGURATION);
    submit_read(&mut script, 1);
    end_read(&mut script, 1);
    submit_read(&mut script, 2);
    end_read(&mut script, 2);
    assert_eq!(script.ended().last().map(|one| one.moved), Some(4096));
}

#[test]
fn commands_in_flight_have_a_limit() {
    let mut script = Script::enumerated(1);
    for tag in 1..=crate::uas::COMMANDS_MAX as u16 + 1 {
        let mut iu = command(0, &READ_10);
        iu[2..4].copy_from_slice(&tag.to_be_bytes());
        script.submit(u64::from(tag), 4, 32, &iu);
    }
    let command = script.one();
    assert_eq!((command.tag, command.outcome), (1, Outcome::Discarded));
    assert_eq!(script.decoder.losses().commands, 1);
}

#[test]
fn a_status_that_was_cut_off_ends_its_command_and_is_not_judged() {
    for length in 0..16 {
        let mut script = Script::enumerated(1);
        for _ in 0..2 {
            submit_read(&mut script, 1);
            script.end(11, 0x81, (0, 4096), &[]);
            script.end(10, 0x83, (0, 16), &sense(1, 0, &[])[..length]);
        }
        script.decoder.finish();
        let ended: Vec<_> = script.ended().iter().map(|one| (one.outcome, one.is_error())).collect();
        assert_eq!(ended, [(Outcome::NotKept, false); 2], "{length}");
        assert_eq!(script.faults(), []);
    }
}

#[test]
fn a_stall_adds_no_fault_beside_the_reset() {
    let mut script = Script::enumerated(1);
    submit_read(&mut script, 1);
    script.end(11, 0x81, (STALL, 0), &[]);
    script.control([0x00, 9, 1, 0, 0, 0, 0, 0], &[]);
    let faults: Vec<_> = script.faults().iter().map(|fault| fault.0).collect();
    assert_eq!(faults, [Fault::Stall, Fault::Reset]);
}

#[test]
fn a_queue_that_is_used_once_is_used() {
    let mut script = Script::enumerated(1);
    submit_read(&mut script, 2);
    for _ in 0..32 {
        submit_read(&mut script, 1);
        end_read(&mut script, 1);
    }
    end_read(&mut script, 2);
    script.decoder.finish();
    assert_eq!(script.faults(), []);
}

/// A drive that was on streams comes again at high speed, where READY is as it should be.
#[test]
fn ready_is_judged_by_its_own_stream() {
    let mut script = Script::enumerated(1);
    script.on(1).submit(11, 0x81, 4096, &[]);
    script.on(1).submit(10, 0x83, 112, &[]);
    script.on(None).submit(12, 4, 32, &command(1, &READ_10));
    script.on(1).end(11, 0x81, (0, 4096), &[]);
    script.end(10, 0x83, (0, 16), &sense(1, 0, &[]));
    script.on(None).submit(22, 4, 32, &command(2, &READ_10));
    script.receive(0x83, 112, &[6, 0, 0, 2]);
    assert_eq!(script.faults(), []);
}

#[test]
fn polling_is_no_use_of_a_queue() {
    let mut script = Script::enumerated(1);
    for _ in 0..40 {
        script.submit(12, 4, 32, &command(1, &[0; 6]));
        script.receive(0x83, 112, &sense(1, 0, &[]));
    }
    script.decoder.finish();
    assert_eq!(script.faults(), []);
}

/// A function ends the commands of its unit that were sent before it; their tags are free, and other commands go on.
#[test]
fn a_function_ends_the_commands_that_it_is_for() {
    for (function, has_reset) in [(0x02, false), (0x04, false), (0x08, true)] {
        let mut script = Script::enumerated(1);
        let mut other = command(2, &[0; 6]);
        other[9] = 1;
        script.send(4, &command(1, &[0; 6]));
        script.send(4, &other);
        script.send(4, &[5, 0, 0, 9, function, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        script.send(4, &command(3, &[0; 6]));
        script.receive(0x83, 112, &[4, 0, 0, 9, 0, 0, 0, 0]);
        script.send(4, &command(1, &[0; 6]));
        for tag in [1, 2, 3] {
            script.receive(0x83, 112, &sense(tag, 0, &[]));
        }
        let ended: Vec<_> = script.ended().iter().map(|one| (one.tag, one.lun, one.outcome)).collect();
        let good = Outcome::Status(Status::Good);
        let all =
            [(1, Some(0), Outcome::Aborted), (1, Some(0), good), (2, Some(1), good), (3, Some(0), good)];
        assert_eq!(ended, all, "{function:#x}");
        let faults: Vec<_> = script.faults().iter().map(|fault| fault.0).collect();
        assert_eq!(faults, &[Fault::Reset, Fault::Aborted][usize::from(!has_reset)..], "{function:#x}");
    }
}

#[test]
fn a_command_that_the_host_cancels_at_the_end_of_the_capture_had_no_response() {
    let mut script = Script::enumerated(1);
    script.submit(10, 0x83, 112, &[]);
    script.submit(11, 0x81, 4096, &[]);
    let began = script.send(4, &command(1, &READ_10));
    script.wait_ms(30_500);
    let cancelled = script.end(11, 0x81, (CANCELLED, 0), &[]);
    script.end(10, 0x83, (CANCELLED, 0), &[]);
    script.decoder.finish();
    assert_eq!(script.faults(), [(Fault::NoResponse, 1, &[began, cancelled][..])]);
}

#[test]
fn of_a_sense_unit_that_was_cut_status_and_sense_key_are_known() {
    let mut script = Script::enumerated(1);
    script.submit(10, 0x83, 112, &[]);
    script.send(4, &command(1, &[0; 6]));
    let mut unit = [3, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 18].to_vec();
    unit.extend([0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0, 0, 0]);
    script.end(10, 0x83, (0, 34), &unit);
    let ended = script.one();
    assert_eq!(ended.outcome, Outcome::Status(Status::CheckCondition));
    assert_eq!(ended.sense().map(|sense| sense.key), Some(wire::scsi::sense::SenseKey::IllegalRequest));
    assert_eq!(script.faults(), []);
}

#[test]
fn without_descriptors_the_end_of_data_alone_says_how_many_there_were() {
    let mut script = Script::new();
    script.send(4, &command(1, &READ_10));
    script.end(11, 0x81, (0, 4096), &[0; 32]);
    script.end(10, 0x83, (0, 16), &[3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(script.one().moved, 4096);
}

#[test]
fn of_transfers_with_one_record_a_write_that_is_good_has_moved_what_was_submitted() {
    let mut script = Script::enumerated(1);
    for tag in 1..3 {
        script.submit(11, 2, 512, &[0x55; 512]);
        script.submit(12, 4, 32, &command(tag, &[0x2a, 0, 0, 0, 0x10, 0, 0, 0, 1, 0]));
        script.end(10, 0x83, (0, 16), &[3, 0, 0, tag, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(script.one().moved, 512);
    }
    script.decoder.finish();
    assert_eq!(script.faults(), []);
}
