//! Sweeps: a grid of parts and jobs, simulated point by point, as lines of JSON.
//!
//! A [`Grid`] has the values of each [`Axis`] and makes a plan of points, in one order on every machine. [`run`] simulates points on all
//! threads of the caller's pool and returns their lines in that order. [`records`] checks files of lines: a file that was cut off is a
//! beginning of the whole, and a shard is every nth point of it. Left out: the text of a grid, files, and tables.
//!
//! Always true: the same plan makes the same bytes, in one run, in several, or in shards that are merged.

mod axis;
mod grid;
pub mod records;

pub use axis::Axis;
pub use grid::{Grid, JobDefaults, POINTS_MAX};

use crate::compare::Point;
use crate::parts::Catalogue;
use crate::trial::Terms;
use sim::engine::Digest;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Returns a digest of everything that the figures of a plan depend on.
pub fn plan_digest(points: &[Point], catalogue: &Catalogue, terms: &Terms) -> u64 {
    let mut digest = Digest::new();
    let mut mix = |text: &str| {
        digest.mix(text.len() as u64);
        for chunk in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            digest.mix(u64::from_le_bytes(word));
        }
    };
    mix(env!("CARGO_PKG_VERSION"));
    mix(&format!("{terms:?}"));
    catalogue.entries().for_each(|entry| mix(&entry.to_json().to_string()));
    points.iter().for_each(|point| mix(&format!("{:?} {:?} {}", point.assembly, point.job, point.seed)));
    digest.value()
}

/// Simulates points on every thread of the current pool, and passes their lines to `write` in the order of the points.
///
/// # Errors
/// The first error of `write`, after which no further point is started.
pub fn run<E: Send>(
    points: &[Point],
    catalogue: &Catalogue,
    terms: &Terms,
    write: impl FnMut(&str) -> Result<(), E> + Send,
) -> Result<(), E> {
    let order = Mutex::new(InOrder { next: 0, ready: BTreeMap::new(), write, failed: None });
    let next = AtomicUsize::new(0);
    rayon::broadcast(|_| {
        while let Some((number, point)) = take(&next, points) {
            let line = point.line(catalogue, terms);
            let mut order = lock(&order);
            if order.failed.is_some() {
                return;
            }
            order.put(number, line);
        }
    });
    let failed = order.into_inner().unwrap_or_else(PoisonError::into_inner).failed;
    failed.map_or(Ok(()), Err)
}

/// Takes the next point that no thread has.
fn take<'a>(next: &AtomicUsize, points: &'a [Point]) -> Option<(usize, &'a Point)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, points.get(number)?))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Completed lines, and the number of the one to write next.
struct InOrder<W, E> {
    next: usize,
    ready: BTreeMap<usize, String>,
    write: W,
    failed: Option<E>,
}

impl<E, W: FnMut(&str) -> Result<(), E>> InOrder<W, E> {
    fn put(&mut self, number: usize, line: String) {
        self.ready.insert(number, line);
        while let Some(line) = self.ready.remove(&self.next) {
            self.next += 1;
            if let Err(error) = (self.write)(&line) {
                self.failed = Some(error);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_in_order_whichever_thread_is_first() {
        let mut out = Vec::new();
        let mut order = InOrder {
            next: 0,
            ready: BTreeMap::new(),
            failed: None::<()>,
            write: |line: &str| {
                out.push(line.to_owned());
                Ok(())
            },
        };
        for number in [2, 0, 3, 1] {
            order.put(number, number.to_string());
        }
        assert_eq!(out, ["0", "1", "2", "3"]);
    }
}
