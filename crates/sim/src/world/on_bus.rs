//! A bus of USB 2.0 between host and drive: what happens there next, who is shown it, and what of it is booked.
//!
//! Always true: what a packet has brought is told before it is booked.

use super::{World, name};
use crate::link::superspeed::Side;
use crate::link::usb2;
use initiator::Transport;

impl<T: Transport> World<T> {
    /// The next thing happens on a bus of USB 2.0.
    pub(super) fn go_on_with_bus(&mut self) {
        if self.trouble.ends_life() {
            self.unplug();
        }
        let trouble = &mut self.trouble;
        let sent = self.link_pair.step(self.engine.now(), &mut |_, packet| trouble.fate_on_bus(packet));
        if self.trouble.hurries_on_bus() {
            self.link_pair.hurry_bus();
        }
        for sent in sent.iter().flatten() {
            self.engine.mix(sent.packet.mark());
            self.engine.note_of(sent.begins, name(sent.from), format_args!("{}", sent.packet));
            self.show_on_bus(sent);
        }
        self.tell_progress();
        let counted = self.trouble.counted(usb2::payload_of(&sent));
        self.trouble.ledger.cross_bus(self.engine.now(), counted, false);
        self.look_after_endpoints();
        self.look_after_endpoint_0();
    }

    /// Shows a packet on a bus of USB 2.0 to who looks on.
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
        observers.tell(|observer| observer.crossed(sent, bytes));
        self.host.observers = observers;
    }
}
