//! A host driver described by its structure and costs.
//!
//! Drivers differ in transport, transfer size, queue depth and merging more than in speed. A
//! [`DriverProfile`] has these, and makes a [`Host`] together with a controller.
//!
//! Left out: device matching, priorities, more than one core.
//!
//! Invariant: no figure that a simulation is to predict is in here.

use crate::machine::xhci::{DriverConfig, Host, HostCosts, Packing, Protocol};
use crate::xhc::Part;
use units::Duration;
use xhci_controller::{Misbehaviour, Model};

/// A driver profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverProfile {
    /// Transport. A driver like Turbo is BOT with `packing`.
    pub transport: Protocol,
    /// Bytes of one command at most; longer requests are split.
    pub transfer_bytes_max: u32,
    /// Whether pieces of a split request run one at a time.
    pub pieces_in_turn: bool,
    /// Commands passed to the transport at once. Over BOT one is in flight and others wait in the
    /// driver, if that packs or has [`Packing::NONE`].
    pub depth: u16,
    /// Whether data-out of one command at a time is with the controller, over UAS.
    pub writes_in_turn: bool,
    /// How UAS streams are implemented.
    pub streams: Streams,
    /// Packing of adjacent requests over BOT.
    pub packing: Option<Packing>,
    /// Interrupt moderation interval.
    pub moderation: Duration,
    /// CPU costs.
    pub costs: HostCosts,
}

/// How UAS streams are implemented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// By the controller.
    Hardware,
    /// In the driver, without controller streams, at an extra CPU cost per command. How such
    /// drivers do this on the bus is not published, and UAS at SuperSpeed requires streams, so it
    /// is approximated: packets with streams, two commands in flight, extra cost.
    Software(Duration),
    /// Not at all: no UAS at SuperSpeed.
    None,
}

/// Commands in flight with streams in the driver.
pub const SOFTWARE_STREAMS_DEPTH: u16 = 2;

/// Exponent of the streams that stand in for those of the driver: what drives have at most.
const STOOD_IN_EXPONENT: u8 = 7;
/// The unit of moderation (xHCI 1.2 clause 5.5.2.2).
const MODERATION_UNIT: Duration = Duration::from_ns(250);

impl DriverProfile {
    /// BOT with 64 KiB transfers and no CPU costs.
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

    /// BOT with packed transfers of up to 1 MiB and no CPU costs.
    pub const TURBO: Self =
        Self { transfer_bytes_max: 1 << 20, depth: 64, packing: Some(Packing::TURBO), ..Self::BOT };

    /// UAS with controller streams, 512 KiB transfers, QD30 and no CPU costs.
    pub const UAS: Self = Self {
        transport: Protocol::Uas,
        transfer_bytes_max: 512 << 10,
        depth: 30,
        streams: Streams::Hardware,
        ..Self::BOT
    };

    /// Returns the commands passed to the transport at once.
    pub fn depth(&self) -> u16 {
        match (self.transport, self.streams) {
            (Protocol::Uas, Streams::Software(_)) => self.depth.clamp(1, SOFTWARE_STREAMS_DEPTH),
            _ => self.depth.max(1),
        }
    }

    /// Returns the CPU costs, including those of streams in the driver.
    pub fn costs(&self) -> HostCosts {
        match (self.transport, self.streams) {
            (Protocol::Uas, Streams::Software(more)) => {
                HostCosts { command: self.costs.command + more, ..self.costs }
            }
            _ => self.costs,
        }
    }

    /// Returns a host with this driver and a controller.
    pub fn host(&self, part: Part) -> Host {
        let units = self.moderation.as_ps().div_ceil(MODERATION_UNIT.as_ps());
        let moderation_250ns = u16::try_from(units).unwrap_or(u16::MAX);
        let config = DriverConfig { moderation_250ns, ..DriverConfig::default() };
        let Self { packing, writes_in_turn, .. } = *self;
        Host { part: self.part(part), config, costs: self.costs(), packing, writes_in_turn }
    }

    /// Returns the controller as this driver uses it.
    fn part(&self, part: Part) -> Part {
        match self.streams {
            Streams::Hardware => part,
            Streams::Software(_) => {
                let misbehaviour = Misbehaviour { ignores_streams: false, ..part.model.misbehaviour };
                Part {
                    model: Model { primary_streams_exponent: STOOD_IN_EXPONENT, misbehaviour, ..part.model },
                    ..part
                }
            }
            Streams::None => Part { model: Model { primary_streams_exponent: 0, ..part.model }, ..part },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_streams_allow_two_commands_and_cost_more() {
        let own = DriverProfile { streams: Streams::Software(Duration::from_us(7)), ..DriverProfile::UAS };
        assert_eq!((own.depth(), own.costs().command), (2, Duration::from_us(7)));
        assert_eq!(own.host(Part::EARLY_CARD).part.model.primary_streams_exponent, 7);
        assert_eq!((DriverProfile::UAS.depth(), DriverProfile::UAS.costs()), (30, HostCosts::FREE));
        assert_eq!(DriverProfile::UAS.host(Part::EARLY_CARD).part, Part::EARLY_CARD);
    }

    #[test]
    fn moderation_is_in_units_of_250_ns() {
        let units = |moderation| {
            DriverProfile { moderation, ..DriverProfile::BOT }.host(Part::CHIPSET).config.moderation_250ns
        };
        assert_eq!(units(Duration::from_us(40)), 160);
        assert_eq!(units(Duration::from_ns(251)), 2);
        assert_eq!(units(Duration::from_secs(1)), u16::MAX);
    }
}
