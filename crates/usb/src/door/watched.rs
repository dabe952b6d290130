//! A door whose transfers somebody looks on at: what `uaskit bench --capture` writes down.
//!
//! Everything goes to the door behind it; what was taken on and how it ended is told, with as many bytes as are wanted. What the host
//! asked of the device before the door was opened is told as it would have been asked: descriptors and the configuration, so that whoever
//! reads knows which endpoint is which. Settings and cleared halts, which the kernel asks for us, are told as the requests that they
//! are. Left out: what a reset of the port does on the wire.
//!
//! Always true: nothing is held back or changed; a transfer that was told to begin is told to end.

use super::{BusDoor, CellId, DoorError, Order, Readiness};
use bus::{Completion, Direction, EndpointAddress, Observer, Pipe, TransferId, TransferStatus};
use std::time::Duration;
use units::ByteRange;
use wire::usb::{DescriptorKind, Recipient, SetupPacket, StandardRequest};

/// A door, and who looks on.
#[derive(Debug)]
pub struct Watched<D> {
    door: D,
    observer: Box<dyn Observer>,
    /// Of the interface behind the door.
    interface: u8,
    flights: Vec<Order>,
    /// The bytes that are shown.
    shown: Vec<u8>,
}

/// What a host has read of a device before.
#[derive(Clone, Copy, Debug)]
pub struct Enumerated<'a> {
    /// The device descriptor.
    pub device: &'a [u8],
    /// The configuration in use, whole.
    pub configuration: &'a [u8],
    /// Its value.
    pub value: u8,
}

impl<D: BusDoor> Watched<D> {
    /// Has somebody look on at what goes through a door from now on.
    pub fn new(door: D, interface: u8, observer: Box<dyn Observer>, read: &Enumerated<'_>) -> Self {
        let mut watched = Self { door, observer, interface, flights: Vec::new(), shown: Vec::new() };
        watched.tell_descriptor(DescriptorKind::Device, read.device);
        watched.tell_descriptor(DescriptorKind::Configuration, read.configuration);
        let done: Result<(), D::Error> = Ok(());
        let set = StandardRequest::SetConfiguration;
        watched.tell_request(Recipient::Device, set, (read.value.into(), 0), &done);
        watched
    }

    /// The door behind it, at which nobody looks on any more.
    pub fn into_door(self) -> D {
        self.door
    }

    fn tell_descriptor(&mut self, kind: DescriptorKind, bytes: &[u8]) {
        let setup = SetupPacket::get_descriptor(kind, 0, bytes.len() as u16);
        self.observer.control(setup, bytes, TransferStatus::Done);
    }

    /// A request without data that the kernel has made for us.
    fn tell_request(
        &mut self,
        recipient: Recipient,
        request: StandardRequest,
        (value, index): (u16, u16),
        made: &Result<(), D::Error>,
    ) {
        let setup = SetupPacket { index, ..SetupPacket::of_standard(recipient, request, value) };
        self.observer.control(setup, &[], ended(made));
    }

    /// Bytes of a transfer, as many as are wanted.
    fn show(&mut self, order: &Order, len: u32) {
        let len = len.min(order.range.len);
        let wanted = (len as usize).min(self.observer.snap());
        self.shown.resize(wanted, 0);
        let copied = self.door.copy_out(order.cell, ByteRange::new(order.range.start, len), &mut self.shown);
        self.shown.truncate(copied);
    }
}

/// How a request ended.
fn ended<T, E: DoorError>(made: &Result<T, E>) -> TransferStatus {
    match made {
        Ok(_) => TransferStatus::Done,
        Err(error) if error.is_stall() => TransferStatus::Stall,
        Err(error) if error.is_disconnect() => TransferStatus::Disconnected,
        Err(_) => TransferStatus::Error,
    }
}

impl<D: BusDoor> BusDoor for Watched<D> {
    type Error = D::Error;

    fn bytes(&mut self, cell: CellId) -> Option<&mut [u8]> {
        self.door.bytes(cell)
    }

    fn copy_out(&self, cell: CellId, range: ByteRange, into: &mut [u8]) -> usize {
        self.door.copy_out(cell, range, into)
    }

    fn copy_in(&mut self, cell: CellId, range: ByteRange, from: &[u8]) -> usize {
        self.door.copy_in(cell, range, from)
    }

    fn copy_across(&mut self, from: (CellId, ByteRange), to: (CellId, ByteRange)) -> usize {
        self.door.copy_across(from, to)
    }

    fn is_zero_copy(&self) -> bool {
        self.door.is_zero_copy()
    }

