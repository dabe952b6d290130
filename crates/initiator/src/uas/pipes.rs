//! Transfers on the four pipes: their names, their order, halts, and the status transfers that belong to nobody.
//!
//! A transfer's name says whose it is, so that its completion is found without a search. Always true: without streams
//! there are no fewer status transfers than IUs are due, up to [`READY_STATUSES_MAX`], and what a reset leaves over is the next
//! commands'; while an endpoint is halted nothing new is submitted.

use super::config::{READY_STATUSES_MAX, UasEndpoints};
use super::task::Flight;
use crate::output::Outputs;
use crate::{Command, CommandId, DataPhase, Inline, Output, Payload, Piece, SENSE_BYTES_MAX, Transfer};
use alloc::vec::Vec;
use bus::{Completion, Direction, EndpointAddress, Pipe, StreamId, TransferId, TransferStatus};
use wire::uas::{CommandIu, SenseIu, TaskManagementIu};

/// Room for an IU on the status pipe, in bytes: what Linux has.
const STATUS_ROOM: u32 = (SenseIu::LEN + SENSE_BYTES_MAX) as u32;

/// Which transfer of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Role {
    /// Out on the command pipe.
    Command,
    /// In on the status pipe, of one tag.
    Status,
    /// In on the data-in pipe.
    DataIn,
    /// Out on the data-out pipe.
    DataOut,
    /// In on the status pipe, of whatever tag: without streams.
    Anyone,
}

/// Whose transfer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) index: u16,
    pub(super) role: Role,
}

/// The pipes of an interface.
#[derive(Debug)]
pub(super) struct Pipes {
    endpoints: UasEndpoints,
    has_streams: bool,
    /// Counts transfers.
    serial: u64,
    /// Transfers under way.
    under_way: usize,
    /// IUs that are due on the status pipe.
    due: usize,
    /// Status transfers that belong to nobody.
    anyones: Vec<TransferId>,
    /// Endpoints to be cleared.
    halted: Vec<EndpointAddress>,
}

impl Place {
    /// The index that task management functions have.
    pub(super) const LADDER: u16 = 255;

    pub(super) const fn task(index: u16, role: Role) -> Self {
        Self { index, role }
    }

    pub(super) const fn ladder(role: Role) -> Self {
        Self { index: Self::LADDER, role }
    }

    /// The name of the transfer of this place that is the `serial`th.
    fn name(self, serial: u64) -> TransferId {
        TransferId(
            (serial * (u64::from(Self::LADDER) + 1) + u64::from(self.index)) * ROLES + self.role as u64,
        )
    }

    pub(super) fn of(id: TransferId) -> Self {
        let role = ROLE_OF_NAME[(id.0 % ROLES) as usize];
        Self { index: (id.0 / ROLES % (u64::from(Self::LADDER) + 1)) as u16, role }
    }
}

/// Whether the host's end of a pipe has halted with a transfer that ended like this, so that the device's end is to be cleared. A
/// host controller that has met babble or an error begins to count packets anew, whatever the device has counted: only when that begins
/// anew as well do both agree again (xHCI 1.2 clause 4.6.8).
pub(super) const fn has_halted(status: TransferStatus) -> bool {
    matches!(status, TransferStatus::Stall | TransferStatus::Babble | TransferStatus::Error)
}

/// Room for roles in a name.
const ROLES: u64 = 8;

/// The role that a name's last bits say.
static ROLE_OF_NAME: [Role; ROLES as usize] = [
    Role::Command,
    Role::Status,
    Role::DataIn,
    Role::DataOut,
    Role::Anyone,
    Role::Anyone,
    Role::Anyone,
    Role::Anyone,
];

impl Pipes {
    pub(super) fn new(endpoints: UasEndpoints, has_streams: bool) -> Self {
        Self {
            endpoints,
            has_streams,
            serial: 0,
            under_way: 0,
            due: 0,
            anyones: Vec::with_capacity(READY_STATUSES_MAX),
            halted: Vec::new(),
        }
    }

    /// Transfers under way.
    pub(super) const fn under_way(&self) -> usize {
        self.under_way
    }

    /// Whether no endpoint is halted.
    pub(super) const fn are_clear(&self) -> bool {
        self.halted.is_empty()
    }

    /// An endpoint whose halt is to be cleared.
    pub(super) fn halted(&self) -> Option<EndpointAddress> {
        self.halted.first().copied()
    }

    pub(super) fn forget_halt(&mut self, endpoint: EndpointAddress) {
        self.halted.retain(|&halted| halted != endpoint);
    }

    pub(super) fn forget_halts(&mut self) {
        self.halted.clear();
    }

    /// Notes how a transfer came back; says whose it was.
    #[inline]
    pub(super) fn handle_completion(&mut self, completion: &Completion) -> Place {
        self.note_end();
        let place = Place::of(completion.id);
        if has_halted(completion.status) {
            self.note_halt(place.role);
        }
        place
    }

