//! USB Attached SCSI: the six information units, alone and as either side finds them.

use super::ROOM;
use wire::uas::{CommandIu, CommandPipeIu, ReadyIu, ResponseIu, SenseIu, StatusIu, TaskManagementIu};

/// Checks the whole family on these bytes.
pub fn check(bytes: &[u8]) {
    let mut out = [0; ROOM];
    round_trip!(bytes; ReadyIu; ResponseIu; TaskManagementIu; SenseIu => out);
    if let Ok(iu) = CommandIu::decode(bytes) {
        let again = [&iu.encode()[..], iu.additional_cdb].concat();
        assert_eq!(CommandIu::decode(&again), Ok(iu));
    }
    let _ = CommandPipeIu::decode(bytes).map(|iu| iu.to_string());
    let _ = StatusIu::decode(bytes).map(|iu| iu.to_string());
}
