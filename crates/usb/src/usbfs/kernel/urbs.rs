//! URBs: submitted, discarded, reaped.
//!
//! A table of fixed length; a place in it is one URB from its submission until it was reaped.
//! Always true: an URB that the kernel has is not moved, changed or looked at.

use super::layout::{self, FLAG_CONTINUATION, FLAG_SHORT_NOT_OK, KIND_BULK, Urb};
use super::memory::Memory;
use super::node::Node;
use crate::host_bus::BufferId;
use crate::usbfs::pieces::{Piece, Ticket};
use bus::TransferStatus;
use rustix::ffi::c_void;
use rustix::io::{Errno, Result};
use std::cell::UnsafeCell;
use std::fmt;
use std::ptr;

/// The highest error number that there can be (MAX_ERRNO).
const ERRNO_MAX: i32 = 4095;

/// URBs at once.
pub(super) struct Urbs {
    table: Box<[UnsafeCell<Urb>]>,
    outstanding: Vec<Option<Submitted>>,
    free: Vec<u16>,
}

#[derive(Clone, Copy, Debug)]
struct Submitted {
    ticket: Ticket,
    buffer: BufferId,
}

/// An URB that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::usbfs) struct Reaped {
    pub(in crate::usbfs) ticket: Ticket,
    pub(in crate::usbfs) status: TransferStatus,
    /// Bytes moved.
    pub(in crate::usbfs) actual: u32,
}

impl Urbs {
    pub(super) fn new(count: u16) -> Self {
        Self {
            table: (0..count).map(|_| UnsafeCell::new(Urb::EMPTY)).collect(),
            outstanding: vec![None; count.into()],
            free: (0..count).rev().collect(),
        }
    }

    /// Hands an URB to the kernel. It comes back by [`Self::reap`] unless this fails: `EBUSY` is
    /// our own table being full.
    pub(super) fn submit(&mut self, node: &Node, memory: &mut Memory, piece: &Piece) -> Result<()> {
        let length = i32::try_from(piece.span.range.len).map_err(|_| Errno::INVAL)?;
        let place = self.free.pop().ok_or(Errno::BUSY)?;
        let Some(buffer) = memory.buffers().start_transfer(piece.span) else {
            self.free.push(place);
            return Err(Errno::FAULT);
        };
        let mut flags = 0;
        if piece.short_stops {
            flags |= FLAG_SHORT_NOT_OK;
        }
        if piece.continues {
            flags |= FLAG_CONTINUATION;
        }
        let urb = self.table[usize::from(place)].get();
        // SAFETY: the place is free, so the kernel does not have this URB and there is no reference
        // to it. The buffer is in a buffer that is lent until the URB is reaped, with `length`
        // bytes behind it.
        let submitted = unsafe {
            urb.write(Urb {
                kind: KIND_BULK,
                endpoint: piece.pipe.endpoint.into(),
                flags,
                buffer: buffer.cast(),
                buffer_length: length,
                stream_id: piece.pipe.stream.map_or(0, |stream| stream.get().into()),
                ..Urb::EMPTY
            });
            node.call(layout::SUBMIT_URB, urb)
        };
        match submitted {
            Ok(_) => {
                self.outstanding[usize::from(place)] =
                    Some(Submitted { ticket: piece.ticket, buffer: piece.span.buffer });
                Ok(())
            }
            Err(errno) => {
                memory.buffers().end_transfer(piece.span.buffer);
                self.free.push(place);
                Err(errno)
            }
        }
    }

    /// Discards the URBs of a transfer. Each is still reaped, with its status.
    pub(super) fn discard(&self, node: &Node, transfer: u32) {
        for (outstanding, urb) in self.outstanding.iter().zip(&self.table) {
            if outstanding.is_some_and(|outstanding| outstanding.ticket.transfer == transfer) {
                // SAFETY: the kernel only compares the address with those of the URBs that it has.
                // An error says that this one has ended already.
                let _ = unsafe { node.call(layout::DISCARD_URB, urb.get()) };
            }
        }
    }

    /// An URB that has ended, if one has. `ENODEV` once the device is gone and nothing is left.
    pub(super) fn reap(&mut self, node: &Node, memory: &mut Memory) -> Result<Option<Reaped>> {
        let mut ended: *mut c_void = ptr::null_mut();
        // SAFETY: the kernel writes one address to `ended`. Before that it writes to the URB with
        // this address, and to its buffer if that is memory of this process: both are in places
        // that are kept until now, since it has only addresses that were handed in by `submit`.
        match unsafe { node.call(layout::REAP_URB_NO_DELAY, ptr::from_mut(&mut ended)) } {
            Ok(_) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(errno) => return Err(errno),
        }
        let offset = (ended as usize).wrapping_sub(self.table.as_ptr() as usize);
        let place = offset / size_of::<UnsafeCell<Urb>>();
        let outstanding = self.outstanding.get_mut(place).and_then(Option::take).ok_or(Errno::FAULT)?;
        // SAFETY: the kernel has released this URB, and there is no reference to it; all its fields
        // are numbers and pointers, of which any value is one.
        let urb = unsafe { self.table[place].get().read() };
        memory.buffers().end_transfer(outstanding.buffer);
        self.free.push(place as u16);
        let actual = u32::try_from(urb.actual_length).unwrap_or(0);
        let asked = u32::try_from(urb.buffer_length).unwrap_or(0);
        Ok(Some(Reaped { ticket: outstanding.ticket, status: status_of(urb.status, actual, asked), actual }))
    }

    pub(super) fn in_flight(&self) -> usize {
        self.outstanding.len() - self.free.len()
    }
}

/// Returns the transfer status of an URB's status (Documentation/driver-api/usb/error-codes.rst).
fn status_of(status: i32, actual: u32, asked: u32) -> TransferStatus {
    match status.saturating_neg() {
        0 if actual == asked => TransferStatus::Done,
        0 => TransferStatus::Short,
        errno @ 1..=ERRNO_MAX => status_of_errno(Errno::from_raw_os_error(errno)),
        _ => TransferStatus::Error,
    }
}

/// Returns the transfer status of an error of an URB, or of its submission.
pub(in crate::usbfs) fn status_of_errno(errno: Errno) -> TransferStatus {
    match errno {
        Errno::PIPE => TransferStatus::Stall,
        Errno::NOENT | Errno::CONNRESET => TransferStatus::Cancelled,
        Errno::REMOTEIO => TransferStatus::Short,
        Errno::OVERFLOW => TransferStatus::Babble,
        Errno::NODEV | Errno::SHUTDOWN => TransferStatus::Disconnected,
        _ => TransferStatus::Error,
    }
}

impl fmt::Debug for Urbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Urbs").field("in_flight", &self.in_flight()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_of_the_kernel_is_taken_for_what_it_means() {
        assert_eq!(status_of(0, 512, 512), TransferStatus::Done);
        assert_eq!(status_of(0, 0, 512), TransferStatus::Short);
        assert_eq!(status_of(-32, 0, 512), TransferStatus::Stall);
        assert_eq!(status_of(-121, 100, 512), TransferStatus::Short);
        assert_eq!(status_of(-75, 512, 512), TransferStatus::Babble);
        assert_eq!(status_of(-2, 0, 512), TransferStatus::Cancelled);
        assert_eq!(status_of(-104, 0, 512), TransferStatus::Cancelled);
        assert_eq!(status_of(-108, 0, 512), TransferStatus::Disconnected);
        assert_eq!(status_of(-71, 0, 512), TransferStatus::Error);
        assert_eq!(status_of(i32::MIN, 0, 512), TransferStatus::Error);
    }
}
