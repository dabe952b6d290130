//! Faults in the traffic: what went wrong, which side caused it, and which packets show it.
//!
//! A verdict is one kind of fault of one device, over one kind of command where that matters; it is counted, and its first packets are
//! kept. Where Linux has a quirk that works around the fault, the verdict names it. What rests on packets next to which others are
//! missing from the capture is a separate verdict, and names no quirk: what was lost may have been the answer, or the
//! question. What is worth reporting and no fault is a note: a verdict on neither side. Invariants: as many verdicts and as many
//! packets of each as the limits here say; what is past them is counted.

use crate::command::Transport;
use crate::event::Address;
use quirks::command::quirk_of;
use quirks::quirk::Flag;
use std::fmt;
use wire::scsi::opcode::OperationCode;

/// Verdicts that are kept.
pub const VERDICTS_MAX: usize = 512;
/// Packets that are kept of each.
pub const EVIDENCE_MAX: usize = 8;

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A bulk endpoint stalled.
    Stall,
    /// A device ended data before their end by a stall, as BOT has it, and its status followed.
    StallEndsData,
    /// The host reset the device with commands in flight.
    Reset,
    /// The device was reset or configured again with no command in flight.
    ConfiguredAgain,
    /// A command had no response for a second or more, and the host aborted it.
    NoResponse,
    /// The host aborted a command sooner than that.
    Aborted,
    /// The host sent a failed read or write again.
    Retried,
    /// Blocks moved, and the residue is less than what did not move (Bulk-Only Transport 1.0 clause 5.2).
    ResidueTooSmall,
    /// Blocks moved, and the residue is more than what did not move (clause 5.2).
    ResidueTooLarge,
    /// The residue is more than was requested (clause 6.3.2).
    ResidueTooLong,
    /// A command that moves no blocks, or that failed, returned less than was requested with too small a residue.
    ShortWithoutResidue,
    /// A CSW with the tag of another command (clause 6.3.1).
    WrapperTag,
    /// Something else in place of a CSW (clause 6.3.1).
    WrapperSignature,
    /// A CSW of no bytes.
    WrapperEmpty,
    /// A CSW with the status "phase error".
    PhaseError,
    /// Something else in place of a CBW (clause 6.2.1).
    CommandWrapper,
    /// A CBW before the CSW of the previous command.
    CommandBeforeStatus,
    /// A command with a tag that is in flight (UAS-2 clause 6.2.6).
    OverlappedTag,
    /// The device reports an overlapped tag and there was none.
    OverlapNotSeen,
    /// READ READY or WRITE READY for a tag that no command has.
    ReadyWithoutCommand,
    /// READ READY or WRITE READY on a stream.
    ReadyOnStreams,
    /// A status for a tag that no command has.
    StatusWithoutCommand,
    /// Something else in place of an information unit.
    InformationUnit,
    /// A command failed and the host did not request sense data.
    SenseNotAsked,
    /// A command failed and the device sent no sense data.
    SenseMissing,
    /// GOOD, and the data that the host waited for never ended.
    GoodWithoutData,
    /// The device supports UNMAP, blocks were written, and the host never sent it.
    TrimNeverSent,
    /// The device rejected a command because of FUA.
    FuaRefused,
    /// Never more than one command at a time over a transport that could. Whether more I/O was waiting no capture shows.
    DepthOne {
        /// Of the time from the first command to the last, how much had none in flight.
        idle_percent: u8,
        /// From the end of a command to the next one, the least, in nanoseconds.
        gap_ns: u64,
    },
    /// Long requests come in pieces of this many KiB.
    CutInPieces(u32),
    /// The device sent more than was requested.
    Babble,
    /// A transfer failed on the bus.
    BusError,
    /// The device disconnected with commands in flight.
    Gone,
}

/// Which side caused a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The host: its driver or its configuration.
    Host,
    /// The drive or its bridge.
    Device,
    /// One of them, or what is between them.
    Unknown,
    /// It is no fault.
    Neither,
}

/// One kind of fault of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The device.
    pub address: Address,
    /// The kind of fault.
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
    /// Findings of the latest packet, which can be withdrawn.
    latest: Vec<Latest>,
}

