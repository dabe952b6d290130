//! A solid-state drive: a controller, channels, dies, and a write buffer.
//!
//! The controller handles commands one after the other. Reads load pages from dies over their
//! channels, and read ahead if they are sequential. A write completes in the buffer; when the
//! buffer holds a full page, the next die in round-robin order programs it. Nearly full flash is
//! garbage-collected before it is written again, on the same dies.
//!
//! A compressing controller writes and reads less flash; the SATA link carries everything. A page
//! then holds as many sectors as compress to a page.
//!
//! Not modelled: errors, power states, wear, reads served from the write buffer (they go to a die),
//! flash for the mapping table.
//!
//! Invariants: a die and a channel execute one operation at a time; the buffer never exceeds its
//! capacity.

mod die;
mod ftl;

pub use die::FlashTimes;

use super::{DriveCommand, DriveCommandKind, DriveEvent, Mechanism, SECTOR_BYTES, TAGS, Tag};
use crate::engine::Random;
use crate::vec_pool::VecPool;
use die::{Dies, Job};
use ftl::Flash;
use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{BTreeSet, VecDeque};
use units::{Duration, Instant};

/// Parameters of a solid-state drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SolidPart {
    /// Capacity in sectors.
    pub sectors: u64,
    /// Controller time per command.
    pub command: Duration,
    /// Channels.
    pub channels: u16,
    /// Dies on each.
    pub dies_per_channel: u16,
    /// Bytes of a page, of all planes that are used together.
    pub page_bytes: u32,
    /// Pages that are erased together.
    pub pages_per_block: u32,
    /// Flash operation times.
    pub times: FlashTimes,
    /// Write buffer size in sectors.
    pub write_sectors: u32,
    /// Pages that are read ahead.
    pub ahead_pages: u32,
    /// Whether the controller compresses what it stores.
    pub compresses: bool,
    /// Over-provisioning, in thousandths of the capacity.
    pub spare_per_mille: u16,
}

/// Initial state of a drive, and compressibility of the data written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Compressed size of the data, in thousandths.
    pub compressed_per_mille: u16,
    /// Sectors, from the first on, that were filled by random writes. The rest was never written.
    pub worn_sectors: u64,
}

impl Contents {
    /// A new drive, and incompressible data.
    pub const FRESH: Self = Self { compressed_per_mille: 1000, worn_sectors: 0 };
}

/// A solid-state drive.
#[derive(Clone, Debug)]
pub struct Solid {
    part: SolidPart,
    dies: Dies,
    flash: Flash,
    /// Sectors that one page holds.
    page_sectors: u64,
    in_flight: [Option<InFlight>; TAGS],
    /// Reusable vectors for the page state of reads.
    spare: VecPool<bool>,
    /// Commands in the controller, with their completion times there, in order.
    looked_at: VecDeque<(Instant, Tag)>,
    filling: VecDeque<Tag>,
    pages: Pages,
    buffer: Buffer,
    /// Number of commands received.
    come: u64,
    /// Number of commands that wait for flash.
    settling: usize,
    /// Where the last read ended.
    read_to: u64,
    events: VecDeque<DriveEvent>,
}

/// A command in flight.
#[derive(Clone, Debug)]
struct InFlight {
    order: DriveCommand,
    number: u64,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    New,
    /// Pages of a read that have arrived, and how many of them have been reported.
    Gathers {
        here: Vec<bool>,
        event: usize,
    },
    /// A write: sectors with granted cache space, and sectors that have arrived.
    Fills {
        granted: u32,
        come: u32,
    },
    /// Completes when all pages up to this number are programmed.
    Settles {
        upto: u64,
    },
    /// A flush that waits for writes that came before.
    Follows,
}

/// Pages of reads.
#[derive(Clone, Debug, Default)]
struct Pages {
    /// On their way, and which part of which order waits for them.
    coming: BTreeMap<u64, Vec<(Tag, usize)>>,
    /// Memory for those that wait.
    spare: VecPool<(Tag, usize)>,
    /// Of those, the ones that no one asked for yet.
    ahead: BTreeSet<u64>,
    /// Read ahead, the oldest first.
    here: VecDeque<u64>,
}

/// The write buffer.
#[derive(Clone, Debug, Default)]
struct Buffer {
    /// Cache space granted to writes whose data has not arrived, in sectors.
    promised: u64,
    /// Sectors that are not enough for a page.
    pending: u64,
    /// Sectors of each page that is being programmed, by number.
    programs: BTreeMap<u64, u64>,
    /// Sectors of all those.
    programming: u64,
    /// Pages that were given to dies.
    next_number: u64,
    next_die: usize,
    /// Units that have to be moved for what was written, and have not been.
    debt_units: u64,
    /// Pages since a block was erased.
    since_erase: u32,
}

