//! The transfer queues of one side of an endpoint, by stream.
//!
//! An end that receives fills the first transfer of a stream; an end that sends cuts transfers into
//! pieces, may have several in flight, and sends again from what was not taken. A transfer of no
//! bytes is one packet.
//!
//! Invariant: bytes of a stream move in the order in which their transfers were queued, each once.

use bus::link::{End, Endpoint, PacketPayload, Progress, Transfer};
use bus::{StreamId, TransferId};
use std::collections::VecDeque;

/// Why a transfer cannot be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotWithdrawn {
    /// It has ended, or was never queued.
    Unknown,
    /// Packets of its stream are in flight. Stop the endpoint, and ask again when it is quiet.
    InFlight,
}

/// Transfers of all streams of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    /// By stream; the first is that of an endpoint without streams.
    by_stream: Vec<Stream>,
    /// Streams in the order in which they got something to move; some may have nothing any more.
    arrivals: VecDeque<StreamId>,
    /// Whether one of them may have nothing any more.
    has_gone: bool,
}

/// Transfers of a stream, oldest first: mostly one, which lies here, so that a look at it is one at
/// one piece of memory.
///
/// Invariant: if no one is first, no one is behind.
#[derive(Clone, Debug, Default)]
struct Stream {
    first: Option<Waiting>,
    #[expect(clippy::box_collection, reason = "few streams ever have one, and all lie side by side")]
    behind: Option<Box<VecDeque<Waiting>>>,
}

/// A transfer and how far it is.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    transfer: Transfer,
    /// Bytes that have moved for good.
    moved: u32,
    /// Bytes that have been sent and not acknowledged, after those.
    sent: u32,
    /// Whether all has been sent. Not a matter of bytes: a transfer of none has a packet as well.
    is_all_sent: bool,
    /// Whether it was cancelled, and ends when what was sent is acknowledged.
    is_withdrawn: bool,
}

