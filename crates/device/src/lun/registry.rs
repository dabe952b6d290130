//! The list of commands, and how a CDB is matched to one of them.
//!
//! A row is defined beside its command; its name here makes it a command of the device.

use super::row::{Row, Unsupported};
use super::{LogicalUnit, UnitType, mmc, reservation, sat, sbc, spc, ufi};
use wire::scsi::opcode::{self, OperationCode};

/// Every command of a disk, by family: SPC, SBC, reservations, SAT.
static DISK: &[&Row] = &[
    &spc::test_unit_ready::ROW,
    &spc::request_sense::ROW,
    &spc::inquiry::ROW,
    &spc::mode_select::ROW_6,
    &spc::mode_sense::ROW_6,
    &spc::receive_diagnostic_results::ROW,
    &spc::send_diagnostic::ROW,
    &spc::write_buffer::ROW,
    &spc::read_buffer::ROW,
    &spc::log_select::ROW,
    &spc::log_sense::ROW,
    &spc::mode_select::ROW_10,
    &spc::mode_sense::ROW_10,
    &spc::report_luns::ROW,
    &spc::report_supported_operation_codes::ROW,
    &spc::report_supported_task_management_functions::ROW,
    &sbc::read_write::READ_6,
    &sbc::read_write::READ_10,
    &sbc::read_write::READ_12,
    &sbc::read_write::READ_16,
    &sbc::read_write::WRITE_6,
    &sbc::read_write::WRITE_10,
    &sbc::read_write::WRITE_12,
    &sbc::read_write::WRITE_16,
    &sbc::capacity::READ_CAPACITY_10,
    &sbc::capacity::READ_CAPACITY_16,
    &sbc::lba_status::GET_LBA_STATUS,
    &sbc::cache::SYNCHRONIZE_CACHE_10,
    &sbc::cache::SYNCHRONIZE_CACHE_16,
    &sbc::cache::PRE_FETCH_10,
    &sbc::cache::PRE_FETCH_16,
    &sbc::verify::VERIFY_10,
    &sbc::verify::VERIFY_12,
    &sbc::verify::VERIFY_16,
    &sbc::verify::WRITE_AND_VERIFY_10,
    &sbc::verify::WRITE_AND_VERIFY_12,
    &sbc::verify::WRITE_AND_VERIFY_16,
    &sbc::write_same::WRITE_SAME_10,
    &sbc::write_same::WRITE_SAME_16,
    &sbc::unmap::UNMAP,
    &sbc::atomic::COMPARE_AND_WRITE,
    &sbc::atomic::ORWRITE_16,
    &sbc::atomic::WRITE_ATOMIC_16,
    &sbc::power::START_STOP_UNIT,
    &sbc::power::PREVENT_ALLOW_MEDIUM_REMOVAL,
    &sbc::format::FORMAT_UNIT,
    &sbc::sanitize::OVERWRITE,
    &sbc::sanitize::BLOCK_ERASE,
    &sbc::sanitize::CRYPTOGRAPHIC_ERASE,
    &sbc::sanitize::EXIT_FAILURE_MODE,
    &sbc::defects::READ_DEFECT_DATA_10,
    &sbc::defects::READ_DEFECT_DATA_12,
    &reservation::reserve_release::RESERVE_6,
    &reservation::reserve_release::RELEASE_6,
    &reservation::reserve_release::RESERVE_10,
    &reservation::reserve_release::RELEASE_10,
    &reservation::persistent_reserve_in::READ_KEYS,
    &reservation::persistent_reserve_in::READ_RESERVATION,
    &reservation::persistent_reserve_in::REPORT_CAPABILITIES,
    &reservation::persistent_reserve_in::READ_FULL_STATUS,
    &reservation::persistent_reserve_out::REGISTER,
    &reservation::persistent_reserve_out::RESERVE,
    &reservation::persistent_reserve_out::RELEASE,
    &reservation::persistent_reserve_out::CLEAR,
    &reservation::persistent_reserve_out::PREEMPT,
    &reservation::persistent_reserve_out::PREEMPT_AND_ABORT,
    &reservation::persistent_reserve_out::REGISTER_AND_IGNORE_EXISTING_KEY,
    &reservation::register_and_move::REGISTER_AND_MOVE,
    &reservation::replace_lost_reservation::REPLACE_LOST_RESERVATION,
    &sat::pass_through::ROW_12,
    &sat::pass_through::ROW_16,
];

