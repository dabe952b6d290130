//! The next action after a completed command (SAM-5 clause 5.3, SPC-5 sense keys and additional
//! sense codes).
//!
//! Pure: maps an outcome to a verdict. [`RetryCounts`] limits retries. Where standards leave a
//! choice, this follows Linux's `scsi_check_sense`.
//!
//! Left out: the byte count, which the caller must check after [`Verdict::Done`].

use super::config::RetryLimits;
use super::request::{Error, Field, LostWrite};
use crate::{Answer, Failure, Outcome};
use units::{Duration, Instant, Lba};
use wire::scsi::sense::{AdditionalSense, KeySpecific, Sense, SenseKey};
use wire::scsi::{Status, StatusQualifier};
use wire::uas::ResponseCode;

/// The verdict on a command that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was executed.
    Done,
    /// It was not executed; a retry may succeed.
    Transient(TransientError),
    /// It was not executed; a retry is useless.
    End(Error),
}

/// Why a command was not executed this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TransientError {
    pub(super) cause: Cause,
    /// The error if retries are exhausted.
    pub(super) error: Error,
}

/// Why and when to retry a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A transient fault: at once.
    Passing,
    /// A unit attention: at once.
    Attention {
        /// Whether the result of identification may be outdated.
        changed: bool,
    },
    /// The unit is busy: later.
    Busy {
        /// How much later, if the unit specifies it.
        wait: Option<Duration>,
    },
    /// The unit is becoming ready: later.
    NotReady,
    /// The unit needs START STOP UNIT.
    Stopped,
}

/// The meaning of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// An acknowledged write was lost.
    pub(super) lost: Option<LostWrite>,
    /// RECOVERED ERROR.
    pub(super) recovered: bool,
}

/// How often one command was retried, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RetryCounts {
    attempts: u8,
    attentions: u8,
    busy: u8,
    unready_since: Option<Instant>,
}

/// When a command is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    AtOnce,
    At(Instant),
    Never,
}

impl RetryCounts {
    /// Counts a retry and returns when to do it.
    pub(super) fn count(&mut self, cause: Cause, retry_limits: &RetryLimits, now: Instant) -> Next {
        match cause {
            Cause::Passing => {
                self.attempts = self.attempts.saturating_add(1);
                if self.attempts < retry_limits.attempts_max { Next::AtOnce } else { Next::Never }
            }
            Cause::Attention { .. } => {
                self.attentions = self.attentions.saturating_add(1);
                if self.attentions <= retry_limits.attentions_max { Next::AtOnce } else { Next::Never }
            }
            Cause::Busy { wait } => {
                if self.busy >= retry_limits.busy_max {
                    return Next::Never;
                }
                let doubled = retry_limits.busy_wait.as_ps().saturating_mul(1 << self.busy.min(40));
                self.busy += 1;
                let wait = wait.unwrap_or(Duration::from_ps(doubled)).min(retry_limits.busy_wait_max);
                Next::At(now + wait.max(retry_limits.busy_wait))
            }
            Cause::NotReady | Cause::Stopped => {
                let since = *self.unready_since.get_or_insert(now);
                if now.since(since) >= retry_limits.ready_wait {
                    return Next::Never;
                }
                Next::At(now + retry_limits.ready_poll)
            }
        }
    }
}

/// Returns the meaning of an outcome.
pub(super) fn judge(outcome: &Outcome) -> Judged {
    match outcome {
        Outcome::Answered(answer) => judge_answer(answer),
        Outcome::Failed(failure) => plain(judge_failure(*failure)),
    }
}

const fn plain(verdict: Verdict) -> Judged {
    Judged { verdict, lost: None, recovered: false }
}

const fn passing(error: Error) -> Verdict {
    Verdict::Transient(TransientError { cause: Cause::Passing, error })
}

fn judge_failure(failure: Failure) -> Verdict {
    match failure {
        Failure::Disconnected | Failure::Unrecoverable => Verdict::End(Error::Gone),
        Failure::Aborted => Verdict::End(Error::Aborted),
        Failure::Refused(ResponseCode::IncorrectLun) => Verdict::End(Error::Gone),
        passed => passing(Error::Transport(passed)),
    }
}

