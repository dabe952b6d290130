//! SuperSpeedPlus USB device capability (USB 3.2 clause 9.6.2.5).
//!
//! A list of lane speeds: usually each speed twice, once for receiving and once for transmitting, under one
//! speed id. Always true: the list holds 1 to 32 of them.

use super::super::descriptor_kind::{DescriptorKind, whole_descriptor};
use super::capability_kind::{CapabilityKind, fixed_capability};
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// Speeds above 5 Gbit/s, or on two lanes.
///
/// ```text
///  0      bLength (12 + 4 n)                      4..8   bmAttributes: n - 1 (4:0), speed ids - 1 (8:5)
///  1      bDescriptorType (10h)                   8..10  wFunctionalitySupport: speed id (3:0),
///  2      bDevCapabilityType (0Ah)                       Rx lanes (11:8), Tx lanes (15:12)
///  3      reserved                               10..12  reserved
///                                                12..    bmSublinkSpeedAttr, n times four bytes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperSpeedPlusCapability<'a> {
    /// How many different speed ids the list has, 1 to 16.
    pub speed_ids: u8,
    /// Least speed and lanes at which the device works fully.
    pub minimum: SuperSpeedPlusMinimum,
    sublinks: &'a [[u8; 4]],
}

/// The least at which everything in the device works (`wFunctionalitySupport`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperSpeedPlusMinimum {
    /// The id of a lane speed, 0 to 15.
    pub speed_id: u8,
    /// Lanes towards the device, 0 to 15.
    pub rx_lanes: u8,
    /// Lanes towards the host, 0 to 15.
    pub tx_lanes: u8,
}

/// One lane speed.
///
/// ```text
///  3:0    speed id                                15:14  link protocol
///  5:4    unit of the mantissa                    31:16  mantissa
///  7:6    asymmetric (6), transmit (7)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SublinkSpeed {
    /// Names the speed, 0 to 15.
    pub id: u8,
    /// The unit that the mantissa counts.
    pub unit: LaneSpeedUnit,
    /// Rx and Tx may have different numbers of lanes.
    pub asymmetric: bool,
    /// Of the transmitter; otherwise of the receiver.
    pub transmit: bool,
    /// The protocol of the link at this speed.
    pub protocol: LinkProtocol,
    /// How many units.
    pub mantissa: u16,
}

/// Unit of a lane speed mantissa.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneSpeedUnit {
    /// bit/s.
    Bit,
    /// kbit/s.
    Kilobit,
    /// Mbit/s.
    Megabit,
    /// Gbit/s.
    Gigabit,
}

code! {
    /// Link protocol, two bits.
    pub enum LinkProtocol: u8 {
        /// Gen 1.
        SuperSpeed = 0x00 => "SuperSpeed",
        /// Gen 2.
        SuperSpeedPlus = 0x01 => "SuperSpeedPlus",
    }
}

impl<'a> SuperSpeedPlusCapability<'a> {
    /// Bytes without lane speeds.
    pub const LEN: usize = 12;
    /// Lane speeds that a descriptor has room for.
    pub const SUBLINKS_MAX: usize = 32;

    /// A capability of encoded lane speeds; `None` unless there are 1 to 32 of them.
    pub const fn new(speed_ids: u8, minimum: SuperSpeedPlusMinimum, sublinks: &'a [[u8; 4]]) -> Option<Self> {
        match sublinks.len() {
            1..=Self::SUBLINKS_MAX => Some(Self { speed_ids, minimum, sublinks }),
            _ => None,
        }
    }

