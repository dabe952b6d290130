//! The tests.
//!
//! Each file has the tests of one group as a table and a function for each. What a test needs of a transport is
//! its [`Run`](crate::Run). Left out: tests that need a person.

mod bot;
mod bot_cases;
mod cache;
mod depth;
mod every_block;
mod scsi;
mod state;
mod uas;
mod unmap;
mod usb;
mod whole;
mod writing;

use crate::test::Test;

pub(crate) use scsi::READ_CAPACITY_16;

/// Returns all tests of level 1, which only read, in the order in which they are run.
pub fn read_only() -> Vec<Test> {
    [usb::TESTS, bot_cases::TESTS, bot::TESTS, uas::TESTS, scsi::TESTS].concat()
}

/// Returns the tests of level 2, which overwrite the first blocks of the drive, in the order in which they are run.
pub fn writing() -> Vec<Test> {
    writing::TESTS.to_vec()
}

/// Returns the tests of level 3, which overwrite the whole drive, in the order in which they are run.
pub fn whole() -> Vec<Test> {
    whole::TESTS.to_vec()
}
