//! A client of one export, without I/O: jobs in, completions out; bytes of requests and replies on any number of connections.
//!
//! A job is a [`Task`], whose steps become requests (`in_flight`). A request in flight has a slot; slot and generation are its
//! cookie. Replies come in any order, payload goes straight to the memory of the task.
//!
//! A lost server. All connections end together, and what was in flight is held until there is a new one. First the changes that
//! no flush has covered are written again (`unflushed`), then what is held is sent again, if that is safe:
//! - Reads, flushes and questions always are.
//! - Changes (writes, zeroes) are, if the server's end of the connection is known to be closed ([`Loss::Closed`]): then no
//!   remnant of the old connection can carry out an old write after a newer one. A server that only fell silent may still do
//!   that; the changes that it may have got fail, and their outcome is uncertain.
//! - To do a change twice changes nothing, because nothing that overlaps it is in flight or was acknowledged since: changes that
//!   overlap are sent one after another, and a durable one (FUA) waits until those before it are durable as well.
//!
//! A command ends within [`COMMAND_TIMEOUT`] in any case. Where a server is lost for longer, commands fail at once.
//!
//! Left out: sockets, and when to connect (`reconnect`).

mod receive;

use super::in_flight::{
    InFlight, Origin, ReplyState, SendStage, Translation, WireRequest, errno, replayed, seek, translate,
};
use super::lane::Lane;
use super::slots::Slots;
use super::terms::Terms;
use super::unflushed::{ChangeId, ChangeState, Unflushed};
use crate::medium::CompletedJob;
use crate::medium::file::task::{FileOperation, Task};
use device::medium::MediumError;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::time::{Duration, Instant};
use wire::DecodeError;
use wire::nbd::{Command, CommandFlags, Request, TransmissionFlags};

/// How long a command may take, reconnects included. Linux gives a SCSI command 30 s.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
/// Jobs in flight at once; others wait.
const JOBS_MAX: usize = 128;
/// Requests of the client itself in flight at once: repeated changes, flushes.
const OWN_MAX: usize = 16;
/// Requests that are sent in one call.
const BATCH: usize = 32;
/// Scratch buffers kept for reuse.
const SCRATCH_POOL_MAX: usize = 4;

/// How a server broke the protocol, or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breach {
    /// Bytes that are no reply.
    Malformed(DecodeError),
    /// A reply to nothing, or of another kind than was asked for.
    Unasked,
    /// Bytes outside of those that were asked for, or too few.
    Outside,
    /// The server says that it ends.
    Shutdown,
}

impl From<DecodeError> for Breach {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}

/// How a server was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Its end of the connection is closed.
    Closed,
    /// It does not answer, or not what it should. It may still carry out what it has.
    Silent,
}

/// Whether requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientState {
    /// There is no connection, since this time.
    Down(Instant),
    /// Changes are written again, from this one on.
    Replaying(ChangeId),
    Up,
}

/// A client of one export.
#[derive(Debug)]
pub(super) struct Client {
    state: ClientState,
    terms: Terms,
    lanes: Vec<Lane>,
    slots: Slots,
    jobs: usize,
    own: usize,
    /// Jobs without a slot, with their deadlines.
    waiting: VecDeque<(Task, Instant)>,
    /// Slots whose requests wait, in order.
    held: VecDeque<u16>,
    /// First byte and end of changes in flight, and their slots.
    changing: Vec<(u64, u64, u16)>,
    unflushed: Unflushed,
    /// Flushes in flight.
    flushing: usize,
    /// An acknowledged change is lost, which the next flush reports.
    lost_change: bool,
    finished: VecDeque<CompletedJob>,
    scratch_pool: Vec<Vec<u8>>,
}

impl Client {
    /// A client without a connection.
    pub(super) fn new(terms: Terms, now: Instant) -> Self {
        let slots = JOBS_MAX + OWN_MAX;
        Self {
            state: ClientState::Down(now),
            terms,
            lanes: Vec::new(),
            slots: Slots::new(slots),
            jobs: 0,
            own: 0,
            waiting: VecDeque::with_capacity(JOBS_MAX),
            held: VecDeque::with_capacity(slots),
            changing: Vec::with_capacity(slots),
            unflushed: Unflushed::new(),
            flushing: 0,
            lost_change: false,
            finished: VecDeque::with_capacity(slots),
            scratch_pool: Vec::with_capacity(SCRATCH_POOL_MAX),
        }
    }

