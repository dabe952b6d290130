//! What a logical unit is: names, geometry and capabilities that its owner decides before it is plugged in.

use alloc::string::String;
use alloc::vec::Vec;
use units::{BlockCount, BlockSize};

/// What a unit is, as its owner decides before it is plugged in.
#[derive(Clone, Debug)]
pub struct UnitConfig {
    /// T10 vendor identification, ASCII, 8 bytes at most are told.
    pub vendor: String,
    /// Product identification, ASCII, 16 bytes at most are told.
    pub product: String,
    /// Product revision level, ASCII, 4 bytes at most are told.
    pub revision: String,
    /// Unit serial number, ASCII.
    pub serial: String,
    /// World-wide name in NAA format (SPC-4 clause 7.8.6.6).
    pub naa: u64,
    /// Logical block length.
    pub block_size: BlockSize,
    /// How many blocks there are.
    pub capacity: BlockCount,
    /// Bytes of a transfer that is large enough to be fast: a multiple of the block, see
    /// [`limits::transfer_bytes_optimal`].
    pub transfer_bytes_optimal: u32,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether the medium can be taken out (RMB, START STOP UNIT with LOEJ).
    pub removable: bool,
    /// Whether it tells the rotation rate of a disk rather than "solid state".
    pub rotational: bool,
    /// What its thermometer tells in degrees Celsius, always the same; 254 at most, since 255 means "not known" on the
    /// wire (SPC-5, Temperature log page). `None`: it has no thermometer.
    pub temperature_c: Option<u8>,
    /// Whether the medium keeps [`Unit::durable_state`] (APTPL, saved mode pages).
    pub durable: bool,
    /// Whether the medium can write all or nothing ([`MediumOp::WriteAtomic`](crate::medium::MediumOp::WriteAtomic)).
    pub atomic_writes: bool,
    /// What [`Unit::durable_state`] gave when it was last kept, if it was.
    pub durable_state: Option<Vec<u8>>,
}
