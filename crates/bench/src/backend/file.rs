//! A block device or a file through any kernel driver, by `io_uring`.
//!
//! [`FileMedium`] does the work; this module aligns memory for direct I/O, without which figures
//! would be those of the page cache. If the file system lacks direct I/O, or the caller wants the
//! cache, the notes say so. Left out: per-write flushes; a write completes when the kernel reports
//! it.

use super::{
    AccessError, BenchDevice, BufferLayout, CompletedAccess, DeviceError, DriveInfo, ErrorCounters, Route,
    Runner,
};
use device::command::{CommandId, DataLocation};
use device::medium::{MediumOp, MediumRequest, MediumRequestId};
use drive::medium::{CompletedJob, FileMedium, FileOptions, Job, Medium, OpenReason};
use inspect::block::BlockDevice;
use inspect::tree::Tree;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{AtFlags, CWD, StatxFlags};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use units::{BlockCount, BlockSize, ByteRange, Extent};
use wire::Legible;
use workload::{Access, AccessKind};

/// Alignment if the kernel reports none: one page.
const MEMORY_ALIGN_BYTES: usize = 4096;

/// How long to wait for requests of an earlier run.
const SETTLE_MAX: Duration = Duration::from_secs(30);

/// Poll interval of that wait.
const SETTLE_TURN: Duration = Duration::from_millis(100);

/// How to open the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileDeviceOptions {
    /// Open for writing; otherwise read-only.
    pub writes: bool,
    /// The jobs read nothing.
    pub reads_nothing: bool,
    /// Use the page cache instead of direct I/O.
    pub cached: bool,
}

/// A block device or a file.
#[derive(Debug)]
pub struct FileDevice {
    path: PathBuf,
    options: FileOptions,
    tree: Rc<Tree>,
    device: Option<BlockDevice>,
    identity: DriveInfo,
    up: Option<FileRunner>,
}

impl FileDevice {
    /// Opens the file; `tree` describes block devices.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened with these options.
    pub fn open(path: &Path, options: FileDeviceOptions, tree: Tree) -> Result<Self, DeviceError> {
        let direct = !options.cached;
        let block_size = block_size(path, direct);
        let mut file =
            FileOptions { read_only: !options.writes, block_size, direct, ..FileOptions::default() };
        let mut notes = Vec::new();
        let medium = match FileMedium::open(path, &file) {
            Err(error) if matches!(error.reason, OpenReason::NotDirect) => {
                notes.push(
                    "the file system does not support direct I/O: reads may come from the page cache"
                        .to_owned(),
                );
                file.direct = false;
                FileMedium::open(path, &file)
            }
            medium => medium,
        };
        let medium = medium.map_err(|error| DeviceError::new(error.to_string()))?;
        if options.cached {
            notes.push("requests use the page cache: reads may come from memory".to_owned());
        }
        let device = std::fs::metadata(path).ok().filter(|metadata| metadata.file_type().is_block_device());
        let device = device.and_then(|metadata| BlockDevice::of_number(&tree, metadata.rdev()));
        notes.extend(holes(path).filter(|_| !options.reads_nothing));
        let identity = DriveInfo {
            model: device.as_ref().map_or_else(|| Some("a file".into()), |device| device.model.clone()),
            serial: device.as_ref().and_then(|device| device.serial.clone()),
            firmware: device.as_ref().and_then(|device| device.firmware.clone()),
            bytes: medium.capacity().0 * u64::from(block_size.bytes()),
            block_bytes: block_size.bytes(),
            engine: medium.describe(),
            notes,
        };
        let tree = Rc::new(tree);
        let up = FileRunner::new(medium, Rc::clone(&tree), device.as_ref());
        Ok(Self { path: path.to_path_buf(), options: file, tree, device, identity, up: Some(up) })
    }

    /// Whether requests bypass the page cache. Otherwise read-back data may never have left memory.
    pub const fn is_direct(&self) -> bool {
        self.options.direct
    }
}

