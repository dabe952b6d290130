//! Slots and endpoints of the controller: states, context addresses, rings (xHCI 1.2 clauses 4.5
//! and 4.8).
//!
//! The driver's view is in memory; this is the internal state. Invariant: an endpoint has a ring
//! for every stream whose context was read, and one if it has no streams.

use super::checks::Rules;
use super::memory::{Fault, GuestMemory};
use super::model::Model;
use super::output::DevicePath;
use super::ring::{Cursor, EventFields, Ring};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use bus::TransferId;
use core::ops::{Index, IndexMut, RangeInclusive};
use units::Duration;
use wire::usb::{Direction, EndpointAddress};
use wire::xhci::{
    CompletionCode, ContextSize, EndpointContext, EndpointId, EndpointState, EndpointType, SlotContext,
    StreamContext, StreamContextType,
};

/// Slot state (figure 4-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SlotStage {
    #[default]
    Disabled,
    Enabled,
    Default,
    Addressed,
    Configured,
}

/// All slots, and the layout of their contexts in the memory of the driver.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// By number; there is none at 0.
    all: Vec<Slot>,
    layout: ContextSize,
}

/// An endpoint of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndpointName {
    pub(super) slot: u8,
    pub(super) id: EndpointId,
}

/// A ring: slot, endpoint, stream (0 for none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RingName {
    pub(super) slot: u8,
    pub(super) endpoint: EndpointId,
    pub(super) stream: u16,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    pub(super) stage: SlotStage,
    /// Where the device context is.
    pub(super) context: u64,
    pub(super) path: DevicePath,
    /// By [`EndpointId`].
    pub(super) endpoints: Vec<Option<Box<Endpoint>>>,
}

#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) id: EndpointId,
    pub(super) kind: EndpointType,
    pub(super) packet_bytes: u16,
    /// Packets of a burst.
    pub(super) burst: u8,
    /// How often an interrupt endpoint is asked.
    pub(super) interval: Duration,
    state: EndpointState,
    /// It has failed since its doorbell was last written.
    pub(super) has_failed: bool,
    /// It is stopped, and its doorbell may have been written and replaced ([`super::doorbells`]).
    pub(super) perhaps_restarted: bool,
    pub(super) streams: Option<Streams>,
    /// By stream; the first is that of an endpoint without.
    pub(super) rings: Vec<Ring>,
    /// Whether it is installed on the link.
    pub(super) is_on_link: bool,
    /// Error that halted it on the link while stopped: reported when it is restarted.
    pub(super) halted_by: Option<CompletionCode>,
}

/// Where the stream contexts of an endpoint are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Streams {
    pub(super) primary: u64,
    /// Entries of the primary array.
    pub(super) entries: u32,
    pub(super) is_linear: bool,
}

/// The longest interval: 125 us, doubled so often (table 6-12).
const INTERVAL_MAX: u8 = 15;

/// The most streams for which there is a ring, whatever secondary arrays say.
const STREAMS_MAX: u32 = 1023;

impl EndpointName {
    /// Returns endpoint 0 of a slot.
    pub(super) const fn control(slot: u8) -> Self {
        Self { slot, id: EndpointId::CONTROL }
    }
}

/// Returns the address of an endpoint; both directions of a control endpoint are one.
pub(super) fn address_of(id: EndpointId) -> Option<EndpointAddress> {
    let direction = if id.get().is_multiple_of(2) { Direction::Out } else { Direction::In };
    EndpointAddress::new(id.get() / 2, direction)
}

impl RingName {
    /// Returns the transfer id of a TD on the link.
    pub(super) const fn transfer(self, number: u32) -> TransferId {
        let ([s0, s1], [n0, n1, n2, n3]) = (self.stream.to_be_bytes(), number.to_be_bytes());
        TransferId(u64::from_be_bytes([self.slot, self.endpoint.get(), s0, s1, n0, n1, n2, n3]))
    }

