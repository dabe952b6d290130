//! Kinds of faults, their names and opportunities.

use std::fmt;

/// Random faults in one run at most, so that a run ends.
pub const FAULTS_MAX: usize = 64;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// A status is not sent, and the device believes that it was. Opportunity: each status.
    StatusLost,
    /// A status carries a wrong tag. Opportunity: each status.
    StatusTag,
    /// A status is sent twice. Opportunity: each status.
    StatusTwice,
    /// An unrecoverable medium error. Opportunity: each medium request.
    MediumError,
    /// A request takes longer than the host's command timeout. Opportunity: each medium request.
    Slow,
    /// The device answers NRDY for 1 ms. Opportunity: each status, and each time that it can accept
    /// a command.
    NotReady,
    /// An endpoint answers NRDY (NAK on USB 2.0) 2 to 32 times in a row although it is ready.
    /// Opportunity: each transfer that the device queues.
    NotReadyStorm,
    /// The device halts the endpoint. Opportunity: each transfer that the device queues.
    Stall,
    /// A packet header is corrupted and the link retries it. On USB 2.0 a token or handshake, which
    /// is not answered. Opportunity: each packet sent.
    HeaderDamaged,
    /// A payload is corrupted: the receiver requests it again, or on USB 2.0 does not answer.
    /// Opportunity: each packet with payload.
    PayloadDamaged,
    /// A packet is lost between link and port: the host times out and retries. Opportunity: each
    /// packet sent.
    PacketLost,
    /// The device is detached. It keeps power and cache. Opportunity: each packet that arrives.
    Unplug,
    /// Power fails: the device is gone, and unflushed data may be lost. Opportunity: each packet
    /// that arrives.
    PowerLoss,
    /// The host controller reports an error and halts: its driver gives up, and everything is
    /// enumerated again. The device keeps power. Opportunity: each packet that arrives, if there is
    /// a controller.
    ControllerHalt,
    /// The port of the hub above the device is reset: the hub loses its ports, and everything
    /// behind it is detached and enumerated again. The device keeps power. Opportunity: each packet
    /// that arrives, if there is a hub.
    HubReset,
}

impl FaultKind {
    /// Number of kinds.
    pub(super) const COUNT: usize = Self::ALL.len();

    /// All kinds, in numeric order.
    pub const ALL: [Self; 15] = [
        Self::StatusLost,
        Self::StatusTag,
        Self::StatusTwice,
        Self::MediumError,
        Self::Slow,
        Self::NotReady,
        Self::NotReadyStorm,
        Self::Stall,
        Self::HeaderDamaged,
        Self::PayloadDamaged,
        Self::PacketLost,
        Self::Unplug,
        Self::PowerLoss,
        Self::ControllerHalt,
        Self::HubReset,
    ];

    /// Returns the name used in scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StatusLost => "status-lost",
            Self::StatusTag => "status-tag",
            Self::StatusTwice => "status-twice",
            Self::MediumError => "medium-error",
            Self::Slow => "slow",
            Self::NotReady => "not-ready",
            Self::NotReadyStorm => "not-ready-storm",
            Self::Stall => "stall",
            Self::HeaderDamaged => "header-damaged",
            Self::PayloadDamaged => "payload-damaged",
            Self::PacketLost => "packet-lost",
            Self::Unplug => "unplug",
            Self::PowerLoss => "power-loss",
            Self::ControllerHalt => "controller-halt",
            Self::HubReset => "hub-reset",
        }
    }

    /// Looks up a kind by name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns how often random faults of this kind occur in one run at most.
    pub const fn most(self) -> usize {
        match self {
            // Each ends a session of the device.
            ender if ender.ends_life() => 2,
            _ => FAULTS_MAX,
        }
    }

    /// Returns whether the device is gone afterwards.
    pub const fn ends_life(self) -> bool {
        matches!(self, Self::Unplug | Self::PowerLoss | Self::ControllerHalt | Self::HubReset)
    }

    /// Returns whether the fault is visible above the link. Others are corrected by the link and
    /// its ports and only delay. On USB 2.0 three corrupted packets in a row are visible.
    pub const fn is_felt(self, is_on_bus: bool) -> bool {
        match self {
            Self::HeaderDamaged | Self::PayloadDamaged => is_on_bus,
            Self::NotReady | Self::NotReadyStorm => false,
            _ => true,
        }
    }

    /// Returns how often a fault can fail the same command when it is retried: a medium error ends
    /// the command, and a unit that is busy for a minute delays others too.
    pub const fn tries(self, is_on_bus: bool) -> usize {
        match self {
            Self::MediumError => 0,
            unfelt if !unfelt.is_felt(is_on_bus) => 0,
            Self::Slow => 3,
            _ => 1,
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_round_trip_by_name_and_index() {
        for (number, kind) in FaultKind::ALL.into_iter().enumerate() {
            assert_eq!(FaultKind::of_name(kind.name()), Some(kind));
            assert_eq!(kind as usize, number);
        }
        assert_eq!(FaultKind::of_name("status"), None);
    }
}
