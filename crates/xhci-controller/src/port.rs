//! A root port or hub port: attachment, enable state and changes (xHCI 1.2 clauses 4.19 and 5.4.8).
//!
//! ```text
//!   USB 3                                        USB 2.0
//!   Empty ── plugged, trained ──► Enabled        Empty ── plugged ──► Disabled
//!   Enabled ── reset ──► Resetting ──► Enabled   Disabled ── reset ──► Resetting ──► Enabled
//!   any ── unplugged, or without power ──► Empty
//! ```
//!
//! Not modelled: suspend, over-current, compliance mode, indicators. Invariant: a change while
//! others are unacknowledged makes no event (clause 4.19.2).

use units::{Duration, Instant};
use wire::xhci::{LinkState, PortChanges, PortParts, PortPower, PortStatus, PortWrite};

/// A link of USB 3 trains within this: receiver detection, polling, and configuration.
const TRAINING: Duration = Duration::from_ms(20);
/// A reset of a USB 2.0 port (TDRSTR, USB 2.0 clause 7.1.7.5).
const RESET_USB2: Duration = Duration::from_ms(50);
/// The same of a port of a hub (TDRST).
const RESET_USB2_HUB: Duration = Duration::from_ms(10);
/// A hot reset of a USB 3 port, and a warm one (tReset, USB 3.2 table 6-30).
const RESET_HOT: Duration = Duration::from_ms(12);
const RESET_WARM: Duration = Duration::from_ms(100);

/// A port.
#[derive(Clone, Debug)]
pub struct Port {
    is_usb3: bool,
    is_powered: bool,
    /// Speed id of the attached device, whether detected or not.
    plugged: Option<u8>,
    phase: Phase,
    changes: PortChanges,
    /// When its link goes to sleep.
    power: PortPower,
    /// Reset time of a USB 2.0 port.
    reset_usb2: Duration,
    /// Its link does not come up, whatever is tried.
    is_dead: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Empty,
    /// A link that trains until then.
    Training(Instant),
    Disabled,
    /// Reset until then; whether its link as well.
    Resetting(Instant, bool),
    Enabled,
}

/// The outcome of a port change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortOutcome {
    /// An event is due.
    pub event: bool,
    /// The device became enabled.
    pub up: bool,
    /// The device was reset.
    pub reset: bool,
    /// The device was lost.
    pub lost: bool,
}

impl Port {
    /// Creates a root port, which is powered.
    pub const fn new(is_usb3: bool) -> Self {
        let power = PortPower { u1_timeout: 0, u2_timeout: 0, forces_accept: false };
        Self {
            is_usb3,
            is_powered: true,
            plugged: None,
            phase: Phase::Empty,
            changes: PortChanges::EMPTY,
            power,
            reset_usb2: RESET_USB2,
            is_dead: false,
        }
    }

    /// Creates a hub port, which is not powered initially.
    pub const fn of_hub(is_usb3: bool) -> Self {
        Self { is_powered: false, reset_usb2: RESET_USB2_HUB, ..Self::new(is_usb3) }
    }

    /// Powers the port off after a hub reset or power loss. Returns whether it was enabled.
    pub fn power_off(&mut self) -> bool {
        let was_enabled = matches!(self.phase, Phase::Enabled | Phase::Resetting(..));
        (self.phase, self.changes, self.is_powered) = (Phase::Empty, PortChanges::EMPTY, false);
        was_enabled
    }

    /// Returns its status register (PORTSC, clause 5.4.8).
    pub fn status(&self) -> PortStatus {
        let is_connected = !matches!(self.phase, Phase::Empty | Phase::Training(_));
        let link_state = match self.phase {
            Phase::Empty => LinkState::RxDetect,
            Phase::Training(_) => LinkState::Polling,
            Phase::Disabled if self.is_usb3 && self.is_dead => LinkState::Inactive,
            Phase::Disabled if self.is_usb3 => LinkState::Disabled,
            Phase::Disabled => LinkState::Polling,
            Phase::Resetting(..) if self.is_usb3 => LinkState::HotReset,
            Phase::Resetting(..) | Phase::Enabled => LinkState::U0,
        };
        let parts = PortParts {
            connected: is_connected,
            enabled: self.is_enabled(),
            resetting: matches!(self.phase, Phase::Resetting(..)),
            powered: self.is_powered,
            link_state,
            speed_id: self.plugged.filter(|_| is_connected).unwrap_or(0),
            changes: self.changes,
        };
        parts.status()
    }

    /// Returns when its link goes to sleep. `None` if it is one of USB 2.0, where that register is
    /// another.
    pub fn power(&self) -> Option<PortPower> {
        self.is_usb3.then_some(self.power)
    }

    /// The link is to go to sleep otherwise. Returns whether it can.
    pub const fn set_power(&mut self, power: PortPower) -> bool {
        if self.is_usb3 {
            self.power = power;
        }
        self.is_usb3
    }

    /// Returns whether its device is enabled.
    pub fn is_enabled(&self) -> bool {
        self.phase == Phase::Enabled
    }

