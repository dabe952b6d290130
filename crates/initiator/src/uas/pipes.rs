//! Transfers on the four pipes: their ids, their order, halts, and status transfers without a task.
//!
//! A transfer id encodes its owner, so that its completion needs no search. Always true: without
//! streams there are at least as many status transfers as IUs are due, up to
//! [`READY_STATUSES_MAX`], and those left over by a reset are used by later commands; while an
//! endpoint is halted nothing is submitted.

use super::config::{READY_STATUSES_MAX, UasEndpoints};
use super::task::TransferState;
use crate::output::Outputs;
use crate::{BufferRange, Command, CommandId, DataPhase, Inline, Output, Payload, SENSE_BYTES_MAX, Transfer};
use alloc::vec::Vec;
use bus::{Completion, Direction, EndpointAddress, Pipe, StreamId, TransferId, TransferStatus};
use wire::uas::{CommandIu, SenseIu, TaskManagementIu};

/// Bytes of a status pipe buffer, as in Linux.
const STATUS_ROOM: u32 = (SenseIu::LEN + SENSE_BYTES_MAX) as u32;

/// The role of a transfer of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Role {
    /// Out on the command pipe.
    Command,
    /// In on the status pipe, for one tag.
    Status,
    /// In on the data-in pipe.
    DataIn,
    /// Out on the data-out pipe.
    DataOut,
    /// In on the status pipe, for any tag: without streams.
    SharedStatus,
}

/// The owner of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TransferOwner {
    pub(super) index: u16,
    pub(super) role: Role,
}

/// The pipes of an interface.
#[derive(Debug)]
pub(super) struct Pipes {
    endpoints: UasEndpoints,
    has_streams: bool,
    /// Transfers submitted so far.
    serial: u64,
    /// Transfers in flight.
    in_flight: usize,
    /// IUs that are due on the status pipe.
    due: usize,
    /// Status transfers without a task.
    shared_statuses: Vec<TransferId>,
    /// Endpoints whose halt must be cleared.
    halted: Vec<EndpointAddress>,
}

impl TransferOwner {
    /// The index of task management functions.
    pub(super) const TASK_MANAGEMENT: u16 = 255;

    pub(super) const fn task(index: u16, role: Role) -> Self {
        Self { index, role }
    }

    pub(super) const fn task_management(role: Role) -> Self {
        Self { index: Self::TASK_MANAGEMENT, role }
    }

    /// Returns the id of this owner's transfer with the given serial number.
    fn id(self, serial: u64) -> TransferId {
        TransferId(
            (serial * (u64::from(Self::TASK_MANAGEMENT) + 1) + u64::from(self.index)) * ROLES
                + self.role as u64,
        )
    }

    pub(super) fn of(id: TransferId) -> Self {
        let role = ROLE_OF_ID[(id.0 % ROLES) as usize];
        Self { index: (id.0 / ROLES % (u64::from(Self::TASK_MANAGEMENT) + 1)) as u16, role }
    }
}

/// Returns whether a transfer with this status has halted the host's end of the pipe, so that the
/// device's end must be cleared. After babble or an error the host controller restarts its sequence
/// numbers; both ends agree only when the device restarts its own (xHCI 1.2 clause 4.6.8).
pub(super) const fn has_halted(status: TransferStatus) -> bool {
    matches!(status, TransferStatus::Stall | TransferStatus::Babble | TransferStatus::Error)
}

/// Range of roles in an id.
const ROLES: u64 = 8;

/// The role for the low bits of an id.
static ROLE_OF_ID: [Role; ROLES as usize] = [
    Role::Command,
    Role::Status,
    Role::DataIn,
    Role::DataOut,
    Role::SharedStatus,
    Role::SharedStatus,
    Role::SharedStatus,
    Role::SharedStatus,
];

impl Pipes {
    pub(super) fn new(endpoints: UasEndpoints, has_streams: bool) -> Self {
        Self {
            endpoints,
            has_streams,
            serial: 0,
            in_flight: 0,
            due: 0,
            shared_statuses: Vec::with_capacity(READY_STATUSES_MAX),
            halted: Vec::new(),
        }
    }

    /// Returns the number of transfers in flight.
    pub(super) const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns whether no endpoint is halted.
    pub(super) const fn are_clear(&self) -> bool {
        self.halted.is_empty()
    }

    /// Returns an endpoint whose halt must be cleared.
    pub(super) fn halted(&self) -> Option<EndpointAddress> {
        self.halted.first().copied()
    }

    pub(super) fn clear_halt(&mut self, endpoint: EndpointAddress) {
        self.halted.retain(|&halted| halted != endpoint);
    }

    pub(super) fn clear_all_halts(&mut self) {
        self.halted.clear();
    }

    /// Records a completion and returns the owner of the transfer.
    #[inline]
    pub(super) fn handle_completion(&mut self, completion: &Completion) -> TransferOwner {
        self.record_completion();
        let owner = TransferOwner::of(completion.id);
        if has_halted(completion.status) {
            self.record_halt(owner.role);
        }
        owner
    }

