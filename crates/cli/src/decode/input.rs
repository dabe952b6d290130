//! Where a capture comes from: a file, or a pipe that somebody watches.
//!
//! From a pipe packets come when they happen. Before a read would wait, what has been printed is flushed, so that commands appear as
//! they complete. Ctrl-C ends the input, and the command goes on as at the end of a file: the program that captures gets Ctrl-C as
//! well and may still write what it has, for [`AFTER_STOP`] at most. A second Ctrl-C ends the process.

use crate::failure::Failure;
use crate::sanitize::shown;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufWriter, Read, StdoutLock, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes that are gathered before they are printed.
const OUTPUT_BYTES: usize = 1 << 16;
/// How often a pipe without bytes is asked whether Ctrl-C was pressed.
const POLL: Duration = Duration::from_millis(200);
/// How long a pipe may still bring bytes after Ctrl-C.
const AFTER_STOP: Duration = Duration::from_secs(2);

/// Standard output, which the input flushes before it waits.
#[derive(Clone)]
pub(super) struct Output(Rc<RefCell<BufWriter<StdoutLock<'static>>>>);

/// The input of the command.
pub(super) struct Input {
    pub(super) bytes: Box<dyn Read>,
    /// Its name in error messages.
    pub(super) name: String,
    /// Whether Ctrl-C has ended it.
    pub(super) is_stopped: Rc<Cell<bool>>,
}

/// A pipe, a terminal or a device.
struct Pipe {
    file: File,
    output: Output,
    stop: Arc<AtomicBool>,
    stopped_at: Option<Instant>,
    is_stopped: Rc<Cell<bool>>,
}

impl Output {
    pub(super) fn new() -> Self {
        let out = BufWriter::with_capacity(OUTPUT_BYTES, io::stdout().lock());
        Self(Rc::new(RefCell::new(out)))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

impl Input {
    /// Opens a file; `-` is standard input.
    pub(super) fn open(path: &Path, output: &Output) -> Result<Self, Failure> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin { "from standard input".to_owned() } else { shown(path) };
        let opened = if is_stdin {
            io::stdin().as_fd().try_clone_to_owned().map(File::from)
        } else {
            File::open(path)
        };
        let file = opened.map_err(|error| Failure::unreadable(path, &error))?;
        let is_stopped = Rc::new(Cell::new(false));
        let is_regular = file.metadata().is_ok_and(|metadata| !is_waited_for(&metadata));
        let bytes: Box<dyn Read> = if is_regular {
            Box::new(file)
        } else {
            let stop = watch_for_stop()?;
            let is_stopped = Rc::clone(&is_stopped);
            Box::new(Pipe { file, output: output.clone(), stop, stopped_at: None, is_stopped })
        };
        Ok(Self { bytes, name, is_stopped })
    }
}

/// Whether a file may have to be waited for; a directory fails when it is read.
fn is_waited_for(metadata: &std::fs::Metadata) -> bool {
    !metadata.is_file() && !metadata.is_dir()
}

/// A flag that the first Ctrl-C sets; the second one ends the process.
fn watch_for_stop() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Failure::new("cannot install signal handlers").because(error))?;
    }
    Ok(stop)
}

impl Pipe {
    /// Waits for bytes: whether there are any, or the end of the pipe.
    fn has_bytes(&self, wait: Duration) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
        let timeout = Timespec::try_from(wait).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether Ctrl-C was pressed and the time after it is over.
    fn is_over(&mut self) -> bool {
        if !self.stop.load(Ordering::Relaxed) {
            return false;
        }
        self.is_stopped.set(true);
        self.stopped_at.get_or_insert_with(Instant::now).elapsed() >= AFTER_STOP
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut is_flushed = false;
        loop {
            if self.is_over() {
                return Ok(0);
            }
            let wait = if is_flushed { POLL } else { Duration::ZERO };
            if self.has_bytes(wait)? {
                return self.file.read(buffer);
            }
            if !is_flushed {
                // A reader that has gone away is noticed by the next line as well.
                is_flushed = true;
                if self.output.flush().is_err() {
                    return Ok(0);
                }
            } else if self.is_stopped.get() {
                return Ok(0);
            }
        }
    }
}