fn judge_answer(answer: &Answer) -> Judged {
    let status = answer.status;
    match status {
        _ if answer.is_good() => plain(Verdict::Done),
        Status::CheckCondition => match answer.sense.decode() {
            Some(sense) => judge_sense(&sense),
            None => plain(passing(Error::Status(status))),
        },
        Status::Busy | Status::TaskSetFull => {
            let asked = StatusQualifier(answer.status_qualifier).retry_after_100_ms();
            let wait = asked.map(|hundreds| Duration::from_ms(u64::from(hundreds) * 100));
            let (cause, error) = (Cause::Busy { wait }, Error::Busy(status));
            plain(Verdict::Transient(TransientError { cause, error }))
        }
        Status::ReservationConflict => plain(Verdict::End(Error::ReservationConflict)),
        Status::TaskAborted => plain(passing(Error::Status(status))),
        _ => plain(Verdict::End(Error::Status(status))),
    }
}

fn judge_sense(sense: &Sense) -> Judged {
    if sense.deferred {
        return judge_deferred(sense);
    }
    let verdict = verdict_of(sense);
    Judged { verdict, lost: None, recovered: sense.key == SenseKey::RecoveredError }
}

/// Judges sense data about an earlier command; this one was not started.
fn judge_deferred(sense: &Sense) -> Judged {
    let Sense { key, additional, .. } = *sense;
    let is_informative =
        matches!(key, SenseKey::NoSense | SenseKey::RecoveredError | SenseKey::UnitAttention);
    let lost = LostWrite { key, additional, lba: sense.information.map(Lba) };
    let error = if is_informative { Error::Sense { key, additional } } else { Error::LostWrite(lost) };
    Judged { verdict: passing(error), lost: (!is_informative).then_some(lost), recovered: false }
}

fn verdict_of(sense: &Sense) -> Verdict {
    let Sense { key, additional, .. } = *sense;
    match key {
        SenseKey::RecoveredError | SenseKey::Completed => Verdict::Done,
        // A check condition about nothing, as of bridges that lose what there was to say: that all
        // went well is not said.
        SenseKey::NoSense => passing(Error::Sense { key, additional }),
        SenseKey::NotReady => not_ready(additional),
        SenseKey::MediumError => medium_error(sense),
        SenseKey::HardwareError => Verdict::End(Error::Hardware(additional)),
        SenseKey::IllegalRequest => Verdict::End(illegal_request(sense)),
        SenseKey::UnitAttention => {
            let (cause, error) =
                (Cause::Attention { changed: changes(additional) }, Error::Attention(additional));
            Verdict::Transient(TransientError { cause, error })
        }
        SenseKey::DataProtect => Verdict::End(data_protect(additional)),
        // A protection information check fails again.
        SenseKey::AbortedCommand if additional.asc == ASC_PROTECTION_CHECK => {
            Verdict::End(Error::AbortedCommand(additional))
        }
        SenseKey::AbortedCommand => passing(Error::AbortedCommand(additional)),
        _ => Verdict::End(Error::Sense { key, additional }),
    }
}

fn not_ready(additional: AdditionalSense) -> Verdict {
    let error = Error::NotReady(additional);
    let later = |cause| Verdict::Transient(TransientError { cause, error });
    match additional {
        AdditionalSense { asc: ASC_NO_MEDIUM, .. } => Verdict::End(Error::NoMedium),
        AdditionalSense::NOT_READY_INITIALIZING_COMMAND_REQUIRED
        | AdditionalSense::NOT_READY_NOTIFY_REQUIRED => later(Cause::Stopped),
        AdditionalSense::NOT_READY_MANUAL_INTERVENTION_REQUIRED => Verdict::End(error),
        // These take hours; no one waits for them here.
        AdditionalSense::NOT_READY_FORMAT_IN_PROGRESS | AdditionalSense::NOT_READY_SANITIZE_IN_PROGRESS => {
            Verdict::End(error)
        }
        AdditionalSense { asc: ASC_NOT_READY, .. }
        | AdditionalSense::LOGICAL_UNIT_HAS_NOT_SELF_CONFIGURED_YET => later(Cause::NotReady),
        _ => Verdict::End(error),
    }
}