    pub(super) const fn of(id: TransferId) -> Option<(Self, u32)> {
        let [slot, endpoint, s0, s1, n0, n1, n2, n3] = id.0.to_be_bytes();
        let (stream, number) = (u16::from_be_bytes([s0, s1]), u32::from_be_bytes([n0, n1, n2, n3]));
        match EndpointId::new(endpoint) {
            Some(endpoint) => Some((Self { slot, endpoint, stream }, number)),
            None => None,
        }
    }

    pub(super) const fn endpoint_name(self) -> EndpointName {
        EndpointName { slot: self.slot, id: self.endpoint }
    }

    /// Returns the ring of an endpoint that has no streams.
    pub(super) const fn without_stream(name: EndpointName) -> Self {
        Self { slot: name.slot, endpoint: name.id, stream: 0 }
    }
}

impl Slots {
    /// Creates the disabled slots of a controller.
    pub(super) fn new(model: &Model) -> Self {
        Self { all: vec![Slot::default(); usize::from(model.slots) + 1], layout: model.contexts }
    }

    /// Returns a slot, if there is one with this number.
    #[inline]
    pub(super) fn get(&self, number: u8) -> Option<&Slot> {
        self.all.get(usize::from(number))
    }

    /// Returns a slot to change.
    #[inline]
    pub(super) fn get_mut(&mut self, number: u8) -> Option<&mut Slot> {
        self.all.get_mut(usize::from(number))
    }

    /// Returns all slots with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, &Slot)> {
        (0..).zip(&self.all)
    }

    /// Returns an endpoint.
    #[inline]
    pub(super) fn endpoint(&self, name: EndpointName) -> Option<&Endpoint> {
        self.get(name.slot)?.endpoint(name.id)
    }

    /// Returns an endpoint to change.
    #[inline]
    pub(super) fn endpoint_mut(&mut self, name: EndpointName) -> Option<&mut Endpoint> {
        self.get_mut(name.slot)?.endpoint_mut(name.id)
    }

    /// Returns a ring to change.
    pub(super) fn ring_mut(&mut self, to: RingName) -> Option<&mut Ring> {
        self.endpoint_mut(to.endpoint_name())?.rings.get_mut(usize::from(to.stream))
    }

    /// Returns the rings of running endpoints whose contexts were read.
    pub(super) fn loaded_rings(&self) -> Vec<RingName> {
        let mut names = Vec::new();
        for (slot, state) in self.iter() {
            for endpoint in state.endpoints.iter().flatten() {
                let loaded = (0..).zip(&endpoint.rings).filter(|(_, ring)| ring.is_loaded);
                let running = endpoint.state() == EndpointState::Running;
                let name = |(stream, _)| RingName { slot, endpoint: endpoint.id, stream };
                names.extend(loaded.filter(|_| running).map(name));
            }
        }
        names
    }

    /// Returns the numbers of the slots of a root port.
    pub(super) fn at_port(&self, port: u8) -> Vec<u8> {
        let is_there = |slot: &Slot| slot.path.port == port && slot.stage != SlotStage::Disabled;
        self.iter().filter(|(_, slot)| is_there(slot)).map(|(number, _)| number).collect()
    }

    /// Returns the endpoint of a device in a state.
    pub(super) fn find(
        &self,
        path: DevicePath,
        id: EndpointId,
        state: EndpointState,
    ) -> Option<EndpointName> {
        let is_it = |slot: &u8| {
            let slot = &self[*slot];
            slot.path == path && slot.endpoint(id).is_some_and(|endpoint| endpoint.state() == state)
        };
        self.at_port(path.port).into_iter().find(is_it).map(|slot| EndpointName { slot, id })
    }

    /// Counts the bulk endpoints of all slots but one.
    pub(super) fn bulk_endpoints(&self, besides: u8) -> usize {
        let others = self.iter().filter(|(other, _)| *other != besides);
        others.map(|(_, slot)| slot.endpoints.iter().flatten().filter(|e| e.is_on_link).count()).sum()
    }

    /// Returns where the context of an endpoint is.
    pub(super) fn context_at(&self, name: EndpointName) -> u64 {
        self[name.slot].context + self.layout.in_device(Some(name.id))
    }

    /// Sets the state of an endpoint, here and in its context.
    pub(super) fn set_state(
        &mut self,
        memory: &mut impl GuestMemory,
        name: EndpointName,
        state: EndpointState,
    ) -> Result<(), Fault> {
        if let Some(endpoint) = self.endpoint_mut(name) {
            endpoint.enter(state);
        }
        self.write_state(memory, name, state)
    }

    /// Writes the state of an endpoint to its context alone.
    pub(super) fn write_state(
        &self,
        memory: &mut impl GuestMemory,
        name: EndpointName,
        state: EndpointState,
    ) -> Result<(), Fault> {
        let at = self.context_at(name);
        if let Ok(context) = EndpointContext::decode(&memory.read::<{ EndpointContext::LEN }>(at)?) {
            memory.write(at, &EndpointContext { state, ..context }.encode())?;
        }
        Ok(())
    }

    /// Writes the state and ring pointers of an endpoint to its context.
    pub(super) fn save(&self, memory: &mut impl GuestMemory, name: EndpointName) -> Result<(), Fault> {
        match self.endpoint(name) {
            Some(endpoint) => endpoint.save(memory, self.context_at(name)),
            None => Ok(()),
        }
    }
}

