//! Both directions of a link, header credits, and bus interval timestamps.
//!
//! A port may have four unacknowledged header packets (USB 3.2 clause 7.2.4.1). For each accepted
//! one the receiver sends LGOOD and LCRD; for a damaged one LBAD, and the sender retransmits after
//! LRTY (clause 7.2.4.1.4). Each bus interval the host sends a timestamp (clause 8.7).
//!
//! Neither needs an event. Arrival times are known when packets are sent, so link commands are
//! placed on their lane retroactively when it is next used; so are timestamps, at no cost for an
//! idle link. Not modelled: recovery after the third retry, delayed timestamps.

use super::lane::{Lane, Traffic};
use super::packet::Packet;
use super::rate::Rate;
use super::side::Side;
use super::sleep::{ExitLatency, Inactivity, LinkState, Sleep, Sleeper};
use super::turn::TurnRound;
use crate::link::Crossing;
use crate::power::Meter;
use units::{Duration, Instant};

/// Bus interval between two timestamps (clause 8.7).
pub const BUS_INTERVAL: Duration = Duration::from_us(125);

/// Header credits (clause 7.2.4.1.1).
const CREDITS: usize = 4;

/// The sender has no credit. One returns when the other side has accepted a packet: see
/// [`Link::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked;

/// A link between two ports.
#[derive(Clone, Debug)]
pub struct Link {
    rate: Rate,
    /// By the side that sends.
    lanes: [Lane; 2],
    credits: [Credits; 2],
    turn_round: TurnRound,
    /// When the host sends the next timestamp.
    timestamp_due: Instant,
    /// Power management, if enabled.
    sleeper: Option<Box<Sleeper>>,
}

/// Credits of one sender.
#[derive(Clone, Copy, Debug)]
struct Credits {
    /// For each credit: the time of its return, or of the acceptance of its packet.
    at: [Instant; CREDITS],
    states: [Credit; CREDITS],
    /// Next credit to use, and next credit to return.
    next: u8,
    oldest: u8,
    /// Credit of the last accepted packet.
    last_taken: u8,
}

/// State of one of four credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Credit {
    /// Available, from the recorded time on.
    Back,
    /// Its packet is accepted at the recorded time; LGOOD and LCRD have not been sent.
    Taken,
    /// Its packet is in flight or buffered by the receiver.
    InFlight,
}

impl Link {
    /// Creates an idle link. `propagation` is the propagation delay of the cable. Ports respond
    /// without delay.
    pub fn new(rate: Rate, propagation: Duration) -> Self {
        let (lane, credits) = (Lane::new(rate, propagation), Credits::new());
        Self {
            rate,
            lanes: [lane.clone(), lane],
            credits: [credits; 2],
            turn_round: TurnRound::NONE,
            timestamp_due: Instant::ZERO + BUS_INTERVAL,
            sleeper: None,
        }
    }

    /// Sets the response times of both ports.
    #[must_use]
    pub fn between(self, turn_round: TurnRound) -> Self {
        Self { turn_round, ..self }
    }

    /// Enables U1 and U2. Without it the link stays in U0.
    pub fn let_sleep(&mut self, sleep: Sleep) {
        self.sleeper = Some(Box::new(Sleeper::new(sleep)));
    }

    /// Returns whether U1 and U2 are enabled.
    pub const fn may_sleep(&self) -> bool {
        self.sleeper.is_some()
    }

    /// Sets U1_ENABLE or U2_ENABLE of the device.
    pub fn let_device_ask(&mut self, now: Instant, state: LinkState, may: bool) {
        self.doze_and(now, |sleeper| sleeper.let_device_ask(state, may));
    }

    /// Sets the inactivity timeouts of the host port (PORT_U1_TIMEOUT, PORT_U2_TIMEOUT).
    pub fn set_inactivity(&mut self, now: Instant, inactivity: [Inactivity; 2]) {
        self.doze_and(now, |sleeper| sleeper.set_inactivity(inactivity));
    }

    /// Sets the exit latency of a side.
    pub fn set_exit(&mut self, now: Instant, side: Side, exit: ExitLatency) {
        self.doze_and(now, |sleeper| sleeper.set_exit(side, exit));
    }

    /// Resets power management after a device reset and training.
    pub fn force_awake(&mut self, now: Instant) {
        self.doze_and(now, |sleeper| sleeper.restart(now));
    }

