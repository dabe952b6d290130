//! The host bus to one interface of a device behind a controller driven by this crate.
//!
//! Always true: buffers are unmapped only when no transfer uses them, or when the device has lost
//! its slot.

use super::device::{HostedDevice, plans};
use super::error::ControllerError;
use super::inner::CANCEL_LIMIT;
use crate::host_bus::{
    BufferBlock, BufferId, BufferMemory, BufferSpan, HardwareBus, HostBus, Readiness, TransferRequest, answer,
};
use crate::vfio::SharedBuffers;
use bus::{Completion, EndpointAddress, Pipe, TransferId, TransferStatus};
use initiator::{BusAnswer, BusRequest, RequestId};
use std::collections::VecDeque;
use std::time::Duration;
use wire::usb::SetupPacket;
use xhci_driver::{Answer, Refusal, Request, Transfer};

/// One interface of a configured device.
#[derive(Debug)]
pub struct HostedInterface {
    device: HostedDevice,
    interface: u8,
    /// Endpoints of the current setting.
    endpoints: Vec<EndpointAddress>,
    streams: Vec<EndpointAddress>,
    memory: SharedBuffers,
    /// By transfer id.
    in_flight_table: Vec<Option<InFlight>>,
    in_flight: usize,
    completions: VecDeque<Completion>,
    fault: Option<ControllerError>,
}

/// A transfer in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    pipe: Pipe,
    buffer: BufferId,
}

impl HostedInterface {
    /// Configures a device with alternate setting 0 of an interface, and allocates buffers; returns
    /// the first buffer of each block. Buffers have successive ids.
    ///
    /// # Errors
    ///
    /// Why it failed.
    pub fn open<const BLOCKS: usize>(
        device: HostedDevice,
        interface: u8,
        blocks: [BufferBlock; BLOCKS],
    ) -> Result<(Self, [BufferId; BLOCKS]), ControllerError> {
        device.configure(interface)?;
        let mut bus = Self {
            device,
            interface,
            endpoints: Vec::new(),
            streams: Vec::new(),
            memory: SharedBuffers::default(),
            in_flight_table: Vec::new(),
            in_flight: 0,
            completions: VecDeque::new(),
            fault: None,
        };
        bus.endpoints = bus.endpoints_of(0)?;
        let mut firsts = [BufferId::default(); BLOCKS];
        for (first, BufferBlock { count, bytes }) in firsts.iter_mut().zip(blocks) {
            let length = SharedBuffers::bytes_for(count, bytes);
            let memory = bus.device.inner.borrow_mut().hardware.function.share(length)?;
            *first = bus.memory.add(memory, count, bytes);
        }
        Ok((bus, firsts))
    }

    /// Returns the device.
    pub const fn device(&self) -> &HostedDevice {
        &self.device
    }

    /// Returns the number of transfers in flight.
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn endpoints_of(&self, alternate: u8) -> Result<Vec<EndpointAddress>, ControllerError> {
        let setting = self.device.setting(self.interface, alternate)?;
        Ok(plans(setting).iter().map(|plan| plan.descriptor.address).collect())
    }

    /// Collects completions of the device; returns whether there were any.
    fn collect(&mut self) -> bool {
        let mut any = false;
        loop {
            let completion = self.device.inner.borrow_mut().take(self.device.id);
            let Some(completion) = completion else { return any };
            let slot = self.in_flight_table.get_mut(completion.id.0 as usize);
            let Some(InFlight { buffer, .. }) = slot.and_then(Option::take) else { continue };
            any = true;
            self.in_flight -= 1;
            self.memory.buffers().end_transfer(buffer);
            self.completions.push_back(completion);
        }
    }

    fn control(
        &mut self,
        action: &'static str,
        setup: SetupPacket,
        bytes: &mut [u8],
    ) -> Result<usize, ControllerError> {
        self.device.inner.borrow_mut().control(self.device.id, action, setup, bytes)
    }

    /// Sends a transport request that is one control transfer without data.
    fn send(&mut self, action: &'static str, request: BusRequest) -> Result<(), ControllerError> {
        let setup = request.setup().ok_or(ControllerError::Stalled { action })?;
        self.control(action, setup, &mut []).map(drop)
    }

    fn is_busy(&self, endpoint: EndpointAddress) -> bool {
        self.in_flight_table.iter().flatten().any(|transfer| transfer.pipe.endpoint == endpoint)
    }

    /// Ends all transfers, so that buffers can be freed.
    fn end_all(&mut self) {
        for (id, transfer) in (0..).map(TransferId).zip(&self.in_flight_table) {
            if let Some(InFlight { pipe, .. }) = transfer {
                self.device.inner.borrow_mut().cancel(self.device.id, *pipe, id);
            }
        }
        for dismiss in [false, true] {
            if dismiss {
                self.device.inner.borrow_mut().dismiss(self.device.id);
            }
            let until = std::time::Instant::now() + CANCEL_LIMIT;
            while self.in_flight > 0 && std::time::Instant::now() < until {
                let turned = self.device.inner.borrow_mut().turn(CANCEL_LIMIT);
                self.collect();
                if turned.is_err() {
                    // The controller has halted: it writes nothing any more.
                    return;
                }
            }
        }
    }
}

impl BufferMemory for HostedInterface {
    fn bytes(&mut self, buffer: BufferId) -> Option<&mut [u8]> {
        self.memory.buffers().bytes(buffer)
    }

    fn copy_out(&self, from: BufferSpan, into: &mut [u8]) -> usize {
        self.memory.buffers_ref().copy_out(from, into)
    }

