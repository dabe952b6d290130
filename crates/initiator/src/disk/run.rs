//! How a disk gets on: what to send next, and what to make of what came back (SAM-5 clause 5).
//!
//! First commands that are to be sent again, then the request at the head of the line. While a survey is under way
//! nothing else is begun, since it is not known what the unit is. A command that came back is done, is kept to be sent
//! again, or ends its request; a request that is over waits for its commands and ends then.
//!
//! Always true: a place is released exactly once, and the request is told; a request without commands that has nothing
//! to send is ended at once. Left out: priorities among requests.

use super::part::{self, Part, Rules};
use super::request::{Error, Operation};
use super::slots::{Stage, Task, WaitReason, Work};
use super::survey::{Survey, SurveyError};
use super::verdict::{Cause, Judged, Next, Trouble, Verdict, judge};
use super::{Disk, Memory, Output, State, UnderSurvey};
use crate::{Command, CommandBlock, CommandId, DataPhase, Outcome, Refusal};
use bus::Direction;
use units::{BlockCount, ByteRange, Duration, Extent, Instant, Lba};
use wire::scsi::Status;
use wire::scsi::sense::AdditionalSense;
use wire::uas::TaskAttribute;

/// How long to leave a transport alone that had no room.
const REFUSED_WAIT: Duration = Duration::from_ms(10);
/// Times that a survey begins anew because the unit changed meanwhile.
const RESTARTS_MAX: u8 = 3;

/// What became of a command that was put off.
enum PutOff {
    Kept,
    GivenUp(Error),
}

/// Sending.
impl Disk {
    /// Sends what there is to send and room for.
    pub(super) fn advance(&mut self, now: Instant) {
        while self.slots.has_room(now) {
            if self.survey.is_some() {
                // Nothing else is begun until it is known what the unit is.
                self.send_step(now);
                return;
            }
            match self.slots.take_ready() {
                Some(at) => self.send_again(now, at),
                None if self.send_first(now) => {}
                None => return,
            }
        }
    }

    pub(super) fn begin_survey(&mut self, restarts: u8) {
        self.counts.surveys = self.counts.surveys.saturating_add(1);
        let survey = Survey::new(self.config.report_luns);
        self.survey = Some(UnderSurvey { survey, stale: false, restarts });
        self.slots.fill(self.slots.survey(), Task::new(Work::Survey));
    }

    fn send_step(&mut self, now: Instant) {
        let at = self.slots.survey();
        let Some(under) = &self.survey else { return };
        if self.slots.task(at).is_none_or(|task| task.stage != Stage::Ready) {
            return;
        }
        let (cdb, bytes) = under.survey.command();
        let phase =
            (bytes > 0).then(|| DataPhase { direction: Direction::In, range: ByteRange::new(0, bytes) });
        let memory = if bytes > 0 { Memory::Answer } else { Memory::None };
        let id = self.slots.send(at, Work::Survey);
        let timeout = self.config.patience.command_timeout;
        self.push(id, cdb, phase, memory, now + timeout);
    }

    /// Sends the next command of the request at the head of the line. `false`: there is none, or no place for it.
    fn send_first(&mut self, now: Instant) -> bool {
        let Some(request) = self.requests.first() else { return false };
        if let Some(error) = self.objection(request) {
            self.fail_request(request, Lba(0), error);
            return true;
        }
        let (Some(active), Some(geometry)) = (self.requests.get_mut(request), &self.geometry) else {
            return false;
        };
        if active.rest.is_empty() && !active.flush_due {
            self.requests.leave_line(request);
            self.settle(request);
            return true;
        }
        let Some(at) = self.slots.take_free() else { return false };
        active.commands += 1;
        if active.flush_due {
            active.flush_due = false;
            self.requests.leave_line(request);
            self.slots.fill(at, Task::new(Work::Flush { request }));
            self.send_flush(now, at, request);
            return true;
        }
        let rules = Rules { transfer_bytes_max: self.config.transfer_bytes_max, habits: self.habits };
        let offset = active.offset;
        let part = part::first_part(active.request.operation, active.rest, offset, geometry, rules);
        active.advance(part.extent.blocks.0, part.data.len);
        if active.rest.is_empty() {
            self.requests.leave_line(request);
        }
        let part = self.take_riders(at, request, part);
        let work = Work::Blocks { request, rest: part.extent, offset, part };
        self.slots.fill(at, Task::new(work));
        self.send_part(now, at, work, part);
        true
    }