    /// Takes a job. `Some`: it was over at once.
    pub(super) fn submit(&mut self, task: Task, now: Instant) -> Option<CompletedJob> {
        if task.is_over() {
            return Some(task.finish().0);
        }
        if let ClientState::Down(since) = self.state
            && now.duration_since(since) > COMMAND_TIMEOUT
        {
            let mut task = task;
            task.fail(MediumError::Unreachable);
            return Some(task.finish().0);
        }
        let deadline = now + COMMAND_TIMEOUT;
        if self.jobs < JOBS_MAX && self.waiting.is_empty() {
            self.start(task, deadline);
        } else {
            self.waiting.push_back((task, deadline));
        }
        None
    }

    /// The next completed job.
    pub(super) fn poll(&mut self) -> Option<CompletedJob> {
        self.finished.pop_front()
    }

    /// Whether there is a completed job.
    pub(super) fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Whether a reply is awaited on some connection.
    pub(super) fn awaits_reply(&self) -> bool {
        !self.lanes.is_empty() && self.jobs + self.own > self.held.len()
    }

    /// Whether there is a connection.
    pub(super) const fn is_connected(&self) -> bool {
        !matches!(self.state, ClientState::Down(_))
    }

    /// Adds a connection. Returns its number; `None`: the export is not what it was.
    pub(super) fn attach(&mut self, terms: Terms) -> Option<usize> {
        if !self.goes_on_with(&terms) {
            return None;
        }
        self.terms = terms;
        self.lanes.push(Lane::new(self.slots.count().into()));
        if let ClientState::Down(_) = self.state {
            self.state = ClientState::Replaying(self.unflushed.ids().start);
            self.replay();
        }
        Some(self.lanes.len() - 1)
    }

    /// Whether an export is as good as the one that was opened.
    fn goes_on_with(&self, terms: &Terms) -> bool {
        let (old, new) = (&self.terms, terms);
        let lasting = [
            TransmissionFlags::SEND_FLUSH,
            TransmissionFlags::SEND_FUA,
            TransmissionFlags::SEND_WRITE_ZEROES,
            TransmissionFlags::CAN_MULTI_CONN,
        ];
        let has_all = lasting.into_iter().all(|flag| new.can(flag) || !old.can(flag));
        let is_writable = old.can(TransmissionFlags::READ_ONLY) || !new.can(TransmissionFlags::READ_ONLY);
        let fits = new.block_min <= old.block_min && new.payload_max >= old.payload_max;
        new.size_bytes == old.size_bytes && has_all && is_writable && fits
    }

    /// All connections are gone.
    pub(super) fn lose(&mut self, loss: Loss, now: Instant) {
        self.lanes.clear();
        self.state = ClientState::Down(now);
        self.changing.clear();
        self.held.clear();
        self.flushing = 0;
        let mut jobs: Vec<(u64, u16)> = Vec::with_capacity(self.slots.count().into());
        let mut uncertain = Vec::new();
        for slot in 0..self.slots.count() {
            let Some(entry) = self.slots.get_mut(slot) else { continue };
            let is_sent = matches!(entry.stage, SendStage::Sending | SendStage::Sent | SendStage::Answered);
            let is_uncertain = loss == Loss::Silent && is_sent && entry.request.is_change();
            entry.stage = SendStage::Held;
            entry.reply = ReplyState::default();
            match &mut entry.origin {
                Origin::Replay(_) | Origin::Flush => self.release(slot),
                Origin::Job(task) if is_uncertain => {
                    task.fail(MediumError::Unreachable);
                    uncertain.push(slot);
                }
                Origin::Job(_) => jobs.push((entry.order, slot)),
            }
        }
        jobs.sort_unstable();
        self.held.extend(jobs.into_iter().map(|(_, slot)| slot));
        uncertain.into_iter().for_each(|slot| self.finish(slot));
    }