/// Bytes of a unit of the map, whatever a page holds.
const UNIT_SECTORS: u64 = 4096 / SECTOR_BYTES as u64;

/// The share of the debt of moves that is paid for each page that is written.
const DEBT_SHARE: u64 = 16;

impl Solid {
    /// A drive with these contents.
    pub fn new(part: SolidPart, contents: Contents) -> Self {
        let times = part.times;
        let channels = usize::from(part.channels.max(1));
        let dies = channels * usize::from(part.dies_per_channel.max(1));
        let left = if part.compresses { contents.compressed_per_mille.clamp(1, 1000) } else { 1000 };
        let page_sectors = u64::from(part.page_bytes) * 1000 / u64::from(left) / u64::from(SECTOR_BYTES);
        let mut flash = Flash::new(part.sectors / UNIT_SECTORS, part.spare_per_mille);
        wear(&mut flash, contents.worn_sectors.min(part.sectors) / UNIT_SECTORS);
        Self {
            dies: Dies::new(times, part.page_bytes, channels, dies),
            flash,
            page_sectors: page_sectors.max(1),
            in_flight: [const { None }; TAGS],
            spare: VecPool::new(),
            looked_at: VecDeque::new(),
            filling: VecDeque::new(),
            pages: Pages::default(),
            buffer: Buffer::default(),
            come: 0,
            settling: 0,
            read_to: 0,
            events: VecDeque::new(),
            part,
        }
    }

    /// Returns the write amplification in thousandths, without the effect of compression.
    pub const fn amplification_per_mille(&self) -> u64 {
        self.flash.amplification_per_mille()
    }

    fn advance(&mut self, now: Instant) {
        while let Some(job) = self.dies.done(now) {
            self.end_job(now, job);
        }
        while let Some(&(at, tag)) = self.looked_at.front()
            && at <= now
        {
            self.looked_at.pop_front();
            self.begin(now, tag);
        }
        self.grant();
        self.settle(now);
    }

    fn begin(&mut self, now: Instant, tag: Tag) {
        let Some(entry) = &mut self.in_flight[usize::from(tag.0)] else { return };
        let order = entry.order;
        match order.kind {
            DriveCommandKind::Read if order.extent.blocks.0 == 0 => self.end(tag),
            DriveCommandKind::Read => self.begin_read(now, order),
            DriveCommandKind::Write { .. } => {
                entry.stage = Stage::Fills { granted: 0, come: 0 };
                self.filling.push_back(tag);
            }
            DriveCommandKind::Flush => {
                entry.stage = Stage::Follows;
                self.settling += 1;
            }
            DriveCommandKind::Trim => {
                for unit in units_of(order) {
                    self.flash.forget(unit);
                }
                self.end(tag);
            }
        }
    }

    fn begin_read(&mut self, now: Instant, order: DriveCommand) {
        let (first, end) = (order.extent.lba.0, order.extent.lba.0 + order.extent.blocks.0);
        let pages = first / self.page_sectors..end.div_ceil(self.page_sectors);
        let mut here = self.spare.take();
        here.resize((pages.end - pages.start) as usize, false);
        let goes_on = std::mem::replace(&mut self.read_to, end) == first;
        for (index, page) in pages.clone().enumerate() {
            if self.pages.here.contains(&page) {
                here[index] = true;
                continue;
            }
            // Bytes of the page that the order is about.
            let from = first.max(page * self.page_sectors);
            let to = end.min((page + 1) * self.page_sectors);
            self.fetch(now, page, to - from).push((order.tag, index));
            self.pages.ahead.remove(&page);
        }
        if let Some(entry) = &mut self.in_flight[usize::from(order.tag.0)] {
            entry.stage = Stage::Gathers { here, event: 0 };
        }
        if goes_on {
            self.read_ahead(now, pages.end);
        }
        self.report(order.tag);
    }

    /// Starts a page read unless it is in flight. Returns its waiters.
    fn fetch(&mut self, now: Instant, page: u64, sectors: u64) -> &mut Vec<(Tag, usize)> {
        match self.pages.coming.entry(page) {
            Entry::Occupied(coming) => coming.into_mut(),
            Entry::Vacant(place) => {
                let bytes = u64::from(self.part.page_bytes) * sectors / self.page_sectors;
                let job = Job::Read { page, bytes: u32::try_from(bytes).unwrap_or(self.part.page_bytes) };
                self.dies.give(now, (page % self.dies.count() as u64) as usize, job);
                place.insert(self.pages.spare.take())
            }
        }
    }