    /// Sends a command once more, or the rest of what it was to do; the unit may have changed meanwhile.
    fn send_again(&mut self, now: Instant, at: u16) {
        let Some(task) = self.slots.task(at) else { return };
        self.counts.sent_again = self.counts.sent_again.saturating_add(1);
        match task.work {
            Work::Survey => {}
            Work::Flush { request } => self.send_flush(now, at, request),
            Work::Blocks { request, rest, offset, .. } => {
                let objection = self.objection(request);
                let (Some(active), Some(geometry)) = (self.requests.get(request), &self.geometry) else {
                    return;
                };
                let beyond = !rest.fits(geometry.capacity);
                if let Some(error) = objection.or(beyond.then_some(Error::OutOfRange)) {
                    return self.end_with(at, request, rest.lba, error);
                }
                let rules = Rules { transfer_bytes_max: self.config.transfer_bytes_max, habits: self.habits };
                let part = part::first_part(active.request.operation, rest, offset, geometry, rules);
                let part = self.keep_riders(at, rest, part);
                self.send_part(now, at, Work::Blocks { request, rest, offset, part }, part);
            }
        }
    }

    /// Why nothing of a request can be sent as things are now.
    pub(super) fn objection(&self, request: u16) -> Option<Error> {
        let (active, geometry) = (self.requests.get(request)?, self.geometry.as_ref()?);
        let operation = active.request.operation;
        if operation == Operation::Flush {
            return None;
        }
        if active.block_size != geometry.block_size || !active.request.extent.fits(geometry.capacity) {
            return Some(Error::OutOfRange);
        }
        if operation.changes_blocks() && geometry.write_protected {
            return Some(Error::WriteProtected);
        }
        (!part::is_supported(operation, geometry)).then_some(Error::Unsupported)
    }

    fn send_part(&mut self, now: Instant, at: u16, work: Work, part: Part) {
        let Some(active) = work.request().and_then(|request| self.requests.get(request)) else { return };
        let request = active.request;
        let (direction, memory, timeout) = match request.operation {
            Operation::Read { .. } => {
                (Direction::In, Memory::Request(request.id), self.config.patience.command_timeout)
            }
            Operation::Write { .. } => {
                (Direction::Out, Memory::Request(request.id), self.config.patience.command_timeout)
            }
            Operation::WriteSame => {
                (Direction::Out, Memory::Request(request.id), self.config.patience.long_timeout)
            }
            Operation::Unmap | Operation::Zero { .. } | Operation::Flush => {
                (Direction::Out, Memory::Parameters, self.config.patience.long_timeout)
            }
        };
        if part.sends_list() {
            self.set_runs(at, part);
        }
        let id = self.slots.send(at, work);
        self.push(id, part.cdb, Some(DataPhase { direction, range: part.data }), memory, now + timeout);
    }

    fn send_flush(&mut self, now: Instant, at: u16, request: u16) {
        let cached = self.geometry.as_ref().and_then(|geometry| geometry.write_cache);
        if cached == Some(false) || self.habits.no_flush {
            // There is nothing to flush, or nothing to do it with.
            let result = if cached == Some(true) { Err(Error::Unsupported) } else { Ok(()) };
            return self.end_flush(at, request, result);
        }
        let id = self.slots.send(at, Work::Flush { request });
        let timeout = self.config.patience.long_timeout;
        self.push(id, part::flush_block(), None, Memory::None, now + timeout);
    }

    fn push(
        &mut self,
        id: CommandId,
        cdb: CommandBlock,
        data_phase: Option<DataPhase>,
        memory: Memory,
        deadline: Instant,
    ) {
        self.counts.commands = self.counts.commands.saturating_add(1);
        let attribute = TaskAttribute::Simple;
        let command = Command { id, lun: self.config.lun, attribute, cdb, data_phase, deadline };
        self.outputs.push_back(Output::Submit(command, memory));
    }
}

/// Ends of commands.
impl Disk {
    /// A command of a request has ended and was taken back.
    pub(super) fn end_command(&mut self, now: Instant, at: u16, task: Task, outcome: &Outcome) {
        let judged = judge(outcome);
        self.note(&judged, outcome);
        let Some(request) = task.work.request() else { return };
        let over = self.requests.get(request).is_none_or(|active| active.is_over());
        match judged.verdict {
            Verdict::Done => {
                self.slots.widen();
                let moved = if let Outcome::Answered(answer) = outcome { answer.moved } else { 0 };
                self.end_done(now, at, task, moved);
            }
            // Of a request that has failed nothing is tried again.
            Verdict::Trouble(_) if over => self.end_given_up(at, request),
            Verdict::Trouble(trouble) => {
                if matches!(trouble.cause, Cause::Attention { changed: true } | Cause::Stopped) {
                    self.look_again();
                }
                if let PutOff::GivenUp(error) = self.put_off(now, at, task, trouble) {
                    self.end_failed(at, task, error);
                }
            }
            Verdict::End(Error::Gone) => {
                self.end_failed(at, task, Error::Gone);
                self.go();
            }
            Verdict::End(Error::Aborted) if over => self.end_given_up(at, request),
            Verdict::End(error) if !over && self.learn(task, error) => {
                self.slots.keep(at, Task { stage: Stage::Ready, ..task });
            }
            Verdict::End(error) => self.end_failed(at, task, error),
        }
    }

