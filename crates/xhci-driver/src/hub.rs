//! A driver of one hub (USB 2.0 clause 11.12, USB 3.2 clause 10.13; xHCI 1.2 clauses 4.3.3 and 4.5.2),
//! as a state machine without I/O.
//!
//! Started for an addressed hub, it reads the descriptors, configures the hub with its status change
//! endpoint, sets its depth, declares it to the controller, powers the ports, and listens. Then it
//! reports connects with the location of the device (route string, translator), disconnects, and
//! finished port resets.
//!
//! ```text
//!   descriptors ─► Configure Endpoint ─► SET_CONFIGURATION ─► SET_HUB_DEPTH ─► hub descriptor ─► Configure Endpoint (Hub)
//!               ─► SET_FEATURE PORT_POWER, each port ─► power good ─► Up; GET_STATUS of each port, then a report at a time
//!
//!   report ─► GET_STATUS of the port ─► CLEAR_FEATURE of each change ─► arrived, left, reset
//!               ▲ who came or went in the meantime ──┘
//! ```
//!
//! A SuperSpeed port is enabled by link training; a USB 2.0 port is reset first, after debouncing.
//! Left out: over-current, indicators, remote wake-up, local power, strings.
//!
//! Always true: one control transfer or request is outstanding; a device that was reported leaves
//! before another arrives at the port; a hub that answers incorrectly fails, once.

mod setup;
#[cfg(test)]
mod tests;
mod types;

pub use types::{HubLocation, HubOutput};

use crate::limit::PORT_RESET_TIMEOUT;
use crate::types::{Answer, HubShape, Location, Translator};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bus::TransferStatus;
use setup::HubStep;
use types::Port;
use units::{Duration, Instant};
use wire::usb::EndpointAddress;
use wire::usb::hub::{
    HubKind, HubPortChanges, HubPortSpeed, HubPortStatus, PortFeature, TtBuffer, reported_ports,
};
use wire::xhci::LinkState;

/// Contacts have come to rest after this (TATTDB).
const DEBOUNCE: Duration = Duration::from_ms(100);
/// A device rests so long after a reset (TRSTRCY).
const RESET_RECOVERY: Duration = Duration::from_ms(10);
/// Failed control transfers in a row after which a hub is of no use.
const FAILURES_MAX: u8 = 3;
/// A port of SuperSpeed says this speed id.
const SUPER: u8 = 4;
/// High speed.
const HIGH: u8 = 3;

/// The driver of a hub.
#[derive(Debug)]
pub struct Hub {
    place: HubLocation,
    kind: HubKind,
    steps: VecDeque<HubStep>,
    current: Option<HubStep>,
    shape: Option<HubShape>,
    /// By number, from 1 on.
    ports: Vec<Port>,
    endpoint: Option<(EndpointAddress, u16)>,
    is_listening: bool,
    /// When its ports have power.
    power_good_at: Option<Instant>,
    is_up: bool,
    has_failed: bool,
    failures: u8,
    outputs: VecDeque<HubOutput>,
}

impl Hub {
    /// The driver of a hub that has an address. It begins at once.
    pub fn new(place: HubLocation) -> Self {
        let kind = if place.location.speed_id >= SUPER { HubKind::SuperSpeed } else { HubKind::Usb2 };
        let mut hub = Self {
            place,
            kind,
            steps: VecDeque::from([HubStep::Device]),
            current: None,
            shape: None,
            ports: Vec::new(),
            endpoint: None,
            is_listening: false,
            power_good_at: None,
            is_up: false,
            has_failed: false,
            failures: 0,
            outputs: VecDeque::new(),
        };
        hub.go_on();
        hub
    }

    /// The hub.
    pub const fn place(&self) -> HubLocation {
        self.place
    }

    /// Returns the shape of the hub, once it is known.
    pub const fn shape(&self) -> Option<HubShape> {
        self.shape
    }

    /// Resets the port of a connected device. Returns whether the reset was started;
    /// [`HubOutput::PortReset`] reports its end.
    pub fn reset_port(&mut self, now: Instant, port: u8) -> bool {
        let has_failed = self.has_failed;
        let Some(state) = self.port(port).filter(|state| **state == Port::There && !has_failed) else {
            return false;
        };
        *state = Port::Resetting(now + PORT_RESET_TIMEOUT);
        self.add(HubStep::Set(port, PortFeature::Reset));
        true
    }

    /// The translator at a port is to forget what it has of an endpoint there, which was given up
    /// with something in progress (clause 11.17.5). Whether that is begun:
    /// [`HubOutput::BufferCleared`] says what comes of it.
    pub fn clear_buffer(&mut self, port: u8, buffer: TtBuffer) -> bool {
        if self.has_failed || !self.is_up || self.port(port).is_none() {
            return false;
        }
        self.add(HubStep::ClearBuffer(port, buffer));
        true
    }

