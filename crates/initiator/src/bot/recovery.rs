//! Error recovery: reset recovery (Bulk-Only Transport 1.0 clause 5.3.4), then a port reset.
//!
//! A transfer in flight is cancelled and awaited first. Reset recovery is Mass Storage Reset, then
//! the clearing of both halts. If a step fails or times out, or recoveries follow one another
//! without a valid CSW between them, the port is reset. The command ends when the device can accept
//! the next one.
//!
//! A command is resent only where the device cannot have started it: its CBW was rejected.

use super::{Bot, BotConfig, Exchange, State, unexplained};
use crate::{BusAnswer, BusRequest, Command, Failure, Outcome, Output, SenseBytes};
use bus::{Completion, TransferId, TransferStatus};
use units::Instant;

/// Reset recoveries in a row before the port is reset instead.
pub const RESET_RECOVERIES_MAX: u8 = 2;

/// Port resets in a row before the device is given up.
pub const PORT_RESETS_MAX: u8 = 3;

/// A recovery in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// The command that failed.
    pub(super) command: Command,
    /// The action after the recovery.
    then: Then,
    /// The cancelled transfer that has not completed.
    pub(super) awaited: Option<TransferId>,
}

#[derive(Clone, Copy, Debug)]
enum Then {
    Finish(Lost),
    Resend,
}

/// The end of a command whose exchange failed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lost {
    Failed(Failure),
    /// CHECK CONDITION with unknown sense data.
    Unexplained {
        moved: u32,
    },
}

impl Bot {
    /// Ends an exchange that cannot continue.
    pub(super) fn recover(&mut self, now: Instant, exchange: Exchange, failure: Failure) {
        self.start_recovery(now, exchange, Then::Finish(exchange.lost(failure)));
    }

    /// Ends an exchange whose CBW was rejected, and repeats it.
    pub(super) fn recover_and_resend(&mut self, now: Instant, exchange: Exchange) {
        let then = match exchange.lost(Failure::Stalled) {
            Lost::Failed(_) => Then::Resend,
            answered => Then::Finish(answered),
        };
        self.start_recovery(now, exchange, then);
    }

    fn start_recovery(&mut self, now: Instant, exchange: Exchange, then: Then) {
        self.requests.forget();
        let recovery = Recovery { command: exchange.command, then, awaited: exchange.transfer() };
        self.state = State::Recovering(recovery);
        match recovery.awaited {
            Some(transfer) => self.outputs.push_back(Output::Cancel(transfer)),
            None => self.next_step(now, recovery),
        }
    }

    /// Handles the completion of the cancelled transfer.
    pub(super) fn after_cancel(&mut self, now: Instant, recovery: Recovery, completion: Completion) {
        if completion.status == TransferStatus::Disconnected {
            return self.shut_down(recovery.command.id, None);
        }
        let recovery = Recovery { awaited: None, ..recovery };
        self.state = State::Recovering(recovery);
        self.next_step(now, recovery);
    }

    /// Starts the next step.
    fn next_step(&mut self, now: Instant, recovery: Recovery) {
        self.recoveries = self.recoveries.saturating_add(1);
        let timeouts = self.config.timeouts;
        let (request, span) = if self.recoveries <= RESET_RECOVERIES_MAX {
            self.counters.reset_recoveries += 1;
            let interface = self.config.interface;
            (BusRequest::MassStorageReset { interface }, timeouts.mass_storage_reset)
        } else if self.recoveries <= RESET_RECOVERIES_MAX + PORT_RESETS_MAX {
            self.counters.port_resets += 1;
            (BusRequest::ResetPort, timeouts.port_reset)
        } else {
            self.finish(recovery.command.id, Outcome::Failed(Failure::Unrecoverable));
            self.state = State::Gone;
            return;
        };
        self.requests.ask(&mut self.outputs, now, request, span);
    }

    /// Handles the answer to a step, or its timeout.
    pub(super) fn after_step(
        &mut self,
        now: Instant,
        recovery: Recovery,
        request: BusRequest,
        answer: BusAnswer,
    ) {
        let (bulk_in, bulk_out) = (self.config.bulk_in, self.config.bulk_out);
        let next = match (request, answer) {
            (BusRequest::MassStorageReset { .. }, BusAnswer::Done) => Some(BusRequest::ClearHalt(bulk_in)),
            (BusRequest::ClearHalt(endpoint), BusAnswer::Done) if endpoint == bulk_in => {
                Some(BusRequest::ClearHalt(bulk_out))
            }
            (BusRequest::ResetPort, BusAnswer::Done) if self.config.alternate != 0 => {
                let BotConfig { interface, alternate, .. } = self.config;
                Some(BusRequest::SelectAlternate { interface, alternate })
            }
            (_, BusAnswer::Done) => None,
            // Reset recovery that does not work is not tried again.
            _ => {
                self.recoveries = self.recoveries.max(RESET_RECOVERIES_MAX);
                return self.next_step(now, recovery);
            }
        };
        match (next, recovery.then) {
            (Some(request), _) => {
                let timeouts = self.config.timeouts;
                let span = match request {
                    BusRequest::ClearHalt(_) => timeouts.clear_halt,
                    _ => timeouts.port_reset,
                };
                self.requests.ask(&mut self.outputs, now, request, span);
            }
            (None, Then::Finish(lost)) => self.finish(
                recovery.command.id,
                match lost {
                    Lost::Failed(failure) => Outcome::Failed(failure),
                    Lost::Unexplained { moved } => unexplained(moved, SenseBytes::NONE),
                },
            ),
            (None, Then::Resend) => {
                self.counters.resends += 1;
                self.begin(recovery.command, true);
            }
        }
    }
}
