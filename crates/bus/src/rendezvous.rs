//! Matches host transfers with device transfers, for every bus that does not model time.
//!
//! The rules are those of bulk transfers (USB 3.2 clause 8.12.1, USB 2.0 clause 5.8): bytes flow in
//! order, a transfer completes when it is full or on a short packet, a packet larger than the
//! remaining buffer is babble, and a halted endpoint stalls everything until the halt is cleared. A
//! transfer can match several of the other side: a host may split into three transfers what the
//! device sends in one.
//!
//! One idealisation: a device that completes a host transfer which is already full sends nothing;
//! real hardware must know whether the host expects a zero-length packet.
//!
//! Each transfer carries a context value of its owner, returned on completion. A [`TransferSink`],
//! passed to each call, moves the payload ([`CopyRange`]) and receives the completions. Always
//! true: no pipe has pending transfers of both sides; pipes complete in the order of submission;
//! each transfer completes once.

use crate::fifo::Fifo;
use crate::{Direction, EndpointAddress, Pipe, Speed, TransferStatus};
use alloc::vec::Vec;
use core::hint::cold_path;

/// Transfers that a host may have outstanding on all pipes together.
///
/// QEMU keeps at most streams + 16 on an endpoint, so 256 streams on three endpoints fit four
/// times.
pub const HOST_TRANSFERS_MAX: usize = 4096;

/// Bytes to copy between a host transfer and a device transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyRange {
    /// The direction: [`Direction::In`] is from the device to the host.
    pub direction: Direction,
    /// Offset in the host's transfer.
    pub host_offset: u32,
    /// Offset in the device's transfer.
    pub device_offset: u32,
    /// Bytes to copy, at least 1.
    pub bytes: u32,
    /// Whether the host's transfer completes with them.
    pub host_ends: bool,
    /// Whether the device's transfer completes with them.
    pub device_ends: bool,
}

impl CopyRange {
    /// Returns whether these are all bytes of both transfers.
    pub const fn is_all(&self) -> bool {
        self.host_offset == 0 && self.device_offset == 0 && self.host_ends && self.device_ends
    }
}

/// A completed transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed<T> {
    /// The owner's context.
    pub context: T,
    /// Its pipe.
    pub pipe: Pipe,
    /// Bytes to send, or the size of the receive buffer.
    pub length: u32,
    /// Its status.
    pub status: TransferStatus,
    /// Bytes moved.
    pub actual: u32,
}

/// Copies payload and receives completions.
pub trait TransferSink<H, D> {
    /// Copies bytes from one transfer to the other.
    fn copy(&mut self, range: CopyRange, host: &mut H, device: &mut D);

    /// Reports a completed device transfer, whose context is released. `host` is the context of the
    /// matched host transfer if that completes as well; it is reported next.
    fn device_completed(&mut self, completed: Completed<&mut D>, host: Option<&H>);

    /// Reports a completed host transfer, whose context is released.
    fn host_completed(&mut self, completed: Completed<&mut H>);
}

/// Whether a device transfer that [`Rendezvous::pass`] completed is submitted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rearm {
    /// It stays pending, as if submitted again.
    Yes,
    /// It is removed.
    No,
}

/// The host already has [`HOST_TRANSFERS_MAX`] outstanding transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Matches the transfers of one device's pipes. `H` is the context of host transfers, `D` of device
/// transfers.
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
    host: Fifo<Pending<H>>,
    device: Fifo<Pending<D>>,
}

#[derive(Clone, Copy, Debug)]
struct Pending<T> {
    context: T,
    pipe: Pipe,
    length: u32,
    moved: u32,
    ends: bool,
}

impl<H, D> Rendezvous<H, D> {
    /// Creates one for a device at `speed`.
    pub fn new(speed: Speed) -> Self {
        Self {
            packet_bytes: speed.bulk_packet_bytes(),
            endpoints: core::array::from_fn(|_| Endpoint { halted: false, queues: Vec::new() }),
            host_transfers: 0,
        }
    }

