//! The controller, its driver, and a mailbox for each owner.
//!
//! Always true: driver events are taken after every call and queued for their owner: a mailbox for
//! each device, the outstanding answer, the ports.

use super::changes::{HostCounters, PortChange};
use super::error::ControllerError;
use super::hardware::Hardware;
use crate::clock::{Clock, span};
use crate::host_bus::Readiness;
use crate::vfio::Function;
use bus::{Completion, TransferId, TransferStatus};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};
use wire::usb::SetupPacket;
use wire::xhci::{PortChanges, PortStatus};
use xhci_driver::{
    Answer, Capabilities, Config, ControlTransfer, Controller, Death, DeviceId, DmaLayout, DmaMemory, Output,
    Request, RequestId, Transfer,
};

/// How long a controller may take until it runs: the driver's own limits end sooner.
const START_LIMIT: Duration = Duration::from_secs(15);

/// How long a request may take: the driver's own limits end sooner.
const REQUEST_LIMIT: Duration = Duration::from_secs(15);

/// How long a control transfer may take.
pub(super) const CONTROL_LIMIT: Duration = Duration::from_secs(2);

/// How long a transfer that is cancelled may take to end.
pub(super) const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// How often one looks although no interrupt has come: a controller that forgets one must not hang
/// us.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Bytes of a control transfer's data stage: descriptors of disks are far shorter.
pub(super) const CONTROL_BYTES_MAX: u16 = 4096;

/// Ids of control transfers begin here; those of buses are small.
const CONTROL_IDS: u64 = 1 << 48;

/// A controller in our hands.
#[derive(Debug)]
pub(super) struct Inner {
    driver: Controller,
    pub(super) hardware: Hardware,
    clock: Clock,
    mailboxes: HashMap<DeviceId, Mailbox>,
    /// The request that is waited for, and its answer.
    waiting: Option<(RequestId, Option<Answer>)>,
    last_request: u32,
    last_control: u64,
    /// By port, what has not been reported yet.
    changes: BTreeMap<u8, PortStatus>,
    /// Ports reported as connected.
    peopled: BTreeSet<u8>,
    /// For control transfers, by slot: they are kept, since a slot is used again only when its
    /// device has ended.
    buffers: BTreeMap<u8, u64>,
    is_running: bool,
    death: Option<Death>,
    interrupts: u64,
    unsignalled: u64,
}

/// Completions that have arrived for a device.
#[derive(Debug)]
struct Mailbox {
    port: u8,
    completions: VecDeque<Completion>,
    control: Option<Completion>,
    is_gone: bool,
}

impl Inner {
    pub(super) fn new(function: Function, config: Config) -> Self {
        Self {
            driver: Controller::new(config),
            hardware: Hardware::new(function),
            clock: Clock::start(),
            mailboxes: HashMap::new(),
            waiting: None,
            last_request: 0,
            last_control: CONTROL_IDS,
            changes: BTreeMap::new(),
            peopled: BTreeSet::new(),
            buffers: BTreeMap::new(),
            is_running: false,
            death: None,
            interrupts: 0,
            unsignalled: 0,
        }
    }

    /// Starts the controller and waits until it runs.
    pub(super) fn start(&mut self) -> Result<(), ControllerError> {
        self.driver.start(&mut self.hardware, self.clock.now());
        self.sort();
        self.turn_until(START_LIMIT, |inner| inner.is_running.then_some(()))?
            .ok_or(ControllerError::NotRunning)
    }

    pub(super) fn capabilities(&self) -> Option<&Capabilities> {
        self.driver.capabilities()
    }

    pub(super) fn counters(&self) -> HostCounters {
        let Self { interrupts, unsignalled, .. } = *self;
        HostCounters { driver: self.driver.counters(), interrupts, unsignalled }
    }

    pub(super) fn next_change(&mut self, limit: Duration) -> Result<Option<PortChange>, ControllerError> {
        self.turn_until(limit, |inner| {
            while let Some((port, status)) = inner.changes.pop_first() {
                // Resets and links are of no interest to who looks for devices.
                let is_change = match status.is_connected() {
                    true => inner.peopled.insert(port) || status.changes().has(PortChanges::CONNECT),
                    false => inner.peopled.remove(&port),
                };
                if is_change {
                    return Some(PortChange { port, status });
                }
            }
            None
        })
    }

    /// Whether a device of ours is behind a root port.
    pub(super) fn is_taken(&self, port: u8) -> bool {
        self.mailboxes.values().any(|mailbox| mailbox.port == port && !mailbox.is_gone)
    }

