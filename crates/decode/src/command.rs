//! One SCSI command as it was seen: where, when, what it asked for, what moved, how it ended.
//!
//! The same for every transport. Left out: data, but for sense data; additional bytes of long command blocks. Invariants: a command has
//! at most [`STEPS_MAX`] transfers with it, and says how many more there were.

use crate::event::{Address, Mark, Phase, TransferEnd};
use std::fmt;
use wire::bot::CswStatus;
use wire::cbi::CommandStatus;
use wire::scsi::cdb;
use wire::scsi::opcode::OperationCode;
use wire::scsi::sense::Sense;
use wire::scsi::{Status, opcode};
use wire::uas::ResponseCode;

/// Ends of transfers that are kept of one command; further ones are counted.
pub const STEPS_MAX: usize = 64;
/// Bytes of sense data that are kept of one command.
pub const SENSE_BYTES_MAX: usize = 252;

/// The transport of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// Bulk-Only Transport.
    Bot,
    /// USB Attached SCSI.
    Uas,
    /// Control/Bulk/Interrupt Transport, with an interrupt endpoint or without.
    Cbi,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With a status, over UAS; over CBI without an interrupt endpoint as REQUEST SENSE reports it.
    Status(Status),
    /// With a status wrapper, over BOT.
    Wrapper(CswStatus),
    /// With a status block of the interrupt endpoint, over CBI.
    Completion(CommandStatus),
    /// With a STALL of the command block, or of data where nothing else reports a failure; CBI.
    Stalled,
    /// Without one: the device has no interrupt endpoint, and the host did not request sense data; CBI.
    NoStatus,
    /// With a RESPONSE IU: the device did not take it.
    Response(ResponseCode),
    /// With a status that was not kept.
    NotKept,
    /// The host aborted it, or reset the device.
    Aborted,
    /// Its status was invalid.
    Broken,
    /// The next command, or one with its tag, came before its status.
    Overtaken,
    /// The capture ended before.
    Unfinished,
    /// It was discarded, since too many were in flight.
    Discarded,
}

/// Which part of a command a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The wrapper, information unit or class request that begins it.
    Command,
    /// READ READY or WRITE READY.
    Ready,
    /// Data to the host.
    DataIn,
    /// Data to the device.
    DataOut,
    /// The wrapper, information unit or status block that ends it.
    Status,
}

/// One end of a transfer of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferStep {
    /// Which packet, when.
    pub mark: Mark,
    /// Its part in the command.
    pub part: Part,
    /// Which end.
    pub phase: Phase,
    /// Bytes asked for, or moved; nothing where the capture does not say.
    pub length: Option<u32>,
}

/// The command block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    bytes: [u8; 16],
    len: u8,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The device.
    pub address: Address,
    /// The transport that carried it.
    pub transport: Transport,
    /// The logical unit; nothing if the field names none that a drive has.
    pub lun: Option<u16>,
    /// Its tag; 0 over CBI, which has none.
    pub tag: u32,
    /// Its stream, where the capture has it.
    pub stream: Option<u16>,
    /// The command block.
    pub block: Block,
    /// When the host sent it.
    pub began: Mark,
    /// When it was sent, in nanoseconds of the capture's clock.
    pub sent_ns: Option<u64>,
    /// The first and the last end of its data.
    pub data: Option<(Mark, Mark)>,
    /// When its status came, or what else ended it.
    pub ended: Option<Mark>,
    /// Bytes that the host wanted to move.
    pub asked: Option<u64>,
    /// Bytes that moved.
    pub moved: u64,
    /// Bytes that the device says did not move; BOT.
    pub residue: Option<u32>,
    /// How it ended.
    pub outcome: Outcome,
    /// Its sense data, however the host got them.
    pub sense: Vec<u8>,
    /// Commands in flight at the device when it was sent, it included.
    pub depth: u32,
    /// Nanoseconds since the device's last command, if none was in flight.
    pub idle_ns: Option<u64>,
    /// Its transfers, [`STEPS_MAX`] at most.
    pub steps: Vec<TransferStep>,
    /// Further ones.
    pub steps_left_off: u32,
}

