//! Messages in flight to one side of a link.
//!
//! A lane rarely holds more messages than there are credits, so that many are stored inline; the
//! rest go to a heap-allocated queue. Invariant: the heap queue is empty while an inline slot is
//! free.

use super::bulk::Message;
use std::collections::VecDeque;

/// Messages, oldest first.
#[derive(Clone, Debug)]
pub(super) struct PropagationQueue {
    places: [Message; PLACES],
    first: u8,
    count: u8,
    more: VecDeque<Message>,
}

/// Places there are.
const PLACES: usize = 4;

impl PropagationQueue {
    /// None.
    pub(super) const fn new() -> Self {
        Self { places: [Message::Status; PLACES], first: 0, count: 0, more: VecDeque::new() }
    }

    /// The place of the one that many after the first.
    const fn place(&self, after: u8) -> usize {
        (self.first + after) as usize % PLACES
    }

    /// Adds one at the end.
    #[inline]
    pub(super) fn push_back(&mut self, message: Message) {
        if usize::from(self.count) == PLACES {
            return self.more.push_back(message);
        }
        self.places[self.place(self.count)] = message;
        self.count += 1;
    }

    /// The first goes.
    #[inline]
    pub(super) fn drop_first(&mut self) {
        let Some(count) = self.count.checked_sub(1) else { return };
        self.count = count;
        // One that is alone has always the same place, which is so in a near cache.
        self.first = if count == 0 { 0 } else { (self.first + 1) % PLACES as u8 };
        if !self.more.is_empty() {
            self.move_up();
        }
    }

    #[cold]
    fn move_up(&mut self) {
        if let Some(next) = self.more.pop_front() {
            self.push_back(next);
        }
    }

    /// Takes the last.
    pub(super) fn pop_back(&mut self) -> Option<Message> {
        if let Some(last) = self.more.pop_back() {
            return Some(last);
        }
        self.count = self.count.checked_sub(1)?;
        Some(self.places[self.place(self.count)])
    }

    /// The first.
    #[inline]
    pub(super) const fn front(&self) -> Option<&Message> {
        if self.count == 0 { None } else { Some(&self.places[self.place(0)]) }
    }

    /// The last.
    pub(super) fn back(&self) -> Option<&Message> {
        let last = self.count.checked_sub(1)?;
        Some(self.more.back().unwrap_or(&self.places[self.place(last)]))
    }

    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        usize::from(self.count) + self.more.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::usb::{Direction, EndpointAddress};

    /// One that is like no other.
    fn message(number: u16) -> Message {
        let stream = bus::StreamId::new(number + 1);
        Message::Erdy { endpoint: EndpointAddress::at::<1>(Direction::In), stream, packets: 1 }
    }

    proptest! {
        #[test]
        fn what_is_sent_first_comes_first(calls in prop::collection::vec(0_u8..5, 0..80)) {
            let (mut way, mut model) = (PropagationQueue::new(), VecDeque::new());
            for (number, call) in (0..).zip(calls) {
                match call {
                    0..3 => {
                        way.push_back(message(number));
                        model.push_back(message(number));
                    }
                    3 => {
                        way.drop_first();
                        model.pop_front();
                    }
                    _ => prop_assert_eq!(way.pop_back(), model.pop_back()),
                }
                prop_assert_eq!((way.front(), way.back(), way.len()), (model.front(), model.back(), model.len()));
            }
        }
    }
}
