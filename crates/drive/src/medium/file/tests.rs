//! A file as a medium: the suite of all media through the ring and through threads, and what only a file has.

use super::super::suite::{self, request, run};
use super::image::faults::Fault;
use super::task::{Allocation, FileOperation, Memory};
use super::*;
use device::medium::{MediumDone, MediumError, MediumOp};
use proptest::prelude::*;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use units::{ByteCount, Extent, Lba};

const KIB: u64 = 1024;

/// A directory that goes with the test.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new() -> Self {
        Self::inside(&std::env::temp_dir())
    }

    fn inside(directory: &Path) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("uaskit-medium-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = directory.join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(super) fn image(&self, size: u64) -> PathBuf {
        let path = self.0.join("image");
        create_image(&path, ByteCount(size)).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A command of the system that only the superuser may give.
fn privileged(program: &str, arguments: &[&str], path: &Path) -> Option<String> {
    let output = std::process::Command::new(program).args(arguments).arg(path).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Undone with the test, whatever becomes of it.
struct Undo(&'static str, &'static [&'static str], PathBuf);

impl Drop for Undo {
    fn drop(&mut self) {
        privileged(self.0, self.1, &self.2);
    }
}

/// The engines that the system has. Without io_uring that is printed, and the rest is tested.
pub(super) fn engines() -> Vec<Engine> {
    let scratch = Scratch::new();
    match FileMedium::open(&scratch.image(4 * KIB), &options(Engine::Ring)) {
        Ok(_) => vec![Engine::Ring, Engine::Threads],
        Err(error) => {
            eprintln!("threads only: {error}");
            vec![Engine::Threads]
        }
    }
}

pub(super) fn options(engine: Engine) -> FileOptions {
    FileOptions { engine, ..FileOptions::default() }
}

pub(super) fn open(path: &Path, engine: Engine) -> FileMedium {
    FileMedium::open(path, &options(engine)).unwrap()
}

/// Runs `check` on a fresh image of `size` bytes, once for each engine.
pub(super) fn with_each_engine(size: u64, check: impl Fn(&mut FileMedium, &Path)) {
    for engine in engines() {
        let scratch = Scratch::new();
        let path = scratch.image(size);
        check(&mut open(&path, engine), &path);
    }
}

pub(super) fn reason(result: Result<FileMedium, OpenError>) -> OpenReason {
    result.expect_err("it opened").reason
}

#[test]
fn a_file_behaves_like_the_model() {
    for engine in engines() {
        let mut scratch = Scratch::new();
        suite::behaves_like_the_model(|size, block_size| {
            scratch = Scratch::new();
            let path = scratch.image(size.0);
            let options = FileOptions { block_size, ..options(engine) };
            Box::new(FileMedium::open(&path, &options).unwrap())
        });
    }
}

#[test]
fn a_file_without_allocations_or_durable_writes_behaves_like_the_model() {
    let mut scratch = Scratch::new();
    suite::behaves_like_the_model(|size, block_size| {
        scratch = Scratch::new();
        let path = scratch.image(size.0);
        let options = FileOptions { block_size, ..FileOptions::default() };
        let medium = FileMedium::open(&path, &options).unwrap();
        let allocations = [Allocation::Zero, Allocation::Punch, Allocation::Reserve].map(Fault::NoAllocation);
        medium.image.faults.set(&[&allocations[..], &[Fault::NoDurableWrites]].concat());
        Box::new(medium)
    });
}

#[test]
fn a_file_refuses_what_the_target_never_asks() {
    with_each_engine(64 * KIB, |medium, _| suite::refuses_what_the_target_never_asks(medium));
}

#[test]
fn a_file_keeps_the_state_of_the_unit_beside_it() {
    with_each_engine(64 * KIB, |medium, path| {
        suite::keeps_the_state_of_the_unit(medium);
        assert_eq!(fs::read(path.with_file_name("image.state")).unwrap(), b"second");
        assert!(!path.with_file_name("image.state.new").exists());
    });
}

#[test]
fn more_jobs_than_slots_all_finish_once() {
    const JOBS: u64 = 300;
    with_each_engine(JOBS * 512, |medium, _| {
        for index in 0..JOBS {
            let mut request = request(MediumOp::Write { fua: false }, Extent::new(index, 1), 512);
            request.id.part = index as u16;
            assert!(medium.submit(Job { request, buffer: vec![index as u8; 512] }).is_none());
        }
        medium.flush_submissions();
        let mut seen: Vec<u16> = (0..JOBS).map(|_| suite::wait(medium).completion.id.part).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..JOBS as u16).collect::<Vec<_>>());
        assert!(medium.poll().is_none());
        let expected: Vec<u8> = (0..JOBS).flat_map(|index| [index as u8; 512]).collect();
        assert_eq!(suite::read(medium, Extent::new(0, JOBS)), Ok(expected));
    });
}

#[test]
fn chunks_of_large_operations_meet() {
    // Longer than two chunks, and no multiple of one.
    const BLOCKS: u64 = 1337;
    with_each_engine(BLOCKS * 512, |medium, path| {
        let mut pattern: Vec<u8> = (0..512).map(|at| (at * 7) as u8).collect();
        let same = request(MediumOp::WriteSame { unmap: false }, Extent::new(0, BLOCKS), 512);
        assert!(run(medium, Job { request: same, buffer: pattern.clone() }).completion.result.is_ok());
        assert_eq!(fs::read(path).unwrap(), pattern.repeat(BLOCKS as usize));

        let file = File::options().write(true).open(path).unwrap();
        file.write_all_at(&[!0], 600 * 1024).unwrap();
        let compare = request(MediumOp::CompareSame, Extent::new(0, BLOCKS), 512);
        let finished = run(medium, Job { request: compare, buffer: pattern.clone() });
        assert_eq!(finished.completion.result, Err(MediumError::Miscompare { offset: 600 * 1024 }));

        pattern = fs::read(path).unwrap();
        let len = pattern.len() as u32;
        let or = request(MediumOp::Or { fua: true }, Extent::new(0, BLOCKS), len);
        assert!(run(medium, Job { request: or, buffer: vec![1; pattern.len()] }).completion.result.is_ok());
        pattern.iter_mut().for_each(|byte| *byte |= 1);
        assert_eq!(fs::read(path).unwrap(), pattern);
    });
}

#[test]
fn a_write_is_there_after_a_flush_and_another_opening() {
    for engine in engines() {
        let scratch = Scratch::new();
        let path = scratch.image(64 * KIB);
        let mut medium = open(&path, engine);
        suite::write(&mut medium, 3, &[0x5a; 1024], true).unwrap();
        suite::write(&mut medium, 5, &[0xa5; 512], false).unwrap();
        assert_eq!(suite::bare(&mut medium, MediumOp::Flush, Extent::default()), Ok(MediumDone::Done));
        drop(medium);
        let expected = [[0x5a; 1024].as_slice(), &[0xa5; 512]].concat();
        assert_eq!(suite::read(&mut open(&path, engine), Extent::new(3, 3)), Ok(expected));
    }
}

#[test]
fn unmap_gives_space_back_and_zeroes_keep_it() {
    with_each_engine(1024 * KIB, |medium, path| {
        let used = || fs::metadata(path).unwrap().blocks();
        suite::write(medium, 0, &[1; 1 << 20], true).unwrap();
        let full = used();
        suite::bare(medium, MediumOp::WriteZeroes, Extent::new(0, 1024)).unwrap();
        assert_eq!(used(), full);
        suite::bare(medium, MediumOp::Unmap, Extent::new(0, 1024)).unwrap();
        assert!(used() <= full / 2 + 16, "{} of {full}", used());
        let unmapped = MediumDone::Provisioning { mapped: false, blocks: BlockCount(1024) };
        assert_eq!(suite::bare(medium, MediumOp::Status, Extent::new(0, 2048)), Ok(unmapped));
        let mapped = MediumDone::Provisioning { mapped: true, blocks: BlockCount(1024) };
        assert_eq!(suite::bare(medium, MediumOp::Status, Extent::new(1024, 1024)), Ok(mapped));
        assert_eq!(fs::metadata(path).unwrap().len(), 1 << 20);
    });
}

#[test]
fn a_bad_block_is_named_exactly() {
    with_each_engine(1024 * KIB, |medium, _| {
        suite::write(medium, 0, &[7; 1 << 20], false).unwrap();
        medium.image.faults.set(&[Fault::BadBytes(777 * 512 + 100..777 * 512 + 101)]);
        let bad = Lba(777);
        assert_eq!(suite::read(medium, Extent::new(13, 1900)), Err(MediumError::Unreadable { lba: bad }));
        assert_eq!(suite::read(medium, Extent::new(777, 1)), Err(MediumError::Unreadable { lba: bad }));
        assert_eq!(
            suite::write(medium, 700, &[8; 100 * 512], false),
            Err(MediumError::Unwritable { lba: bad })
        );
        assert_eq!(
            suite::bare(medium, MediumOp::Verify, Extent::new(0, 2048)),
            Err(MediumError::Unreadable { lba: bad })
        );
        assert_eq!(suite::read(medium, Extent::new(778, 2)), Ok(vec![7; 1024]));
    });
}

#[test]
fn no_space_is_reported_and_passes() {
    with_each_engine(64 * KIB, |medium, _| {
        medium.image.faults.set(&[Fault::NoSpace]);
        assert_eq!(suite::write(medium, 0, &[1; 512], false), Err(MediumError::OutOfSpace));
        medium.image.faults.set(&[]);
        assert_eq!(suite::write(medium, 0, &[1; 512], false), Ok(MediumDone::Done));
    });
}

#[test]
fn a_full_file_system_is_reported_and_passes() {
    let scratch = Scratch::new();
    if privileged("mount", &["-t", "tmpfs", "-o", "size=256k", "tmpfs"], &scratch.0).is_none() {
        eprintln!("skipped: a tmpfs cannot be mounted here");
        return;
    }
    let _undo = Undo("umount", &[], scratch.0.clone());
    let path = scratch.image(1 << 20);
    for engine in engines() {
        let mut medium = open(&path, engine);
        assert_eq!(suite::write(&mut medium, 0, &[1; 512 << 10], false), Err(MediumError::OutOfSpace));
        suite::bare(&mut medium, MediumOp::Unmap, Extent::new(0, 2048)).unwrap();
        assert_eq!(suite::write(&mut medium, 0, &[1; 128 << 10], false), Ok(MediumDone::Done));
        // This file system does not know zeroed ranges, and still keeps the space of zeroes.
        suite::bare(&mut medium, MediumOp::WriteZeroes, Extent::new(0, 256)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().blocks(), 256);
        assert_eq!(suite::read(&mut medium, Extent::new(0, 256)), Ok(vec![0; 128 << 10]));
    }
}

#[test]
fn blocks_of_a_file_in_memory_are_moved_at_once() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return eprintln!("skipped: there is no memory file system here");
    }
    let mut scratch = Scratch::inside(memory);
    let path = scratch.image(64 * KIB);
    for (engine, at_once) in [(Engine::Automatic, true), (Engine::Threads, false)] {
        let mut medium = open(&path, engine);
        assert_eq!(medium.describe().contains("synchronous"), at_once);
        for op in [MediumOp::Write { fua: false }, MediumOp::Write { fua: true }, MediumOp::Read] {
            let job = Job { request: request(op, Extent::new(3, 8), 4096), buffer: vec![7; 4096] };
            assert_eq!(medium.submit(job).is_some(), at_once, "{engine:?} {op:?}");
        }
        medium.flush_submissions();
    }
    assert_eq!(fs::read(&path).unwrap()[3 * 512..11 * 512], [7; 4096]);
    suite::behaves_like_the_model(|size, block_size| {
        scratch = Scratch::inside(memory);
        let path = scratch.image(size.0);
        Box::new(FileMedium::open(&path, &FileOptions { block_size, ..FileOptions::default() }).unwrap())
    });
}