impl Index<u8> for Slots {
    type Output = Slot;

    #[inline]
    fn index(&self, number: u8) -> &Slot {
        &self.all[usize::from(number)]
    }
}

impl IndexMut<u8> for Slots {
    #[inline]
    fn index_mut(&mut self, number: u8) -> &mut Slot {
        &mut self.all[usize::from(number)]
    }
}

impl Slot {
    /// Changes its slot context in the memory of the driver; one that cannot be decoded stays as it is.
    pub(super) fn update_context(
        &self,
        memory: &mut impl GuestMemory,
        change: impl FnOnce(SlotContext) -> SlotContext,
    ) -> Result<(), Fault> {
        if let Ok(context) = SlotContext::decode(&memory.read::<{ SlotContext::LEN }>(self.context)?) {
            memory.write(self.context, &change(context).encode())?;
        }
        Ok(())
    }

    pub(super) fn endpoint(&self, id: EndpointId) -> Option<&Endpoint> {
        self.endpoints.get(id.index())?.as_deref()
    }

    pub(super) fn endpoint_mut(&mut self, id: EndpointId) -> Option<&mut Endpoint> {
        self.endpoints.get_mut(id.index())?.as_deref_mut()
    }

    /// Adds an endpoint, or puts it in the place of another.
    pub(super) fn add(&mut self, endpoint: Endpoint) {
        if self.endpoints.is_empty() {
            self.endpoints.resize_with(usize::from(EndpointId::MAX) + 1, || None);
        }
        let index = endpoint.id.index();
        self.endpoints[index] = Some(Box::new(endpoint));
    }

    /// Removes an endpoint.
    pub(super) fn remove(&mut self, id: EndpointId) -> Option<Box<Endpoint>> {
        self.endpoints.get_mut(id.index())?.take()
    }
}

impl Endpoint {
    /// Creates a running endpoint from its context.
    pub(super) fn new(id: EndpointId, context: &EndpointContext) -> Self {
        let streams = (context.primary_streams > 0).then(|| Streams {
            primary: context.dequeue,
            entries: 2 << context.primary_streams,
            is_linear: context.linear_streams,
        });
        let mut ring = Ring::default();
        if streams.is_none() {
            ring.restart(Cursor { at: context.dequeue, cycle: context.cycle });
        }
        Self {
            id,
            kind: context.endpoint_type,
            packet_bytes: context.max_packet,
            burst: context.max_burst.saturating_add(1),
            interval: match context.endpoint_type {
                EndpointType::Interrupt(_) => Duration::from_us(125 << context.interval.min(INTERVAL_MAX)),
                _ => Duration::ZERO,
            },
            state: EndpointState::Running,
            has_failed: false,
            perhaps_restarted: false,
            streams,
            rings: vec![ring],
            is_on_link: false,
            halted_by: None,
        }
    }

