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
//! Payload stays with its owners: a [`Meeting`] says which bytes go where, and must be carried out before the next
//! call. Always true: pipes complete in the order of submission; each transfer completes once.

use crate::{Completion, Direction, EndpointAddress, Pipe, Speed, TransferId, TransferStatus};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Transfers that a host may have outstanding on all pipes together.
///
/// QEMU keeps at most streams + 16 on an endpoint, so 256 streams on three endpoints fit four times.
pub const HOST_TRANSFERS_MAX: usize = 4096;

/// A transfer that the host wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTransfer {
    /// The host's name for it.
    pub id: TransferId,
    /// Where it goes.
    pub pipe: Pipe,
    /// Bytes to send, or room for bytes to come.
    pub length: u32,
}

/// A transfer that the device is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTransfer {
    /// The device's name for it.
    pub id: TransferId,
    /// Where it goes.
    pub pipe: Pipe,
    /// Bytes to send, or room for bytes to come.
    pub length: u32,
    /// In: whether the host's transfer ends with it even if there is room left. Out: no meaning.
    pub ends: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Two transfers met: bytes go from one side's buffer to the other's, and one side ends, or both.
    Met(Meeting),
    /// A host transfer ended without bytes.
    HostCompleted(Completion),
    /// A device transfer ended without bytes.
    DeviceCompleted(Completion),
}

/// What comes of the meeting of two transfers. The bytes move before the transfers end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// Which way: [`Direction::In`] is from the device to the host.
    pub direction: Direction,
    /// The host's transfer.
    pub host: TransferId,
    /// Offset in the host's transfer.
    pub host_offset: u32,
    /// The device's transfer.
    pub device: TransferId,
    /// Offset in the device's transfer.
    pub device_offset: u32,
    /// How many bytes: none for a packet without.
    pub bytes: u32,
    /// How the host's transfer ends, if it does.
    pub host_ends: Option<TransferStatus>,
    /// How the device's transfer ends, if it does.
    pub device_ends: Option<TransferStatus>,
}

impl Meeting {
    /// The end of the host's transfer.
    pub fn host_completion(&self) -> Option<Completion> {
        let completion = |status| Completion { id: self.host, status, actual: self.host_offset + self.bytes };
        self.host_ends.map(completion)
    }

    /// The end of the device's transfer.
    pub fn device_completion(&self) -> Option<Completion> {
        let completion =
            |status| Completion { id: self.device, status, actual: self.device_offset + self.bytes };
        self.device_ends.map(completion)
    }
}

/// The host has [`HOST_TRANSFERS_MAX`] transfers outstanding already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The meeting place of one device's pipes.
#[derive(Debug)]
pub struct Rendezvous {
    packet_bytes: u32,
    /// By [`EndpointAddress::index`].
    endpoints: [Endpoint; EndpointAddress::COUNT],
    events: VecDeque<Event>,
    host_transfers: usize,
}

#[derive(Debug, Default)]
struct Endpoint {
    halted: bool,
    /// Index 0 is the endpoint without streams, index n stream n.
    queues: Vec<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    host: VecDeque<Pending>,
    device: VecDeque<Pending>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    id: TransferId,
    length: u32,
    moved: u32,
    ends: bool,
}

impl Rendezvous {
    /// An empty place for a device at `speed`.
    pub fn new(speed: Speed) -> Self {
        Self {
            packet_bytes: speed.bulk_packet_bytes(),
            endpoints: Default::default(),
            events: VecDeque::new(),
            host_transfers: 0,
        }
    }

    /// The host wants `transfer` done. It completes at once where the endpoint is halted.
    pub fn submit_host(&mut self, transfer: HostTransfer) -> Result<(), Full> {
        if self.host_transfers >= HOST_TRANSFERS_MAX {
            return Err(Full);
        }
        self.host_transfers += 1;
        let endpoint = &mut self.endpoints[transfer.pipe.endpoint.index()];
        let halted = endpoint.halted;
        let queue = endpoint.queue(transfer.pipe);
        queue.host.push_back(Pending::new(transfer.id, transfer.length));
        if halted {
            self.end_host_queues(transfer.pipe.endpoint, TransferStatus::Stall);
        } else if !queue.device.is_empty() {
            self.meet(transfer.pipe);
        }
        Ok(())
    }