    /// Notes that a transfer is back.
    pub(super) const fn note_end(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    #[cold]
    fn note_halt(&mut self, role: Role) {
        let endpoint = self.endpoint(role);
        if !self.halted.contains(&endpoint) {
            self.halted.push(endpoint);
        }
    }

    /// A status transfer that belongs to nobody is back.
    pub(super) fn forget_anyone(&mut self, id: TransferId) {
        self.anyones.retain(|&own| own != id);
    }

    /// One more IU is due on the status pipe. Without streams, a transfer for it is queued if there is room.
    pub(super) fn expect_status(&mut self, outputs: &mut Outputs) {
        self.due += 1;
        self.top_up(outputs);
    }

    /// One fewer is due.
    pub(super) const fn expect_no_status(&mut self) {
        self.due = self.due.saturating_sub(1);
    }

    /// Without streams: as many status transfers as IUs are due.
    #[inline]
    pub(super) fn top_up(&mut self, outputs: &mut Outputs) {
        if !self.has_streams {
            self.submit_anyones(outputs);
        }
    }

    fn submit_anyones(&mut self, outputs: &mut Outputs) {
        while self.are_clear() && self.anyones.len() < self.due.min(READY_STATUSES_MAX) {
            let place = Place::task(0, Role::Anyone);
            if let Flight::UnderWay(id) = self.submit_status(outputs, place) {
                self.anyones.push(id);
            }
        }
    }

    /// Takes back the status transfers that belong to nobody.
    pub(super) fn cancel_anyones(&self, outputs: &mut Outputs) {
        outputs.extend(self.anyones.iter().copied().map(Output::Cancel));
    }

    #[inline]
    pub(super) fn submit_status(&mut self, outputs: &mut Outputs, place: Place) -> Flight {
        self.submit_message(outputs, place, self.pipe(place))
    }

    #[inline(always)]
    pub(super) fn submit_data(
        &mut self,
        outputs: &mut Outputs,
        index: u16,
        command: CommandId,
        phase: DataPhase,
    ) -> Flight {
        let role = match phase.direction {
            Direction::In => Role::DataIn,
            Direction::Out => Role::DataOut,
        };
        let place = Place::task(index, role);
        let (id, pipe, range) = (self.begin(place), self.pipe(place), phase.range);
        let payload = Payload::Buffer(Piece { command, range });
        outputs.push_with(|| Output::Submit(Transfer { id, pipe, length: range.len, payload }));
        Flight::UnderWay(id)
    }

    #[inline(always)]
    pub(super) fn submit_command(&mut self, outputs: &mut Outputs, index: u16, command: &Command) -> Flight {
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
        let place = Place::task(index, Role::Command);
        let (id, pipe, length) = (self.begin(place), self.pipe(place), inline.as_bytes().len() as u32);
        outputs.push_with(|| Output::Submit(Transfer { id, pipe, length, payload: Payload::Inline(inline) }));
        Flight::UnderWay(id)
    }

    pub(super) fn submit_function(&mut self, outputs: &mut Outputs, iu: TaskManagementIu) -> Flight {
        let inline = Inline::new(&iu.encode());
        let place = Place::ladder(Role::Command);
        let (id, pipe, length) = (self.begin(place), self.pipe(place), inline.as_bytes().len() as u32);
        outputs.push_with(|| Output::Submit(Transfer { id, pipe, length, payload: Payload::Inline(inline) }));
        Flight::UnderWay(id)
    }

    /// With streams: a status transfer for a task management function.
    pub(super) fn submit_function_status(&mut self, outputs: &mut Outputs, tag: u16) -> Flight {
        let pipe = Pipe { endpoint: self.endpoints.status, stream: StreamId::new(tag) };
        self.submit_message(outputs, Place::ladder(Role::Status), pipe)
    }

    #[inline]
    fn submit_message(&mut self, outputs: &mut Outputs, place: Place, pipe: Pipe) -> Flight {
        let id = self.begin(place);
        let payload = Payload::Message;
        outputs.push_with(|| Output::Submit(Transfer { id, pipe, length: STATUS_ROOM, payload }));
        Flight::UnderWay(id)
    }

    /// A transfer of this place begins: its name.
    #[inline]
    fn begin(&mut self, place: Place) -> TransferId {
        self.serial += 1;
        self.under_way += 1;
        place.name(self.serial)
    }

    fn endpoint(&self, role: Role) -> EndpointAddress {
        match role {
            Role::Command => self.endpoints.command,
            Role::Status | Role::Anyone => self.endpoints.status,
            Role::DataIn => self.endpoints.data_in,
            Role::DataOut => self.endpoints.data_out,
        }
    }

    /// Where a transfer of a task goes.
    fn pipe(&self, place: Place) -> Pipe {
        let on_stream = self.has_streams && place.role != Role::Command;
        let stream = if on_stream { StreamId::new(place.index + 1) } else { None };
        Pipe { endpoint: self.endpoint(place.role), stream }
    }
}
