//! Host controllers: the parameters of their state machine, and what they add on the bus.
//!
//! Left out: driver times; named parts are in the catalogue of crate `study`.

use super::packet_delays::PacketDelays;
use crate::link::superspeed::ExitLatency;
use crate::link::usb2::Pacing;
use units::Duration;
use xhci_controller::Model;

/// A host controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Its state machine. Exit latencies are those of `exit`.
    pub model: Model,
    /// Gap between packets that it sends, beyond the link's.
    pub packet_gap: Duration,
    /// Time from a packet of the device to its answer; 3 us at most (USB 3.2 table 8-36,
    /// tHostResponse).
    pub response: Duration,
    /// Exit latencies of its root ports, as in HCSPARAMS3.
    pub exit: ExitLatency,
    /// Delays that it adds on a USB 2.0 bus.
    pub pacing: Pacing,
}

impl Part {
    /// A chipset controller that follows the standard.
    pub const CHIPSET: Self = Self {
        name: "chipset",
        model: Model::CHIPSET,
        packet_gap: Duration::ZERO,
        response: Duration::from_ns(100),
        exit: ExitLatency::CHIPSET,
        pacing: Pacing::AT_ONCE,
    };

    /// A card in a slot of one lane: moves no more than 410 MB/s, and every access is a long way.
    pub const CARD: Self =
        Self { name: "card", model: Model::CARD, response: Duration::from_ns(200), ..Self::CHIPSET };

    /// An early card: version 0.96, without streams.
    pub const EARLY_CARD: Self = Self { name: "early card", model: Model::EARLY_CARD, ..Self::CARD };

    /// Returns the parameters of its state machine, exit latencies included.
    pub const fn controller(&self) -> Model {
        Model { u1_exit_latency_us: self.exit.u1_us(), u2_exit_latency_us: self.exit.u2_us(), ..self.model }
    }

    /// Returns what it adds to the times of packets.
    pub(crate) const fn packet_delays(&self) -> PacketDelays {
        PacketDelays { gap: self.packet_gap, response: self.response }
    }
}
