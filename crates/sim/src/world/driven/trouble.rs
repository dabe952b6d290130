//! What befalls a driven world from outside of its machines: faults, planted bugs, and the books that notice.
//!
//! It befalls drives from when they are up. Each has books and packets of its own; what befalls hubs and the controller is the
//! first drive's: others behind the same root port go when it is pulled out, for all are. Beside what befalls a drive there is
//! what befalls a controller: it halts, of which its driver tells that it died; and the bugs of one whose events are not as they
//! should be. Behind hubs the drive is pulled out with the hub at the root port, or that hub is reset: then it is brought up
//! again, by a transport of its own.
//!
//! Always true: a world without trouble is the same as if there were none to
//! have.

use super::root::End;
use super::seat::Seat;
use super::{Driven, Happens, Spot};
use crate::check::{About, Law, Ledger, Violation};
use crate::fault::{Bug, Faults, Kind};
use crate::link::Fate;
use crate::link::bulk::Message;
use crate::link::superspeed::Side;
use crate::world::rest::AtRest;
use crate::world::trouble::Remains;
use crate::world::{Finished, Stopped, mark};
use crate::xhc::Tampering;
use initiator::{CommandId, Counters, Outcome, Transport};
use units::Instant;
use wire::usb::{Direction, Recipient, RequestKind, SetupPacket, StandardRequest};
use wire::xhci::RouteString;

/// The drive with which all is counted that befalls more than one.
const DRIVE: usize = 0;

impl Driven {
    /// The same with things that go wrong from now on, by drive.
    #[must_use]
    pub fn with_faults(mut self, faults: impl IntoIterator<Item = Faults>) -> Self {
        let Some(seat) = self.seats.first_mut() else { return self };
        let now = self.engine.now();
        if let Some(link) = self.roots[0].link() {
            seat.trouble.ledger.begin(now, link, self.fronts[DRIVE].way.route.tiers());
        }
        if let Some(bus) = self.roots[0].bus() {
            seat.trouble.ledger.begin_on_bus(now, bus);
        }
        for (seat, faults) in self.seats.iter_mut().zip(faults) {
            seat.trouble.faults = faults;
            seat.desk.watch();
        }
        self.machine.controller.watch(now);
        (self.is_troubled, self.shows_packets) = (true, true);
        self
    }

    /// What goes wrong with a drive.
    ///
    /// # Panics
    /// If there is no such drive.
    pub fn faults(&mut self, drive: usize) -> &mut Faults {
        &mut self.seats[drive].trouble.faults
    }

    /// Why the first drive is gone, if it is.
    pub fn gone(&self) -> Option<Kind> {
        self.seats[DRIVE].trouble.gone()
    }

    /// See [`World::misled`](crate::world::World::misled).
    pub fn misled(&self, drive: usize) -> u64 {
        self.seats.get(drive).map_or(0, |seat| seat.trouble.misled())
    }

    /// Payload that was carried in vain so far, in bytes.
    pub fn in_vain(&self) -> u64 {
        self.seats.iter().map(|seat| seat.trouble.ledger.in_vain()).sum()
    }

    /// What a drive's transport counts.
    pub fn transport_counters(&self, drive: usize) -> Counters {
        self.seats.get(drive).map_or_else(Counters::default, |seat| seat.desk.transport.counters())
    }

    /// Whether driver and controller have met nothing that is not as it should be.
    pub fn is_calm_below(&self) -> bool {
        let stale = self.controller().counters().stale_progress;
        self.driver().counters() == ::xhci_driver::Counters::default() && stale == 0
    }

    /// Adds a result to the digest.
    pub const fn mix(&mut self, word: u64) {
        self.engine.mix(word);
    }

    /// Lets things happen until a command ends, but no longer than up to a time.
    ///
    /// # Errors
    /// If the world does not go on.
    pub fn run_until(&mut self, until: Option<Instant>) -> Result<Option<Finished>, Stopped> {
        loop {
            if let Some(stopped) = self.stopped {
                return Err(stopped);
            }
            if self.is_troubled
                && let Some(broken) = self.broken()
            {
                return Err(Stopped::Broken(broken));
            }
            if !self.finished.is_empty() {
                return Ok(self.finished.pop_front());
            }
            if let Some(until) = until
                && self.engine.next_at().is_none_or(|next| next > until)
            {
                self.engine.pass(until);
                return Ok(None);
            }
            if !self.step() {
                return Ok(None);
            }
            if std::mem::take(&mut self.hub_is_to_be_reset) {
                self.reset_first_hub();
            }
        }
    }

