//! USB Attached SCSI: the six information units, alone and as either side finds them.
#![no_main]

use fuzz::{ROOM, round_trip};
use wire::uas::{CommandIu, CommandPipeIu, ReadyIu, ResponseIu, SenseIu, StatusIu, TaskManagementIu};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut out = [0; ROOM];
    round_trip!(bytes; ReadyIu; ResponseIu; TaskManagementIu; SenseIu => out);
    if let Ok(iu) = CommandIu::decode(bytes) {
        let again = [&iu.encode()[..], iu.additional_cdb].concat();
        assert_eq!(CommandIu::decode(&again), Ok(iu));
    }
    let _ = CommandPipeIu::decode(bytes).map(|iu| iu.to_string());
    let _ = StatusIu::decode(bytes).map(|iu| iu.to_string());
});
