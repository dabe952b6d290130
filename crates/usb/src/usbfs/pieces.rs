//! Splitting of transfers into URBs, and joining of their results. Without I/O.
//!
//! Most transfers are one URB. Where the controller's driver limits the length, a transfer is
//! several: *chained*, submitted at once with the flag that they continue one another, so that the
//! kernel stops all of them behind a short one; or *in turn*, each after the completion of the one
//! before. A transfer in turn has its pipe for itself.
//!
//! Always true: URBs of a pipe are in the order of the transfers; the first URB that is not filled
//! ends its transfer; a transfer ends exactly once, when none of its URBs is in flight. Left out:
//! addresses.

use super::kernel::Capabilities;
use crate::host_bus::{BufferSpan, TransferRequest};
use bus::{Completion, Direction, EndpointAddress, Pipe, TransferId, TransferStatus};
use std::collections::VecDeque;
use units::ByteRange;

/// Bytes of an URB where its memory may be in several places: more than any transfer of ours.
const WHOLE_BYTES_MAX: u32 = 1 << 30;

/// Bytes of an URB whose memory must be in one place: what the kernel finds without trouble.
const ONE_PLACE_BYTES_MAX: u32 = 32 << 10;

/// Bytes of an URB where the kernel takes no longer ones, and of pieces that are chained: what it
/// always took.
const CHAINED_BYTES_MAX: u32 = 16 << 10;

/// How transfers are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    piece_bytes_max: u32,
    chained: bool,
}

/// Which piece of which transfer an URB is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) transfer: u32,
    /// Where it begins, in bytes of the transfer.
    pub(super) offset: u32,
}

/// An URB to be submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) ticket: Ticket,
    pub(super) pipe: Pipe,
    pub(super) span: BufferSpan,
    /// It goes on from the piece before it.
    pub(super) continues: bool,
    /// If it is short, those after it are not to begin.
    pub(super) short_stops: bool,
}

/// Actions for the owner of [`Pieces`] to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Answered by [`Pieces::handle`], at once if the kernel does not take it.
    Submit(Piece),
    /// The URBs of a transfer are to be cancelled. Each is still answered.
    Discard { transfer: u32 },
    /// A transfer has ended.
    Complete(Completion),
}

/// Transfers in flight.
#[derive(Debug)]
pub(super) struct Pieces {
    rules: Rules,
    /// By transfer id.
    entries: Vec<Option<Entry>>,
    in_flight: usize,
    /// Transfers that have a piece to submit.
    starting: VecDeque<u32>,
    /// Pipes that a transfer keeps for itself; mostly none.
    lines: Vec<Line>,
    actions: VecDeque<Action>,
}

/// A pipe whose transfer goes in turn.
#[derive(Debug)]
struct Line {
    pipe: Pipe,
    keeper: u32,
    /// Transfers that come after it, oldest first.
    waiting: VecDeque<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    request: TransferRequest,
    /// Bytes of the pieces that were submitted.
    submitted: u32,
    begun: bool,
    pieces: u32,
    moved: u32,
    /// The earliest piece that ended otherwise than filled, and how.
    end: Option<(u32, TransferStatus)>,
    cancelled: bool,
}

impl Rules {
    /// Returns the rules for a controller, for memory that is usbfs's own or not.
    pub(super) fn of(capabilities: Capabilities, is_mapped: bool) -> Self {
        if is_mapped || capabilities.scatter_gather {
            Self { piece_bytes_max: WHOLE_BYTES_MAX, chained: false }
        } else if capabilities.continuation {
            Self { piece_bytes_max: CHAINED_BYTES_MAX, chained: true }
        } else if capabilities.any_length {
            Self { piece_bytes_max: ONE_PLACE_BYTES_MAX, chained: false }
        } else {
            Self { piece_bytes_max: CHAINED_BYTES_MAX, chained: false }
        }
    }

    /// Streams of an endpoint share what the kernel knows of chains, so that theirs go in turn.
    const fn chains(self, pipe: Pipe) -> bool {
        self.chained && pipe.stream.is_none()
    }
}

impl Entry {
    const fn is_submitted(&self) -> bool {
        self.begun && self.submitted == self.request.span.range.len
    }

    const fn is_over(&self) -> bool {
        self.pieces == 0 && (self.end.is_some() || self.is_submitted())
    }
}