    /// Returns its state.
    pub(super) const fn state(&self) -> EndpointState {
        self.state
    }

    /// Changes its state.
    pub(super) fn enter(&mut self, state: EndpointState) {
        self.has_failed = match state {
            EndpointState::Halted | EndpointState::Error => true,
            EndpointState::Running => false,
            _ => self.has_failed,
        };
        (self.state, self.perhaps_restarted) = (state, false);
    }

    /// Returns the time from a doorbell to the fetch: one read for the TRB, one before it for a stream context, one after it
    /// for OUT data.
    pub(super) fn doorbell_span(&self, model: &Model) -> Duration {
        let is_out = self.id.get().is_multiple_of(2);
        let reads = 1 + u64::from(self.streams.is_some()) + u64::from(is_out);
        let attachment = &model.attachment;
        Duration::from_ps(attachment.register_write.as_ps() + reads * attachment.memory_read.as_ps())
    }

    /// Returns whether the link has transfers of it.
    pub(super) fn has_transfers(&self) -> bool {
        self.rings.iter().any(|ring| ring.on_link > 0)
    }

    /// Returns the events of its partial TDs when it stops (clause 4.6.9).
    pub(super) fn stopped_events(&self, model: &Model) -> Vec<EventFields> {
        let event = |ring: &Ring| match ring.first() {
            Some(td) if td.moved > 0 => ring.here(CompletionCode::Stopped),
            // Controllers from version 1.0 on report their position even if nothing has moved.
            Some(_) if model.version >= 0x0100 && self.streams.is_none() => {
                let event = ring.here(CompletionCode::StoppedLengthInvalid);
                event.map(|event| EventFields { length: 0, ..event })
            }
            _ => None,
        };
        self.rings.iter().filter_map(event).collect()
    }

    /// Drops the cycle bits of its streams, as controllers with that deviation do when it stops.
    pub(super) fn forget_cycles(&mut self) {
        if self.streams.is_some() {
            for ring in &mut self.rings {
                ring.restart(Cursor { cycle: true, ..ring.stands() });
            }
        }
    }

    /// Returns its address; both directions of a control endpoint are one.
    pub(super) fn address(&self) -> Option<EndpointAddress> {
        address_of(self.id)
    }

    pub(super) fn rules(&self, model: &Model) -> Rules {
        let direction = match self.kind {
            EndpointType::Bulk(direction) | EndpointType::Interrupt(direction) => Some(direction),
            _ => None,
        };
        let Model { version, is_strict, .. } = *model;
        Rules { direction, packet_bytes: self.packet_bytes.max(1).into(), version, is_strict }
    }

    /// Returns the number of streams on the link.
    pub(super) fn stream_count(&self) -> u16 {
        self.streams.map_or(0, |streams| {
            let count = if streams.is_linear { streams.entries - 1 } else { STREAMS_MAX };
            count.min(STREAMS_MAX) as u16
        })
    }

    /// Loads the ring of a stream from its context, 0 for none. `Err` is the error of the stream
    /// context.
    pub(super) fn load(
        &mut self,
        memory: &impl GuestMemory,
        stream: u16,
    ) -> Result<Result<(), CompletionCode>, Fault> {
        let Some(streams) = self.streams else {
            return Ok(if stream == 0 { Ok(()) } else { Err(CompletionCode::InvalidStreamId) });
        };
        if self.rings.get(usize::from(stream)).is_some_and(|ring| ring.is_loaded) {
            return Ok(Ok(()));
        }
        let context = match streams.find(memory, stream)? {
            Ok(at) => StreamContext::decode(&memory.read::<{ StreamContext::LEN }>(at)?),
            Err(code) => return Ok(Err(code)),
        };
        let Ok(context) = context else { return Ok(Err(CompletionCode::InvalidStreamType)) };
        if context.context_type != streams.ring_type() {
            return Ok(Err(CompletionCode::InvalidStreamType));
        }
        let index = usize::from(stream);
        if self.rings.len() <= index {
            self.rings.resize_with(index + 1, Ring::default);
        }
        self.rings[index].restart(Cursor { at: context.dequeue, cycle: context.cycle });
        Ok(Ok(()))
    }