/// A finding that can be withdrawn.
#[derive(Debug)]
struct Latest {
    index: usize,
    /// The verdict before it; none if it is the first of its kind.
    before: Option<Verdict>,
    /// A verdict of this finding alone.
    alone: Verdict,
}

/// One occurrence, or several that one piece of evidence shows.
#[derive(Clone, Copy)]
pub(crate) struct Finding<'a> {
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
    pub(crate) fn add(&mut self, finding: &Finding<'_>) {
        let Finding { address, fault, transport, opcode, count, packets, waited_ns, is_sure } = *finding;
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

    /// Makes the findings of the latest packet uncertain: the bytes that follow it are damaged, and
    /// it may be itself.
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

    /// Packets are missing at an unknown place.
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
            Self::ConfiguredAgain => "configured-again",
            Self::NoResponse => "no-response",
            Self::Aborted => "aborted",
            Self::Retried => "retried",
            Self::ResidueTooSmall => "residue-too-small",
            Self::ResidueTooLarge => "residue-too-large",
            Self::ResidueTooLong => "residue-too-long",
            Self::ShortWithoutResidue => "short-without-residue",
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

    /// Which side caused it.
    pub const fn side(self) -> Side {
        match self {
            Self::Reset
            | Self::Aborted
            | Self::Retried
            | Self::CommandWrapper
            | Self::CommandBeforeStatus
            | Self::OverlappedTag
            | Self::SenseNotAsked
            | Self::TrimNeverSent
            | Self::CutInPieces(_) => Side::Host,
            Self::BusError | Self::Gone => Side::Unknown,
            Self::ConfiguredAgain
            | Self::StallEndsData
            | Self::ShortWithoutResidue
            | Self::DepthOne { .. } => Side::Neither,
            _ => Side::Device,
        }
    }
}

impl Verdict {
    /// Whether it is a note: worth reporting, and no fault.
    pub fn is_note(&self) -> bool {
        self.fault.side() == Side::Neither
    }

    /// Linux's quirk that works around the fault, if Linux's code makes the fault visible and has one.
    ///
    /// Linux uses a residue only if it is larger than what did not move (`usb_stor_Bulk_transport`), so that one that is too small
    /// needs no quirk. A command that a device does not respond to has the quirk by which Linux does not send it; a device that fails
    /// at reads and writes over UAS has the one that selects BOT. A verdict that is not sure has none.
    pub fn quirk(&self) -> Option<Flag> {
        if !self.is_sure {
            return None;
        }
        let is_uas = self.transport == Some(Transport::Uas);
        match self.fault {
            Fault::ResidueTooLarge | Fault::ResidueTooLong => Some(Flag::IgnoreResidue),
            Fault::FuaRefused => Some(Flag::BrokenFua),
            Fault::NoResponse | Fault::PhaseError => {
                self.opcode.and_then(quirk_of).or_else(|| is_uas.then_some(Flag::IgnoreUas))
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

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "the host",
            Self::Device => "the device",
            Self::Unknown => "unknown",
            Self::Neither => "neither",
        })
    }
}

