//! The logical units of a drive: queried only when needed.
//!
//! Over Bulk-Only Transport, Get Max LUN (clause 3.2) is sent before any LUN but 0 is used, since a
//! device need not handle a CBW for another. Over UAS, REPORT LUNS is sent to LUN 0 when the wanted
//! one is missing. Nothing is queried in advance for LUN 0: some drives do not answer. Left out:
//! LUNs above 255, and those without a plain number.

use super::{AttachError, Attachment, IDENTIFY_AGAIN_TIMEOUT, Stop};
use crate::host_bus::{HardwareBus, HostBusError};
use initiator::disk::{AskTemperature, DiskConfig};
use quirks::Plan;
use std::time::Instant;
use wire::bot::{ClassRequest, LUN_MAX};
use wire::scsi::lun::{Lun, LunField};

/// Returns the LUN field of a logical unit.
pub(super) fn field(lun: u8) -> LunField {
    Lun::Unit(lun.into()).into()
}

/// Checks that this plan can address the LUN.
pub(super) fn check<D: HardwareBus>(bus: &mut D, plan: Plan, lun: u8) -> Result<(), AttachError<D::Error>> {
    match plan {
        Plan::Bot(_) if lun == 0 => Ok(()),
        Plan::Bot(_) if lun > LUN_MAX => Err(AttachError::UnitOutOfReach { lun }),
        Plan::Bot(bot) => {
            let highest = highest(bus, bot.place.interface)?;
            let units = (0..=highest).map(u16::from).collect();
            if lun <= highest { Ok(()) } else { Err(AttachError::NoUnit { lun, units }) }
        }
        Plan::Uas(_) => Ok(()),
    }
}

/// Returns the highest LUN over Bulk-Only Transport. A device that stalls the request has LUN 0
/// only.
fn highest<D: HardwareBus>(bus: &mut D, interface: u8) -> Result<u8, D::Error> {
    let mut answer = [0];
    match bus.control(ClassRequest::GetMaxLun { interface }.encode(), &mut answer) {
        Ok(moved) => Ok(if moved == 0 { 0 } else { answer[0].min(LUN_MAX) }),
        Err(error) if error.is_stall() => Ok(0),
        Err(error) => Err(error),
    }
}

impl<D: HardwareBus> Attachment<D> {
    /// Explains a failed identify sequence; if the LUN is missing, with the existing ones.
    pub(super) fn explain(
        &mut self,
        error: AttachError<D::Error>,
        plan: Plan,
        config: DiskConfig,
        lun: u8,
        stop: &Stop,
    ) -> AttachError<D::Error> {
        let is_no_unit = matches!(&error, AttachError::Identify(error) if error.is_no_unit());
        // A device that is gone has no units either.
        if !is_no_unit || self.session.bus().is_gone() || self.depth() == 0 {
            return error;
        }
        let units: Vec<u16> = match plan {
            Plan::Bot(bot) => {
                let highest = highest(self.session.bus_mut(), bot.place.interface).ok();
                highest.into_iter().flat_map(|highest| 0..=u16::from(highest)).collect()
            }
            Plan::Uas(_) => {
                self.session.replace_disk(DiskConfig { report_luns: true, ..config });
                // It ends as the one before.
                let _ = self.identify(AskTemperature::Not, Instant::now() + IDENTIFY_AGAIN_TIMEOUT, stop);
                self.session.disk().luns().iter().filter_map(number).collect()
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
