//! The load: commands of 4 KiB, a fixed number of them in flight, each answer followed by the next command.
//!
//! A command is three packets there (status URB, data URB, COMMAND IU) and three back (the IU was taken, data, SENSE
//! IU); for a write the data travels with its URB. Packets are built once per tag, and only the address and the stamp
//! change. Which blocks, for how long, and what becomes of their bytes, is a [`BlockSequence`].
//!
//! Every block that a load writes carries its own address at both ends, so that a reader knows the right bytes.
//! Always true: every answer is checked (kind, status, length, SENSE), from any peer.

use super::host::{self, DataPhase, Host, Pipes};
use super::link::{self, Link};
use anyhow::{Result, bail, ensure};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use wire::scsi::Status as ScsiStatus;
use wire::scsi::cdb::{CdbWidth, Read, Write};
use wire::uas::{CommandIu, SenseIu};
use wire::usb::Direction;
use wire::usbredir::{BulkPacket, Capabilities, Header, PacketType, Status};

/// Bytes of every command's data.
pub(super) const BLOCK_BYTES: usize = 4096;

/// Which blocks a load visits, and what it does with those that it reads. Blocks are of [`BLOCK_BYTES`].
pub(super) trait BlockSequence {
    /// Answers are here; commands follow.
    fn begin_batch(&mut self) {}
    /// The next block, `None` at the end.
    fn next_block(&mut self) -> Option<u32>;
    /// The bytes of a block that was read.
    fn accept(&mut self, block: u32, bytes: &[u8]) -> Result<()>;
}

/// Commands of one direction, with `depth` tags.
#[derive(Debug)]
pub(super) struct Load {
    direction: Direction,
    pipes: Pipes,
    capabilities: Capabilities,
    /// Logical blocks of the unit in [`BLOCK_BYTES`].
    unit_blocks: u32,
    slots: Vec<Slot>,
    /// The slots without a command, the one that ended first in front.
    idle: VecDeque<usize>,
}

/// Everything about one tag.
#[derive(Debug)]
struct Slot {
    /// The packets that begin its command.
    request: Vec<u8>,
    /// The block that the command is about.
    block: u32,
    /// Answers still to come.
    outstanding: u8,
}

impl Load {
    /// A load of `depth` reads or writes on a configured drive.
    pub(super) fn new(host: &Host, direction: Direction, depth: u16) -> Result<Self> {
        let unit_blocks = BLOCK_BYTES as u32 / host.block_bytes;
        Self::with(host.pipes, host.link.capabilities, unit_blocks, direction, depth)
    }

    fn with(
        pipes: Pipes,
        capabilities: Capabilities,
        unit_blocks: u32,
        direction: Direction,
        depth: u16,
    ) -> Result<Self> {
        let (width, blocks) = (CdbWidth::Ten, unit_blocks);
        let stamped = stamped(0);
        let (cdb, phase) = match direction {
            Direction::In => {
                let read = Read { width, blocks, ..Read::default() };
                (read.encode(), DataPhase::In(BLOCK_BYTES as u32))
            }
            Direction::Out => {
                let write = Write { width, blocks, ..Write::default() };
                (write.encode(), DataPhase::Out(&stamped))
            }
        };
        let slot = |tag| {
            let request = host::request(pipes, capabilities, tag, &cdb, phase)?;
            Ok(Slot { request, block: 0, outstanding: 0 })
        };
        let slots = (1..=depth).map(slot).collect::<Result<Vec<_>>>()?;
        let idle = (0..slots.len()).collect();
        Ok(Self { direction, pipes, capabilities, unit_blocks, slots, idle })
    }

    /// The way its data goes.
    pub(super) fn direction(&self) -> Direction {
        self.direction
    }

    /// Bytes of the packets that begin a command.
    pub(super) fn request_len(&self) -> usize {
        self.slots[0].request.len()
    }

    /// Returns the answers of a drive to one command with each tag, zeroes in the place of data
    /// that is read.
    pub(super) fn answers(&self) -> Result<Vec<Vec<u8>>> {
        let (data_pipe, payload) = match self.direction {
            Direction::In => (self.pipes.data_in, &[0; BLOCK_BYTES][..]),
            Direction::Out => (self.pipes.data_out, &[][..]),
        };
        let answer = |tag: u16| {
            let mut sense = [0; SenseIu::LEN];
            SenseIu { tag, status_qualifier: 0, status: ScsiStatus::Good, sense: &[] }.encode(&mut sense)?;
            let packets = [
                (self.pipes.command, CommandIu::LEN as u32, 0, &[][..]),
                (data_pipe, BLOCK_BYTES as u32, tag, payload),
                (self.pipes.status, SenseIu::LEN as u32, tag, &sense),
            ];
            let mut out = Vec::new();
            for (endpoint, length, stream, payload) in packets {
                let packet =
                    BulkPacket { endpoint, status: Status::Success, length, stream_id: stream.into() };
                link::put(&mut out, packet.into(), host::packet_id(tag, 0), payload, self.capabilities)?;
            }
            Ok(out)
        };
        (1..=self.slots.len() as u16).map(answer).collect()
    }

    /// Runs a sequence to its end; returns how many commands completed in how long.
    pub(super) fn run(
        &mut self,
        link: &mut Link,
        sequence: &mut impl BlockSequence,
    ) -> Result<(u64, Duration)> {
        let (mut commands, start) = (0, Instant::now());
        loop {
            sequence.begin_batch();
            while let Some(&slot) = self.idle.front() {
                let Some(block) = sequence.next_block() else { break };
                self.idle.pop_front();
                self.submit(slot, block, link);
            }
            if self.idle.len() == self.slots.len() {
                return Ok((commands, start.elapsed()));
            }
            link.flush()?;
            link.fill()?;
            while let Some((header, body)) = link.next()? {
                if let Some(slot) = self.settle(header, body, sequence)? {
                    self.idle.push_back(slot);
                    commands += 1;
                }
            }
        }
    }