    fn submit(&mut self, order: Order) {
        let Order { id, pipe, range, .. } = order;
        match pipe.endpoint.direction() {
            Direction::Out => self.show(&order, range.len),
            Direction::In => self.shown.clear(),
        }
        self.observer.submitted(id.0, pipe, range.len, &self.shown);
        self.flights.push(order);
        self.door.submit(order);
    }

    fn cancel(&mut self, id: TransferId) {
        self.door.cancel(id);
    }

    fn poll(&mut self) -> Option<Completion> {
        let completion = self.door.poll()?;
        let Completion { id, status, actual } = completion;
        if let Some(at) = self.flights.iter().position(|order| order.id == id) {
            let order = self.flights.swap_remove(at);
            let pipe: Pipe = order.pipe;
            match pipe.endpoint.direction() {
                Direction::In => self.show(&order, actual),
                Direction::Out => self.shown.clear(),
            }
            self.observer.completed(id.0, pipe, (status, actual), &self.shown);
        }
        Some(completion)
    }

    fn reap(&mut self) -> Result<bool, D::Error> {
        self.door.reap()
    }

    fn wait(&mut self, limit: Option<Duration>) -> Result<Readiness, D::Error> {
        self.door.wait(limit)
    }

    fn is_gone(&self) -> bool {
        self.door.is_gone()
    }

    fn take_fault(&mut self) -> Option<D::Error> {
        self.door.take_fault()
    }

    fn select_alternate(&mut self, alternate: u8) -> Result<(), D::Error> {
        let made = self.door.select_alternate(alternate);
        let words = (alternate.into(), self.interface.into());
        self.tell_request(Recipient::Interface, StandardRequest::SetInterface, words, &made);
        made
    }

    fn allocate_streams(&mut self, endpoints: [EndpointAddress; 3], wanted: u16) -> Result<u16, D::Error> {
        self.door.allocate_streams(endpoints, wanted)
    }

    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, D::Error> {
        let made = self.door.control(setup, bytes);
        let moved = made.as_ref().map_or(0, |moved| (*moved).min(bytes.len()));
        self.observer.control(setup, &bytes[..moved], ended(&made));
        made
    }

    fn clear_halt(&mut self, endpoint: EndpointAddress) -> Result<(), D::Error> {
        let made = self.door.clear_halt(endpoint);
        // ENDPOINT_HALT is feature 0 (USB 3.2 table 9-7).
        let words = (0, u8::from(endpoint).into());
        self.tell_request(Recipient::Endpoint, StandardRequest::ClearFeature, words, &made);
        made
    }

    fn reset(&mut self) -> Result<(), D::Error> {
        self.door.reset()
    }

    fn close(self) -> Result<(), D::Error> {
        self.door.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    /// A door onto nothing: what is submitted ends when it is asked for, with the bytes of the cell.
    #[derive(Debug, Default)]
    struct Nothing {
        memory: [u8; 16],
        ended: VecDeque<Completion>,
    }

    #[derive(Debug)]
    struct Stalled;

    impl std::fmt::Display for Stalled {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("stalled")
        }
    }

    impl std::error::Error for Stalled {}

    impl DoorError for Stalled {
        fn is_stall(&self) -> bool {
            true
        }

        fn is_disconnect(&self) -> bool {
            false
        }
    }

    impl BusDoor for Nothing {
        type Error = Stalled;

        fn bytes(&mut self, _cell: CellId) -> Option<&mut [u8]> {
            Some(&mut self.memory)
        }

        fn copy_out(&self, _cell: CellId, range: ByteRange, into: &mut [u8]) -> usize {
            let from = &self.memory[range.as_usize()];
            let len = from.len().min(into.len());
            into[..len].copy_from_slice(&from[..len]);
            len
        }

        fn copy_in(&mut self, _cell: CellId, _range: ByteRange, _from: &[u8]) -> usize {
            0
        }

        fn copy_across(&mut self, _from: (CellId, ByteRange), _to: (CellId, ByteRange)) -> usize {
            0
        }

        fn is_zero_copy(&self) -> bool {
            true
        }

        fn submit(&mut self, order: Order) {
            let actual = order.range.len - 1;
            self.ended.push_back(Completion { id: order.id, status: TransferStatus::Short, actual });
        }

        fn cancel(&mut self, _id: TransferId) {}

        fn poll(&mut self) -> Option<Completion> {
            self.ended.pop_front()
        }

        fn reap(&mut self) -> Result<bool, Stalled> {
            Ok(true)
        }

        fn wait(&mut self, _limit: Option<Duration>) -> Result<Readiness, Stalled> {
            Ok(Readiness::Ready)
        }

        fn is_gone(&self) -> bool {
            false
        }

