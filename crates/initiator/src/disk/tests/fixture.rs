//! A disk, a scripted unit and a clock.

use super::super::*;
use super::unit::Unit;
use crate::Failure;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use bus::{Direction, Front};
use units::Extent;

/// More steps than any test needs: what does not end by then hangs.
const STEPS_MAX: usize = 200_000;

/// A disk, a unit, and what became of the requests.
pub(super) struct Fixture {
    pub(super) disk: Disk,
    pub(super) unit: Unit,
    pub(super) now: Instant,
    pub(super) buffers: BTreeMap<RequestId, Vec<u8>>,
    pub(super) in_flight: Vec<(Command, Memory)>,
    pub(super) finished: Vec<(RequestId, Result<Done, Error>)>,
    pub(super) identified: Vec<Result<(), IdentifyError>>,
    pub(super) lost: Vec<LostWrite>,
    pub(super) aborted: Vec<CommandId>,
}

impl Fixture {
    pub(super) fn new(unit: Unit, config: DiskConfig) -> Self {
        Self {
            disk: Disk::new(config),
            unit,
            now: Instant::ZERO,
            buffers: BTreeMap::new(),
            in_flight: Vec::new(),
            finished: Vec::new(),
            identified: Vec::new(),
            lost: Vec::new(),
            aborted: Vec::new(),
        }
    }

    /// A stand whose disk is identified; the unit's log is empty again.
    pub(super) fn identified(unit: Unit) -> Self {
        let config = DiskConfig { requests_max: 8, ..DiskConfig::new(4, 64 << 10) };
        let mut fixture = Self::new(unit, config);
        fixture.identify().unwrap();
        fixture.unit.log.clear();
        fixture
    }

    pub(super) fn identify(&mut self) -> Result<(), IdentifyError> {
        self.disk.start(self.now);
        self.run();
        self.identified.pop().expect("identification ends")
    }

    /// Submits a request; the buffer of a write is filled with its id.
    pub(super) fn submit(&mut self, id: u64, operation: Operation, extent: Extent) {
        let request = Request { id: RequestId(id), operation, extent };
        self.disk.submit(self.now, request).unwrap();
        let block_size = self.disk.geometry().unwrap().block_size;
        let bytes = request.buffer_bytes(block_size).unwrap() as usize;
        self.buffers.insert(request.id, vec![id as u8; bytes]);
    }

    /// Submits a request and has everything end.
    pub(super) fn ask(&mut self, operation: Operation, extent: Extent) -> Result<Done, Error> {
        self.submit(1, operation, extent);
        self.run();
        let (id, result) = self.finished.pop().expect("a request ends");
        assert_eq!((id, self.finished.len()), (RequestId(1), 0));
        result
    }

    /// Everything is carried out until nothing is left to happen.
    pub(super) fn run(&mut self) {
        for _ in 0..STEPS_MAX {
            self.drain();
            if !self.in_flight.is_empty() {
                let (command, memory) = self.in_flight.remove(0);
                self.complete(command, memory);
            } else if !self.pass_time() {
                return;
            }
        }
        panic!("the disk does not come to an end");
    }

    /// Goes to the next deadline. `false`: there is none.
    pub(super) fn pass_time(&mut self) -> bool {
        let Some(deadline) = self.disk.poll_timeout() else { return false };
        self.now = self.now.max(deadline.at);
        self.disk.handle_timeout(self.now);
        true
    }

    /// Takes every output.
    pub(super) fn drain(&mut self) {
        while let Some(output) = self.disk.poll_output().map(Front::take) {
            match output {
                Output::Submit(command, memory) => self.in_flight.push((command, memory)),
                Output::Abort(id) => self.aborted.push(id),
                Output::Identified(result) => self.identified.push(result),
                Output::Finished(id, result) => {
                    assert!(self.finished.iter().all(|(finished, _)| *finished != id), "{id:?} ends twice");
                    self.finished.push((id, result));
                }
                Output::Lost(lost) => self.lost.push(lost),
            }
        }
    }

    /// Has the unit carry out a command and hands in how it ended.
    pub(super) fn complete(&mut self, command: Command, memory: Memory) {
        let (outcome, answer) = self.execute(&command, memory);
        self.disk.handle_outcome(self.now, command.id, &outcome, &answer);
    }

    /// Executes a command on the unit, and returns its outcome and the bytes that an identify
    /// sequence gets.
    pub(super) fn execute(&mut self, command: &Command, memory: Memory) -> (Outcome, Vec<u8>) {
        let range = command.data_phase.map_or(0..0, |phase| phase.range.as_usize());
        let mut answer = Vec::new();
        let outcome = match memory {
            Memory::None => self.unit.execute(&command.cdb, &mut []),
            Memory::Request(id) => {
                let buffer = self.buffers.get_mut(&id).expect("the request is in flight");
                self.unit.execute(&command.cdb, &mut buffer[range])
            }
            Memory::Answer => {
                answer = vec![0; range.len()];
                self.unit.execute(&command.cdb, &mut answer)
            }
            Memory::Parameters => {
                assert_eq!(command.data_phase.map(|phase| phase.direction), Some(Direction::Out));
                let mut parameters = self.disk.parameters(command.id)[range].to_vec();
                self.unit.execute(&command.cdb, &mut parameters)
            }
        };
        (outcome, answer)
    }

    /// Everything in flight ends so.
    pub(super) fn fail_all(&mut self, failure: Failure) {
        self.drain();
        for (command, _) in core::mem::take(&mut self.in_flight) {
            self.disk.handle_outcome(self.now, command.id, &Outcome::Failed(failure), &[]);
        }
        self.drain();
    }
}
