//! How an image is opened.

use units::BlockSize;

/// How to open an image.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileOptions {
    /// Never change it.
    pub read_only: bool,
    /// The length of a block.
    pub block_size: BlockSize,
    /// It is a CD, DVD or BD: never changed, and a last block that is not whole is padded with zeroes.
    pub disc: bool,
    /// Past the page cache of the system. Payload must then be aligned in memory as the file wants it, and nothing is
    /// written atomically.
    pub direct: bool,
    /// Engine that makes the system calls.
    pub engine: Engine,
}

impl FileOptions {
    /// Returns how the image of a disc is opened.
    pub fn of_disc() -> Self {
        Self { read_only: true, block_size: BlockSize::B2048, disc: true, ..Self::default() }
    }
}

/// Engine that makes the system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The ring if there is one, else threads. Blocks of a file on a file system of memory are moved by the caller itself: it
    /// waits for a copy, and where memory is short for what was swapped out.
    #[default]
    Automatic,
    /// The ring or nothing.
    Ring,
    /// Threads.
    Threads,
}
