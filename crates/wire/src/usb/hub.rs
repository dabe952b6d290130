//! Hubs: their descriptors, class requests, and the status of their ports (USB 2.0 clause 11.23 and 11.24, USB 3.2 clauses
//! 10.15 and 10.16).
//!
//! Left out: the state of transaction translators, port tests, indicators, error counts.

mod descriptor;
mod port_status;
mod request;
mod superspeed_descriptor;

pub use descriptor::HubDescriptor;
pub use port_status::{HubKind, HubPortChanges, HubPortSpeed, HubPortStatus};
pub use request::{HubFeature, HubRequest, HubRequestCode, PortFeature, TtBuffer};
pub use superspeed_descriptor::SuperSpeedHubDescriptor;

/// Reads the status change report of a hub: bit 0 is the hub's own, bit n that of port n (USB 2.0 clause 11.12.4).
pub fn reported_ports(report: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let bit = |port: u8| report.get(usize::from(port / 8)).is_some_and(|byte| byte >> (port % 8) & 1 != 0);
    (1..=PORTS_MAX).filter(move |&port| bit(port))
}

/// Writes a report of these ports, of two bytes: as many as a hub of SuperSpeed sends.
pub fn report_of(ports: impl Iterator<Item = u8>) -> [u8; 2] {
    let bits = ports.filter(|port| *port <= PORTS_MAX).fold(0_u16, |bits, port| bits | 1 << port);
    bits.to_le_bytes()
}

/// Ports that a route has names for.
const PORTS_MAX: u8 = 15;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_report_has_a_bit_for_each_port() {
        assert_eq!(report_of([1, 3].into_iter()), [0x0a, 0x00]);
        assert_eq!(report_of([8, 15].into_iter()), [0x00, 0x81]);
        assert_eq!(reported_ports(&[0x0b, 0x01]).collect::<Vec<_>>(), [1, 3, 8]);
        // A hub with few ports of USB 2.0 says it in one byte.
        assert_eq!(reported_ports(&[0x04]).collect::<Vec<_>>(), [2]);
        assert_eq!(reported_ports(&[]).count(), 0);
    }
}
