//! The steps of a hub's driver: what each asks for, and what is learned of its answer.
//!
//! Always true: nothing that a descriptor says is trusted beyond its kind: ports are 15 at most,
//! lengths are bounded.

use super::Hub;
use crate::types::{EndpointPlan, HubShape, Request};
use alloc::vec::Vec;
use units::{Duration, Instant};
use wire::usb::hub::{HubDescriptor, HubKind, HubRequest, PortFeature, SuperSpeedHubDescriptor, TtBuffer};
use wire::usb::{
    ClassCode, ConfigurationDescriptor, Descriptor, DescriptorKind, Descriptors, DeviceDescriptor, Direction,
    InterfaceDescriptor, Recipient, SetupPacket, StandardRequest, TransferType,
};

use super::types::{HubOutput, Port};

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HubStep {
    /// The device descriptor.
    Device,
    /// The length of the configuration, and then all of it.
    Configuration { length: u16, has_translators: bool },
    /// The status change endpoint, at the controller.
    Endpoint(EndpointPlan),
    /// SET_CONFIGURATION.
    Configure(u8),
    /// SET_INTERFACE: a translator for each port.
    Alternate(u8, u8),
    /// SET_HUB_DEPTH.
    Depth,
    /// The hub descriptor.
    Descriptor,
    /// The controller is reported that it is a hub.
    Describe,
    /// SET_FEATURE (PORT_POWER). The last one says when power is good, in units of 2 ms.
    Power { port: u8, good_2ms: Option<u8> },
    /// GET_STATUS of a port.
    Look(u8),
    /// CLEAR_FEATURE of a change.
    Note(u8, PortFeature),
    /// SET_FEATURE of a port.
    Set(u8, PortFeature),
    /// CLEAR_TT_BUFFER of a port's translator.
    ClearBuffer(u8, TtBuffer),
}

/// The status change endpoint, and which alternate setting has it.
struct Found {
    interface: InterfaceDescriptor,
    plan: EndpointPlan,
}

/// Ports that a route has names for.
const PORTS_MAX: u8 = 15;
/// Bytes of a configuration at most.
const CONFIGURATION_MAX: u16 = 512;

impl Hub {
    /// Returns the request of a step.
    pub(super) fn output_of(&self, step: &HubStep) -> HubOutput {
        let device = self.place.device;
        let hub = |request: HubRequest| HubOutput::Control(request.setup());
        let read = |kind, length| HubOutput::Control(SetupPacket::get_descriptor(kind, 0, length));
        let set = |recipient, request, value: u8| SetupPacket::of_standard(recipient, request, value.into());
        match *step {
            HubStep::Device => read(DescriptorKind::Device, DeviceDescriptor::LEN as u16),
            HubStep::Configuration { length, .. } => read(DescriptorKind::Configuration, length),
            HubStep::Endpoint(plan) => {
                HubOutput::Request(Request::Configure { device, add: Vec::from([plan]), drop: Vec::new() })
            }
            HubStep::Configure(value) => {
                HubOutput::Control(set(Recipient::Device, StandardRequest::SetConfiguration, value))
            }
            HubStep::Alternate(interface, alternate) => HubOutput::Control(SetupPacket {
                index: interface.into(),
                ..set(Recipient::Interface, StandardRequest::SetInterface, alternate)
            }),
            HubStep::Depth => hub(HubRequest::SetDepth(self.place.location.route.tiers() as u16)),
            HubStep::Descriptor => {
                let (kind, length) = match self.kind {
                    HubKind::Usb2 => (DescriptorKind::Hub, HubDescriptor::LEN_MAX),
                    HubKind::SuperSpeed => (DescriptorKind::SuperSpeedHub, SuperSpeedHubDescriptor::LEN),
                };
                hub(HubRequest::GetDescriptor { kind, length: length as u16 })
            }
            HubStep::Describe => {
                let none = HubShape { ports: 0, think_time: 0, multiple_translators: false };
                HubOutput::Request(Request::DescribeHub(device, self.shape.unwrap_or(none)))
            }
            HubStep::Power { port, .. } => {
                hub(HubRequest::SetPortFeature { port, feature: PortFeature::Power, selector: 0 })
            }
            HubStep::Look(port) => hub(HubRequest::GetPortStatus { port }),
            HubStep::Note(port, feature) => hub(HubRequest::ClearPortFeature { port, feature }),
            HubStep::Set(port, feature) => hub(HubRequest::SetPortFeature { port, feature, selector: 0 }),
            HubStep::ClearBuffer(port, buffer) => {
                // One for all ports is the first one's (clause 11.24.2.3).
                let has_each = self.shape.is_some_and(|shape| shape.multiple_translators);
                hub(HubRequest::ClearTtBuffer { port: if has_each { port } else { 1 }, buffer })
            }
        }
    }

