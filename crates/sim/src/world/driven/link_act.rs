//! What the controller wants of the links: endpoints, transfers, stops, resets.
//!
//! Left out: ports at which nobody is; what is wanted of them comes to nothing. Always true: an endpoint that was stopped is
//! told of once, when it is quiet.

use super::Driven;
use super::core::Work;
use super::seat::{GoingOut, Seat};
use crate::fault::Bug;
use crate::link::superspeed::Side;

use crate::xhc::{DevicePath, LinkAct, Output};
use units::Instant;
use wire::usb::{Direction, EndpointAddress};

impl Driven {
    #[inline(never)]
    pub(super) fn carry_out_of_controller(&mut self, now: Instant, output: Output) {
        match output {
            Output::Interrupt => self.give_core(now, 0, Work::Interrupt),
            Output::Link(way, act) => match self.find(way) {
                Some(drive) if drive < self.seats.len() => self.act_on_link(drive, act),
                Some(hub) => self.act_on_hub_link(hub, act),
                None => {}
            },
            Output::Control(way, request) => {
                // Nobody answers where nobody is.
                if let Some(number) = self.find(way) {
                    self.fronts[number].control.requests.push_back(request);
                    self.begin_control(number);
                }
            }
            Output::PortDown(port) => self.at_root(port, Self::port_down),
            Output::PortReset(port) => self.at_root(port, Self::port_reset),
            Output::PortUp(port) => self.at_root(port, Self::port_up),
            Output::PortPower(port, power) => {
                self.at_root(port, |world, root| world.set_link_power(root, power))
            }
        }
    }

    /// Who is at the end of a way.
    fn find(&self, way: DevicePath) -> Option<usize> {
        let root = &self.roots[self.root_at(way.port)?];
        root.fronts.iter().copied().find(|&number| self.fronts[number].way.route == way.route)
    }

    fn at_root(&mut self, port: u8, act: impl FnOnce(&mut Self, usize)) {
        if let Some(root) = self.root_at(port) {
            act(self, root);
        }
    }

    fn act_on_link(&mut self, drive: usize, act: LinkAct) {
        let (now, end) = (self.engine.now(), self.fronts[drive].end);
        let host = self.roots[end.root].ports(end.device).0;
        self.woken[Side::Host as usize].add(end.root);
        if !matches!(act, LinkAct::Queue(..)) {
            self.engine.note("controller", format_args!("{act:?}"));
        }
        match act {
            LinkAct::Install(endpoint) => host.install(endpoint),
            LinkAct::Remove(address) => {
                self.forget_endpoint(drive, address);
                self.roots[end.root].ports(end.device).0.remove(address);
            }
            LinkAct::Queue(pipe, transfer) => {
                let observers = &mut self.seats[drive].desk.observers;
                observers.tell(|observer| observer.taken_on(now, pipe, transfer.id));
                if pipe.endpoint.direction() == Direction::Out {
                    let going = GoingOut { id: transfer.id, bytes: transfer.bytes, taken: 0 };
                    self.seats[drive].going_out.push(going);
                }
                if self.seats[drive].trouble.faults.shows(Bug::SkippedTd) {
                    return;
                }
                // A link that was down knows of no endpoints until the driver has configured the device again.
                let _ = host.queue(pipe, transfer);
            }
            LinkAct::Stop(address) => {
                host.stop(address);
                self.seats[drive].stopping.push(address);
                self.stopping.add(drive);
                self.look_after_stops(drive);
            }
            LinkAct::Clear(address) => {
                for (pipe, id) in host.transfers_of(address) {
                    // What cannot be taken back now is told later, and then nobody waits for it.
                    let _ = host.withdraw(pipe, id);
                }
                self.forget_endpoint(drive, address);
            }
            LinkAct::Reset(address) => host.reset(address),
            LinkAct::Retry(address) => host.reset_for_retry(address),
            LinkAct::Resume(address) => host.resume(address),
        }
    }

    /// What the device has queued to end transfers of an endpoint is taken back, and it is told: nothing may come any more upon which
    /// it would be.
    fn forget_endpoint(&mut self, drive: usize, address: EndpointAddress) {
        let (seat, end) = (&mut self.seats[drive], self.fronts[drive].end);
        let (host, device) = self.roots[end.root].ports(end.device);
        self.woken[Side::Device as usize].add(end.root);
        for ending in seat.endings.extract_if(.., |ending| ending.pipe.endpoint == address) {
            seat.drive.withdraw(device, ending.pipe, ending.device);
        }
        if address.direction() == Direction::Out {
            let left: Vec<_> = host.all_transfers().into_iter().map(|(_, id)| id).collect();
            seat.going_out.retain(|going| left.contains(&going.id));
        }
        self.tell_drive(drive);
    }

    /// Tells the controller of endpoints that have come to rest.
    pub(super) fn look_after_stops(&mut self, drive: usize) {
        let (now, front) = (self.engine.now(), &self.fronts[drive]);
        let host = self.roots[front.end.root].host(front.end.device);
        let stopping = &mut self.seats[drive].stopping;
        let (controller, memory) = (&mut self.machine.controller, &mut self.machine.memory);
        for address in stopping.extract_if(.., |address| host.is_quiet(*address)) {
            self.machine.is_touched = true;
            controller.handle_quiet(now, memory, front.way, address);
        }
        if self.seats[drive].stopping.is_empty() {
            self.stopping.remove(drive);
        }
    }

    /// The link is down: what crosses is lost, and nothing comes any more.
    fn port_down(&mut self, root: usize) {
        let now = self.engine.now();
        self.roots[root].is_ready = false;
        self.roots[root].cut(now);
        for number in self.roots[root].fronts.clone() {
            self.fronts[number].control.requests.clear();
            self.restart_hub(number);
        }
    }

    /// Who is there was reset, and all that are behind: they are as they were when they were plugged in.
    fn port_reset(&mut self, root: usize) {
        for number in self.roots[root].fronts.clone() {
            self.reset_drive(number);
        }
    }

    /// A drive is as it was when it was plugged in, or a hub is.
    pub(super) fn reset_drive(&mut self, number: usize) {
        self.restart_hub(number);
        let Some(seat) = self.seats.get_mut(number) else { return };
        seat.drive.device.handle_bus_reset();
        while let Some(output) = self.seats[number].drive.device.poll_output() {
            self.carry_out_of_device(self.engine.now(), number, output);
        }
        let now = self.engine.now();
        let Seat { drive, trouble, .. } = &mut self.seats[number];
        drive.forget_offers(now);
        trouble.forget_late();
        trouble.ledger.forget_all(Side::Device);
    }

    /// The link is trained: both ends begin anew.
    fn port_up(&mut self, root: usize) {
        self.roots[root].restart(self.engine.now());
        self.wake_link_anew(root);
        self.woken.iter_mut().for_each(|woken| woken.add(root));
        for number in self.roots[root].fronts.clone() {
            if let Some(seat) = self.seats.get_mut(number) {
                seat.forget_all();
                self.look_after_stops(number);
            }
        }
    }
}