impl Block {
    /// As many of the bytes as their operation code says, 16 at most.
    pub fn new(bytes: &[u8]) -> Self {
        let len = opcode::cdb_len(bytes).unwrap_or(16).min(bytes.len()).min(16);
        let mut block = [0; 16];
        block[..len].copy_from_slice(&bytes[..len]);
        Self { bytes: block, len: len as u8 }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len.into()]
    }

    /// Decodes the command; `None` if it is not known.
    pub fn decode(&self) -> Option<cdb::Command> {
        cdb::Command::decode(self.bytes()).ok()
    }

    /// The operation code.
    pub fn opcode(&self) -> OperationCode {
        self.bytes[0].into()
    }

    /// First block and number of blocks, of a command that names them.
    pub fn extent(&self) -> Option<(u64, u64)> {
        use cdb::Command as C;
        Some(match self.decode()? {
            C::Read(one) => (one.lba, one.blocks.into()),
            C::Write(one) => (one.lba, one.blocks.into()),
            C::Verify(one) => (one.lba, one.blocks.into()),
            C::WriteAndVerify(one) => (one.lba, one.blocks.into()),
            C::WriteSame(one) => (one.lba, one.blocks.into()),
            C::OrWrite(one) => (one.lba, one.blocks.into()),
            C::WriteAtomic(one) => (one.lba, one.blocks.into()),
            C::CompareAndWrite(one) => (one.lba, one.blocks.into()),
            C::PreFetch(one) => (one.lba, one.blocks.into()),
            C::SynchronizeCache(one) => (one.lba, one.blocks.into()),
            _ => return None,
        })
    }

    /// Whether it reads blocks or writes them.
    pub fn moves_blocks(&self) -> bool {
        matches!(self.decode(), Some(cdb::Command::Read(_) | cdb::Command::Write(_)))
    }

    /// The name of the command, without its fields; its code where it has none here.
    pub fn name(&self) -> String {
        self.decode().map_or_else(|| self.opcode().to_string(), |command| command.name().to_owned())
    }
}

impl Command {
    /// From the command to its end, in nanoseconds.
    pub fn duration_ns(&self) -> Option<u64> {
        Some(self.ended?.at_ns.saturating_sub(self.began.at_ns))
    }

    /// Whether it did not end as it should.
    pub fn is_error(&self) -> bool {
        match self.outcome {
            Outcome::Status(status) => !matches!(status, Status::Good | Status::ConditionMet),
            Outcome::Wrapper(status) => status != CswStatus::Passed,
            // The status block of REQUEST SENSE repeats what its data report.
            Outcome::Completion(status) => {
                !status.is_success() && self.block.opcode() != OperationCode::RequestSense
            }
            Outcome::Stalled
            | Outcome::Response(_)
            | Outcome::Aborted
            | Outcome::Broken
            | Outcome::Overtaken => true,
            Outcome::NoStatus | Outcome::NotKept | Outcome::Unfinished | Outcome::Discarded => false,
        }
    }

    /// Its sense data, spelt out.
    pub fn sense(&self) -> Option<Sense> {
        Sense::decode(&self.sense).ok()
    }

    /// The last of its packets that is known.
    pub fn last_packet(&self) -> u64 {
        let last = self.steps.iter().map(|step| step.mark.packet).max();
        last.max(self.ended.map(|mark| mark.packet)).unwrap_or(self.began.packet)
    }

    pub(crate) fn keep_sense(&mut self, sense: &[u8]) {
        self.sense = sense[..sense.len().min(SENSE_BYTES_MAX)].to_vec();
    }

    pub(crate) fn step(&mut self, step: TransferStep) {
        if self.steps.len() < STEPS_MAX {
            self.steps.push(step);
        } else {
            self.steps_left_off += 1;
        }
    }
}

impl TransferEnd {
    /// Whether it ended because the host or the bus ended it.
    pub(crate) const fn is_cut_short(self) -> bool {
        matches!(self, Self::Cancelled | Self::Gone)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bot => "BOT",
            Self::Uas => "UAS",
            Self::Cbi => "CBI",
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => status.fmt(f),
            Self::Wrapper(status) => status.fmt(f),
            Self::Completion(status) => status.fmt(f),
            Self::Stalled => f.write_str("stall"),
            Self::NoStatus => f.write_str("no status"),
            Self::Response(code) => code.fmt(f),
            Self::NotKept => f.write_str("status not captured"),
            Self::Aborted => f.write_str("aborted"),
            Self::Broken => f.write_str("broken status"),
            Self::Overtaken => f.write_str("no status"),
            Self::Unfinished => f.write_str("incomplete at the end of the capture"),
            Self::Discarded => f.write_str("discarded"),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Command => "command",
            Self::Ready => "ready",
            Self::DataIn => "data in",
            Self::DataOut => "data out",
            Self::Status => "status",
        })
    }
}

impl fmt::Display for Block {
    /// Writes the decoded command, or its bytes if it is not known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.decode() {
            Some(command) => command.fmt(f),
            None => {
                write!(f, "{}, bytes 0x", self.opcode())?;
                self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}
