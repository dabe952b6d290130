//! Scripted tests of a transport: the test plays the bus, the device and the clock.
//!
//! Outputs are taken one by one in order; an unexpected one fails the test. Always true, or the
//! test fails: each transfer completes once, each command ends once and with none of its transfers
//! in flight.

use crate::{
    BusAnswer, BusRequest, Command, CommandBlock, CommandId, DataPhase, Outcome, Output, Payload, Refusal,
    RequestId, Transfer, Transport,
};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bus::{Completion, Direction, EndpointAddress, Front, TransferId, TransferStatus};
use units::{ByteRange, Duration, Instant};
use wire::scsi::lun::LunField;
use wire::uas::TaskAttribute;

/// How long commands have in tests.
pub(crate) const COMMAND_TIME: Duration = Duration::from_secs(30);

pub(crate) struct Script<T> {
    pub(crate) transport: T,
    pub(crate) now: Instant,
    /// The tag of the status wrapper that was sent last, where a test counts them.
    pub(crate) tag: u32,
    submitted: BTreeSet<CommandId>,
    in_flight: BTreeMap<TransferId, Transfer>,
    /// The next message is reported as sent immediately.
    on_the_spot: bool,
}

/// A command of slot `slot`.
pub(crate) fn command(slot: u16, cdb: &[u8], data_phase: Option<(Direction, u32)>) -> Command {
    Command {
        id: CommandId { slot, generation: 1 },
        lun: LunField([0; 8]),
        attribute: TaskAttribute::Simple,
        cdb: CommandBlock::new(cdb).expect("a test has short command blocks"),
        data_phase: data_phase
            .map(|(direction, bytes)| DataPhase { direction, range: ByteRange::new(0, bytes) }),
        deadline: Instant::ZERO + COMMAND_TIME,
    }
}

/// READ(10) of 512-byte blocks.
pub(crate) fn read_10(slot: u16, lba: u32, blocks: u8) -> Command {
    let [a, b, c, d] = lba.to_be_bytes();
    command(slot, &[0x28, 0, a, b, c, d, 0, 0, blocks, 0], Some((Direction::In, u32::from(blocks) * 512)))
}

/// WRITE(10) of 512-byte blocks.
pub(crate) fn write_10(slot: u16, lba: u32, blocks: u8) -> Command {
    let [a, b, c, d] = lba.to_be_bytes();
    command(slot, &[0x2a, 0, a, b, c, d, 0, 0, blocks, 0], Some((Direction::Out, u32::from(blocks) * 512)))
}

/// TEST UNIT READY.
pub(crate) fn test_unit_ready(slot: u16) -> Command {
    command(slot, &[0; 6], None)
}

impl<T: Transport> Script<T> {
    pub(crate) fn new(transport: T) -> Self {
        Self {
            transport,
            now: Instant::ZERO,
            tag: 0,
            submitted: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            on_the_spot: false,
        }
    }

    #[track_caller]
    pub(crate) fn submit(&mut self, command: Command) {
        assert_eq!(self.try_submit(command), Ok(()));
    }

    pub(crate) fn try_submit(&mut self, command: Command) -> Result<(), Refusal> {
        self.transport.submit(self.now, &command)?;
        assert!(self.submitted.insert(command.id), "{} is in flight", command.id);
        Ok(())
    }

    pub(crate) fn abort(&mut self, slot: u16) {
        self.transport.abort(self.now, CommandId { slot, generation: 1 });
    }

    pub(crate) fn disconnect(&mut self) {
        self.transport.handle_disconnect(self.now);
    }

    /// Time passes up to the next deadline, which is reported.
    #[track_caller]
    pub(crate) fn expect_timeout(&mut self, reason: crate::DeadlineReason) {
        let deadline = self.transport.poll_timeout().expect("something is waited for");
        assert_eq!(deadline.reason, reason);
        self.now = deadline.at;
        self.transport.handle_timeout(self.now);
    }

    /// The next output.
    #[track_caller]
    fn next(&mut self) -> Output {
        let output =
            self.transport.poll_output().map(Front::take).expect("the transport has something to say");
        match output {
            Output::Submit(transfer) => {
                assert!(transfer.id.0 < self.transport.transfers_max() as u64, "{transfer:?}");
                assert_eq!(self.in_flight.insert(transfer.id, transfer), None, "{transfer:?} is not new");
            }
            Output::Finished(id, _) => {
                assert!(self.submitted.remove(&id), "{id} has ended already");
                let mut payloads = self.in_flight.values().map(|transfer| transfer.payload);
                assert!(
                    !payloads.any(|payload| matches!(payload, Payload::Buffer(piece) if piece.command == id)),
                    "the buffer of {id} is still in use"
                );
            }
            Output::Cancel(_) | Output::Request(..) => {}
        }
        output
    }

