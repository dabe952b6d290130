//! TEST UNIT READY (SPC-5 clause 6.51): the readiness check alone.

use crate::unit::Plan;
use crate::unit::table::{Access, Needs, Row};
use wire::scsi::opcode::OperationCode;

pub(super) const ROW: Row = Row {
    opcode: OperationCode::TestUnitReady,
    service_action: None,
    name: "TEST UNIT READY",
    usage: &[0x00, 0, 0, 0, 0, 0x04],
    needs: Needs { access: Access::Always, ready: true, ignores_attention: false, exclusive: false },
    timeout_s: 1,
    plan: |_, _| Plan::Good,
    on_list: None,
    on_medium: None,
};
