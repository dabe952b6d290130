//! USB Attached SCSI: many commands at a time, named by their tags (UAS-2 clause 6).
//!
//! An information unit says its tag. Data do not: on streams the stream is the tag, where a capture has it; without, what was submitted
//! before the command belongs to it, as drivers do, and where the device asks for data, what follows READ READY or WRITE READY
//! (`flow.rs`). A command whose status is GOOD ends when its data have.

mod flow;

use crate::command::{Block, Command, Outcome, Part, Transport};
use crate::event::{Event, Mark, TransferEnd};
use crate::ledger::Reporter;
use crate::open::Open;
use crate::verdict::Fault;
use flow::Flow;
use std::collections::{BTreeMap, BTreeSet};
use wire::scsi::Status;
use wire::scsi::lun::{Lun, LunField};
use wire::uas::{
    CommandIu, CommandPipeIu, ReadyIu, ResponseCode, ResponseIu, SenseIu, StatusIu, TaskManagementFunction,
    TaskManagementIu,
};
use wire::usb::Direction;

/// Commands of a device that are in flight at a time: more than any device has streams that hosts use.
pub(crate) const COMMANDS_MAX: usize = 1024;
/// Task management functions that are in flight at a time.
const FUNCTIONS_MAX: usize = 64;
/// A host's buffer for a status: a shorter one is no sign of anything.
const STATUS_BYTES_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Uas {
    commands: BTreeMap<u16, Task>,
    functions: BTreeMap<u16, TaskManagementIu>,
    flow: Flow,
    /// Commands by the transfer that sends them.
    sending: BTreeMap<u64, u16>,
    last_ended: Option<Mark>,
    /// Tags that were used since the capture began, or since packets were missing.
    used: BTreeSet<u16>,
    /// Whether the capture has both ends of transfers, and not one record of each.
    has_both_ends: bool,
    /// Whether the device was configured since then: all that is in flight has been seen to begin.
    knows_all: bool,
}

/// A command in flight.
#[derive(Debug)]
struct Task {
    open: Open,
    /// Its status, while its data are not over.
    status: Option<(Outcome, Mark)>,
    /// Bytes to the device that were submitted and whose end was not seen.
    sending: u64,
    /// Its transfers determine how much it asks for, since its command block does not say.
    asks_by_transfer: bool,
}

impl Uas {
    /// Whether a tag is in flight.
    pub(crate) fn knows(&self, tag: u16) -> bool {
        self.commands.contains_key(&tag) || self.functions.contains_key(&tag)
    }

    /// A transfer on the command pipe.
    pub(crate) fn take_command(&mut self, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        if event.is_submitted() {
            match CommandPipeIu::decode(event.bytes) {
                Ok(CommandPipeIu::Command(iu)) => self.begin(&iu, event, reporter),
                Ok(CommandPipeIu::TaskManagement(iu)) => self.begin_function(iu, event, reporter),
                Err(_) if event.is_whole() && self.is_in_step() => {
                    reporter.record(Fault::InformationUnit, &[event.mark.packet]);
                }
                // Not all of it was kept: a command that is not known.
                Err(_) => self.miss(),
            }
        }
        let Some(ended) = event.ended() else { return };
        self.has_both_ends = true;
        let Some(tag) = self.sending.remove(&event.id) else { return };
        let Some(task) = self.commands.get_mut(&tag) else { return };
        if !event.is_submitted() {
            task.open.step(event, Part::Command);
        }
        match ended {
            TransferEnd::Done => task.open.command.sent_ns = Some(event.mark.at_ns),
            _ => self.cut_short(tag, ended, event, reporter),
        }
    }

    /// A transfer on the status pipe.
    pub(crate) fn take_status(&mut self, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        let Some(ended) = event.ended() else {
            self.has_both_ends = true;
            self.flow.status_submitted(event);
            return;
        };
        let claimed = self.flow.status_ended(event);
        if ended != TransferEnd::Done {
            match claimed.filter(|tag| self.commands.contains_key(tag)) {
                Some(tag) => self.cut_short(tag, ended, event, reporter),
                None if ended == TransferEnd::Stalled => reporter.record(Fault::Stall, &[event.mark.packet]),
                None => {}
            }
            return;
        }
        match StatusIu::decode(event.bytes) {
            Ok(StatusIu::Sense(iu)) => self.take_sense(&iu, event, reporter),
            Ok(StatusIu::Response(iu)) => self.take_response(iu, event, reporter),
            Ok(StatusIu::Ready(iu)) => self.take_ready(iu, event, reporter),
            Err(_) if event.is_whole() => {
                if event.bytes.len() < STATUS_BYTES_MAX && self.is_in_step() {
                    reporter.record(Fault::InformationUnit, &[event.mark.packet]);
                }
            }
            Err(_) => match SenseIu::decode_front(event.bytes) {
                Ok(iu) => self.take_sense(&iu, event, reporter),
                Err(_) => self.take_cut(claimed, event, reporter),
            },
        }
    }

