//! A SATA cable with a host port and a drive.
//!
//! The drive schedules transfers, as queued commands require: it sets one up, and no other moves
//! until its sectors have moved. Data without room in the port waits in the drive and blocks the
//! wire.

use super::Rate;
use super::notes::{Note, Notes};
use crate::drive::{
    DriveCommand, DriveCommandKind, DriveEvent, Mechanism, MediumAccess, SECTOR_BYTES, TAGS, Tag,
};
use std::collections::VecDeque;
use std::fmt;
use units::{Duration, Extent, Instant};
use wire::ata::{DataFis, DeviceToHostFis, DmaActivateFis, DmaSetupFis, HostToDeviceFis, SetDeviceBitsFis};

/// Whether a command is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// READ or WRITE FPDMA QUEUED (ACS-4 clauses 7.22 and 7.60): others may be in flight.
    Queued,
    /// READ or WRITE DMA EXT, FLUSH CACHE EXT, DATA SET MANAGEMENT: no other command may be in
    /// flight.
    Alone,
}

/// A command of the host port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The command for the drive, with a free tag.
    pub order: DriveCommand,
    /// Whether it is queued. A flush or a trim is not.
    pub queueing: Queueing,
}

/// An event for the host port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostPortEvent {
    /// More sectors of a read have arrived. They take buffer space until [`Attachment::take`].
    Came(Tag, u32),
    /// The drive requests more sectors of a write: [`Attachment::supply`].
    Wants(Tag, u32),
    /// A command has completed.
    Completed(Tag),
    /// The drive starts an access to its medium.
    Accesses(MediumAccess),
}

/// Traffic counters of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Frames, of either side.
    pub frames: u64,
    /// Bytes of sectors.
    pub payload_bytes: u64,
    /// Time in which the wire was busy.
    pub busy: Duration,
}

/// A cable with a drive.
#[derive(Clone, Debug)]
pub struct Attachment<M> {
    mechanism: M,
    rate: Rate,
    /// From one end to the other: cable, and what is between the wire and the link layer on both
    /// sides.
    latency: Duration,
    /// From leave to send a data frame of a command that is alone, to that frame.
    pause: Duration,
    /// Frames that wait, of the host and of the drive.
    waiting: [VecDeque<Frame>; 2],
    /// On the wire, until it arrives; and until when the wire is taken.
    crossing: Option<(Instant, Frame)>,
    free_at: Instant,
    links: [Option<Link>; TAGS],
    /// Commands with sectors to move, in the order in which the drive moves them.
    moving: VecDeque<Tag>,
    phase: Option<Phase>,
    /// Completed queued commands that wait for Set Device Bits, and those in the frame on the wire.
    ended: [VecDeque<Tag>; 2],
    /// Free buffer space of the host port in sectors; negative if overcommitted.
    room: i64,
    event: VecDeque<HostPortEvent>,
    books: Books,
    notes: Notes,
}

/// A command in flight.
#[derive(Clone, Copy, Debug)]
struct Link {
    command: Command,
    /// Sectors that the drive can move and has not begun to.
    ready: u32,
    /// Sectors of a write that the host has and has not sent.
    supplied: u32,
    /// The mechanism has completed it.
    is_done: bool,
}

/// Sectors of one command that move now.
#[derive(Clone, Copy, Debug)]
struct Phase {
    tag: Tag,
    /// Sectors that have not moved.
    left: u32,
    is_write: bool,
    /// From when on the host may send the next data frame.
    active_at: Option<Instant>,
}

/// The next frame to send.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// The first waiting frame of a side.
    Waiting(usize),
    /// Sectors of the command that is moved next.
    Begin(Tag),
    /// A data frame of the phase, of so many sectors.
    Data(Tag, u32),
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Command(Tag),
    Accepted,
    SetUp(Tag, u32),
    /// The host may send the next data frame; with the first come the sectors that the drive wants.
    Activate(Tag, u32),
    Data(Tag, u32),
    /// Set Device Bits: queued commands have ended.
    Bits,
    Registers(Tag),
}

const HOST: usize = 0;
const DRIVE: usize = 1;

/// Sectors of a data frame at most.
const FRAME_SECTORS: u32 = DataFis::DATA_LEN_MAX as u32 / SECTOR_BYTES;

impl<M: Mechanism> Attachment<M> {
    /// Connects a drive. `room_sectors` is the buffer size of the host port.
    pub fn new(mechanism: M, rate: Rate, latency: Duration, room_sectors: u32) -> Self {
        Self {
            mechanism,
            rate,
            latency,
            pause: Duration::ZERO,
            waiting: [VecDeque::new(), VecDeque::new()],
            crossing: None,
            free_at: Instant::ZERO,
            links: [None; TAGS],
            moving: VecDeque::new(),
            phase: None,
            ended: [VecDeque::new(), VecDeque::new()],
            room: i64::from(room_sectors),
            event: VecDeque::new(),
            books: Books::default(),
            notes: Notes::default(),
        }
    }

