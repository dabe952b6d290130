//! TRBs of event rings (xHCI 1.2 clause 6.4.2).

use super::{TRB_BYTES, TrbType, control, encoded, field, flag, foreign, type_in, words};
use crate::DecodeError;
use crate::xhci::{CompletionCode, EndpointId, bit, place, pointer, wide};
use core::fmt;

/// One event from the controller.
///
/// ```text
///          transfer                    command completion     port status change
///   0..8   TRB Pointer or Event Data   Command TRB (63:4)     Port ID 31:24
///   8..12  Transfer Length 23:0,       Parameter 23:0,
///          all: Completion Code 31:24
///  12..16  ED 2, Endpoint ID 20:16     VF ID 23:16            all: C 0, TRB Type 15:10, Slot ID 31:24
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTrb {
    /// A TRB of a transfer ring ended (6.4.2.1).
    Transfer {
        /// Bus address of the TRB, or the token of an Event Data TRB.
        pointer: u64,
        /// Bytes that the TRB did not move; of event data, bytes that were moved. 24 bits.
        length: u32,
        /// How it ended.
        code: CompletionCode,
        /// `pointer` is a token (ED).
        event_data: bool,
        /// The endpoint; `None` if the controller names one that cannot be.
        endpoint: Option<EndpointId>,
        /// The slot.
        slot: u8,
    },
    /// A command ended (6.4.2.2).
    CommandCompletion {
        /// Bus address of the command, a multiple of 16.
        pointer: u64,
        /// Depends on the command. 24 bits.
        parameter: u32,
        /// How it ended.
        code: CompletionCode,
        /// The slot it was for, or that was given.
        slot: u8,
    },
    /// A port changed (6.4.2.3).
    PortStatusChange {
        /// Counts from 1.
        port: u8,
        /// Always success.
        code: CompletionCode,
    },
    /// Bandwidth is asked back (6.4.2.4).
    BandwidthRequest {
        /// Which device's.
        slot: u8,
        /// Always success.
        code: CompletionCode,
    },
    /// A host controller event (6.4.2.6).
    HostController {
        /// Completion code: the reason for the event.
        code: CompletionCode,
    },
    /// A device sent a notification (6.4.2.7).
    DeviceNotification {
        /// Which.
        slot: u8,
        /// Its type, 4 bits.
        kind: u8,
        /// Its content, 56 bits.
        content: u64,
        /// Always success.
        code: CompletionCode,
    },
    /// The microframe counter went round (6.4.2.8).
    MicroframeIndexWrap {
        /// Always success.
        code: CompletionCode,
    },
}

impl EventTrb {
    /// Decodes a TRB and its cycle bit; bytes past it are ignored. A type of another family is an error.
    pub fn decode(bytes: &[u8]) -> Result<(Self, bool), DecodeError> {
        let [p0, p1, status, word] = words(bytes)?;
        let (length, code) = (field(status, 0, 24), CompletionCode::from(field(status, 24, 8) as u8));
        let slot = field(word, 24, 8) as u8;
        let event = match type_in(word) {
            TrbType::TransferEvent => Self::Transfer {
                pointer: wide(p0, p1),
                length,
                code,
                event_data: flag(word, 2),
                endpoint: EndpointId::new(field(word, 16, 5) as u8),
                slot,
            },
            TrbType::CommandCompletion => {
                let [low, high] = pointer(wide(p0, p1), 4);
                Self::CommandCompletion { pointer: wide(low, high), parameter: length, code, slot }
            }
            TrbType::PortStatusChange => Self::PortStatusChange { port: field(p0, 24, 8) as u8, code },
            TrbType::BandwidthRequest => Self::BandwidthRequest { slot, code },
            TrbType::HostController => Self::HostController { code },
            TrbType::DeviceNotification => {
                let (kind, content) = (field(p0, 4, 4) as u8, wide(p0, p1) >> 8);
                Self::DeviceNotification { slot, kind, content, code }
            }
            TrbType::MicroframeIndexWrap => Self::MicroframeIndexWrap { code },
            other => return Err(foreign(other)),
        };
        Ok((event, flag(word, 0)))
    }

    /// The whole TRB with this cycle bit.
    pub fn encode(&self, cycle: bool) -> [u8; TRB_BYTES] {
        let word = control(self.trb_type(), cycle);
        let status = |length: u32| place(length, 0, 24) | place(u8::from(self.code()).into(), 24, 8);
        let of_slot = |slot: u8| word | place(slot.into(), 24, 8);
        encoded(match *self {
            Self::Transfer { pointer: at, length, event_data, endpoint, slot, .. } => {
                let [low, high] = pointer(at, 0);
                let id = endpoint.map_or(0, EndpointId::get);
                let word = of_slot(slot) | place(id.into(), 16, 5) | bit(event_data, 2);
                [low, high, status(length), word]
            }
            Self::CommandCompletion { pointer: at, parameter, slot, .. } => {
                let [low, high] = pointer(at, 4);
                [low, high, status(parameter), of_slot(slot)]
            }
            Self::PortStatusChange { port, .. } => [place(port.into(), 24, 8), 0, status(0), word],
            Self::BandwidthRequest { slot, .. } => [0, 0, status(0), of_slot(slot)],
            Self::HostController { .. } | Self::MicroframeIndexWrap { .. } => [0, 0, status(0), word],
            Self::DeviceNotification { slot, kind, content, .. } => {
                let [low, high] = pointer(content << 8, 0);
                [low | place(kind.into(), 4, 4), high, status(0), of_slot(slot)]
            }
        })
    }

