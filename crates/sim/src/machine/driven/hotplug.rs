//! Things that are pulled out, plugged in again, and hubs that are reset, with all that is behind them.
//!
//! At a root port the controller notices, and its driver is told. At the port of a hub the hub notices, and tells the host by
//! its status change endpoint (USB 3.2 clause 10.13), whose driver asks the port what it is. What a host does then is done
//! by the driver: devices that are gone are detached, so that all their transfers end, and devices that are there again get
//! an address, are asked who they are, and get a transport of their own; the one from before is disconnected for good. So it
//! is for what is behind a hub that was reset: the hub has forgotten its ports.
//!
//! Left out: power that is shared. Always true: each command ends, of those that were under way with what is gone.

use super::control_sequence::{HubAction, SequenceStep, StepResult};
use super::power_on::{hub_port_speed, speed_id};
use super::setup::PortPath;
use super::{PowerOnError, XhciMachine};
use crate::machine::Simulation;
use std::fmt;
use wire::xhci::RouteString;
use xhci_driver::{Answer, Request};

/// Why nothing was pulled out, plugged in or reset, or did not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotPlugError {
    /// Nothing is there.
    NothingThere(PortPath),
    /// A drive is there, and no hub.
    NoHub(PortPath),
    /// Something that was there is not on its feet again.
    PowerOn(PowerOnError),
}

impl XhciMachine {
    /// Pulls out what is at a place, with all that is behind it. Commands that are under way with it end.
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

    /// Plugs in again what was pulled out of a place, with all that is behind it. Its drives have other transports then, for
    /// which nothing is under way.
    ///
    /// # Errors
    /// If nothing was ever there, or it does not come up.
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

    /// Resets the port that a hub is at: all that is behind it is gone, and comes back.
    ///
    /// # Errors
    /// If no hub is there, or something does not come back.
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

    /// Who was plugged in at a place when the world was made.
    fn at_spot(&self, spot: PortPath) -> Option<usize> {
        let port = self.ports_before + spot.root;
        let is_there = |number: &usize| self.devices[*number].way.route == spot.route;
        self.root_ports[self.root_at(port)?].devices.iter().copied().find(is_there)
    }

    /// Something happens to a hub from outside.
    fn at_hub(&mut self, number: usize, act: impl FnOnce(&mut crate::hub::HubDevice)) {
        if let Some(hub) = self.hub(number) {
            act(&mut hub.device);
            self.dirty_hubs.add(number);
        }
    }

    /// All devices from here on are given up, of which a hub knows where they are no more.
    fn detach_below(&mut self, number: usize) -> Result<(), HotPlugError> {
        // Asked for in the name of the hub at the root: an errand of the device itself may never end.
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

    /// All that is plugged in from here on is brought up.
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

    /// Whether it is plugged in, and all hubs on the way to it.
    fn is_reachable(&self, number: usize) -> bool {
        let is_plugged = self.devices[number].is_plugged;
        is_plugged && self.above(number).is_none_or(|(hub, _)| self.is_reachable(hub))
    }

    /// Has something done for a device, and waits for it.
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
            Self::NothingThere(spot) => write!(f, "nothing is at {spot}"),
            Self::NoHub(spot) => write!(f, "what is at {spot} is no hub"),
            Self::PowerOn(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HotPlugError {}