    /// The hub at the first drive's root port is reset; what is behind it is brought up again.
    fn reset_first_hub(&mut self) {
        let root = self.fronts[DRIVE].way.port - self.ports_before;
        if self.reset_hub(Spot { root, route: RouteString::ROOT }).is_err() {
            let (now, about) = (self.engine.now(), About::World("what is behind a hub that was reset"));
            self.seats[DRIVE].trouble.ledger.break_law(Law::Recovery, now, about);
        }
    }

    fn is_behind_hub(&self) -> bool {
        self.fronts[DRIVE].way.route != RouteString::ROOT
    }

    fn broken(&self) -> Option<Violation> {
        self.seats[DRIVE].trouble.ledger.broken()
    }

    /// Compares all books.
    ///
    /// # Errors
    /// The first violation.
    pub fn audit(&mut self) -> Result<(), Violation> {
        let now = self.engine.now();
        if self.is_troubled {
            self.audit_packets(now);
        } else {
            self.audit_roots(now);
        }
        for seat in &mut self.seats {
            seat.drive.audit(now, &mut seat.trouble.ledger);
        }
        let of_others = self.seats.iter().find_map(|seat| seat.trouble.ledger.broken());
        let are_told = self.seats.iter().all(|seat| seat.desk.is_consistent(now));
        let ledger = &mut self.seats[DRIVE].trouble.ledger;
        ledger.look_back(self.engine.looked_back());
        for (is_consistent, queue) in [
            (self.core.level().is_consistent(now), "the core"),
            (self.machine.controller.is_consistent(now), "the controller's event ring"),
            (self.roots.iter().all(|root| root.is_consistent(now)), "packets in hubs"),
            (are_told, "transfers on rings"),
        ] {
            if !is_consistent {
                ledger.break_law(Law::Little, now, About::Queue(queue));
            }
        }
        if let Some(Violation { law, at, about }) = of_others {
            ledger.break_law(law, at, about);
        }
        if let Some((law, about)) = self.stopped.and_then(Stopped::breaks) {
            ledger.break_law(law, now, about);
        }
        ledger.broken().map_or(Ok(()), Err)
    }

    /// What was carried at the first drive's root port, where each packet is booked.
    fn audit_packets(&mut self, now: Instant) {
        // A link that was trained anew has forgotten what it carried.
        let is_anew = self.gone() == Some(Kind::HubReset);
        let ledger = &mut self.seats[DRIVE].trouble.ledger;
        if let Some(link) = self.roots[0].link().filter(|_| !is_anew) {
            ledger.audit(now, link);
        }
        if let Some(bus) = self.roots[0].bus() {
            ledger.audit_bus(now, bus);
        }
        ledger.audit_lanes_below(now, self.roots[0].links_below());
        ledger.audit_buses_below(now, self.roots[0].buses_below());
    }

    /// The same at each root port where nobody books packets: that it is no more than there was time for, and that neither the host nor its
    /// drives have taken more than the other has sent. For worlds whose links were trained once, when they were powered on.
    fn audit_roots(&mut self, now: Instant) {
        for root in &self.roots {
            let of_drives = || root.fronts.iter().copied().filter(|number| *number < self.seats.len());
            let in_all = |bytes: fn(&Ledger) -> u64| -> u64 {
                of_drives().map(|number| bytes(&self.seats[number].trouble.ledger)).sum()
            };
            let (taken, given) = (in_all(Ledger::taken_in_all), in_all(Ledger::given_in_all));
            let Some(first) = of_drives().next() else { continue };
            let ledger = &mut self.seats[first].trouble.ledger;
            let (mut by_device, mut by_host) = (0, 0);
            if let Some(link) = root.link() {
                ledger.audit_lanes(now, link);
                [by_device, by_host] =
                    [Side::Device, Side::Host].map(|side| link.lane(side).traffic().payload);
            }
            if let Some(bus) = root.bus() {
                ledger.audit_bus_alone(now, bus);
                // What both have sent in one sum.
                (by_device, by_host) =
                    (bus.payload().saturating_sub(given), bus.payload().saturating_sub(taken));
            }
            ledger.audit_lanes_below(now, root.links_below());
            ledger.audit_buses_below(now, root.buses_below());
            for (taken, sent, side) in [(taken, by_device, Side::Device), (given, by_host, Side::Host)] {
                if taken > sent {
                    ledger.break_law(Law::Conservation, now, About::Lane(side));
                }
            }
        }
    }

