//! A hard disk: one actuator arm over rotating platters, and a cache.
//!
//! Reads wait for the arm, which serves the one with the shortest access time first unless one
//! exceeds the age limit (native command queuing, Serial ATA 3.x clause 13.6, leaves the order to
//! the drive). After a read, an idle arm reads ahead, and continues when a host that is slower than
//! the platters nears the end of the cached run. A read that continues a sequential stream reads as
//! much again before others are served, so that parallel streams do not lose a revolution per
//! request (the minimum pre-fetch of SBC-4 clause 6.5.6). Writes complete when they are in the
//! cache, and are written back when the arm has nothing to read, when the cache is nearly full, or
//! when a command waits for them; neighbours are coalesced.
//!
//! Not modelled: defects and reallocation, recalibration, spin-up time.
//!
//! Invariants: the arm is at one position; a sector is accessed at its angle, not earlier.

mod cache;
mod geometry;
mod seek;

pub use geometry::{DiskPosition, Geometry, Zone};
pub use seek::Seek;

use super::{Deferred, DriveCommand, DriveCommandKind, DriveEvent, Mechanism, MediumAccess, TAGS, Tag};
use cache::{Dirty, Segments};
use std::collections::VecDeque;
use std::ops::Range;
use units::{Duration, Extent, Instant, Lba};

/// Parameters of a hard disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskPart {
    /// Number of surfaces with a head.
    pub surfaces: u32,
    /// From the outside.
    pub zones: Vec<Zone>,
    /// The time of a revolution.
    pub rotation: Duration,
    /// Time of a head switch within a cylinder.
    pub head_switch: Duration,
    /// Seek time curve.
    pub seek: Seek,
    /// Additional settle time of a seek before a write.
    pub write_settle: Duration,
    /// Command overhead of the electronics.
    pub overhead: Duration,
    /// Number of read segments in the cache.
    pub segments: usize,
    /// Sectors per segment, which limits read-ahead.
    pub segment_sectors: u32,
    /// Write cache size in sectors.
    pub write_sectors: u32,
    /// Whether a write completes in the cache.
    pub write_cache: bool,
    /// A command older than this is served next.
    pub age_limit: Duration,
}

/// A hard disk.
#[derive(Clone, Debug)]
pub struct Disk {
    part: DiskPart,
    geometry: Geometry,
    /// Position of the arm.
    place: DiskPosition,
    arm: Arm,
    in_flight: [Option<InFlight>; TAGS],
    /// Writes that wait for cache space, in order of arrival.
    filling: VecDeque<Tag>,
    segments: Segments,
    dirty: Dirty,
    /// Cache space granted to writes whose data has not arrived, in sectors.
    promised: u64,
    /// Number of commands received.
    come: u64,
    events: VecDeque<DriveEvent>,
}

/// A command in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    order: DriveCommand,
    /// Number of earlier commands.
    number: u64,
    since: Instant,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// In the electronics.
    New,
    /// A read that waits for the arm.
    Waits,
    /// A read served by the arm, from this sector on.
    Follows(u64),
    /// A write: sectors with granted cache space, and sectors that have arrived.
    Fills { granted: u32, come: u32 },
    /// A write or a flush that completes when its data is on the platters.
    Settles,
}

#[derive(Clone, Copy, Debug)]
enum Arm {
    Rests,
    Reads(Run),
    Writes { extent: Extent, ends: Instant },
}

/// A sequential read of the arm.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Start of the part that is kept.
    first: u64,
    /// End of what has been read.
    have: u64,
    /// End of the read, unless extended.
    limit: u64,
    /// Earliest end, even if other commands wait for the arm.
    least: u64,
    /// A sector, and the time at which the head was at its start.
    base: (u64, Instant),
}

/// Sectors reported together: one data frame.
const CHUNK: u64 = 16;

/// Candidate runs on each side of the arm for the next write-back.
const CHOICE: usize = 32;

