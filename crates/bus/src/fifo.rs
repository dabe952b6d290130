//! A FIFO whose items are constructed in place.
//!
//! An item that is built on the stack and then moved is written field by field and read back in
//! wide words, which defeats store forwarding: a dozen cycles, and hundreds behind a block of data
//! on its way to memory. Here the slot is reserved first, so that nothing is moved.
//!
//! An item that is alone lies in the FIFO itself: most queues hold one item at most and never
//! allocate. Invariants: further items lie in order in a ring whose number of slots is a power of
//! two; the item in the FIFO itself is older than those.

use alloc::vec::Vec;
use core::hint::cold_path;
use core::mem;
use core::ops::{Deref, DerefMut};

/// A FIFO: one inline slot and a ring buffer.
#[derive(Clone, Debug)]
pub struct Fifo<T> {
    /// The first item, if it was pushed while there was no other.
    alone: Option<T>,
    ring: Vec<Option<T>>,
    /// The slot in the ring of its first item; 0 while there are no items.
    first: u32,
    /// The number of items, the inline one included.
    len: u32,
}

/// The first item, borrowed in place. It stays in the queue unless [`take`](Self::take) or
/// [`discard`](Self::discard) is called.
#[derive(Debug)]
pub struct Front<'a, T> {
    slot: &'a mut Option<T>,
    first: &'a mut u32,
    len: &'a mut u32,
    next: u32,
}

/// Slots of the first allocation of a ring.
const SLOTS_MIN: usize = 8;

impl<T> Fifo<T> {
    /// Creates an empty FIFO without allocating.
    pub const fn new() -> Self {
        Self { alone: None, ring: Vec::new(), first: 0, len: 0 }
    }

    /// Creates an empty FIFO with room for `count` items.
    pub fn with_capacity(count: usize) -> Self {
        let mut ring = Vec::new();
        ring.resize_with(count.next_power_of_two(), || None);
        Self { alone: None, ring, first: 0, len: 0 }
    }

    /// Constructs an item in place at the end.
    #[inline(always)]
    pub fn push_with(&mut self, make: impl FnOnce() -> T) {
        let slot = if self.len == 0 {
            &mut self.alone
        } else {
            let count = self.in_ring();
            if count == self.ring.len() {
                cold_path();
                self.grow();
            }
            let at = self.slot(count);
            let Some(slot) = self.ring.get_mut(at) else { return };
            slot
        };
        // Known to be empty, so that the compiler emits no drop.
        if slot.is_none() {
            mem::forget(slot.replace(make()));
            self.len += 1;
        }
    }

    /// Appends an item. [`Self::push_with`] is faster for an item that is constructed for it.
    #[inline]
    pub fn push_back(&mut self, item: T) {
        self.push_with(|| item);
    }

    /// Removes and returns the first item.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<T> {
        self.front_entry().map(Front::take)
    }

    /// Borrows the first item in place, to be looked at, changed, taken or dropped.
    #[inline(always)]
    pub fn front_entry(&mut self) -> Option<Front<'_, T>> {
        let (slot, next) = if self.alone.is_some() {
            (&mut self.alone, self.first)
        } else {
            let next = self.slot(1) as u32;
            (self.ring.get_mut(self.first as usize)?, next)
        };
        if slot.is_none() {
            return None;
        }
        Some(Front { slot, first: &mut self.first, len: &mut self.len, next })
    }

    /// Drops the first item, if there is one.
    #[inline(always)]
    pub fn drop_front(&mut self) {
        if let Some(front) = self.front_entry() {
            front.discard();
        }
    }

    /// Returns the first item.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.alone.as_ref().or_else(|| self.ring.get(self.first as usize)?.as_ref())
    }

    /// Returns the first item mutably.
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.alone.as_mut().or_else(|| self.ring.get_mut(self.first as usize)?.as_mut())
    }

    /// Returns the item at `index`, counted from the first.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len() {
            return None;
        }
        match (&self.alone, index) {
            (Some(alone), 0) => Some(alone),
            _ => self.ring.get(self.slot(self.ring_index(index)))?.as_ref(),
        }
    }

    /// Returns the item at `index` mutably.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len() {
            return None;
        }
        let at = self.slot(self.ring_index(index));
        match (&mut self.alone, index) {
            (Some(alone), 0) => Some(alone),
            _ => self.ring.get_mut(at)?.as_mut(),
        }
    }

    /// Returns the number of items.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether there are no items.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates from the first item.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let in_ring = (0..self.in_ring()).filter_map(|index| self.ring[self.slot(index)].as_ref());
        self.alone.iter().chain(in_ring)
    }

    /// Iterates mutably from the first item.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let (wrapped, from_first) = self.ring.split_at_mut(self.first as usize);
        self.alone.iter_mut().chain(from_first.iter_mut().chain(wrapped).map_while(Option::as_mut))
    }

    /// Drops all items.
    pub fn clear(&mut self) {
        while self.pop_front().is_some() {}
    }

    /// Removes and returns the item at `index`.
    #[cold]
    pub fn remove(&mut self, index: usize) -> Option<T> {
        if index >= self.len() {
            return None;
        }
        if index == 0 {
            return self.pop_front();
        }
        let count = self.in_ring();
        for index in self.ring_index(index) + 1..count {
            let (to, from) = (self.slot(index - 1), self.slot(index));
            self.ring.swap(to, from);
        }
        self.len -= 1;
        let last = self.slot(count - 1);
        self.ring[last].take()
    }

    /// Removes and returns the first item for which `is_it` holds.
    pub fn take(&mut self, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let index = self.iter().position(is_it)?;
        self.remove(index)
    }

    /// Doubles the slots of the ring and moves its first item to slot 0.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.ring.rotate_left(self.first as usize);
        self.first = 0;
        self.ring.resize_with((self.ring.len() * 2).max(SLOTS_MIN), || None);
    }

    /// Returns the number of items in the ring.
    #[inline(always)]
    fn in_ring(&self) -> usize {
        self.len() - self.ring_offset()
    }

    /// Returns the index in the ring of the item at `index`, which is not the inline one.
    #[inline(always)]
    fn ring_index(&self, index: usize) -> usize {
        index.wrapping_sub(self.ring_offset())
    }

    /// Returns the number of items before those in the ring: 1 or 0.
    #[inline(always)]
    fn ring_offset(&self) -> usize {
        usize::from(self.alone.is_some())
    }

    /// Returns the slot in the ring of the item that is `index` behind the first one there.
    #[inline(always)]
    fn slot(&self, index: usize) -> usize {
        (self.first as usize).wrapping_add(index) & self.ring.len().wrapping_sub(1)
    }
}