    /// Sets the delay of the host port from DMA Activate to the data frame of a non-queued command.
    #[must_use]
    pub fn pausing(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Returns the mechanism.
    pub const fn mechanism(&self) -> &M {
        &self.mechanism
    }

    /// Traffic counters of the wire.
    pub const fn books(&self) -> Books {
        self.books
    }

    /// Enables or disables notes of frames.
    pub fn take_notes(&mut self, is_taking: bool) {
        self.notes.take(is_taking);
    }

    /// Returns the next note of a frame sent until `now`.
    pub fn poll_note(&mut self, now: Instant) -> Option<Note> {
        self.notes.poll(now)
    }

    /// Issues a command. Its tag must be free; a non-queued command needs an idle drive.
    pub fn submit(&mut self, now: Instant, command: Command) {
        let alone = |link: &Link| link.command.queueing == Queueing::Alone;
        debug_assert!(
            !self.links.iter().flatten().any(|link| alone(link) || command.queueing == Queueing::Alone),
            "queued commands and others are never mixed"
        );
        let tag = command.order.tag;
        self.links[usize::from(tag.0)] = Some(Link { command, ready: 0, supplied: 0, is_done: false });
        self.waiting[HOST].push_back(Frame::Command(tag));
        self.advance(now);
    }

    /// Supplies sectors of a write that the drive has requested.
    pub fn supply(&mut self, now: Instant, tag: Tag, sectors: u32) {
        if let Some(link) = &mut self.links[usize::from(tag.0)] {
            link.supplied += sectors;
        }
        self.advance(now);
    }

    /// Frees buffer space of the host port. Returns whether this unblocked the drive.
    pub fn take(&mut self, now: Instant, sectors: u32) -> bool {
        let before = (self.books.frames, self.peek().is_some());
        self.room += i64::from(sectors);
        self.advance(now);
        before != (self.books.frames, self.peek().is_some()) || !self.event.is_empty()
    }

    /// Occupies buffer space of the host port.
    pub fn hold(&mut self, sectors: u32) {
        self.room -= i64::from(sectors);
    }

    /// Returns the next event for the host port.
    pub fn poll_event(&mut self) -> Option<HostPortEvent> {
        self.event.pop_front()
    }

    /// Returns the time of the next event, if there is one.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let wire = match self.crossing {
            Some((arrives, frame)) if self.is_awaited(frame) => Some(arrives),
            _ => self.peek().map(|(_, from)| self.free_at.max(from)),
        };
        match (wire, self.mechanism.poll_timeout()) {
            (Some(wire), Some(mechanism)) => Some(wire.min(mechanism)),
            (wire, mechanism) => wire.or(mechanism),
        }
    }

    /// Returns whether the arrival of a frame has an effect; otherwise no event is needed before
    /// the wire is free.
    const fn is_awaited(&self, frame: Frame) -> bool {
        match frame {
            Frame::Accepted => false,
            Frame::SetUp(..) => matches!(self.phase, Some(Phase { is_write: true, .. })),
            _ => true,
        }
    }

    /// Handles the passing of time up to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.mechanism.poll_timeout().is_some_and(|at| at <= now) {
            self.mechanism.handle_timeout(now);
        }
        self.advance(now);
    }

    fn advance(&mut self, now: Instant) {
        if let Some((arrives, frame)) = self.crossing
            && arrives <= now
        {
            self.crossing = None;
            self.arrive(now, frame);
        }
        self.listen();
        // Nothing goes before it, and nothing comes of it when it arrives: that it crosses is
        // settled.
        while self.crossing.is_none()
            && self.waiting[DRIVE].pop_front_if(|it| *it == Frame::Accepted).is_some()
        {
            self.occupy(now.max(self.free_at), Frame::Accepted);
        }
        if self.crossing.is_none()
            && self.free_at <= now
            && self.peek().is_some_and(|(_, from)| from <= now)
            && let Some(frame) = self.next()
        {
            self.send(now, frame);
        }
    }

    fn send(&mut self, now: Instant, frame: Frame) {
        let arrives = self.occupy(now, frame);
        self.crossing = Some((arrives, frame));
        if let Frame::Data(_, sectors) = frame {
            self.books.payload_bytes += u64::from(sectors) * u64::from(SECTOR_BYTES);
        }
    }

    /// The wire is taken by a frame from then on: when that arrives.
    fn occupy(&mut self, begins: Instant, frame: Frame) -> Instant {
        if self.notes.is_taking() {
            let text = self.describe(frame);
            self.notes.note(begins, text);
        }
        let crosses = self.rate.dwords(Rate::frame(frame.bytes()));
        // The sender asks, the receiver agrees; when the end has come the receiver acknowledges,
        // and the wire rests.
        let asks = self.latency + self.latency;
        let arrives = begins + asks + crosses + self.latency;
        self.free_at = arrives + self.latency;
        self.books.frames += 1;
        self.books.busy += self.free_at - begins;
        arrives
    }

    fn arrive(&mut self, now: Instant, frame: Frame) {
        match frame {
            Frame::Command(tag) => {
                let Some(link) = self.links[usize::from(tag.0)] else { return };
                if link.command.queueing == Queueing::Queued {
                    self.waiting[DRIVE].push_back(Frame::Accepted);
                }
                self.mechanism.submit(now, link.command.order);
            }
            Frame::SetUp(tag, sectors) | Frame::Activate(tag, sectors) => {
                let link = self.links[usize::from(tag.0)];
                let is_alone = link.is_some_and(|link| link.command.queueing == Queueing::Alone);
                let pause = if is_alone { self.pause } else { Duration::ZERO };
                if let Some(phase @ Phase { is_write: true, .. }) = &mut self.phase {
                    phase.active_at = Some(now + pause);
                    if sectors > 0 {
                        self.event.push_back(HostPortEvent::Wants(tag, sectors));
                    }
                }
            }
            Frame::Data(tag, sectors) => {
                if self.phase.is_some_and(|phase| phase.is_write) {
                    self.mechanism.handle_sectors(now, tag, sectors);
                } else {
                    self.event.push_back(HostPortEvent::Came(tag, sectors));
                }
                self.moved(tag, sectors);
            }
            Frame::Bits => {
                while let Some(tag) = self.ended[1].pop_front() {
                    self.end(tag);
                }
            }
            Frame::Registers(tag) => self.end(tag),
            Frame::Accepted => {}
        }
    }

    fn end(&mut self, tag: Tag) {
        self.links[usize::from(tag.0)] = None;
        self.event.push_back(HostPortEvent::Completed(tag));
    }

    /// Sectors of the phase have moved.
    fn moved(&mut self, tag: Tag, sectors: u32) {
        let Some(phase) = &mut self.phase else { return };
        phase.left -= sectors;
        if phase.left == 0 {
            self.phase = None;
            self.conclude(tag);
        } else if phase.is_write {
            self.waiting[DRIVE].push_back(Frame::Activate(tag, 0));
        }
    }

    /// Handles the events of the mechanism.
    fn listen(&mut self) {
        while let Some(events) = self.mechanism.poll_event() {
            match events {
                DriveEvent::Ready(tag, sectors) | DriveEvent::Space(tag, sectors) => {
                    if let Some(link) = &mut self.links[usize::from(tag.0)] {
                        if link.ready == 0 {
                            self.moving.push_back(tag);
                        }
                        link.ready += sectors;
                    }
                }
                DriveEvent::Done(tag) => {
                    if let Some(link) = &mut self.links[usize::from(tag.0)] {
                        link.is_done = true;
                    }
                    self.conclude(tag);
                }
                DriveEvent::Accesses(turn) => self.event.push_back(HostPortEvent::Accesses(turn)),
            }
        }
    }

    /// Completes a command whose mechanism is done and whose sectors have all moved.
    fn conclude(&mut self, tag: Tag) {
        let is_moving = self.phase.is_some_and(|phase| phase.tag == tag);
        let Some(link) = &self.links[usize::from(tag.0)] else { return };
        if !link.is_done || link.ready > 0 || is_moving {
            return;
        }
        match link.command.queueing {
            Queueing::Alone => self.waiting[DRIVE].push_back(Frame::Registers(tag)),
            Queueing::Queued => {
                if self.ended[0].is_empty() {
                    self.waiting[DRIVE].push_back(Frame::Bits);
                }
                self.ended[0].push_back(tag);
            }
        }
    }

    /// Returns the next frame and its earliest start. If both sides want to send, the host yields
    /// (clause 9.6.4); so a drive whose data has no room blocks the wire.
    fn peek(&self) -> Option<(Next, Instant)> {
        let at_once = Instant::ZERO;
        if !self.waiting[DRIVE].is_empty() {
            return Some((Next::Waiting(DRIVE), at_once));
        }
        match self.phase {
            None if self.moving.is_empty() => {}
            None => return self.moving.front().map(|tag| (Next::Begin(*tag), at_once)),
            Some(Phase { tag, left, is_write: false, .. }) => {
                let sectors = left.min(FRAME_SECTORS);
                return (i64::from(sectors) <= self.room).then_some((Next::Data(tag, sectors), at_once));
            }
            Some(Phase { tag, left, active_at: Some(from), .. }) => {
                let sectors = left.min(FRAME_SECTORS);
                let supplied = self.links[usize::from(tag.0)].map_or(0, |link| link.supplied);
                if sectors <= supplied {
                    return Some((Next::Data(tag, sectors), from));
                }
            }
            Some(_) => {}
        }
        (!self.waiting[HOST].is_empty()).then_some((Next::Waiting(HOST), at_once))
    }

    /// Takes what can go out.
    fn next(&mut self) -> Option<Frame> {
        match self.peek()?.0 {
            Next::Waiting(side) => {
                let frame = self.waiting[side].pop_front();
                if frame == Some(Frame::Bits) {
                    self.ended.swap(0, 1);
                }
                frame
            }
            Next::Begin(tag) => {
                self.moving.pop_front();
                let link = self.links[usize::from(tag.0)].as_mut()?;
                let sectors = std::mem::take(&mut link.ready);
                let command = link.command;
                let is_write = matches!(command.order.kind, DriveCommandKind::Write { .. });
                self.phase = Some(Phase { tag, left: sectors, is_write, active_at: None });
                match (command.queueing, is_write) {
                    (Queueing::Queued, _) => Some(Frame::SetUp(tag, sectors)),
                    (Queueing::Alone, true) => Some(Frame::Activate(tag, sectors)),
                    // Data need nothing before them.
                    (Queueing::Alone, false) => self.next(),
                }
            }
            Next::Data(tag, sectors) => {
                let phase = self.phase.as_mut()?;
                phase.active_at = None;
                if !phase.is_write {
                    self.room -= i64::from(sectors);
                } else if let Some(link) = &mut self.links[usize::from(tag.0)] {
                    link.supplied -= sectors;
                }
                Some(Frame::Data(tag, sectors))
            }
        }
    }

    /// Formats a frame for a note: sender, type and tag.
    fn describe(&self, frame: Frame) -> String {
        match frame {
            Frame::Command(tag) => match &self.links[usize::from(tag.0)] {
                Some(Link { command, .. }) => format!("host: {command}"),
                None => format!("host: a command with tag {}", tag.0),
            },
            Frame::Accepted => "drive: Register, accepted".into(),
            Frame::SetUp(tag, sectors) => format!("drive: DMA Setup, tag {}, {sectors} sectors", tag.0),
            Frame::Activate(tag, _) => format!("drive: DMA Activate, tag {}", tag.0),
            Frame::Data(tag, sectors) => {
                let is_write = self.phase.is_some_and(|phase| phase.is_write);
                let who = if is_write { "host" } else { "drive" };
                format!("{who}: Data, tag {}, {sectors} sectors", tag.0)
            }
            Frame::Bits => {
                let tags: Vec<_> = self.ended[1].iter().map(|tag| tag.0.to_string()).collect();
                format!("drive: Set Device Bits, ended {}", tags.join(", "))
            }
            Frame::Registers(tag) => format!("drive: Register, ended {}", tag.0),
        }
    }
}