#[test]
fn a_block_device_is_a_medium() {
    let scratch = Scratch::new();
    let image = scratch.image(1 << 20);
    let Some(device) = privileged("losetup", &["--show", "--find"], &image).map(PathBuf::from) else {
        eprintln!("skipped: a loop device cannot be made here");
        return;
    };
    let _undo = Undo("losetup", &["--detach"], device.clone());
    for engine in engines() {
        let mut medium = open(&device, engine);
        assert!(!medium.image.in_memory, "its node is, and it is not");
        assert_eq!(medium.capacity(), BlockCount(2048));
        suite::write(&mut medium, 5, &[0x5a; 2048], true).unwrap();
        assert_eq!(fs::read(&image).unwrap()[5 * 512..9 * 512], [0x5a; 2048]);
        suite::bare(&mut medium, MediumOp::Unmap, Extent::new(5, 1)).unwrap();
        suite::bare(&mut medium, MediumOp::WriteZeroes, Extent::new(7, 1)).unwrap();
        let expected = [[0; 512], [0x5a; 512], [0; 512], [0x5a; 512]].concat();
        assert_eq!(suite::read(&mut medium, Extent::new(5, 4)), Ok(expected));
        let mapped = MediumDone::Provisioning { mapped: true, blocks: BlockCount(2048) };
        assert_eq!(suite::bare(&mut medium, MediumOp::Status, Extent::new(0, 2048)), Ok(mapped));
        suite::bare(&mut medium, MediumOp::Flush, Extent::default()).unwrap();
        let atomic = request(MediumOp::WriteAtomic { fua: true }, Extent::new(0, 1), 512);
        let finished = run(&mut medium, Job { request: atomic, buffer: vec![1; 512] });
        assert_eq!(finished.completion.result, Err(MediumError::Unsupported));
        assert!(!medium.writes_atomically() && !medium.keeps_state());
        assert!(medium.save_state(b"state").is_err());
    }
}

