//! What is asked of driver and device beside moving data, step by step: a request of the driver, or a control transfer.
//!
//! A request of a transport is an errand of several steps: streams are the driver's, an alternate setting is endpoints of the
//! driver's and a request to the device (xHCI 1.2 clause 4.6.6 wants them in that order), the reset of a port is all that
//! brought the device up. A device has one errand at a time, which ends with the first step that fails.

use super::front::Front;
use super::machine::Machine;
use crate::link::control::endpoint_0;
use bus::{EndpointAddress, TransferId, TransferStatus};
use initiator::{BusAnswer, BusRequest, RequestId};
use std::collections::VecDeque;
use units::Instant;
use wire::usb::{Direction, Recipient, SetupPacket, StandardRequest};
use xhci_driver::{Answer, ControlTransfer, DeviceId, Request};

/// One thing to do.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Control(SetupPacket),
    /// One with data for the device.
    Tell(SetupPacket, Vec<u8>),
    Driver(Request),
    /// The hub above does something.
    HubAbove(OfHub),
}

/// What a device wants of the hub above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfHub {
    /// It resets the port that the device is at.
    ResetPort,
    /// Its translator forgets what it has of an endpoint, which the host has given up.
    ClearBuffer(EndpointAddress),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Came {
    Answer(Answer),
    /// A control transfer ended; what it brought.
    Ended(TransferStatus, Vec<u8>),
    /// It was not even begun.
    Refused,
}

/// Whose errand it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// That of who waits for it.
    Waits,
    /// The transport's.
    Transport(RequestId),
    /// That of the driver that the device has as a hub.
    Hub,
    /// Nobody's: this device is given up.
    Gone(usize),
    /// Nobody's: what comes of it is told nobody.
    Nobody,
}

#[derive(Debug, Default)]
pub(super) struct Errands {
    waiting: VecDeque<Errand>,
    /// Whether the first step of the first errand is under way, and where its bytes are.
    under_way: Option<u64>,
    /// What the hub above is to do, and has not begun.
    pub(super) of_hub_above: Option<OfHub>,
    /// What came of an errand that nobody is told of but who waits for it.
    pub(super) came: Option<Came>,
    /// What the transport is to be told.
    pub(super) answers: VecDeque<(RequestId, BusAnswer)>,
    /// What the device's driver as a hub is to be told.
    pub(super) of_hub: VecDeque<Came>,
    /// Devices that were given up.
    pub(super) gone: VecDeque<usize>,
}

#[derive(Debug)]
struct Errand {
    whose: Whose,
    steps: VecDeque<Step>,
}

/// The name of the one control transfer of an errand: none of a transport, which are small numbers.
const CONTROL: TransferId = TransferId(u64::MAX);

impl Front {
    /// One step for who waits for it.
    pub(super) fn ask(&mut self, machine: &mut Machine, now: Instant, step: Step) {
        self.errands.waiting.push_back(Errand { whose: Whose::Waits, steps: VecDeque::from([step]) });
        self.go_on(machine, now);
    }

    /// The transport wants something of the bus.
    pub(super) fn request(
        &mut self,
        machine: &mut Machine,
        now: Instant,
        (id, request): (RequestId, BusRequest),
    ) {
        let steps = self.steps_of(request);
        self.errands.waiting.push_back(Errand { whose: Whose::Transport(id), steps });
        self.go_on(machine, now);
    }

    /// One step for the driver that the device has as a hub.
    pub(super) fn ask_for_hub(&mut self, machine: &mut Machine, now: Instant, step: Step) {
        self.errands.waiting.push_back(Errand { whose: Whose::Hub, steps: VecDeque::from([step]) });
        self.go_on(machine, now);
    }

    /// A device behind this one is given up.
    pub(super) fn give_up(
        &mut self,
        machine: &mut Machine,
        now: Instant,
        (number, device): (usize, DeviceId),
    ) {
        let steps = VecDeque::from([Step::Driver(Request::Detach(device))]);
        self.errands.waiting.push_back(Errand { whose: Whose::Gone(number), steps });
        self.go_on(machine, now);
    }

