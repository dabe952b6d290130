//! From the packets of a capture to ends of transfers, by link type.
//!
//! What is not of a control or bulk endpoint is passed over. What is not laid out as its link type says is counted, and so are packets
//! that are not of USB.

mod packets;
mod sent;
mod usbmon;
mod usbpcap;

use crate::event::{Event, Mark};
use capture::{Link, Packet};
use packets::Transactions;
use sent::Sent;

/// What packets could not be taken for: counted, and the first one named.
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
    sent: Sent,
    not_understood: NotUnderstood,
    foreign: NotUnderstood,
    /// What the first of them is.
    foreign_link: Option<Link>,
}

impl Source {
    /// Hands on what a packet tells, which is one event or none: whether it could be understood.
    pub(crate) fn take(&mut self, packet: &Packet<'_>, hand_on: impl FnOnce(&Event<'_>)) -> bool {
        let told = match packet.link {
            Link::UsbmonShort | Link::Usbmon => usbmon::event(packet),
            Link::Usbpcap => usbpcap::event(packet),
            Link::Usb2Packets => self.transactions.event(packet),
            Link::Other(_) => {
                self.foreign_link.get_or_insert(packet.link);
                self.foreign.add(packet.number);
                return true;
            }
        };
        match told {
            Ok(Some(event)) => hand_on(&self.sent.completed(event)),
            Ok(None) => {}
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

    /// What the first of them is.
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

const fn mark(packet: &Packet<'_>) -> Mark {
    Mark { packet: packet.number, at_ns: packet.at_ns }
}
