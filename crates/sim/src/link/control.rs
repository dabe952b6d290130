//! Control transfers of endpoint 0 on SuperSpeed (USB 3.2 clause 8.12.2): a SETUP data packet,
//! optional data, a STATUS transaction packet.
//!
//! ```text
//!   host                                     device
//!   SETUP, 8 bytes        ───────────────►   always taken, whatever was before
//!                         ◄───────────────   ACK
//!   data to the host:  ACK ──────────────►
//!                         ◄───────────────   DATA, or NRDY and later ERDY
//!   or to the device: DATA ──────────────►
//!                         ◄───────────────   ACK
//!   STATUS                ───────────────►
//!                         ◄───────────────   ACK: done; NRDY and later ERDY: not yet; STALL: refused
//! ```
//!
//! One packet at a time, 512 bytes at most (clause 8.12.2). STALL may come in place of data, and
//! ends with the next SETUP. Data is identified by [`CONTROL_DATA`] for the current transfer. Not
//! modelled: several devices, each with its own endpoint 0.
//!
//! Invariants: one transfer is in progress; each ends once.

mod device;
mod host;

pub use device::{ControlAnswer, ControlDevice, ControlEvent};
pub use host::{ControlBusy, ControlEnd, ControlHost, ControlProgress, ControlTransfer};

use bus::TransferId;
use wire::usb::{Direction, EndpointAddress};

/// Transfer id of control data in a [`PacketPayload`](crate::link::bulk::PacketPayload), on both
/// sides.
pub const CONTROL_DATA: TransferId = TransferId(u64::MAX - 1);

/// Bytes of the largest packet of endpoint 0 at SuperSpeed (clause 9.6.6).
pub const CONTROL_PACKET_BYTES: u16 = 512;

/// Endpoint 0 in a direction.
pub const fn endpoint_0(direction: Direction) -> EndpointAddress {
    EndpointAddress::at::<0>(direction)
}

#[cfg(test)]
mod tests;
