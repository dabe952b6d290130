//! Packets: sending, arrival and reporting.
//!
//! At a root port without hubs a packet crosses one link; on USB 2.0 packets form transactions on a
//! bus (`buses`); below SuperSpeed hubs the tree carries a packet to its destination
//! (`hub_packets`). Invariant: payload is copied when its packet has arrived.

use super::host_system::HostSystem;
use super::root_port::{End, RootPort, Wires};
use super::{MachineEvent, XhciMachine};
use crate::link::bulk::{Message, PacketPayload};
use crate::link::control::CONTROL_DATA;
use crate::link::superspeed::Side;
use crate::link::{Arrival, Crossing, Fate, Missed, Wake};
use crate::machine::{Observer, StopReason, name};
use device::device::STATUS;
use units::{Duration, Instant};
use xhci_controller::Controller;

impl XhciMachine {
    /// Like [`Self::arrive`], for a packet that a fault has affected.
    #[cold]
    #[inline(never)]
    pub(super) fn suffer(&mut self, root: usize, side: Side, bytes: u16, fate: Fate) {
        self.arrive(root, side, bytes, fate);
        self.system.ready.mark_port(root, side);
    }

    /// Handles a packet that arrives on a link without hubs, and copies its payload. The caller
    /// lets the side send.
    #[inline(always)]
    pub(super) fn arrive(&mut self, root: usize, side: Side, bytes: u16, fate: Fate) {
        let now = self.engine.now();
        let fate = if self.shows_packets { self.show_arrival(root, side, fate) } else { fate };
        let RootPort { first: number, wires, .. } = &mut self.root_ports[root];
        let (number, Wires::Direct(link_pair)) = (*number, wires) else { return };
        let Arrival { frees_other_at, retry_at, is_control, taken } = link_pair.arrive(now, side, fate);
        let has_progress = match side {
            Side::Host => link_pair.host.has_pending(),
            Side::Device => link_pair.device.has_pending(),
        };
        if let Some(at) = retry_at {
            self.at(at, MachineEvent::Retry(root as u8, side.other()));
        }
        if let Some(at) = frees_other_at {
            self.at(at, MachineEvent::Free(root as u8, side.other()));
        }
        if taken.is_err() {
            self.stopped = Some(StopReason::Violation);
        }
        let is_stopping = number >= self.drives.len() || self.stopping.has(number);
        if has_progress || is_control || is_stopping || self.polls_all {
            self.notify_side(number, side, is_control);
        }
        if self.injects_faults {
            self.drives[number].injector.ledger.arrive(now, side, bytes.into());
        }
    }

    /// Shows an arriving packet to observers. Returns its fate.
    #[cold]
    fn show_arrival(&mut self, root: usize, side: Side, fate: Fate) -> Fate {
        let number = self.root_ports[root].first;
        let Wires::Direct(link_pair) = &self.root_ports[root].wires else { return fate };
        let Some(&message) = link_pair.coming(side) else { return fate };
        if fate == Fate::Arrives {
            self.show(number, side.other(), &message, None);
        }
        if self.injects_faults { self.fate_on_arrival(number, message, fate) } else { fate }
    }

    /// Handles an LBAD that arrives at a side.
    pub(super) fn retry(&mut self, root: usize, side: Side) {
        if let Wires::Direct(link_pair) = &mut self.root_ports[root].wires {
            link_pair.retry(self.engine.now(), side);
        }
        self.system.ready.mark_ports(root);
    }

    /// Handles a timed-out answer.
    pub(super) fn miss(&mut self, number: usize, missed: Missed) {
        let root = self.devices[number].end.root;
        let again = match &mut self.root_ports[root].wires {
            Wires::Direct(link_pair) => link_pair.miss(missed),
            Wires::Hubs(tree) => tree.miss(self.devices[number].end.device, missed),
            // The host polls again there.
            Wires::Bus(_) => None,
        };
        self.schedule_missed(number, again);
        self.system.ready.mark_ports(root);
        self.notify_side(number, Side::Host, false);
        self.notify_side(number, Side::Device, true);
    }

    pub(super) fn schedule_missed(&mut self, number: usize, missed: Option<(Duration, Missed)>) {
        if let Some((span, missed)) = missed {
            self.at(self.engine.now() + span, MachineEvent::Missed(number as u8, missed));
        }
    }

