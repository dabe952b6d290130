//! The root ports of a controller.

use super::model::Model;
use super::port::{Port, PortOutcome};
use alloc::vec::Vec;
use units::Instant;
use wire::xhci::{PortPower, PortStatus};

/// All root ports, counted from 1.
#[derive(Clone, Debug)]
pub(super) struct Ports {
    all: Vec<Port>,
    /// The earliest timeout of a port.
    due: Option<Instant>,
}

impl Ports {
    /// Creates the empty ports of a controller.
    pub(super) fn new(model: &Model) -> Self {
        let all = (1..=model.ports()).map(|port| Port::new(model.is_usb3(port))).collect();
        Self { all, due: None }
    }

    /// Returns the earliest timeout.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns the numbers of the ports that time out until `now`.
    pub(super) fn due_by(&self, now: Instant) -> Vec<u8> {
        let is_due = |port: &Port| port.due().is_some_and(|at| at <= now);
        (1..).zip(&self.all).filter(|(_, port)| is_due(port)).map(|(number, _)| number).collect()
    }

    /// Changes a port, if it exists.
    pub(super) fn change(
        &mut self,
        number: u8,
        change: impl FnOnce(&mut Port) -> PortOutcome,
    ) -> Option<PortOutcome> {
        let outcome = change(self.all.get_mut(usize::from(number).checked_sub(1)?)?);
        self.set_due();
        Some(outcome)
    }

    /// Restarts all ports after a reset of the controller, from `at` on. Returns whether a device is connected: a port of USB 2.0
    /// notices at once who is there.
    pub(super) fn restart(&mut self, at: Instant) -> bool {
        self.all.iter_mut().for_each(|port| port.restart(at));
        self.set_due();
        self.all.iter().any(|port| port.status().is_connected())
    }

    /// Returns the status of a port, if it exists.
    pub(super) fn status(&self, number: u8) -> Option<PortStatus> {
        self.get(number).map(Port::status)
    }

    /// Returns when the link of a port sleeps, if it can.
    pub(super) fn power(&self, number: u8) -> Option<PortPower> {
        self.get(number).and_then(Port::power)
    }

    /// Sets when the link of a port sleeps. Returns whether it can.
    pub(super) fn set_power(&mut self, number: u8, power: PortPower) -> bool {
        let place = usize::from(number).checked_sub(1);
        let port = place.and_then(|place| self.all.get_mut(place));
        port.is_some_and(|port| port.set_power(power))
    }

    fn get(&self, number: u8) -> Option<&Port> {
        self.all.get(usize::from(number).checked_sub(1)?)
    }

    fn set_due(&mut self) {
        self.due = self.all.iter().filter_map(Port::due).min();
    }
}