    /// The device is ready for `transfer`.
    pub fn submit_device(&mut self, transfer: DeviceTransfer) {
        let pending = Pending { ends: transfer.ends, ..Pending::new(transfer.id, transfer.length) };
        let queue = self.endpoints[transfer.pipe.endpoint.index()].queue(transfer.pipe);
        queue.device.push_back(pending);
        if !queue.host.is_empty() {
            self.meet(transfer.pipe);
        }
    }

    /// The host takes a transfer back. Nothing happens if it has completed already.
    pub fn cancel_host(&mut self, id: TransferId) {
        let mut queues = self.endpoints.iter_mut().flat_map(|endpoint| &mut endpoint.queues);
        let found = queues.find_map(|queue| take(&mut queue.host, id));
        if let Some(pending) = found {
            self.host_transfers -= 1;
            self.events.push_back(Event::HostCompleted(pending.completion(TransferStatus::Cancelled)));
        }
    }

    /// The device takes a transfer back. Nothing happens if it has completed already.
    pub fn cancel_device(&mut self, id: TransferId) {
        let mut queues = self.endpoints.iter_mut().flat_map(|endpoint| &mut endpoint.queues);
        let found = queues.find_map(|queue| take(&mut queue.device, id));
        if let Some(pending) = found {
            self.events.push_back(Event::DeviceCompleted(pending.completion(TransferStatus::Cancelled)));
        }
    }

    /// The device halts an endpoint: what the host has there, and what it brings, stalls.
    pub fn halt(&mut self, address: EndpointAddress) {
        self.endpoints[address.index()].halted = true;
        self.end_host_queues(address, TransferStatus::Stall);
    }

    /// The halt of an endpoint is cleared.
    pub fn clear_halt(&mut self, address: EndpointAddress) {
        self.endpoints[address.index()].halted = false;
    }

    /// The device ends whatever the host has on a pipe: In transfers end short, Out bytes are swallowed.
    pub fn finish(&mut self, pipe: Pipe) {
        let queue = self.endpoints[pipe.endpoint.index()].queue(pipe);
        for pending in queue.host.drain(..) {
            let completion = match pipe.endpoint.direction() {
                Direction::In => pending.completion(TransferStatus::Short),
                Direction::Out => {
                    Pending { moved: pending.length, ..pending }.completion(TransferStatus::Done)
                }
            };
            self.host_transfers -= 1;
            self.events.push_back(Event::HostCompleted(completion));
        }
    }

    /// The device goes away, or comes back from a reset: both sides' transfers end, halts are forgotten.
    pub fn disconnect(&mut self) {
        for endpoint in &mut self.endpoints {
            endpoint.halted = false;
            for queue in &mut endpoint.queues {
                for pending in queue.host.drain(..) {
                    let completion = pending.completion(TransferStatus::Disconnected);
                    self.events.push_back(Event::HostCompleted(completion));
                }
                for pending in queue.device.drain(..) {
                    let completion = pending.completion(TransferStatus::Disconnected);
                    self.events.push_back(Event::DeviceCompleted(completion));
                }
            }
        }
        self.host_transfers = 0;
    }

    /// The next thing that came of the calls so far.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Host transfers that have not completed.
    pub const fn host_transfers(&self) -> usize {
        self.host_transfers
    }

    fn end_host_queues(&mut self, address: EndpointAddress, status: TransferStatus) {
        let endpoint = &mut self.endpoints[address.index()];
        for pending in endpoint.queues.iter_mut().flat_map(|queue| queue.host.drain(..)) {
            self.host_transfers -= 1;
            self.events.push_back(Event::HostCompleted(pending.completion(status)));
        }
    }

    /// Moves what can be moved on one pipe.
    fn meet(&mut self, pipe: Pipe) {
        let packet_bytes = self.packet_bytes;
        let direction = pipe.endpoint.direction();
        let Queue { host, device } = self.endpoints[pipe.endpoint.index()].queue(pipe);
        while let (Some(h), Some(d)) = (host.front_mut(), device.front_mut()) {
            let step = match direction {
                Direction::In => step_in(h, d, packet_bytes),
                Direction::Out => step_out(h, d, packet_bytes),
            };
            self.events.push_back(Event::Met(Meeting {
                direction,
                host: h.id,
                host_offset: h.moved,
                device: d.id,
                device_offset: d.moved,
                bytes: step.bytes,
                host_ends: step.host,
                device_ends: step.device,
            }));
            h.moved += step.bytes;
            d.moved += step.bytes;
            if step.device.is_some() {
                device.pop_front();
            }
            if step.host.is_some() {
                self.host_transfers -= 1;
                host.pop_front();
            }
        }
    }
}

