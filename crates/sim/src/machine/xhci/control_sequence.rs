//! Control sequences: requests to the driver and control transfers to a device, step by step.
//!
//! A bus request of a transport becomes a sequence: streams are allocated by the driver, an
//! alternate setting takes a Configure Endpoint and a request to the device (xHCI 1.2 clause 4.6.6
//! requires that order), a port reset repeats the enumeration. A device runs one sequence at a
//! time, which ends at the first step that fails.

use super::host_device::HostDevice;
use super::host_system::HostSystem;
use crate::link::control::endpoint_0;
use bus::{Completion, EndpointAddress, TransferId, TransferStatus};
use initiator::{BusAnswer, BusRequest, RequestId};
use std::collections::VecDeque;
use units::Instant;
use wire::usb::{Direction, Recipient, SetupPacket, StandardRequest};
use xhci_driver::{Answer, ControlTransfer, DeviceId, Request};

/// A step of a sequence.
#[derive(Clone, Debug)]
pub(super) enum SequenceStep {
    Control(SetupPacket),
    /// A control transfer with data-out.
    ControlOut(SetupPacket, Vec<u8>),
    Driver(Request),
    /// An action of the hub above.
    HubAbove(HubAction),
}

/// A request of a device to the hub above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HubAction {
    /// Reset the device's port.
    ResetPort,
    /// Clear the translator's buffer of an endpoint, which the host has given up.
    ClearBuffer(EndpointAddress),
}

/// Result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepResult {
    Answer(Answer),
    /// A control transfer has completed, with its data.
    Completed(TransferStatus, Vec<u8>),
    /// It was not started.
    Refused,
}

/// Owner of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SequenceOwner {
    /// The caller that waits for it.
    Caller,
    /// The transport.
    Transport(RequestId),
    /// The hub driver of the device.
    Hub,
    /// None: detaches this device.
    Gone(usize),
    /// None: the result is discarded.
    Discarded,
}

#[derive(Debug, Default)]
pub(super) struct ControlSequences {
    waiting: VecDeque<ControlSequence>,
    /// Address of the data of the step in flight, if any.
    in_flight: Option<u64>,
    /// Action of the hub above that has not started.
    pub(super) hub_above_action: Option<HubAction>,
    /// Result for the caller that waits.
    pub(super) step_result: Option<StepResult>,
    /// Answers to the transport.
    pub(super) answers: VecDeque<(RequestId, BusAnswer)>,
    /// Results for the hub driver.
    pub(super) hub_results: VecDeque<StepResult>,
    /// Devices that were detached.
    pub(super) gone: VecDeque<usize>,
}

#[derive(Debug)]
struct ControlSequence {
    whose: SequenceOwner,
    steps: VecDeque<SequenceStep>,
}

/// Id of the one control transfer of a sequence; those of transports are small numbers.
const CONTROL: TransferId = TransferId(u64::MAX);

impl HostDevice {
    /// Runs a step for a caller that waits.
    pub(super) fn ask(&mut self, system: &mut HostSystem, now: Instant, step: SequenceStep) {
        self.sequences
            .waiting
            .push_back(ControlSequence { whose: SequenceOwner::Caller, steps: VecDeque::from([step]) });
        self.start_next_step(system, now);
    }

    /// Starts a bus request of the transport.
    pub(super) fn request(
        &mut self,
        system: &mut HostSystem,
        now: Instant,
        id: RequestId,
        request: BusRequest,
    ) {
        let steps = self.steps_of(request);
        self.sequences.waiting.push_back(ControlSequence { whose: SequenceOwner::Transport(id), steps });
        self.start_next_step(system, now);
    }

    /// Runs a step for the hub driver.
    pub(super) fn ask_for_hub(&mut self, system: &mut HostSystem, now: Instant, step: SequenceStep) {
        self.sequences
            .waiting
            .push_back(ControlSequence { whose: SequenceOwner::Hub, steps: VecDeque::from([step]) });
        self.start_next_step(system, now);
    }

    /// Detaches a device behind this one.
    pub(super) fn detach(&mut self, system: &mut HostSystem, now: Instant, number: usize, device: DeviceId) {
        let steps = VecDeque::from([SequenceStep::Driver(Request::Detach(device))]);
        self.sequences.waiting.push_back(ControlSequence { whose: SequenceOwner::Gone(number), steps });
        self.start_next_step(system, now);
    }

