//! Extended capabilities (xHCI 1.2 clause 7): their chain, whose ports speak which protocol, and the firmware's hand-over.
//!
//! Left out: debug, virtualisation, local memory, power management capabilities, which are walked past.

use super::{bit, dwords, field, flag, place};
use crate::DecodeError;
use core::fmt;

code! {
    /// Which capability it is (table 7-2).
    pub enum ExtendedCapabilityId: u8 {
        /// Firmware and operating system hand the controller over.
        LegacySupport = 0x01 => "USB legacy support",
        /// Ports and their protocol.
        SupportedProtocol = 0x02 => "supported protocol",
        /// Power management.
        PowerManagement = 0x03 => "extended power management",
        /// A debugger's own interface.
        Debug = 0x0a => "USB debug",
    }
}

/// The first dword of every extended capability: id in 7:0, dwords to the next in 15:8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedCapability {
    /// Which.
    pub id: ExtendedCapabilityId,
    /// Dwords from here to the next; 0 if this is the last.
    pub next_dwords: u8,
}

impl ExtendedCapability {
    /// Decodes the first dword of a capability.
    pub fn decode(word: u32) -> Self {
        let id = ExtendedCapabilityId::from(field(word, 0, 8) as u8);
        Self { id, next_dwords: field(word, 8, 8) as u8 }
    }

    /// The low half of the dword.
    pub fn encode(self) -> u32 {
        u32::from(u8::from(self.id)) | place(self.next_dwords.into(), 8, 8)
    }
}

/// The revision of USB that ports speak, in binary-coded decimal: 2.0, 3.0, 3.1, 3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProtocolRevision {
    /// 2 or 3.
    pub major: u8,
    /// 00h, 10h, 20h.
    pub minor: u8,
}

/// Which ports speak which protocol.
///
/// ```text
///  0..4   Capability ID (2), Next, Revision Minor, Revision Major
///  4..8   "USB "
///  8..12  Compatible Port Offset 7:0, Count 15:8, Protocol Defined 27:16, PSIC 31:28
/// 12..16  Protocol Slot Type 4:0, then PSIC dwords of speed ids
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportedProtocol {
    /// Dwords to the next capability.
    pub next_dwords: u8,
    /// The protocol.
    pub revision: ProtocolRevision,
    /// The first of its ports, from 1.
    pub first_port: u8,
    /// How many ports.
    pub ports: u8,
    /// Of the protocol; 12 bits.
    pub defined: u16,
    /// Dwords of speed ids that follow; 0 means that the ids have their usual meaning.
    pub speed_ids: u8,
    /// Slot type that Enable Slot takes for a device there; 5 bits.
    pub slot_type: u8,
}

impl SupportedProtocol {
    /// Bytes before the speed ids.
    pub const LEN: usize = 16;
    const NAME: u32 = u32::from_le_bytes(*b"USB ");

    /// Decodes a capability; the speed ids past it are [`LinkSpeed`]s.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let [head, name, ports, slot] = dwords::<4>(bytes)?;
        let expected = u8::from(ExtendedCapabilityId::SupportedProtocol).into();
        match (field(head, 0, 8), name) {
            (id, _) if id != expected => return Err(DecodeError::WrongKind { expected, found: id }),
            (_, Self::NAME) => {}
            (_, name) => return Err(DecodeError::Invalid { field: "Name String", value: name.into() }),
        }
        Ok(Self {
            next_dwords: field(head, 8, 8) as u8,
            revision: ProtocolRevision { major: field(head, 24, 8) as u8, minor: field(head, 16, 8) as u8 },
            first_port: field(ports, 0, 8) as u8,
            ports: field(ports, 8, 8) as u8,
            defined: field(ports, 16, 12) as u16,
            speed_ids: field(ports, 28, 4) as u8,
            slot_type: field(slot, 0, 5) as u8,
        })
    }

    /// The 16 bytes before the speed ids.
    pub fn encode(&self) -> [u8; 16] {
        let id = ExtendedCapabilityId::SupportedProtocol;
        let head = ExtendedCapability { id, next_dwords: self.next_dwords }.encode()
            | place(self.revision.minor.into(), 16, 8)
            | place(self.revision.major.into(), 24, 8);
        let ports = u32::from(self.first_port)
            | place(self.ports.into(), 8, 8)
            | place(self.defined.into(), 16, 12)
            | place(self.speed_ids.into(), 28, 4);
        super::bytes_of(&[head, Self::NAME, ports, place(self.slot_type.into(), 0, 5)])
    }

    /// Whether it speaks of this port.
    pub const fn has_port(&self, port: u8) -> bool {
        port >= self.first_port && port - self.first_port < self.ports
    }
}

/// Meaning of a port's speed id (clause 7.2.1): id 3:0, exponent 5:4, type 7:6, full duplex 8, link protocol 15:14,
/// mantissa 31:16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpeed {
    /// Speed id in port status registers and slot contexts; 1 to 15.
    pub id: u8,
    /// Bits per second.
    pub bits_per_second: u64,
}

