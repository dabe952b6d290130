//! A drive of a world, with the host's transport for it: both ends of every transfer.
//!
//! Left out: what is between both ends, which is the root port's. Always true: what is noted of a transfer is gone when that has ended.

use super::host_endpoint::HostEndpoint;
use crate::engine::{Alarm, EventKey};
use crate::link::bulk::PacketPayload;
use crate::link::{DevicePort, HostPort, usb2};
use crate::machine::drive::DriveSide;
use crate::machine::driven::DriveParts;
use crate::machine::fault_injector::FaultInjector;
use crate::xhc::Controller;
use bus::{EndpointAddress, Pipe, TransferId};
use std::collections::VecDeque;
use wire::usb::Direction;

#[derive(Debug)]
pub(super) struct AttachedDrive {
    pub(super) host_endpoint: HostEndpoint,
    pub(super) drive: DriveSide,
    /// Endpoints that were stopped, and are not quiet yet.
    pub(super) stopping: Vec<EndpointAddress>,
    /// What the device has queued to end transfers of the host.
    pub(super) endings: Vec<Ending>,
    /// What goes out on the link.
    pub(super) out_transfers: Vec<OutTransfer>,
    /// What a translator has taken from one side for the other.
    pub(super) translated: TranslatorBuffer,
    /// What goes wrong, and the books that notice.
    pub(super) injector: FaultInjector,
    /// When its enclosure goes on.
    pub(super) alarm: Alarm,
    /// When requests of the medium are done, and whether that is an event already: of many that wait, the first.
    pub(super) completions: VecDeque<(EventKey, bool)>,
}

/// An empty packet, or room, that the device has queued to end a transfer of the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    pub(super) pipe: Pipe,
    /// The host's transfer.
    pub(super) host: TransferId,
    /// The device's.
    pub(super) device: TransferId,
}

/// A transfer to the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutTransfer {
    pub(super) id: TransferId,
    pub(super) bytes: u32,
    /// Bytes that the device has taken.
    pub(super) taken: u32,
}

/// Payload that a translator of a hub has, since whose it was may have done with it.
#[derive(Debug, Default)]
pub(super) struct TranslatorBuffer(Vec<(EndpointAddress, PacketPayload, Vec<u8>)>);

impl TranslatorBuffer {
    /// What the translator has at most for a device: what it has places for, and what it was begun with in vain.
    const MOST: usize = 8;

    /// A piece was sent on an endpoint.
    pub(super) fn put(&mut self, endpoint: EndpointAddress, piece: PacketPayload, bytes: &[u8]) {
        self.take(endpoint, piece);
        if self.0.len() == Self::MOST {
            // Nobody has wanted it.
            self.0.remove(0);
        }
        self.0.push((endpoint, piece, bytes.to_vec()));
    }

    /// The other side has it.
    pub(super) fn take(&mut self, endpoint: EndpointAddress, piece: PacketPayload) -> Option<Vec<u8>> {
        let is_it = |translated: &(EndpointAddress, PacketPayload, Vec<u8>)| {
            (translated.0, translated.1) == (endpoint, piece)
        };
        let at = self.0.iter().position(is_it)?;
        Some(self.0.remove(at).2)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of the last packet of an endpoint.
    pub(super) fn bytes(&self, endpoint: EndpointAddress) -> Option<u32> {
        let translated = self.0.iter().rev().find(|translated| translated.0 == endpoint);
        translated.map(|(_, piece, _)| piece.bytes.into())
    }
}

impl AttachedDrive {
    pub(super) fn new(number: usize, occupant: DriveParts) -> Self {
        let DriveParts { device, plain, enclosure } = occupant;
        let drive = DriveSide::new(device, plain).with(enclosure);
        Self {
            host_endpoint: HostEndpoint::new(number),
            drive,
            stopping: Vec::new(),
            endings: Vec::new(),
            out_transfers: Vec::new(),
            translated: TranslatorBuffer::default(),
            injector: FaultInjector::default(),
            alarm: Alarm::default(),
            completions: VecDeque::new(),
        }
    }

    /// Whether the first transfer of the host on a pipe is over for the device: what ends it is in the translator, and the host has not
    /// asked for it yet.
    pub(super) fn is_over_below(&self, pipe: Pipe, host: &HostPort, is_open: bool) -> bool {
        if !is_open || self.translated.is_empty() || pipe.endpoint.direction() == Direction::Out {
            return false;
        }
        let packet_bytes = u32::from(usb2::Rate::Full.packet_bytes());
        let translated = self.translated.bytes(pipe.endpoint);
        translated.is_some_and(|bytes| bytes < packet_bytes || host.awaits(pipe).0 == Some(bytes))
    }

    /// What a translator had of a piece of a transfer of the host, or for it.
    #[inline]
    pub(super) fn take_translated(
        &mut self,
        transfer: TransferId,
        piece: Option<PacketPayload>,
    ) -> Option<Vec<u8>> {
        if self.translated.is_empty() {
            return None;
        }
        self.translated.take(Controller::endpoint_of(transfer)?, piece?)
    }

    /// Both ends begin anew: nothing is on the link.
    pub(super) fn forget_all(&mut self) {
        self.endings.clear();
        self.out_transfers.clear();
        self.translated = TranslatorBuffer::default();
    }

    /// A transfer of the host has ended: what the device has queued to end it is taken back, lest it end the next one. If that is what
    /// has ended it, it is queued no more. Whether something was to be taken back: the drive is to be told then.
    pub(super) fn forget(&mut self, device: &mut DevicePort, id: TransferId) -> bool {
        self.out_transfers.retain(|going| going.id != id);
        !self.endings.is_empty() && self.withdraw_endings(device, id)
    }

    #[cold]
    #[inline(never)]
    fn withdraw_endings(&mut self, device: &mut DevicePort, id: TransferId) -> bool {
        let before = self.endings.len();
        for ending in self.endings.extract_if(.., |ending| ending.host == id) {
            self.drive.withdraw(device, ending.pipe, ending.device);
        }
        self.endings.len() < before
    }

    /// What the device has to queue to end a transfer of the host: the bytes of room, none for an empty packet. `None` if
    /// nothing is to be queued.
    pub(super) fn wants_end(&self, pipe: Pipe, host: TransferId) -> Option<u32> {
        if self.endings.iter().any(|ending| ending.host == host) {
            return None;
        }
        match pipe.endpoint.direction() {
            Direction::In => Some(0),
            Direction::Out => {
                let out = self.out_transfers.iter().find(|going| going.id == host);
                // It may have all, and the host does not know yet.
                out.map(|going| going.bytes - going.taken).filter(|rest| *rest > 0)
            }
        }
    }
}
