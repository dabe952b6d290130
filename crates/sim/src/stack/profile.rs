//! A host's driver as a value: its structure first, and then what it takes.
//!
//! Drivers differ less in how fast they are than in what they do: over which transport, how much in one command, how many
//! commands at once, and whether neighbours become one command. All of that is a [`DriverProfile`], and a [`Host`] is made of it
//! and of a controller.
//!
//! Left out: which drives a driver takes at all, and why it would not; priorities; more cores than one.
//!
//! Always true: nothing here knows a figure that is to come out.

use crate::machine::driven::{DriverConfig, Host, HostCosts, Packing, Protocol};
use crate::xhc::Part;
use units::Duration;

/// What a driver is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverProfile {
    /// The transport. A driver like Turbo is one of BOT with `packing`.
    pub transport: Protocol,
    /// Bytes of one command at most: longer requests are cut.
    pub transfer_bytes_max: u32,
    /// Whether the next piece of a request that is cut waits for the end of the one before.
    pub pieces_in_turn: bool,
    /// Commands that are given to the transport at once. Over BOT one of them is under way, and others wait for it in the
    /// driver, if that packs or has [`Packing::NONE`].
    pub depth: u16,
    /// Whether what goes out is with the controller for one command at a time, over UAS.
    pub writes_in_turn: bool,
    /// Who makes the streams of UAS.
    pub streams: Streams,
    /// Whether neighbours travel together, over BOT.
    pub packing: Option<Packing>,
    /// The least time between two interrupts.
    pub moderation: Duration,
    /// What it takes.
    pub costs: HostCosts,
}

/// Who makes the streams of UAS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// The controller.
    Hardware,
    /// The driver, which does without those of the controller and takes so much longer for each command. How such drivers
    /// do it on the bus is not published, and UAS without streams is none at SuperSpeed. So it is stood in
    /// for: packets are those of streams, two commands are under way at most, and each costs more.
    Software(Duration),
    /// Nobody: there is no UAS at SuperSpeed.
    None,
}

/// Commands under way where the driver makes the streams.
pub const SOFTWARE_STREAMS_DEPTH: u16 = 2;

/// Streams of a controller that is not asked for any: the exponent of what drives have at most.
const STOOD_IN_EXPONENT: u8 = 7;
/// The unit of moderation (xHCI 1.2 clause 5.5.2.2).
const MODERATION_UNIT: Duration = Duration::from_ns(250);

impl DriverProfile {
    /// BOT, 64 KiB at a time; nothing takes time.
    pub const BOT: Self = Self {
        transport: Protocol::Bot,
        transfer_bytes_max: 64 << 10,
        pieces_in_turn: false,
        depth: 1,
        writes_in_turn: false,
        streams: Streams::None,
        packing: None,
        moderation: Duration::from_us(40),
        costs: HostCosts::FREE,
    };

    /// BOT with up to 1 MiB at a time, packed out of neighbours; nothing takes time.
    pub const TURBO: Self =
        Self { transfer_bytes_max: 1 << 20, depth: 64, packing: Some(Packing::TURBO), ..Self::BOT };

    /// UAS with streams of the controller, 512 KiB at a time and 30 commands; nothing takes time.
    pub const UAS: Self = Self {
        transport: Protocol::Uas,
        transfer_bytes_max: 512 << 10,
        depth: 30,
        streams: Streams::Hardware,
        ..Self::BOT
    };

    /// Commands that are given to the transport at once.
    pub fn depth(&self) -> u16 {
        match (self.transport, self.streams) {
            (Protocol::Uas, Streams::Software(_)) => self.depth.clamp(1, SOFTWARE_STREAMS_DEPTH),
            _ => self.depth.max(1),
        }
    }

    /// What it takes, with streams of its own counted.
    pub fn costs(&self) -> HostCosts {
        match (self.transport, self.streams) {
            (Protocol::Uas, Streams::Software(more)) => {
                HostCosts { command: self.costs.command + more, ..self.costs }
            }
            _ => self.costs,
        }
    }

    /// A host with this driver and a controller.
    pub fn host(&self, part: Part) -> Host {
        let units = self.moderation.as_ps().div_ceil(MODERATION_UNIT.as_ps());
        let moderation_250ns = u16::try_from(units).unwrap_or(u16::MAX);
        let config = DriverConfig { moderation_250ns, ..DriverConfig::default() };
        let Self { packing, writes_in_turn, .. } = *self;
        Host { part: self.part(part), config, costs: self.costs(), packing, writes_in_turn }
    }

    /// The controller as this driver uses it.
    fn part(&self, part: Part) -> Part {
        match self.streams {
            Streams::Hardware => part,
            Streams::Software(_) => {
                let mut part = Part { primary_streams_exponent: STOOD_IN_EXPONENT, ..part };
                part.misbehaviour.ignores_streams = false;
                part
            }
            Streams::None => Part { primary_streams_exponent: 0, ..part },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_the_driver_s_own_are_two_and_cost_more() {
        let own = DriverProfile { streams: Streams::Software(Duration::from_us(7)), ..DriverProfile::UAS };
        assert_eq!((own.depth(), own.costs().command), (2, Duration::from_us(7)));
        assert_eq!(own.host(Part::EARLY_CARD).part.primary_streams_exponent, 7);
        assert_eq!((DriverProfile::UAS.depth(), DriverProfile::UAS.costs()), (30, HostCosts::FREE));
        assert_eq!(DriverProfile::UAS.host(Part::EARLY_CARD).part, Part::EARLY_CARD);
    }

    #[test]
    fn moderation_is_told_in_250_ns() {
        let units = |moderation| {
            DriverProfile { moderation, ..DriverProfile::BOT }.host(Part::CHIPSET).config.moderation_250ns
        };
        assert_eq!(units(Duration::from_us(40)), 160);
        assert_eq!(units(Duration::from_ns(251)), 2);
        assert_eq!(units(Duration::from_secs(1)), u16::MAX);
    }
}
