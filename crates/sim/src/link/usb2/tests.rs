//! Both ends over a bus: scripts with times worked out by hand, ceilings, faults, and random
//! orders.

mod control;
mod errors;
mod orders;
mod transactions;

use super::*;
use crate::engine::{Engine, Event};
use crate::link::LinkPair;
use crate::link::bulk::{End, Endpoint, Progress, Transfer};
use crate::link::control::{ControlAnswer, ControlEnd, ControlEvent, ControlTransfer};
use crate::link::superspeed::Side;
use bus::{Pipe, TransferId};
use initiator::BusRequest;
use proptest::prelude::*;
use units::Instant;
use wire::usb::{Direction, EndpointAddress, SetupPacket};

#[derive(Clone, Copy, Debug)]
enum Happens {
    /// The bus goes on.
    Bus,
    /// The script does.
    Script,
}

impl Event for Happens {
    fn mark(&self) -> u64 {
        *self as u64
    }
}

/// A host and a device with a bus between them.
struct Wire {
    engine: Engine<Happens>,
    link_pair: LinkPair,
    script: Vec<String>,
    /// The script without its times.
    said: Vec<String>,
    progress: [Vec<Progress>; 2],
    /// Fates of the packets that are sent next.
    fates: Vec<Fate>,
}

const IN: EndpointAddress = EndpointAddress::at::<1>(Direction::In);
const OUT: EndpointAddress = EndpointAddress::at::<2>(Direction::Out);
const STATUS: EndpointAddress = EndpointAddress::at::<3>(Direction::In);
const COMMAND: EndpointAddress = EndpointAddress::at::<4>(Direction::Out);

const fn transfer(id: u64, bytes: u32) -> Transfer {
    Transfer { id: TransferId(id), bytes }
}

impl Wire {
    fn new(rate: Rate, addresses: &[EndpointAddress], hubs: u8) -> Self {
        let endpoint = |&address| Endpoint::bulk(address, rate.packet_bytes(), 1, 0);
        let endpoints: Vec<_> = addresses.iter().map(endpoint).collect();
        let host = HostPort::new(rate, &endpoints, Pacing::default());
        Self {
            engine: Engine::new(),
            link_pair: LinkPair::on_bus(Bus::new(rate, hubs), host, DevicePort::new(rate, &endpoints)),
            script: Vec::new(),
            said: Vec::new(),
            progress: [Vec::new(), Vec::new()],
            fates: Vec::new(),
        }
    }

    fn high(addresses: &[EndpointAddress]) -> Self {
        Self::new(Rate::High, addresses, 0)
    }

    fn host(&mut self, address: EndpointAddress, id: u64, bytes: u32) {
        self.link_pair.host.queue(Pipe::plain(address), transfer(id, bytes)).unwrap();
    }

    fn device(&mut self, address: EndpointAddress, id: u64, bytes: u32) {
        self.link_pair.device.queue(Pipe::plain(address), transfer(id, bytes)).unwrap();
    }

    fn both(&mut self, address: EndpointAddress, id: u64, bytes: u32) {
        self.host(address, id, bytes);
        self.device(address, id, bytes);
    }

    /// Goes on to the next moment of the bus, and says whether there is one. What moved since is in
    /// `progress`.
    fn step(&mut self, mut fate: impl FnMut(Side, &Packet) -> Fate) -> bool {
        let Some(at) = self.link_pair.due_at(self.engine.now()) else { return false };
        self.engine.at(at, Happens::Bus).unwrap();
        self.engine.next().unwrap();
        for sent in self.link_pair.step(self.engine.now(), &mut fate).into_iter().flatten() {
            let arrow = if sent.from == Side::Host { "->" } else { "<-" };
            let (begins, ends) = (sent.begins.as_ps() / 1000, sent.ends.as_ps() / 1000);
            let fate = match sent.fate {
                Fate::Arrives => "",
                Fate::Damaged => ", damaged",
                Fate::Lost => ", lost",
            };
            self.script.push(format!("{begins:>6} {ends:>6} {arrow} {}{fate}", sent.packet));
            self.said.push(format!("{arrow} {}{fate}", sent.packet));
        }
        self.progress[0].extend(std::iter::from_fn(|| self.link_pair.host.poll_progress()));
        self.progress[1].extend(std::iter::from_fn(|| self.link_pair.device.poll_progress()));
        true
    }

    /// One step, with the fates of the script.
    fn go(&mut self) -> bool {
        let mut fates = std::mem::take(&mut self.fates);
        let goes_on = self.step(|_, _| if fates.is_empty() { Fate::Arrives } else { fates.remove(0) });
        self.fates = fates;
        goes_on
    }

    /// Goes on until nothing is left to do.
    fn run(&mut self) {
        while self.go() {}
    }

    /// Goes on until then.
    fn run_until(&mut self, at: Instant) {
        while self.link_pair.due_at(self.engine.now()).is_some_and(|due_at| due_at <= at) {
            self.go();
        }
        self.engine.at(at, Happens::Script).unwrap();
        self.engine.next().unwrap();
    }

    /// Goes on until a transfer ends at a side.
    fn until_ended(&mut self, side: Side, id: u64) {
        while !self.ended(side).iter().any(|&(ended, ..)| ended == id) {
            assert!(self.go(), "transfer {id} does not end\n{}", self.script.join("\n"));
        }
    }

    fn ended(&self, side: Side) -> Vec<(u64, u32, End)> {
        let ended = |progress: &Progress| Some((progress.id.0, progress.moved, progress.ended?));
        self.progress[side as usize].iter().filter_map(ended).collect()
    }
}

const fn us(us: u64) -> Instant {
    Instant::from_ps(us * 1_000_000)
}

fn assert_script(wire: &Wire, expected: &[&str]) {
    assert_eq!(wire.script, expected, "\n{}\n", wire.script.join("\n"));
}