    /// A control transfer has ended, and has brought these bytes.
    pub fn handle_control(&mut self, now: Instant, status: TransferStatus, bytes: &[u8]) {
        let Some(step) = self.current.take() else { return };
        let is_good = matches!(status, TransferStatus::Done | TransferStatus::Short);
        match (is_good, step) {
            (true, HubStep::Look(port)) => match HubPortStatus::decode(bytes, self.kind) {
                Ok(status) => {
                    self.failures = 0;
                    self.judge(now, port, status);
                }
                Err(_) => self.fail(),
            },
            (true, HubStep::Note(..) | HubStep::Set(..)) => self.failures = 0,
            (is_done, HubStep::ClearBuffer(port, _)) => {
                self.outputs.push_back(HubOutput::BufferCleared { port, is_done });
            }
            (true, step) => self.learn(now, step, bytes),
            (false, step) if self.is_up => self.try_again(step),
            (false, _) => self.fail(),
        }
        self.go_on();
    }

    /// A request was answered.
    pub fn handle_answer(&mut self, answer: Answer) {
        if self.current.take().is_some() && answer != Answer::Done {
            self.fail();
        }
        self.go_on();
    }

    /// The transfer of the status change endpoint has ended, and has brought these bytes.
    pub fn handle_report(&mut self, status: TransferStatus, report: &[u8]) {
        self.is_listening = false;
        if !matches!(status, TransferStatus::Done | TransferStatus::Short) {
            return self.fail();
        }
        let known = self.ports.len();
        for port in reported_ports(report).filter(|&port| usize::from(port) <= known) {
            self.steps.push_back(HubStep::Look(port));
        }
        self.go_on();
    }

