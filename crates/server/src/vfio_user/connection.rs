//! The socket of a client: bytes with descriptors in, bytes out, never waiting.

use super::session::{DESCRIPTORS_MAX, MESSAGE_BYTES_MAX};
use mio::net::UnixStream;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, send, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

/// A client's socket.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: UnixStream,
    buffer: Box<[u8]>,
}

/// The bytes and descriptors of one receive call.
#[derive(Debug)]
pub(super) struct Received<'a> {
    pub(super) bytes: &'a [u8],
    /// They came with the last byte.
    pub(super) fds: Vec<OwnedFd>,
    /// There were more than fit, and they are lost.
    pub(super) is_truncated: bool,
}

impl Connection {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self { socket, buffer: vec![0; MESSAGE_BYTES_MAX].into_boxed_slice() }
    }

    /// Receives at most `room` bytes. `None`: nothing has come.
    pub(super) fn receive(&mut self, room: usize) -> io::Result<Option<Received<'_>>> {
        let room = room.min(self.buffer.len());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(&mut self.buffer[..room])];
        let flags = RecvFlags::CMSG_CLOEXEC.union(RecvFlags::DONTWAIT);
        let message = loop {
            match recvmsg(&self.socket, &mut slices, &mut ancillary, flags) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                outcome => break outcome?,
            }
        };
        let mut fds = Vec::new();
        for control in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = control {
                fds.extend(rights);
            }
        }
        let is_truncated = message.flags.contains(ReturnFlags::CTRUNC);
        Ok(Some(Received { bytes: &self.buffer[..message.bytes], fds, is_truncated }))
    }

    /// Sends what the system takes, a descriptor with the first byte. Returns how many bytes that were.
    pub(super) fn send(&self, bytes: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<usize> {
        let flags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        loop {
            let outcome = match &file {
                None => send(&self.socket, bytes, flags),
                Some(file) => {
                    let mut ancillary = SendAncillaryBuffer::new(&mut space);
                    let files = [*file];
                    ancillary.push(SendAncillaryMessage::ScmRights(&files));
                    sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut ancillary, flags)
                }
            };
            match outcome {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(0),
                outcome => return Ok(outcome?),
            }
        }
    }
}