impl BenchDevice for FileDevice {
    fn open_route(&mut self, route: Route, _layout: BufferLayout) -> Result<&mut dyn Runner, DeviceError> {
        if route != Route::Kernel {
            return Err(DeviceError::not_offered(format!(
                "{}: the kernel's driver handles this device, not uaskit's; name its USB port for {route}",
                Legible(self.path.as_os_str().as_encoded_bytes())
            )));
        }
        if self.up.is_none() {
            let medium = FileMedium::open(&self.path, &self.options)
                .map_err(|error| DeviceError::new(error.to_string()))?;
            self.up = Some(FileRunner::new(medium, Rc::clone(&self.tree), self.device.as_ref()));
        }
        self.up.as_mut().map(|up| up as &mut dyn Runner).ok_or_else(|| DeviceError::new("it is not open"))
    }

    fn identity(&self) -> DriveInfo {
        self.identity.clone()
    }
}

/// The block size that matches the required alignment of file offsets.
fn block_size(path: &Path, direct: bool) -> BlockSize {
    let wanted = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::DIOALIGN);
    match wanted {
        Ok(found) if direct && found.stx_dio_offset_align > BlockSize::B512.bytes() => BlockSize::B4096,
        _ => BlockSize::B512,
    }
}

/// Reports unallocated parts, which are not read from the drive.
fn holes(path: &Path) -> Option<String> {
    /// The unit of `st_blocks`, independent of the file system's block size.
    const UNIT_BYTES: u64 = 512;
    let metadata =
        std::fs::metadata(path).ok().filter(|metadata| metadata.is_file() && metadata.len() > 0)?;
    let there = metadata.blocks().saturating_mul(UNIT_BYTES);
    let percent = 100 - there.min(metadata.len()) * 100 / metadata.len();
    (percent > 0).then(|| {
        format!("{percent} % of the file is unallocated; reads of those parts do not reach the drive")
    })
}

/// An open medium with buffers for requests.
#[derive(Debug)]
struct FileRunner {
    medium: FileMedium,
    slots: Vec<Slot>,
    in_flight: u16,
    /// Completed requests that were not polled yet.
    over: Vec<CompletedJob>,
    /// Where the kernel counts the errors of the disk.
    counters: Option<String>,
    errors_before: u64,
    tree: Rc<Tree>,
}

#[derive(Debug, Default)]
struct Slot {
    buffer: Vec<u8>,
    /// Where the aligned memory begins in the buffer.
    start: u32,
}

impl FileRunner {
    fn new(medium: FileMedium, tree: Rc<Tree>, device: Option<&BlockDevice>) -> Self {
        let counters = device.map(|device| format!("{}/device", device.disk_path));
        let mut runner = Self {
            medium,
            slots: Vec::new(),
            in_flight: 0,
            over: Vec::with_capacity(workload::DEPTH_MAX.into()),
            counters,
            errors_before: 0,
            tree,
        };
        runner.errors_before = runner.kernel_errors();
        runner
    }

    /// Errors and timeouts of the SCSI disk, which sysfs counts in hexadecimal.
    fn kernel_errors(&self) -> u64 {
        let Some(directory) = &self.counters else { return 0 };
        let counts = ["ioerr_cnt", "iotmo_cnt"].map(|name| {
            let text = self.tree.text(&format!("{directory}/{name}")).unwrap_or_default();
            u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0)
        });
        counts.iter().sum()
    }

    fn submit(&mut self, slot: u16, op: MediumOp, extent: Extent) {
        let bytes = extent.blocks.0 * u64::from(self.medium.block_size().bytes());
        let Slot { buffer, start } = &mut self.slots[usize::from(slot)];
        let request = MediumRequest {
            id: MediumRequestId { command: CommandId { slot, generation: 0 }, part: 0 },
            unit: 0,
            op,
            extent,
            location: DataLocation::Buffer,
            range: ByteRange::new(*start, bytes as u32),
        };
        self.in_flight += 1;
        let job = Job { request, buffer: std::mem::take(buffer) };
        if let Some(finished) = self.medium.submit(job) {
            // Rejected immediately: completes like any other request.
            self.over.push(finished);
        }
    }

    /// Waits until nothing is in flight and discards the results.
    fn settle(&mut self, at_most: Duration) -> Result<(), DeviceError> {
        let until = Instant::now() + at_most;
        while self.in_flight > 0 {
            if self.poll().is_some() {
                continue;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(DeviceError::new(format!(
                    "{} requests did not complete in time",
                    self.in_flight
                )));
            }
            self.run_once(left.min(SETTLE_TURN))?;
        }
        Ok(())
    }
}