#[test]
fn a_mounted_block_device_is_not_written() {
    let scratch = Scratch::new();
    let image = scratch.image(1 << 20);
    let place = scratch.0.join("mounted");
    fs::create_dir(&place).unwrap();
    let Some(device) = privileged("losetup", &["--show", "--find"], &image).map(PathBuf::from) else {
        eprintln!("skipped: a loop device cannot be made here");
        return;
    };
    let _detach = Undo("losetup", &["--detach"], device.clone());
    privileged("mkfs.ext2", &["-q"], &device).unwrap();
    let read_only = FileOptions { read_only: true, ..FileOptions::default() };
    {
        privileged("mount", &[&device.display().to_string()], &place).unwrap();
        let _unmount = Undo("umount", &[], place);
        let error = FileMedium::open(&device, &FileOptions::default()).unwrap_err();
        assert!(matches!(error.reason, OpenReason::Mounted), "{error}");
        let text = error.to_string();
        assert!(
            text.ends_with("the device is mounted or in use; unmount it, or open it read-only"),
            "{text}"
        );
        assert!(FileMedium::open(&device, &read_only).is_ok());
    }
    let medium = FileMedium::open(&device, &FileOptions::default()).unwrap();
    assert!(matches!(reason(FileMedium::open(&device, &FileOptions::default())), OpenReason::Mounted));
    drop(medium);
}

