//! What went wrong, who did it, and which packets show it.
//!
//! A verdict is one kind of fault of one device, over one kind of command where that matters; it is counted, and its first packets are
//! kept. Where Linux has a quirk that makes it bear with the fault, the verdict names it. What rests on packets next to which others are
//! missing from the capture is a verdict of its own that says so, and names no quirk: what was lost may have been the answer, or the
//! question. What is worth telling and nobody's fault is a note: a verdict by nobody. Always true: as many verdicts and as many
//! packets of each as the limits here say; what is past them is counted.

use crate::command::Transport;
use crate::event::Address;
use quirks::quirk::Flag;
use std::fmt;
use wire::scsi::opcode::OperationCode;

/// Verdicts that are kept.
pub const VERDICTS_MAX: usize = 512;
/// Packets that are kept of each.
pub const EVIDENCE_MAX: usize = 8;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A bulk endpoint stalled.
    Stall,
    /// A device ended data before their end by a stall, as BOT has it, and its status followed.
    StallEndsData,
    /// The host reset the device while commands were under way.
    Reset,
    /// The device was reset or configured anew, and no command was under way.
    SetUpAgain,
    /// A command had no answer for a second or more, and the host gave up.
    NeverAnswered,
    /// The host took a command back before that.
    TakenBack,
    /// The host sent a read or a write again that had failed.
    Retried,
    /// The residue is not what did not move (Bulk-Only Transport 1.0 clause 5.2).
    ResidueLies,
    /// The residue is more than was asked for (clause 6.3.2).
    ResidueTooLong,
    /// A status wrapper with the tag of another command (clause 6.3.1).
    WrapperTag,
    /// Where a status wrapper should be is something else (clause 6.3.1).
    WrapperSignature,
    /// A status wrapper of no bytes.
    WrapperEmpty,
    /// A status that says "phase error".
    PhaseError,
    /// What should be a command wrapper is none (clause 6.2.1).
    CommandWrapper,
    /// A command wrapper before the status of the one before.
    CommandBeforeStatus,
    /// A command with the tag of one that is under way (UAS-2 clause 6.2.6).
    OverlappedTag,
    /// The device says "overlapped tag" and there was none.
    OverlapNotSeen,
    /// READ READY or WRITE READY for a tag that no command has.
    ReadyWithoutCommand,
    /// READ READY or WRITE READY where there are streams.
    ReadyOnStreams,
    /// A status for a tag that no command has.
    StatusWithoutCommand,
    /// What should be an information unit is none.
    InformationUnit,
    /// A command failed and the host did not ask why.
    SenseNotAsked,
    /// A command failed and the device did not say why.
    SenseMissing,
    /// GOOD, and the data that the host waits for never ended.
    GoodWithoutData,
    /// The device gives blocks back, blocks were written, and none was given back.
    TrimNeverSent,
    /// The device refused a command because of FUA.
    FuaRefused,
    /// Never more than one command at a time over a transport that could. Whether there was ever more to do no capture tells.
    DepthOne {
        /// Of the time from the first command to the last, how much had none under way.
        idle_percent: u8,
        /// From the end of a command to the next one, the least, in nanoseconds.
        gap_ns: u64,
    },
    /// Long requests come in pieces of this many KiB.
    CutInPieces(u32),
    /// The device sent more than there was room for.
    Babble,
    /// The bus failed.
    BusError,
    /// The device went away with commands under way.
    Gone,
}

/// Who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// Its driver, or who set it up.
    Host,
    /// The drive or its bridge.
    Device,
    /// One of them, or what is between them.
    Unknown,
    /// It is no fault.
    Nobody,
}

/// One kind of fault of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The device.
    pub address: Address,
    /// What went wrong.
    pub fault: Fault,
    /// Over what.
    pub transport: Option<Transport>,
    /// With which command, where that matters.
    pub opcode: Option<OperationCode>,
    /// How often.
    pub count: u64,
    /// The first packets that show it, [`EVIDENCE_MAX`] at most.
    pub packets: Vec<u64>,
    /// The longest wait, in nanoseconds, where that is the matter.
    pub waited_ns: Option<u64>,
    /// Whether every packet that it rests on was there, and those between them.
    pub is_sure: bool,
}