    /// Counts what an outcome tells besides its verdict.
    fn note(&mut self, judged: &Judged, outcome: &Outcome) {
        let counts = &mut self.counts;
        let counter = match judged.verdict {
            _ if matches!(outcome, Outcome::Failed(_)) => Some(&mut counts.transport_failures),
            Verdict::Trouble(Trouble { cause: Cause::Attention { .. }, .. }) => Some(&mut counts.attentions),
            Verdict::Trouble(Trouble { cause: Cause::Busy { .. }, .. }) => Some(&mut counts.busy),
            Verdict::Trouble(Trouble { cause: Cause::NotReady | Cause::Stopped, .. }) => {
                Some(&mut counts.not_ready)
            }
            _ if judged.recovered => Some(&mut counts.recovered),
            _ => None,
        };
        if let Some(counter) = counter {
            *counter = counter.saturating_add(1);
        }
        if let Some(lost) = judged.lost {
            self.counts.lost_writes = self.counts.lost_writes.saturating_add(1);
            self.lost.get_or_insert(lost);
            self.outputs.push_back(Output::Lost(lost));
        }
    }

    /// Keeps a command for later, if patience allows.
    fn put_off(&mut self, now: Instant, at: u16, mut task: Task, trouble: Trouble) -> PutOff {
        let stage = match task.tries.count(trouble.cause, &self.config.patience, now) {
            Next::AtOnce => Stage::Ready,
            Next::At(until) => {
                let busy = matches!(trouble.cause, Cause::Busy { .. });
                let reason = if busy { WaitReason::Busy } else { WaitReason::NotReady };
                match trouble.error {
                    Error::Busy(Status::TaskSetFull) => self.slots.narrow(),
                    Error::Busy(_) => self.slots.hold(until),
                    _ => {}
                }
                Stage::Waiting { until, reason }
            }
            Next::Never => return PutOff::GivenUp(trouble.error),
        };
        task.stage = stage;
        self.slots.keep(at, task);
        PutOff::Kept
    }

    /// GOOD, or as good. Whether all bytes were moved is looked at here: if not, the command is sent again, since what is missing may have
    /// been lost on the way.
    fn end_done(&mut self, now: Instant, at: u16, task: Task, moved: u32) {
        let (request, rest, offset, part) = match task.work {
            Work::Survey => return,
            Work::Flush { request } => return self.end_flush(at, request, Ok(())),
            Work::Blocks { request, rest, offset, part } => (request, rest, offset, part),
        };
        let Some(active) = self.requests.get_mut(request) else { return };
        let expected = part.data.len;
        let operation = active.request.operation;
        if moved != expected {
            let error = Error::Residue { moved, expected };
            if moved > expected {
                return self.end_with(at, request, rest.lba, error);
            }
            if !matches!(operation, Operation::Read { may_be_short: true, .. }) {
                if active.is_over() {
                    return self.end_given_up(at, request);
                }
                let trouble = Trouble { cause: Cause::Passing, error };
                if let PutOff::GivenUp(error) = self.put_off(now, at, task, trouble) {
                    self.end_with(at, request, rest.lba, error);
                }
                return;
            }
            active.end_short(part.data.start + moved);
            self.requests.leave_line(request);
            return self.end_well(at, request);
        }
        active.unforced |= matches!(operation, Operation::Write { fua: true, .. }) && !part.fua;
        let blocks = part.extent.blocks.0;
        let left = BlockCount(rest.blocks.0 - blocks);
        if left.0 == 0 {
            return self.end_well(at, request);
        }
        if active.is_over() {
            return self.end_given_up(at, request);
        }
        let rest = Extent { lba: Lba(rest.lba.0 + blocks), blocks: left };
        let offset = if operation.moves_blocks() { offset + moved } else { offset };
        self.slots.keep(at, Task::new(Work::Blocks { request, rest, offset, part }));
    }