    /// Reports whether the device is busy.
    pub fn work(&mut self, now: Instant, is_at_work: bool) {
        self.doze_and(now, |sleeper| sleeper.work(now, is_at_work));
    }

    /// Returns the link state at `now`, with the actions of an idle link applied.
    #[must_use]
    pub fn settled(&self, now: Instant) -> Self {
        let mut link = self.clone();
        link.doze_and(now, |_| {});
        if link.sleeper.as_ref().is_none_or(|sleeper| sleeper.state() == LinkState::U0) {
            link.send_timestamps(now);
        }
        link
    }

    /// Returns the energy of both ports in each [`LinkState`], up to `now`.
    pub fn meter(&self, now: Instant) -> Meter<4> {
        let mut link = self.clone();
        link.doze_and(now, |_| {});
        link.sleeper.map_or_else(|| Meter::new(Sleep::DRAWS), |sleeper| sleeper.meter().clone())
    }

    /// Returns the rate.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the busy time of the busier lane.
    pub fn carried_for(&self) -> Duration {
        self.lane_busy(Side::Host).max(self.lane_busy(Side::Device))
    }

    /// Returns the busy time of the lane on which `side` sends.
    pub fn lane_busy(&self, side: Side) -> Duration {
        // Whole blocks of symbols at every rate.
        const MANY: u32 = 1 << 20;
        let Traffic { packets, commands, skips, .. } = self.lane(side).traffic();
        let symbols = packets + commands + skips;
        let rest = self.rate.symbols((symbols % u64::from(MANY)) as u32);
        let whole = self.rate.symbols(MANY).as_ps() * (symbols / u64::from(MANY));
        Duration::from_ps(whole) + rest
    }

    /// Returns the lane on which `side` sends.
    pub const fn lane(&self, side: Side) -> &Lane {
        &self.lanes[side as usize]
    }

    /// Sends a packet of `from`, at least `gap` after the previous one. One at a time: send the
    /// next one when this ends, so that link commands do not wait behind a queue. Follow with
    /// [`Self::take`] when the receiver has room again, or with [`Self::accept_on_arrival`] if it
    /// always has.
    ///
    /// # Errors
    /// If no credit is available or returning.
    #[inline(always)]
    pub fn send(
        &mut self,
        now: Instant,
        from: Side,
        packet: Packet,
        gap: Duration,
    ) -> Result<Crossing, Blocked> {
        let now = self.awake(now, from);
        self.send_timestamps(now);
        let back_at = self.spend(from).ok_or(Blocked)?;
        let crossing = self.carry(now.max(back_at), from, packet, gap);
        self.has_crossed(crossing.arrives);
        Ok(crossing)
    }

    /// Retransmits a packet of `from` after LRTY, with the credit it still has.
    pub fn resend(&mut self, now: Instant, from: Side, packet: Packet) -> Crossing {
        let now = self.awake(now, from);
        self.send_timestamps(now);
        let crossing = self.carry_seldom(now, from, packet);
        self.has_crossed(crossing.arrives);
        crossing
    }

    /// Sends LBAD or LRTY of `from`.
    pub fn send_command(&mut self, now: Instant, from: Side) -> Crossing {
        let now = self.awake(now, from);
        self.send_timestamps(now);
        self.acknowledge(from, now);
        self.lanes[from as usize].send_commands(now, 1)
    }

    /// Accepts a packet at `at`: LGOOD and LCRD go back. Returns when the sender has them.
    pub fn take(&mut self, now: Instant, at: Side) -> Instant {
        self.send_timestamps(now);
        self.credits[at.other() as usize].take(now);
        self.acknowledge(at, now);
        self.credits[at.other() as usize].last_back()
    }

    /// Accepts the last packet sent to `at` when it `arrives`.
    pub const fn accept_on_arrival(&mut self, arrives: Instant, at: Side) {
        self.credits[at.other() as usize].take(arrives);
    }

    /// Like [`Self::accept_on_arrival`], if all earlier packets to `at` are accepted.
    pub const fn accept_newest_on_arrival(&mut self, arrives: Instant, at: Side) {
        self.credits[at.other() as usize].take_newest(arrives);
    }

