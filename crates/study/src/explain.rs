//! Attributes the latency of each command to stages: link, drive, or waiting for one of them.
//!
//! At each instant a command is *in the drive* while its medium has work for it, the drive's queue
//! included, since concurrent acknowledgements delay nothing; else *on the link* while one of its
//! packets is being sent, propagating, or processed by the receiving port; else in the *bridge*
//! while its firmware works for it; else in the *driver* while the host's core does, or waits for
//! that core (*core-wait*); else in the *controller* while one of its transfers is in a ring and
//! not on the link, or completed without the core knowing, for example due to interrupt moderation;
//! else it *waits*: for a lane or an endpoint, for a credit, for a stream. Before all that it is in
//! the *queue*: from when the driver has its request until the controller has part of it, unless
//! the core works for it. Packets are matched by stream, or without streams by tag, by the endpoint
//! on which one command at a time moves data, or by being the only command on the wire: over BOT
//! the oldest. Left out: buffer space of a bridge as a stage; waiting for it counts as waiting.
//!
//! Always true: the stage times of a command add up to its latency, to the picosecond.

use bus::{Pipe, StreamId, TransferId, TransferStatus};
use device::medium::MediumRequest;
use device::{DeviceTransfer, Payload};
use initiator::{Command, CommandId, DataPhase, Outcome};
use sim::engine::{LatencyStage, LatencyTracker, StageTimes};
use sim::link::Crossing;
use sim::link::bulk::Message;
use sim::link::streams::StreamField;
use sim::link::superspeed::Side;
use sim::link::usb2::{Packet, Sent};
use sim::machine::{CoreClient, CoreSlice, HostTransfer, Observer};
use std::collections::{BTreeMap, VecDeque};
use units::{Duration, Instant};
use wire::bot::{Cbw, Csw};
use wire::uas::{CommandIu, PipeUsage, ReadyIu, StatusIu};
use wire::usb::{Direction, EndpointAddress};

/// The stage times of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The command.
    pub command: CommandId,
    /// From the driver's receipt of its request to its completion.
    pub latency: Duration,
    /// Time per stage.
    pub shares: StageTimes,
}

/// A command with everything that was done for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandTrace {
    /// The command.
    pub command: CommandId,
    /// The access, if it moves data.
    pub data_phase: Option<DataPhase>,
    /// Submission to the transport.
    pub began: Instant,
    /// Completion.
    pub ended: Instant,
    /// The work that was done for it, in order of detection.
    pub spans: Vec<Span>,
}

/// Maximum of commands whose medium work is known before they offer data. Those without data, such
/// as flushes, never do and are evicted.
const UNKNOWN_MAX: usize = 256;

/// Maximum of spans without a command.
const UNOWNED_MAX: usize = 1 << 16;

/// Observes a run and explains each completed command.
#[derive(Debug, Default)]
pub struct Explain {
    in_flight: BTreeMap<CommandId, Account>,
    by_stream: BTreeMap<StreamId, CommandId>,
    /// Commands by the device's id, once it has offered their data.
    by_device: BTreeMap<device::command::CommandId, CommandId>,
    /// Medium work of commands that are not matched yet.
    at_medium: BTreeMap<device::command::CommandId, Vec<Span>>,
    explained: VecDeque<Explained>,
    /// Commands of transfers in flight.
    by_transfer: BTreeMap<TransferId, Owner>,
    /// Transfers between driver and link, in submission order.
    at_controller: VecDeque<AtController>,
    /// Work for streams that are not matched yet.
    for_stream: BTreeMap<StreamId, Vec<Span>>,
    /// Commands without a tag yet, in order.
    unnamed: VecDeque<CommandId>,
    /// Over BOT, the command of the last CBW, or those in its pack: work counts for all of them.
    wrapped: Vec<CommandId>,
    bus: OnBus,
    /// The purpose of each endpoint with streams, or beside such.
    pipes: BTreeMap<EndpointAddress, PipeUsage>,
    /// Whether commands are UAS information units.
    speaks_uas: bool,
    traces: Vec<CommandTrace>,
    /// Maximum of traced commands.
    traces_max: usize,
    /// Work for one of several commands that cannot be distinguished.
    unowned: Vec<Span>,
}