impl Runner for FileRunner {
    fn block_size(&self) -> BlockSize {
        self.medium.block_size()
    }

    fn capacity(&self) -> BlockCount {
        self.medium.capacity()
    }

    fn prepare(&mut self, depth: u16, bytes: u32) -> Result<(), DeviceError> {
        // A leftover request in a slot must not complete a request of this run.
        self.settle(SETTLE_MAX)?;
        self.slots.clear();
        for _ in 0..depth {
            let len = bytes as usize + MEMORY_ALIGN_BYTES;
            let mut buffer = Vec::new();
            let reserved = buffer.try_reserve_exact(len);
            reserved.map_err(|error| {
                DeviceError::new(format!(
                    "cannot allocate buffers for {depth} requests of {bytes} bytes: {error}"
                ))
            })?;
            buffer.resize(len, 0_u8);
            let start = buffer.as_ptr().align_offset(MEMORY_ALIGN_BYTES).min(MEMORY_ALIGN_BYTES) as u32;
            self.slots.push(Slot { buffer, start });
        }
        Ok(())
    }

    fn memory(&mut self, slot: u16) -> &mut [u8] {
        let Slot { buffer, start } = &mut self.slots[usize::from(slot)];
        let room = buffer.len() - MEMORY_ALIGN_BYTES;
        &mut buffer[*start as usize..][..room]
    }

    fn start(&mut self, slot: u16, access: Access) {
        let op = match access.kind {
            AccessKind::Read => MediumOp::Read,
            AccessKind::Write => MediumOp::Write { fua: false },
        };
        self.submit(slot, op, access.extent);
    }

    fn start_flush(&mut self, slot: u16) {
        self.submit(slot, MediumOp::Flush, Extent::default());
    }

