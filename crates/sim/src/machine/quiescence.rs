//! What of a transport's transfers may be left when nobody wants anything any more.
//!
//! All of them have ended then, but for those of UAS that are nobody's request: where commands take turns, a transfer stands for the
//! next status, and may do so for ever, as many as there were commands when the unit was reset; and a request may have ended while the function was still to be answered
//! that was to end it, which has its message on the command pipe and its response on the status pipe.
//!
//! The drive is ready for the next message, and offers nothing else.
//!
//! Always true: data are never left, and of everything else there is one at most, but for those statuses.

use super::drive::DriveSide;
use crate::check::{Invariant, Violation, ViolationSubject};
use bus::Pipe;
use device::device::{ActiveTransport, COMMAND, DATA_OUT, STATUS};
use initiator::uas::READY_STATUSES_MAX;
use units::{Duration, Instant};

/// For so long a world is left alone before the drive is asked what it still offers: acknowledgements are on their way when a
/// command ends, a drive may not be ready for the next one for a millisecond, and a link may have to be woken.
pub const QUIESCE_TIME: Duration = Duration::from_ms(10);

/// How a transport waits that nobody wants anything of.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtRest {
    /// Whether commands over UAS take turns on one status pipe.
    pub(super) takes_turns: bool,
    /// Whether the unit was reset, which ended commands whose statuses go on being waited for, and are the next commands'.
    pub(super) was_reset: bool,
    /// Whether something has a deadline: a function of task management, for which no request waits any more.
    pub(super) awaits: bool,
}

impl AtRest {
    /// Whether nothing is left that may not be: on these pipes of the host, where it is called `what`; and with the drive, if that
    /// was left alone and is asked. The bool says that packets were lost.
    ///
    /// # Errors
    /// The violation.
    pub(super) fn audit(
        self,
        now: Instant,
        (pipes, what): (impl Iterator<Item = Pipe>, &'static str),
        drive: Option<(&DriveSide, bool)>,
    ) -> Result<(), Violation> {
        let may_offer = |(drive, has_lost): (&DriveSide, bool)| {
            Self::lets_device_wait(drive.device.transport(), drive.offered(has_lost))
        };
        let about = if !self.lets_host_wait(pipes) {
            what
        } else if !drive.is_none_or(may_offer) {
            "a transfer that the drive still offers"
        } else {
            return Ok(());
        };
        Err(Violation { law: Invariant::TransferOnce, at: now, about: ViolationSubject::Machine(about) })
    }

    /// Whether transfers of the host may be left on these pipes.
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

    /// Whether a device that speaks this may go on offering transfers on these pipes.
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
    fn nothing_is_left_over_streams() {
        assert!(lets(CALM, &[]));
        for endpoint in [STATUS, COMMAND, DATA_IN] {
            assert!(!lets(CALM, &[endpoint]), "{endpoint:?}");
        }
    }

    #[test]
    fn a_drive_at_rest_is_ready_for_one_message() {
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
    fn in_turns_one_transfer_stands_for_a_status() {
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
    fn a_function_that_is_not_answered_has_its_message_and_its_response() {
        let awaits = AtRest { awaits: true, ..CALM };
        assert!(lets(awaits, &[STATUS]));
        assert!(lets(awaits, &[COMMAND, STATUS]));
        assert!(!lets(awaits, &[STATUS, STATUS]));
        assert!(!lets(awaits, &[COMMAND, COMMAND]));
        assert!(!lets(awaits, &[STATUS, DATA_IN]));
    }
}
