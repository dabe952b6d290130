//! TRBs of the command ring (xHCI 1.2 clause 6.4.3). Its Link TRBs are those of transfer rings.

use super::{TRB_BYTES, TrbType, control, encoded, field, flag, foreign, type_in, words};
use crate::DecodeError;
use crate::xhci::{EndpointId, StreamContextType, bit, place, pointer, wide};
use core::fmt;

/// One command to the controller.
///
/// ```text
///   0..8   Input Context Pointer (63:4), or New TR Dequeue Pointer (63:4) with SCT (3:1) and DCS (0)
///   8..12  Stream ID 31:16 (set TR dequeue pointer)
///  12..16  C 0, BSR / DC / TSP 9, TRB Type 15:10, Endpoint ID or Slot Type 20:16, SP 23, Slot ID 31:24
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandTrb {
    /// Nothing, but it is answered (6.4.3.1).
    NoOp,
    /// A slot is wanted (6.4.3.2).
    EnableSlot {
        /// Slot type from the port's protocol capability, 0 to 31.
        slot_type: u8,
    },
    /// A slot is given back (6.4.3.3).
    DisableSlot {
        /// Which.
        slot: u8,
    },
    /// The device is given an address (6.4.3.4).
    AddressDevice {
        /// Which.
        slot: u8,
        /// Bus address of the input context, a multiple of 16.
        input: u64,
        /// SET_ADDRESS is not sent (BSR).
        block_set_address: bool,
    },
    /// Endpoints come and go (6.4.3.5).
    ConfigureEndpoint {
        /// Which device.
        slot: u8,
        /// Bus address of the input context, a multiple of 16; unused when deconfiguring.
        input: u64,
        /// All endpoints but 0 go (DC).
        deconfigure: bool,
    },
    /// Some fields of contexts change (6.4.3.6).
    EvaluateContext {
        /// Which device.
        slot: u8,
        /// Bus address of the input context, a multiple of 16.
        input: u64,
    },
    /// A halted endpoint is stopped (6.4.3.7).
    ResetEndpoint {
        /// Which device.
        slot: u8,
        /// Which endpoint.
        endpoint: EndpointId,
        /// Sequence numbers stay, and the TD is tried again: a soft retry (TSP).
        preserve_state: bool,
    },
    /// A running endpoint is stopped (6.4.3.8).
    StopEndpoint {
        /// Which device.
        slot: u8,
        /// Which endpoint.
        endpoint: EndpointId,
        /// The device is about to be suspended (SP).
        suspend: bool,
    },
    /// A stopped ring goes on elsewhere (6.4.3.9).
    SetTrDequeuePointer {
        /// Which device.
        slot: u8,
        /// Which endpoint.
        endpoint: EndpointId,
        /// Where to go on; a multiple of 16.
        dequeue: u64,
        /// The cycle bit of the TRBs there (DCS).
        cycle: bool,
        /// The stream, on an endpoint with streams.
        stream: Option<StreamDequeue>,
    },
    /// The device was reset (6.4.3.10).
    ResetDevice {
        /// Which.
        slot: u8,
    },
}

/// Which stream's ring goes on elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamDequeue {
    /// The stream; not 0.
    pub id: u16,
    /// The type of its context, which is written again.
    pub context_type: StreamContextType,
}

