//! Things that are pulled out, plugged in again, and hubs that are reset, with all that is behind them.
//!
//! At a root port the controller notices, and its driver is told. At the port of a hub the hub notices, and tells the host by
//! its status change endpoint (USB 3.2 clause 10.13); here the report is not carried, and the host has it at once. What a
//! host does then is done by the driver: devices that are gone are detached, so that all their transfers end, and devices
//! that are there again get an address, are asked who they are, and get a transport of their own; the one from before is
//! disconnected for good. So it is for what is behind a hub that was reset: the hub has forgotten its ports.
//!
//! Left out: reports that take their time, power that is shared. Always true: each command ends, of those that were under way
//! with what is gone.

use super::errand::{Came, Step};
use super::power_on::speed_id;
use super::root::Wires;
use super::setup::Spot;
use super::{Driven, Happens, PowerOnError};
use crate::link::hub;
use crate::world::Commanded;
use std::fmt;
use units::{Duration, Instant};
use wire::xhci::RouteString;
use xhci::{Answer, Request};

/// A link of USB 3 trains within this, at any port.
const TRAINING: Duration = Duration::from_ms(20);
/// A hot reset (tReset, USB 3.2 table 6-30).
const RESET: Duration = Duration::from_ms(12);

/// Why nothing was pulled out, plugged in or reset, or did not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotPlugError {
    /// Nothing is there.
    NothingThere(Spot),
    /// A drive is there, and no hub.
    NoHub(Spot),
    /// Something that was there is not on its feet again.
    PowerOn(PowerOnError),
}

impl Driven {
    /// Pulls out what is at a place, with all that is behind it. Commands that are under way with it end.
    ///
    /// # Errors
    /// If nothing was ever there.
    pub fn unplug_at(&mut self, spot: Spot) -> Result<(), HotPlugError> {
        let number = self.at_spot(spot).ok_or(HotPlugError::NothingThere(spot))?;
        if spot.route == RouteString::ROOT {
            let port = self.fronts[number].way.port;
            self.machine.controller.unplug(self.now(), port);
            self.settle();
            let below = self.below(number);
            self.wait_for(|world| below.iter().all(|&number| world.fronts[number].device.is_none()))
                .map_err(HotPlugError::PowerOn)?;
        } else {
            self.cut(number);
            self.detach_below(number)?;
        }
        for number in self.below(number) {
            self.reset_drive(number);
        }
        Ok(())
    }

    /// Plugs in again what was pulled out of a place, with all that is behind it. Its drives have other transports then, for
    /// which nothing is under way.
    ///
    /// # Errors
    /// If nothing was ever there, or it does not come up.
    pub fn plug_again(&mut self, spot: Spot) -> Result<(), HotPlugError> {
        let number = self.at_spot(spot).ok_or(HotPlugError::NothingThere(spot))?;
        if spot.route == RouteString::ROOT {
            let root = self.fronts[number].end.root;
            self.machine.controller.plug(self.now(), self.roots[root].port, speed_id(self.speed));
            self.settle();
            self.enable(root).map_err(HotPlugError::PowerOn)?;
        } else {
            self.let_pass(TRAINING);
            self.join(number);
        }
        self.bring_up_below(number)
    }

    /// Resets the port that a hub is at: all that is behind it is gone, and comes back.
    ///
    /// # Errors
    /// If no hub is there, or something does not come back.
    pub fn reset_hub(&mut self, spot: Spot) -> Result<(), HotPlugError> {
        let number = self.at_spot(spot).ok_or(HotPlugError::NothingThere(spot))?;
        if number < self.seats.len() {
            return Err(HotPlugError::NoHub(spot));
        }
        if spot.route == RouteString::ROOT {
            let port = self.fronts[number].way.port;
            self.order(number, Request::ResetPort { port })?;
            let root = self.fronts[number].end.root;
            self.wait_for(|world| world.roots[root].is_ready).map_err(HotPlugError::PowerOn)?;
            self.detach_below(number)?;
        } else {
            self.cut(number);
            self.detach_below(number)?;
            self.let_pass(RESET);
            self.below(number).into_iter().for_each(|number| self.reset_drive(number));
            self.join(number);
        }
        // The ports of the hub train anew.
        self.let_pass(TRAINING);
        self.bring_up_below(number)
    }

