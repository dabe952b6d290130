//! Link power management at root ports: timeouts from exit latencies, as in Linux.
//!
//! ```text
//!   controller: HCSPARAMS3 ─┐                                 ┌─► PORTPMSC: when the port asks for U1 and U2
//!                           ├─► system exit latency, time-outs ┼─► SET_SEL, U1_ENABLE, U2_ENABLE: what the device may ask for
//!   device: BOS ────────────┘                                 └─► Evaluate Context: Max Exit Latency
//! ```
//!
//! The U1 timeout is five times the system exit latency, the U2 timeout 10 ms or the U2 exit
//! latency if longer, as Linux does for bulk endpoints behind Intel and VIA controllers. After a
//! port reset the device is set up again. Left out: links below hubs, which stay in U0, and suspend
//! (U3).
//!
//! Invariant: a link enters U1 or U2 only after its port was configured for it.

use super::control_sequence::SequenceStep;
use super::root_port::Wires;
use super::{PowerOnError, XhciMachine};
use crate::link::superspeed::{ExitLatency, Inactivity, Side, Sleep};
use units::Duration;
use wire::usb::{
    Descriptor, Descriptors, DeviceCapability, DeviceFeature, ExitLatencies, Recipient, SetupPacket,
    StandardRequest,
};
use wire::xhci::{PortPower, RouteString};
use xhci_driver::{DeviceId, Request};

/// U1 timeout in multiples of the exit latency.
const U1_LATENCIES: u64 = 5;
/// Minimum U2 timeout.
const U2_AFTER: Duration = Duration::from_ms(10);

/// Settings of device, controller and port for link power management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SleepPlan {
    latencies: ExitLatencies,
    power: PortPower,
    exit_latency_us: u16,
}

impl SleepPlan {
    /// Derives the settings for a link. Without hubs in between, the slower end decides in both
    /// directions.
    fn new(host: ExitLatency, device: ExitLatency) -> Self {
        let (u1_us, u2_us) = (host.u1_us().max(device.u1_us()), host.u2_us().max(device.u2_us()));
        let u1 = Duration::from_us(U1_LATENCIES * u64::from(u1_us));
        let u2 = U2_AFTER.max(Duration::from_us(u2_us.into()));
        Self {
            latencies: ExitLatencies {
                u1_system_us: u1_us,
                u1_device_us: u1_us,
                u2_system_us: u2_us,
                u2_device_us: u2_us,
            },
            power: PortPower {
                u1_timeout: Inactivity::After(u1).u1_timeout(),
                u2_timeout: Inactivity::After(u2).u2_timeout(),
                forces_accept: false,
            },
            exit_latency_us: u2_us.max(u1_us.into()),
        }
    }

    /// Returns the steps in order: the device gets the latencies before it may request U1 or U2.
    pub(super) fn steps(&self, port: u8, device: DeviceId) -> [SequenceStep; 5] {
        let request = |request| SetupPacket::of_standard(Recipient::Device, request, 0);
        let set_sel = SetupPacket { length: ExitLatencies::LEN as u16, ..request(StandardRequest::SetSel) };
        let enable = |feature: DeviceFeature| {
            SequenceStep::Control(SetupPacket {
                value: feature.into(),
                ..request(StandardRequest::SetFeature)
            })
        };
        [
            SequenceStep::ControlOut(set_sel, self.latencies.encode().to_vec()),
            SequenceStep::Driver(Request::SetExitLatency(device, self.exit_latency_us)),
            SequenceStep::Driver(Request::SetLinkPower { port, power: self.power }),
            enable(DeviceFeature::U1Enable),
            enable(DeviceFeature::U2Enable),
        ]
    }
}

impl super::Setup {
    /// Returns the initial link power management: disabled.
    pub(super) fn asleep(&self) -> Option<Sleep> {
        let Sleep { exit: [_, device], .. } = self.sleep?;
        let (u1, u2) = (Inactivity::Refused, Inactivity::Refused);
        self.sleep.map(|sleep| Sleep { u1, u2, exit: [self.host.part.exit, device], ..sleep })
    }
}

impl XhciMachine {
    /// Sets the exit latency from a device's BOS descriptor.
    pub(super) fn set_exit_latency(&mut self, number: usize, bos: &[u8]) {
        let latencies_us = Descriptors::new(bos).find_map(|descriptor| match descriptor {
            Ok(Descriptor::Capability(DeviceCapability::SuperSpeed(latencies_us))) => Some(latencies_us),
            _ => None,
        });
        let is_at_root = self.devices[number].way.route == RouteString::ROOT;
        let Some(latencies_us) = latencies_us.filter(|_| self.sleeps && is_at_root) else { return };
        let device = ExitLatency::reported(latencies_us.u1_exit_latency_us, latencies_us.u2_exit_latency_us);
        let Some(found) = self.system.driver.capabilities() else { return };
        let host =
            ExitLatency::reported(found.registers.u1_exit_latency_us, found.registers.u2_exit_latency_us);
        self.devices[number].sleep = Some(SleepPlan::new(host, device));
        let now = self.engine.now();
        if let Wires::Direct(link_pair) = &mut self.root_ports[self.devices[number].end.root].wires {
            link_pair.set_exit(now, Side::Device, device);
        }
    }

    /// Enables link power management for a configured device.
    pub(super) fn let_link_sleep(&mut self, number: usize) -> Result<(), PowerOnError> {
        let host_device = &self.devices[number];
        let Some((plan, device)) = host_device.sleep.zip(host_device.device) else { return Ok(()) };
        let steps = plan.steps(host_device.way.port, device);
        self.succeed(number, steps.into_iter())
    }

    /// Applies the port power settings of the controller to a link.
    pub(super) fn set_link_power(&mut self, root: usize, power: PortPower) {
        let now = self.engine.now();
        let PortPower { u1_timeout, u2_timeout, .. } = power;
        // Reserved values disable it.
        let u1 = Inactivity::from_u1_timeout(u1_timeout).unwrap_or_default();
        if let Wires::Direct(link_pair) = &mut self.root_ports[root].wires {
            link_pair.set_inactivity(now, [u1, Inactivity::from_u2_timeout(u2_timeout)]);
        }
    }

    /// Tracks device requests that enable or disable U1 and U2.
    pub(super) fn track_sleep_request(&mut self, number: usize, setup: SetupPacket) {
        let now = self.engine.now();
        if let Wires::Direct(link_pair) = &mut self.root_ports[self.devices[number].end.root].wires
            && self.sleeps
        {
            link_pair.apply_feature(now, setup);
        }
    }

    /// Reports whether a device is busy: a busy device keeps its link in U0.
    #[inline]
    pub(super) fn note_work(&mut self, number: usize) {
        if !self.sleeps {
            return;
        }
        let (now, is_busy) = (self.engine.now(), self.drives[number].drive.is_busy());
        if let Wires::Direct(link_pair) = &mut self.root_ports[self.devices[number].end.root].wires {
            link_pair.work(now, is_busy);
        }
    }

    /// Restarts link power management after a reset or a replaced device.
    pub(super) fn restart_link_power(&mut self, root: usize) {
        let now = self.engine.now();
        if let Wires::Direct(link_pair) = &mut self.root_ports[root].wires {
            link_pair.force_awake(now);
        }
    }
}
