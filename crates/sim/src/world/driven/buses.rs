//! Buses of USB 2.0 of a driven world: what happens on them, with the one drive at a root port or with all that are behind its hubs.
//!
//! Who looks on at a drive sees the packets of the bus that the drive is at: behind a translator that is the one below, and what
//! host and translator say to each other is only in the trace. What the translator takes is copied, since neither side has it any
//! more by the time that the other gets it. Always true: payload is copied when its packet was answered, and not before.

use super::root::Wires;
use super::{Driven, Happens};
use crate::link::hub::DeviceId;
use crate::link::superspeed::Side;
use crate::link::usb2::{self, BusEvent, Fate, Packet};
use crate::world::name;
use units::Instant;

/// The drive whose root port has trouble.
const DRIVE: usize = 0;

impl Driven {
    /// The next thing happens on the bus of a root port.
    pub(super) fn go_on_with_bus(&mut self, root: usize) {
        let has_trouble = self.is_troubled && self.fronts[DRIVE].end.root == root;
        if has_trouble {
            self.strike_on_arrival();
        }
        self.woken[Side::Host as usize].add(root);
        let Some((number, met)) = self.step_bus(root, has_trouble) else { return };
        if has_trouble && self.seats[DRIVE].trouble.hurries_on_bus() {
            self.roots[root].hurry();
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
        self.tell_of_bus(number);
        if has_trouble {
            self.book_bus(number, &met);
        }
        if number < self.seats.len() {
            self.look_after_stops(number);
        }
    }

    /// Lets something happen on the bus: whom it is about, and what.
    fn step_bus(&mut self, root: usize, has_trouble: bool) -> Option<(usize, BusEvent)> {
        let now = self.engine.now();
        let (seats, root) = (&mut self.seats, &mut self.roots[root]);
        let fronts = &root.fronts;
        let mut fate_of = |DeviceId(device), packet: &Packet| {
            // What is for hubs themselves is left alone.
            let seat = fronts.get(device).and_then(|&number| seats.get_mut(number));
            seat.filter(|_| has_trouble).map_or(Fate::Arrives, |seat| seat.trouble.fate_on_bus(packet))
        };
        match &mut root.wires {
            Wires::Direct(link_pair) => {
                let sent = link_pair.step(now, &mut |_, packet| fate_of(DeviceId(0), packet));
                Some((root.first, BusEvent { device: DeviceId(0), endpoint: None, is_below: false, sent }))
            }
            Wires::Bus(tree) => {
                let met = tree.step(now, &mut |device, _, _, packet| fate_of(device, packet))?;
                Some((*fronts.get(met.device.0)?, met))
            }
            Wires::Hubs(_) => None,
        }
    }

    /// What has moved is told to whom it is about.
    fn tell_of_bus(&mut self, number: usize) {
        if number >= self.seats.len() {
            self.tell_controller_of_hub(number);
            self.tell_hub(number);
            return self.look_after_endpoint_0(number);
        }
        self.tell_controller(number);
        self.tell_drive(number);
        self.look_after_endpoint_0(number);
    }

    /// What has crossed is booked with whom it is about; the bus is the first drive's.
    fn book_bus(&mut self, number: usize, met: &BusEvent) {
        let (now, payload) = (self.engine.now(), usb2::payload_of(&met.sent));
        if let Some(seat) = self.seats.get_mut(number) {
            let counted = seat.trouble.counted(payload);
            seat.trouble.ledger.cross_bus(now, counted, met.is_below);
        }
        if number != DRIVE && !met.is_below {
            self.seats[DRIVE].trouble.ledger.arrive_elsewhere(Side::Host, payload);
        }
    }

    /// A packet was sent: who looks on is shown it, and a translator takes what it carries.
    fn see_on_bus(&mut self, number: usize, met: &BusEvent, sent: &usb2::Sent) {
        if number >= self.seats.len() {
            return;
        }
        let piece = match sent.packet {
            Packet::Data(_, piece) => Some(piece),
            _ => None,
        };
        let has_translator = self.fronts[number].is_translated;
        // The host's data on the bus above, the device's below.
        let is_taken = has_translator && met.is_below == (sent.from == Side::Device);
        let taken = piece.filter(|_| is_taken).zip(met.endpoint.filter(|endpoint| endpoint.number() > 0));
        if let Some((piece, endpoint)) = taken {
            let (seat, machine) = (&mut self.seats[number], &self.machine);
            let bytes = match sent.from {
                Side::Host => machine.controller.bytes(&machine.memory, piece, &mut self.scratch),
                Side::Device => seat.drive.bytes(piece),
            };
            seat.held.put(endpoint, piece, bytes);
        }
        if self.watches_packets(number) && met.is_below == has_translator {
            self.show_bytes(number, sent.from, piece, |observer, bytes| observer.crossed(sent, bytes));
        }
    }

    /// The bus of a root port goes on then.
    pub(super) fn wait_for_bus(&mut self, root: usize, due_at: Option<Instant>) {
        if let Some(at) = self.roots[root].alarm.set(due_at) {
            self.at(at, Happens::Bus(root as u8));
        }
    }
}