/// All that went wrong.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    all: Vec<Verdict>,
    left_off: u64,
    /// What came of the latest packet.
    latest: Vec<Latest>,
}

/// A charge that can be taken back.
#[derive(Debug)]
struct Latest {
    index: usize,
    /// The verdict before it; none if it is the first of its kind.
    before: Option<Verdict>,
    /// A verdict of this charge alone.
    alone: Verdict,
}

/// One occurrence, or several that one piece of evidence shows.
#[derive(Clone, Copy)]
pub(crate) struct Charge<'a> {
    pub(crate) address: Address,
    pub(crate) fault: Fault,
    pub(crate) transport: Option<Transport>,
    pub(crate) opcode: Option<OperationCode>,
    /// How often.
    pub(crate) count: u64,
    pub(crate) packets: &'a [u64],
    pub(crate) waited_ns: Option<u64>,
    /// Whether nothing is missing of what it rests on.
    pub(crate) is_sure: bool,
}

impl Verdicts {
    pub(crate) fn add(&mut self, charge: &Charge<'_>) {
        let Charge { address, fault, transport, opcode, count, packets, waited_ns, is_sure } = *charge;
        let packets = packets.iter().copied().take(EVIDENCE_MAX).collect();
        let alone = Verdict { address, fault, transport, opcode, count, packets, waited_ns, is_sure };
        if let Some((index, before)) = self.join(&alone) {
            self.latest.push(Latest { index, before, alone });
        }
    }

    /// Counts one more: which verdict it is now, and what that was before.
    fn join(&mut self, alone: &Verdict) -> Option<(usize, Option<Verdict>)> {
        let key = |verdict: &Verdict| (verdict.address, verdict.fault, verdict.opcode, verdict.is_sure);
        let index = self.all.iter().position(|verdict| key(verdict) == key(alone));
        if let Some(index) = index {
            let verdict = &mut self.all[index];
            let before = verdict.clone();
            verdict.count += alone.count;
            let room = EVIDENCE_MAX - verdict.packets.len();
            verdict.packets.extend(alone.packets.iter().take(room));
            verdict.waited_ns = verdict.waited_ns.max(alone.waited_ns);
            return Some((index, Some(before)));
        }
        if self.all.len() >= VERDICTS_MAX {
            self.left_off += alone.count;
            return None;
        }
        self.all.push(alone.clone());
        Some((self.all.len() - 1, None))
    }

    /// The next packet is here, whole: what came of the one before it stands.
    pub(crate) fn settle(&mut self) {
        self.latest.clear();
    }

    /// What follows the latest packet is damaged, and it may be itself.
    pub(crate) fn doubt_latest(&mut self) {
        let latest = std::mem::take(&mut self.latest);
        for Latest { index, before, .. } in latest.iter().rev() {
            match before {
                Some(before) => self.all[*index] = before.clone(),
                None => drop(self.all.remove(*index)),
            }
        }
        for Latest { alone, .. } in latest {
            self.join(&Verdict { is_sure: false, ..alone });
        }
    }

    /// Packets are missing, and nobody knows where.
    pub(crate) fn doubt_all(&mut self) {
        self.latest.clear();
        for verdict in std::mem::take(&mut self.all) {
            self.join(&Verdict { is_sure: false, ..verdict });
        }
    }

    /// In the order in which they were first seen.
    pub(crate) fn all(&self) -> &[Verdict] {
        &self.all
    }

    /// Occurrences past the limit.
    pub(crate) const fn left_off(&self) -> u64 {
        self.left_off
    }
}

