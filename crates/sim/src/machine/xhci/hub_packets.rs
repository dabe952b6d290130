//! Packets below SuperSpeed hubs: sending on each link, faults, and arrival at the destination.
//!
//! A drive's injector decides the fate of its packets, the first drive's that of packets of hubs.
//! Left out: corruption and loss between hubs, which act at the destination. Invariant: a packet is
//! reported when it has reached its destination.

use super::attached_drive::AttachedDrive;
use super::host_system::HostSystem;
use super::root_port::{RootPort, Wires};
use super::{MachineEvent, XhciMachine};
use crate::link::Fate;
use crate::link::bulk::Message;
use crate::link::hub::{Arrived, DeviceId, Sent, Tree, TreeArrival, TreeEnvironment, TreeEvent};
use crate::machine::{StopReason, name};
use crate::xhc::PacketDelays;
use units::{Duration, Instant};
use xhci_controller::Controller;

/// Callbacks of a hub tree.
struct Surroundings<'a> {
    now: Instant,
    controller: &'a mut Controller,
    packet_delays: PacketDelays,
    /// Drives with their injectors, if faults are injected there.
    drives: Option<&'a mut [AttachedDrive]>,
    /// Device numbers.
    devices: &'a [usize],
    /// A faulted packet that reaches its destination.
    struck: Option<(DeviceId, Message)>,
}

impl TreeEnvironment for Surroundings<'_> {
    fn pace(&mut self, message: &Message) -> Duration {
        self.packet_delays.of(self.now, self.controller, message)
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
    /// Returns the drive whose injector handles packets of a device.
    fn attached(&mut self, device: DeviceId) -> Option<&mut AttachedDrive> {
        let drives = self.drives.as_deref_mut()?;
        let number = self.devices[device.0];
        let whose = if number < drives.len() { number } else { 0 };
        drives.get_mut(whose)
    }
}

impl XhciMachine {
    /// Runs `go_on` on the hub tree of a root port, and handles a faulted packet.
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
        let HostSystem { controller, packet_delays, .. } = &mut self.system;
        let packet_delays = *packet_delays;
        let mut around = Surroundings { now, controller, packet_delays, drives, devices, struck: None };
        let result = go_on(tree, &mut around);
        // A SETUP with a corrupted payload counts as lost.
        if let Some((device, message)) = around.struck {
            let (number, missed) = (devices[device.0], tree.lose(device, &message));
            self.schedule_missed(number, missed);
        }
        self.schedule(root);
        Some(result)
    }

    /// Resumes a hub tree after new work at host or device ports.
    pub(super) fn wake_hubs(&mut self, root: usize) {
        let now = self.engine.now();
        self.among_hubs(root, |tree, around| tree.wake(now, around));
    }

    /// Executes an event of a hub tree.
    pub(super) fn pass(&mut self, root: usize, happening: TreeEvent) {
        let now = self.engine.now();
        match self.among_hubs(root, |tree, around| tree.handle(now, happening, around)) {
            Some(Ok(Some(TreeArrival::ToItsEnd(Arrived { side, device, message })))) => {
                let number = self.root_ports[root].devices[device.0];
                self.show(number, side.other(), &message, None);
                self.system.ready.mark_port(root, side);
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

    /// Traces what hubs have sent, and schedules their events.
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
