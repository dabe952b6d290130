//! Where host and device transfers are matched, for every bus that has no time of its own.
//!
//! The rules are those of bulk transfers (USB 3.2 clause 8.12.1, USB 2.0 clause 5.8): bytes flow in order, a
//! transfer ends when it is full or when a short packet comes, a packet larger than the room left is babble,
//! and a halted endpoint stalls everything until the halt is cleared. A transfer may meet several of the other
//! side's: a host that cuts a block read into three transfers and a device that sends it in one piece agree.
//!
//! One idealisation: a device that ends a transfer which is full already sends nothing, where real hardware
//! would have to know whether the host expects a zero-length packet.
//!
//! Whatever an owner keeps with a transfer lies here while it is outstanding and goes back when it ends, so that
//! nobody has to look it up. Payload is moved by a [`Carrier`], which each call is given and which is told at once what
//! comes of it: a [`Passage`] says which bytes. Always true: on no pipe do transfers of both sides wait; pipes complete in
//! the order of submission; each transfer ends once.

use crate::line::Line;
use crate::{Direction, EndpointAddress, Pipe, Speed, TransferStatus};
use alloc::vec::Vec;
use core::hint::cold_path;

/// Transfers that a host may have outstanding on all pipes together.
///
/// QEMU keeps at most streams + 16 on an endpoint, so 256 streams on three endpoints fit four times.
pub const HOST_TRANSFERS_MAX: usize = 4096;

/// Bytes that are to go from one transfer to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Which way: [`Direction::In`] is from the device to the host.
    pub direction: Direction,
    /// Offset in the host's transfer.
    pub host_offset: u32,
    /// Offset in the device's transfer.
    pub device_offset: u32,
    /// How many bytes: at least one.
    pub bytes: u32,
    /// Whether the host's transfer ends with them.
    pub host_ends: bool,
    /// Whether the device's transfer ends with them.
    pub device_ends: bool,
}

impl Passage {
    /// Whether these are all bytes of both transfers.
    pub const fn is_all(&self) -> bool {
        self.host_offset == 0 && self.device_offset == 0 && self.host_ends && self.device_ends
    }
}

/// A transfer that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended<T> {
    /// What its owner kept with it.
    pub kept: T,
    /// Where it went.
    pub pipe: Pipe,
    /// Bytes that it was to send, or room that it had.
    pub length: u32,
    /// How it ended.
    pub status: TransferStatus,
    /// Bytes moved.
    pub actual: u32,
}

/// Whoever moves the bytes and is told how transfers end.
pub trait Carrier<H, D> {
    /// Bytes are to go from one transfer to the other, at once.
    fn carry(&mut self, passage: Passage, host: &mut H, device: &mut D);

    /// A transfer of the device is over, and what was kept with it is let go of. `host` is what it met with, if that is over as
    /// well: it is told next.
    fn device_ended(&mut self, ended: Ended<&mut D>, host: Option<&H>);

    /// A transfer of the host is over, and what was kept with it is let go of.
    fn host_ended(&mut self, ended: Ended<&mut H>);
}

/// What becomes of a transfer of the device that [`Rendezvous::pass`] has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// It waits for the next bytes, as if it had been submitted anew.
    Waiting,
    /// It is over.
    Ended,
}

/// The host has [`HOST_TRANSFERS_MAX`] transfers outstanding already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The meeting place of one device's pipes. `H` is what the host keeps with a transfer, `D` what the device does.
#[derive(Debug)]
pub struct Rendezvous<H, D> {
    packet_bytes: u32,
    /// By [`EndpointAddress::index`].
    endpoints: [Endpoint<H, D>; EndpointAddress::COUNT],
    host_transfers: usize,
}

#[derive(Debug)]
struct Endpoint<H, D> {
    halted: bool,
    /// Index 0 is the endpoint without streams, index n stream n.
    queues: Vec<Queue<H, D>>,
}

#[derive(Debug)]
struct Queue<H, D> {
    host: Line<Pending<H>>,
    device: Line<Pending<D>>,
}