impl LinkSpeed {
    /// Decodes a speed id dword.
    pub const fn decode(word: u32) -> Self {
        let scale = match field(word, 4, 2) {
            0 => 1,
            1 => 1_000,
            2 => 1_000_000,
            _ => 1_000_000_000,
        };
        let mantissa = field(word, 16, 16) as u64;
        Self { id: field(word, 0, 4) as u8, bits_per_second: mantissa * scale }
    }

    /// The usual meaning of an id, where the controller does not say (table 7-13).
    pub const fn usual(id: u8) -> Option<Self> {
        let bits_per_second = match id {
            1 => 12_000_000,
            2 => 1_500_000,
            3 => 480_000_000,
            4 => 5_000_000_000,
            5 | 6 => 10_000_000_000,
            7 => 20_000_000_000,
            _ => return None,
        };
        Some(Self { id, bits_per_second })
    }
}

/// Ownership of the controller: the first dword of the capability (USBLEGSUP), firmware in bit 16, operating
/// system in 24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegacySupport {
    /// Dwords to the next capability.
    pub next_dwords: u8,
    /// The firmware owns it.
    pub firmware: bool,
    /// We own it.
    pub system: bool,
}

impl LegacySupport {
    /// Written to the dword after it (USBLEGCTLSTS): no interrupts to the firmware, and what it has not seen is cleared.
    pub const FIRMWARE_INTERRUPTS_OFF: u32 = 0xe000_0000;

    /// Decodes the dword.
    pub const fn decode(word: u32) -> Self {
        Self { next_dwords: field(word, 8, 8) as u8, firmware: flag(word, 16), system: flag(word, 24) }
    }

    /// Encodes the dword to write.
    pub fn encode(self) -> u32 {
        let id = ExtendedCapabilityId::LegacySupport;
        let head = ExtendedCapability { id, next_dwords: self.next_dwords }.encode();
        head | bit(self.firmware, 16) | bit(self.system, 24)
    }
}

impl fmt::Display for ProtocolRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{:x}", self.major, self.minor >> 4)
    }
}

impl fmt::Display for SupportedProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = u16::from(self.first_port) + u16::from(self.ports);
        write!(f, "USB {} at ports {} to {}", self.revision, self.first_port, last.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const USB_3: [u8; 16] = [0x02, 0x00, 0x10, 0x03, 0x55, 0x53, 0x42, 0x20, 0x05, 0x04, 0, 0x20, 1, 0, 0, 0];

    #[test]
    fn a_protocol_both_ways() {
        let protocol = SupportedProtocol::decode(&USB_3).unwrap();
        assert_eq!(protocol.revision, ProtocolRevision { major: 3, minor: 0x10 });
        assert_eq!((protocol.first_port, protocol.ports, protocol.speed_ids), (5, 4, 2));
        assert_eq!(protocol.slot_type, 1);
        assert_eq!(protocol.encode(), USB_3);
        assert_eq!([4, 5, 8, 9].map(|port| protocol.has_port(port)), [false, true, true, false]);
        assert_eq!(protocol.to_string(), "USB 3.1 at ports 5 to 8");
    }

    #[test]
    fn another_capability_and_another_name_are_reported() {
        let mut bytes = USB_3;
        bytes[0] = 1;
        let error = DecodeError::WrongKind { expected: 2, found: 1 };
        assert_eq!(SupportedProtocol::decode(&bytes), Err(error));
        let mut bytes = USB_3;
        bytes[7] = 0x21;
        let error = DecodeError::Invalid { field: "Name String", value: 0x2142_5355 };
        assert_eq!(SupportedProtocol::decode(&bytes), Err(error));
        for len in 0..16 {
            let error = DecodeError::Truncated { needed: 16, got: len };
            assert_eq!(SupportedProtocol::decode(&USB_3[..len]), Err(error));
        }
    }

    #[test]
    fn speed_ids_say_bits_per_second() {
        let speed = LinkSpeed::decode(0x0005_4134);
        assert_eq!(speed, LinkSpeed { id: 4, bits_per_second: 5_000_000_000 });
        assert_eq!(LinkSpeed::usual(4), Some(speed));
        assert_eq!(LinkSpeed::usual(3).map(|s| s.bits_per_second), Some(480_000_000));
        assert_eq!([0, 8, 15].map(LinkSpeed::usual), [None; 3]);
    }

    #[test]
    fn the_firmware_hands_over() {
        let support = LegacySupport::decode(0x0001_0401);
        assert_eq!(support, LegacySupport { next_dwords: 4, firmware: true, system: false });
        assert_eq!(LegacySupport { system: true, ..support }.encode(), 0x0101_0401);
    }

    #[test]
    fn an_unknown_capability_survives() {
        let capability = ExtendedCapability::decode(0xffff_08c0);
        assert_eq!(capability.id, ExtendedCapabilityId::Unknown(0xc0));
        assert_eq!(capability.encode(), 0x08c0);
    }

    proptest! {
        #[test]
        fn what_decodes_is_encoded_to_the_same_value(mut bytes: [u8; 16]) {
            bytes[0] = 2;
            bytes[4..8].copy_from_slice(b"USB ");
            let protocol = SupportedProtocol::decode(&bytes).unwrap();
            let _ = protocol.to_string();
            prop_assert_eq!(SupportedProtocol::decode(&protocol.encode()), Ok(protocol));
        }
    }
}
