//! A queue whose items are put together where they are to lie.
//!
//! An item that is made first and moved then is written in its fields and read in wide words at once, for which a processor has to
//! wait until what was written has reached the cache: a dozen cycles, and hundreds behind a block of data that is on its way to
//! memory. Here room is made before the item, so that there is nothing left to move. Always true: items lie side by side, in
//! order, in a ring of places whose number is a power of two.

use alloc::vec::Vec;
use core::hint::cold_path;
use core::mem;
use core::ops::{Deref, DerefMut};

/// First in, first out.
#[derive(Clone, Debug)]
pub struct Fifo<T> {
    places: Vec<Option<T>>,
    first: usize,
    len: usize,
}

/// The first of a queue, where it lies: for whoever takes what it needs of it out, and then lets it go. If not, it stays.
#[derive(Debug)]
pub struct Front<'a, T> {
    place: &'a mut Option<T>,
    first: &'a mut usize,
    len: &'a mut usize,
    next: usize,
}

/// Places at first.
const PLACES_MIN: usize = 8;

impl<T> Fifo<T> {
    /// An empty one, without memory.
    pub const fn new() -> Self {
        Self { places: Vec::new(), first: 0, len: 0 }
    }

    /// An empty one that has places for so many.
    pub fn with_capacity(count: usize) -> Self {
        let mut places = Vec::new();
        places.resize_with(count.next_power_of_two(), || None);
        Self { places, first: 0, len: 0 }
    }

    /// Makes an item at the end.
    #[inline(always)]
    pub fn push_with(&mut self, make: impl FnOnce() -> T) {
        if self.len == self.places.len() {
            cold_path();
            self.grow();
        }
        let at = self.place(self.len);
        // It is free, and said to be so that nothing has to be dropped.
        if let Some(place @ None) = self.places.get_mut(at) {
            mem::forget(place.replace(make()));
            self.len += 1;
        }
    }

    /// Puts one at the end. What is made for it is better made by [`Self::push_with`].
    #[inline]
    pub fn push_back(&mut self, item: T) {
        self.push_with(|| item);
    }

    /// Takes the first.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<T> {
        let place = self.places.get_mut(self.first)?;
        if place.is_none() {
            return None;
        }
        let item = place.take();
        self.first = self.place(1);
        self.len -= 1;
        item
    }

    /// The first, to be taken out of its place piece by piece.
    #[inline(always)]
    pub fn front(&mut self) -> Option<Front<'_, T>> {
        let next = self.place(1);
        let place = self.places.get_mut(self.first)?;
        if place.is_none() {
            return None;
        }
        Some(Front { place, first: &mut self.first, len: &mut self.len, next })
    }

    /// The first, to be changed.
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.places.get_mut(self.first)?.as_mut()
    }

    /// The one that is so many behind the first.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len {
            return None;
        }
        self.places.get(self.place(index))?.as_ref()
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len {
            return None;
        }
        let at = self.place(index);
        self.places.get_mut(at)?.as_mut()
    }

    /// How many there are.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All, the first first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).filter_map(|index| self.places[self.place(index)].as_ref())
    }

    /// Takes one from between the others.
    #[cold]
    pub fn remove(&mut self, index: usize) -> Option<T> {
        if index >= self.len {
            return None;
        }
        for index in index + 1..self.len {
            let (to, from) = (self.place(index - 1), self.place(index));
            self.places.swap(to, from);
        }
        self.len -= 1;
        let last = self.place(self.len);
        self.places[last].take()
    }

    /// Twice the places, the first item in the first.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.places.rotate_left(self.first);
        self.first = 0;
        self.places.resize_with((self.places.len() * 2).max(PLACES_MIN), || None);
    }

    /// Where the item lies that is so many behind the first.
    #[inline(always)]
    fn place(&self, index: usize) -> usize {
        (self.first + index) & self.places.len().wrapping_sub(1)
    }
}

impl<T> Front<'_, T> {
    /// Lets it go: what comes behind it is the first.
    #[inline(always)]
    pub fn let_go(self) {
        *self.place = None;
        *self.first = self.next;
        *self.len -= 1;
    }

    /// Takes it whole.
    #[inline(always)]
    pub fn take(self) -> T {
        let item = self.place.take().expect(IS_THERE);
        self.let_go();
        item
    }
}

const IS_THERE: &str = "there is no front of an empty queue";

impl<T> Deref for Front<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.place.as_ref().expect(IS_THERE)
    }
}

impl<T> DerefMut for Front<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        self.place.as_mut().expect(IS_THERE)
    }
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Extend<T> for Fifo<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push_back(item));
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_queue(calls in prop::collection::vec(0u8..11, 0..200)) {
            let (mut fifo, mut queue) = (Fifo::new(), VecDeque::new());
            for (number, call) in calls.into_iter().enumerate() {
                match call {
                    0..5 => {
                        fifo.push_with(|| number);
                        queue.push_back(number);
                    }
                    5..7 => prop_assert_eq!(fifo.pop_front(), queue.pop_front()),
                    7 => prop_assert_eq!(fifo.front().map(Front::take), queue.pop_front()),
                    8 => prop_assert_eq!(fifo.remove(number % 5), queue.remove(number % 5)),
                    9 => {
                        let front = fifo.front();
                        prop_assert_eq!(front.as_deref(), queue.front());
                        if let Some(front) = front {
                            front.let_go();
                        }
                        queue.pop_front();
                    }
                    _ => prop_assert_eq!(fifo.get_mut(number % 5), queue.get_mut(number % 5)),
                }
                prop_assert_eq!(fifo.front_mut(), queue.front_mut());
                prop_assert_eq!((fifo.get(number % 5), fifo.len()), (queue.get(number % 5), queue.len()));
                let last = queue.len().wrapping_sub(1);
                prop_assert_eq!(fifo.get_mut(last), queue.back_mut());
                prop_assert_eq!(fifo.is_empty(), queue.is_empty());
                prop_assert!(fifo.iter().eq(&queue));
            }
            prop_assert!(core::iter::from_fn(|| fifo.pop_front()).eq(queue));
        }
    }
}
