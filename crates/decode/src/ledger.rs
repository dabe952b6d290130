//! What came of the traffic so far: commands that have ended, in the order in which they did, and verdicts.

use crate::command::{Command, Transport};
use crate::event::Address;
use crate::unit::Units;
use crate::verdict::{Charge, Fault, Verdicts};
use std::collections::VecDeque;
use wire::scsi::opcode::OperationCode;

/// What is told of all devices.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) ended: VecDeque<Command>,
    pub(crate) verdicts: Verdicts,
    pub(crate) losses: Losses,
}

/// What was left off because of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Devices that were forgotten for others.
    pub devices: u64,
    /// Commands that were let go of for others.
    pub commands: u64,
    /// Transfers that were forgotten before they ended.
    pub transfers: u64,
    /// Occurrences of faults past the limit of verdicts.
    pub faults: u64,
    /// Data that belonged to no command that is known: the capture began in the middle, or cannot say.
    pub data_without_command: u64,
}

/// Where the machine of a transport writes what it finds.
pub(crate) struct Desk<'a> {
    pub(crate) address: Address,
    pub(crate) transport: Transport,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) units: &'a mut Units,
}

impl Desk<'_> {
    /// A command has ended; `answer` is what its data began with.
    pub(crate) fn end(&mut self, command: Command, answer: &[u8]) {
        self.units.look_at(&command, answer, self.ledger);
        self.ledger.ended.push_back(command);
    }

    pub(crate) fn blame(&mut self, fault: Fault, packets: &[u64]) {
        self.charge(fault, None, packets, None);
    }

    pub(crate) fn blame_with(&mut self, fault: Fault, opcode: OperationCode, packets: &[u64]) {
        self.charge(fault, Some(opcode), packets, None);
    }

    /// The host gave up on a command, after a while or soon.
    pub(crate) fn blame_abort(&mut self, command: &Command, waited_ns: u64, packet: u64) {
        const PATIENCE_NS: u64 = 1_000_000_000;
        let fault = if waited_ns >= PATIENCE_NS { Fault::NeverAnswered } else { Fault::TakenBack };
        let packets = [command.began.packet, packet];
        self.charge(fault, Some(command.block.opcode()), &packets, Some(waited_ns));
    }

    fn charge(
        &mut self,
        fault: Fault,
        opcode: Option<OperationCode>,
        packets: &[u64],
        waited_ns: Option<u64>,
    ) {
        let (address, transport) = (self.address, Some(self.transport));
        self.ledger.verdicts.add(&Charge { address, fault, transport, opcode, packets, waited_ns });
    }
}
