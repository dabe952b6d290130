//! Which logical units a drive has: asked for where it must be known, and not otherwise.
//!
//! Bulk-Only Transport tells the highest (Get Max LUN, clause 3.2); it is asked before any unit but 0 is, since no device need know what to
//! make of a wrapper for another. Over UAS unit 0 knows all (REPORT LUNS), and is asked when the one that is wanted is not there. Of
//! unit 0 nothing is asked in advance: some drives have no answer. Left out: units past 255, and others than those with a plain number.

use super::setup::SURVEY_AGAIN_TIMEOUT;
use super::{AttachError, Attachment, Stop};
use crate::door::{BusDoor, DoorError};
use initiator::disk::{AskTemperature, Disk, DiskConfig};
use quirks::Plan;
use std::time::Instant;
use wire::bot::{ClassRequest, LUN_MAX};
use wire::scsi::lun::{Lun, LunField};

/// The LUN field of a unit.
pub(super) fn field(lun: u8) -> LunField {
    Lun::Unit(lun.into()).into()
}

/// Whether commands can reach a unit with this plan, as far as the bus tells.
pub(super) fn check<D: BusDoor>(door: &mut D, plan: Plan, lun: u8) -> Result<(), AttachError<D::Error>> {
    match plan {
        Plan::Bot(_) if lun == 0 => Ok(()),
        Plan::Bot(_) if lun > LUN_MAX => Err(AttachError::UnitOutOfReach { lun }),
        Plan::Bot(bot) => {
            let highest = highest(door, bot.place.interface)?;
            let units = (0..=highest).map(u16::from).collect();
            if lun <= highest { Ok(()) } else { Err(AttachError::NoUnit { lun, units }) }
        }
        Plan::Uas(_) => Ok(()),
    }
}

/// The highest unit over Bulk-Only Transport. A device that refuses to tell has unit 0 alone.
fn highest<D: BusDoor>(door: &mut D, interface: u8) -> Result<u8, D::Error> {
    let mut answer = [0];
    match door.control(ClassRequest::GetMaxLun { interface }.encode(), &mut answer) {
        Ok(moved) => Ok(if moved == 0 { 0 } else { answer[0].min(LUN_MAX) }),
        Err(error) if error.is_stall() => Ok(0),
        Err(error) => Err(error),
    }
}

impl<D: BusDoor> Attachment<D> {
    /// Why the survey of a unit has failed; if the unit is not there, with those that are.
    pub(super) fn explain(
        &mut self,
        error: AttachError<D::Error>,
        plan: Plan,
        (config, lun): (DiskConfig, u8),
        stop: &Stop,
    ) -> AttachError<D::Error> {
        let is_no_unit = matches!(&error, AttachError::Survey(error) if error.is_no_unit());
        // A device that is gone has no units either.
        if !is_no_unit || self.door.is_gone() || self.depth() == 0 {
            return error;
        }
        let units: Vec<u16> = match plan {
            Plan::Bot(bot) => {
                let highest = highest(&mut self.door, bot.place.interface).ok();
                highest.into_iter().flat_map(|highest| 0..=u16::from(highest)).collect()
            }
            Plan::Uas(_) => {
                self.disk = Disk::new(DiskConfig { report_luns: true, ..config });
                // It ends as the one before.
                let _ = self.survey(AskTemperature::Not, Instant::now() + SURVEY_AGAIN_TIMEOUT, stop);
                self.disk.luns().iter().filter_map(number).collect()
            }
        };
        let others = units.into_iter().filter(|unit| *unit != lun.into());
        AttachError::NoUnit { lun, units: others.collect() }
    }
}

fn number(field: &LunField) -> Option<u16> {
    match field.lun() {
        Some(Lun::Unit(number)) => Some(number),
        _ => None,
    }
}
