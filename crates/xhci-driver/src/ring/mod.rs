//! Rings (xHCI 1.2 clause 4.9): those that the driver fills, the one that it empties, and how a buffer is cut for them.
//!
//! Left out: what TRBs mean. Always true: a ring never holds more than it has room for, a TD is shown to the
//! controller whole, an address from the controller is looked up and never trusted.

mod event;
mod producer;
mod split;

pub(crate) use event::EventRing;
pub(crate) use producer::{Position, ProducerRing, Put, RingShape};
pub(crate) use split::{TdSize, TrbSpan, TrbSpans};