/// What one meeting of two transfers brings: bytes, and who has ended how. At least one side ends.
struct Step {
    bytes: u32,
    host: Option<TransferStatus>,
    device: Option<TransferStatus>,
}

fn step_in(host: &Pending, device: &Pending, packet_bytes: u32) -> Step {
    let (room, left) = (host.remaining(), device.remaining());
    let last_room = room % packet_bytes;
    if left > room && last_room != 0 {
        let babble = Some(TransferStatus::Babble);
        return Step { bytes: room - last_room, host: babble, device: babble };
    }
    let bytes = room.min(left);
    let device_done = bytes == left;
    let short = device_done && (device.ends || !device.length.is_multiple_of(packet_bytes));
    let host_status = if bytes == room {
        Some(TransferStatus::Done)
    } else if short {
        Some(TransferStatus::Short)
    } else {
        None
    };
    Step { bytes, host: host_status, device: device_done.then_some(TransferStatus::Done) }
}

fn step_out(host: &Pending, device: &Pending, packet_bytes: u32) -> Step {
    let (room, left) = (device.remaining(), host.remaining());
    let bytes = room.min(left);
    let host_done = bytes == left;
    let short = host_done && (host.length == 0 || !host.length.is_multiple_of(packet_bytes));
    let device_status = if bytes == room && room > 0 {
        Some(TransferStatus::Done)
    } else if short || room == 0 {
        Some(TransferStatus::Short)
    } else {
        None
    };
    Step { bytes, host: host_done.then_some(TransferStatus::Done), device: device_status }
}

impl Endpoint {
    fn queue(&mut self, pipe: Pipe) -> &mut Queue {
        let index = pipe.stream.map_or(0, |stream| usize::from(stream.get()));
        if index >= self.queues.len() {
            self.queues.resize_with(index + 1, Queue::default);
        }
        &mut self.queues[index]
    }
}

impl Pending {
    const fn new(id: TransferId, length: u32) -> Self {
        Self { id, length, moved: 0, ends: false }
    }

    const fn remaining(&self) -> u32 {
        self.length - self.moved
    }

    const fn completion(&self, status: TransferStatus) -> Completion {
        Completion { id: self.id, status, actual: self.moved }
    }
}

