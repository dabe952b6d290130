//! A hub as a device: endpoint 0 with hub class requests, port power, reset and training, and
//! status change reports (USB 2.0 clause 11.24, USB 3.2 clauses 10.3, 10.13, 10.15 and 10.16).
//!
//! A [`HubDevice`] is a state machine beside the tree that forwards packets: it reports which ports
//! forward, and the owner of the tree takes links up and down. Its ports match those of a root hub
//! ([`crate::xhc`]), except for port power. Not modelled: over-current, indicators, port tests,
//! error counts, remote wake-up, local power.
//!
//! Invariants: a port forwards packets only while it is powered and enabled and, at SuperSpeed, the
//! hub depth is set; a change stays until it is acknowledged.

mod descriptors;
#[cfg(test)]
mod tests;

pub use descriptors::STATUS_CHANGE;

use crate::link::usb2::Translators;
use device::Verdict;
use std::collections::VecDeque;
use units::{Duration, Instant};
use wire::usb::hub::{
    HubFeature, HubKind, HubPortChanges, HubPortSpeed, HubPortStatus, HubRequest, PortFeature, TtBuffer,
    report_of,
};
use wire::usb::{
    DescriptorKind, DeviceFeature, DeviceStatus, EndpointFeature, Recipient, RequestKind, SetupPacket,
    StandardRequest,
};
use wire::xhci::{LinkState, PortChanges, PortWrite};
use xhci_controller::port::{Port, PortOutcome};

/// A hub.
#[derive(Clone, Debug)]
pub struct HubDevice {
    shape: Shape,
    ports: Vec<Port>,
    /// The hub depth that was set.
    depth: Option<u16>,
    is_configured: bool,
    may_ask: [bool; 2],
    is_halted: bool,
    /// Requests that come before each stalled one, the last first.
    stalls: Vec<u8>,
    effects: VecDeque<HubEffect>,
}

/// Fixed properties of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Of USB 2.0 or of SuperSpeed.
    pub kind: HubKind,
    /// Its ports, 1 to 15.
    pub ports: u8,
    /// Forwarding delay.
    pub delay: Duration,
    /// Hubs between it and the root port.
    pub tier: u16,
    /// Transaction translators of a high-speed hub.
    pub translators: Option<Translators>,
}

/// An action of a hub on the links below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubEffect {
    /// The link at a port goes down.
    Down(u8),
    /// The link at a port comes up.
    Up {
        /// From 1.
        port: u8,
        /// Whether the device there was reset.
        is_reset: bool,
    },
    /// Clears the translator buffer of an endpoint of the device with this address, behind this
    /// port for a translator per port.
    ClearBuffer(TtBuffer),
}

/// From power on a port until it is good, in units of 2 ms.
pub(crate) const POWER_GOOD_2MS: u8 = 10;

impl Shape {
    /// Returns the bytes of its report: a bit for the hub and for each port (USB 2.0 clause
    /// 11.12.4), two at SuperSpeed (USB 3.2 clause 10.13.4).
    pub const fn report_bytes(&self) -> u16 {
        match self.kind {
            HubKind::Usb2 => self.ports as u16 / 8 + 1,
            HubKind::SuperSpeed => 2,
        }
    }
}

impl HubDevice {
    /// Returns its parameters.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Creates a powered hub with empty ports.
    pub fn new(shape: Shape) -> Self {
        let is_usb3 = shape.kind == HubKind::SuperSpeed;
        Self {
            shape,
            ports: (0..shape.ports).map(|_| Port::of_hub(is_usb3)).collect(),
            depth: None,
            is_configured: false,
            may_ask: [false; 2],
            is_halted: false,
            stalls: Vec::new(),
            effects: VecDeque::new(),
        }
    }

    /// Schedules requests to stall, once each, by the number of requests before each: `[2, 0]`
    /// stalls the third and the fourth.
    pub fn stall(&mut self, after: &[u8]) {
        self.stalls = after.iter().rev().copied().collect();
    }

    /// Returns whether stalls are scheduled.
    pub const fn will_stall(&self) -> bool {
        !self.stalls.is_empty()
    }

    /// Returns whether the request at hand is one that is to be stalled.
    fn is_stalled(&mut self) -> bool {
        match self.stalls.last_mut() {
            Some(0) => self.stalls.pop().is_some(),
            Some(others) => {
                *others -= 1;
                false
            }
            None => false,
        }
    }

