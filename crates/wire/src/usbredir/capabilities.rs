//! Capabilities: what a side offers in its hello, and what both have (usbredir 0.7, `usb_redir_cap_*`).
//!
//! On the wire they are little-endian words, one bit each; bits 0..=7 of the first word are defined. Later
//! words are read over.

use core::fmt;

/// One capability; the value is its bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// Streams on SuperSpeed bulk endpoints; needs [`Self::EndpointInfoMaxPacketSize`].
    BulkStreams = 0,
    /// `device_connect` carries the device version.
    ConnectDeviceVersion = 1,
    /// `filter_filter` and `filter_reject` are understood.
    Filter = 2,
    /// A disconnect is acknowledged.
    DeviceDisconnectAck = 3,
    /// `ep_info` carries maximum packet sizes.
    EndpointInfoMaxPacketSize = 4,
    /// Packet ids have 64 bits, not 32.
    Ids64Bits = 5,
    /// Bulk lengths have 32 bits, not 16.
    BulkLength32Bits = 6,
    /// Read-ahead on bulk IN endpoints.
    BulkReceiving = 7,
}

/// A set of capabilities; unknown ones are preserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(u32);

impl Capabilities {
    /// None: what holds until both hellos are through.
    pub const NONE: Self = Self(0);

    /// The set of these.
    pub const fn of(capabilities: &[Capability]) -> Self {
        let (mut bits, mut rest) = (0, capabilities);
        while let [first, others @ ..] = rest {
            bits |= 1 << *first as u32;
            rest = others;
        }
        Self(bits)
    }

    /// Whether the set has this one.
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & 1 << capability as u32 != 0
    }

    /// Returns the capabilities of both sides: the negotiated set, if each is what that side sent in its hello.
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The set without bulk streams if their prerequisite is missing.
    ///
    /// The reference parser strikes them out in its own set and in its peer's, so this must be done
    /// before the sets are met; [`Self::decode`] does.
    #[must_use]
    pub const fn sound(self) -> Self {
        if self.has(Capability::EndpointInfoMaxPacketSize) {
            return self;
        }
        Self(self.0 & !(1 << Capability::BulkStreams as u32))
    }

    /// Decodes the payload of a hello, and makes it [sound](Self::sound).
    ///
    /// No payload is no capability; words past the first and a part of a word do not count.
    pub const fn decode(payload: &[u8]) -> Self {
        match payload.first_chunk::<4>() {
            Some(word) => Self(u32::from_le_bytes(*word)).sound(),
            None => Self::NONE,
        }
    }

    /// The payload of a hello.
    pub const fn encode(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }
}

impl From<u32> for Capabilities {
    fn from(bits: u32) -> Self {
        Self(bits)
    }
}

impl From<Capabilities> for u32 {
    fn from(capabilities: Capabilities) -> Self {
        capabilities.0
    }
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 8] = [
            "bulk_streams",
            "connect_device_version",
            "filter",
            "device_disconnect_ack",
            "ep_info_max_packet_size",
            "64bits_ids",
            "32bits_bulk_length",
            "bulk_receiving",
        ];
        let mut separator = "";
        for (bit, name) in NAMES.iter().enumerate() {
            if self.0 & 1 << bit != 0 {
                write!(f, "{separator}{name}")?;
                separator = " ";
            }
        }
        match self.0 >> NAMES.len() {
            0 if self.0 == 0 => f.write_str("none"),
            0 => Ok(()),
            _ => write!(f, "{separator}unknown ({:#x})", self.0 & !0xff),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn literal_bytes_both_ways() {
        let offer = Capabilities::of(&[
            Capability::BulkStreams,
            Capability::ConnectDeviceVersion,
            Capability::DeviceDisconnectAck,
            Capability::EndpointInfoMaxPacketSize,
            Capability::Ids64Bits,
            Capability::BulkLength32Bits,
        ]);
        assert_eq!(offer.encode(), [0x7b, 0, 0, 0]);
        assert_eq!(Capabilities::decode(&[0x7b, 0, 0, 0]), offer);
        assert!(offer.has(Capability::Ids64Bits) && !offer.has(Capability::Filter));
    }

    #[test]
    fn an_old_peer_has_none_and_a_new_one_may_send_more_words() {
        assert_eq!(Capabilities::decode(&[]), Capabilities::NONE);
        assert_eq!(Capabilities::decode(&[0x20, 0, 0]), Capabilities::NONE);
        assert_eq!(u32::from(Capabilities::decode(&[0x20, 0, 0, 0x80, 0xff, 0xff])), 0x8000_0020);
    }

    #[test]
    fn bulk_streams_without_packet_sizes_are_struck_out() {
        assert_eq!(u32::from(Capabilities::decode(&[0x61, 0, 0, 0])), 0x60);
        assert_eq!(u32::from(Capabilities::decode(&[0x71, 0, 0, 0])), 0x71);
    }

    #[test]
    fn both_sides_must_offer() {
        let (ours, theirs) = (Capabilities::from(0x7b), Capabilities::from(0xf6));
        assert_eq!(u32::from(ours.intersection(theirs)), 0x72);
    }

    #[test]
    fn a_set_is_shown_by_names() {
        assert_eq!(Capabilities::NONE.to_string(), "none");
        assert_eq!(Capabilities::from(0x121).to_string(), "bulk_streams 64bits_ids unknown (0x100)");
    }
}