#[test]
fn the_reason_for_threads_is_reported() {
    let reason = |errno: Errno| reason_without_ring(&errno.into());
    assert_eq!(reason(Errno::PERM), "io_uring not permitted: EPERM");
    assert_eq!(reason(Errno::NOSYS), "io_uring not supported: ENOSYS");
}

/// Runs `check` in a thread to which the system refuses io_uring with this error; `None` if it cannot be refused.
fn without_io_uring<T: Send + 'static>(
    errno: Errno,
    check: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    /// The same on every architecture.
    const IO_URING_SETUP: i64 = 425;
    let architecture = std::env::consts::ARCH.try_into().ok()?;
    let refusal = SeccompAction::Errno(errno.raw_os_error().unsigned_abs());
    let rules = [(IO_URING_SETUP, Vec::new())].into();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, architecture).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    // It holds for this thread and those that it starts.
    let thread = std::thread::spawn(move || seccompiler::apply_filter(&program).ok().map(|()| check()));
    thread.join().unwrap()
}

#[test]
fn threads_take_over_where_io_uring_is_refused() {
    for (errno, why) in [
        (Errno::PERM, "4 threads (io_uring not permitted: EPERM)"),
        (Errno::NOSYS, "4 threads (io_uring not supported: ENOSYS)"),
    ] {
        let checked = without_io_uring(errno, move || {
            let scratch = Scratch::new();
            let path = scratch.image(64 * KIB);
            assert!(matches!(reason(FileMedium::open(&path, &options(Engine::Ring))), OpenReason::NoRing(_)));
            let mut medium = open(&path, Engine::Automatic);
            assert_eq!(medium.describe(), why);
            suite::write(&mut medium, 3, &[0x5a; 512], true).unwrap();
            assert_eq!(suite::read(&mut medium, Extent::new(3, 1)), Ok(vec![0x5a; 512]));
        });
        if checked.is_none() {
            eprintln!("skipped: the system has no seccomp");
        }
    }
}

