//! What `uaskit compare` does for its arguments: a list of parts, a sweep, plain drives, or a comparison.

use super::{CompareArguments, parts, raw, run, sweep};
use crate::failure::Failure;
use crate::interrupt::{self, Saved};

pub(crate) fn run(arguments: &CompareArguments) -> Result<(), Failure> {
    if arguments.list_parts {
        return parts::list(arguments.parts.as_deref(), arguments.json);
    }
    if !arguments.raw && arguments.grid.sweep.is_some() {
        return if arguments.keeping.is_asked() { Err(sweep::not_kept()) } else { sweep::run(arguments) };
    }
    interrupt::watch(Saved::Nothing("run the same command again"))?;
    if arguments.raw { raw::run(arguments) } else { run::run(arguments) }
}