impl CommandTrb {
    /// Decodes a TRB and its cycle bit; bytes past it are ignored. A type of another family is an error.
    pub fn decode(bytes: &[u8]) -> Result<(Self, bool), DecodeError> {
        let [p0, p1, status, word] = words(bytes)?;
        let [low, high] = pointer(wide(p0, p1), 4);
        let (input, slot) = (wide(low, high), field(word, 24, 8) as u8);
        let id = field(word, 16, 5) as u8;
        let endpoint =
            || EndpointId::new(id).ok_or(DecodeError::Invalid { field: "Endpoint ID", value: id.into() });
        let trb = match type_in(word) {
            TrbType::NoOpCommand => Self::NoOp,
            TrbType::EnableSlot => Self::EnableSlot { slot_type: id },
            TrbType::DisableSlot => Self::DisableSlot { slot },
            TrbType::AddressDevice => Self::AddressDevice { slot, input, block_set_address: flag(word, 9) },
            TrbType::ConfigureEndpoint => Self::ConfigureEndpoint { slot, input, deconfigure: flag(word, 9) },
            TrbType::EvaluateContext => Self::EvaluateContext { slot, input },
            TrbType::ResetEndpoint => {
                Self::ResetEndpoint { slot, endpoint: endpoint()?, preserve_state: flag(word, 9) }
            }
            TrbType::StopEndpoint => {
                Self::StopEndpoint { slot, endpoint: endpoint()?, suspend: flag(word, 23) }
            }
            TrbType::SetTrDequeuePointer => {
                let context_type = StreamContextType::from_bits(field(p0, 1, 3));
                let stream = match field(status, 16, 16) as u16 {
                    0 => None,
                    id => Some(StreamDequeue { id, context_type }),
                };
                let (endpoint, cycle) = (endpoint()?, flag(p0, 0));
                Self::SetTrDequeuePointer { slot, endpoint, dequeue: input, cycle, stream }
            }
            TrbType::ResetDevice => Self::ResetDevice { slot },
            other => return Err(foreign(other)),
        };
        Ok((trb, flag(word, 0)))
    }

    /// The whole TRB with this cycle bit.
    pub fn encode(&self, cycle: bool) -> [u8; TRB_BYTES] {
        let word = control(self.trb_type(), cycle) | place(self.slot().into(), 24, 8);
        let with = |endpoint: EndpointId| word | place(endpoint.get().into(), 16, 5);
        encoded(match *self {
            Self::NoOp | Self::DisableSlot { .. } | Self::ResetDevice { .. } => [0, 0, 0, word],
            Self::EnableSlot { slot_type } => [0, 0, 0, word | place(slot_type.into(), 16, 5)],
            Self::AddressDevice { input, block_set_address: choice, .. }
            | Self::ConfigureEndpoint { input, deconfigure: choice, .. } => {
                let [low, high] = pointer(input, 4);
                [low, high, 0, word | bit(choice, 9)]
            }
            Self::EvaluateContext { input, .. } => {
                let [low, high] = pointer(input, 4);
                [low, high, 0, word]
            }
            Self::ResetEndpoint { endpoint, preserve_state, .. } => {
                [0, 0, 0, with(endpoint) | bit(preserve_state, 9)]
            }
            Self::StopEndpoint { endpoint, suspend, .. } => [0, 0, 0, with(endpoint) | bit(suspend, 23)],
            Self::SetTrDequeuePointer { endpoint, dequeue, cycle, stream, .. } => {
                let [low, high] = pointer(dequeue, 4);
                let (id, context_type) = stream.map_or((0, 0), |s| (s.id, s.context_type.bits()));
                [low | context_type << 1 | u32::from(cycle), high, place(id.into(), 16, 16), with(endpoint)]
            }
        })
    }

    /// Its type.
    pub const fn trb_type(&self) -> TrbType {
        match self {
            Self::NoOp => TrbType::NoOpCommand,
            Self::EnableSlot { .. } => TrbType::EnableSlot,
            Self::DisableSlot { .. } => TrbType::DisableSlot,
            Self::AddressDevice { .. } => TrbType::AddressDevice,
            Self::ConfigureEndpoint { .. } => TrbType::ConfigureEndpoint,
            Self::EvaluateContext { .. } => TrbType::EvaluateContext,
            Self::ResetEndpoint { .. } => TrbType::ResetEndpoint,
            Self::StopEndpoint { .. } => TrbType::StopEndpoint,
            Self::SetTrDequeuePointer { .. } => TrbType::SetTrDequeuePointer,
            Self::ResetDevice { .. } => TrbType::ResetDevice,
        }
    }

    /// The slot it is for; 0 if it is for none.
    pub const fn slot(&self) -> u8 {
        match *self {
            Self::NoOp | Self::EnableSlot { .. } => 0,
            Self::DisableSlot { slot }
            | Self::AddressDevice { slot, .. }
            | Self::ConfigureEndpoint { slot, .. }
            | Self::EvaluateContext { slot, .. }
            | Self::ResetEndpoint { slot, .. }
            | Self::StopEndpoint { slot, .. }
            | Self::SetTrDequeuePointer { slot, .. }
            | Self::ResetDevice { slot } => slot,
        }
    }
}

