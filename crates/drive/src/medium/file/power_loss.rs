//! WRITE ATOMIC when it is cut off: a task is stepped over a disk with a volatile cache, which loses power during any
//! step, and what the disk then holds is opened as an image.

use super::super::suite::{self, request, run};
use super::image::faults::Fault;
use super::task::{FileOperation, Memory, Task};
use super::tests::{Scratch, open, options, reason, with_each_engine};
use super::*;
use crate::medium::Geometry;
use device::medium::{MediumDone, MediumError, MediumOp};
use proptest::prelude::*;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use units::{ByteCount, Extent, Lba};

const SECTOR: usize = 512;

/// Blocks of the image, and the ones that are written.
const BLOCKS: u64 = 12;
const EXTENT: Extent = Extent::new(3, 6);
const PLACE: std::ops::Range<usize> = 3 * SECTOR..9 * SECTOR;

/// Two files on a disk, as they are seen and as they survive.
struct Disk {
    seen: Vec<u8>,
    durable: Vec<u8>,
    journal: Vec<u8>,
    /// Writes cannot be durable one by one.
    cached_only: bool,
    /// The first write is short.
    short: bool,
}

/// Power loss during a step, with a bit for each sector that was still written.
#[derive(Clone, Copy, Debug)]
struct Cut {
    step: usize,
    sectors: u32,
}

impl Cut {
    fn survives(self, sector: usize) -> bool {
        self.sectors >> (sector % 32) & 1 == 1
    }

    /// Overwrites the sectors that survive.
    fn tear(self, old: &mut Vec<u8>, new: &[u8]) {
        old.resize(old.len().max(new.len()), 0);
        for (sector, (old, new)) in old.chunks_mut(SECTOR).zip(new.chunks(SECTOR)).enumerate() {
            if self.survives(sector) {
                old[..new.len()].copy_from_slice(new);
            }
        }
    }
}

impl Disk {
    fn perform(&mut self, step: &FileOperation, task: &mut Task) -> Result<u64, Errno> {
        match step {
            FileOperation::Read { at, memory, range } => {
                let at = *at as usize;
                task.memory(*memory)[range.clone()].copy_from_slice(&self.seen[at..at + range.len()]);
                Ok(range.len() as u64)
            }
            FileOperation::Write { durable: true, .. } if self.cached_only => Err(Errno::OPNOTSUPP),
            FileOperation::Write { at, memory, range, durable } => {
                let at = *at as usize;
                let len = if std::mem::take(&mut self.short) { range.len() / 3 } else { range.len() };
                self.seen[at..at + len]
                    .copy_from_slice(&task.memory(*memory)[range.start..range.start + len]);
                if *durable {
                    self.durable[at..at + len].copy_from_slice(&self.seen[at..at + len]);
                }
                Ok(len as u64)
            }
            FileOperation::Sync => {
                self.durable.clone_from(&self.seen);
                Ok(0)
            }
            FileOperation::KeepRecord => {
                self.journal = task.memory(Memory::Scratch).to_vec();
                Ok(0)
            }
            FileOperation::ClearRecord => {
                self.journal[..32].fill(0);
                Ok(0)
            }
            other => panic!("{other:?} is no step of an atomic write"),
        }
    }

    /// The step begins, and the power goes. What was cached may or may not have been written, any time before.
    fn cut_off(&mut self, cut: Cut, step: &FileOperation, task: &mut Task) {
        let (journal, durable) = (self.journal.clone(), self.durable.clone());
        // Until the step is over nothing of it is certain, and the cache loses what it likes.
        let _ = self.perform(step, task);
        let (new_journal, seen) = (std::mem::replace(&mut self.journal, journal), self.seen.clone());
        cut.tear(&mut self.journal, &new_journal);
        self.durable = durable;
        cut.tear(&mut self.durable, &seen);
    }

    /// Reopens the image as after a power loss, and returns its content.
    fn reopened(&self) -> Vec<u8> {
        let scratch = Scratch::new();
        let path = scratch.image(0);
        fs::write(&path, &self.durable).unwrap();
        fs::write(path.with_file_name("image.atomic"), &self.journal).unwrap();
        drop(open(&path, Engine::Threads));
        assert!(!path.with_file_name("image.atomic").exists());
        fs::read(&path).unwrap()
    }
}

