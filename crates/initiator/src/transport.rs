//! The interface of all transports, so that the same code drives BOT, Turbo and UAS.
//!
//! Always true: a transport holds no payload and knows no clock; each command ends once. Left out:
//! the bus, see [`session`](crate::session).

use crate::{BufferRange, BusAnswer, Command, CommandId, Deadline, Output, PackId, RequestId};
use bus::{Completion, Front, TransferId, TransferStatus};
use core::fmt;
use units::Instant;

/// Why a command is rejected. It is not in flight then and produces no output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The queue is full, or error recovery holds all slots. An [`Output::Finished`] will free one.
    Full,
    /// The command block is too long for the transport.
    CommandBlock {
        /// The longest command block it carries, in bytes.
        bytes_max: u8,
    },
    /// The transport cannot address the logical unit.
    Lun,
    /// The device is disconnected or unrecoverable.
    Gone,
}

/// Counts of errors and of recovery steps; all zero without errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Transfers that ended with a stall.
    pub stalls: u32,
    /// Malformed or unexpected statuses, and READY IUs with an unknown tag.
    pub odd_statuses: u32,
    /// Commands that timed out.
    pub timeouts: u32,
    /// CBWs and COMMAND IUs sent again.
    pub resends: u32,
    /// UAS: ABORT TASK.
    pub task_aborts: u32,
    /// UAS: LOGICAL UNIT RESET.
    pub unit_resets: u32,
    /// UAS: I_T NEXUS RESET.
    pub nexus_resets: u32,
    /// BOT: reset recoveries.
    pub reset_recoveries: u32,
    /// Port resets.
    pub port_resets: u32,
    /// Turbo: merged commands that failed and were sent again one by one.
    pub unpacked: u32,
}

impl Counters {
    /// Returns the number of resets that affect other commands: of logical units, the nexus, the
    /// interface and the port.
    pub const fn resets(&self) -> u32 {
        self.unit_resets + self.nexus_resets + self.reset_recoveries + self.port_resets
    }
}

/// A transport of SCSI commands over USB, from the host's side.
///
/// The driver calls `submit`, `abort` and the `handle_*` methods as things happen, takes everything
/// from [`poll_output`](Self::poll_output) after each, carries it out in order, and calls
/// [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) says so.
pub trait Transport {
    /// Accepts a command. It ends with one [`Output::Finished`].
    ///
    /// # Errors
    ///
    /// A [`Refusal`]; the command is not in flight then.
    fn submit(&mut self, now: Instant, command: &Command) -> Result<(), Refusal>;

    /// Limits the number of requests in flight from now on, each of one command or several
    /// submitted together; with that many queued, Turbo waits for no neighbour. Unlimited by
    /// default.
    fn expect(&mut self, requests: usize) {
        let _ = requests;
    }

    /// Aborts a command. It still ends with one [`Output::Finished`], as aborted or with its actual
    /// outcome. No effect if it has ended.
    fn abort(&mut self, now: Instant, id: CommandId);

    /// Handles the completion of a transfer. `bytes` is the data of an In transfer with
    /// [`crate::Payload::Message`], or of one into a buffer that received at most
    /// [`crate::PEEK_BYTES_MAX`] bytes; else empty.
    fn handle_completion(&mut self, now: Instant, completion: Completion, bytes: &[u8]);

    /// Handles an Out transfer that completed with all bytes sent: a fast path of
    /// [`handle_completion`](Self::handle_completion) for buses that complete synchronously.
    fn handle_sent(&mut self, now: Instant, id: TransferId, bytes: u32) {
        self.handle_completion(now, Completion { id, status: TransferStatus::Done, actual: bytes }, &[]);
    }

    /// Handles the answer to a bus request.
    fn handle_answer(&mut self, now: Instant, id: RequestId, answer: BusAnswer);

    /// Handles a disconnect. Transfers still complete each, before or after this; an outstanding
    /// request needs no answer.
    fn handle_disconnect(&mut self, now: Instant);

    /// Handles a deadline of [`poll_timeout`](Self::poll_timeout). Calling it early or late is
    /// harmless.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns the next output, to be looked at and taken or discarded: it is first again otherwise.
    fn poll_output(&mut self) -> Option<Front<'_, Output>>;

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) at the latest, and why.
    fn poll_timeout(&self) -> Option<Deadline>;

    /// Returns whether the deadline is before `at`: faster than computing it, for a caller with a
    /// timer set.
    fn wants_time_before(&self, at: Instant) -> bool {
        self.poll_timeout().is_some_and(|deadline| deadline.at < at)
    }

    /// Returns one more than the highest transfer id. Ids are dense indices: two transfers in flight
    /// never share one, and an id is used again after its transfer has completed.
    fn transfers_max(&self) -> usize;

    /// Returns the queue depth.
    fn depth(&self) -> usize;

    /// Returns the number of commands in flight.
    fn in_flight(&self) -> usize;

    /// Returns the error counters.
    fn counters(&self) -> Counters;

    /// Returns the buffer ranges of a transfer with [`crate::Payload::Pieces`], in order.
    fn pieces(&self, pack: PackId) -> &[BufferRange] {
        let _ = pack;
        &[]
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("queue full"),
            Self::CommandBlock { bytes_max } => {
                write!(f, "command block too long: at most {bytes_max} bytes")
            }
            Self::Lun => f.write_str("the transport cannot address this logical unit"),
            Self::Gone => f.write_str("device disconnected"),
        }
    }
}

impl core::error::Error for Refusal {}