impl Fault {
    /// A short name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stall => "stall",
            Self::StallEndsData => "stall-ends-data",
            Self::Reset => "reset",
            Self::SetUpAgain => "set-up-again",
            Self::NeverAnswered => "never-answered",
            Self::TakenBack => "taken-back",
            Self::Retried => "retried",
            Self::ResidueLies => "residue-lies",
            Self::ResidueTooLong => "residue-too-long",
            Self::WrapperTag => "csw-tag",
            Self::WrapperSignature => "csw-signature",
            Self::WrapperEmpty => "csw-empty",
            Self::PhaseError => "phase-error",
            Self::CommandWrapper => "cbw-invalid",
            Self::CommandBeforeStatus => "command-before-status",
            Self::OverlappedTag => "overlapped-tag",
            Self::OverlapNotSeen => "overlap-not-seen",
            Self::ReadyWithoutCommand => "ready-without-command",
            Self::ReadyOnStreams => "ready-on-streams",
            Self::StatusWithoutCommand => "status-without-command",
            Self::InformationUnit => "iu-invalid",
            Self::SenseNotAsked => "sense-ignored",
            Self::SenseMissing => "sense-missing",
            Self::GoodWithoutData => "good-without-data",
            Self::TrimNeverSent => "trim-never-sent",
            Self::FuaRefused => "fua-refused",
            Self::DepthOne { .. } => "depth-one",
            Self::CutInPieces(_) => "cut-in-pieces",
            Self::Babble => "babble",
            Self::BusError => "bus-error",
            Self::Gone => "gone",
        }
    }

    /// Who did it.
    pub const fn party(self) -> Party {
        match self {
            Self::Reset
            | Self::TakenBack
            | Self::Retried
            | Self::CommandWrapper
            | Self::CommandBeforeStatus
            | Self::OverlappedTag
            | Self::SenseNotAsked
            | Self::TrimNeverSent
            | Self::CutInPieces(_) => Party::Host,
            Self::BusError | Self::Gone => Party::Unknown,
            Self::SetUpAgain | Self::StallEndsData | Self::DepthOne { .. } => Party::Nobody,
            _ => Party::Device,
        }
    }
}

impl Verdict {
    /// Whether it is nobody's fault, and told all the same.
    pub fn is_note(&self) -> bool {
        self.fault.party() == Party::Nobody
    }

    /// Linux's quirk that makes it bear with the fault, if there is one.
    ///
    /// A command that a device dies of has the quirk that Linux then does not send it; a device that fails at reads and writes over
    /// UAS has the one that goes back to BOT. A verdict that is not sure has none.
    pub fn quirk(&self) -> Option<Flag> {
        if !self.is_sure {
            return None;
        }
        let is_uas = self.transport == Some(Transport::Uas);
        match self.fault {
            Fault::ResidueLies | Fault::ResidueTooLong => Some(Flag::IgnoreResidue),
            Fault::FuaRefused => Some(Flag::BrokenFua),
            Fault::NeverAnswered | Fault::PhaseError => {
                self.opcode.and_then(unsent).or_else(|| is_uas.then_some(Flag::IgnoreUas))
            }
            Fault::StatusWithoutCommand
            | Fault::InformationUnit
            | Fault::OverlapNotSeen
            | Fault::ReadyOnStreams
            | Fault::ReadyWithoutCommand
            | Fault::GoodWithoutData => is_uas.then_some(Flag::IgnoreUas),
            _ => None,
        }
    }
}

/// The quirk by which Linux does not send a command.
fn unsent(opcode: OperationCode) -> Option<Flag> {
    Some(match opcode {
        OperationCode::MaintenanceIn => Flag::NoReportOpcodes,
        OperationCode::AtaPassThrough12 | OperationCode::AtaPassThrough16 => Flag::NoAta1x,
        OperationCode::ReportLuns => Flag::NoReportLuns,
        OperationCode::WriteSame10 | OperationCode::WriteSame16 => Flag::NoSame,
        OperationCode::ServiceActionIn16 => Flag::NoReadCapacity16,
        OperationCode::PreventAllowMediumRemoval => Flag::NotLockable,
        OperationCode::ModeSense6 | OperationCode::ModeSense10 => Flag::NoWriteProtectDetect,
        _ => return None,
    })
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "the host",
            Self::Device => "the device",
            Self::Unknown => "unknown who",
            Self::Nobody => "nobody",
        })
    }
}

