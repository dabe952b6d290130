//! Bulk-Only Transport: one command at a time, a wrapper out, at most one data phase, a wrapper in (clause 5 and 6).
//!
//! A failed command is kept until the host has requested its sense data, so that they are reported with it. What a transfer on the endpoint to
//! the host is, data or status, follows from what has moved and from what is in it.

use crate::command::{Block, Command, Outcome, Part, Transport};
use crate::event::{Event, Mark, TransferEnd};
use crate::ledger::Reporter;
use crate::open::Open;
use crate::verdict::Fault;
use std::collections::VecDeque;
use wire::bot::{Cbw, Csw, CswStatus};
use wire::scsi::opcode::OperationCode;
use wire::usb::Direction;

/// Transfers that are in flight at a time; a host that cuts data has a handful.
const TRANSFERS_MAX: usize = 256;
/// Stalls of one command that are kept.
const STALLS_MAX: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Bot {
    current: Option<Current>,
    /// Failed; the host may request its sense data.
    failed: Option<(Command, Vec<u8>)>,
    /// It has, whatever came of it.
    has_asked: bool,
    /// Transfers to the host in flight.
    transfers: VecDeque<Submitted>,
    /// Whether the capture has both ends of transfers. Some have one record of each: of one to the device its submission, of one to the
    /// host its end.
    has_both_ends: bool,
    last_ended: Option<Mark>,
    /// Whether a wrapper was seen since the capture began, or since packets were missing: what else comes now follows from it.
    is_in_step: bool,
}

#[derive(Debug)]
struct Current {
    open: Open,
    wrapper: u64,
    direction: Direction,
    /// No more data come, although not all have.
    data_ended: bool,
    /// Where stalls ended its data: no fault if a status follows.
    stalled: Vec<u64>,
    /// Whether a transfer to the host has ended: where none is in the capture, the status may not be either.
    has_read: bool,
    /// Data to the device that were submitted and whose end was not seen: id and bytes.
    sending: VecDeque<(u64, u32)>,
}

/// A transfer to the host that was submitted.
#[derive(Clone, Copy, Debug)]
struct Submitted {
    id: u64,
    /// Bytes that it requests, if the capture has them.
    length: Option<u32>,
    packet: u64,
}

impl Bot {
    pub(crate) fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// A transfer to the device.
    pub(crate) fn take_out(&mut self, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        self.has_both_ends |= event.ended().is_some();
        if event.is_submitted() {
            match wrapper(event) {
                Some(cbw) => self.begin(&cbw, event, reporter),
                None => self.send_data(event, reporter),
            }
        } else if let (Some(ended), Some(current)) = (event.ended(), &mut self.current) {
            // A host may use the same request for the data, once the wrapper has gone.
            let is_command = event.id == current.wrapper && current.open.command.sent_ns.is_none();
            current.sending.retain(|(id, _)| is_command || *id != event.id);
            current.open.step(event, if is_command { Part::Command } else { Part::DataOut });
            match ended {
                TransferEnd::Done if is_command => current.open.command.sent_ns = Some(event.mark.at_ns),
                // Where packets are missing this may be the next wrapper, or data of another command.
                TransferEnd::Done if current.direction == Direction::Out => current.open.moved(event),
                TransferEnd::Done => {}
                _ => {
                    // What went before the end counts.
                    if !is_command && event.len() > 0 {
                        current.open.moved(event);
                    }
                    current.data_ended = true;
                    self.cut_short(ended, !is_command, event, reporter);
                }
            }
        }
    }