/// The command of a transfer.
#[derive(Clone, Copy, Debug)]
enum Owner {
    Command(CommandId),
    /// That of the stream: a status transfer is submitted before its command is known.
    Stream(StreamId),
}

/// A submitted transfer.
#[derive(Clone, Copy, Debug)]
struct AtController {
    id: TransferId,
    pipe: Pipe,
    state: Handling,
}

/// The stage of a transfer.
#[derive(Clone, Copy, Debug)]
enum Handling {
    /// In its ring.
    Queued(Instant),
    /// On the link, under this number.
    OnLink(TransferId),
    /// Completed.
    Carried(Instant),
}

/// State of a USB 2.0 bus.
#[derive(Debug, Default)]
struct OnBus {
    /// Command whose data the host moves on an endpoint.
    moves: BTreeMap<EndpointAddress, CommandId>,
    /// Command whose data the device moves next, Out first.
    ready: [Option<CommandId>; 2],
    /// Start of the transaction.
    token: Option<(EndpointAddress, Instant)>,
    /// Its command, once known.
    owner: Option<CommandId>,
}

/// A command in flight.
#[derive(Debug)]
struct Account {
    /// When the driver had its request.
    asked: Instant,
    /// Submission to the transport.
    began: Instant,
    data_phase: Option<DataPhase>,
    spans: Vec<Span>,
}

/// Time in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The stage.
    pub stage: LatencyStage,
    /// The pipe of a packet with payload; BOT has them as well, by content.
    pub pipe: Option<PipeUsage>,
    /// Start.
    pub from: Instant,
    /// End.
    pub to: Instant,
}

impl Span {
    const fn new(stage: LatencyStage, from: Instant, to: Instant) -> Self {
        Self { stage, pipe: None, from, to }
    }
}

impl Explain {
    /// Creates an observer that traces the first commands to complete.
    pub fn with_traces(commands: usize) -> Self {
        Self { traces_max: commands, ..Self::default() }
    }

    /// Takes the traces, in order of completion.
    pub fn take_traces(&mut self) -> Vec<CommandTrace> {
        std::mem::take(&mut self.traces)
    }