/// Every command of an optical drive, by family: SPC, SBC, MMC.
static OPTICAL: &[&Row] = &[
    &spc::test_unit_ready::ROW,
    &spc::request_sense::ROW,
    &spc::inquiry::ROW,
    &spc::mode_select::ROW_6,
    &spc::mode_sense::ROW_6,
    &spc::mode_select::ROW_10,
    &spc::mode_sense::ROW_10,
    &spc::report_luns::ROW,
    &sbc::read_write::READ_10,
    &sbc::read_write::READ_12,
    &sbc::capacity::READ_CAPACITY_10,
    &sbc::power::START_STOP_UNIT,
    &mmc::removal::PREVENT_ALLOW_MEDIUM_REMOVAL,
    &mmc::capacities::ROW,
    &mmc::toc::ROW,
    &mmc::configuration::ROW,
    &mmc::events::ROW,
    &mmc::information::READ_DISC_INFORMATION,
    &mmc::information::READ_TRACK_INFORMATION,
    &mmc::performance::GET_PERFORMANCE,
    &mmc::structure::ROW,
    &mmc::performance::SET_CD_SPEED,
    &mmc::mechanism::ROW,
    &mmc::read_cd::ROW,
];

/// Every command of a floppy drive: those of disks that UFI has as well, and its own.
static FLOPPY: &[&Row] = &[
    &spc::test_unit_ready::ROW,
    &ufi::position::REZERO_UNIT,
    &spc::request_sense::ROW,
    &ufi::format::ROW,
    &ufi::inquiry::ROW,
    &sbc::power::START_STOP_UNIT,
    &spc::send_diagnostic::ROW,
    &sbc::power::PREVENT_ALLOW_MEDIUM_REMOVAL,
    &ufi::capacities::ROW,
    &sbc::capacity::READ_CAPACITY_10,
    &sbc::read_write::READ_10,
    &sbc::read_write::WRITE_10,
    &ufi::position::SEEK_10,
    &sbc::verify::WRITE_AND_VERIFY_10,
    &sbc::verify::VERIFY_10,
    &ufi::mode::SELECT,
    &ufi::mode::SENSE,
    &sbc::read_write::READ_12,
    &sbc::read_write::WRITE_12,
];

/// All commands of a unit, in the order in which they are reported.
pub fn rows(unit_type: UnitType) -> impl Iterator<Item = &'static Row> {
    let rows = match unit_type {
        UnitType::Disk => DISK,
        UnitType::Optical => OPTICAL,
        UnitType::Floppy => FLOPPY,
    };
    rows.iter().copied()
}

/// Finds rows by CDB in constant time; built once per device.
#[derive(Debug)]
pub struct Index {
    disk: ByOpcode,
    optical: ByOpcode,
    floppy: ByOpcode,
}

type ByOpcode = [Option<Entry>; 256];

/// The commands of one operation code.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// The operation code is one command.
    Single(&'static Row),
    /// A service action selects the command.
    ByServiceAction,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            disk: by_opcode(UnitType::Disk),
            optical: by_opcode(UnitType::Optical),
            floppy: by_opcode(UnitType::Floppy),
        }
    }
}

fn by_opcode(unit_type: UnitType) -> ByOpcode {
    let mut by_opcode = [None; 256];
    for row in rows(unit_type) {
        let entry = if row.service_action().is_some() { Entry::ByServiceAction } else { Entry::Single(row) };
        by_opcode[usize::from(u8::from(row.opcode()))] = Some(entry);
    }
    by_opcode
}

impl Index {
    /// The row of a CDB to a unit; that of a disk where there is none.
    #[inline(always)]
    pub fn find(&self, unit: Option<&LogicalUnit>, cdb: &[u8]) -> Result<&'static Row, Unsupported> {
        let opcode = *cdb.first().ok_or(Unsupported::CdbLength)?;
        let unit_type = unit.map_or(UnitType::Disk, |unit| unit.config.unit_type);
        let by_opcode = match unit_type {
            UnitType::Disk => &self.disk,
            UnitType::Optical => &self.optical,
            UnitType::Floppy => &self.floppy,
        };
        let row = match by_opcode[usize::from(opcode)].ok_or(Unsupported::OperationCode)? {
            Entry::Single(row) => row,
            Entry::ByServiceAction => {
                let action = opcode::service_action(cdb).ok_or(Unsupported::CdbLength)?;
                let opcode = OperationCode::from(opcode);
                rows(unit_type)
                    .find(|row| row.opcode() == opcode && row.service_action() == Some(action))
                    .ok_or(Unsupported::ServiceAction)?
            }
        };
        if cdb.len() < row.usage.len() { Err(Unsupported::CdbLength) } else { Ok(row) }
    }
}