    /// Submits a host transfer of `length` bytes. It stalls at once if the endpoint is halted.
    /// `context` is called to construct the context in place.
    ///
    /// # Errors
    /// [`Full`]; `context` is not called then.
    #[inline(always)]
    pub fn submit_host(
        &mut self,
        pipe: Pipe,
        length: u32,
        context: impl FnOnce() -> H,
        sink: &mut impl TransferSink<H, D>,
    ) -> Result<(), Full> {
        if self.is_full() {
            cold_path();
            return Err(Full);
        }
        let endpoint = &mut self.endpoints[pipe.endpoint.index()];
        if endpoint.halted {
            cold_path();
            Pending::new(context(), pipe, length).complete_host(TransferStatus::Stall, sink);
            return Ok(());
        }
        let queue = endpoint.queue(pipe);
        if queue.device.is_empty() {
            queue.host.push_with(|| Pending::new(context(), pipe, length));
            self.host_transfers += 1;
            return Ok(());
        }
        let mut host = Pending::new(context(), pipe, length);
        while let Some(device) = queue.device.front_mut() {
            let step = meet(&mut host, device, self.packet_bytes, sink);
            if let Some(status) = step.device {
                sink.device_completed(device.end(status), step.host.map(|_| &host.context));
                queue.device.drop_front();
            }
            if let Some(status) = step.host {
                host.complete_host(status, sink);
                return Ok(());
            }
        }
        queue.host.push_back(host);
        self.host_transfers += 1;
        Ok(())
    }

    /// Sends `length` bytes of the host without queuing a transfer, if exactly one pending device
    /// transfer completes with them and `take` accepts it, which also says whether that transfer is
    /// submitted again. Returns `false` without effect otherwise; the host then submits as usual.
    #[inline(always)]
    pub fn pass(
        &mut self,
        pipe: Pipe,
        length: u32,
        take: impl FnOnce(Completed<&mut D>) -> Option<Rearm>,
    ) -> bool {
        let endpoint = &mut self.endpoints[pipe.endpoint.index()];
        if endpoint.halted || pipe.endpoint.direction() == Direction::In {
            return false;
        }
        let queue = endpoint.queue(pipe);
        let Some(device) = queue.device.front_mut() else { return false };
        let step = step_out(&Pending::new((), pipe, length), device, self.packet_bytes);
        let (0, Some(_), Some(status)) = (device.moved, step.host, step.device) else { return false };
        let completed = Completed {
            context: &mut device.context,
            pipe,
            length: device.length,
            status,
            actual: step.bytes,
        };
        let Some(rearm) = take(completed) else { return false };
        if rearm == Rearm::No {
            cold_path();
            queue.device.drop_front();
        }
        true
    }

    /// Submits a device transfer of `length` bytes. `ends` says whether an In transfer also
    /// completes a host transfer with room left. `context` is called to construct the context in
    /// place.
    #[inline(always)]
    pub fn submit_device(
        &mut self,
        pipe: Pipe,
        length: u32,
        ends: bool,
        context: impl FnOnce() -> D,
        sink: &mut impl TransferSink<H, D>,
    ) {
        let queue = self.endpoints[pipe.endpoint.index()].queue(pipe);
        if queue.host.is_empty() {
            return queue.device.push_with(|| Pending { context: context(), pipe, length, moved: 0, ends });
        }
        let mut device = Pending { context: context(), pipe, length, moved: 0, ends };
        while let Some(host) = queue.host.front_mut() {
            let step = meet(host, &mut device, self.packet_bytes, sink);
            if let Some(status) = step.device {
                sink.device_completed(device.end(status), step.host.map(|_| &host.context));
            }
            if let Some(status) = step.host {
                host.complete_host(status, sink);
                self.host_transfers -= 1;
                queue.host.drop_front();
            }
            if step.device.is_some() {
                return;
            }
        }
        queue.device.push_back(device);
    }

