//! Fault injection, seeded bugs and invariant checks of an [`XhciMachine`].
//!
//! Faults act on drives once they are up. Each drive has its own bookkeeping and packet faults;
//! those of hubs and the controller are the first drive's, and when it is detached the others
//! behind its root port go too. A controller can halt, which its driver reports as dead, and has
//! seeded bugs in its events. Behind hubs the hub at the root port is detached or reset, and
//! devices are then enumerated again with new transports.
//!
//! Invariant: without faults a machine behaves as if this module did not exist.

use super::attached_drive::AttachedDrive;
use super::root_port::End;
use super::{MachineEvent, PortPath, XhciMachine};
use crate::check::{Invariant, Ledger, Violation, ViolationSubject};
use crate::fault::{FaultKind, Faults, SeededBug};
use crate::link::Fate;
use crate::link::bulk::Message;
use crate::link::superspeed::Side;
use crate::machine::fault_injector::DetachedDrive;
use crate::machine::quiescence::AtRest;
use crate::machine::{FinishedCommand, StopReason, digest};
use initiator::{CommandId, Counters, Outcome, Transport};
use units::Instant;
use wire::usb::{Direction, Recipient, RequestKind, SetupPacket, StandardRequest};
use wire::xhci::RouteString;
use xhci_controller::Tampering;

/// The drive that accounts for faults of shared parts.
const DRIVE: usize = 0;

impl XhciMachine {
    /// Adds faults by drive, from now on.
    #[must_use]
    pub fn with_faults(mut self, faults: impl IntoIterator<Item = Faults>) -> Self {
        let Some(attached) = self.drives.first_mut() else { return self };
        let now = self.engine.now();
        if let Some(link) = self.root_ports[0].link() {
            attached.injector.ledger.begin(now, link, self.devices[DRIVE].way.route.tiers());
        }
        if let Some(bus) = self.root_ports[0].bus() {
            attached.injector.ledger.begin_on_bus(now, bus);
        }
        for (attached, faults) in self.drives.iter_mut().zip(faults) {
            attached.injector.faults = faults;
            attached.host_transport.watch();
        }
        self.drives.iter_mut().for_each(|attached| attached.host_transport.go_direct(false));
        self.system.track_events(now);
        (self.injects_faults, self.shows_packets) = (true, true);
        self
    }

    /// Returns the faults of a drive.
    ///
    /// # Panics
    /// If there is no such drive.
    pub fn faults(&mut self, drive: usize) -> &mut Faults {
        &mut self.drives[drive].injector.faults
    }

    /// Returns why the first drive is gone, if it is.
    pub fn gone(&self) -> Option<FaultKind> {
        self.drives[DRIVE].injector.gone()
    }

    /// See [`DirectMachine::misattributed`](crate::machine::DirectMachine::misattributed).
    pub fn misattributed(&self, drive: usize) -> u64 {
        self.drives.get(drive).map_or(0, |attached| attached.injector.misattributed())
    }

    /// Returns the payload bytes carried in vain.
    pub fn wasted_bytes(&self) -> u64 {
        self.drives.iter().map(|attached| attached.injector.ledger.wasted_bytes()).sum()
    }

    /// Returns the transport counters of a drive.
    pub fn transport_counters(&self, drive: usize) -> Counters {
        self.drives
            .get(drive)
            .map_or_else(Counters::default, |attached| attached.host_transport.transport().counters())
    }

    /// Returns whether driver and controller have counted no errors.
    pub fn has_clean_host(&self) -> bool {
        let stale = self.controller().counters().stale_progress;
        self.driver().counters() == ::xhci_driver::Counters::default() && stale == 0
    }

    /// Adds a result to the digest.
    pub const fn mix(&mut self, word: u64) {
        self.engine.mix(word);
    }

    /// Runs until a command completes, or up to a time.
    ///
    /// # Errors
    /// If the simulation stops.
    pub fn run_until(&mut self, until: Option<Instant>) -> Result<Option<FinishedCommand>, StopReason> {
        loop {
            if let Some(stopped) = self.stopped {
                return Err(stopped);
            }
            if self.injects_faults
                && let Some(broken) = self.broken()
            {
                return Err(StopReason::Broken(broken));
            }
            if !self.finished.is_empty() {
                return Ok(self.finished.pop_front());
            }
            if let Some(until) = until
                && self.engine.next_at().is_none_or(|next| next > until)
            {
                self.engine.pass(until);
                return Ok(None);
            }
            if !self.step() {
                return Ok(None);
            }
            if std::mem::take(&mut self.pending_hub_reset) {
                self.reset_first_hub();
            }
        }
    }

