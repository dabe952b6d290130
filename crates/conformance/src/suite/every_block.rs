//! The pass over every block: written in order, then read, with as many commands in flight as the drive's fastest transport
//! allows.
//!
//! A run is saved every half minute, and when it is interrupted, if there is a place for it ([`RunStore`]). Left out: errors of
//! commands, which end the pass.
//!
//! Always true: what is saved as written was flushed before.

use crate::blocks::AnnouncedBlocks;
use crate::findings::Findings;
use crate::probe::Probe;
use crate::queue::{BlockJob, CommandQueue, StampedBlocks, StampedRun};
use crate::resume::{DriveIdentity, WholeRun};
use crate::test::Verdict;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Duration, Instant};
use wire::usb::{DescriptorKind, SetupPacket, StringDescriptor};
use workload::stamp::{self, BlockContent, Stamp};

/// Time between two saves.
const SAVE_INTERVAL: Duration = Duration::from_secs(30);

/// Bytes between two looks at the clock: few enough that a slow drive is saved in time.
const SEGMENT_BYTES: u64 = 64 << 20;

/// Blocks that are looked at to see whether a drive has the data of a saved run.
const PLACES: u64 = 16;

/// The generation of all stamps.
const GENERATION: u32 = 1;

pub(super) fn run(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    Ok(pass(probe).unwrap_or_else(|verdict| verdict))
}

fn pass(probe: &mut Probe<'_>) -> Result<Verdict, Verdict> {
    let blocks = probe.announced_blocks()?;
    let drive = identity(probe, blocks);
    let saved = probe.run.store().and_then(|store| store.saved().cloned());
    let mut whole = match saved {
        Some(saved) => continued(probe, blocks, &drive, saved)?,
        None => WholeRun {
            drive,
            session: RandomState::new().hash_one(0) as u32,
            probe_fault: probe.run.store().and_then(|store| store.probe_fault()),
            written: 0,
            read: 0,
            wrong: Vec::new(),
            repeated: None,
        },
    };
    let plan = probe.device().uas;
    let queue = match &plan {
        Some(plan) => match probe.begin_uas(plan) {
            Some(tag_max) if probe.is_ready_over_uas(plan) => CommandQueue::Tags(plan, tag_max),
            _ if probe.begin_scsi() => CommandQueue::One,
            _ => return Err(Verdict::NotTested("the device does not get ready over UAS".into())),
        },
        None => CommandQueue::One,
    };
    let mut run = StampedRun::new(blocks, whole.session, blocks.count.saturating_mul(2));
    run.findings = Findings::of_run(&whole)
        .ok_or_else(|| Verdict::NotTested("the saved run has faults of an unknown kind".into()))?;
    run.done = whole.written.saturating_add(whole.read);
    let mut pass = Pass { probe, queue, run, whole: &mut whole, saved_at: Instant::now() };
    let ended = pass.write().and_then(|()| pass.read());
    let Pass { mut run, .. } = pass;
    ended?;
    if let Some(store) = probe.run.store() {
        store.save(None).map_err(unsaved)?;
    }
    Ok(run.findings.verdict(blocks.count))
}

/// A pass that is carried out.
struct Pass<'p, 'd, 'q> {
    probe: &'p mut Probe<'d>,
    queue: CommandQueue<'q>,
    run: StampedRun,
    whole: &'p mut WholeRun,
    saved_at: Instant,
}