impl fmt::Display for Fault {
    /// Writes what happened, as the rest of a sentence whose subject is the side that caused it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Stall => "stalled a bulk endpoint",
            Self::StallEndsData => "a stall ended the data phase, and the status followed",
            Self::Reset => "reset the device with commands in flight",
            Self::ConfiguredAgain => "reset or configured again with no command in flight",
            Self::NoResponse => "did not respond",
            Self::Aborted => "aborted a command",
            Self::Retried => "retried a failed read or write",
            Self::ResidueTooSmall => "reported a residue smaller than what did not move",
            Self::ResidueTooLarge => "reported a residue larger than what did not move",
            Self::ResidueTooLong => "reported a residue larger than the requested length",
            Self::ShortWithoutResidue => {
                "short data without a matching residue (BOT 1.0 clause 5.2), which Linux does not use"
            }
            Self::WrapperTag => "sent a CSW with the tag of another command",
            Self::WrapperSignature => "sent an invalid CSW",
            Self::WrapperEmpty => "sent a CSW of no bytes",
            Self::PhaseError => "reported a phase error",
            Self::CommandWrapper => "sent an invalid CBW",
            Self::CommandBeforeStatus => "sent a command before the previous status",
            Self::OverlappedTag => "reused a tag that was in flight",
            Self::OverlapNotSeen => "rejected a tag as overlapped that was free",
            Self::ReadyWithoutCommand => "sent READ READY or WRITE READY for a tag that no command has",
            Self::ReadyOnStreams => "sent READ READY or WRITE READY, which do not exist with streams",
            Self::StatusWithoutCommand => "sent a status for a tag that no command has",
            Self::InformationUnit => "sent an invalid information unit",
            Self::SenseNotAsked => "did not request sense data of a failed command",
            Self::SenseMissing => "sent no sense data for a failed command",
            Self::GoodWithoutData => "returned GOOD and never ended the data that the host waited for",
            Self::TrimNeverSent => "wrote blocks and never sent UNMAP, although the logical unit supports it",
            Self::FuaRefused => "rejected a command because of FUA",
            Self::DepthOne { .. } => "never more than one command in flight over UAS",
            Self::CutInPieces(kib) => {
                return write!(f, "requested at most {kib} KiB at once of consecutive blocks");
            }
            Self::Babble => "sent more data than was requested",
            Self::BusError => "a transfer failed on the bus",
            Self::Gone => "disconnected with commands in flight",
        };
        f.write_str(text)
    }
}

impl Verdict {
    /// Writes which side did what, and with which command.
    fn sentence(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, fault, opcode, .. } = self;
        match (fault, fault.side(), self.waited_ns) {
            (Fault::NoResponse, _, Some(waited_ns)) => {
                write!(f, "{address}: no response in {}, then aborted", Seconds(waited_ns))?;
            }
            (_, Side::Neither, _) | (Fault::BusError, ..) => write!(f, "{address}: {fault}")?,
            (_, Side::Unknown, _) => write!(f, "{address}: the device {fault}")?,
            (_, side, _) => write!(f, "{address}: {side} {fault}")?,
        }
        if let Some(opcode) = opcode {
            write!(f, ", with {opcode}")?;
        }
        match self.waited_ns {
            Some(waited_ns) if *fault != Fault::NoResponse => write!(f, ", after {}", Seconds(waited_ns)),
            _ => Ok(()),
        }
    }
}

/// A time in seconds, to the millisecond: `30.5 s`.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, mut ms, mut digits) = (self.0 / 1_000_000_000, self.0 / 1_000_000 % 1_000, 3);
        while digits > 1 && ms % 10 == 0 {
            (ms, digits) = (ms / 10, digits - 1);
        }
        write!(f, "{whole}.{ms:0digits$} s")
    }
}

