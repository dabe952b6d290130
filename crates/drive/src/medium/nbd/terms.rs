//! Terms that were agreed with a server on an export.

use wire::nbd::TransmissionFlags;

/// Terms of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// Size of the export in bytes.
    pub(super) size_bytes: u64,
    /// Abilities of the server with it.
    pub(super) flags: TransmissionFlags,
    /// Offsets and lengths are multiples of this, in bytes.
    pub(super) block_min: u32,
    /// Bytes of payload of one request at most.
    pub(super) payload_max: u32,
    /// Whether replies are structured.
    pub(super) is_structured: bool,
    /// Id of the context `base:allocation`, if the server has it.
    pub(super) allocation: Option<u32>,
}

impl Terms {
    /// Whether the server can do this.
    pub(super) const fn can(&self, flag: TransmissionFlags) -> bool {
        self.flags.has(flag)
    }
}