    /// Revokes the last [`Self::accept_on_arrival`].
    pub const fn refuse(&mut self, at: Side) {
        let credits = &mut self.credits[at.other() as usize];
        credits.states[place(credits.last_taken)] = Credit::InFlight;
    }

    /// Returns when `from` has a credit again.
    pub fn credit_at(&mut self, now: Instant, from: Side) -> Instant {
        self.acknowledge(from.other(), now);
        now.max(self.credits[from as usize].last_back())
    }

    /// Seeded bug: packets of a side take no time from now on.
    pub const fn hurry(&mut self, side: Side) {
        self.lanes[side as usize].hurry();
    }

    /// Resets both ports: all credits are available.
    pub const fn restart(&mut self) {
        self.credits = [Credits::new(); 2];
    }

    /// Uses a credit. Returns when it is or was available.
    #[inline]
    fn spend(&mut self, from: Side) -> Option<Instant> {
        if let (Credit::Taken, at) = self.credits[from as usize].first() {
            self.acknowledge(from.other(), at);
        }
        self.credits[from as usize].spend()
    }

    /// Like [`Self::carry`], for rare packets.
    #[cold]
    #[inline(never)]
    fn carry_seldom(&mut self, from_when: Instant, from: Side, packet: Packet) -> Crossing {
        self.carry(from_when, from, packet, Duration::ZERO)
    }

    /// Sends a packet after due link commands.
    #[inline]
    fn carry(&mut self, from_when: Instant, from: Side, packet: Packet, gap: Duration) -> Crossing {
        let begins = from_when.max(self.lanes[from as usize].free_at());
        self.acknowledge(from, begins);
        let crossing = self.lanes[from as usize].send(from_when, packet, gap);
        Crossing { heard: crossing.arrives + self.turn_round.of(from.other()), ..crossing }
    }

    /// `at` sends LGOOD and LCRD for each packet that it has taken by then.
    #[inline]
    fn acknowledge(&mut self, at: Side, until: Instant) {
        if self.credits[at.other() as usize].taken_by(until).is_some() {
            self.send_acknowledgements(at, until);
        }
    }

    #[inline(never)]
    fn send_acknowledgements(&mut self, at: Side, until: Instant) {
        let (credits, lane) = (&mut self.credits[at.other() as usize], &mut self.lanes[at as usize]);
        while let Some(taken) = credits.taken_by(until) {
            credits.give_back(lane.send_commands(taken, 2).arrives);
        }
    }

    /// Returns when a side can send, after waking the link.
    #[inline]
    fn awake(&mut self, now: Instant, from: Side) -> Instant {
        if self.sleeper.is_some() { self.wake_up(now, from) } else { now }
    }

    #[cold]
    #[inline(never)]
    fn wake_up(&mut self, now: Instant, from: Side) -> Instant {
        let Some(mut sleeper) = self.sleeper.take() else { return now };
        self.doze(&mut sleeper, now, Some(from));
        let slept = sleeper.state() != LinkState::U0;
        let awake_at = sleeper.wake(now);
        if slept {
            // Those that were due meanwhile were not sent.
            let intervals = awake_at.as_ps().div_ceil(BUS_INTERVAL.as_ps());
            self.timestamp_due = Instant::from_ps(intervals * BUS_INTERVAL.as_ps());
        }
        self.sleeper = Some(sleeper);
        awake_at
    }

    fn has_crossed(&mut self, arrives: Instant) {
        if let Some(sleeper) = &mut self.sleeper {
            sleeper.cross(arrives);
        }
    }

    fn doze_and(&mut self, now: Instant, change: impl FnOnce(&mut Sleeper)) {
        if let Some(mut sleeper) = self.sleeper.take() {
            self.doze(&mut sleeper, now, None);
            change(&mut sleeper);
            self.sleeper = Some(sleeper);
        }
    }

