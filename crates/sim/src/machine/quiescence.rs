//! Transfers that may remain in flight once no command is outstanding.
//!
//! All have completed then, except those of UAS that belong to no command. Without streams a
//! transfer waits for the next status, possibly forever; after a logical unit reset as many may
//! wait as there were commands. A command may also complete while the task management function that
//! was to abort it is outstanding, with its IU on the command pipe and its response on the status
//! pipe.
//!
//! The drive waits for the next command and offers nothing else.
//!
//! Invariants: no data transfers remain; of everything else at most one, apart from those statuses.

use super::drive::DriveSide;
use crate::check::{Invariant, Violation, ViolationSubject};
use bus::Pipe;
use device::device::{ActiveTransport, COMMAND, DATA_OUT, STATUS};
use initiator::uas::READY_STATUSES_MAX;
use units::{Duration, Instant};

/// Time for which a machine is left idle before the drive is checked for queued transfers:
/// acknowledgements are in flight when a command completes, a drive may not be ready for 1 ms, and
/// a link may have to wake up.
pub const QUIESCE_TIME: Duration = Duration::from_ms(10);

/// State of a transport without outstanding commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtRest {
    /// Whether UAS runs without streams, on one status pipe.
    pub(super) takes_turns: bool,
    /// Whether the logical unit was reset: status transfers of the terminated commands remain for
    /// later commands.
    pub(super) was_reset: bool,
    /// Whether task management is outstanding that no command waits for.
    pub(super) awaits: bool,
}

impl AtRest {
    /// Checks the host's remaining transfers, which `what` names, and those of the drive if the
    /// machine was left idle. The bool says that packets were lost.
    ///
    /// # Errors
    /// The violation.
    pub(super) fn audit(
        self,
        now: Instant,
        pipes: impl Iterator<Item = Pipe>,
        what: &'static str,
        drive: Option<(&DriveSide, bool)>,
    ) -> Result<(), Violation> {
        let may_offer = |(drive, has_lost): (&DriveSide, bool)| {
            Self::lets_device_wait(drive.device.transport(), drive.offered(has_lost))
        };
        let subject = if !self.lets_host_wait(pipes) {
            what
        } else if !drive.is_none_or(may_offer) {
            "a transfer that the drive still offers"
        } else {
            return Ok(());
        };
        Err(Violation {
            invariant: Invariant::TransferOnce,
            at: now,
            subject: ViolationSubject::Machine(subject),
        })
    }

    /// Returns whether host transfers may remain on these pipes.
    fn lets_host_wait(self, pipes: impl Iterator<Item = Pipe>) -> bool {
        let mut statuses = match self.takes_turns && self.was_reset {
            true => READY_STATUSES_MAX as u32,
            false => u32::from(self.takes_turns || self.awaits),
        };
        let mut messages = u32::from(self.awaits);
        for pipe in pipes {
            let places = match pipe.endpoint {
                STATUS => &mut statuses,
                COMMAND => &mut messages,
                _ => return false,
            };
            let Some(fewer) = places.checked_sub(1) else { return false };
            *places = fewer;
        }
        true
    }

    /// Returns whether a device may have transfers queued on these pipes.
    fn lets_device_wait(transport: ActiveTransport, mut pipes: impl Iterator<Item = Pipe>) -> bool {
        let message = match transport {
            ActiveTransport::Uas { .. } => COMMAND,
            _ => DATA_OUT,
        };
        let first = pipes.next();
        first.is_none_or(|pipe| pipe.endpoint == message) && pipes.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::device::DATA_IN;

    const CALM: AtRest = AtRest { takes_turns: false, was_reset: false, awaits: false };

    fn lets(rest: AtRest, endpoints: &[bus::EndpointAddress]) -> bool {
        rest.lets_host_wait(endpoints.iter().map(|endpoint| Pipe::plain(*endpoint)))
    }

    #[test]
    fn no_transfer_remains_with_streams() {
        assert!(lets(CALM, &[]));
        for endpoint in [STATUS, COMMAND, DATA_IN] {
            assert!(!lets(CALM, &[endpoint]), "{endpoint:?}");
        }
    }

    #[test]
    fn an_idle_drive_waits_for_one_command() {
        let offers = |transport, endpoints: &[bus::EndpointAddress]| {
            AtRest::lets_device_wait(transport, endpoints.iter().map(|endpoint| Pipe::plain(*endpoint)))
        };
        let uas = ActiveTransport::Uas { streams: true };
        assert!(offers(uas, &[]) && offers(uas, &[COMMAND]));
        assert!(offers(ActiveTransport::Bot, &[DATA_OUT]));
        assert!(!offers(uas, &[COMMAND, COMMAND]));
        assert!(!offers(uas, &[DATA_OUT]) && !offers(ActiveTransport::Bot, &[DATA_IN]));
        assert!(!offers(uas, &[STATUS]) && !offers(uas, &[COMMAND, STATUS]));
    }

    #[test]
    fn without_streams_one_status_transfer_may_remain() {
        let turns = AtRest { takes_turns: true, ..CALM };
        assert!(lets(turns, &[STATUS]));
        assert!(!lets(turns, &[STATUS, STATUS]));
        assert!(!lets(turns, &[COMMAND]));
        let was_reset = AtRest { was_reset: true, ..turns };
        assert!(lets(was_reset, &[STATUS; READY_STATUSES_MAX]));
        assert!(!lets(was_reset, &[STATUS; READY_STATUSES_MAX + 1]) && !lets(was_reset, &[STATUS, DATA_IN]));
        assert!(!lets(AtRest { was_reset: true, ..CALM }, &[STATUS]), "each has its stream");
    }

    #[test]
    fn outstanding_task_management_may_have_its_transfers() {
        let awaits = AtRest { awaits: true, ..CALM };
        assert!(lets(awaits, &[STATUS]));
        assert!(lets(awaits, &[COMMAND, STATUS]));
        assert!(!lets(awaits, &[STATUS, STATUS]));
        assert!(!lets(awaits, &[COMMAND, COMMAND]));
        assert!(!lets(awaits, &[STATUS, DATA_IN]));
    }
}