impl Queues {
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        Self {
            by_stream: vec![Stream::default(); usize::from(endpoint.streams) + 1],
            arrivals: VecDeque::new(),
            has_gone: false,
        }
    }

    /// Adds one. `None` if the endpoint has no such stream, else whether there was none before.
    #[inline(always)]
    pub(super) fn push(&mut self, stream: Option<StreamId>, transfer: Transfer) -> Option<bool> {
        let queue = self.by_stream.get_mut(index(stream))?;
        let was_empty = queue.is_empty();
        queue.push(Waiting { transfer, moved: 0, sent: 0, is_all_sent: false, is_withdrawn: false });
        if was_empty && let Some(stream) = stream {
            self.arrivals.push_back(stream);
        }
        Some(was_empty)
    }

    pub(super) fn is_empty(&self, stream: Option<StreamId>) -> bool {
        self.by_stream.get(index(stream)).is_none_or(Stream::is_empty)
    }

    /// Of the streams with something to move, the first `wanted` one, by when they got it.
    pub(super) fn find(&mut self, wanted: impl Fn(StreamId) -> bool) -> Option<StreamId> {
        if std::mem::take(&mut self.has_gone) {
            let by_stream = &self.by_stream;
            let is_gone = |stream: &StreamId| by_stream[index(Some(*stream))].is_empty();
            while self.arrivals.pop_front_if(|stream| is_gone(stream)).is_some() {}
            // Mostly it was the first, and nothing behind it has to move up.
            if self.arrivals.iter().any(is_gone) {
                self.arrivals.retain(|stream| !is_gone(stream));
            }
        }
        self.arrivals.iter().copied().find(|&stream| wanted(stream))
    }

    /// Returns the bytes that the first transfer still expects.
    pub(super) fn left(&self, stream: Option<StreamId>) -> Option<u32> {
        let first = self.by_stream.get(index(stream))?.first.as_ref()?;
        Some(first.transfer.bytes - first.moved)
    }

    /// Returns the bytes of the first transfer, moved ones included.
    pub(super) fn first_bytes(&self, stream: Option<StreamId>) -> Option<u32> {
        self.by_stream.get(index(stream))?.first.as_ref().map(|first| first.transfer.bytes)
    }

    /// Receives payload into the first transfer. `None` if there is none.
    #[inline]
    pub(super) fn take(
        &mut self,
        stream: Option<StreamId>,
        piece: PacketPayload,
        largest: u16,
    ) -> Option<Progress> {
        let queue = self.by_stream.get_mut(index(stream))?;
        let first = queue.first.as_mut()?;
        let left = first.transfer.bytes - first.moved;
        let bytes = u32::from(piece.bytes);
        first.moved += bytes.min(left);
        let ended = match bytes {
            _ if bytes > left => Some(End::Overflow),
            _ if bytes == left => Some(End::Full),
            _ if piece.bytes < largest => Some(End::Short),
            _ => None,
        };
        let progress = Progress { id: first.transfer.id, moved: first.moved, ended, piece: Some(piece) };
        if ended.is_some() {
            queue.pop();
            self.has_gone = true;
        }
        Some(progress)
    }

    /// Returns the next piece to send, and whether it is the last that its stream has.
    #[inline(always)]
    pub(super) fn send(&mut self, stream: Option<StreamId>, largest: u16) -> Option<(PacketPayload, bool)> {
        let queue = self.by_stream.get_mut(index(stream))?;
        let is_first = queue.first.as_ref().is_some_and(|waiting| !waiting.is_all_sent);
        let at = if is_first { 0 } else { queue.iter().position(|waiting| !waiting.is_all_sent)? };
        let is_newest = at + 1 == queue.len();
        let waiting = queue.get_mut(at)?;
        let offset = waiting.moved + waiting.sent;
        let left = waiting.transfer.bytes - offset;
        let bytes = u16::try_from(left).unwrap_or(u16::MAX).min(largest);
        waiting.sent += u32::from(bytes);
        waiting.is_all_sent = u32::from(bytes) == left;
        let piece = PacketPayload { transfer: waiting.transfer.id, offset, bytes };
        Some((piece, waiting.is_all_sent && is_newest))
    }

    /// Returns the bytes that have not been sent of the first transfer of which something waits to
    /// be.
    pub(super) fn unsent(&self, stream: Option<StreamId>) -> Option<u32> {
        let waiting = self.by_stream.get(index(stream))?.iter().find(|waiting| !waiting.is_all_sent)?;
        Some(waiting.transfer.bytes - waiting.moved - waiting.sent)
    }

    /// Returns whether something waits to be sent.
    pub(super) fn has_unsent(&self, stream: Option<StreamId>) -> bool {
        self.unsent(stream).is_some()
    }

    /// The oldest piece that was sent has been taken.
    pub(super) fn taken(&mut self, stream: Option<StreamId>, largest: u16) -> Option<Progress> {
        let queue = self.by_stream.get_mut(index(stream))?;
        let first = queue.first.as_mut()?;
        let bytes = first.sent.min(u32::from(largest));
        first.sent -= bytes;
        first.moved += bytes;
        let end = if first.is_withdrawn { End::Withdrawn } else { End::Full };
        let ended = (first.is_all_sent && first.sent == 0).then_some(end);
        let progress = Progress { id: first.transfer.id, moved: first.moved, ended, piece: None };
        if ended.is_some() {
            queue.pop();
            self.has_gone = true;
        }
        Some(progress)
    }

    /// Like `taken` for a packet that ends no transfer and needs no report. Returns whether
    /// it is one.
    pub(super) fn take_within(&mut self, stream: Option<StreamId>, largest: u16) -> bool {
        let first = self.by_stream.get_mut(index(stream)).and_then(|queue| queue.first.as_mut());
        let Some(first) = first else { return false };
        let bytes = u32::from(largest);
        let goes_on = first.sent > bytes || first.sent == bytes && !first.is_all_sent;
        if goes_on {
            first.sent -= bytes;
            first.moved += bytes;
        }
        goes_on
    }

    /// Rewinds a stream to its first unacknowledged byte.
    pub(super) fn rewind(&mut self, stream: Option<StreamId>) {
        for waiting in self.by_stream.get_mut(index(stream)).into_iter().flat_map(Stream::iter_mut) {
            waiting.sent = 0;
            waiting.is_all_sent = false;
        }
    }

    /// Rewinds all streams when nothing will be acknowledged any more. Returns the next cancelled
    /// transfer that completes by that.
    pub(super) fn forget_sent(&mut self) -> Option<Progress> {
        self.has_gone = true;
        for queue in &mut self.by_stream {
            let withdrawn = queue.iter().position(|waiting| waiting.is_withdrawn);
            if let Some(at) = withdrawn {
                return queue.remove(at).map(|waiting| waiting.ended(End::Withdrawn));
            }
            for waiting in queue.iter_mut() {
                (waiting.sent, waiting.is_all_sent) = (0, false);
            }
        }
        None
    }

    /// Cancels a transfer. `None` if it is not queued, otherwise its completion, unless that waits
    /// for a packet that `is_sent`.
    pub(super) fn withdraw(&mut self, stream: Option<StreamId>, id: TransferId) -> Option<Option<Progress>> {
        let queue = self.by_stream.get_mut(index(stream))?;
        let at = queue.iter().position(|waiting| waiting.transfer.id == id && !waiting.is_withdrawn)?;
        let waiting = queue.get_mut(at)?;
        if waiting.sent == 0 && !waiting.is_all_sent {
            self.has_gone = true;
            return queue.remove(at).map(|waiting| Some(waiting.ended(End::Withdrawn)));
        }
        waiting.transfer.bytes = waiting.moved + waiting.sent;
        waiting.is_all_sent = true;
        waiting.is_withdrawn = true;
        Some(None)
    }

    /// Completes the first transfer as it is.
    pub(super) fn end_first(&mut self, stream: Option<StreamId>, end: End) -> Option<Progress> {
        let first = self.by_stream.get_mut(index(stream))?.pop()?;
        self.has_gone = true;
        Some(first.ended(end))
    }

    /// Transfers of all streams.
    pub(super) fn all(&self) -> impl Iterator<Item = (Option<StreamId>, TransferId)> {
        self.by_stream.iter().zip(0_u16..).flat_map(|(queue, stream)| {
            queue.iter().map(move |waiting| (StreamId::new(stream), waiting.transfer.id))
        })
    }

    /// Transfers of a stream, oldest first.
    pub(super) fn of(&self, stream: Option<StreamId>) -> impl Iterator<Item = TransferId> {
        let queue = self.by_stream.get(index(stream)).into_iter();
        queue.flat_map(Stream::iter).map(|waiting| waiting.transfer.id)
    }
}