    /// Records a completed transfer.
    pub(super) const fn record_completion(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    #[cold]
    fn record_halt(&mut self, role: Role) {
        let endpoint = self.endpoint(role);
        if !self.halted.contains(&endpoint) {
            self.halted.push(endpoint);
        }
    }

    /// Records the completion of a status transfer without a task.
    pub(super) fn forget_shared_status(&mut self, id: TransferId) {
        self.shared_statuses.retain(|&own| own != id);
    }

    /// Expects one more IU on the status pipe. Without streams, queues a transfer for it if there
    /// is room.
    pub(super) fn expect_status(&mut self, outputs: &mut Outputs) {
        self.due += 1;
        self.top_up(outputs);
    }

    /// Expects one IU fewer.
    pub(super) const fn expect_no_status(&mut self) {
        self.due = self.due.saturating_sub(1);
    }

    /// Without streams: queues as many status transfers as IUs are due.
    #[inline]
    pub(super) fn top_up(&mut self, outputs: &mut Outputs) {
        if !self.has_streams {
            self.submit_shared_statuses(outputs);
        }
    }

    fn submit_shared_statuses(&mut self, outputs: &mut Outputs) {
        while self.are_clear() && self.shared_statuses.len() < self.due.min(READY_STATUSES_MAX) {
            let owner = TransferOwner::task(0, Role::SharedStatus);
            if let TransferState::InFlight(id) = self.submit_status(outputs, owner) {
                self.shared_statuses.push(id);
            }
        }
    }

    /// Cancels the status transfers without a task.
    pub(super) fn cancel_shared_statuses(&self, outputs: &mut Outputs) {
        outputs.extend(self.shared_statuses.iter().copied().map(Output::Cancel));
    }

    #[inline]
    pub(super) fn submit_status(&mut self, outputs: &mut Outputs, owner: TransferOwner) -> TransferState {
        self.submit_message(outputs, owner, self.pipe(owner))
    }

    #[inline(always)]
    pub(super) fn submit_data(
        &mut self,
        outputs: &mut Outputs,
        index: u16,
        command: CommandId,
        phase: DataPhase,
    ) -> TransferState {
        let role = match phase.direction {
            Direction::In => Role::DataIn,
            Direction::Out => Role::DataOut,
        };
        let owner = TransferOwner::task(index, role);
        let (id, pipe, range) = (self.begin(owner), self.pipe(owner), phase.range);
        let payload = Payload::Buffer(BufferRange { command, range });
        outputs.push_with(|| Output::Submit(Transfer { id, pipe, length: range.len, payload }));
        TransferState::InFlight(id)
    }

    #[inline(always)]
    pub(super) fn submit_command(
        &mut self,
        outputs: &mut Outputs,
        index: u16,
        command: &Command,
    ) -> TransferState {
        let (cdb, additional, additional_len) = command.cdb.in_iu();
        let iu = CommandIu {
            tag: index + 1,
            attribute: command.attribute,
            priority: 0,
            lun: command.lun.0,
            cdb,
            additional_cdb: &additional[..additional_len],
        };
        let inline = Inline::of_parts(&iu.encode(), additional, additional_len);
        let owner = TransferOwner::task(index, Role::Command);
        let (id, pipe, length) = (self.begin(owner), self.pipe(owner), inline.as_bytes().len() as u32);
        outputs.push_with(|| Output::Submit(Transfer { id, pipe, length, payload: Payload::Inline(inline) }));
        TransferState::InFlight(id)
    }

    pub(super) fn submit_function(&mut self, outputs: &mut Outputs, iu: TaskManagementIu) -> TransferState {
        let inline = Inline::new(&iu.encode());
        let owner = TransferOwner::task_management(Role::Command);
        let (id, pipe, length) = (self.begin(owner), self.pipe(owner), inline.as_bytes().len() as u32);
        outputs.push_with(|| Output::Submit(Transfer { id, pipe, length, payload: Payload::Inline(inline) }));
        TransferState::InFlight(id)
    }

    /// With streams: submits a status transfer for a task management function.
    pub(super) fn submit_function_status(&mut self, outputs: &mut Outputs, tag: u16) -> TransferState {
        let pipe = Pipe { endpoint: self.endpoints.status, stream: StreamId::new(tag) };
        self.submit_message(outputs, TransferOwner::task_management(Role::Status), pipe)
    }

    #[inline]
    fn submit_message(&mut self, outputs: &mut Outputs, owner: TransferOwner, pipe: Pipe) -> TransferState {
        let id = self.begin(owner);
        let payload = Payload::Message;
        outputs.push_with(|| Output::Submit(Transfer { id, pipe, length: STATUS_ROOM, payload }));
        TransferState::InFlight(id)
    }

    /// Allocates the id of a new transfer of this owner.
    #[inline]
    fn begin(&mut self, owner: TransferOwner) -> TransferId {
        self.serial += 1;
        self.in_flight += 1;
        owner.id(self.serial)
    }

    fn endpoint(&self, role: Role) -> EndpointAddress {
        match role {
            Role::Command => self.endpoints.command,
            Role::Status | Role::SharedStatus => self.endpoints.status,
            Role::DataIn => self.endpoints.data_in,
            Role::DataOut => self.endpoints.data_out,
        }
    }

    /// Returns the pipe of a transfer of a task.
    fn pipe(&self, owner: TransferOwner) -> Pipe {
        let on_stream = self.has_streams && owner.role != Role::Command;
        let stream = if on_stream { StreamId::new(owner.index + 1) } else { None };
        Pipe { endpoint: self.endpoint(owner.role), stream }
    }
}
