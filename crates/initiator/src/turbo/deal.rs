//! Distribution of the outcome of a merged command to its requests.
//!
//! GOOD: each request gets its part of the bytes. CHECK CONDITION: a medium error that names its
//! block splits a read there; a unit attention (or deferred error) is reported once, to the first
//! request; any other error says nothing about single requests, so each is sent again alone. Reads
//! and writes can be repeated. A transport failure affects all requests.

use super::access::Access;
use super::{Member, Turbo, Waiting};
use crate::{Answer, Failure, Outcome, Output, SenseBytes};
use wire::scsi::Status;
use wire::scsi::sense::{Sense, SenseKey};

impl Turbo {
    /// The command in flight has ended.
    pub(super) fn deal(&mut self, outcome: Outcome) {
        let whole = self.packed.take();
        match (outcome, whole) {
            (outcome, None) => self.end_single(outcome),
            (Outcome::Answered(answer), Some(_)) if answer.status == Status::Good => self.end_all(&answer),
            (Outcome::Answered(answer), Some(whole)) => self.unpack(&answer, &whole),
            (Outcome::Failed(Failure::Aborted), Some(_)) => self.end_aborted(),
            (Outcome::Failed(failure), Some(_)) => {
                self.end_members(failure);
                if self.bot_is_lost(failure) {
                    self.end_queue(failure);
                }
            }
        }
    }

    const fn bot_is_lost(&self, failure: Failure) -> bool {
        matches!(failure, Failure::Disconnected | Failure::Unrecoverable)
    }

    fn end_single(&mut self, outcome: Outcome) {
        let failure = if let Outcome::Failed(failure) = outcome { Some(failure) } else { None };
        if let Some(member) = self.members.pop() {
            self.outputs.push_back(Output::Finished(member.waiting.command.id, outcome));
        }
        if let Some(failure) = failure.filter(|&failure| self.bot_is_lost(failure)) {
            self.end_queue(failure);
        }
    }

    fn end_all(&mut self, answer: &Answer) {
        for member in self.members.drain(..) {
            let moved = member.share(answer.moved);
            self.outputs.push_back(member.end(Answer { moved, ..answer.clone() }));
        }
    }

    /// The requests that the caller gave up end, the others are sent again.
    fn end_aborted(&mut self) {
        self.send_again(|member| match member.aborted {
            true => Verdict::End(Outcome::Failed(Failure::Aborted)),
            false => Verdict::Again { alone: false },
        });
    }

    fn unpack(&mut self, answer: &Answer, whole: &Access) {
        self.unpacked += 1;
        let sense = answer.sense.decode();
        if let Some(sense) = sense
            && (sense.key == SenseKey::UnitAttention || sense.deferred)
        {
            let reported = Outcome::Answered(Answer { moved: 0, ..answer.clone() });
            return self.send_again(|member| match member.offset {
                0 => Verdict::End(reported.clone()),
                _ => Verdict::Again { alone: false },
            });
        }
        let fault = sense.and_then(|sense| offset_of_fault(&sense, whole));
        let Some(fault) = fault.filter(|&fault| fault <= answer.moved) else {
            return self.send_again(|_| Verdict::Again { alone: true });
        };
        self.send_again(|member| {
            let (start, end) = (member.offset, member.offset + member.waiting.command.transfer_len());
            if end <= fault {
                let good = Answer { status: Status::Good, sense: SenseBytes::NONE, ..answer.clone() };
                Verdict::End(Outcome::Answered(Answer { moved: member.share(fault), ..good }))
            } else if start <= fault {
                Verdict::End(Outcome::Answered(Answer { moved: member.share(fault), ..answer.clone() }))
            } else {
                Verdict::Again { alone: false }
            }
        });
    }

    /// Ends some requests of the pack, and puts the others back to the front of the queue, in their
    /// order.
    fn send_again(&mut self, judge: impl Fn(&Member) -> Verdict) {
        let mut again = self.queue.len();
        for member in self.members.drain(..) {
            match judge(&member) {
                Verdict::End(outcome) => {
                    self.outputs.push_back(Output::Finished(member.waiting.command.id, outcome));
                }
                Verdict::Again { alone } => {
                    self.queue.push_back(Waiting { alone, ..member.waiting });
                }
            }
        }
        again = self.queue.len() - again;
        self.queue.rotate_right(again);
    }
}

enum Verdict {
    End(Outcome),
    Again { alone: bool },
}

impl Member {
    /// Its part of the first `moved` bytes of the pack.
    fn share(&self, moved: u32) -> u32 {
        moved.saturating_sub(self.offset).min(self.waiting.command.transfer_len())
    }

    const fn end(&self, answer: Answer) -> Output {
        Output::Finished(self.waiting.command.id, Outcome::Answered(answer))
    }
}

/// Where among the bytes of a read the block lies that a medium error names.
///
/// Of a write, what lies before the block may still have to be written.
fn offset_of_fault(sense: &Sense, whole: &Access) -> Option<u32> {
    let lba = sense.information.filter(|_| sense.key == SenseKey::MediumError && whole.is_read())?;
    let blocks = lba.checked_sub(whole.lba)?;
    let blocks = u32::try_from(blocks).ok().filter(|&blocks| blocks < whole.blocks)?;
    blocks.checked_mul(whole.block_bytes)
}
