//! The accepted requests, and the queue of those with commands still to send.
//!
//! Always true: no more than the limit; a queued request has something to send; a request that
//! ended is removed.

use super::request::{Done, Error, Operation, Request, RequestId};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hint::cold_path;
use units::{BlockCount, BlockSize, Extent, Lba};

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub(super) request: Request,
    /// The block size when it was accepted.
    pub(super) block_size: BlockSize,
    /// Bytes of its buffer that are to move.
    total: u32,
    /// Blocks that no command was sent for.
    pub(super) rest: Extent,
    /// Where their data begin in the buffer.
    pub(super) offset: u32,
    /// Commands that it has.
    pub(super) commands: u16,
    /// A SYNCHRONIZE CACHE is to be sent.
    pub(super) flush_due: bool,
    /// A write without FUA went out that should have had it.
    pub(super) unforced: bool,
    /// Nothing of it is to be sent any more, or again: it was cancelled, or something of it failed.
    over: bool,
    /// Something was not done, for that or for an error.
    hole: bool,
    short_at: Option<u32>,
    error: Option<(Lba, Error)>,
    queued: bool,
    /// It shares no command with others: one that it shared was not carried out.
    alone: bool,
}

#[derive(Debug)]
pub(super) struct Requests {
    table: Vec<Option<Active>>,
    free: Vec<u16>,
    line: VecDeque<u16>,
}

impl Active {
    fn new(request: Request, block_size: BlockSize, total: u32) -> Self {
        let flush = request.operation == Operation::Flush;
        let rest = if flush { Extent::default() } else { request.extent };
        Self {
            request,
            block_size,
            total: if request.operation.moves_blocks() { total } else { 0 },
            rest,
            offset: 0,
            commands: 0,
            flush_due: flush,
            unforced: false,
            over: false,
            hole: false,
            short_at: None,
            error: None,
            queued: false,
            alone: false,
        }
    }

    pub(super) const fn is_alone(&self) -> bool {
        self.alone
    }

    /// The command that it shared was not carried out: it begins again, unless it is over. Whether
    /// it does.
    pub(super) fn go_alone(&mut self) -> bool {
        self.alone = true;
        if self.over {
            self.hole = true;
            return false;
        }
        self.rest = self.request.extent;
        true
    }

    /// Whether nothing of it is to be sent any more, or again.
    pub(super) const fn is_over(&self) -> bool {
        self.over
    }

    /// Moves past the blocks that a command was made for.
    pub(super) fn advance(&mut self, blocks: u64, bytes: u32) {
        let Extent { lba, blocks: BlockCount(left) } = self.rest;
        self.rest = Extent { lba: Lba(lba.0 + blocks), blocks: BlockCount(left - blocks) };
        if self.request.operation.moves_blocks() {
            self.offset += bytes;
        }
    }

    /// Data end at this byte of the buffer; what comes after does not count.
    pub(super) fn end_short(&mut self, at: u32) {
        self.short_at = Some(self.short_at.map_or(at, |earlier| earlier.min(at)));
        self.rest.blocks = BlockCount(0);
    }

    /// Nothing more is to be sent. Of several errors the one of the first blocks counts.
    pub(super) fn fail(&mut self, lba: Lba, error: Error) {
        self.stop();
        if self.error.is_none_or(|(first, _)| lba < first) {
            self.error = Some((lba, error));
        }
    }

    /// Aborts the request: no further command is sent, and none again.
    pub(super) fn abort(&mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        self.over = true;
        self.hole |= !self.rest.is_empty() || self.flush_due;
        self.rest.blocks = BlockCount(0);
        self.flush_due = false;
    }

    /// A command of it was given up.
    pub(super) fn give_up(&mut self) {
        self.over = true;
        self.hole = true;
    }

    /// How it ended.
    #[inline(always)]
    pub(super) fn result(&self) -> Result<Done, Error> {
        match self.error {
            Some((_, error)) => Err(error),
            None if self.hole => Err(Error::Aborted),
            None => Ok(Done { moved: self.short_at.unwrap_or(self.total) }),
        }
    }
}

impl Requests {
    pub(super) fn new(max: u16) -> Self {
        Self {
            table: (0..max).map(|_| None).collect(),
            free: (0..max).rev().collect(),
            line: VecDeque::with_capacity(max.into()),
        }
    }

    /// Accepts a request, at the end of the line; `false` if there is no room.
    #[inline(always)]
    pub(super) fn add(&mut self, request: Request, block_size: BlockSize, total: u32) -> bool {
        let Some(at) = self.free.pop() else { return false };
        self.table[usize::from(at)] = Some(Active::new(request, block_size, total));
        self.join_line(at);
        true
    }

    pub(super) fn join_line(&mut self, at: u16) {
        if let Some(active) = self.get_mut(at)
            && !active.queued
        {
            active.queued = true;
            self.line.push_back(at);
        }
    }

    #[inline]
    pub(super) fn leave_line(&mut self, at: u16) {
        if let Some(active) = self.get_mut(at)
            && active.queued
        {
            cold_path();
            active.queued = false;
            self.line.retain(|&waiting| waiting != at);
        }
    }

    pub(super) fn first(&self) -> Option<u16> {
        self.line.front().copied()
    }

    /// The first of the line leaves it.
    pub(super) fn drop_first(&mut self) {
        if let Some(first) = self.line.pop_front()
            && let Some(active) = self.get_mut(first)
        {
            active.queued = false;
        }
    }

    pub(super) fn get_mut(&mut self, at: u16) -> Option<&mut Active> {
        self.table.get_mut(usize::from(at))?.as_mut()
    }

    pub(super) fn get(&self, at: u16) -> Option<&Active> {
        self.table.get(usize::from(at))?.as_ref()
    }

    /// Lets a request go that has ended.
    #[inline(always)]
    pub(super) fn release(&mut self, at: u16) {
        self.leave_line(at);
        if let Some(place @ Some(_)) = self.table.get_mut(usize::from(at)) {
            *place = None;
            self.free.push(at);
        }
    }

    pub(super) fn find(&self, id: RequestId) -> Option<u16> {
        (0u16..).zip(&self.table).find_map(|(at, active)| (active.as_ref()?.request.id == id).then_some(at))
    }

    /// The places of all requests.
    pub(super) fn all(&self) -> Vec<u16> {
        (0u16..).zip(&self.table).filter_map(|(at, active)| active.as_ref().map(|_| at)).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.table.len() - self.free.len()
    }
}