    /// Takes the work during traced commands that could not be matched: commands packed by Turbo
    /// are one on the wire.
    pub fn take_unowned(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.unowned)
    }

    /// Returns the next completed command, in order of completion.
    pub fn poll(&mut self) -> Option<Explained> {
        self.explained.pop_front()
    }

    /// The command of a stream, or the only one.
    fn command_of(&self, stream: Option<StreamId>) -> Option<CommandId> {
        match stream {
            Some(stream) => self.by_stream.get(&stream).copied(),
            None if self.in_flight.len() == 1 => self.in_flight.keys().next().copied(),
            None => self.wrapped.first().copied(),
        }
    }

    /// Over BOT commands go when those before them have ended: whose CBW this is, if it asks for what the oldest ones want.
    fn note_wrapper(&mut self, bytes: &[u8]) {
        if let (false, Ok(cbw)) = (self.speaks_uas, Cbw::decode(bytes)) {
            self.wrapped.clear();
            let mut bytes = 0_u64;
            for command in &self.unnamed {
                let wants = self.in_flight.get(command).and_then(|account| account.data_phase);
                bytes += u64::from(wants.map_or(0, |phase| phase.range.len));
                self.wrapped.push(*command);
                if bytes >= u64::from(cbw.transfer_len) {
                    break;
                }
            }
            if bytes != u64::from(cbw.transfer_len) {
                self.wrapped.clear();
            }
        }
    }

    fn name(&mut self, tag: StreamId, command: CommandId) {
        self.by_stream.insert(tag, command);
        let spans = self.for_stream.remove(&tag).unwrap_or_default();
        self.add(Some(command), spans);
        self.unnamed.retain(|of| *of != command);
    }

    fn tagged(&self, tag: u16) -> Option<CommandId> {
        self.by_stream.get(&StreamId::new(tag)?).copied()
    }

    /// Returns the pipe of a packet with payload: of UAS by its endpoint, of BOT by its content.
    fn pipe_of(&self, endpoint: EndpointAddress, bytes: &[u8]) -> Option<PipeUsage> {
        if let Some(pipe) = self.pipes.get(&endpoint) {
            return Some(*pipe);
        }
        let is_data = !self.speaks_uas || self.bus.moves.contains_key(&endpoint);
        Some(match endpoint.direction() {
            Direction::Out if !is_data || Cbw::decode(bytes).is_ok() => PipeUsage::Command,
            Direction::In if !is_data || Csw::decode(bytes).is_ok() => PipeUsage::Status,
            Direction::Out => PipeUsage::DataOut,
            Direction::In => PipeUsage::DataIn,
        })
    }

    /// Whose data cross an endpoint without streams.
    fn owner_of(&self, endpoint: EndpointAddress, bytes: &[u8]) -> Option<CommandId> {
        if let Some(alone) = self.command_of(None) {
            return Some(alone);
        }
        if let Some(command) = self.bus.moves.get(&endpoint) {
            return Some(*command);
        }
        match endpoint.direction() {
            Direction::Out => self.tagged(CommandIu::decode(bytes).ok()?.tag),
            Direction::In => self.tagged(StatusIu::decode(bytes).ok()?.tag()),
        }
    }

    fn add(&mut self, command: Option<CommandId>, spans: impl IntoIterator<Item = Span>) {
        if self.wrapped.len() > 1 && command.is_some_and(|command| self.wrapped.contains(&command)) {
            let spans: Vec<Span> = spans.into_iter().collect();
            for packed in &self.wrapped {
                if let Some(account) = self.in_flight.get_mut(packed) {
                    account.spans.extend_from_slice(&spans);
                }
            }
        } else if let Some(account) = command.and_then(|command| self.in_flight.get_mut(&command)) {
            account.spans.extend(spans);
        } else if self.traces.len() < self.traces_max {
            let room = UNOWNED_MAX - self.unowned.len().min(UNOWNED_MAX);
            self.unowned.extend(spans.into_iter().take(room));
        }
    }
}

impl Explain {
    /// Time of a transfer is time of whose it is, as soon as that is known.
    fn add_to_transfer(&mut self, id: TransferId, span: Span) {
        match self.by_transfer.get(&id).copied() {
            Some(Owner::Command(command)) => self.add(Some(command), [span]),
            Some(Owner::Stream(stream)) => match self.by_stream.get(&stream) {
                Some(&command) => self.add(Some(command), [span]),
                None => self.for_stream.entry(stream).or_default().push(span),
            },
            None => {}
        }
        if self.for_stream.len() > UNKNOWN_MAX {
            self.for_stream.pop_first();
        }
    }
}

impl Observer for Explain {
    fn began(&mut self, at: Instant, command: &Command) {
        self.unnamed.push_back(command.id);
        let account = Account { asked: at, began: at, data_phase: command.data_phase, spans: Vec::new() };
        self.in_flight.insert(command.id, account);
    }

    fn queued_since(&mut self, since: Instant, command: CommandId) {
        if let Some(account) = self.in_flight.get_mut(&command) {
            account.asked = since.min(account.began);
        }
    }

    fn submitted(&mut self, at: Instant, transfer: &HostTransfer, bytes: &[u8]) {
        let mut named = None;
        match (transfer.pipe.stream, transfer.command) {
            (Some(stream), Some(command)) => {
                let pipe = match transfer.pipe.endpoint.direction() {
                    Direction::Out => PipeUsage::DataOut,
                    Direction::In => PipeUsage::DataIn,
                };
                self.pipes.insert(transfer.pipe.endpoint, pipe);
                self.name(stream, command);
            }
            (None, Some(command)) => {
                self.bus.moves.insert(transfer.pipe.endpoint, command);
            }
            // Commands are matched in the order in which they were submitted.
            (None, None) => {
                self.note_wrapper(bytes);
                let tag = CommandIu::decode(bytes).ok().and_then(|command| StreamId::new(command.tag));
                self.speaks_uas |= tag.is_some();
                let tag = tag.filter(|tag| !self.by_stream.contains_key(tag));
                if let Some((tag, &command)) = tag.zip(self.unnamed.front()) {
                    self.name(tag, command);
                }
                named = CommandIu::decode(bytes).ok().and_then(|command| self.tagged(command.tag));
            }
            (Some(_), None) => {
                self.pipes.insert(transfer.pipe.endpoint, PipeUsage::Status);
            }
        }
        let command = transfer.command.or(named).or_else(|| self.command_of(None)).map(Owner::Command);
        if let Some(owner) = command.or(transfer.pipe.stream.map(Owner::Stream)) {
            self.by_transfer.insert(transfer.id, owner);
        }
        let state = Handling::Queued(at);
        self.at_controller.push_back(AtController { id: transfer.id, pipe: transfer.pipe, state });
    }

