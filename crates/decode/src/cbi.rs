//! Control/Bulk/Interrupt: a command block in a class request, data by bulk, two bytes from the interrupt endpoint (CBI Transport 1.1).
//!
//! Without an interrupt endpoint nothing ends a command: it has ended where the next one begins, and REQUEST SENSE reports how. Left
//! out: files with one record of each transfer, where data to the device count as not moved.

use crate::command::{Block, Command, Outcome, Part, Transport};
use crate::event::{Event, Mark, TransferEnd};
use crate::ledger::Reporter;
use crate::open::Open;
use crate::verdict::Fault;
use wire::cbi::StatusBlock;
use wire::scsi::Status;
use wire::scsi::opcode::OperationCode;
use wire::scsi::sense::{Sense, SenseKey};
use wire::ufi::{self, DataStage};

/// Stalls of one command that are kept.
const STALLS_MAX: usize = 8;
/// Data end with a packet that is shorter than this, the shortest of a full bulk endpoint (USB 2.0 clause 5.8.3).
const PACKET_BYTES_MIN: u32 = 8;

/// Protocol and command set of an interface, as far as the capture has its descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CbiInterface {
    /// The command set is UFI; else status blocks have a type and a value.
    pub(crate) is_ufi: bool,
    /// Commands end with a status block; not known where the capture has no descriptor.
    pub(crate) has_interrupt: Option<bool>,
}

#[derive(Debug, Default)]
pub(crate) struct Cbi {
    current: Option<Current>,
    /// It failed, or no status block reports how it ended: the host may request sense data.
    unexplained: Option<(Command, Vec<u8>)>,
    last_ended: Option<Mark>,
    /// A status block was seen.
    has_reported: bool,
}

#[derive(Debug)]
struct Current {
    open: Open,
    interface: CbiInterface,
    /// The request with the command block.
    request: u64,
    /// The data phase is over.
    data_ended: bool,
    /// Where stalls ended its data: no fault if a status follows.
    stalled: Vec<u64>,
}

impl Cbi {
    /// Begins a command: its command block is submitted.
    pub(crate) fn begin(&mut self, event: &Event<'_>, interface: CbiInterface, reporter: &mut Reporter<'_>) {
        self.leave_current(event.mark, reporter);
        let block = Block::new(event.bytes);
        if block.opcode() != OperationCode::RequestSense {
            self.release_unexplained(reporter);
        }
        let lun = u16::from(ufi::lun(event.bytes));
        let block_bytes = reporter.units.block_bytes(Some(lun));
        let data = ufi::data_stage(event.bytes, block_bytes.unwrap_or_default());
        let asked = match data.filter(|_| block_bytes.is_some() || !block.moves_blocks()) {
            Some(DataStage::In { bytes } | DataStage::Out { bytes }) => Some(bytes.into()),
            Some(DataStage::None) => Some(0),
            None => None,
        };
        let mut open = Open::new(Command {
            address: reporter.address,
            transport: Transport::Cbi,
            lun: Some(lun),
            tag: 0,
            stream: None,
            block,
            began: event.mark,
            sent_ns: None,
            data: None,
            ended: None,
            asked,
            moved: 0,
            residue: None,
            outcome: Outcome::Unfinished,
            sense: Vec::new(),
            depth: 1,
            idle_ns: self.last_ended.map(|last| event.mark.at_ns.saturating_sub(last.at_ns)),
            steps: Vec::new(),
            steps_left_off: 0,
        });
        open.step(event, Part::Command);
        if let Some(packet) = reporter.units.is_retry(&open.command) {
            reporter.record_with(Fault::Retried, block.opcode(), &[packet, event.mark.packet]);
        }
        let data_ended = asked == Some(0);
        self.current = Some(Current { open, interface, request: event.id, data_ended, stalled: Vec::new() });
    }

