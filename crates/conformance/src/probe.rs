//! One test's view of the device: single steps, each recorded.
//!
//! Left out: commands ([`crate::exchange`]). Always true: a transfer without an end is cancelled after 5 s, unless it is part of a
//! flush; of many steps the first 400 are kept.

use crate::bus::{BUFFER_BYTES, Completed, ControlFailure, DeviceBus, SLOTS, Transfer};
use crate::device::TestedDevice;
use crate::limits::WriteLimits;
use crate::resume::RunStore;
use bus::{EndpointAddress, Pipe, TransferStatus};
use initiator::{BusAnswer, BusRequest};
use quirks::InterfaceSetting;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;
use wire::usb::SetupPacket;

/// How long one step may take. A disk that spins up may take longer, which the first test waits for.
const STEP_LIMIT: Duration = Duration::from_secs(5);

/// Bytes of a transfer that a step shows.
const SHOWN_BYTES: usize = 40;

/// Tags are above this, so that they are found in a capture.
const FIRST_TAG: u32 = 0x5541_0000;

/// Steps of a test that are kept.
const STEPS_MAX: usize = 400;

/// One step on the bus, as evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusStep {
    /// The action, in words.
    pub action: String,
    /// Its result, in words.
    pub answer: String,
}

impl fmt::Display for BusStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.action, self.answer)
    }
}

/// Data that were received.
#[derive(Debug)]
pub(crate) struct Received {
    /// How the last transfer ended.
    pub(crate) status: TransferStatus,
    /// The data.
    pub(crate) bytes: Vec<u8>,
    /// Bytes that came in a transfer for data after a short packet.
    pub(crate) after: Option<Vec<u8>>,
}

/// The device, for the length of a test.
pub struct Probe<'a> {
    bus: &'a mut dyn DeviceBus,
    device: &'a TestedDevice,
    /// How far a test may go that writes.
    pub(crate) writes: WriteLimits,
    /// How long one step may take.
    limit: Duration,
    steps: Vec<BusStep>,
    /// Transfers that ended while another was waited for.
    ended: Vec<Completed>,
    is_busy: Vec<bool>,
    /// The action of the transfer of each slot, in words.
    actions: Vec<String>,
    next_tag: u32,
    /// Its progress, and where it is saved.
    pub(crate) run: RunControl<'a>,
}

/// The progress of a test of many steps, and where it is saved.
#[derive(Default)]
pub(crate) struct RunControl<'a> {
    /// Is shown progress, parts done of how many, and says whether to go on.
    pub(crate) progress: Option<&'a mut dyn FnMut(u64, u64) -> bool>,
    /// Saves a run that can be continued.
    pub(crate) saved_in: Option<&'a mut dyn RunStore>,
}

impl<'a> RunControl<'a> {
    /// Returns what saves a run that can be continued.
    pub(crate) fn store(&mut self) -> Option<&mut (dyn RunStore + 'a)> {
        self.saved_in.as_deref_mut()
    }

    /// Reports progress; returns whether to go on.
    pub(crate) fn goes_on(&mut self, done: u64, total: u64) -> bool {
        self.progress.as_mut().is_none_or(|progress| progress(done, total))
    }
}

impl<'a> Probe<'a> {
    /// Begins a test.
    pub fn new(bus: &'a mut dyn DeviceBus, device: &'a TestedDevice, writes: WriteLimits) -> Self {
        let is_busy = vec![false; SLOTS.into()];
        let actions = vec![String::new(); SLOTS.into()];
        Self {
            bus,
            device,
            writes,
            limit: STEP_LIMIT,
            steps: Vec::new(),
            ended: Vec::new(),
            is_busy,
            actions,
            next_tag: 1,
            run: RunControl::default(),
        }
    }