    /// A status of which not all was kept: whose it is may be.
    fn take_cut(&mut self, claimed: Option<u16>, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        const READY_BYTES: usize = 4;
        let named = event
            .bytes
            .first_chunk::<READY_BYTES>()
            .map(|&[_, _, high, low]| u16::from_be_bytes([high, low]));
        let Some(mut task) = named.or(claimed).and_then(|tag| self.commands.remove(&tag)) else {
            return self.miss();
        };
        task.open.step(event, Part::Status);
        self.flow.forget(task.tag());
        self.end(task, Outcome::NotKept, event.mark, reporter);
    }

    /// Packets are missing here: what was in flight may have ended, and something else begun.
    pub(crate) fn miss(&mut self) {
        self.flow.miss();
        self.functions.clear();
        self.sending.clear();
        self.used.clear();
        self.knows_all = false;
        // There may have been other commands since.
        self.last_ended = None;
    }

    /// Whether a command is in flight: the packet in which the latest began.
    pub(crate) fn in_flight(&self) -> Option<u64> {
        let waiting = self.commands.values().filter(|task| task.status.is_none());
        waiting.map(|task| task.open.command.began.packet).max()
    }

    /// The device is configured: what comes now begins now.
    pub(crate) fn restart(&mut self) {
        self.knows_all = true;
        self.flow.has_strays = false;
    }

    /// Whether a unit for an unused tag is the device's fault: the tag is known to be free, as far as the capture goes. Units
    /// before the first command are answers to some that were not captured, whatever the capture begins with.
    fn knows_end_of(&mut self, tag: u16) -> bool {
        self.knows_all &= !self.used.is_empty();
        (self.knows_all && !self.flow.has_strays) || self.used.contains(&tag)
    }

    /// Whether endpoints were seen to be what they are taken for.
    fn is_in_step(&self) -> bool {
        self.knows_all || !self.used.is_empty()
    }

    /// A transfer on one of the data pipes.
    pub(crate) fn take_data(&mut self, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        let part = if event.is_in() { Part::DataIn } else { Part::DataOut };
        if event.is_submitted() {
            let tag = self.flow.data_submitted(event);
            if let Some(task) = tag.and_then(|tag| self.commands.get_mut(&tag)) {
                task.open.step(event, part);
                // A packet is not asked for by itself.
                if event.ended().is_none() {
                    task.ask(event);
                    task.send(event.is_in(), event.len());
                }
            }
        }
        let Some(ended) = event.ended() else { return };
        let only = self.only_waiting(event);
        let Some(tag) = self.flow.data_ended(event).or(only) else {
            // What the host cancels of a failed command belongs to no command any more.
            reporter.ledger.losses.data_without_command += u64::from(ended == TransferEnd::Done);
            return;
        };
        let Some(task) = self.commands.get_mut(&tag) else { return };
        if !event.is_submitted() {
            task.open.step(event, part);
        }
        if !event.is_in() {
            // A transfer whose end has a length has submitted at least that.
            task.sending = 0;
        }
        if ended == TransferEnd::Done || event.len() > 0 {
            task.open.moved(event);
        }
        if ended != TransferEnd::Done {
            self.cut_short(tag, ended, event, reporter);
        }
        self.end_if_over(tag, reporter);
    }

    /// The host has reset the device, or chosen a setting: nothing is in flight any more.
    pub(crate) fn abort(&mut self, at: Mark, reporter: &mut Reporter<'_>) {
        self.flow.clear();
        self.functions.clear();
        self.sending.clear();
        for (_, task) in std::mem::take(&mut self.commands) {
            self.give_up(task, at, reporter);
        }
    }