    /// Returns whether a ring has TDs that are not on the link, of the driver or left by a stop. A stream that was never written
    /// counts with the ring of its context; one that leads nowhere has none.
    pub(super) fn has_work(&mut self, memory: &impl GuestMemory, stream: u16) -> bool {
        let is_known = self.rings.get(usize::from(stream)).is_some_and(|ring| ring.is_loaded);
        if !is_known && self.load(memory, stream) != Ok(Ok(())) {
            return false;
        }
        let Some(ring) = self.rings.get_mut(usize::from(stream)) else { return false };
        match ring.has_more(memory) {
            Ok(has_more) => has_more || ring.count() > ring.on_link as usize,
            Err(_) => {
                ring.is_loaded &= is_known;
                false
            }
        }
    }

    /// Returns the streams that a doorbell may name: 0 for an endpoint without.
    pub(super) fn doorbell_streams(&self) -> RangeInclusive<u16> {
        match self.streams {
            None => 0..=0,
            Some(_) => 1..=self.stream_count(),
        }
    }

    /// Writes every ring position to its context, which is at `context` for an endpoint without
    /// streams.
    pub(super) fn save(&self, memory: &mut impl GuestMemory, context: u64) -> Result<(), Fault> {
        let mut bytes = memory.read::<{ EndpointContext::LEN }>(context)?;
        let Ok(mut saved) = EndpointContext::decode(&bytes) else { return Ok(()) };
        saved.state = self.state;
        match self.streams {
            None => {
                let stands = self.rings.first().map(Ring::stands).unwrap_or_default();
                (saved.dequeue, saved.cycle) = (stands.at, stands.cycle);
            }
            Some(streams) => {
                for (stream, ring) in (0..).zip(&self.rings).filter(|(_, ring)| ring.is_loaded) {
                    streams.write(memory, stream, ring.stands())?;
                }
            }
        }
        bytes = saved.encode();
        memory.write(context, &bytes)
    }
}

impl Streams {
    /// Returns the required type of a stream context.
    pub(super) const fn ring_type(self) -> StreamContextType {
        if self.is_linear { StreamContextType::PrimaryRing } else { StreamContextType::SecondaryRing }
    }

    /// Where the context of a stream is: the low part of its id is the place in the primary array
    /// (clause 4.12.2).
    pub(super) fn find(
        self,
        memory: &impl GuestMemory,
        stream: u16,
    ) -> Result<Result<u64, CompletionCode>, Fault> {
        let id = u32::from(stream);
        let place = |base: u64, index: u32| base + u64::from(index) * StreamContext::LEN as u64;
        if id == 0 || id > STREAMS_MAX || self.is_linear && id >= self.entries {
            return Ok(Err(CompletionCode::InvalidStreamId));
        }
        if self.is_linear {
            return Ok(Ok(place(self.primary, id)));
        }
        let bytes = memory.read::<{ StreamContext::LEN }>(place(self.primary, id % self.entries))?;
        let Ok(array) = StreamContext::decode(&bytes) else {
            return Ok(Err(CompletionCode::InvalidStreamType));
        };
        Ok(match array.context_type {
            StreamContextType::SecondaryArray(exponent) if id / self.entries < 1 << exponent => {
                Ok(place(array.dequeue, id / self.entries))
            }
            StreamContextType::SecondaryArray(_) => Err(CompletionCode::InvalidStreamId),
            _ => Err(CompletionCode::InvalidStreamType),
        })
    }

    fn write(self, memory: &mut impl GuestMemory, stream: u16, stands: Cursor) -> Result<(), Fault> {
        if let Ok(at) = self.find(memory, stream)? {
            let context =
                StreamContext { cycle: stands.cycle, ..StreamContext::ring(self.ring_type(), stands.at) };
            memory.write(at, &context.encode())?;
        }
        Ok(())
    }
}