fn medium_error(sense: &Sense) -> Verdict {
    let error = Error::Medium { lba: sense.information.map(Lba), additional: sense.additional };
    match sense.additional.asc {
        // The unit has tried enough by itself.
        ASC_UNRECOVERED_READ | ASC_ADDRESS_MARK | ASC_RECORD_NOT_FOUND => Verdict::End(error),
        _ => passing(error),
    }
}

fn illegal_request(sense: &Sense) -> Error {
    match sense.additional {
        AdditionalSense::INVALID_COMMAND_OPERATION_CODE => Error::Unsupported,
        AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE => Error::OutOfRange,
        AdditionalSense::LOGICAL_UNIT_NOT_SUPPORTED => Error::Gone,
        additional => {
            let field = match sense.key_specific {
                Some(KeySpecific::FieldPointer { in_cdb, byte, bit }) => Some(Field { in_cdb, byte, bit }),
                _ => None,
            };
            Error::IllegalRequest { additional, field }
        }
    }
}

const fn data_protect(additional: AdditionalSense) -> Error {
    match additional {
        AdditionalSense::SPACE_ALLOCATION_FAILED_WRITE_PROTECT => Error::NoSpace,
        AdditionalSense { asc: ASC_WRITE_PROTECTED, .. } => Error::WriteProtected,
        _ => Error::Protected(additional),
    }
}

/// Returns whether a unit attention invalidates the result of identification.
const fn changes(additional: AdditionalSense) -> bool {
    matches!(
        additional,
        AdditionalSense { asc: ASC_MEDIUM_CHANGED, .. }
            | AdditionalSense::PARAMETERS_CHANGED
            | AdditionalSense::MODE_PARAMETERS_CHANGED
            | AdditionalSense::CAPACITY_DATA_HAS_CHANGED
            | AdditionalSense::MICROCODE_HAS_BEEN_CHANGED
            | AdditionalSense::INQUIRY_DATA_HAS_CHANGED
    )
}

