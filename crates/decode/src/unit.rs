//! State of logical units, from the commands that ended: block length, whether blocks can be
//! deallocated, how requests are split, which ones failed and were repeated.
//!
//! Some verdicts need the whole capture: that blocks were never given back, that there was never more than one command. They are
//! pronounced at its end. Invariants: as many units and failed commands are remembered as the limits here say.

use crate::command::{Block, Command, Outcome, Transport};
use crate::event::Address;
use crate::ledger::Ledger;
use crate::verdict::{Fault, Finding};
use std::collections::{BTreeMap, VecDeque};
use wire::ata::AtaCommand;
use wire::scsi::Status;
use wire::scsi::capacity::{Capacity10, Capacity16};
use wire::scsi::cdb;
use wire::scsi::sense::{AdditionalSense, Sense, SenseKey};
use wire::scsi::vpd::LogicalBlockProvisioning;

/// Logical units of a device that are looked at.
const UNITS_MAX: usize = 256;
/// Failed commands that are remembered, to know them when they come again.
const FAILED_MAX: usize = 16;
/// Pieces that follow each other before requests are reported as cut.
const PIECES_MIN: u64 = 8;
/// Sizes at which hosts cut requests, in KiB: BOT in Windows, and Linux with its quirks `g` and `m`.
const CUTS_KIB: [u64; 3] = [64, 120, 32];
/// Of DATA SET MANAGEMENT's features: blocks are given back.
const TRIM: u16 = 1;
/// Reads and writes before a queue depth of 1 is reported.
const COMMANDS_MIN: u64 = 32;

/// The units of a device.
#[derive(Debug, Default)]
pub(crate) struct Units {
    units: BTreeMap<Option<u16>, Unit>,
    failed: VecDeque<(Option<u16>, Block, u64)>,
    rate: CommandRate,
}

/// How a device's commands followed each other.
#[derive(Debug, Default)]
struct CommandRate {
    /// Reads and writes.
    commands: u64,
    depth_max: u32,
    first_ns: Option<u64>,
    last_ns: u64,
    /// Time with none in flight, between the first and the last.
    idle_ns: u64,
    /// The packet that ended the latest command.
    latest_end: Option<u64>,
    /// The least time between two commands, and the packets that ended the one and began the other.
    soonest: Option<(u64, [u64; 2])>,
}

#[derive(Debug, Default)]
struct Unit {
    block_bytes: Option<u32>,
    /// The packet that says that UNMAP unmaps.
    offers_unmap: Option<u64>,
    unmaps: u64,
    writes: u64,
    first_write: u64,
    /// The longest read or write, in bytes.
    longest: u64,
    /// Commands of that length that begin where the one before ended.
    pieces: u64,
    first_piece: u64,
    next_lba: u64,
}

impl Units {
    /// Bytes of a block, if the capture has it.
    pub(crate) fn block_bytes(&self, lun: Option<u16>) -> Option<u32> {
        self.units.get(&lun)?.block_bytes
    }

    /// A command begins: whether it is one that failed before and comes again.
    pub(crate) fn is_retry(&mut self, command: &Command) -> Option<u64> {
        if !command.block.moves_blocks() {
            return None;
        }
        let is_same = |(lun, block, _): &(_, _, u64)| (*lun, *block) == (command.lun, command.block);
        let at = self.failed.iter().position(is_same)?;
        self.failed.remove(at).map(|(_, _, packet)| packet)
    }

    /// A command has ended.
    pub(crate) fn look_at(
        &mut self,
        command: &Command,
        answer: &[u8],
        ledger: &mut Ledger,
        missed: Option<u64>,
    ) {
        self.rate.look_at(command);
        if command.is_error() {
            self.remember(command);
            let is_sure = missed.is_none_or(|missed| command.began.packet > missed);
            refused_fua(command, ledger, is_sure);
        }
        if self.units.len() >= UNITS_MAX && !self.units.contains_key(&command.lun) {
            return;
        }
        let unit = self.units.entry(command.lun).or_default();
        // A host has tried, whatever came of it.
        unit.unmaps += u64::from(gives_back(command));
        if !command.is_error() {
            unit.look_at(command, answer);
        }
    }

    /// Another capture begins: what failed in the last one does not come again, and nothing followed its end.
    pub(crate) fn begin_section(&mut self) {
        self.failed.clear();
        self.rate.latest_end = None;
        self.units.values_mut().for_each(|unit| unit.block_bytes = None);
    }

    /// The capture has ended: what can be said of all of it.
    pub(crate) fn finish(
        &self,
        address: Address,
        transport: Transport,
        ledger: &mut Ledger,
        missed: Option<u64>,
    ) {
        let mut finding = |fault, count, packets: &[u64]| {
            let transport = Some(transport);
            ledger.verdicts.add(&Finding {
                address,
                fault,
                transport,
                opcode: None,
                count,
                packets,
                waited_ns: None,
                // It may have been among what is missing.
                is_sure: missed.is_none(),
            });
        };
        for unit in self.units.values() {
            if let Some(packet) = unit.offers_unmap.filter(|_| unit.writes > 0 && unit.unmaps == 0) {
                finding(Fault::TrimNeverSent, 1, &[packet, unit.first_write]);
            }
            let kib = unit.longest / 1024;
            if CUTS_KIB.contains(&kib) && unit.longest % 1024 == 0 && unit.pieces >= PIECES_MIN {
                finding(Fault::CutInPieces(kib as u32), 1, &[unit.first_piece]);
            }
        }
        if let (Transport::Uas, Some((fault, packets))) = (transport, self.rate.never_two()) {
            finding(fault, self.rate.commands, &packets);
        }
    }

