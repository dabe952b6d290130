//! A transport and a drive on a faulty bus, and what the host may find in the blocks.

use crate::medium::Hand;
use crate::model::{Blocks, Model, Read, Stamp};
use initiator::session::FinishedCommand;
use initiator::{CommandId, Failure, Outcome, Refusal, Transport};
use std::collections::BTreeMap;
use testkit::command::{BLOCK, command};
use testkit::pair::Pair;
use uaskit_drive::Drive;
use units::Duration;

pub(crate) struct Host<T> {
    pub(crate) pair: Pair<T>,
    hand: Hand,
    model: Model,
    commands: BTreeMap<CommandId, Command>,
    generation: u32,
}

#[derive(Debug)]
enum Command {
    Plain,
    Read(Read),
    Write(Stamp, Blocks),
}

/// Time for a command.
const COMMAND_TIME: Duration = Duration::from_secs(30);

/// Steps of time until everything must have come to an end.
const STEPS_MAX: usize = 2000;

impl<T: Transport> Host<T> {
    pub(crate) fn new(pair: Pair<T>, hand: Hand, blocks: u8) -> Self {
        Self { pair, hand, model: Model::new(blocks), commands: BTreeMap::new(), generation: 0 }
    }

    pub(crate) fn submit(&mut self, writes: bool, blocks: Blocks) {
        let slot = (0..).find(|slot| self.commands.keys().all(|id| id.slot != *slot));
        self.generation += 1;
        let id = CommandId { slot: slot.expect("there are many slots"), generation: self.generation };
        let range = (u32::from(blocks.0), u16::from(blocks.1));
        let sent = command(id, writes, range, self.pair.now + COMMAND_TIME);
        let (model, mut own) = (&mut self.model, Command::Plain);
        let bytes = || match (blocks.1, writes) {
            (0, _) => Vec::new(),
            (_, true) => {
                let (stamp, bytes) = model.begin_write(blocks);
                own = Command::Write(stamp, blocks);
                bytes
            }
            (count, false) => {
                own = Command::Read(model.begin_read(blocks));
                vec![0xee; usize::from(count) * BLOCK as usize]
            }
        };
        match self.pair.submit(&sent, bytes) {
            Ok(()) => drop(self.commands.insert(id, own)),
            Err(Refusal::Full) => {
                assert!(self.pair.transport().in_flight() > 0, "full, and nothing that could end");
            }
            Err(refusal) => assert_eq!((refusal, self.pair.transport().depth()), (Refusal::Gone, 0)),
        }
        self.take_finished();
    }

    pub(crate) fn abort(&mut self, position: usize) {
        let nth = position.checked_rem(self.commands.len());
        if let Some(id) = nth.and_then(|nth| self.commands.keys().nth(nth).copied()) {
            self.pair.abort(id);
        }
    }

    pub(crate) fn answer_medium(&mut self, position: usize, fails: bool) {
        self.hand.answer(position, fails);
        self.pair.bus.collect();
    }

    /// Ends all that was in flight with a device that is gone, without time.
    fn bury(&mut self) {
        self.pair.bury();
        self.take_finished();
        assert!(self.commands.is_empty(), "{:?} outlive the device", self.commands.keys());
    }

    /// Plugged in again, if it is gone: both ends have a new life. The blocks and the books go on. `power_up` makes a
    /// drive that knows nothing of the one before; without it, it is the same.
    pub(crate) fn plug(
        mut self,
        attach: impl Fn(&mut Drive) -> T,
        power_up: Option<impl Fn(&Hand) -> Drive>,
    ) -> Self {
        if !self.pair.bus.is_unplugged() {
            return self;
        }
        self.bury();
        let now = self.pair.now;
        let mut drive = self.pair.into_drive();
        match power_up {
            Some(power_up) => drive = power_up(&self.hand),
            None => drive.bus_reset(),
        }
        self.pair = Pair::new(attach(&mut drive), drive);
        self.pair.now = now;
        self
    }

    /// Stops all faults: everything is delivered, and time passes where nothing else does. Every command ends.
    pub(crate) fn clear_up(&mut self) {
        self.pair.bus.stop_faults();
        self.hand.release();
        if self.pair.bus.is_unplugged() {
            return self.bury();
        }
        for _ in 0..STEPS_MAX {
            self.pair.flow();
            self.take_finished();
            if self.commands.is_empty() && self.pair.transport().in_flight() == 0 {
                return;
            }
            assert!(self.pair.pass_time(), "{:?} wait for nothing", self.commands.keys());
        }
        panic!("{:?} do not end", self.commands.keys());
    }

    /// Reads everything back, if the device can still be asked.
    pub(crate) fn inspect(&mut self, blocks: u8) {
        for first in 0..blocks {
            self.submit(false, (first, 1));
            self.clear_up();
        }
    }

    /// Compares what has ended with the model.
    pub(crate) fn take_finished(&mut self) {
        while let Some(FinishedCommand { id, outcome, .. }) = self.pair.poll() {
            let command = self.commands.remove(&id).expect("a command ends once");
            if outcome == Outcome::Failed(Failure::Disconnected) {
                assert!(self.pair.bus.is_unplugged(), "it was not unplugged");
            }
            let moved = match outcome {
                Outcome::Answered(answer) if outcome.is_good() => answer.moved as usize,
                _ => 0,
            };
            match command {
                Command::Plain => {}
                Command::Read(read) => self.model.end_read(read, &self.pair.bytes(id)[..moved]),
                Command::Write(stamp, blocks) => {
                    self.model.end_write(stamp, blocks, moved == usize::from(blocks.1) * BLOCK as usize);
                }
            }
        }
    }
}