impl fmt::Display for Fault {
    /// What happened, as the rest of a sentence that begins with who did it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Stall => "stalled an endpoint",
            Self::StallEndsData => "data ended by a stall, and the status followed",
            Self::Reset => "reset the device with commands under way",
            Self::SetUpAgain => "reset or configured anew, with no command under way",
            Self::NeverAnswered => "did not answer a command, until the host gave up",
            Self::TakenBack => "took a command back",
            Self::Retried => "sent a read or write again that had failed",
            Self::ResidueLies => "told a residue that is not what did not move",
            Self::ResidueTooLong => "told a residue of more than was asked for",
            Self::WrapperTag => "sent a status wrapper with the tag of another command",
            Self::WrapperSignature => "sent something else where a status wrapper should be",
            Self::WrapperEmpty => "sent a status wrapper of no bytes",
            Self::PhaseError => "told a phase error",
            Self::CommandWrapper => "sent a command wrapper that is none",
            Self::CommandBeforeStatus => "sent a command before the status of the one before",
            Self::OverlappedTag => "used a tag again that was under way",
            Self::OverlapNotSeen => "refused a tag as overlapped that was free",
            Self::ReadyWithoutCommand => "was ready for data of a tag that no command has",
            Self::ReadyOnStreams => "sent READ READY or WRITE READY, which do not exist with streams",
            Self::StatusWithoutCommand => "sent a status for a tag that no command has",
            Self::InformationUnit => "sent an information unit that is none",
            Self::SenseNotAsked => "did not ask why a command failed",
            Self::SenseMissing => "did not say why a command failed",
            Self::GoodWithoutData => "said GOOD and never ended the data that the host waits for",
            Self::TrimNeverSent => "wrote blocks and gave none back, although the unit offers UNMAP",
            Self::FuaRefused => "refused a command because of FUA",
            Self::DepthOne { .. } => "never more than one command under way over UAS",
            Self::CutInPieces(kib) => {
                return write!(f, "asked for {kib} KiB at once at most, where blocks went on");
            }
            Self::Babble => "sent more than there was room for",
            Self::BusError => "failed on the bus",
            Self::Gone => "went away with commands under way",
        };
        f.write_str(text)
    }
}

