//! A part of a file in this process's address space: the only unsafe code of this export.
//!
//! The memory is shared with a virtual machine that writes it at any time, so nothing here forms a reference to it: bytes are
//! copied out and in through pointers, and what was copied is what counts. What makes it sound: a [`Mapping`] is mapped for
//! as long as it lives, and each copy is within its length.
//!
//! A file can be truncated while it is mapped, and a read beyond its end raises SIGBUS. The handler puts empty memory in the
//! place of the whole mapping and marks it; the session ends when it sees the mark. A signal anywhere else has its usual
//! effect.
#![allow(unsafe_code)]

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// Mappings of the process at once.
const MAPPINGS_MAX: usize = 1024;

/// Memory of a file.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
    /// Its place among the guarded ranges.
    guard: usize,
}

// SAFETY: the memory belongs to no thread; all accesses are copies of bytes and atomic words.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `length` bytes of a file from `offset` on.
    ///
    /// # Errors
    /// The error of the system call; [`io::ErrorKind::OutOfMemory`] if there are too many mappings.
    pub(super) fn new(
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        is_writable: bool,
    ) -> io::Result<Self> {
        let access = if is_writable { ProtFlags::READ.union(ProtFlags::WRITE) } else { ProtFlags::READ };
        // SAFETY: the system chooses the place, so that nothing else is replaced.
        let start = unsafe { mmap(ptr::null_mut(), length, access, MapFlags::SHARED, file, offset)? };
        let Some(start) = NonNull::new(start.cast::<u8>()) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        let Some(guard) = guard(start.as_ptr() as usize, length) else {
            // SAFETY: it was mapped just now, and nothing refers to it.
            unsafe { munmap(start.as_ptr().cast(), length)? };
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        Ok(Self { start, length, guard })
    }

    /// Copies bytes from `at` on. Returns whether they are all within it.
    #[inline]
    pub(super) fn read(&self, at: usize, into: &mut [u8]) -> bool {
        let is_within = self.has(at, into.len());
        if is_within {
            // SAFETY: the range is mapped, and `into` is memory of the caller.
            unsafe { ptr::copy_nonoverlapping(self.start.as_ptr().add(at), into.as_mut_ptr(), into.len()) };
        }
        is_within
    }

    /// Copies bytes to `at` on; it must be writable. Returns whether they are all within it.
    #[inline]
    pub(super) fn write(&self, at: usize, bytes: &[u8]) -> bool {
        let is_within = self.has(at, bytes.len());
        if is_within {
            // SAFETY: the range is mapped, and `bytes` is memory of the caller.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(at), bytes.len()) };
        }
        is_within
    }

    /// Reads a word that another processor may write, before everything that is read later.
    #[inline]
    pub(super) fn load(&self, at: usize) -> Option<u32> {
        Some(self.word(at)?.load(Ordering::Acquire))
    }

    /// Writes a word after everything that was written before; it must be writable.
    #[inline]
    pub(super) fn store(&self, at: usize, value: u32) -> Option<()> {
        self.word(at)?.store(value, Ordering::Release);
        Some(())
    }

    /// Returns the word at `at`, which another processor may change; one of memory that is not writable must not be written.
    #[inline]
    pub(super) fn word(&self, at: usize) -> Option<&AtomicU32> {
        let is_right = at.is_multiple_of(align_of::<AtomicU32>()) && self.has(at, size_of::<AtomicU32>());
        // SAFETY: the word is mapped for as long as `self` lives and aligned, since a mapping begins with a page; others
        // access it by instructions of their processor, which an atomic allows for.
        is_right.then(|| unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) })
    }

    const fn has(&self, at: usize, length: usize) -> bool {
        match at.checked_add(length) {
            Some(end) => end <= self.length,
            None => false,
        }
    }

    /// Returns whether its file has become too short: it is empty memory now.
    pub(super) fn is_lost(&self) -> bool {
        GUARDED[self.guard].is_lost.load(Ordering::Acquire)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        GUARDED[self.guard].release();
        // SAFETY: it is mapped since `new`, and nothing refers to it any more. It cannot fail for a range that is mapped.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A range of addresses that the signal handler knows; one of length 0 is free.
struct GuardedRange {
    start: AtomicUsize,
    length: AtomicUsize,
    is_lost: AtomicBool,
}

static GUARDED: [GuardedRange; MAPPINGS_MAX] = [const { GuardedRange::free() }; MAPPINGS_MAX];
/// Held while a range is taken.
static TAKING: Mutex<()> = Mutex::new(());

impl GuardedRange {
    const fn free() -> Self {
        Self { start: AtomicUsize::new(0), length: AtomicUsize::new(0), is_lost: AtomicBool::new(false) }
    }

    fn release(&self) {
        self.length.store(0, Ordering::Release);
    }
}

/// Guards a range. Returns its place, if there is one.
fn guard(start: usize, length: usize) -> Option<usize> {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(install);
    let _taking = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let place = GUARDED.iter().position(|range| range.length.load(Ordering::Acquire) == 0)?;
    let range = &GUARDED[place];
    range.start.store(start, Ordering::Relaxed);
    range.is_lost.store(false, Ordering::Relaxed);
    range.length.store(length, Ordering::Release);
    Some(place)
}

/// Installs the handler.
fn install() {
    // SAFETY: all fields of the structure may be zero; the handler does only what a handler may.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // It fails only for a signal that does not exist.
        libc::sigaction(libc::SIGBUS, &action, ptr::null_mut());
    }
}

