//! Results of the traffic so far: completed commands, in the order of their completion, and
//! verdicts.

use crate::command::{Command, Transport};
use crate::event::Address;
use crate::unit::Units;
use crate::verdict::{Fault, Finding, Verdicts};
use std::collections::VecDeque;
use wire::scsi::opcode::OperationCode;

/// Results of all devices.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) ended: VecDeque<Command>,
    pub(crate) verdicts: Verdicts,
    pub(crate) losses: Losses,
}

/// Counts of what was discarded because of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Devices that were discarded for newer ones.
    pub devices: u64,
    /// Commands that were discarded for newer ones.
    pub commands: u64,
    /// Transfers that were discarded before they ended.
    pub transfers: u64,
    /// Occurrences of faults past the limit of verdicts.
    pub faults: u64,
    /// Data that belonged to no command that is known: the capture began in the middle, or cannot say.
    pub data_without_command: u64,
}

/// Through which the machine of a transport reports what it finds.
pub(crate) struct Reporter<'a> {
    pub(crate) address: Address,
    pub(crate) transport: Transport,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) units: &'a mut Units,
    /// Behind this packet others are missing, and perhaps anywhere before it.
    pub(crate) missed: Option<u64>,
}

impl Reporter<'_> {
    /// A command has ended; `answer` is what its data began with.
    pub(crate) fn end(&mut self, command: Command, answer: &[u8]) {
        self.units.look_at(&command, answer, self.ledger, self.missed);
        self.ledger.ended.push_back(command);
    }

    /// Packets show it by themselves.
    pub(crate) fn record(&mut self, fault: Fault, packets: &[u64]) {
        self.finding(fault, None, packets, first(packets), None);
    }

    /// The same, of a command that has this operation code.
    pub(crate) fn record_with(&mut self, fault: Fault, opcode: OperationCode, packets: &[u64]) {
        self.finding(fault, Some(opcode), packets, first(packets), None);
    }

    /// Packets show it, if nothing is missing since this one.
    pub(crate) fn record_since(&mut self, since: u64, fault: Fault, packets: &[u64]) {
        self.finding(fault, None, packets, since, None);
    }

    /// A command is affected: sure if nothing is missing since it began.
    pub(crate) fn record_in(&mut self, command: &Command, fault: Fault, packets: &[u64]) {
        self.finding(fault, Some(command.block.opcode()), packets, command.began.packet, None);
    }

    /// Whether nothing is missing since this packet.
    pub(crate) fn has_all_since(&self, packet: u64) -> bool {
        self.missed.is_none_or(|missed| packet > missed)
    }

    /// The host gave up on a command, after a while or soon.
    pub(crate) fn record_abort(&mut self, command: &Command, waited_ns: u64, packet: u64) {
        const TIMEOUT_MIN_NS: u64 = 1_000_000_000;
        let fault = if waited_ns >= TIMEOUT_MIN_NS { Fault::NoResponse } else { Fault::Aborted };
        let packets = [command.began.packet, packet];
        self.finding(fault, Some(command.block.opcode()), &packets, command.began.packet, Some(waited_ns));
    }

    fn finding(
        &mut self,
        fault: Fault,
        opcode: Option<OperationCode>,
        packets: &[u64],
        since: u64,
        waited_ns: Option<u64>,
    ) {
        let (address, transport) = (self.address, Some(self.transport));
        let is_sure = self.has_all_since(since);
        let finding = Finding { address, fault, transport, opcode, count: 1, packets, waited_ns, is_sure };
        self.ledger.verdicts.add(&finding);
    }
}

fn first(packets: &[u64]) -> u64 {
    packets.iter().copied().min().unwrap_or(0)
}