    /// The hub above is through with what an errand waits for, if one does.
    pub(super) fn hub_above_did(&mut self, machine: &mut Machine, now: Instant, answer: Answer) {
        let step = self.errands.waiting.front().and_then(|errand| errand.steps.front());
        if self.errands.under_way.is_some() && matches!(step, Some(Step::HubAbove(_))) {
            self.answered(machine, now, answer);
        }
    }

    /// What is left of an endpoint in the translator that the device is behind, if it is behind one, is to be cleared.
    fn clears_buffer(&self, endpoint: EndpointAddress) -> Option<Step> {
        self.is_translated.then_some(Step::HubAbove(OfHub::ClearBuffer(endpoint)))
    }

    fn steps_of(&self, request: BusRequest) -> VecDeque<Step> {
        let Some(device) = self.device else { return VecDeque::new() };
        let control = request.setup().map(Step::Control);
        let steps = match request {
            BusRequest::ClearHalt(endpoint) => {
                let reset = Step::Driver(Request::ResetToggle(device, endpoint));
                // Nothing of before may be in the way when the endpoint runs again.
                self.clears_buffer(endpoint).into_iter().chain(control).chain([reset]).collect()
            }
            BusRequest::MassStorageReset { .. } => control.into_iter().collect(),
            BusRequest::SelectAlternate { alternate, .. } => {
                self.configure(alternate).into_iter().chain(control).collect()
            }
            BusRequest::AllocateStreams { endpoints, wanted } => {
                let endpoints = vec![endpoints.status, endpoints.data_in, endpoints.data_out];
                vec![Step::Driver(Request::AllocateStreams { device, endpoints, wanted })]
            }
            BusRequest::ResetPort => {
                let add = self.plans(0);
                let configure = Request::Configure { device, add, drop: Vec::new() };
                let reset = match self.way.route.tiers() {
                    0 => Step::Driver(Request::ResetPort { port: self.way.port }),
                    _ => Step::HubAbove(OfHub::ResetPort),
                };
                let mut steps = vec![
                    reset,
                    Step::Driver(Request::Readdress(device)),
                    Step::Driver(configure),
                    Step::Control(set_configuration()),
                ];
                steps.extend(self.sleep.iter().flat_map(|sleep| sleep.steps(self.way.port, device)));
                steps
            }
        };
        VecDeque::from(steps)
    }

    /// Begins the next step, if none is under way.
    fn go_on(&mut self, machine: &mut Machine, now: Instant) {
        while self.errands.under_way.is_none() {
            let Some(errand) = self.errands.waiting.front() else { return };
            let step = errand.steps.front().cloned();
            let Some((step, place)) = step.and_then(|step| Some((step, machine.take_place()?))) else {
                self.came(machine, Came::Refused);
                continue;
            };
            self.errands.under_way = Some(place);
            let resets = matches!(step, Step::Driver(Request::ResetToggle(..)));
            let begun = match (step, self.device) {
                (Step::Driver(request), _) => {
                    let id = self.driver_request();
                    machine.drive(now, |driver, access| driver.request(access, now, (id, request)))
                }
                (Step::Control(setup), Some(device)) => {
                    let transfer = ControlTransfer { id: CONTROL, device, setup, buffer: place };
                    machine.drive(now, |driver, access| driver.submit_control(access, &transfer))
                }
                (Step::Tell(setup, bytes), Some(device)) => {
                    if let Ok(memory) = machine.memory.slice_mut(place, bytes.len()) {
                        memory.copy_from_slice(&bytes);
                    }
                    let transfer = ControlTransfer { id: CONTROL, device, setup, buffer: place };
                    machine.drive(now, |driver, access| driver.submit_control(access, &transfer))
                }
                // The hub knows the port, whether or not who is there has an address yet.
                (Step::HubAbove(wanted), device) if device.is_some() || wanted == OfHub::ResetPort => {
                    self.errands.of_hub_above = Some(wanted);
                    Ok(())
                }
                (Step::Control(_) | Step::Tell(..) | Step::HubAbove(_), _) => Err(xhci_driver::Refusal::Gone),
            };
            match begun {
                Ok(()) => {}
                // It has failed here for another reason, and the driver is at it: Reset Endpoint begins anew with the numbers.
                Err(xhci_driver::Refusal::Busy) if resets => self.came(machine, Came::Answer(Answer::Done)),
                Err(_) => self.came(machine, Came::Refused),
            }
        }
    }