impl fmt::Display for Verdict {
    /// `2.5: the device reported a residue larger than what did not move, with READ(10): 3 times (packets 12, 40, 81)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sentence(f)?;
        match (self.fault, self.count) {
            (Fault::DepthOne { idle_percent, gap_ns }, count) => {
                let (gap, unit) = if gap_ns < 1_000_000 { (gap_ns, "µs") } else { (gap_ns / 1_000, "ms") };
                let (whole, tenth) = (gap / 1_000, gap / 100 % 10);
                write!(
                    f,
                    ": {count} reads and writes, none in flight for {idle_percent} % of the time; the shortest gap "
                )?;
                write!(f, "between two was {whole}.{tenth} {unit}")?;
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
            f.write_str("; whether more I/O was waiting no capture shows")?;
        }
        f.write_str(if self.is_sure { "" } else { "; not sure, since packets are missing from the capture" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(fault: Fault, packets: &[u64]) -> Finding<'_> {
        Finding {
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
    fn a_finding_beside_missing_packets_is_a_separate_verdict() {
        let mut verdicts = Verdicts::default();
        verdicts.add(&finding(Fault::ResidueTooLarge, &[7]));
        verdicts.add(&Finding { is_sure: false, ..finding(Fault::ResidueTooLarge, &[9]) });
        let found: Vec<_> = verdicts.all().iter().map(|verdict| (verdict.count, verdict.quirk())).collect();
        assert_eq!(found, [(1, Some(Flag::IgnoreResidue)), (1, None)]);
        assert_eq!(
            verdicts.all()[1].to_string(),
            "2.5: the device reported a residue larger than what did not move, with READ(10): once (packet 9); \
             not sure, since packets are missing from the capture"
        );
        verdicts.settle();
        verdicts.add(&finding(Fault::ResidueTooLarge, &[11]));
        verdicts.add(&finding(Fault::Stall, &[11]));
        verdicts.doubt_latest();
        let found: Vec<_> = verdicts.all().iter().map(|one| (one.fault, one.count, one.is_sure)).collect();
        let [large, stall] = [Fault::ResidueTooLarge, Fault::Stall];
        assert_eq!(found, [(large, 1, true), (large, 2, false), (stall, 1, false)]);
        verdicts.doubt_all();
        let found: Vec<_> =
            verdicts.all().iter().map(|one| (one.fault, one.count, &one.packets[..])).collect();
        assert_eq!(found, [(large, 3, &[7, 9, 11][..]), (stall, 1, &[11][..])]);
        assert!(verdicts.all().iter().all(|verdict| !verdict.is_sure));
    }

    #[test]
    fn the_same_fault_is_one_verdict_with_its_first_packets() {
        let mut verdicts = Verdicts::default();
        for packet in 0..20 {
            verdicts.add(&finding(Fault::ResidueTooLarge, &[packet]));
        }
        let [verdict] = verdicts.all() else { panic!("one") };
        assert_eq!((verdict.count, &verdict.packets[..]), (20, &[0, 1, 2, 3, 4, 5, 6, 7][..]));
        assert_eq!(verdict.quirk().and_then(Flag::letter), Some('r'));
        assert_eq!(
            verdict.to_string(),
            "2.5: the device reported a residue larger than what did not move, with READ(10): 20 times \
             (packets 0, 1, 2, 3, 4, 5, 6, 7, …)"
        );
    }

    #[test]
    fn a_queue_that_was_not_used_is_reported_as_it_was_seen() {
        let fault = Fault::DepthOne { idle_percent: 12, gap_ns: 5_260 };
        let mut verdicts = Verdicts::default();
        verdicts.add(&Finding { count: 200, opcode: None, ..finding(fault, &[40, 41]) });
        let [note] = verdicts.all() else { panic!("one") };
        assert!(note.is_note());
        assert_eq!(
            note.to_string(),
            "2.5: never more than one command in flight over UAS: 200 reads and writes, none in flight for 12 % of the \
             time; the shortest gap between two was 5.2 µs (packets 40, 41); whether more I/O was waiting no capture shows"
        );
    }

    #[test]
    fn verdicts_have_a_limit() {
        let mut verdicts = Verdicts::default();
        for device in 0..=VERDICTS_MAX as u16 {
            let address = Address { bus: 1, device };
            verdicts.add(&Finding { address, ..finding(Fault::Stall, &[1]) });
        }
        assert_eq!((verdicts.all().len(), verdicts.left_off()), (VERDICTS_MAX, 1));
    }

    #[test]
    fn a_command_that_a_device_dies_of_has_the_quirk_that_leaves_it_out() {
        let mut verdicts = Verdicts::default();
        let died = Finding {
            opcode: Some(OperationCode::MaintenanceIn),
            transport: Some(Transport::Uas),
            waited_ns: Some(30_001_000_000),
            ..finding(Fault::NoResponse, &[7])
        };
        verdicts.add(&died);
        verdicts.add(&Finding { opcode: Some(OperationCode::Read10), ..died });
        let letters: Vec<_> = verdicts.all().iter().filter_map(|verdict| verdict.quirk()?.letter()).collect();
        assert_eq!(letters, ['f', 'u']);
        assert!(verdicts.all()[0].to_string().contains("no response in 30.001 s, then aborted, with "));
    }
}
