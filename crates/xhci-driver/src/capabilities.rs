//! Capabilities of a controller: its capability registers, and the chain of extended capabilities
//! (xHCI 1.2 clauses 5.3, 7).
//!
//! Read once, whole, into a value that makes sense: offsets that overlap nothing, at least one slot
//! and one port, a chain that ends. Left out: capabilities that the driver has no use for.

use crate::hardware::Registers;
use crate::limit::EXTENDED_CAPABILITIES_MAX;
use alloc::vec::Vec;
use bus::Speed;
use core::fmt;
use wire::xhci::{
    CapabilityRegisters, ControllerFeatures, ExtendedCapability, ExtendedCapabilityId, LinkSpeed,
    SupportedProtocol,
};

/// The capabilities of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Its registers.
    pub registers: CapabilityRegisters,
    /// The protocols of the ports.
    pub protocols: Vec<Protocol>,
    /// Where the firmware's hand-over is, in bytes.
    pub(crate) legacy: Option<u32>,
}

/// A range of ports and its protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Ports, revision, slot type.
    pub supported: SupportedProtocol,
    /// The speed ids, if listed.
    pub speeds: Vec<LinkSpeed>,
}

/// Why a controller cannot be driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// Its registers read as all ones.
    NotThere,
    /// An interface version below 0.95.
    Version(u16),
    /// Overlapping registers, or no slots or ports.
    Nonsense,
}

impl Capabilities {
    /// Reads what the controller says of itself.
    ///
    /// # Errors
    /// [`Unusable`], if that cannot be.
    pub fn read(hw: &mut impl Registers) -> Result<Self, Unusable> {
        let bytes = read_bytes::<32>(hw, 0);
        let registers = CapabilityRegisters::decode(&bytes).map_err(|_| Unusable::Nonsense)?;
        let is_nonsense = u32::from(registers.operational_offset) < CapabilityRegisters::LEN as u32
            || registers.doorbell_offset < registers.operational_offset.into()
            || registers.runtime_offset < registers.operational_offset.into()
            || registers.slots == 0
            || registers.ports == 0;
        match registers.version {
            u16::MAX => Err(Unusable::NotThere),
            version if version < 0x95 => Err(Unusable::Version(version)),
            _ if is_nonsense => Err(Unusable::Nonsense),
            _ => {
                let mut found = Self { registers, protocols: Vec::new(), legacy: None };
                found.walk(hw);
                Ok(found)
            }
        }
    }

    /// The protocol of a root port.
    pub fn protocol(&self, port: u8) -> Option<&Protocol> {
        self.protocols.iter().find(|protocol| protocol.supported.has_port(port))
    }

    /// Returns the link speed that a port's speed id means.
    pub fn link_speed(&self, port: u8, speed_id: u8) -> Option<LinkSpeed> {
        let speeds = self.protocol(port).map_or(&[][..], |protocol| &protocol.speeds);
        speeds.iter().find(|speed| speed.id == speed_id).copied().or_else(|| LinkSpeed::usual(speed_id))
    }

    /// The same in the bus's words, which know no low speed and nothing above SuperSpeed.
    pub fn speed(&self, port: u8, speed_id: u8) -> Option<Speed> {
        match self.link_speed(port, speed_id)?.bits_per_second {
            5_000_000_000.. => Some(Speed::Super),
            480_000_000.. => Some(Speed::High),
            12_000_000.. => Some(Speed::Full),
            _ => None,
        }
    }

    /// Whether secondary stream arrays exist.
    pub(crate) fn has_secondary_streams(&self) -> bool {
        !self.registers.features.has(ControllerFeatures::NO_SECONDARY_STREAMS)
    }

    fn walk(&mut self, hw: &mut impl Registers) {
        let mut at = u32::from(self.registers.extended_offset_dwords) * 4;
        for _ in 0..EXTENDED_CAPABILITIES_MAX {
            if at == 0 {
                return;
            }
            let head = ExtendedCapability::decode(hw.read_register(at));
            match head.id {
                ExtendedCapabilityId::LegacySupport => self.legacy = Some(at),
                ExtendedCapabilityId::SupportedProtocol => self.protocols.extend(read_protocol(hw, at)),
                _ => {}
            }
            at = if head.next_dwords == 0 { 0 } else { at + u32::from(head.next_dwords) * 4 };
        }
    }
}

fn read_protocol(hw: &mut impl Registers, at: u32) -> Option<Protocol> {
    let supported = SupportedProtocol::decode(&read_bytes::<16>(hw, at)).ok()?;
    let first = at + SupportedProtocol::LEN as u32;
    let ids = 0..u32::from(supported.speed_ids);
    let speeds = ids.map(|number| LinkSpeed::decode(hw.read_register(first + 4 * number))).collect();
    Some(Protocol { supported, speeds })
}

fn read_bytes<const N: usize>(hw: &mut impl Registers, at: u32) -> [u8; N] {
    let mut bytes = [0; N];
    for (offset, chunk) in (at..).step_by(4).zip(bytes.chunks_exact_mut(4)) {
        chunk.copy_from_slice(&hw.read_register(offset).to_le_bytes());
    }
    bytes
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotThere => f.write_str("no controller answers"),
            Self::Version(version) => write!(f, "interface version {version:04x} is below 0095"),
            Self::Nonsense => f.write_str("its registers cannot be as they say"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Machine;

    #[test]
    fn ports_have_the_protocol_that_the_chain_says() {
        let found = Capabilities::read(&mut Machine::default()).unwrap();
        assert_eq!(found.protocol(1).map(|p| p.supported.revision.major), Some(2));
        assert_eq!(found.protocol(3).map(|p| p.supported.revision.major), Some(3));
        assert_eq!(found.protocol(9), None);
        assert_eq!(
            [1, 3, 4, 5].map(|id| found.speed(3, id)),
            [Some(Speed::Full), Some(Speed::High), Some(Speed::Super), Some(Speed::Super)]
        );
        assert_eq!([0, 2].map(|id| found.speed(3, id)), [None; 2]);
    }

    #[test]
    fn a_chain_in_a_circle_ends() {
        struct Circle;
        impl Registers for Circle {
            fn read_register(&mut self, offset: u32) -> u32 {
                match offset {
                    0 => 0x0100_0020,
                    0x04 => 0x0101_0101,
                    0x10 => 0xffff_0000,
                    0x14 | 0x18 => 0x2000,
                    // Leads back past the end of 32 bits' worth of nothing, again and again.
                    _ => 0x0000_ff02,
                }
            }
            fn write_register(&mut self, _: u32, _: u32) {}
        }
        assert_eq!(Capabilities::read(&mut Circle).unwrap().protocols, []);
    }

    #[test]
    fn what_is_not_there_or_makes_no_sense_is_reported() {
        struct Same(u32);
        impl Registers for Same {
            fn read_register(&mut self, _: u32) -> u32 {
                self.0
            }
            fn write_register(&mut self, _: u32, _: u32) {}
        }
        assert_eq!(Capabilities::read(&mut Same(u32::MAX)), Err(Unusable::NotThere));
        assert_eq!(Capabilities::read(&mut Same(0)), Err(Unusable::Version(0)));
        assert_eq!(Capabilities::read(&mut Same(0x0100_0000)), Err(Unusable::Nonsense));
    }
}
