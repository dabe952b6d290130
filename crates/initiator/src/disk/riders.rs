//! Unmapping of several requests in one command: UNMAP takes a list of runs (SBC-4 clause 5.35).
//!
//! A request to unmap that goes into one command takes those behind it in the line along, as *riders*, as long as the
//! unit's limits and the list have room. When the command has ended well they all have. When it has not, it is the first
//! request's business alone: its riders go back into the line and go alone from then on, so that an error is told to
//! whom it belongs. Left out: other requests than those next in the line.

use super::Disk;
use super::part::{self, Part};
use super::request::Operation;
use core::hint::cold_path;
use units::Extent;

impl Disk {
    /// Takes along what is next in the line, and returns the part that carries it all.
    #[cold]
    pub(super) fn take_riders(&mut self, at: u16, request: u16, part: Part) -> Part {
        let is_whole = self
            .requests
            .get(request)
            .is_some_and(|active| active.request.extent == part.extent && !active.is_alone());
        let Some(geometry) = self.geometry.as_ref().filter(|_| is_whole) else { return part };
        let (runs_max, blocks_max) = part::unmap_room(geometry);
        let mut room = blocks_max.saturating_sub(part.extent.blocks.0);
        while self.slots.riders(at).len() + 1 < runs_max {
            let Some(next) = self.requests.first() else { break };
            if self.objection(next).is_some() {
                break;
            }
            let Some(rider) = self.requests.get_mut(next) else { break };
            let whole = rider.request.extent;
            let is_untouched = rider.rest == whole && !whole.is_empty() && !rider.is_alone();
            if rider.request.operation != Operation::Unmap || !is_untouched || whole.blocks.0 > room {
                break;
            }
            room -= whole.blocks.0;
            rider.advance(whole.blocks.0, 0);
            rider.commands += 1;
            self.requests.leave_line(next);
            self.slots.add_rider(at, next);
        }
        part.of_runs(self.slots.riders(at).len() + 1)
    }

    /// Before a command is sent once more: whether its riders can come along, as things are now. If not, they get off.
    #[cold]
    pub(super) fn keep_riders(&mut self, at: u16, rest: Extent, part: Part) -> Part {
        let riders = self.slots.riders(at);
        if riders.is_empty() {
            return part;
        }
        let room = self.geometry.as_ref().map_or((0, 0), part::unmap_room);
        let blocks = riders
            .iter()
            .filter_map(|&rider| self.requests.get(rider))
            .map(|rider| rider.request.extent.blocks.0);
        let fit = riders.len() < room.0 && blocks.sum::<u64>().saturating_add(rest.blocks.0) <= room.1;
        let is_over = |rider: &u16| self.requests.get(*rider).is_none_or(|rider| rider.is_over());
        let hindered = riders.iter().any(|rider| is_over(rider) || self.objection(*rider).is_some());
        if part.sends_list() && part.extent == rest && fit && !hindered {
            return part.of_runs(riders.len() + 1);
        }
        self.set_down_riders(at);
        part
    }

    /// The runs of a command, its own first.
    #[cold]
    pub(super) fn set_runs(&mut self, at: u16, own: Extent) {
        let mut runs = [Extent::default(); part::RUNS_MAX];
        let riders = self.slots.riders(at).iter().filter_map(|&rider| self.requests.get(rider));
        let extents = riders.map(|rider| rider.request.extent);
        let mut count = 0;
        for (run, extent) in runs.iter_mut().zip([own].into_iter().chain(extents)) {
            *run = extent;
            count += 1;
        }
        self.slots.set_list(at, &runs[..count]);
    }

    /// The command has ended well, and with it its riders.
    #[inline]
    pub(super) fn end_riders(&mut self, at: u16) {
        while let Some(rider) = self.slots.take_rider(at) {
            cold_path();
            self.settle_after(rider, 1);
        }
    }

    /// The command will not be carried out: its riders go alone.
    pub(super) fn set_down_riders(&mut self, at: u16) {
        while let Some(rider) = self.slots.take_rider(at) {
            let Some(active) = self.requests.get_mut(rider) else { continue };
            active.commands -= 1;
            if active.go_alone() {
                self.requests.join_line(rider);
            } else {
                self.settle(rider);
            }
        }
    }
}
