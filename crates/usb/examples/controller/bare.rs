//! Transfers as a transport would make them, one at a time and wrong on purpose: stalls, cancels,
//! resets.
//!
//! Each trial ends with an INQUIRY that works, which shows that nothing was left behind. Left out:
//! data of any length. Always true: a wait has a limit.

use crate::trial::Failure;
use bus::{Completion, Direction, Pipe, StreamId, TransferId, TransferStatus};
use quirks::{BotPlan, Link, Matching, UasPlan, probe};
use std::time::{Duration, Instant};
use uaskit_usb::controller::{HostedDevice, HostedInterface, UsbHost};
use uaskit_usb::host_bus::{
    BufferBlock, BufferId, BufferMemory, BufferSpan, HardwareBus, HostBus, TransferRequest,
};
use units::ByteRange;
use wire::bot::Cbw;
use wire::uas::{CommandIu, TaskAttribute};

/// How long a transfer may take that is to end.
const LIMIT: Duration = Duration::from_secs(5);

/// INQUIRY, 36 bytes.
const INQUIRY: [u8; 6] = [0x12, 0, 0, 0, 36, 0];

/// Buffers of [`BUFFER_BYTES`].
const BUFFERS: u16 = 64;
const BUFFER_BYTES: u32 = 4096;

/// A device without a transport above its bus.
pub(crate) struct Bare<P> {
    bus: HostedInterface,
    plan: P,
    buffers: BufferId,
    last: u64,
    /// A transfer that ended as it was submitted.
    rejected: Option<Completion>,
}

impl<P> Bare<P> {
    fn submit(&mut self, pipe: Pipe, buffer: BufferId, length: u32) -> TransferId {
        self.last += 1;
        let id = TransferId(self.last);
        let span = first_of(buffer, length);
        let rejected = self.bus.submit(TransferRequest { id, pipe, span, is_whole: false });
        self.rejected = rejected.or(self.rejected);
        id
    }

    /// The next transfer that ends.
    fn next(&mut self) -> Result<Completion, Failure> {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(completion) = self.rejected.take().or_else(|| self.bus.poll()) {
                return Ok(completion);
            }
            if Instant::now() > until {
                return Err("a transfer does not end".into());
            }
            self.bus.wait(Some(LIMIT))?;
            self.bus.reap()?;
        }
    }

    /// A transfer alone, to its end.
    fn transfer(&mut self, pipe: Pipe, length: u32) -> Result<Completion, Failure> {
        let id = self.submit(pipe, self.buffers, length);
        let completion = self.next()?;
        if completion.id == id { Ok(completion) } else { Err("another transfer has ended".into()) }
    }

    fn send(&mut self, pipe: Pipe, bytes: &[u8]) -> Result<Completion, Failure> {
        let length = bytes.len() as u32;
        self.bus.copy_in(first_of(self.buffers, length), bytes);
        self.transfer(pipe, length)
    }
}

/// The first bytes of a buffer.
fn first_of(buffer: BufferId, length: u32) -> BufferSpan {
    BufferSpan { buffer, range: ByteRange::new(0, length) }
}

fn opened(device: HostedDevice, interface: u8) -> Result<(HostedInterface, BufferId), Failure> {
    let (bus, [buffers]) =
        HostedInterface::open(device, interface, [BufferBlock { count: BUFFERS, bytes: BUFFER_BYTES }])?;
    Ok((bus, buffers))
}

fn is(completion: Completion, status: TransferStatus, actual: u32) -> Result<(), Failure> {
    println!("{completion:?}");
    if (completion.status, completion.actual) == (status, actual) {
        Ok(())
    } else {
        Err(format!("{status:?} of {actual} bytes was expected").into())
    }
}

impl Bare<BotPlan> {
    pub(crate) fn bot(device: HostedDevice) -> Result<Self, Failure> {
        let link = Link { speed: device.speed(), streams_max: 0 };
        let plan = probe(&device.answers(), link)?.bot().ok_or("it has no BOT")?;
        let (mut bus, buffers) = opened(device, plan.place.interface)?;
        if plan.place.alternate != 0 {
            bus.select_alternate(plan.place.alternate)?;
        }
        Ok(Self { bus, plan, buffers, last: 0, rejected: None })
    }

    fn inquiry(&mut self) -> Result<(), Failure> {
        let (bulk_in, bulk_out) = (self.plan.bulk_in.plain(), self.plan.bulk_out.plain());
        is(
            self.send(bulk_out, &Cbw::new(1, 36, Direction::In, 0, &INQUIRY).encode())?,
            TransferStatus::Done,
            31,
        )?;
        is(self.transfer(bulk_in, 36)?, TransferStatus::Done, 36)?;
        let mut answer = [0; 36];
        self.bus.copy_out(first_of(self.buffers, 36), &mut answer);
        println!("{}", String::from_utf8_lossy(&answer[8..36]));
        is(self.transfer(bulk_in, 13)?, TransferStatus::Done, 13)?;
        self.bus.copy_out(first_of(self.buffers, 13), &mut answer);
        if answer[..4] != *b"USBS" || answer[12] != 0 {
            return Err(format!("no CSW with GOOD: {:02x?}", &answer[..13]).into());
        }
        Ok(())
    }

