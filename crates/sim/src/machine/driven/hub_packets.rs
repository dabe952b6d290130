//! Packets among hubs of SuperSpeed: what is sent on each link, what befalls it there, and what comes to its end.
//!
//! What befalls a packet of a drive is that drive's to say, what befalls one of a hub the first drive's. Left out: payload that is
//! damaged and packets that are lost on the way; that is at their end. Always true: who is told of a packet is told when it is at its end.

use super::attached_drive::AttachedDrive;
use super::root_port::{RootPort, Wires};
use super::{MachineEvent, XhciMachine};
use crate::link::Fate;
use crate::link::bulk::Message;
use crate::link::hub::{Arrived, DeviceId, Sent, Tree, TreeArrival, TreeEnvironment, TreeEvent};
use crate::machine::{StopReason, name};
use crate::xhc::Controller;
use units::{Duration, Instant};

/// What a tree of hubs asks of the world.
struct Surroundings<'a> {
    now: Instant,
    controller: &'a mut Controller,
    /// Who throws the dice, if anything befalls packets there.
    drives: Option<&'a mut [AttachedDrive]>,
    /// Numbers of devices.
    devices: &'a [usize],
    /// What something has befallen that comes to its end.
    struck: Option<(DeviceId, Message)>,
}

impl TreeEnvironment for Surroundings<'_> {
    fn pace(&mut self, message: &Message) -> Duration {
        self.controller.pace(self.now, message)
    }

    fn damages(&mut self, device: DeviceId, _message: &Message) -> bool {
        self.attached(device).is_some_and(|attached| attached.injector.damages_header())
    }

    fn ends(&mut self, device: DeviceId, message: &Message) -> Fate {
        let fate = self
            .attached(device)
            .map_or(Fate::Arrives, |attached| attached.injector.fate_at_its_end(*message));
        if fate != Fate::Arrives {
            self.struck = Some((device, *message));
        }
        fate
    }
}

impl Surroundings<'_> {
    /// The drive that says what befalls a packet of a device.
    fn attached(&mut self, device: DeviceId) -> Option<&mut AttachedDrive> {
        let drives = self.drives.as_deref_mut()?;
        let number = self.devices[device.0];
        let whose = if number < drives.len() { number } else { 0 };
        drives.get_mut(whose)
    }
}

impl XhciMachine {
    /// Lets a tree of hubs go on, in what is around it; and what something befell at its end.
    fn among_hubs<R>(
        &mut self,
        root: usize,
        go_on: impl FnOnce(&mut Tree, &mut Surroundings<'_>) -> R,
    ) -> Option<R> {
        let now = self.engine.now();
        let has_faults = self.injects_faults && self.devices[0].end.root == root;
        let RootPort { wires: Wires::Hubs(tree), devices, .. } = &mut self.root_ports[root] else {
            return None;
        };
        let drives = has_faults.then_some(&mut self.drives[..]);
        let controller = &mut self.system.controller;
        let mut around = Surroundings { now, controller, drives, devices, struck: None };
        let result = go_on(tree, &mut around);
        // A SETUP whose payload is damaged is as good as lost.
        if let Some((device, message)) = around.struck {
            let (number, missed) = (devices[device.0], tree.lose(device, &message));
            self.schedule_missed(number, missed);
        }
        self.schedule(root);
        Some(result)
    }

    /// Something has come up at ports of the host or of devices behind hubs.
    pub(super) fn wake_hubs(&mut self, root: usize) {
        let now = self.engine.now();
        self.among_hubs(root, |tree, around| tree.wake(now, around));
    }

    /// Something happens among the hubs of a root port.
    pub(super) fn pass(&mut self, root: usize, happening: TreeEvent) {
        let now = self.engine.now();
        match self.among_hubs(root, |tree, around| tree.handle(now, happening, around)) {
            Some(Ok(Some(TreeArrival::ToItsEnd(Arrived { side, device, message })))) => {
                let number = self.root_ports[root].devices[device.0];
                self.show(number, side.other(), &message, None);
                self.ready_ports[side as usize].add(root);
                self.notify_side(number, side, message.endpoint().number() == 0);
                if self.injects_faults {
                    self.book_behind_hubs(number, side, &message);
                }
            }
            Some(Ok(Some(TreeArrival::InVain { branch: 0, side, bytes }))) => {
                self.book_in_vain(root, side, bytes);
            }
            None | Some(Ok(Some(TreeArrival::InVain { .. }) | None)) => {}
            Some(Err(_)) => self.stopped = Some(StopReason::Violation),
        }
    }

    /// Takes from hubs what they have sent, and when something happens to it.
    fn schedule(&mut self, root: usize) {
        loop {
            let Wires::Hubs(tree) = &mut self.root_ports[root].wires else { return };
            let Some(Sent { from, routed, crossing, is_passed, .. }) = tree.poll_sent() else { break };
            let number = self.root_ports[root].devices[routed.device.0];
            self.engine.mix(number as u64);
            self.engine.mix(routed.message.mark());
            let who = if is_passed { "hub" } else { name(from) };
            self.engine.note(who, format_args!("{}{}", self.tag(number), routed.message));
            if !is_passed {
                self.show(number, from, &routed.message, Some(&crossing));
            }
        }
        loop {
            let Wires::Hubs(tree) = &mut self.root_ports[root].wires else { return };
            let Some((at, happening)) = tree.poll_next() else { break };
            self.at(at, MachineEvent::Passes(root as u8, happening));
        }
        if let Wires::Hubs(tree) = &self.root_ports[root].wires
            && let Some(full) = tree.overrun()
        {
            self.stopped = Some(StopReason::CapacityExceeded(full));
        }
    }
}