#[test]
fn data_reported_as_durable_was_synced_before() {
    with_each_engine(64 * KIB, |medium, _| {
        medium.image.faults.take_steps();
        let write =
            |durable| FileOperation::Write { at: 512, memory: Memory::Buffer, range: 0..512, durable };
        suite::write(medium, 1, &[1; 512], true).unwrap();
        assert_eq!(medium.image.faults.take_steps(), [write(true)]);
        suite::write(medium, 1, &[2; 512], false).unwrap();
        assert_eq!(medium.image.faults.take_steps(), [write(false)]);
        suite::bare(medium, MediumOp::Flush, Extent::default()).unwrap();
        assert_eq!(medium.image.faults.take_steps(), [FileOperation::Sync]);
        medium.image.faults.set(&[Fault::NoDurableWrites]);
        suite::write(medium, 1, &[3; 512], true).unwrap();
        assert_eq!(medium.image.faults.take_steps(), [write(true), write(false), FileOperation::Sync]);
    });
}

#[test]
fn a_file_that_shrank_is_noticed() {
    with_each_engine(64 * KIB, |medium, path| {
        File::options().write(true).open(path).unwrap().set_len(1000).unwrap();
        assert_eq!(suite::read(medium, Extent::new(0, 1)), Ok(vec![0; 512]));
        assert_eq!(suite::read(medium, Extent::new(1, 1)), Err(MediumError::Shrunk));
        assert_eq!(suite::read(medium, Extent::new(64, 1)), Err(MediumError::Shrunk));
    });
}

#[test]
fn a_read_only_image_is_never_changed() {
    let scratch = Scratch::new();
    let path = scratch.image(64 * KIB);
    for engine in engines() {
        let read_only = FileOptions { read_only: true, ..options(engine) };
        let mut medium = FileMedium::open(&path, &read_only).unwrap();
        let protected = Err(MediumError::WriteProtected);
        assert_eq!(suite::write(&mut medium, 0, &[1; 512], false), protected);
        for op in [MediumOp::WriteZeroes, MediumOp::Unmap, MediumOp::SaveState] {
            assert_eq!(suite::bare(&mut medium, op, Extent::new(0, 1)), protected);
        }
        assert_eq!(suite::bare(&mut medium, MediumOp::Flush, Extent::default()), Ok(MediumDone::Done));
        assert_eq!(suite::read(&mut medium, Extent::new(0, 1)), Ok(vec![0; 512]));
        assert!(medium.save_state(b"no").is_err());
    }
}