    /// Reports a packet to its receiver; `is_control` for endpoint 0.
    pub(super) fn notify_side(&mut self, number: usize, side: Side, is_control: bool) {
        if number < self.drives.len() {
            match side {
                Side::Host => self.notify_controller(number),
                Side::Device => self.notify_drive(number),
            }
            if self.stopping.has(number) {
                self.service_stops(number);
            }
        } else {
            match side {
                Side::Host => self.notify_controller_of_hub(number),
                Side::Device => self.notify_hub(number),
            }
        }
        if is_control {
            self.service_endpoint_0(number);
        }
    }

    /// Reports progress of transfers to the controller.
    pub(super) fn notify_controller(&mut self, drive: usize) {
        let (now, End { root, device }) = (self.engine.now(), self.devices[drive].end);
        let (host, port) = self.root_ports[root].ports(device);
        if !host.has_pending() {
            return;
        }
        let attached = &mut self.drives[drive];
        let mut has_withdrawn = false;
        while let Some(progress) = host.poll_progress() {
            let translated = attached.take_translated(progress.id, progress.piece);
            let is_suspect =
                attached.injector.has_suspect_tags() && Controller::endpoint_of(progress.id) == Some(STATUS);
            let bytes = match (&translated, progress.piece) {
                (Some(translated), _) => translated,
                (None, Some(piece)) => attached.drive.bytes(piece),
                (None, None) => &[][..],
            };
            if let Some(piece) = progress.piece {
                attached.injector.ledger.take(piece.bytes);
            }
            if is_suspect && progress.piece.is_some() {
                attached.injector.check_status_tag(bytes);
            }
            let system = &mut self.system;
            let has_effect = system.controller.handle_progress(now, &mut system.memory, &progress, bytes);
            system.ready.controller |= has_effect || progress.ended.is_some();
            if progress.ended.is_some() {
                attached
                    .host_transport
                    .observers
                    .notify(|observer| observer.link_completed(now, progress.id));
                has_withdrawn |= attached.forget(port, progress.id);
            }
            if !host.has_pending() {
                break;
            }
        }
        let way = self.devices[drive].way;
        while let Some(address) = host.poll_halt() {
            let is_stalled = !host.has_failed(address);
            let system = &mut self.system;
            system.ready.controller = true;
            system.controller.handle_halt(now, &mut system.memory, way, address, is_stalled);
        }
        if has_withdrawn {
            self.notify_drive(drive);
        }
    }

    /// Reports progress of its transfers to a drive.
    pub(super) fn notify_drive(&mut self, drive: usize) {
        let End { root, device } = self.devices[drive].end;
        let (_, device) = self.root_ports[root].ports(device);
        if !device.has_pending() && !self.polls_all {
            return;
        }
        let attached = &mut self.drives[drive];
        let HostSystem { controller, memory, ready, .. } = &mut self.system;
        while let Some(progress) = device.poll_progress() {
            if self.injects_faults {
                attached.injector.ledger.progress(self.engine.now(), Side::Device, &progress);
                if attached.injector.drops_completion(&progress) {
                    continue;
                }
            }
            let bytes = match progress.piece {
                None => &[][..],
                Some(piece) => {
                    attached.injector.ledger.give(piece.bytes);
                    let mut out = attached.out_transfers.iter_mut();
                    if let Some(going) = out.find(|going| going.id == piece.transfer) {
                        going.taken = piece.offset + u32::from(piece.bytes);
                    }
                    match attached.take_translated(piece.transfer, Some(piece)) {
                        Some(translated) => {
                            self.scratch = translated;
                            &self.scratch
                        }
                        None => controller.bytes(memory, piece, &mut self.scratch),
                    }
                }
            };
            if attached.drive.progress(self.engine.now(), progress, bytes) || self.injects_faults {
                ready.drives.add(drive);
            }
            if !device.has_pending() {
                break;
            }
        }
        if self.polls_all {
            ready.drives.add(drive);
        }
    }

