//! A host bus whose transfers are observed: for `uaskit bench --capture`.
//!
//! All calls are forwarded; submissions and completions are reported with as many bytes as the
//! observer wants. Requests made before the bus was opened (descriptors, the configuration) are
//! reported first, so that a reader knows the endpoints. Settings and cleared halts, which the
//! kernel requests, are reported as the control requests they are. Left out: what a port reset does
//! on the wire.
//!
//! Always true: nothing is delayed or changed; a transfer reported as submitted is reported as
//! completed.

use super::{BufferMemory, HardwareBus, HostBus, HostBusError, Readiness, TransferRequest, answer};
use bus::{Completion, Direction, EndpointAddress, Observer, TransferId, TransferStatus};
use initiator::{BusAnswer, BusRequest, RequestId};
use std::time::Duration;
use wire::usb::{DescriptorKind, Recipient, SetupPacket, StandardRequest};

/// A host bus and its observer.
#[derive(Debug)]
pub struct ObservedBus<D> {
    bus: D,
    observer: Box<dyn Observer>,
    /// The number of its interface.
    interface: u8,
    in_flight_table: Vec<TransferRequest>,
    /// The bytes shown to the observer.
    shown: Vec<u8>,
}

/// Descriptors that the kernel has read of a device.
#[derive(Clone, Copy, Debug)]
pub struct Enumerated<'a> {
    /// The device descriptor.
    pub device: &'a [u8],
    /// The active configuration, whole.
    pub configuration: &'a [u8],
    /// Its value.
    pub value: u8,
}

impl<D: HardwareBus> ObservedBus<D> {
    /// Starts to observe a bus.
    pub fn new(bus: D, interface: u8, observer: Box<dyn Observer>, read: &Enumerated<'_>) -> Self {
        let mut observed = Self { bus, observer, interface, in_flight_table: Vec::new(), shown: Vec::new() };
        observed.report_descriptor(DescriptorKind::Device, read.device);
        observed.report_descriptor(DescriptorKind::Configuration, read.configuration);
        let done: Result<(), D::Error> = Ok(());
        let set = StandardRequest::SetConfiguration;
        observed.report_request(Recipient::Device, set, read.value.into(), 0, &done);
        observed
    }

    /// Stops to observe, and returns the bus.
    pub fn into_inner(self) -> D {
        self.bus
    }

    fn report_descriptor(&mut self, kind: DescriptorKind, bytes: &[u8]) {
        let setup = SetupPacket::get_descriptor(kind, 0, bytes.len() as u16);
        self.observer.control(setup, bytes, TransferStatus::Done);
    }

    /// Reports a request without data that the kernel made.
    fn report_request(
        &mut self,
        recipient: Recipient,
        request: StandardRequest,
        value: u16,
        index: u16,
        made: &Result<(), D::Error>,
    ) {
        let setup = SetupPacket { index, ..SetupPacket::of_standard(recipient, request, value) };
        self.observer.control(setup, &[], ended(made));
    }

    /// Copies the bytes of a transfer that the observer wants.
    fn show(&mut self, request: &TransferRequest, len: u32) {
        let span = request.span.first(len);
        let wanted = (span.range.len as usize).min(self.observer.snap());
        self.shown.resize(wanted, 0);
        let copied = self.bus.buffers().copy_out(span, &mut self.shown);
        self.shown.truncate(copied);
    }

    fn report_completion(&mut self, request: &TransferRequest, completion: &Completion) {
        let &Completion { id, status, actual } = completion;
        match request.pipe.endpoint.direction() {
            Direction::In => self.show(request, actual),
            Direction::Out => self.shown.clear(),
        }
        self.observer.completed(id.0, request.pipe, status, actual, &self.shown);
    }
}

/// How a request ended.
fn ended<T, E: HostBusError>(made: &Result<T, E>) -> TransferStatus {
    match made {
        Ok(_) => TransferStatus::Done,
        Err(error) if error.is_stall() => TransferStatus::Stall,
        Err(error) if error.is_disconnect() => TransferStatus::Disconnected,
        Err(_) => TransferStatus::Error,
    }
}

impl<D: HardwareBus> HostBus for ObservedBus<D> {
    type Buffers = D::Buffers;

    fn buffers(&mut self) -> &mut D::Buffers {
        self.bus.buffers()
    }