    /// A refusal that teaches something. `true`: the command is to be sent again, otherwise.
    fn learn(&mut self, task: Task, error: Error) -> bool {
        let Work::Blocks { request, part, .. } = task.work else { return false };
        let operation = self.requests.get(request).map(|active| active.request.operation);
        let zeroes = matches!(operation, Some(Operation::Zero { .. }));
        match error {
            Error::Unsupported if part.could_be_six() => {
                self.habits.six_bytes = true;
                true
            }
            // First another WRITE SAME, then none: each way is tried once.
            Error::Unsupported
            | Error::IllegalRequest { additional: AdditionalSense::INVALID_FIELD_IN_CDB, .. }
                if zeroes && part.is_same() =>
            {
                self.habits.no_unmapping_same |= part.unmaps;
                self.habits.no_same |= !part.unmaps;
                true
            }
            Error::IllegalRequest { additional: AdditionalSense::INVALID_FIELD_IN_CDB, field }
                if part.fua && field.is_none_or(|field| field.in_cdb && field.byte == 1) =>
            {
                self.habits.no_fua = true;
                true
            }
            _ => false,
        }
    }

    fn end_failed(&mut self, at: u16, task: Task, error: Error) {
        match task.work {
            Work::Survey => {}
            Work::Blocks { request, rest, .. } => self.end_with(at, request, rest.lba, error),
            Work::Flush { request } => {
                let refused = matches!(
                    error,
                    Error::Unsupported
                        | Error::IllegalRequest { additional: AdditionalSense::INVALID_FIELD_IN_CDB, .. }
                );
                self.habits.no_flush |= refused;
                let cached = self.geometry.as_ref().and_then(|geometry| geometry.write_cache);
                let harmless = refused && cached != Some(true);
                self.end_flush(at, request, if harmless { Ok(()) } else { Err(error) });
            }
        }
    }

    fn end_flush(&mut self, at: u16, request: u16, result: Result<(), Error>) {
        let asked = self.requests.get(request).is_some_and(|a| a.request.operation == Operation::Flush);
        let result = match (result, self.lost) {
            (Ok(()), Some(lost)) if asked => {
                self.lost = None;
                Err(Error::LostWrite(lost))
            }
            (result, _) => result,
        };
        match result {
            Ok(()) => self.end_well(at, request),
            Err(error) => self.end_with(at, request, Lba(0), error),
        }
    }

    fn end_well(&mut self, at: u16, request: u16) {
        self.end_riders(at);
        self.slots.release(at);
        if let Some(active) = self.requests.get_mut(request) {
            active.commands -= 1;
        }
        self.settle(request);
    }

    fn end_with(&mut self, at: u16, request: u16, lba: Lba, error: Error) {
        self.set_down_riders(at);
        self.slots.release(at);
        if let Some(active) = self.requests.get_mut(request) {
            active.commands -= 1;
        }
        self.fail_request(request, lba, error);
    }

    fn end_given_up(&mut self, at: u16, request: u16) {
        self.set_down_riders(at);
        self.slots.release(at);
        if let Some(active) = self.requests.get_mut(request) {
            active.commands -= 1;
            active.give_up();
        }
        self.settle(request);
    }

    pub(super) fn refuse(&mut self, now: Instant, at: u16, task: Task, refusal: Refusal) {
        match refusal {
            Refusal::Full => {
                let stage = Stage::Waiting { until: now + REFUSED_WAIT, reason: WaitReason::Transport };
                self.slots.keep(at, Task { stage, ..task });
            }
            Refusal::CommandBlock { .. } | Refusal::Lun if task.work == Work::Survey => {
                self.go_on_surveying(|survey| survey.fail(Error::Unsupported));
            }
            Refusal::CommandBlock { .. } | Refusal::Lun => self.end_failed(at, task, Error::Unsupported),
            Refusal::Gone => {
                self.end_failed(at, task, Error::Gone);
                self.go();
            }
        }
    }
}

/// Ends of requests.
impl Disk {
    /// A request is over, for this reason or for one at an earlier block.
    fn fail_request(&mut self, request: u16, lba: Lba, error: Error) {
        if let Some(active) = self.requests.get_mut(request) {
            active.fail(lba, error);
        }
        self.requests.leave_line(request);
        self.drop_unsent(request);
        self.settle(request);
    }

    /// The caller wants no more of a request.
    pub(super) fn stop_request(&mut self, request: u16) {
        if let Some(active) = self.requests.get_mut(request) {
            active.abort();
        }
        self.requests.leave_line(request);
    }

