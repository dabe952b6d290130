//! Handling of completed commands (SAM-5 clause 5).
//!
//! A completed command is done, is kept to be retried, or ends its request; a request that is over
//! waits for its commands and ends then.
//!
//! Always true: a slot is freed exactly once, and the request is notified; a request without
//! commands and with nothing to send ends at once.

use super::identify::{Identify, IdentifyError, IdentifyStep};
use super::request::{Error, Operation};
use super::slots::{Stage, Task, WaitReason, Work};
use super::temperature::AskTemperature;
use super::verdict::{Cause, Judged, Next, TransientError, Verdict, judge};
use super::{Counts, Disk, IdentifyRun, Output, State};
use crate::{Outcome, Refusal};
use core::hint::cold_path;
use units::{BlockCount, Duration, Extent, Instant, Lba};
use wire::scsi::Status;
use wire::scsi::sense::{AdditionalSense, SenseKey};

/// How long to leave a transport alone that had no room.
const REFUSED_WAIT: Duration = Duration::from_ms(10);
/// Times that an identify sequence begins again because the unit changed in the meantime.
const RESTARTS_MAX: u8 = 3;

/// The outcome of a postponed command.
enum Postponed {
    Waiting,
    GivenUp(Error),
}

impl Counts {
    /// Counts what an outcome implies besides its verdict.
    fn count(&mut self, judged: &Judged, outcome: &Outcome) {
        let counter = match judged.verdict {
            _ if matches!(outcome, Outcome::Failed(_)) => Some(&mut self.transport_failures),
            Verdict::Transient(TransientError { cause: Cause::Attention { .. }, .. }) => {
                Some(&mut self.attentions)
            }
            Verdict::Transient(TransientError { cause: Cause::Busy { .. }, .. }) => Some(&mut self.busy),
            Verdict::Transient(TransientError { cause: Cause::NotReady | Cause::Stopped, .. }) => {
                Some(&mut self.not_ready)
            }
            _ if judged.recovered => Some(&mut self.recovered),
            _ => None,
        };
        if let Some(counter) = counter {
            *counter = counter.saturating_add(1);
        }
        self.lost_writes = self.lost_writes.saturating_add(u64::from(judged.lost.is_some()));
    }
}

/// Ends of commands.
impl Disk {
    /// Handles a completed command of a request.
    pub(super) fn end_command(&mut self, now: Instant, at: u16, outcome: &Outcome) {
        match outcome {
            Outcome::Answered(answer) if answer.is_good() => self.end_done(now, at, answer.moved),
            _ => self.end_unusually(now, at, outcome),
        }
    }

