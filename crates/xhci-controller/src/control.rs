//! Control transfers: setup, data, status, three TDs on the ring of endpoint 0 (xHCI 1.2 clauses
//! 4.11.2.2 and 4.9.2.4).
//!
//! The stages are fetched together, and the whole transfer goes to the device as one
//! [`Output::Control`]. Not modelled: packets of endpoint 0; the owner adds their time.
//!
//! Invariant: answers to stopped transfers and from detached devices are ignored.

use super::memory::{Fault, GuestMemory};
use super::output::{ControlAnswer, ControlId, ControlRequest, Output};
use super::payload::{gather, scatter};
use super::ring::{Act, EventFields, Ring};
use super::slot::RingName;
use super::transfer::Transfers;
use alloc::vec::Vec;
use units::Instant;
use wire::usb::{Direction, RequestKind, SetupPacket, StandardRequest};
use wire::xhci::{CompletionCode as Code, EndpointId, EndpointState, TransferKind};

/// The stages at the head of a control ring.
enum Stages {
    /// Not all of it is there.
    Incomplete,
    /// All, in this many TDs.
    Whole(SetupPacket, u32),
    /// They do not go together.
    Wrong,
}

impl Transfers {
    /// Starts the next control transfer, if it is complete and none is in progress. Returns whether
    /// no-op TDs were passed.
    pub(super) fn start_control(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        to: RingName,
    ) -> Result<bool, Fault> {
        let Self { slots, events, dma, model, .. } = self;
        let slot = &mut slots[to.slot];
        let path = slot.path;
        let Some(endpoint) = slot.endpoint_mut(to.endpoint) else { return Ok(false) };
        let Some(ring) = endpoint.rings.first_mut().filter(|ring| ring.on_link == 0) else {
            return Ok(false);
        };
        let mut has_passed = false;
        while ring.first().is_some_and(|td| !td.moves) {
            ring.advance(0, true, |emit| {
                events.post(dma.write_event(now, model), emit.event(to.slot, to.endpoint));
            });
            has_passed = true;
        }
        match stages(ring) {
            Stages::Incomplete => {}
            Stages::Wrong => {
                self.fail(now, memory, to, Code::TrbError, EndpointState::Error)?;
                has_passed = false;
            }
            Stages::Whole(setup, count) => {
                ring.on_link = count;
                let mut data_out = Vec::new();
                if count == 3 && setup.direction == Direction::Out {
                    gather(memory, ring, 1, 0..setup.length.into(), &mut data_out);
                }
                let number = ring.first().map_or(0, |td| td.number);
                let id = ControlId { slot: to.slot, number };
                let request = ControlRequest { id, setup, data_out };
                self.outputs.push_back(Output::Control(path, request));
            }
        }
        Ok(has_passed)
    }

    /// Handles the device's answer to a control transfer of the driver.
    pub(super) fn handle_control(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        ControlId { slot, number }: ControlId,
        answer: &ControlAnswer,
    ) -> Result<(), Fault> {
        let to = RingName { slot, endpoint: EndpointId::CONTROL, stream: 0 };
        let model = self.model;
        let Some(endpoint) = self.slots.endpoint_mut(to.endpoint_name()) else { return Ok(()) };
        let rules = endpoint.rules(&model);
        let is_it = |ring: &&mut Ring| ring.on_link > 0 && ring.first().is_some_and(|td| td.number == number);
        let Some(ring) = endpoint.rings.first_mut().filter(is_it) else {
            self.counters.stale_progress += 1;
            return Ok(());
        };
        let at = now + self.model.attachment.memory_write;
        let has_data = ring.on_link == 3;
        let events = &mut self.events;
        let mut emit = |emit: EventFields| events.post(at, emit.event(slot, to.endpoint));
        let code = match answer {
            ControlAnswer::Done(_) => None,
            ControlAnswer::Stalled => Some(Code::StallError),
            ControlAnswer::Silent => Some(Code::UsbTransactionError),
        };
        if code != Some(Code::UsbTransactionError) {
            ring.advance(0, true, &mut emit);
        }
        if let Some(code) = code {
            ring.on_link = 0;
            return self.fail(now, memory, to, code, EndpointState::Halted);
        }
        let ControlAnswer::Done(data_in) = answer else { return Ok(()) };
        if has_data {
            let (bytes, is_in) = ring.first().map_or((0, false), |td| {
                (td.bytes, matches!(td.step.act, Act::ControlData(_, Direction::In)))
            });
            let came = if is_in { (data_in.len() as u32).min(bytes) } else { bytes };
            if is_in {
                scatter(memory, ring, 0, data_in.get(..came as usize).unwrap_or_default())?;
            }
            match came == bytes {
                true => ring.advance(came, true, &mut emit),
                false => ring.cut(came, rules, &mut emit),
            }
        }
        ring.advance(0, true, &mut emit);
        ring.on_link = 0;
        self.fetch(now, memory, to)
    }
}

fn stages(ring: &Ring) -> Stages {
    let act = |place: usize| ring.td(place).map(|td| td.step.act);
    match (act(0), act(1), act(2)) {
        (None, ..) => Stages::Incomplete,
        (Some(Act::Setup(setup, _)), ..) if is_set_address(setup) => Stages::Wrong,
        (Some(Act::Setup(setup, TransferKind::NoData)), Some(Act::Status(Direction::In)), _)
            if setup.length == 0 =>
        {
            Stages::Whole(setup, 2)
        }
        (Some(Act::Setup(_, TransferKind::NoData)), None, _) => Stages::Incomplete,
        (Some(Act::Setup(_, TransferKind::Data(_))), None, _)
        | (Some(Act::Setup(_, TransferKind::Data(_))), Some(Act::ControlData(..)), None) => {
            Stages::Incomplete
        }
        (
            Some(Act::Setup(setup, TransferKind::Data(direction))),
            Some(Act::ControlData(_, moves)),
            Some(Act::Status(against)),
        ) if direction == moves && direction != against && setup.direction == direction => {
            Stages::Whole(setup, 3)
        }
        _ => Stages::Wrong,
    }
}

/// The controller itself sends SET_ADDRESS; a driver must not (clause 4.6.5).
fn is_set_address(setup: SetupPacket) -> bool {
    setup.kind == RequestKind::Standard && setup.standard() == Some(StandardRequest::SetAddress)
}
