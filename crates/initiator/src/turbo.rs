//! BOT with large transfers: neighbouring reads and writes are merged into one command.
//!
//! BOT pays for three transfers and their turnaround with every command, whatever its length.
//! Consecutive requests in the queue that are adjacent on the medium and otherwise alike are merged
//! up to a maximum; each still ends separately. A request that may soon have a neighbour is
//! delayed, see [`LookAhead`]. Requests are never reordered.
//!
//! If a merged command fails, its requests are sent again one by one, so that each gets its own
//! answer; the data that a read brought before the failed block are kept. A unit attention is
//! reported to the first.
//!
//! The timeout of a request counts from its start at the device, not from submission: a slow device
//! is not taken for dead because of requests that waited behind another.
//!
//! Always true: requests start in the order of submission; the bytes of a merged command are those
//! of its requests, concatenated.

mod access;
mod deal;
#[cfg(test)]
mod tests;

use crate::bot::Quirks;
use crate::output::Outputs;
use crate::{
    Bot, BotConfig, BufferRange, BusAnswer, Command, CommandId, Counters, DataPhase, Deadline,
    DeadlineReason, Failure, Outcome, Output, PackId, Payload, Refusal, RequestId, Transport,
};
use access::Access;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bus::{Completion, Front};
use units::{ByteRange, Duration, Instant};

/// Default maximum of one transfer, as used by similar drivers and by Linux at SuperSpeed.
pub const TRANSFER_BYTES: u32 = 1 << 20;

/// Default maximum of queued requests.
pub const REQUESTS_MAX: usize = 64;

/// How long a request waits for a neighbour while nothing is in flight and one can still arrive:
/// see [`Transport::expect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookAhead {
    /// No wait: only queued requests are merged.
    Never,
    /// This long, if it continues where the previous requests ended.
    AfterNeighbour(Duration),
    /// This long. Costly for small random requests.
    Always(Duration),
}

/// Parameters of a Bulk-Only interface with merging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurboConfig {
    /// The interface.
    pub bot: BotConfig,
    /// Maximum length of a merged command. A longer request is sent alone.
    pub transfer_bytes_max: u32,
    /// Requests queued or in flight.
    pub requests_max: usize,
    /// How long requests wait for neighbours.
    pub look_ahead: LookAhead,
}

impl TurboConfig {
    /// 1 MiB, 64 requests, and 100 us after a neighbour.
    pub const fn new(bot: BotConfig) -> Self {
        let look_ahead = LookAhead::AfterNeighbour(Duration::from_us(100));
        Self { bot, transfer_bytes_max: TRANSFER_BYTES, requests_max: REQUESTS_MAX, look_ahead }
    }
}

/// A Bulk-Only interface that merges requests.
#[derive(Debug)]
pub struct Turbo {
    config: TurboConfig,
    bot: Bot,
    /// Queued requests, oldest first.
    queue: VecDeque<Waiting>,
    /// The requests in flight.
    members: Vec<Member>,
    /// The merged access, if `members` are more than one.
    packed: Option<Access>,
    pack: PackId,
    pieces: Vec<BufferRange>,
    /// The previous access, for [`LookAhead::AfterNeighbour`].
    last: Option<Access>,
    /// Until when the first request waits for a neighbour.
    look_until: Option<Instant>,
    /// Maximum of requests in flight that the caller announced.
    expected: usize,
    unpacked: u32,
    outputs: Outputs,
}

/// A queued request.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    command: Command,
    since: Instant,
    /// It was part of a merged command that failed.
    alone: bool,
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
struct Member {
    waiting: Waiting,
    /// Where its bytes start in the merged command.
    offset: u32,
    /// The caller aborted it.
    aborted: bool,
}

impl Waiting {
    /// Returns how long the device may take.
    const fn time_allowed(&self) -> Duration {
        self.command.deadline.since(self.since)
    }
}