impl Pieces {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            entries: Vec::new(),
            in_flight: 0,
            starting: VecDeque::new(),
            lines: Vec::new(),
            actions: VecDeque::new(),
        }
    }

    /// Accepts a transfer.
    pub(super) fn submit(&mut self, request: TransferRequest) {
        let entry =
            Entry { request, submitted: 0, begun: false, pieces: 0, moved: 0, end: None, cancelled: false };
        let index = request.id.0 as usize;
        if index >= self.entries.len() {
            self.entries.resize(index + 1, None);
        }
        self.entries[index] = Some(entry);
        self.in_flight += 1;
        self.start(index as u32, request);
    }

    /// Cancels a transfer. It still completes, as cancelled or as what it has become. `false`:
    /// there is none.
    pub(super) fn cancel(&mut self, id: TransferId) -> bool {
        let index = id.0 as u32;
        let Some(Some(entry)) = self.entries.get_mut(index as usize) else { return false };
        entry.cancelled = true;
        if entry.pieces > 0 {
            self.actions.push_back(Action::Discard { transfer: index });
        } else {
            entry.end = Some((entry.submitted, TransferStatus::Cancelled));
            self.lines.iter_mut().for_each(|line| line.waiting.retain(|&waiting| waiting != index));
            self.settle(index);
        }
        true
    }

    /// Cancels all transfers. Each still completes.
    pub(super) fn cancel_all(&mut self) {
        let ids: Vec<TransferId> = self.entries.iter().flatten().map(|entry| entry.request.id).collect();
        for id in ids {
            self.cancel(id);
        }
    }

    /// An URB has ended, or was not taken.
    pub(super) fn handle(&mut self, ticket: Ticket, status: TransferStatus, actual: u32) {
        let Some(Some(entry)) = self.entries.get_mut(ticket.transfer as usize) else { return };
        entry.pieces = entry.pieces.saturating_sub(1);
        entry.moved = entry.moved.saturating_add(actual);
        if status != TransferStatus::Done {
            if entry.end.is_none_or(|(offset, _)| ticket.offset < offset) {
                entry.end = Some((ticket.offset, status));
            }
            if entry.pieces > 0 {
                self.actions.push_back(Action::Discard { transfer: ticket.transfer });
            }
        } else if entry.cancelled && entry.end.is_none() && !entry.is_submitted() {
            entry.end = Some((entry.submitted, TransferStatus::Cancelled));
        }
        let goes_on = entry.end.is_none() && !entry.is_submitted() && entry.pieces == 0;
        if goes_on && !self.starting.contains(&ticket.transfer) {
            self.starting.push_back(ticket.transfer);
        }
        self.settle(ticket.transfer);
    }

    /// The next thing to do.
    pub(super) fn poll(&mut self) -> Option<Action> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        while let Some(&index) = self.starting.front() {
            match self.next_piece(index) {
                Some(piece) => return Some(Action::Submit(piece)),
                None => self.starting.pop_front(),
            };
        }
        None
    }

    /// Whether an endpoint has transfers.
    pub(super) fn is_busy(&self, endpoint: EndpointAddress) -> bool {
        self.entries.iter().flatten().any(|entry| entry.request.pipe.endpoint == endpoint)
    }

    /// Transfers in flight.
    pub(super) const fn len(&self) -> usize {
        self.in_flight
    }

    /// The piece of a transfer that is to be submitted now, if one is.
    fn next_piece(&mut self, index: u32) -> Option<Piece> {
        let rules = self.rules;
        let entry = self.entries.get_mut(index as usize)?.as_mut()?;
        let chained = rules.chains(entry.request.pipe);
        if entry.end.is_some() || entry.cancelled || entry.is_submitted() || (entry.pieces > 0 && !chained) {
            return None;
        }
        let TransferRequest { pipe, span, .. } = entry.request;
        let offset = entry.submitted;
        let len = (span.range.len - offset).min(rules.piece_bytes_max);
        entry.submitted += len;
        entry.begun = true;
        entry.pieces += 1;
        let is_last = entry.is_submitted();
        Some(Piece {
            ticket: Ticket { transfer: index, offset },
            pipe,
            span: BufferSpan { range: ByteRange::new(span.range.start + offset, len), ..span },
            continues: chained && offset > 0,
            short_stops: chained && !is_last && pipe.endpoint.direction() == Direction::In,
        })
    }

    /// Begins a transfer, or puts it in the line for its pipe.
    fn start(&mut self, index: u32, request: TransferRequest) {
        let pipe = request.pipe;
        if let Some(line) = self.lines.iter_mut().find(|line| line.pipe == pipe) {
            return line.waiting.push_back(index);
        }
        if request.span.range.len > self.rules.piece_bytes_max && !self.rules.chains(pipe) {
            self.lines.push(Line { pipe, keeper: index, waiting: VecDeque::new() });
        }
        self.starting.push_back(index);
    }

    /// Ends a transfer if it is over, and lets those go that waited for it.
    fn settle(&mut self, index: u32) {
        let Some(entry) = self.entries[index as usize].take_if(|entry| entry.is_over()) else { return };
        let status = entry.end.map_or(TransferStatus::Done, |(_, status)| status);
        let completion = Completion { id: entry.request.id, status, actual: entry.moved };
        self.actions.push_back(Action::Complete(completion));
        self.starting.retain(|&starting| starting != index);
        self.in_flight -= 1;
        if let Some(at) = self.lines.iter().position(|line| line.keeper == index) {
            for waiting in self.lines.swap_remove(at).waiting {
                if let Some(entry) = self.entries[waiting as usize] {
                    self.start(waiting, entry.request);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_bus::BufferId;
    use TransferStatus::{Babble, Cancelled, Done, Short, Stall};
    use bus::StreamId;
    use proptest::prelude::*;

    const WHOLE: Rules = Rules { piece_bytes_max: WHOLE_BYTES_MAX, chained: false };
    const CHAINED: Rules = Rules { piece_bytes_max: 100, chained: true };
    const IN_TURN: Rules = Rules { piece_bytes_max: 100, chained: false };

    fn pipe(direction: Direction) -> Pipe {
        Pipe::plain(EndpointAddress::at::<1>(direction))
    }

    fn request(id: u64, pipe: Pipe, len: u32) -> TransferRequest {
        TransferRequest {
            id: TransferId(id),
            pipe,
            span: BufferSpan { buffer: BufferId::default(), range: ByteRange::new(1000, len) },
            is_whole: false,
        }
    }

    fn taken(pieces: &mut Pieces) -> Vec<Action> {
        std::iter::from_fn(|| pieces.poll()).collect()
    }

    /// The pieces to be submitted: where they begin in memory, how long they are, whether they go
    /// on, whether they stop.
    fn submitted(actions: &[Action]) -> Vec<(u32, u32, bool, bool)> {
        let piece = |action: &Action| match action {
            Action::Submit(piece) => {
                Some((piece.span.range.start, piece.span.range.len, piece.continues, piece.short_stops))
            }
            _ => None,
        };
        actions.iter().filter_map(piece).collect()
    }

    fn ended(id: u64, status: TransferStatus, actual: u32) -> Action {
        Action::Complete(Completion { id: TransferId(id), status, actual })
    }

    fn ticket(transfer: u32, offset: u32) -> Ticket {
        Ticket { transfer, offset }
    }

    #[test]
    fn a_transfer_is_mostly_one_piece() {
        let mut pieces = Pieces::new(WHOLE);
        pieces.submit(request(0, pipe(Direction::In), 1 << 20));
        assert_eq!(submitted(&taken(&mut pieces)), [(1000, 1 << 20, false, false)]);
        pieces.handle(ticket(0, 0), Short, 512);
        assert_eq!(taken(&mut pieces), [ended(0, Short, 512)]);
        assert_eq!(pieces.len(), 0);
    }

    #[test]
    fn all_are_cancelled_and_none_begins_meanwhile() {
        let mut pieces = Pieces::new(IN_TURN);
        pieces.submit(request(0, pipe(Direction::In), 250));
        pieces.submit(request(1, pipe(Direction::In), 250));
        pieces.submit(request(2, pipe(Direction::Out), 50));
        assert_eq!(submitted(&taken(&mut pieces)).len(), 2);
        pieces.cancel_all();
        let discard = |transfer| Action::Discard { transfer };
        assert_eq!(taken(&mut pieces), [discard(0), ended(1, Cancelled, 0), discard(2)]);
        pieces.handle(ticket(0, 0), Cancelled, 0);
        pieces.handle(ticket(2, 0), Done, 50);
        assert_eq!(taken(&mut pieces), [ended(0, Cancelled, 0), ended(2, Done, 50)]);
        assert_eq!(pieces.len(), 0);
    }

    #[test]
    fn a_transfer_of_no_bytes_is_one_piece_too() {
        let mut pieces = Pieces::new(IN_TURN);
        pieces.submit(request(0, pipe(Direction::Out), 0));
        assert_eq!(submitted(&taken(&mut pieces)), [(1000, 0, false, false)]);
        pieces.handle(ticket(0, 0), Done, 0);
        assert_eq!(taken(&mut pieces), [ended(0, Done, 0)]);
    }

    #[test]
    fn chained_pieces_are_handed_over_at_once() {
        let mut pieces = Pieces::new(CHAINED);
        pieces.submit(request(0, pipe(Direction::In), 250));
        let expected = [(1000, 100, false, true), (1100, 100, true, true), (1200, 50, true, false)];
        assert_eq!(submitted(&taken(&mut pieces)), expected);
        for (offset, actual) in [(0, 100), (100, 100)] {
            pieces.handle(ticket(0, offset), Done, actual);
            assert_eq!(taken(&mut pieces), []);
        }
        pieces.handle(ticket(0, 200), Done, 50);
        assert_eq!(taken(&mut pieces), [ended(0, Done, 250)]);
    }

    #[test]
    fn a_short_piece_ends_its_chain() {
        let mut pieces = Pieces::new(CHAINED);
        pieces.submit(request(0, pipe(Direction::In), 250));
        taken(&mut pieces);
        pieces.handle(ticket(0, 0), Done, 100);
        pieces.handle(ticket(0, 100), Short, 13);
        assert_eq!(taken(&mut pieces), [Action::Discard { transfer: 0 }]);
        pieces.handle(ticket(0, 200), Cancelled, 0);
        assert_eq!(taken(&mut pieces), [ended(0, Short, 113)]);
    }

    #[test]
    fn a_chain_that_the_kernel_has_stopped_ends_as_its_earliest_piece() {
        let mut pieces = Pieces::new(CHAINED);
        pieces.submit(request(0, pipe(Direction::Out), 250));
        for _ in 0..2 {
            assert!(matches!(pieces.poll(), Some(Action::Submit(_))));
        }
        // The third is not taken any more, since the first has stalled, which is seen later.
        assert!(matches!(pieces.poll(), Some(Action::Submit(_))));
        pieces.handle(ticket(0, 200), Short, 0);
        assert_eq!(taken(&mut pieces), [Action::Discard { transfer: 0 }]);
        pieces.handle(ticket(0, 0), Stall, 0);
        pieces.handle(ticket(0, 100), Cancelled, 0);
        assert_eq!(taken(&mut pieces), [Action::Discard { transfer: 0 }, ended(0, Stall, 0)]);
    }

    #[test]
    fn pieces_in_turn_wait_for_one_another() {
        let mut pieces = Pieces::new(IN_TURN);
        pieces.submit(request(0, pipe(Direction::In), 250));
        assert_eq!(submitted(&taken(&mut pieces)), [(1000, 100, false, false)]);
        pieces.handle(ticket(0, 0), Done, 100);
        assert_eq!(submitted(&taken(&mut pieces)), [(1100, 100, false, false)]);
        pieces.handle(ticket(0, 100), Short, 1);
        assert_eq!(taken(&mut pieces), [ended(0, Short, 101)]);
    }

    #[test]
    fn a_transfer_in_turn_keeps_its_pipe() {
        let mut pieces = Pieces::new(IN_TURN);
        pieces.submit(request(0, pipe(Direction::In), 150));
        pieces.submit(request(1, pipe(Direction::In), 150));
        pieces.submit(request(2, pipe(Direction::In), 13));
        pieces.submit(request(3, pipe(Direction::Out), 13));
        assert_eq!(submitted(&taken(&mut pieces)), [(1000, 100, false, false), (1000, 13, false, false)]);
        pieces.handle(ticket(0, 0), Done, 100);
        assert_eq!(submitted(&taken(&mut pieces)), [(1100, 50, false, false)]);
        pieces.handle(ticket(0, 100), Done, 50);
        let actions = taken(&mut pieces);
        assert_eq!((actions[0], submitted(&actions)), (ended(0, Done, 150), vec![(1000, 100, false, false)]));
        pieces.handle(ticket(1, 0), Stall, 0);
        let actions = taken(&mut pieces);
        assert_eq!((actions[0], submitted(&actions)), (ended(1, Stall, 0), vec![(1000, 13, false, false)]));
    }

    #[test]
    fn streams_of_an_endpoint_go_in_turn_each_for_itself() {
        let mut pieces = Pieces::new(CHAINED);
        let stream = |id| StreamId::new(id).expect("a stream");
        let endpoint = EndpointAddress::at::<3>(Direction::In);
        for id in [1, 2] {
            pieces.submit(request(id.into(), Pipe::stream(endpoint, stream(id)), 150));
        }
        let expected = [(1000, 100, false, false), (1000, 100, false, false)];
        assert_eq!(submitted(&taken(&mut pieces)), expected);
        assert!(pieces.is_busy(endpoint));
        assert!(!pieces.is_busy(EndpointAddress::at::<3>(Direction::Out)));
    }

    #[test]
    fn a_transfer_cancelled_completes_as_what_it_has_become() {
        let mut pieces = Pieces::new(IN_TURN);
        for id in [0, 1, 2] {
            pieces.submit(request(id, pipe(Direction::In), 150));
        }
        taken(&mut pieces);
        // One that waits, one of which a piece is in flight, one that has ended in the meantime.
        assert!(pieces.cancel(TransferId(1)));
        assert_eq!(taken(&mut pieces), [ended(1, Cancelled, 0)]);
        assert!(pieces.cancel(TransferId(0)));
        assert_eq!(taken(&mut pieces), [Action::Discard { transfer: 0 }]);
        pieces.handle(ticket(0, 0), Done, 100);
        let actions = taken(&mut pieces);
        assert_eq!(actions[0], ended(0, Cancelled, 100));
        let Action::Submit(third) = actions[1] else { panic!("the third begins: {actions:?}") };
        pieces.handle(third.ticket, Babble, 100);
        assert!(!pieces.cancel(TransferId(1)));
        assert_eq!(taken(&mut pieces), [ended(2, Babble, 100)]);
        assert!(!pieces.cancel(TransferId(2)));
    }

    proptest! {
        /// Any lengths, ends and cancels: each transfer completes once, and on a pipe in the order
        /// of submission.
        #[test]
        fn every_transfer_completes_once_and_in_order(
            rules in prop_oneof![Just(WHOLE), Just(CHAINED), Just(IN_TURN)],
            lengths in prop::collection::vec((0_u32..500, any::<bool>()), 1..12),
            script in prop::collection::vec((0_u8..8, any::<prop::sample::Index>()), 0..200),
        ) {
            let mut pieces = Pieces::new(rules);
            let mut outstanding: Vec<Piece> = Vec::new();
            let mut completed: Vec<Completion> = Vec::new();
            let mut cancelled = Vec::new();
            let mut take = |pieces: &mut Pieces, outstanding: &mut Vec<Piece>| {
                while let Some(action) = pieces.poll() {
                    match action {
                        Action::Submit(piece) => outstanding.push(piece),
                        Action::Discard { .. } => {}
                        Action::Complete(completion) => completed.push(completion),
                    }
                }
            };
            let mut rest = lengths.iter().enumerate();
            for (what, index) in script.into_iter().chain((0..2000).map(|_| (7, any_index()))) {
                if let Some((id, &(len, is_in))) = rest.next() {
                    let direction = if is_in { Direction::In } else { Direction::Out };
                    pieces.submit(request(id as u64, pipe(direction), len));
                }
                if what == 0 {
                    let id = index.index(lengths.len()) as u64;
                    if pieces.cancel(TransferId(id)) { cancelled.push(id); }
                }
                take(&mut pieces, &mut outstanding);
                // A pipe completes its pieces in order.
                if outstanding.is_empty() { continue; }
                let chosen = outstanding[index.index(outstanding.len())];
                let at = outstanding.iter().position(|piece| piece.pipe == chosen.pipe).expect("it is there");
                let piece = outstanding.remove(at);
                let (status, actual) = match what {
                    1 => (Short, piece.span.range.len / 2),
                    2 => (Stall, 0),
                    _ => (Done, piece.span.range.len),
                };
                pieces.handle(piece.ticket, status, actual);
                take(&mut pieces, &mut outstanding);
            }
            prop_assert_eq!(pieces.len(), 0);
            let mut ids: Vec<u64> = completed.iter().map(|completion| completion.id.0).collect();
            for wanted in [true, false] {
                let of_pipe = ids.iter().filter(|&&id| lengths[id as usize].1 == wanted && !cancelled.contains(&id));
                prop_assert!(of_pipe.is_sorted());
            }
            ids.sort_unstable();
            prop_assert_eq!(ids, (0..lengths.len() as u64).collect::<Vec<_>>());
        }
    }

    fn any_index() -> prop::sample::Index {
        use proptest::strategy::ValueTree;
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        any::<prop::sample::Index>().new_tree(&mut runner).expect("an index").current()
    }
}
