//! The guest's end of a usbredir connection, as a load generator wants it: few and large system calls.
//!
//! Packets are queued and leave with one write per turn; what arrives is taken with one large read and then
//! handed out packet by packet, in place. Left out: what the packets mean, which is the host's and the load's.

use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use wire::Writer;
use wire::usbredir::{Capabilities, Header, PACKET_LEN_MAX, Packet};

/// Room for what one read may bring: more than any load has in flight, and than the longest packet of a guest.
const INBOX_BYTES: usize = 4 << 20;
/// Bytes that are moved without a second thought.
const CHEAP_MOVE_BYTES: usize = 16 << 10;

/// A connection, the packets that wait to leave, and the bytes that have arrived.
#[derive(Debug)]
pub(super) struct Link {
    stream: UnixStream,
    /// Capabilities that both sides offered; they determine the layouts.
    pub(super) capabilities: Capabilities,
    inbox: Vec<u8>,
    /// The part of the inbox that is filled and not yet handed out.
    filled: std::ops::Range<usize>,
    outbox: Vec<u8>,
}

impl Link {
    /// A link over a connected socket, before the hellos unless `capabilities` are known otherwise.
    pub(super) fn new(stream: UnixStream, capabilities: Capabilities) -> Self {
        Self { stream, capabilities, inbox: vec![0; INBOX_BYTES], filled: 0..0, outbox: Vec::new() }
    }

    /// The process that listened on the other end, if the system reports it.
    pub(super) fn peer_pid(&self) -> Option<u32> {
        let peer = rustix::net::sockopt::socket_peercred(&self.stream).ok()?;
        u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
    }

    /// Queues bytes that are packets already.
    pub(super) fn queue(&mut self, packets: &[u8]) {
        self.outbox.extend_from_slice(packets);
    }

    /// Queues one packet.
    pub(super) fn queue_packet(&mut self, packet: impl Into<Packet>, id: u64, payload: &[u8]) -> Result<()> {
        put(&mut self.outbox, packet.into(), id, payload, self.capabilities)
    }

    /// Queues a packet that came from elsewhere: its header, and all behind that.
    pub(super) fn forward(&mut self, header: Header, body: &[u8]) -> Result<()> {
        put_received(&mut self.outbox, header, body, self.capabilities)
    }

    /// Sends everything that is queued.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.stream.write_all(&self.outbox).context("write to the socket")?;
        self.outbox.clear();
        Ok(())
    }

    /// Waits until something arrives. Everything that had arrived must have been handed out by [`Self::next`].
    pub(super) fn fill(&mut self) -> Result<()> {
        // At most one packet is incomplete; it goes to the front while that is cheap, or when there is no room.
        if self.filled.len() <= CHEAP_MOVE_BYTES || self.filled.end == self.inbox.len() {
            self.inbox.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
        }
        ensure!(self.filled.end < self.inbox.len(), "a packet longer than {INBOX_BYTES} bytes");
        let arrived = self.stream.read(&mut self.inbox[self.filled.end..]).context("read from the socket")?;
        ensure!(arrived > 0, "the other side has closed the connection");
        self.filled.end += arrived;
        Ok(())
    }

    /// Waits for the next packet.
    pub(super) fn wait(&mut self) -> Result<(Header, Vec<u8>)> {
        loop {
            if let Some((header, body)) = self.next()? {
                return Ok((header, body.to_vec()));
            }
            self.fill()?;
        }
    }

    /// The next packet that is here as a whole: its header, and everything behind that.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(Header, &[u8])>> {
        let header_len = Header::len(self.capabilities);
        let arrived = &self.inbox[self.filled.clone()];
        if arrived.len() < header_len {
            return Ok(None);
        }
        let header = Header::decode(arrived, self.capabilities)?;
        ensure!(header.length <= PACKET_LEN_MAX, "a packet of {} bytes", header.length);
        let whole = header_len + header.length as usize;
        if arrived.len() < whole {
            return Ok(None);
        }
        let start = self.filled.start;
        self.filled.start += whole;
        Ok(Some((header, &self.inbox[start + header_len..start + whole])))
    }
}

/// Appends a packet to `out`.
pub(super) fn put(
    out: &mut Vec<u8>,
    packet: Packet,
    id: u64,
    payload: &[u8],
    capabilities: Capabilities,
) -> Result<()> {
    put_headers(out, packet, id, payload.len(), capabilities)?;
    out.extend_from_slice(payload);
    Ok(())
}

/// Appends the headers of a packet to `out`, for a payload that follows.
pub(super) fn put_headers(
    out: &mut Vec<u8>,
    packet: Packet,
    id: u64,
    payload_len: usize,
    capabilities: Capabilities,
) -> Result<()> {
    let mut headers = [0; Packet::HEADERS_LEN_MAX];
    let mut writer = Writer::new(&mut headers);
    packet.encode_headers(id, u32::try_from(payload_len)?, capabilities, &mut writer)?;
    let headers_len = writer.written();
    out.extend_from_slice(&headers[..headers_len]);
    Ok(())
}

/// Appends a packet that came from elsewhere: its header, and all behind that.
pub(super) fn put_received(
    out: &mut Vec<u8>,
    header: Header,
    body: &[u8],
    capabilities: Capabilities,
) -> Result<()> {
    let mut first = [0; Header::LEN_MAX];
    let mut writer = Writer::new(&mut first);
    header.encode(capabilities, &mut writer)?;
    let first_len = writer.written();
    out.extend_from_slice(&first[..first_len]);
    out.extend_from_slice(body);
    Ok(())
}
