//! A drive and the host's transport for it: both ends of every transfer.
//!
//! Left out: the path between both ends, which is the root port's. Invariant: state of a transfer
//! is dropped when it completes.

use super::host_transport::HostTransport;
use crate::engine::{Alarm, EventKey};
use crate::link::bulk::PacketPayload;
use crate::link::{DevicePort, HostPort, usb2};
use crate::machine::drive::DriveSide;
use crate::machine::fault_injector::FaultInjector;
use crate::machine::xhci::DriveParts;
use bus::{EndpointAddress, Pipe, TransferId};
use std::collections::VecDeque;
use wire::usb::Direction;
use xhci_controller::Controller;

#[derive(Debug)]
pub(super) struct AttachedDrive {
    pub(super) host_transport: HostTransport,
    pub(super) drive: DriveSide,
    /// Stopped endpoints that are not quiet yet.
    pub(super) stopping: Vec<EndpointAddress>,
    /// Terminators that the device has queued.
    pub(super) endings: Vec<Ending>,
    /// Data-out transfers on the link.
    pub(super) out_transfers: Vec<OutTransfer>,
    /// Payload in the transaction translator.
    pub(super) translated: TranslatorBuffer,
    /// Faults, seeded bugs and bookkeeping.
    pub(super) injector: FaultInjector,
    /// Alarm of its enclosure.
    pub(super) alarm: Alarm,
    /// Completion keys of medium requests, and whether each is scheduled: only the first is.
    pub(super) completions: VecDeque<(EventKey, bool)>,
}

/// A terminator of a host transfer: an empty packet, or room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    pub(super) pipe: Pipe,
    /// The host's transfer.
    pub(super) host: TransferId,
    /// The terminator.
    pub(super) device: TransferId,
}

/// A data-out transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutTransfer {
    pub(super) id: TransferId,
    pub(super) bytes: u32,
    /// Bytes that the device has accepted.
    pub(super) taken: u32,
}

/// Payload in a transaction translator, whose sender may be done with it.
#[derive(Debug, Default)]
pub(super) struct TranslatorBuffer(Vec<(EndpointAddress, PacketPayload, Vec<u8>)>);

impl TranslatorBuffer {
    /// Pieces per device at most: those in its buffers, and abandoned ones.
    const MOST: usize = 8;

    /// Stores a piece.
    pub(super) fn put(&mut self, endpoint: EndpointAddress, piece: PacketPayload, bytes: &[u8]) {
        self.take(endpoint, piece);
        if self.0.len() == Self::MOST {
            // It was abandoned.
            self.0.remove(0);
        }
        self.0.push((endpoint, piece, bytes.to_vec()));
    }

    /// Removes a piece that the other side has received.
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

    /// Returns the bytes of the last packet of an endpoint.
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
            host_transport: HostTransport::new(number),
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

    /// Returns whether the device is done with the host's first transfer on a pipe: its last packet
    /// is in the translator, and the host has not polled for it.
    pub(super) fn is_over_below(&self, pipe: Pipe, host: &HostPort, is_open: bool) -> bool {
        if !is_open || self.translated.is_empty() || pipe.endpoint.direction() == Direction::Out {
            return false;
        }
        let packet_bytes = u32::from(usb2::Rate::Full.packet_bytes());
        let translated = self.translated.bytes(pipe.endpoint);
        translated.is_some_and(|bytes| bytes < packet_bytes || host.awaits(pipe).0 == Some(bytes))
    }

    /// Takes the translator's copy of a piece of a host transfer.
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

    /// Drops all state of transfers after a restart of the link.
    pub(super) fn forget_all(&mut self) {
        self.endings.clear();
        self.out_transfers.clear();
        self.translated = TranslatorBuffer::default();
    }

    /// Withdraws the terminator of a completed host transfer, so that it does not end the next one.
    /// Returns whether one was withdrawn: the drive is to be notified.
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

    /// Returns the length of the terminator of a host transfer: room in bytes, or 0 for an empty
    /// packet. `None` if none is needed.
    pub(super) fn wants_end(&self, pipe: Pipe, host: TransferId) -> Option<u32> {
        if self.endings.iter().any(|ending| ending.host == host) {
            return None;
        }
        match pipe.endpoint.direction() {
            Direction::In => Some(0),
            Direction::Out => {
                let out = self.out_transfers.iter().find(|going| going.id == host);
                // The device may have all of it, and the host does not know yet.
                out.map(|going| going.bytes - going.taken).filter(|rest| *rest > 0)
            }
        }
    }
}
