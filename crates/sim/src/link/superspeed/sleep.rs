//! Link power management: U1 and U2 entry and exit (USB 3.2 clauses 7.2.4.2 and 7.5).
//!
//! ```text
//!              LGO_U1, LAU, LPMA                    PORT_U2_TIMEOUT in U1, at both ends alike
//!        ┌──────────────────────────► U1 ────────────────────────────────────────────────► U2
//!   U0 ──┤     LGO_U2, LAU, LPMA      │                                                    │
//!   ▲ ▲  └────────────────────────────┼──────────────────────────────────────────────────► │
//!   │ └─ LXU: not now                 │ somebody has a packet                              │
//!   └──── LFPS, recovery ◄────────────┴────────────────────────────────────────────────────┘
//! ```
//!
//! An idle link needs no events: its transitions since the last packet are computed when the next
//! one comes, or when queried. A packet waits for the exit to U0. Not modelled: U3, physical layer
//! timers, failed recovery, LFPS on the lanes.
//!
//! Invariant: each instant belongs to one state, and a packet crosses in U0.

use super::side::Side;
use crate::power::{Meter, Microwatts};
use units::{Duration, Instant};

/// The modelled link states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LinkState {
    /// Packets cross.
    U0,
    /// U1: exit within microseconds.
    U1,
    /// U2: exit within milliseconds.
    U2,
    /// Exit to U0: LFPS handshake and recovery.
    Exit,
}

/// Inactivity timeout of a downstream facing port: PORT_U1_TIMEOUT or PORT_U2_TIMEOUT (clause
/// 10.16.2.10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inactivity {
    /// 0: does not initiate, and rejects requests.
    #[default]
    Refused,
    /// Initiates after this time without a packet, except timestamps, and accepts requests.
    After(Duration),
    /// FFh: does not initiate, and accepts requests.
    Accepted,
}

/// Maximum exit latencies of a side: bU1DevExitLat and wU2DevExitLat of a device, HCSPARAMS3 of a
/// controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitLatency {
    u1: Duration,
    u2: Duration,
}

/// Power management parameters of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// For U1, by the host's port.
    pub u1: Inactivity,
    /// For U2.
    pub u2: Inactivity,
    /// Of both sides, the host first: the slower one counts.
    pub exit: [ExitLatency; 2],
    /// Time without a packet after which a device with U1_ENABLE or U2_ENABLE initiates.
    pub device_asks_after: Duration,
    /// Whether a busy device rejects requests (LXU).
    pub device_refuses_at_work: bool,
    /// Power of both ports together, by [`LinkState`].
    pub draws: [Microwatts; 4],
}

/// Power management state of a link.
#[derive(Clone, Debug)]
pub(super) struct Sleeper {
    sleep: Sleep,
    meter: Meter<4>,
    /// Time of the last packet or of the last rejected request.
    active_at: Instant,
    /// Time of the return to U0.
    awake_at: Instant,
    /// Low-power states that the device may initiate: U1, U2.
    may_ask: [bool; 2],
    is_at_work: bool,
    /// Time at which the device last became idle.
    at_leisure_since: Instant,
}

/// A request for a low power state: side, time, state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) at: Instant,
    pub(super) by: Side,
    pub(super) state: LinkState,
}

impl Inactivity {
    /// Decodes PORT_U1_TIMEOUT, in microseconds. `None` for reserved values.
    pub const fn from_u1_timeout(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::Refused),
            1..=0x7F => Some(Self::After(Duration::from_us(value as u64))),
            0xFF => Some(Self::Accepted),
            _ => None,
        }
    }

    /// Decodes PORT_U2_TIMEOUT, in units of 256 us.
    pub const fn from_u2_timeout(value: u8) -> Self {
        match value {
            0 => Self::Refused,
            0xFF => Self::Accepted,
            _ => Self::After(Duration::from_us(256 * value as u64)),
        }
    }

    /// Encodes PORT_U1_TIMEOUT. Times that it cannot express are only kept by devices.
    pub const fn u1_timeout(self) -> u8 {
        self.timeout(Duration::from_us(1), 0x7F)
    }

    /// Encodes PORT_U2_TIMEOUT.
    pub const fn u2_timeout(self) -> u8 {
        self.timeout(Duration::from_us(256), 0xFE)
    }

    const fn timeout(self, unit: Duration, most: u64) -> u8 {
        match self {
            Self::Refused => 0,
            Self::Accepted => 0xFF,
            Self::After(span) => match span.as_ps().div_ceil(unit.as_ps()) {
                0 => 1,
                units if units <= most => units as u8,
                _ => 0xFF,
            },
        }
    }

    const fn after(self) -> Option<Duration> {
        match self {
            Self::After(span) => Some(span),
            Self::Refused | Self::Accepted => None,
        }
    }
}

