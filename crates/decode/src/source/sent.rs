//! How much was written, where a capture says it when a transfer begins and not when it ends.
//!
//! USBPcap and QEMU have 0 bytes at the end of a transfer to the device. One that succeeded has moved all that was submitted: a host that
//! sends less gets an error. Left out: transfers whose beginning was not captured, which stay at 0.
//!
//! Invariants: of no more than [`SENT_MAX`] transfers anything is kept.

use crate::event::{Address, Event, Phase, TransferEnd};
use std::collections::BTreeMap;

/// Transfers to devices that are in flight at a time.
const SENT_MAX: usize = 1 << 12;

/// Bytes of transfers to devices that have not ended.
#[derive(Debug, Default)]
pub(super) struct Sent {
    bytes: BTreeMap<(u64, Address, u8), u32>,
}

impl Sent {
    /// The event, with the length that its beginning had if its end has none.
    pub(super) fn completed<'a>(&mut self, event: Event<'a>) -> Event<'a> {
        if event.is_in() || event.is_control() {
            return event;
        }
        let key = (event.id, event.address, event.endpoint.number());
        match event.phase {
            Phase::Submitted => {
                if self.bytes.len() >= SENT_MAX {
                    self.bytes.pop_first();
                }
                self.bytes.insert(key, event.len());
                event
            }
            Phase::Completed(ended) => {
                let sent = self.bytes.remove(&key).filter(|_| ended == TransferEnd::Done && event.len() == 0);
                Event { length: sent.or(event.length), ..event }
            }
            Phase::Whole(_) => event,
        }
    }
}
