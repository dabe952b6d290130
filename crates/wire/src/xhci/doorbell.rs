//! Doorbell registers (xHCI 1.2 clause 5.6).

use super::{EndpointId, field, place};
use core::fmt;

/// Value written to a doorbell. Doorbell 0 is the controller's, the others are those of the slots.
///
/// ```text
///   7:0   DB Target: 0 at the controller's (the command ring), else the endpoint
///  31:16  DB Stream ID
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doorbell {
    /// The endpoint; `None` is the command ring.
    pub target: Option<EndpointId>,
    /// The stream that has work, 0 on endpoints without streams.
    pub stream: u16,
}

impl Doorbell {
    /// The command ring has work.
    pub const COMMAND: Self = Self { target: None, stream: 0 };

    /// Decodes the value written; rejects a target that is neither 0 nor an endpoint.
    pub const fn decode(word: u32) -> Option<Self> {
        let stream = field(word, 16, 16) as u16;
        match field(word, 0, 8) {
            0 => Some(Self { target: None, stream }),
            target => match EndpointId::new(target as u8) {
                Some(endpoint) => Some(Self { target: Some(endpoint), stream }),
                None => None,
            },
        }
    }

    /// Encodes the value to write.
    pub const fn encode(self) -> u32 {
        let target = match self.target {
            None => 0,
            Some(endpoint) => endpoint.get() as u32,
        };
        target | place(self.stream as u32, 16, 16)
    }
}

impl fmt::Display for Doorbell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.target, self.stream) {
            (None, _) => f.write_str("command ring"),
            (Some(endpoint), 0) => write!(f, "{endpoint}"),
            (Some(endpoint), stream) => write!(f, "{endpoint} stream {stream}"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn literal_values_both_ways() {
        let doorbell = Doorbell { target: EndpointId::new(3), stream: 0x1234 };
        assert_eq!(doorbell.encode(), 0x1234_0003);
        assert_eq!(Doorbell::decode(0x1234_0003), Some(doorbell));
        assert_eq!(doorbell.to_string(), "endpoint context 3 stream 4660");
        assert_eq!(Doorbell::COMMAND.encode(), 0);
        assert_eq!(Doorbell::decode(0), Some(Doorbell::COMMAND));
        assert_eq!(Doorbell::decode(32), None);
    }
}
