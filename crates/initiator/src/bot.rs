//! Bulk-Only Transport, host side (USB Mass Storage Class, Bulk-Only Transport 1.0, clauses 5 and
//! 6).
//!
//! One command at a time: CBW, optional data, CSW, each transfer awaited before the next is
//! submitted. Which of the thirteen cases (clause 6.7) applies follows from the end of the data
//! phase and the CSW; `status` judges the two together. A failed command is followed by REQUEST
//! SENSE, an undecidable result by `recovery`, and the command ends when that is over.
//!
//! Known deviations of real devices are tolerated, see [`Quirks`].
//!
//! Always true: at most one transfer is in flight; a command ends only when there is none.

mod quirks;
mod recovery;
mod status;
#[cfg(test)]
mod tests;

pub use quirks::Quirks;
pub use recovery::{PORT_RESETS_MAX, RESET_RECOVERIES_MAX};

use crate::output::Outputs;
use crate::request::Requests;
use crate::timeouts::Timeouts;
use crate::{
    Answer, BufferRange, BusAnswer, BusRequest, Command, CommandId, Counters, Deadline, DeadlineReason,
    Failure, Inline, Outcome, Output, Payload, Refusal, RequestId, SenseBytes, Transfer, Transport,
};
use bus::{Completion, Direction, EndpointAddress, Front, Pipe, TransferId, TransferStatus};
use recovery::{Lost, Recovery};
use status::{DataEnd, Due, Judgement};
use units::Instant;
use wire::bot::{Cbw, Csw, LUN_MAX};
use wire::scsi::Status;
use wire::scsi::cdb::RequestSense;
use wire::scsi::lun::Lun;

/// The longest command block that a CBW carries, in bytes.
pub const COMMAND_BYTES_MAX: u8 = 16;

/// The location of a Bulk-Only interface and its timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BotConfig {
    /// bInterfaceNumber.
    pub interface: u8,
    /// bAlternateSetting, selected again after a port reset.
    pub alternate: u8,
    /// Bulk-In.
    pub bulk_in: EndpointAddress,
    /// Bulk-Out.
    pub bulk_out: EndpointAddress,
    /// Timeouts of the recovery steps.
    pub timeouts: Timeouts,
}

/// A Bulk-Only interface.
#[derive(Debug)]
pub struct Bot {
    config: BotConfig,
    quirks: Quirks,
    outputs: Outputs,
    requests: Requests,
    last_tag: u32,
    counters: Counters,
    /// Recoveries since the last valid CSW.
    recoveries: u8,
    /// Data of REQUEST SENSE, until its CSW arrives.
    sense: SenseBytes,
    state: State,
}

#[derive(Debug)]
enum State {
    Idle,
    Busy(Exchange),
    Recovering(Recovery),
    /// The device is gone; a transfer has not completed yet.
    Leaving(CommandId, TransferId),
    Gone,
}

/// A CBW and what follows it.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    command: Command,
    purpose: Purpose,
    tag: u32,
    phase: Phase,
    data: DataEnd,
    deadline: Deadline,
    /// Whether the CBW was rejected and sent again.
    resent: bool,
}

/// The purpose of an exchange.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// The command itself.
    Command,
    /// REQUEST SENSE after the command failed with so many bytes moved.
    Sense { moved: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Command(TransferId),
    Data(TransferId),
    /// The halt that ended the data phase is being cleared.
    DataHalted,
    Status(TransferId, Retries),
    /// The halt of the status phase is being cleared.
    StatusHalted(Retries),
    /// No transfer: one has just completed and the next is being chosen.
    Between,
}

/// Retries of the status phase so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Retries {
    after_stall: bool,
    after_zero_length: bool,
}

/// The data of a status transfer.
struct Read<'a> {
    bytes: &'a [u8],
    retries: Retries,
}