    fn submit(&mut self, slot: usize, block: u32, link: &mut Link) {
        let headers_len = Header::len(self.capabilities) + BulkPacket::len(self.capabilities);
        let slot = &mut self.slots[slot];
        (slot.block, slot.outstanding) = (block, 3);
        // The COMMAND IU comes last, and the CDB last in it; its LBA is bytes 2 to 5.
        let lba_at = slot.request.len() - 16 + 2;
        slot.request[lba_at..lba_at + 4].copy_from_slice(&(block * self.unit_blocks).to_be_bytes());
        if self.direction == Direction::Out {
            // After the status URB and the headers of the data packet.
            let payload_at = 2 * headers_len;
            stamp(&mut slot.request[payload_at..payload_at + BLOCK_BYTES], block);
        }
        link.queue(&slot.request);
    }

    /// Takes one answer; returns the slot whose command has ended with it.
    #[inline]
    fn settle(
        &mut self,
        header: Header,
        body: &[u8],
        sequence: &mut impl BlockSequence,
    ) -> Result<Option<usize>> {
        ensure!(header.kind == PacketType::BulkPacket, "{header} in the middle of a load");
        let bulk = BulkPacket::decode(body, self.capabilities)?;
        let payload = &body[BulkPacket::len(self.capabilities)..];
        let index = usize::from(host::packet_tag(header.id)).wrapping_sub(1);
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.outstanding > 0) else {
            bail!("{bulk} answers nothing: id {:#x}", header.id);
        };
        ensure!(bulk.status == Status::Success, "{bulk}");
        if bulk.endpoint == self.pipes.status {
            let iu = SenseIu::decode(payload)?;
            ensure!(iu.status == ScsiStatus::Good, "{iu}");
        } else if bulk.endpoint != self.pipes.command {
            ensure!(bulk.length as usize == BLOCK_BYTES, "{bulk}");
            if self.direction == Direction::In {
                sequence.accept(slot.block, payload)?;
            }
        }
        slot.outstanding -= 1;
        Ok((slot.outstanding == 0).then_some(index))
    }
}

/// Random blocks until a time has passed.
#[derive(Debug)]
pub(super) struct Random {
    blocks: u32,
    random: fastrand::Rng,
    end: Instant,
    ended: bool,
}

impl Random {
    /// Among the first `blocks` of a drive, for so long from now.
    pub(super) fn new(blocks: u32, length: Duration, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { blocks, random, end: Instant::now() + length, ended: false }
    }
}

impl BlockSequence for Random {
    fn begin_batch(&mut self) {
        self.ended = Instant::now() >= self.end;
    }

    fn next_block(&mut self) -> Option<u32> {
        (!self.ended).then(|| self.random.u32(0..self.blocks))
    }

    fn accept(&mut self, _: u32, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Every block once, in order; those that are read must hold their own stamps.
#[derive(Debug)]
pub(super) struct Sweep {
    next: u32,
    blocks: u32,
}

impl Sweep {
    /// Over the first `blocks` of a drive.
    pub(super) fn new(blocks: u32) -> Self {
        Self { next: 0, blocks }
    }
}

impl BlockSequence for Sweep {
    fn next_block(&mut self) -> Option<u32> {
        let block = (self.next < self.blocks).then_some(self.next)?;
        self.next += 1;
        Some(block)
    }

    fn accept(&mut self, block: u32, bytes: &[u8]) -> Result<()> {
        ensure!(bytes == stamped(block), "block {block} does not hold what was written last");
        Ok(())
    }
}

/// The bytes of a block.
fn stamped(block: u32) -> [u8; BLOCK_BYTES] {
    let mut bytes = [0x5a; BLOCK_BYTES];
    stamp(&mut bytes, block);
    bytes
}

/// Writes a block's address over both ends of its bytes.
fn stamp(bytes: &mut [u8], block: u32) {
    // No stamp is zero, which is what a block holds that was never written.
    let stamp = (u64::from(block) + 1).to_le_bytes();
    let behind = bytes.len() - stamp.len();
    bytes[..stamp.len()].copy_from_slice(&stamp);
    bytes[behind..].copy_from_slice(&stamp);
}

#[cfg(test)]
impl Load {
    pub(super) const EXAMPLE_CAPABILITIES: Capabilities = Capabilities::NONE;

    /// A load for a drive that is not there.
    pub(super) fn example(direction: Direction, depth: u16) -> Self {
        let pipes = Pipes { command: 0x04, status: 0x83, data_in: 0x81, data_out: 0x02 };
        Self::with(pipes, Self::EXAMPLE_CAPABILITIES, 8, direction, depth).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_differ_from_each_other_and_from_nothing() {
        assert_ne!(stamped(0), [0; BLOCK_BYTES]);
        assert_ne!(stamped(0), stamped(1));
        assert_eq!(stamped(0x0102)[..8], [3, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(stamped(0x0102)[BLOCK_BYTES - 8..], [3, 1, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_sweep_refuses_a_block_of_another_place() {
        let mut sweep = Sweep::new(2);
        assert_eq!([sweep.next_block(), sweep.next_block(), sweep.next_block()], [Some(0), Some(1), None]);
        assert!(sweep.accept(1, &stamped(1)).is_ok());
        assert!(sweep.accept(1, &stamped(0)).is_err());
    }
}
