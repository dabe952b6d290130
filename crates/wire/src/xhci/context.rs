//! Contexts (xHCI 1.2 clause 6.2): state of slots, endpoints and streams, exchanged by controller and driver.
//!
//! A device context is a slot context and 31 endpoint contexts; an input context has an input control context before
//! them. Each takes 32 or 64 bytes, as the controller says; what is past the first 32 is the controller's.
//!
//! Always true: a context is encoded to its 32 bytes (a stream's to 16); [`ContextSize`] is their spacing in memory.

mod endpoint;
mod input_control;
mod slot;
mod stream;

pub use endpoint::{EndpointContext, EndpointState, EndpointType};
pub use input_control::InputControlContext;
pub use slot::{RouteString, SlotContext, SlotState};
pub use stream::{StreamContext, StreamContextType};

use crate::usb::{Direction, EndpointAddress};
use core::fmt;

/// How much room a context takes (CSZ in HCCPARAMS1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContextSize {
    /// 32 bytes.
    Bytes32,
    /// 64 bytes; the second half is the controller's.
    Bytes64,
}

impl ContextSize {
    /// Spacing of contexts, in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Bytes32 => 32,
            Self::Bytes64 => 64,
        }
    }

    /// Bytes of a device context: slot and 31 endpoints.
    pub const fn device_bytes(self) -> u64 {
        32 * self.bytes()
    }

    /// Bytes of an input context: input control, slot and 31 endpoints.
    pub const fn input_bytes(self) -> u64 {
        33 * self.bytes()
    }

    /// Where the slot context (`None`) or an endpoint's is in a device context.
    pub const fn in_device(self, endpoint: Option<EndpointId>) -> u64 {
        match endpoint {
            None => 0,
            Some(endpoint) => endpoint.get() as u64 * self.bytes(),
        }
    }

    /// Where the slot context (`None`) or an endpoint's is in an input context.
    pub const fn in_input(self, endpoint: Option<EndpointId>) -> u64 {
        self.in_device(endpoint) + self.bytes()
    }
}

/// Place of an endpoint in a device context (DCI), 1 to 31: the control endpoint, then 1 OUT, 1 IN, 2 OUT and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "DCI")]
pub struct EndpointId(u8);

impl EndpointId {
    /// The control endpoint, both directions of it.
    pub const CONTROL: Self = Self(1);
    /// The highest id.
    pub const MAX: u8 = 31;

    /// The endpoint with this id, if there is one.
    pub const fn new(id: u8) -> Option<Self> {
        if id >= 1 && id <= Self::MAX { Some(Self(id)) } else { None }
    }

    /// The place of an endpoint. Both directions of endpoint 0 have the same.
    pub const fn of(address: EndpointAddress) -> Self {
        match (address.number(), address.direction()) {
            (0, _) => Self::CONTROL,
            (number, Direction::Out) => Self(2 * number),
            (number, Direction::In) => Self(2 * number + 1),
        }
    }

    /// The id, 1 to 31.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// A place in a table of 32.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for EndpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "endpoint context {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_lie_where_the_standard_puts_them() {
        let id = |number, direction| EndpointAddress::new(number, direction).map(|a| EndpointId::of(a).get());
        assert_eq!(id(0, Direction::In), Some(1));
        assert_eq!(id(0, Direction::Out), Some(1));
        assert_eq!(id(1, Direction::Out), Some(2));
        assert_eq!(id(1, Direction::In), Some(3));
        assert_eq!(id(15, Direction::In), Some(31));
        assert_eq!(EndpointId::new(0), None);
        assert_eq!(EndpointId::new(32), None);
    }

    #[test]
    fn contexts_of_64_bytes_lie_twice_as_far_apart() {
        let third = EndpointId::new(3);
        assert_eq!(ContextSize::Bytes32.in_device(third), 96);
        assert_eq!(ContextSize::Bytes64.in_device(third), 192);
        assert_eq!(ContextSize::Bytes32.in_input(None), 32);
        assert_eq!(ContextSize::Bytes64.in_input(third), 256);
        assert_eq!(ContextSize::Bytes32.device_bytes(), 1024);
        assert_eq!(ContextSize::Bytes64.input_bytes(), 2112);
    }
}
