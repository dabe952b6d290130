//! What is asked of driver and device beside moving data, step by step: a request of the driver, or a control transfer.
//!
//! A request of a transport is an errand of several steps: streams are the driver's, an alternate setting is endpoints of the
//! driver's and a request to the device (xHCI 1.2 clause 4.6.6 wants them in that order), the reset of a port is all that
//! brought the device up. One errand is run at a time, and ends with the first step that fails.

use super::computer::Computer;
use bus::{EndpointAddress, TransferId, TransferStatus};
use initiator::probe::configuration::Setting;
use initiator::{BusAnswer, BusRequest, RequestId, Transport};
use std::collections::VecDeque;
use units::Instant;
use wire::usb::{Direction, Recipient, RequestKind, SetupPacket, StandardRequest};
use xhci::{Answer, ControlTransfer, EndpointPlan, Request};

/// The root port that the drive is at.
pub(super) const PORT: u8 = 3;

/// One thing to do.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Control(SetupPacket),
    Driver(Request),
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

#[derive(Debug, Default)]
pub(super) struct Errands {
    waiting: VecDeque<Errand>,
    /// Whether the first step of the first errand is under way, and where its data are.
    under_way: Option<u64>,
    /// What came of an errand that nobody is told of but who waits for it.
    pub(super) came: Option<Came>,
}

#[derive(Debug)]
struct Errand {
    /// Whose; `None` is that of who waits for it.
    request: Option<RequestId>,
    steps: VecDeque<Step>,
}

/// The driver's names for what is asked of it: one at a time.
const REQUEST: xhci::RequestId = xhci::RequestId(0);
const CONTROL: TransferId = TransferId(u64::MAX);

impl<T: Transport> Computer<T> {
    /// One step for who waits for it.
    pub(super) fn ask(&mut self, now: Instant, step: Step) {
        self.errands.waiting.push_back(Errand { request: None, steps: VecDeque::from([step]) });
        self.go_on(now);
    }

    /// The transport wants something of the bus.
    pub(super) fn request(&mut self, now: Instant, id: RequestId, request: BusRequest) {
        let steps = self.steps_of(request);
        self.errands.waiting.push_back(Errand { request: Some(id), steps });
        self.go_on(now);
    }

    fn steps_of(&self, request: BusRequest) -> VecDeque<Step> {
        let Some(device) = self.device else { return VecDeque::new() };
        let control = request.setup().map(Step::Control);
        let steps = match request {
            BusRequest::ClearHalt(endpoint) => {
                let has_streams = self.setting_of(endpoint).is_some_and(|endpoint| endpoint.streams() > 0);
                let reset = (!has_streams).then_some(Step::Driver(Request::ResetToggle(device, endpoint)));
                control.into_iter().chain(reset).collect()
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
                vec![
                    Step::Driver(Request::ResetPort { port: PORT }),
                    Step::Driver(Request::Readdress(device)),
                    Step::Driver(configure),
                    Step::Control(to_device(StandardRequest::SetConfiguration)),
                ]
            }
        };
        VecDeque::from(steps)
    }

    /// The endpoints of an alternate setting take the place of those there are.
    pub(super) fn configure(&self, alternate: u8) -> Option<Step> {
        let (device, add) = (self.device?, self.plans(alternate));
        Some(Step::Driver(Request::Configure { device, add, drop: self.endpoints.clone() }))
    }

    fn setting(&self, alternate: u8) -> Option<&Setting> {
        let settings = &self.configuration.as_ref()?.settings;
        settings.iter().find(|setting| setting.interface.alternate == alternate)
    }

    fn setting_of(&self, address: EndpointAddress) -> Option<&initiator::probe::configuration::Endpoint> {
        let settings = self.configuration.iter().flat_map(|configuration| &configuration.settings);
        settings
            .flat_map(|setting| &setting.endpoints)
            .find(|endpoint| endpoint.descriptor.address == address)
    }

    fn plans(&self, alternate: u8) -> Vec<EndpointPlan> {
        let endpoints = self.setting(alternate).into_iter().flat_map(|setting| &setting.endpoints);
        let plan = |endpoint: &initiator::probe::configuration::Endpoint| EndpointPlan {
            descriptor: endpoint.descriptor,
            companion: endpoint.companion,
        };
        endpoints.map(plan).collect()
    }

    /// Begins the next step, if none is under way.
    fn go_on(&mut self, now: Instant) {
        if self.errands.under_way.is_some() {
            return;
        }
        let Some(errand) = self.errands.waiting.front() else { return };
        let Some(step) = errand.steps.front().cloned() else { return self.came(now, Came::Refused) };
        let Some(place) = self.take_place() else { return self.came(now, Came::Refused) };
        self.errands.under_way = Some(place);
        let resets = matches!(step, Step::Driver(Request::ResetToggle(..)));
        let begun = match (step, self.device) {
            (Step::Driver(request), _) => {
                self.drive(now, |driver, hands| driver.request(hands, now, (REQUEST, request)))
            }
            (Step::Control(setup), Some(device)) => {
                let transfer = ControlTransfer { id: CONTROL, device, setup, buffer: place };
                self.drive(now, |driver, hands| driver.submit_control(hands, &transfer))
            }
            (Step::Control(_), None) => Err(xhci::Refusal::Gone),
        };
        match begun {
            Ok(()) => {}
            // It has halted here as well, and the driver is at it: Reset Endpoint begins anew with the numbers, too.
            Err(xhci::Refusal::Busy) if resets => self.came(now, Came::Answer(Answer::Done)),
            Err(_) => self.came(now, Came::Refused),
        }
    }

    /// The driver has answered.
    pub(super) fn answered(&mut self, now: Instant, answer: Answer) {
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
        self.came(now, Came::Answer(answer));
    }

    /// A control transfer has ended. Whether it was one of an errand.
    pub(super) fn control_ended(&mut self, now: Instant, id: TransferId, end: (TransferStatus, u32)) -> bool {
        let Some(place) = self.errands.under_way.filter(|_| id == CONTROL) else { return false };
        let bytes = self.memory.slice(place, end.1 as usize).unwrap_or_default().to_vec();
        self.came(now, Came::Ended(end.0, bytes));
        true
    }

    fn came(&mut self, now: Instant, came: Came) {
        if let Some(place) = self.errands.under_way.take() {
            self.give_place(place);
        }
        let Some(errand) = self.errands.waiting.front_mut() else { return };
        errand.steps.pop_front();
        if came.is_good() && !errand.steps.is_empty() {
            return self.go_on(now);
        }
        let request = errand.request;
        self.errands.waiting.pop_front();
        match request {
            None => self.errands.came = Some(came),
            Some(id) => {
                self.has_news = true;
                self.transport.handle_answer(now, id, came.bus_answer());
            }
        }
        self.go_on(now);
    }
}

impl Came {
    fn is_good(&self) -> bool {
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

/// SET_CONFIGURATION 1, or another request with this value.
pub(super) fn to_device(request: StandardRequest) -> SetupPacket {
    SetupPacket {
        direction: Direction::Out,
        kind: RequestKind::Standard,
        recipient: Recipient::Device,
        request: request.into(),
        value: 1,
        index: 0,
        length: 0,
    }
}