fn write_atomic(medium: &mut FileMedium, byte: u8) -> Result<MediumDone, MediumError> {
    let bytes = EXTENT.blocks.0 as usize * SECTOR;
    let request = request(MediumOp::WriteAtomic { fua: false }, EXTENT, bytes as u32);
    run(medium, Job { request, buffer: vec![byte; bytes] }).completion.result
}

fn drawn_disk(cached_only: bool, short: bool, seed: u8) -> Disk {
    let durable: Vec<u8> = (0..BLOCKS as usize * SECTOR).map(|at| (at / 100) as u8 ^ seed).collect();
    let mut seen = durable.clone();
    // Some of what the atomic write replaces, and some beside it, was never flushed.
    seen[5 * SECTOR..10 * SECTOR].fill(seed.wrapping_add(9));
    Disk { seen, durable, journal: Vec::new(), cached_only, short }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// In each step, with any part of it done.
    #[test]
    fn a_power_loss_leaves_all_of_an_atomic_write_or_nothing(
        step in 0_usize..8, sectors: u32, cached_only: bool, short: bool, stale: bool, seed: u8,
    ) {
        let cut = Cut { step, sectors };
        let mut disk = drawn_disk(cached_only, short, seed);
        if stale {
            // The cleared record of an earlier write.
            disk.journal = vec![seed; 32 + 13 * SECTOR];
            disk.journal[..32].fill(0);
        }
        let (before, unflushed) = (disk.durable.clone(), disk.seen.clone());
        let new: Vec<u8> = (0..PLACE.len()).map(|at| (at / 90) as u8 ^ !seed).collect();
        let request = request(MediumOp::WriteAtomic { fua: false }, EXTENT, new.len() as u32);
        let geometry = Geometry::of(ByteCount(BLOCKS * SECTOR as u64), BlockSize::B512);
        let mut task = Task::new(Job { request, buffer: new.clone() }, geometry, false);
        task.lend(Vec::new());
        let mut count = 0;
        while let Some(step) = task.step() {
            if count == cut.step {
                disk.cut_off(cut, &step, &mut task);
                break;
            }
            let outcome = disk.perform(&step, &mut task);
            task.handle(outcome);
            count += 1;
        }

        let found = disk.reopened();
        let either = |at: usize| found[at] == before[at] || found[at] == unflushed[at];
        prop_assert!((0..PLACE.start).chain(PLACE.end..found.len()).all(either), "other blocks changed");
        let old = if cut.step == 0 {
            // The atomic write has not begun, and nothing was promised of the unflushed one.
            PLACE.clone().all(either)
        } else {
            found[PLACE] == unflushed[PLACE]
        };
        if task.is_over() {
            prop_assert_eq!(task.finish().0.completion.result, Ok(MediumDone::Done));
            prop_assert!(found[PLACE] == new, "it was lost");
        } else {
            prop_assert!(old || found[PLACE] == new, "mixed");
        }
    }
}

#[test]
fn the_journal_is_private_and_removed_with_the_medium() {
    with_each_engine(BLOCKS * 512, |medium, path| {
        let journal = path.with_file_name("image.atomic");
        assert!(!journal.exists());
        assert_eq!(write_atomic(medium, 7), Ok(MediumDone::Done));
        assert_eq!(fs::metadata(&journal).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read(&journal).unwrap()[..32], [0; 32]);
        medium.image.journal.as_ref().unwrap().close();
        assert!(!journal.exists());
        assert_eq!(write_atomic(medium, 8), Ok(MediumDone::Done));
        assert_eq!(fs::read(path).unwrap()[PLACE], [8; PLACE.end - PLACE.start]);
    });
}

/// An image whose atomic write was cut off after its record, and the path of its journal.
fn cut_off(scratch: &Scratch) -> (PathBuf, PathBuf) {
    let path = scratch.image(BLOCKS * 512);
    let journal = path.with_file_name("image.atomic");
    let mut memory = vec![0; super::journal::record_bytes(PLACE.len())];
    super::journal::seal(&mut memory, PLACE.start as u64, &[7; PLACE.end - PLACE.start]);
    fs::write(&journal, memory).unwrap();
    (path, journal)
}

#[test]
fn a_read_only_image_is_not_opened_half_written() {
    let scratch = Scratch::new();
    let (path, journal) = cut_off(&scratch);
    let read_only = FileOptions { read_only: true, ..options(Engine::Threads) };
    assert!(matches!(reason(FileMedium::open(&path, &read_only)), OpenReason::Unfinished));
    assert!(journal.exists());
    drop(open(&path, Engine::Threads));
    assert!(FileMedium::open(&path, &read_only).is_ok());
}

