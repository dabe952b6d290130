//! From the packets of a capture to ends of transfers, by link type.
//!
//! Of isochronous endpoints the transfers are counted alone. Packets that are not laid out as their link type says are
//! counted, and so are packets that are not of USB.

mod freebsd;
mod packets;
mod seen;
mod sent;
mod usbmon;
mod usbpcap;

pub(crate) use seen::Seen;

use capture::{Link, Packet};
use freebsd::Usbpf;
use packets::Transactions;
use sent::Sent;

/// Packets that could not be interpreted: their number, and that of the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotUnderstood {
    /// How many.
    pub count: u64,
    /// The number of the first.
    pub first: Option<u64>,
}

/// Takes packets for events.
#[derive(Debug, Default)]
pub(crate) struct Source {
    transactions: Transactions,
    usbpf: Usbpf,
    sent: Sent,
    not_understood: NotUnderstood,
    foreign: NotUnderstood,
    /// The link type of the first of them.
    foreign_link: Option<Link>,
}

impl Source {
    /// Gives `sink` what a packet shows: whether it could be understood.
    pub(crate) fn take(&mut self, packet: &Packet<'_>, sink: impl FnOnce(Seen<'_>)) -> bool {
        let seen = match packet.link {
            Link::UsbmonShort | Link::Usbmon => usbmon::event(packet),
            Link::Usbpcap => usbpcap::event(packet),
            Link::Usb2Packets => {
                self.transactions.event(packet).map(|event| event.map_or(Seen::Nothing, Seen::Event))
            }
            Link::Usbpf => self.usbpf.event(packet),
            Link::Other(_) => {
                self.foreign_link.get_or_insert(packet.link);
                self.foreign.add(packet.number);
                return true;
            }
        };
        match seen {
            Ok(Seen::Event(event)) => sink(Seen::Event(self.sent.completed(event))),
            Ok(seen) => sink(seen),
            Err(_) => {
                self.not_understood.add(packet.number);
                return false;
            }
        }
        true
    }

    /// Packets are missing here: what has begun may have ended.
    pub(crate) fn miss(&mut self) {
        self.transactions = Transactions::default();
        self.usbpf.miss();
        self.sent = Sent::default();
    }

    /// Packets whose beginning is not what their link type says.
    pub(crate) const fn not_understood(&self) -> NotUnderstood {
        self.not_understood
    }

    /// Packets that are not of USB.
    pub(crate) const fn foreign(&self) -> NotUnderstood {
        self.foreign
    }

    /// Returns the link type of the first of them.
    pub(crate) const fn foreign_link(&self) -> Option<Link> {
        self.foreign_link
    }
}

impl NotUnderstood {
    fn add(&mut self, packet: u64) {
        self.count += 1;
        self.first.get_or_insert(packet);
    }
}
