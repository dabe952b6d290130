//! BOT with large transfers: reads and writes of neighbouring blocks travel in one command.
//!
//! BOT pays for three transfers and their turn-rounds with every command, whatever its length. So requests that follow
//! one another in the queue and on the medium, and are alike in everything else, are packed into one, up to a maximum;
//! each still ends by itself. A request that may have a neighbour soon is held back for a while, [`LookAhead`]. The
//! order of requests is never changed.
//!
//! Where a pack fails, its parts are sent again one by one, so that each gets its own answer; what a read has brought
//! before the block at fault is kept. A unit attention goes to the first.
//!
//! What a request has of time is for the device: it begins when the request does. While it waits, another one is under way
//! and has a deadline, so the queue moves on whatever the device does; and a device that was slow once is not taken for
//! dead because those who waited behind it have little time left.
//!
//! Always true: requests start in the order of submission; the bytes of a pack are those of its requests, one after
//! another.

mod access;
mod deal;
#[cfg(test)]
mod tests;

use crate::bot::Quirks;
use crate::output::Outputs;
use crate::{
    Bot, BotConfig, BusAnswer, Command, CommandId, Counters, DataPhase, Deadline, DeadlineReason, Failure,
    Outcome, Output, PackId, Payload, Piece, Refusal, RequestId, Transport,
};
use access::Access;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bus::{Completion, Front};
use units::{ByteRange, Duration, Instant};

/// Bytes of one transfer, unless told: what drivers of this kind and Linux at super speed use.
pub const TRANSFER_BYTES: u32 = 1 << 20;

/// Requests that wait or are under way, unless told.
pub const REQUESTS_MAX: usize = 64;

/// How long a request waits for a neighbour while nothing is under way, if one can still come: see [`Transport::expect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookAhead {
    /// Not at all: what is in the queue is packed.
    Never,
    /// So long, if it goes on where the requests before it ended.
    AfterNeighbour(Duration),
    /// So long, whatever was before it. This is what costs small random requests dear.
    Always(Duration),
}

/// How a Bulk-Only interface is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurboConfig {
    /// The interface.
    pub bot: BotConfig,
    /// Bytes that a pack may have. A request that is longer by itself travels as it is.
    pub transfer_bytes_max: u32,
    /// Requests that wait or are under way.
    pub requests_max: usize,
    /// How long requests wait for neighbours.
    pub look_ahead: LookAhead,
}

impl TurboConfig {
    /// 1 MiB, 64 requests, and 100 us for those that go on where others ended.
    pub const fn new(bot: BotConfig) -> Self {
        let look_ahead = LookAhead::AfterNeighbour(Duration::from_us(100));
        Self { bot, transfer_bytes_max: TRANSFER_BYTES, requests_max: REQUESTS_MAX, look_ahead }
    }
}

/// A Bulk-Only interface that packs requests.
#[derive(Debug)]
pub struct Turbo {
    config: TurboConfig,
    bot: Bot,
    /// Requests that wait, oldest first.
    queue: VecDeque<Waiting>,
    /// What is under way. Empty where nothing is.
    members: Vec<Member>,
    /// What `members` are together, if they are more than one.
    packed: Option<Access>,
    pack: PackId,
    pieces: Vec<Piece>,
    /// The accesses that went before, for [`LookAhead::AfterNeighbour`].
    last: Option<Access>,
    /// Until when the front of the queue waits for a neighbour.
    look_until: Option<Instant>,
    /// Requests that the caller has under way at most.
    expected: usize,
    unpacked: u32,
    outputs: Outputs,
}

/// A request in the queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    command: Command,
    since: Instant,
    /// It was in a pack that failed.
    alone: bool,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Member {
    waiting: Waiting,
    /// Where its bytes begin among those of the pack.
    offset: u32,
    /// The caller wants it to end.
    aborted: bool,
}

impl Waiting {
    /// How long the device may take.
    const fn patience(&self) -> Duration {
        self.command.deadline.since(self.since)
    }
}

impl Turbo {
    /// An interface that is configured and at rest.
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

    /// The transport below.
    pub const fn bot(&self) -> &Bot {
        &self.bot
    }

    /// Begins with what is known of the device already.
    pub const fn set_quirks(&mut self, quirks: Quirks) {
        self.bot.set_quirks(quirks);
    }

    /// Carries on: what the transport below says upwards, and the next pack down.
    fn settle(&mut self, now: Instant) {
        loop {
            while let Some(output) = self.bot.poll_output() {
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

    /// Starts what is next. Whether there was anything to start.
    fn start(&mut self, now: Instant) -> bool {
        self.look_until = None;
        let Some(front) = self.queue.front().copied() else { return false };
        let first = Access::of(&front.command).filter(|_| !front.alone);
        let (count, whole) = match first {
            Some(first) => self.run(first),
            None => (1, None),
        };
        if let Some(whole) = whole
            && let Some(until) = self.patience(front.since, count, &whole)
            && now < until
        {
            self.look_until = Some(until);
            return false;
        }
        self.begin(now, count, whole);
        true
    }

    /// How many requests from the front on make one access, and which.
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

    /// Until when to wait for more, if a neighbour could still come and be taken.
    fn patience(&self, since: Instant, count: usize, whole: &Access) -> Option<Instant> {
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

    /// Sends the first `count` requests as one.
    fn begin(&mut self, now: Instant, count: usize, whole: Option<Access>) {
        let mut offset = 0;
        for waiting in self.queue.drain(..count) {
            self.members.push(Member { waiting, offset, aborted: false });
            offset += waiting.command.transfer_len();
        }
        self.last = whole;
        let Some(first) = self.members.first() else { return };
        let mut command = first.waiting.command;
        let patience = self.members.iter().map(|member| member.waiting.patience()).min();
        command.deadline = now + patience.unwrap_or_default();
        self.packed = whole.filter(|_| count > 1);
        if let (Some(whole), Some(phase)) = (self.packed, command.data_phase) {
            command.cdb = whole.encode();
            command.data_phase = Some(DataPhase { range: ByteRange::new(0, offset), ..phase });
            self.pack = PackId(self.pack.0.wrapping_add(1));
            self.pieces.clear();
            let pieces = self.members.iter().filter_map(|member| {
                let Command { id, data_phase, .. } = member.waiting.command;
                Some(Piece { command: id, range: data_phase?.range })
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

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn next_output(&mut self) -> Option<Front<'_, Output>> {
        self.outputs.front()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let look = self.look_until.map(|at| Deadline { at, reason: DeadlineReason::LookAhead });
        look.into_iter().chain(self.bot.poll_timeout()).min_by_key(|deadline| deadline.at)
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

    fn pieces(&self, pack: PackId) -> &[Piece] {
        if pack == self.pack { &self.pieces } else { &[] }
    }
}