    fn run_once(&mut self, timeout: Duration) -> Result<(), DeviceError> {
        self.medium.flush_submissions();
        if self.in_flight == 0 || !self.over.is_empty() {
            return Ok(());
        }
        if let Some(finished) = self.medium.poll() {
            self.over.push(finished);
            return Ok(());
        }
        let Some(event) = self.medium.event_fd() else { return Ok(()) };
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        match rustix::event::poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&timeout)) {
            // A signal ends the wait early; the caller checks why.
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(DeviceError::new(format!("cannot wait for completions: {error}"))),
        }
    }

    fn poll(&mut self) -> Option<CompletedAccess> {
        let finished = self.over.pop().or_else(|| self.medium.poll())?;
        let slot = finished.completion.id.command.slot;
        self.slots[usize::from(slot)].buffer = finished.buffer;
        self.in_flight -= 1;
        Some(CompletedAccess {
            slot,
            result: finished.completion.result.map(|_| ()).map_err(AccessError::Medium),
        })
    }

    fn error_counters(&self) -> ErrorCounters {
        ErrorCounters {
            kernel_errors: self.kernel_errors().saturating_sub(self.errors_before),
            ..ErrorCounters::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: BufferLayout = BufferLayout { slots: 2, bytes: 3 << 20 };

    fn wait(runner: &mut dyn Runner) -> CompletedAccess {
        for _ in 0..1000 {
            runner.run_once(Duration::from_millis(100)).expect("it goes on");
            if let Some(ended) = runner.poll() {
                return ended;
            }
        }
        panic!("nothing ends");
    }

    #[test]
    fn files_use_direct_io_where_supported() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).expect("written");
        let options = FileDeviceOptions { writes: true, ..FileDeviceOptions::default() };
        let mut bench_device = FileDevice::open(&path, options, Tree::at(place.path())).expect("it opens");
        let runner = bench_device.open_route(Route::Kernel, LAYOUT).expect("it is up");
        runner.prepare(2, 8192).expect("memory");
        assert_eq!(runner.memory(0).as_ptr().align_offset(4096), 0);
        runner.memory(0).fill(7);
        runner.start(0, Access { kind: AccessKind::Write, extent: Extent::new(8, 16) });
        assert_eq!(wait(runner), CompletedAccess { slot: 0, result: Ok(()) });
        runner.start(1, Access { kind: AccessKind::Read, extent: Extent::new(16, 16) });
        assert_eq!(wait(runner), CompletedAccess { slot: 1, result: Ok(()) });
        assert!(runner.memory(1)[..4096].iter().all(|byte| *byte == 7));
        assert!(runner.memory(1)[4096..].iter().all(|byte| *byte == 1));
        assert!(bench_device.open_route(Route::Uas, LAYOUT).is_err());
    }

    #[test]
    fn what_an_earlier_run_left_in_flight_completes_before_the_next_one_begins() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).expect("written");
        // Some complete at submission if the file is cached, the others in the ring.
        for cached in [false, true] {
            let options = FileDeviceOptions { cached, ..FileDeviceOptions::default() };
            let mut bench_device =
                FileDevice::open(&path, options, Tree::at(place.path())).expect("it opens");
            let runner = bench_device.open_route(Route::Kernel, LAYOUT).expect("it is up");
            runner.prepare(8, 64 << 10).expect("memory");
            (0..8).for_each(|slot| {
                runner.start(slot, Access { kind: AccessKind::Read, extent: Extent::new(0, 128) });
            });
            let runner = bench_device.open_route(Route::Kernel, LAYOUT).expect("it is up");
            runner.prepare(1, 4096).expect("nothing is in flight any more");
            assert_eq!(runner.poll(), None);
            assert_eq!(runner.memory(0).len(), 4096);
            runner.start(0, Access { kind: AccessKind::Read, extent: Extent::new(8, 8) });
            assert_eq!(wait(runner), CompletedAccess { slot: 0, result: Ok(()) });
            assert!(runner.memory(0).iter().all(|byte| *byte == 1));
        }
    }

    #[test]
    fn stuck_requests_block_the_next_run() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).expect("written");
        let mut bench_device =
            FileDevice::open(&path, FileDeviceOptions::default(), Tree::at(place.path())).expect("it opens");
        let runner = bench_device.up.as_mut().expect("it is open");
        runner.prepare(2, 4096).expect("memory");
        // The drive never answers this one.
        runner.in_flight = 1;
        let error = runner.settle(Duration::from_millis(150)).expect_err("it does not end");
        assert_eq!(error.what, "1 requests did not complete in time");
        assert_eq!(runner.slots.len(), 2, "its memory stays");
    }

    #[test]
    fn writes_to_a_read_only_file_fail() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).expect("written");
        let mut bench_device =
            FileDevice::open(&path, FileDeviceOptions::default(), Tree::at(place.path())).expect("it opens");
        let runner = bench_device.open_route(Route::Kernel, LAYOUT).expect("it is up");
        runner.prepare(1, 4096).expect("memory");
        runner.start(0, Access { kind: AccessKind::Write, extent: Extent::new(0, 8) });
        let fault = AccessError::Medium(device::medium::MediumError::WriteProtected);
        assert_eq!(wait(runner), CompletedAccess { slot: 0, result: Err(fault) });
    }

    #[test]
    fn missing_direct_io_is_noted() {
        // Files of sysfs have the size of a page, and every Linux has sysfs.
        let path = Path::new("/sys/kernel/uevent_seqnum");
        let bench_device =
            FileDevice::open(path, FileDeviceOptions::default(), Tree::at(path)).expect("it opens");
        assert!(!bench_device.is_direct());
        let notes = bench_device.identity().notes;
        assert!(notes[0].starts_with("the file system does not support direct I/O"), "{notes:?}");
    }

    #[test]
    fn sparse_files_are_noted() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("file");
        std::fs::File::create(&path).and_then(|file| file.set_len(1 << 20)).expect("made");
        let is_reported = |reads_nothing| {
            let options = FileDeviceOptions { writes: true, reads_nothing, cached: true };
            let bench_device = FileDevice::open(&path, options, Tree::at(place.path())).expect("it opens");
            bench_device
                .identity()
                .notes
                .iter()
                .any(|note| note.starts_with("100 % of the file is unallocated"))
        };
        assert!(is_reported(false));
        assert!(!is_reported(true), "writes do not care");
    }
}
