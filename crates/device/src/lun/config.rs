//! Configuration of a logical unit: names, geometry and capabilities, fixed before it is plugged in.

use super::UnitType;
use super::limits;
use super::recorded::RecordedUnit;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use units::{BlockCount, BlockSize};

/// Configuration of a logical unit.
#[derive(Clone, Debug)]
pub struct LogicalUnitConfig {
    /// Kind of device. An optical drive has a removable medium, blocks of 2048 bytes, and is read-only.
    pub unit_type: UnitType,
    /// T10 vendor identification, ASCII, at most 8 bytes are reported.
    pub vendor: String,
    /// Product identification, ASCII, at most 16 bytes are reported.
    pub product: String,
    /// Product revision level, ASCII, at most 4 bytes are reported.
    pub revision: String,
    /// Unit serial number, ASCII.
    pub serial: String,
    /// World Wide Name in NAA format (SPC-4 clause 7.8.6.6).
    pub naa: u64,
    /// Logical block length.
    pub block_size: BlockSize,
    /// How many blocks there are.
    pub capacity: BlockCount,
    /// Bytes of a transfer that is large enough to be fast: a multiple of the block, see
    /// [`transfer_bytes_optimal`](super::limits::transfer_bytes_optimal).
    pub transfer_bytes_optimal: u32,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether the medium can be taken out (RMB, START STOP UNIT with LOEJ).
    pub removable: bool,
    /// Whether it reports the rotation rate of a disk rather than "solid state".
    pub rotational: bool,
    /// Temperature to report in degrees Celsius, constant; at most 254, since 255 means "not known" on the
    /// wire (SPC-5, Temperature log page). `None`: no temperature.
    pub temperature_c: Option<u8>,
    /// Whether unit attention conditions are never reported, as by faulty firmware (SAM-5 clause 5.14).
    pub loses_attentions: bool,
    /// Whether the medium stores [`LogicalUnit::durable_state`](super::LogicalUnit::durable_state) (APTPL, saved mode pages).
    pub durable: bool,
    /// Whether the medium can write all or nothing ([`MediumOp::WriteAtomic`](crate::medium::MediumOp::WriteAtomic)).
    pub atomic_writes: bool,
    /// The last saved [`LogicalUnit::durable_state`](super::LogicalUnit::durable_state), if there is one.
    pub durable_state: Option<Vec<u8>>,
    /// The unit whose recorded answers it returns instead.
    pub recorded: Option<Box<RecordedUnit>>,
}

/// The highest temperature at which a unit that reports one works, in degrees Celsius: REFERENCE TEMPERATURE of the
/// Temperature log page (SPC-5).
pub const REFERENCE_CELSIUS: u8 = 70;

impl LogicalUnitConfig {
    /// Returns the configuration of a writable solid-state unit of this size, without removable medium, durable state
    /// or atomic writes. The names are placeholders.
    pub fn new(block_size: BlockSize, capacity: BlockCount) -> Self {
        Self {
            unit_type: UnitType::Disk,
            vendor: "uaskit".into(),
            product: "Virtual Drive".into(),
            revision: "1".into(),
            serial: "0123456789AB".into(),
            naa: 0x3000_0000_0000_0001,
            block_size,
            capacity,
            transfer_bytes_optimal: limits::TRANSFER_BYTES_OPTIMAL_MAX,
            read_only: false,
            removable: false,
            rotational: false,
            temperature_c: None,
            loses_attentions: false,
            durable: false,
            atomic_writes: false,
            durable_state: None,
            recorded: None,
        }
    }
}
