//! Blocks in a file: a regular file, best a sparse one, or a block device.
//!
//! The steps of a job are decided in `task`; a ring (`uring`) makes the system calls or, where the system has none or
//! forbids it, threads (`pool`). Beside a ring, a thread makes the calls that no ring has, and writes to the page cache
//! where the file system cannot say that they will not wait: the ring would do no better. The file goes through the
//! page cache of the system: a write is durable after a flush, or at once with forced unit access (`RWF_DSYNC`). Unmap
//! punches holes; zeroes are ranges that the file system marks as zero. WRITE ATOMIC is all or nothing by a journal
//! beside the image (`journal`).
//!
//! Left out:
//! - Direct I/O for a drive that is served: a host's buffers have any alignment. A verify therefore believes the page
//!   cache where that has the blocks. [`FileOptions::direct`] is for callers that align theirs.
//! - WRITE ATOMIC and saved state on a block device (see `journal`), and two atomic writes at once: the unit runs each
//!   alone.
//! - The block of an error that cannot be narrowed down: a write that the system had answered and could not store is reported
//!   by the next flush, once, as fdatasync does. Flush and allocations name the first block of their extent.
//! - Space that is reserved but was never written: `lseek` takes it for a hole, and so do we.
//! - Watching the length of the file: reads notice that it shrank, a write makes it grow again. Its owner says when to look
//!   (`measure`).

mod error;
mod image;
mod journal;
mod open;
mod options;
mod pool;
pub(super) mod task;
mod transfer;
mod uring;

pub use error::{OpenError, OpenReason};
pub use open::create_image;
pub use options::{Engine, FileOptions};

use super::{CompletedJob, Geometry, Job, Medium};
use device::medium::MediumOp;
use image::Image;
use pool::Pool;
use rustix::event::EventfdFlags;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use task::Task;
use units::{BlockCount, BlockSize};
use uring::Ring;

/// Threads of a medium without a ring.
const POOL_THREADS: usize = 4;

/// Ring or thread that carries out a write that need not be durable.
#[derive(Debug)]
enum Writes {
    /// Decided by the first write.
    Unknown,
    /// The ring: the file system writes without waiting where it can.
    Ring,
    /// A thread: the file system never does (ext4, tmpfs), so that the ring would hand each write to a thread of the
    /// kernel and wake us for each. It is a separate thread, so that they do not wait for another operation's sync.
    Thread(Pool),
}

/// A medium in a file.
#[derive(Debug)]
pub struct FileMedium {
    // First, so that it is dropped first: the memory and the descriptors below outlive its operations.
    ring: Option<Ring>,
    /// Carries out everything if there is no ring, else what the ring has no operation for.
    pool: Pool,
    image: Arc<Image>,
    /// As of the last look at the image's length.
    geometry: Geometry,
    event: Arc<OwnedFd>,
    finished: VecDeque<CompletedJob>,
    writes: Writes,
    /// Whether blocks are moved on the spot: a file system of memory does not wait, but refuses to promise that, so that
    /// a ring would hand each transfer to a thread of the kernel, and a wake-up costs more than the copy.
    at_once: bool,
    /// Why there is no ring.
    without_ring: Option<String>,
}

impl FileMedium {
    /// Opens and locks the image. Bytes after the last whole block are not part of the medium, unless it is a disc.
    ///
    /// # Errors
    /// Says why it cannot be opened and what to do about it.
    pub fn open(path: &Path, options: &FileOptions) -> Result<Self, OpenError> {
        let image = Arc::new(Image::open(path, options)?);
        let failed = |reason| OpenError::new(path, reason);
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let event = rustix::event::eventfd(0, flags).map_err(|errno| failed(OpenReason::Io(errno.into())))?;
        let event = Arc::new(event);
        let (ring, without_ring) = match options.engine {
            Engine::Threads => (None, Some("as requested".into())),
            engine => match Ring::new(Arc::clone(&image), &event) {
                Ok(ring) => (Some(ring), None),
                Err(error) if engine == Engine::Ring => return Err(failed(OpenReason::NoRing(error))),
                Err(error) => (None, Some(reason_without_ring(&error))),
            },
        };
        let threads = if ring.is_some() { 1 } else { POOL_THREADS };
        let pool = Pool::new(Arc::clone(&image), Arc::clone(&event), threads);
        let pool = pool.map_err(|error| failed(OpenReason::Io(error)))?;
        let geometry = image.geometry;
        // What goes past the page cache is worth a wake-up each, and is best done beside others.
        let writes = if ring.is_none() || image.direct { Writes::Ring } else { Writes::Unknown };
        let finished = VecDeque::with_capacity(pool::ROOM);
        let at_once = options.engine == Engine::Automatic && image.in_memory && !image.direct;
        Ok(Self { ring, pool, image, geometry, event, finished, writes, at_once, without_ring })
    }