#[test]
fn what_another_program_wrote_since_is_not_undone() {
    let scratch = Scratch::new();
    let (path, journal) = cut_off(&scratch);
    let mut changed = vec![7; BLOCKS as usize * SECTOR];
    changed[PLACE.start + 700] = 0x99;
    fs::write(&path, &changed).unwrap();
    let error = FileMedium::open(&path, &options(Engine::Threads)).unwrap_err();
    let advice = format!("or remove {} to keep the blocks as they are", journal.display());
    assert!(error.to_string().ends_with(&advice), "{error}");
    assert_eq!(fs::read(&path).unwrap(), changed);
    fs::remove_file(journal).unwrap();
    open(&path, Engine::Threads);
}

#[test]
fn a_record_beyond_the_end_of_the_image_is_reported() {
    let scratch = Scratch::new();
    let (path, _) = cut_off(&scratch);
    File::options().write(true).open(&path).unwrap().set_len(PLACE.end as u64 - 1).unwrap();
    let reason = reason(FileMedium::open(&path, &options(Engine::Threads)));
    assert!(matches!(reason, OpenReason::NotUndone { .. }), "{reason:?}");
}

#[test]
fn a_file_of_the_journals_name_that_is_not_ours_is_left_alone() {
    with_each_engine(BLOCKS * 512, |medium, path| {
        let journal = path.with_file_name("image.atomic");
        fs::write(&journal, b"somebody's notes").unwrap();
        assert_eq!(write_atomic(medium, 7), Err(MediumError::Unsupported));
        let read_only = FileOptions { read_only: true, ..options(Engine::Threads) };
        medium.image.file.unlock().unwrap();
        FileMedium::open(path, &read_only).unwrap();
        assert!(!open(path, Engine::Threads).writes_atomically());
        assert_eq!(fs::read(&journal).unwrap(), b"somebody's notes");
        assert_eq!(fs::read(path).unwrap(), [0; BLOCKS as usize * SECTOR]);
    });
}

#[test]
fn a_bad_block_in_an_atomic_write_is_undone_at_the_next_opening() {
    with_each_engine(BLOCKS * 512, |medium, path| {
        assert_eq!(write_atomic(medium, 7), Ok(MediumDone::Done));
        medium.image.faults.set(&[Fault::BadWrites(7 * 512..7 * 512 + 1)]);
        let bad = Err(MediumError::Unwritable { lba: Lba(7) });
        assert_eq!(write_atomic(medium, 8), bad);
        // As long as that one is not undone there is no other.
        medium.image.faults.set(&[]);
        assert_eq!(write_atomic(medium, 9), Err(MediumError::Unwritable { lba: EXTENT.lba }));
        let crashed = path.with_file_name("crashed");
        fs::copy(path, &crashed).unwrap();
        fs::copy(path.with_file_name("image.atomic"), path.with_file_name("crashed.atomic")).unwrap();
        drop(open(&crashed, Engine::Threads));
        assert_eq!(fs::read(&crashed).unwrap()[PLACE], [7; PLACE.end - PLACE.start]);
    });
}

#[test]
fn an_atomic_write_without_space_changes_nothing() {
    with_each_engine(BLOCKS * 512, |medium, path| {
        assert_eq!(write_atomic(medium, 7), Ok(MediumDone::Done));
        medium.image.faults.set(&[Fault::NoSpace]);
        assert_eq!(write_atomic(medium, 8), Err(MediumError::OutOfSpace));
        medium.image.faults.set(&[]);
        assert_eq!(fs::read(path).unwrap()[PLACE], [7; PLACE.end - PLACE.start]);
        assert_eq!(write_atomic(medium, 9), Ok(MediumDone::Done));
    });
}

#[test]
fn more_than_the_limit_is_no_atomic_write() {
    let blocks = u64::from(device::lun::limits::ATOMIC_BYTES_MAX / 512) + 1;
    with_each_engine(blocks * 512, |medium, _| {
        let bytes = blocks as usize * 512;
        let request = request(MediumOp::WriteAtomic { fua: false }, Extent::new(0, blocks), bytes as u32);
        let finished = run(medium, Job { request, buffer: vec![1; bytes] });
        assert_eq!(finished.completion.result, Err(MediumError::Unsupported));
        assert_eq!(suite::read(medium, Extent::new(0, 1)), Ok(vec![0; 512]));
    });
}
