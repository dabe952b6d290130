//! Row of a command: everything that the rest of the device knows of it.
//!
//! REPORT SUPPORTED OPERATION CODES is built from rows (SPC-4 clause 6.35), reservations and readiness are checked by them,
//! the executor calls their functions. Operation code, service action and CDB length are stated once, in the usage map.
//! The list of all rows is [`super::registry`].

use super::access::Access;
use super::{Context, LogicalUnitConfig, Plan};
use crate::medium::MediumDone;
use core::fmt;
use wire::scsi::cdb::Control;
use wire::scsi::opcode::{self, OperationCode};

/// Looks at a CDB.
pub type PlanFn = fn(&mut Context<'_>, cdb: &[u8]) -> Plan;
/// Looks at a parameter list.
pub type ListFn = fn(&mut Context<'_>, cdb: &[u8], list: &[u8]) -> Plan;
/// Looks at a medium's answer; `list` is the parameter list, if there was one.
pub type MediumFn = fn(&mut Context<'_>, cdb: &[u8], list: &[u8], done: MediumDone) -> Plan;

/// One command.
#[derive(Debug)]
pub struct Row {
    /// CDB usage data (SPC-4 clause 6.35.3): as long as the CDB; a set bit is one that the unit evaluates. Byte 0 is the
    /// operation code and, where that code has them, bits 4:0 of byte 1 are the service action.
    pub usage: &'static [u8],
    /// Conditions for it to run.
    pub needs: Needs,
    /// How long it may take, in seconds (command timeouts descriptor).
    pub timeout_s: u32,
    /// Looks at the CDB.
    pub plan: PlanFn,
    /// Looks at the parameter list that [`Plan::List`] asked for.
    pub on_list: Option<ListFn>,
    /// Looks at what the medium has answered to [`Plan::Medium`].
    pub on_medium: Option<MediumFn>,
}

/// Conditions for a command to run (checked in [`super::precheck`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// How reservations of others touch it (SPC-5 table 66, SBC-4 table 13).
    pub access: Access,
    /// Whether the unit must be ready: medium in, started, no format or sanitize running.
    pub ready: bool,
    /// Whether it runs although a unit attention condition is pending, and leaves it pending (SAM-6 clause 5.14).
    pub ignores_attention: bool,
    /// Whether no other command may be in the task set's enabled state beside it.
    pub exclusive: bool,
    /// Whether the medium must write atomically. Where it does not, the unit has no such command.
    pub atomic_writes: bool,
}

impl Needs {
    /// No reservation, readiness or attention holds it up: INQUIRY, REPORT LUNS, REQUEST SENSE.
    pub const NOTHING: Self = Self { ignores_attention: true, ..Self::UNIT };
    /// Describes the unit, with or without a medium.
    pub const UNIT: Self = Self {
        access: Access::Always,
        ready: false,
        ignores_attention: false,
        exclusive: false,
        atomic_writes: false,
    };
    /// Reads the medium.
    pub const READ: Self = Self { access: Access::Read, ready: true, ..Self::UNIT };
    /// Writes the medium.
    pub const WRITE: Self = Self { access: Access::Write, ready: true, ..Self::UNIT };

    /// The same, alone in the enabled state.
    pub const fn exclusive(self) -> Self {
        Self { exclusive: true, ..self }
    }
}

impl Row {
    /// A command without a parameter list and without a later step, with a timeout of 30 s.
    pub const fn planned(usage: &'static [u8], needs: Needs, plan: PlanFn) -> Self {
        Self { usage, needs, timeout_s: 30, plan, on_list: None, on_medium: None }
    }

    /// Byte 0 of the CDB.
    pub fn opcode(&self) -> OperationCode {
        self.usage.first().map_or(OperationCode::TestUnitReady, |&byte| OperationCode::from(byte))
    }

    /// The service action, for operation codes that have them.
    pub fn service_action(&self) -> Option<u16> {
        opcode::service_action(self.usage)
    }

    /// Whether a unit of this kind has the command.
    pub const fn is_offered(&self, config: &LogicalUnitConfig) -> bool {
        config.atomic_writes || !self.needs.atomic_writes
    }

    /// Whether the CDB asks for an auto contingent allegiance should the command fail (NACA, SAM-6 clause 5.2).
    pub fn has_naca(&self, cdb: &[u8]) -> bool {
        self.usage
            .len()
            .checked_sub(1)
            .and_then(|last| cdb.get(last))
            .is_some_and(|&byte| Control(byte).naca())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.service_action() {
            None => self.opcode().fmt(f),
            Some(action) => write!(f, "{}, service action {action:#04x}", self.opcode()),
        }
    }
}

/// Why there is no row for a CDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// The operation code.
    OperationCode,
    /// The service action of an operation code that is known otherwise.
    ServiceAction,
    /// The CDB is shorter than the command.
    CdbLength,
}
