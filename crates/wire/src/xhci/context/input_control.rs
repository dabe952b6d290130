//! Input control context (xHCI 1.2 clause 6.2.5.1).

use super::EndpointId;
use crate::DecodeError;
use crate::xhci::{bytes_of, dwords, field, place};
use core::fmt;

/// Which contexts of the input context mean something.
///
/// ```text
///  0..4   Drop Context flags 31:2                 28     Configuration Value
///  4..8   Add Context flags 31:0                  29     Interface Number
///  8..28  reserved                                30     Alternate Setting
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputControlContext {
    drop: u32,
    add: u32,
    /// `bConfigurationValue`, if the controller asks for it (CIC).
    pub configuration: u8,
    /// `bInterfaceNumber`, likewise.
    pub interface: u8,
    /// `bAlternateSetting`, likewise.
    pub alternate: u8,
}

impl InputControlContext {
    /// Bytes that mean something.
    pub const LEN: usize = 32;

    /// The slot context is there (A0).
    #[must_use]
    pub const fn with_slot(self) -> Self {
        Self { add: self.add | 1, ..self }
    }

    /// The endpoint's context is there; it is added or evaluated.
    #[must_use]
    pub const fn with(self, endpoint: EndpointId) -> Self {
        Self { add: self.add | 1 << endpoint.get(), ..self }
    }

    /// The endpoint goes. Nothing happens for the control endpoint, which cannot.
    #[must_use]
    pub const fn dropping(self, endpoint: EndpointId) -> Self {
        Self { drop: self.drop | (1 << endpoint.get() & !0x03), ..self }
    }

    /// Whether the slot context is there.
    pub const fn has_slot(&self) -> bool {
        self.add & 1 == 1
    }

    /// Whether the endpoint's context is there.
    pub const fn adds(&self, endpoint: EndpointId) -> bool {
        self.add >> endpoint.get() & 1 == 1
    }

    /// Whether the endpoint goes.
    pub const fn drops(&self, endpoint: EndpointId) -> bool {
        self.drop >> endpoint.get() & 1 == 1
    }

    /// Decodes a context; bytes past it are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let [drop, add, .., last] = dwords::<8>(bytes)?;
        Ok(Self {
            drop: drop & !0x03,
            add,
            configuration: field(last, 0, 8) as u8,
            interface: field(last, 8, 8) as u8,
            alternate: field(last, 16, 8) as u8,
        })
    }

    /// The 32 bytes.
    pub fn encode(&self) -> [u8; 32] {
        let last = place(self.configuration.into(), 0, 8)
            | place(self.interface.into(), 8, 8)
            | place(self.alternate.into(), 16, 8);
        bytes_of(&[self.drop, self.add, 0, 0, 0, 0, 0, last])
    }
}

impl fmt::Display for InputControlContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "add {:#010x}, drop {:#010x}", self.add, self.drop)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn literal_bytes_both_ways() {
        let [out, inward] = [2, 31].map(|id| EndpointId::new(id).unwrap());
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&[0x04, 0, 0, 0, 0x01, 0, 0, 0x80]);
        bytes[28..31].copy_from_slice(&[1, 2, 3]);
        let control =
            InputControlContext { configuration: 1, interface: 2, alternate: 3, ..Default::default() }
                .with_slot()
                .with(inward)
                .dropping(out);
        assert_eq!(control.encode(), bytes);
        assert_eq!(InputControlContext::decode(&bytes), Ok(control));
        assert!(control.has_slot() && control.adds(inward) && control.drops(out) && !control.adds(out));
        assert_eq!(control.to_string(), "add 0x80000001, drop 0x00000004");
    }

    #[test]
    fn the_control_endpoint_cannot_go() {
        assert!(!InputControlContext::default().dropping(EndpointId::CONTROL).drops(EndpointId::CONTROL));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..32 {
            let error = DecodeError::Truncated { needed: 32, got: len };
            assert_eq!(InputControlContext::decode(&[0; 32][..len]), Err(error));
        }
    }

    proptest! {
        #[test]
        fn what_decodes_is_encoded_to_the_same_value(bytes: [u8; 32]) {
            let control = InputControlContext::decode(&bytes).unwrap();
            prop_assert_eq!(InputControlContext::decode(&control.encode()), Ok(control));
        }
    }
}
