//! Memory that was freed goes back to the system.
//!
//! An allocator keeps freed memory for later use: glibc all that lies below something in use, in each of its arenas. After a client
//! that had much payload queued, that would be resident for as long as the server runs. Left out: other allocators, which give
//! long blocks back when they are freed.
//!
//! One foreign function is called here. What makes it sound: it takes no pointer, and may be called on any thread at any time
//! (malloc_trim(3), "MT-Safe").

#![allow(unsafe_code)]

/// Gives freed memory back to the system, as far as the allocator can.
pub(super) fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it is given a number alone, and is safe beside all other uses of the allocator.
    unsafe {
        libc::malloc_trim(0);
    }
}
