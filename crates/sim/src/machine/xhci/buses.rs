//! USB 2.0 buses: their events, with a single drive at a root port or everything behind its hubs.
//!
//! Observers of a drive see the packets of its bus: behind a transaction translator the one below;
//! the packets between host and translator are only traced. Payload in a translator is copied,
//! since one side is done with it before the other gets it. Invariant: payload is copied once its
//! packet was acknowledged.

use super::root_port::Wires;
use super::{MachineEvent, XhciMachine};
use crate::link::hub::DeviceId;
use crate::link::superspeed::Side;
use crate::link::usb2::{self, BusEvent, Fate, Packet};
use crate::machine::name;
use units::Instant;

/// The drive at whose root port faults are injected.
const DRIVE: usize = 0;

impl XhciMachine {
    /// Executes the next event of the bus of a root port.
    pub(super) fn advance_bus(&mut self, root: usize) {
        let has_faults = self.injects_faults && self.devices[DRIVE].end.root == root;
        if has_faults {
            self.inject_on_arrival();
        }
        self.system.ready.mark_port(root, Side::Host);
        let Some((number, met)) = self.step_bus(root, has_faults) else { return };
        if has_faults && self.drives[DRIVE].injector.hurries_on_bus() {
            self.root_ports[root].hurry();
        }
        for sent in met.sent.iter().flatten() {
            self.engine.mix(number as u64);
            self.engine.mix(sent.packet.mark());
            if self.engine.is_traced() {
                let below = if met.is_below { "below the translator: " } else { "" };
                let text = format_args!("{}{below}{}", self.tag(number), sent.packet);
                self.engine.note_of(sent.begins, name(sent.from), text);
            }
            self.see_on_bus(number, &met, sent);
        }
        self.notify_bus_device(number);
        if has_faults {
            self.book_bus(number, &met);
        }
        if number < self.drives.len() {
            self.service_stops(number);
        }
    }

    /// Advances the bus. Returns the device concerned and what happened.
    fn step_bus(&mut self, root: usize, has_faults: bool) -> Option<(usize, BusEvent)> {
        let now = self.engine.now();
        let (drives, root) = (&mut self.drives, &mut self.root_ports[root]);
        let devices = &root.devices;
        let mut affects = |DeviceId(device), packet: &Packet| {
            // Packets for hubs get no faults.
            let attached = devices.get(device).and_then(|&number| drives.get_mut(number));
            attached
                .filter(|_| has_faults)
                .map_or(Fate::Arrives, |attached| attached.injector.fate_on_bus(packet))
        };
        match &mut root.wires {
            Wires::Direct(link_pair) => {
                let sent = link_pair.step(now, &mut |_, packet| affects(DeviceId(0), packet));
                Some((root.first, BusEvent { device: DeviceId(0), endpoint: None, is_below: false, sent }))
            }
            Wires::Bus(tree) => {
                let met = tree.step(now, &mut |device, _, _, packet| affects(device, packet))?;
                Some((*devices.get(met.device.0)?, met))
            }
            Wires::Hubs(_) => None,
        }
    }

    /// Reports progress to the device concerned.
    fn notify_bus_device(&mut self, number: usize) {
        if number >= self.drives.len() {
            self.notify_controller_of_hub(number);
            self.notify_hub(number);
            return self.service_endpoint_0(number);
        }
        self.notify_controller(number);
        self.notify_drive(number);
        self.service_endpoint_0(number);
    }

    /// Books the packets with their device; the bus load is the first drive's.
    fn book_bus(&mut self, number: usize, met: &BusEvent) {
        let (now, payload) = (self.engine.now(), usb2::payload_of(&met.sent));
        if let Some(attached) = self.drives.get_mut(number) {
            let counted = attached.injector.counted(payload);
            attached.injector.ledger.cross_bus(now, counted, met.is_below);
        }
        if number != DRIVE && !met.is_below {
            self.drives[DRIVE].injector.ledger.arrive_elsewhere(Side::Host, payload);
        }
    }

    /// Shows a packet to observers, and copies the payload that a translator accepts.
    fn see_on_bus(&mut self, number: usize, met: &BusEvent, sent: &usb2::Sent) {
        if number >= self.drives.len() {
            return;
        }
        let piece = match sent.packet {
            Packet::Data(_, piece) => Some(piece),
            _ => None,
        };
        let has_translator = self.devices[number].is_translated;
        // Host data on the bus above, device data below.
        let is_taken = has_translator && met.is_below == (sent.from == Side::Device);
        let taken = piece.filter(|_| is_taken).zip(met.endpoint.filter(|endpoint| endpoint.number() > 0));
        if let Some((piece, endpoint)) = taken {
            let (attached, system) = (&mut self.drives[number], &self.system);
            let bytes = match sent.from {
                Side::Host => system.controller.bytes(&system.memory, piece, &mut self.scratch),
                Side::Device => attached.drive.bytes(piece),
            };
            attached.translated.put(endpoint, piece, bytes);
        }
        if self.watches_packets(number) && met.is_below == has_translator {
            self.show_bytes(number, sent.from, piece, |observer, bytes| observer.crossed(sent, bytes));
        }
    }

    /// Schedules the next event of the bus of a root port.
    pub(super) fn wait_for_bus(&mut self, root: usize, due_at: Option<Instant>) {
        if let Some(at) = self.root_ports[root].alarm.set(due_at) {
            self.at(at, MachineEvent::Bus(root as u8));
        }
    }
}