    /// Ends what is due. Returns when to ask again, and whether the server has fallen silent: then it is lost.
    pub(super) fn expire(&mut self, now: Instant) -> (Option<Instant>, bool) {
        let is_due = |entry: &InFlight| entry.deadline <= now;
        let is_silent = self.is_connected()
            && self.slots.iter().any(|entry| is_due(entry) && entry.stage != SendStage::Held);
        if is_silent {
            self.lose(Loss::Silent, now);
        }
        for slot in 0..self.slots.count() {
            if let Some(entry) = self.slots.get_mut(slot)
                && entry.deadline <= now
                && entry.stage == SendStage::Held
                && let Origin::Job(task) = &mut entry.origin
            {
                task.fail(MediumError::Unreachable);
                self.held.retain(|&held| held != slot);
                self.finish(slot);
            }
        }
        let deadlines = self.slots.iter().map(|entry| entry.deadline);
        (deadlines.chain(self.waiting.iter().map(|(_, deadline)| *deadline)).min(), is_silent)
    }

    /// Sends what is to be sent on a connection with `write`, which says how many bytes it took, or `None`: it has no room.
    /// Returns whether all of it is sent.
    ///
    /// # Errors
    /// Those of `write`.
    pub(super) fn send(
        &mut self,
        lane: usize,
        mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<Option<usize>>,
    ) -> io::Result<bool> {
        while let Some(queue) = self.lanes.get(lane).filter(|lane| !lane.queue.is_empty()) {
            let mut headers = [[0; Request::LEN]; BATCH];
            let mut slices = [IoSlice::new(&[]); 2 * BATCH];
            let (mut count, mut offered, mut skipped) = (0, 0, queue.sent);
            for (&slot, header) in queue.queue.iter().zip(&mut headers) {
                let Some(entry) = self.slots.get(slot) else {
                    continue;
                };
                *header = entry.header(slot);
                for part in [&header[..], self.payload(entry)] {
                    let rest = part.get(skipped..).unwrap_or_default();
                    skipped -= skipped.min(part.len());
                    if !rest.is_empty() {
                        slices[count] = IoSlice::new(rest);
                        (count, offered) = (count + 1, offered + rest.len());
                    }
                }
            }
            let Some(sent) = write(&slices[..count])? else { return Ok(false) };
            self.mark_sent(lane, sent);
            if sent < offered {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The payload that follows the header of a request.
    fn payload<'a>(&'a self, entry: &'a InFlight) -> &'a [u8] {
        if entry.request.command != Command::Write {
            return &[];
        }
        match &entry.origin {
            Origin::Job(task) => {
                task.bytes(entry.request.memory).get(entry.request.range.clone()).unwrap_or_default()
            }
            Origin::Replay(id) => {
                self.unflushed.get(*id).map(|change| self.unflushed.payload(change)).unwrap_or_default()
            }
            Origin::Flush => &[],
        }
    }

    /// `sent` more bytes of the queue were sent.
    fn mark_sent(&mut self, lane: usize, sent: usize) {
        let Some(queue) = self.lanes.get_mut(lane) else { return };
        queue.sent += sent;
        while let Some(&slot) = self.lanes[lane].queue.front() {
            let Some(entry) = self.slots.get(slot) else { return };
            let len = Request::LEN + self.payload(entry).len();
            let queue = &mut self.lanes[lane];
            let is_whole = queue.sent >= len;
            if is_whole {
                queue.sent -= len;
                queue.queue.pop_front();
            }
            let has_begun = is_whole || queue.sent > 0;
            let Some(entry) = self.slots.get_mut(slot) else { return };
            let is_answered = entry.stage == SendStage::Answered;
            if has_begun && !is_answered {
                entry.stage = if is_whole { SendStage::Sent } else { SendStage::Sending };
            }
            if !is_whole {
                return;
            }
            if is_answered {
                self.complete(slot);
            }
        }
    }

    /// A request is over: what comes of it.
    pub(super) fn complete(&mut self, slot: u16) {
        let Some(entry) = self.slots.get_mut(slot) else { return };
        let reply = std::mem::take(&mut entry.reply);
        let (command, length, flush) = (entry.request.command, entry.request.length, entry.flush);
        let (is_change, change) = (entry.request.is_change(), entry.change.take());
        if is_change {
            self.changing.retain(|&(.., changing)| changing != slot);
        }
        if command == Command::Flush {
            self.flushing = self.flushing.saturating_sub(1);
            self.unflushed.end_flush(flush);
        }
        if let Some(change) = change {
            match reply.error {
                None => self.unflushed.acknowledge(change),
                Some(_) => self.unflushed.fail(change),
            }
        }
        let Some(entry) = self.slots.get_mut(slot) else { return };
        match &mut entry.origin {
            Origin::Job(task) => {
                if let Some(outcome) = outcome(task, command, length, reply, &mut entry.done) {
                    entry.done = 0;
                    task.handle(outcome);
                }
                self.advance(slot);
            }
            Origin::Replay(id) => {
                let id = *id;
                match reply.error {
                    None => self.unflushed.acknowledge(id),
                    Some(_) => {
                        self.unflushed.fail(id);
                        self.lost_change = true;
                    }
                }
                self.release(slot);
                self.replay();
            }
            Origin::Flush => {
                self.lost_change |= reply.error.is_some();
                self.release(slot);
            }
        }
        if is_change && self.unflushed.is_half_full() {
            self.want_flush();
        }
        if !self.held.is_empty() {
            self.admit_held();
        }
    }

    /// Puts a job into a slot. There is one.
    fn start(&mut self, mut task: Task, deadline: Instant) {
        if task.scratch_bytes() > 0 {
            task.lend(self.scratch_pool.pop().unwrap_or_default());
        }
        self.jobs += 1;
        let slot = self.slots.begin(Origin::Job(task), WireRequest::bare(Command::Flush, 0, 0), deadline);
        match slot {
            Some(slot) => self.advance(slot),
            None => self.jobs -= 1,
        }
    }

    /// Sends the next request of a task, or ends it.
    fn advance(&mut self, slot: u16) {
        let terms = self.terms;
        loop {
            let Some(entry) = self.slots.get_mut(slot) else { return };
            let Origin::Job(task) = &mut entry.origin else { return };
            let Some(step) = task.step() else { return self.finish(slot) };
            match translate(&step, entry.done, &terms) {
                Translation::Answer(outcome) => task.handle(outcome),
                Translation::Send(request) if request.command == Command::Flush && self.lost_change => {
                    self.lost_change = false;
                    task.handle(Err(Errno::IO));
                }
                Translation::Send(request) => {
                    entry.request = request;
                    entry.stage = SendStage::Held;
                    break;
                }
            }
        }
        let is_change = self.slots.get_mut(slot).is_some_and(|entry| entry.request.is_change());
        // A change does not overtake those that are held.
        if is_change && !self.held.is_empty() || !self.admit(slot) {
            self.held.push_back(slot);
        }
    }

    /// Queues a request if nothing is in its way.
    fn admit(&mut self, slot: u16) -> bool {
        let Some(entry) = self.slots.get_mut(slot) else { return true };
        if self.state != ClientState::Up {
            return false;
        }
        let (start, end) = entry.request.span();
        let request = &entry.request;
        if request.is_change() {
            let overlaps = self.changing.iter().any(|&(first, last, _)| first < end && start < last);
            if overlaps {
                return false;
            }
            let is_tracked = self.terms.can(TransmissionFlags::SEND_FLUSH) && entry.change.is_none();
            let change = match &entry.origin {
                _ if !is_tracked => Some(entry.change),
                _ if request.is_durable() => (!self.unflushed.overlaps(start, end - start)).then_some(None),
                Origin::Job(task) if request.command == Command::Write => {
                    let bytes = task.bytes(request.memory).get(request.range.clone()).unwrap_or_default();
                    self.unflushed.keep_data(start, bytes).map(Some)
                }
                _ => {
                    let keeps_space = request.flags.has(CommandFlags::NO_HOLE);
                    self.unflushed.keep_zeroes(start, request.length, keeps_space).map(Some)
                }
            };
            let Some(change) = change else {
                self.want_flush();
                return false;
            };
            entry.change = change;
        }
        self.enqueue(slot);
        true
    }

    /// Queues a request on a connection.
    fn enqueue(&mut self, slot: u16) {
        let lanes = self.lanes.len().max(1);
        let lane = usize::from(slot) % lanes;
        let generation = self.slots.next_number() as u32;
        let Some(entry) = self.slots.get_mut(slot) else { return };
        entry.generation = generation;
        entry.stage = SendStage::Queued;
        entry.lane = lane as u8;
        if entry.request.command == Command::Flush {
            entry.flush = self.unflushed.begin_flush();
            self.flushing += 1;
        }
        if entry.request.is_change() {
            let (start, end) = entry.request.span();
            self.changing.push((start, end, slot));
        }
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.queue.push_back(slot);
        }
    }

    /// Queues what is held and need not be any more, in order.
    fn admit_held(&mut self) {
        let mut blocked = false;
        for _ in 0..self.held.len() {
            let Some(slot) = self.held.pop_front() else { return };
            let is_change = self.slots.get_mut(slot).is_some_and(|entry| entry.request.is_change());
            if is_change && blocked || !self.admit(slot) {
                blocked |= is_change;
                self.held.push_back(slot);
            }
        }
    }

    /// Makes room for changes, unless a flush is doing that.
    fn want_flush(&mut self) {
        let may = self.state == ClientState::Up && self.own < OWN_MAX && self.flushing == 0;
        if !may || !self.unflushed.has_acknowledged() {
            return;
        }
        // It ends with the others at the latest: each request that waits for it has its deadline.
        let deadline = self.slots.iter().map(|entry| entry.deadline).max();
        let Some(deadline) = deadline else { return };
        let request = WireRequest::bare(Command::Flush, 0, 0);
        if let Some(slot) = self.slots.begin(Origin::Flush, request, deadline) {
            self.own += 1;
            self.enqueue(slot);
        }
    }

    /// Writes changes again that were acknowledged, and goes on with the others behind the last of them.
    fn replay(&mut self) {
        let ClientState::Replaying(mut next) = self.state else { return };
        while let Some(&change) = self.unflushed.get(next)
            && self.own < OWN_MAX
        {
            if matches!(change.state, ChangeState::Acknowledged(_)) {
                let end = change.offset + u64::from(change.len);
                let is_apart = |&(first, last, _): &(u64, u64, u16)| last <= change.offset || end <= first;
                if !self.changing.iter().all(is_apart) {
                    break;
                }
                let request = replayed(change.offset, change.len, change.content);
                let Some(slot) =
                    self.slots.begin(Origin::Replay(next), request, Instant::now() + COMMAND_TIMEOUT)
                else {
                    break;
                };
                self.own += 1;
                self.enqueue(slot);
            }
            next += 1;
        }
        self.state = ClientState::Replaying(next);
        if self.own == 0 {
            self.state = ClientState::Up;
            self.admit_held();
        }
    }

    /// Ends a job, and starts one that waits.
    fn finish(&mut self, slot: u16) {
        let Some(entry) = self.slots.end(slot) else { return };
        if let Some(change) = entry.change {
            self.unflushed.fail(change);
        }
        if let Origin::Job(task) = entry.origin {
            self.jobs -= 1;
            let (finished, scratch) = task.finish();
            if scratch.capacity() > 0 && self.scratch_pool.len() < SCRATCH_POOL_MAX {
                self.scratch_pool.push(scratch);
            }
            self.finished.push_back(finished);
        }
        if let Some((task, deadline)) = self.waiting.pop_front() {
            self.start(task, deadline);
        }
    }

    /// Ends a request of the client itself.
    fn release(&mut self, slot: u16) {
        if self.slots.end(slot).is_some() {
            self.own -= 1;
        }
    }
}

/// Outcome of a reply for the task that asked; `None`: the rest of an allocation is still to be done.
fn outcome(
    task: &Task,
    command: Command,
    length: u32,
    reply: ReplyState,
    done: &mut u64,
) -> Option<Result<u64, Errno>> {
    if let Some(error) = reply.error {
        return Some(Err(errno(error)));
    }
    let step = task.step();
    Some(match (command, &step) {
        (Command::WriteZeroes, Some(FileOperation::Allocate { len, .. })) => {
            *done += u64::from(length);
            if *done < *len {
                return None;
            }
            Ok(0)
        }
        (Command::BlockStatus, Some(step)) => match reply.status {
            Some(status) => Ok(seek(step, status)),
            None => Err(Errno::INVAL),
        },
        _ => Ok(length.into()),
    })
}

#[cfg(test)]
mod tests;
