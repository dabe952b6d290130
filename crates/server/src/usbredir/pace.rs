//! How many answers may be on their way to a guest that has not been seen to take them.
//!
//! Each answer becomes an event in the guest's xHCI event ring. Linux makes that ring 256 entries long, and QEMU drops
//! what does not fit, where hardware would wait; a command whose event is dropped hangs for thirty seconds and ends in
//! a port reset. A command over streams brings three answers, so a queue of more than 80 can fill the ring.
//!
//! The ring is first in, first out, and a host uses a stream again when it has seen the last answer on it. So a new
//! transfer on a stream proves that this answer and all before it are taken. While too many are unproven, answers
//! wait; if no proof comes, because the host has nothing more to ask for, some go after a pause ([`PAUSE`]).
//!
//! Left out: endpoints without streams. QEMU keeps 16 transfers on each, and those fit.

use bus::Pipe;
use std::time::Duration;

/// Answers that may be unproven: those of a queue of 32 commands. Two drives on a controller leave room in the ring.
const UNPROVEN_MAX: u64 = 96;
/// Answers that go after a pause without proof.
const AFTER_PAUSE: u64 = 32;
/// For a guest to take what was sent. A second drive included, one that sleeps for 8 ms does not overflow.
pub const PAUSE: Duration = Duration::from_millis(2);

/// Counts answers against proof.
#[derive(Debug, Default)]
pub(super) struct StatusPace {
    /// Answers so far.
    sent: u64,
    /// How many of them are taken for sure, or long enough ago.
    taken: u64,
    /// For each stream that is in use, what `sent` was after its last answer.
    last: Vec<u64>,
}

impl StatusPace {
    /// For a device with so many streams, none of which was used. 0: no streams, no limit.
    pub(super) fn new(streams: u16) -> Self {
        let length = if streams == 0 { 0 } else { usize::from(streams) + 1 };
        Self { last: vec![0; length], ..Self::default() }
    }

    /// Whether answers wait.
    pub(super) const fn is_held(&self) -> bool {
        self.sent - self.taken >= UNPROVEN_MAX
    }

    /// An answer goes out on a pipe.
    pub(super) fn answered(&mut self, pipe: Pipe) {
        if self.last.is_empty() {
            return;
        }
        self.sent += 1;
        if let Some(last) = pipe.stream.and_then(|stream| self.last.get_mut(usize::from(stream.get()))) {
            *last = self.sent;
        }
    }

    /// The host has a new transfer on a pipe.
    pub(super) fn submitted(&mut self, pipe: Pipe) {
        let last = pipe.stream.and_then(|stream| self.last.get(usize::from(stream.get())));
        self.taken = self.taken.max(last.copied().unwrap_or_default());
    }

    /// [`PAUSE`] has passed while answers waited.
    pub(super) fn release_held(&mut self) {
        self.taken = self.sent.min(self.taken + AFTER_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::{Direction, EndpointAddress, StreamId};

    fn status(stream: u16) -> Pipe {
        Pipe { endpoint: EndpointAddress::at::<3>(Direction::In), stream: StreamId::new(stream) }
    }

    fn command() -> Pipe {
        Pipe::plain(EndpointAddress::at::<4>(Direction::Out))
    }

    /// Answers until they are held; how many went.
    fn answer_all(pace: &mut StatusPace, pipe: impl Fn(u16) -> Pipe) -> u16 {
        let mut answers = 0;
        while answers < 256 && !pace.is_held() {
            answers += 1;
            pace.answered(pipe(answers));
        }
        answers
    }

    #[test]
    fn answers_wait_once_too_many_are_unproven() {
        let mut pace = StatusPace::new(256);
        assert_eq!(answer_all(&mut pace, status), 96);
        assert_eq!(answer_all(&mut pace, status), 0);
    }

    #[test]
    fn a_stream_that_is_used_again_proves_all_answers_before_its_last() {
        let mut pace = StatusPace::new(256);
        answer_all(&mut pace, status);
        pace.submitted(status(200));
        assert!(pace.is_held(), "stream 200 has had no answer");
        pace.submitted(status(40));
        assert_eq!(answer_all(&mut pace, |_| command()), 40);
        pace.submitted(status(30));
        assert!(pace.is_held(), "an older proof takes nothing back, and adds nothing");
    }

    #[test]
    fn without_proof_some_go_after_a_pause() {
        let mut pace = StatusPace::new(256);
        answer_all(&mut pace, status);
        pace.release_held();
        assert_eq!(answer_all(&mut pace, |_| command()), 32);
    }

    #[test]
    fn a_stream_that_was_never_answered_on_proves_nothing() {
        let mut pace = StatusPace::new(256);
        pace.submitted(status(1));
        assert_eq!(answer_all(&mut pace, status), 96);
    }

    #[test]
    fn without_streams_nothing_waits() {
        assert_eq!(answer_all(&mut StatusPace::new(0), |_| command()), 256);
    }
}