#[derive(Clone, Copy, Debug)]
struct Pending<T> {
    kept: T,
    pipe: Pipe,
    length: u32,
    moved: u32,
    ends: bool,
}

impl<H, D> Rendezvous<H, D> {
    /// An empty place for a device at `speed`.
    pub fn new(speed: Speed) -> Self {
        Self {
            packet_bytes: speed.bulk_packet_bytes(),
            endpoints: core::array::from_fn(|_| Endpoint { halted: false, queues: Vec::new() }),
            host_transfers: 0,
        }
    }

    /// The host wants a transfer done: `length` bytes to send, or room for bytes to come. It ends at once where the
    /// endpoint is halted. What is kept is made where it is to lie.
    ///
    /// # Errors
    /// [`Full`], and nothing is made.
    #[inline(always)]
    pub fn submit_host(
        &mut self,
        pipe: Pipe,
        length: u32,
        kept: impl FnOnce() -> H,
        carrier: &mut impl Carrier<H, D>,
    ) -> Result<(), Full> {
        if self.is_full() {
            cold_path();
            return Err(Full);
        }
        let endpoint = &mut self.endpoints[pipe.endpoint.index()];
        if endpoint.halted {
            cold_path();
            Pending::new(kept(), pipe, length).tell_host(TransferStatus::Stall, carrier);
            return Ok(());
        }
        let queue = endpoint.queue(pipe);
        if queue.device.is_empty() {
            queue.host.push_with(|| Pending::new(kept(), pipe, length));
            self.host_transfers += 1;
            return Ok(());
        }
        let mut host = Pending::new(kept(), pipe, length);
        while let Some(device) = queue.device.front_mut() {
            let step = meet(&mut host, device, self.packet_bytes, carrier);
            if let Some(status) = step.device {
                carrier.device_ended(device.end(status), step.host.map(|_| &host.kept));
                queue.device.drop_front();
            }
            if let Some(status) = step.host {
                host.tell_host(status, carrier);
                return Ok(());
            }
        }
        queue.host.push_back(host);
        self.host_transfers += 1;
        Ok(())
    }

    /// The host sends `length` bytes that lie elsewhere, if they meet one transfer of the device that waits and ends with them, and
    /// `take` has a use for it. That says whether the device waits for another of the kind, for which the transfer stays. `false`:
    /// nothing has happened, and the host may submit them as any others.
    #[inline(always)]
    pub fn pass(
        &mut self,
        pipe: Pipe,
        length: u32,
        take: impl FnOnce(Ended<&mut D>) -> Option<Stays>,
    ) -> bool {
        let endpoint = &mut self.endpoints[pipe.endpoint.index()];
        if endpoint.halted || pipe.endpoint.direction() == Direction::In {
            return false;
        }
        let queue = endpoint.queue(pipe);
        let Some(device) = queue.device.front_mut() else { return false };
        let step = step_out(&Pending::new((), pipe, length), device, self.packet_bytes);
        let (0, Some(_), Some(status)) = (device.moved, step.host, step.device) else { return false };
        let ended = Ended { kept: &mut device.kept, pipe, length: device.length, status, actual: step.bytes };
        let Some(stays) = take(ended) else { return false };
        if stays == Stays::Ended {
            cold_path();
            queue.device.drop_front();
        }
        true
    }

    /// The device is ready for a transfer: `length` bytes to send, or room for bytes to come. `ends` says of an In
    /// transfer whether the host's ends with it even if there is room left. What is kept is made where it is to lie.
    #[inline(always)]
    pub fn submit_device(
        &mut self,
        pipe: Pipe,
        (length, ends): (u32, bool),
        kept: impl FnOnce() -> D,
        carrier: &mut impl Carrier<H, D>,
    ) {
        let queue = self.endpoints[pipe.endpoint.index()].queue(pipe);
        if queue.host.is_empty() {
            return queue.device.push_with(|| Pending { kept: kept(), pipe, length, moved: 0, ends });
        }
        let mut device = Pending { kept: kept(), pipe, length, moved: 0, ends };
        while let Some(host) = queue.host.front_mut() {
            let step = meet(host, &mut device, self.packet_bytes, carrier);
            if let Some(status) = step.device {
                carrier.device_ended(device.end(status), step.host.map(|_| &host.kept));
            }
            if let Some(status) = step.host {
                host.tell_host(status, carrier);
                self.host_transfers -= 1;
                queue.host.drop_front();
            }
            if step.device.is_some() {
                return;
            }
        }
        queue.device.push_back(device);
    }

