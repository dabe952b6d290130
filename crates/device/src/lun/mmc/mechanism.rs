//! MECHANISM STATUS (MMC-6 clause 6.11): an idle drive with a tray, without a changer.

use super::{Decision, brief, fields, reply, settle};
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, Readiness};
use wire::scsi::cdb::MechanismStatus;
use wire::scsi::mmc::MechanismState;

pub(in crate::lun) const ROW: Row =
    brief(&[0xbd, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0x04], Needs::UNIT, |context, cdb| {
        settle(plan(context, cdb))
    });

fn plan(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(MechanismStatus::decode(cdb))?;
    let state = MechanismState {
        fault: false,
        state: 0,
        tray_open: context.unit.readiness == Readiness::Ejected,
        slots: 0,
        table_length: 0,
    };
    Ok(reply(context, command.allocation_len, &[&state.encode()]))
}