    /// Handles the result of a step of the set-up.
    pub(super) fn learn(&mut self, now: Instant, step: HubStep, bytes: &[u8]) {
        let learned = match step {
            HubStep::Device => self.learn_device(bytes),
            HubStep::Configuration { length: HEAD, has_translators } => {
                ConfigurationDescriptor::decode(bytes).ok().map(|head| {
                    let length = head.total_len.clamp(HEAD + 1, CONFIGURATION_MAX);
                    self.steps.push_back(HubStep::Configuration { length, has_translators });
                })
            }
            HubStep::Configuration { has_translators, .. } => {
                self.learn_configuration(bytes, has_translators)
            }
            HubStep::Descriptor => self.learn_hub(bytes),
            HubStep::Power { good_2ms, .. } => {
                self.power_good_at = good_2ms.map(|good| now + Duration::from_ms(2 * u64::from(good)));
                Some(())
            }
            _ => Some(()),
        };
        if learned.is_none() {
            self.fail();
        }
    }

    fn learn_device(&mut self, bytes: &[u8]) -> Option<()> {
        let class = DeviceDescriptor::decode(bytes).ok()?.class;
        let has_translators = class == ClassCode::HUB_TRANSLATORS;
        self.steps.push_back(HubStep::Configuration { length: HEAD, has_translators });
        (class.class == ClassCode::HUB.class).then_some(())
    }

    fn learn_configuration(&mut self, bytes: &[u8], has_translators: bool) -> Option<()> {
        let value = ConfigurationDescriptor::decode(bytes).ok()?.value;
        let all = status_change_endpoints(bytes);
        // A hub with a translator for each port has a setting with one for all before that.
        let found = if has_translators { all.last() } else { all.first() }?;
        let InterfaceDescriptor { number, alternate, .. } = found.interface;
        let descriptor = found.plan.descriptor;
        self.endpoint = Some((descriptor.address, descriptor.packet_len().clamp(1, 2)));
        self.shape = Some(HubShape {
            ports: 0,
            think_time: 0,
            multiple_translators: has_translators && alternate > 0,
        });
        // The controller before the device (xHCI 1.2 clause 4.6.6).
        self.steps.extend([HubStep::Endpoint(found.plan), HubStep::Configure(value)]);
        if alternate > 0 {
            self.steps.push_back(HubStep::Alternate(number, alternate));
        }
        if self.kind == HubKind::SuperSpeed {
            self.steps.push_back(HubStep::Depth);
        }
        self.steps.push_back(HubStep::Descriptor);
        Some(())
    }

    fn learn_hub(&mut self, bytes: &[u8]) -> Option<()> {
        let (ports, think_time, good_2ms) = match self.kind {
            HubKind::Usb2 => {
                let hub = HubDescriptor::decode(bytes).ok()?;
                (hub.ports, hub.think_time(), hub.power_good_2ms)
            }
            HubKind::SuperSpeed => {
                let hub = SuperSpeedHubDescriptor::decode(bytes).ok()?;
                (hub.ports, 0, hub.power_good_2ms)
            }
        };
        if ports == 0 || ports > PORTS_MAX {
            return None;
        }
        let shape = self.shape.as_mut()?;
        (shape.ports, shape.think_time) = (ports, think_time);
        self.ports = (0..ports).map(|_| Port::Empty).collect();
        self.steps.push_back(HubStep::Describe);
        let power = |port| HubStep::Power { port, good_2ms: (port == ports).then_some(good_2ms) };
        self.steps.extend((1..=ports).map(power));
        Some(())
    }
}

/// Bytes of the head of a configuration.
const HEAD: u16 = ConfigurationDescriptor::LEN as u16;

/// The interrupt endpoints of the interfaces of a hub, setting by setting.
fn status_change_endpoints(bytes: &[u8]) -> Vec<Found> {
    let (mut found, mut interface) = (Vec::<Found>::new(), None);
    for descriptor in Descriptors::new(bytes).flatten() {
        match descriptor {
            Descriptor::Interface(setting) => {
                interface = Some(setting).filter(|setting| setting.class.class == ClassCode::HUB.class);
            }
            Descriptor::Endpoint(descriptor) => {
                let is_it = descriptor.attributes.transfer_type() == TransferType::Interrupt
                    && descriptor.address.direction() == Direction::In
                    && descriptor.address.number() > 0;
                if let Some(interface) = interface.take().filter(|_| is_it) {
                    found.push(Found { interface, plan: EndpointPlan { descriptor, companion: None } });
                }
            }
            Descriptor::Companion(companion) => {
                if let Some(last) = found.last_mut() {
                    last.plan.companion.get_or_insert(companion);
                }
            }
            _ => {}
        }
    }
    found
}