/// Replaces the mapping in which the signal was raised.
extern "C" fn handle(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system passes a valid structure; mmap, sigaction and the error number are all that is touched, and the
    // range that is replaced is a mapping of ours, to which there are only pointers.
    unsafe {
        let error = *libc::__errno_location();
        let address = (*info).si_addr() as usize;
        let hit = GUARDED.iter().find(|range| {
            let (start, length) = (range.start.load(Ordering::Relaxed), range.length.load(Ordering::Acquire));
            address.wrapping_sub(start) < length
        });
        let is_replaced = hit.is_some_and(|range| {
            let (start, length) = (range.start.load(Ordering::Relaxed), range.length.load(Ordering::Acquire));
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
            range.is_lost.store(true, Ordering::Release);
            libc::mmap(start as *mut libc::c_void, length, access, flags, -1, 0) != libc::MAP_FAILED
        });
        if !is_replaced {
            // The access is repeated, and ends the process as if there were no handler.
            libc::signal(libc::SIGBUS, libc::SIG_DFL);
        }
        *libc::__errno_location() = error;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use std::os::fd::AsFd;

    fn file(bytes: u64) -> std::os::fd::OwnedFd {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, bytes).unwrap();
        file
    }

    #[test]
    fn two_mappings_of_a_file_are_one_memory() {
        let file = file(8192);
        let whole = Mapping::new(file.as_fd(), 0, 8192, true).unwrap();
        let second = Mapping::new(file.as_fd(), 4096, 4096, false).unwrap();
        assert!(whole.write(4100, &[1, 2, 3, 4]));
        let mut bytes = [0; 4];
        assert!(second.read(4, &mut bytes));
        assert_eq!(bytes, [1, 2, 3, 4]);
        assert_eq!(second.load(4), Some(0x0403_0201));
        whole.store(4096, 7).unwrap();
        assert_eq!(second.load(0), Some(7));
    }

    #[test]
    fn nothing_outside_is_accessed() {
        let file = file(4096);
        let mapping = Mapping::new(file.as_fd(), 0, 4096, true).unwrap();
        for (at, length) in [(4096, 1), (4093, 4), (usize::MAX, 2), (0, 4097)] {
            assert!(!mapping.read(at, &mut vec![0; length]));
            assert!(!mapping.write(at, &vec![0; length]));
        }
        assert_eq!((mapping.load(4094), mapping.load(4096), mapping.store(2, 0)), (None, None, None));
        assert!(mapping.read(4096, &mut []));
    }

    #[test]
    fn a_file_that_shrinks_is_noticed_and_does_no_harm() {
        let file = file(1 << 20);
        let mapping = Mapping::new(file.as_fd(), 0, 1 << 20, true).unwrap();
        assert!(mapping.write(0, &[1; 64]) && !mapping.is_lost());
        ftruncate(&file, 4096).unwrap();
        let mut bytes = [9; 16];
        assert!(mapping.read(8192, &mut bytes));
        assert_eq!(bytes, [0; 16]);
        assert!(mapping.is_lost());
        assert!(mapping.write(1 << 19, &[1; 64]), "the place is usable until it is dropped");
    }
}