#[test]
fn a_second_writer_is_locked_out_and_readers_share() {
    let scratch = Scratch::new();
    let path = scratch.image(64 * KIB);
    let read_only = FileOptions { read_only: true, ..FileOptions::default() };
    let writer = open(&path, Engine::Automatic);
    assert!(matches!(reason(FileMedium::open(&path, &options(Engine::Automatic))), OpenReason::Locked));
    assert!(matches!(reason(FileMedium::open(&path, &read_only)), OpenReason::Locked));
    drop(writer);
    let _reader = FileMedium::open(&path, &read_only).unwrap();
    let _another = FileMedium::open(&path, &read_only).unwrap();
    assert!(matches!(reason(FileMedium::open(&path, &options(Engine::Automatic))), OpenReason::Locked));
}

#[test]
fn a_server_that_is_about_to_end_is_waited_for() {
    let scratch = Scratch::new();
    let path = scratch.image(64 * KIB);
    let last = open(&path, Engine::Threads);
    let ending = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(last);
    });
    open(&path, Engine::Threads);
    ending.join().unwrap();
}

#[test]
fn what_cannot_be_opened_says_why() {
    let scratch = Scratch::new();
    let open = |path: &Path| reason(FileMedium::open(path, &FileOptions::default()));
    assert!(matches!(open(&scratch.0.join("nothing")), OpenReason::Missing));
    assert!(matches!(open(&scratch.0), OpenReason::Directory));
    assert!(matches!(open(Path::new("/dev/null")), OpenReason::NotStorage));
    assert!(matches!(open(Path::new("/proc/cpuinfo")), OpenReason::NotStorage));
    let small = scratch.image(511);
    assert!(matches!(open(&small), OpenReason::TooSmall { size: ByteCount(511), .. }));
    let error = create_image(&small, ByteCount(1024)).unwrap_err();
    assert!(matches!(error.reason, OpenReason::Exists));
    assert_eq!(fs::metadata(&small).unwrap().len(), 511);
    let text = error.to_string();
    assert!(text.ends_with("image: it already exists"), "{text}");
}

#[test]
fn what_cannot_be_created_says_why_and_leaves_nothing() {
    let scratch = Scratch::new();
    let reported = |path: &Path, size| create_image(path, ByteCount(size)).unwrap_err().to_string();
    let text = reported(&scratch.0.join("nowhere/image"), 1024);
    assert!(text.ends_with("its directory does not exist; choose another path or size"), "{text}");
    let path = scratch.0.join("huge");
    let text = reported(&path, i64::MAX as u64);
    assert!(text.starts_with("cannot create "), "{text}");
    assert!(!path.exists());
}

#[test]
fn a_tail_is_no_part_of_the_medium_and_is_reported() {
    let scratch = Scratch::new();
    let medium = open(&scratch.image(1041), Engine::Threads);
    assert_eq!(medium.capacity(), BlockCount(2));
    assert_eq!(medium.describe(), "4 threads (as requested), last 17 bytes unused (less than one block)");
}

#[test]
fn dropping_a_medium_waits_for_what_the_kernel_works_on() {
    with_each_engine(1024 * KIB, |medium, path| {
        let request = request(MediumOp::Write { fua: true }, Extent::new(0, 2048), 1 << 20);
        medium.submit(Job { request, buffer: vec![9; 1 << 20] });
        medium.flush_submissions();
        if let Some(ring) = medium.ring.take() {
            drop(ring);
            assert_eq!(fs::read(path).unwrap(), vec![9; 1 << 20]);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bad block in any read is found.
    #[test]
    fn any_bad_block_is_found(bad in 0_u64..512, start in 0_u64..512, len in 1_u64..512) {
        let len = len.min(512 - start);
        let scratch = Scratch::new();
        let mut medium = open(&scratch.image(256 * KIB), Engine::Threads);
        medium.image.faults.set(&[Fault::BadBytes(bad * 512..bad * 512 + 1), Fault::BadBytes(511 * 512..512 * 512)]);
        let first = if (start..start + len).contains(&bad) { Some(bad) } else { None };
        let first = first.or((start + len == 512).then_some(511));
        let result = suite::read(&mut medium, Extent::new(start, len)).map(drop);
        prop_assert_eq!(result, first.map_or(Ok(()), |lba| Err(MediumError::Unreadable { lba: Lba(lba) })));
    }
}