    /// When [`Self::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.ports.iter().filter_map(|port| port.due()).chain(self.power_good_at).min()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.power_good_at.take_if(|at| *at <= now).is_some() {
            self.is_up = true;
            let ports = self.ports.len() as u8;
            self.outputs.push_back(HubOutput::Up { ports });
            self.steps.extend((1..=ports).map(HubStep::Look));
        }
        for number in 1..=self.ports.len() as u8 {
            let Some(port) = self.port(number) else { continue };
            if port.due().is_none_or(|at| at > now) {
                continue;
            }
            match *port {
                Port::Debouncing(_) => {
                    *port = Port::Enabling(now + PORT_RESET_TIMEOUT);
                    self.steps.push_back(HubStep::Set(number, PortFeature::Reset));
                }
                Port::Recovering(_, speed_id) => {
                    *port = Port::There;
                    self.arrived(number, speed_id);
                }
                Port::Resetting(_) => {
                    *port = Port::There;
                    self.outputs.push_back(HubOutput::PortReset { port: number, is_done: false });
                }
                Port::Enabling(_) => *port = Port::Empty,
                Port::Empty | Port::There => {}
            }
        }
        self.go_on();
    }

    /// Returns the oldest output that was not yet returned.
    pub fn poll_output(&mut self) -> Option<HubOutput> {
        self.outputs.pop_front()
    }

    fn port(&mut self, number: u8) -> Option<&mut Port> {
        self.ports.get_mut(usize::from(number).checked_sub(1)?)
    }

    fn add(&mut self, step: HubStep) {
        self.steps.push_back(step);
        self.go_on();
    }

    /// Begins the next step, or listens if there is none.
    fn go_on(&mut self) {
        if self.has_failed || self.current.is_some() {
            return;
        }
        if let Some(step) = self.steps.pop_front() {
            self.outputs.push_back(self.output_of(&step));
            self.current = Some(step);
        } else if let (true, false, Some((endpoint, bytes))) = (self.is_up, self.is_listening, self.endpoint)
        {
            self.is_listening = true;
            self.outputs.push_back(HubOutput::Listen { endpoint, bytes });
        }
    }

    /// A transfer failed that a hub may be asked for again.
    fn try_again(&mut self, step: HubStep) {
        self.failures += 1;
        match self.failures {
            FAILURES_MAX.. => self.fail(),
            _ => self.steps.push_front(step),
        }
    }

    fn fail(&mut self) {
        if !core::mem::replace(&mut self.has_failed, true) {
            self.steps.clear();
            self.outputs.push_back(HubOutput::Failed);
        }
    }

    /// Handles the status of a port: queues the clearing of its changes, and reports what they
    /// mean.
    fn judge(&mut self, now: Instant, number: u8, status: HubPortStatus) {
        let changes = status.changes;
        for (change, feature) in CHANGES {
            if changes.has(change) {
                self.steps.push_back(HubStep::Note(number, feature));
            }
        }
        // Who comes or goes before that is noted is noted with it.
        if changes.has(HubPortChanges::CONNECTION) {
            self.steps.push_back(HubStep::Look(number));
        }
        let Some(state) = self.ports.get(usize::from(number).wrapping_sub(1)).copied() else { return };
        let has_left = !status.connected || changes.has(HubPortChanges::CONNECTION);
        if has_left && state != Port::Empty {
            self.left(number, state);
        }
        let was_reset = changes.has(HubPortChanges::RESET) || changes.has(HubPortChanges::WARM_RESET);
        let state = self.ports.get(usize::from(number) - 1).copied().unwrap_or_default();
        let next = match state {
            _ if !status.connected => Port::Empty,
            Port::Empty if self.kind == HubKind::Usb2 => Port::Debouncing(now + DEBOUNCE),
            Port::Empty if status.enabled => {
                self.arrived(number, SUPER);
                Port::There
            }
            // The link does not come up by itself (clause 10.3.1.1).
            Port::Empty if matches!(status.link_state, LinkState::Inactive | LinkState::Compliance) => {
                self.steps.push_back(HubStep::Set(number, PortFeature::WarmReset));
                Port::Enabling(now + PORT_RESET_TIMEOUT)
            }
            Port::Enabling(_) if was_reset && self.kind == HubKind::SuperSpeed && status.enabled => {
                self.arrived(number, SUPER);
                Port::There
            }
            Port::Enabling(_) if was_reset && status.enabled => {
                Port::Recovering(now + RESET_RECOVERY, speed_id(status.speed))
            }
            Port::Enabling(_) if was_reset => Port::Empty,
            Port::Resetting(_) if was_reset => {
                self.outputs.push_back(HubOutput::PortReset { port: number, is_done: status.enabled });
                Port::There
            }
            state => state,
        };
        if let Some(port) = self.port(number) {
            *port = next;
        }
    }

    /// Handles the disconnection of the device at a port, also if another one is there now.
    fn left(&mut self, number: u8, state: Port) {
        if let Port::Resetting(_) = state {
            self.outputs.push_back(HubOutput::PortReset { port: number, is_done: false });
        }
        if state.is_reported() {
            self.outputs.push_back(HubOutput::Left { port: number });
        }
        if let Some(port) = self.port(number) {
            *port = Port::Empty;
        }
    }

    fn arrived(&mut self, port: u8, speed_id: u8) {
        if let Some(location) = self.location_of(port, speed_id) {
            self.outputs.push_back(HubOutput::Arrived { port, location });
        }
    }

    /// Where a device is for the controller (xHCI 1.2 clauses 6.2.2 and 8.9). `None` if it would be
    /// behind too many hubs.
    fn location_of(&self, port: u8, speed_id: u8) -> Option<Location> {
        let HubLocation { device, location } = self.place;
        let multiple = self.shape.is_some_and(|shape| shape.multiple_translators);
        let translator = match (speed_id, location.speed_id) {
            (..HIGH, HIGH) => Some(Translator { hub: device, port, multiple }),
            (..HIGH, _) => location.translator,
            _ => None,
        };
        let control_packet = match speed_id {
            SUPER.. => 512,
            LOW => 8,
            _ => 64,
        };
        let route = location.route.via(port)?;
        Some(Location { root_port: location.root_port, route, speed_id, translator, control_packet })
    }
}

/// Low speed.
const LOW: u8 = 2;

/// Each change, and the feature that notes it.
const CHANGES: [(HubPortChanges, PortFeature); 8] = [
    (HubPortChanges::CONNECTION, PortFeature::ConnectionChange),
    (HubPortChanges::ENABLE, PortFeature::EnableChange),
    (HubPortChanges::SUSPEND, PortFeature::SuspendChange),
    (HubPortChanges::OVER_CURRENT, PortFeature::OverCurrentChange),
    (HubPortChanges::RESET, PortFeature::ResetChange),
    (HubPortChanges::WARM_RESET, PortFeature::WarmResetChange),
    (HubPortChanges::LINK_STATE, PortFeature::LinkStateChange),
    (HubPortChanges::CONFIG_ERROR, PortFeature::ConfigErrorChange),
];

/// The usual speed id of a port's speed (xHCI 1.2 table 7-13).
const fn speed_id(speed: HubPortSpeed) -> u8 {
    match speed {
        HubPortSpeed::Full => 1,
        HubPortSpeed::Low => LOW,
        HubPortSpeed::High => HIGH,
        HubPortSpeed::Super => SUPER,
    }
}
