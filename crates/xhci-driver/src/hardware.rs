//! The two doors to a controller: its registers, and the memory that it shares with the driver.
//!
//! A simulated controller stands behind them as well as a real one. The driver holds neither: every call gets them
//! handed in. Left out: interrupts, which the one who owns the controller takes.
//!
//! Owed by who implements them: accesses reach the controller in the order of the calls, and one of 32 bits is never
//! torn. On real hardware that takes volatile accesses, a release fence before every write and an acquire fence after
//! every read.

use wire::xhci::TRB_BYTES;

/// The controller's registers, by their offset from the beginning of its memory-mapped range.
pub trait Registers {
    /// Reads 32 bits. A controller that was pulled out reads as all ones.
    fn read_register(&mut self, offset: u32) -> u32;

    /// Writes 32 bits.
    fn write_register(&mut self, offset: u32, value: u32);

    /// Writes 64 bits, the low half first, as the standard wants of who cannot write them at once (clause 5.1).
    fn write_register64(&mut self, offset: u32, value: u64) {
        let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
        self.write_register(offset, u32::from_le_bytes([a, b, c, d]));
        self.write_register(offset.saturating_add(4), u32::from_le_bytes([e, f, g, h]));
    }
}

/// What a piece of shared memory must be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DmaLayout {
    /// How long it is, in bytes; not 0.
    pub bytes: u32,
    /// Its address is a multiple of this, a power of two.
    pub align: u32,
    /// It lies within a block of this many bytes, a power of two, that begins at a multiple of it.
    pub boundary: u32,
}

/// Memory that the controller sees, by its bus address.
pub trait DmaMemory {
    /// A piece of zeroes. `None` if there is none left. For a controller without 64-bit addresses
    /// ([`wire::xhci::ControllerFeatures::ADDRESS_64`]) it lies below 4 GiB, and so do the buffers of transfers.
    fn allocate(&mut self, layout: DmaLayout) -> Option<u64>;

    /// Gives a piece back that was allocated with this layout.
    fn release(&mut self, address: u64, layout: DmaLayout);

    /// Reads bytes.
    fn read_bytes(&mut self, address: u64, into: &mut [u8]);

    /// Writes bytes.
    fn write_bytes(&mut self, address: u64, bytes: &[u8]);

    /// Writes four bytes at once, at a multiple of four.
    fn write_u32(&mut self, address: u64, value: u32) {
        self.write_bytes(address, &value.to_le_bytes());
    }

    /// Writes a TRB. Its last four bytes, where the cycle bit is, are seen at once and not before the others.
    fn write_trb(&mut self, address: u64, trb: &[u8; TRB_BYTES]) {
        let [others @ .., a, b, c, d] = trb;
        let others: &[u8; TRB_BYTES - 4] = others;
        self.write_bytes(address, others);
        self.write_u32(address + others.len() as u64, u32::from_le_bytes([*a, *b, *c, *d]));
    }

    /// Reads a TRB that the controller may be writing now: its last four bytes first, which the controller writes last
    /// (clause 4.9.2).
    fn read_trb(&mut self, address: u64) -> [u8; TRB_BYTES] {
        let mut trb = [0; TRB_BYTES];
        let (others, control) = trb.split_at_mut(TRB_BYTES - 4);
        self.read_bytes(address + others.len() as u64, control);
        self.read_bytes(address, others);
        trb
    }
}

/// Both doors.
pub trait Hardware: Registers + DmaMemory {}

impl<T: Registers + DmaMemory> Hardware for T {}

/// The block that most structures must not cross (table 6-1): 64 KiB.
pub(crate) const BOUNDARY: u32 = 64 << 10;

impl DmaLayout {
    /// A structure that stays within 64 KiB.
    pub(crate) const fn within_64k(bytes: u32, align: u32) -> Self {
        Self { bytes, align, boundary: BOUNDARY }
    }
}
