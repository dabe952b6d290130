//! Rules in the code of `uas` (Linux, drivers/usb/storage/uas-detect.h): ids alone do not distinguish these chips.

use super::history::HIKSEMI_BY_NAMES;
use super::{Flag, Flags, KernelVersion, Versions};
use crate::identity::{DeviceId, Identity};
use bus::Speed;

/// A rule that looks at more than ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodedRule {
    /// An ASMedia chip that says bMaxPower 0: an ASM1153, which is fine.
    Asm1153,
    /// An ASMedia chip below super speed: its streams are not to be seen, so it may be an ASM1051.
    AsmediaBelowSuperSpeed,
    /// An ASMedia chip with exactly 32 streams on its status pipe: perhaps an ASM1051.
    AsmediaWith32Streams,
    /// Any other ASMedia chip of these ids: an ASM1053, which has trouble with large transfers.
    Asm1053,
    /// All of Seagate: their ATA pass-through is broken.
    Seagate,
    /// HIKSEMI MD202, known by its strings.
    Hiksemi,
}

/// Facts that distinguish bridges with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeFacts {
    /// bMaxPower of the configuration, in its own unit.
    pub max_power: u8,
    /// Of the link.
    pub speed: Speed,
    /// Streams of the status pipe; 0 is none.
    pub status_streams: u32,
}

impl CodedRule {
    /// Every rule.
    pub const ALL: [Self; 6] = [
        Self::Asm1153,
        Self::AsmediaBelowSuperSpeed,
        Self::AsmediaWith32Streams,
        Self::Asm1053,
        Self::Seagate,
        Self::Hiksemi,
    ];

    /// Returns the flags that Linux applies by this rule.
    pub const fn flags(self) -> Flags {
        match self {
            Self::Asm1153 => Flags::NONE,
            Self::AsmediaBelowSuperSpeed | Self::AsmediaWith32Streams | Self::Hiksemi => {
                Flags::of(&[Flag::IgnoreUas])
            }
            Self::Asm1053 => Flags::of(&[Flag::MaxSectors240]),
            Self::Seagate => Flags::of(&[Flag::NoAta1x]),
        }
    }

    /// The versions of Linux that have the rule.
    pub const fn versions(self) -> Versions {
        match self {
            Self::Hiksemi => Versions { since: Some(&HIKSEMI_BY_NAMES), before: None },
            Self::Asm1153
            | Self::AsmediaBelowSuperSpeed
            | Self::AsmediaWith32Streams
            | Self::Asm1053
            | Self::Seagate => Versions { since: None, before: None },
        }
    }

    /// Why the rule is there.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Asm1153 => "bMaxPower is 0, so the ASMedia chip is an ASM1153, which is fine",
            Self::AsmediaBelowSuperSpeed => {
                "the ASMedia chip draws current from the bus and is below super speed, so it may be an ASM1051, whose UAS is broken"
            }
            Self::AsmediaWith32Streams => {
                "the ASMedia chip draws current from the bus and has 32 streams, so it may be an ASM1051, whose UAS is broken"
            }
            Self::Asm1053 => {
                "the ASMedia chip has another number of streams than 32, so it is an ASM1053: transfers are kept short"
            }
            Self::Seagate => "it is from Seagate, whose ATA pass-through is broken",
            Self::Hiksemi => "it calls itself HIKSEMI MD202, whose UAS is broken",
        }
    }

    /// Returns the rule that a kernel applies to a device, if any; `None` is the newest kernel that is known.
    pub fn in_kernel(
        identity: &Identity<'_>,
        facts: BridgeFacts,
        kernel: Option<KernelVersion>,
    ) -> Option<Self> {
        Self::of(identity, facts).filter(|rule| rule.versions().contain(kernel))
    }

    /// Their ids are of different vendors, so it is one at most.
    fn of(identity: &Identity<'_>, facts: BridgeFacts) -> Option<Self> {
        if ASMEDIA.contains(&identity.id) {
            Some(Self::asmedia(facts))
        } else if identity.id.vendor == SEAGATE {
            Some(Self::Seagate)
        } else if identity.id == HIKSEMI
            && identity.names.manufacturer == Some("HIKSEMI")
            && identity.names.product == Some("MD202")
        {
            Some(Self::Hiksemi)
        } else {
            None
        }
    }

    const fn asmedia(facts: BridgeFacts) -> Self {
        match facts {
            BridgeFacts { max_power: 0, .. } => Self::Asm1153,
            BridgeFacts { speed: Speed::Full | Speed::High, .. } => Self::AsmediaBelowSuperSpeed,
            BridgeFacts { status_streams: ASM1051_STREAMS, .. } => Self::AsmediaWith32Streams,
            _ => Self::Asm1053,
        }
    }
}

const SEAGATE: u16 = 0x0bc2;
/// A Realtek RTL9210, which others use as well.
const HIKSEMI: DeviceId = DeviceId::new(0x0bda, 0x9210);
const ASMEDIA: [DeviceId; 2] = [DeviceId::new(0x174c, 0x5106), DeviceId::new(0x174c, 0x55aa)];
const ASM1051_STREAMS: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Names;

    #[test]
    fn a_rule_counts_in_its_kernels_alone() {
        let names = Names { manufacturer: Some("HIKSEMI"), product: Some("MD202") };
        let facts = BridgeFacts { max_power: 0, speed: Speed::Super, status_streams: 32 };
        let of = |id, kernel| CodedRule::in_kernel(&Identity { id, revision: 1, names }, facts, kernel);
        let [old, new] = [(6, 1), (6, 2)].map(|(major, minor)| Some(KernelVersion::new(major, minor)));
        let hiksemi = [old, new, None].map(|kernel| of(HIKSEMI, kernel));
        assert_eq!(hiksemi, [None, Some(CodedRule::Hiksemi), Some(CodedRule::Hiksemi)]);
        let seagate = [old, new, None].map(|kernel| of(DeviceId::new(SEAGATE, 1), kernel));
        assert_eq!(seagate, [Some(CodedRule::Seagate); 3]);
    }
}