    /// A transfer to the host.
    pub(crate) fn take_in(&mut self, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        let Some(ended) = event.ended() else {
            self.has_both_ends = true;
            self.transfers.retain(|transfer| transfer.id != event.id);
            self.transfers.truncate(TRANSFERS_MAX - 1);
            let Event { id, length, mark, .. } = *event;
            self.transfers.push_front(Submitted { id, length, packet: mark.packet });
            if let Some(current) = &mut self.current {
                let part = current.expects();
                current.open.step(event, part);
            }
            return;
        };
        self.has_both_ends |= event.is_submitted();
        let asked = self.asked(event);
        let is_long = asked.is_some_and(|asked| asked as usize > Csw::LEN);
        let Some(current) = &mut self.current else {
            if ended == TransferEnd::Done && self.is_in_step && Csw::decode(event.bytes).is_ok() {
                reporter.record(Fault::StatusWithoutCommand, &[event.mark.packet]);
            }
            return;
        };
        let part = current.part_of(event);
        current.open.step(event, part);
        current.has_read = true;
        if ended == TransferEnd::Cancelled && current.data_ended && is_long {
            // What a host had submitted for more data than came.
            return;
        }
        match (ended, part) {
            (TransferEnd::Done, Part::DataIn) => {
                current.open.moved(event);
                current.data_ended |= asked.is_some_and(|asked| event.len() < asked);
            }
            (TransferEnd::Done, _) => self.take_status(event, reporter),
            _ => {
                if part == Part::DataIn && event.len() > 0 {
                    current.open.moved(event);
                }
                current.data_ended |= part == Part::DataIn;
                // A device that ends its data by a stall may be heard of only where the status is read (clause 6.7.2).
                self.cut_short(ended, true, event, reporter);
            }
        }
    }

    /// Packets are missing here: what was in flight may have ended, and something else begun.
    pub(crate) fn miss(&mut self) {
        self.transfers.clear();
        self.is_in_step = false;
        // There may have been others since.
        self.last_ended = None;
    }

    /// Whether a command is in flight: the packet in which it began.
    pub(crate) fn in_flight(&self) -> Option<u64> {
        self.current.as_ref().map(|current| current.open.command.began.packet)
    }

    /// The host has reset the device, or chosen a setting: nothing is in flight any more.
    pub(crate) fn abort(&mut self, at: Mark, reporter: &mut Reporter<'_>) {
        self.transfers.clear();
        // The host need not ask any more.
        if let Some((command, answer)) = self.failed.take() {
            reporter.end(command, &answer);
        }
        if let Some(current) = self.current.take() {
            self.give_up(current, at, reporter);
        }
    }

    /// The capture has ended.
    pub(crate) fn finish(&mut self, reporter: &mut Reporter<'_>) {
        // Whether the host would have asked why is not known.
        if let Some((command, answer)) = self.failed.take() {
            reporter.end(command, &answer);
        }
        // The host had given up before: what it did next is not in the capture.
        if let Some(current) = self.current.take_if(|current| current.open.cancelled.is_some()) {
            let at = current.open.command.began;
            self.give_up(current, at, reporter);
        }
        if let Some(current) = self.current.take() {
            let has_all = reporter.has_all_since(current.open.command.began.packet);
            let outcome = if has_all { Outcome::Unfinished } else { Outcome::NotKept };
            let (command, answer) = current.open.ended(outcome, None);
            reporter.end(command, &answer);
        }
    }