    /// See [`World::audit_rest`](crate::world::World::audit_rest).
    ///
    /// # Errors
    /// The violation.
    pub fn audit_rest(&self, number: usize, is_left_alone: bool) -> Result<(), Violation> {
        let Some(Seat { desk, drive, trouble, .. }) = self.seats.get(number) else { return Ok(()) };
        let has_lost = trouble.faults.has_lost_packets();
        // One that came back with its hub is there.
        let is_back = self.gone() == Some(Kind::HubReset) && self.roots[0].bus().is_some();
        let is_gone = self.gone().is_some() && !is_back;
        if self.misled(number) > 0 && !is_gone {
            return Ok(());
        }
        let takes_turns = self.roots[0].bus().is_some() && !is_gone;
        let was_reset = desk.transport.counters().resets() > 0;
        let rest = AtRest { takes_turns, was_reset, awaits: desk.transport.poll_timeout().is_some() };
        let drive = is_left_alone.then_some((drive, has_lost));
        rest.audit(self.engine.now(), (desk.under_way(), "a TD that has not ended"), drive)
    }

    /// The end of a world, and what is left of each drive: see [`World::end`](crate::world::World::end).
    pub fn end(mut self, kind: Kind) -> Vec<Remains> {
        if self.gone().is_none() {
            self.seats[DRIVE].trouble.go(kind, self.engine.digest());
            self.leave_port();
        }
        while self.gone() != Some(Kind::PowerLoss) && self.seats.iter().any(|seat| seat.drive.is_busy()) {
            if self.stopped.is_some() || !self.step() {
                break;
            }
        }
        let is_up = self.gone() == Some(Kind::HubReset);
        let (kind, digest) = (self.gone().unwrap_or(kind), self.engine.digest());
        let leave = |(number, mut seat): (u64, Seat)| {
            if is_up {
                // It was brought up again, and is left now.
                seat.drive.device.handle_nexus_loss();
            }
            // What befell the first befell all: they are behind one root port.
            seat.trouble.go(kind, digest.wrapping_add(number));
            seat.trouble.leave(seat.drive)
        };
        (0..).zip(self.seats).map(leave).collect()
    }

    /// What becomes of a message that arrives, beside what has happened to it on the way.
    pub(super) fn fate_on_arrival(&mut self, number: usize, message: Message, fate: Fate) -> Fate {
        if number == DRIVE {
            self.strike_on_arrival();
        }
        if self.seats[number].trouble.forgets_endpoints() {
            let End { root, device } = self.fronts[number].end;
            self.roots[root].configure_device(device, &[]);
        }
        // What arrives damaged is heard when it comes again.
        let is_heard = fate != Fate::Arrives || self.seats[number].trouble.hears(message);
        if is_heard { fate } else { Fate::Lost }
    }

    /// A message has arrived at its end behind hubs, and was taken.
    pub(super) fn book_behind_hubs(&mut self, number: usize, side: Side, message: &Message) {
        if self.fronts[number].end.root != self.fronts[DRIVE].end.root {
            return;
        }
        let (now, payload) = (self.engine.now(), message.packet().payload().into());
        if let Some(Seat { trouble, .. }) = self.seats.get_mut(number) {
            trouble.ledger.arrive(now, side, payload);
            // It is heard in any case, but may mislead.
            let _ = trouble.hears(*message);
        }
        if number != DRIVE {
            self.seats[DRIVE].trouble.ledger.arrive_elsewhere(side, payload);
        }
        self.strike_on_arrival();
    }

