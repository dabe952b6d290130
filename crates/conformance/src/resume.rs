//! A pass over all blocks of a drive that can be continued after an interruption.
//!
//! A saved run has the place up to which everything was done, and the wrong blocks so far; the stamps of blocks follow from the
//! run's number. Left out: where it is saved, which is the caller's. Always true: blocks before the saved place were flushed to the
//! drive before the place was saved.

/// Identifies a drive: a run is continued on no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveIdentity {
    /// idVendor, idProduct and bcdDevice.
    pub ids: [u16; 3],
    /// The serial number of the device; empty if it has none.
    pub serial: String,
    /// The blocks that it announces.
    pub blocks: u64,
    /// Bytes of each.
    pub block_bytes: u32,
}

/// A run over all blocks, as far as it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeRun {
    /// The drive.
    pub drive: DriveIdentity,
    /// The number of the run, which is in each stamp.
    pub session: u32,
    /// The fault that the probe at powers of two found before the run, if it found one.
    pub probe_fault: Option<String>,
    /// Blocks that were written, from LBA 0 on.
    pub written: u64,
    /// Blocks that were read, from LBA 0 on, after all were written.
    pub read: u64,
    /// Wrong blocks so far.
    pub wrong: Vec<WrongBlocks>,
    /// The last ones, if they all have the same content: another one with it may follow.
    pub repeated: Option<RepeatedBlock>,
}

/// Wrong blocks with the same content, which are not yet counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedBlock {
    /// Their kind if there is only one, their number, and the first.
    pub wrong: WrongBlocks,
    /// Their content.
    pub content: Vec<u8>,
}

/// Wrong blocks of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongBlocks {
    /// Its name: `wrapped`, `swapped`, `stuck`, `dropped`, `aged` or `damaged`.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// The LBA of the first.
    pub first: u64,
    /// The LBA whose data it holds.
    pub holds: u64,
}

/// A run that may be continued, and a place to save it.
pub trait RunStore {
    /// Returns the run to continue, if there is one.
    fn saved(&self) -> Option<&WholeRun>;

    /// Saves a run; `None` if it is complete and will not be continued.
    ///
    /// # Errors
    ///
    /// Why it cannot be saved, in words.
    fn save(&mut self, run: Option<&WholeRun>) -> Result<(), String>;

    /// Keeps the fault that the probe before a run has found.
    fn keep_probe_fault(&mut self, fault: Option<String>);

    /// Returns that fault.
    fn probe_fault(&self) -> Option<String>;
}
