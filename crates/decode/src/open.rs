//! A command that has not ended.

use crate::command::{Command, Outcome, Part, SENSE_BYTES_MAX, TransferStep};
use crate::event::{Event, Mark};
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

    /// The command, ended.
    pub(crate) fn ended(mut self, outcome: Outcome, at: Option<Mark>) -> (Command, Vec<u8>) {
        self.command.outcome = outcome;
        self.command.ended = at;
        (self.command, self.answer)
    }

    pub(crate) fn keep_sense(&mut self, sense: &[u8]) {
        self.command.sense = sense[..sense.len().min(SENSE_BYTES_MAX)].to_vec();
    }
}
