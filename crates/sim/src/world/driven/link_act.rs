//! What the controller wants of the link: endpoints, transfers, stops, resets.

use super::{Driven, computer::Computer, errand};
use crate::xhci::{Hands, LinkAct, Output};
use initiator::Transport;
use units::Instant;
use wire::usb::{Direction, EndpointAddress};

impl<T: Transport> Driven<T> {
    pub(super) fn carry_out_of_controller(&mut self, now: Instant, output: Output) {
        match output {
            Output::Interrupt => {
                let Computer { driver, controller, memory, has_news, .. } = &mut self.computer;
                *has_news = true;
                driver.handle_interrupt(&mut Hands::new(now, controller, memory), now);
            }
            Output::Link(errand::PORT, act) => self.act_on_link(act),
            Output::Control(errand::PORT, request) => {
                self.control.requests.push_back(request);
                self.begin_control();
            }
            Output::PortDown(errand::PORT) => self.port_down(),
            Output::PortReset(errand::PORT) => self.port_reset(),
            Output::PortUp(errand::PORT) => self.port_up(),
            // Nobody is at the other ports.
            Output::Link(..)
            | Output::Control(..)
            | Output::PortDown(_)
            | Output::PortReset(_)
            | Output::PortUp(_) => {}
        }
    }

    fn act_on_link(&mut self, act: LinkAct) {
        match act {
            LinkAct::Install(endpoint) => self.joint.host.install(endpoint),
            LinkAct::Remove(address) => {
                self.forget_endpoint(address);
                self.joint.host.remove(address);
            }
            LinkAct::Queue(pipe, transfer) => {
                if pipe.endpoint.direction() == Direction::Out {
                    self.going_out.push((transfer.id, transfer.bytes, 0));
                }
                let queued = self.joint.host.queue(pipe, transfer);
                debug_assert!(queued.is_ok(), "the controller knows which endpoints the link has");
            }
            LinkAct::Stop(address) => {
                self.joint.host.stop(address);
                self.stopping.push(address);
                self.look_after_stops();
            }
            LinkAct::Clear(address) => {
                for (pipe, id) in self.joint.host.transfers_of(address) {
                    // What cannot be taken back now is told later, and then nobody waits for it.
                    let _ = self.joint.host.withdraw(pipe, id);
                }
                self.forget_endpoint(address);
            }
            LinkAct::Reset(address) => self.joint.host.reset(address),
            LinkAct::Resume(address) => self.joint.host.resume(address),
        }
    }

    /// What the device has queued to end transfers of an endpoint is taken back.
    fn forget_endpoint(&mut self, address: EndpointAddress) {
        let (gone, stay) = self.endings.drain(..).partition(|(pipe, ..)| pipe.endpoint == address);
        self.endings = stay;
        let gone: Vec<_> = gone;
        for (pipe, _, ending) in gone {
            self.drive.withdraw(&mut self.joint.device, pipe, ending);
        }
        if address.direction() == Direction::Out {
            let left: Vec<_> = self.joint.host.all_transfers().into_iter().map(|(_, id)| id).collect();
            self.going_out.retain(|(id, ..)| left.contains(id));
        }
    }

    /// Tells the controller of endpoints that have come to rest.
    pub(super) fn look_after_stops(&mut self) {
        let now = self.engine.now();
        for address in std::mem::take(&mut self.stopping) {
            if self.joint.host.is_quiet(address) {
                let Computer { controller, memory, .. } = &mut self.computer;
                controller.handle_quiet(now, memory, errand::PORT, address);
            } else {
                self.stopping.push(address);
            }
        }
    }

    /// The link is down: what crosses is lost, and nothing comes any more.
    fn port_down(&mut self) {
        self.is_port_ready = false;
        self.joint.cut();
        self.control.requests.clear();
    }

    /// The device was reset: it is as it was when it was plugged in, and so is the link.
    fn port_reset(&mut self) {
        self.drive.device.handle_bus_reset();
        while let Some(output) = self.drive.device.poll_output() {
            self.carry_out_of_device(self.engine.now(), output);
        }
        self.drive.forget_offers();
    }

    /// The link is trained: both ends begin anew.
    fn port_up(&mut self) {
        (self.endings, self.going_out) = (Vec::new(), Vec::new());
        self.joint.restart(&[]);
        self.look_after_stops();
    }
}
