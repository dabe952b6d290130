//! Transfers on the four pipes: their ids, their order, halts, and status transfers without a task.
//!
//! A transfer id is a small index that encodes its owner, so that its completion needs no search.
//! Always true: an owner has at most one transfer in flight; without streams there are at least as
//! many status transfers as IUs are due, up to [`READY_STATUSES_MAX`], and those left over by a
//! reset are used by later commands; while an endpoint is halted nothing is submitted.

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
}

/// The owner of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferOwner {
    /// A task, by index.
    Task(u16, Role),
    /// The task management function.
    TaskManagement(Role),
    /// None: without streams, a transfer on the status pipe for any tag.
    SharedStatus(u16),
}

/// The pipes of an interface.
#[derive(Debug)]
pub(super) struct Pipes {
    endpoints: UasEndpoints,
    has_streams: bool,
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
    /// Returns the id of this owner's transfer.
    const fn id(self) -> TransferId {
        TransferId(match self {
            Self::SharedStatus(index) => index as u64,
            Self::TaskManagement(role) => TASK_MANAGEMENT_IDS + role as u64,
            Self::Task(index, role) => TASK_IDS + index as u64 * ROLES + role as u64,
        })
    }

    #[inline]
    pub(super) fn of(id: TransferId) -> Self {
        let role = ROLE_OF_ID[(id.0 % ROLES) as usize];
        match id.0.checked_sub(TASK_IDS) {
            Some(id) => Self::Task((id / ROLES) as u16, role),
            None if id.0 < TASK_MANAGEMENT_IDS => Self::SharedStatus(id.0 as u16),
            None => Self::TaskManagement(role),
        }
    }
}

/// Returns one more than the highest transfer id with this many tags.
pub const fn transfers_max(tags: usize) -> usize {
    TASK_IDS as usize + tags * ROLES as usize
}

/// Returns whether a transfer with this status has halted the host's end of the pipe, so that the
/// device's end must be cleared. After babble or an error the host controller restarts its sequence
/// numbers; both ends agree only when the device restarts its own (xHCI 1.2 clause 4.6.8).
pub(super) const fn has_halted(status: TransferStatus) -> bool {
    matches!(status, TransferStatus::Stall | TransferStatus::Babble | TransferStatus::Error)
}

/// Ids of an owner.
const ROLES: u64 = 4;

/// The role for the low bits of an id.
static ROLE_OF_ID: [Role; ROLES as usize] = [Role::Command, Role::Status, Role::DataIn, Role::DataOut];

/// The first id of task management; those before it are of status transfers without a task.
const TASK_MANAGEMENT_IDS: u64 = (READY_STATUSES_MAX as u64).next_multiple_of(ROLES);

/// The first id of the first task.
const TASK_IDS: u64 = TASK_MANAGEMENT_IDS + ROLES;

impl Pipes {
    pub(super) fn new(endpoints: UasEndpoints, has_streams: bool) -> Self {
        Self {
            endpoints,
            has_streams,
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
            self.record_halt(owner);
        }
        owner
    }

    /// Records a completed transfer.
    pub(super) const fn record_completion(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    #[cold]
    fn record_halt(&mut self, owner: TransferOwner) {
        let endpoint = match owner {
            TransferOwner::Task(_, role) | TransferOwner::TaskManagement(role) => self.endpoint(role),
            TransferOwner::SharedStatus(_) => self.endpoints.status,
        };
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
            let mut owners = (0..).map(TransferOwner::SharedStatus);
            let Some(owner) = owners.find(|owner| !self.shared_statuses.contains(&owner.id())) else {
                return;
            };
            self.shared_statuses.push(owner.id());
            self.submit_message(outputs, owner, Pipe::plain(self.endpoints.status));
        }
    }

    /// Cancels the status transfers without a task.
    pub(super) fn cancel_shared_statuses(&self, outputs: &mut Outputs) {
        outputs.extend(self.shared_statuses.iter().copied().map(Output::Cancel));
    }

    #[inline]
    pub(super) fn submit_status(&mut self, outputs: &mut Outputs, index: u16) -> TransferState {
        let pipe = self.pipe(index, Role::Status);
        self.submit_message(outputs, TransferOwner::Task(index, Role::Status), pipe)
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
        let id = self.begin(TransferOwner::Task(index, role));
        let (pipe, range) = (self.pipe(index, role), phase.range);
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
        self.submit_inline(outputs, TransferOwner::Task(index, Role::Command), inline)
    }

    pub(super) fn submit_function(&mut self, outputs: &mut Outputs, iu: TaskManagementIu) -> TransferState {
        let inline = Inline::new(&iu.encode());
        self.submit_inline(outputs, TransferOwner::TaskManagement(Role::Command), inline)
    }

    /// Submits an IU on the command pipe.
    #[inline(always)]
    fn submit_inline(
        &mut self,
        outputs: &mut Outputs,
        owner: TransferOwner,
        inline: Inline,
    ) -> TransferState {
        let (id, length) = (self.begin(owner), inline.as_bytes().len() as u32);
        let pipe = Pipe::plain(self.endpoints.command);
        outputs.push_with(|| Output::Submit(Transfer { id, pipe, length, payload: Payload::Inline(inline) }));
        TransferState::InFlight(id)
    }

    /// With streams: submits a status transfer for a task management function.
    pub(super) fn submit_function_status(&mut self, outputs: &mut Outputs, tag: u16) -> TransferState {
        let pipe = Pipe { endpoint: self.endpoints.status, stream: StreamId::new(tag) };
        self.submit_message(outputs, TransferOwner::TaskManagement(Role::Status), pipe)
    }

    #[inline]
    fn submit_message(&mut self, outputs: &mut Outputs, owner: TransferOwner, pipe: Pipe) -> TransferState {
        let id = self.begin(owner);
        let payload = Payload::Message;
        outputs.push_with(|| Output::Submit(Transfer { id, pipe, length: STATUS_ROOM, payload }));
        TransferState::InFlight(id)
    }

    /// Records a new transfer of this owner and returns its id.
    #[inline]
    const fn begin(&mut self, owner: TransferOwner) -> TransferId {
        self.in_flight += 1;
        owner.id()
    }

    fn endpoint(&self, role: Role) -> EndpointAddress {
        match role {
            Role::Command => self.endpoints.command,
            Role::Status => self.endpoints.status,
            Role::DataIn => self.endpoints.data_in,
            Role::DataOut => self.endpoints.data_out,
        }
    }

    /// Returns the pipe of a transfer of a task, other than its COMMAND IU.
    fn pipe(&self, index: u16, role: Role) -> Pipe {
        let stream = if self.has_streams { StreamId::new(index + 1) } else { None };
        Pipe { endpoint: self.endpoint(role), stream }
    }
}