impl Bot {
    /// Creates the machine for a configured, idle interface.
    pub fn new(config: BotConfig) -> Self {
        Self {
            config,
            quirks: Quirks::default(),
            outputs: Outputs::new(),
            requests: Requests::default(),
            last_tag: 0,
            counters: Counters::default(),
            recoveries: 0,
            sense: SenseBytes::NONE,
            state: State::Idle,
        }
    }

    /// Returns the deviations that the device has shown.
    pub const fn quirks(&self) -> Quirks {
        self.quirks
    }

    /// Sets deviations known in advance.
    pub const fn set_quirks(&mut self, quirks: Quirks) {
        self.quirks = quirks;
    }

    /// Checks that the device is there and a CBW can express the command.
    pub(crate) fn can_carry(&self, command: &Command) -> Result<(), Refusal> {
        if self.depth() == 0 {
            return Err(Refusal::Gone);
        }
        if command.cdb.len() > COMMAND_BYTES_MAX.into() {
            return Err(Refusal::CommandBlock { bytes_max: COMMAND_BYTES_MAX });
        }
        unit(command).map(|_| ()).ok_or(Refusal::Lun)
    }

    /// Sends the CBW of a command.
    fn begin(&mut self, command: Command, resent: bool) {
        let deadline = Deadline { at: command.deadline, reason: DeadlineReason::Command(command.id) };
        let (direction, length) =
            command.transfer().map_or((Direction::Out, 0), |phase| (phase.direction, phase.range.len));
        let exchange = self.exchange(command, Purpose::Command, deadline, resent);
        self.send_wrapper(exchange, length, direction, command.cdb.as_bytes());
    }

    /// Sends REQUEST SENSE after a failed command.
    fn begin_sense(&mut self, now: Instant, command: Command, moved: u32) {
        let deadline = Deadline { at: now + self.config.timeouts.sense, reason: DeadlineReason::Sense };
        let sense_len = self.quirks.sense_len();
        let cdb = RequestSense { allocation_len: sense_len, ..RequestSense::default() }.encode();
        self.sense = SenseBytes::NONE;
        let purpose = Purpose::Sense { moved };
        let exchange = self.exchange(command, purpose, deadline, false);
        self.send_wrapper(exchange, sense_len.into(), Direction::In, &cdb);
    }

    const fn exchange(
        &mut self,
        command: Command,
        purpose: Purpose,
        deadline: Deadline,
        resent: bool,
    ) -> Exchange {
        self.last_tag = self.last_tag.wrapping_add(1);
        let data = DataEnd { moved: 0, babble: false };
        Exchange { command, purpose, tag: self.last_tag, phase: Phase::Between, data, deadline, resent }
    }

    fn send_wrapper(&mut self, exchange: Exchange, length: u32, direction: Direction, cdb: &[u8]) {
        let lun = unit(&exchange.command).unwrap_or(0);
        let cbw = Cbw::new(exchange.tag, length, direction, lun, cdb).encode();
        let id = self.offer(self.config.bulk_out, cbw.len() as u32, Payload::Inline(Inline::new(&cbw)));
        self.state = State::Busy(Exchange { phase: Phase::Command(id), ..exchange });
    }

    /// Starts the data phase, or the status phase if there is none.
    fn move_data(&mut self, exchange: Exchange) {
        let length = self.expected(&exchange);
        let payload = match (exchange.purpose, exchange.command.transfer()) {
            (Purpose::Sense { .. }, _) => Payload::Message,
            (Purpose::Command, None) => return self.read_status(exchange, Retries::default()),
            (Purpose::Command, Some(phase)) => {
                Payload::Buffer(BufferRange { command: exchange.command.id, range: phase.range })
            }
        };
        let id = self.offer(self.data_endpoint(&exchange), length, payload);
        self.state = State::Busy(Exchange { phase: Phase::Data(id), ..exchange });
    }

    fn read_status(&mut self, exchange: Exchange, retries: Retries) {
        let id = self.offer(self.config.bulk_in, Csw::LEN as u32, Payload::Message);
        self.state = State::Busy(Exchange { phase: Phase::Status(id, retries), ..exchange });
    }