    /// Cancels a host transfer. Returns `false` if there is none, since it completed already.
    pub fn cancel_host(&mut self, is_it: impl Fn(&H) -> bool, sink: &mut impl TransferSink<H, D>) -> bool {
        let mut queues = self.endpoints.iter_mut().flat_map(|endpoint| &mut endpoint.queues);
        let Some(mut pending) = queues.find_map(|queue| queue.host.take(|pending| is_it(&pending.context)))
        else {
            return false;
        };
        self.host_transfers -= 1;
        pending.complete_host(TransferStatus::Cancelled, sink);
        true
    }

    /// Cancels the host's transfers of one endpoint, on all its streams, in the order of
    /// submission. The device's stay.
    #[cold]
    pub fn cancel_host_at(&mut self, address: EndpointAddress, sink: &mut impl TransferSink<H, D>) {
        self.end_host(address.index(), TransferStatus::Cancelled, sink);
    }

    /// Cancels all host transfers, those of each endpoint in the order of submission. The device's
    /// stay.
    ///
    /// Called when a setting is selected: transfers of the old setting must not match those of the
    /// new.
    #[cold]
    pub fn cancel_all_host(&mut self, sink: &mut impl TransferSink<H, D>) {
        for index in 0..self.endpoints.len() {
            self.end_host(index, TransferStatus::Cancelled, sink);
        }
    }

    /// Cancels a device transfer, if it has not completed.
    #[cold]
    pub fn cancel_device(&mut self, is_it: impl Fn(&D) -> bool, sink: &mut impl TransferSink<H, D>) {
        let mut queues = self.endpoints.iter_mut().flat_map(|endpoint| &mut endpoint.queues);
        if let Some(mut pending) =
            queues.find_map(|queue| queue.device.take(|pending| is_it(&pending.context)))
        {
            sink.device_completed(pending.end(TransferStatus::Cancelled), None);
        }
    }

    /// Halts an endpoint: pending and later host transfers stall.
    #[cold]
    pub fn halt(&mut self, address: EndpointAddress, sink: &mut impl TransferSink<H, D>) {
        self.endpoints[address.index()].halted = true;
        self.end_host(address.index(), TransferStatus::Stall, sink);
    }

    /// Completes the host's transfers of the endpoint with this index.
    fn end_host(&mut self, index: usize, status: TransferStatus, sink: &mut impl TransferSink<H, D>) {
        for queue in &mut self.endpoints[index].queues {
            while let Some(mut pending) = queue.host.pop_front() {
                self.host_transfers -= 1;
                pending.complete_host(status, sink);
            }
        }
    }

    /// Clears the halt of an endpoint.
    #[cold]
    pub fn clear_halt(&mut self, address: EndpointAddress) {
        self.endpoints[address.index()].halted = false;
    }

    /// Completes the host's transfers on a pipe: In transfers as short, Out transfers with their
    /// bytes discarded.
    #[inline(always)]
    pub fn finish(&mut self, pipe: Pipe, sink: &mut impl TransferSink<H, D>) {
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
            pending.complete_host(status, sink);
            self.host_transfers -= 1;
            queue.host.drop_front();
        }
    }

    /// Handles a disconnect or a reset: completes both sides' transfers and clears all halts.
    pub fn disconnect(&mut self, sink: &mut impl TransferSink<H, D>) {
        let gone = TransferStatus::Disconnected;
        self.host_transfers = 0;
        for endpoint in &mut self.endpoints {
            endpoint.halted = false;
            for queue in &mut endpoint.queues {
                while let Some(mut pending) = queue.host.pop_front() {
                    pending.complete_host(gone, sink);
                }
                while let Some(mut pending) = queue.device.pop_front() {
                    sink.device_completed(pending.end(gone), None);
                }
            }
        }
    }

    /// Returns whether the host has the maximum of outstanding transfers.
    pub const fn is_full(&self) -> bool {
        self.host_transfers >= HOST_TRANSFERS_MAX
    }

    /// Returns the number of outstanding host transfers.
    pub const fn host_transfers(&self) -> usize {
        self.host_transfers
    }
}

