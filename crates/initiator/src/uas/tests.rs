//! The test plays the device, byte for byte: with streams, without streams, and error recovery.

mod recovery;
mod streams;
mod turns;

use super::*;
use crate::script::{Script, command, read_10, test_unit_ready, write_10};
use crate::{Answer, BusRequest, Outcome, Payload, SenseBytes, Timeouts, Transfer};
use alloc::vec::Vec;
use bus::{Direction, EndpointAddress, TransferStatus};
use units::Duration;
use wire::scsi::Status;

const COMMAND: EndpointAddress = EndpointAddress::at::<4>(Direction::Out);
const STATUS: EndpointAddress = EndpointAddress::at::<3>(Direction::In);
const DATA_IN: EndpointAddress = EndpointAddress::at::<1>(Direction::In);
const DATA_OUT: EndpointAddress = EndpointAddress::at::<2>(Direction::Out);

fn config(streams: Option<u16>) -> UasConfig {
    let endpoints = UasEndpoints { command: COMMAND, status: STATUS, data_in: DATA_IN, data_out: DATA_OUT };
    UasConfig { interface: 0, alternate: 1, endpoints, streams, depth: None, timeouts: Timeouts::default() }
}

/// 16 streams, as QEMU's device has them: tags 1 to 14, task management under 15.
fn with_streams() -> Script<Uas> {
    Script::new(Uas::new(config(Some(16))).unwrap())
}

/// No streams: tags 1 to 30, task management under 31.
fn without_streams() -> Script<Uas> {
    Script::new(Uas::new(config(None)).unwrap())
}

/// SENSE IU with a status and no sense data.
fn sense_iu(tag: u8, status: u8) -> [u8; 16] {
    [3, 0, 0, tag, 0, 0, status, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}

/// RESPONSE IU.
fn response_iu(tag: u8, code: u8) -> [u8; 8] {
    [4, 0, 0, tag, 0, 0, 0, code]
}

/// TASK MANAGEMENT IU to LUN 0.
fn management_iu(tag: u8, function: u8, managed: u8) -> [u8; 16] {
    [5, 0, 0, tag, function, 0, 0, managed, 0, 0, 0, 0, 0, 0, 0, 0]
}

fn good(moved: u32) -> Outcome {
    Outcome::answered(Status::Good, moved)
}

/// The transfers of a command with streams.
struct Started {
    status: Transfer,
    /// The status transfer again where there are no data.
    payload: Transfer,
    command: Transfer,
}

impl Script<Uas> {
    /// Submits a command with streams and takes its transfers, in their order.
    #[track_caller]
    fn start(&mut self, command: Command) -> Started {
        self.submit(command);
        self.expect_started(command)
    }

    #[track_caller]
    fn expect_started(&mut self, command: Command) -> Started {
        let status = self.expect_transfer(STATUS);
        assert_eq!((status.length, status.payload), (112, Payload::Message));
        let payload = match command.transfer() {
            None => status,
            Some(phase) if phase.direction == Direction::In => self.expect_transfer(DATA_IN),
            Some(_) => self.expect_transfer(DATA_OUT),
        };
        let command = self.expect_transfer(COMMAND);
        Started { status, payload, command }
    }

    /// The same, up to the device having taken the command.
    #[track_caller]
    fn run(&mut self, command: Command) -> Started {
        let started = self.start(command);
        self.done(started.command);
        started
    }
}