impl Turbo {
    /// Creates the machine for a configured, idle interface.
    pub fn new(config: TurboConfig) -> Self {
        Self {
            bot: Bot::new(config.bot),
            queue: VecDeque::with_capacity(config.requests_max),
            members: Vec::with_capacity(config.requests_max),
            packed: None,
            pack: PackId(0),
            pieces: Vec::with_capacity(config.requests_max),
            last: None,
            look_until: None,
            expected: usize::MAX,
            unpacked: 0,
            outputs: Outputs::new(),
            config,
        }
    }

    /// Returns the transport below.
    pub const fn bot(&self) -> &Bot {
        &self.bot
    }

    /// Sets deviations known in advance.
    pub const fn set_quirks(&mut self, quirks: Quirks) {
        self.bot.set_quirks(quirks);
    }

    /// Forwards outputs of the transport below and starts the next command.
    fn settle(&mut self, now: Instant) {
        loop {
            while let Some(output) = self.bot.poll_output().map(Front::take) {
                match output {
                    Output::Finished(_, outcome) => self.deal(outcome),
                    Output::Submit(mut transfer) => {
                        if self.packed.is_some() && matches!(transfer.payload, Payload::Buffer(_)) {
                            transfer.payload = Payload::Pieces(self.pack);
                        }
                        self.outputs.push_back(Output::Submit(transfer));
                    }
                    other => self.outputs.push_back(other),
                }
            }
            if self.bot.depth() == 0 && self.members.is_empty() {
                return self.end_queue(Failure::Disconnected);
            }
            if !self.members.is_empty() || !self.start(now) {
                return;
            }
        }
    }

    /// Starts the next command. Returns whether there was one.
    fn start(&mut self, now: Instant) -> bool {
        self.look_until = None;
        let Some(front) = self.queue.front().copied() else { return false };
        let first = Access::of(&front.command).filter(|_| !front.alone);
        let (count, whole) = match first {
            Some(first) => self.run(first),
            None => (1, None),
        };
        if let Some(whole) = whole
            && let Some(until) = self.look_until(front.since, count, &whole)
            && now < until
        {
            self.look_until = Some(until);
            return false;
        }
        self.begin(now, count, whole);
        true
    }

    /// Returns how many requests from the front merge, and the merged access.
    fn run(&self, first: Access) -> (usize, Option<Access>) {
        let attribute_and_lun = |waiting: &Waiting| (waiting.command.attribute, waiting.command.lun);
        let (mut whole, mut count) = (first, 1);
        for pair in self.queue.iter().zip(self.queue.iter().skip(1)) {
            let (before, next) = pair;
            let joined = (!next.alone && attribute_and_lun(before) == attribute_and_lun(next))
                .then(|| Access::of(&next.command))
                .flatten()
                .and_then(|next| whole.with(&next, self.config.transfer_bytes_max));
            let Some(joined) = joined else { break };
            (whole, count) = (joined, count + 1);
        }
        (count, Some(whole))
    }

    /// Returns until when to wait for a neighbour, if one could still arrive and fit.
    fn look_until(&self, since: Instant, count: usize, whole: &Access) -> Option<Instant> {
        let is_full = count >= self.config.requests_max.min(self.expected)
            || whole.blocks.saturating_mul(whole.block_bytes) >= self.config.transfer_bytes_max;
        if count < self.queue.len() || is_full {
            return None;
        }
        let goes_on = || count > 1 || self.last.is_some_and(|last| last.end() == whole.lba);
        match self.config.look_ahead {
            LookAhead::AfterNeighbour(span) if goes_on() => Some(since + span),
            LookAhead::Always(span) => Some(since + span),
            LookAhead::AfterNeighbour(_) | LookAhead::Never => None,
        }
    }

