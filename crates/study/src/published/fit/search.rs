//! The least of a function on a grid, by steps that become smaller.
//!
//! From where it starts, one number after the other is moved by a stride, up or down, whichever helps more, as long as one of them
//! helps. Where none does, and they are few, two are moved at once, which goes along valleys in which one makes up for another.
//! Where that does not help either, all strides are halved, until a stride is one step of the grid. It needs no slope, stands
//! small unevenness, and asks for several values at once, so that they can be made at the same time. Left out: any proof that
//! what it finds is the least.
//!
//! Always true: what comes out depends on the start and the function alone; no point is asked for twice; each is on the grid.

use std::collections::BTreeMap;

/// Steps from the least value of each number.
pub(super) type Point = Vec<u32>;

/// A search.
pub(super) struct Search<'a> {
    /// The last step of each number.
    pub(super) last: &'a [u32],
    /// Numbers that stay where they are.
    pub(super) held: &'a [bool],
    /// The first stride, as a share of all steps: one in this many.
    pub(super) parts: u32,
}

/// Numbers of which two are moved at once at most.
const PAIRED_MAX: usize = 4;

/// Losses of the points evaluated so far, and the function that evaluates more.
struct Known<'a> {
    losses: BTreeMap<Point, f64>,
    ask: &'a mut dyn FnMut(&[Point]) -> Vec<f64>,
}

impl Search<'_> {
    /// The best point, and its loss.
    pub(super) fn from(&self, start: &[u32], ask: &mut dyn FnMut(&[Point]) -> Vec<f64>) -> (Point, f64) {
        let mut known = Known { losses: BTreeMap::new(), ask };
        let mut strides: Vec<u32> =
            self.last.iter().map(|last| (last / self.parts.max(1)).next_power_of_two()).collect();
        let mut best = start.to_vec();
        let mut loss = known.losses_of(std::slice::from_ref(&best))[0];
        loop {
            let before = loss;
            for number in 0..best.len() {
                if let Some(found) = known.best(&self.single(&best, &strides, number), loss) {
                    (best, loss) = found;
                }
            }
            if loss < before {
                continue;
            }
            if let Some(found) = known.best(&self.pairs(&best, &strides), loss) {
                (best, loss) = found;
            } else if strides.iter().all(|stride| *stride == 1) {
                return (best, loss);
            } else {
                strides.iter_mut().for_each(|stride| *stride = (*stride / 2).max(1));
            }
        }
    }

    /// Points with one number moved.
    fn single(&self, from: &[u32], strides: &[u32], number: usize) -> Vec<Point> {
        [false, true].into_iter().filter_map(|up| self.moved(from, strides, number, up)).collect()
    }

    /// Points with two numbers moved; none if there are many numbers.
    fn pairs(&self, from: &[u32], strides: &[u32]) -> Vec<Point> {
        let mut points = Vec::new();
        if self.held.iter().filter(|held| !**held).count() > PAIRED_MAX {
            return points;
        }
        for first in 0..from.len() {
            for second in first + 1..from.len() {
                for ways in [(false, true), (true, false), (false, false), (true, true)] {
                    let one = self.moved(from, strides, first, ways.0);
                    points.extend(one.and_then(|one| self.moved(&one, strides, second, ways.1)));
                }
            }
        }
        points
    }

    /// A point with a number moved down or up, as far as its bounds let it; none if it is there.
    fn moved(&self, from: &[u32], strides: &[u32], number: usize, up: bool) -> Option<Point> {
        let (at, stride) = (from[number], strides[number]);
        let to =
            if up { at.saturating_add(stride).min(self.last[number]) } else { at.saturating_sub(stride) };
        if to == at || self.held[number] {
            return None;
        }
        let mut point = from.to_vec();
        point[number] = to;
        Some(point)
    }
}

impl Known<'_> {
    /// The best of some points, if it is better than what there is; the first of equals.
    fn best(&mut self, points: &[Point], than: f64) -> Option<(Point, f64)> {
        let losses = self.losses_of(points);
        let mut best: Option<(usize, f64)> = None;
        for (index, loss) in losses.into_iter().enumerate() {
            if loss < best.map_or(than, |(_, best)| best) {
                best = Some((index, loss));
            }
        }
        best.map(|(index, loss)| (points[index].clone(), loss))
    }

    fn losses_of(&mut self, points: &[Point]) -> Vec<f64> {
        let mut unknown: Vec<Point> = Vec::new();
        for point in points {
            if !self.losses.contains_key(point) && !unknown.contains(point) {
                unknown.push(point.clone());
            }
        }
        if !unknown.is_empty() {
            let losses = (self.ask)(&unknown);
            self.losses.extend(unknown.into_iter().zip(losses));
        }
        points.iter().map(|point| self.losses.get(point).copied().unwrap_or(f64::INFINITY)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn least(start: &[u32], last: &[u32], of: impl Fn(&[u32]) -> f64) -> (Point, usize) {
        let mut asked: Vec<Point> = Vec::new();
        let mut ask = |points: &[Point]| {
            asked.extend_from_slice(points);
            points.iter().map(|point| of(point)).collect()
        };
        let search = Search { last, held: &vec![false; last.len()], parts: 4 };
        let (point, _) = search.from(start, &mut ask);
        let mut once = asked.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), asked.len(), "no point is asked for twice");
        assert!(asked.iter().all(|point| point.iter().zip(last).all(|(at, last)| at <= last)));
        (point, asked.len())
    }

    #[test]
    fn the_minimum_of_a_convex_function_is_found_from_any_start() {
        let bowl = |point: &[u32]| (f64::from(point[0]) - 37.0).powi(2) + (f64::from(point[1]) - 5.0).powi(2);
        for start in [[0, 0], [100, 20], [50, 10]] {
            assert_eq!(least(&start, &[100, 20], bowl).0, [37, 5]);
        }
    }

    #[test]
    fn a_search_follows_a_valley() {
        // Only the sum matters, but for a slight wish that the first be large: no single step helps on the floor.
        let valley = |point: &[u32]| {
            let [first, second] = [f64::from(point[0]), f64::from(point[1])];
            (first + second - 40.0).powi(2) - first * 1e-3
        };
        assert_eq!(least(&[2, 38], &[40, 40], valley).0, [40, 0]);
    }

    #[test]
    fn a_least_at_the_bound_is_reached() {
        assert_eq!(least(&[3], &[10], |point| f64::from(point[0])).0, [0]);
        assert_eq!(least(&[3], &[10], |point| -f64::from(point[0])).0, [10]);
    }

    #[test]
    fn few_values_are_asked_for() {
        let (point, asked) = least(&[0], &[1000], |point| (f64::from(point[0]) - 777.0).abs());
        assert!(point == [777] && asked < 40, "{point:?} by {asked}");
    }

    #[test]
    fn a_number_that_is_held_stays() {
        let search = Search { last: &[10, 10], held: &[true, false], parts: 4 };
        let mut ask = |points: &[Point]| points.iter().map(|it| -f64::from(it[0] + it[1])).collect();
        assert_eq!(search.from(&[3, 3], &mut ask).0, [3, 10]);
    }
}
