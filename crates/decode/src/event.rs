//! One end of a transfer: what usbmon, USBPcap and packets have in common.
//!
//! A transfer is submitted, with the bytes it takes to the device, and ends, with the bytes it brings. Captures of packets have
//! both at once. Direction is the host's.

use capture::Packet;
use std::fmt;
use wire::usb::{Direction, EndpointAddress, SetupPacket};

/// Where a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Number of the bus; 0 where a capture does not say.
    pub bus: u16,
    /// Address of the device on it.
    pub device: u16,
}

/// A packet of the capture, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Its number, from 1.
    pub packet: u64,
    /// Its time, in nanoseconds since the capture's zero.
    pub at_ns: u64,
}

impl Mark {
    /// Returns the number and the time of a packet.
    pub(crate) const fn of(packet: &Packet<'_>) -> Self {
        Self { packet: packet.number, at_ns: packet.at_ns }
    }
}

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferEnd {
    /// With bytes, perhaps fewer than there was room for.
    Done,
    /// The endpoint stalled.
    Stalled,
    /// The host cancelled it.
    Cancelled,
    /// The device went away.
    Gone,
    /// More bytes came than there was room for.
    Babble,
    /// In another way, by the number that the capture gives.
    Failed(i64),
}

/// Which end of a transfer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The host has handed it in.
    Submitted,
    /// It is over.
    Completed(TransferEnd),
    /// Both.
    Whole(TransferEnd),
}

/// Kind of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferKind {
    Control,
    Bulk,
    Interrupt,
    Isochronous,
}

/// One end of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<'a> {
    pub(crate) mark: Mark,
    pub(crate) address: Address,
    /// In captures of packets, bulk stands for interrupt as well.
    pub(crate) kind: TransferKind,
    pub(crate) endpoint: EndpointAddress,
    /// The same at both ends.
    pub(crate) id: u64,
    pub(crate) phase: Phase,
    /// Of a control transfer that is submitted.
    pub(crate) setup: Option<SetupPacket>,
    /// Bytes asked for or sent, and at the end bytes moved; nothing where the capture does not say.
    pub(crate) length: Option<u32>,
    /// The bytes that were kept.
    pub(crate) bytes: &'a [u8],
    pub(crate) stream: Option<u16>,
}

impl Event<'_> {
    pub(crate) fn is_submitted(&self) -> bool {
        matches!(self.phase, Phase::Submitted | Phase::Whole(_))
    }

    pub(crate) fn ended(&self) -> Option<TransferEnd> {
        match self.phase {
            Phase::Submitted => None,
            Phase::Completed(ended) | Phase::Whole(ended) => Some(ended),
        }
    }

    pub(crate) fn is_in(&self) -> bool {
        self.endpoint.direction() == Direction::In
    }

    pub(crate) fn is_control(&self) -> bool {
        self.endpoint.number() == 0
    }

    /// Its bytes, 0 where they are not known.
    pub(crate) fn len(&self) -> u32 {
        self.length.unwrap_or(0)
    }

    /// Whether all of its bytes were kept.
    pub(crate) fn is_whole(&self) -> bool {
        self.bytes.len() >= self.len() as usize
    }
}

impl TransferEnd {
    /// By an error number of Linux.
    pub(crate) fn of_errno(errno: i32) -> Self {
        match errno {
            // EREMOTEIO: fewer bytes than asked for, to a driver that minds.
            0 | -121 => Self::Done,
            -32 => Self::Stalled,
            // ENOENT and ECONNRESET: by URB or by endpoint.
            -2 | -104 => Self::Cancelled,
            // ENODEV and ESHUTDOWN.
            -19 | -108 => Self::Gone,
            -75 => Self::Babble,
            other => Self::Failed(other.into()),
        }
    }
}

impl fmt::Display for Address {
    /// `2.5`: device 5 on bus 2.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.bus, self.device)
    }
}

impl fmt::Display for TransferEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Stalled => f.write_str("stall"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Gone => f.write_str("device gone"),
            Self::Babble => f.write_str("babble"),
            Self::Failed(number) => write!(f, "error {number}"),
        }
    }
}
