//! What `uaskit compare` does for its arguments: a list of parts, a sweep, plain drives, or a comparison.

use super::{CompareArguments, parts, raw, run, sweep};
use crate::failure::Failure;

pub(crate) fn run(arguments: &CompareArguments) -> Result<(), Failure> {
    if arguments.list_parts {
        return parts::list(arguments.parts.as_deref(), arguments.json);
    }
    match () {
        () if arguments.raw => raw::run(arguments),
        () if arguments.grid.sweep.is_some() && arguments.keeping.is_asked() => Err(sweep::not_kept()),
        () if arguments.grid.sweep.is_some() => sweep::run(arguments),
        () => run::run(arguments),
    }
}