impl Disk {
    /// Creates a disk whose arm is parked at the outermost cylinder.
    pub fn new(part: DiskPart) -> Self {
        let skews = [part.head_switch, part.seek.next];
        let geometry = Geometry::new(part.surfaces, &part.zones, part.rotation, skews);
        Self {
            place: geometry.place(Lba(0)),
            arm: Arm::Rests,
            in_flight: [None; TAGS],
            filling: VecDeque::new(),
            segments: Segments::new(part.segments),
            dirty: Dirty::default(),
            promised: 0,
            come: 0,
            events: VecDeque::new(),
            geometry,
            part,
        }
    }

    /// Returns its geometry.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn advance(&mut self, now: Instant) {
        self.end_pass(now);
        self.read_on(now);
        self.look_at_new(now);
        self.grant();
        self.turn(now);
        self.settle();
    }

    /// Starts the commands whose overhead has elapsed.
    fn look_at_new(&mut self, now: Instant) {
        for index in 0..TAGS {
            let Some(entry) = &mut self.in_flight[index] else { continue };
            if entry.stage != Stage::New || entry.since + self.part.overhead > now {
                continue;
            }
            let order = entry.order;
            match order.kind {
                DriveCommandKind::Read => self.begin_read(index, order, now),
                DriveCommandKind::Write { .. } => {
                    entry.stage = Stage::Fills { granted: 0, come: 0 };
                    self.filling.push_back(order.tag);
                }
                DriveCommandKind::Flush => entry.stage = Stage::Settles,
                DriveCommandKind::Trim => self.end(order.tag),
            }
        }
    }

    fn begin_read(&mut self, index: usize, order: DriveCommand, now: Instant) {
        let Extent { lba, blocks } = order.extent;
        let cached = self.segments.find(order.extent);
        if self.dirty.holds(order.extent) || cached.is_some() {
            if let Some(run) = cached {
                self.read_ahead(now, run, order.extent);
            }
            self.events.push_back(DriveEvent::Ready(order.tag, blocks.0 as u32));
            return self.end(order.tag);
        }
        let mut stage = Stage::Waits;
        if let Arm::Reads(run) = &mut self.arm
            && (run.first..=run.limit).contains(&lba.0)
        {
            run.limit = run.limit.max(self.part.limit_after(&self.geometry, order.extent));
            stage = Stage::Follows(lba.0);
        }
        if let Some(entry) = &mut self.in_flight[index] {
            entry.stage = stage;
        }
        self.read_on(now);
    }

    /// Continues a cached run when the host is in its second half, while the arm is idle and on the
    /// same cylinder.
    fn read_ahead(&mut self, now: Instant, run: Range<u64>, asked: Extent) {
        let limit = self.part.limit_after(&self.geometry, asked);
        let left = run.end.saturating_sub(asked.lba.0 + asked.blocks.0);
        let waits = |entry: &InFlight| entry.stage == Stage::Waits;
        let is_idle = matches!(self.arm, Arm::Rests)
            && self.dirty.is_empty()
            && !self.in_flight.iter().flatten().any(waits);
        let is_here = self.geometry.place(Lba(run.end.min(limit))).cylinder == self.place.cylinder;
        if !is_idle || !is_here || run.end >= limit || left * 2 > u64::from(self.part.segment_sectors) {
            return;
        }
        let begins = now + self.access(now, Lba(run.end));
        self.place = self.geometry.place(Lba(run.end));
        let least = run.end;
        self.arm = Arm::Reads(Run { first: run.start, have: run.end, limit, least, base: (run.end, begins) });
    }

    /// Reports the sectors that have passed under the head, and completes reads.
    fn read_on(&mut self, now: Instant) {
        let Arm::Reads(mut run) = self.arm else { return };
        while run.have < run.limit {
            let upto = self.next_stop(run);
            let at = run.arrives(&self.geometry, upto);
            if at > now {
                break;
            }
            run.step(&self.geometry, upto, at, u64::from(self.part.segment_sectors));
        }
        self.place = self.geometry.place(Lba(run.have.saturating_sub(1)));
        self.arm = Arm::Reads(run);
        for index in 0..TAGS {
            let Some(entry) = &mut self.in_flight[index] else { continue };
            let Stage::Follows(next) = entry.stage else { continue };
            let order = entry.order;
            let end = order.extent.lba.0 + order.extent.blocks.0;
            let upto = end.min(run.have);
            if upto > next {
                entry.stage = Stage::Follows(upto);
                self.events.push_back(DriveEvent::Ready(order.tag, (upto - next) as u32));
            }
            if upto == end {
                self.end(order.tag);
            }
        }
        let follows = |entry: &InFlight| matches!(entry.stage, Stage::Follows(_));
        if run.have == run.limit && !self.in_flight.iter().flatten().any(follows) {
            // The arm is idle from here on.
            self.segments.keep(run.first..run.have);
            self.arm = Arm::Rests;
        }
    }

    /// Returns the end of the next reported chunk: one data frame, but not beyond the end of a
    /// waiting read, or beyond the minimum if no read waits.
    fn next_stop(&self, run: Run) -> u64 {
        let ends = self.in_flight.iter().flatten().filter_map(|entry| match entry.stage {
            Stage::Follows(_) => Some(entry.order.extent.lba.0 + entry.order.extent.blocks.0),
            _ => None,
        });
        let least = if run.have < run.least { run.least } else { run.limit };
        let end = ends.filter(|end| *end > run.have).min().unwrap_or(least);
        end.min(run.limit).min(run.have + CHUNK)
    }

    /// Completes a write pass of the arm.
    fn end_pass(&mut self, now: Instant) {
        if let Arm::Writes { extent, ends } = self.arm
            && ends <= now
        {
            self.place = self.geometry.place(Lba(extent.lba.0 + extent.blocks.0.saturating_sub(1)));
            self.arm = Arm::Rests;
        }
    }

    /// Grants free cache space to waiting writes.
    fn grant(&mut self) {
        while let Some(&tag) = self.filling.front() {
            let room = u64::from(self.part.write_sectors).saturating_sub(self.held());
            let Some(entry) = &mut self.in_flight[usize::from(tag.0)] else { return };
            let Stage::Fills { granted, .. } = &mut entry.stage else { return };
            let more = (entry.order.extent.blocks.0 - u64::from(*granted)).min(room) as u32;
            *granted += more;
            let has_all = u64::from(*granted) == entry.order.extent.blocks.0;
            if more > 0 {
                self.promised += u64::from(more);
                self.events.push_back(DriveEvent::Space(tag, more));
            }
            if !has_all {
                return;
            }
            self.filling.pop_front();
        }
    }

    /// Returns the sectors of the cache that are dirty or granted.
    fn held(&self) -> u64 {
        let under_arm = match self.arm {
            Arm::Writes { extent, .. } => extent.blocks.0,
            _ => 0,
        };
        self.dirty.sectors() + self.promised + under_arm
    }

    /// Chooses the next access of an idle arm.
    fn turn(&mut self, now: Instant) {
        let waits = |entry: &InFlight| entry.stage == Stage::Waits;
        let reads_wait = self.in_flight.iter().flatten().any(waits);
        let writes = self.writes_now(reads_wait);
        match self.arm {
            Arm::Writes { .. } => return,
            Arm::Reads(run) => {
                let follows = |entry: &InFlight| matches!(entry.stage, Stage::Follows(_));
                let is_wanted = self.in_flight.iter().flatten().any(follows);
                let upto = if reads_wait { run.least } else { run.limit };
                let reads_ahead = run.have < upto && !self.must_write();
                if is_wanted || reads_ahead {
                    return;
                }
                self.segments.keep(run.first..run.have);
                self.arm = Arm::Rests;
            }
            Arm::Rests => {}
        }
        let read = self.in_flight.iter().flatten().filter(|entry| waits(entry));
        let oldest = read.clone().min_by_key(|entry| entry.number);
        let aged = oldest.filter(|entry| entry.since + self.part.age_limit <= now);
        let nearest = aged
            .or_else(|| read.min_by_key(|entry| (self.access(now, entry.order.extent.lba), entry.number)));
        let read = nearest.map(|entry| entry.order);
        let write = writes.then(|| self.nearest_write(now)).flatten();
        match (read, write) {
            (Some(order), Some(lba))
                if aged.is_none() && self.access_to_write(now, lba) < self.access(now, order.extent.lba) =>
            {
                self.write(now, lba);
            }
            (Some(order), _) => self.read(now, order),
            (None, Some(lba)) => self.write(now, lba),
            (None, None) => {}
        }
    }

    /// Returns whether a command waits for write-back, or the cache is nearly full.
    fn must_write(&self) -> bool {
        let settles = |entry: &InFlight| entry.stage == Stage::Settles;
        let is_full = self.held() * 4 > u64::from(self.part.write_sectors) * 3;
        !self.dirty.is_empty() && (is_full || self.in_flight.iter().flatten().any(settles))
    }

    fn writes_now(&self, reads_wait: bool) -> bool {
        !self.dirty.is_empty() && (!reads_wait || self.must_write())
    }

    fn nearest_write(&self, now: Instant) -> Option<Lba> {
        let here = self.place;
        let under_arm = self.geometry.first_of(here);
        let near = self.dirty.near(under_arm, CHOICE).map(Lba);
        near.min_by_key(|lba| (self.access_to_write(now, *lba), lba.0))
    }

    fn read(&mut self, now: Instant, order: DriveCommand) {
        let begins = now + self.access(now, order.extent.lba);
        let first = order.extent.lba.0;
        let limit = self.part.limit_after(&self.geometry, order.extent);
        let least = (first + order.extent.blocks.0 + self.segments.before(first)).min(limit);
        self.arm = Arm::Reads(Run { first, have: first, limit, least, base: (first, begins) });
        self.place = self.geometry.place(order.extent.lba);
        if let Some(entry) = &mut self.in_flight[usize::from(order.tag.0)] {
            entry.stage = Stage::Follows(first);
        }
        self.events
            .push_back(DriveEvent::Accesses(MediumAccess { tag: Some(order.tag), extent: order.extent }));
        // Other reads may be served by this pass.
        for index in 0..TAGS {
            if let Some(InFlight { order, stage: Stage::Waits, .. }) = self.in_flight[index]
                && (first..=limit).contains(&order.extent.lba.0)
            {
                self.begin_read(index, order, now);
            }
        }
    }

    /// Writes dirty sectors from `lba` to the end of the track.
    fn write(&mut self, now: Instant, lba: Lba) {
        let begins = now + self.access_to_write(now, lba);
        let place = self.geometry.place(lba);
        let extent = self.dirty.take(lba.0, u64::from(place.sectors_per_track - place.sector));
        self.arm = Arm::Writes { extent, ends: begins + self.geometry.pass(lba, extent.blocks.0) };
        self.place = place;
        self.events.push_back(DriveEvent::Accesses(MediumAccess { tag: None, extent }));
    }

    /// Returns the access time to a sector.
    fn access(&self, now: Instant, lba: Lba) -> Duration {
        self.access_after(now, lba, Duration::ZERO)
    }

    fn access_to_write(&self, now: Instant, lba: Lba) -> Duration {
        self.access_after(now, lba, self.part.write_settle)
    }

    fn access_after(&self, now: Instant, lba: Lba, settle: Duration) -> Duration {
        let (from, to) = (self.place, self.geometry.place(lba));
        let move_time = if from.cylinder != to.cylinder {
            let way = from.cylinder.abs_diff(to.cylinder);
            self.part.seek.time(way, self.geometry.cylinders())
                + if way > 1 { settle } else { Duration::ZERO }
        } else if from.surface != to.surface {
            self.part.head_switch
        } else {
            Duration::ZERO
        };
        move_time + self.geometry.wait(now + move_time, to)
    }

    /// Completes commands whose data has reached the platters.
    fn settle(&mut self) {
        for index in 0..TAGS {
            let Some(InFlight { order, number, stage: Stage::Settles, .. }) = self.in_flight[index] else {
                continue;
            };
            let is_under_arm = |wanted: Extent| match self.arm {
                Arm::Writes { extent, .. } => extent.overlaps(wanted),
                _ => false,
            };
            let is_settled = match order.kind {
                DriveCommandKind::Flush => {
                    let comes = |entry: &InFlight| {
                        entry.number < number && matches!(entry.stage, Stage::New | Stage::Fills { .. })
                    };
                    let writes = matches!(self.arm, Arm::Writes { .. });
                    self.dirty.is_empty() && !writes && !self.in_flight.iter().flatten().any(comes)
                }
                _ => !self.dirty.touches(order.extent) && !is_under_arm(order.extent),
            };
            if is_settled {
                self.end(order.tag);
            }
        }
    }

    fn end(&mut self, tag: Tag) {
        self.in_flight[usize::from(tag.0)] = None;
        self.events.push_back(DriveEvent::Done(tag));
    }
}

