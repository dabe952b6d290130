//! xHCI: what a host controller and its driver put into each other's memory and registers.
//!
//! xHCI 1.2: transfer request blocks (clause 6.4), contexts (6.2), the event ring's segment table (6.5), registers (5)
//! and extended capabilities (7). Everything is little-endian. Names are the standard's, spelt out.
//!
//! Left out: isochronous TRBs, virtualisation (FORCE EVENT, virtual functions), debug capability, port bandwidth,
//! extended properties.
//!
//! Always true: reserved bits are ignored when decoding and zero when encoding; a pointer loses the low bits that
//! its field does not have; a completion code that is not known survives.

mod completion_code;
mod context;
mod doorbell;
mod extended;
mod register;
mod segment;
mod trb;

pub use completion_code::CompletionCode;
pub use context::{
    ContextSize, EndpointContext, EndpointId, EndpointState, EndpointType, InputControlContext, RouteString,
    SlotContext, SlotState, StreamContext, StreamContextType,
};
pub use doorbell::Doorbell;
pub use extended::{
    ExtendedCapability, ExtendedCapabilityId, LegacySupport, LinkSpeed, ProtocolRevision, SupportedProtocol,
};
pub use register::{
    CapabilityRegisters, CommandRingControl, Configure, ControllerFeatures, EventRingDequeue,
    InterrupterManagement, InterrupterModeration, LinkState, MoreFeatures, PageSize, PortChanges, PortParts,
    PortPower, PortStatus, PortWrite, UsbCommand, UsbStatus, offset,
};
pub use segment::EventRingSegment;
pub use trb::{
    CommandTrb, EventTrb, StreamDequeue, TRB_BYTES, TransferKind, TransferTrb, TrbFlags, TrbType, cycle_of,
    trb_type_of,
};

use crate::DecodeError;

/// The `width` bits of `word` from bit `low` up.
const fn field(word: u32, low: u32, width: u32) -> u32 {
    word >> low & ((1 << width) - 1)
}

/// `value` at bit `low`; what does not fit into `width` bits is cut.
const fn place(value: u32, low: u32, width: u32) -> u32 {
    (value & ((1 << width) - 1)) << low
}

/// Whether bit `at` of `word` is set.
const fn flag(word: u32, at: u32) -> bool {
    word >> at & 1 == 1
}

/// Bit `at`, if `set`.
const fn bit(set: bool, at: u32) -> u32 {
    (set as u32) << at
}

/// The first `N` dwords.
fn dwords<const N: usize>(bytes: &[u8]) -> Result<[u32; N], DecodeError> {
    let mut words = [0; N];
    let (chunks, _) = bytes.as_chunks::<4>();
    if chunks.len() < N {
        return Err(DecodeError::Truncated { needed: 4 * N, got: bytes.len() });
    }
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = u32::from_le_bytes(*chunk);
    }
    Ok(words)
}

/// `words` as bytes; `N` is four times as many.
fn bytes_of<const N: usize>(words: &[u32]) -> [u8; N] {
    let mut bytes = [0; N];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The 64 bits of two dwords, low one first.
const fn wide(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// The low and the high dword of a pointer whose low `bits` bits are other things.
const fn pointer(address: u64, bits: u32) -> [u32; 2] {
    let address = address >> bits << bits;
    [address as u32, (address >> 32) as u32]
}