impl Pass<'_, '_, '_> {
    fn write(&mut self) -> Result<(), Verdict> {
        let count = self.run.blocks.count;
        while self.whole.written < count {
            let first = self.whole.written;
            let ended = self.segment(first, BlockJob::Write);
            self.whole.written = self.run.done;
            self.end_segment(ended)?;
        }
        // A drive need not have it.
        self.queue.flush(self.probe)?;
        Ok(())
    }

    fn read(&mut self) -> Result<(), Verdict> {
        let count = self.run.blocks.count;
        let mut read = self.whole.read;
        while read < count {
            let ended = self.segment(read, BlockJob::Read);
            read = self.run.done - count;
            self.run.findings.keep_in(self.whole, read);
            self.end_segment(ended)?;
        }
        Ok(())
    }

    /// Carries out commands on the next blocks.
    fn segment(&mut self, first: u64, job: fn(StampedBlocks) -> BlockJob) -> Result<(), Verdict> {
        let blocks = self.run.blocks;
        let count = (SEGMENT_BYTES / u64::from(blocks.bytes)).min(blocks.count - first);
        let at_once = self.queue.blocks_at_once(self.probe, blocks);
        let part = StampedBlocks { lba: first, count, generation: GENERATION };
        let jobs = crate::area::cut(part, at_once).map(job);
        self.run.carry_out(self.probe, self.queue, jobs)
    }

    /// Saves the run if it is time to, or the pass is interrupted.
    fn end_segment(&mut self, ended: Result<(), Verdict>) -> Result<(), Verdict> {
        let is_due = self.saved_at.elapsed() >= SAVE_INTERVAL || self.run.is_interrupted;
        if is_due && self.probe.run.store().is_some() {
            self.queue.flush(self.probe)?;
            if let Some(store) = self.probe.run.store() {
                store.save(Some(self.whole)).map_err(unsaved)?;
            }
            self.saved_at = Instant::now();
        }
        ended
    }
}

fn unsaved(why: String) -> Verdict {
    Verdict::NotTested(format!("the run cannot be saved: {why}"))
}

/// Checks that a saved run is one of this drive, which still has its data.
fn continued(
    probe: &mut Probe<'_>,
    blocks: AnnouncedBlocks,
    drive: &DriveIdentity,
    saved: WholeRun,
) -> Result<WholeRun, Verdict> {
    let refused = |why: String| Err(Verdict::NotTested(format!("the saved run is not continued: {why}")));
    if saved.drive != *drive {
        return refused(format!("it is of {}, and this is {}", describe(&saved.drive), describe(drive)));
    }
    if saved.written > blocks.count
        || saved.read > blocks.count
        || saved.written < blocks.count && saved.read > 0
    {
        return refused("its numbers of blocks contradict each other".into());
    }
    let stamp = Stamp { generation: GENERATION, session: saved.session };
    let last = saved.written.saturating_sub(1);
    let mut has_data = saved.written == 0;
    for place in 0..PLACES {
        // The last one first: of blocks that wrap around it is there for certain.
        let lba = last - (u128::from(last) * u128::from(place) / u128::from(PLACES)) as u64;
        let block = probe.read_blocks(lba, 1, blocks.bytes)?;
        has_data |= matches!(
            stamp::check(&block, lba, stamp),
            Ok(()) | Err(BlockContent::Misplaced { .. } | BlockContent::OtherGeneration { .. })
        );
    }
    if !has_data {
        return refused("none of its data is on the drive, which was written since, or lost it all".into());
    }
    Ok(saved)
}

/// Identity of the drive, for a run that is saved.
fn identity(probe: &mut Probe<'_>, blocks: AnnouncedBlocks) -> DriveIdentity {
    const US_ENGLISH: u16 = 0x0409;
    let device = probe.device().probe.device;
    let serial = Some(device.serial_string).filter(|index| *index != 0).and_then(|index| {
        let setup = SetupPacket::get_descriptor(DescriptorKind::String, index, 255);
        probe.control_in(SetupPacket { index: US_ENGLISH, ..setup }).ok()
    });
    let serial = serial.and_then(|bytes| StringDescriptor::decode(&bytes).ok().map(|text| text.to_string()));
    DriveIdentity {
        ids: [device.vendor, device.product, device.device_version.0],
        serial: serial.unwrap_or_default(),
        blocks: blocks.count,
        block_bytes: blocks.bytes,
    }
}

fn describe(drive: &DriveIdentity) -> String {
    let DriveIdentity { ids: [vendor, product, release], serial, blocks, block_bytes } = drive;
    format!(
        "{vendor:04x}:{product:04x} (release {release:04x}, serial {serial:?}) with {blocks} blocks of {block_bytes} bytes"
    )
}