    fn begin(&mut self, cbw: &Cbw, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        self.is_in_step = true;
        if let Some(current) = self.current.take() {
            if current.open.cancelled.is_some() || current.open.is_broken_off {
                self.give_up(current, event.mark, reporter);
            } else if !reporter.has_all_since(current.open.command.began.packet)
                || !self.has_both_ends
                || !current.has_read
                || self.waits_since(current.open.command.began)
            {
                current.lose(reporter);
            } else {
                let packets = [current.open.command.began.packet, event.mark.packet];
                reporter.record(Fault::CommandBeforeStatus, &packets);
                current.judge_stall(Outcome::Overtaken, reporter);
                let (command, answer) = current.open.ended(Outcome::Overtaken, Some(event.mark));
                reporter.end(command, &answer);
            }
        }
        let len = usize::from(cbw.command_len).min(cbw.command.len());
        let block = Block::new(&cbw.command[..len]);
        if block.opcode() == OperationCode::RequestSense {
            self.has_asked = true;
        } else {
            self.release_failed(reporter);
        }
        let mut open = Open::new(Command {
            address: reporter.address,
            transport: Transport::Bot,
            lun: Some(cbw.lun.into()),
            tag: cbw.tag,
            stream: None,
            block,
            began: event.mark,
            sent_ns: None,
            data: None,
            ended: None,
            asked: Some(cbw.transfer_len.into()),
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
        if event.ended().is_some() {
            open.command.sent_ns = Some(event.mark.at_ns);
        }
        if let Some(packet) = reporter.units.is_retry(&open.command) {
            reporter.record_with(Fault::Retried, block.opcode(), &[packet, event.mark.packet]);
        }
        let (wrapper, direction) = (event.id, cbw.direction());
        let sending = VecDeque::new();
        self.current = Some(Current {
            open,
            wrapper,
            direction,
            data_ended: false,
            stalled: Vec::new(),
            has_read: false,
            sending,
        });
    }

    /// Bytes to the device that are no command.
    fn send_data(&mut self, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        match &mut self.current {
            Some(current) => {
                current.open.step(event, Part::DataOut);
                match event.ended() {
                    Some(TransferEnd::Done) => current.open.moved(event),
                    Some(_) => {}
                    None => current.send(event),
                }
            }
            None if event.is_whole() && self.is_in_step => {
                reporter.record(Fault::CommandWrapper, &[event.mark.packet]);
            }
            // A wrapper of which not all was kept: what follows is of a command that is not known.
            None => self.miss(),
        }
    }

    /// A transfer that is no data has come: the status, or what is in its place.
    fn take_status(&mut self, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        let packet = event.mark.packet;
        let Some(current) = self.current.take() else { return };
        let began = current.open.command.began.packet;
        let has_all = reporter.has_all_since(began);
        let csw = match Csw::decode(event.bytes) {
            Ok(csw) => csw,
            Err(_) if event.len() == 0 => {
                // A host asks once more.
                reporter.record(Fault::WrapperEmpty, &[began, packet]);
                self.current = Some(current);
                return;
            }
            // Its status may be among what is missing, and this be of a command whose beginning is.
            Err(_) if !has_all => return current.lose(reporter),
            Err(_) if !event.is_whole() => return self.end(current, Outcome::NotKept, event.mark, reporter),
            Err(_) => {
                reporter.record(Fault::WrapperSignature, &[began, packet]);
                return self.end(current, Outcome::Broken, event.mark, reporter);
            }
        };
        if csw.tag != current.open.command.tag && !has_all {
            return current.lose(reporter);
        }
        if csw.tag != current.open.command.tag {
            reporter.record(Fault::WrapperTag, &[began, packet]);
            return self.end(current, Outcome::Broken, event.mark, reporter);
        }
        self.take_wrapper(current, &csw, event.mark, reporter);
    }

    fn take_wrapper(&mut self, mut current: Current, csw: &Csw, at: Mark, reporter: &mut Reporter<'_>) {
        let waits = self.waits_since(current.open.command.began) || !current.sending.is_empty();
        current.settle_sending(csw.status);
        let command = &mut current.open.command;
        command.residue = Some(csw.residue);
        let (opcode, packets) = (command.block.opcode(), [command.began.packet, at.packet]);
        match csw.status {
            CswStatus::PhaseError => reporter.record_with(Fault::PhaseError, opcode, &packets),
            CswStatus::Unknown(_) => reporter.record(Fault::WrapperSignature, &packets),
            CswStatus::Passed | CswStatus::Failed => {
                // What moved among the missing packets is not known.
                let has_all = reporter.has_all_since(packets[0]) && !waits;
                if let Some(fault) = current.judge_residue(csw).filter(|_| has_all) {
                    reporter.record_with(fault, opcode, &packets);
                }
            }
        }
        let is_sense = opcode == OperationCode::RequestSense && csw.status == CswStatus::Passed;
        if let Some((mut failed, answer)) = self.failed.take_if(|_| is_sense) {
            failed.sense = current.open.answer.clone();
            reporter.end(failed, &answer);
        }
        self.end(current, Outcome::Wrapper(csw.status), at, reporter);
    }

    /// Ends a command; one that failed waits for its sense data.
    fn end(&mut self, current: Current, outcome: Outcome, at: Mark, reporter: &mut Reporter<'_>) {
        self.last_ended = Some(at);
        current.judge_stall(outcome, reporter);
        let (command, answer) = current.open.ended(outcome, Some(at));
        let is_question = command.block.opcode() == OperationCode::RequestSense;
        if outcome == Outcome::Wrapper(CswStatus::Failed) && !is_question {
            self.release_failed(reporter);
            self.failed = Some((command, answer));
            self.has_asked = false;
        } else {
            reporter.end(command, &answer);
        }
    }

    /// The host did not request the sense data of a failed command.
    fn release_failed(&mut self, reporter: &mut Reporter<'_>) {
        if let Some((command, answer)) = self.failed.take() {
            if !self.has_asked {
                let packets: Vec<u64> = command.ended.iter().map(|mark| mark.packet).collect();
                reporter.record_with(Fault::SenseNotAsked, command.block.opcode(), &packets);
            }
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

    /// A transfer failed.
    fn cut_short(
        &mut self,
        ended: TransferEnd,
        is_data: bool,
        event: &Event<'_>,
        reporter: &mut Reporter<'_>,
    ) {
        let Some(current) = &mut self.current else { return };
        if ended == TransferEnd::Stalled && is_data {
            current.stalled.truncate(STALLS_MAX - 1);
            current.stalled.push(event.mark.packet);
            return;
        }
        current.open.cut_short(ended, event, reporter);
    }

    /// Bytes that a transfer asked for, when it was submitted.
    fn asked(&mut self, event: &Event<'_>) -> Option<u32> {
        let at = self.transfers.iter().position(|transfer| transfer.id == event.id)?;
        self.transfers.remove(at)?.length
    }

    /// Whether a transfer to the host that was submitted since has no end in the capture: what it brought is not known.
    fn waits_since(&self, began: Mark) -> bool {
        self.transfers.iter().any(|transfer| transfer.packet > began.packet)
    }
}

impl Current {
    /// Data to the device are submitted; their end may not be in the capture.
    fn send(&mut self, event: &Event<'_>) {
        if self.sending.len() < TRANSFERS_MAX {
            self.sending.push_back((event.id, event.len()));
        }
    }

    /// The status has come: what was submitted to a device that passed the command has gone to it.
    fn settle_sending(&mut self, status: CswStatus) {
        let sent: u64 = self.sending.drain(..).map(|(_, bytes)| u64::from(bytes)).sum();
        if status == CswStatus::Passed && self.direction == Direction::Out {
            self.open.command.moved += sent;
        }
    }

    /// Its status is among what is missing: when it ended is not known.
    fn lose(self, reporter: &mut Reporter<'_>) {
        let (command, answer) = self.open.ended(Outcome::NotKept, None);
        reporter.end(command, &answer);
    }

    /// Returns the part of the command that the next transfer to the host carries.
    fn expects(&self) -> Part {
        let command = &self.open.command;
        let has_data = self.direction == Direction::In && command.asked.unwrap_or(0) > command.moved;
        if has_data && !self.data_ended { Part::DataIn } else { Part::Status }
    }

    /// Returns the part of the command that a completed transfer carries: a status may come where
    /// data should.
    fn part_of(&self, event: &Event<'_>) -> Part {
        let is_ours = Csw::decode(event.bytes).is_ok_and(|csw| csw.tag == self.open.command.tag);
        if is_ours { Part::Status } else { self.expects() }
    }

    /// Whether a stall of the data was one of those by which a device ends them (clause 6.7.2): then its status follows.
    fn judge_stall(&self, outcome: Outcome, reporter: &mut Reporter<'_>) {
        let fault = match outcome {
            Outcome::Wrapper(_) => Fault::StallEndsData,
            Outcome::NotKept => return,
            _ => Fault::Stall,
        };
        for packet in &self.stalled {
            reporter.record_in(&self.open.command, fault, &[*packet]);
        }
    }

    /// Whether the residue is right. A device may pad what it sends and discard what it gets, so that the residue may be more than
    /// what did not move (clause 6.7), but not of blocks that were read or written well.
    fn judge_residue(&self, csw: &Csw) -> Option<Fault> {
        let command = &self.open.command;
        let asked = command.asked.unwrap_or(0);
        let not_moved = asked.saturating_sub(command.moved);
        let residue = u64::from(csw.residue);
        let is_exempt = csw.status == CswStatus::Failed || !command.block.moves_blocks();
        match residue {
            _ if residue > asked => Some(Fault::ResidueTooLong),
            _ if residue < not_moved && is_exempt => Some(Fault::ShortWithoutResidue),
            _ if residue < not_moved => Some(Fault::ResidueTooSmall),
            _ if residue > not_moved && !is_exempt => Some(Fault::ResidueTooLarge),
            _ => None,
        }
    }
}

/// The command wrapper that is sent, if it is one.
fn wrapper(event: &Event<'_>) -> Option<Cbw> {
    Cbw::decode(event.bytes).ok()
}
