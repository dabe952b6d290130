//! The tests.
//!
//! Each file has the tests of one group as a table and a function for each. What a test needs of a transport is
//! its [`Run`](crate::Run). Left out: tests that write.

mod bot;
mod bot_cases;
mod scsi;
mod uas;
mod usb;

use crate::test::Test;

/// Returns all tests of level 1, which only read, in the order in which they are run.
pub fn read_only() -> Vec<Test> {
    [usb::TESTS, bot_cases::TESTS, bot::TESTS, uas::TESTS, scsi::TESTS].concat()
}