    /// Returns what is known of the device.
    pub const fn device(&self) -> &'a TestedDevice {
        self.device
    }

    /// Does something whose steps may take longer than usual.
    pub(crate) fn within<R>(&mut self, limit: Duration, work: impl FnOnce(&mut Self) -> R) -> R {
        let usual = std::mem::replace(&mut self.limit, limit);
        let result = work(self);
        self.limit = usual;
        result
    }

    /// Cuts the power of a drive whose power can be cut by command; what was not durable is old or new, as the seed decides.
    /// Returns whether that was possible.
    pub(crate) fn lose_power(&mut self, seed: u64) -> bool {
        let is_done = self.bus.lose_power(seed);
        self.end_all();
        self.record(format!("power loss, seed {seed}"), if is_done { "done" } else { "not possible" }.into());
        is_done
    }

    /// Returns the steps so far.
    pub fn into_steps(self) -> Vec<BusStep> {
        self.steps
    }

    /// Returns whether the device is disconnected.
    pub fn is_gone(&mut self) -> bool {
        self.bus.is_gone()
    }

    /// Returns a tag that this test has not used.
    pub const fn tag(&mut self) -> u32 {
        self.next_tag += 1;
        FIRST_TAG + self.next_tag
    }

    /// Performs a control request that reads; returns the bytes.
    ///
    /// # Errors
    ///
    /// If the device stalls, or does not answer.
    pub fn control_in(&mut self, setup: SetupPacket) -> Result<Vec<u8>, ControlFailure> {
        let mut bytes = vec![0; setup.length.into()];
        let moved = self.bus.control(setup, &mut bytes);
        let answer = moved.map(|moved| {
            bytes.truncate(moved);
            bytes
        });
        let said = match &answer {
            Ok(bytes) => format!("{} bytes: {}", bytes.len(), hex(bytes)),
            Err(error) => name_of(*error).to_owned(),
        };
        self.record(format!("control {}", hex(&setup.encode())), said);
        answer
    }

    /// Performs a control request without data.
    ///
    /// # Errors
    ///
    /// If the device stalls, or does not answer.
    pub fn control(&mut self, setup: SetupPacket) -> Result<(), ControlFailure> {
        let done = self.bus.control(setup, &mut []).map(drop);
        let said = done.map_or_else(name_of, |()| "accepted");
        self.record(format!("control {}", hex(&setup.encode())), said.to_owned());
        done
    }

    /// Clears a halt, on both sides.
    pub fn clear_halt(&mut self, endpoint: EndpointAddress) -> BusAnswer {
        self.request(&format!("CLEAR FEATURE(ENDPOINT_HALT) {endpoint}"), BusRequest::ClearHalt(endpoint))
    }

    /// Performs an operation of error recovery.
    pub fn request(&mut self, name: &str, request: BusRequest) -> BusAnswer {
        let answer = self.bus.request(request);
        self.record(name.to_owned(), format!("{answer:?}").to_lowercase());
        answer
    }

    /// Brings the device to a setting with all halts cleared, by a port reset if nothing else helps. Returns whether it
    /// is there.
    pub fn select(&mut self, place: InterfaceSetting) -> bool {
        self.end_all();
        let InterfaceSetting { interface, alternate, .. } = place;
        let select = BusRequest::SelectAlternate { interface, alternate };
        let name = format!("SET INTERFACE {interface}, alternate setting {alternate}");
        if self.request(&name, select) == BusAnswer::Done {
            return true;
        }
        if self.device.settings <= 1 {
            // A device with one setting need not know the request; nor need an endpoint that is not halted.
            for endpoint in self.device.endpoints(place) {
                self.clear_halt(endpoint);
            }
            return !self.is_gone();
        }
        self.reset_port() && self.request(&name, select) == BusAnswer::Done
    }

    /// Resets the port. Returns whether the device came back.
    pub fn reset_port(&mut self) -> bool {
        self.end_all();
        self.request("port reset", BusRequest::ResetPort) == BusAnswer::Done
    }

    /// Sends bytes and waits.
    pub fn send(&mut self, pipe: Pipe, bytes: &[u8]) -> TransferStatus {
        let slot = self.start(pipe, Transfer::Send(bytes));
        self.finish(slot).map_or(TransferStatus::Cancelled, |completed| completed.status)
    }

    /// Receives at most so many bytes. A transfer that has no end is cancelled.
    pub fn receive(&mut self, pipe: Pipe, length: u32) -> (TransferStatus, Vec<u8>) {
        let slot = self.start(pipe, Transfer::Receive(length));
        let ended = self.finish(slot);
        ended.map_or((TransferStatus::Cancelled, Vec::new()), |completed| (completed.status, completed.bytes))
    }

    /// Sends bytes, in as many transfers at once as they need.
    pub(crate) fn send_all(&mut self, pipe: Pipe, bytes: &[u8]) -> TransferStatus {
        if bytes.len() <= BUFFER_BYTES as usize {
            return self.send(pipe, bytes);
        }
        let parts = bytes.chunks(BUFFER_BYTES as usize);
        let slots: Vec<u16> = parts.map(|part| self.start(pipe, Transfer::Send(part))).collect();
        let mut last = TransferStatus::Done;
        for slot in slots {
            // After one that failed no more are sent.
            let ended = if last == TransferStatus::Done { self.finish(slot) } else { self.withdraw(slot) };
            if last == TransferStatus::Done {
                last = ended.map_or(TransferStatus::Cancelled, |completed| completed.status);
            }
        }
        last
    }

    /// Receives at most so many bytes, in as many transfers at once as they need. A short packet ends them; the transfer after it
    /// takes what follows the data.
    pub(crate) fn receive_all(&mut self, pipe: Pipe, length: u32) -> Received {
        let mut slots = VecDeque::new();
        let mut left = length;
        while left > 0 {
            slots.push_back(self.start(pipe, Transfer::Receive(left.min(BUFFER_BYTES))));
            left -= left.min(BUFFER_BYTES);
        }
        let mut received = Received { status: TransferStatus::Done, bytes: Vec::new(), after: None };
        while received.status == TransferStatus::Done
            && let Some(slot) = slots.pop_front()
        {
            let ended = self.finish(slot);
            received.status = ended.as_ref().map_or(TransferStatus::Cancelled, |completed| completed.status);
            received.bytes.extend(ended.map(|completed| completed.bytes).unwrap_or_default());
        }
        if received.status == TransferStatus::Short
            && let Some(slot) = slots.pop_front()
        {
            received.after = self.finish(slot).map(|completed| completed.bytes);
        }
        slots.into_iter().for_each(|slot| drop(self.withdraw(slot)));
        received
    }

    /// Starts a transfer of at most 64 KiB; returns its slot.
    pub(crate) fn start(&mut self, pipe: Pipe, transfer: Transfer<'_>) -> u16 {
        let slot = self.is_busy.iter().position(|is_busy| !is_busy).unwrap_or_default();
        self.is_busy[slot] = true;
        // Words that are not kept take longer than the transfer.
        self.actions[slot] = match transfer {
            _ if self.steps.len() >= STEPS_MAX => String::new(),
            Transfer::Send(bytes) => format!("send {} bytes to {pipe}: {}", bytes.len(), hex(bytes)),
            Transfer::Receive(length) => format!("receive up to {length} bytes from {pipe}"),
        };
        debug_assert!(!matches!(transfer, Transfer::Receive(length) if length > BUFFER_BYTES));
        self.bus.start(slot as u16, pipe, transfer);
        slot as u16
    }

    /// Waits for a transfer. `None`: it had no end within the limit and was cancelled.
    pub(crate) fn finish(&mut self, slot: u16) -> Option<Completed> {
        let ended = self.wait_for(slot, self.limit);
        if ended.is_none() {
            self.bus.cancel(slot);
            // A cancelled transfer may have ended before.
            let late = self.wait_for(slot, STEP_LIMIT);
            self.is_busy[usize::from(slot)] = late.is_none();
            let late = late.filter(|completed| completed.status != TransferStatus::Cancelled);
            let said = match late {
                Some(_) => "ended late".to_owned(),
                None => format!("no end within {} s, cancelled", self.limit.as_secs()),
            };
            self.record_end(slot, said);
            return late;
        }
        self.is_busy[usize::from(slot)] = false;
        if self.steps.len() >= STEPS_MAX {
            return ended;
        }
        let completed = ended.as_ref()?;
        let Completed { status, actual, bytes, .. } = completed;
        let mut said = format!("{}, {actual} bytes", status_name(*status));
        if !bytes.is_empty() {
            said += &format!(": {}", hex(bytes));
        }
        self.record_end(slot, said);
        ended
    }

    /// Cancels a transfer; returns what it moved.
    pub(crate) fn withdraw(&mut self, slot: u16) -> Option<Completed> {
        self.bus.cancel(slot);
        let ended = self.wait_for(slot, STEP_LIMIT);
        self.is_busy[usize::from(slot)] = ended.is_none();
        self.record_end(slot, "cancelled".into());
        ended
    }

    fn wait_for(&mut self, slot: u16, limit: Duration) -> Option<Completed> {
        if let Some(index) = self.ended.iter().position(|completed| completed.slot == slot) {
            return Some(self.ended.swap_remove(index));
        }
        loop {
            let completed = self.bus.wait(limit)?;
            if completed.slot == slot {
                return Some(completed);
            }
            self.ended.push(completed);
        }
    }

    /// Cancels everything that is in flight.
    pub(crate) fn end_all(&mut self) {
        for slot in 0..SLOTS {
            if !self.is_busy[usize::from(slot)] {
                continue;
            }
            self.bus.cancel(slot);
            self.is_busy[usize::from(slot)] = self.wait_for(slot, STEP_LIMIT).is_none();
        }
        self.ended.clear();
    }

    fn record_end(&mut self, slot: u16, answer: String) {
        let action = std::mem::take(&mut self.actions[usize::from(slot)]);
        self.record(action, answer);
    }

    fn record(&mut self, action: String, answer: String) {
        if self.steps.len() < STEPS_MAX {
            self.steps.push(BusStep { action, answer });
        }
    }
}

fn name_of(failure: ControlFailure) -> &'static str {
    match failure {
        ControlFailure::Stalled => "STALL",
        ControlFailure::NoAnswer => "no answer",
    }
}

pub(crate) const fn status_name(status: TransferStatus) -> &'static str {
    match status {
        TransferStatus::Done => "complete",
        TransferStatus::Short => "short packet",
        TransferStatus::Stall => "STALL",
        TransferStatus::Cancelled => "no end",
        TransferStatus::Babble => "babble",
        TransferStatus::Disconnected => "disconnected",
        TransferStatus::Error => "bus error",
    }
}

/// Bytes in hexadecimal, the first ones of many.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let shown: String = bytes.iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > SHOWN_BYTES { shown + "…" } else { shown }
}