    /// Resets the hub at the first drive's root port; devices behind it are enumerated again.
    fn reset_first_hub(&mut self) {
        let root = self.devices[DRIVE].way.port - self.ports_before;
        if self.reset_hub(PortPath { root, route: RouteString::ROOT }).is_err() {
            let (now, subject) =
                (self.engine.now(), ViolationSubject::Machine("what is behind a hub that was reset"));
            self.drives[DRIVE].injector.ledger.report_violation(Invariant::Recovery, now, subject);
        }
    }

    fn is_behind_hub(&self) -> bool {
        self.devices[DRIVE].way.route != RouteString::ROOT
    }

    fn broken(&self) -> Option<Violation> {
        self.drives[DRIVE].injector.ledger.violation()
    }

    /// Checks all invariants.
    ///
    /// # Errors
    /// The first violation.
    pub fn audit(&mut self) -> Result<(), Violation> {
        let now = self.engine.now();
        if self.injects_faults {
            self.audit_packets(now);
        } else {
            self.audit_roots(now);
        }
        for attached in &mut self.drives {
            attached.drive.audit(now, &mut attached.injector.ledger);
        }
        let of_others = self.drives.iter().find_map(|attached| attached.injector.ledger.violation());
        let are_consistent = self.drives.iter().all(|attached| attached.host_transport.is_consistent(now));
        let are_events_consistent = self.system.are_events_consistent(now);
        let ledger = &mut self.drives[DRIVE].injector.ledger;
        ledger.check_schedule(self.engine.scheduled_late());
        for (is_consistent, queue) in [
            (self.core.level().is_consistent(now), "the core"),
            (are_events_consistent, "the controller's event ring"),
            (self.root_ports.iter().all(|root| root.is_consistent(now)), "packets in hubs"),
            (are_consistent, "transfers on rings"),
        ] {
            if !is_consistent {
                ledger.report_violation(Invariant::Little, now, ViolationSubject::Queue(queue));
            }
        }
        if let Some(Violation { invariant, at, subject }) = of_others {
            ledger.report_violation(invariant, at, subject);
        }
        if let Some((invariant, subject)) = self.stopped.and_then(StopReason::breaks) {
            ledger.report_violation(invariant, now, subject);
        }
        ledger.violation().map_or(Ok(()), Err)
    }

    /// Checks the traffic at the first drive's root port, where each packet is booked.
    fn audit_packets(&mut self, now: Instant) {
        // A retrained link has reset its counters.
        let was_retrained = self.gone() == Some(FaultKind::HubReset);
        let ledger = &mut self.drives[DRIVE].injector.ledger;
        if let Some(link) = self.root_ports[0].link().filter(|_| !was_retrained) {
            ledger.audit(now, link);
        }
        if let Some(bus) = self.root_ports[0].bus() {
            ledger.audit_bus(now, bus);
        }
        ledger.audit_lanes_below(now, self.root_ports[0].links_below());
        ledger.audit_buses_below(now, self.root_ports[0].buses_below());
    }

    /// Checks each root port without packet bookkeeping: traffic fits into the elapsed time, and
    /// neither side has accepted more than the other has sent. For machines whose links were
    /// trained once.
    fn audit_roots(&mut self, now: Instant) {
        for root in &self.root_ports {
            let of_drives = || root.devices.iter().copied().filter(|number| *number < self.drives.len());
            let in_all = |bytes: fn(&Ledger) -> u64| -> u64 {
                of_drives().map(|number| bytes(&self.drives[number].injector.ledger)).sum()
            };
            let (taken, given) = (in_all(Ledger::taken_in_all), in_all(Ledger::given_in_all));
            let Some(first) = of_drives().next() else { continue };
            let ledger = &mut self.drives[first].injector.ledger;
            let (mut by_device, mut by_host) = (0, 0);
            if let Some(link) = root.link() {
                ledger.audit_lanes(now, link);
                [by_device, by_host] =
                    [Side::Device, Side::Host].map(|side| link.lane(side).traffic().payload);
            }
            if let Some(bus) = root.bus() {
                ledger.audit_bus_alone(now, bus);
                // A bus counts both directions together.
                (by_device, by_host) =
                    (bus.payload().saturating_sub(given), bus.payload().saturating_sub(taken));
            }
            ledger.audit_lanes_below(now, root.links_below());
            ledger.audit_buses_below(now, root.buses_below());
            for (taken, sent, side) in [(taken, by_device, Side::Device), (given, by_host, Side::Host)] {
                if taken > sent {
                    ledger.report_violation(Invariant::Conservation, now, ViolationSubject::Lane(side));
                }
            }
        }
    }

