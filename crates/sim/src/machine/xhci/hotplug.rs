//! Hot plug: detaching, reattaching and hub resets, with everything behind a hub.
//!
//! At a root port the controller detects it and notifies its driver. At a hub port the hub reports
//! it on its status change endpoint (USB 3.2 clause 10.13), and the hub driver reads the port
//! status. Missing devices are detached, so that all their transfers complete; returning devices
//! are addressed, enumerated and get a new transport, while the old one stays disconnected. The
//! same applies behind a hub that was reset, since it loses its ports.
//!
//! Left out: shared power. Invariant: each command in flight with a missing device completes.

use super::control_sequence::{HubAction, SequenceStep, StepResult};
use super::power_on::{hub_port_speed, speed_id};
use super::setup::PortPath;
use super::{PowerOnError, XhciMachine};
use crate::machine::Simulation;
use std::fmt;
use wire::xhci::RouteString;
use xhci_driver::{Answer, Request};

/// Why a hot-plug action failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotPlugError {
    /// Nothing is there.
    NothingThere(PortPath),
    /// The device there is not a hub.
    NoHub(PortPath),
    /// A device did not come back.
    PowerOn(PowerOnError),
}

impl XhciMachine {
    /// Detaches the device at a port with everything behind it. Commands in flight complete.
    ///
    /// # Errors
    /// If nothing was ever there.
    pub fn unplug_at(&mut self, spot: PortPath) -> Result<(), HotPlugError> {
        let number = self.at_spot(spot).ok_or(HotPlugError::NothingThere(spot))?;
        self.devices[number].is_plugged = false;
        match self.above(number) {
            None => {
                let port = self.devices[number].way.port;
                self.system.controller.unplug(self.now(), port);
            }
            Some((hub, port)) => self.at_hub(hub, |device| device.unplug(port)),
        }
        self.settle();
        let below = self.below(number);
        self.wait_for(|machine| below.iter().all(|&number| machine.devices[number].device.is_none()))
            .map_err(HotPlugError::PowerOn)?;
        for number in below {
            self.devices[number].location = None;
            self.reset_drive(number);
        }
        Ok(())
    }

    /// Reattaches a device with everything behind it. Its drives get new transports without
    /// commands in flight.
    ///
    /// # Errors
    /// If nothing was ever there, or it does not power on.
    pub fn plug_again(&mut self, spot: PortPath) -> Result<(), HotPlugError> {
        let number = self.at_spot(spot).ok_or(HotPlugError::NothingThere(spot))?;
        self.devices[number].is_plugged = true;
        match self.above(number) {
            None => {
                let root = self.devices[number].end.root;
                self.system.controller.plug(
                    self.now(),
                    self.root_ports[root].port,
                    speed_id(self.devices[number].speed),
                );
                self.settle();
                self.enable(root).map_err(HotPlugError::PowerOn)?;
            }
            Some((hub, port)) => {
                let (now, speed) = (self.now(), self.devices[number].speed);
                self.at_hub(hub, |device| device.plug(now, port, hub_port_speed(speed)));
                self.settle();
            }
        }
        self.bring_up_below(number)
    }

    /// Resets the port of a hub: everything behind it is detached and comes back.
    ///
    /// # Errors
    /// If no hub is there, or a device does not come back.
    pub fn reset_hub(&mut self, spot: PortPath) -> Result<(), HotPlugError> {
        let number = self.at_spot(spot).ok_or(HotPlugError::NothingThere(spot))?;
        if number < self.drives.len() {
            return Err(HotPlugError::NoHub(spot));
        }
        if spot.route == RouteString::ROOT {
            let port = self.devices[number].way.port;
            self.order(number, SequenceStep::Driver(Request::ResetPort { port }))?;
            let root = self.devices[number].end.root;
            self.wait_for(|machine| machine.root_ports[root].is_ready).map_err(HotPlugError::PowerOn)?;
        } else {
            self.order(number, SequenceStep::HubAbove(HubAction::ResetPort))?;
        }
        self.detach_below(number)?;
        self.bring_up_below(number)
    }

    /// Returns the device that was described at a port.
    fn at_spot(&self, spot: PortPath) -> Option<usize> {
        let port = self.ports_before + spot.root;
        let is_there = |number: &usize| self.devices[*number].way.route == spot.route;
        self.root_ports[self.root_at(port)?].devices.iter().copied().find(is_there)
    }

    /// Applies an external event to a hub.
    fn at_hub(&mut self, number: usize, act: impl FnOnce(&mut crate::hub::HubDevice)) {
        if let Some(hub) = self.hub(number) {
            act(&mut hub.device);
            self.system.ready.hubs.add(number);
        }
    }

    /// Detaches all devices from here on; their hubs forget their locations.
    fn detach_below(&mut self, number: usize) -> Result<(), HotPlugError> {
        // In a sequence of the root hub, since one of the device itself may never complete.
        let first = self.root_ports[self.devices[number].end.root].first;
        for below in self.below(number) {
            if below != number {
                self.devices[below].location = None;
            }
            if let Some(device) = self.devices[below].device {
                self.order(first, SequenceStep::Driver(Request::Detach(device)))?;
                self.lose(self.now(), below);
                self.settle();
            }
        }
        Ok(())
    }

    /// Enumerates all plugged-in devices from here on.
    fn bring_up_below(&mut self, number: usize) -> Result<(), HotPlugError> {
        for below in self.below(number) {
            if !self.is_reachable(below) {
                continue;
            }
            if let Some(attached) = self.drives.get_mut(below) {
                attached.forget_all();
            }
            self.devices[below].endpoints.clear();
            self.bring_up_here(below).map_err(HotPlugError::PowerOn)?;
        }
        Ok(())
    }

    /// Returns whether it and all hubs above it are plugged in.
    fn is_reachable(&self, number: usize) -> bool {
        let is_plugged = self.devices[number].is_plugged;
        is_plugged && self.above(number).is_none_or(|(hub, _)| self.is_reachable(hub))
    }

    /// Runs a step for a device and waits for it.
    fn order(&mut self, number: usize, step: SequenceStep) -> Result<(), HotPlugError> {
        match self.ask(number, step).map_err(HotPlugError::PowerOn)? {
            StepResult::Answer(Answer::Done | Answer::Port(_)) => Ok(()),
            _ => Err(HotPlugError::PowerOn(PowerOnError::Controller)),
        }
    }
}

impl fmt::Display for HotPlugError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingThere(spot) => write!(f, "{spot}: no device"),
            Self::NoHub(spot) => write!(f, "{spot}: not a hub"),
            Self::PowerOn(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HotPlugError {}
