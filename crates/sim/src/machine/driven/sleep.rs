//! Links at root ports that sleep: what the driver makes of exit latencies, as Linux does, and who hears of it.
//!
//! ```text
//!   controller: HCSPARAMS3 ─┐                                 ┌─► PORTPMSC: when the port asks for U1 and U2
//!                           ├─► system exit latency, time-outs ┼─► SET_SEL, U1_ENABLE, U2_ENABLE: what the device may ask for
//!   device: BOS ────────────┘                                 └─► Evaluate Context: Max Exit Latency
//! ```
//!
//! U1 is asked for after five times the system exit latency, U2 after 10 ms or its exit latency if that is longer, as Linux has it for bulk
//! endpoints behind controllers of Intel and VIA. After a reset of its port the device is told again. Left out: links among
//! hubs, which stay awake, and suspend (U3).
//!
//! Always true: a link sleeps only after its port was told to let it.

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

/// U1 after so many times what the way takes to wake up.
const U1_LATENCIES: u64 = 5;
/// U2 after this at least.
const U2_AFTER: Duration = Duration::from_ms(10);

/// What device, controller and port are told so that a link may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SleepPlan {
    latencies: ExitLatencies,
    power: PortPower,
    exit_latency_us: u16,
}

impl SleepPlan {
    /// For a link whose ends take so long. With no hub in between the slower end is all that counts, both ways.
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

    /// What is to be done for it, in order: the device knows what sleep costs before it may ask for any.
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
    /// How links sleep that nobody has been told of yet: not at all.
    pub(super) fn asleep(&self) -> Option<Sleep> {
        let Sleep { exit: [_, device], .. } = self.sleep?;
        let (u1, u2) = (Inactivity::Refused, Inactivity::Refused);
        self.sleep.map(|sleep| Sleep { u1, u2, exit: [self.host.part.exit, device], ..sleep })
    }
}

impl XhciMachine {
    /// A device has said what it takes to wake its link up.
    pub(super) fn set_exit_latency(&mut self, number: usize, bos: &[u8]) {
        let told = Descriptors::new(bos).find_map(|descriptor| match descriptor {
            Ok(Descriptor::Capability(DeviceCapability::SuperSpeed(told))) => Some(told),
            _ => None,
        });
        let is_at_root = self.devices[number].way.route == RouteString::ROOT;
        let Some(told) = told.filter(|_| self.sleeps && is_at_root) else { return };
        let device = ExitLatency::reported(told.u1_exit_latency_us, told.u2_exit_latency_us);
        let Some(found) = self.system.driver.capabilities() else { return };
        let host =
            ExitLatency::reported(found.registers.u1_exit_latency_us, found.registers.u2_exit_latency_us);
        self.devices[number].sleep = Some(SleepPlan::new(host, device));
        let now = self.engine.now();
        if let Wires::Direct(link_pair) = &mut self.root_ports[self.devices[number].end.root].wires {
            link_pair.set_exit(now, Side::Device, device);
        }
    }

    /// The link of a device that is configured may sleep from now on.
    pub(super) fn let_link_sleep(&mut self, number: usize) -> Result<(), PowerOnError> {
        let host_device = &self.devices[number];
        let Some((plan, device)) = host_device.sleep.zip(host_device.device) else { return Ok(()) };
        let steps = plan.steps(host_device.way.port, device);
        self.succeed(number, steps.into_iter())
    }

    /// The controller lets a link go to sleep otherwise.
    pub(super) fn set_link_power(&mut self, root: usize, power: PortPower) {
        let now = self.engine.now();
        let PortPower { u1_timeout, u2_timeout, .. } = power;
        // What is reserved asks for nothing.
        let u1 = Inactivity::from_u1_timeout(u1_timeout).unwrap_or_default();
        if let Wires::Direct(link_pair) = &mut self.root_ports[root].wires {
            link_pair.set_inactivity(now, [u1, Inactivity::from_u2_timeout(u2_timeout)]);
        }
    }

    /// A device has carried a request out, by which it may ask for U1 or U2 from now on, or not any more.
    pub(super) fn track_sleep_request(&mut self, number: usize, setup: SetupPacket) {
        let now = self.engine.now();
        if let Wires::Direct(link_pair) = &mut self.root_ports[self.devices[number].end.root].wires
            && self.sleeps
        {
            link_pair.apply_feature(now, setup);
        }
    }

    /// A device works on something, or has done it: until then it wants its link to stay awake.
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

    /// The device at a root port was reset, or is another one.
    pub(super) fn restart_link_power(&mut self, root: usize) {
        let now = self.engine.now();
        if let Wires::Direct(link_pair) = &mut self.root_ports[root].wires {
            link_pair.force_awake(now);
        }
    }
}