    /// The capture has ended.
    pub(crate) fn finish(&mut self, reporter: &mut Reporter<'_>) {
        for (_, task) in std::mem::take(&mut self.commands) {
            // The host had given up before: what it did next is not in the capture.
            if task.status.is_none() && task.open.cancelled.is_some() {
                let at = task.open.command.began;
                self.give_up(task, at, reporter);
                continue;
            }
            let (outcome, at) = match task.status {
                Some((outcome, at)) => (outcome, Some(at)),
                None => (Outcome::Unfinished, None),
            };
            let has_all = reporter.has_all_since(task.open.command.began.packet);
            let outcome = if outcome == Outcome::Unfinished && !has_all { Outcome::NotKept } else { outcome };
            let (command, answer) = task.open.ended(outcome, at);
            reporter.end(command, &answer);
        }
    }

    fn begin(&mut self, iu: &CommandIu<'_>, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        if let Some(task) = self.commands.remove(&iu.tag) {
            self.overtake(task, event, reporter);
        }
        if self.commands.len() >= COMMANDS_MAX {
            self.discard_oldest(reporter);
        }
        self.used.insert(iu.tag);
        let is_idle = self.commands.is_empty();
        let lun = unit_of(iu.lun);
        let open = Open::new(Command {
            address: reporter.address,
            transport: Transport::Uas,
            lun,
            tag: iu.tag.into(),
            stream: None,
            block: Block::new(iu.cdb),
            began: event.mark,
            sent_ns: event.ended().map(|_| event.mark.at_ns),
            data: None,
            ended: None,
            asked: None,
            moved: 0,
            residue: None,
            outcome: Outcome::Unfinished,
            sense: Vec::new(),
            depth: self.commands.len() as u32 + 1,
            idle_ns: self
                .last_ended
                .filter(|_| is_idle)
                .map(|last| event.mark.at_ns.saturating_sub(last.at_ns)),
            steps: Vec::new(),
            steps_left_off: 0,
        });
        let mut task = Task { open, status: None, sending: 0, asks_by_transfer: false };
        for transfer in self.flow.claim(iu.tag) {
            task.open.command.stream = transfer.stream.or(task.open.command.stream);
            task.open.command.step(transfer.step);
            if transfer.step.part != Part::Status {
                let length = transfer.step.length.unwrap_or(0);
                task.send(transfer.step.part == Part::DataIn, length);
                let asked = u64::from(length);
                task.open.command.asked = Some(task.open.command.asked.unwrap_or(0) + asked);
            }
        }
        if task.open.command.asked.is_none() {
            task.open.command.asked = expected(&task.open.command, reporter);
            task.asks_by_transfer = task.open.command.asked.is_none();
        }
        task.open.step(event, Part::Command);
        if let Some(packet) = reporter.units.is_retry(&task.open.command) {
            reporter.record_with(Fault::Retried, task.open.opcode(), &[packet, event.mark.packet]);
        }
        if self.sending.len() < COMMANDS_MAX {
            self.sending.insert(event.id, iu.tag);
        }
        self.commands.insert(iu.tag, task);
    }

    /// A command has come with the tag of this one.
    fn overtake(&mut self, mut task: Task, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        self.flow.forget(task.tag());
        if let Some((outcome, at)) = task.status.take() {
            self.end(task, outcome, at, reporter);
        } else if task.open.cancelled.is_some() || task.open.is_broken_off {
            self.give_up(task, event.mark, reporter);
        } else if !reporter.has_all_since(task.open.command.began.packet) {
            // Its status is among what is missing: when it ended is not known.
            let (command, answer) = task.open.ended(Outcome::NotKept, None);
            reporter.end(command, &answer);
        } else {
            reporter.record(Fault::OverlappedTag, &[task.open.command.began.packet, event.mark.packet]);
            self.end(task, Outcome::Overtaken, event.mark, reporter);
        }
    }

    fn begin_function(&mut self, iu: TaskManagementIu, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        self.used.insert(iu.tag);
        if self.functions.len() < FUNCTIONS_MAX {
            self.functions.insert(iu.tag, iu);
        }
        if is_reset(iu.function) {
            let packets = [event.mark.packet];
            let in_flight =
                self.commands.values().filter(|task| task.status.is_none() && task.is_meant_by(&iu));
            match in_flight.map(|task| task.open.command.began.packet).max() {
                Some(since) => reporter.record_since(since, Fault::Reset, &packets),
                None => reporter.record_since(0, Fault::ConfiguredAgain, &packets),
            }
        }
        for task in self.commands.values_mut().filter(|task| task.is_meant_by(&iu)) {
            task.open.cancelled.get_or_insert(event.mark);
        }
    }

    fn take_sense(&mut self, iu: &SenseIu<'_>, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        let Some(task) = self.commands.get_mut(&iu.tag) else {
            if self.knows_end_of(iu.tag) {
                reporter.record(Fault::StatusWithoutCommand, &[event.mark.packet]);
            }
            return;
        };
        task.open.step(event, Part::Status);
        task.open.command.stream = task.open.command.stream.or(event.stream);
        task.open.command.keep_sense(iu.sense);
        if iu.status == Status::CheckCondition && iu.sense.is_empty() {
            reporter.record_in(&task.open.command, Fault::SenseMissing, &[event.mark.packet]);
        }
        task.status = Some((Outcome::Status(iu.status), event.mark));
        self.end_if_over(iu.tag, reporter);
    }

    fn take_response(&mut self, iu: ResponseIu, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        if let Some(function) = self.functions.remove(&iu.tag) {
            return self.end_function(&function, iu.code, event, reporter);
        }
        let packet = event.mark.packet;
        let Some(mut task) = self.commands.remove(&iu.tag) else {
            if self.knows_end_of(iu.tag) && iu.code != ResponseCode::OverlappedTag {
                reporter.record(Fault::StatusWithoutCommand, &[packet]);
            }
            return;
        };
        task.open.step(event, Part::Status);
        if iu.code == ResponseCode::OverlappedTag {
            // One before may be what is missing.
            reporter.record_since(0, Fault::OverlapNotSeen, &[task.open.command.began.packet, packet]);
        }
        self.flow.forget(iu.tag);
        self.end(task, Outcome::Response(iu.code), event.mark, reporter);
    }

    /// A task management function has ended; what it ended ends with it.
    fn end_function(
        &mut self,
        function: &TaskManagementIu,
        code: ResponseCode,
        event: &Event<'_>,
        reporter: &mut Reporter<'_>,
    ) {
        if code != ResponseCode::TaskManagementComplete {
            return;
        }
        // What began behind it is none of its business.
        let is_over = |task: &Task| task.open.cancelled.is_some() && task.is_meant_by(function);
        let over: Vec<u16> =
            self.commands.values().filter(|task| is_over(task)).map(|task| task.tag()).collect();
        for tag in over {
            self.flow.forget(tag);
            if let Some(task) = self.commands.remove(&tag) {
                self.give_up(task, event.mark, reporter);
            }
        }
    }

    fn take_ready(&mut self, iu: ReadyIu, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        let packet = event.mark.packet;
        if event.stream.is_some() {
            reporter.record(Fault::ReadyOnStreams, &[packet]);
        }
        if let Some(task) = self.commands.get_mut(&iu.tag) {
            task.open.step(event, Part::Ready);
            self.flow.ready(iu.tag, iu.direction == Direction::In);
        } else if self.knows_end_of(iu.tag) {
            reporter.record(Fault::ReadyWithoutCommand, &[packet]);
        }
    }

    /// Ends a command that has its status and all of its data.
    fn end_if_over(&mut self, tag: u16, reporter: &mut Reporter<'_>) {
        let Some(task) = self.commands.get(&tag) else { return };
        let Some((outcome, at)) = task.status else { return };
        // What is left of the data of a command that failed is cancelled by the host.
        let has_all = reporter.has_all_since(task.open.command.began.packet);
        let is_good = outcome == Outcome::Status(Status::Good);
        if is_good && has_all && self.has_both_ends && self.flow.waits_for(tag) {
            return;
        }
        self.flow.forget(tag);
        if let Some(task) = self.commands.remove(&tag) {
            self.end(task, outcome, at, reporter);
        }
    }

    fn end(&mut self, mut task: Task, outcome: Outcome, at: Mark, reporter: &mut Reporter<'_>) {
        if outcome == Outcome::Status(Status::Good) && !self.has_both_ends {
            task.open.command.moved += task.sending;
        }
        self.last_ended = self.last_ended.max(Some(at));
        let (command, answer) = task.open.ended(outcome, Some(at));
        reporter.end(command, &answer);
    }

    /// The host gave up on a command.
    fn give_up(&mut self, task: Task, at: Mark, reporter: &mut Reporter<'_>) {
        if let Some((outcome, at)) = task.status {
            // Its data were cancelled, which was recorded then, or their end is not in the capture.
            return self.end(task, outcome, at, reporter);
        }
        let at = task.open.cancelled.unwrap_or(at);
        let waited_ns = at.at_ns.saturating_sub(task.open.command.began.at_ns);
        if !task.open.is_broken_off {
            reporter.record_abort(&task.open.command, waited_ns, at.packet);
        }
        self.end(task, Outcome::Aborted, at, reporter);
    }

    fn discard_oldest(&mut self, reporter: &mut Reporter<'_>) {
        let oldest =
            self.commands.iter().min_by_key(|(_, task)| task.open.command.began).map(|(tag, _)| *tag);
        let Some(task) = oldest.and_then(|tag| self.commands.remove(&tag)) else { return };
        reporter.ledger.losses.commands += 1;
        self.flow.forget(task.tag());
        let (command, answer) = task.open.ended(Outcome::Discarded, None);
        reporter.end(command, &answer);
    }

    /// A transfer of a command failed.
    fn cut_short(&mut self, tag: u16, ended: TransferEnd, event: &Event<'_>, reporter: &mut Reporter<'_>) {
        let Some(task) = self.commands.get_mut(&tag) else { return };
        let (command, packet) = (&task.open.command, event.mark.packet);
        match ended {
            TransferEnd::Stalled => reporter.record_in(command, Fault::Stall, &[packet]),
            TransferEnd::Babble => reporter.record_in(command, Fault::Babble, &[packet]),
            TransferEnd::Failed(_) => reporter.record_in(command, Fault::BusError, &[packet]),
            TransferEnd::Gone => reporter.record_since(command.began.packet, Fault::Gone, &[packet]),
            TransferEnd::Cancelled if task.status.is_some() => {
                reporter.record(Fault::GoodWithoutData, &[task.open.command.began.packet, packet]);
            }
            TransferEnd::Done | TransferEnd::Cancelled => {}
        }
        // Nothing but a reset helps against these.
        task.open.is_broken_off |=
            matches!(ended, TransferEnd::Stalled | TransferEnd::Failed(_) | TransferEnd::Gone);
        if ended.is_cut_short() && task.status.is_none() {
            task.open.cancelled.get_or_insert(event.mark);
        }
    }

    /// Returns the tag of the only command in flight, to which data without a stream belong.
    fn only_waiting(&self, event: &Event<'_>) -> Option<u16> {
        let (tag, _) = self.commands.first_key_value()?;
        (self.commands.len() == 1 && event.stream.is_none()).then_some(*tag)
    }
}

