//! The socket to the agent, read in whole replies.
//!
//! Bytes that have arrived stay in the inbox when a wait gives up, so that the conversation can
//! continue after a timeout: the late reply is read by the next wait and skipped by its id.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use super::reply::{Parsed, Reply};
use crate::{Error, wait::Deadline};

#[derive(Debug)]
pub(super) struct Channel {
    stream: UnixStream,
    inbox: Vec<u8>,
}

/// Why there is no reply.
#[derive(Debug)]
pub(super) enum Failure {
    Late,
    Closed,
    Nonsense(String),
    Io(io::Error),
}

impl Channel {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self { stream, inbox: Vec::new() }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.set_write_timeout(Some(SEND_LIMIT))?;
        self.stream.write_all(bytes)
    }

    pub(super) fn next(&mut self, deadline: Deadline) -> Result<Reply, Failure> {
        loop {
            match Reply::parse(&self.inbox) {
                Parsed::Whole(reply, len) => {
                    self.inbox.drain(..len);
                    return Ok(reply);
                }
                Parsed::Partial => self.receive(deadline)?,
                Parsed::Nonsense(line) => {
                    // A guest that was reset in mid-reply leaves half of it: go on after the line.
                    self.inbox.drain(..=line.len().min(self.inbox.len().saturating_sub(1)));
                    return Err(Failure::Nonsense(line));
                }
            }
        }
    }

    fn receive(&mut self, deadline: Deadline) -> Result<(), Failure> {
        let remaining = deadline.remaining().ok_or(Failure::Late)?;
        self.stream.set_read_timeout(Some(remaining)).map_err(Failure::Io)?;
        let mut bytes = [0; 64 << 10];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(Failure::Closed),
            Ok(len) => {
                self.inbox.extend_from_slice(bytes.get(..len).unwrap_or_default());
                Ok(())
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Err(Failure::Late),
                io::ErrorKind::Interrupted => Ok(()),
                _ => Err(Failure::Io(error)),
            },
        }
    }
}

impl Failure {
    /// The error for a caller that waited for `what`.
    pub(super) fn explain(self, what: &str, limit: Duration, evidence: &str) -> Error {
        let (what, evidence) = (what.to_owned(), evidence.to_owned());
        match self {
            Self::Late => Error::Timeout { what, limit, evidence },
            Self::Closed => Error::Unexpected { what, evidence: format!("QEMU has ended\n{evidence}") },
            Self::Nonsense(line) => Error::Unexpected { what, evidence: format!("the agent said {line:?}") },
            Self::Io(source) => Error::Io { what, source },
        }
    }
}

/// For the guest to take a chunk.
const SEND_LIMIT: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::reply::Answer;

    fn pair() -> (Channel, UnixStream) {
        let (host, guest) = UnixStream::pair().expect("a socket pair");
        (Channel::new(host), guest)
    }

    #[test]
    fn a_reply_in_two_pieces_is_one_reply() {
        let (mut channel, mut guest) = pair();
        guest.write_all(b"file 3 4\nab").expect("sent");
        let late = channel.next(Deadline::after(Duration::from_millis(10)));
        assert!(matches!(late, Err(Failure::Late)), "{late:?}");
        guest.write_all(b"cd").expect("sent");
        let reply = channel.next(Deadline::after(Duration::from_secs(5))).expect("whole now");
        assert_eq!(reply, Reply::Answer { id: 3, answer: Answer::File(b"abcd".into()) });
    }

    #[test]
    fn a_closed_socket_is_a_failure() {
        let (mut channel, guest) = pair();
        drop(guest);
        let closed = channel.next(Deadline::after(Duration::from_secs(5)));
        assert!(matches!(closed, Err(Failure::Closed)), "{closed:?}");
    }

    #[test]
    fn the_conversation_goes_on_after_nonsense() {
        let (mut channel, mut guest) = pair();
        guest.write_all(b"abc\nready 6.1\n").expect("sent");
        let deadline = Deadline::after(Duration::from_secs(5));
        assert!(matches!(channel.next(deadline), Err(Failure::Nonsense(line)) if line == "abc"));
        assert_eq!(channel.next(deadline).expect("a reply"), Reply::Ready { release: "6.1".into() });
    }
}