    /// Lets sides with pending packets send.
    #[inline]
    pub(super) fn wake(&mut self, root: usize, ready_ports: [bool; 2]) {
        match &self.root_ports[root].wires {
            Wires::Direct(link_pair) if link_pair.bus().is_none() => {
                for (side, is_woken) in [Side::Host, Side::Device].into_iter().zip(ready_ports) {
                    if is_woken {
                        self.wake_side(root, side);
                    }
                }
            }
            _ => self.wake_others(root),
        }
    }

    /// Like [`Self::wake`], for hubs and USB 2.0 buses.
    #[inline(never)]
    fn wake_others(&mut self, root: usize) {
        let now = self.engine.now();
        match &mut self.root_ports[root].wires {
            Wires::Direct(link_pair) => {
                let due_at = link_pair.due_at(now);
                self.wait_for_bus(root, due_at);
            }
            Wires::Bus(tree) => {
                let due_at = tree.due_at(now);
                self.wait_for_bus(root, due_at);
            }
            Wires::Hubs(_) => self.wake_hubs(root),
        }
    }

    #[inline(always)]
    pub(super) fn wake_side(&mut self, root: usize, side: Side) {
        let Wires::Direct(link_pair) = &mut self.root_ports[root].wires else { return };
        match link_pair.wakes(side, |turn| self.engine.has_passed(turn)) {
            Wake::Never => {}
            Wake::Now => self.send(root, side),
            Wake::At(free) => self.schedule_reserved(free, MachineEvent::Free(root as u8, side)),
        }
    }

    /// Sends the next packet of a side whose lane is free, on a link without hubs.
    pub(super) fn send(&mut self, root: usize, side: Side) {
        let now = self.engine.now();
        let HostSystem { controller, packet_delays, .. } = &mut self.system;
        let Wires::Direct(link_pair) = &mut self.root_ports[root].wires else { return };
        if link_pair.has_kept(side) {
            return self.send_kept(root, side);
        }
        let mut mark = 0;
        let pace = |message: &Message| {
            mark = message.mark();
            match side {
                Side::Host => packet_delays.of(now, controller, message),
                Side::Device => Duration::ZERO,
            }
        };
        if let Some((crossing, bytes)) = link_pair.send_paced(now, side, pace) {
            self.engine.mix(mark);
            self.has_sent(root, side, &crossing, bytes);
        }
    }

    /// Sends a packet that had no credit or is retried. A separate call: merging two return values
    /// would go through memory and stall the processor.
    #[cold]
    fn send_kept(&mut self, root: usize, side: Side) {
        let now = self.engine.now();
        let Wires::Direct(link_pair) = &mut self.root_ports[root].wires else { return };
        if let Some((crossing, bytes)) = link_pair.send_kept(now, side) {
            self.engine.mix(link_pair.sent(side).map_or(0, Message::mark));
            self.has_sent(root, side, &crossing, bytes);
        }
    }

    /// Schedules the end of transmission and the arrival of a packet.
    #[inline(always)]
    fn has_sent(&mut self, root: usize, side: Side, crossing: &Crossing, bytes: u16) {
        let Wires::Direct(link_pair) = &mut self.root_ports[root].wires else { return };
        let free = self.engine.reserve(crossing.ends);
        let rests = link_pair.rests(side, free);
        if self.shows_packets {
            self.show_sent(root, side, crossing);
        }
        if !rests {
            self.schedule_at(free, MachineEvent::Free(root as u8, side));
        }
        if self.injects_faults {
            return self.send_with_faults(root, side, crossing.heard, bytes);
        }
        if side == Side::Host && self.elides_repeats.has(root) && self.leave_out(root, crossing.heard) {
            return;
        }
        let heard = self.engine.reserve(crossing.heard);
        self.schedule_at(heard, MachineEvent::Arrives(root as u8, side.other(), bytes));
    }

    /// Returns whether the arrival of a host packet is skipped, since it does not affect the
    /// device. Observers see it now.
    #[inline(never)]
    fn leave_out(&mut self, root: usize, heard: Instant) -> bool {
        let Wires::Direct(link_pair) = &mut self.root_ports[root].wires else { return false };
        let Some(message) = link_pair.leave_out() else { return false };
        if self.shows_packets {
            self.show_left_out(root, heard, &message);
        }
        true
    }