    fn read_ahead(&mut self, now: Instant, from: u64) {
        let last = self.part.sectors / self.page_sectors;
        for page in (from..last).take(self.part.ahead_pages as usize) {
            if !self.pages.here.contains(&page) && !self.pages.coming.contains_key(&page) {
                self.fetch(now, page, self.page_sectors);
                self.pages.ahead.insert(page);
            }
        }
    }

    fn end_job(&mut self, now: Instant, job: Job) {
        match job {
            Job::Read { page, .. } => {
                if self.pages.ahead.remove(&page) {
                    self.pages.here.push_back(page);
                    if self.pages.here.len() > 2 * self.part.ahead_pages as usize {
                        self.pages.here.pop_front();
                    }
                }
                let waiting = self.pages.coming.remove(&page).unwrap_or_default();
                for &(tag, index) in &waiting {
                    if let Some(InFlight { stage: Stage::Gathers { here, .. }, .. }) =
                        &mut self.in_flight[usize::from(tag.0)]
                    {
                        here[index] = true;
                        self.report(tag);
                    }
                }
                self.pages.spare.give(waiting);
            }
            Job::Program { number } => {
                self.buffer.programming -= self.buffer.programs.remove(&number).unwrap_or(0);
                self.erase(now);
            }
            Job::Moved => self.erase(now),
            Job::Move | Job::Erase => {}
        }
    }

    /// Reports the contiguous pages of a read that have arrived.
    fn report(&mut self, tag: Tag) {
        let page_sectors = self.page_sectors;
        let Some(InFlight { order, stage: Stage::Gathers { here, event }, .. }) =
            &mut self.in_flight[usize::from(tag.0)]
        else {
            return;
        };
        let (first, end) = (order.extent.lba.0, order.extent.lba.0 + order.extent.blocks.0);
        let until = |pages: usize| match pages {
            0 => first,
            _ => end.min((first / page_sectors + pages as u64) * page_sectors),
        };
        let more = here[*event..].iter().take_while(|page| **page).count();
        let sectors = until(*event + more) - until(*event);
        *event += more;
        let has_all = *event == here.len();
        if sectors > 0 {
            self.events.push_back(DriveEvent::Ready(tag, sectors as u32));
        }
        if has_all {
            self.end(tag);
        }
    }

    /// Grants free cache space to waiting writes.
    fn grant(&mut self) {
        while let Some(&tag) = self.filling.front() {
            let held = self.buffer.promised + self.buffer.pending + self.buffer.programming;
            let room = u64::from(self.part.write_sectors).saturating_sub(held);
            let Some(InFlight { order, stage: Stage::Fills { granted, .. }, .. }) =
                &mut self.in_flight[usize::from(tag.0)]
            else {
                return;
            };
            let more = (order.extent.blocks.0 - u64::from(*granted)).min(room) as u32;
            *granted += more;
            let has_all = u64::from(*granted) == order.extent.blocks.0;
            if more > 0 {
                self.buffer.promised += u64::from(more);
                self.events.push_back(DriveEvent::Space(tag, more));
            }
            if !has_all {
                return;
            }
            self.filling.pop_front();
        }
    }

    /// Assigns pages to dies: full ones, and a partial one at a flush.
    fn program(&mut self, now: Instant, all: bool) {
        while self.buffer.pending >= self.page_sectors || (all && self.buffer.pending > 0) {
            let sectors = self.buffer.pending.min(self.page_sectors);
            let number = self.buffer.next_number;
            self.buffer.pending -= sectors;
            self.buffer.programming += sectors;
            self.buffer.programs.insert(number, sectors);
            self.buffer.next_number += 1;
            self.give_next(now, Job::Program { number });
            let page_units = (self.page_sectors / UNIT_SECTORS).max(1);
            for _ in 0..(self.buffer.debt_units / page_units).div_ceil(DEBT_SHARE) {
                self.buffer.debt_units -= page_units;
                self.give_next(now, Job::Move);
            }
        }
    }

    fn erase(&mut self, now: Instant) {
        self.buffer.since_erase += 1;
        if self.buffer.since_erase >= self.part.pages_per_block {
            self.buffer.since_erase = 0;
            self.give_next(now, Job::Erase);
        }
    }