impl DiskPart {
    /// Returns the end of a read including read-ahead.
    fn limit_after(&self, geometry: &Geometry, extent: Extent) -> u64 {
        let end = extent.lba.0 + extent.blocks.0;
        (end + u64::from(self.segment_sectors)).min(geometry.sectors()).max(end)
    }
}

impl Run {
    /// Returns when everything before a sector has been read.
    fn arrives(&self, geometry: &Geometry, upto: u64) -> Instant {
        let (lba, at) = self.base;
        at + geometry.pass(Lba(lba), upto - lba)
    }

    /// Advances the read to a sector.
    fn step(&mut self, geometry: &Geometry, upto: u64, at: Instant, cached: u64) {
        let last = Lba(upto - 1);
        let before = geometry.sector_time(geometry.place(last));
        self.base = (last.0, Instant::from_ps(at.as_ps() - before.as_ps()));
        self.have = upto;
        self.first = self.first.max(upto.saturating_sub(cached));
    }
}

impl Mechanism for Disk {
    fn submit(&mut self, now: Instant, order: DriveCommand) {
        debug_assert!(self.in_flight[usize::from(order.tag.0)].is_none(), "a tag that is free");
        self.in_flight[usize::from(order.tag.0)] =
            Some(InFlight { order, number: self.come, since: now, stage: Stage::New });
        self.come += 1;
        self.advance(now);
    }

