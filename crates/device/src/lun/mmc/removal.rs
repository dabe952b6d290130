//! PREVENT ALLOW MEDIUM REMOVAL of a disc drive (MMC-6 clause 6.18).
//!
//! The persistent prevention, by which a host asks for eject requests, is the same lock here: either form prevents, either
//! allows. A person who asks for the disc meanwhile is reported as an eject request.

use super::{Decision, brief, fields, settle};
use crate::lun::access::Access;
use crate::lun::row::{Needs, Row};
use crate::lun::{LogicalUnit, Plan};
use wire::scsi::cdb::{Prevent, PreventAllowMediumRemoval};

pub(in crate::lun) const PREVENT_ALLOW_MEDIUM_REMOVAL: Row =
    brief(&[0x1e, 0, 0, 0, 0x03, 0x04], Needs { access: Access::Write, ..Needs::UNIT }, |context, cdb| {
        settle(plan(context.unit, cdb))
    });

fn plan(unit: &mut LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(PreventAllowMediumRemoval::decode(cdb))?;
    // The upper bit is obsolete for disks, and says "persistent" here.
    unit.removal_prevented = match command.prevent {
        Prevent::Allow | Prevent::ObsoleteAllow => false,
        Prevent::Prevent | Prevent::ObsoletePrevent => true,
    };
    Ok(Plan::Good)
}