    fn end_unusually(&mut self, now: Instant, at: u16, outcome: &Outcome) {
        let judged = judge(outcome);
        self.note(&judged, outcome);
        let Some(&task) = self.slots.task(at) else { return };
        let Some(request) = task.work.request() else { return };
        let over = self.requests.get(request).is_none_or(|active| active.is_over());
        match judged.verdict {
            Verdict::Done => {
                let moved = if let Outcome::Answered(answer) = outcome { answer.moved } else { 0 };
                self.end_done(now, at, moved);
            }
            // Of a request that has failed nothing is tried again.
            Verdict::Transient(_) if over => self.end_given_up(at, request),
            Verdict::Transient(transient) => {
                if matches!(transient.cause, Cause::Attention { changed: true } | Cause::Stopped) {
                    self.look_again();
                }
                if let Postponed::GivenUp(error) = self.postpone(now, at, task, transient) {
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

    /// Counts an outcome and reports writes that it says are lost.
    fn note(&mut self, judged: &Judged, outcome: &Outcome) {
        self.counts.count(judged, outcome);
        if let Some(lost) = judged.lost {
            self.lost.get_or_insert(lost);
            self.outputs.push_with(|| Output::Lost(lost));
        }
    }

    /// Keeps a command for a retry, within the retry limits.
    fn postpone(&mut self, now: Instant, at: u16, mut task: Task, transient: TransientError) -> Postponed {
        let stage = match task.retries.count(transient.cause, &self.config.retry_limits, now) {
            Next::AtOnce => Stage::Ready,
            Next::At(until) => {
                let busy = matches!(transient.cause, Cause::Busy { .. });
                let reason = if busy { WaitReason::Busy } else { WaitReason::NotReady };
                match transient.error {
                    Error::Busy(Status::TaskSetFull) => self.slots.narrow(),
                    Error::Busy(_) => self.slots.hold(until),
                    _ => {}
                }
                Stage::Waiting { until, reason }
            }
            Next::Never => return Postponed::GivenUp(transient.error),
        };
        task.stage = stage;
        self.slots.keep(at, task);
        Postponed::Waiting
    }

    /// Handles GOOD or equivalent. If bytes are missing, the command is retried, since they may
    /// have been lost in transfer.
    #[inline(always)]
    fn end_done(&mut self, now: Instant, at: u16, moved: u32) {
        self.slots.widen();
        let (request, rest, offset, share) = match self.slots.task(at).map(|task| &task.work) {
            None | Some(Work::Identify) => return,
            Some(&Work::Flush { request }) => return self.end_flush(at, request, Ok(())),
            Some(Work::Blocks { request, rest, offset, share }) => (*request, rest, *offset, share),
        };
        let Some(active) = self.requests.get_mut(request) else { return };
        if moved != share.data.len {
            return self.end_otherwise(now, at, request, moved);
        }
        let operation = active.request.operation;
        active.unforced |= matches!(operation, Operation::Write { fua: true, .. }) && !share.fua;
        let blocks = share.blocks.0;
        let left = BlockCount(rest.blocks.0 - blocks);
        if left.0 == 0 {
            return self.end_well(at, request);
        }
        cold_path();
        if active.is_over() {
            return self.end_given_up(at, request);
        }
        let rest = Extent { lba: Lba(rest.lba.0 + blocks), blocks: left };
        let offset = if operation.moves_blocks() { offset + moved } else { offset };
        let work = Work::Blocks { request, rest, offset, share: *share };
        self.slots.keep(at, Task::new(work));
    }

    /// Handles GOOD with an unexpected byte count.
    #[cold]
    fn end_otherwise(&mut self, now: Instant, at: u16, request: u16, moved: u32) {
        let (Some(&task), Some(active)) = (self.slots.task(at), self.requests.get_mut(request)) else {
            return;
        };
        let Work::Blocks { rest, share, .. } = task.work else { return };
        let expected = share.data.len;
        let error = Error::Residue { moved, expected };
        if moved > expected {
            return self.end_with(at, request, rest.lba, error);
        }
        if matches!(active.request.operation, Operation::Read { may_be_short: true, .. }) {
            active.end_short(share.data.start + moved);
            self.requests.leave_line(request);
            return self.end_well(at, request);
        }
        if active.is_over() {
            return self.end_given_up(at, request);
        }
        let transient = TransientError { cause: Cause::Passing, error };
        if let Postponed::GivenUp(error) = self.postpone(now, at, task, transient) {
            self.end_with(at, request, rest.lba, error);
        }
    }

    /// Learns from a rejected command. `true`: it is sent again in another form.
    fn learn(&mut self, task: Task, error: Error) -> bool {
        let Work::Blocks { request, rest, share, .. } = task.work else { return false };
        let operation = self.requests.get(request).map(|active| active.request.operation);
        let zeroes = matches!(operation, Some(Operation::Zero { .. }));
        match error {
            Error::Unsupported if share.could_be_six(rest.lba) => {
                self.learned.six_bytes = true;
                true
            }
            // First another WRITE SAME, then none: each way is tried once.
            Error::Unsupported
            | Error::IllegalRequest { additional: AdditionalSense::INVALID_FIELD_IN_CDB, .. }
                if zeroes && share.is_same() =>
            {
                self.learned.no_unmapping_same |= share.unmaps;
                self.learned.no_same |= !share.unmaps;
                true
            }
            Error::IllegalRequest { additional: AdditionalSense::INVALID_FIELD_IN_CDB, field }
                if share.fua && field.is_none_or(|field| field.in_cdb && field.byte == 1) =>
            {
                self.learned.no_fua = true;
                true
            }
            _ => false,
        }
    }

    fn end_failed(&mut self, at: u16, task: Task, error: Error) {
        match task.work {
            Work::Identify => {}
            Work::Blocks { request, rest, .. } => self.end_with(at, request, rest.lba, error),
            Work::Flush { request } => {
                let refused = matches!(
                    error,
                    Error::Unsupported
                        | Error::IllegalRequest { additional: AdditionalSense::INVALID_FIELD_IN_CDB, .. }
                );
                self.learned.no_flush |= refused;
                let cached = self.geometry.as_ref().and_then(|geometry| geometry.write_cache);
                let is_ok = refused && cached != Some(true);
                self.end_flush(at, request, if is_ok { Ok(()) } else { Err(error) });
            }
        }
    }

    #[cold]
    pub(super) fn end_flush(&mut self, at: u16, request: u16, result: Result<(), Error>) {
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

    #[inline(always)]
    fn end_well(&mut self, at: u16, request: u16) {
        self.complete_merged(at);
        self.slots.release(at);
        self.settle_after(request, 1);
    }

    pub(super) fn end_with(&mut self, at: u16, request: u16, lba: Lba, error: Error) {
        self.split_merged(at);
        self.slots.release(at);
        if let Some(active) = self.requests.get_mut(request) {
            active.commands -= 1;
        }
        self.fail_request(request, lba, error);
    }

    fn end_given_up(&mut self, at: u16, request: u16) {
        self.split_merged(at);
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
            Refusal::CommandBlock { .. } | Refusal::Lun if task.work == Work::Identify => {
                self.advance_identify(|identify| identify.fail(Error::Unsupported));
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
    /// Fails a request; the error of the lowest block is reported.
    #[cold]
    pub(super) fn fail_request(&mut self, request: u16, lba: Lba, error: Error) {
        if let Some(active) = self.requests.get_mut(request) {
            active.fail(lba, error);
        }
        self.requests.leave_line(request);
        self.drop_unsent(request);
        self.settle(request);
    }

    /// Stops a request on behalf of the caller.
    pub(super) fn stop_request(&mut self, request: u16) {
        if let Some(active) = self.requests.get_mut(request) {
            active.abort();
        }
        self.requests.leave_line(request);
    }

    /// Drops the commands of a request that are not in flight.
    pub(super) fn drop_unsent(&mut self, request: u16) {
        if self.requests.get(request).is_none_or(|active| active.commands == 0) {
            return;
        }
        for (at, _, stage) in self.slots.of_request(Some(request)) {
            if stage != Stage::InFlight {
                self.split_merged(at);
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
        self.settle_after(request, 0);
    }

    /// The same, when so many of its commands have completed with GOOD.
    #[inline(always)]
    pub(super) fn settle_after(&mut self, request: u16, commands: u16) {
        let Some(active) = self.requests.get_mut(request) else { return };
        active.commands -= commands;
        let more = !active.rest.is_empty() || active.flush_due;
        if active.commands > 0 || (more && !active.is_over()) {
            return;
        }
        if active.unforced {
            cold_path();
            if !active.is_over() {
                active.unforced = false;
                active.flush_due = true;
                self.requests.join_line(request);
                return;
            }
            active.give_up();
        }
        let Some(active) = self.requests.get_mut(request) else { return };
        self.outputs.push_with(|| Output::Finished(active.request.id, active.result()));
        self.requests.release(request);
    }

    /// Handles the disappearance of the unit.
    fn go(&mut self) {
        self.state = State::Gone;
        if let Some(command) = self.slots.identify_command() {
            // The sequence ends with its outcome.
            self.outputs.push_back(Output::Abort(command));
        } else if let Some(run) = self.identify.take() {
            self.slots.release(self.slots.identify_slot());
            let error = IdentifyError { step: run.identify.step(), error: Error::Gone };
            self.outputs.push_with(|| Output::Identified(Err(error)));
        }
        self.fail_all(Error::Gone);
    }

    fn fail_all(&mut self, error: Error) {
        for request in self.requests.all() {
            self.fail_request(request, Lba(0), error);
        }
    }
}

/// Returns whether the only fault is a CHECK CONDITION with NO SENSE.
const fn has_empty_sense(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Transient(TransientError { error: Error::Sense { key: SenseKey::NoSense, .. }, .. })
    )
}

/// The identify sequence.
impl Disk {
    pub(super) fn begin_identify(&mut self, restarts: u8, ask: AskTemperature) {
        self.counts.identify_runs = self.counts.identify_runs.saturating_add(1);
        let identify = Identify::new(self.config.report_luns, ask, self.learned.is_silent);
        self.identify = Some(IdentifyRun { identify, stale: false, restarts });
        self.slots.fill(self.slots.identify_slot(), Task::new(Work::Identify));
    }

    /// Identifies the unit again, since it may have changed.
    fn look_again(&mut self) {
        match &mut self.identify {
            Some(run) => run.stale = true,
            None if self.state == State::Identified => self.begin_identify(0, AskTemperature::Not),
            None => {}
        }
    }

    /// Handles a completed identify command.
    pub(super) fn end_step(&mut self, now: Instant, outcome: &Outcome, answer: &[u8]) {
        let mut judged = judge(outcome);
        self.note(&judged, outcome);
        let at = self.slots.identify_slot();
        let Some(&task) = self.slots.task(at) else { return };
        if self.state == State::Gone {
            return self.advance_identify(|_| Err(Error::Gone));
        }
        let moved = if let Outcome::Answered(answer) = outcome { answer.moved } else { 0 };
        if moved > 0 && has_empty_sense(&judged.verdict) {
            // What came with it is judged by itself.
            judged.verdict = Verdict::Done;
        }
        match judged.verdict {
            Verdict::Done => {
                let answer = answer.get(..moved as usize).unwrap_or(answer);
                self.advance_identify(|identify| identify.take(answer));
            }
            Verdict::Transient(transient) => {
                if let (Cause::Attention { changed: true }, Some(run)) = (transient.cause, &mut self.identify)
                {
                    run.stale = true;
                }
                let is_put_off = !matches!(transient.cause, Cause::Attention { .. });
                let mut identify = self.identify.as_mut().map(|run| &mut run.identify);
                if is_put_off
                    && identify.as_mut().is_some_and(|identify| identify.gives_up_after(transient.error))
                {
                    self.learned.is_silent |= identify.is_some_and(|identify| identify.is_silent());
                    self.advance_identify(|identify| identify.fail(transient.error));
                } else if transient.cause == Cause::Stopped && identify.is_some_and(Identify::start_unit) {
                    self.slots.fill(at, Task::new(Work::Identify));
                } else if let Postponed::GivenUp(error) = self.postpone(now, at, task, transient) {
                    self.advance_identify(|identify| identify.fail(error));
                }
            }
            Verdict::End(error) => self.advance_identify(|identify| identify.fail(error)),
        }
    }

    /// Continues the identify sequence or ends it.
    fn advance_identify(&mut self, step: impl FnOnce(&mut Identify) -> Result<bool, Error>) {
        let Some(mut run) = self.identify.take() else { return };
        let at = self.slots.identify_slot();
        let asked = run.identify.step();
        let gone_on = step(&mut run.identify);
        if asked == IdentifyStep::ReportLuns {
            self.luns = run.identify.take_luns();
        }
        match gone_on {
            Ok(true) => {
                self.slots.fill(at, Task::new(Work::Identify));
                self.identify = Some(run);
            }
            Ok(false) if run.stale && run.restarts < RESTARTS_MAX => {
                self.begin_identify(run.restarts + 1, run.identify.asks())
            }
            Ok(false) => {
                self.slots.release(at);
                match run.identify.into_geometry() {
                    Ok(found) => {
                        self.geometry = Some(found);
                        self.end_identify(Ok(()));
                    }
                    Err(error) => self.end_identify(Err(IdentifyError { step: asked, error })),
                }
            }
            Err(error) => {
                self.slots.release(at);
                self.end_identify(Err(IdentifyError { step: asked, error }));
            }
        }
    }

    fn end_identify(&mut self, result: Result<(), IdentifyError>) {
        self.outputs.push_with(|| Output::Identified(result));
        match result {
            Ok(()) => self.state = State::Identified,
            Err(IdentifyError { error: Error::Gone, .. }) => self.go(),
            Err(IdentifyError { error, .. }) => {
                self.state = State::Unknown;
                self.fail_all(error);
            }
        }
    }
}
