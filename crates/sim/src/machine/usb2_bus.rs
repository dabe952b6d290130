//! The USB 2.0 bus of a [`DirectMachine`]: its events, observers and bookkeeping.
//!
//! Invariant: progress of a packet is reported before the packet is booked.

use super::{DirectMachine, name};
use crate::link::superspeed::Side;
use crate::link::usb2;
use initiator::Transport;

impl<T: Transport> DirectMachine<T> {
    /// Executes the next event of a USB 2.0 bus.
    pub(super) fn advance_bus(&mut self) {
        if self.injector.ends_session() {
            self.unplug();
        }
        let injector = &mut self.injector;
        let sent = self.link_pair.step(self.engine.now(), &mut |_, packet| injector.fate_on_bus(packet));
        if self.injector.hurries_on_bus() {
            self.link_pair.hurry_bus();
        }
        for sent in sent.iter().flatten() {
            self.engine.mix(sent.packet.mark());
            self.engine.note_of(sent.begins, name(sent.from), format_args!("{}", sent.packet));
            self.show_on_bus(sent);
        }
        self.report_progress();
        let counted = self.injector.counted(usb2::payload_of(&sent));
        self.injector.ledger.cross_bus(self.engine.now(), counted, false);
        self.service_endpoints();
        self.service_endpoint_0();
    }

    /// Shows a packet on a USB 2.0 bus to observers.
    fn show_on_bus(&mut self, sent: &usb2::Sent) {
        if self.host.observers.is_empty() {
            return;
        }
        let mut observers = std::mem::take(&mut self.host.observers);
        let bytes = match (sent.packet, sent.from) {
            (usb2::Packet::Data(_, piece), Side::Host) => self.host.bytes(piece),
            (usb2::Packet::Data(_, piece), Side::Device) => self.drive.bytes(piece),
            _ => &[][..],
        };
        observers.notify(|observer| observer.crossed(sent, bytes));
        self.host.observers = observers;
    }
}