    /// Checks that an invalid CBW is answered with a stall until the halt is cleared, and that everything
    /// works again afterwards.
    pub(crate) fn stalls(&mut self) -> Result<bool, Failure> {
        self.inquiry()?;
        let bulk_out = self.plan.bulk_out;
        for length in [31, 12, 31] {
            let refused = self.send(bulk_out.plain(), &[0xa5; 31][..length])?;
            // Bytes that were taken before the stall count as moved.
            is(refused, TransferStatus::Stall, refused.actual)?;
            self.bus.clear_halt(bulk_out.address)?;
        }
        // A CSW that no one has asked for, while others wait behind it.
        let bulk_in = self.plan.bulk_in;
        let ids: Vec<_> = (0..3).map(|at| self.submit(bulk_in.plain(), self.buffers.after(at), 13)).collect();
        let first = self.next()?;
        println!("{first:?}");
        for id in &ids {
            self.bus.cancel(*id);
        }
        let rest = [self.next()?, self.next()?];
        println!("{rest:?}");
        if first.status != TransferStatus::Stall {
            return Err("a stall was expected".into());
        }
        self.bus.clear_halt(bulk_in.address)?;
        self.inquiry()?;
        println!("stalls=4");
        Ok(true)
    }

    pub(crate) fn is_reset(&mut self) -> Result<bool, Failure> {
        self.inquiry()?;
        for _ in 0..3 {
            self.bus.reset()?;
            if self.plan.place.alternate != 0 {
                self.bus.select_alternate(self.plan.place.alternate)?;
            }
            self.inquiry()?;
        }
        println!("resets=3");
        Ok(true)
    }
}

impl Bare<UasPlan> {
    pub(crate) fn uas(device: HostedDevice) -> Result<Self, Failure> {
        let link = Link { speed: device.speed(), streams_max: 256 };
        let plan = probe(&device.answers(), link)?.uas().ok_or("it has no UAS")?;
        let (bus, buffers) = opened(device, plan.place.interface)?;
        let mut bare = Self { bus, plan, buffers, last: 0, rejected: None };
        bare.select()?;
        Ok(bare)
    }

    fn select(&mut self) -> Result<(), Failure> {
        if self.plan.place.alternate != 0 {
            self.bus.select_alternate(self.plan.place.alternate)?;
        }
        if let Matching::Streams { request } = self.plan.matching {
            let granted = self.bus.allocate_streams(self.plan.stream_endpoints(), request.get())?;
            println!("streams={granted}");
        }
        Ok(())
    }

    fn inquiry(&mut self, tag: u16) -> Result<(), Failure> {
        let stream = StreamId::new(tag).ok_or("a stream")?;
        let mut cdb = [0; 16];
        cdb[..INQUIRY.len()].copy_from_slice(&INQUIRY);
        let command = CommandIu {
            tag,
            attribute: TaskAttribute::Simple,
            priority: 0,
            lun: [0; 8],
            cdb: &cdb,
            additional_cdb: &[],
        };
        let status = self.submit(self.plan.status.stream(stream), self.buffers.after(1), 112);
        let data_in = self.submit(self.plan.data_in.stream(stream), self.buffers.after(2), 36);
        self.bus.copy_in(first_of(self.buffers, 32), &command.encode());
        let sent = self.submit(self.plan.command.plain(), self.buffers, 32);
        for _ in 0..3 {
            let completion = self.next()?;
            let expected = match completion.id {
                id if id == sent => (TransferStatus::Done, 32),
                id if id == data_in => (TransferStatus::Done, 36),
                id if id == status => (TransferStatus::Short, 16),
                _ => return Err("a transfer of an earlier round has ended".into()),
            };
            is(completion, expected.0, expected.1)?;
        }
        let mut answer = [0; 36];
        self.bus.copy_out(first_of(self.buffers.after(2), 36), &mut answer);
        println!("{}", String::from_utf8_lossy(&answer[8..36]));
        Ok(())
    }

