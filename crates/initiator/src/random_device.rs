//! Random devices: whatever a device sends, and whatever becomes of transfers and requests, every
//! command ends once with its buffer unused, nothing panics, and every wait has a deadline.
//!
//! The device answers each transfer as the random script says: with bytes that resemble messages,
//! or with any. In the end it falls silent, and timeouts must end everything.

use crate::script::{read_10, test_unit_ready, write_10};
use crate::turbo::{LookAhead, Turbo, TurboConfig};
use crate::uas::{Uas, UasConfig, UasEndpoints};
use crate::{
    Bot, BotConfig, BusAnswer, BusRequest, CommandId, Output, Payload, RequestId, Timeouts, Transfer,
    Transport,
};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bus::{Completion, Direction, EndpointAddress, Front, TransferId, TransferStatus};
use proptest::prelude::*;
use units::{Duration, Instant};

#[derive(Clone, Debug)]
enum Action {
    Submit {
        writes: bool,
        lba: u32,
        blocks: u8,
    },
    Abort(u16),
    /// A transfer ends, with these bytes where it brings any.
    Complete {
        position: usize,
        status: TransferStatus,
        bytes: Vec<u8>,
        share: u8,
    },
    /// A transfer ends with a message that names this tag.
    Message {
        position: usize,
        kind: u8,
        tag: u8,
        code: u8,
    },
    Answer(BusAnswer),
    PassTime,
}

fn any_action() -> impl Strategy<Value = Action> {
    use TransferStatus::{Babble, Cancelled, Disconnected, Done, Error, Short, Stall};
    let status = prop_oneof![
        8 => Just(Done), 4 => Just(Short), 2 => Just(Stall), 1 => Just(Cancelled), 1 => Just(Babble), 1 => Just(Error),
    ];
    let status = prop_oneof![60 => status, 1 => Just(Disconnected)];
    let answer = prop_oneof![
        6 => Just(BusAnswer::Done), 1 => Just(BusAnswer::Stalled), 1 => Just(BusAnswer::Failed),
        3 => any::<u16>().prop_map(BusAnswer::Streams),
    ];
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        6 => (any::<bool>(), 0u32..64, 0u8..9).prop_map(|(writes, lba, blocks)| Action::Submit { writes, lba, blocks }),
        1 => (0u16..16).prop_map(Action::Abort),
        8 => (any::<usize>(), status, bytes, any::<u8>())
            .prop_map(|(position, status, bytes, share)| Action::Complete { position, status, bytes, share }),
        12 => (any::<usize>(), 0u8..6, 0u8..10, any::<u8>())
            .prop_map(|(position, kind, tag, code)| Action::Message { position, kind, tag, code }),
        4 => answer.prop_map(Action::Answer),
        1 => Just(Action::PassTime),
    ]
}

struct RandomDevice<T> {
    transport: T,
    now: Instant,
    generation: u32,
    commands: BTreeSet<CommandId>,
    in_flight: BTreeMap<TransferId, Transfer>,
    request: Option<(RequestId, BusRequest)>,
}

impl<T: Transport> RandomDevice<T> {
    fn new(transport: T) -> Self {
        let (commands, in_flight) = (BTreeSet::new(), BTreeMap::new());
        Self { transport, now: Instant::ZERO, generation: 0, commands, in_flight, request: None }
    }

    fn take(&mut self, action: Action) {
        match action {
            Action::Submit { writes, lba, blocks } => self.submit(writes, lba, blocks),
            Action::Abort(slot) => {
                let id = self.commands.iter().find(|id| id.slot == slot).copied();
                self.transport.abort(self.now, id.unwrap_or(CommandId { slot, generation: 0 }));
            }
            Action::Complete { position, status, bytes, share } => {
                if let Some(transfer) = self.nth(position) {
                    let actual = (u64::from(transfer.length) * u64::from(share) / 255) as u32;
                    self.complete(transfer, status, actual, &bytes);
                }
            }
            Action::Message { position, kind, tag, code } => {
                if let Some(transfer) = self.nth(position) {
                    self.complete(
                        transfer,
                        TransferStatus::Short,
                        transfer.length,
                        &message(kind, tag, code),
                    );
                }
            }
            Action::Answer(answer) => {
                if let Some((id, _)) = self.request.take() {
                    self.transport.handle_answer(self.now, id, answer);
                }
            }
            Action::PassTime => drop(self.pass_time()),
        }
        self.listen();
    }

    fn submit(&mut self, writes: bool, lba: u32, blocks: u8) {
        let free = |slot: &u16| !self.commands.iter().any(|id| id.slot == *slot);
        let slot = (0..).find(free).expect("there are many slots");
        let mut command = match (blocks, writes) {
            (0, _) => test_unit_ready(slot),
            (_, true) => write_10(slot, lba, blocks),
            (_, false) => read_10(slot, lba, blocks),
        };
        self.generation += 1;
        command.id.generation = self.generation;
        command.deadline = self.now + Duration::from_secs(30);
        if self.transport.submit(self.now, &command).is_ok() {
            self.commands.insert(command.id);
        }
    }

    fn nth(&self, position: usize) -> Option<Transfer> {
        let nth = position.checked_rem(self.in_flight.len())?;
        self.in_flight.values().nth(nth).copied()
    }

