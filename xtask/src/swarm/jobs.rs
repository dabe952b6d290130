//! How many threads worlds are run on: more than a few for each processor make nothing faster, and each costs memory.

use anyhow::{Result, bail};
use std::thread;

/// Threads for each processor at most.
const PER_PROCESSOR: usize = 4;

/// Threads as they were asked for, for a pool; 0 for one for each processor.
pub(super) fn threads(asked: Option<usize>) -> Result<usize> {
    of_processors(asked, thread::available_parallelism().map_or(1, usize::from))
}

fn of_processors(asked: Option<usize>, processors: usize) -> Result<usize> {
    let most = PER_PROCESSOR * processors;
    match asked {
        None => Ok(0),
        Some(0) => bail!("--jobs must be at least 1; without it, one thread for each processor"),
        Some(asked) if asked > most => {
            bail!("--jobs {asked} is too many: {PER_PROCESSOR} for each processor are {most} here")
        }
        Some(asked) => Ok(asked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_a_few_for_each_processor_at_most() {
        assert_eq!(of_processors(None, 2).unwrap(), 0);
        assert_eq!(of_processors(Some(8), 2).unwrap(), 8);
        let refusal = of_processors(Some(9), 2).unwrap_err().to_string();
        assert_eq!(refusal, "--jobs 9 is too many: 4 for each processor are 8 here");
        assert!(of_processors(Some(0), 2).is_err());
    }
}
