//! A driver on a scripted controller, with a device at port 3.

extern crate std;

use super::Machine;
use crate::Controller;
use crate::types::{
    Answer, Config, ControlTransfer, DeviceId, EndpointPlan, Location, Output, Refusal, Request, RequestId,
    Transfer,
};
use bus::{Completion, Direction, EndpointAddress, Pipe, StreamId, TransferId, TransferStatus};
use std::vec::Vec;
use units::{Duration, Instant};
use wire::usb::{EndpointDescriptor, SuperSpeedCompanion};
use wire::xhci::{CompletionCode, EndpointId, EventTrb, RouteString};

/// Bulk IN 1, the third endpoint context.
pub(crate) fn bulk_in() -> EndpointAddress {
    EndpointAddress::at::<1>(Direction::In)
}

/// Bulk OUT 2, the fourth endpoint context.
pub(crate) fn bulk_out() -> EndpointAddress {
    EndpointAddress::at::<2>(Direction::Out)
}

pub(crate) struct Fixture {
    pub(crate) hw: Machine,
    pub(crate) xhci: Controller,
    pub(crate) now: Instant,
}

impl Fixture {
    pub(crate) fn new(config: Config) -> Self {
        let mut fixture = Self { hw: Machine::default(), xhci: Controller::new(config), now: Instant::ZERO };
        fixture.xhci.start(&mut fixture.hw, fixture.now);
        assert_eq!(fixture.outputs(), [Output::Running]);
        fixture
    }

    /// With a device that has a bulk endpoint each way, with 16 streams if they are allocated.
    pub(crate) fn with_device(config: Config) -> (Self, DeviceId) {
        let mut fixture = Self::new(config);
        let device = fixture.attach();
        let plan = |address| EndpointPlan {
            descriptor: EndpointDescriptor::bulk(address, 1024),
            companion: Some(SuperSpeedCompanion::bulk(15, 4)),
        };
        let add = Vec::from([plan(bulk_in()), plan(bulk_out())]);
        let answer = fixture.ask(Request::Configure { device, add, drop: Vec::new() });
        assert_eq!(answer, Ok(Answer::Done));
        fixture.hw.commands.clear();
        (fixture, device)
    }

    pub(crate) fn attach(&mut self) -> DeviceId {
        self.hw.plug(3, true);
        self.interrupt();
        self.attach_only()
    }

    /// The same, with somebody at the port already.
    pub(crate) fn attach_only(&mut self) -> DeviceId {
        let location = Location {
            root_port: 3,
            route: RouteString::ROOT,
            speed_id: 4,
            translator: None,
            control_packet: 512,
        };
        match self.ask(Request::Attach(location)) {
            Ok(Answer::Attached(device)) => device,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn interrupt(&mut self) {
        for _ in 0..8 {
            self.xhci.handle_interrupt(&mut self.hw, self.now);
        }
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        self.xhci.handle_timeout(&mut self.hw, self.now);
        self.interrupt();
    }

    pub(crate) fn outputs(&mut self) -> Vec<Output> {
        core::iter::from_fn(|| self.xhci.poll_output()).collect()
    }

    /// The completions among the outputs.
    pub(crate) fn completions(&mut self) -> Vec<(u64, TransferStatus, u32)> {
        let outputs = self.outputs().into_iter();
        let completed = outputs.filter_map(|output| match output {
            Output::Completed(_, Completion { id, status, actual }) => Some((id.0, status, actual)),
            _ => None,
        });
        completed.collect()
    }

    /// Makes a request and takes its answer.
    pub(crate) fn ask(&mut self, request: Request) -> Result<Answer, Refusal> {
        self.xhci.request(&mut self.hw, self.now, RequestId(7), request)?;
        self.interrupt();
        let answered = self.outputs().into_iter().find_map(|output| match output {
            Output::Answered(RequestId(7), answer) => Some(answer),
            _ => None,
        });
        Ok(answered.expect("an answer"))
    }

    /// Reports to the driver that the device has cleared bulk IN 1. The answer is among later
    /// outputs.
    pub(crate) fn clear(&mut self, device: DeviceId) {
        let request = Request::ResetToggle(device, bulk_in());
        self.xhci.request(&mut self.hw, self.now, RequestId(7), request).expect("it can be cleared");
        self.interrupt();
    }

    pub(crate) fn submit(
        &mut self,
        device: DeviceId,
        pipe: Pipe,
        (id, length): (u64, u32),
    ) -> Result<(), Refusal> {
        let transfer = Transfer { id: TransferId(id), device, pipe, buffer: 0x100_0000, length };
        self.xhci.submit(&mut self.hw, &transfer)
    }

    pub(crate) fn control(&mut self, device: DeviceId, id: u64, setup: [u8; 8]) -> Result<(), Refusal> {
        let transfer =
            ControlTransfer { id: TransferId(id), device, setup: setup.into(), buffer: 0x100_0000 };
        self.xhci.submit_control(&mut self.hw, &transfer)
    }

    pub(crate) fn cancel(&mut self, device: DeviceId, pipe: Pipe, id: u64) {
        self.xhci.cancel(&mut self.hw, self.now, device, pipe, TransferId(id));
    }

    /// The TRBs that wait on a pipe.
    pub(crate) fn trbs(&mut self, device: DeviceId, pipe: Pipe) -> Vec<(u64, wire::xhci::TransferTrb)> {
        self.hw.trbs(device.slot(), EndpointId::of(pipe.endpoint), pipe.stream.map_or(0, StreamId::get))
    }

    /// An event for a TRB of an endpoint.
    pub(crate) fn event(
        &mut self,
        device: DeviceId,
        at: EndpointAddress,
        (pointer, code, length): (u64, u8, u32),
    ) {
        self.hw.post(EventTrb::Transfer {
            pointer,
            length,
            code: CompletionCode::from(code),
            event_data: false,
            endpoint: Some(EndpointId::of(at)),
            slot: device.slot(),
        });
        self.interrupt();
    }
}
