//! Scripts of floppy drives: with an interrupt endpoint and without, with descriptors and without.

use super::{CANCELLED, PENDING, STALL, Script};
use crate::{Command, Fault, Outcome, Transport};
use wire::cbi::CommandStatus;
use wire::scsi::Status;

const TEST_UNIT_READY: [u8; 12] = [0; 12];
const REQUEST_SENSE: [u8; 12] = [0x03, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0, 0];
const READ_CAPACITY: [u8; 12] = [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const READ_TWO: [u8; 12] = [0x28, 0, 0, 0, 0, 19, 0, 0, 2, 0, 0, 0];
const WRITE_ONE: [u8; 12] = [0x2a, 0, 0, 0, 0, 33, 0, 0, 1, 0, 0, 0];
const RESET: [u8; 12] = [0x1d, 4, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255];
/// 2880 blocks of 512 bytes.
const CAPACITY: [u8; 8] = [0, 0, 0x0b, 0x3f, 0, 0, 2, 0];
const GOOD: [u8; 2] = [0, 0];
/// NOT READY TO READY CHANGE, MEDIUM MAY HAVE CHANGED.
const CHANGED: [u8; 2] = [0x28, 0];

/// Fixed-format sense data of a sense key and an additional sense code.
fn sense(key: u8, asc: u8) -> [u8; 18] {
    [0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc, 0, 0, 0, 0, 0]
}

impl Script {
    /// A drive of this protocol, configured: 1 IN, 2 OUT, and 3 IN as its interrupt endpoint.
    fn floppy(protocol: u8) -> Self {
        let mut script = Self::unseen_floppy();
        #[rustfmt::skip]
        let configuration = [
            9, 2, 39, 0, 1, 1, 0, 0x80, 50,
            9, 4, 0, 0, 3, 8, 4, protocol, 0,
            7, 5, 0x81, 2, 64, 0, 0,
            7, 5, 0x02, 2, 64, 0, 0,
            7, 5, 0x83, 3, 2, 0, 32,
        ];
        script.control([0x80, 6, 0, 2, 0, 0, 39, 0], &configuration);
        script.control([0x00, 9, 1, 0, 0, 0, 0, 0], &[]);
        script
    }

    /// The same, of which the capture has no descriptor.
    fn unseen_floppy() -> Self {
        Self { interrupt: Some(0x83), ..Self::new() }
    }

    /// A command block; answers the number of its packet.
    fn block(&mut self, block: [u8; 12]) -> u64 {
        self.block_ends(block, 0)
    }

    fn block_ends(&mut self, block: [u8; 12], status: i32) -> u64 {
        let id = self.packets + 1_000;
        let packet = self.emit(id, 0, (PENDING, 12), &block, Some([0x21, 0, 0, 0, 0, 0, 12, 0]));
        self.emit(id, 0, (status, 12), &[], None);
        packet
    }

    fn status(&mut self, status: [u8; 2]) -> u64 {
        self.receive(0x83, 2, &status)
    }
}

fn completion(command: &Command) -> Option<[u8; 2]> {
    match command.outcome {
        Outcome::Completion(status) => Some(status.encode()),
        _ => None,
    }
}

#[test]
fn a_read_ends_with_the_status_block() {
    let mut script = Script::floppy(0);
    script.block(READ_CAPACITY);
    script.receive(0x81, 8, &CAPACITY);
    script.status(GOOD);
    script.one();
    let began = script.block(READ_TWO);
    script.receive(0x81, 1024, &[7; 1024]);
    let ended = script.status(GOOD);
    let command = script.one();
    assert_eq!(command.block.to_string(), "READ(10) lba 19 blocks 2");
    assert_eq!((command.transport, command.lun, command.tag), (Transport::Cbi, Some(0), 0));
    assert_eq!((command.asked, command.moved), (Some(1024), 1024));
    assert_eq!((command.began.packet, command.ended.map(|mark| mark.packet)), (began, Some(ended)));
    assert_eq!((completion(&command), command.is_error()), (Some(GOOD), false));
    assert_eq!(script.faults(), []);
    let drive = script.decoder.drives().next().unwrap();
    assert_eq!(drive.transports, [Transport::Cbi]);
}

#[test]
fn a_write_moves_what_was_submitted() {
    let mut script = Script::floppy(0);
    script.block(WRITE_ONE);
    script.send(0x02, &[1; 512]);
    script.status(GOOD);
    let command = script.one();
    // No READ CAPACITY was seen: how much the command asks for is not known.
    assert_eq!((command.asked, command.moved, command.is_error()), (None, 512, false));
}

#[test]
fn a_failure_has_the_sense_data_that_are_requested_after_it() {
    let mut script = Script::floppy(0);
    script.block(TEST_UNIT_READY);
    script.status(CHANGED);
    assert_eq!(script.ended().len(), 0);
    script.block(REQUEST_SENSE);
    script.receive(0x81, 18, &sense(6, 0x28));
    script.status(CHANGED);
    let ended = script.ended();
    assert_eq!(completion(&ended[0]), Some(CHANGED));
    assert!(ended[0].sense().is_some_and(|sense| sense.to_string().contains("UNIT ATTENTION")), "{ended:?}");
    // Its status block repeats what its data report.
    assert_eq!(ended.iter().map(Command::is_error).collect::<Vec<_>>(), [true, false]);
    assert_eq!(script.faults(), []);
}

#[test]
fn a_command_that_the_device_does_not_have_stalls_its_request() {
    for mut script in [Script::floppy(0), Script::floppy(1), Script::unseen_floppy()] {
        script.block_ends(READ_CAPACITY, STALL);
        script.block(TEST_UNIT_READY);
        let command = script.one();
        assert_eq!((command.outcome, command.is_error()), (Outcome::Stalled, true));
    }
}

#[test]
fn data_that_end_with_a_stall_are_a_note_where_a_status_follows() {
    let mut script = Script::floppy(0);
    script.block(READ_TWO);
    script.submit(1, 0x81, 1024, &[]);
    let stalled = script.end(1, 0x81, (STALL, 0), &[]);
    script.status([0x3a, 0]);
    script.block(TEST_UNIT_READY);
    assert_eq!(completion(&script.one()), Some([0x3a, 0]));
    assert_eq!(script.faults(), [(Fault::StallEndsData, 1, &[stalled][..])]);
}

#[test]
fn without_an_interrupt_endpoint_request_sense_reports_the_status() {
    for mut script in [Script::floppy(1), Script::unseen_floppy()] {
        for (key, asc, status) in [(0, 0, Status::Good), (2, 0x3a, Status::CheckCondition)] {
            script.block(TEST_UNIT_READY);
            script.block(REQUEST_SENSE);
            script.receive(0x81, 18, &sense(key, asc));
            script.block(READ_TWO);
            let ended = script.ended();
            let test = ended.iter().find(|command| command.block.name() == "TEST UNIT READY").unwrap();
            assert_eq!(test.outcome, Outcome::Status(status));
            assert_eq!(test.sense().is_some(), status == Status::CheckCondition);
            script.receive(0x81, 1024, &[7; 1024]);
        }
        script.block(TEST_UNIT_READY);
        script.decoder.finish();
        let outcomes: Vec<Outcome> = script.ended().iter().map(|command| command.outcome).collect();
        assert_eq!(outcomes, [Outcome::NoStatus; 2]);
        assert_eq!(script.faults(), []);
    }
}

#[test]
fn without_an_interrupt_endpoint_a_stall_of_data_is_the_failure() {
    let mut script = Script::floppy(1);
    script.block(READ_TWO);
    script.submit(1, 0x81, 1024, &[]);
    script.end(1, 0x81, (STALL, 0), &[]);
    script.block(REQUEST_SENSE);
    script.receive(0x81, 18, &sense(3, 0x11));
    script.block(TEST_UNIT_READY);
    let failed = script.ended().remove(0);
    assert_eq!(failed.outcome, Outcome::Stalled);
    assert!(failed.sense().is_some_and(|sense| sense.to_string().contains("MEDIUM ERROR")));
    assert_eq!(script.faults(), []);
}

#[test]
fn a_command_without_a_status_is_overtaken_by_the_next() {
    let mut script = Script::floppy(0);
    script.block(TEST_UNIT_READY);
    script.block(TEST_UNIT_READY);
    script.status(GOOD);
    let outcomes: Vec<Outcome> = script.ended().iter().map(|command| command.outcome).collect();
    assert_eq!(outcomes, [Outcome::Overtaken, Outcome::Completion(CommandStatus::Ufi { asc: 0, ascq: 0 })]);
}

#[test]
fn a_host_that_cancels_data_and_resets_has_aborted_the_command() {
    let mut script = Script::floppy(0);
    let began = script.block(READ_TWO);
    script.submit(1, 0x81, 1024, &[]);
    script.wait_ms(30_000);
    let cancelled = script.end(1, 0x81, (CANCELLED, 0), &[]);
    let reset = script.block(RESET);
    script.block(TEST_UNIT_READY);
    assert_eq!(script.one().outcome, Outcome::Aborted);
    let expected = [(Fault::Reset, 1, &[reset][..]), (Fault::NoResponse, 1, &[began, cancelled][..])];
    assert_eq!(script.faults(), expected);
}

#[test]
fn other_class_requests_of_the_same_code_are_no_commands() {
    let mut script = Script::unseen_floppy();
    // SEND ENCAPSULATED COMMAND of a network adapter.
    script.block([0x06, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0]);
    script.block([0x03, 0, 0, 0, 18, 0, 0, 0, 0, 0, 1, 0]);
    script.decoder.finish();
    assert_eq!((script.ended().len(), script.decoder.drives().count()), (0, 0));
}

#[test]
fn a_status_that_follows_missing_packets_is_not_believed() {
    let mut script = Script::floppy(0);
    script.block(TEST_UNIT_READY);
    script.decoder.miss();
    script.status(CHANGED);
    assert_eq!(script.one().outcome, Outcome::NotKept);
}

#[test]
fn other_command_sets_have_a_type_and_a_value() {
    let mut script = Script::new();
    script.interrupt = Some(0x83);
    #[rustfmt::skip]
    let configuration = [
        9, 2, 39, 0, 1, 1, 0, 0x80, 50,
        9, 4, 0, 0, 3, 8, 2, 0, 0,
        7, 5, 0x81, 2, 64, 0, 0,
        7, 5, 0x02, 2, 64, 0, 0,
        7, 5, 0x83, 3, 2, 0, 32,
    ];
    script.control([0x80, 6, 0, 2, 0, 0, 39, 0], &configuration);
    script.block(TEST_UNIT_READY);
    script.status([0, 1]);
    script.block(TEST_UNIT_READY);
    let command = script.one();
    assert_eq!((command.outcome.to_string(), command.is_error()), ("fail".to_owned(), true));
}
