//! Fault injection: stalls, drops or changes a chosen status or read-data transfer, to test a host.
//!
//! Transfers that a kind of fault concerns are counted from when the fault was planned; at the number that the fault names, the
//! transfer is lost or changed, or its endpoint halts. The device itself believes that it has sent it, as one does whose
//! link fails. So the same traffic meets the same fault each time. Left out: faults of media, which they bring
//! themselves, and faults of what the host sends.
//!
//! Always true: a fault by number happens once; a drive without faults counts nothing.

mod message;

use bus::{FaultSchedule, FaultTrigger};
use device::{DeviceTransfer, Inline, Payload};
use message::StatusMessage;
use std::fmt;
use std::hint::cold_path;
use std::num::NonZeroU64;
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
    /// One bit of the data of a read is changed.
    WrongData,
    /// A status has the tag of another command.
    WrongTag,
    /// A command that succeeded is reported as failed without sense data, and one that failed as succeeded.
    WrongStatus,
    /// A CSW has a residue of zero where data are missing, and one of 512 where none are.
    WrongResidue,
    /// A CSW reports a phase error.
    PhaseError,
    /// A RESPONSE IU reports a task management function as failed that was performed, and any other as performed.
    WrongResponse,
    /// A SENSE IU has the sense data of the error before.
    StaleSense,
    /// A status begins with another signature or IU ID.
    GarbageStatus,
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
pub(super) struct Faults {
    planned: Vec<(FaultKind, FaultTrigger)>,
    /// The last sense data in a SENSE IU, while a fault needs them.
    last_sense: Vec<u8>,
}

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
    /// It goes to the bus with one bit of its data changed.
    ChangeData,
}

/// The part of a transfer that faults concern.
enum Subject<'a> {
    /// Data of a read.
    Data,
    /// A status, if it can be decoded.
    Status(Option<StatusMessage<'a>>),
}

impl Faults {
    /// Plans a fault. Returns whether there is room for it.
    pub(super) fn plan(&mut self, fault: Fault) -> bool {
        self.planned.retain(|(_, trigger)| !trigger.is_spent());
        let has_room = self.planned.len() < FAULTS_MAX;
        if has_room {
            self.planned.push((fault.kind, FaultTrigger::new(fault.schedule)));
        }
        has_room
    }

    /// The effect of planned faults on `transfer`; its status is changed here.
    #[inline(always)]
    pub(super) fn effect(&mut self, transfer: &mut DeviceTransfer) -> FaultEffect {
        if self.planned.is_empty() || transfer.pipe.endpoint.direction() == Direction::Out {
            return FaultEffect::None;
        }
        cold_path();
        self.effect_of_planned(transfer)
    }

    fn effect_of_planned(&mut self, transfer: &mut DeviceTransfer) -> FaultEffect {
        let subject = match &transfer.payload {
            Payload::Inline(inline) if inline.as_bytes().len() > ReadyIu::LEN => {
                Subject::Status(StatusMessage::decode(inline.as_bytes()))
            }
            Payload::Buffer(..) => Subject::Data,
            _ => return FaultEffect::None,
        };
        let mut fired = None;
        for (kind, trigger) in &mut self.planned {
            if kind.concerns(&subject) && trigger.fires() && fired.is_none() {
                fired = Some(*kind);
            }
        }
        let changed = match (&subject, fired) {
            (Subject::Status(Some(message)), Some(kind)) => message.changed(kind, &self.last_sense),
            _ => None,
        };
        if let Subject::Status(Some(StatusMessage::Sense(iu))) = subject
            && !iu.sense.is_empty()
        {
            self.last_sense.clear();
            self.last_sense.extend_from_slice(iu.sense);
        }
        if let Some(bytes) = changed {
            transfer.length = bytes.len() as u32;
            transfer.payload = Payload::Inline(Inline::new(&bytes));
        }
        fired.map_or(FaultEffect::None, FaultKind::effect)
    }
}

impl FaultKind {
    /// All kinds, in the order of help.
    pub const ALL: [Self; 12] = [
        Self::StallStatus,
        Self::LoseStatus,
        Self::StallData,
        Self::LoseData,
        Self::WrongData,
        Self::WrongTag,
        Self::WrongStatus,
        Self::WrongResidue,
        Self::PhaseError,
        Self::WrongResponse,
        Self::StaleSense,
        Self::GarbageStatus,
    ];

    /// The kinds that a device may show all the time: it answers, and wrongly.
    pub const LIES: [Self; 8] = [
        Self::WrongData,
        Self::WrongTag,
        Self::WrongStatus,
        Self::WrongResidue,
        Self::PhaseError,
        Self::WrongResponse,
        Self::StaleSense,
        Self::GarbageStatus,
    ];

    /// A fault of this kind at every transfer that it concerns: a device that always does so.
    pub const fn always(self) -> Fault {
        Fault { kind: self, schedule: FaultSchedule::OneIn { mean: NonZeroU64::MIN, seed: 0 } }
    }

    const fn concerns(self, subject: &Subject<'_>) -> bool {
        match self {
            Self::StallStatus | Self::LoseStatus => matches!(subject, Subject::Status(_)),
            Self::StallData | Self::LoseData | Self::WrongData => matches!(subject, Subject::Data),
            Self::WrongTag | Self::GarbageStatus => matches!(subject, Subject::Status(Some(_))),
            Self::WrongStatus => {
                matches!(subject, Subject::Status(Some(StatusMessage::Csw(_) | StatusMessage::Sense(_))))
            }
            Self::WrongResidue | Self::PhaseError => {
                matches!(subject, Subject::Status(Some(StatusMessage::Csw(_))))
            }
            Self::WrongResponse => matches!(subject, Subject::Status(Some(StatusMessage::Response(_)))),
            Self::StaleSense => match subject {
                Subject::Status(Some(StatusMessage::Sense(iu))) => !iu.sense.is_empty(),
                _ => false,
            },
        }
    }

    const fn effect(self) -> FaultEffect {
        match self {
            Self::StallStatus => FaultEffect::HaltThenSend,
            Self::StallData => FaultEffect::HaltAndDrop,
            Self::LoseStatus | Self::LoseData => FaultEffect::Drop,
            Self::WrongData => FaultEffect::ChangeData,
            // The status is changed already.
            _ => FaultEffect::None,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StallStatus => "stall-status",
            Self::LoseStatus => "lose-status",
            Self::StallData => "stall-data",
            Self::LoseData => "lose-data",
            Self::WrongData => "wrong-data",
            Self::WrongTag => "wrong-tag",
            Self::WrongStatus => "wrong-status",
            Self::WrongResidue => "wrong-residue",
            Self::PhaseError => "phase-error",
            Self::WrongResponse => "wrong-response",
            Self::StaleSense => "stale-sense",
            Self::GarbageStatus => "garbage-status",
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
        let [names @ .., last] = FaultKind::ALL.map(FaultKind::name);
        let names = names.join(", ");
        write!(f, "use KIND@N or KIND/N:SEED, where KIND is {names} or {last} and N counts from 1")
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