impl Stream {
    const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.behind.as_ref().map_or(0, |behind| behind.len())
    }

    #[inline]
    fn push(&mut self, waiting: Waiting) {
        match self.first {
            None => self.first = Some(waiting),
            Some(_) => self.behind.get_or_insert_default().push_back(waiting),
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<Waiting> {
        let next = self.behind.as_mut().and_then(|behind| behind.pop_front());
        std::mem::replace(&mut self.first, next)
    }

    fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.first.iter().chain(self.behind.iter().flat_map(|behind| behind.iter()))
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Waiting> {
        self.first.iter_mut().chain(self.behind.iter_mut().flat_map(|behind| behind.iter_mut()))
    }

    fn get_mut(&mut self, at: usize) -> Option<&mut Waiting> {
        match at {
            0 => self.first.as_mut(),
            _ => self.behind.as_mut()?.get_mut(at - 1),
        }
    }

    fn remove(&mut self, at: usize) -> Option<Waiting> {
        if at == 0 { self.pop() } else { self.behind.as_mut()?.remove(at - 1) }
    }
}

impl Waiting {
    const fn ended(&self, end: End) -> Progress {
        Progress { id: self.transfer.id, moved: self.moved, ended: Some(end), piece: None }
    }
}

fn index(stream: Option<StreamId>) -> usize {
    stream.map_or(0, |stream| usize::from(stream.get()))
}
