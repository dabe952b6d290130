//! Fault injection: stalls or drops a chosen status or read-data transfer, to test a host.
//!
//! What the device sends is counted, by kind; at the number that a fault names, what was to be sent is lost, or the
//! endpoint halts. The device itself believes that it has sent it, as one does whose link fails. So the same traffic
//! meets the same fault each time. Left out: faults of media, which they bring themselves, and of what the host sends.
//!
//! Always true: each fault happens once; a drive without faults counts nothing.

use device::{DeviceTransfer, Payload};
use std::fmt;
use std::hint::cold_path;
use std::str::FromStr;
use wire::uas::ReadyIu;
use wire::usb::Direction;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The endpoint halts before a status (SENSE IU, RESPONSE IU, CSW), which is sent when the halt is cleared.
    StallStatus,
    /// A status is never sent.
    LoseStatus,
    /// The endpoint halts in the place of data of a read, which are lost.
    StallData,
    /// Data of a read are lost; the status says nothing of it.
    LoseData,
}

/// Something that happens once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// To which of its kind, counted from 1 since the drive was made.
    pub at: u64,
}

/// Faults to come.
#[derive(Debug, Default)]
pub(super) struct Faults {
    planned: Vec<Fault>,
    statuses: u64,
    reads: u64,
}

/// What a fault does to a transfer of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultEffect {
    /// No fault: it goes to the bus.
    None,
    /// Its endpoint halts, then it goes to the bus.
    HaltThenSend,
    /// It is dropped.
    Drop,
    /// Its endpoint halts, and it is dropped.
    HaltAndDrop,
}

impl Faults {
    pub(super) fn plan(&mut self, fault: Fault) {
        self.planned.push(fault);
    }

    /// The effect of planned faults on `transfer`.
    pub(super) fn effect(&mut self, transfer: &DeviceTransfer) -> FaultEffect {
        if self.planned.is_empty() || transfer.pipe.endpoint.direction() == Direction::Out {
            return FaultEffect::None;
        }
        cold_path();
        let (is_status, count) = match &transfer.payload {
            Payload::Inline(inline) if inline.as_bytes().len() > ReadyIu::LEN => (true, &mut self.statuses),
            Payload::Buffer(..) => (false, &mut self.reads),
            _ => return FaultEffect::None,
        };
        *count += 1;
        let count = *count;
        let is_due = |fault: &Fault| fault.at == count && fault.kind.is_of_status() == is_status;
        let Some(place) = self.planned.iter().position(is_due) else { return FaultEffect::None };
        match self.planned.swap_remove(place).kind {
            FaultKind::StallStatus => FaultEffect::HaltThenSend,
            FaultKind::StallData => FaultEffect::HaltAndDrop,
            FaultKind::LoseStatus | FaultKind::LoseData => FaultEffect::Drop,
        }
    }
}

impl FaultKind {
    const ALL: [Self; 4] = [Self::StallStatus, Self::LoseStatus, Self::StallData, Self::LoseData];

    const fn is_of_status(self) -> bool {
        matches!(self, Self::StallStatus | Self::LoseStatus)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::StallStatus => "stall-status",
            Self::LoseStatus => "lose-status",
            Self::StallData => "stall-data",
            Self::LoseData => "lose-data",
        }
    }
}

/// A text that does not name a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAFault;

impl FromStr for Fault {
    type Err = NotAFault;

    /// `KIND@N`, as in `lose-status@100`.
    fn from_str(text: &str) -> Result<Self, NotAFault> {
        let (name, number) = text.split_once('@').ok_or(NotAFault)?;
        let kind = FaultKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or(NotAFault)?;
        let at = number.parse().ok().filter(|&at| at > 0).ok_or(NotAFault)?;
        Ok(Self { kind, at })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.kind.name(), self.at)
    }
}

impl fmt::Display for NotAFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "use KIND@N, where KIND is stall-status, lose-status, stall-data or lose-data and N counts from 1",
        )
    }
}

impl std::error::Error for NotAFault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_named_by_kind_and_number() {
        let fault = Fault { kind: FaultKind::LoseStatus, at: 100 };
        assert_eq!("lose-status@100".parse(), Ok(fault));
        assert_eq!(fault.to_string(), "lose-status@100");
        for text in ["", "lose-status", "lose-status@0", "lose-status@-1", "lose@1", "stall-data@1@2"] {
            assert_eq!(text.parse::<Fault>(), Err(NotAFault), "{text}");
        }
    }
}
