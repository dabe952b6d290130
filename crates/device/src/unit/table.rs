//! The commands a unit knows, as rows.
//!
//! A row is all that the rest of the target knows of a command: REPORT SUPPORTED OPERATION CODES is printed from it
//! (SPC-4 clause 6.35), reservations and readiness are checked by it, the executor calls its functions.

use super::{Context, Plan, UnitConfig, reservation, sat, sbc, spc};
use crate::medium::MediumDone;
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
    /// Byte 0 of the CDB.
    pub opcode: OperationCode,
    /// The service action, for operation codes that have them.
    pub service_action: Option<u16>,
    /// Its name in the standard.
    pub name: &'static str,
    /// CDB usage data (SPC-4 clause 6.35.3): as long as the CDB; a set bit is one that the unit looks at.
    /// Byte 0 is the operation code.
    pub usage: &'static [u8],
    /// What it touches.
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

/// What must hold before a command may run (checked in [`super::gate`]).
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

/// What a command does to a reserved unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Allowed whatever is reserved.
    Always,
    /// Reads: refused under another's exclusive access.
    Read,
    /// Changes something: refused under another's write exclusive as well.
    Write,
}

impl Needs {
    /// No reservation, readiness or attention holds it up: INQUIRY, REPORT LUNS, REQUEST SENSE.
    pub const NOTHING: Self = Self { ignores_attention: true, ..Self::UNIT };
    /// Tells about the unit, medium or not.
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
    /// A command whose plan says everything: no service action, no parameter list, no later step. Half a minute is
    /// enough for it.
    pub const fn planned(
        opcode: OperationCode,
        name: &'static str,
        usage: &'static [u8],
        needs: Needs,
        plan: PlanFn,
    ) -> Self {
        Self {
            opcode,
            service_action: None,
            name,
            usage,
            needs,
            timeout_s: 30,
            plan,
            on_list: None,
            on_medium: None,
        }
    }

    /// Whether a unit of this kind has the command.
    pub const fn is_offered(&self, config: &UnitConfig) -> bool {
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

/// Every row, by family.
pub static FAMILIES: &[&[Row]] = &[spc::ROWS, sbc::ROWS, reservation::ROWS, sat::ROWS];

/// All rows, in the order of their families.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    FAMILIES.iter().copied().flatten()
}

/// Finds rows by CDB in constant time; made once per device.
#[derive(Debug)]
pub struct Index {
    by_opcode: [Option<&'static Row>; 256],
}

impl Default for Index {
    fn default() -> Self {
        let mut by_opcode = [None; 256];
        for row in rows() {
            by_opcode[usize::from(u8::from(row.opcode))].get_or_insert(row);
        }
        Self { by_opcode }
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

impl Index {
    /// The row of a CDB.
    #[inline(always)]
    pub fn find(&self, cdb: &[u8]) -> Result<&'static Row, Unsupported> {
        let opcode = *cdb.first().ok_or(Unsupported::CdbLength)?;
        let row = self.by_opcode[usize::from(opcode)].ok_or(Unsupported::OperationCode)?;
        let row = match row.service_action {
            None => row,
            Some(_) => {
                let action = opcode::service_action(cdb).ok_or(Unsupported::CdbLength)?;
                rows()
                    .find(|row| u8::from(row.opcode) == opcode && row.service_action == Some(action))
                    .ok_or(Unsupported::ServiceAction)?
            }
        };
        if cdb.len() < row.usage.len() { Err(Unsupported::CdbLength) } else { Ok(row) }
    }
}