    fn clear_halt(&mut self, now: Instant, exchange: Exchange, endpoint: EndpointAddress) {
        let request = BusRequest::ClearHalt(endpoint);
        self.requests.ask(&mut self.outputs, now, request, self.config.timeouts.clear_halt);
        self.state = State::Busy(exchange);
    }

    fn after_wrapper(&mut self, now: Instant, exchange: Exchange, completion: Completion) {
        match completion.status {
            TransferStatus::Done | TransferStatus::Short => self.move_data(exchange),
            // The device has taken nothing of it, so that the command cannot have begun.
            TransferStatus::Stall | TransferStatus::Error if completion.actual == 0 && !exchange.resent => {
                self.recover_and_resend(now, exchange);
            }
            TransferStatus::Stall => self.recover(now, exchange, Failure::Stalled),
            _ => self.recover(now, exchange, Failure::Bus),
        }
    }

    fn after_data(&mut self, now: Instant, mut exchange: Exchange, completion: Completion, bytes: &[u8]) {
        exchange.data =
            DataEnd { moved: completion.actual, babble: completion.status == TransferStatus::Babble };
        let inward = exchange.direction() == Direction::In;
        match completion.status {
            TransferStatus::Done | TransferStatus::Short
                if inward && self.quirks.is_status(bytes, exchange.tag) =>
            {
                exchange.data.moved = 0;
                self.judge(now, exchange, bytes);
            }
            TransferStatus::Stall | TransferStatus::Done | TransferStatus::Short | TransferStatus::Babble => {
                if let Purpose::Sense { .. } = exchange.purpose {
                    self.sense = SenseBytes::new(bytes);
                    self.quirks.see_sense(bytes);
                }
                // A host controller halts its end of a pipe that has babbled, and begins to count
                // packets again: only with the device's end cleared do both agree again (xHCI 1.2
                // clause 4.6.8).
                if matches!(completion.status, TransferStatus::Stall | TransferStatus::Babble) {
                    exchange.phase = Phase::DataHalted;
                    self.clear_halt(now, exchange, self.data_endpoint(&exchange));
                } else {
                    self.read_status(exchange, Retries::default());
                }
            }
            _ => self.recover(now, exchange, Failure::Bus),
        }
    }

    fn after_status(&mut self, now: Instant, exchange: Exchange, completion: Completion, read: Read<'_>) {
        let Read { bytes, mut retries } = read;
        match completion.status {
            TransferStatus::Stall if !retries.after_stall => {
                retries.after_stall = true;
                let halted = Exchange { phase: Phase::StatusHalted(retries), ..exchange };
                self.clear_halt(now, halted, self.config.bulk_in);
            }
            TransferStatus::Stall => self.recover(now, exchange, Failure::Stalled),
            TransferStatus::Short if completion.actual == 0 && !retries.after_zero_length => {
                retries.after_zero_length = true;
                self.counters.odd_statuses += 1;
                self.read_status(exchange, retries);
            }
            TransferStatus::Done | TransferStatus::Short => self.judge(now, exchange, bytes),
            TransferStatus::Babble => self.recover(now, exchange, Failure::BadStatus),
            _ => self.recover(now, exchange, Failure::Bus),
        }
    }

    /// Handles the answer to a request of an exchange or of recovery, or its timeout.
    fn after_request(&mut self, now: Instant, request: BusRequest, answer: BusAnswer) {
        match self.state {
            State::Busy(exchange) => match (exchange.phase, answer) {
                (Phase::DataHalted, BusAnswer::Done) => self.read_status(exchange, Retries::default()),
                (Phase::StatusHalted(retries), BusAnswer::Done) => self.read_status(exchange, retries),
                _ => self.recover(now, exchange, Failure::Stalled),
            },
            State::Recovering(recovery) => self.after_step(now, recovery, request, answer),
            State::Idle | State::Leaving(..) | State::Gone => {}
        }
    }

