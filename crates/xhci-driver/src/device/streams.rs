//! Stream context arrays (xHCI 1.2 clause 4.12.2): which context a stream has.
//!
//! A linear primary array holds a ring per stream. Where the controller's primary array is too
//! small for all streams, it holds secondary arrays instead: the low part of the stream id is the
//! place in the primary array, the high part the place in the secondary one. Stream 0 exists in
//! neither.

use crate::Quirks;
use crate::capabilities::Capabilities;
use crate::hardware::{DmaLayout, DmaMemory};
use alloc::vec::Vec;
use wire::xhci::{StreamContext, StreamContextType};

/// How many contexts there are and how they are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamShape {
    /// Entries of the primary array: 4 or more, a power of two.
    pub(crate) primary: u32,
    /// Entries of each secondary array: 8 to 256; `None` if the primary array is linear.
    pub(crate) secondary: Option<u16>,
    /// Streams 1 to this many have a ring.
    pub(crate) streams: u16,
}

impl StreamShape {
    /// The shape for `wanted` streams, or as many as the controller has; `None` if it has none.
    pub(crate) fn new(capabilities: &Capabilities, quirks: Quirks, wanted: u16) -> Option<Self> {
        let max = capabilities.registers.primary_streams_max();
        let wanted = wanted.min(crate::limit::STREAMS_MAX);
        if max == 0 || wanted == 0 {
            return None;
        }
        let contexts = (u32::from(wanted) + 1).next_power_of_two().max(4);
        if contexts <= max {
            return Some(Self { primary: contexts, secondary: None, streams: wanted });
        }
        if !capabilities.has_secondary_streams() || quirks.no_secondary_streams {
            let streams = wanted.min((max - 1).min(crate::limit::STREAMS_MAX.into()) as u16);
            return Some(Self { primary: max, secondary: None, streams });
        }
        let each = (contexts / max).clamp(8, 256);
        let streams = u32::from(wanted).min(max * each - 1) as u16;
        Some(Self { primary: max, secondary: Some(each as u16), streams })
    }

    /// MaxPStreams: 2^(n+1) entries.
    pub(crate) fn exponent(self) -> u8 {
        self.primary.trailing_zeros().saturating_sub(1) as u8
    }

    /// Returns the type of a stream's own context.
    pub(crate) fn context_type(self) -> StreamContextType {
        match self.secondary {
            None => StreamContextType::PrimaryRing,
            Some(_) => StreamContextType::SecondaryRing,
        }
    }
}

/// The arrays in memory.
#[derive(Debug)]
pub(crate) struct StreamArrays {
    pub(crate) shape: StreamShape,
    pub(crate) primary: u64,
    secondary: Vec<u64>,
}

impl StreamArrays {
    /// Arrays without rings. `None` if there is no memory; nothing is kept then.
    pub(crate) fn allocate(hw: &mut impl DmaMemory, shape: StreamShape) -> Option<Self> {
        let primary = hw.allocate(array_layout(shape.primary))?;
        let mut arrays = Self { shape, primary, secondary: Vec::new() };
        let Some(each) = shape.secondary else { return Some(arrays) };
        let Some(context_type) = StreamContextType::secondary_array(each) else {
            arrays.release(hw);
            return None;
        };
        for number in 0..u64::from(shape.primary) {
            let Some(array) = hw.allocate(array_layout(each.into())) else {
                arrays.release(hw);
                return None;
            };
            arrays.secondary.push(array);
            let entry = StreamContext { cycle: false, ..StreamContext::ring(context_type, array) };
            hw.write_bytes(primary + number * StreamContext::LEN as u64, &entry.encode());
        }
        Some(arrays)
    }

    /// Gives the memory back.
    pub(crate) fn release(&mut self, hw: &mut impl DmaMemory) {
        for array in self.secondary.drain(..) {
            hw.release(array, array_layout(self.shape.secondary.unwrap_or(8).into()));
        }
        hw.release(self.primary, array_layout(self.shape.primary));
    }

    /// Where the context of a stream is.
    pub(crate) fn context(&self, stream: u16) -> u64 {
        let stream = u32::from(stream);
        let (base, place) = match self.secondary.get((stream % self.shape.primary) as usize) {
            None => (self.primary, stream),
            Some(array) => (*array, stream / self.shape.primary),
        };
        base + u64::from(place) * StreamContext::LEN as u64
    }
}

/// An array lies within a page, or is as long as some.
fn array_layout(contexts: u32) -> DmaLayout {
    let bytes = contexts * StreamContext::LEN as u32;
    DmaLayout { bytes, align: 64, boundary: bytes.next_power_of_two().max(4096) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Machine, Memory};

    fn capabilities(exponent: u8, secondary: bool) -> Capabilities {
        let mut found = Capabilities::read(&mut Machine::default()).unwrap();
        found.registers.primary_streams_exponent = exponent;
        let bits = if secondary { 0 } else { 0x80 };
        found.registers.features = wire::xhci::ControllerFeatures::from(bits);
        found
    }

    #[test]
    fn arrays_are_linear_as_long_as_they_can_be() {
        let shape = |exponent, secondary, wanted| {
            StreamShape::new(&capabilities(exponent, secondary), Quirks::default(), wanted)
        };
        let linear = |primary, streams| Some(StreamShape { primary, secondary: None, streams });
        assert_eq!(shape(7, true, 255), linear(256, 255));
        assert_eq!(shape(7, true, 2), linear(4, 2));
        assert_eq!(shape(7, false, 256), linear(256, 255));
        assert_eq!(shape(0, true, 32), None);
        let secondary = Some(StreamShape { primary: 16, secondary: Some(8), streams: 32 });
        assert_eq!(shape(3, true, 32), secondary);
        assert_eq!(linear(256, 255).map(StreamShape::exponent), Some(7));
    }

    #[test]
    fn secondary_arrays_that_do_not_work_are_not_made() {
        let quirks = Quirks { no_secondary_streams: true, ..Quirks::default() };
        let shape = |exponent, wanted| StreamShape::new(&capabilities(exponent, true), quirks, wanted);
        let linear = |primary, streams| Some(StreamShape { primary, secondary: None, streams });
        assert_eq!(shape(7, 256), linear(256, 255));
        assert_eq!(shape(3, 32), linear(16, 15));
        assert_eq!(shape(3, 15), linear(16, 15));
    }

    #[test]
    fn the_low_part_of_a_stream_id_is_the_place_in_the_primary_array() {
        let mut memory = Memory::default();
        let shape = StreamShape { primary: 4, secondary: Some(8), streams: 31 };
        let mut arrays = StreamArrays::allocate(&mut memory, shape).unwrap();
        let mut bytes = [0; 16];
        memory.read_bytes(arrays.primary + 16, &mut bytes);
        let second = StreamContext::decode(&bytes).unwrap();
        assert_eq!(second.context_type, StreamContextType::SecondaryArray(3));
        assert_eq!(arrays.context(1), second.dequeue);
        assert_eq!(arrays.context(9), second.dequeue + 32);
        arrays.release(&mut memory);
        assert_eq!(memory.pieces_out(), 0);
    }
}