impl ExitLatency {
    /// Maximum values that can be advertised (clause 9.6.2.2): 10 us, 2,047 us.
    pub const MAX: Self = Self { u1: Duration::from_us(10), u2: Duration::from_us(2_047) };
    /// A controller of a chipset.
    pub const CHIPSET: Self = Self { u1: Duration::from_us(10), u2: Duration::from_us(512) };

    /// Creates the latencies of a part.
    ///
    /// # Panics
    /// If one is longer than can be advertised.
    pub const fn new(u1: Duration, u2: Duration) -> Self {
        assert!(u1.as_ps() <= Self::MAX.u1.as_ps(), "U1 is left within 10 us");
        assert!(u2.as_ps() <= Self::MAX.u2.as_ps(), "U2 is left within 2,047 us");
        Self { u1, u2 }
    }

    /// Creates latencies from advertised values in microseconds, clamped to the maximum.
    pub const fn reported(u1_us: u8, u2_us: u16) -> Self {
        let (u1, u2) = (if u1_us > 10 { 10 } else { u1_us }, if u2_us > 2_047 { 2_047 } else { u2_us });
        Self::new(Duration::from_us(u1 as u64), Duration::from_us(u2 as u64))
    }

    /// Returns the U1 exit latency in microseconds.
    pub const fn u1_us(self) -> u8 {
        self.u1.as_ps().div_ceil(Duration::from_us(1).as_ps()) as u8
    }

    /// Returns the U2 exit latency in microseconds.
    pub const fn u2_us(self) -> u16 {
        self.u2.as_ps().div_ceil(Duration::from_us(1).as_ps()) as u16
    }

    const fn of(self, state: LinkState) -> Duration {
        match state {
            LinkState::U1 => self.u1,
            LinkState::U2 => self.u2,
            LinkState::U0 | LinkState::Exit => Duration::ZERO,
        }
    }
}

impl Sleep {
    /// As configured by Linux behind an Intel controller: U1 after five times the system exit
    /// latency of 10 us, U2 after 10 ms in units of 256 us. Power values are assumed, not measured.
    pub const LINUX: Self = Self {
        u1: Inactivity::After(Duration::from_us(50)),
        u2: Inactivity::After(Duration::from_us(40 * 256)),
        exit: [ExitLatency::CHIPSET, ExitLatency::MAX],
        device_asks_after: Duration::from_us(50),
        device_refuses_at_work: true,
        draws: Self::DRAWS,
    };

    /// Two ports of 5 Gb/s: busy or idle, in U1, in U2, and on the way back.
    pub const DRAWS: [Microwatts; 4] = [
        Microwatts::from_milliwatts(340),
        Microwatts::from_milliwatts(120),
        Microwatts::from_milliwatts(24),
        Microwatts::from_milliwatts(340),
    ];
}

impl Sleeper {
    pub(super) const fn new(sleep: Sleep) -> Self {
        Self {
            sleep,
            meter: Meter::new(sleep.draws),
            active_at: Instant::ZERO,
            awake_at: Instant::ZERO,
            may_ask: [false; 2],
            is_at_work: false,
            at_leisure_since: Instant::ZERO,
        }
    }

    pub(super) const fn meter(&self) -> &Meter<4> {
        &self.meter
    }

    pub(super) const fn state(&self) -> LinkState {
        [LinkState::U0, LinkState::U1, LinkState::U2, LinkState::Exit][self.meter.state()]
    }

    /// Sets U1_ENABLE or U2_ENABLE of the device.
    pub(super) const fn let_device_ask(&mut self, state: LinkState, may: bool) {
        match state {
            LinkState::U1 => self.may_ask[0] = may,
            LinkState::U2 => self.may_ask[1] = may,
            LinkState::U0 | LinkState::Exit => {}
        }
    }

    /// Sets the inactivity timeouts of the host port.
    pub(super) const fn set_inactivity(&mut self, [u1, u2]: [Inactivity; 2]) {
        (self.sleep.u1, self.sleep.u2) = (u1, u2);
    }