        fn take_fault(&mut self) -> Option<Stalled> {
            None
        }

        fn select_alternate(&mut self, _alternate: u8) -> Result<(), Stalled> {
            Ok(())
        }

        fn allocate_streams(
            &mut self,
            _endpoints: [EndpointAddress; 3],
            wanted: u16,
        ) -> Result<u16, Stalled> {
            Ok(wanted)
        }

        fn control(&mut self, _setup: SetupPacket, _bytes: &mut [u8]) -> Result<usize, Stalled> {
            Err(Stalled)
        }

        fn clear_halt(&mut self, _endpoint: EndpointAddress) -> Result<(), Stalled> {
            Ok(())
        }

        fn reset(&mut self) -> Result<(), Stalled> {
            Ok(())
        }

        fn close(self) -> Result<(), Stalled> {
            Ok(())
        }
    }

    /// Notes what it is told, a line each.
    #[derive(Clone, Debug, Default)]
    struct Notes(Arc<Mutex<Vec<String>>>);

    impl Notes {
        fn add(&self, line: String) {
            self.0.lock().expect("nobody has failed with it").push(line);
        }
    }

    impl Observer for Notes {
        fn snap(&self) -> usize {
            2
        }

        fn submitted(&mut self, id: u64, pipe: Pipe, length: u32, bytes: &[u8]) {
            self.add(format!("{id} begins at {}: {length}, {bytes:?}", u8::from(pipe.endpoint)));
        }

        fn completed(&mut self, id: u64, _pipe: Pipe, (status, actual): (TransferStatus, u32), bytes: &[u8]) {
            self.add(format!("{id} ends: {status:?} {actual}, {bytes:?}"));
        }

        fn control(&mut self, setup: SetupPacket, bytes: &[u8], status: TransferStatus) {
            self.add(format!("{:02x?} {bytes:?} {status:?}", setup.encode()));
        }
    }

    fn watched() -> (Watched<Nothing>, Notes) {
        let notes = Notes::default();
        let door = Nothing { memory: std::array::from_fn(|at| at as u8), ..Nothing::default() };
        let read = Enumerated { device: &[18, 1], configuration: &[9, 2, 3], value: 1 };
        (Watched::new(door, 4, Box::new(notes.clone()), &read), notes)
    }

    fn told(notes: &Notes) -> Vec<String> {
        std::mem::take(&mut notes.0.lock().expect("nobody has failed with it"))
    }

    fn order(id: u64, endpoint: EndpointAddress) -> Order {
        let (pipe, range) = (Pipe::plain(endpoint), ByteRange::new(4, 8));
        Order { id: TransferId(id), pipe, cell: CellId::default(), range }
    }

    #[test]
    fn what_was_read_before_is_told_first() {
        assert_eq!(
            told(&watched().1),
            [
                "[80, 06, 00, 01, 00, 00, 02, 00] [18, 1] Done",
                "[80, 06, 00, 02, 00, 00, 03, 00] [9, 2, 3] Done",
                "[00, 09, 01, 00, 00, 00, 00, 00] [] Done",
            ]
        );
    }

    #[test]
    fn bytes_go_with_the_beginning_or_come_with_the_end_and_no_more_than_wanted() {
        let (mut door, notes) = watched();
        told(&notes);
        door.submit(order(1, EndpointAddress::at::<2>(Direction::Out)));
        door.submit(order(2, EndpointAddress::at::<1>(Direction::In)));
        assert!(door.poll().is_some() && door.poll().is_some() && door.poll().is_none());
        assert_eq!(
            told(&notes),
            [
                "1 begins at 2: 8, [4, 5]",
                "2 begins at 129: 8, []",
                "1 ends: Short 7, []",
                "2 ends: Short 7, [4, 5]"
            ]
        );
    }

    #[test]
    fn what_the_kernel_asks_for_us_is_told_as_a_request() {
        let (mut door, notes) = watched();
        told(&notes);
        door.select_alternate(1).expect("it is taken");
        door.clear_halt(EndpointAddress::at::<1>(Direction::In)).expect("it is taken");
        let setup = SetupPacket::decode(&[0xa1, 0xfe, 0, 0, 4, 0, 1, 0]).expect("it is one");
        door.control(setup, &mut [0]).expect_err("it stalls");
        assert_eq!(
            told(&notes),
            [
                "[01, 0b, 01, 00, 04, 00, 00, 00] [] Done",
                "[02, 01, 00, 00, 81, 00, 00, 00] [] Done",
                "[a1, fe, 00, 00, 04, 00, 01, 00] [] Stall",
            ]
        );
    }
}