    /// A drive's transport wants the port reset that the drive is at, which is a hub's: SetPortFeature (PORT_RESET). What the
    /// hub is told and tells takes no time here.
    pub(super) fn begin_hub_port_reset(&mut self, number: usize) {
        self.take_down(number);
        self.at(self.now() + RESET, Happens::HubPort(number as u8));
    }

    /// The port was reset: the drive is as it was when it was plugged in, and both ends of its link begin anew.
    pub(super) fn end_hub_port_reset(&mut self, now: Instant, number: usize) {
        self.reset_drive(number);
        self.seats[number].forget_all();
        self.bring_back(number);
        self.fronts[number].answered(&mut self.machine, now, Answer::Done);
        self.hear_errands(number);
    }

    /// Who was plugged in at a place when the world was made.
    fn at_spot(&self, spot: Spot) -> Option<usize> {
        let port = self.ports_before + spot.root;
        let is_there = |number: &usize| self.fronts[*number].way.route == spot.route;
        self.roots[self.root_at(port)?].fronts.iter().copied().find(is_there)
    }

    /// A device and all that are behind it.
    fn below(&self, number: usize) -> Vec<usize> {
        let top = self.fronts[number].way.route;
        let is_below = |route: RouteString| {
            (0..top.tiers()).all(|tiers| route.port_after(tiers) == top.port_after(tiers))
        };
        let root = &self.roots[self.fronts[number].end.root];
        root.fronts.iter().copied().filter(|&number| is_below(self.fronts[number].way.route)).collect()
    }

    /// The link to a device goes down, at the port of a hub, and what comes of that happens.
    fn cut(&mut self, number: usize) {
        self.take_down(number);
        self.settle();
    }

    /// The link to a device goes down, at the port of a hub.
    fn take_down(&mut self, number: usize) {
        let (now, end) = (self.now(), self.fronts[number].end);
        if let Wires::Hubs(tree) = &mut self.roots[end.root].wires {
            tree.cut(now, end.device);
        }
        self.woken.iter_mut().for_each(|woken| woken.add(end.root));
        for number in self.below(number) {
            self.fronts[number].control.requests.clear();
            if number < self.seats.len() {
                self.look_after_stops(number);
            }
        }
    }

    /// The link to a device is trained, and those of all that is behind it; and what comes of that happens.
    fn join(&mut self, number: usize) {
        self.bring_back(number);
        self.settle();
    }

    /// The link to a device is trained, and those of all that is behind it.
    fn bring_back(&mut self, number: usize) {
        let root = self.fronts[number].end.root;
        let below: Vec<hub::DeviceId> =
            self.below(number).into_iter().map(|number| self.fronts[number].end.device).collect();
        if let Wires::Hubs(tree) = &mut self.roots[root].wires {
            for device in below {
                tree.restart(device);
                tree.join(device);
            }
        }
        self.woken.iter_mut().for_each(|woken| woken.add(root));
    }

    /// All drives from here on are given up.
    fn detach_below(&mut self, number: usize) -> Result<(), HotPlugError> {
        // Asked for in the name of a hub: an errand of the drive itself may never end.
        let hub = self.roots[self.fronts[number].end.root].first;
        for number in self.below(number) {
            if let Some(device) = self.fronts[number].device {
                self.order(hub, Request::Detach(device))?;
                self.lose(self.now(), number);
                self.settle();
            }
        }
        Ok(())
    }

    /// All drives from here on are brought up.
    fn bring_up_below(&mut self, number: usize) -> Result<(), HotPlugError> {
        for number in self.below(number) {
            if number < self.seats.len() {
                self.seats[number].forget_all();
                self.fronts[number].endpoints.clear();
                self.bring_up(number).map_err(HotPlugError::PowerOn)?;
            }
        }
        Ok(())
    }

    /// Has the driver do something, and waits for it.
    fn order(&mut self, number: usize, request: Request) -> Result<(), HotPlugError> {
        match self.ask(number, Step::Driver(request)).map_err(HotPlugError::PowerOn)? {
            Came::Answer(Answer::Done | Answer::Port(_)) => Ok(()),
            _ => Err(HotPlugError::PowerOn(PowerOnError::Controller)),
        }
    }

    /// Lets so much time pass.
    fn let_pass(&mut self, span: Duration) {
        let until: Instant = self.now() + span;
        while self.engine.next_at().is_some_and(|at| at <= until) && !self.is_stopped() {
            self.step();
        }
        self.engine.pass(until);
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