    fn give_next(&mut self, now: Instant, job: Job) {
        let die = self.buffer.next_die;
        self.buffer.next_die = (die + 1) % self.dies.count();
        self.dies.give(now, die, job);
    }

    /// Completes commands whose data is in flash.
    fn settle(&mut self, now: Instant) {
        if self.settling == 0 {
            return;
        }
        for index in 0..TAGS {
            let Some(InFlight { number, stage: Stage::Follows, .. }) = self.in_flight[index] else {
                continue;
            };
            let comes = |entry: &InFlight| {
                entry.number < number && matches!(entry.stage, Stage::New | Stage::Fills { .. })
            };
            if !self.in_flight.iter().flatten().any(comes) {
                self.settle_all(now, index);
            }
        }
        let first = self.buffer.programs.keys().next().copied().unwrap_or(u64::MAX);
        for index in 0..TAGS {
            if let Some(InFlight { order, stage: Stage::Settles { upto }, .. }) = &self.in_flight[index]
                && first >= *upto
            {
                self.end(order.tag);
            }
        }
    }

    /// Defers completion until everything received so far is in flash.
    fn settle_all(&mut self, now: Instant, index: usize) {
        self.program(now, true);
        let upto = self.buffer.next_number;
        if let Some(entry) = &mut self.in_flight[index] {
            self.settling += usize::from(!matches!(entry.stage, Stage::Follows));
            entry.stage = Stage::Settles { upto };
        }
    }

    fn end(&mut self, tag: Tag) {
        match self.in_flight[usize::from(tag.0)].take().map(|entry| entry.stage) {
            Some(Stage::Gathers { here, .. }) => self.spare.give(here),
            Some(Stage::Follows | Stage::Settles { .. }) => self.settling -= 1,
            Some(Stage::New | Stage::Fills { .. }) | None => {}
        }
        self.events.push_back(DriveEvent::Done(tag));
    }
}

impl Mechanism for Solid {
    fn submit(&mut self, now: Instant, order: DriveCommand) {
        let slot = &mut self.in_flight[usize::from(order.tag.0)];
        debug_assert!(slot.is_none(), "a tag that is free");
        *slot = Some(InFlight { order, number: self.come, stage: Stage::New });
        self.come += 1;
        let free = self.looked_at.back().map_or(now, |(at, _)| now.max(*at));
        self.looked_at.push_back((free + self.part.command, order.tag));
        self.advance(now);
    }

    fn handle_sectors(&mut self, now: Instant, tag: Tag, sectors: u32) {
        let Some(InFlight { order, stage: Stage::Fills { granted, come }, .. }) =
            &mut self.in_flight[usize::from(tag.0)]
        else {
            return;
        };
        debug_assert!(*come + sectors <= *granted, "sectors for which there is room");
        *come += sectors;
        let (order, has_all) = (*order, u64::from(*come) == order.extent.blocks.0);
        self.buffer.promised -= u64::from(sectors);
        self.buffer.pending += u64::from(sectors);
        if has_all {
            for unit in units_of(order) {
                self.buffer.debt_units += self.flash.write(unit);
            }
        }
        self.program(now, false);
        if has_all {
            match order.kind {
                DriveCommandKind::Write { through: true } => self.settle_all(now, usize::from(tag.0)),
                _ => self.end(tag),
            }
        }
        self.advance(now);
    }

    fn poll_event(&mut self) -> Option<DriveEvent> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let looked_at = self.looked_at.front().map(|(at, _)| *at);
        looked_at.into_iter().chain(self.dies.next_at()).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    fn sectors(&self) -> u64 {
        self.part.sectors
    }
}

/// Mapping units that a command touches; for a trim only those that it covers fully.
fn units_of(order: DriveCommand) -> std::ops::Range<u64> {
    let (first, end) = (order.extent.lba.0, order.extent.lba.0 + order.extent.blocks.0);
    match order.kind {
        DriveCommandKind::Trim => first.div_ceil(UNIT_SECTORS)..end / UNIT_SECTORS,
        _ => first / UNIT_SECTORS..end.div_ceil(UNIT_SECTORS),
    }
}

/// Fills the first units sequentially, then overwrites as many at random.
fn wear(flash: &mut Flash, units: u64) {
    let mut random = Random::new(1, "wear");
    for unit in 0..units {
        flash.write(unit);
    }
    for _ in 0..units.saturating_mul(2) {
        flash.write(random.below(units));
    }
    flash.forget_counts();
}

#[cfg(test)]
mod tests;
