//! REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS (SPC-4 clause 6.36): all nine.

use super::{Decision, fields, settle};
use crate::lun::Reply;
use crate::lun::row::{Needs, Row};
use wire::Writer;
use wire::scsi::cdb::ReportSupportedTaskManagementFunctions;
use wire::scsi::sense::Sense;
use wire::scsi::supported_tmf::{SupportedTaskManagement, TaskManagementTimeouts};

pub(in crate::lun) const ROW: Row = Row {
    usage: &[0xa3, 0x0d, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x04],
    needs: Needs::UNIT,
    timeout_s: 1,
    plan: |context, cdb| settle(plan(context.reply, cdb)),
    on_list: None,
    on_medium: None,
};

fn plan(reply: &mut Reply, cdb: &[u8]) -> Decision {
    let command = fields(ReportSupportedTaskManagementFunctions::decode(cdb))?;
    if command.allocation_len < ALLOCATION_LENGTH_MIN {
        return Err(Sense::invalid_field_in_cdb(6, None));
    }
    let timeouts = command.extended.then_some(TaskManagementTimeouts {
        valid: true,
        short_functions: [0; 2],
        long_100_ms: TIMEOUT_100_MS,
        short_100_ms: 0,
    });
    let supported = SupportedTaskManagement {
        abort_task: true,
        abort_task_set: true,
        clear_aca: true,
        clear_task_set: true,
        logical_unit_reset: true,
        query_task: true,
        query_asynchronous_event: true,
        query_task_set: true,
        i_t_nexus_reset: true,
        timeouts,
    };
    let (bytes, len) = (supported.encode(), supported.encoded_len());
    Ok(reply.fill(command.allocation_len, |out| Writer::new(out).put(&bytes[..len]).map(|()| len)))
}

/// Less cannot hold the basic form.
const ALLOCATION_LENGTH_MIN: u32 = 4;

/// A function completes when the medium has released the commands that it aborts.
const TIMEOUT_100_MS: u32 = 50;

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use wire::scsi::sense::Sense;

    #[test]
    fn all_nine_functions_are_reported() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.read(&[0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0]), [0xfc, 0x07, 0, 0]);
        assert_eq!(
            fixture.read(&[0xa3, 0x0d, 0x80, 0, 0, 0, 0, 0, 0, 16, 0, 0]),
            [0xfc, 0x07, 0, 12, 0, 1, 0, 0, 0, 0, 0, 50, 0, 0, 0, 0]
        );
    }

    #[test]
    fn too_little_room_is_refused() {
        let sense = Fixture::new().check(&[0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(6, None));
    }
}
