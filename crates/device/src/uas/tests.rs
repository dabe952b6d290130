//! Scripts between a host and the device over USB Attached SCSI.

mod management;
mod streams;
mod units;
mod without_streams;

use crate::host_fixture::HostFixture;
use crate::host_fixture::uas::{TEST_UNIT_READY, good};

/// The device takes a command under every tag from 1 to 6 as if nothing had been.
#[track_caller]
fn assert_goes_on(host: &mut HostFixture) {
    for tag in 1..=6 {
        let status = host.command(tag, &TEST_UNIT_READY);
        assert_eq!(host.bytes_of(status), good(tag));
    }
    host.assert_at_rest();
}