    /// Returns whether it is configured and has its status change endpoint.
    pub const fn is_configured(&self) -> bool {
        self.is_configured
    }

    /// Resets the hub after a port reset or a link loss: unconfigured, with all ports off.
    pub fn restart(&mut self) {
        for (number, port) in (1..).zip(&mut self.ports) {
            if port.power_off() {
                self.effects.push_back(HubEffect::Down(number));
            }
        }
        (self.depth, self.is_configured, self.may_ask, self.is_halted) = (None, false, [false; 2], false);
    }

    /// Attaches a device to a port.
    pub fn plug(&mut self, now: Instant, port: u8, speed: HubPortSpeed) {
        self.at_port(port, |port| port.plug(now, speed_id(speed)));
    }

    /// Detaches the device from a port.
    pub fn unplug(&mut self, port: u8) {
        self.at_port(port, Port::unplug);
    }

    /// Returns the next action on the links below it.
    pub fn poll_effect(&mut self) -> Option<HubEffect> {
        self.effects.pop_front()
    }

    /// Returns when to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.ports.iter().filter_map(Port::due).min()
    }

    /// Handles the passing of time: port training and resets complete.
    pub fn handle_timeout(&mut self, now: Instant) {
        for number in 1..=self.shape.ports {
            self.at_port(number, |port| match port.due() {
                Some(at) if at <= now => port.handle_due(),
                _ => PortOutcome::default(),
            });
        }
    }

    /// Returns the status change bitmap: a bit for each port with an unacknowledged change. `None`
    /// if there is none.
    pub fn report(&self) -> Option<[u8; 2]> {
        let changed = |port: &Port| port.status().changes() != PortChanges::EMPTY;
        let numbers = (1..).zip(&self.ports).filter(|(_, port)| changed(port)).map(|(number, _)| number);
        let report = report_of(numbers);
        (self.is_configured && !self.is_halted && report != [0; 2]).then_some(report)
    }

    /// Answers a request of endpoint 0.
    pub fn handle_control(&mut self, now: Instant, setup: SetupPacket) -> Verdict {
        if self.is_stalled() {
            return Verdict::Stall;
        }
        let verdict = match setup.kind {
            RequestKind::Standard => self.standard(setup),
            RequestKind::Class => match HubRequest::decode(&setup) {
                // An unconfigured hub rejects class requests.
                Some(request) if self.is_configured => self.class(now, request),
                _ => None,
            },
            RequestKind::Vendor | RequestKind::Reserved => None,
        };
        match verdict {
            None => Verdict::Stall,
            Some(Verdict::Data(mut bytes)) => {
                bytes.truncate(setup.length.into());
                Verdict::Data(bytes)
            }
            Some(verdict) => verdict,
        }
    }

    fn standard(&mut self, setup: SetupPacket) -> Option<Verdict> {
        use StandardRequest as Request;
        match (setup.standard()?, setup.recipient) {
            (Request::GetDescriptor, Recipient::Device) => {
                let bytes = match setup.descriptor() {
                    (DescriptorKind::Device, 0) => descriptors::device(&self.shape),
                    (DescriptorKind::Configuration, 0) => descriptors::configuration(&self.shape),
                    (DescriptorKind::Bos, 0) if self.shape.kind == HubKind::SuperSpeed => {
                        descriptors::object_store()
                    }
                    _ => return None,
                };
                Some(Verdict::Data(bytes))
            }
            (Request::SetAddress | Request::SetIsochDelay | Request::SetSel, Recipient::Device) => {
                Some(Verdict::Done)
            }
            (Request::SetConfiguration, Recipient::Device) if setup.value <= 1 => {
                self.is_configured = setup.value == 1;
                Some(Verdict::Done)
            }
            (Request::GetConfiguration, Recipient::Device) => {
                Some(Verdict::Data(vec![u8::from(self.is_configured)]))
            }
            (Request::GetStatus, Recipient::Device) => {
                let [u1_enabled, u2_enabled] = self.may_ask;
                let status =
                    DeviceStatus { self_powered: true, u1_enabled, u2_enabled, ..Default::default() };
                Some(Verdict::Data(status.encode().to_vec()))
            }
            (Request::GetStatus, Recipient::Endpoint) if self.is_configured => {
                Some(Verdict::Data(vec![u8::from(self.is_halted), 0]))
            }
            (Request::SetInterface, Recipient::Interface) if self.is_configured => {
                let settings = 1 + u16::from(self.shape.translators == Some(Translators::Each));
                (setup.index == 0 && setup.value < settings).then_some(Verdict::Done)
            }
            (request @ (Request::SetFeature | Request::ClearFeature), recipient) => {
                self.feature(request == Request::SetFeature, recipient, setup)
            }
            _ => None,
        }
    }

    fn feature(&mut self, is_set: bool, recipient: Recipient, setup: SetupPacket) -> Option<Verdict> {
        match recipient {
            Recipient::Device if self.shape.kind == HubKind::SuperSpeed => {
                match DeviceFeature::from(setup.value) {
                    DeviceFeature::U1Enable => self.may_ask[0] = is_set,
                    DeviceFeature::U2Enable => self.may_ask[1] = is_set,
                    _ => return None,
                }
            }
            Recipient::Endpoint
                if self.is_configured
                    && EndpointFeature::from(setup.value) == EndpointFeature::Halt
                    && setup.endpoint().ok() == Some(STATUS_CHANGE) =>
            {
                self.is_halted = is_set;
            }
            _ => return None,
        }
        Some(Verdict::Done)
    }

    fn class(&mut self, now: Instant, request: HubRequest) -> Option<Verdict> {
        let own = match self.shape.kind {
            HubKind::Usb2 => DescriptorKind::Hub,
            HubKind::SuperSpeed => DescriptorKind::SuperSpeedHub,
        };
        match request {
            HubRequest::GetDescriptor { kind, .. } if kind == own => {
                Some(Verdict::Data(descriptors::hub(&self.shape)))
            }
            HubRequest::GetStatus => Some(Verdict::Data(vec![0; 4])),
            HubRequest::ClearFeature(HubFeature::LocalPowerChange | HubFeature::OverCurrentChange) => {
                Some(Verdict::Done)
            }
            HubRequest::SetDepth(depth) if self.shape.kind == HubKind::SuperSpeed && depth < TIERS_MAX => {
                self.set_depth(depth);
                Some(Verdict::Done)
            }
            HubRequest::GetPortStatus { port } => {
                let status = self.status(port)?;
                Some(Verdict::Data(status.encode(self.shape.kind).to_vec()))
            }
            HubRequest::SetPortFeature { port, feature, .. } => {
                let write = self.set(port, feature)?;
                self.at_port(port, |port| port.write(now, write));
                Some(Verdict::Done)
            }
            HubRequest::ClearPortFeature { port, feature } => {
                let write = self.clear(port, feature)?;
                self.at_port(port, |port| port.write(now, write));
                Some(Verdict::Done)
            }
            HubRequest::ClearTtBuffer { port, buffer } => {
                let translators = match self.shape.translators? {
                    Translators::One => 1,
                    Translators::Each => self.shape.ports,
                };
                (1..=translators).contains(&port).then(|| {
                    self.effects.push_back(HubEffect::ClearBuffer(buffer));
                    Verdict::Done
                })
            }
            HubRequest::GetDescriptor { .. } | HubRequest::ClearFeature(_) | HubRequest::SetDepth(_) => None,
        }
    }

    /// At a wrong depth it evaluates the wrong part of the route string, and finds no device.
    fn set_depth(&mut self, depth: u16) {
        let led = self.leads_on();
        self.depth = Some(depth);
        for (number, port) in (1..).zip(&self.ports) {
            match (led, self.leads_on()) {
                _ if !port.is_enabled() => {}
                (false, true) => self.effects.push_back(HubEffect::Up { port: number, is_reset: false }),
                (true, false) => self.effects.push_back(HubEffect::Down(number)),
                _ => {}
            }
        }
    }

    fn leads_on(&self) -> bool {
        self.shape.kind == HubKind::Usb2 || self.depth == Some(self.shape.tier)
    }

    /// Returns the port write that sets a feature. `None` if there is no such port or feature.
    fn set(&self, port: u8, feature: PortFeature) -> Option<PortWrite> {
        let none = self.no_write(port)?;
        Some(match (feature, self.shape.kind) {
            (PortFeature::Power, _) => PortWrite { powered: true, ..none },
            (PortFeature::Reset, _) => PortWrite { resets: true, ..none },
            (PortFeature::WarmReset, HubKind::SuperSpeed) => PortWrite { warm_resets: true, ..none },
            (PortFeature::U1Timeout | PortFeature::U2Timeout, HubKind::SuperSpeed) => none,
            _ => return None,
        })
    }

    /// The same to turn it off, or to note a change.
    fn clear(&self, port: u8, feature: PortFeature) -> Option<PortWrite> {
        let none = self.no_write(port)?;
        let noted = |acknowledged| PortWrite { acknowledged, ..none };
        Some(match (feature, self.shape.kind) {
            (PortFeature::Power, _) => PortWrite { powered: false, ..none },
            (PortFeature::Enable, HubKind::Usb2) => PortWrite { disables: true, ..none },
            (PortFeature::ConnectionChange, _) => noted(PortChanges::CONNECT),
            (PortFeature::EnableChange, HubKind::Usb2) => noted(PortChanges::ENABLE),
            (PortFeature::OverCurrentChange, _) => noted(PortChanges::OVER_CURRENT),
            (PortFeature::ResetChange, _) => noted(PortChanges::RESET),
            (PortFeature::WarmResetChange, HubKind::SuperSpeed) => noted(PortChanges::WARM_RESET),
            (PortFeature::LinkStateChange, HubKind::SuperSpeed) => noted(PortChanges::LINK),
            (PortFeature::ConfigErrorChange, HubKind::SuperSpeed) => noted(PortChanges::CONFIG_ERROR),
            _ => return None,
        })
    }

    /// Returns a port write without effect.
    fn no_write(&self, port: u8) -> Option<PortWrite> {
        let powered = self.port(port)?.status().is_powered();
        let acknowledged = PortChanges::EMPTY;
        Some(PortWrite { disables: false, resets: false, warm_resets: false, powered, acknowledged })
    }

    fn port(&self, number: u8) -> Option<&Port> {
        self.ports.get(usize::from(number).checked_sub(1)?)
    }

    /// Changes a port and reports the effect on its link.
    fn at_port(&mut self, number: u8, act: impl FnOnce(&mut Port) -> PortOutcome) {
        let leads_on = self.leads_on();
        let port = usize::from(number).checked_sub(1).and_then(|at| self.ports.get_mut(at));
        let Some(PortOutcome { up, reset, lost, .. }) = port.map(act) else { return };
        if lost {
            self.effects.push_back(HubEffect::Down(number));
        }
        if up && leads_on {
            self.effects.push_back(HubEffect::Up { port: number, is_reset: reset });
        }
    }

    fn status(&self, port: u8) -> Option<HubPortStatus> {
        let status = self.port(port)?.status();
        let changes = CHANGES.iter().filter(|(of_root, _)| status.changes().has(*of_root));
        Some(HubPortStatus {
            connected: status.is_connected(),
            enabled: status.is_enabled(),
            over_current: status.is_over_current(),
            resetting: status.is_resetting(),
            powered: status.is_powered(),
            link_state: if status.is_powered() { status.link_state() } else { LinkState::Disabled },
            speed: match (self.shape.kind, status.speed_id()) {
                (HubKind::SuperSpeed, _) => HubPortSpeed::Super,
                (HubKind::Usb2, 3) => HubPortSpeed::High,
                (HubKind::Usb2, 2) => HubPortSpeed::Low,
                (HubKind::Usb2, _) => HubPortSpeed::Full,
            },
            changes: changes.fold(HubPortChanges::EMPTY, |all, (_, change)| all.with(*change)),
        })
    }
}

/// Maximum hubs in a route.
const TIERS_MAX: u16 = 5;

/// The changes of a root port, and those of a port of a hub.
const CHANGES: [(PortChanges, HubPortChanges); 7] = [
    (PortChanges::CONNECT, HubPortChanges::CONNECTION),
    (PortChanges::ENABLE, HubPortChanges::ENABLE),
    (PortChanges::OVER_CURRENT, HubPortChanges::OVER_CURRENT),
    (PortChanges::RESET, HubPortChanges::RESET),
    (PortChanges::WARM_RESET, HubPortChanges::WARM_RESET),
    (PortChanges::LINK, HubPortChanges::LINK_STATE),
    (PortChanges::CONFIG_ERROR, HubPortChanges::CONFIG_ERROR),
];

const fn speed_id(speed: HubPortSpeed) -> u8 {
    match speed {
        HubPortSpeed::Full => 1,
        HubPortSpeed::Low => 2,
        HubPortSpeed::High => 3,
        HubPortSpeed::Super => 4,
    }
}
