//! Quirks of controllers by their PCI ids.
//!
//! The ids are those for which Linux has the same quirks (`drivers/usb/host/xhci-pci.c`), and those
//! that were seen here. Left out: quirks of what this driver does not do, such as suspend.

use crate::vfio::PciId;
use xhci_driver::Quirks;

/// Controllers whose streams do not work.
const BROKEN_STREAMS: &[PciId] = &[
    PciId { vendor: 0x1b73, device: 0x1000 },
    PciId { vendor: 0x1b73, device: 0x1009 },
    PciId { vendor: 0x1106, device: 0x3432 },
    PciId { vendor: 0x1b21, device: 0x1042 },
    PciId { vendor: 0x1b6f, device: 0x7023 },
    PciId { vendor: 0x1b6f, device: 0x7052 },
];

/// QEMU's qemu-xhci.
const QEMU: PciId = PciId { vendor: 0x1b36, device: 0x000d };

/// Returns the quirks of a controller, added to those that its owner knows.
pub(super) fn of(id: PciId, known: Quirks) -> Quirks {
    Quirks {
        broken_streams: known.broken_streams || BROKEN_STREAMS.contains(&id),
        no_secondary_streams: known.no_secondary_streams || id == QEMU,
        forgets_cycles: known.forgets_cycles || id == QEMU,
        ..known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quirks_are_those_of_the_id_and_those_of_the_owner() {
        let none = Quirks::default();
        assert_eq!(of(PciId { vendor: 0x8086, device: 0xa12f }, none), none);
        for (vendor, device) in [
            (0x1106, 0x3432),
            (0x1b21, 0x1042),
            (0x1b6f, 0x7023),
            (0x1b6f, 0x7052),
            (0x1b73, 0x1000),
            (0x1b73, 0x1009),
        ] {
            assert!(of(PciId { vendor, device }, none).broken_streams, "{vendor:04x}:{device:04x}");
            assert!(!of(PciId { vendor, device: device + 1 }, none).broken_streams, "{device:04x}");
        }
        let owners = of(QEMU, Quirks { no_soft_retry: true, ..none });
        let qemus = Quirks { no_secondary_streams: true, forgets_cycles: true, ..none };
        assert_eq!(owners, Quirks { no_soft_retry: true, ..qemus });
    }
}
