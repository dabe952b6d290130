//! Registers (xHCI 1.2 clause 5): what is capable, operational and of the run time.
//!
//! A register that is written back is a value that keeps every bit; what must not be written back (bits that a one
//! clears) is left out by the call that makes the write. Left out: power management of ports of USB 2.0, and the debug
//! registers.

mod capability;
mod operational;
mod port;
mod port_power;
mod runtime;

pub use capability::{CapabilityRegisters, ControllerFeatures, MoreFeatures};
pub use operational::{CommandRingControl, Configure, PageSize, UsbCommand, UsbStatus};
pub use port::{LinkState, PortChanges, PortParts, PortStatus, PortWrite};
pub use port_power::PortPower;
pub use runtime::{EventRingDequeue, InterrupterManagement, InterrupterModeration};

/// Where registers are, in bytes.
pub mod offset {
    /// From the operational base.
    pub const USB_COMMAND: u32 = 0x00;
    /// From the operational base.
    pub const USB_STATUS: u32 = 0x04;
    /// From the operational base.
    pub const PAGE_SIZE: u32 = 0x08;
    /// From the operational base; which notifications raise events.
    pub const DEVICE_NOTIFICATION_CONTROL: u32 = 0x14;
    /// From the operational base; 64 bits.
    pub const COMMAND_RING_CONTROL: u32 = 0x18;
    /// Device context base address array pointer, from the operational base; 64 bits.
    pub const DEVICE_CONTEXT_ARRAY: u32 = 0x30;
    /// From the operational base.
    pub const CONFIGURE: u32 = 0x38;
    /// Microframe index, from the run-time base.
    pub const MICROFRAME_INDEX: u32 = 0x00;
    /// From an interrupter's registers.
    pub const INTERRUPTER_MANAGEMENT: u32 = 0x00;
    /// From an interrupter's registers.
    pub const INTERRUPTER_MODERATION: u32 = 0x04;
    /// Entries of the segment table, from an interrupter's registers.
    pub const EVENT_RING_SEGMENTS: u32 = 0x08;
    /// The segment table, from an interrupter's registers; 64 bits.
    pub const EVENT_RING_TABLE: u32 = 0x10;
    /// From an interrupter's registers; 64 bits.
    pub const EVENT_RING_DEQUEUE: u32 = 0x18;

    /// A port's status and control register, from the operational base. Ports count from 1.
    pub const fn port_status(port: u8) -> u32 {
        0x400 + 0x10 * (port as u32).saturating_sub(1)
    }

    /// A port's power management status and control register, from the operational base.
    pub const fn port_power(port: u8) -> u32 {
        port_status(port) + 4
    }

    /// An interrupter's registers, from the run-time base.
    pub const fn interrupter(number: u16) -> u32 {
        0x20 + 0x20 * number as u32
    }

    /// A slot's doorbell, from the doorbell base; 0 is the controller's.
    pub const fn doorbell(slot: u8) -> u32 {
        4 * slot as u32
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn arrays_of_registers_begin_where_the_standard_says() {
            assert_eq!([port_status(1), port_status(4)], [0x400, 0x430]);
            assert_eq!([port_power(1), port_power(4)], [0x404, 0x434]);
            assert_eq!([interrupter(0), interrupter(1)], [0x20, 0x40]);
            assert_eq!([doorbell(0), doorbell(255)], [0, 0x3fc]);
        }
    }
}
