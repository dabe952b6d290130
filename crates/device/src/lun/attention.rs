//! Unit attention conditions (SAM-6 clause 5.14).
//!
//! A small ordered set: each condition stands once, the gravest is reported first, and a power-on or reset
//! condition takes the lesser ones with it, since it implies them.

use wire::scsi::sense::AdditionalSense;

/// A unit attention condition, gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Attention {
    /// POWER ON OCCURRED.
    PowerOn,
    /// SCSI BUS RESET OCCURRED: on USB, a port reset.
    BusReset,
    /// BUS DEVICE RESET FUNCTION OCCURRED: LOGICAL UNIT RESET.
    DeviceReset,
    /// I_T NEXUS LOSS OCCURRED.
    NexusLoss,
    /// NOT READY TO READY CHANGE, MEDIUM MAY HAVE CHANGED.
    MediumChanged,
    /// CAPACITY DATA HAS CHANGED.
    CapacityChanged,
    /// MODE PARAMETERS CHANGED.
    ModeChanged,
    /// LOG PARAMETERS CHANGED.
    LogChanged,
    /// RESERVATIONS PREEMPTED.
    ReservationsPreempted,
    /// RESERVATIONS RELEASED.
    ReservationsReleased,
    /// REGISTRATIONS PREEMPTED.
    RegistrationsPreempted,
    /// COMMANDS CLEARED BY ANOTHER INITIATOR.
    CommandsCleared,
}

/// The pending conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attentions(u16);

impl Attention {
    const ALL: [Self; 12] = [
        Self::PowerOn,
        Self::BusReset,
        Self::DeviceReset,
        Self::NexusLoss,
        Self::MediumChanged,
        Self::CapacityChanged,
        Self::ModeChanged,
        Self::LogChanged,
        Self::ReservationsPreempted,
        Self::ReservationsReleased,
        Self::RegistrationsPreempted,
        Self::CommandsCleared,
    ];

    /// The additional sense code that reports it.
    pub const fn additional_sense(self) -> AdditionalSense {
        match self {
            Self::PowerOn => AdditionalSense::POWER_ON_OCCURRED,
            Self::BusReset => AdditionalSense::SCSI_BUS_RESET_OCCURRED,
            Self::DeviceReset => AdditionalSense::BUS_DEVICE_RESET_FUNCTION_OCCURRED,
            Self::NexusLoss => AdditionalSense::I_T_NEXUS_LOSS_OCCURRED,
            Self::MediumChanged => AdditionalSense::MEDIUM_MAY_HAVE_CHANGED,
            Self::CapacityChanged => AdditionalSense::CAPACITY_DATA_HAS_CHANGED,
            Self::ModeChanged => AdditionalSense::MODE_PARAMETERS_CHANGED,
            Self::LogChanged => AdditionalSense::LOG_PARAMETERS_CHANGED,
            Self::ReservationsPreempted => AdditionalSense::RESERVATIONS_PREEMPTED,
            Self::ReservationsReleased => AdditionalSense::RESERVATIONS_RELEASED,
            Self::RegistrationsPreempted => AdditionalSense::REGISTRATIONS_PREEMPTED,
            Self::CommandsCleared => AdditionalSense::COMMANDS_CLEARED_BY_ANOTHER_INITIATOR,
        }
    }

    const fn implies_lesser(self) -> bool {
        matches!(self, Self::PowerOn | Self::BusReset | Self::DeviceReset)
    }
}

impl Attentions {
    /// Adds a condition, unless a graver one that implies it stands.
    pub fn establish(&mut self, attention: Attention) {
        let implied =
            self.gravest().is_some_and(|standing| standing < attention && standing.implies_lesser());
        if attention.implies_lesser() && !implied {
            self.0 = 0;
        }
        if !implied {
            self.0 |= 1 << attention as u8;
        }
    }

    /// The gravest condition that stands.
    pub fn gravest(&self) -> Option<Attention> {
        Attention::ALL.into_iter().find(|&attention| self.0 & 1 << attention as u8 != 0)
    }

    /// Reports the gravest condition and clears it.
    pub fn take(&mut self) -> Option<Attention> {
        let attention = self.gravest()?;
        self.0 &= !(1 << attention as u8);
        Some(attention)
    }

    /// Whether none stands.
    pub const fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_severe_is_reported_first_and_each_once() {
        let mut attentions = Attentions::default();
        attentions.establish(Attention::ModeChanged);
        attentions.establish(Attention::MediumChanged);
        attentions.establish(Attention::ModeChanged);
        assert_eq!(attentions.take(), Some(Attention::MediumChanged));
        assert_eq!(attentions.take(), Some(Attention::ModeChanged));
        assert_eq!(attentions.take(), None);
    }

    #[test]
    fn a_reset_replaces_pending_smaller_resets() {
        let mut attentions = Attentions::default();
        attentions.establish(Attention::ModeChanged);
        attentions.establish(Attention::BusReset);
        attentions.establish(Attention::NexusLoss);
        assert_eq!(attentions.take(), Some(Attention::BusReset));
        assert!(attentions.is_empty());
    }
}
