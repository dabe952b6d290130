//! Lines with an end: how many things may wait somewhere, and what is said when there is no room for one more.
//!
//! Each limit is far beyond what waits where a line is gone on with, so that a full one is a fault of the model: the world that
//! has it stops and says so. Always true: what there is no room for is told, and never left away in silence.

use std::collections::VecDeque;
use std::fmt;

/// As many things wait in a line as may: something in this world gives more than is ever taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityExceeded {
    /// Which line.
    pub queue: &'static str,
    /// How many may wait there.
    pub capacity: usize,
}

impl CapacityExceeded {
    /// Puts something at the end of this line.
    ///
    /// # Errors
    /// If there is no room.
    #[inline]
    pub fn push<T>(self, line: &mut VecDeque<T>, thing: T) -> Result<(), Self> {
        if line.len() >= self.capacity {
            return Err(self);
        }
        line.push_back(thing);
        Ok(())
    }
}

impl fmt::Display for CapacityExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} wait in {}, which is a fault of the model", self.capacity, self.queue)
    }
}

impl std::error::Error for CapacityExceeded {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_as_many_as_it_may() {
        let (of_two, mut line) = (CapacityExceeded { queue: "a line", capacity: 2 }, VecDeque::new());
        assert_eq!([1, 2, 3].map(|thing| of_two.push(&mut line, thing)), [Ok(()), Ok(()), Err(of_two)]);
        assert_eq!(line, [1, 2]);
        assert_eq!(of_two.to_string(), "2 wait in a line, which is a fault of the model");
    }
}