    /// Handles a CSW, or the bytes received in its place.
    fn judge(&mut self, now: Instant, exchange: Exchange, bytes: &[u8]) {
        let due = Due {
            tag: exchange.tag,
            bytes: self.expected(&exchange),
            operation_code: match exchange.purpose {
                Purpose::Command => exchange.command.cdb.operation_code(),
                Purpose::Sense { .. } => REQUEST_SENSE,
            },
        };
        let judgement = self.quirks.judge(bytes, due, exchange.data);
        let (passed, moved) = match judgement {
            Judgement::Passed { moved } => (true, moved),
            Judgement::Failed { moved } => (false, moved),
            Judgement::PhaseError => return self.recover(now, exchange, Failure::PhaseError),
            Judgement::Invalid => {
                self.counters.odd_statuses += 1;
                return self.recover(now, exchange, Failure::BadStatus);
            }
        };
        self.recoveries = 0;
        let id = exchange.command.id;
        match exchange.purpose {
            Purpose::Command if !passed && exchange.command.cdb.operation_code() != REQUEST_SENSE => {
                self.begin_sense(now, exchange.command, moved);
            }
            Purpose::Command if !passed => self.finish(id, unexplained(moved, SenseBytes::NONE)),
            Purpose::Command if exchange.data.babble => {
                self.finish(id, unexplained(moved, SenseBytes::new(&INVALID_FIELD_IN_CDB)));
            }
            Purpose::Command => self.finish(id, Outcome::answered(Status::Good, moved)),
            Purpose::Sense { moved } => {
                let sense = core::mem::replace(&mut self.sense, SenseBytes::NONE);
                let sense = if passed { sense } else { SenseBytes::NONE };
                self.finish(id, unexplained(moved, sense));
            }
        }
    }

    /// Returns the data transfer length of the CBW.
    fn expected(&self, exchange: &Exchange) -> u32 {
        match exchange.purpose {
            Purpose::Sense { .. } => self.quirks.sense_len().into(),
            Purpose::Command => exchange.command.transfer_len(),
        }
    }

    fn data_endpoint(&self, exchange: &Exchange) -> EndpointAddress {
        match exchange.direction() {
            Direction::In => self.config.bulk_in,
            Direction::Out => self.config.bulk_out,
        }
    }

    fn offer(&mut self, endpoint: EndpointAddress, length: u32, payload: Payload) -> TransferId {
        let id = TransferId(0);
        self.outputs.push_back(Output::Submit(Transfer { id, pipe: Pipe::plain(endpoint), length, payload }));
        id
    }

    fn finish(&mut self, id: CommandId, outcome: Outcome) {
        self.state = State::Idle;
        self.outputs.push_back(Output::Finished(id, outcome));
    }

    /// The device is gone; if a transfer is in flight, the command ends with it.
    fn shut_down(&mut self, id: CommandId, awaited: Option<TransferId>) {
        self.requests.forget();
        match awaited {
            Some(transfer) => self.state = State::Leaving(id, transfer),
            None => {
                self.finish(id, Outcome::Failed(Failure::Disconnected));
                self.state = State::Gone;
            }
        }
    }
}

impl Transport for Bot {
    fn submit(&mut self, _now: Instant, command: &Command) -> Result<(), Refusal> {
        self.can_carry(command)?;
        if self.in_flight() > 0 {
            return Err(Refusal::Full);
        }
        self.begin(*command, false);
        Ok(())
    }

    fn abort(&mut self, now: Instant, id: CommandId) {
        if let State::Busy(exchange) = self.state
            && exchange.command.id == id
        {
            self.recover(now, exchange, Failure::Aborted);
        }
    }