    /// Statuses that are waited for on many streams and cancelled, first one by one, then all at
    /// once; one more stream is left alone. Each stream has had `earlier` commands before, so that
    /// its rings are on whatever lap.
    pub(crate) fn cancels(&mut self, host: &UsbHost, earlier: u32) -> Result<bool, Failure> {
        let streams = 14;
        self.inquiry(1)?;
        for _ in 0..earlier {
            (1..=streams + 1).try_for_each(|stream| self.inquiry(stream))?;
        }
        for round in 0..4 {
            let mut ids = Vec::new();
            for stream in 1..=streams {
                let pipe = self.plan.status.stream(StreamId::new(stream).ok_or("a stream")?);
                ids.push(self.submit(pipe, self.buffers.after(stream), 112));
            }
            let is_quiet = self.bus.poll().is_none() && self.bus.in_flight() == ids.len();
            if !is_quiet {
                return Err("a status has come that was not sent".into());
            }
            if round % 2 == 0 {
                // From the middle, so that streams on both sides wait.
                let at = ids.len() / 2;
                let id = ids.remove(at);
                self.bus.cancel(id);
                is(self.next()?, TransferStatus::Cancelled, 0)?;
            }
            ids.iter().for_each(|id| self.bus.cancel(*id));
            for _ in &ids {
                is(self.next()?, TransferStatus::Cancelled, 0)?;
            }
            self.inquiry(round + 2)?;
            self.inquiry(streams + 1)?;
        }
        println!("cancels=56 {:?}", host.counters());
        Ok(self.bus.in_flight() == 0)
    }

    /// Reads of whose data some are cancelled in flight, and asked for again while the command goes
    /// on. The disk is full of [`pattern`].
    pub(crate) fn cancels_data(&mut self) -> Result<bool, Failure> {
        let (tags, mut cancelled) = (14, 0);
        // The first command after power on is reported of it instead.
        self.read(1, 0)?;
        for _ in 0..3 {
            self.next()?;
        }
        for round in 0..4 {
            let mut data = Vec::new();
            for tag in 1..=tags {
                data.push(self.read(tag, u32::from(round * tags + tag))?);
            }
            data.iter().step_by(2).for_each(|(id, ..)| self.bus.cancel(*id));
            let mut left = 3 * usize::from(tags);
            while left > 0 {
                let completion = self.next()?;
                let again = data.iter_mut().find(|(id, ..)| *id == completion.id);
                match (completion.status, again) {
                    (TransferStatus::Cancelled, Some((id, pipe, buffer))) => {
                        let (pipe, buffer) = (*pipe, *buffer);
                        *id = self.submit(pipe, buffer, BUFFER_BYTES);
                        cancelled += 1;
                    }
                    (TransferStatus::Done | TransferStatus::Short, _) => left -= 1,
                    (status, _) => return Err(format!("a transfer has ended as {status:?}").into()),
                }
            }
            for (tag, (.., buffer)) in (1..).zip(&data) {
                let piece = u64::from(round * tags + tag);
                if self.bus.bytes(*buffer).as_deref() != Some(&pattern(piece)[..]) {
                    let found = self.bus.bytes(*buffer).map(|bytes| bytes[..16].to_vec());
                    return Err(format!("piece {piece} is not what the disk has: {found:02x?}").into());
                }
            }
        }
        println!("reads=56 cancelled={cancelled}");
        self.inquiry(1)?;
        Ok(cancelled > 0 && self.bus.in_flight() == 0)
    }

    /// A READ (10) of the piece with that number: its data transfer, and where that is.
    fn read(&mut self, tag: u16, piece: u32) -> Result<(TransferId, Pipe, BufferId), Failure> {
        let stream = StreamId::new(tag).ok_or("a stream")?;
        let blocks = BUFFER_BYTES / 512;
        let [a, b, c, d] = (piece * blocks).to_be_bytes();
        let cdb = [0x28, 0, a, b, c, d, 0, 0, blocks as u8, 0, 0, 0, 0, 0, 0, 0];
        let attribute = TaskAttribute::Simple;
        let command = CommandIu { tag, attribute, priority: 0, lun: [0; 8], cdb: &cdb, additional_cdb: &[] };
        let (data, pipe) = (self.buffers.after(tag), self.plan.data_in.stream(stream));
        let (status, sent) = (self.buffers.after(20 + tag), self.buffers.after(40 + tag));
        self.submit(self.plan.status.stream(stream), status, 112);
        let id = self.submit(pipe, data, BUFFER_BYTES);
        self.bus.copy_in(first_of(sent, 32), &command.encode());
        self.submit(self.plan.command.plain(), sent, 32);
        Ok((id, pipe, data))
    }

    pub(crate) fn is_reset(&mut self) -> Result<bool, Failure> {
        self.inquiry(1)?;
        for tag in 1..=3 {
            // One that a reset has to end.
            let pipe = self.plan.status.stream(StreamId::new(9).ok_or("a stream")?);
            self.submit(pipe, self.buffers.after(9), 112);
            self.bus.reset()?;
            // The device may have ended it first.
            let ended = self.next()?;
            println!("{ended:?}");
            if !matches!(ended.status, TransferStatus::Cancelled | TransferStatus::Error) {
                return Err("a reset ends what is in flight".into());
            }
            self.select()?;
            self.inquiry(tag)?;
        }
        println!("resets=3");
        Ok(true)
    }
}

/// Returns the content of a piece of the disk: each eight bytes follow from their position.
fn pattern(piece: u64) -> Vec<u8> {
    let words = u64::from(BUFFER_BYTES) / 8;
    (piece * words..(piece + 1) * words)
        .flat_map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .collect()
}
