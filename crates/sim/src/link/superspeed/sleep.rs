//! States of low power: when a link goes to sleep, who lets it, and what it takes to wake up (USB
//! 3.2 clauses 7.2.4.2 and 7.5).
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
//! An idle link is no event: what it has done since the last packet is worked out when the next one
//! comes, or when somebody asks. A packet waits for the way back to U0. Not modelled: U3, timers of
//! the physical layer, recovery that fails, LFPS on the lanes.
//!
//! Invariant: each instant belongs to one state, and a packet crosses in U0.

use super::link::Side;
use crate::power::{Meter, Microwatts};
use units::{Duration, Instant};

/// The states of a link, as far as they are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LinkState {
    /// Packets cross.
    U0,
    /// Asleep, and back within microseconds.
    U1,
    /// Asleep more deeply, and back within milliseconds.
    U2,
    /// On the way back to U0: LFPS handshake and recovery.
    Exit,
}

/// What a port that faces downstream does about a state: PORT_U1_TIMEOUT and PORT_U2_TIMEOUT
/// (clause 10.16.2.10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inactivity {
    /// 0: it does not ask, and refuses a device that does.
    #[default]
    Refused,
    /// It asks after so much time without a packet, timestamps not counted, and accepts.
    After(Duration),
    /// FFh: it does not ask, and accepts.
    Accepted,
}

/// What an end takes to leave a state, at most: bU1DevExitLat and wU2DevExitLat of a device,
/// HCSPARAMS3 of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitLatency {
    u1: Duration,
    u2: Duration,
}

/// When a link goes to sleep, and what that means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// For U1, by the host's port.
    pub u1: Inactivity,
    /// For U2.
    pub u2: Inactivity,
    /// Of both ends, the host's first: the slower one counts.
    pub exit: [ExitLatency; 2],
    /// After this time without a packet a device asks that was reported that it may (U1_ENABLE,
    /// U2_ENABLE).
    pub device_asks_after: Duration,
    /// Whether a device refuses (LXU) while it works on something that it will say.
    pub device_refuses_at_work: bool,
    /// What both ends draw together, by [`LinkState`].
    pub draws: [Microwatts; 4],
}

/// What a link that may sleep does.
#[derive(Clone, Debug)]
pub(super) struct Sleeper {
    sleep: Sleep,
    meter: Meter<4>,
    /// When the last packet had arrived, or the last attempt was refused.
    active_at: Instant,
    /// When U0 is or was reached again.
    awake_at: Instant,
    /// What the device may ask for: U1, U2.
    may_ask: [bool; 2],
    is_at_work: bool,
    /// When it last ended its work.
    at_leisure_since: Instant,
}

/// An attempt to sleep: who asks when, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) at: Instant,
    pub(super) by: Side,
    pub(super) state: LinkState,
}

