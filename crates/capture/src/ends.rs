//! Where transfers of the host end, as far as a reader of packets of USB 2.0 cannot see it.
//!
//! On the wire a transfer ends with a packet that is not whole, or with as many bytes as the host had asked for, which no packet says. A
//! reader knows the first alone, and holds packets against what the endpoint says, 512 bytes (`rewritten.rs`).
//!
//! Invariants: at most [`ASKED_MAX`] transfers are held.

use crate::rewritten::USB2_BULK_BYTES;
use crate::transfers::Transfer;
use bus::{Pipe, TransferId};
use std::collections::VecDeque;
use wire::usb::EndpointAddress;

/// Transfers that the host has submitted and that have not ended; of more the oldest is forgotten.
const ASKED_MAX: usize = 1 << 12;
/// Bytes of a whole bulk packet of SuperSpeed.
const WHOLE_BYTES: usize = 1024;

/// The transfers of a device that have not ended, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends(VecDeque<Asked>);

#[derive(Clone, Copy, Debug)]
struct Asked {
    id: TransferId,
    pipe: Pipe,
    /// Bytes that may still come.
    left: u32,
    /// A reader takes what comes next for more of it.
    is_open: bool,
}

impl Ends {
    /// The host has submitted a transfer.
    pub(crate) fn ask(&mut self, transfer: &Transfer) {
        let Transfer { id, pipe, length } = *transfer;
        if self.0.len() >= ASKED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Asked { id, pipe, left: length, is_open: false });
    }

    /// A data packet was taken: whether it ends a transfer and does not show it.
    pub(crate) fn is_hidden_after(
        &mut self,
        endpoint: EndpointAddress,
        stream: Option<u16>,
        bytes: usize,
    ) -> bool {
        let is_there = |asked: &Asked| {
            asked.pipe.endpoint == endpoint && asked.pipe.stream.map(|stream| stream.get()) == stream
        };
        let Some(index) = self.0.iter().position(is_there) else { return false };
        let asked = &mut self.0[index];
        asked.left = asked.left.saturating_sub(bytes as u32);
        asked.is_open = bytes >= USB2_BULK_BYTES.into();
        let has_ended = asked.left == 0 || bytes < WHOLE_BYTES;
        has_ended && self.0.remove(index).is_some_and(|asked| asked.is_open)
    }

    /// The host has a transfer back: where, if it has ended in the middle and nothing showed it.
    pub(crate) fn hidden_of(&mut self, id: TransferId) -> Option<Pipe> {
        let index = self.0.iter().position(|asked| asked.id == id)?;
        self.0.remove(index).filter(|asked| asked.is_open).map(|asked| asked.pipe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::{Direction, StreamId};

    const IN_1: EndpointAddress = EndpointAddress::at::<1>(Direction::In);

    fn asked(transfers: &[(u64, Option<u16>, u32)]) -> Ends {
        let mut ends = Ends::default();
        for &(id, stream, length) in transfers {
            let pipe = Pipe { endpoint: IN_1, stream: stream.and_then(StreamId::new) };
            ends.ask(&Transfer { id: TransferId(id), pipe, length });
        }
        ends
    }

    #[test]
    fn an_end_behind_whole_packets_is_hidden() {
        let mut ends = asked(&[(1, None, 2048), (2, None, 13)]);
        assert!(!ends.is_hidden_after(IN_1, None, 1024));
        assert!(ends.is_hidden_after(IN_1, None, 1024));
        assert!(!ends.is_hidden_after(IN_1, None, 13), "a short packet shows it");
        assert!(!ends.is_hidden_after(IN_1, None, 1024), "nothing was asked for");
    }

    #[test]
    fn what_is_short_on_the_link_and_whole_to_a_reader_is_hidden() {
        for (bytes, is_hidden) in [(0, false), (511, false), (512, true), (1023, true)] {
            assert_eq!(asked(&[(1, None, 4096)]).is_hidden_after(IN_1, None, bytes), is_hidden, "{bytes}");
        }
    }

    #[test]
    fn streams_have_separate_transfers() {
        let mut ends = asked(&[(1, Some(3), 2048), (2, Some(5), 1024)]);
        assert!(!ends.is_hidden_after(IN_1, Some(3), 1024));
        assert!(ends.is_hidden_after(IN_1, Some(5), 1024));
        assert!(ends.is_hidden_after(IN_1, Some(3), 1024));
    }

    #[test]
    fn a_transfer_that_is_broken_off_behind_a_whole_packet_is_hidden() {
        let mut ends = asked(&[(1, None, 4096), (2, None, 4096)]);
        assert!(!ends.is_hidden_after(IN_1, None, 1024));
        assert_eq!(ends.hidden_of(TransferId(1)), Some(Pipe::plain(IN_1)));
        assert_eq!(ends.hidden_of(TransferId(2)), None, "nothing has come of it");
        assert_eq!(ends.hidden_of(TransferId(2)), None);
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut ends = Ends::default();
        for id in 0..=ASKED_MAX as u64 {
            ends.ask(&Transfer { id: TransferId(id), pipe: Pipe::plain(IN_1), length: 1 });
        }
        assert_eq!((ends.0.len(), ends.0[0].id), (ASKED_MAX, TransferId(1)));
    }
}
