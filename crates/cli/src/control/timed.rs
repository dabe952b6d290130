//! A connection with a deadline for reads and writes.
//!
//! A timeout of the socket counts from each call, so that a peer that sends a byte now and then
//! would never meet it. Here each call gets only the time that is left.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A connected stream whose calls all end by a deadline.
#[derive(Debug)]
pub(super) struct TimedStream<'a> {
    stream: &'a UnixStream,
    deadline: Instant,
}

impl<'a> TimedStream<'a> {
    pub(super) fn new(stream: &'a UnixStream, timeout: Duration) -> Self {
        Self { stream, deadline: Instant::now() + timeout }
    }

    /// Sets the deadline again, from now.
    pub(super) fn restart(&mut self, timeout: Duration) {
        self.deadline = Instant::now() + timeout;
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(timed_out()) } else { Ok(left) }
    }
}

impl Read for TimedStream<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(bytes).map_err(in_time)
    }
}

impl Write for TimedStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes).map_err(in_time)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The system's error for a timeout of a socket is that of one that does not block.
fn in_time(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { timed_out() } else { error }
}

fn timed_out() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "timed out")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(100);

    #[test]
    fn a_peer_that_does_not_read_does_not_hold_a_writer_past_the_deadline() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let error = TimedStream::new(&ours, TIMEOUT).write_all(&vec![0; 64 << 20]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_peer_that_sends_nothing_does_not_hold_a_reader_past_the_deadline() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut stream = TimedStream::new(&ours, TIMEOUT);
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
        (&theirs).write_all(b"x").unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut, "it has passed");
        stream.restart(TIMEOUT);
        assert_eq!(stream.read(&mut [0]).unwrap(), 1);
    }
}
