//! Dispatch of `uaskit compare` by its arguments: a list of parts, a sweep, plain drives, or a
//! comparison.

use super::{CompareArguments, parts, raw, run, sweep};
use crate::failure::Failure;
use crate::interrupt::{self, Saved};
use crate::stdout::Output;

pub(crate) fn run(arguments: &CompareArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    if arguments.list_parts {
        return parts::list(arguments.parts.as_deref(), arguments.json, out);
    }
    if !arguments.raw && arguments.grid.sweep.is_some() {
        return sweep::run(arguments, out);
    }
    interrupt::watch(Saved::Nothing("run the same command again"))?;
    if arguments.raw { raw::run(arguments, out) } else { run::run(arguments, out) }
}