    /// The host takes a transfer back. `false`: there is none such, since it has ended already.
    pub fn cancel_host(&mut self, is_it: impl Fn(&H) -> bool, carrier: &mut impl Carrier<H, D>) -> bool {
        let mut queues = self.endpoints.iter_mut().flat_map(|endpoint| &mut endpoint.queues);
        let Some(mut pending) = queues.find_map(|queue| queue.host.take(|pending| is_it(&pending.kept)))
        else {
            return false;
        };
        self.host_transfers -= 1;
        pending.tell_host(TransferStatus::Cancelled, carrier);
        true
    }

    /// Cancels the host's transfers at one endpoint, on all its streams, in the order of submission. What the device has there stays.
    #[cold]
    pub fn cancel_host_at(&mut self, address: EndpointAddress, carrier: &mut impl Carrier<H, D>) {
        self.end_host(address.index(), TransferStatus::Cancelled, carrier);
    }

    /// Cancels all transfers of the host, those of each endpoint in the order of submission. What the device has stays.
    ///
    /// A setting that is selected gives endpoints another meaning, and transfers that were meant for the old one must not be
    /// matched with those of the new.
    #[cold]
    pub fn cancel_all_host(&mut self, carrier: &mut impl Carrier<H, D>) {
        for index in 0..self.endpoints.len() {
            self.end_host(index, TransferStatus::Cancelled, carrier);
        }
    }

    /// The device takes a transfer back. Nothing happens if it has ended already.
    #[cold]
    pub fn cancel_device(&mut self, is_it: impl Fn(&D) -> bool, carrier: &mut impl Carrier<H, D>) {
        let mut queues = self.endpoints.iter_mut().flat_map(|endpoint| &mut endpoint.queues);
        if let Some(mut pending) = queues.find_map(|queue| queue.device.take(|pending| is_it(&pending.kept)))
        {
            carrier.device_ended(pending.end(TransferStatus::Cancelled), None);
        }
    }

    /// The device halts an endpoint: what the host has there, and what it brings, stalls.
    #[cold]
    pub fn halt(&mut self, address: EndpointAddress, carrier: &mut impl Carrier<H, D>) {
        self.endpoints[address.index()].halted = true;
        self.end_host(address.index(), TransferStatus::Stall, carrier);
    }

    /// Ends the host's transfers at the endpoint with this index.
    fn end_host(&mut self, index: usize, status: TransferStatus, carrier: &mut impl Carrier<H, D>) {
        for queue in &mut self.endpoints[index].queues {
            while let Some(mut pending) = queue.host.pop_front() {
                self.host_transfers -= 1;
                pending.tell_host(status, carrier);
            }
        }
    }

    /// The halt of an endpoint is cleared.
    #[cold]
    pub fn clear_halt(&mut self, address: EndpointAddress) {
        self.endpoints[address.index()].halted = false;
    }

    /// The device ends whatever the host has on a pipe: In transfers end short, Out bytes are swallowed.
    #[inline(always)]
    pub fn finish(&mut self, pipe: Pipe, carrier: &mut impl Carrier<H, D>) {
        let queue = self.endpoints[pipe.endpoint.index()].queue(pipe);
        while let Some(pending) = queue.host.front_mut() {
            cold_path();
            let status = match pipe.endpoint.direction() {
                Direction::In => TransferStatus::Short,
                Direction::Out => {
                    pending.moved = pending.length;
                    TransferStatus::Done
                }
            };
            pending.tell_host(status, carrier);
            self.host_transfers -= 1;
            queue.host.drop_front();
        }
    }