    /// A packet has come over a root port's link to which nobody has listened, since its header is damaged or that of one before it.
    pub(super) fn book_in_vain(&mut self, root: usize, side: Side, payload: u16) {
        if self.is_troubled && root == self.fronts[DRIVE].end.root {
            self.seats[DRIVE].trouble.ledger.arrive_in_vain(side, payload.into());
        }
    }

    /// Something arrives, which may be when the first drive's life ends.
    pub(super) fn strike_on_arrival(&mut self) {
        let is_behind_hub = self.is_behind_hub();
        let trouble = &mut self.seats[DRIVE].trouble;
        if trouble.gone().is_none() && trouble.ends_driven_life(is_behind_hub) {
            self.leave_port();
        }
    }

    /// The first drive is gone, or its controller is of no use any more.
    fn leave_port(&mut self) {
        let now = self.engine.now();
        match self.gone() {
            // That takes time, and is begun when what happens now has happened.
            Some(Kind::HubReset) => {
                self.hub_is_to_be_reset = true;
                return;
            }
            Some(Kind::ControllerHalt) => {
                self.machine.controller.break_down();
                self.roots[0].cut(now);
            }
            _ => {
                let port = self.fronts[DRIVE].way.port;
                self.machine.controller.unplug(now, port);
            }
        }
        for (number, seat) in self.seats.iter_mut().enumerate() {
            if self.fronts[number].end.root == self.fronts[DRIVE].end.root {
                seat.drive.device.handle_nexus_loss();
                seat.trouble.forget_late();
                self.stirs.add(number);
            }
        }
        self.settle();
    }

    /// A drive is ready for what it was not ready for.
    pub(super) fn offer_late(&mut self, drive: usize) {
        while let Some(transfer) = self.seats[drive].trouble.take_late(self.engine.now()) {
            self.offer(drive, transfer);
        }
        self.echo(drive);
    }

    /// [`Bug::Echo`]: an event that makes the next.
    fn echo(&mut self, drive: usize) {
        if self.is_troubled && self.seats[drive].trouble.echoes() {
            self.at(self.engine.now(), Happens::Ready(drive as u8));
        }
    }

    /// Endpoints of the drive halt, or are not ready, by themselves.
    pub(super) fn halt_by_itself(&mut self) {
        let end = self.fronts[DRIVE].end;
        while let Some((endpoint, times)) = self.seats[DRIVE].trouble.poll_storm() {
            self.roots[end.root].ports(end.device).1.refuse(endpoint, times);
        }
        while let Some(endpoint) = self.seats[DRIVE].trouble.poll_halt() {
            let setup = SetupPacket {
                direction: Direction::Out,
                kind: RequestKind::Standard,
                recipient: Recipient::Endpoint,
                request: StandardRequest::SetFeature.into(),
                // ENDPOINT_HALT.
                value: 0,
                index: u8::from(endpoint).into(),
                length: 0,
            };
            self.seats[DRIVE].drive.device.handle_control(setup, &[]);
            self.stirs.add(DRIVE);
            self.settle();
        }
    }

    /// A command has ended: how often its owner is told.
    pub(super) fn finish_command(&mut self, now: Instant, drive: usize, id: CommandId, outcome: Outcome) {
        for _ in 0..self.seats[drive].trouble.ends() {
            let seat = &mut self.seats[drive];
            if !seat.desk.has(id) {
                seat.trouble.ledger.break_law(Law::CommandOnce, now, About::Command(id));
            }
            let finished = seat.desk.finish(&mut self.machine, now, id, outcome.clone());
            mark::end(&mut self.engine, &finished);
            self.finished.push_back(finished);
        }
        self.echo(drive);
    }

    /// The controller is about to tell of events: what a bug of its own makes of the next.
    pub(super) fn tamper(&mut self) {
        if !self.is_troubled {
            return;
        }
        for (bug, tampering) in [
            (Bug::LostEvent, Tampering::Lost),
            (Bug::EventTwice, Tampering::Twice),
            (Bug::WrongCycle, Tampering::Cycle),
            (Bug::WrongPointer, Tampering::Pointer),
            (Bug::WrongLength, Tampering::Length),
            (Bug::LongEvent, Tampering::Early),
        ] {
            if self.seats[DRIVE].trouble.faults.shows(bug) {
                self.machine.controller.tamper(tampering);
            }
        }
    }
}