    /// Sets the exit latency of a side.
    pub(super) const fn set_exit(&mut self, side: Side, exit: ExitLatency) {
        self.sleep.exit[side as usize] = exit;
    }

    /// Resets power management after a device reset: the device requests nothing, and the link is
    /// in U0 after training.
    pub(super) fn restart(&mut self, now: Instant) {
        (self.may_ask, self.is_at_work, self.at_leisure_since) = ([false; 2], false, now);
        let begins = now.max(self.meter.since());
        self.meter.switch(begins, LinkState::U0 as usize);
        (self.awake_at, self.active_at) = (begins, begins);
    }

    /// Reports whether the device is busy. It requests a low power state only when idle.
    pub(super) const fn work(&mut self, now: Instant, is_at_work: bool) {
        self.is_at_work = is_at_work;
        if !is_at_work {
            self.at_leisure_since = now;
        }
    }

    /// Returns whether the device rejects a request of the host port.
    pub(super) const fn refuses(&self, attempt: Attempt) -> bool {
        matches!(attempt.by, Side::Host) && self.is_at_work && self.sleep.device_refuses_at_work
    }

    /// Restarts the inactivity timers after a packet.
    pub(super) fn cross(&mut self, arrives: Instant) {
        self.active_at = self.active_at.max(arrives);
    }

    /// Returns the next request before `until`.
    pub(super) fn attempt(&self, until: Instant) -> Option<Attempt> {
        if self.state() != LinkState::U0 {
            return None;
        }
        let Sleep { u1, u2, device_asks_after, .. } = self.sleep;
        let state = |is_u1: bool| if is_u1 { LinkState::U1 } else { LinkState::U2 };
        let of_host = u1.after().or_else(|| u2.after());
        let of_host = of_host.map(|span| Attempt {
            at: self.active_at + span,
            by: Side::Host,
            state: state(u1.after().is_some()),
        });
        let asks_for_u1 = self.may_ask[0] && u1 != Inactivity::Refused;
        let asks_for_u2 = self.may_ask[1] && u2 != Inactivity::Refused;
        let of_device = (asks_for_u1 || asks_for_u2) && !self.is_at_work;
        let of_device = of_device.then(|| Attempt {
            at: (self.active_at + device_asks_after).max(self.at_leisure_since),
            by: Side::Device,
            state: state(asks_for_u1),
        });
        let first = of_host.into_iter().chain(of_device).min_by_key(|attempt| attempt.at);
        first.filter(|attempt| attempt.at <= until)
    }

    /// Skips further requests of the host port that are rejected by `until`, if the first was
    /// answered at `answered` and each takes as long. Returns their number.
    pub(super) fn skip_refusals(&mut self, attempt: Attempt, answered: Instant, until: Instant) -> u64 {
        let round = answered.since(self.active_at).as_ps();
        let more = until.since(answered).as_ps() / round.max(1);
        debug_assert!(self.refuses(attempt), "it is asked while the device is at work");
        self.active_at = answered + Duration::from_ps(more * round);
        more
    }

    /// Handles LXU.
    pub(super) const fn be_refused(&mut self, answered: Instant) {
        self.active_at = answered;
    }

    /// Enters a low power state at `at`.
    pub(super) fn fall_asleep(&mut self, at: Instant, attempt: Attempt) {
        self.meter.switch(at, attempt.state as usize);
    }

    /// Enters U2 from U1 after its timeout, if that expires by `until`.
    pub(super) fn sleep_on(&mut self, until: Instant) {
        if let (LinkState::U1, Some(span)) = (self.state(), self.sleep.u2.after()) {
            let at = self.meter.since() + span;
            if at <= until {
                self.meter.switch(at, LinkState::U2 as usize);
            }
        }
    }

    /// Starts the exit to U0. Returns when a packet can be sent.
    pub(super) fn wake(&mut self, now: Instant) -> Instant {
        let state = self.state();
        if state != LinkState::U0 {
            let [host, device] = self.sleep.exit.map(|latency| latency.of(state));
            let begins = now.max(self.meter.since());
            self.awake_at = begins + host.max(device);
            self.meter.switch(begins, LinkState::Exit as usize);
            self.meter.switch(self.awake_at, LinkState::U0 as usize);
            self.active_at = self.awake_at;
        }
        now.max(self.awake_at)
    }
}