    fn handle_completion(&mut self, now: Instant, completion: Completion, bytes: &[u8]) {
        self.counters.stalls += u32::from(completion.status == TransferStatus::Stall);
        match self.state {
            State::Busy(exchange) if exchange.transfer() == Some(completion.id) => {
                if completion.status == TransferStatus::Disconnected {
                    return self.shut_down(exchange.command.id, None);
                }
                let settled = Exchange { phase: Phase::Between, ..exchange };
                match exchange.phase {
                    Phase::Command(_) => self.after_wrapper(now, settled, completion),
                    Phase::Data(_) => self.after_data(now, settled, completion, bytes),
                    Phase::Status(_, retries) => {
                        self.after_status(now, settled, completion, Read { bytes, retries });
                    }
                    Phase::DataHalted | Phase::StatusHalted(_) | Phase::Between => {}
                }
            }
            State::Recovering(recovery) if recovery.awaited == Some(completion.id) => {
                self.after_cancel(now, recovery, completion);
            }
            State::Leaving(id, transfer) if transfer == completion.id => self.shut_down(id, None),
            _ => {}
        }
    }

    fn handle_answer(&mut self, now: Instant, id: RequestId, answer: BusAnswer) {
        let Some(request) = self.requests.take(id) else { return };
        self.after_request(now, request, answer);
    }

    fn handle_disconnect(&mut self, _now: Instant) {
        match &self.state {
            State::Idle => self.state = State::Gone,
            State::Busy(exchange) => self.shut_down(exchange.command.id, exchange.transfer()),
            State::Recovering(recovery) => self.shut_down(recovery.command.id, recovery.awaited),
            State::Leaving(..) | State::Gone => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(request) = self.requests.take_expired(now) {
            self.after_request(now, request, BusAnswer::Failed);
        }
        if let State::Busy(exchange) = self.state
            && exchange.deadline.at <= now
        {
            self.counters.timeouts += 1;
            self.recover(now, exchange, Failure::TimedOut);
        }
    }

    fn poll_output(&mut self) -> Option<Front<'_, Output>> {
        self.outputs.front_entry()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let exchange = match &self.state {
            State::Busy(exchange) => Some(exchange.deadline),
            _ => None,
        };
        exchange.into_iter().chain(self.requests.deadline()).min_by_key(|deadline| deadline.at)
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn transfers_max(&self) -> usize {
        1
    }

    fn depth(&self) -> usize {
        match self.state {
            State::Gone | State::Leaving(..) => 0,
            _ => 1,
        }
    }

    fn in_flight(&self) -> usize {
        match self.state {
            State::Idle | State::Gone => 0,
            _ => 1,
        }
    }
}

impl Exchange {
    /// Returns the transfer in flight.
    const fn transfer(&self) -> Option<TransferId> {
        match self.phase {
            Phase::Command(id) | Phase::Data(id) | Phase::Status(id, _) => Some(id),
            Phase::DataHalted | Phase::StatusHalted(_) | Phase::Between => None,
        }
    }

    /// Returns the direction of the data phase.
    fn direction(&self) -> Direction {
        match self.purpose {
            Purpose::Sense { .. } => Direction::In,
            Purpose::Command => self.command.data_phase.map_or(Direction::Out, |phase| phase.direction),
        }
    }

    /// Returns what the command ends with if the exchange fails. A command that failed already
    /// stays failed.
    const fn lost(&self, failure: Failure) -> Lost {
        match self.purpose {
            Purpose::Command => Lost::Failed(failure),
            Purpose::Sense { moved } => Lost::Unexplained { moved },
        }
    }
}

/// Creates a CHECK CONDITION with the sense data available.
const fn unexplained(moved: u32, sense: SenseBytes) -> Outcome {
    Outcome::Answered(Answer { status: Status::CheckCondition, status_qualifier: 0, moved, sense })
}

/// Returns the LUN as a CBW carries it.
fn unit(command: &Command) -> Option<u8> {
    match command.lun.lun() {
        Some(Lun::Unit(number)) => u8::try_from(number).ok().filter(|number| *number <= LUN_MAX),
        _ => None,
    }
}

/// REQUEST SENSE is not followed by another one.
const REQUEST_SENSE: u8 = 0x03;

/// ILLEGAL REQUEST, INVALID FIELD IN CDB: for a device that sends more than the CBW allows and
/// reports success.
const INVALID_FIELD_IN_CDB: [u8; 18] = [0x70, 0, 0x05, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0x00, 0, 0, 0, 0];
