//! Test host for drives: supplies sectors as soon as there is space, and records completions.

use super::{DriveCommand, DriveCommandKind, DriveEvent, Mechanism, MediumAccess, Tag};
use units::{Duration, Extent, Instant};

/// A completed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Completed {
    pub(super) tag: Tag,
    pub(super) at: Instant,
    /// Sectors that were ready, or for which there was room.
    pub(super) sectors: u64,
}

/// Command kinds for random tests.
pub(super) const KINDS: [DriveCommandKind; 4] = [
    DriveCommandKind::Read,
    DriveCommandKind::Write { through: false },
    DriveCommandKind::Write { through: true },
    DriveCommandKind::Flush,
];

/// A drive and its host.
#[derive(Debug)]
pub(super) struct Script<M> {
    pub(super) drive: M,
    pub(super) now: Instant,
    pub(super) ended: Vec<Completed>,
    pub(super) turns: Vec<MediumAccess>,
    moved: [u64; super::TAGS],
    in_flight: Vec<Tag>,
}

impl<M: Mechanism> Script<M> {
    pub(super) const fn new(drive: M) -> Self {
        Self {
            drive,
            now: Instant::ZERO,
            ended: Vec::new(),
            turns: Vec::new(),
            moved: [0; super::TAGS],
            in_flight: Vec::new(),
        }
    }

    pub(super) fn submit(&mut self, tag: u8, kind: DriveCommandKind, lba: u64, sectors: u64) {
        let order = DriveCommand { tag: Tag(tag), kind, extent: Extent::new(lba, sectors) };
        assert!(self.is_free(tag), "{order:?}");
        self.in_flight.push(order.tag);
        self.drive.submit(self.now, order);
        self.listen();
    }

    pub(super) fn read(&mut self, tag: u8, lba: u64, sectors: u64) {
        self.submit(tag, DriveCommandKind::Read, lba, sectors);
    }

    pub(super) fn write(&mut self, tag: u8, lba: u64, sectors: u64) {
        self.submit(tag, DriveCommandKind::Write { through: false }, lba, sectors);
    }

    pub(super) fn is_free(&self, tag: u8) -> bool {
        !self.in_flight.contains(&Tag(tag))
    }

    fn listen(&mut self) {
        while let Some(events) = self.drive.poll_event() {
            match events {
                DriveEvent::Ready(tag, sectors) => self.moved[usize::from(tag.0)] += u64::from(sectors),
                DriveEvent::Space(tag, sectors) => {
                    self.moved[usize::from(tag.0)] += u64::from(sectors);
                    self.drive.handle_sectors(self.now, tag, sectors);
                }
                DriveEvent::Done(tag) => {
                    assert!(!self.is_free(tag.0), "{tag:?} ends once");
                    self.in_flight.retain(|other| *other != tag);
                    let sectors = std::mem::take(&mut self.moved[usize::from(tag.0)]);
                    self.ended.push(Completed { tag, at: self.now, sectors });
                }
                DriveEvent::Accesses(turn) => self.turns.push(turn),
            }
        }
    }

    /// Lets the drive go on once, if it has anything to go on with.
    pub(super) fn step(&mut self) -> bool {
        let Some(at) = self.drive.poll_timeout() else { return false };
        assert!(at >= self.now, "nothing happens before now");
        self.now = at;
        self.drive.handle_timeout(at);
        self.listen();
        true
    }

    /// Runs until `count` commands have completed.
    pub(super) fn until(&mut self, count: usize) {
        for _ in 0..10_000_000 {
            if self.ended.len() >= count {
                return;
            }
            assert!(self.step(), "{} of {count} orders have ended", self.ended.len());
        }
        panic!("no progress: {:?}", self.drive);
    }

    /// Runs until idle.
    pub(super) fn rest(&mut self) {
        for _ in 0..10_000_000 {
            if !self.step() {
                return;
            }
        }
        panic!("it never rests: {:?}", self.drive);
    }

    /// Gives orders of a kind, a place, a length, and how often the drive goes on before; then lets
    /// it come to rest. How many orders that were, and how many sectors they move.
    pub(super) fn play(&mut self, orders: &[(DriveCommandKind, u64, u64, u64)]) -> (usize, u64) {
        let mut moved = 0;
        for &(kind, lba, sectors, steps) in orders {
            for _ in 0..steps {
                self.step();
            }
            let tag = loop {
                if let Some(tag) = (0..super::TAGS as u8).find(|tag| self.is_free(*tag)) {
                    break tag;
                }
                assert!(self.step(), "no tag is free, and nothing happens");
            };
            if matches!(kind, DriveCommandKind::Read | DriveCommandKind::Write { .. }) {
                moved += sectors;
            }
            self.submit(tag, kind, lba, if kind == DriveCommandKind::Flush { 0 } else { sectors });
        }
        self.rest();
        (orders.len(), moved)
    }

    /// Returns the time from `since` to the last completion.
    pub(super) fn took(&self, since: Instant) -> Duration {
        self.ended.last().map_or(Duration::ZERO, |last| last.at - since)
    }
}
