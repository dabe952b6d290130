//! A device in its slot: contexts, endpoints, requests (xHCI 1.2 clauses 4.3, 4.5, 4.6).
//!
//! Always true: memory known to the controller is kept until it has released it; one request at a
//! time.

pub(crate) mod endpoint;
mod spacing;
pub(crate) mod streams;
pub(crate) mod td;

use crate::hardware::{DmaLayout, DmaMemory};
use crate::types::{Answer, DeviceId, RequestId};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bus::{Completion, TransferStatus};
use endpoint::{Endpoint, State};
use wire::xhci::{ContextSize, EndpointId, InputControlContext, SlotContext};

/// A device in a slot. The fields that each transfer needs come first and lie together.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Device {
    pub(crate) id: DeviceId,
    /// It gets its address again.
    pub(crate) is_readdressing: bool,
    /// Its owner knows of it.
    pub(crate) is_attached: bool,
    /// Its slot is being given back.
    pub(crate) is_leaving: bool,
    /// By [`EndpointId`].
    pub(crate) endpoints: [Option<Box<Endpoint>>; EndpointId::MAX as usize + 1],
    pub(crate) slot: SlotContext,
    pub(crate) size: ContextSize,
    /// Where the controller writes.
    pub(crate) output: u64,
    /// Where the driver writes.
    pub(crate) input: u64,
    /// The request in progress.
    pub(crate) request: Option<RequestId>,
    /// The change that it makes when the controller agrees.
    pub(crate) change: Option<Change>,
    /// The request to detach the device, if there is one.
    pub(crate) left_for: Option<RequestId>,
}

/// Endpoints and slot as they will be.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) slot: SlotContext,
    pub(crate) add: Vec<Endpoint>,
    pub(crate) drop: Vec<EndpointId>,
    pub(crate) answer: Answer,
}

impl Device {
    /// A device without endpoints. `None` if there is no memory; nothing is kept then.
    pub(crate) fn allocate(
        hw: &mut impl DmaMemory,
        id: DeviceId,
        slot: SlotContext,
        size: ContextSize,
    ) -> Option<Self> {
        let output = hw.allocate(device_layout(size))?;
        let Some(input) = hw.allocate(input_layout(size)) else {
            hw.release(output, device_layout(size));
            return None;
        };
        Some(Self {
            id,
            slot,
            size,
            output,
            input,
            endpoints: [const { None }; EndpointId::MAX as usize + 1],
            request: None,
            change: None,
            is_readdressing: false,
            is_attached: false,
            is_leaving: false,
            left_for: None,
        })
    }

    /// Gives all memory back; the controller must have released it.
    pub(crate) fn release(&mut self, hw: &mut impl DmaMemory) {
        let coming = self.change.iter_mut().flat_map(|change| &mut change.add);
        let there = self.endpoints.iter_mut().flatten().map(Box::as_mut);
        for endpoint in there.chain(coming) {
            endpoint.release(hw);
        }
        hw.release(self.output, device_layout(self.size));
        hw.release(self.input, input_layout(self.size));
    }

    #[inline]
    pub(crate) fn endpoint(&mut self, id: EndpointId) -> Option<&mut Endpoint> {
        self.endpoints.get_mut(id.index())?.as_deref_mut()
    }

    /// Endpoints are being dropped, or stay after all.
    pub(crate) fn set_states(&mut self, endpoints: &[EndpointId], state: State) {
        for id in endpoints {
            if let Some(endpoint) = self.endpoint(*id) {
                endpoint.state = state;
            }
        }
    }

    /// Ends every transfer.
    pub(crate) fn end_all(&mut self, status: TransferStatus) -> Vec<Completion> {
        self.endpoints.iter_mut().flatten().flat_map(|endpoint| endpoint.end_all(status)).collect()
    }

    /// Where the controller writes the context of an endpoint.
    pub(crate) fn output_of(&self, endpoint: EndpointId) -> u64 {
        self.output + self.size.in_device(Some(endpoint))
    }

    /// The highest endpoint context in use after a change.
    pub(crate) fn context_entries(&self, add: &[Endpoint], drop: &[EndpointId]) -> u8 {
        let stay = self.endpoints.iter().flatten().map(|e| e.id).filter(|id| !drop.contains(id));
        stay.chain(add.iter().map(|e| e.id)).map(EndpointId::get).max().unwrap_or(1)
    }

    /// Writes the input context: what it is about, the slot, some endpoints.
    pub(crate) fn write_input<'a>(
        &self,
        hw: &mut impl DmaMemory,
        control: InputControlContext,
        slot: &SlotContext,
        endpoints: impl Iterator<Item = &'a Endpoint>,
    ) {
        hw.write_bytes(self.input, &control.encode());
        hw.write_bytes(self.input + self.size.in_input(None), &slot.encode());
        for endpoint in endpoints {
            hw.write_bytes(self.input + self.size.in_input(Some(endpoint.id)), &endpoint.context.encode());
        }
    }
}

fn device_layout(size: ContextSize) -> DmaLayout {
    DmaLayout { bytes: size.device_bytes() as u32, align: 64, boundary: 4096 }
}

fn input_layout(size: ContextSize) -> DmaLayout {
    DmaLayout { bytes: size.input_bytes() as u32, align: 64, boundary: 4096 }
}