    fn copy_in(&mut self, into: BufferSpan, from: &[u8]) -> usize {
        self.memory.buffers().copy_in(into, from)
    }

    fn copy_across(&mut self, from: BufferSpan, into: BufferSpan) -> usize {
        self.memory.buffers().copy_across(from, into)
    }
}

impl HostBus for HostedInterface {
    type Buffers = Self;

    fn buffers(&mut self) -> &mut Self {
        self
    }

    fn submit(&mut self, request: TransferRequest) -> Option<Completion> {
        let TransferRequest { id, pipe, span, .. } = request;
        let failed = |status| Some(Completion { id, status, actual: 0 });
        let Some(address) = self.memory.start_transfer(span) else { return failed(TransferStatus::Error) };
        let transfer = Transfer { id, device: self.device.id, pipe, buffer: address, length: span.range.len };
        let taken = self.device.inner.borrow_mut().submit(&transfer);
        if let Err(refusal) = taken {
            self.memory.buffers().end_transfer(span.buffer);
            if refusal == Refusal::Gone {
                return failed(TransferStatus::Disconnected);
            }
            self.fault = Some(ControllerError::Refused { action: "submit a transfer", refusal });
            return failed(TransferStatus::Error);
        }
        let index = id.0 as usize;
        if index >= self.in_flight_table.len() {
            self.in_flight_table.resize(index + 1, None);
        }
        self.in_flight_table[index] = Some(InFlight { pipe, buffer: span.buffer });
        self.in_flight += 1;
        None
    }

    fn cancel(&mut self, id: TransferId) {
        if let Some(Some(InFlight { pipe, .. })) = self.in_flight_table.get(id.0 as usize) {
            self.device.inner.borrow_mut().cancel(self.device.id, *pipe, id);
        }
        self.collect();
    }

    fn poll(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    fn request(&mut self, _id: RequestId, request: BusRequest) -> Option<BusAnswer> {
        Some(answer(self, request))
    }

    fn is_gone(&self) -> bool {
        self.device.is_gone()
    }
}

impl HardwareBus for HostedInterface {
    type Error = ControllerError;

    fn is_zero_copy(&self) -> bool {
        true
    }

    fn reap(&mut self) -> Result<bool, ControllerError> {
        if !self.device.inner.borrow().has_completions(self.device.id) {
            match self.device.inner.borrow_mut().turn(Duration::ZERO) {
                Ok(_) | Err(ControllerError::Died(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let any = self.collect();
        if !any && self.in_flight == 0 && self.is_gone() {
            return Err(ControllerError::Disconnected);
        }
        Ok(any)
    }

    fn wait(&mut self, limit: Option<Duration>) -> Result<Readiness, ControllerError> {
        let limit = limit.unwrap_or(Duration::from_secs(1));
        if !self.completions.is_empty() || self.device.inner.borrow().has_completions(self.device.id) {
            return Ok(Readiness::Ready);
        }
        self.device.inner.borrow_mut().turn(limit)
    }

    fn take_fault(&mut self) -> Option<ControllerError> {
        self.fault.take()
    }

    /// The controller first, as in Linux: what it has no bandwidth for must not be chosen.
    fn select_alternate(&mut self, alternate: u8) -> Result<(), ControllerError> {
        let add = plans(self.device.setting(self.interface, alternate)?);
        let endpoints = add.iter().map(|plan| plan.descriptor.address).collect();
        let device = self.device.id;
        let change = Request::Configure { device, add, drop: self.endpoints.clone() };
        self.device.ask("change endpoints", change)?;
        (self.endpoints, self.streams) = (endpoints, Vec::new());
        let interface = self.interface;
        let action = "select the alternate setting";
        self.send(action, BusRequest::SelectAlternate { interface, alternate })
    }

    fn allocate_streams(
        &mut self,
        endpoints: [EndpointAddress; 3],
        wanted: u16,
    ) -> Result<u16, ControllerError> {
        let action = "allocate streams";
        let device = self.device.id;
        let request = Request::AllocateStreams { device, endpoints: endpoints.to_vec(), wanted };
        match self.device.ask(action, request)? {
            Answer::Streams(count) => {
                self.streams = endpoints.to_vec();
                Ok(count)
            }
            answer => Err(ControllerError::Unanswered { action, answer }),
        }
    }

    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, ControllerError> {
        Self::control(self, "perform a control transfer", setup, bytes)
    }

    /// The driver holds transfers of other streams until the device's end is cleared.
    fn clear_halt(&mut self, endpoint: EndpointAddress) -> Result<(), ControllerError> {
        if self.is_busy(endpoint) && !self.streams.contains(&endpoint) {
            return Err(ControllerError::Busy);
        }
        self.send("clear a halt", BusRequest::ClearHalt(endpoint))?;
        self.device.ask("reset a data toggle", Request::ResetToggle(self.device.id, endpoint)).map(drop)
    }

    fn reset(&mut self) -> Result<(), ControllerError> {
        let reset = self.device.reset();
        self.collect();
        reset?;
        self.streams = Vec::new();
        self.device.configure(self.interface)?;
        self.endpoints = self.endpoints_of(0)?;
        Ok(())
    }

    /// Frees the slot of the device; it had no previous owner.
    fn close(self) -> Result<(), ControllerError> {
        Ok(())
    }
}

impl Drop for HostedInterface {
    fn drop(&mut self) {
        self.end_all();
        let memory = std::mem::take(&mut self.memory).into_areas();
        let mut inner = self.device.inner.borrow_mut();
        memory.into_iter().for_each(|area| inner.hardware.function.unshare(area));
    }
}