    /// See [`DirectMachine::audit_rest`](crate::machine::DirectMachine::audit_rest).
    ///
    /// # Errors
    /// The violation.
    pub fn audit_rest(&self, number: usize, is_left_alone: bool) -> Result<(), Violation> {
        let Some(AttachedDrive { host_transport, drive, injector, .. }) = self.drives.get(number) else {
            return Ok(());
        };
        let has_lost = injector.faults.has_lost_packets();
        // A drive that came back with its hub is present.
        let is_back = self.gone() == Some(FaultKind::HubReset) && self.root_ports[0].bus().is_some();
        let is_gone = self.gone().is_some() && !is_back;
        if self.misattributed(number) > 0 && !is_gone {
            return Ok(());
        }
        let takes_turns = self.root_ports[0].bus().is_some() && !is_gone;
        let was_reset = host_transport.transport().counters().resets() > 0;
        let rest =
            AtRest { takes_turns, was_reset, awaits: host_transport.transport().poll_timeout().is_some() };
        let drive = is_left_alone.then_some((drive, has_lost));
        rest.audit(self.engine.now(), host_transport.in_flight(), "a TD that has not ended", drive)
    }

    /// Ends the machine and returns its drives: see
    /// [`DirectMachine::end`](crate::machine::DirectMachine::end).
    pub fn end(mut self, kind: FaultKind) -> Vec<DetachedDrive> {
        if self.gone().is_none() {
            self.drives[DRIVE].injector.go(kind, self.engine.digest());
            self.disconnect_drive();
        }
        while self.gone() != Some(FaultKind::PowerLoss)
            && self.drives.iter().any(|attached| attached.drive.is_busy())
        {
            if self.stopped.is_some() || !self.step() {
                break;
            }
        }
        let is_up = self.gone() == Some(FaultKind::HubReset);
        let (kind, digest) = (self.gone().unwrap_or(kind), self.engine.digest());
        let leave = |(number, mut attached): (u64, AttachedDrive)| {
            if is_up {
                // It was enumerated again, and is detached now.
                attached.drive.device.handle_nexus_loss();
            }
            // All share the fate of the first: they are behind one root port.
            attached.injector.go(kind, digest.wrapping_add(number));
            attached.injector.leave(attached.drive)
        };
        (0..).zip(self.drives).map(leave).collect()
    }

    /// Decides the fate of an arriving packet, beyond what happened in transit.
    pub(super) fn fate_on_arrival(&mut self, number: usize, message: Message, fate: Fate) -> Fate {
        if number == DRIVE {
            self.inject_on_arrival();
        }
        if self.drives[number].injector.forgets_endpoints() {
            let End { root, device } = self.devices[number].end;
            self.root_ports[root].configure_device(device, &[]);
        }
        // A damaged packet is processed when it is retried.
        let is_heard = fate != Fate::Arrives || self.drives[number].injector.receives(message);
        if is_heard { fate } else { Fate::Lost }
    }

    /// Books a packet that has reached its destination behind hubs.
    pub(super) fn book_behind_hubs(&mut self, number: usize, side: Side, message: &Message) {
        if self.devices[number].end.root != self.devices[DRIVE].end.root {
            return;
        }
        let (now, payload) = (self.engine.now(), message.packet().payload().into());
        if let Some(AttachedDrive { injector, .. }) = self.drives.get_mut(number) {
            injector.ledger.arrive(now, side, payload);
            // It is received in any case, but may be misattributed.
            let _ = injector.receives(*message);
        }
        if number != DRIVE {
            self.drives[DRIVE].injector.ledger.arrive_elsewhere(side, payload);
        }
        self.inject_on_arrival();
    }

