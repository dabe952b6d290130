//! How far the tests go that write.

use units::ByteCount;

/// Bytes that the tests of level 2 overwrite at most, unless given.
pub const WRITE_BYTES: ByteCount = ByteCount(1 << 30);

/// Bytes that are written in any order at most, over each transport one and a half times, and read as often: enough to use all
/// tags often.
pub const SCATTERED_BYTES: ByteCount = ByteCount(256 << 20);

/// Power losses of a virtual drive, unless given.
pub const POWER_CYCLES: u32 = 20;

/// How far the tests go that write.
#[derive(Clone, Copy, Debug)]
pub struct WriteLimits {
    /// Bytes from LBA 0 on that the tests of level 2 may overwrite.
    pub bytes: ByteCount,
    /// Power losses of a virtual drive.
    pub power_cycles: u32,
    /// Decides what each power loss leaves.
    pub seed: u64,
}

impl Default for WriteLimits {
    fn default() -> Self {
        Self { bytes: WRITE_BYTES, power_cycles: POWER_CYCLES, seed: 1 }
    }
}