/// The logical unit that a field names, if it is one that a drive has.
fn unit_of(lun: [u8; 8]) -> Option<u16> {
    match LunField(lun).lun() {
        Some(Lun::Unit(unit)) => Some(unit),
        _ => None,
    }
}

const fn is_reset(function: TaskManagementFunction) -> bool {
    matches!(function, TaskManagementFunction::LogicalUnitReset | TaskManagementFunction::ItNexusReset)
}

/// Bytes that a read or a write moves, by its command block.
fn expected(command: &Command, reporter: &Reporter<'_>) -> Option<u64> {
    let (_, blocks) = command.block.extent().filter(|_| command.block.moves_blocks())?;
    blocks.checked_mul(reporter.units.block_bytes(command.lun)?.into())
}

impl Task {
    /// Whether a function ends it, if it does what it is for.
    fn is_meant_by(&self, iu: &TaskManagementIu) -> bool {
        use TaskManagementFunction as F;
        match iu.function {
            F::AbortTask => self.tag() == iu.managed_tag,
            F::AbortTaskSet | F::ClearTaskSet | F::LogicalUnitReset => {
                self.open.command.lun == unit_of(iu.lun)
            }
            F::ItNexusReset => true,
            _ => false,
        }
    }

    fn tag(&self) -> u16 {
        self.open.command.tag as u16
    }

    /// Data are submitted; their end may not be in the capture.
    fn send(&mut self, is_in: bool, bytes: u32) {
        if !is_in {
            self.sending += u64::from(bytes);
        }
    }

    /// The host asks for data, or sends them, after the command.
    fn ask(&mut self, event: &Event<'_>) {
        let command = &mut self.open.command;
        command.stream = command.stream.or(event.stream);
        if self.asks_by_transfer {
            command.asked = Some(command.asked.unwrap_or(0) + u64::from(event.len()));
        }
    }
}
