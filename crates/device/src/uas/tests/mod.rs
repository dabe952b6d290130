//! Scripts between a host and the device over USB Attached SCSI.

mod management;
mod streams;
mod turns;
mod units;

use crate::desk::Desk;
use crate::desk::uas::{TEST_UNIT_READY, good};

/// The device takes a command under every tag from 1 to 6 as if nothing had been.
#[track_caller]
fn assert_goes_on(desk: &mut Desk) {
    for tag in 1..=6 {
        let status = desk.command(tag, &TEST_UNIT_READY);
        assert_eq!(desk.bytes_of(status), good(tag));
    }
    desk.assert_at_rest();
}