/// Copies what can be copied between two transfers.
#[inline(always)]
fn meet<H, D>(
    host: &mut Pending<H>,
    device: &mut Pending<D>,
    packet_bytes: u32,
    sink: &mut impl TransferSink<H, D>,
) -> Match {
    let direction = host.pipe.endpoint.direction();
    let step = match direction {
        Direction::In => step_in(host, device, packet_bytes),
        Direction::Out => step_out(host, device, packet_bytes),
    };
    let bytes = step.bytes;
    if bytes > 0 {
        let range = CopyRange {
            direction,
            host_offset: host.moved,
            device_offset: device.moved,
            bytes,
            host_ends: step.host.is_some(),
            device_ends: step.device.is_some(),
        };
        sink.copy(range, &mut host.context, &mut device.context);
        host.moved += bytes;
        device.moved += bytes;
    }
    step
}

/// The result of matching two transfers: bytes copied and completed sides, at least one.
struct Match {
    bytes: u32,
    host: Option<TransferStatus>,
    device: Option<TransferStatus>,
}

#[inline(always)]
fn step_in<H, D>(host: &Pending<H>, device: &Pending<D>, packet_bytes: u32) -> Match {
    let (room, left) = (host.remaining(), device.remaining());
    let last_room = past_packets(room, packet_bytes);
    if left > room && last_room != 0 {
        cold_path();
        let babble = Some(TransferStatus::Babble);
        return Match { bytes: room - last_room, host: babble, device: babble };
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
    Match { bytes, host: host_status, device: device_done.then_some(TransferStatus::Done) }
}

#[inline(always)]
fn step_out<H, D>(host: &Pending<H>, device: &Pending<D>, packet_bytes: u32) -> Match {
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
    Match { bytes, host: host_done.then_some(TransferStatus::Done), device: device_status }
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

    /// Creates the queues up to this one, each with room for the one transfer that a stream mostly has.
    #[cold]
    fn open(&mut self, index: usize) {
        let empty = || Queue { host: Fifo::with_capacity(1), device: Fifo::with_capacity(1) };
        self.queues.resize_with(index + 1, empty);
    }
}

impl<T> Pending<T> {
    #[inline(always)]
    const fn new(context: T, pipe: Pipe, length: u32) -> Self {
        Self { context, pipe, length, moved: 0, ends: false }
    }

    const fn remaining(&self) -> u32 {
        self.length - self.moved
    }

    #[inline(always)]
    const fn end(&mut self, status: TransferStatus) -> Completed<&mut T> {
        Completed {
            context: &mut self.context,
            pipe: self.pipe,
            length: self.length,
            status,
            actual: self.moved,
        }
    }

    /// Reports this host transfer as completed.
    #[inline(always)]
    fn complete_host<D>(&mut self, status: TransferStatus, sink: &mut impl TransferSink<T, D>) {
        sink.host_completed(self.end(status));
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

    /// A recorded call of the sink.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum SinkCall {
        Moved(Direction, (u64, u32), (u64, u32), u32),
        HostEnd(u64, TransferStatus, u32),
        DeviceEnd(u64, TransferStatus, u32),
    }
    use SinkCall::{DeviceEnd, HostEnd, Moved};

    /// A rendezvous and the recorded calls. Transfers are identified by their numbers.
    struct Fixture {
        rendezvous: Rendezvous<u64, u64>,
        calls: Vec<SinkCall>,
    }

    impl Fixture {
        fn new(speed: Speed) -> Self {
            Self { rendezvous: Rendezvous::new(speed), calls: vec![] }
        }

        fn host_transfers(&self) -> usize {
            self.rendezvous.host_transfers()
        }
    }

    fn host(fixture: &mut Fixture, id: u64, pipe: Pipe, length: u32) {
        fixture.rendezvous.submit_host(pipe, length, || id, &mut fixture.calls).unwrap();
    }

    fn device(fixture: &mut Fixture, id: u64, pipe: Pipe, length: u32, ends: bool) {
        fixture.rendezvous.submit_device(pipe, length, ends, || id, &mut fixture.calls);
    }

    impl TransferSink<u64, u64> for Vec<SinkCall> {
        fn copy(&mut self, range: CopyRange, host: &mut u64, device: &mut u64) {
            let CopyRange { direction, host_offset, device_offset, bytes, .. } = range;
            self.push(Moved(direction, (*host, host_offset), (*device, device_offset), bytes));
        }

        fn device_completed(&mut self, completed: Completed<&mut u64>, _host: Option<&u64>) {
            self.push(DeviceEnd(*completed.context, completed.status, completed.actual));
        }

        fn host_completed(&mut self, completed: Completed<&mut u64>) {
            self.push(HostEnd(*completed.context, completed.status, completed.actual));
        }
    }

    fn drain(fixture: &mut Fixture) -> Vec<SinkCall> {
        core::mem::take(&mut fixture.calls)
    }

    #[test]
    fn a_short_packet_ends_the_hosts_transfer() {
        let mut fixture = Fixture::new(Speed::High);
        host(&mut fixture, 1, bulk_in(), 4096);
        device(&mut fixture, 9, bulk_in(), 36, false);
        let events = vec![
            Moved(Direction::In, (1, 0), (9, 0), 36),
            DeviceEnd(9, TransferStatus::Done, 36),
            HostEnd(1, TransferStatus::Short, 36),
        ];
        assert_eq!(drain(&mut fixture), events);
    }

    #[test]
    fn whole_packets_leave_the_hosts_transfer_open_until_the_device_ends_it() {
        let mut fixture = Fixture::new(Speed::High);
        host(&mut fixture, 1, bulk_in(), 4096);
        device(&mut fixture, 8, bulk_in(), 512, false);
        drain(&mut fixture);
        assert_eq!(fixture.host_transfers(), 1);
        device(&mut fixture, 9, bulk_in(), 0, true);
        let events = vec![DeviceEnd(9, TransferStatus::Done, 0), HostEnd(1, TransferStatus::Short, 512)];
        assert_eq!(drain(&mut fixture), events);
    }

    #[test]
    fn one_device_transfer_fills_several_of_the_hosts() {
        let mut fixture = Fixture::new(Speed::High);
        device(&mut fixture, 9, bulk_in(), 1536, true);
        host(&mut fixture, 1, bulk_in(), 1024);
        host(&mut fixture, 2, bulk_in(), 1024);
        let events = vec![
            Moved(Direction::In, (1, 0), (9, 0), 1024),
            HostEnd(1, TransferStatus::Done, 1024),
            Moved(Direction::In, (2, 0), (9, 1024), 512),
            DeviceEnd(9, TransferStatus::Done, 1536),
            HostEnd(2, TransferStatus::Short, 512),
        ];
        assert_eq!(drain(&mut fixture), events);
    }

    #[test]
    fn a_packet_larger_than_the_buffer_is_babble() {
        let mut fixture = Fixture::new(Speed::High);
        host(&mut fixture, 1, bulk_in(), 13);
        device(&mut fixture, 9, bulk_in(), 36, true);
        let events = vec![DeviceEnd(9, TransferStatus::Babble, 0), HostEnd(1, TransferStatus::Babble, 0)];
        assert_eq!(drain(&mut fixture), events);
    }

    #[test]
    fn a_short_host_transfer_ends_the_devices() {
        let mut fixture = Fixture::new(Speed::Super);
        device(&mut fixture, 9, bulk_out(), 1024, false);
        host(&mut fixture, 1, bulk_out(), 31);
        let events = vec![
            Moved(Direction::Out, (1, 0), (9, 0), 31),
            DeviceEnd(9, TransferStatus::Short, 31),
            HostEnd(1, TransferStatus::Done, 31),
        ];
        assert_eq!(drain(&mut fixture), events);
    }

    #[test]
    fn a_zero_length_packet_is_something() {
        let mut fixture = Fixture::new(Speed::Super);
        host(&mut fixture, 1, bulk_out(), 0);
        device(&mut fixture, 9, bulk_out(), 1024, false);
        let events = vec![DeviceEnd(9, TransferStatus::Short, 0), HostEnd(1, TransferStatus::Done, 0)];
        assert_eq!(drain(&mut fixture), events);
    }

    #[test]
    fn a_halt_stalls_what_is_there_and_what_comes_until_it_is_cleared() {
        let mut fixture = Fixture::new(Speed::Super);
        host(&mut fixture, 1, bulk_in(), 512);
        fixture.rendezvous.halt(bulk_in().endpoint, &mut fixture.calls);
        host(&mut fixture, 2, bulk_in(), 512);
        let stalls = vec![HostEnd(1, TransferStatus::Stall, 0), HostEnd(2, TransferStatus::Stall, 0)];
        assert_eq!(drain(&mut fixture), stalls);
        fixture.rendezvous.clear_halt(bulk_in().endpoint);
        host(&mut fixture, 3, bulk_in(), 512);
        assert_eq!(drain(&mut fixture), vec![]);
    }

    #[test]
    fn a_cancel_is_answered_once_and_only_while_the_transfer_lives() {
        let mut fixture = Fixture::new(Speed::Super);
        host(&mut fixture, 1, bulk_in(), 512);
        assert!(fixture.rendezvous.cancel_host(|&id| id == 1, &mut fixture.calls));
        assert!(!fixture.rendezvous.cancel_host(|&id| id == 1, &mut fixture.calls));
        assert_eq!(drain(&mut fixture), vec![HostEnd(1, TransferStatus::Cancelled, 0)]);
    }

    #[test]
    fn cancelling_an_endpoint_ends_the_hosts_transfers_on_all_its_streams_and_no_others() {
        let mut fixture = Fixture::new(Speed::Super);
        let on = |id| Pipe::stream(EndpointAddress::at::<1>(Direction::In), StreamId::new(id).unwrap());
        host(&mut fixture, 1, on(2), 512);
        host(&mut fixture, 2, bulk_out(), 512);
        host(&mut fixture, 3, on(1), 512);
        host(&mut fixture, 4, on(2), 512);
        device(&mut fixture, 9, on(7), 512, true);
        fixture.rendezvous.cancel_host_at(on(1).endpoint, &mut fixture.calls);
        let cancelled = |id| HostEnd(id, TransferStatus::Cancelled, 0);
        assert_eq!(drain(&mut fixture), [3, 1, 4].map(cancelled));
        assert_eq!(fixture.host_transfers(), 1);
        fixture.rendezvous.cancel_all_host(&mut fixture.calls);
        assert_eq!(drain(&mut fixture), [cancelled(2)]);
        // The device's transfer is still there for the next of the host.
        host(&mut fixture, 5, on(7), 512);
        assert_eq!(drain(&mut fixture).last(), Some(&HostEnd(5, TransferStatus::Done, 512)));
    }

    #[test]
    fn streams_do_not_wait_for_each_other() {
        let mut fixture = Fixture::new(Speed::Super);
        let on = |id| Pipe::stream(EndpointAddress::at::<1>(Direction::In), StreamId::new(id).unwrap());
        host(&mut fixture, 1, on(1), 512);
        host(&mut fixture, 2, on(2), 512);
        device(&mut fixture, 9, on(2), 512, true);
        let events = vec![
            Moved(Direction::In, (2, 0), (9, 0), 512),
            DeviceEnd(9, TransferStatus::Done, 512),
            HostEnd(2, TransferStatus::Done, 512),
        ];
        assert_eq!(drain(&mut fixture), events);
    }

    #[test]
    fn finishing_a_pipe_ends_what_the_host_has_there() {
        let mut fixture = Fixture::new(Speed::Super);
        host(&mut fixture, 1, bulk_in(), 512);
        host(&mut fixture, 2, bulk_out(), 4096);
        fixture.rendezvous.finish(bulk_in(), &mut fixture.calls);
        fixture.rendezvous.finish(bulk_out(), &mut fixture.calls);
        let events = vec![HostEnd(1, TransferStatus::Short, 0), HostEnd(2, TransferStatus::Done, 4096)];
        assert_eq!(drain(&mut fixture), events);
    }

    #[test]
    fn bytes_that_a_waiting_transfer_takes_whole_pass_without_one_of_the_hosts() {
        let mut fixture = Fixture::new(Speed::Super);
        let mut calls = Vec::new();
        let mut pass = |fixture: &mut Fixture, length, rearm| {
            fixture.rendezvous.pass(bulk_out(), length, |completed| {
                calls.push((*completed.context, completed.status, completed.actual));
                rearm
            })
        };
        assert!(!pass(&mut fixture, 32, Some(Rearm::No)), "no transfer is pending");
        device(&mut fixture, 9, bulk_out(), 1024, false);
        assert!(!pass(&mut fixture, 1025, Some(Rearm::No)), "it is too short for them");
        assert!(pass(&mut fixture, 32, Some(Rearm::Yes)));
        assert!(pass(&mut fixture, 31, Some(Rearm::No)), "it waits for more");
        assert!(!pass(&mut fixture, 32, Some(Rearm::No)), "it has completed");
        device(&mut fixture, 10, bulk_out(), 2048, false);
        assert!(!pass(&mut fixture, 1024, Some(Rearm::No)), "a whole packet does not end it");
        assert!(!pass(&mut fixture, 33, None), "`take` rejects it");
        assert!(pass(&mut fixture, 34, Some(Rearm::No)), "so it waits still");
        let short = TransferStatus::Short;
        assert_eq!(calls, [(9, short, 32), (9, short, 31), (10, short, 33), (10, short, 34)]);
    }

    #[test]
    fn a_host_cannot_queue_without_bound() {
        let mut fixture = Fixture::new(Speed::Super);
        for id in 0..HOST_TRANSFERS_MAX as u64 {
            host(&mut fixture, id, bulk_in(), 1);
        }
        assert_eq!(fixture.rendezvous.submit_host(bulk_in(), 1, || 9999, &mut fixture.calls), Err(Full));
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
            let mut fixture = Fixture::new(speed);
            let (mut submitted, mut next, mut parts) = (vec![], 0u64, vec![]);
            for call in calls {
                match call {
                    Call::Host(pipe, length) => host(&mut fixture, next, pipe, length),
                    Call::Device(pipe, length, ends) => device(&mut fixture, next, pipe, length, ends),
                    Call::CancelHost(id) => {
                        fixture.rendezvous.cancel_host(|&own| own == id, &mut fixture.calls);
                    }
                    Call::CancelDevice(id) => fixture.rendezvous.cancel_device(|&own| own == id, &mut fixture.calls),
                    Call::Halt(pipe) => fixture.rendezvous.halt(pipe.endpoint, &mut fixture.calls),
                    Call::ClearHalt(pipe) => fixture.rendezvous.clear_halt(pipe.endpoint),
                    Call::Finish(pipe) => fixture.rendezvous.finish(pipe, &mut fixture.calls),
                    Call::CancelAt(pipe) => fixture.rendezvous.cancel_host_at(pipe.endpoint, &mut fixture.calls),
                    Call::CancelAll => fixture.rendezvous.cancel_all_host(&mut fixture.calls),
                    Call::Disconnect => fixture.rendezvous.disconnect(&mut fixture.calls),
                }
                if let Call::Host(pipe, length) | Call::Device(pipe, length, _) = call {
                    submitted.push((pipe, length));
                    next += 1;
                }
                parts.extend(drain(&mut fixture));
            }
            fixture.rendezvous.disconnect(&mut fixture.calls);
            parts.extend(drain(&mut fixture));
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
                        // Only cancelled transfers complete before earlier ones.
                        if status != TransferStatus::Cancelled {
                            let earlier = last.insert((pipe, is_host), id);
                            prop_assert!(earlier.is_none_or(|earlier| earlier < id));
                        }
                    }
                }
            }
            prop_assert!(ends.iter().all(|&count| count == 1));
            prop_assert_eq!(fixture.host_transfers(), 0);
        }
    }
}
