//! What every transport is to the one who drives it, so that BOT, Turbo and UAS are driven by the same code.

use crate::{BusAnswer, Command, CommandId, Deadline, Output, PackId, Piece, RequestId};
use bus::{Completion, Front, TransferId, TransferStatus};
use core::fmt;
use units::Instant;

/// Why a command is not taken. The command is not under way, and nothing will come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// As many as there is room for are under way, or a recovery is. An [`Output::Finished`] will come and make room.
    Full,
    /// The transport cannot carry so long a command block.
    CommandBlock {
        /// The longest it can carry, in bytes.
        bytes_max: u8,
    },
    /// The transport cannot name the logical unit.
    Lun,
    /// The device is gone, or cannot be brought to work again.
    Gone,
}

/// What went wrong so far, and what was done about it. A transport without trouble counts nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Transfers that ended with a stall.
    pub stalls: u32,
    /// Statuses that were not what they should be, and READY IUs for nobody.
    pub odd_statuses: u32,
    /// Commands whose deadline passed.
    pub timeouts: u32,
    /// Wrappers and COMMAND IUs that were sent again.
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
    /// Turbo: packs that failed and were sent again in their parts.
    pub unpacked: u32,
}

impl Counters {
    /// All that ends commands which others have under way: resets of units, of the nexus, of the interface and of the port.
    pub const fn resets(&self) -> u32 {
        self.unit_resets + self.nexus_resets + self.reset_recoveries + self.port_resets
    }
}

/// A transport of SCSI commands over USB, from the host's side.
///
/// The driver calls `submit`, `abort` and the `handle_*` methods as things happen, takes everything from
/// [`poll_output`](Self::poll_output) after each, carries it out in order, and calls
/// [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) says so.
pub trait Transport {
    /// Takes a command on. It ends with one [`Output::Finished`].
    ///
    /// # Errors
    /// A [`Refusal`]; the command is not under way then.
    fn submit(&mut self, now: Instant, command: &Command) -> Result<(), Refusal>;

    /// From now on so many requests are under way at once at most, each of one command or of several that come together: where those
    /// are there, nobody else is worth a wait. Unless told, nobody knows.
    fn expect(&mut self, requests: usize) {
        let _ = requests;
    }

    /// The caller wants a command to end now. It still ends with one [`Output::Finished`], as aborted or as what it
    /// has become in the meantime. Nothing happens if it has ended.
    fn abort(&mut self, now: Instant, id: CommandId);

    /// A transfer has ended. `bytes` is what an In transfer with [`crate::Payload::Message`] has brought, or one into a
    /// buffer that brought [`crate::PEEK_BYTES_MAX`] bytes or fewer; else empty.
    fn handle_completion(&mut self, now: Instant, completion: Completion, bytes: &[u8]);

    /// A transfer out has ended, with all of its bytes sent: quicker to say than by
    /// [`handle_completion`](Self::handle_completion), for whoever carries transfers out on the spot.
    fn handle_sent(&mut self, now: Instant, id: TransferId, bytes: u32) {
        self.handle_completion(now, Completion { id, status: TransferStatus::Done, actual: bytes }, &[]);
    }

    /// A request to the bus was answered.
    fn handle_answer(&mut self, now: Instant, id: RequestId, answer: BusAnswer);

    /// The device is gone. Its transfers still complete each, before or after this; an unanswered request needs no
    /// answer any more.
    fn handle_disconnect(&mut self, now: Instant);

    /// A time has come that [`poll_timeout`](Self::poll_timeout) told. Called early or late, it does no harm.
    fn handle_timeout(&mut self, now: Instant);

    /// The next thing to do.
    fn poll_output(&mut self) -> Option<Output>;

    /// The same where it lies.
    fn next_output(&mut self) -> Option<Front<'_, Output>>;

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest, and what is waited for.
    fn poll_timeout(&self) -> Option<Deadline>;

    /// Whether that is before a time: quicker to say than which it is, for who has an alarm set already.
    fn wants_time_before(&self, at: Instant) -> bool {
        self.poll_timeout().is_some_and(|deadline| deadline.at < at)
    }

    /// Commands that can be under way at once.
    fn depth(&self) -> usize;

    /// Commands under way.
    fn in_flight(&self) -> usize;

    /// What went wrong so far.
    fn counters(&self) -> Counters;

    /// The pieces that a transfer with [`crate::Payload::Pieces`] covers, in order.
    fn pieces(&self, pack: PackId) -> &[Piece] {
        let _ = pack;
        &[]
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("no room for another command"),
            Self::CommandBlock { bytes_max } => {
                write!(f, "command blocks have at most {bytes_max} bytes here")
            }
            Self::Lun => f.write_str("the transport cannot name this logical unit"),
            Self::Gone => f.write_str("the device is gone"),
        }
    }
}

impl core::error::Error for Refusal {}
