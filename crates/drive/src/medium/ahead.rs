//! Lines of memory fetched before they are needed.
//!
//! A block that lies in no cache is bound by how many cache lines a processor has in flight, and a processor that does something else
//! meanwhile has none. A caller that knows the next block prefetches it here, a few lines at a time: with more than a dozen or two at once,
//! the processor waits for them after all. Left out: processors other than x86-64, on which nothing happens.

#![allow(unsafe_code)]

/// Bytes of a line.
pub(super) const LINE_BYTES: usize = 64;

/// Has the lines of `bytes` fetched. Less than a line at its end is left out.
#[inline]
pub(super) fn fetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.as_chunks::<LINE_BYTES>().0 {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is a hint. It reads nothing that the program could see, and cannot fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
