//! Payload between the buffers of TDs and packets of the link.
//!
//! Invariant: nothing is read or written outside of the buffers of the TD's TRBs.

use super::memory::{Fault, GuestMemory};
use super::model::Model;
use super::ring::{Act, Ring};
use super::slot::{RingName, Slots};
use alloc::vec::Vec;
use bus::TransferId;
use bus::link::PacketPayload;
use core::ops::Range;
use units::Duration;
use wire::usb::Direction;

/// Bytes of a TD whose TRBs every controller prefetches: sixteen pages.
const READ_AHEAD_BYTES: u32 = 64 << 10;

/// A page of host memory. On hardware buffer pages are scattered and need one TRB each; the
/// simulation uses one TRB per 64 KiB, but still charges the time.
const PAGE_BYTES: u32 = 4 << 10;

impl Slots {
    /// Reads the bytes of an OUT transfer that was queued on the link, from the first that has not
    /// moved. The rest of `into` stays if the transfer is shorter; nothing is read for one that is
    /// no longer outstanding.
    ///
    /// # Errors
    /// If a buffer of it is not in memory.
    pub(super) fn read_transfer(
        &self,
        memory: &impl GuestMemory,
        transfer: TransferId,
        into: &mut [u8],
    ) -> Result<(), Fault> {
        match self.find_td(transfer) {
            Some((ring, place)) => read_td(memory, ring, place, into),
            None => Ok(()),
        }
    }

    /// Returns the bytes of OUT payload; copied to `scratch` if they are not contiguous.
    pub(super) fn bytes<'a>(
        &'a self,
        memory: &'a impl GuestMemory,
        piece: PacketPayload,
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let found = self.find_td(piece.transfer);
        let found = found.and_then(|(ring, place)| Some((ring, place, ring.td(place)?.base + piece.offset)));
        let Some((ring, td, offset)) = found else { return &[] };
        let wanted = u32::from(piece.bytes);
        if let Some((Act::Move(buffer), within, bytes)) = ring.run(td, offset, wanted)
            && bytes == wanted
            && let Some(borrowed) = memory.borrow(buffer.wrapping_add(within.into()), bytes as usize)
        {
            return borrowed;
        }
        scratch.clear();
        gather(memory, ring, td, offset..offset + wanted, scratch);
        scratch
    }

    /// Returns the pause before a page whose TRB was not prefetched.
    pub(super) fn pause_for_trb(&self, model: &Model, piece: PacketPayload) -> Duration {
        if model.next_trb_out == Duration::ZERO {
            return Duration::ZERO;
        }
        let found = self.find_td(piece.transfer);
        let at = found.and_then(|(ring, place)| Some(ring.td(place)?.base + piece.offset));
        match at.filter(|at| *at >= READ_AHEAD_BYTES && at.is_multiple_of(PAGE_BYTES)) {
            Some(_) => model.next_trb_out,
            None => Duration::ZERO,
        }
    }

    /// Returns the ring of an outstanding TD, and the place of the TD there.
    fn find_td(&self, transfer: TransferId) -> Option<(&Ring, usize)> {
        let (to, number) = RingName::of(transfer)?;
        let ring = self.endpoint(to.endpoint_name())?.rings.get(usize::from(to.stream))?;
        let is_first = ring.first().is_some_and(|td| td.number == number);
        let place = if is_first { 0 } else { ring.tds().position(|td| td.number == number)? };
        Some((ring, place))
    }
}

/// Reads the bytes of a TD that have not moved, as many as `into` has room for.
fn read_td(memory: &impl GuestMemory, ring: &Ring, place: usize, into: &mut [u8]) -> Result<(), Fault> {
    let Some(td) = ring.td(place) else { return Ok(()) };
    let (mut offset, mut rest) = (td.base, into);
    while !rest.is_empty() {
        let Some((act, within, length)) = ring.run(place, offset, rest.len() as u32) else { break };
        let (now, later) = rest.split_at_mut(length as usize);
        read_piece(memory, act, within, now)?;
        (rest, offset) = (later, offset + length);
    }
    Ok(())
}

/// Reads the bytes of one TRB from `within` on; a TRB that moves none leaves `into` as it is.
fn read_piece(memory: &impl GuestMemory, act: Act, within: u32, into: &mut [u8]) -> Result<(), Fault> {
    match act {
        Act::Move(buffer) | Act::ControlData(buffer, _) => {
            memory.read_bytes(buffer.wrapping_add(within.into()), into)?;
        }
        Act::Send(bytes) => {
            let within = within as usize;
            let immediate = bytes.get(within..within + into.len()).unwrap_or(&[]);
            into[..immediate.len()].copy_from_slice(immediate);
        }
        _ => {}
    }
    Ok(())
}

/// Writes received data to the buffers of the first TD.
#[inline(always)]
pub(super) fn scatter(
    memory: &mut impl GuestMemory,
    ring: &Ring,
    mut at: u32,
    mut bytes: &[u8],
) -> Result<(), Fault> {
    while !bytes.is_empty() {
        let Some((act, within, len)) = ring.run(0, at, bytes.len() as u32) else { return Ok(()) };
        let (now, later) = bytes.split_at(len as usize);
        if let Act::Move(buffer) | Act::ControlData(buffer, Direction::In) = act {
            memory.write(buffer.wrapping_add(within.into()), now)?;
        }
        (bytes, at) = (later, at + len);
    }
    Ok(())
}

/// Reads a span of the OUT data of a TD. Missing memory reads as empty.
pub(super) fn gather(
    memory: &impl GuestMemory,
    ring: &Ring,
    td: usize,
    span: Range<u32>,
    into: &mut Vec<u8>,
) {
    let mut at = span.start;
    while at < span.end {
        let Some((act, within, len)) = ring.run(td, at, span.end - at) else { return };
        let from = into.len();
        into.resize(from + len as usize, 0);
        if read_piece(memory, act, within, &mut into[from..]).is_err() {
            into.truncate(from);
        }
        at += len;
    }
}