    /// The device goes away, or comes back from a reset: both sides' transfers end, halts are forgotten.
    pub fn disconnect(&mut self, carrier: &mut impl Carrier<H, D>) {
        let gone = TransferStatus::Disconnected;
        self.host_transfers = 0;
        for endpoint in &mut self.endpoints {
            endpoint.halted = false;
            for queue in &mut endpoint.queues {
                while let Some(mut pending) = queue.host.pop_front() {
                    pending.tell_host(gone, carrier);
                }
                while let Some(mut pending) = queue.device.pop_front() {
                    carrier.device_ended(pending.end(gone), None);
                }
            }
        }
    }

    /// Whether the host has as many outstanding as it may.
    pub const fn is_full(&self) -> bool {
        self.host_transfers >= HOST_TRANSFERS_MAX
    }

    /// Host transfers that have not ended.
    pub const fn host_transfers(&self) -> usize {
        self.host_transfers
    }
}

/// Moves what can be moved between two transfers.
#[inline(always)]
fn meet<H, D>(
    host: &mut Pending<H>,
    device: &mut Pending<D>,
    packet_bytes: u32,
    carrier: &mut impl Carrier<H, D>,
) -> Step {
    let direction = host.pipe.endpoint.direction();
    let step = match direction {
        Direction::In => step_in(host, device, packet_bytes),
        Direction::Out => step_out(host, device, packet_bytes),
    };
    let bytes = step.bytes;
    if bytes > 0 {
        let passage = Passage {
            direction,
            host_offset: host.moved,
            device_offset: device.moved,
            bytes,
            host_ends: step.host.is_some(),
            device_ends: step.device.is_some(),
        };
        carrier.carry(passage, &mut host.kept, &mut device.kept);
        host.moved += bytes;
        device.moved += bytes;
    }
    step
}

/// What one meeting of two transfers brings: bytes, and who has ended how. At least one side ends.
struct Step {
    bytes: u32,
    host: Option<TransferStatus>,
    device: Option<TransferStatus>,
}

#[inline(always)]
fn step_in<H, D>(host: &Pending<H>, device: &Pending<D>, packet_bytes: u32) -> Step {
    let (room, left) = (host.remaining(), device.remaining());
    let last_room = past_packets(room, packet_bytes);
    if left > room && last_room != 0 {
        cold_path();
        let babble = Some(TransferStatus::Babble);
        return Step { bytes: room - last_room, host: babble, device: babble };
    }
    let bytes = room.min(left);
    let device_done = bytes == left;
    let short = device_done && (device.ends || past_packets(device.length, packet_bytes) != 0);
    let host_status = if bytes == room {
        Some(TransferStatus::Done)
    } else if short {
        Some(TransferStatus::Short)
    } else {
        None
    };
    Step { bytes, host: host_status, device: device_done.then_some(TransferStatus::Done) }
}

#[inline(always)]
fn step_out<H, D>(host: &Pending<H>, device: &Pending<D>, packet_bytes: u32) -> Step {
    let (room, left) = (device.remaining(), host.remaining());
    let bytes = room.min(left);
    let host_done = bytes == left;
    let short = host_done && (host.length == 0 || past_packets(host.length, packet_bytes) != 0);
    let device_status = if bytes == room && room > 0 {
        Some(TransferStatus::Done)
    } else if short || room == 0 {
        Some(TransferStatus::Short)
    } else {
        None
    };
    Step { bytes, host: host_done.then_some(TransferStatus::Done), device: device_status }
}

/// Bytes past the last whole packet. At every speed a packet is a power of two.
const fn past_packets(bytes: u32, packet_bytes: u32) -> u32 {
    bytes & (packet_bytes - 1)
}

impl<H, D> Endpoint<H, D> {
    #[inline]
    fn queue(&mut self, pipe: Pipe) -> &mut Queue<H, D> {
        let index = pipe.stream.map_or(0, |stream| usize::from(stream.get()));
        if index >= self.queues.len() {
            self.open(index);
        }
        &mut self.queues[index]
    }