    /// Decodes a descriptor; reserved bits and bytes past the known ones are ignored.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        fixed_capability::<12>(bytes, CapabilityKind::SuperSpeedPlus)?;
        let (&[_, _, _, _, a0, a1, _, _, f0, f1, _, _], rest) =
            whole_descriptor::<12>(bytes, DescriptorKind::DeviceCapability)?;
        let attributes = u16::from_le_bytes([a0, a1]);
        let count = usize::from(attributes & 0x1f) + 1;
        let (sublinks, _) = rest.as_chunks::<4>();
        let truncated = DecodeError::Truncated { needed: Self::LEN + 4 * count, got: Self::LEN + rest.len() };
        Ok(Self {
            speed_ids: (attributes >> 5 & 0x0f) as u8 + 1,
            minimum: SuperSpeedPlusMinimum { speed_id: f0 & 0x0f, rx_lanes: f1 & 0x0f, tx_lanes: f1 >> 4 },
            sublinks: sublinks.get(..count).ok_or(truncated)?,
        })
    }

    /// Writes the descriptor to the front of `out` and says how long it is.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let (len, got) = (Self::LEN + 4 * self.sublinks.len(), out.len());
        let (kind, capability) = (DescriptorKind::DeviceCapability, CapabilityKind::SuperSpeedPlus);
        let ids = u32::from(self.speed_ids.saturating_sub(1) & 0x0f);
        let attributes = self.sublinks.len().saturating_sub(1) as u32 & 0x1f | ids << 5;
        let SuperSpeedPlusMinimum { speed_id, rx_lanes, tx_lanes } = self.minimum;
        let mut writer = Writer::new(out);
        let mut put = || {
            writer.put(&[len as u8, kind.into(), capability.into(), 0])?;
            writer.le32(attributes)?;
            writer.put(&[speed_id & 0x0f, rx_lanes & 0x0f | tx_lanes << 4, 0, 0])?;
            writer.put(self.sublinks.as_flattened())
        };
        put().map_err(|_: NoRoom| NoRoom { needed: len, got })?;
        Ok(len)
    }

    /// The lane speeds, in the order of the descriptor.
    pub fn sublinks(&self) -> impl Iterator<Item = SublinkSpeed> + use<'a> {
        self.sublinks.iter().copied().map(SublinkSpeed::from)
    }
}

impl SublinkSpeed {
    /// The four bytes of the attribute.
    pub fn encode(&self) -> [u8; 4] {
        let unit = match self.unit {
            LaneSpeedUnit::Bit => 0,
            LaneSpeedUnit::Kilobit => 1,
            LaneSpeedUnit::Megabit => 2,
            LaneSpeedUnit::Gigabit => 3,
        };
        let kind = u8::from(self.asymmetric) << 6 | u8::from(self.transmit) << 7;
        let [m0, m1] = self.mantissa.to_le_bytes();
        [self.id & 0x0f | unit << 4 | kind, (u8::from(self.protocol) & 0x03) << 6, m0, m1]
    }

    /// The speed of one lane in bit/s.
    pub const fn bits_per_second(&self) -> u64 {
        let unit = match self.unit {
            LaneSpeedUnit::Bit => 1,
            LaneSpeedUnit::Kilobit => 1_000,
            LaneSpeedUnit::Megabit => 1_000_000,
            LaneSpeedUnit::Gigabit => 1_000_000_000,
        };
        self.mantissa as u64 * unit
    }
}

impl From<[u8; 4]> for SublinkSpeed {
    fn from([low, high, m0, m1]: [u8; 4]) -> Self {
        let unit = match low >> 4 & 0x03 {
            0 => LaneSpeedUnit::Bit,
            1 => LaneSpeedUnit::Kilobit,
            2 => LaneSpeedUnit::Megabit,
            _ => LaneSpeedUnit::Gigabit,
        };
        Self {
            id: low & 0x0f,
            unit,
            asymmetric: low & 0x40 != 0,
            transmit: low & 0x80 != 0,
            protocol: LinkProtocol::from(high >> 6),
            mantissa: u16::from_le_bytes([m0, m1]),
        }
    }
}

impl fmt::Display for SuperSpeedPlusCapability<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SuperSpeedPlus capability:")?;
        self.sublinks().try_for_each(|speed| write!(f, " {speed};"))
    }
}

