//! Link actions of the controller: endpoints, transfers, stops, resets.
//!
//! Actions at an empty port are ignored. Invariant: a stopped endpoint is reported once, when it is
//! quiet.

use super::XhciMachine;
use super::attached_drive::{AttachedDrive, OutTransfer};
use super::core::Work;
use crate::fault::SeededBug;
use crate::link::superspeed::Side;

use bus::Front;
use units::Instant;
use wire::usb::{Direction, EndpointAddress};
use xhci_controller::{DevicePath, LinkAct, Output};

impl XhciMachine {
    #[inline(never)]
    pub(super) fn carry_out_of_controller(&mut self, now: Instant, output: Output) {
        match output {
            Output::Interrupt => self.run_on_core(now, 0, Work::Interrupt),
            Output::Link(way, act) => match self.find(way) {
                Some(drive) if drive < self.drives.len() => self.act_on_link(drive, act),
                Some(hub) => self.act_on_hub_link(hub, act),
                None => {}
            },
            Output::Control(way, request) => {
                // There is no answer from an empty port.
                if let Some(number) = self.find(way) {
                    self.devices[number].control.requests.push_back(request);
                    self.begin_control(number);
                }
            }
            Output::PortDown(port) => self.at_root(port, Self::port_down),
            Output::PortReset(port) => self.at_root(port, Self::port_reset),
            Output::PortUp(port) => self.at_root(port, Self::port_up),
            Output::PortPower(port, power) => {
                self.at_root(port, |machine, root| machine.set_link_power(root, power))
            }
        }
    }

    /// Returns the device at a port and route.
    fn find(&self, way: DevicePath) -> Option<usize> {
        let root = &self.root_ports[self.root_at(way.port)?];
        root.devices.iter().copied().find(|&number| self.devices[number].way.route == way.route)
    }

    fn at_root(&mut self, port: u8, act: impl FnOnce(&mut Self, usize)) {
        if let Some(root) = self.root_at(port) {
            act(self, root);
        }
    }

    fn act_on_link(&mut self, drive: usize, act: LinkAct) {
        let (now, end) = (self.engine.now(), self.devices[drive].end);
        let host = self.root_ports[end.root].ports(end.device).0;
        self.system.ready.mark_port(end.root, Side::Host);
        if !matches!(act, LinkAct::Queue(..)) {
            self.engine.note("controller", format_args!("{act:?}"));
        }
        match act {
            LinkAct::Install(endpoint) => host.install(endpoint),
            LinkAct::Remove(address) => {
                self.forget_endpoint(drive, address);
                self.root_ports[end.root].ports(end.device).0.remove(address);
            }
            LinkAct::Queue(pipe, transfer) => {
                let observers = &mut self.drives[drive].host_transport.observers;
                observers.notify(|observer| observer.fetched(now, pipe, transfer.id));
                if pipe.endpoint.direction() == Direction::Out {
                    let going = OutTransfer { id: transfer.id, bytes: transfer.bytes, taken: 0 };
                    self.drives[drive].out_transfers.push(going);
                }
                if self.drives[drive].injector.faults.triggers(SeededBug::SkippedTd) {
                    return;
                }
                // A link that was down has no endpoints until the driver configures the device
                // again.
                let _ = host.queue(pipe, transfer);
            }
            LinkAct::Stop(address) => {
                host.stop(address);
                self.drives[drive].stopping.push(address);
                self.stopping.add(drive);
                self.service_stops(drive);
            }
            LinkAct::Clear(address) => {
                for (pipe, id) in host.transfers_of(address) {
                    // Transfers in progress complete later, and are ignored then.
                    let _ = host.withdraw(pipe, id);
                }
                self.forget_endpoint(drive, address);
            }
            LinkAct::Reset(address) => host.reset(address),
            LinkAct::Retry(address) => host.reset_for_retry(address),
            LinkAct::Resume(address) => host.resume(address),
        }
    }

    /// Withdraws the terminators of an endpoint's transfers and notifies the drive now, since no
    /// later packet may trigger it.
    fn forget_endpoint(&mut self, drive: usize, address: EndpointAddress) {
        let (attached, end) = (&mut self.drives[drive], self.devices[drive].end);
        let (host, device) = self.root_ports[end.root].ports(end.device);
        self.system.ready.mark_port(end.root, Side::Device);
        for ending in attached.endings.extract_if(.., |ending| ending.pipe.endpoint == address) {
            attached.drive.withdraw(device, ending.pipe, ending.device);
        }
        if address.direction() == Direction::Out {
            let left: Vec<_> = host.all_transfers().into_iter().map(|(_, id)| id).collect();
            attached.out_transfers.retain(|going| left.contains(&going.id));
        }
        self.notify_drive(drive);
    }

    /// Notifies the controller of endpoints that have become quiet.
    pub(super) fn service_stops(&mut self, drive: usize) {
        let (now, host_device) = (self.engine.now(), &self.devices[drive]);
        let host = self.root_ports[host_device.end.root].host(host_device.end.device);
        let stopping = &mut self.drives[drive].stopping;
        let (controller, memory) = (&mut self.system.controller, &mut self.system.memory);
        for address in stopping.extract_if(.., |address| host.is_quiet(*address)) {
            self.system.ready.controller = true;
            controller.handle_quiet(now, memory, host_device.way, address);
        }
        if self.drives[drive].stopping.is_empty() {
            self.stopping.remove(drive);
        }
    }

    /// Takes a link down: packets in flight are lost.
    fn port_down(&mut self, root: usize) {
        let now = self.engine.now();
        self.root_ports[root].is_ready = false;
        self.root_ports[root].cut(now);
        for number in self.root_ports[root].devices.clone() {
            self.devices[number].control.requests.clear();
            self.restart_hub(number);
        }
    }

    /// Resets the device at a root port and all behind it.
    fn port_reset(&mut self, root: usize) {
        for number in self.root_ports[root].devices.clone() {
            self.reset_drive(number);
        }
    }

    /// Resets a drive or hub to its initial state.
    pub(super) fn reset_drive(&mut self, number: usize) {
        self.restart_hub(number);
        let Some(attached) = self.drives.get_mut(number) else { return };
        attached.drive.device.handle_bus_reset();
        while let Some(output) = self.drives[number].drive.device.poll_output().map(Front::take) {
            self.carry_out_of_device(self.engine.now(), number, output);
        }
        let now = self.engine.now();
        let AttachedDrive { drive, injector, .. } = &mut self.drives[number];
        drive.forget_offers(now);
        injector.clear_deferred();
        injector.ledger.forget_all(Side::Device);
    }

    /// Restarts both ends of a trained link.
    fn port_up(&mut self, root: usize) {
        self.root_ports[root].restart(self.engine.now());
        self.restart_link_power(root);
        self.system.ready.mark_ports(root);
        for number in self.root_ports[root].devices.clone() {
            if let Some(attached) = self.drives.get_mut(number) {
                attached.forget_all();
                self.service_stops(number);
            }
        }
    }
}
