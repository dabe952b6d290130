//! A transport of any kind, chosen at run time.

use crate::{
    Bot, BufferRange, BusAnswer, Command, CommandId, Counters, Deadline, Output, PackId, Refusal, RequestId,
    Transport, Turbo, Uas,
};
use alloc::boxed::Box;
use bus::{Completion, Front, TransferId};
use units::Instant;

/// A transport of one of the kinds, or none: a drive that is not configured has none.
#[derive(Debug)]
pub enum AnyTransport {
    /// None.
    None,
    /// Bulk-only.
    Bot(Bot),
    /// Bulk-only with packing.
    Turbo(Box<Turbo>),
    /// USB Attached SCSI.
    Uas(Uas),
}

/// Forwards a call to the transport, with a default if there is none.
macro_rules! either {
    ($of:expr, $transport:ident => $call:expr, $none:expr) => {
        match $of {
            AnyTransport::None => $none,
            AnyTransport::Bot($transport) => $call,
            AnyTransport::Turbo($transport) => $call,
            AnyTransport::Uas($transport) => $call,
        }
    };
}

impl Transport for AnyTransport {
    fn submit(&mut self, now: Instant, command: &Command) -> Result<(), Refusal> {
        either!(self, transport => transport.submit(now, command), Err(Refusal::Gone))
    }

    fn expect(&mut self, requests: usize) {
        either!(self, transport => transport.expect(requests), ());
    }

    fn abort(&mut self, now: Instant, id: CommandId) {
        either!(self, transport => transport.abort(now, id), ());
    }

    fn handle_completion(&mut self, now: Instant, completion: Completion, bytes: &[u8]) {
        either!(self, transport => transport.handle_completion(now, completion, bytes), ());
    }

    fn handle_sent(&mut self, now: Instant, id: TransferId, bytes: u32) {
        either!(self, transport => transport.handle_sent(now, id, bytes), ());
    }

    fn handle_answer(&mut self, now: Instant, id: RequestId, answer: BusAnswer) {
        either!(self, transport => transport.handle_answer(now, id, answer), ());
    }

    fn handle_disconnect(&mut self, now: Instant) {
        either!(self, transport => transport.handle_disconnect(now), ());
    }

    fn handle_timeout(&mut self, now: Instant) {
        either!(self, transport => transport.handle_timeout(now), ());
    }

    fn poll_output(&mut self) -> Option<Front<'_, Output>> {
        either!(self, transport => transport.poll_output(), None)
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        either!(self, transport => transport.poll_timeout(), None)
    }

    fn wants_time_before(&self, at: Instant) -> bool {
        either!(self, transport => transport.wants_time_before(at), false)
    }

    fn transfers_max(&self) -> usize {
        either!(self, transport => transport.transfers_max(), 0)
    }

    fn depth(&self) -> usize {
        either!(self, transport => transport.depth(), 0)
    }

    fn in_flight(&self) -> usize {
        either!(self, transport => transport.in_flight(), 0)
    }

    fn counters(&self) -> Counters {
        either!(self, transport => transport.counters(), Counters::default())
    }

    fn pieces(&self, pack: PackId) -> &[BufferRange] {
        either!(self, transport => transport.pieces(pack), &[])
    }
}
