//! A FIFO optimised for zero or one element.
//!
//! The first element lies in the struct itself, so that a push and a pop without others are one
//! move. Always true: without a first element the FIFO is empty.

use alloc::collections::VecDeque;
use core::hint::cold_path;
use core::mem;

/// A FIFO whose first element is stored inline.
#[derive(Clone, Debug)]
pub struct Line<T> {
    first: Option<T>,
    others: VecDeque<T>,
}

impl<T> Line<T> {
    /// Creates an empty FIFO.
    pub const fn new() -> Self {
        Self { first: None, others: VecDeque::new() }
    }

    /// Appends an element.
    #[inline]
    pub fn push_back(&mut self, item: T) {
        self.push_with(|| item);
    }

    /// Constructs an element in place at the end: see [`Fifo`](crate::Fifo).
    #[inline(always)]
    pub fn push_with(&mut self, make: impl FnOnce() -> T) {
        match &mut self.first {
            // Known to be empty, so that the compiler emits no drop.
            first @ None => mem::forget(first.replace(make())),
            Some(_) => {
                cold_path();
                self.others.push_back(make());
            }
        }
    }

    /// Removes and returns the first element.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.first.take();
        if !self.others.is_empty() {
            cold_path();
            self.first = self.others.pop_front();
        }
        first
    }

    /// Drops the first element.
    #[inline(always)]
    pub fn drop_front(&mut self) {
        self.first = None;
        if !self.others.is_empty() {
            cold_path();
            self.first = self.others.pop_front();
        }
    }

    /// Returns the first element.
    #[inline]
    pub const fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    /// Returns the last element.
    #[inline]
    pub fn back(&self) -> Option<&T> {
        if self.others.is_empty() { self.first.as_ref() } else { self.others.back() }
    }

    /// Removes and returns the last element.
    pub fn pop_back(&mut self) -> Option<T> {
        self.others.pop_back().or_else(|| self.first.take())
    }

    /// Returns the element at `place`, counted from the first.
    #[inline]
    pub fn get(&self, place: usize) -> Option<&T> {
        match place.checked_sub(1) {
            None => self.first.as_ref(),
            Some(place) => self.others.get(place),
        }
    }

    /// Returns the element at `place` mutably.
    #[inline]
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        match place.checked_sub(1) {
            None => self.first.as_mut(),
            Some(place) => self.others.get_mut(place),
        }
    }

    /// Iterates from the first element.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.others)
    }

    /// Iterates mutably from the first element.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(&mut self.others)
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// Returns the first element mutably.
    #[inline]
    pub const fn front_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    /// Returns whether there are no elements.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Drops all elements.
    pub fn clear(&mut self) {
        self.first = None;
        self.others.clear();
    }

    /// Removes and returns the first element for which `is_it` holds.
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
        fn line_behaves_like_a_vec_deque(calls in prop::collection::vec(0u8..7, 0..60)) {
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