    /// A control transfer has ended: perhaps the one with the command block.
    pub(crate) fn end_request(&mut self, event: &Event<'_>, ended: TransferEnd, reporter: &mut Reporter<'_>) {
        let is_ours =
            |current: &Current| current.request == event.id && current.open.command.sent_ns.is_none();
        let Some(mut current) = self.current.take_if(|current| is_ours(current)) else { return };
        if !event.is_submitted() {
            current.open.step(event, Part::Command);
        }
        match ended {
            TransferEnd::Done => current.open.command.sent_ns = Some(event.mark.at_ns),
            // The device has no such command.
            TransferEnd::Stalled => return self.end(current, Outcome::Stalled, event.mark, reporter),
            _ => current.open.cut_short(ended, event, reporter),
        }
        self.current = Some(current);
    }

    /// A transfer of a bulk endpoint.
    pub(crate) fn take_data(&mut self, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        let has_interrupt =
            self.current.as_ref().is_some_and(|current| self.has_interrupt_of(current.interface));
        let Some(current) = &mut self.current else { return };
        current.open.step(event, if event.is_in() { Part::DataIn } else { Part::DataOut });
        let Some(ended) = event.ended() else { return };
        if event.len() > 0 || ended == TransferEnd::Done {
            current.open.moved(event);
        }
        match ended {
            TransferEnd::Done => {
                let command = &current.open.command;
                let is_short = event.len() == 0 || !event.len().is_multiple_of(PACKET_BYTES_MIN);
                current.data_ended |= is_short || command.asked.is_some_and(|asked| command.moved >= asked);
            }
            TransferEnd::Stalled if has_interrupt => {
                current.stalled.truncate(STALLS_MAX - 1);
                current.stalled.push(event.mark.packet);
            }
            TransferEnd::Stalled => {
                let Some(current) = self.current.take() else { return };
                self.end(current, Outcome::Stalled, event.mark, reporter);
            }
            _ => current.open.cut_short(ended, event, reporter),
        }
    }

    /// A transfer of the interrupt endpoint.
    pub(crate) fn take_status(&mut self, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        self.has_reported = true;
        let Some(current) = &mut self.current else { return };
        current.open.step(event, Part::Status);
        let Some(ended) = event.ended() else { return };
        if ended != TransferEnd::Done {
            return current.open.cut_short(ended, event, reporter);
        }
        let Some(current) = self.current.take() else { return };
        // It may be of a command that is among what is missing.
        let outcome = if reporter.has_all_since(current.open.command.began.packet) {
            current.outcome(event)
        } else {
            Outcome::NotKept
        };
        self.end(current, outcome, event.mark, reporter);
    }

    /// Packets are missing here.
    pub(crate) fn miss(&mut self) {
        self.last_ended = None;
    }

    /// Whether a command is in flight: the packet in which it began.
    pub(crate) fn in_flight(&self) -> Option<u64> {
        let current = self.current.as_ref().filter(|current| !self.has_ended(current));
        current.map(|current| current.open.command.began.packet)
    }

    /// The host has reset the device, or chosen a setting: nothing is in flight any more.
    pub(crate) fn abort(&mut self, at: Mark, reporter: &mut Reporter<'_>) {
        match self.current.take() {
            Some(current) if self.has_ended(&current) => self.end_silently(current, reporter),
            Some(current) => self.give_up(current, at, reporter),
            None => {}
        }
        self.release_unexplained(reporter);
    }

    /// The capture has ended.
    pub(crate) fn finish(&mut self, reporter: &mut Reporter<'_>) {
        match self.current.take() {
            Some(current) if current.open.cancelled.is_some() => {
                let at = current.open.command.began;
                self.give_up(current, at, reporter);
            }
            Some(current) if self.has_ended(&current) => self.end_silently(current, reporter),
            Some(current) => {
                let has_all = reporter.has_all_since(current.open.command.began.packet);
                let outcome = if has_all { Outcome::Unfinished } else { Outcome::NotKept };
                let (command, answer) = current.open.ended(outcome, None);
                reporter.end(command, &answer);
            }
            None => {}
        }
        self.release_unexplained(reporter);
    }

