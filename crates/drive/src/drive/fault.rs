//! Fault injection: stalls or drops a chosen status or read-data transfer, to test a host.
//!
//! Statuses and read data that the device sends are counted, by kind, from when a fault was planned; at the number that
//! the fault names, the transfer is lost, or its endpoint halts. The device itself believes that it has sent it, as one
//! does whose link fails. So the same traffic meets the same fault each time. Left out: faults of media, which they
//! bring themselves, and faults of what the host sends.
//!
//! Always true: a fault by number happens once; a drive without faults counts nothing.

use bus::{FaultSchedule, FaultTrigger};
use device::{DeviceTransfer, Payload};
use std::fmt;
use std::hint::cold_path;
use std::str::FromStr;
use wire::uas::ReadyIu;
use wire::usb::Direction;

/// Kind of fault.
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

/// A fault and when it happens: `KIND@N` or `KIND/N:SEED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Kind of fault.
    pub kind: FaultKind,
    /// To which of its kind.
    pub schedule: FaultSchedule,
}

/// Faults that a drive keeps at most; those by number leave when they have happened.
pub const FAULTS_MAX: usize = 64;

/// Faults to come.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<(FaultKind, FaultTrigger)>);

/// Effect of a fault on a transfer of the device.
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
    /// Plans a fault. Returns whether there is room for it.
    pub(super) fn plan(&mut self, fault: Fault) -> bool {
        self.0.retain(|(_, trigger)| !trigger.is_spent());
        let has_room = self.0.len() < FAULTS_MAX;
        if has_room {
            self.0.push((fault.kind, FaultTrigger::new(fault.schedule)));
        }
        has_room
    }

    /// The effect of planned faults on `transfer`.
    pub(super) fn effect(&mut self, transfer: &DeviceTransfer) -> FaultEffect {
        if self.0.is_empty() || transfer.pipe.endpoint.direction() == Direction::Out {
            return FaultEffect::None;
        }
        cold_path();
        let is_status = match &transfer.payload {
            Payload::Inline(inline) if inline.as_bytes().len() > ReadyIu::LEN => true,
            Payload::Buffer(..) => false,
            _ => return FaultEffect::None,
        };
        let mut effect = FaultEffect::None;
        for (kind, trigger) in &mut self.0 {
            if kind.is_of_status() == is_status && trigger.fires() && effect == FaultEffect::None {
                effect = kind.effect();
            }
        }
        effect
    }
}

impl FaultKind {
    const ALL: [Self; 4] = [Self::StallStatus, Self::LoseStatus, Self::StallData, Self::LoseData];

    const fn is_of_status(self) -> bool {
        matches!(self, Self::StallStatus | Self::LoseStatus)
    }

    const fn effect(self) -> FaultEffect {
        match self {
            Self::StallStatus => FaultEffect::HaltThenSend,
            Self::StallData => FaultEffect::HaltAndDrop,
            Self::LoseStatus | Self::LoseData => FaultEffect::Drop,
        }
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

    /// `KIND@N` or `KIND/N:SEED`, as in `lose-status@100`.
    fn from_str(text: &str) -> Result<Self, NotAFault> {
        let (name, schedule) = FaultSchedule::split(text).ok_or(NotAFault)?;
        let kind = FaultKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or(NotAFault)?;
        Ok(Self { kind, schedule })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.name(), self.schedule)
    }
}

impl fmt::Display for NotAFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "use KIND@N or KIND/N:SEED, where KIND is stall-status, lose-status, stall-data or lose-data and N counts from 1",
        )
    }
}

impl std::error::Error for NotAFault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_named_by_kind_and_number() {
        for text in ["lose-status@100", "stall-data/1000", "stall-status/7:3"] {
            assert_eq!(text.parse::<Fault>().map(|fault| fault.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "lose-status", "lose-status@0", "lose-status@-1", "lose@1", "stall-data@1@2"] {
            assert_eq!(text.parse::<Fault>(), Err(NotAFault), "{text}");
        }
    }
}