impl fmt::Display for SublinkSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            LaneSpeedUnit::Bit => "bit/s",
            LaneSpeedUnit::Kilobit => "kbit/s",
            LaneSpeedUnit::Megabit => "Mbit/s",
            LaneSpeedUnit::Gigabit => "Gbit/s",
        };
        let side = if self.transmit { "Tx" } else { "Rx" };
        write!(f, "id {} {side} {} {unit} {}", self.id, self.mantissa, self.protocol)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec;

    /// 10 Gbit/s on one lane each way, under speed id 1.
    const GEN_2: [u8; 20] = [
        0x14, 0x10, 0x0a, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x11, 0x00, 0x00, // header
        0x31, 0x40, 0x0a, 0x00, 0xb1, 0x40, 0x0a, 0x00, // Rx, Tx
    ];

    #[test]
    fn literal_bytes_both_ways() {
        let capability = SuperSpeedPlusCapability::decode(&GEN_2).unwrap();
        assert_eq!(capability.speed_ids, 1);
        let minimum = SuperSpeedPlusMinimum { speed_id: 1, rx_lanes: 1, tx_lanes: 1 };
        assert_eq!(capability.minimum, minimum);
        let rx = SublinkSpeed {
            id: 1,
            unit: LaneSpeedUnit::Gigabit,
            asymmetric: false,
            transmit: false,
            protocol: LinkProtocol::SuperSpeedPlus,
            mantissa: 10,
        };
        let tx = SublinkSpeed { transmit: true, ..rx };
        assert!(capability.sublinks().eq([rx, tx]));
        assert_eq!(rx.bits_per_second(), 10_000_000_000);
        let mut out = [0; 20];
        assert_eq!(capability.encode(&mut out), Ok(20));
        assert_eq!(out, GEN_2);
        let encoded = [rx.encode(), tx.encode()];
        assert_eq!(SuperSpeedPlusCapability::new(1, minimum, &encoded), Some(capability));
        let text =
            "SuperSpeedPlus capability: id 1 Rx 10 Gbit/s SuperSpeedPlus; id 1 Tx 10 Gbit/s SuperSpeedPlus;";
        assert_eq!(capability.to_string(), text);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..20 {
            let needed = if len < 12 { 12 } else { 20 };
            let error = DecodeError::Truncated { needed, got: len };
            assert_eq!(SuperSpeedPlusCapability::decode(&GEN_2[..len]), Err(error));
        }
    }

    #[test]
    fn a_count_past_the_descriptor_is_an_error() {
        let mut bytes = GEN_2;
        bytes[4] = 0x02;
        let error = DecodeError::Truncated { needed: 24, got: 20 };
        assert_eq!(SuperSpeedPlusCapability::decode(&bytes), Err(error));
    }

    #[test]
    fn every_buffer_too_small_is_an_error() {
        let capability = SuperSpeedPlusCapability::decode(&GEN_2).unwrap();
        for len in 0..20 {
            assert_eq!(capability.encode(&mut vec![0; len]), Err(NoRoom { needed: 20, got: len }));
        }
    }

    #[test]
    fn there_are_one_to_thirty_two_lane_speeds() {
        let minimum = SuperSpeedPlusMinimum { speed_id: 1, rx_lanes: 1, tx_lanes: 1 };
        let with = |len| SuperSpeedPlusCapability::new(1, minimum, &[[0; 4]; 33][..len]).is_some();
        assert_eq!([0, 1, 32, 33].map(with), [false, true, true, false]);
    }

    #[test]
    fn another_capability_is_another_kind() {
        let mut bytes = GEN_2;
        bytes[2] = 0x03;
        let error = DecodeError::WrongKind { expected: 10, found: 3 };
        assert_eq!(SuperSpeedPlusCapability::decode(&bytes), Err(error));
    }

    #[test]
    fn an_unknown_protocol_survives() {
        let speed = SublinkSpeed::from([0x20, 0xc0, 0x01, 0x00]);
        assert_eq!(speed.protocol, LinkProtocol::Unknown(3));
        assert_eq!(speed.encode(), [0x20, 0xc0, 0x01, 0x00]);
    }

    proptest! {
        #[test]
        fn a_lane_speed_comes_back_but_for_reserved_bits(bytes: [u8; 4]) {
            let [low, high, m0, m1] = bytes;
            prop_assert_eq!(SublinkSpeed::from(bytes).encode(), [low, high & 0xc0, m0, m1]);
        }

        #[test]
        fn decode_undoes_encode(
            ids in 1u8..=16, least in (0u8..16, 0u8..16, 0u8..16),
            sublinks in prop::collection::vec(any::<[u8; 4]>(), 1..=32),
        ) {
            let (speed_id, rx_lanes, tx_lanes) = least;
            let minimum = SuperSpeedPlusMinimum { speed_id, rx_lanes, tx_lanes };
            let capability = SuperSpeedPlusCapability::new(ids, minimum, &sublinks).unwrap();
            let mut out = [0; 255];
            let len = capability.encode(&mut out).unwrap();
            prop_assert_eq!(SuperSpeedPlusCapability::decode(&out[..len]).unwrap(), capability);
        }
    }
}
