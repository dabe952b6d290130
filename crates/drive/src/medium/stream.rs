//! Blocks written past the caches, in memory that no cache holds.
//!
//! A line that is written over in a cache is fetched before, though its old contents are not needed, and all later stores of the
//! processor wait behind it. A streaming store goes to memory by itself while the processor does something else. Its price: other
//! processors may see it after later stores, until a fence (Intel SDM volume 1 clause 10.4.6.2, from memory). So memory that is
//! written like this stays with one thread. Left out: processors other than x86-64, which copy as ever.
//!
//! Always true: whatever is done but writing finds all that was written before it.

#![allow(unsafe_code)]

use super::{CompletedJob, Job, Medium, RamMedium};
use device::medium::{MediumDone, MediumError, MediumOp, MediumRequest};
use std::hint::cold_path;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use units::{BlockCount, BlockSize, ByteCount, Extent};

/// A medium in memory that is smaller is written through the caches, which may hold it.
const STREAMED_MIN: ByteCount = ByteCount(64 << 20);

/// A medium in memory, for one thread, whose writes go past the caches if it is large.
///
/// ```compile_fail
/// fn goes_elsewhere<T: Send>() {}
/// goes_elsewhere::<uaskit_server::medium::StreamedRam>();
/// ```
#[derive(Debug)]
pub struct StreamedRam {
    ram: RamMedium,
    is_large: bool,
    /// There were writes that other threads may not see yet.
    is_pending: bool,
    /// Keeps the value on one thread: it is not `Send`.
    here: PhantomData<*const ()>,
}

impl StreamedRam {
    /// The same medium, for this thread alone.
    pub fn new(ram: RamMedium) -> Self {
        let bytes = ram.capacity().0 * u64::from(ram.block_size().bytes());
        Self { ram, is_large: bytes >= STREAMED_MIN.0, is_pending: false, here: PhantomData }
    }

    /// Whether a write goes past the caches.
    pub const fn streams(&self) -> bool {
        self.is_large
    }

    /// As [`RamMedium::perform`].
    ///
    /// # Errors
    /// The same.
    pub fn perform(&mut self, request: &MediumRequest, buffer: &mut [u8]) -> Result<MediumDone, MediumError> {
        if !self.is_large || !matches!(request.op, MediumOp::Write { .. }) {
            self.settle();
            return self.ram.perform(request, buffer);
        }
        self.is_pending = true;
        // SAFETY: the memory is reached through this value alone, which no other thread can have, and which settles before anything
        // but such a write and before it lets the memory go.
        self.ram.write_by(request, buffer, |to, from| unsafe { copy(to, from) })
    }

    /// As [`RamMedium::expect`].
    pub fn expect(&self, extent: Extent, lines: Range<usize>) {
        self.ram.expect(extent, lines);
    }

    /// Waits until what was written can be seen by everybody who sees what comes after it.
    pub fn settle(&mut self) {
        if std::mem::take(&mut self.is_pending) {
            fence();
        }
    }
}

impl Drop for StreamedRam {
    fn drop(&mut self) {
        self.settle();
    }
}

impl Medium for StreamedRam {
    fn submit(&mut self, mut job: Job) -> Option<CompletedJob> {
        let result = self.perform(&job.request, &mut job.buffer);
        Some(job.finish(result))
    }

    fn capacity(&self) -> BlockCount {
        self.ram.capacity()
    }

    fn block_size(&self) -> BlockSize {
        self.ram.block_size()
    }

    fn is_read_only(&self) -> bool {
        self.ram.is_read_only()
    }

    fn writes_atomically(&self) -> bool {
        self.ram.writes_atomically()
    }

    fn keeps_state(&self) -> bool {
        self.ram.keeps_state()
    }

    fn save_state(&mut self, state: &[u8]) -> io::Result<()> {
        self.ram.save_state(state)
    }

    fn load_state(&self) -> io::Result<Option<Vec<u8>>> {
        self.ram.load_state()
    }

    fn describe(&self) -> String {
        self.ram.describe()
    }
}

