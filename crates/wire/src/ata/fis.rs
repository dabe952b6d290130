//! Frame information structures of Serial ATA (Serial ATA 3.x clause 10.5), one per file.
//!
//! Byte 0 is the type, byte 1 has flags and the port of a port multiplier (bits 3:0). Left out: BIST
//! Activate and the vendor's own, whose types have names only. Reserved bytes are zero and not preserved.

mod data;
mod device_to_host;
mod dma_setup;
mod host_to_device;
mod pio_setup;
mod set_device_bits;

pub use data::{DataFis, DmaActivateFis};
pub use device_to_host::DeviceToHostFis;
pub use dma_setup::DmaSetupFis;
pub use host_to_device::HostToDeviceFis;
pub use pio_setup::PioSetupFis;
pub use set_device_bits::SetDeviceBitsFis;

use super::LBA_MASK;
use crate::DecodeError;

code! {
    /// Type of a frame, its byte 0.
    pub enum FisType: u8 {
        /// Registers to the device: a command or a reset.
        RegisterHostToDevice = 0x27 => "Register Host to Device",
        /// Registers from the device: a result or a signature.
        RegisterDeviceToHost = 0x34 => "Register Device to Host",
        /// The device is ready for data of a DMA write.
        DmaActivate = 0x39 => "DMA Activate",
        /// Begins the data phase of a queued command.
        DmaSetup = 0x41 => "DMA Setup",
        /// Data, either way.
        Data = 0x46 => "Data",
        /// Built-in self-test of the link.
        BistActivate = 0x58 => "BIST Activate",
        /// Begins a block of PIO data.
        PioSetup = 0x5f => "PIO Setup",
        /// Queued commands are finished, or an event.
        SetDeviceBits = 0xa1 => "Set Device Bits",
    }
}

/// Byte 1: an interrupt is wanted.
const INTERRUPT: u8 = 0x40;
/// Byte 1: data goes to the host.
const TO_HOST: u8 = 0x20;
/// Byte 1: port of a port multiplier.
const PORT: u8 = 0x0f;

/// The first `N` bytes, if they are a frame of this type.
fn frame<const N: usize>(kind: FisType, bytes: &[u8]) -> Result<[u8; N], DecodeError> {
    let frame = bytes.first_chunk::<N>();
    let frame = *frame.ok_or(DecodeError::Truncated { needed: N, got: bytes.len() })?;
    match frame.first().map(|&found| (u8::from(kind), found)) {
        Some((expected, found)) if expected != found => {
            Err(DecodeError::WrongKind { expected: expected.into(), found: found.into() })
        }
        _ => Ok(frame),
    }
}

/// An LBA from its six bytes, least significant first.
fn lba([l0, l1, l2, l3, l4, l5]: [u8; 6]) -> u64 {
    u64::from_le_bytes([l0, l1, l2, l3, l4, l5, 0, 0])
}

/// The six bytes of an LBA, least significant first.
fn lba_bytes(lba: u64) -> [u8; 6] {
    let [l0, l1, l2, l3, l4, l5, ..] = (lba & LBA_MASK).to_le_bytes();
    [l0, l1, l2, l3, l4, l5]
}

/// `bit` if `set`.
const fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}