    fn remember(&mut self, command: &Command) {
        if command.block.moves_blocks() && command.outcome != Outcome::Overtaken && !is_to_come_again(command)
        {
            self.failed.truncate(FAILED_MAX - 1);
            self.failed.push_front((command.lun, command.block, command.began.packet));
        }
    }
}

impl CommandRate {
    fn look_at(&mut self, command: &Command) {
        self.commands += u64::from(command.block.moves_blocks());
        self.depth_max = self.depth_max.max(command.depth);
        let began = command.began;
        self.first_ns.get_or_insert(began.at_ns);
        self.last_ns = self.last_ns.max(command.ended.map_or(began.at_ns, |ended| ended.at_ns));
        if let (Some(gap), Some(end)) = (command.idle_ns, self.latest_end) {
            self.idle_ns += gap;
            if self.soonest.is_none_or(|(least, _)| gap < least) {
                self.soonest = Some((gap, [end, began.packet]));
            }
        }
        self.latest_end = command.ended.map(|ended| ended.packet);
    }

    /// Whether there were never two in flight, given enough commands, and which two had the shortest gap.
    fn never_two(&self) -> Option<(Fault, [u64; 2])> {
        if self.depth_max != 1 || self.commands < COMMANDS_MIN {
            return None;
        }
        let span_ns = self.last_ns.saturating_sub(self.first_ns?).max(1);
        let idle_percent = (self.idle_ns.min(span_ns).saturating_mul(100) / span_ns) as u8;
        let (gap_ns, packets) = self.soonest?;
        Some((Fault::DepthOne { idle_percent, gap_ns }, packets))
    }
}

impl Unit {
    fn look_at(&mut self, command: &Command, answer: &[u8]) {
        let packet = command.began.packet;
        match command.block.decode() {
            Some(cdb::Command::ReadCapacity10(_)) => {
                self.learn_length(Capacity10::decode(answer).map(|capacity| capacity.block_length).ok());
            }
            Some(cdb::Command::ReadCapacity16(_)) => {
                self.learn_length(Capacity16::decode(answer).map(|capacity| capacity.block_length).ok());
            }
            Some(cdb::Command::Inquiry(inquiry)) if inquiry.evpd && says_unmap(answer) => {
                self.offers_unmap.get_or_insert(command.last_packet());
            }
            Some(cdb::Command::Read(_)) => self.moved(command),
            Some(cdb::Command::Write(_)) => {
                if self.writes == 0 {
                    self.first_write = packet;
                }
                self.writes += 1;
                self.moved(command);
            }
            _ => {}
        }
    }

    fn learn_length(&mut self, bytes: Option<u32>) {
        self.block_bytes = bytes.filter(|&bytes| bytes > 0).or(self.block_bytes);
    }

    /// Blocks were read or written.
    fn moved(&mut self, command: &Command) {
        let Some((lba, blocks)) = command.block.extent() else { return };
        if command.moved > self.longest {
            (self.longest, self.pieces) = (command.moved, 0);
        } else if command.moved == self.longest && lba == self.next_lba {
            if self.pieces == 0 {
                self.first_piece = command.began.packet;
            }
            self.pieces += 1;
        }
        self.next_lba = lba.saturating_add(blocks);
    }
}

/// Whether an answer to INQUIRY is the page that says that UNMAP unmaps.
fn says_unmap(answer: &[u8]) -> bool {
    LogicalBlockProvisioning::decode(answer).is_ok_and(|page| page.unmap)
}

/// Whether a command gives blocks back: UNMAP, WRITE SAME that unmaps, or TRIM of ATA inside a pass-through.
fn gives_back(command: &Command) -> bool {
    match command.block.decode() {
        Some(cdb::Command::Unmap(_)) => true,
        Some(cdb::Command::WriteSame(same)) => same.unmap,
        Some(cdb::Command::AtaPassThrough(ata)) => {
            let registers = ata.registers();
            registers.command == AtaCommand::DataSetManagement && registers.features & TRIM != 0
        }
        _ => false,
    }
}

/// Whether a device failed a command in order to have it sent again: the host was to hear something first, or to wait.
fn is_to_come_again(command: &Command) -> bool {
    let is_full = matches!(command.outcome, Outcome::Status(Status::Busy | Status::TaskSetFull));
    let is_heard = |sense: Sense| matches!(sense.key, SenseKey::UnitAttention | SenseKey::NotReady);
    is_full || command.sense().is_some_and(is_heard)
}

/// A write with FUA that was refused for a field of its command block.
fn refused_fua(command: &Command, ledger: &mut Ledger, is_sure: bool) {
    let fua = match command.block.decode() {
        Some(cdb::Command::Write(write)) => write.fua,
        Some(cdb::Command::Read(read)) => read.fua,
        _ => false,
    };
    let is_refusal = |sense: Sense| {
        sense.key == SenseKey::IllegalRequest && sense.additional == AdditionalSense::INVALID_FIELD_IN_CDB
    };
    if fua && command.sense().is_some_and(is_refusal) {
        ledger.verdicts.add(&Finding {
            address: command.address,
            fault: Fault::FuaRefused,
            transport: Some(command.transport),
            opcode: Some(command.block.opcode()),
            count: 1,
            packets: &[command.began.packet, command.last_packet()],
            waited_ns: None,
            is_sure,
        });
    }
}