    /// Its type.
    pub const fn trb_type(&self) -> TrbType {
        match self {
            Self::Transfer { .. } => TrbType::TransferEvent,
            Self::CommandCompletion { .. } => TrbType::CommandCompletion,
            Self::PortStatusChange { .. } => TrbType::PortStatusChange,
            Self::BandwidthRequest { .. } => TrbType::BandwidthRequest,
            Self::HostController { .. } => TrbType::HostController,
            Self::DeviceNotification { .. } => TrbType::DeviceNotification,
            Self::MicroframeIndexWrap { .. } => TrbType::MicroframeIndexWrap,
        }
    }

    /// Its completion code.
    pub const fn code(&self) -> CompletionCode {
        match *self {
            Self::Transfer { code, .. }
            | Self::CommandCompletion { code, .. }
            | Self::PortStatusChange { code, .. }
            | Self::BandwidthRequest { code, .. }
            | Self::HostController { code }
            | Self::DeviceNotification { code, .. }
            | Self::MicroframeIndexWrap { code } => code,
        }
    }
}

impl fmt::Display for EventTrb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.trb_type(), self.code())?;
        match *self {
            Self::Transfer { pointer, length, event_data, endpoint, slot, .. } => {
                write!(f, ", slot {slot}")?;
                if let Some(endpoint) = endpoint {
                    write!(f, " {endpoint}")?;
                }
                let (of, what) = if event_data { ("token", "moved") } else { ("at", "left") };
                write!(f, " {of} {pointer:#x}, {length} bytes {what}")
            }
            Self::CommandCompletion { pointer, slot, .. } => write!(f, ", slot {slot} at {pointer:#x}"),
            Self::PortStatusChange { port, .. } => write!(f, ", port {port}"),
            Self::BandwidthRequest { slot, .. } | Self::DeviceNotification { slot, .. } => {
                write!(f, ", slot {slot}")
            }
            Self::HostController { .. } | Self::MicroframeIndexWrap { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    fn both_ways(event: EventTrb, bytes: [u8; 16]) {
        assert_eq!(event.encode(true), bytes);
        assert_eq!(EventTrb::decode(&bytes), Ok((event, true)));
    }

    #[test]
    fn a_short_transfer_both_ways() {
        let event = EventTrb::Transfer {
            pointer: 0x1_0000_2010,
            length: 476,
            code: CompletionCode::ShortPacket,
            event_data: false,
            endpoint: EndpointId::new(3),
            slot: 1,
        };
        both_ways(event, [0x10, 0x20, 0, 0, 1, 0, 0, 0, 0xdc, 0x01, 0, 13, 0x01, 0x80, 3, 1]);
        let text = "transfer event: short packet, slot 1 endpoint context 3 at 0x100002010, 476 bytes left";
        assert_eq!(event.to_string(), text);
    }

    #[test]
    fn event_data_both_ways() {
        let event = EventTrb::Transfer {
            pointer: 0x1122_3344_5566_7788,
            length: 0x0012_3456,
            code: CompletionCode::Success,
            event_data: true,
            endpoint: EndpointId::new(31),
            slot: 255,
        };
        let bytes =
            [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x56, 0x34, 0x12, 0x01, 0x05, 0x80, 0x1f, 0xff];
        both_ways(event, bytes);
    }

    #[test]
    fn a_command_completion_both_ways() {
        let code = CompletionCode::ContextStateError;
        let event = EventTrb::CommandCompletion { pointer: 0x3020, parameter: 0x0a0b0c, code, slot: 2 };
        both_ways(event, [0x20, 0x30, 0, 0, 0, 0, 0, 0, 0x0c, 0x0b, 0x0a, 19, 0x01, 0x84, 0, 2]);
    }

    #[test]
    fn the_small_events_both_ways() {
        let code = CompletionCode::Success;
        let port = EventTrb::PortStatusChange { port: 5, code };
        both_ways(port, [0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 0x01, 0x88, 0, 0]);
        let request = EventTrb::BandwidthRequest { slot: 9, code };
        both_ways(request, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x01, 0x8c, 0, 9]);
        let full = EventTrb::HostController { code: CompletionCode::EventRingFull };
        both_ways(full, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 21, 0x01, 0x94, 0, 0]);
        let reported = EventTrb::DeviceNotification { slot: 9, kind: 1, content: 0x0002, code };
        both_ways(reported, [0x10, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x01, 0x98, 0, 9]);
        let wrap = EventTrb::MicroframeIndexWrap { code };
        both_ways(wrap, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x01, 0x9c, 0, 0]);
    }

    #[test]
    fn an_endpoint_that_cannot_be_is_none_and_other_families_are_errors() {
        let bytes = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x01, 0x80, 0, 1];
        let Ok((EventTrb::Transfer { endpoint: None, .. }, true)) = EventTrb::decode(&bytes) else {
            panic!("endpoint 0 does not exist");
        };
        let error = DecodeError::Invalid { field: "TRB Type", value: 63 };
        assert_eq!(EventTrb::decode(&[0xff; 16]), Err(error));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..16 {
            let error = DecodeError::Truncated { needed: 16, got: len };
            assert_eq!(EventTrb::decode(&[0x80; 16][..len]), Err(error));
        }
    }

    proptest! {
        #[test]
        fn what_decodes_is_encoded_to_the_same_value(bytes: [u8; 16]) {
            if let Ok((event, cycle)) = EventTrb::decode(&bytes) {
                let _ = event.to_string();
                prop_assert_eq!(EventTrb::decode(&event.encode(cycle)), Ok((event, cycle)));
            }
        }
    }
}