    /// The driver has answered.
    pub(super) fn answered(&mut self, machine: &mut Machine, now: Instant, answer: Answer) {
        let step = self.errands.waiting.front().and_then(|errand| errand.steps.front());
        if let (Some(Step::Driver(Request::Configure { add, drop, .. })), Answer::Done) = (step, answer) {
            self.endpoints.retain(|endpoint| !drop.contains(endpoint));
            self.endpoints.extend(add.iter().map(|plan| plan.descriptor.address));
        }
        if let (Some(Step::Driver(Request::Readdress(_))), Answer::Done) = (step, answer) {
            self.endpoints.clear();
        }
        if let Answer::Attached(device) = answer {
            self.device = Some(device);
        }
        self.came(machine, Came::Answer(answer));
        self.go_on(machine, now);
    }

    /// A control transfer has ended. Whether it was one of an errand.
    pub(super) fn control_ended(
        &mut self,
        machine: &mut Machine,
        now: Instant,
        id: TransferId,
        (status, bytes): (TransferStatus, u32),
    ) -> bool {
        let Some(place) = self.errands.under_way.filter(|_| id == CONTROL) else { return false };
        let bytes = machine.memory.slice(place, bytes as usize).unwrap_or_default().to_vec();
        self.came(machine, Came::Ended(status, bytes));
        self.go_on(machine, now);
        true
    }

    /// What came of a step; whoever calls goes on.
    fn came(&mut self, machine: &mut Machine, came: Came) {
        if let Some(place) = self.errands.under_way.take() {
            machine.give_place(place);
        }
        let Some(errand) = self.errands.waiting.front_mut() else { return };
        errand.steps.pop_front();
        if came.is_good() && !errand.steps.is_empty() {
            return;
        }
        let whose = errand.whose;
        self.errands.waiting.pop_front();
        self.clear_up_after(&came);
        match whose {
            Whose::Waits => self.errands.came = Some(came),
            Whose::Transport(id) => self.errands.answers.push_back((id, came.bus_answer())),
            Whose::Hub => self.errands.of_hub.push_back(came),
            Whose::Gone(number) => self.errands.gone.push_back(number),
            Whose::Nobody => {}
        }
    }

    /// A control transfer that has failed may have left something in the translator: that goes first.
    fn clear_up_after(&mut self, came: &Came) {
        let has_failed = matches!(came, Came::Ended(TransferStatus::Error, _));
        if let Some(step) = self.clears_buffer(endpoint_0(Direction::Out)).filter(|_| has_failed) {
            let steps = VecDeque::from([step]);
            self.errands.waiting.push_front(Errand { whose: Whose::Nobody, steps });
        }
    }
}

impl Came {
    pub(super) fn is_good(&self) -> bool {
        match self {
            Self::Answer(answer) => {
                !matches!(answer, Answer::Failed(_) | Answer::TimedOut | Answer::NoMemory | Answer::Gone)
            }
            Self::Ended(status, _) => matches!(status, TransferStatus::Done | TransferStatus::Short),
            Self::Refused => false,
        }
    }

    fn bus_answer(&self) -> BusAnswer {
        match self {
            Self::Answer(Answer::Streams(streams)) => BusAnswer::Streams(*streams),
            Self::Ended(TransferStatus::Stall, _) => BusAnswer::Stalled,
            came if came.is_good() => BusAnswer::Done,
            _ => BusAnswer::Failed,
        }
    }
}

/// Chooses the first configuration.
pub(super) fn set_configuration() -> SetupPacket {
    SetupPacket::of_standard(Recipient::Device, StandardRequest::SetConfiguration, 1)
}