impl Inactivity {
    /// As PORT_U1_TIMEOUT has it, in microseconds. `None` for what is reserved.
    pub const fn from_u1_timeout(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::Refused),
            1..=0x7F => Some(Self::After(Duration::from_us(value as u64))),
            0xFF => Some(Self::Accepted),
            _ => None,
        }
    }

    /// As PORT_U2_TIMEOUT has it, in units of 256 us.
    pub const fn from_u2_timeout(value: u8) -> Self {
        match value {
            0 => Self::Refused,
            0xFF => Self::Accepted,
            _ => Self::After(Duration::from_us(256 * value as u64)),
        }
    }

    /// What is to be written to PORT_U1_TIMEOUT for this. A time that has no place there is one
    /// that devices alone keep.
    pub const fn u1_timeout(self) -> u8 {
        self.timeout(Duration::from_us(1), 0x7F)
    }

    /// The same of PORT_U2_TIMEOUT.
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
    /// What may be reported at most (clause 9.6.2.2): 10 us, 2,047 us.
    pub const MAX: Self = Self { u1: Duration::from_us(10), u2: Duration::from_us(2_047) };
    /// A controller of a chipset.
    pub const CHIPSET: Self = Self { u1: Duration::from_us(10), u2: Duration::from_us(512) };

    /// The latencies of a part.
    ///
    /// # Panics
    /// If one is longer than can be reported.
    pub const fn new(u1: Duration, u2: Duration) -> Self {
        assert!(u1.as_ps() <= Self::MAX.u1.as_ps(), "U1 is left within 10 us");
        assert!(u2.as_ps() <= Self::MAX.u2.as_ps(), "U2 is left within 2,047 us");
        Self { u1, u2 }
    }

    /// What was reported of U1 and U2, in microseconds, as far as it can be.
    pub const fn reported(u1_us: u8, u2_us: u16) -> Self {
        let (u1, u2) = (if u1_us > 10 { 10 } else { u1_us }, if u2_us > 2_047 { 2_047 } else { u2_us });
        Self::new(Duration::from_us(u1 as u64), Duration::from_us(u2 as u64))
    }

    /// What U1 takes, in whole microseconds.
    pub const fn u1_us(self) -> u8 {
        self.u1.as_ps().div_ceil(Duration::from_us(1).as_ps()) as u8
    }

    /// What U2 takes, in whole microseconds.
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
    /// As Linux sets it up behind an Intel controller: U1 after five times the system exit latency
    /// of 10 us, U2 after 10 ms in units of 256 us. What is drawn was chosen, not measured.
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

    /// The device is allowed to ask for U1 or U2, or that it may not any more.
    pub(super) const fn let_device_ask(&mut self, state: LinkState, may: bool) {
        match state {
            LinkState::U1 => self.may_ask[0] = may,
            LinkState::U2 => self.may_ask[1] = may,
            LinkState::U0 | LinkState::Exit => {}
        }
    }

    /// The host's port asks and accepts otherwise from now on.
    pub(super) const fn set_inactivity(&mut self, [u1, u2]: [Inactivity; 2]) {
        (self.sleep.u1, self.sleep.u2) = (u1, u2);
    }

    /// What an end takes to wake up.
    pub(super) const fn set_exit(&mut self, side: Side, exit: ExitLatency) {
        self.sleep.exit[side as usize] = exit;
    }

    /// The device was reset: it may ask for nothing and works on nothing, and the link is awake
    /// when it has been trained.
    pub(super) fn restart(&mut self, now: Instant) {
        (self.may_ask, self.is_at_work, self.at_leisure_since) = ([false; 2], false, now);
        let begins = now.max(self.meter.since());
        self.meter.switch(begins, LinkState::U0 as usize);
        (self.awake_at, self.active_at) = (begins, begins);
    }

    /// The device begins to work on something, or has done it. a separate attempt comes after that.
    pub(super) const fn work(&mut self, now: Instant, is_at_work: bool) {
        self.is_at_work = is_at_work;
        if !is_at_work {
            self.at_leisure_since = now;
        }
    }

    /// Whether the device refuses what the host's port asks for.
    pub(super) const fn refuses(&self, attempt: Attempt) -> bool {
        matches!(attempt.by, Side::Host) && self.is_at_work && self.sleep.device_refuses_at_work
    }

    /// A packet has crossed: the time without one starts again.
    pub(super) fn cross(&mut self, arrives: Instant) {
        self.active_at = self.active_at.max(arrives);
    }

    /// The next attempt to sleep, if it comes before `until`.
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

    /// How many more attempts of the host's port are refused in a row by `until`, if the first was
    /// answered at `answered` and each takes as long: those are not looked at one by one. The time
    /// without a packet starts again with the last.
    pub(super) fn skip_refusals(&mut self, attempt: Attempt, answered: Instant, until: Instant) -> u64 {
        let round = answered.since(self.active_at).as_ps();
        let more = until.since(answered).as_ps() / round.max(1);
        debug_assert!(self.refuses(attempt), "it is asked while the device is at work");
        self.active_at = answered + Duration::from_ps(more * round);
        more
    }

    /// An attempt was refused, by LXU.
    pub(super) const fn be_refused(&mut self, answered: Instant) {
        self.active_at = answered;
    }

    /// An attempt was accepted: the link sleeps from `at` on.
    pub(super) fn fall_asleep(&mut self, at: Instant, attempt: Attempt) {
        self.meter.switch(at, attempt.state as usize);
    }

    /// A link that sleeps lightly sleeps more deeply after its time, if that is over by `until`.
    pub(super) fn sleep_on(&mut self, until: Instant) {
        if let (LinkState::U1, Some(span)) = (self.state(), self.sleep.u2.after()) {
            let at = self.meter.since() + span;
            if at <= until {
                self.meter.switch(at, LinkState::U2 as usize);
            }
        }
    }

    /// Somebody has a packet: from when it can cross.
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