    fn complete(&mut self, transfer: Transfer, status: TransferStatus, actual: u32, bytes: &[u8]) {
        self.in_flight.remove(&transfer.id);
        let inward = transfer.pipe.endpoint.direction() == Direction::In;
        let (actual, bytes) = match (transfer.payload, inward) {
            (Payload::Message, _) => {
                let bytes = &bytes[..bytes.len().min(transfer.length as usize)];
                (bytes.len() as u32, bytes)
            }
            (_, true) if bytes.len() <= 13 => (bytes.len() as u32, bytes),
            _ => (actual, &[][..]),
        };
        self.transport.handle_completion(self.now, Completion { id: transfer.id, status, actual }, bytes);
        self.listen();
    }

    fn listen(&mut self) {
        while let Some(output) = self.transport.poll_output().map(Front::take) {
            match output {
                Output::Submit(transfer) => {
                    assert!(transfer.id.0 < self.transport.transfers_max() as u64, "{transfer:?}");
                    assert_eq!(self.in_flight.insert(transfer.id, transfer), None, "{transfer:?} is not new");
                }
                Output::Cancel(id) => {
                    if let Some(transfer) = self.in_flight.get(&id).copied() {
                        self.complete(transfer, TransferStatus::Cancelled, 0, &[]);
                    }
                }
                Output::Request(id, BusRequest::ResetPort) => {
                    assert!(self.in_flight.is_empty(), "{:?} are in flight", self.in_flight);
                    self.request = Some((id, BusRequest::ResetPort));
                }
                Output::Request(id, request) => self.request = Some((id, request)),
                Output::Finished(id, _) => {
                    assert!(self.commands.remove(&id), "{id} has ended before");
                    let uses = |transfer: &Transfer| match transfer.payload {
                        Payload::Buffer(piece) => piece.command == id,
                        Payload::Pieces(pack) => {
                            self.transport.pieces(pack).iter().any(|piece| piece.command == id)
                        }
                        Payload::Inline(_) | Payload::Message => false,
                    };
                    assert!(!self.in_flight.values().any(uses), "the buffer of {id} is in use");
                }
            }
        }
    }

    fn pass_time(&mut self) -> bool {
        let Some(deadline) = self.transport.poll_timeout() else { return false };
        self.now = self.now.max(deadline.at);
        self.transport.handle_timeout(self.now);
        self.listen();
        assert_ne!(self.transport.poll_timeout(), Some(deadline), "nothing came of it");
        true
    }

    /// Nothing comes from the device any more.
    fn run(mut self, script: Vec<Action>) {
        for action in script {
            self.take(action);
        }
        for _ in 0..1000 {
            if self.commands.is_empty() {
                assert_eq!(self.transport.in_flight(), 0);
                return;
            }
            assert!(self.pass_time(), "{:?} wait for nothing", self.commands);
        }
        panic!("{:?} do not end", self.commands);
    }
}

/// Bytes that resemble a status wrapper or an IU of the status pipe.
fn message(kind: u8, tag: u8, code: u8) -> Vec<u8> {
    match kind {
        0 => alloc::vec![b'U', b'S', b'B', b'S', tag, 0, 0, 0, code, 0, 0, 0, code % 4],
        1 => alloc::vec![6, 0, 0, tag],
        2 => alloc::vec![7, 0, 0, tag],
        3 => alloc::vec![4, 0, 0, tag, 0, 0, 0, code % 12],
        4 => alloc::vec![3, 0, 0, tag, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        _ => alloc::vec![3, 0, 0, tag, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, code, 0x72, 3, 0x11, 0, 0, 0, 0, 0],
    }
}

fn bot() -> BotConfig {
    let (bulk_in, bulk_out) =
        (EndpointAddress::at::<1>(Direction::In), EndpointAddress::at::<2>(Direction::Out));
    BotConfig { interface: 0, alternate: 0, bulk_in, bulk_out, timeouts: Timeouts::default() }
}

fn uas(streams: Option<u16>) -> Uas {
    let endpoints = UasEndpoints {
        command: EndpointAddress::at::<4>(Direction::Out),
        status: EndpointAddress::at::<3>(Direction::In),
        data_in: EndpointAddress::at::<1>(Direction::In),
        data_out: EndpointAddress::at::<2>(Direction::Out),
    };
    let (depth, timeouts) = (Some(6), Timeouts::default());
    Uas::new(UasConfig { interface: 0, alternate: 1, endpoints, streams, depth, timeouts }).unwrap()
}

fn any_script() -> impl Strategy<Value = Vec<Action>> {
    prop::collection::vec(any_action(), 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn random_devices_end_no_uas_command_twice_and_let_none_wait(script in any_script(), streams in any::<bool>()) {
        RandomDevice::new(uas(streams.then_some(8))).run(script);
    }

    #[test]
    fn random_devices_end_no_bot_command_twice_and_let_none_wait(script in any_script()) {
        RandomDevice::new(Bot::new(bot())).run(script);
    }

    #[test]
    fn random_devices_end_no_turbo_command_twice_and_let_none_wait(script in any_script()) {
        let look_ahead = LookAhead::AfterNeighbour(Duration::from_us(100));
        RandomDevice::new(Turbo::new(TurboConfig { look_ahead, ..TurboConfig::new(bot()) })).run(script);
    }
}