const ASC_NOT_READY: u8 = 0x04;
const ASC_PROTECTION_CHECK: u8 = 0x10;
const ASC_UNRECOVERED_READ: u8 = 0x11;
const ASC_ADDRESS_MARK: u8 = 0x13;
const ASC_RECORD_NOT_FOUND: u8 = 0x14;
const ASC_WRITE_PROTECTED: u8 = 0x27;
const ASC_MEDIUM_CHANGED: u8 = 0x28;
const ASC_NO_MEDIUM: u8 = 0x3a;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Script, write_10};
    use crate::uas::{UasConfig, UasEndpoints};
    use crate::{SenseBytes, Timeouts, Uas};
    use bus::{Direction, EndpointAddress};

    fn with_sense(bytes: &[u8]) -> Judged {
        let sense = SenseBytes::new(bytes);
        judge(&Outcome::Answered(Answer {
            status: Status::CheckCondition,
            status_qualifier: 0,
            moved: 0,
            sense,
        }))
    }

    /// Fixed format with this key, ASC and ASCQ.
    fn verdict(key: u8, asc: u8, ascq: u8) -> Verdict {
        with_sense(&[0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc, ascq, 0, 0, 0, 0]).verdict
    }

    fn cause(verdict: Verdict) -> Option<Cause> {
        match verdict {
            Verdict::Transient(transient) => Some(transient.cause),
            Verdict::Done | Verdict::End(_) => None,
        }
    }

    #[test]
    fn a_medium_error_names_its_block() {
        let fixed = [0xf0, 0, 0x03, 0, 0, 0x12, 0x34, 10, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0];
        let additional = AdditionalSense::UNRECOVERED_READ_ERROR;
        let error = Error::Medium { lba: Some(Lba(0x1234)), additional };
        assert_eq!(with_sense(&fixed).verdict, Verdict::End(error));
        let described = [0x72, 0x03, 0x11, 0, 0, 0, 0, 12, 0x00, 10, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 2];
        let error = Error::Medium { lba: Some(Lba(0x1_0000_0002)), additional };
        assert_eq!(with_sense(&described).verdict, Verdict::End(error));
        assert_eq!(cause(verdict(0x03, 0x0c, 0x00)), Some(Cause::Passing));
    }

    #[test]
    fn a_check_condition_about_nothing_is_no_success() {
        let error = Error::Sense { key: SenseKey::NoSense, additional: AdditionalSense { asc: 0, ascq: 0 } };
        assert_eq!(verdict(0x00, 0x00, 0x00), passing(error));
        assert_eq!(verdict(0x01, 0x17, 0x01), Verdict::Done);
    }

    #[test]
    fn a_write_over_uas_that_ends_with_a_check_condition_about_nothing_is_no_success() {
        let at = |number, direction| EndpointAddress::new(number, direction).unwrap();
        let endpoints = UasEndpoints {
            command: at(4, Direction::Out),
            status: at(3, Direction::In),
            data_in: at(1, Direction::In),
            data_out: at(2, Direction::Out),
        };
        let timeouts = Timeouts::default();
        let config =
            UasConfig { interface: 0, alternate: 1, endpoints, streams: Some(16), depth: None, timeouts };
        let mut script = Script::new(Uas::new(config).expect("streams enough"));
        script.submit(write_10(0, 9, 1));
        let status = script.expect_transfer(endpoints.status);
        let blocks = script.expect_transfer(endpoints.data_out);
        let command = script.expect_transfer(endpoints.command);
        script.done(command);
        script.done(blocks);
        // SENSE IU of tag 1: CHECK CONDITION, and 18 bytes of sense data in fixed format.
        let mut sense_iu = [0; 34];
        (sense_iu[0], sense_iu[3], sense_iu[6], sense_iu[15]) = (3, 1, 2, 18);
        (sense_iu[16], sense_iu[23]) = (0x70, 10);
        script.reply(status, &sense_iu);
        let error = Error::Sense { key: SenseKey::NoSense, additional: AdditionalSense { asc: 0, ascq: 0 } };
        assert_eq!(judge(&script.expect_finished(0)).verdict, passing(error));
    }

    #[test]
    fn a_unit_that_is_becoming_ready_is_waited_for() {
        assert_eq!(cause(verdict(0x02, 0x04, 0x01)), Some(Cause::NotReady));
        assert_eq!(cause(verdict(0x02, 0x04, 0x02)), Some(Cause::Stopped));
        assert_eq!(verdict(0x02, 0x3a, 0x02), Verdict::End(Error::NoMedium));
        let for_good = AdditionalSense { asc: 0x04, ascq: 0x03 };
        assert_eq!(verdict(0x02, 0x04, 0x03), Verdict::End(Error::NotReady(for_good)));
    }

    #[test]
    fn a_unit_attention_is_reported_and_updates_what_is_known() {
        assert_eq!(cause(verdict(0x06, 0x29, 0x00)), Some(Cause::Attention { changed: false }));
        assert_eq!(cause(verdict(0x06, 0x2a, 0x09)), Some(Cause::Attention { changed: true }));
        assert_eq!(cause(verdict(0x06, 0x28, 0x00)), Some(Cause::Attention { changed: true }));
    }

    #[test]
    fn an_illegal_request_points_to_its_field() {
        let sense = [0x70, 0, 0x05, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0xcb, 0x00, 0x01];
        let field = Some(Field { in_cdb: true, byte: 1, bit: Some(3) });
        let additional = AdditionalSense::INVALID_FIELD_IN_CDB;
        assert_eq!(with_sense(&sense).verdict, Verdict::End(Error::IllegalRequest { additional, field }));
        assert_eq!(verdict(0x05, 0x20, 0x00), Verdict::End(Error::Unsupported));
        assert_eq!(verdict(0x05, 0x21, 0x00), Verdict::End(Error::OutOfRange));
        assert_eq!(verdict(0x05, 0x25, 0x00), Verdict::End(Error::Gone));
    }

    #[test]
    fn protection_has_its_reasons() {
        assert_eq!(verdict(0x07, 0x27, 0x00), Verdict::End(Error::WriteProtected));
        assert_eq!(verdict(0x07, 0x27, 0x07), Verdict::End(Error::NoSpace));
        let locked = AdditionalSense { asc: 0x74, ascq: 0x71 };
        assert_eq!(verdict(0x07, 0x74, 0x71), Verdict::End(Error::Protected(locked)));
    }

    #[test]
    fn a_deferred_error_is_another_commands_and_this_one_goes_again() {
        let sense = [0xf1, 0, 0x03, 0, 0, 0, 7, 10, 0, 0, 0, 0, 0x0c, 0, 0, 0, 0, 0];
        let judged = with_sense(&sense);
        let additional = AdditionalSense::WRITE_ERROR;
        let lost = LostWrite { key: SenseKey::MediumError, additional, lba: Some(Lba(7)) };
        assert_eq!(judged.lost, Some(lost));
        assert_eq!(cause(judged.verdict), Some(Cause::Passing));
    }

    #[test]
    fn what_was_recovered_is_done() {
        let sense = [0x70, 0, 0x01, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x17, 0x01, 0, 0, 0, 0];
        assert_eq!(with_sense(&sense), Judged { verdict: Verdict::Done, lost: None, recovered: true });
    }

    #[test]
    fn check_condition_without_sense_is_tried_again() {
        let error = Error::Status(Status::CheckCondition);
        let again = Verdict::Transient(TransientError { cause: Cause::Passing, error });
        assert_eq!(with_sense(&[]).verdict, again);
        assert_eq!(with_sense(&[0x00; 18]).verdict, again);
    }

    #[test]
    fn busy_is_waited_for_as_long_as_the_unit_asks() {
        let busy = |status_qualifier| {
            let sense = SenseBytes::NONE;
            let answer = Answer { status: Status::TaskSetFull, status_qualifier, moved: 0, sense };
            cause(judge(&Outcome::Answered(answer)).verdict)
        };
        assert_eq!(busy(0), Some(Cause::Busy { wait: None }));
        assert_eq!(busy(0x4003), Some(Cause::Busy { wait: Some(Duration::from_ms(300)) }));
        assert_eq!(busy(0x3fff), Some(Cause::Busy { wait: None }));
    }

    #[test]
    fn a_transport_that_failed_is_tried_again_unless_the_device_is_gone() {
        let failed = |failure| judge(&Outcome::Failed(failure)).verdict;
        assert_eq!(cause(failed(Failure::TimedOut)), Some(Cause::Passing));
        assert_eq!(failed(Failure::Disconnected), Verdict::End(Error::Gone));
        assert_eq!(failed(Failure::Refused(ResponseCode::IncorrectLun)), Verdict::End(Error::Gone));
        assert_eq!(cause(failed(Failure::Refused(ResponseCode::InvalidIu))), Some(Cause::Passing));
    }

    #[test]
    fn every_retry_limit_ends_a_command() {
        let retry_limits = RetryLimits::DEFAULT;
        let causes = [
            Cause::Passing,
            Cause::Attention { changed: false },
            Cause::Busy { wait: None },
            Cause::NotReady,
        ];
        for (cause, limit) in causes.into_iter().zip([4, 8, 20, 120]) {
            let (mut retries, mut now, mut again) = (RetryCounts::default(), Instant::ZERO, 0);
            loop {
                match retries.count(cause, &retry_limits, now) {
                    Next::AtOnce => {}
                    Next::At(later) => now = later,
                    Next::Never => break,
                }
                again += 1;
            }
            assert_eq!(again, limit, "{cause:?}");
        }
    }

    #[test]
    fn a_wait_doubles_up_to_its_limit() {
        let mut retries = RetryCounts::default();
        let mut waits = [0; 12];
        for wait in &mut waits {
            if let Next::At(later) =
                retries.count(Cause::Busy { wait: None }, &RetryLimits::DEFAULT, Instant::ZERO)
            {
                *wait = later.since(Instant::ZERO).as_ms();
            }
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000]);
    }
}