impl fmt::Display for CommandTrb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.trb_type())?;
        match *self {
            Self::NoOp => Ok(()),
            Self::EnableSlot { slot_type } => write!(f, " of type {slot_type}"),
            Self::ResetEndpoint { slot, endpoint, .. } | Self::StopEndpoint { slot, endpoint, .. } => {
                write!(f, " slot {slot} {endpoint}")
            }
            Self::SetTrDequeuePointer { slot, endpoint, dequeue, stream, .. } => {
                write!(f, " slot {slot} {endpoint}")?;
                if let Some(stream) = stream {
                    write!(f, " stream {}", stream.id)?;
                }
                write!(f, " to {dequeue:#x}")
            }
            _ => write!(f, " slot {}", self.slot()),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    fn both_ways(trb: CommandTrb, bytes: [u8; 16]) {
        assert_eq!(trb.encode(true), bytes);
        assert_eq!(CommandTrb::decode(&bytes), Ok((trb, true)));
    }

    fn plain(control: [u8; 4]) -> [u8; 16] {
        let [a, b, c, d] = control;
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]
    }

    #[test]
    fn commands_without_a_pointer_both_ways() {
        let endpoint = EndpointId::new(3).unwrap();
        both_ways(CommandTrb::NoOp, plain([0x01, 0x5c, 0, 0]));
        both_ways(CommandTrb::EnableSlot { slot_type: 5 }, plain([0x01, 0x24, 5, 0]));
        both_ways(CommandTrb::DisableSlot { slot: 7 }, plain([0x01, 0x28, 0, 7]));
        both_ways(CommandTrb::ResetDevice { slot: 7 }, plain([0x01, 0x44, 0, 7]));
        let reset = CommandTrb::ResetEndpoint { slot: 7, endpoint, preserve_state: true };
        both_ways(reset, plain([0x01, 0x3a, 3, 7]));
        let stop = CommandTrb::StopEndpoint { slot: 7, endpoint, suspend: true };
        both_ways(stop, plain([0x01, 0x3c, 0x83, 7]));
        assert_eq!(stop.to_string(), "stop endpoint slot 7 endpoint context 3");
    }

    #[test]
    fn commands_with_an_input_context_both_ways() {
        let bytes = |control: [u8; 4]| {
            let mut bytes = plain(control);
            bytes[..5].copy_from_slice(&[0xc0, 0x34, 0x12, 0x00, 0x01]);
            bytes
        };
        let input = 0x1_0012_34c0;
        let address = CommandTrb::AddressDevice { slot: 1, input, block_set_address: true };
        both_ways(address, bytes([0x01, 0x2e, 0, 1]));
        let configure = CommandTrb::ConfigureEndpoint { slot: 1, input, deconfigure: false };
        both_ways(configure, bytes([0x01, 0x30, 0, 1]));
        both_ways(CommandTrb::EvaluateContext { slot: 1, input }, bytes([0x01, 0x34, 0, 1]));
    }

    #[test]
    fn the_dequeue_pointer_of_a_stream_both_ways() {
        let trb = CommandTrb::SetTrDequeuePointer {
            slot: 2,
            endpoint: EndpointId::new(31).unwrap(),
            dequeue: 0x4010,
            cycle: true,
            stream: Some(StreamDequeue { id: 0x0102, context_type: StreamContextType::PrimaryRing }),
        };
        both_ways(trb, [0x13, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0x01, 0x40, 0x1f, 2]);
        let text = "set TR dequeue pointer slot 2 endpoint context 31 stream 258 to 0x4010";
        assert_eq!(trb.to_string(), text);
    }

    #[test]
    fn an_endpoint_that_is_none_and_other_families_are_errors() {
        let error = DecodeError::Invalid { field: "Endpoint ID", value: 0 };
        assert_eq!(CommandTrb::decode(&plain([0x01, 0x3c, 0, 7])), Err(error));
        let error = DecodeError::Invalid { field: "TRB Type", value: 1 };
        assert_eq!(CommandTrb::decode(&plain([0x01, 0x04, 0, 0])), Err(error));
    }

    proptest! {
        #[test]
        fn what_decodes_is_encoded_to_the_same_value(bytes: [u8; 16]) {
            if let Ok((trb, cycle)) = CommandTrb::decode(&bytes) {
                let _ = trb.to_string();
                prop_assert_eq!(CommandTrb::decode(&trb.encode(cycle)), Ok((trb, cycle)));
            }
        }
    }
}
