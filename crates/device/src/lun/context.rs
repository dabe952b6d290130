//! State that the functions of a command may read and change.

use super::logical_unit::LogicalUnit;
use super::plan::Reply;

/// State that the functions of a command may read and change.
#[derive(Debug)]
pub struct Context<'a> {
    /// The unit addressed.
    pub unit: &'a mut LogicalUnit,
    /// Where parameter data for the host goes.
    pub reply: &'a mut Reply,
    /// Zero in `plan`; what a command of several steps remembers between them.
    pub step: &'a mut u32,
    /// How many units the device has; their numbers are `0..units`.
    pub units: u8,
}
