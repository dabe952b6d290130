//! The memory that a controller shares with its driver.
//!
//! Nothing that is read can be trusted to stay: a driver on another processor may write at any
//! time. So each TRB and each context is read once, and what was read is what counts. Left out:
//! how memory is mapped, which is the implementation's.

use wire::xhci::TRB_BYTES;

/// Bytes of a page (PAGESIZE, xHCI 1.2 clause 5.4.3).
pub(crate) const PAGE_BYTES: u64 = 4096;

/// An access outside of the memory. The controller answers it with Host System Error and halts
/// (xHCI 1.2 clause 4.10.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The address.
    pub address: u64,
}

/// Memory as a controller accesses it by DMA, at bus addresses.
///
/// Every access is checked and may fail; none may panic, whatever the address and the length.
pub trait GuestMemory {
    /// Reads `into.len()` bytes from `address` on.
    ///
    /// # Errors
    /// If not all of them exist.
    fn read_bytes(&self, address: u64, into: &mut [u8]) -> Result<(), Fault>;

    /// Writes `bytes` from `address` on.
    ///
    /// # Errors
    /// If not all of that memory exists.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault>;

    /// Reads an array.
    ///
    /// # Errors
    /// As [`Self::read_bytes`].
    #[inline]
    fn read<const N: usize>(&self, address: u64) -> Result<[u8; N], Fault> {
        let mut array = [0; N];
        self.read_bytes(address, &mut array)?;
        Ok(array)
    }

    /// Reads a TRB. If a driver writes it meanwhile, a right cycle bit must mean that the rest is
    /// there as well (xHCI 1.2 clause 4.9.2.2): memory shared with another processor reads the
    /// last word, which has that bit, before the others.
    ///
    /// # Errors
    /// As [`Self::read_bytes`].
    #[inline]
    fn read_trb(&self, address: u64) -> Result<[u8; TRB_BYTES], Fault> {
        self.read(address)
    }

    /// Writes a TRB. A driver on another processor must not see its cycle bit before the rest:
    /// shared memory writes the last word after the others.
    ///
    /// # Errors
    /// As [`Self::write`].
    #[inline]
    fn write_trb(&mut self, address: u64, trb: [u8; TRB_BYTES]) -> Result<(), Fault> {
        self.write(address, &trb)
    }

    /// Takes what a driver has stored at the doorbell of a slot (0: of the command ring) since the last call, if doorbells lie
    /// in memory ([`Controller::poll_doorbells`](crate::Controller::poll_doorbells)). `None`: nothing, or doorbells are registers.
    ///
    /// Everything that the driver wrote before that value must be visible to reads after this call.
    #[inline]
    fn take_doorbell(&self, slot: u8) -> Option<u32> {
        let _ = slot;
        None
    }

    /// Returns memory without a copy, if nothing else can write it meanwhile and it is contiguous;
    /// `None` otherwise, and for a fault.
    #[inline]
    fn borrow(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        let _ = (address, bytes);
        None
    }
}