fn take(queue: &mut VecDeque<Pending>, id: TransferId) -> Option<Pending> {
    let index = queue.iter().position(|pending| pending.id == id)?;
    queue.remove(index)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::StreamId;
    use proptest::prelude::*;
    use std::vec;

    fn bulk_in() -> Pipe {
        Pipe::plain(EndpointAddress::at::<1>(Direction::In))
    }

    fn bulk_out() -> Pipe {
        Pipe::plain(EndpointAddress::at::<2>(Direction::Out))
    }

    fn host(id: u64, pipe: Pipe, length: u32) -> HostTransfer {
        HostTransfer { id: TransferId(id), pipe, length }
    }

    fn device(id: u64, pipe: Pipe, length: u32, ends: bool) -> DeviceTransfer {
        DeviceTransfer { id: TransferId(id), pipe, length, ends }
    }

    fn host_end(id: u64, status: TransferStatus, actual: u32) -> Event {
        Event::HostCompleted(Completion { id: TransferId(id), status, actual })
    }

    fn device_end(id: u64, status: TransferStatus, actual: u32) -> Event {
        Event::DeviceCompleted(Completion { id: TransferId(id), status, actual })
    }

    /// Bytes that move in a meeting that ends nothing.
    fn moved(direction: Direction, from: (u64, u32), to: (u64, u32), bytes: u32) -> Event {
        let (host, device) = (TransferId(from.0), TransferId(to.0));
        let (host_ends, device_ends) = (None, None);
        let (host_offset, device_offset) = (from.1, to.1);
        Event::Met(Meeting {
            direction,
            host,
            host_offset,
            device,
            device_offset,
            bytes,
            host_ends,
            device_ends,
        })
    }

    /// A meeting in its parts: bytes, then the end of the device's transfer, then that of the host's.
    fn parts(event: Event) -> Vec<Event> {
        let Event::Met(meeting) = event else { return vec![event] };
        let bytes = Event::Met(Meeting { host_ends: None, device_ends: None, ..meeting });
        let device = meeting.device_completion().map(Event::DeviceCompleted);
        let host = meeting.host_completion().map(Event::HostCompleted);
        (meeting.bytes > 0).then_some(bytes).into_iter().chain(device).chain(host).collect()
    }

    fn drain(place: &mut Rendezvous) -> Vec<Event> {
        core::iter::from_fn(|| place.poll()).flat_map(parts).collect()
    }

    #[test]
    fn a_short_packet_ends_the_hosts_transfer() {
        let mut place = Rendezvous::new(Speed::High);
        place.submit_host(host(1, bulk_in(), 4096)).unwrap();
        place.submit_device(device(9, bulk_in(), 36, false));
        let events = vec![
            moved(Direction::In, (1, 0), (9, 0), 36),
            device_end(9, TransferStatus::Done, 36),
            host_end(1, TransferStatus::Short, 36),
        ];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn whole_packets_leave_the_hosts_transfer_open_until_the_device_ends_it() {
        let mut place = Rendezvous::new(Speed::High);
        place.submit_host(host(1, bulk_in(), 4096)).unwrap();
        place.submit_device(device(8, bulk_in(), 512, false));
        drain(&mut place);
        assert_eq!(place.host_transfers(), 1);
        place.submit_device(device(9, bulk_in(), 0, true));
        let events = vec![device_end(9, TransferStatus::Done, 0), host_end(1, TransferStatus::Short, 512)];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn one_device_transfer_fills_several_of_the_hosts() {
        let mut place = Rendezvous::new(Speed::High);
        place.submit_device(device(9, bulk_in(), 1536, true));
        place.submit_host(host(1, bulk_in(), 1024)).unwrap();
        place.submit_host(host(2, bulk_in(), 1024)).unwrap();
        let events = vec![
            moved(Direction::In, (1, 0), (9, 0), 1024),
            host_end(1, TransferStatus::Done, 1024),
            moved(Direction::In, (2, 0), (9, 1024), 512),
            device_end(9, TransferStatus::Done, 1536),
            host_end(2, TransferStatus::Short, 512),
        ];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn a_packet_larger_than_the_room_is_babble() {
        let mut place = Rendezvous::new(Speed::High);
        place.submit_host(host(1, bulk_in(), 13)).unwrap();
        place.submit_device(device(9, bulk_in(), 36, true));
        let events = vec![device_end(9, TransferStatus::Babble, 0), host_end(1, TransferStatus::Babble, 0)];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn a_short_host_transfer_ends_the_devices() {
        let mut place = Rendezvous::new(Speed::Super);
        place.submit_device(device(9, bulk_out(), 1024, false));
        place.submit_host(host(1, bulk_out(), 31)).unwrap();
        let events = vec![
            moved(Direction::Out, (1, 0), (9, 0), 31),
            device_end(9, TransferStatus::Short, 31),
            host_end(1, TransferStatus::Done, 31),
        ];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn a_zero_length_packet_is_something() {
        let mut place = Rendezvous::new(Speed::Super);
        place.submit_host(host(1, bulk_out(), 0)).unwrap();
        place.submit_device(device(9, bulk_out(), 1024, false));
        let events = vec![device_end(9, TransferStatus::Short, 0), host_end(1, TransferStatus::Done, 0)];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn a_halt_stalls_what_is_there_and_what_comes_until_it_is_cleared() {
        let mut place = Rendezvous::new(Speed::Super);
        place.submit_host(host(1, bulk_in(), 512)).unwrap();
        place.halt(bulk_in().endpoint);
        place.submit_host(host(2, bulk_in(), 512)).unwrap();
        let stalls = vec![host_end(1, TransferStatus::Stall, 0), host_end(2, TransferStatus::Stall, 0)];
        assert_eq!(drain(&mut place), stalls);
        place.clear_halt(bulk_in().endpoint);
        place.submit_host(host(3, bulk_in(), 512)).unwrap();
        assert_eq!(drain(&mut place), vec![]);
    }

    #[test]
    fn a_cancel_is_answered_once_and_only_while_the_transfer_lives() {
        let mut place = Rendezvous::new(Speed::Super);
        place.submit_host(host(1, bulk_in(), 512)).unwrap();
        place.cancel_host(TransferId(1));
        place.cancel_host(TransferId(1));
        assert_eq!(drain(&mut place), vec![host_end(1, TransferStatus::Cancelled, 0)]);
    }

    #[test]
    fn streams_do_not_wait_for_each_other() {
        let mut place = Rendezvous::new(Speed::Super);
        let on = |id| Pipe::stream(EndpointAddress::at::<1>(Direction::In), StreamId::new(id).unwrap());
        place.submit_host(host(1, on(1), 512)).unwrap();
        place.submit_host(host(2, on(2), 512)).unwrap();
        place.submit_device(device(9, on(2), 512, true));
        let events = vec![
            moved(Direction::In, (2, 0), (9, 0), 512),
            device_end(9, TransferStatus::Done, 512),
            host_end(2, TransferStatus::Done, 512),
        ];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn finishing_a_pipe_ends_what_the_host_has_there() {
        let mut place = Rendezvous::new(Speed::Super);
        place.submit_host(host(1, bulk_in(), 512)).unwrap();
        place.submit_host(host(2, bulk_out(), 4096)).unwrap();
        place.finish(bulk_in());
        place.finish(bulk_out());
        let events = vec![host_end(1, TransferStatus::Short, 0), host_end(2, TransferStatus::Done, 4096)];
        assert_eq!(drain(&mut place), events);
    }

    #[test]
    fn a_host_cannot_queue_without_bound() {
        let mut place = Rendezvous::new(Speed::Super);
        for id in 0..HOST_TRANSFERS_MAX as u64 {
            place.submit_host(host(id, bulk_in(), 1)).unwrap();
        }
        assert_eq!(place.submit_host(host(9999, bulk_in(), 1)), Err(Full));
    }

    #[derive(Clone, Debug)]
    enum Call {
        Host(bool, u32),
        Device(bool, u32, bool),
        CancelHost(u64),
        CancelDevice(u64),
        Halt(bool),
        ClearHalt(bool),
        Finish(bool),
        Disconnect,
    }

    fn call() -> impl Strategy<Value = Call> {
        prop_oneof![
            4 => (any::<bool>(), 0u32..3000).prop_map(|(inward, length)| Call::Host(inward, length)),
            4 => (any::<bool>(), 0u32..3000, any::<bool>()).prop_map(|(i, l, e)| Call::Device(i, l, e)),
            1 => (0u64..40).prop_map(Call::CancelHost),
            1 => (0u64..40).prop_map(Call::CancelDevice),
            1 => any::<bool>().prop_map(Call::Halt),
            1 => any::<bool>().prop_map(Call::ClearHalt),
            1 => any::<bool>().prop_map(Call::Finish),
            1 => Just(Call::Disconnect),
        ]
    }

    proptest! {
        #[test]
        fn every_transfer_completes_once_with_the_bytes_that_moved(calls in prop::collection::vec(call(), 1..40)) {
            let mut place = Rendezvous::new(Speed::High);
            let pipe = |inward| if inward { bulk_in() } else { bulk_out() };
            let (mut lengths, mut next) = (vec![], 0u64);
            for call in calls {
                match call {
                    Call::Host(i, length) => place.submit_host(host(next, pipe(i), length)).unwrap(),
                    Call::Device(i, length, ends) => place.submit_device(device(next, pipe(i), length, ends)),
                    Call::CancelHost(id) => place.cancel_host(TransferId(id)),
                    Call::CancelDevice(id) => place.cancel_device(TransferId(id)),
                    Call::Halt(i) => place.halt(pipe(i).endpoint),
                    Call::ClearHalt(i) => place.clear_halt(pipe(i).endpoint),
                    Call::Finish(i) => place.finish(pipe(i)),
                    Call::Disconnect => place.disconnect(),
                }
                if let Call::Host(_, length) | Call::Device(_, length, _) = call {
                    lengths.push(length);
                    next += 1;
                }
            }
            place.disconnect();
            let mut ends = vec![0u32; lengths.len()];
            let mut moved = vec![0u32; lengths.len()];
            for event in drain(&mut place) {
                match event {
                    Event::Met(m) => for id in [m.host, m.device] { moved[id.0 as usize] += m.bytes },
                    Event::HostCompleted(c) | Event::DeviceCompleted(c) => {
                        let id = c.id.0 as usize;
                        ends[id] += 1;
                        prop_assert!(c.actual <= lengths[id]);
                        // Bytes that the device swallows count as done without having been moved.
                        prop_assert!(c.actual == moved[id] || c.status == TransferStatus::Done);
                    }
                }
            }
            prop_assert!(ends.iter().all(|&count| count == 1));
            prop_assert_eq!(place.host_transfers(), 0);
        }
    }
}
