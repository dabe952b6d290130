//! Bytes that some features define behind their descriptor's header (MMC-6 clause 5.3).
//!
//! Left out: features whose bytes are all zero for a drive that only reads.

use super::{Profile, head};
use crate::DecodeError;
use crate::scsi::layout::{be16, be32, bit, bits, set_bit, set_bits};
use core::fmt;

/// Profile descriptor of the profile list.
///
/// ```text
/// 0..2  profile number      2  CURRENTP (0)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileDescriptor {
    /// The profile.
    pub profile: Profile,
    /// It is that of the disc.
    pub current: bool,
}

code! {
    /// PHYSICAL INTERFACE STANDARD of the core feature.
    pub enum PhysicalInterface: u32 {
        /// A parallel SCSI bus or its kin.
        Scsi = 0x0000_0001 => "SCSI",
        /// ATAPI.
        Atapi = 0x0000_0002 => "ATAPI",
        /// Serial ATAPI.
        SerialAtapi = 0x0000_0007 => "serial ATAPI",
        /// USB.
        Usb = 0x0000_0008 => "USB",
    }
}

/// Data of the core feature.
///
/// ```text
/// 0..4  physical interface standard      4  INQ2 (1), DBE (0)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreFeature {
    /// How it is connected.
    pub interface: PhysicalInterface,
    /// Device busy events are reported.
    #[doc(alias = "DBE")]
    pub device_busy_events: bool,
}

code! {
    /// LOADING MECHANISM TYPE, three bits.
    pub enum LoadingMechanism: u8 {
        /// A caddy or a slot.
        Caddy = 0x00 => "caddy or slot",
        /// A tray.
        Tray = 0x01 => "tray",
        /// A lid.
        PopUp = 0x02 => "pop-up",
        /// A changer of single discs.
        DiscChanger = 0x04 => "disc changer",
        /// A changer with a magazine.
        MagazineChanger = 0x05 => "magazine changer",
    }
}

/// Data of the removable medium feature.
///
/// ```text
/// 0  loading mechanism (7:5), LOAD (4), EJECT (3), PVNT JMPR (2), DBML (1), LOCK (0)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovableMediumFeature {
    /// How a disc comes in.
    pub mechanism: LoadingMechanism,
    /// START STOP UNIT loads a disc.
    pub load: bool,
    /// START STOP UNIT ejects it.
    pub eject: bool,
    /// The disc can be locked in.
    pub lock: bool,
}

/// Data of the random readable feature.
///
/// ```text
/// 0..4  logical block size      4..6  blocking      6  PP (0)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomReadableFeature {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks that are read together.
    pub blocking: u16,
    /// Mode page 01h is there.
    #[doc(alias = "PP")]
    pub page_present: bool,
}

impl ProfileDescriptor {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes the first four bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        Ok(Self { profile: be16::<0, _>(whole).into(), current: bit::<0>(whole[2]) })
    }

    /// The four bytes on the wire.
    pub fn encode(&self) -> [u8; 4] {
        let [high, low] = u16::from(self.profile).to_be_bytes();
        [high, low, set_bit::<0>(self.current), 0]
    }
}

impl fmt::Display for ProfileDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.profile, if self.current { ", current" } else { "" })
    }
}

impl CoreFeature {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Decodes the first eight bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        Ok(Self { interface: be32::<0, _>(whole).into(), device_busy_events: bit::<0>(whole[4]) })
    }

    /// The eight bytes on the wire.
    pub fn encode(&self) -> [u8; 8] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&u32::from(self.interface).to_be_bytes());
        out[4] = set_bit::<0>(self.device_busy_events);
        out
    }
}

impl fmt::Display for CoreFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, device busy events {}", self.interface, self.device_busy_events)
    }
}

impl RemovableMediumFeature {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes the first four bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        Ok(Self {
            mechanism: bits::<7, 5>(whole[0]).into(),
            load: bit::<4>(whole[0]),
            eject: bit::<3>(whole[0]),
            lock: bit::<0>(whole[0]),
        })
    }

    /// The four bytes on the wire.
    pub fn encode(&self) -> [u8; 4] {
        let can = set_bit::<4>(self.load) | set_bit::<3>(self.eject) | set_bit::<0>(self.lock);
        [set_bits::<7, 5>(self.mechanism.into()) | can, 0, 0, 0]
    }
}

impl fmt::Display for RemovableMediumFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mechanism, load, eject, lock } = self;
        write!(f, "{mechanism}, load {load}, eject {eject}, lock {lock}")
    }
}

impl RandomReadableFeature {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Decodes the first eight bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        Ok(Self {
            block_bytes: be32::<0, _>(whole),
            blocking: be16::<4, _>(whole),
            page_present: bit::<0>(whole[6]),
        })
    }

    /// The eight bytes on the wire.
    pub fn encode(&self) -> [u8; 8] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&self.block_bytes.to_be_bytes());
        out[4..6].copy_from_slice(&self.blocking.to_be_bytes());
        out[6] = set_bit::<0>(self.page_present);
        out
    }
}

impl fmt::Display for RandomReadableFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blocks of {} bytes, {} at once", self.block_bytes, self.blocking)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let profile = ProfileDescriptor { profile: Profile::BdRom, current: true };
        assert_eq!(profile.encode(), [0x00, 0x40, 0x01, 0]);
        assert_eq!(ProfileDescriptor::decode(&[0x00, 0x40, 0x01, 0]), Ok(profile));
        let core = CoreFeature { interface: PhysicalInterface::Usb, device_busy_events: true };
        assert_eq!(core.encode(), [0, 0, 0, 8, 1, 0, 0, 0]);
        assert_eq!(CoreFeature::decode(&[0, 0, 0, 8, 1, 0, 0, 0]), Ok(core));
        let removable =
            RemovableMediumFeature { mechanism: LoadingMechanism::Tray, load: true, eject: true, lock: true };
        assert_eq!(removable.encode(), [0x39, 0, 0, 0]);
        assert_eq!(RemovableMediumFeature::decode(&[0x39, 0, 0, 0]), Ok(removable));
        let readable = RandomReadableFeature { block_bytes: 2048, blocking: 16, page_present: true };
        assert_eq!(readable.encode(), [0, 0, 8, 0, 0, 16, 1, 0]);
        assert_eq!(RandomReadableFeature::decode(&[0, 0, 8, 0, 0, 16, 1, 0]), Ok(readable));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..8 {
            let bytes = &[0; 8][..got];
            assert_eq!(CoreFeature::decode(bytes), Err(DecodeError::Truncated { needed: 8, got }));
            assert_eq!(RandomReadableFeature::decode(bytes), Err(DecodeError::Truncated { needed: 8, got }));
            assert_eq!(ProfileDescriptor::decode(bytes).is_err(), got < 4);
            assert_eq!(RemovableMediumFeature::decode(bytes).is_err(), got < 4);
        }
    }
}
