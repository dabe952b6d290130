//! Configuration space of the function (PCI Local Bus 3.0 clause 6, PCI Express 3.0 clause 7, xHCI 1.2 clause 5.2).
//!
//! A table says what each register reads and which of its bits can be written. Hypervisors keep much of it themselves (BARs,
//! the tables of MSI and MSI-X); what they pass on is stored here.
//!
//! ```text
//!   00h header    50h power management    60h SBRN, FLADJ    70h MSI    90h MSI-X    a0h PCI Express
//! ```

/// Bytes of the space of a PCI Express function.
pub(super) const CONFIG_BYTES: usize = 4096;
/// Bytes of BAR 0.
pub(super) const BAR_BYTES: u64 = 0x8000;
/// Where the MSI-X table and its pending bits are in BAR 0, each in its own page.
const TABLE: u32 = 0x3000;
const PENDING: u32 = 0x4000;

/// Vectors of MSI-X: one interrupter has one.
pub(super) const MSIX_VECTORS: u32 = 1;

/// An experimental id of the range that Red Hat has set aside for devices without a registered one (QEMU,
/// docs/specs/pci-ids.rst).
const VENDOR: u16 = 0x1af4;
const DEVICE: u16 = 0x10f1;

const DEVICE_CONTROL: usize = 0xa8;
/// Initiate Function Level Reset, in the high byte of Device Control.
const RESET: u8 = 0x80;

/// A register: offset, length in bytes, value after a reset, bits that can be written.
struct Register(usize, usize, u32, u32);

const REGISTERS: &[Register] = &[
    Register(0x00, 2, VENDOR as u32, 0),
    Register(0x02, 2, DEVICE as u32, 0),
    // Command: memory space, bus master, parity, SERR#, interrupt disable.
    Register(0x04, 2, 0, 0x0546),
    // Status: there is a list of capabilities.
    Register(0x06, 2, 0x0010, 0),
    // Revision; an xHCI.
    Register(0x08, 4, 0x0c03_3001, 0),
    Register(0x0c, 1, 0, 0xff),
    // BAR 0: memory, 64 bits, not prefetchable.
    Register(0x10, 4, 0x0000_0004, !(BAR_BYTES as u32 - 1)),
    Register(0x14, 4, 0, u32::MAX),
    Register(0x2c, 2, VENDOR as u32, 0),
    Register(0x2e, 2, DEVICE as u32, 0),
    Register(0x34, 1, 0x50, 0),
    // Interrupt line; there is no pin.
    Register(0x3c, 1, 0, 0xff),
    // Power management 1.2, no state but D0 and D3, which keeps registers.
    Register(0x50, 2, 0x7001, 0),
    Register(0x52, 2, 0x0003, 0),
    Register(0x54, 2, 0x0008, 0x0003),
    // Serial Bus Release Number: USB 3.0. Frame Length Adjustment.
    Register(0x60, 1, 0x30, 0),
    Register(0x61, 1, 0x20, 0x3f),
    // MSI, 64 bits, one vector.
    Register(0x70, 2, 0x9005, 0),
    Register(0x72, 2, 0x0080, 0x0071),
    Register(0x74, 4, 0, 0xffff_fffc),
    Register(0x78, 4, 0, u32::MAX),
    Register(0x7c, 2, 0, 0xffff),
    // MSI-X.
    Register(0x90, 2, 0xa011, 0),
    Register(0x92, 2, MSIX_VECTORS - 1, 0xc000),
    Register(0x94, 4, TABLE, 0),
    Register(0x98, 4, PENDING, 0),
    // PCI Express 2, endpoint; role-based error reporting, function level reset; one lane of the first generation.
    Register(0xa0, 2, 0x0010, 0),
    Register(0xa2, 2, 0x0002, 0),
    Register(0xa4, 4, 0x1000_8000, 0),
    Register(DEVICE_CONTROL, 2, 0x2810, 0x7eff),
    Register(0xac, 4, 0x0000_0011, 0),
    Register(0xb0, 2, 0, 0x0043),
    Register(0xb2, 2, 0x0011, 0),
];

/// The space as it stands.
#[derive(Clone, Debug)]
pub(super) struct ConfigSpace {
    bytes: Box<[u8; CONFIG_BYTES]>,
}

impl ConfigSpace {
    /// The space after power-on.
    pub(super) fn new() -> Self {
        let mut bytes = Box::new([0; CONFIG_BYTES]);
        for &Register(offset, length, value, _) in REGISTERS {
            bytes[offset..offset + length].copy_from_slice(&value.to_le_bytes()[..length]);
        }
        Self { bytes }
    }

    /// Reads from `offset` on; beyond the end it is all zeros.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) {
        let bytes = usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..)).unwrap_or(&[]);
        for (place, byte) in into.iter_mut().zip(bytes.iter().chain(std::iter::repeat(&0))) {
            *place = *byte;
        }
    }

    /// Writes the bits that can be written. Returns whether that resets the function.
    #[must_use]
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let mut resets = false;
        let places = usize::try_from(offset).unwrap_or(CONFIG_BYTES)..CONFIG_BYTES;
        for (at, byte) in places.zip(bytes) {
            let place = &mut self.bytes[at];
            let mask = mask(at);
            *place = *place & !mask | byte & mask;
            resets |= at == DEVICE_CONTROL + 1 && byte & RESET != 0;
        }
        resets
    }
}

/// Which bits of a byte can be written.
fn mask(at: usize) -> u8 {
    let register = REGISTERS.iter().find(|register| (register.0..register.0 + register.1).contains(&at));
    register.map_or(0, |&Register(offset, _, _, mask)| (mask >> (8 * (at - offset))) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(space: &ConfigSpace, offset: u64) -> u32 {
        let mut bytes = [0; 4];
        space.read(offset, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    #[test]
    fn registers_do_not_overlap() {
        for pair in REGISTERS.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{:#x}", pair[1].0);
        }
    }

    #[test]
    fn the_list_of_capabilities_ends() {
        let space = ConfigSpace::new();
        let (mut at, mut ids) = (word(&space, 0x34) as u8, Vec::new());
        while at != 0 {
            ids.push(word(&space, at.into()) as u8);
            at = (word(&space, at.into()) >> 8) as u8;
            assert!(ids.len() < 10);
        }
        assert_eq!(ids, [0x01, 0x05, 0x11, 0x10]);
    }

    #[test]
    fn a_driver_finds_the_size_of_the_bar() {
        let mut space = ConfigSpace::new();
        assert!(!space.write(0x10, &[0xff; 8]));
        assert_eq!((word(&space, 0x10), word(&space, 0x14)), (0xffff_8004, 0xffff_ffff));
    }

    #[test]
    fn read_only_bits_stay() {
        let mut space = ConfigSpace::new();
        for offset in 0..CONFIG_BYTES as u64 {
            let _ = space.write(offset, &[0xff]);
        }
        assert_eq!(word(&space, 0), 0x10f1_1af4);
        assert_eq!(word(&space, 0x04), 0x0010_0546);
        assert_eq!(word(&space, 0x60), 0x0000_3f30);
        assert_eq!(word(&space, 0x90), 0xc000_a011);
        assert_eq!(word(&space, 0xfffc), 0, "beyond the end");
    }

    #[test]
    fn a_function_level_reset_is_noticed() {
        let mut space = ConfigSpace::new();
        assert!(space.write(0xa8, &[0, 0x80]));
        assert_eq!(word(&space, 0xa8) & 0x8000, 0, "the bit reads as 0");
        assert!(!space.write(u64::MAX, &[0xff; 4]));
    }
}