    /// Applies the actions of an idle link up to `now`. `wanting` has something to send then.
    fn doze(&mut self, sleeper: &mut Sleeper, now: Instant, wanting: Option<Side>) {
        while let Some(attempt) = sleeper.attempt(now) {
            let (asks, answers) = (attempt.by, attempt.by.other());
            self.send_timestamps(attempt.at);
            for side in [asks, answers] {
                self.acknowledge(side, attempt.at);
            }
            // LGO_Ux, and LAU or LXU.
            let asked = self.lanes[asks as usize].send_commands(attempt.at, 1);
            let answered = self.lanes[answers as usize].send_commands(asked.arrives, 1);
            if sleeper.refuses(attempt) {
                let more = sleeper.skip_refusals(attempt, answered.arrives, now);
                for lane in &mut self.lanes {
                    lane.has_carried_commands(more);
                }
            } else if wanting == Some(answers) && now <= asked.arrives {
                sleeper.be_refused(answered.arrives);
            } else {
                // LPMA.
                let confirmed = self.lanes[asks as usize].send_commands(answered.arrives, 1);
                sleeper.fall_asleep(confirmed.arrives, attempt);
            }
        }
        sleeper.sleep_on(now);
    }

    /// Sends the timestamps due by `now`. Those of an idle link are only counted.
    #[inline]
    fn send_timestamps(&mut self, now: Instant) {
        if now >= self.timestamp_due {
            self.send_timestamps_due(now);
        }
    }

    #[cold]
    #[inline(never)]
    fn send_timestamps_due(&mut self, now: Instant) {
        let unseen = (now - self.timestamp_due).as_ps() / BUS_INTERVAL.as_ps();
        let due = self.timestamp_due + Duration::from_ps(unseen * BUS_INTERVAL.as_ps());
        self.timestamp_due = due + BUS_INTERVAL;
        let [host, device] = &mut self.lanes;
        host.has_carried_packets(unseen);
        device.has_carried_commands(2 * unseen);
        // Without a credit there is none in this interval.
        if let Some(back_at) = self.spend(Side::Host) {
            let crossing = self.carry_seldom(due.max(back_at), Side::Host, Packet::Header);
            self.credits[Side::Host as usize].take_newest(crossing.arrives);
        }
    }
}

impl Credits {
    const fn new() -> Self {
        let (at, states) = ([Instant::ZERO; CREDITS], [Credit::Back; CREDITS]);
        Self { at, states, next: 0, oldest: 0, last_taken: 0 }
    }

    const fn first(&self) -> (Credit, Instant) {
        let first = place(self.next);
        (self.states[first], self.at[first])
    }

    /// Uses the next credit. Returns when it is or was available.
    const fn spend(&mut self) -> Option<Instant> {
        let (Credit::Back, at) = self.first() else { return None };
        self.states[place(self.next)] = Credit::InFlight;
        self.next = after(self.next);
        Some(at)
    }

    /// Accepts the oldest packet in flight.
    const fn take(&mut self, at: Instant) {
        let mut taken = self.oldest;
        while !matches!(self.states[place(taken)], Credit::InFlight) {
            taken = after(taken);
            debug_assert!(taken != self.oldest, "more packets were taken than sent");
        }
        self.is_taken(taken, at);
    }

    /// Accepts the packet sent last.
    const fn take_newest(&mut self, at: Instant) {
        self.is_taken(before(self.next), at);
    }

    const fn is_taken(&mut self, taken: u8, at: Instant) {
        self.last_taken = taken;
        (self.states[place(taken)], self.at[place(taken)]) = (Credit::Taken, at);
    }

    /// Returns when the packet of the next returning credit was accepted, if not after `until`.
    #[inline]
    fn taken_by(&self, until: Instant) -> Option<Instant> {
        let oldest = place(self.oldest);
        let at = self.at[oldest];
        (self.states[oldest] == Credit::Taken && at <= until).then_some(at)
    }

    /// Returns that credit.
    const fn give_back(&mut self, back_at: Instant) {
        let oldest = place(self.oldest);
        (self.states[oldest], self.at[oldest]) = (Credit::Back, back_at);
        self.oldest = after(self.oldest);
    }

    /// Returns the time at which the last credit returned or will return.
    const fn last_back(&self) -> Instant {
        let last = place(before(self.oldest));
        match self.states[last] {
            Credit::Back | Credit::Taken => self.at[last],
            Credit::InFlight => Instant::ZERO,
        }
    }
}

/// The index of a credit, with a bound that the compiler knows.
const fn place(credit: u8) -> usize {
    credit as usize % CREDITS
}

/// Returns the next credit, cyclically.
const fn after(credit: u8) -> u8 {
    (credit + 1) % CREDITS as u8
}

/// The previous credit, cyclically.
const fn before(credit: u8) -> u8 {
    (credit + CREDITS as u8 - 1) % CREDITS as u8
}
