//! A line in which mostly one waits, or nobody.
//!
//! The first has its place in the line itself, so that coming and going is a move and no walk through a ring. Always true:
//! if nobody is first, nobody waits.

use alloc::collections::VecDeque;
use core::hint::cold_path;
use core::mem;

/// First in, first out.
#[derive(Clone, Debug)]
pub struct Line<T> {
    first: Option<T>,
    others: VecDeque<T>,
}

impl<T> Line<T> {
    /// An empty one.
    pub const fn new() -> Self {
        Self { first: None, others: VecDeque::new() }
    }

    /// Puts one at the end.
    #[inline]
    pub fn push_back(&mut self, item: T) {
        self.push_with(|| item);
    }

    /// Makes one at the end, where it is to lie: see [`Fifo`](crate::Fifo).
    #[inline(always)]
    pub fn push_with(&mut self, make: impl FnOnce() -> T) {
        match &mut self.first {
            // It is free, and said to be so that nothing has to be dropped.
            first @ None => mem::forget(first.replace(make())),
            Some(_) => {
                cold_path();
                self.others.push_back(make());
            }
        }
    }

    /// Takes the first.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.first.take();
        if !self.others.is_empty() {
            cold_path();
            self.first = self.others.pop_front();
        }
        first
    }

    /// Lets the first go.
    #[inline(always)]
    pub fn drop_front(&mut self) {
        self.first = None;
        if !self.others.is_empty() {
            cold_path();
            self.first = self.others.pop_front();
        }
    }

    /// The first.
    #[inline]
    pub const fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    /// The last.
    #[inline]
    pub fn back(&self) -> Option<&T> {
        if self.others.is_empty() { self.first.as_ref() } else { self.others.back() }
    }

    /// Takes the last.
    pub fn pop_back(&mut self) -> Option<T> {
        self.others.pop_back().or_else(|| self.first.take())
    }

    /// The one that many behind the first.
    #[inline]
    pub fn get(&self, place: usize) -> Option<&T> {
        match place.checked_sub(1) {
            None => self.first.as_ref(),
            Some(place) => self.others.get(place),
        }
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        match place.checked_sub(1) {
            None => self.first.as_mut(),
            Some(place) => self.others.get_mut(place),
        }
    }

    /// All, the first first.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.others)
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(&mut self.others)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// The first.
    #[inline]
    pub const fn front_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    /// Whether nobody waits.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Lets all go.
    pub fn clear(&mut self) {
        (self.first, self.others) = (None, VecDeque::new());
    }

    /// Takes the first that `is_it`.
    pub fn take(&mut self, is_it: impl Fn(&T) -> bool) -> Option<T> {
        if is_it(self.first.as_ref()?) {
            return self.pop_front();
        }
        let place = self.others.iter().position(is_it)?;
        self.others.remove(place)
    }
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_queue(calls in prop::collection::vec(0u8..7, 0..60)) {
            let (mut line, mut queue) = (Line::new(), VecDeque::new());
            for (number, call) in calls.into_iter().enumerate() {
                match call {
                    0..3 => {
                        line.push_back(number);
                        queue.push_back(number);
                    }
                    3 => {
                        let place = queue.iter().position(|&own| own % 3 == 1);
                        prop_assert_eq!(line.take(|&own| own % 3 == 1), place.and_then(|at| queue.remove(at)));
                    }
                    4 => prop_assert_eq!(line.pop_back(), queue.pop_back()),
                    _ => prop_assert_eq!(line.pop_front(), queue.pop_front()),
                }
                prop_assert_eq!((line.front(), line.back()), (queue.front(), queue.back()));
                prop_assert_eq!(line.len(), queue.len());
                prop_assert_eq!(line.front_mut(), queue.front_mut());
                prop_assert_eq!(line.is_empty(), queue.is_empty());
                prop_assert!(line.iter().eq(&queue) && line.iter_mut().eq(&mut queue));
                for place in 0..3 {
                    prop_assert_eq!(line.get(place), queue.get(place));
                    prop_assert_eq!(line.get_mut(place), queue.get_mut(place));
                }
            }
        }
    }
}
