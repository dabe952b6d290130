//! Threads for simulations, limited per processor: more threads are not faster, and each needs memory.

use crate::failure::Failure;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::thread;

/// Threads for each processor at most.
const PER_PROCESSOR: usize = 4;

/// A pool of the requested number of threads; by default one per processor.
pub(crate) fn pool(asked: Option<u16>) -> Result<ThreadPool, Failure> {
    let asked = of_processors(asked, thread::available_parallelism().map_or(1, usize::from))?;
    let pool = ThreadPoolBuilder::new().num_threads(asked).build();
    pool.map_err(|error| Failure::new("cannot start the simulation threads").because(error))
}

/// The same as a number, where 0 is one for each processor.
fn of_processors(asked: Option<u16>, processors: usize) -> Result<usize, Failure> {
    let (asked, most) = (asked.map_or(0, usize::from), PER_PROCESSOR * processors);
    if asked > most {
        return Err(Failure::usage(format!("--threads {asked} is too many"))
            .because(format!(
                "the maximum is {most}, {PER_PROCESSOR} per processor; more threads are not faster"
            ))
            .try_this("leave --threads out for one per processor"));
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_a_few_for_each_processor_at_most() {
        assert_eq!([None, Some(1), Some(8)].map(|asked| of_processors(asked, 2).unwrap()), [0, 1, 8]);
        let refusal = of_processors(Some(9), 2).unwrap_err().to_string();
        assert!(
            refusal.starts_with("--threads 9 is too many: the maximum is 8, 4 per processor"),
            "{refusal}"
        );
    }
}