    /// Sends the first `count` requests as one command.
    fn begin(&mut self, now: Instant, count: usize, whole: Option<Access>) {
        let mut offset = 0;
        for waiting in self.queue.drain(..count) {
            self.members.push(Member { waiting, offset, aborted: false });
            offset += waiting.command.transfer_len();
        }
        self.last = whole;
        let Some(first) = self.members.first() else { return };
        let mut command = first.waiting.command;
        let time_allowed = self.members.iter().map(|member| member.waiting.time_allowed()).min();
        command.deadline = now + time_allowed.unwrap_or_default();
        self.packed = whole.filter(|_| count > 1);
        if let (Some(whole), Some(phase)) = (self.packed, command.data_phase) {
            command.cdb = whole.encode();
            command.data_phase = Some(DataPhase { range: ByteRange::new(0, offset), ..phase });
            self.pack = PackId(self.pack.0.wrapping_add(1));
            self.pieces.clear();
            let pieces = self.members.iter().filter_map(|member| {
                let Command { id, data_phase, .. } = member.waiting.command;
                Some(BufferRange { command: id, range: data_phase?.range })
            });
            self.pieces.extend(pieces);
        }
        // What the transport below cannot carry was refused when it was submitted.
        if self.bot.submit(now, &command).is_err() {
            self.end_members(Failure::Unrecoverable);
        }
    }

    fn end_members(&mut self, failure: Failure) {
        for member in self.members.drain(..) {
            self.outputs.push_back(Output::Finished(member.waiting.command.id, Outcome::Failed(failure)));
        }
    }

    fn end_queue(&mut self, failure: Failure) {
        self.look_until = None;
        for waiting in self.queue.drain(..) {
            self.outputs.push_back(Output::Finished(waiting.command.id, Outcome::Failed(failure)));
        }
    }
}

impl Transport for Turbo {
    fn expect(&mut self, requests: usize) {
        self.expected = requests;
    }

    fn submit(&mut self, now: Instant, command: &Command) -> Result<(), Refusal> {
        self.bot.can_carry(command)?;
        if self.in_flight() >= self.config.requests_max {
            return Err(Refusal::Full);
        }
        self.queue.push_back(Waiting { command: *command, since: now, alone: false });
        self.settle(now);
        Ok(())
    }

    fn abort(&mut self, now: Instant, id: CommandId) {
        if let Some(position) = self.queue.iter().position(|waiting| waiting.command.id == id) {
            self.queue.remove(position);
            self.outputs.push_back(Output::Finished(id, Outcome::Failed(Failure::Aborted)));
        } else if let Some(member) = self.members.iter_mut().find(|member| member.waiting.command.id == id) {
            member.aborted = true;
            // A pack has the name of its first request.
            let name = self.members.first().map_or(id, |first| first.waiting.command.id);
            self.bot.abort(now, name);
        }
        self.settle(now);
    }

    fn handle_completion(&mut self, now: Instant, completion: Completion, bytes: &[u8]) {
        self.bot.handle_completion(now, completion, bytes);
        self.settle(now);
    }

    fn handle_answer(&mut self, now: Instant, id: RequestId, answer: BusAnswer) {
        self.bot.handle_answer(now, id, answer);
        self.settle(now);
    }

    fn handle_disconnect(&mut self, now: Instant) {
        self.bot.handle_disconnect(now);
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.bot.handle_timeout(now);
        self.settle(now);
    }

    fn poll_output(&mut self) -> Option<Front<'_, Output>> {
        self.outputs.front_entry()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let look = self.look_until.map(|at| Deadline { at, reason: DeadlineReason::LookAhead });
        look.into_iter().chain(self.bot.poll_timeout()).min_by_key(|deadline| deadline.at)
    }

    fn transfers_max(&self) -> usize {
        self.bot.transfers_max()
    }

    fn depth(&self) -> usize {
        if self.bot.depth() == 0 { 0 } else { self.config.requests_max }
    }

    fn in_flight(&self) -> usize {
        self.queue.len() + self.members.len()
    }

    fn counters(&self) -> Counters {
        Counters { unpacked: self.unpacked, ..self.bot.counters() }
    }

    fn pieces(&self, pack: PackId) -> &[BufferRange] {
        if pack == self.pack { &self.pieces } else { &[] }
    }
}