    #[cold]
    fn show_left_out(&mut self, root: usize, heard: Instant, message: &Message) {
        let number = self.root_ports[root].first;
        if self.watches_packets(number) {
            self.show_bytes(number, Side::Host, message.piece(), |observer, bytes| {
                observer.arrived(heard, Side::Device, message, bytes);
            });
        }
    }

    /// Schedules the arrival of a packet subject to faults.
    #[cold]
    fn send_with_faults(&mut self, root: usize, side: Side, heard: Instant, bytes: u16) {
        let happens = match self.strike(root, side) {
            Fate::Arrives => MachineEvent::Arrives(root as u8, side.other(), bytes),
            fate => MachineEvent::Suffers(root as u8, side.other(), bytes, fate),
        };
        self.at(heard, happens);
    }

    /// Shows a sent packet to observers.
    #[cold]
    fn show_sent(&mut self, root: usize, side: Side, crossing: &Crossing) {
        let number = self.root_ports[root].first;
        let Wires::Direct(link_pair) = &self.root_ports[root].wires else { return };
        let Some(&message) = link_pair.sent(side) else { return };
        self.engine.note(name(side), format_args!("{}{message}", self.tag(number)));
        self.show(number, side, &message, Some(crossing));
    }

    /// Decides the fate of a sent packet.
    fn strike(&mut self, root: usize, side: Side) -> Fate {
        let number = self.root_ports[root].first;
        let Wires::Direct(link_pair) = &mut self.root_ports[root].wires else { return Fate::Arrives };
        let Some(&message) = link_pair.sent(side) else { return Fate::Arrives };
        if self.drives[number].injector.hurries() {
            link_pair.hurry(side);
        }
        let fate = self.drives[number].injector.fate(message);
        match fate {
            Fate::Arrives => {}
            Fate::HeaderDamaged => link_pair.damage(side, message),
            Fate::PayloadDamaged | Fate::Lost => {
                let missed = link_pair.lose(&message);
                self.schedule_missed(number, missed);
            }
        }
        fate
    }

    /// Shows a packet to observers: when it is sent, with its crossing, and when it arrives.
    #[inline]
    pub(super) fn show(&mut self, number: usize, from: Side, message: &Message, crossing: Option<&Crossing>) {
        if self.watches_packets(number) {
            self.show_to_observers(number, from, message, crossing);
        }
    }

    /// Returns whether packets of a device are observed.
    pub(super) fn watches_packets(&self, number: usize) -> bool {
        self.drives.get(number).is_some_and(|attached| attached.host_transport.observers.watch_packets())
    }

    #[cold]
    fn show_to_observers(
        &mut self,
        number: usize,
        from: Side,
        message: &Message,
        crossing: Option<&Crossing>,
    ) {
        let now = self.engine.now();
        self.show_bytes(number, from, message.piece(), |observer, bytes| match crossing {
            Some(crossing) => observer.sent(from, message, crossing, bytes),
            None => observer.arrived(now, from.other(), message, bytes),
        });
    }

    /// Shows a sent packet and its payload.
    pub(super) fn show_bytes(
        &mut self,
        number: usize,
        from: Side,
        piece: Option<PacketPayload>,
        show: impl Fn(&mut dyn Observer, &[u8]),
    ) {
        let attached = &mut self.drives[number];
        let mut observers = std::mem::take(&mut attached.host_transport.observers);
        let mut scratch = std::mem::take(&mut self.scratch);
        let bytes = match (piece, from) {
            (None, _) => &[][..],
            (Some(piece), _) if piece.transfer == CONTROL_DATA => self.control_bytes(number, piece, from),
            (Some(piece), Side::Host) => {
                self.system.controller.bytes(&self.system.memory, piece, &mut scratch)
            }
            (Some(piece), Side::Device) => self.drives[number].drive.bytes(piece),
        };
        observers.notify(|observer| show(observer, bytes));
        (self.drives[number].host_transport.observers, self.scratch) = (observers, scratch);
    }

    fn control_bytes(&self, number: usize, piece: PacketPayload, from: Side) -> &[u8] {
        let control = &self.devices[number].control;
        let all = match from {
            Side::Host => control.requests.front().map_or(&[][..], |request| &request.data_out),
            Side::Device => &control.reply,
        };
        let at = piece.offset as usize;
        all.get(at..at + usize::from(piece.bytes)).unwrap_or(&[])
    }
}
