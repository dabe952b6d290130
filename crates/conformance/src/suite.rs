//! The tests.
//!
//! Each file has the tests of one group as a table and a function for each. What a test needs of a transport is
//! its [`Run`](crate::Run). Left out: tests that write less than the whole drive.

mod bot;
mod bot_cases;
mod scsi;
mod uas;
mod usb;
mod whole;

use crate::test::Test;

pub(crate) use scsi::READ_CAPACITY_16;

/// Returns all tests of level 1, which only read, in the order in which they are run.
pub fn read_only() -> Vec<Test> {
    [usb::TESTS, bot_cases::TESTS, bot::TESTS, uas::TESTS, scsi::TESTS].concat()
}

/// Returns the tests of level 3, which overwrite the whole drive, in the order in which they are run.
pub fn whole() -> Vec<Test> {
    whole::TESTS.to_vec()
}