    fn completed(&mut self, at: Instant, transfer: &HostTransfer, _: TransferStatus, _: u32, _: &[u8]) {
        let place = self.at_controller.iter().position(|of| of.id == transfer.id);
        if let Some(AtController { state: Handling::Carried(since), .. }) =
            place.and_then(|place| self.at_controller.remove(place))
        {
            self.add_to_transfer(transfer.id, Span::new(LatencyStage::Controller, since, at));
        }
        self.by_transfer.remove(&transfer.id);
    }

    fn core_worked(&mut self, turn: CoreSlice, of: CoreClient) {
        let CoreSlice { since, began, ended } = turn;
        for span in
            [Span::new(LatencyStage::Core, since, began), Span::new(LatencyStage::Driver, began, ended)]
        {
            match of {
                CoreClient::Command(command) => self.add(Some(command), [span]),
                CoreClient::Transfer(id) => self.add_to_transfer(id, span),
            }
        }
    }

    fn fetched(&mut self, at: Instant, pipe: Pipe, number: TransferId) {
        let mut waiting = self.at_controller.iter_mut().filter(|transfer| transfer.pipe == pipe);
        let next = waiting.find_map(|transfer| match transfer.state {
            Handling::Queued(since) => Some((transfer, since)),
            _ => None,
        });
        if let Some((transfer, since)) = next {
            transfer.state = Handling::OnLink(number);
            let id = transfer.id;
            self.add_to_transfer(id, Span::new(LatencyStage::Controller, since, at));
        }
    }

    fn link_completed(&mut self, at: Instant, number: TransferId) {
        let is_it =
            |transfer: &&mut AtController| matches!(transfer.state, Handling::OnLink(own) if own == number);
        if let Some(transfer) = self.at_controller.iter_mut().find(is_it) {
            transfer.state = Handling::Carried(at);
        }
    }

    fn crossed(&mut self, sent: &Sent, bytes: &[u8]) {
        let mut pipe = None;
        let since = match sent.packet {
            Packet::Token(ask) => {
                (self.bus.token, self.bus.owner) = (Some((ask.endpoint(), sent.begins)), None);
                return;
            }
            // The translator's, and not the device's.
            Packet::Split(_) => return,
            Packet::Data(..) => {
                let Some((endpoint, since)) = self.bus.token else { return };
                self.bus.owner = self.owner_of(endpoint, bytes);
                pipe = self.pipe_of(endpoint, bytes);
                since
            }
            Packet::Handshake(_) => sent.begins,
        };
        let span = Span { pipe, ..Span::new(LatencyStage::Link, since, sent.ends) };
        self.add(self.bus.owner, [span]);
    }

    fn sent(&mut self, _: Side, message: &Message, crossing: &Crossing, bytes: &[u8]) {
        let stream = match message.stream() {
            Some(StreamField::Stream(stream)) => Some(stream),
            Some(StreamField::Prime | StreamField::NoStream) => return,
            // A command that is on its way to a device with streams has its tag, which is its stream.
            None => CommandIu::decode(bytes).ok().and_then(|command| StreamId::new(command.tag)),
        };
        let known = stream.filter(|stream| self.by_stream.contains_key(stream));
        let pipe = message.piece().and_then(|_| self.pipe_of(message.endpoint(), bytes));
        let span = Span { pipe, ..Span::new(LatencyStage::Link, crossing.begins, crossing.heard) };
        self.add(self.command_of(known), [span]);
    }