    /// The next command begins: what became of the one before.
    fn leave_current(&mut self, at: Mark, reporter: &mut Reporter<'_>) {
        let Some(current) = self.current.take() else { return };
        if current.open.cancelled.is_some() || current.open.is_broken_off {
            self.give_up(current, at, reporter);
        } else if !self.has_interrupt_of(current.interface) {
            self.end_silently(current, reporter);
        } else {
            let has_all = reporter.has_all_since(current.open.command.began.packet);
            let outcome = if has_all { Outcome::Overtaken } else { Outcome::NotKept };
            self.end(current, outcome, at, reporter);
        }
    }

    /// Whether status blocks end commands.
    fn has_interrupt_of(&self, interface: CbiInterface) -> bool {
        interface.has_interrupt.unwrap_or(self.has_reported)
    }

    /// Whether a command without a status block is over.
    fn has_ended(&self, current: &Current) -> bool {
        let is_sent = current.open.command.sent_ns.is_some();
        is_sent && current.data_ended && !self.has_interrupt_of(current.interface)
    }

    /// Ends a command that has no status, where its last transfer ended.
    fn end_silently(&mut self, current: Current, reporter: &mut Reporter<'_>) {
        let command = &current.open.command;
        let last = command.steps.last().map_or(command.began, |step| step.mark);
        self.end(current, Outcome::NoStatus, last, reporter);
    }

    fn end(&mut self, current: Current, outcome: Outcome, at: Mark, reporter: &mut Reporter<'_>) {
        self.last_ended = Some(at);
        let fault =
            if matches!(outcome, Outcome::Completion(_)) { Fault::StallEndsData } else { Fault::Stall };
        for packet in &current.stalled {
            reporter.record_in(&current.open.command, fault, &[*packet]);
        }
        let (command, answer) = current.open.ended(outcome, Some(at));
        if command.block.opcode() == OperationCode::RequestSense {
            if let Some((explained, data)) = self.unexplained.take() {
                reporter.end(explain(explained, &answer), &data);
            }
            return reporter.end(command, &answer);
        }
        self.release_unexplained(reporter);
        if command.is_error() || outcome == Outcome::NoStatus {
            self.unexplained = Some((command, answer));
        } else {
            reporter.end(command, &answer);
        }
    }

    /// The host did not request sense data.
    fn release_unexplained(&mut self, reporter: &mut Reporter<'_>) {
        if let Some((command, answer)) = self.unexplained.take() {
            reporter.end(command, &answer);
        }
    }

    /// The host gave up on a command.
    fn give_up(&mut self, current: Current, at: Mark, reporter: &mut Reporter<'_>) {
        let at = current.open.cancelled.unwrap_or(at);
        let waited_ns = at.at_ns.saturating_sub(current.open.command.began.at_ns);
        if !current.open.is_broken_off {
            reporter.record_abort(&current.open.command, waited_ns, at.packet);
        }
        self.end(current, Outcome::Aborted, at, reporter);
    }
}

impl Current {
    /// Returns how the command ended by its status block.
    fn outcome(&self, event: &Event<'_>) -> Outcome {
        let status = StatusBlock::decode(event.bytes).and_then(|block| match self.interface.is_ufi {
            true => Ok(block.ufi()),
            false => block.completion(),
        });
        match status {
            Ok(status) => Outcome::Completion(status),
            Err(_) if !event.is_whole() => Outcome::NotKept,
            Err(_) => Outcome::Broken,
        }
    }
}

/// A command, with the sense data that the host requested after it.
fn explain(mut command: Command, sense: &[u8]) -> Command {
    let Ok(decoded) = Sense::decode(sense) else { return command };
    if command.outcome == Outcome::NoStatus {
        let is_good = decoded.key == SenseKey::NoSense;
        command.outcome = Outcome::Status(if is_good { Status::Good } else { Status::CheckCondition });
    }
    if command.is_error() {
        command.keep_sense(sense);
    }
    command
}