    /// Gives up the commands of a request that are not under way.
    pub(super) fn drop_unsent(&mut self, request: u16) {
        if self.requests.get(request).is_none_or(|active| active.commands == 0) {
            return;
        }
        for (at, _, stage) in self.slots.of_request(Some(request)) {
            if stage != Stage::UnderWay {
                self.set_down_riders(at);
                self.slots.release(at);
                if let Some(active) = self.requests.get_mut(request) {
                    active.commands -= 1;
                    active.give_up();
                }
            }
        }
    }

    /// Ends a request that has no commands, unless there is more to send.
    pub(super) fn settle(&mut self, request: u16) {
        let Some(active) = self.requests.get_mut(request) else { return };
        let more = !active.rest.is_empty() || active.flush_due;
        if active.commands > 0 || (more && !active.is_over()) {
            return;
        }
        if active.unforced && active.is_over() {
            active.give_up();
        } else if active.unforced {
            active.unforced = false;
            active.flush_due = true;
            self.requests.join_line(request);
            return;
        }
        if let Some(active) = self.requests.remove(request) {
            self.outputs.push_back(Output::Finished(active.request.id, active.result()));
        }
    }

    /// The unit is gone.
    fn go(&mut self) {
        self.state = State::Gone;
        if let Some(under) = self.survey.take() {
            self.slots.release(self.slots.survey());
            let error = SurveyError { step: under.survey.step(), error: Error::Gone };
            self.outputs.push_back(Output::Surveyed(Err(error)));
        }
        self.fail_all(Error::Gone);
    }

    fn fail_all(&mut self, error: Error) {
        for request in self.requests.all() {
            self.fail_request(request, Lba(0), error);
        }
    }
}

/// The survey.
impl Disk {
    /// What the survey found may not hold any more.
    fn look_again(&mut self) {
        match &mut self.survey {
            Some(under) => under.stale = true,
            None if self.state == State::Surveyed => self.begin_survey(0),
            None => {}
        }
    }

    /// A step of the survey has ended and was taken back.
    pub(super) fn end_step(&mut self, now: Instant, task: Task, outcome: &Outcome, answer: &[u8]) {
        let judged = judge(outcome);
        self.note(&judged, outcome);
        let at = self.slots.survey();
        match judged.verdict {
            Verdict::Done => {
                let moved = if let Outcome::Answered(answer) = outcome { answer.moved } else { 0 };
                let answer = answer.get(..moved as usize).unwrap_or(answer);
                self.go_on_surveying(|survey| survey.take(answer));
            }
            Verdict::Trouble(trouble) => {
                if let (Cause::Attention { changed: true }, Some(under)) = (trouble.cause, &mut self.survey) {
                    under.stale = true;
                }
                let starts = trouble.cause == Cause::Stopped
                    && self.survey.as_mut().is_some_and(|under| under.survey.start_unit());
                if starts {
                    self.slots.fill(at, Task::new(Work::Survey));
                } else if let PutOff::GivenUp(error) = self.put_off(now, at, task, trouble) {
                    self.go_on_surveying(|survey| survey.fail(error));
                }
            }
            Verdict::End(error) => self.go_on_surveying(|survey| survey.fail(error)),
        }
    }

    /// Takes the survey one step on, or to its end.
    fn go_on_surveying(&mut self, step: impl FnOnce(&mut Survey) -> Result<bool, Error>) {
        let Some(mut under) = self.survey.take() else { return };
        let at = self.slots.survey();
        let asked = under.survey.step();
        match step(&mut under.survey) {
            Ok(true) => {
                self.slots.fill(at, Task::new(Work::Survey));
                self.survey = Some(under);
            }
            Ok(false) if under.stale && under.restarts < RESTARTS_MAX => {
                self.begin_survey(under.restarts + 1)
            }
            Ok(false) => {
                self.slots.release(at);
                match under.survey.into_geometry() {
                    Ok(found) => {
                        self.geometry = Some(found);
                        self.end_survey(Ok(()));
                    }
                    Err(error) => self.end_survey(Err(SurveyError { step: asked, error })),
                }
            }
            Err(error) => {
                self.slots.release(at);
                self.end_survey(Err(SurveyError { step: asked, error }));
            }
        }
    }

    fn end_survey(&mut self, result: Result<(), SurveyError>) {
        self.outputs.push_back(Output::Surveyed(result));
        match result {
            Ok(()) => self.state = State::Surveyed,
            Err(SurveyError { error: Error::Gone, .. }) => self.go(),
            Err(SurveyError { error, .. }) => {
                self.state = State::Unknown;
                self.fail_all(error);
            }
        }
    }
}