    /// Reports that the hub above has completed its action.
    pub(super) fn complete_hub_action(&mut self, system: &mut HostSystem, now: Instant, answer: Answer) {
        let step = self.sequences.waiting.front().and_then(|sequence| sequence.steps.front());
        if self.sequences.in_flight.is_some() && matches!(step, Some(SequenceStep::HubAbove(_))) {
            self.answered(system, now, answer);
        }
    }

    /// Returns the step that clears the translator's buffer of an endpoint, if the device is behind
    /// one.
    fn clears_buffer(&self, endpoint: EndpointAddress) -> Option<SequenceStep> {
        self.is_translated.then_some(SequenceStep::HubAbove(HubAction::ClearBuffer(endpoint)))
    }

    fn steps_of(&self, request: BusRequest) -> VecDeque<SequenceStep> {
        let Some(device) = self.device else { return VecDeque::new() };
        let control = request.setup().map(SequenceStep::Control);
        let steps = match request {
            BusRequest::ClearHalt(endpoint) => {
                let reset = SequenceStep::Driver(Request::ResetToggle(device, endpoint));
                // Old data must be gone when the endpoint runs again.
                self.clears_buffer(endpoint).into_iter().chain(control).chain([reset]).collect()
            }
            BusRequest::MassStorageReset { .. } => control.into_iter().collect(),
            BusRequest::SelectAlternate { alternate, .. } => {
                self.configure(alternate).into_iter().chain(control).collect()
            }
            BusRequest::AllocateStreams { endpoints, wanted } => {
                let endpoints = vec![endpoints.status, endpoints.data_in, endpoints.data_out];
                vec![SequenceStep::Driver(Request::AllocateStreams { device, endpoints, wanted })]
            }
            BusRequest::ResetPort => {
                let add = self.plans(0);
                let configure = Request::Configure { device, add, drop: Vec::new() };
                let reset = match self.way.route.tiers() {
                    0 => SequenceStep::Driver(Request::ResetPort { port: self.way.port }),
                    _ => SequenceStep::HubAbove(HubAction::ResetPort),
                };
                let mut steps = vec![
                    reset,
                    SequenceStep::Driver(Request::Readdress(device)),
                    SequenceStep::Driver(configure),
                    SequenceStep::Control(set_configuration()),
                ];
                steps.extend(self.sleep.iter().flat_map(|sleep| sleep.steps(self.way.port, device)));
                steps
            }
        };
        VecDeque::from(steps)
    }

    /// Starts the next step, if none is in flight.
    fn start_next_step(&mut self, system: &mut HostSystem, now: Instant) {
        while self.sequences.in_flight.is_none() {
            let Some(sequence) = self.sequences.waiting.front() else { return };
            let step = sequence.steps.front().cloned();
            let Some((step, place)) = step.and_then(|step| Some((step, system.take_place()?))) else {
                self.step_result(system, StepResult::Refused);
                continue;
            };
            self.sequences.in_flight = Some(place);
            let resets = matches!(step, SequenceStep::Driver(Request::ResetToggle(..)));
            let begun = match (step, self.device) {
                (SequenceStep::Driver(request), _) => {
                    let id = self.driver_request();
                    system.drive(now, |driver, access| driver.request(access, now, id, request))
                }
                (SequenceStep::Control(setup), Some(device)) => {
                    let transfer = ControlTransfer { id: CONTROL, device, setup, buffer: place };
                    system.drive(now, |driver, access| driver.submit_control(access, &transfer))
                }
                (SequenceStep::ControlOut(setup, bytes), Some(device)) => {
                    if let Ok(memory) = system.memory.slice_mut(place, bytes.len()) {
                        memory.copy_from_slice(&bytes);
                    }
                    let transfer = ControlTransfer { id: CONTROL, device, setup, buffer: place };
                    system.drive(now, |driver, access| driver.submit_control(access, &transfer))
                }
                // The hub knows the port even if the device has no address.
                (SequenceStep::HubAbove(wanted), device)
                    if device.is_some() || wanted == HubAction::ResetPort =>
                {
                    self.sequences.hub_above_action = Some(wanted);
                    Ok(())
                }
                (SequenceStep::Control(_) | SequenceStep::ControlOut(..) | SequenceStep::HubAbove(_), _) => {
                    Err(xhci_driver::Refusal::Gone)
                }
            };
            match begun {
                Ok(()) => {}
                // The endpoint has failed for another reason and the driver is handling it: Reset
                // Endpoint restarts the sequence numbers.
                Err(xhci_driver::Refusal::Busy) if resets => {
                    self.step_result(system, StepResult::Answer(Answer::Done))
                }
                Err(_) => self.step_result(system, StepResult::Refused),
            }
        }
    }