impl fmt::Display for Command {
    /// The command's name in ACS-4, its tag, and where it is about.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DriveCommand { tag, kind, extent } = self.order;
        let name = match (kind, self.queueing) {
            (DriveCommandKind::Read, Queueing::Queued) => "READ FPDMA QUEUED",
            (DriveCommandKind::Read, Queueing::Alone) => "READ DMA EXT",
            (DriveCommandKind::Write { .. }, Queueing::Queued) => "WRITE FPDMA QUEUED",
            (DriveCommandKind::Write { through: true }, Queueing::Alone) => "WRITE DMA FUA EXT",
            (DriveCommandKind::Write { through: false }, Queueing::Alone) => "WRITE DMA EXT",
            (DriveCommandKind::Flush, _) => return write!(f, "FLUSH CACHE EXT, tag {}", tag.0),
            (DriveCommandKind::Trim, _) => "DATA SET MANAGEMENT",
        };
        let Extent { lba, blocks } = extent;
        write!(f, "{name}, tag {}, {} sectors from {} on", tag.0, blocks.0, lba.0)
    }
}

impl Frame {
    /// Returns the bytes of the frame information structure.
    const fn bytes(self) -> u64 {
        (match self {
            Self::Command(_) => HostToDeviceFis::LEN,
            Self::Accepted | Self::Registers(_) => DeviceToHostFis::LEN,
            Self::SetUp(..) => DmaSetupFis::LEN,
            Self::Activate(..) => DmaActivateFis::LEN,
            Self::Bits => SetDeviceBitsFis::LEN,
            Self::Data(_, sectors) => DataFis::LEN + sectors as usize * SECTOR_BYTES as usize,
        }) as u64
    }
}