    fn submit(&mut self, request: TransferRequest) -> Option<Completion> {
        let TransferRequest { id, pipe, span, .. } = request;
        match pipe.endpoint.direction() {
            Direction::Out => self.show(&request, span.range.len),
            Direction::In => self.shown.clear(),
        }
        self.observer.submitted(id.0, pipe, span.range.len, &self.shown);
        let completion = self.bus.submit(request);
        match completion {
            Some(completion) => self.report_completion(&request, &completion),
            None => self.in_flight_table.push(request),
        }
        completion
    }

    fn cancel(&mut self, id: TransferId) {
        self.bus.cancel(id);
    }

    fn poll(&mut self) -> Option<Completion> {
        let completion = self.bus.poll()?;
        if let Some(at) = self.in_flight_table.iter().position(|request| request.id == completion.id) {
            let request = self.in_flight_table.swap_remove(at);
            self.report_completion(&request, &completion);
        }
        Some(completion)
    }

    fn request(&mut self, _id: RequestId, request: BusRequest) -> Option<BusAnswer> {
        Some(answer(self, request))
    }

    fn is_gone(&self) -> bool {
        self.bus.is_gone()
    }
}

impl<D: HardwareBus> HardwareBus for ObservedBus<D> {
    type Error = D::Error;

    fn is_zero_copy(&self) -> bool {
        self.bus.is_zero_copy()
    }

    fn reap(&mut self) -> Result<bool, D::Error> {
        self.bus.reap()
    }

    fn wait(&mut self, limit: Option<Duration>) -> Result<Readiness, D::Error> {
        self.bus.wait(limit)
    }

    fn take_fault(&mut self) -> Option<D::Error> {
        self.bus.take_fault()
    }

    fn select_alternate(&mut self, alternate: u8) -> Result<(), D::Error> {
        let made = self.bus.select_alternate(alternate);
        self.report_request(
            Recipient::Interface,
            StandardRequest::SetInterface,
            alternate.into(),
            self.interface.into(),
            &made,
        );
        made
    }

    fn allocate_streams(&mut self, endpoints: [EndpointAddress; 3], wanted: u16) -> Result<u16, D::Error> {
        self.bus.allocate_streams(endpoints, wanted)
    }

    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, D::Error> {
        let made = self.bus.control(setup, bytes);
        let moved = made.as_ref().map_or(0, |moved| (*moved).min(bytes.len()));
        self.observer.control(setup, &bytes[..moved], ended(&made));
        made
    }

    fn clear_halt(&mut self, endpoint: EndpointAddress) -> Result<(), D::Error> {
        let made = self.bus.clear_halt(endpoint);
        // ENDPOINT_HALT is feature 0 (USB 3.2 table 9-7).
        self.report_request(
            Recipient::Endpoint,
            StandardRequest::ClearFeature,
            0,
            u8::from(endpoint).into(),
            &made,
        );
        made
    }

    fn reset(&mut self) -> Result<(), D::Error> {
        self.bus.reset()
    }

    fn close(self) -> Result<(), D::Error> {
        self.bus.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_bus::{BufferBlock, BufferId, BufferSpan};
    use bus::Pipe;
    use initiator::session::HeapBuffers;
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};
    use units::ByteRange;

    /// A bus onto nothing: what is submitted ends when it is asked for, with the bytes of the
    /// buffer.
    #[derive(Debug, Default)]
    struct Nothing {
        buffers: HeapBuffers,
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

    impl HostBusError for Stalled {
        fn is_stall(&self) -> bool {
            true
        }

        fn is_disconnect(&self) -> bool {
            false
        }
    }

    impl HostBus for Nothing {
        type Buffers = HeapBuffers;

        fn buffers(&mut self) -> &mut HeapBuffers {
            &mut self.buffers
        }

        fn submit(&mut self, request: TransferRequest) -> Option<Completion> {
            let actual = request.span.range.len - 1;
            self.ended.push_back(Completion { id: request.id, status: TransferStatus::Short, actual });
            None
        }

        fn poll(&mut self) -> Option<Completion> {
            self.ended.pop_front()
        }

        fn request(&mut self, _id: RequestId, request: BusRequest) -> Option<BusAnswer> {
            Some(answer(self, request))
        }
    }

    impl HardwareBus for Nothing {
        type Error = Stalled;

        fn is_zero_copy(&self) -> bool {
            true
        }