    fn handle_sectors(&mut self, now: Instant, tag: Tag, sectors: u32) {
        let Some(entry) = &mut self.in_flight[usize::from(tag.0)] else { return };
        let Stage::Fills { granted, come } = entry.stage else { return };
        let DriveCommand { extent, kind, .. } = entry.order;
        debug_assert!(come + sectors <= granted, "sectors for which there is room");
        let all_come = come + sectors;
        entry.stage = Stage::Fills { granted, come: all_come };
        let piece = Extent::new(extent.lba.0 + u64::from(come), u64::from(sectors));
        self.promised -= u64::from(sectors);
        self.dirty.add(piece);
        self.segments.forget(piece);
        if u64::from(all_come) == extent.blocks.0 {
            let ends_in_cache = self.part.write_cache && kind == DriveCommandKind::Write { through: false };
            if ends_in_cache {
                self.end(tag);
            } else if let Some(entry) = &mut self.in_flight[usize::from(tag.0)] {
                entry.stage = Stage::Settles;
            }
        }
        self.advance(now);
    }

    fn poll_event(&mut self) -> Option<DriveEvent> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let new = |entry: &InFlight| (entry.stage == Stage::New).then(|| entry.since + self.part.overhead);
        let looked_at = self.in_flight.iter().flatten().filter_map(new).min();
        let follows = |entry: &InFlight| matches!(entry.stage, Stage::Follows(_));
        let waits = |entry: &InFlight| entry.stage == Stage::Waits;
        let arm = match self.arm {
            Arm::Rests => None,
            Arm::Writes { ends, .. } => Some(ends),
            Arm::Reads(run) if self.in_flight.iter().flatten().any(follows) => {
                Some(run.arrives(&self.geometry, self.next_stop(run)))
            }
            // Other reads wait until the minimum has been read.
            Arm::Reads(run) if run.have < run.least && self.in_flight.iter().flatten().any(waits) => {
                Some(run.arrives(&self.geometry, run.least))
            }
            // Read-ahead needs no event until a command asks for it, unless a write-back follows.
            Arm::Reads(run) if !self.dirty.is_empty() => Some(run.arrives(&self.geometry, run.limit)),
            Arm::Reads(_) => None,
        };
        looked_at.into_iter().chain(arm).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    fn sectors(&self) -> u64 {
        self.geometry.sectors()
    }

    fn deferred(&self) -> Deferred {
        if self.part.write_cache {
            Deferred { held: self.held(), room: u64::from(self.part.write_sectors) }
        } else {
            Deferred::default()
        }
    }
}

#[cfg(test)]
mod tests;
