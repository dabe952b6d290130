//! Access to a controller: its registers, and the memory shared with the driver.
//!
//! Implemented by simulated and real controllers. The driver owns neither: every call gets them as
//! an argument. Left out: interrupts, which the owner of the controller handles.
//!
//! Implementations must pass accesses to the controller in the order of the calls and never tear
//! 32-bit ones. On real hardware that takes volatile accesses, a release fence before every write
//! and an acquire fence after every read.

use wire::xhci::TRB_BYTES;

/// The controller's registers, by their offset in its MMIO range.
pub trait Registers {
    /// Reads 32 bits. A removed controller reads as all ones.
    fn read_register(&mut self, offset: u32) -> u32;

    /// Writes 32 bits.
    fn write_register(&mut self, offset: u32, value: u32);

    /// Writes 64 bits, the low half first, as required where 64-bit writes are not atomic (clause
    /// 5.1).
    fn write_register64(&mut self, offset: u32, value: u64) {
        let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
        self.write_register(offset, u32::from_le_bytes([a, b, c, d]));
        self.write_register(offset.saturating_add(4), u32::from_le_bytes([e, f, g, h]));
    }
}

/// The layout of an allocation of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DmaLayout {
    /// Its length in bytes; not 0.
    pub bytes: u32,
    /// The alignment of its address, a power of two.
    pub align: u32,
    /// It lies within an aligned block of this many bytes, a power of two.
    pub boundary: u32,
}

/// Memory visible to the controller, by bus address.
pub trait DmaMemory {
    /// Allocates zeroed memory. `None` if there is none left. For a controller without 64-bit
    /// addresses ([`wire::xhci::ControllerFeatures::ADDRESS_64`]) it lies below 4 GiB, as must the
    /// buffers of transfers.
    fn allocate(&mut self, layout: DmaLayout) -> Option<u64>;

    /// Frees an allocation with this layout.
    fn release(&mut self, address: u64, layout: DmaLayout);

    /// Reads bytes.
    fn read_bytes(&mut self, address: u64, into: &mut [u8]);

    /// Writes bytes.
    fn write_bytes(&mut self, address: u64, bytes: &[u8]);

    /// Writes four bytes atomically, at a multiple of four.
    fn write_u32(&mut self, address: u64, value: u32) {
        self.write_bytes(address, &value.to_le_bytes());
    }

    /// Writes a TRB. Its last four bytes, with the cycle bit, become visible atomically and after
    /// the others.
    fn write_trb(&mut self, address: u64, trb: &[u8; TRB_BYTES]) {
        let [others @ .., a, b, c, d] = trb;
        let others: &[u8; TRB_BYTES - 4] = others;
        self.write_bytes(address, others);
        self.write_u32(address + others.len() as u64, u32::from_le_bytes([*a, *b, *c, *d]));
    }

    /// Reads a TRB that the controller may be writing: its last four bytes first, which the
    /// controller writes last (clause 4.9.2).
    fn read_trb(&mut self, address: u64) -> [u8; TRB_BYTES] {
        let mut trb = [0; TRB_BYTES];
        let (others, control) = trb.split_at_mut(TRB_BYTES - 4);
        self.read_bytes(address + others.len() as u64, control);
        self.read_bytes(address, others);
        trb
    }
}

/// Registers and memory.
pub trait Hardware: Registers + DmaMemory {}

impl<T: Registers + DmaMemory> Hardware for T {}

/// The boundary that most structures must not cross (table 6-1): 64 KiB.
pub(crate) const BOUNDARY: u32 = 64 << 10;

impl DmaLayout {
    /// A structure that does not cross 64 KiB.
    pub(crate) const fn within_64k(bytes: u32, align: u32) -> Self {
        Self { bytes, align, boundary: BOUNDARY }
    }
}
