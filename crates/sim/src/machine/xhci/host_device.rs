//! A device as the host addresses it: its route, its id at the driver, endpoint 0 and its
//! descriptors.

use super::control_sequence::{ControlSequences, SequenceStep};
use super::root_port::End;
use super::sleep::SleepPlan;
use bus::{EndpointAddress, Speed};
use quirks::configuration::{Configuration, Endpoint, Setting};
use std::collections::VecDeque;
use xhci_controller::{ControlRequest, DevicePath};
use xhci_driver::{DeviceId, EndpointPlan, Location, Request, RequestId};

#[derive(Debug)]
pub(super) struct HostDevice {
    /// Number among all devices; drives come first.
    number: usize,
    /// Speed of its link.
    pub(super) speed: Speed,
    /// Whether a transaction translator of its hub serves it.
    pub(super) is_translated: bool,
    pub(super) way: DevicePath,
    /// Its port.
    pub(super) end: End,
    pub(super) device: Option<DeviceId>,
    /// Location reported by the hub above.
    pub(super) location: Option<Location>,
    /// Whether its link behind a hub was ever up.
    pub(super) was_up: bool,
    /// Whether it is plugged in.
    pub(super) is_plugged: bool,
    pub(super) sequences: ControlSequences,
    pub(super) control: Control,
    /// Its configuration descriptor.
    pub(super) configuration: Option<Configuration>,
    /// Link power management, if enabled.
    pub(super) sleep: Option<SleepPlan>,
    /// Endpoints known to the driver, besides endpoint 0.
    pub(super) endpoints: Vec<EndpointAddress>,
}

/// Control transfers; the first is in flight.
#[derive(Debug, Default)]
pub(super) struct Control {
    pub(super) requests: VecDeque<ControlRequest>,
    /// The device's data-in, and what of it has arrived.
    pub(super) reply: Vec<u8>,
    pub(super) data_in: Vec<u8>,
}

impl HostDevice {
    pub(super) fn new(number: usize, speed: Speed, way: DevicePath, end: End) -> Self {
        Self {
            number,
            speed,
            is_translated: false,
            way,
            end,
            device: None,
            location: None,
            was_up: false,
            is_plugged: true,
            sequences: ControlSequences::default(),
            control: Control::default(),
            configuration: None,
            sleep: None,
            endpoints: Vec::new(),
        }
    }

    pub(super) const fn number(&self) -> usize {
        self.number
    }

    /// Returns the id of requests to the driver for this device: one at a time.
    pub(super) const fn driver_request(&self) -> RequestId {
        RequestId(self.number as u32)
    }

    /// Returns the step that replaces the endpoints by those of an alternate setting.
    pub(super) fn configure(&self, alternate: u8) -> Option<SequenceStep> {
        let (device, add) = (self.device?, self.plans(alternate));
        Some(SequenceStep::Driver(Request::Configure { device, add, drop: self.endpoints.clone() }))
    }

    pub(super) fn plans(&self, alternate: u8) -> Vec<EndpointPlan> {
        let endpoints = self.setting(alternate).into_iter().flat_map(|setting| &setting.endpoints);
        let plan = |endpoint: &Endpoint| EndpointPlan {
            descriptor: endpoint.descriptor,
            companion: endpoint.companion,
        };
        endpoints.map(plan).collect()
    }

    fn setting(&self, alternate: u8) -> Option<&Setting> {
        let settings = &self.configuration.as_ref()?.settings;
        settings.iter().find(|setting| setting.interface.alternate == alternate)
    }
}
