//! Merging of unmap requests: one UNMAP command takes a list of extents (SBC-4 clause 5.35).
//!
//! An unmap request that fits into one command takes those behind it in the queue along, within the
//! unit's limits and the length of the list. If the command succeeds, all succeed. If it fails, the
//! first request alone gets the error: the others return to the queue and are sent separately from
//! then on, so that each gets its own result. Left out: requests other than the next in the queue.

use super::Disk;
use super::part::{self, Part};
use super::request::Operation;
use core::hint::cold_path;
use units::Extent;

impl Disk {
    /// Merges the next requests of the queue and returns the part that carries all.
    #[cold]
    pub(super) fn merge_unmaps(&mut self, at: u16, request: u16, part: Part) -> Part {
        let is_whole = self
            .requests
            .get(request)
            .is_some_and(|active| active.request.extent == part.extent && !active.is_alone());
        let Some(geometry) = self.geometry.as_ref().filter(|_| is_whole) else { return part };
        let (runs_max, blocks_max) = part::unmap_room(geometry);
        let mut room = blocks_max.saturating_sub(part.extent.blocks.0);
        while self.slots.merged(at).len() + 1 < runs_max {
            let Some(next) = self.requests.first() else { break };
            if self.objection(next).is_some() {
                break;
            }
            let Some(other) = self.requests.get_mut(next) else { break };
            let whole = other.request.extent;
            let is_untouched = other.rest == whole && !whole.is_empty() && !other.is_alone();
            if other.request.operation != Operation::Unmap || !is_untouched || whole.blocks.0 > room {
                break;
            }
            room -= whole.blocks.0;
            other.advance(whole.blocks.0, 0);
            other.commands += 1;
            self.requests.leave_line(next);
            self.slots.add_merged(at, next);
        }
        part.of_runs(self.slots.merged(at).len() + 1)
    }

    /// Before a retry: keeps the merged requests if they still fit; else splits them off.
    #[cold]
    pub(super) fn keep_merged(&mut self, at: u16, rest: Extent, part: Part) -> Part {
        let merged = self.slots.merged(at);
        if merged.is_empty() {
            return part;
        }
        let room = self.geometry.as_ref().map_or((0, 0), part::unmap_room);
        let blocks = merged
            .iter()
            .filter_map(|&other| self.requests.get(other))
            .map(|other| other.request.extent.blocks.0);
        let fit = merged.len() < room.0 && blocks.sum::<u64>().saturating_add(rest.blocks.0) <= room.1;
        let is_over = |other: &u16| self.requests.get(*other).is_none_or(|other| other.is_over());
        let hindered = merged.iter().any(|other| is_over(other) || self.objection(*other).is_some());
        if part.sends_list() && part.extent == rest && fit && !hindered {
            return part.of_runs(merged.len() + 1);
        }
        self.split_merged(at);
        part
    }

    /// Sets the extents of a command, its own first.
    #[cold]
    pub(super) fn set_runs(&mut self, at: u16, own: Extent) {
        let mut runs = [Extent::default(); part::RUNS_MAX];
        let merged = self.slots.merged(at).iter().filter_map(|&other| self.requests.get(other));
        let extents = merged.map(|other| other.request.extent);
        let mut count = 0;
        for (run, extent) in runs.iter_mut().zip([own].into_iter().chain(extents)) {
            *run = extent;
            count += 1;
        }
        self.slots.set_list(at, &runs[..count]);
    }

    /// Completes the merged requests of a successful command.
    #[inline]
    pub(super) fn complete_merged(&mut self, at: u16) {
        while let Some(other) = self.slots.pop_merged(at) {
            cold_path();
            self.settle_after(other, 1);
        }
    }

    /// Returns the merged requests of a failed command to the queue, to be sent separately.
    pub(super) fn split_merged(&mut self, at: u16) {
        while let Some(other) = self.slots.pop_merged(at) {
            let Some(active) = self.requests.get_mut(other) else { continue };
            active.commands -= 1;
            if active.go_alone() {
                self.requests.join_line(other);
            } else {
                self.settle(other);
            }
        }
    }
}