    /// Makes queues up to this one.
    #[cold]
    fn open(&mut self, index: usize) {
        let empty = || Queue { host: Line::new(), device: Line::new() };
        self.queues.resize_with(index + 1, empty);
    }
}

impl<T> Pending<T> {
    #[inline(always)]
    const fn new(kept: T, pipe: Pipe, length: u32) -> Self {
        Self { kept, pipe, length, moved: 0, ends: false }
    }

    const fn remaining(&self) -> u32 {
        self.length - self.moved
    }

    #[inline(always)]
    const fn end(&mut self, status: TransferStatus) -> Ended<&mut T> {
        Ended { kept: &mut self.kept, pipe: self.pipe, length: self.length, status, actual: self.moved }
    }

    /// Tells how this transfer of the host has ended.
    #[inline(always)]
    fn tell_host<D>(&mut self, status: TransferStatus, carrier: &mut impl Carrier<T, D>) {
        carrier.host_ended(self.end(status));
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::StreamId;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::vec;

    fn bulk_in() -> Pipe {
        Pipe::plain(EndpointAddress::at::<1>(Direction::In))
    }

    fn bulk_out() -> Pipe {
        Pipe::plain(EndpointAddress::at::<2>(Direction::Out))
    }

    /// What came of it, in its parts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Part {
        Moved(Direction, (u64, u32), (u64, u32), u32),
        HostEnd(u64, TransferStatus, u32),
        DeviceEnd(u64, TransferStatus, u32),
    }
    use Part::{DeviceEnd, HostEnd, Moved};

    /// A meeting place, and what it has told. Transfers are kept by their numbers.
    struct Place {
        meeting: Rendezvous<u64, u64>,
        told: Vec<Part>,
    }

    impl Place {
        fn new(speed: Speed) -> Self {
            Self { meeting: Rendezvous::new(speed), told: vec![] }
        }

        fn host_transfers(&self) -> usize {
            self.meeting.host_transfers()
        }
    }

    fn host(place: &mut Place, id: u64, pipe: Pipe, length: u32) {
        place.meeting.submit_host(pipe, length, || id, &mut place.told).unwrap();
    }

    fn device(place: &mut Place, id: u64, pipe: Pipe, length: u32, ends: bool) {
        place.meeting.submit_device(pipe, (length, ends), || id, &mut place.told);
    }

    impl Carrier<u64, u64> for Vec<Part> {
        fn carry(&mut self, passage: Passage, host: &mut u64, device: &mut u64) {
            let Passage { direction, host_offset, device_offset, bytes, .. } = passage;
            self.push(Moved(direction, (*host, host_offset), (*device, device_offset), bytes));
        }

        fn device_ended(&mut self, ended: Ended<&mut u64>, _host: Option<&u64>) {
            self.push(DeviceEnd(*ended.kept, ended.status, ended.actual));
        }

        fn host_ended(&mut self, ended: Ended<&mut u64>) {
            self.push(HostEnd(*ended.kept, ended.status, ended.actual));
        }
    }

    fn drain(place: &mut Place) -> Vec<Part> {
        core::mem::take(&mut place.told)
    }