/// Copies `from` to `to`, which is as long: lines that are whole by streaming stores, the rest as ever.
///
/// # Safety
/// Until this thread has called [`fence`] `to` must be neither read nor changed except by this function.
#[inline]
unsafe fn copy(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len(), "it is as long");
    #[cfg(target_arch = "x86_64")]
    {
        let before = to.as_ptr().align_offset(lines::BYTES).min(to.len());
        let ((head, to), (head_from, from)) = (to.split_at_mut(before), from.split_at(before));
        let ((to, tail), (from, tail_from)) = (to.as_chunks_mut(), from.as_chunks());
        lines::copy(to, from);
        for (to, from) in [(head, head_from), (tail, tail_from)] {
            if !to.is_empty() {
                cold_path();
                to.copy_from_slice(from);
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    to.copy_from_slice(from);
}

/// Makes the copies of this thread visible to all that see its later stores.
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction, which does nothing but wait.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(target_arch = "x86_64")]
mod lines {
    use std::arch::x86_64::{
        __m128i, _mm_loadu_si128, _mm_stream_si128, _mm512_loadu_si512, _mm512_stream_si512,
    };

    /// Bytes of a line.
    pub(super) const BYTES: usize = 64;

    /// Copies lines. Where they go each is aligned.
    #[inline]
    pub(super) fn copy(to: &mut [[u8; BYTES]], from: &[[u8; BYTES]]) {
        assert!(to.is_empty() || to.as_ptr().addr().is_multiple_of(BYTES), "lines go to lines");
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has these instructions.
            unsafe { in_one(to, from) };
        } else {
            in_four(to, from);
        }
    }

    /// Lines that are copied between two looks at whether there are more.
    const AT_ONCE: usize = 8;

    /// A line by one store.
    #[target_feature(enable = "avx512f")]
    fn in_one(to: &mut [[u8; BYTES]], from: &[[u8; BYTES]]) {
        let ((to, last), (from, last_from)) = (to.as_chunks_mut::<AT_ONCE>(), from.as_chunks::<AT_ONCE>());
        for (to, from) in to.iter_mut().zip(from) {
            each_in_one(to, from);
        }
        each_in_one(last, last_from);
    }

    /// The same of so many that the loop goes, if their number is known.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn each_in_one(to: &mut [[u8; BYTES]], from: &[[u8; BYTES]]) {
        for (to, from) in to.iter_mut().zip(from) {
            // SAFETY: both are as long as what is read and written, and the latter is aligned.
            unsafe { _mm512_stream_si512(to.as_mut_ptr().cast(), _mm512_loadu_si512(from.as_ptr().cast())) };
        }
    }

    /// A line by four.
    fn in_four(to: &mut [[u8; BYTES]], from: &[[u8; BYTES]]) {
        const PART: usize = size_of::<__m128i>();
        for (to, from) in to.iter_mut().zip(from) {
            for (to, from) in to.as_chunks_mut::<PART>().0.iter_mut().zip(from.as_chunks::<PART>().0) {
                // SAFETY: both are as long as what is read and written, and the latter is aligned.
                unsafe { _mm_stream_si128(to.as_mut_ptr().cast(), _mm_loadu_si128(from.as_ptr().cast())) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::suite;
    use super::*;
    use proptest::prelude::*;

    /// One that writes past the caches although it is small.
    fn streamed(size: ByteCount, block_size: BlockSize) -> StreamedRam {
        let ram = RamMedium::new(size, block_size).expect("there is memory");
        let mut medium = StreamedRam::new(ram);
        medium.is_large = true;
        medium
    }

    #[test]
    fn behaves_like_the_model() {
        suite::behaves_like_the_model(|size, block_size| Box::new(streamed(size, block_size)));
    }

    #[test]
    fn refuses_what_the_target_never_asks() {
        suite::refuses_what_the_target_never_asks(&mut streamed(ByteCount(1 << 20), BlockSize::B512));
    }

    #[test]
    fn only_large_ones_are_written_past_the_caches() {
        let of = |mib: u64| {
            StreamedRam::new(RamMedium::new(ByteCount(mib << 20), BlockSize::B4096).expect("there is memory"))
        };
        assert!(!of(63).streams() && of(64).streams());
    }

    #[test]
    fn every_read_waits_for_earlier_writes() {
        let mut medium = streamed(ByteCount(1 << 20), BlockSize::B512);
        let extent = Extent::new(1, 1);
        let write = suite::request(MediumOp::Write { fua: false }, extent, 512);
        medium.perform(&write, &mut [7; 512]).expect("there is room");
        assert!(medium.is_pending);
        let mut bytes = [0; 512];
        medium.perform(&suite::request(MediumOp::Read, extent, 512), &mut bytes).expect("it is there");
        assert!(!medium.is_pending && bytes == [7; 512]);
    }

    proptest! {
        #[test]
        fn bytes_go_where_they_belong(at in 0usize..130, from in prop::collection::vec(any::<u8>(), 0..700)) {
            let len = from.len();
            let mut to = vec![0xa5; at + len + 70];
            // SAFETY: no one else has it, and what looks at it comes after the fence.
            unsafe { copy(&mut to[at..at + len], &from) };
            fence();
            prop_assert!(to[..at].iter().chain(&to[at + len..]).all(|&byte| byte == 0xa5));
            prop_assert_eq!(&to[at..at + len], &from[..]);
        }
    }
}