    fn medium_requested(&mut self, at: Instant, request: &MediumRequest, done_at: Instant) {
        let span = Span::new(LatencyStage::Drive, at, done_at);
        let device_command = request.id.command;
        if let Some(&command) = self.by_device.get(&device_command) {
            return self.add(Some(command), [span]);
        }
        self.at_medium.entry(device_command).or_default().push(span);
        if self.at_medium.len() > UNKNOWN_MAX {
            self.at_medium.pop_first();
        }
    }

    fn drive_served(&mut self, since: Instant, at: Instant, command: CommandId) {
        self.add(Some(command), [Span::new(LatencyStage::Drive, since, at)]);
    }

    fn offered(&mut self, _: Instant, transfer: &DeviceTransfer) {
        if let (Payload::Inline(inline), None) = (&transfer.payload, transfer.pipe.stream)
            && let Ok(ready) = ReadyIu::decode(inline.as_bytes())
        {
            self.bus.ready[ready.direction as usize] = self.tagged(ready.tag);
        }
        // What it reads has been asked for before it offers to send it; what it writes, afterwards.
        if let Payload::Buffer(device_command, _) = transfer.payload {
            let ready = self.bus.ready[transfer.pipe.endpoint.direction() as usize];
            let command = self.command_of(transfer.pipe.stream).or(ready);
            let Some(command) = command else {
                let spans = self.at_medium.remove(&device_command).unwrap_or_default();
                return self.add(None, spans);
            };
            self.by_device.insert(device_command, command);
            let spans = self.at_medium.remove(&device_command).unwrap_or_default();
            self.add(Some(command), spans);
        }
    }

    fn translated(&mut self, since: Instant, at: Instant, stream: Option<StreamId>) {
        let span = Span::new(LatencyStage::Bridge, since, at);
        self.add(self.command_of(stream), [span]);
    }

    fn ended(&mut self, at: Instant, command: CommandId, _: &Outcome) {
        let Some(account) = self.in_flight.remove(&command) else { return };
        self.by_stream.retain(|_, of| *of != command);
        self.by_device.retain(|_, of| *of != command);
        self.bus.moves.retain(|_, of| *of != command);
        self.unnamed.retain(|of| *of != command);
        self.wrapped.retain(|of| *of != command);
        if self.traces.len() < self.traces_max {
            let Account { began, data_phase, ref spans, .. } = account;
            self.traces.push(CommandTrace { command, data_phase, began, ended: at, spans: spans.clone() });
        }
        let (latency, shares) = account.settle(at);
        self.explained.push_back(Explained { command, latency, shares });
    }
}

/// Precedence of simultaneous stages.
const PRECEDENCE: [LatencyStage; 6] = [
    LatencyStage::Drive,
    LatencyStage::Link,
    LatencyStage::Bridge,
    LatencyStage::Driver,
    LatencyStage::Core,
    LatencyStage::Controller,
];

