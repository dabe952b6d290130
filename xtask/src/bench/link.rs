//! The guest's end of a usbredir connection, as a load generator wants it: few and large system calls.
//!
//! Packets are queued and leave with one write per turn; what arrives is taken with one large read and then
//! handed out packet by packet, in place. Left out: what the packets mean, which is the host's and the load's.

use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use wire::Writer;
use wire::usbredir::{Capabilities, Header, PACKET_LEN_MAX, Packet};

/// Room for what one read may bring: more than any depth here has in flight.
const INBOX_BYTES: usize = 1 << 20;

/// A connection, the packets that wait to leave, and the bytes that have arrived.
#[derive(Debug)]
pub(super) struct Link {
    stream: UnixStream,
    /// What both sides offered; decides the layouts.
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

    /// Queues bytes that are packets already.
    pub(super) fn queue(&mut self, packets: &[u8]) {
        self.outbox.extend_from_slice(packets);
    }

    /// Queues one packet.
    pub(super) fn queue_packet(&mut self, packet: impl Into<Packet>, id: u64, payload: &[u8]) -> Result<()> {
        put(&mut self.outbox, packet.into(), id, payload, self.capabilities)
    }

    /// Sends everything that is queued.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.stream.write_all(&self.outbox).context("write to the socket")?;
        self.outbox.clear();
        Ok(())
    }

    /// Waits until something arrives. Everything that had arrived must have been handed out by [`Self::next`].
    pub(super) fn fill(&mut self) -> Result<()> {
        // At most one packet is incomplete; it goes to the front so that the rest of it fits behind.
        self.inbox.copy_within(self.filled.clone(), 0);
        let kept = self.filled.len();
        ensure!(kept < self.inbox.len(), "a packet longer than {INBOX_BYTES} bytes");
        let arrived = self.stream.read(&mut self.inbox[kept..]).context("read from the socket")?;
        ensure!(arrived > 0, "the other side has closed the connection");
        self.filled = 0..kept + arrived;
        Ok(())
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
    let mut headers = [0; Packet::HEADERS_LEN_MAX];
    let mut writer = Writer::new(&mut headers);
    packet.encode_headers(id, payload.len() as u32, capabilities, &mut writer)?;
    let headers_len = writer.written();
    out.extend_from_slice(&headers[..headers_len]);
    out.extend_from_slice(payload);
    Ok(())
}
