//! DEVICE_GET_IRQ_INFO and DEVICE_SET_IRQS: interrupts (vfio-user.rst; linux/vfio.h, `struct vfio_irq_info` and
//! `vfio_irq_set`).

use super::Command;

code! {
    /// The interrupt types of a PCI device.
    pub enum Interrupt: u32 {
        /// A legacy interrupt line.
        IntX = 0 => "INTx",
        /// Message signaled interrupts.
        Msi = 1 => "MSI",
        /// Message signaled interrupts with a table.
        MsiX = 2 => "MSI-X",
        /// An error of the device.
        Error = 3 => "ERR",
        /// The server wants the device back.
        Request = 4 => "REQ",
    }
}

register_bits! {
    /// Properties of an interrupt type.
    pub struct IrqFlags: u32 {
        /// Its vectors signal eventfds.
        EVENTFD = 0x01 => "eventfd",
        /// Its vectors can be masked.
        MASKABLE = 0x02 => "maskable",
        /// A vector masks itself when it is signaled.
        AUTOMASKED = 0x04 => "automasked",
        /// Its vectors are set all at once.
        NO_RESIZE = 0x08 => "no resize",
    }
}

register_bits! {
    /// Action on vectors, and the type of its data: one of each.
    pub struct IrqSetFlags: u32 {
        /// There are no data: all vectors of the range.
        DATA_NONE = 0x01 => "no data",
        /// A byte for each vector.
        DATA_BOOL = 0x02 => "a byte each",
        /// A descriptor for each vector, beside the message.
        DATA_EVENTFD = 0x04 => "an eventfd each",
        /// Masks.
        MASK = 0x08 => "mask",
        /// Unmasks.
        UNMASK = 0x10 => "unmask",
        /// Sets the eventfds to signal, or signals.
        TRIGGER = 0x20 => "trigger",
    }
}

fixed_layout! {
    /// A question of the client, and the answer in the same structure.
    pub struct IrqInfo is Command::IrqInfo => {
        /// Bytes of this structure.
        size: u32 as u32,
        /// Properties.
        flags: IrqFlags as u32,
        /// The interrupt type.
        kind: Interrupt as u32,
        /// How many vectors there are.
        count: u32 as u32,
    }
}

fixed_layout! {
    /// A change of vectors. Bytes follow with [`IrqSetFlags::DATA_BOOL`].
    pub struct IrqSet is Command::IrqSet => {
        /// Bytes of this structure and what follows.
        size: u32 as u32,
        /// Action, and the type of its data.
        flags: IrqSetFlags as u32,
        /// The interrupt type.
        kind: Interrupt as u32,
        /// The first vector.
        start: u32 as u32,
        /// How many vectors; none with no data means that all are disabled.
        count: u32 as u32,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn eventfds_of_two_vectors() {
        let bytes = [20, 0, 0, 0, 0x24, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0];
        let set = IrqSet::decode(&bytes).unwrap();
        assert_eq!((set.kind, set.start, set.count), (Interrupt::MsiX, 1, 2));
        assert!(set.flags.has(IrqSetFlags::DATA_EVENTFD.with(IrqSetFlags::TRIGGER)));
        assert_eq!(set.encode(), bytes);
        let line = "DEVICE_SET_IRQS, size 20, flags an eventfd each trigger, kind MSI-X, start 1, count 2";
        assert_eq!(set.to_string(), line);
    }

    #[test]
    fn the_vectors_of_a_type() {
        let bytes = [16, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 16, 0, 0, 0];
        let info = IrqInfo::decode(&bytes).unwrap();
        assert!(info.flags.has(IrqFlags::EVENTFD) && !info.flags.has(IrqFlags::MASKABLE));
        assert_eq!(info.encode(), bytes);
    }
}
