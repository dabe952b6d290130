//! Pipe usage descriptor (UAS-2 clause 5.2.3): which endpoint is which pipe.

use super::descriptor_kind::{DescriptorKind, fixed_descriptor};
use crate::DecodeError;
use crate::uas::PipeUsage;
use core::fmt;

/// UAS pipe that the endpoint before it serves.
///
/// ```text
///  0      bLength (4)                             2      bPipeID
///  1      bDescriptorType (24h)                   3      reserved
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeUsageDescriptor {
    /// The pipe.
    #[doc(alias = "bPipeID")]
    pub usage: PipeUsage,
}

impl PipeUsageDescriptor {
    /// Bytes of the descriptor.
    pub const LEN: usize = 4;

    /// Decodes a descriptor; the reserved byte and bytes past the known ones are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[_, _, usage, _] = fixed_descriptor::<4>(bytes, DescriptorKind::PipeUsage)?;
        Ok(Self { usage: usage.into() })
    }

    /// The whole descriptor.
    pub fn encode(&self) -> [u8; 4] {
        [4, DescriptorKind::PipeUsage.into(), self.usage.into(), 0]
    }
}

impl fmt::Display for PipeUsageDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.usage.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const DATA_IN: [u8; 4] = [0x04, 0x24, 0x03, 0x00];

    #[test]
    fn literal_bytes_both_ways() {
        let descriptor = PipeUsageDescriptor::decode(&DATA_IN).unwrap();
        assert_eq!(descriptor, PipeUsageDescriptor { usage: PipeUsage::DataIn });
        assert_eq!(descriptor.encode(), DATA_IN);
        assert_eq!(descriptor.to_string(), "data-in pipe");
    }

    #[test]
    fn the_ids_of_the_standard() {
        let usages = [1, 2, 3, 4].map(PipeUsage::from);
        let expected = [PipeUsage::Command, PipeUsage::Status, PipeUsage::DataIn, PipeUsage::DataOut];
        assert_eq!(usages, expected);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..4 {
            let error = PipeUsageDescriptor::decode(&DATA_IN[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 4, got: len });
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 0x24, found: 0x25 };
        assert_eq!(PipeUsageDescriptor::decode(&[4, 0x25, 3, 0]), Err(error));
    }

    #[test]
    fn an_unknown_pipe_survives() {
        let bytes = [0x04, 0x24, 0x09, 0x00];
        let descriptor = PipeUsageDescriptor::decode(&bytes).unwrap();
        assert_eq!(descriptor.usage, PipeUsage::Unknown(9));
        assert_eq!(descriptor.encode(), bytes);
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..8)) {
            let _ = PipeUsageDescriptor::decode(&bytes);
        }

        #[test]
        fn decode_undoes_encode(usage: u8) {
            let descriptor = PipeUsageDescriptor { usage: usage.into() };
            prop_assert_eq!(PipeUsageDescriptor::decode(&descriptor.encode()).unwrap(), descriptor);
        }
    }
}
