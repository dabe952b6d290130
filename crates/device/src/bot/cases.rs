//! The thirteen cases: what the host expects against what the device intends (Bulk-Only Transport 1.0, clause 6.7).
//!
//! ```text
//!                    host: no data       host: In            host: Out
//! device: no data    (1)  Hn = Dn        (4)  Hi > Dn        (9)  Ho > Dn
//! device: In         (2)  Hn < Di        (5)  Hi > Di        (10) Ho <> Di
//!                                        (6)  Hi = Di
//!                                        (7)  Hi < Di
//! device: Out        (3)  Hn < Do        (8)  Hi <> Do       (11) Ho > Do
//!                                                            (12) Ho = Do
//!                                                            (13) Ho < Do
//! ```
//!
//! Where a choice is left, this device moves nothing in a case that is a phase error, so that a command which the
//! host has misjudged changes nothing. In cases 4 and 5 the device sends less than the host asked for; clause 6.7.2 then
//! requires a STALL of Bulk-In, or fill data up to what was asked for instead: see [`ShortData`].

use crate::command::Intent;
use bus::Direction;

/// Data phase that the host's CBW announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The direction; without meaning if there are no bytes.
    pub direction: Direction,
    /// dCBWDataTransferLength.
    pub bytes: u32,
}

/// One of the thirteen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case(pub u8);

/// How the data phase ends where the device has less data than the host asked for (cases 4 and 5, clause 6.7.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShortData {
    /// STALLs Bulk-In, after a short packet where the data end within a packet.
    #[default]
    Stall,
    /// Sends zeros up to what the host asked for, if they are no more than [`PAD_BYTES_MAX`]; else as [`ShortData::Stall`].
    Pad,
    /// Sends a short or zero-length packet and no STALL, as many sticks do. The clause does not allow it.
    ShortPacket,
}

/// The most zeros that [`ShortData::Pad`] sends: what a host can ask for with the 16 bits of an allocation length.
pub const PAD_BYTES_MAX: u32 = 64 << 10;

/// Action of the device in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// No data phase on either side.
    Nothing,
    /// The data phase fits exactly.
    Move,
    /// The device moves what it intends, and then ends the rest of the host's phase: In as [`ShortData`] says, Out with a STALL.
    MoveThenStall,
    /// The device ends the host's phase at once, in the same way.
    Stall,
    /// The device stalls the host's phase, if there is one, and reports a phase error.
    PhaseError,
}

impl Case {
    /// The case of an expectation and an intent.
    pub fn of(host: Expectation, device: Option<Intent>) -> Self {
        use Direction::{In, Out};
        let host = (host.bytes > 0).then_some((host.direction, host.bytes));
        let device = device.map(|intent| (intent.direction, intent.bytes));
        Self(match (host, device) {
            (None, None) => 1,
            (None, Some((In, _))) => 2,
            (None, Some((Out, _))) => 3,
            (Some((In, _)), None) => 4,
            (Some((In, hi)), Some((In, di))) if hi > di => 5,
            (Some((In, hi)), Some((In, di))) if hi == di => 6,
            (Some((In, _)), Some((In, _))) => 7,
            (Some((In, _)), Some((Out, _))) => 8,
            (Some((Out, _)), None) => 9,
            (Some((Out, _)), Some((In, _))) => 10,
            (Some((Out, ho)), Some((Out, d))) if ho > d => 11,
            (Some((Out, ho)), Some((Out, d))) if ho == d => 12,
            (Some((Out, _)), Some((Out, _))) => 13,
        })
    }

    /// The table.
    pub const fn action(self) -> Action {
        match self.0 {
            1 => Action::Nothing,
            6 | 12 => Action::Move,
            5 | 11 => Action::MoveThenStall,
            4 | 9 => Action::Stall,
            _ => Action::PhaseError,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{In, Out};

    fn case(host: (Direction, u32), device: Option<(Direction, u32)>) -> (u8, Action) {
        let expectation = Expectation { direction: host.0, bytes: host.1 };
        let case = Case::of(expectation, device.map(|(direction, bytes)| Intent { direction, bytes }));
        (case.0, case.action())
    }

    #[test]
    fn the_thirteen_cases_are_distinguished() {
        assert_eq!(case((Out, 0), None), (1, Action::Nothing));
        assert_eq!(case((Out, 0), Some((In, 8))), (2, Action::PhaseError));
        assert_eq!(case((In, 0), Some((Out, 8))), (3, Action::PhaseError));
        assert_eq!(case((In, 8), None), (4, Action::Stall));
        assert_eq!(case((In, 8), Some((In, 4))), (5, Action::MoveThenStall));
        assert_eq!(case((In, 8), Some((In, 8))), (6, Action::Move));
        assert_eq!(case((In, 8), Some((In, 9))), (7, Action::PhaseError));
        assert_eq!(case((In, 8), Some((Out, 8))), (8, Action::PhaseError));
        assert_eq!(case((Out, 8), None), (9, Action::Stall));
        assert_eq!(case((Out, 8), Some((In, 8))), (10, Action::PhaseError));
        assert_eq!(case((Out, 8), Some((Out, 4))), (11, Action::MoveThenStall));
        assert_eq!(case((Out, 8), Some((Out, 8))), (12, Action::Move));
        assert_eq!(case((Out, 8), Some((Out, 9))), (13, Action::PhaseError));
    }
}