impl Account {
    /// Goes through all that begins and ends, in the order of time.
    fn settle(&self, ended: Instant) -> (Duration, StageTimes) {
        let clip = |at: Instant| at.clamp(self.began, ended);
        let mut turns: Vec<(Instant, LatencyStage, bool)> = Vec::with_capacity(2 * self.spans.len());
        for span in &self.spans {
            turns.push((clip(span.from), span.stage, true));
            turns.push((clip(span.to), span.stage, false));
        }
        turns.sort_unstable_by_key(|&(at, stage, begins)| (at, stage, !begins));
        let mut journey = LatencyTracker::start(self.asked, LatencyStage::Queue);
        let mut open = [0_u32; LatencyStage::ALL.len()];
        // A command that the driver has made may have its place in a line of the transport, over BOT above all.
        let mut waits_for = LatencyStage::Queue;
        for (at, stage, begins) in turns {
            let count = &mut open[stage as usize];
            *count = if begins { *count + 1 } else { count.saturating_sub(1) };
            if !matches!(stage, LatencyStage::Core | LatencyStage::Driver) {
                waits_for = LatencyStage::Waiting;
            }
            let counts = PRECEDENCE.into_iter().find(|&stage| open[stage as usize] > 0);
            journey.enter(at, counts.unwrap_or(waits_for));
        }
        journey.end(ended)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Looks at a clock when commands are asked for and when they end, and at nothing else.
    #[derive(Debug, Default)]
    pub(crate) struct Clock {
        asked: BTreeMap<CommandId, Instant>,
        took: Vec<(CommandId, Duration)>,
    }

    impl Observer for Clock {
        fn began(&mut self, at: Instant, command: &Command) {
            self.asked.insert(command.id, at);
        }

        fn queued_since(&mut self, since: Instant, command: CommandId) {
            if let Some(asked) = self.asked.get_mut(&command) {
                *asked = since.min(*asked);
            }
        }

        fn ended(&mut self, at: Instant, command: CommandId, _: &Outcome) {
            self.took.extend(self.asked.remove(&command).map(|asked| (command, at - asked)));
        }
    }

    /// That the shares of each command are what it took by the clock, which may have looked on for longer: of how many.
    pub(crate) fn assert_exact(explain: &Rc<RefCell<Explain>>, clock: &Rc<RefCell<Clock>>) -> usize {
        let explained: Vec<_> = std::iter::from_fn(|| explain.borrow_mut().poll()).collect();
        let took = &clock.borrow().took;
        let before = took.len().checked_sub(explained.len()).expect("the clock has seen all of them");
        for (Explained { command, latency, shares }, clock) in explained.iter().zip(&took[before..]) {
            assert_eq!((*command, *latency), *clock);
            assert_eq!(shares.total(), *latency, "{shares:?}");
        }
        explained.len()
    }
    use initiator::{CommandBlock, Failure};
    use wire::scsi::lun::LunField;
    use wire::uas::TaskAttribute;

    const fn at(ps: u64) -> Instant {
        Instant::from_ps(ps)
    }

    const fn span(stage: LatencyStage, from: u64, to: u64) -> Span {
        Span::new(stage, at(from), at(to))
    }

    #[test]
    fn overlapping_stages_count_once_with_the_drive_first() {
        let spans = vec![
            span(LatencyStage::Link, 15, 20),
            span(LatencyStage::Drive, 20, 50),
            span(LatencyStage::Link, 40, 60),
            span(LatencyStage::Link, 45, 62),
            span(LatencyStage::Link, 90, 120),
        ];
        let (latency, shares) =
            Account { asked: at(10), began: at(10), data_phase: None, spans }.settle(at(100));
        assert_eq!(latency, Duration::from_ps(90));
        assert_eq!(shares.of(LatencyStage::Link), Duration::from_ps(5 + 12 + 10));
        assert_eq!(shares.of(LatencyStage::Drive), Duration::from_ps(30));
        assert_eq!(shares.of(LatencyStage::Queue), Duration::from_ps(5));
        assert_eq!(shares.of(LatencyStage::Waiting), Duration::from_ps(28));
        assert_eq!(shares.total(), latency);
    }

    #[test]
    fn requests_above_the_transport_are_queued() {
        let mut explain = Explain::default();
        let id = CommandId { slot: 3, generation: 1 };
        let command = Command {
            id,
            lun: LunField([0; 8]),
            attribute: TaskAttribute::Simple,
            cdb: CommandBlock::new(&[0; 6]).expect("six bytes"),
            data_phase: None,
            deadline: at(1_000),
        };
        explain.began(at(40), &command);
        explain.queued_since(at(10), id);
        let turn = CoreSlice { since: at(45), began: at(52), ended: at(60) };
        explain.core_worked(turn, CoreClient::Command(id));
        explain.ended(at(70), id, &Outcome::Failed(Failure::Aborted));
        let Explained { latency, shares, .. } = explain.poll().expect("it has ended");
        assert_eq!(latency, Duration::from_ps(60));
        // Before it is the core's, and behind that, since nothing of it has come to the controller.
        assert_eq!(shares.of(LatencyStage::Queue), Duration::from_ps(35 + 10));
        assert_eq!(shares.of(LatencyStage::Core), Duration::from_ps(7));
        assert_eq!(shares.of(LatencyStage::Driver), Duration::from_ps(8));
        assert_eq!(shares.total(), latency);
    }
}
