//! A command that has not ended.

use crate::command::{Command, Outcome, Part, TransferStep};
use crate::event::{Event, Mark, TransferEnd};
use crate::ledger::Reporter;
use crate::verdict::Fault;
use wire::scsi::opcode::OperationCode;

/// Bytes of a command's data that are kept until it ends: more than any answer that is looked into.
const ANSWER_BYTES_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) command: Command,
    /// The first bytes of its data, if they came from the device and are no blocks.
    pub(crate) answer: Vec<u8>,
    /// The host cancelled one of its transfers.
    pub(crate) cancelled: Option<Mark>,
    /// One of its transfers failed so that the host can but give up.
    pub(crate) is_broken_off: bool,
}

impl Open {
    pub(crate) fn new(command: Command) -> Self {
        Self { command, answer: Vec::new(), cancelled: None, is_broken_off: false }
    }

    /// Its operation code.
    pub(crate) fn opcode(&self) -> OperationCode {
        self.command.block.opcode()
    }

    pub(crate) fn step(&mut self, event: &Event<'_>, part: Part) {
        let Event { mark, phase, length, .. } = *event;
        self.command.step(TransferStep { mark, part, phase, length });
    }

    /// Data have moved.
    pub(crate) fn moved(&mut self, event: &Event<'_>) {
        let command = &mut self.command;
        command.moved += u64::from(event.len());
        let (first, _) = command.data.unwrap_or((event.mark, event.mark));
        command.data = Some((first, event.mark));
        if event.is_in() && !command.block.moves_blocks() {
            let room = ANSWER_BYTES_MAX - self.answer.len();
            self.answer.extend(event.bytes.iter().take(room));
        }
    }

    /// One of its transfers failed, other than by a stall that the transport has a meaning for.
    pub(crate) fn cut_short(&mut self, ended: TransferEnd, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        let (command, packets) = (&self.command, [event.mark.packet]);
        match ended {
            TransferEnd::Stalled => reporter.record_in(command, Fault::Stall, &packets),
            TransferEnd::Babble => reporter.record_in(command, Fault::Babble, &packets),
            TransferEnd::Failed(_) => reporter.record_in(command, Fault::BusError, &packets),
            TransferEnd::Gone => reporter.record_since(command.began.packet, Fault::Gone, &packets),
            TransferEnd::Done | TransferEnd::Cancelled => {}
        }
        self.is_broken_off |= matches!(ended, TransferEnd::Failed(_) | TransferEnd::Gone);
        if ended.is_cut_short() {
            self.cancelled.get_or_insert(event.mark);
        }
    }

    /// The command, ended.
    pub(crate) fn ended(mut self, outcome: Outcome, at: Option<Mark>) -> (Command, Vec<u8>) {
        self.command.outcome = outcome;
        self.command.ended = at;
        (self.command, self.answer)
    }
}
