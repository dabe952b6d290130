//! Replies of a server: from bytes to requests that are over.

use super::{Breach, Client};
use crate::medium::nbd::in_flight::{InFlight, Origin, SendStage, WireRequest};
use crate::medium::nbd::lane::{Arriving, Asked, Lane, Meaning, cookie, meaning};
use wire::nbd::{Command, ErrorCode};

impl Client {
    /// Memory for the payload that comes next on a connection, to read it straight to where it belongs.
    pub(in crate::medium::nbd) fn room(&mut self, lane: usize) -> Option<&mut [u8]> {
        let Arriving::Data { slot, at, left, .. } = self.lanes.get(lane)?.arriving else { return None };
        self.memory(slot, at, left)
    }

    /// `len` bytes of that memory were filled.
    ///
    /// # Errors
    /// The server broke the protocol.
    pub(in crate::medium::nbd) fn filled(&mut self, lane: usize, len: usize) -> Result<(), Breach> {
        let Some(lane_of) = self.lanes.get_mut(lane) else { return Ok(()) };
        if let Arriving::Data { slot, at, left, is_last } = lane_of.arriving {
            let left = left.saturating_sub(len);
            lane_of.arriving = match left {
                0 => Arriving::Header,
                left => Arriving::Data { slot, at: at + len, left, is_last },
            };
            if left == 0 && is_last {
                self.answered(slot)?;
            }
        }
        Ok(())
    }

    /// Part of the range of a read.
    fn memory(&mut self, slot: u16, at: usize, len: usize) -> Option<&mut [u8]> {
        let InFlight { origin, request, .. } = self.slots.get_mut(slot)?;
        let Origin::Job(task) = origin else { return None };
        let start = request.range.start + at;
        task.memory(request.memory).get_mut(start..start + len)
    }

    /// Takes what arrived on a connection. Returns how many bytes were taken: the rest is the beginning of a header.
    ///
    /// # Errors
    /// The server broke the protocol, or ends.
    pub(in crate::medium::nbd) fn receive(&mut self, lane: usize, bytes: &[u8]) -> Result<usize, Breach> {
        let mut taken = 0;
        while let Some(&Lane { arriving, .. }) = self.lanes.get(lane) {
            let rest = bytes.get(taken..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            taken += match arriving {
                Arriving::Header => match self.header(lane, rest)? {
                    0 => break,
                    len => len,
                },
                Arriving::Data { slot, at, left, .. } => {
                    let len = left.min(rest.len());
                    self.memory(slot, at, len).ok_or(Breach::Outside)?.copy_from_slice(&rest[..len]);
                    self.filled(lane, len)?;
                    len
                }
                Arriving::Rest { slot, left, is_last } => {
                    let len = left.min(rest.len());
                    let left = left - len;
                    self.lanes[lane].arriving = match left {
                        0 => Arriving::Header,
                        left => Arriving::Rest { slot, left, is_last },
                    };
                    if left == 0 && is_last {
                        self.answered(slot)?;
                    }
                    len
                }
            };
        }
        Ok(taken)
    }

    /// Takes a header. Returns its length; 0: it is not complete.
    fn header(&mut self, lane: usize, bytes: &[u8]) -> Result<usize, Breach> {
        let Some(cookie) = cookie(bytes)? else { return Ok(0) };
        let (slot, terms) = (cookie as u16, self.terms);
        let entry = self.slots.get_mut(slot).filter(|entry| {
            let is_asked = matches!(entry.stage, SendStage::Sending | SendStage::Sent);
            is_asked && entry.cookie(slot) == cookie && usize::from(entry.lane) == lane
        });
        let Some(entry) = entry else { return Err(Breach::Unasked) };
        let WireRequest { command, offset, length, .. } = entry.request;
        let asked = Asked { slot, command, offset, length };
        let (taken, zeroes, next) = match meaning(bytes, asked, &mut entry.reply, &terms)? {
            Meaning::Incomplete => return Ok(0),
            Meaning::Header { taken, next, zeroes } => (taken, zeroes, Some(next)),
            Meaning::Complete { taken, zeroes } => (taken, zeroes, None),
        };
        if let Some((at, len)) = zeroes {
            self.memory(slot, at, len).ok_or(Breach::Outside)?.fill(0);
        }
        match next {
            Some(next) => self.lanes[lane].arriving = next,
            None => self.answered(slot)?,
        }
        Ok(taken)
    }

    /// The reply to a request is complete.
    fn answered(&mut self, slot: u16) -> Result<(), Breach> {
        let Some(entry) = self.slots.get_mut(slot) else { return Ok(()) };
        let reply = entry.reply;
        if reply.error == Some(ErrorCode::Shutdown) {
            return Err(Breach::Shutdown);
        }
        if reply.error.is_none()
            && entry.request.command == Command::Read
            && reply.received != entry.request.length
        {
            return Err(Breach::Outside);
        }
        if entry.stage == SendStage::Sending {
            entry.stage = SendStage::Answered;
            return Ok(());
        }
        self.complete(slot);
        Ok(())
    }
}