    /// Handles an answer of the driver.
    pub(super) fn answered(&mut self, system: &mut HostSystem, now: Instant, answer: Answer) {
        let step = self.sequences.waiting.front().and_then(|sequence| sequence.steps.front());
        if let (Some(SequenceStep::Driver(Request::Configure { add, drop, .. })), Answer::Done) =
            (step, answer)
        {
            self.endpoints.retain(|endpoint| !drop.contains(endpoint));
            self.endpoints.extend(add.iter().map(|plan| plan.descriptor.address));
        }
        if let (Some(SequenceStep::Driver(Request::Readdress(_))), Answer::Done) = (step, answer) {
            self.endpoints.clear();
        }
        if let Answer::Attached(device) = answer {
            self.device = Some(device);
        }
        self.step_result(system, StepResult::Answer(answer));
        self.start_next_step(system, now);
    }

    /// Handles a completed control transfer. Returns whether it belongs to a sequence.
    pub(super) fn control_ended(
        &mut self,
        system: &mut HostSystem,
        now: Instant,
        completion: Completion,
    ) -> bool {
        let Completion { id, status, actual } = completion;
        let Some(place) = self.sequences.in_flight.filter(|_| id == CONTROL) else { return false };
        let bytes = system.memory.slice(place, actual as usize).unwrap_or_default().to_vec();
        self.step_result(system, StepResult::Completed(status, bytes));
        self.start_next_step(system, now);
        true
    }

    /// Records the result of a step; the caller starts the next one.
    fn step_result(&mut self, system: &mut HostSystem, step_result: StepResult) {
        if let Some(place) = self.sequences.in_flight.take() {
            system.give_place(place);
        }
        let Some(sequence) = self.sequences.waiting.front_mut() else { return };
        sequence.steps.pop_front();
        if step_result.is_good() && !sequence.steps.is_empty() {
            return;
        }
        let whose = sequence.whose;
        self.sequences.waiting.pop_front();
        self.clear_up_after(&step_result);
        match whose {
            SequenceOwner::Caller => self.sequences.step_result = Some(step_result),
            SequenceOwner::Transport(id) => self.sequences.answers.push_back((id, step_result.bus_answer())),
            SequenceOwner::Hub => self.sequences.hub_results.push_back(step_result),
            SequenceOwner::Gone(number) => self.sequences.gone.push_back(number),
            SequenceOwner::Discarded => {}
        }
    }

    /// A failed control transfer may have left data in the translator: clear that first.
    fn clear_up_after(&mut self, step_result: &StepResult) {
        let has_failed = matches!(step_result, StepResult::Completed(TransferStatus::Error, _));
        if let Some(step) = self.clears_buffer(endpoint_0(Direction::Out)).filter(|_| has_failed) {
            let steps = VecDeque::from([step]);
            self.sequences.waiting.push_front(ControlSequence { whose: SequenceOwner::Discarded, steps });
        }
    }
}

impl StepResult {
    pub(super) fn is_good(&self) -> bool {
        match self {
            Self::Answer(answer) => {
                !matches!(answer, Answer::Failed(_) | Answer::TimedOut | Answer::NoMemory | Answer::Gone)
            }
            Self::Completed(status, _) => matches!(status, TransferStatus::Done | TransferStatus::Short),
            Self::Refused => false,
        }
    }

    fn bus_answer(&self) -> BusAnswer {
        match self {
            Self::Answer(Answer::Streams(streams)) => BusAnswer::Streams(*streams),
            Self::Completed(TransferStatus::Stall, _) => BusAnswer::Stalled,
            step_result if step_result.is_good() => BusAnswer::Done,
            _ => BusAnswer::Failed,
        }
    }
}

/// Returns SET CONFIGURATION for configuration 1.
pub(super) fn set_configuration() -> SetupPacket {
    SetupPacket::of_standard(Recipient::Device, StandardRequest::SetConfiguration, 1)
}