    /// Returns the time of the next state change.
    pub const fn due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Training(at) | Phase::Resetting(at, _) => Some(at),
            _ => None,
        }
    }

    /// Attaches a device with a speed id.
    pub fn plug(&mut self, now: Instant, speed_id: u8) -> PortOutcome {
        self.plugged = Some(speed_id);
        self.notice(now)
    }

    /// Fails its link from now on: no training and no reset enables the port, until the device is detached.
    pub const fn die(&mut self) {
        self.is_dead = true;
    }

    /// Detaches the device from a port.
    pub fn unplug(&mut self) -> PortOutcome {
        (self.plugged, self.is_dead) = (None, false);
        self.lose()
    }

    /// Resets the port after a controller reset: an attached device is detected again.
    pub fn restart(&mut self, now: Instant) {
        (self.phase, self.changes, self.is_powered) = (Phase::Empty, PortChanges::EMPTY, true);
        self.power = PortPower::default();
        self.notice(now);
    }

    /// Handles a write to the status register.
    pub fn write(&mut self, now: Instant, write: PortWrite) -> PortOutcome {
        self.changes = self.changes.without(write.acknowledged);
        if write.powered != self.is_powered {
            self.is_powered = write.powered;
            return if write.powered { self.notice(now) } else { self.lose() };
        }
        let can_reset = matches!(self.phase, Phase::Disabled | Phase::Enabled);
        match () {
            () if write.warm_resets && self.is_usb3 && can_reset => {
                self.phase = Phase::Resetting(now + RESET_WARM, true);
            }
            () if write.resets && can_reset => {
                let span = if self.is_usb3 { RESET_HOT } else { self.reset_usb2 };
                self.phase = Phase::Resetting(now + span, false);
            }
            () if write.disables && self.is_enabled() => {
                self.phase = Phase::Disabled;
                return PortOutcome { lost: true, ..PortOutcome::default() };
            }
            () => return PortOutcome::default(),
        }
        PortOutcome { lost: true, ..PortOutcome::default() }
    }

    /// Handles the state change at [`Self::due`].
    pub fn handle_due(&mut self) -> PortOutcome {
        let (next, up) = if self.is_dead { (Phase::Disabled, false) } else { (Phase::Enabled, true) };
        match core::mem::replace(&mut self.phase, next) {
            Phase::Training(_) => PortOutcome { up, ..self.change(PortChanges::CONNECT) },
            Phase::Resetting(_, is_warm) => {
                let reset = PortChanges::RESET;
                let changes = if is_warm { reset.with(PortChanges::WARM_RESET) } else { reset };
                PortOutcome { up, reset: up, ..self.change(changes) }
            }
            phase => {
                self.phase = phase;
                PortOutcome::default()
            }
        }
    }

    fn notice(&mut self, now: Instant) -> PortOutcome {
        match (self.plugged, self.is_usb3) {
            (Some(_), true) if self.is_powered => self.phase = Phase::Training(now + TRAINING),
            (Some(_), false) if self.is_powered => {
                self.phase = Phase::Disabled;
                return self.change(PortChanges::CONNECT);
            }
            _ => {}
        }
        PortOutcome::default()
    }

    fn lose(&mut self) -> PortOutcome {
        match core::mem::replace(&mut self.phase, Phase::Empty) {
            Phase::Empty | Phase::Training(_) => PortOutcome::default(),
            _ => PortOutcome { lost: true, ..self.change(PortChanges::CONNECT) },
        }
    }

    fn change(&mut self, changes: PortChanges) -> PortOutcome {
        let event = self.changes == PortChanges::EMPTY;
        self.changes = self.changes.with(changes);
        PortOutcome { event, ..PortOutcome::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn write(word: u32) -> PortWrite {
        PortWrite::decode(word)
    }

    #[test]
    fn a_port_of_usb_3_trains_and_is_enabled_by_itself() {
        let mut port = Port::new(true);
        assert_eq!(u32::from(port.status()), 0x0000_02a0);
        assert!(!port.plug(NOW, 4).event);
        assert_eq!(port.status().link_state(), LinkState::Polling);
        assert_eq!(port.due(), Some(NOW + TRAINING));
        assert!(port.handle_due().event);
        // Connected, enabled, U0, powered, speed id 4, connect change.
        assert_eq!(u32::from(port.status()), 0x0002_1203);
    }

    #[test]
    fn a_port_of_usb_2_is_enabled_by_a_reset() {
        let mut port = Port::new(false);
        assert!(port.plug(NOW, 3).event);
        assert_eq!(u32::from(port.status()), 0x0002_0ee1);
        assert_eq!(port.write(NOW, write(0x0002_0210)), PortOutcome { lost: true, ..PortOutcome::default() });
        assert!(port.status().is_resetting());
        assert_eq!(port.handle_due(), PortOutcome { event: true, up: true, reset: true, lost: false });
        assert_eq!(u32::from(port.status()), 0x0020_0e03);
    }

    #[test]
    fn a_change_behind_another_makes_no_event() {
        let mut port = Port::new(true);
        port.plug(NOW, 4);
        assert!(port.handle_due().event);
        assert_eq!(port.unplug(), PortOutcome { lost: true, ..PortOutcome::default() });
        port.write(NOW, write(0x0002_0200));
        port.plug(NOW, 4);
        assert!(port.handle_due().event);
    }

    #[test]
    fn an_empty_port_is_not_reset() {
        let mut port = Port::new(true);
        assert_eq!(port.write(NOW, write(0x210)), PortOutcome::default());
        assert_eq!(port.due(), None);
    }

    #[test]
    fn a_port_without_power_is_empty_until_it_has_power() {
        let mut port = Port::new(true);
        port.plug(NOW, 4);
        port.handle_due();
        assert!(port.write(NOW, write(0)).lost);
        assert!(!port.status().is_connected());
        port.write(NOW, write(0x200));
        assert_eq!(port.due(), Some(NOW + TRAINING));
    }

    #[test]
    fn a_warm_reset_reports_both_resets() {
        let mut port = Port::new(true);
        port.plug(NOW, 4);
        port.handle_due();
        port.write(NOW, write(0x8002_0200));
        assert_eq!(port.due(), Some(NOW + RESET_WARM));
        port.handle_due();
        assert_eq!(port.status().changes(), PortChanges::RESET.with(PortChanges::WARM_RESET));
    }
}