        fn reap(&mut self) -> Result<bool, Stalled> {
            Ok(true)
        }

        fn wait(&mut self, _limit: Option<Duration>) -> Result<Readiness, Stalled> {
            Ok(Readiness::Ready)
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

    /// Notes what it is reported, a line each.
    #[derive(Clone, Debug, Default)]
    struct Notes(Arc<Mutex<Vec<String>>>);

    impl Notes {
        fn add(&self, line: String) {
            self.0.lock().expect("no test thread panics with the lock").push(line);
        }
    }

    impl Observer for Notes {
        fn snap(&self) -> usize {
            2
        }

        fn submitted(&mut self, id: u64, pipe: Pipe, length: u32, bytes: &[u8]) {
            self.add(format!("{id} begins at {}: {length}, {bytes:?}", u8::from(pipe.endpoint)));
        }

        fn completed(&mut self, id: u64, _pipe: Pipe, status: TransferStatus, actual: u32, bytes: &[u8]) {
            self.add(format!("{id} ends: {status:?} {actual}, {bytes:?}"));
        }

        fn control(&mut self, setup: SetupPacket, bytes: &[u8], status: TransferStatus) {
            self.add(format!("{:02x?} {bytes:?} {status:?}", setup.encode()));
        }
    }

    fn observed() -> (ObservedBus<Nothing>, Notes) {
        let notes = Notes::default();
        let mut bus = Nothing::default();
        let [buffer] = bus.buffers.allocate([BufferBlock { count: 1, bytes: 16 }]);
        let span = BufferSpan { buffer, range: ByteRange::new(0, 16) };
        bus.buffers.copy_in(span, &std::array::from_fn::<u8, 16, _>(|at| at as u8));
        let read = Enumerated { device: &[18, 1], configuration: &[9, 2, 3], value: 1 };
        (ObservedBus::new(bus, 4, Box::new(notes.clone()), &read), notes)
    }

    fn recorded(notes: &Notes) -> Vec<String> {
        std::mem::take(&mut notes.0.lock().expect("no test thread panics with the lock"))
    }

    fn request(id: u64, endpoint: EndpointAddress) -> TransferRequest {
        let span = BufferSpan { buffer: BufferId::default(), range: ByteRange::new(4, 8) };
        TransferRequest { id: TransferId(id), pipe: Pipe::plain(endpoint), span, is_whole: false }
    }

    #[test]
    fn earlier_requests_are_reported_first() {
        assert_eq!(
            recorded(&observed().1),
            [
                "[80, 06, 00, 01, 00, 00, 02, 00] [18, 1] Done",
                "[80, 06, 00, 02, 00, 00, 03, 00] [9, 2, 3] Done",
                "[00, 09, 01, 00, 00, 00, 00, 00] [] Done",
            ]
        );
    }

    #[test]
    fn out_bytes_are_reported_at_submission_and_in_bytes_at_completion_up_to_the_limit() {
        let (mut bus, notes) = observed();
        recorded(&notes);
        bus.submit(request(1, EndpointAddress::at::<2>(Direction::Out)));
        bus.submit(request(2, EndpointAddress::at::<1>(Direction::In)));
        assert!(bus.poll().is_some() && bus.poll().is_some() && bus.poll().is_none());
        assert_eq!(
            recorded(&notes),
            [
                "1 begins at 2: 8, [4, 5]",
                "2 begins at 129: 8, []",
                "1 ends: Short 7, []",
                "2 ends: Short 7, [4, 5]"
            ]
        );
    }

    #[test]
    fn requests_made_by_the_kernel_are_reported() {
        let (mut bus, notes) = observed();
        recorded(&notes);
        bus.select_alternate(1).expect("it is taken");
        bus.clear_halt(EndpointAddress::at::<1>(Direction::In)).expect("it is taken");
        let setup = SetupPacket::decode(&[0xa1, 0xfe, 0, 0, 4, 0, 1, 0]).expect("it is one");
        bus.control(setup, &mut [0]).expect_err("it stalls");
        assert_eq!(
            recorded(&notes),
            [
                "[01, 0b, 01, 00, 04, 00, 00, 00] [] Done",
                "[02, 01, 00, 00, 81, 00, 00, 00] [] Done",
                "[a1, fe, 00, 00, 04, 00, 01, 00] [] Stall",
            ]
        );
    }
}
