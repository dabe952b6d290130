//! Each lie on a medium that completes at once and on one that completes later.

use super::super::suite::{self, bare, read, write};
use super::*;
use crate::medium::{FileMedium, FileOptions, RamMedium, VolatileRam, create_image};
use std::collections::VecDeque;
use units::ByteCount;

/// A medium in memory whose jobs complete at the next poll.
#[derive(Debug)]
struct LateRam(RamMedium, VecDeque<CompletedJob>);

impl Medium for LateRam {
    fn submit(&mut self, job: Job) -> Option<CompletedJob> {
        self.1.extend(self.0.submit(job));
        None
    }

    fn poll(&mut self) -> Option<CompletedJob> {
        self.1.pop_front()
    }

    fn capacity(&self) -> BlockCount {
        self.0.capacity()
    }

    fn block_size(&self) -> BlockSize {
        self.0.block_size()
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn writes_atomically(&self) -> bool {
        true
    }

    fn keeps_state(&self) -> bool {
        false
    }

    fn save_state(&mut self, state: &[u8]) -> io::Result<()> {
        self.0.save_state(state)
    }

    fn load_state(&self) -> io::Result<Option<Vec<u8>>> {
        self.0.load_state()
    }

    fn describe(&self) -> String {
        "late".into()
    }
}

/// A liar of 64 blocks over `stored` blocks, at once and late.
fn liars(stored: u64, lies: &[Lie]) -> [LyingMedium; 2] {
    let ram = || RamMedium::new(ByteCount(stored * 512), BlockSize::B512).expect("some blocks");
    let liar = |inner: Box<dyn Medium + Send>| LyingMedium::new(inner, BlockCount(64), lies);
    let late = LateRam(ram(), VecDeque::new());
    [liar(Box::new(ram())).expect("lies"), liar(Box::new(late)).expect("lies")]
}

/// Bytes of so many blocks, each with its own byte.
fn blocks(bytes: std::ops::Range<u8>) -> Vec<u8> {
    bytes.flat_map(|byte| [byte; 512]).collect()
}

#[test]
fn blocks_past_a_wrap_are_stored_modulo_its_size() {
    for mut liar in liars(24, &[Lie::Wrap(ByteCount(24 * 512))]) {
        assert_eq!(liar.capacity(), BlockCount(64));
        // Blocks 20 to 29: four at 20, six at 0.
        write(&mut liar, 20, &blocks(1..11), false).expect("acknowledged");
        assert_eq!(read(&mut liar, Extent::new(20, 10)), Ok(blocks(1..11)));
        assert_eq!(read(&mut liar, Extent::new(0, 6)), Ok(blocks(5..11)));
        assert_eq!(read(&mut liar, Extent::new(48, 6)), Ok(blocks(5..11)), "twice round");
        // More than once round, with and without payload.
        write(&mut liar, 0, &blocks(0..60), false).expect("acknowledged");
        assert_eq!(read(&mut liar, Extent::new(0, 12)), Ok(blocks(48..60)));
        assert_eq!(bare(&mut liar, MediumOp::WriteZeroes, Extent::new(1, 63)), Ok(MediumDone::Done));
        assert_eq!(read(&mut liar, Extent::new(0, 64)), Ok(vec![0; 64 * 512]));
        assert!(liar.mapped.is_empty());
    }
}

#[test]
fn writes_past_a_drop_are_acknowledged_and_read_as_zeros() {
    for mut liar in liars(24, &[Lie::Drop(ByteCount(24 * 512))]) {
        write(&mut liar, 20, &blocks(1..11), true).expect("acknowledged");
        let mut expected = blocks(1..5);
        expected.resize(10 * 512, 0);
        assert_eq!(read(&mut liar, Extent::new(20, 10)), Ok(expected));
        assert_eq!(read(&mut liar, Extent::new(63, 1)), Ok(vec![0; 512]));
        let status = bare(&mut liar, MediumOp::Status, Extent::new(30, 4));
        assert_eq!(status, Ok(MediumDone::Provisioning { mapped: false, blocks: BlockCount(4) }));
    }
}

#[test]
fn a_difference_behind_the_first_piece_has_its_offset() {
    for lie in [Lie::Wrap(ByteCount(24 * 512)), Lie::Drop(ByteCount(24 * 512))] {
        for mut liar in liars(24, &[lie]) {
            let job = Job {
                request: suite::request(MediumOp::Compare, Extent::new(22, 4), 4 * 512),
                buffer: [vec![0; 3 * 512 + 7], vec![1; 505]].concat(),
            };
            let finished = suite::run(&mut liar, job);
            assert_eq!(
                finished.completion.result,
                Err(MediumError::Miscompare { offset: 3 * 512 + 7 }),
                "{lie}"
            );
        }
    }
}

#[test]
fn what_was_unmapped_is_kept_and_what_is_honest_is_not() {
    let lie = [Lie::KeepAfterUnmap];
    for (lies, stored) in [(&lie[..], true), (&[], false)] {
        for mut liar in liars(64, lies) {
            write(&mut liar, 8, &blocks(1..9), false).expect("written");
            bare(&mut liar, MediumOp::Unmap, Extent::new(8, 4)).expect("acknowledged");
            let same = suite::request(MediumOp::WriteSame { unmap: true }, Extent::new(12, 4), 512);
            suite::run(&mut liar, Job { request: same, buffer: vec![0; 512] });
            let expected = if stored { blocks(1..9) } else { vec![0; 8 * 512] };
            assert_eq!(read(&mut liar, Extent::new(8, 8)), Ok(expected));
        }
    }
}

#[test]
fn the_block_too_many_cannot_be_read() {
    for mut liar in liars(64, &[Lie::CapacityOffByOne]) {
        assert_eq!(liar.capacity(), BlockCount(65));
        assert_eq!(liar.measure().ok(), Some(BlockCount(65)));
        assert_eq!(read(&mut liar, Extent::new(64, 1)), Err(MediumError::Shrunk));
        read(&mut liar, Extent::new(63, 1)).expect("the last one");
    }
}

#[test]
fn a_liar_about_nothing_behaves_like_the_model() {
    suite::behaves_like_the_model(|size, block_size| {
        let ram = RamMedium::new(size, block_size).expect("memory");
        let (capacity, stored) = (ram.capacity(), Lie::Wrap(size));
        Box::new(LyingMedium::new(Box::new(ram), capacity, &[stored]).expect("all is stored"))
    });
}

#[test]
fn refuses_what_the_target_never_asks() {
    let ram = RamMedium::new(ByteCount(1 << 20), BlockSize::B512).expect("memory");
    let lie = Lie::Drop(ByteCount(1 << 19));
    let mut liar = LyingMedium::new(Box::new(ram), BlockCount(2048), &[lie]).expect("a lie");
    suite::refuses_what_the_target_never_asks(&mut liar);
}

#[test]
fn a_file_wraps_as_memory_does_and_keeps_state() {
    let place = std::env::temp_dir().join(format!("uaskit-lying-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a folder");
    let image = place.join("liar.img");
    create_image(&image, ByteCount(64 * 512)).expect("an image");
    let file = FileMedium::open(&image, &FileOptions::default()).expect("it opens");
    let lie = Lie::Wrap(ByteCount(24 * 512));
    let mut liar = LyingMedium::new(Box::new(file), BlockCount(64), &[lie]).expect("a lie");
    write(&mut liar, 20, &blocks(1..11), true).expect("acknowledged");
    assert_eq!(read(&mut liar, Extent::new(0, 6)), Ok(blocks(5..11)));
    assert_eq!(liar.path(), Some(&*image));
    suite::keeps_the_state_of_the_unit(&mut liar);
    drop(liar);
    std::fs::remove_dir_all(&place).expect("it goes");
}

#[test]
fn a_liar_of_16_tib_needs_no_more_than_it_keeps() {
    let ram = RamMedium::new(ByteCount(64 << 20), BlockSize::B4096).expect("memory");
    let announced = BlockCount((16 << 40) / 4096);
    let lie = Lie::Wrap(ByteCount(64 << 20));
    let mut liar = LyingMedium::new(Box::new(ram), announced, &[lie]).expect("a lie");
    write(&mut liar, announced.0 - 1, &[7; 4096], false).expect("acknowledged");
    assert_eq!(read(&mut liar, Extent::new((64 << 20) / 4096 - 1, 1)), Ok(vec![7; 4096]));
    // One pass over what is stored, not 262,144.
    bare(&mut liar, MediumOp::Verify, Extent::new(0, announced.0)).expect("all of it");
}

#[test]
fn lies_that_do_not_fit_are_refused() {
    let liar = |lies: &[Lie]| {
        let ram = RamMedium::new(ByteCount(64 * 512), BlockSize::B512).expect("memory");
        LyingMedium::new(Box::new(ram), BlockCount(64), lies).map(|_| ()).expect_err("refused")
    };
    let size = ByteCount(512);
    assert_eq!(liar(&[Lie::Wrap(size), Lie::Drop(size)]), LieError::TwoSizes);
    assert_eq!(liar(&[Lie::Wrap(ByteCount(0))]), LieError::NotBlocks);
    assert_eq!(liar(&[Lie::Drop(ByteCount(700))]), LieError::NotBlocks);
    assert_eq!(liar(&[Lie::Drop(ByteCount(65 * 512))]), LieError::KeepsMore);
    assert_eq!(liar(&[Lie::Stuck(Lba(64))]), LieError::NoSuchBlock);
}

#[test]
fn stuck_blocks_return_the_first_block_written_to_one_of_them() {
    for mut liar in liars(64, &[Lie::Stuck(Lba(10))]) {
        write(&mut liar, 8, &blocks(1..13), false).expect("acknowledged");
        write(&mut liar, 8, &blocks(101..113), false).expect("acknowledged");
        let expected = [blocks(101..103), blocks(3..4).repeat(8), blocks(111..113)].concat();
        assert_eq!(read(&mut liar, Extent::new(8, 12)), Ok(expected));
        assert_eq!(read(&mut liar, Extent::new(17, 2)), Ok([blocks(3..4), blocks(111..112)].concat()));
        assert_eq!(read(&mut liar, Extent::new(18, 2)), Ok(blocks(111..113)));
    }
}

/// The bytes of a block that was flushed, written with FUA or written last, after a power loss.
fn after_power_loss(lies: &[Lie], seed: u64) -> [Vec<u8>; 3] {
    let ram = RamMedium::new(ByteCount(64 * 512), BlockSize::B512).expect("some blocks");
    let inner = Box::new(VolatileRam::new(ram));
    let mut liar = LyingMedium::new(inner, BlockCount(64), lies).expect("a lie");
    write(&mut liar, 0, &blocks(1..2), false).expect("acknowledged");
    bare(&mut liar, MediumOp::Flush, Extent::new(0, 0)).expect("acknowledged");
    write(&mut liar, 1, &blocks(1..2), true).expect("acknowledged");
    write(&mut liar, 2, &blocks(1..2), false).expect("acknowledged");
    assert!(liar.lose_power(PowerLoss { seed, tears: false }));
    [0, 1, 2].map(|lba| read(&mut liar, Extent::new(lba, 1)).expect("it can be read"))
}

#[test]
fn each_lie_about_the_cache_shows_at_a_power_loss() {
    let (old, new) = (blocks(0..1), blocks(1..2));
    let any = |lies: &[Lie], shows: &dyn Fn(&[Vec<u8>; 3]) -> bool| {
        (0..64).any(|seed| shows(&after_power_loss(lies, seed)))
    };
    assert!(any(&[Lie::IgnoreFlush], &|[flushed, ..]| *flushed == old));
    assert!(!any(&[Lie::IgnoreFlush], &|[_, fua, _]| *fua != new));
    assert!(any(&[Lie::IgnoreFua], &|[_, fua, _]| *fua == old));
    assert!(!any(&[Lie::IgnoreFua], &|[flushed, ..]| *flushed != new));
    let is_torn = |block: &Vec<u8>| *block != old && *block != new;
    assert!(any(&[Lie::TornWrites], &|[.., last]| is_torn(last)));
    assert!(!any(&[Lie::TornWrites], &|[flushed, fua, _]| *flushed != new || *fua != new));
    assert!(!any(&[], &|[flushed, fua, last]| *flushed != new || *fua != new || is_torn(last)));
}