    /// Lets time go by until `find` finds something. `None`: the time is over.
    pub(super) fn turn_until<T>(
        &mut self,
        limit: Duration,
        mut find: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<Option<T>, ControllerError> {
        let until = Instant::now() + limit;
        loop {
            if let Some(found) = find(self) {
                return Ok(Some(found));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            // A signal does not end this: what is waited for ends by itself.
            self.turn(left)?;
        }
    }

    /// Sees to what is due, or waits for it: an interrupt, the driver's deadline, the end of the
    /// time.
    pub(super) fn turn(&mut self, limit: Duration) -> Result<Readiness, ControllerError> {
        if let Some(death) = self.death {
            return Err(ControllerError::Died(death));
        }
        let now = self.clock.now();
        let due = self.driver.poll_timeout().map(|deadline| deadline.at);
        if due.is_some_and(|due| due <= now) {
            self.driver.handle_timeout(&mut self.hardware, now);
            self.sort();
            return Ok(Readiness::Ready);
        }
        let due = due.map_or(LOOK_INTERVAL, |due| span(due - now).min(LOOK_INTERVAL));
        let is_look = limit >= LOOK_INTERVAL && due == LOOK_INTERVAL;
        let readiness = self.hardware.function.wait(Some(limit.min(due)))?;
        match readiness {
            Readiness::Ready => {
                self.interrupts += 1;
                self.driver.handle_interrupt(&mut self.hardware, self.clock.now());
                self.sort();
            }
            Readiness::TimeOver if is_look && self.is_running => {
                self.driver.handle_interrupt(&mut self.hardware, self.clock.now());
                self.unsignalled += u64::from(self.sort());
            }
            Readiness::TimeOver | Readiness::Interrupted => {}
        }
        Ok(readiness)
    }

    /// Lays what the driver has reported where it belongs; whether there was anything.
    fn sort(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.driver.poll_output() {
            any = true;
            match output {
                Output::Running => self.is_running = true,
                Output::Completed(device, completion) => {
                    let Some(mailbox) = self.mailboxes.get_mut(&device) else { continue };
                    if completion.id.0 >= CONTROL_IDS {
                        mailbox.control = Some(completion);
                    } else {
                        mailbox.completions.push_back(completion);
                    }
                }
                Output::Answered(id, answer) => {
                    if let Some((_, place)) = self.waiting.as_mut().filter(|(waiting, _)| *waiting == id) {
                        *place = Some(answer);
                    }
                }
                Output::PortChanged { port, status } => drop(self.changes.insert(port, status)),
                Output::Gone(device) => {
                    if let Some(mailbox) = self.mailboxes.get_mut(&device) {
                        mailbox.is_gone = true;
                    }
                }
                Output::Died(death) => {
                    self.death = Some(death);
                    self.mailboxes.values_mut().for_each(|mailbox| mailbox.is_gone = true);
                }
            }
        }
        any
    }

    /// Has the driver do something and waits for the answer.
    pub(super) fn ask(&mut self, action: &'static str, request: Request) -> Result<Answer, ControllerError> {
        let id = self.request(action, request)?;
        self.waiting = Some((id, None));
        // It may be answered already.
        self.sort();
        let answer = self.turn_until(REQUEST_LIMIT, |inner| inner.waiting.and_then(|(_, answer)| answer));
        self.waiting = None;
        match answer? {
            Some(Answer::Gone) => Err(ControllerError::Disconnected),
            Some(answer @ (Answer::Failed(_) | Answer::TimedOut | Answer::NoMemory)) => {
                Err(ControllerError::Unanswered { action, answer })
            }
            Some(answer) => Ok(answer),
            None => Err(ControllerError::TimedOut { action }),
        }
    }

    /// Has the driver do something; what comes of it is not waited for.
    pub(super) fn request(
        &mut self,
        action: &'static str,
        request: Request,
    ) -> Result<RequestId, ControllerError> {
        self.last_request = self.last_request.wrapping_add(1);
        let id = RequestId(self.last_request);
        let taken = self.driver.request(&mut self.hardware, self.clock.now(), id, request);
        taken.map_err(|refusal| match refusal {
            xhci_driver::Refusal::Gone => ControllerError::Disconnected,
            refusal => ControllerError::Refused { action, refusal },
        })?;
        Ok(id)
    }

    /// A device has a mailbox from here on.
    pub(super) fn welcome(&mut self, device: DeviceId, port: u8) {
        let mailbox = Mailbox { port, completions: VecDeque::new(), control: None, is_gone: false };
        self.mailboxes.insert(device, mailbox);
    }

    /// Gives a device's slot back. Its transfers end when the controller has agreed.
    pub(super) fn dismiss(&mut self, device: DeviceId) {
        // A device that is gone has no slot any more.
        let _ = self.request("give a device up", Request::Detach(device));
        self.sort();
    }

    /// No one looks for a device any more.
    pub(super) fn forget(&mut self, device: DeviceId) {
        self.mailboxes.remove(&device);
    }

    /// Whether a device is gone.
    pub(super) fn is_gone(&self, device: DeviceId) -> bool {
        self.mailboxes.get(&device).is_none_or(|mailbox| mailbox.is_gone)
    }

    /// The next transfer of a device that has ended.
    pub(super) fn take(&mut self, device: DeviceId) -> Option<Completion> {
        self.mailboxes.get_mut(&device)?.completions.pop_front()
    }

    /// Whether a transfer of a device has ended, and no one has taken that yet.
    pub(super) fn has_completions(&self, device: DeviceId) -> bool {
        self.mailboxes.get(&device).is_some_and(|mailbox| !mailbox.completions.is_empty())
    }

    pub(super) fn submit(&mut self, transfer: &Transfer) -> Result<(), xhci_driver::Refusal> {
        self.driver.submit(&mut self.hardware, transfer)
    }

    pub(super) fn cancel(&mut self, device: DeviceId, pipe: bus::Pipe, id: TransferId) {
        self.driver.cancel(&mut self.hardware, self.clock.now(), device, pipe, id);
        self.sort();
    }

    /// A control transfer; how many bytes were moved.
    pub(super) fn control(
        &mut self,
        device: DeviceId,
        action: &'static str,
        setup: SetupPacket,
        bytes: &mut [u8],
    ) -> Result<usize, ControllerError> {
        let refused = |refusal| ControllerError::Refused { action, refusal };
        let length = usize::from(setup.length);
        if length > bytes.len() || setup.length > CONTROL_BYTES_MAX {
            return Err(refused(xhci_driver::Refusal::NotAllowed));
        }
        let buffer = self.control_buffer(device)?;
        self.hardware.write_bytes(buffer, &bytes[..length]);
        self.last_control += 1;
        let id = TransferId(self.last_control);
        let transfer = ControlTransfer { id, device, setup, buffer };
        self.driver.submit_control(&mut self.hardware, &transfer).map_err(|refusal| match refusal {
            xhci_driver::Refusal::Gone => ControllerError::Disconnected,
            refusal => refused(refusal),
        })?;
        let ended = match self.turn_until(CONTROL_LIMIT, |inner| inner.ended(device, id))? {
            Some(ended) => ended,
            None => {
                let pipe = bus::Pipe::plain(bus::EndpointAddress::at::<0>(setup.direction));
                self.cancel(device, pipe, id);
                self.turn_until(CANCEL_LIMIT, |inner| inner.ended(device, id))?;
                return Err(ControllerError::TimedOut { action });
            }
        };
        let moved = (ended.actual as usize).min(length);
        match ended.status {
            TransferStatus::Done | TransferStatus::Short => {
                if setup.direction == bus::Direction::In {
                    self.hardware.read_bytes(buffer, &mut bytes[..moved]);
                }
                Ok(moved)
            }
            TransferStatus::Stall => Err(ControllerError::Stalled { action }),
            TransferStatus::Disconnected => Err(ControllerError::Disconnected),
            status => Err(ControllerError::Transfer { action, status }),
        }
    }

    /// How a control transfer has ended, if it has. An earlier one that was given up is passed
    /// over.
    fn ended(&mut self, device: DeviceId, id: TransferId) -> Option<Completion> {
        let mailbox = self.mailboxes.get_mut(&device)?;
        mailbox.control.take().filter(|completion| completion.id == id)
    }

    fn control_buffer(&mut self, device: DeviceId) -> Result<u64, ControllerError> {
        if let Some(buffer) = self.buffers.get(&device.slot()) {
            return Ok(*buffer);
        }
        let bytes = u32::from(CONTROL_BYTES_MAX);
        let layout = DmaLayout { bytes, align: bytes, boundary: bytes };
        let refusal = xhci_driver::Refusal::Full;
        let none = ControllerError::Refused { action: "allocate a control transfer buffer", refusal };
        let buffer = self.hardware.allocate(layout).ok_or(none)?;
        self.buffers.insert(device.slot(), buffer);
        Ok(buffer)
    }
}
