//! A connection of either kind.

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};

/// A connected stream that does not block.
#[derive(Debug)]
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// Calls a method of whichever stream it is.
macro_rules! either {
    ($socket:expr, $stream:ident => $call:expr) => {
        match $socket {
            Socket::Unix($stream) => $call,
            Socket::Tcp($stream) => $call,
        }
    };
}

impl Socket {
    /// Whether the system would take a good deal more to be sent.
    pub(super) fn has_room(&self) -> bool {
        let mut sockets = [either!(self, stream => PollFd::new(stream, PollFlags::OUT))];
        // What cannot be asked will say why when it is written to.
        poll(&mut sockets, Some(&Timespec::default())) != Ok(0)
    }

    /// Whether the peer has closed the connection, or its sending direction. What it sent before
    /// may still be unread.
    pub(super) fn is_hung_up(&self) -> bool {
        let mut sockets = [either!(self, stream => PollFd::new(stream, PollFlags::RDHUP))];
        // A socket that cannot be polled shows its error when it is read.
        poll(&mut sockets, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        either!(self, stream => stream.read(bytes))
    }

    fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        either!(self, stream => stream.read_vectored(slices))
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, stream => stream.write(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(self, stream => stream.write_vectored(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for Socket {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        either!(self, stream => stream.register(registry, token, interests))
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        either!(self, stream => stream.reregister(registry, token, interests))
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        either!(self, stream => stream.deregister(registry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_what_the_other_side_has_read() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut ours = Socket::Unix(ours);
        assert!(ours.has_room());
        let mut sent = 0;
        while let Ok(count) = ours.write(&[0; 4096]) {
            sent += count;
        }
        assert!(!ours.has_room());
        while sent > 0 {
            sent -= theirs.read(&mut [0; 4096]).unwrap();
        }
        assert!(ours.has_room());
        drop(theirs);
        assert!(ours.has_room(), "the next write returns the error");
    }

    #[test]
    fn a_peer_that_has_closed_is_seen_before_its_last_bytes_are_read() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let ours = Socket::Unix(ours);
        theirs.write_all(b"last").unwrap();
        assert!(!ours.is_hung_up());
        drop(theirs);
        assert!(ours.is_hung_up());

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut theirs = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        ours.set_nonblocking(true).unwrap();
        let ours = Socket::Tcp(TcpStream::from_std(ours));
        theirs.write_all(b"last").unwrap();
        assert!(!ours.is_hung_up());
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(ours.is_hung_up());
    }
}