    /// Books a packet that was ignored at a root port's link, since its header or an earlier one
    /// was corrupted.
    pub(super) fn book_in_vain(&mut self, root: usize, side: Side, payload: u16) {
        if self.injects_faults && root == self.devices[DRIVE].end.root {
            self.drives[DRIVE].injector.ledger.arrive_in_vain(side, payload.into());
        }
    }

    /// Counts an arrival, which may end the first drive's session.
    pub(super) fn inject_on_arrival(&mut self) {
        let is_behind_hub = self.is_behind_hub();
        let injector = &mut self.drives[DRIVE].injector;
        if injector.gone().is_none() && injector.ends_session_behind_controller(is_behind_hub) {
            self.disconnect_drive();
        }
    }

    /// Applies the loss of the first drive or its controller.
    fn disconnect_drive(&mut self) {
        let now = self.engine.now();
        match self.gone() {
            // A hub reset takes time and starts after the current event.
            Some(FaultKind::HubReset) => {
                self.pending_hub_reset = true;
                return;
            }
            Some(FaultKind::ControllerHalt) => {
                self.system.controller.break_down();
                self.root_ports[0].cut(now);
            }
            _ => {
                let port = self.devices[DRIVE].way.port;
                self.system.controller.unplug(now, port);
            }
        }
        for (number, attached) in self.drives.iter_mut().enumerate() {
            if self.devices[number].end.root == self.devices[DRIVE].end.root {
                attached.drive.device.handle_nexus_loss();
                attached.injector.clear_deferred();
                self.system.ready.drives.add(number);
            }
        }
        self.settle();
    }

    /// Queues deferred transfers of a drive that are due.
    pub(super) fn offer_deferred(&mut self, drive: usize) {
        while let Some(transfer) = self.drives[drive].injector.next_deferred(self.engine.now()) {
            self.offer(drive, transfer);
        }
        self.echo(drive);
    }

    /// [`SeededBug::Echo`]: an event that schedules the next.
    fn echo(&mut self, drive: usize) {
        if self.injects_faults && self.drives[drive].injector.echoes() {
            self.at(self.engine.now(), MachineEvent::Ready(drive as u8));
        }
    }

    /// Applies endpoint faults: NRDY and halts.
    pub(super) fn halt_by_itself(&mut self) {
        let end = self.devices[DRIVE].end;
        while let Some((endpoint, times)) = self.drives[DRIVE].injector.poll_nrdy_burst() {
            self.root_ports[end.root].ports(end.device).1.refuse(endpoint, times);
        }
        while let Some(endpoint) = self.drives[DRIVE].injector.poll_halt() {
            let setup = SetupPacket {
                direction: Direction::Out,
                kind: RequestKind::Standard,
                recipient: Recipient::Endpoint,
                request: StandardRequest::SetFeature.into(),
                // ENDPOINT_HALT.
                value: 0,
                index: u8::from(endpoint).into(),
                length: 0,
            };
            self.drives[DRIVE].drive.device.handle_control(setup, &[]);
            self.system.ready.drives.add(DRIVE);
            self.settle();
        }
    }

    /// Completes a command, once unless a seeded bug changes that.
    pub(super) fn finish_command(&mut self, now: Instant, drive: usize, id: CommandId, outcome: Outcome) {
        for _ in 0..self.drives[drive].injector.ends() {
            let attached = &mut self.drives[drive];
            if !attached.host_transport.has(id) {
                attached.injector.ledger.report_violation(
                    Invariant::CommandOnce,
                    now,
                    ViolationSubject::Command(id),
                );
            }
            let finished = attached.host_transport.finish(&mut self.system, now, id, outcome.clone());
            digest::end(&mut self.engine, &finished);
            self.finished.push_back(finished);
        }
        self.echo(drive);
    }

    /// Applies a seeded bug to the controller's next event.
    pub(super) fn tamper(&mut self) {
        if !self.injects_faults {
            return;
        }
        for (bug, tampering) in [
            (SeededBug::LostEvent, Tampering::Lost),
            (SeededBug::EventTwice, Tampering::Twice),
            (SeededBug::WrongCycle, Tampering::Cycle),
            (SeededBug::WrongPointer, Tampering::Pointer),
            (SeededBug::WrongLength, Tampering::Length),
            (SeededBug::LongEvent, Tampering::Early),
        ] {
            if self.drives[DRIVE].injector.faults.triggers(bug) {
                self.system.controller.tamper(tampering);
            }
        }
    }
}
