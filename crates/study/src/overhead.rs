//! UAS pipe traffic besides payload: information units sent and received by the host.
//!
//! Left out: packets and headers, which the link counts; BOT wrappers, which share the data pipes.
//! Always true: a unit counts when its transfer completes, with the bytes moved.

use bus::TransferStatus;
use device::device::{COMMAND, STATUS};
use initiator::{CommandId, Outcome};
use sim::machine::{HostTransfer, Observer};
use units::Instant;
use wire::uas::IuId;

/// Information units of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// Completed commands.
    commands: u64,
    /// Bytes of units on the command and status pipes.
    unit_bytes: u64,
    /// READ READY and WRITE READY units among them.
    ready_units: u64,
}

impl Overhead {
    /// Returns the mean bytes of information units per command. `None` without any.
    pub fn unit_bytes(&self) -> Option<f64> {
        (self.unit_bytes > 0).then(|| self.unit_bytes as f64 / self.commands.max(1) as f64)
    }

    /// Returns the mean number of READY units per command. `None` without any units.
    pub fn ready_units(&self) -> Option<f64> {
        (self.unit_bytes > 0).then(|| self.ready_units as f64 / self.commands.max(1) as f64)
    }
}

impl Observer for Overhead {
    fn watches_packets(&self) -> bool {
        false
    }

    fn ended(&mut self, _: Instant, _: CommandId, _: &Outcome) {
        self.commands += 1;
    }

    fn completed(
        &mut self,
        _: Instant,
        transfer: &HostTransfer,
        _: TransferStatus,
        actual: u32,
        bytes: &[u8],
    ) {
        if ![COMMAND, STATUS].contains(&transfer.pipe.endpoint) {
            return;
        }
        self.unit_bytes += u64::from(actual);
        let kind = bytes.first().map(|kind| IuId::from(*kind));
        let is_ready = matches!(kind, Some(IuId::ReadReady | IuId::WriteReady));
        self.ready_units += u64::from(is_ready && transfer.pipe.endpoint == STATUS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::{Pipe, TransferId};

    fn unit(endpoint: bus::EndpointAddress, kind: u8, length: u32) -> Overhead {
        let mut overhead = Overhead { commands: 2, ..Overhead::default() };
        let transfer = HostTransfer { id: TransferId(0), pipe: Pipe::plain(endpoint), length, command: None };
        overhead.completed(Instant::ZERO, &transfer, TransferStatus::Done, length, &[kind, 0, 0, 1]);
        overhead
    }

    #[test]
    fn units_and_ready_units_are_counted() {
        assert_eq!(unit(COMMAND, 0x01, 32), Overhead { commands: 2, unit_bytes: 32, ready_units: 0 });
        for ready in [0x06, 0x07] {
            assert_eq!(unit(STATUS, ready, 4), Overhead { commands: 2, unit_bytes: 4, ready_units: 1 });
        }
        assert_eq!(
            (unit(STATUS, 0x06, 4).unit_bytes(), unit(STATUS, 0x06, 4).ready_units()),
            (Some(2.0), Some(0.5))
        );
    }

    #[test]
    fn payload_is_not_counted_as_a_unit() {
        let payload = unit(device::device::DATA_IN, 0x06, 4096);
        assert_eq!((payload.unit_bytes(), payload.ready_units()), (None, None));
    }
}
