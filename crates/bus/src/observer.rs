//! Observation of a host's transfers, for capture.
//!
//! An observer gets what the host sees: a bulk transfer when it is submitted and when its
//! completion is fetched, a control transfer as a whole. Each submitted transfer is reported
//! completed once, unless the device is released before.

use crate::{Pipe, TransferStatus};
use core::fmt;
use wire::usb::SetupPacket;

/// Receives the transfers of a host. Called on the data path, so it should return quickly.
pub trait Observer: Send + fmt::Debug {
    /// Returns the snapshot length: the most payload bytes of a transfer that the observer wants.
    fn snap(&self) -> usize {
        usize::MAX
    }

    /// Reports a submitted transfer; `bytes` is the payload of an Out transfer.
    fn submitted(&mut self, id: u64, pipe: Pipe, length: u32, bytes: &[u8]);

    /// Reports a completed transfer with its status and byte count; `bytes` is the payload of an In
    /// transfer.
    fn completed(&mut self, id: u64, pipe: Pipe, status: TransferStatus, actual: u32, bytes: &[u8]);

    /// Reports a control transfer with the bytes of its data stage and its status.
    fn control(&mut self, setup: SetupPacket, bytes: &[u8], status: TransferStatus);
}