impl<T> Front<'_, T> {
    /// Drops the item; the next one becomes the first.
    #[inline(always)]
    pub fn discard(self) {
        *self.slot = None;
        *self.len -= 1;
        // An item that comes next is so in a slot that is in a near cache.
        *self.first = if *self.len == 0 { 0 } else { self.next };
    }

    /// Removes and returns the item.
    #[inline(always)]
    pub fn take(self) -> T {
        let item = self.slot.take().expect(IS_THERE);
        self.discard();
        item
    }
}

const IS_THERE: &str = "there is no front of an empty queue";

impl<T> Deref for Front<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.slot.as_ref().expect(IS_THERE)
    }
}

impl<T> DerefMut for Front<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        self.slot.as_mut().expect(IS_THERE)
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
        fn fifo_behaves_like_a_vec_deque(
            room in prop::option::of(0usize..9),
            calls in prop::collection::vec(0u8..13, 0..200),
        ) {
            let (mut fifo, mut queue) = (room.map_or_else(Fifo::new, Fifo::with_capacity), VecDeque::new());
            for (number, call) in calls.into_iter().enumerate() {
                match call {
                    0..5 => {
                        fifo.push_with(|| number);
                        queue.push_back(number);
                    }
                    5..7 => prop_assert_eq!(fifo.pop_front(), queue.pop_front()),
                    7 => prop_assert_eq!(fifo.front_entry().map(Front::take), queue.pop_front()),
                    8 => prop_assert_eq!(fifo.remove(number % 5), queue.remove(number % 5)),
                    9 => {
                        let front = fifo.front_entry();
                        prop_assert_eq!(front.as_deref(), queue.front());
                        if let Some(front) = front {
                            front.discard();
                        }
                        queue.pop_front();
                    }
                    10 => {
                        let index = queue.iter().position(|&own| own % 3 == 1);
                        prop_assert_eq!(fifo.take(|&own| own % 3 == 1), index.and_then(|at| queue.remove(at)));
                    }
                    11 if number % 50 == 11 => {
                        fifo.clear();
                        queue.clear();
                    }
                    11 => {
                        fifo.drop_front();
                        queue.pop_front();
                    }
                    _ => prop_assert_eq!(fifo.get_mut(number % 5), queue.get_mut(number % 5)),
                }
                prop_assert_eq!(fifo.front(), queue.front());
                prop_assert_eq!(fifo.front_mut(), queue.front_mut());
                prop_assert_eq!((fifo.get(number % 5), fifo.len()), (queue.get(number % 5), queue.len()));
                let last = queue.len().wrapping_sub(1);
                prop_assert_eq!(fifo.get_mut(last), queue.back_mut());
                prop_assert_eq!(fifo.is_empty(), queue.is_empty());
                prop_assert!(fifo.iter().eq(&queue) && fifo.iter_mut().eq(&mut queue));
            }
            prop_assert!(core::iter::from_fn(|| fifo.pop_front()).eq(queue));
        }
    }
}
