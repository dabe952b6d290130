//! Rings (xHCI 1.2 clause 4.9): those that the driver fills, the event ring, and the splitting of
//! buffers.
//!
//! Left out: the meaning of TRBs. Always true: a ring never holds more than its capacity, a TD
//! becomes visible to the controller as a whole, an address from the controller is looked up and
//! never trusted.

mod event;
mod producer;
mod split;

pub(crate) use event::EventRing;
pub(crate) use producer::{Position, ProducerRing, Put, RingShape};
pub(crate) use split::{TdSize, TrbSpan, TrbSpans};