    #[test]
    fn a_short_packet_ends_the_hosts_transfer() {
        let mut place = Place::new(Speed::High);
        host(&mut place, 1, bulk_in(), 4096);
        device(&mut place, 9, bulk_in(), 36, false);
        let events = vec![
            Moved(Direction::In, (1, 0), (9, 0), 36),
            DeviceEnd(9, TransferStatus::Done, 36),
            HostEnd(1, TransferStatus::Short, 36),
        ];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn whole_packets_leave_the_hosts_transfer_open_until_the_device_ends_it() {
        let mut place = Place::new(Speed::High);
        host(&mut place, 1, bulk_in(), 4096);
        device(&mut place, 8, bulk_in(), 512, false);
        drain(&mut place);
        assert_eq!(place.host_transfers(), 1);
        device(&mut place, 9, bulk_in(), 0, true);
        let events = vec![DeviceEnd(9, TransferStatus::Done, 0), HostEnd(1, TransferStatus::Short, 512)];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn one_device_transfer_fills_several_of_the_hosts() {
        let mut place = Place::new(Speed::High);
        device(&mut place, 9, bulk_in(), 1536, true);
        host(&mut place, 1, bulk_in(), 1024);
        host(&mut place, 2, bulk_in(), 1024);
        let events = vec![
            Moved(Direction::In, (1, 0), (9, 0), 1024),
            HostEnd(1, TransferStatus::Done, 1024),
            Moved(Direction::In, (2, 0), (9, 1024), 512),
            DeviceEnd(9, TransferStatus::Done, 1536),
            HostEnd(2, TransferStatus::Short, 512),
        ];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn a_packet_larger_than_the_room_is_babble() {
        let mut place = Place::new(Speed::High);
        host(&mut place, 1, bulk_in(), 13);
        device(&mut place, 9, bulk_in(), 36, true);
        let events = vec![DeviceEnd(9, TransferStatus::Babble, 0), HostEnd(1, TransferStatus::Babble, 0)];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn a_short_host_transfer_ends_the_devices() {
        let mut place = Place::new(Speed::Super);
        device(&mut place, 9, bulk_out(), 1024, false);
        host(&mut place, 1, bulk_out(), 31);
        let events = vec![
            Moved(Direction::Out, (1, 0), (9, 0), 31),
            DeviceEnd(9, TransferStatus::Short, 31),
            HostEnd(1, TransferStatus::Done, 31),
        ];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn a_zero_length_packet_is_something() {
        let mut place = Place::new(Speed::Super);
        host(&mut place, 1, bulk_out(), 0);
        device(&mut place, 9, bulk_out(), 1024, false);
        let events = vec![DeviceEnd(9, TransferStatus::Short, 0), HostEnd(1, TransferStatus::Done, 0)];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn a_halt_stalls_what_is_there_and_what_comes_until_it_is_cleared() {
        let mut place = Place::new(Speed::Super);
        host(&mut place, 1, bulk_in(), 512);
        place.meeting.halt(bulk_in().endpoint, &mut place.told);
        host(&mut place, 2, bulk_in(), 512);
        let stalls = vec![HostEnd(1, TransferStatus::Stall, 0), HostEnd(2, TransferStatus::Stall, 0)];
        assert_eq!(drain(&mut place), stalls);
        place.meeting.clear_halt(bulk_in().endpoint);
        host(&mut place, 3, bulk_in(), 512);
        assert_eq!(drain(&mut place), vec![]);
    }

    #[test]
    fn a_cancel_is_answered_once_and_only_while_the_transfer_lives() {
        let mut place = Place::new(Speed::Super);
        host(&mut place, 1, bulk_in(), 512);
        assert!(place.meeting.cancel_host(|&id| id == 1, &mut place.told));
        assert!(!place.meeting.cancel_host(|&id| id == 1, &mut place.told));
        assert_eq!(drain(&mut place), vec![HostEnd(1, TransferStatus::Cancelled, 0)]);
    }

    #[test]
    fn cancelling_an_endpoint_ends_the_hosts_transfers_on_all_its_streams_and_no_others() {
        let mut place = Place::new(Speed::Super);
        let on = |id| Pipe::stream(EndpointAddress::at::<1>(Direction::In), StreamId::new(id).unwrap());
        host(&mut place, 1, on(2), 512);
        host(&mut place, 2, bulk_out(), 512);
        host(&mut place, 3, on(1), 512);
        host(&mut place, 4, on(2), 512);
        device(&mut place, 9, on(7), 512, true);
        place.meeting.cancel_host_at(on(1).endpoint, &mut place.told);
        let cancelled = |id| HostEnd(id, TransferStatus::Cancelled, 0);
        assert_eq!(drain(&mut place), [3, 1, 4].map(cancelled));
        assert_eq!(place.host_transfers(), 1);
        place.meeting.cancel_all_host(&mut place.told);
        assert_eq!(drain(&mut place), [cancelled(2)]);
        // The device's transfer is still there for the next of the host.
        host(&mut place, 5, on(7), 512);
        assert_eq!(drain(&mut place).last(), Some(&HostEnd(5, TransferStatus::Done, 512)));
    }

    #[test]
    fn streams_do_not_wait_for_each_other() {
        let mut place = Place::new(Speed::Super);
        let on = |id| Pipe::stream(EndpointAddress::at::<1>(Direction::In), StreamId::new(id).unwrap());
        host(&mut place, 1, on(1), 512);
        host(&mut place, 2, on(2), 512);
        device(&mut place, 9, on(2), 512, true);
        let events = vec![
            Moved(Direction::In, (2, 0), (9, 0), 512),
            DeviceEnd(9, TransferStatus::Done, 512),
            HostEnd(2, TransferStatus::Done, 512),
        ];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn finishing_a_pipe_ends_what_the_host_has_there() {
        let mut place = Place::new(Speed::Super);
        host(&mut place, 1, bulk_in(), 512);
        host(&mut place, 2, bulk_out(), 4096);
        place.meeting.finish(bulk_in(), &mut place.told);
        place.meeting.finish(bulk_out(), &mut place.told);
        let events = vec![HostEnd(1, TransferStatus::Short, 0), HostEnd(2, TransferStatus::Done, 4096)];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn bytes_that_a_waiting_transfer_takes_whole_pass_without_one_of_the_hosts() {
        let mut place = Place::new(Speed::Super);
        let mut told = Vec::new();
        let mut pass = |place: &mut Place, length, stays| {
            place.meeting.pass(bulk_out(), length, |ended| {
                told.push((*ended.kept, ended.status, ended.actual));
                stays
            })
        };
        assert!(!pass(&mut place, 32, Some(Stays::Ended)), "nobody waits");
        device(&mut place, 9, bulk_out(), 1024, false);
        assert!(!pass(&mut place, 1025, Some(Stays::Ended)), "it is too short for them");
        assert!(pass(&mut place, 32, Some(Stays::Waiting)));
        assert!(pass(&mut place, 31, Some(Stays::Ended)), "it waits for more");
        assert!(!pass(&mut place, 32, Some(Stays::Ended)), "it has ended");
        device(&mut place, 10, bulk_out(), 2048, false);
        assert!(!pass(&mut place, 1024, Some(Stays::Ended)), "a whole packet does not end it");
        assert!(!pass(&mut place, 33, None), "nobody has a use for it");
        assert!(pass(&mut place, 34, Some(Stays::Ended)), "so it waits still");
        let short = TransferStatus::Short;
        assert_eq!(told, [(9, short, 32), (9, short, 31), (10, short, 33), (10, short, 34)]);
    }

    #[test]
    fn a_host_cannot_queue_without_bound() {
        let mut place = Place::new(Speed::Super);
        for id in 0..HOST_TRANSFERS_MAX as u64 {
            host(&mut place, id, bulk_in(), 1);
        }
        assert_eq!(place.meeting.submit_host(bulk_in(), 1, || 9999, &mut place.told), Err(Full));
    }

    #[derive(Clone, Debug)]
    enum Call {
        Host(Pipe, u32),
        Device(Pipe, u32, bool),
        CancelHost(u64),
        CancelDevice(u64),
        Halt(Pipe),
        ClearHalt(Pipe),
        Finish(Pipe),
        CancelAt(Pipe),
        CancelAll,
        Disconnect,
    }

    /// Calls for one pipe each way, or with streams for two streams each way beside them.
    fn call(has_streams: bool) -> impl Strategy<Value = Call> {
        let stream = |endpoint, id| Pipe::stream(endpoint, StreamId::new(id).unwrap());
        let [inward, outward] =
            [EndpointAddress::at::<3>(Direction::In), EndpointAddress::at::<4>(Direction::Out)];
        let mut pipes = vec![bulk_in(), bulk_out()];
        if has_streams {
            pipes.extend([1, 7].map(|id| stream(inward, id)));
            pipes.extend([1, 7].map(|id| stream(outward, id)));
        }
        let pipe = prop::sample::select(pipes);
        prop_oneof![
            4 => (pipe.clone(), 0u32..3000).prop_map(|(pipe, length)| Call::Host(pipe, length)),
            4 => (pipe.clone(), 0u32..3000, any::<bool>()).prop_map(|(p, l, e)| Call::Device(p, l, e)),
            1 => (0u64..40).prop_map(Call::CancelHost),
            1 => (0u64..40).prop_map(Call::CancelDevice),
            1 => pipe.clone().prop_map(Call::Halt),
            1 => pipe.clone().prop_map(Call::ClearHalt),
            1 => pipe.clone().prop_map(Call::Finish),
            1 => pipe.prop_map(Call::CancelAt),
            1 => Just(Call::CancelAll),
            1 => Just(Call::Disconnect),
        ]
    }

    /// Calls at a speed that has pipes of their kind.
    fn calls() -> impl Strategy<Value = (Speed, Vec<Call>)> {
        prop_oneof![
            (Just(Speed::High), prop::collection::vec(call(false), 1..40)),
            (Just(Speed::Super), prop::collection::vec(call(true), 1..80)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1500))]

        #[test]
        fn every_transfer_completes_once_in_order_with_the_bytes_that_moved((speed, calls) in calls()) {
            let mut place = Place::new(speed);
            let (mut submitted, mut next, mut parts) = (vec![], 0u64, vec![]);
            for call in calls {
                match call {
                    Call::Host(pipe, length) => host(&mut place, next, pipe, length),
                    Call::Device(pipe, length, ends) => device(&mut place, next, pipe, length, ends),
                    Call::CancelHost(id) => {
                        place.meeting.cancel_host(|&own| own == id, &mut place.told);
                    }
                    Call::CancelDevice(id) => place.meeting.cancel_device(|&own| own == id, &mut place.told),
                    Call::Halt(pipe) => place.meeting.halt(pipe.endpoint, &mut place.told),
                    Call::ClearHalt(pipe) => place.meeting.clear_halt(pipe.endpoint),
                    Call::Finish(pipe) => place.meeting.finish(pipe, &mut place.told),
                    Call::CancelAt(pipe) => place.meeting.cancel_host_at(pipe.endpoint, &mut place.told),
                    Call::CancelAll => place.meeting.cancel_all_host(&mut place.told),
                    Call::Disconnect => place.meeting.disconnect(&mut place.told),
                }
                if let Call::Host(pipe, length) | Call::Device(pipe, length, _) = call {
                    submitted.push((pipe, length));
                    next += 1;
                }
                parts.extend(drain(&mut place));
            }
            place.meeting.disconnect(&mut place.told);
            parts.extend(drain(&mut place));
            let mut ends = vec![0u32; submitted.len()];
            let mut moved = vec![0u32; submitted.len()];
            let mut last = HashMap::new();
            for part in parts {
                match part {
                    Moved(direction, (host, _), (device, _), bytes) => {
                        let (pipe, _) = submitted[host as usize];
                        prop_assert_eq!((pipe, direction), (submitted[device as usize].0, pipe.endpoint.direction()));
                        for id in [host, device] { moved[id as usize] += bytes }
                    }
                    HostEnd(id, status, actual) | DeviceEnd(id, status, actual) => {
                        let is_host = matches!(part, HostEnd(..));
                        let (pipe, length) = submitted[id as usize];
                        ends[id as usize] += 1;
                        prop_assert!(actual <= length);
                        // Bytes that the device swallows count as done without having been moved.
                        prop_assert!(actual == moved[id as usize] || status == TransferStatus::Done);
                        // Only what is taken back ends before what was there earlier.
                        if status != TransferStatus::Cancelled {
                            let earlier = last.insert((pipe, is_host), id);
                            prop_assert!(earlier.is_none_or(|earlier| earlier < id));
                        }
                    }
                }
            }
            prop_assert!(ends.iter().all(|&count| count == 1));
            prop_assert_eq!(place.host_transfers(), 0);
        }
    }
}