    /// The next output is a transfer at this endpoint.
    #[track_caller]
    pub(crate) fn expect_transfer(&mut self, endpoint: EndpointAddress) -> Transfer {
        match self.next() {
            Output::Submit(transfer) if transfer.pipe.endpoint == endpoint => transfer,
            other => panic!("expected a transfer at {endpoint:?}, got {other:?}"),
        }
    }

    /// The next output is a message.
    #[track_caller]
    pub(crate) fn expect_message(&mut self, endpoint: EndpointAddress, expected: &[u8]) -> Transfer {
        let transfer = self.expect_transfer(endpoint);
        let Payload::Inline(inline) = transfer.payload else { panic!("{transfer:?} is no message") };
        assert_eq!(inline.as_bytes(), expected);
        assert_eq!(transfer.length as usize, expected.len());
        transfer
    }

    #[track_caller]
    pub(crate) fn expect_cancel(&mut self, id: TransferId) {
        assert_eq!(self.next(), Output::Cancel(id));
    }

    #[track_caller]
    pub(crate) fn expect_request(&mut self, expected: BusRequest) -> RequestId {
        match self.next() {
            Output::Request(id, request) if request == expected => id,
            other => panic!("expected {expected:?}, got {other:?}"),
        }
    }

    /// The next output is this request, which is answered.
    #[track_caller]
    pub(crate) fn grant(&mut self, expected: BusRequest, answer: BusAnswer) {
        let id = self.expect_request(expected);
        self.transport.handle_answer(self.now, id, answer);
    }

    /// The next output is the end of the command of this slot.
    #[track_caller]
    pub(crate) fn expect_finished(&mut self, slot: u16) -> Outcome {
        match self.next() {
            Output::Finished(id, outcome) if id.slot == slot => outcome,
            other => panic!("expected the end of {slot}, got {other:?}"),
        }
    }

    /// Nothing is to be done.
    #[track_caller]
    pub(crate) fn expect_nothing(&mut self) {
        assert_eq!(self.transport.poll_output().map(Front::take), None);
    }

    #[track_caller]
    pub(crate) fn complete(&mut self, id: TransferId, status: TransferStatus, actual: u32, bytes: &[u8]) {
        self.in_flight.remove(&id).expect("a transfer completes once");
        self.transport.handle_completion(self.now, Completion { id, status, actual }, bytes);
    }

    /// The transfer moved all it could. Of what is sent from within an output every second is reported
    /// as sent immediately.
    #[track_caller]
    pub(crate) fn done(&mut self, transfer: Transfer) {
        self.on_the_spot ^= matches!(transfer.payload, Payload::Inline(_));
        if self.on_the_spot && matches!(transfer.payload, Payload::Inline(_)) {
            self.in_flight.remove(&transfer.id).expect("a transfer completes once");
            return self.transport.handle_sent(self.now, transfer.id, transfer.length);
        }
        self.complete(transfer.id, TransferStatus::Done, transfer.length, &[]);
    }

    /// The device sent a message, or fewer bytes than there is room for.
    #[track_caller]
    pub(crate) fn reply(&mut self, transfer: Transfer, bytes: &[u8]) {
        let actual = bytes.len() as u32;
        let status = if actual == transfer.length { TransferStatus::Done } else { TransferStatus::Short };
        self.complete(transfer.id, status, actual, bytes);
    }

    /// The transfer moved nothing, and ended so.
    #[track_caller]
    pub(crate) fn fail(&mut self, transfer: Transfer, status: TransferStatus) {
        self.complete(transfer.id, status, 0, &[]);
    }

    /// The next output cancels this transfer, which then completes as cancelled.
    #[track_caller]
    pub(crate) fn cancelled(&mut self, transfer: Transfer) {
        self.expect_cancel(transfer.id);
        self.fail(transfer, TransferStatus::Cancelled);
    }

    /// Nothing is in flight, to be done or waited for.
    #[track_caller]
    pub(crate) fn expect_rest(&mut self) {
        self.expect_nothing();
        let left: Vec<_> = self.in_flight.values().collect();
        assert!(left.is_empty() && self.submitted.is_empty(), "{left:?}, {:?}", self.submitted);
        assert_eq!(self.transport.poll_timeout(), None);
        assert_eq!(self.transport.in_flight(), 0);
    }
}