    /// Tries to write without waiting. Who is to write from now on.
    fn try_write(&self, task: &mut Task) -> Writes {
        let Some(step) = task.step() else { return Writes::Unknown };
        match self.image.write_at_once(&step, task) {
            Err(Errno::OPNOTSUPP) => {
                let writer = Pool::new(Arc::clone(&self.image), Arc::clone(&self.event), 1);
                writer.map_or(Writes::Ring, Writes::Thread)
            }
            Err(Errno::AGAIN) => Writes::Ring,
            outcome => {
                task.handle(outcome);
                Writes::Ring
            }
        }
    }

    fn reap(&mut self) {
        self.pool.reap(&mut self.finished);
        if let Writes::Thread(writer) = &mut self.writes {
            writer.reap(&mut self.finished);
        }
        if let Some(ring) = &mut self.ring
            && !ring.reap(&mut self.finished)
        {
            signal(&self.event);
        }
    }
}

fn reason_without_ring(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => "io_uring not permitted: EPERM".into(),
        Some(Errno::NOSYS) => "io_uring not supported: ENOSYS".into(),
        Some(Errno::OPNOTSUPP) => "io_uring of this kernel is too old".into(),
        _ => format!("io_uring failed: {error}"),
    }
}

/// Makes the event descriptor readable.
fn signal(event: &OwnedFd) {
    // Fails only if the counter is full, and then it is readable.
    let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
}

impl Medium for FileMedium {
    fn submit(&mut self, job: Job) -> Option<CompletedJob> {
        let is_write = job.request.op == MediumOp::Write { fua: false };
        let moves = matches!(job.request.op, MediumOp::Read | MediumOp::Write { .. });
        let mut task = Task::new(job, self.geometry, self.image.read_only);
        if self.at_once && moves {
            self.image.carry_out(&mut task);
        } else if is_write && matches!(self.writes, Writes::Unknown) {
            self.writes = self.try_write(&mut task);
        }
        if task.is_over() {
            return Some(task.finish().0);
        }
        match (&mut self.ring, &mut self.writes) {
            (_, Writes::Thread(writer)) if is_write => writer.submit(task),
            (Some(ring), _) if Ring::can(&task) => ring.submit(task),
            _ => self.pool.submit(task),
        }
        None
    }

    fn flush_submissions(&mut self) {
        self.pool.flush();
        if let Writes::Thread(writer) = &mut self.writes {
            writer.flush();
        }
        if let Some(ring) = &mut self.ring
            && !ring.flush()
        {
            signal(&self.event);
        }
    }

    fn poll(&mut self) -> Option<CompletedJob> {
        if self.finished.is_empty() {
            // Read before polling: later completions signal again.
            let _ = rustix::io::read(&*self.event, &mut [0; 8]);
            self.reap();
        }
        self.finished.pop_front()
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.event.as_fd())
    }

    fn capacity(&self) -> BlockCount {
        self.geometry.capacity
    }

    fn measure(&mut self) -> io::Result<BlockCount> {
        let (size, block_size) = (self.image.len()?, self.geometry.block_size);
        let geometry =
            if self.image.disc { Geometry::padded(size, block_size) } else { Geometry::of(size, block_size) };
        if geometry.capacity.0 == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the image is smaller than one block; enlarge it",
            ));
        }
        self.geometry = geometry;
        Ok(geometry.capacity)
    }

    fn block_size(&self) -> BlockSize {
        self.geometry.block_size
    }

    fn is_read_only(&self) -> bool {
        self.image.read_only
    }

    fn writes_atomically(&self) -> bool {
        self.image.journal.is_some()
    }

    fn keeps_state(&self) -> bool {
        !self.image.read_only && self.image.has_companions
    }

    fn save_state(&mut self, state: &[u8]) -> io::Result<()> {
        self.image.keep_state(state)
    }

    fn load_state(&self) -> io::Result<Option<Vec<u8>>> {
        self.image.load_state()
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.image.path)
    }

    fn describe(&self) -> String {
        let mut text = match &self.without_ring {
            None => "io_uring".to_owned(),
            Some(why) => format!("{POOL_THREADS} threads ({why})"),
        };
        if self.at_once {
            text.push_str(", synchronous since the file lies in memory");
        }
        if self.image.direct {
            text.push_str(", direct I/O");
        }
        if self.image.tail_bytes > 0 {
            text.push_str(&format!(", last {} bytes unused (less than one block)", self.image.tail_bytes));
        }
        if self.geometry.padding_bytes > 0 {
            text.push_str(&format!(
                ", last block padded with zeroes ({} bytes)",
                self.geometry.padding_bytes
            ));
        }
        text
    }
}

#[cfg(test)]
mod links;
#[cfg(test)]
mod power_loss;
#[cfg(test)]
mod tests;