impl fmt::Display for Verdict {
    /// `2.5: the device told a residue that is not what did not move, with READ(10): 3 times (packets 12, 40, 81)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault.party() {
            Party::Nobody => write!(f, "{}: {}", self.address, self.fault)?,
            party => write!(f, "{}: {party} {}", self.address, self.fault)?,
        }
        if let Some(opcode) = self.opcode {
            write!(f, ", with {opcode}")?;
        }
        if let Some(waited_ns) = self.waited_ns {
            write!(f, ", after {}.{:03} s", waited_ns / 1_000_000_000, waited_ns / 1_000_000 % 1_000)?;
        }
        match (self.fault, self.count) {
            (Fault::DepthOne { idle_percent, gap_ns }, count) => {
                let (gap, unit) = if gap_ns < 1_000_000 { (gap_ns, "µs") } else { (gap_ns / 1_000, "ms") };
                let (whole, tenth) = (gap / 1_000, gap / 100 % 10);
                write!(
                    f,
                    ": {count} reads and writes, nothing under way for {idle_percent} % of the time; the soonest "
                )?;
                write!(f, "was sent {whole}.{tenth} {unit} after the one before had ended")?;
            }
            (_, 1) => f.write_str(": once")?,
            (_, count) => write!(f, ": {count} times")?,
        }
        for (index, packet) in self.packets.iter().enumerate() {
            let before = match (index, self.packets.len()) {
                (0, 1) => " (packet ",
                (0, _) => " (packets ",
                _ => ", ",
            };
            write!(f, "{before}{packet}")?;
        }
        let is_more = self.packets.len() == EVIDENCE_MAX && self.count > 1;
        f.write_str(if is_more {
            ", …)"
        } else if self.packets.is_empty() {
            ""
        } else {
            ")"
        })?;
        if matches!(self.fault, Fault::DepthOne { .. }) {
            f.write_str("; whether more waited no capture tells")?;
        }
        f.write_str(if self.is_sure { "" } else { "; not sure, since packets are missing from the capture" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(fault: Fault, packets: &[u64]) -> Charge<'_> {
        Charge {
            address: Address { bus: 2, device: 5 },
            fault,
            transport: Some(Transport::Bot),
            opcode: Some(OperationCode::Read10),
            count: 1,
            packets,
            waited_ns: None,
            is_sure: true,
        }
    }

    #[test]
    fn what_stands_beside_missing_packets_is_a_verdict_of_its_own() {
        let mut verdicts = Verdicts::default();
        verdicts.add(&charge(Fault::ResidueLies, &[7]));
        verdicts.add(&Charge { is_sure: false, ..charge(Fault::ResidueLies, &[9]) });
        let told: Vec<_> = verdicts.all().iter().map(|verdict| (verdict.count, verdict.quirk())).collect();
        assert_eq!(told, [(1, Some(Flag::IgnoreResidue)), (1, None)]);
        assert_eq!(
            verdicts.all()[1].to_string(),
            "2.5: the device told a residue that is not what did not move, with READ(10): once (packet 9); \
             not sure, since packets are missing from the capture"
        );
        verdicts.settle();
        verdicts.add(&charge(Fault::ResidueLies, &[11]));
        verdicts.add(&charge(Fault::Stall, &[11]));
        verdicts.doubt_latest();
        let told: Vec<_> = verdicts.all().iter().map(|one| (one.fault, one.count, one.is_sure)).collect();
        let [lies, stall] = [Fault::ResidueLies, Fault::Stall];
        assert_eq!(told, [(lies, 1, true), (lies, 2, false), (stall, 1, false)]);
        verdicts.doubt_all();
        let told: Vec<_> =
            verdicts.all().iter().map(|one| (one.fault, one.count, &one.packets[..])).collect();
        assert_eq!(told, [(lies, 3, &[7, 9, 11][..]), (stall, 1, &[11][..])]);
        assert!(verdicts.all().iter().all(|verdict| !verdict.is_sure));
    }

    #[test]
    fn the_same_fault_is_one_verdict_with_its_first_packets() {
        let mut verdicts = Verdicts::default();
        for packet in 0..20 {
            verdicts.add(&charge(Fault::ResidueLies, &[packet]));
        }
        let [verdict] = verdicts.all() else { panic!("one") };
        assert_eq!((verdict.count, &verdict.packets[..]), (20, &[0, 1, 2, 3, 4, 5, 6, 7][..]));
        assert_eq!(verdict.quirk().and_then(Flag::letter), Some('r'));
        assert_eq!(
            verdict.to_string(),
            "2.5: the device told a residue that is not what did not move, with READ(10): 20 times \
             (packets 0, 1, 2, 3, 4, 5, 6, 7, …)"
        );
    }

    #[test]
    fn a_queue_that_was_not_used_is_told_as_it_was_seen() {
        let fault = Fault::DepthOne { idle_percent: 12, gap_ns: 5_260 };
        let mut verdicts = Verdicts::default();
        verdicts.add(&Charge { count: 200, opcode: None, ..charge(fault, &[40, 41]) });
        let [note] = verdicts.all() else { panic!("one") };
        assert!(note.is_note());
        assert_eq!(
            note.to_string(),
            "2.5: never more than one command under way over UAS: 200 reads and writes, nothing under way for 12 % of \
             the time; the soonest was sent 5.2 µs after the one before had ended (packets 40, 41); whether more waited \
             no capture tells"
        );
    }

    #[test]
    fn verdicts_have_a_limit() {
        let mut verdicts = Verdicts::default();
        for device in 0..=VERDICTS_MAX as u16 {
            let address = Address { bus: 1, device };
            verdicts.add(&Charge { address, ..charge(Fault::Stall, &[1]) });
        }
        assert_eq!((verdicts.all().len(), verdicts.left_off()), (VERDICTS_MAX, 1));
    }

    #[test]
    fn a_command_that_a_device_dies_of_has_the_quirk_that_leaves_it_out() {
        let mut verdicts = Verdicts::default();
        let died = Charge {
            opcode: Some(OperationCode::MaintenanceIn),
            transport: Some(Transport::Uas),
            waited_ns: Some(30_001_000_000),
            ..charge(Fault::NeverAnswered, &[7])
        };
        verdicts.add(&died);
        verdicts.add(&Charge { opcode: Some(OperationCode::Read10), ..died });
        let letters: Vec<_> = verdicts.all().iter().filter_map(|verdict| verdict.quirk()?.letter()).collect();
        assert_eq!(letters, ['f', 'u']);
        assert!(verdicts.all()[0].to_string().contains("after 30.001 s: once (packet 7)"));
    }
}
