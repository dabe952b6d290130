//! Test harness: a host port, a device port and a link, with a log of all packets.
//!
//! Not modelled: the component that uses the ports. Invariant: what a port cannot take fails the
//! test, with all that has crossed.

use super::bulk::{DevicePort, End, Endpoint, HostPort, Progress, Transfer};
use super::superspeed::{Link, Rate, Side, TurnRound};
use super::{Arrival, Fate, LinkPair, Missed, Wake};
use crate::engine::{Engine, Event};
use bus::Pipe;
use std::collections::BTreeMap;
use units::Duration;

#[derive(Clone, Copy, Debug)]
pub(super) enum Happens {
    Free(Side),
    /// With so many bytes of payload.
    Arrives(Side, u16, Fate),
    Retry(Side),
    Missed(Missed),
}

impl Event for Happens {
    fn mark(&self) -> u64 {
        match self {
            Self::Free(side) => *side as u64,
            Self::Missed(_) => 2000,
            Self::Retry(side) => 1000 + *side as u64,
            Self::Arrives(side, bytes, _) => 2 + *side as u64 + 4 * u64::from(*bytes),
        }
    }
}

/// Packets after which a test is sent not to end.
const PACKETS_MAX: usize = 200_000;

/// A host and a device with a link between them, and nothing else.
pub(super) struct Wire {
    pub(super) engine: Engine<Happens>,
    pub(super) link_pair: LinkPair,
    pub(super) script: Vec<String>,
    pub(super) progress: [Vec<Progress>; 2],
    /// Fates of packets, by their place in the script.
    pub(super) fates: BTreeMap<usize, Fate>,
}

impl Wire {
    /// Between ports that take 100 ns, the host's, and 200 ns, the device's, over a cable that
    /// takes nothing.
    pub(super) fn new(endpoints: &[Endpoint]) -> Self {
        Self::between(TurnRound::new(Duration::from_ns(100), Duration::from_ns(200)), endpoints)
    }

    /// Between ports that take no time, where what the link does is looked at.
    pub(super) fn at_once(endpoints: &[Endpoint]) -> Self {
        Self::between(TurnRound::NONE, endpoints)
    }

    pub(super) fn between(turn_round: TurnRound, endpoints: &[Endpoint]) -> Self {
        Self {
            engine: Engine::new(),
            link_pair: LinkPair::new(
                Link::new(Rate::Gen1, Duration::ZERO).between(turn_round),
                HostPort::new(endpoints),
                DevicePort::new(endpoints),
            ),
            script: Vec::new(),
            progress: [Vec::new(), Vec::new()],
            fates: BTreeMap::new(),
        }
    }

    pub(super) fn send_all(&mut self) {
        for side in [Side::Host, Side::Device] {
            if self.link_pair.wakes(side, |_| true) != Wake::Never {
                self.send(side);
            }
        }
    }

    pub(super) fn send(&mut self, side: Side) {
        let Some((crossing, bytes)) = self.link_pair.send(self.engine.now(), side) else { return };
        let message = *self.link_pair.sent(side).unwrap();
        let (begins, arrives) = (crossing.begins.as_ps() / 1000, crossing.arrives.as_ps() / 1000);
        let arrow = if side == Side::Host { "->" } else { "<-" };
        let fate = self.fates.get(&self.script.len()).copied().unwrap_or_default();
        self.script.push(format!("{begins:>5} {arrives:>5} {arrow} {message}"));
        if fate == Fate::HeaderDamaged {
            self.link_pair.damage(side, message);
        }
        if fate == Fate::Lost {
            let missed = self.link_pair.lose(&message);
            self.look_again(missed);
        }
        self.engine.at(crossing.ends, Happens::Free(side)).unwrap();
        self.engine.at(crossing.heard, Happens::Arrives(side.other(), bytes, fate)).unwrap();
    }

    fn arrive(&mut self, side: Side, fate: Fate) {
        let now = self.engine.now();
        let message = *self.link_pair.coming(side).unwrap();
        let Arrival { frees_other_at, retry_at, taken, .. } = self.link_pair.arrive(now, side, fate);
        assert!(taken.is_ok(), "{side:?} takes {message}\n{}\n{:?}", self.script.join("\n"), self.link_pair);
        if let Some(at) = frees_other_at {
            self.engine.at(at, Happens::Free(side.other())).unwrap();
        }
        if let Some(at) = retry_at {
            self.engine.at(at, Happens::Retry(side.other())).unwrap();
        }
        self.take_progress();
        self.send_all();
    }

    fn take_progress(&mut self) {
        let [host, device] = &mut self.progress;
        host.extend(std::iter::from_fn(|| self.link_pair.host.poll_progress()));
        device.extend(std::iter::from_fn(|| self.link_pair.device.poll_progress()));
    }

    fn look_again(&mut self, missed: Option<(Duration, Missed)>) {
        if let Some((span, missed)) = missed {
            self.engine.after(span, Happens::Missed(missed)).unwrap();
        }
    }

    pub(super) fn step(&mut self) -> bool {
        match self.engine.next() {
            Some(Happens::Free(side)) => self.send(side),
            Some(Happens::Arrives(side, _, fate)) => self.arrive(side, fate),
            Some(Happens::Missed(missed)) => {
                let again = self.link_pair.miss(missed);
                self.look_again(again);
                self.take_progress();
                self.send_all();
            }
            Some(Happens::Retry(side)) => {
                self.link_pair.retry(self.engine.now(), side);
                self.send_all();
            }
            None => return false,
        }
        true
    }

    pub(super) fn run(&mut self) {
        self.send_all();
        while self.step() {
            assert!(
                self.script.len() < PACKETS_MAX,
                "no end:\n{}",
                self.script[PACKETS_MAX - 40..].join("\n")
            );
        }
    }

    pub(super) fn both(&mut self, pipe: Pipe, transfer: Transfer) {
        self.link_pair.host.queue(pipe, transfer).unwrap();
        self.link_pair.device.queue(pipe, transfer).unwrap();
    }

    pub(super) fn ended(&self, side: Side) -> Vec<(u64, u32, End)> {
        let ended = |progress: &Progress| Some((progress.id.0, progress.moved, progress.ended?));
        self.progress[side as usize].iter().filter_map(ended).collect()
    }
}

/// Asserts the packets that cross: when the first symbol of each is sent and when its last has
/// arrived, in nanoseconds.
pub(super) fn assert_script(wire: &Wire, expected: &[&str]) {
    assert_eq!(wire.script, expected, "\n{}\n", wire.script.join("\n"));
}
