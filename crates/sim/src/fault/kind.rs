//! Kinds of faults, with their names and where their opportunities are.

use std::fmt;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// A status is never sent, and the device believes that it was. Opportunity: each status.
    StatusLost,
    /// A status has another tag. Opportunity: each status.
    StatusTag,
    /// A status is sent twice. Opportunity: each status.
    StatusTwice,
    /// A block cannot be read or written. Opportunity: each request to the medium.
    MediumError,
    /// A request takes longer than a host has patience for. Opportunity: each request to the medium.
    Slow,
    /// The device says NRDY for a millisecond. Opportunity: each status, and each time it has room for a command.
    NotReady,
    /// An endpoint of the device answers NRDY, on a bus of USB 2.0 NAK, 2 to 32 times in a row to what it could do at once.
    /// Opportunity: each transfer that it offers.
    NotReadyStorm,
    /// The device halts the endpoint by itself. Opportunity: each transfer that it offers.
    Stall,
    /// The header of a packet arrives damaged: the link sends it again. On a bus of USB 2.0 a token or handshake, which nobody
    /// answers. Opportunity: each packet that is sent.
    HeaderDamaged,
    /// The payload of a packet arrives damaged: its receiver asks for it again, or on a bus of USB 2.0 does not answer.
    /// Opportunity: each packet with payload.
    PayloadDamaged,
    /// A packet is lost between link and port: the host waits for an answer, and tries again. Opportunity: each packet that is
    /// sent.
    PacketLost,
    /// The device is pulled out. It keeps its power, and its cache. Opportunity: each packet that arrives.
    Unplug,
    /// The power fails: the device is gone, and what is not on the medium may be. Opportunity: each packet that
    /// arrives.
    PowerLoss,
    /// The host controller meets an error and halts: its driver gives it up, and everything is brought up again. The device
    /// keeps its power. Opportunity: each packet that arrives, where there is a controller.
    ControllerHalt,
    /// The port of the hub is reset that the device is behind: the hub forgets its ports, and all that is behind it is given up
    /// and brought up again. The device keeps its power. Opportunity: each packet that arrives, where there is a hub.
    HubReset,
}

impl FaultKind {
    /// How many there are.
    pub(super) const COUNT: usize = Self::ALL.len();

    /// All of them, in the order of their numbers.
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

    /// Its name in a script.
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

    /// The kind with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// How often dice have it strike in one run at most.
    pub const fn most(self) -> usize {
        match self {
            // Each ends a life of the device.
            ender if ender.ends_life() => 2,
            _ => super::FAULTS_MAX,
        }
    }

    /// Whether the device is not there any more afterwards.
    pub const fn ends_life(self) -> bool {
        matches!(self, Self::Unplug | Self::PowerLoss | Self::ControllerHalt | Self::HubReset)
    }

    /// Whether more than a moment's delay may come of it: the rest is put right by the link and its ports, and neither initiator
    /// nor target knows. On a bus of USB 2.0 three damaged packets are one too many.
    pub const fn is_felt(self, is_on_bus: bool) -> bool {
        match self {
            Self::HeaderDamaged | Self::PayloadDamaged => is_on_bus,
            Self::NotReady | Self::NotReadyStorm => false,
            _ => true,
        }
    }

    /// How often one of these can make one command fail that is sent again each time: a unit that answers with an error is
    /// done with it, and one that is busy for a minute or so keeps others waiting as well.
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
    fn names_are_found_again_and_numbers_are_places() {
        for (number, kind) in FaultKind::ALL.into_iter().enumerate() {
            assert_eq!(FaultKind::of_name(kind.name()), Some(kind));
            assert_eq!(kind as usize, number);
        }
        assert_eq!(FaultKind::of_name("status"), None);
    }
}
