//! Builds the topology behind each root port from a [`Setup`]: links or a bus, hubs and positions.
//!
//! Nothing has power yet. Left out: devices added later; they exist unpowered from the start.
//! Invariant: drives come first in device numbers.

use super::host_device::HostDevice;
use super::hubs::AttachedHub;
use super::power_on::hub_port_speed;
use super::root_port::{End, RootPort, Wires};
use super::setup::{HUB_PORTS_MAX, Hub, Node, Plug, Setup};
use crate::engine::Alarm;
use crate::hub::{HubDevice, Shape};
use crate::link::hub::{AttachError, AttachPoint, DeviceId, HubId, Tree};
use crate::link::superspeed::{Link, Rate, TurnRound};
use crate::link::{AnyRate, CABLE, LinkPair, bulk, usb2};
use bus::Speed;
use units::Instant;
use wire::usb::hub::HubKind;
use wire::xhci::RouteString;
use xhci_controller::DevicePath;

/// The topology of all root ports.
pub(super) struct Wired {
    pub(super) root_ports: Vec<RootPort>,
    pub(super) devices: Vec<HostDevice>,
    pub(super) hubs: Vec<AttachedHub>,
}

/// Builder of one root port.
struct Wiring {
    /// Rate of all links.
    rate: AnyRate,
    port: u8,
    root: usize,
    /// Numbers of the next drive and the next hub.
    drive: usize,
    hub: usize,
    hubs: Vec<AttachedHub>,
    /// Device numbers in the order of the root port.
    numbers: Vec<usize>,
    devices: Vec<HostDevice>,
}

impl Setup {
    /// Builds all root ports. Drives come first in device numbers.
    pub(super) fn wire_up(&self, drives: usize) -> Result<Wired, AttachError> {
        let (mut root_ports, mut devices, mut hubs) = (Vec::new(), Vec::new(), Vec::new());
        let (mut drive, mut hub) = (0, drives);
        for plug in &self.plugs {
            let port = self.ports_before() + plug.port;
            let mut wiring = Wiring {
                rate: self.rate,
                port,
                root: root_ports.len(),
                drive,
                hub,
                hubs: Vec::new(),
                numbers: Vec::new(),
                devices: Vec::new(),
            };
            let wires = match &plug.node {
                Node::Drive(drive) => {
                    let rate = self.rate_of(drive);
                    wiring.take(true, rate.speed(), RouteString::ROOT, DeviceId(0));
                    Wires::Direct(self.cable(rate))
                }
                Node::Hub(_) => match self.rate {
                    AnyRate::SuperSpeed(rate) => {
                        Wires::Hubs(wiring.tree(rate, self.turn_round, &plug.node)?)
                    }
                    AnyRate::Usb2(rate) => Wires::Bus(wiring.bus(rate, self.host.part.pacing, &plug.node)?),
                },
            };
            let first = wiring.numbers.first().copied().unwrap_or(0);
            let devices_here = wiring.numbers;
            let (alarm, is_connected, is_ready) = (Alarm::default(), false, false);
            let root = RootPort { port, wires, first, devices: devices_here, alarm, is_connected, is_ready };
            (drive, hub) = (wiring.drive, wiring.hub);
            devices.append(&mut wiring.devices);
            hubs.append(&mut wiring.hubs);
            root_ports.push(root);
        }
        devices.sort_by_key(HostDevice::number);
        Ok(Wired { root_ports, devices, hubs })
    }

    /// Builds a direct link to a drive.
    fn cable(&self, rate: AnyRate) -> LinkPair {
        match rate {
            AnyRate::SuperSpeed(rate) => {
                let (host, device) = (bulk::HostPort::new(&[]), bulk::DevicePort::new(&[]));
                let mut link_pair =
                    LinkPair::new(Link::new(rate, CABLE).between(self.turn_round), host, device);
                self.asleep().into_iter().for_each(|sleep| link_pair.let_sleep(sleep));
                link_pair
            }
            AnyRate::Usb2(rate) => {
                let host = usb2::HostPort::new(rate, &[], self.host.part.pacing);
                LinkPair::on_bus(usb2::Bus::new(rate, 0), host, usb2::DevicePort::new(rate, &[]))
            }
        }
    }
}

impl Wiring {
    fn tree(&mut self, rate: Rate, turn_round: TurnRound, node: &Node) -> Result<Tree, AttachError> {
        let mut tree = Tree::new(rate, CABLE).between(turn_round);
        self.plug(&mut tree, AttachPoint::Root, node)?;
        Ok(tree)
    }

    /// Builds hubs on a USB 2.0 bus.
    fn bus(
        &mut self,
        rate: usb2::Rate,
        pacing: usb2::Pacing,
        node: &Node,
    ) -> Result<usb2::Tree, AttachError> {
        let mut tree = usb2::Tree::new(rate, pacing);
        self.plug_on_bus(&mut tree, rate, AttachPoint::Root, node)?;
        Ok(tree)
    }

    fn plug(&mut self, tree: &mut Tree, place: AttachPoint, node: &Node) -> Result<(), AttachError> {
        let Node::Hub(hub) = node else {
            let device = tree.plug_device(place, &[])?;
            self.take(true, Speed::Super, tree.route_of(device).ok_or(AttachError)?, device);
            return Ok(());
        };
        let id: HubId = tree.plug_hub(place, hub.delay)?;
        let device = tree.device_of(id);
        let route = tree.route_of(device).ok_or(AttachError)?;
        self.take(false, Speed::Super, route, device);
        self.take_hub(hub, route);
        hub.plugs.iter().try_for_each(|plug| self.plug(tree, AttachPoint::Port(id, plug.port), &plug.node))
    }

    fn plug_on_bus(
        &mut self,
        tree: &mut usb2::Tree,
        rate: usb2::Rate,
        place: AttachPoint,
        node: &Node,
    ) -> Result<(), AttachError> {
        let hub = match node {
            Node::Drive(drive) => {
                let own = drive.rate.unwrap_or(rate);
                let device = tree.plug_device(place, own)?;
                let speed = AnyRate::Usb2(own).speed();
                self.take(true, speed, tree.route_of(device).ok_or(AttachError)?, device);
                if let Some(host_device) = self.devices.last_mut() {
                    host_device.is_translated = own != rate;
                }
                return Ok(());
            }
            Node::Hub(hub) => hub,
        };
        let id = tree.plug_hub(place, hub.translators)?;
        let device = tree.device_of(id);
        let route = tree.route_of(device).ok_or(AttachError)?;
        self.take(false, self.rate.speed(), route, device);
        self.take_hub(hub, route);
        let mut plugs = hub.plugs.iter();
        plugs.try_for_each(|plug| self.plug_on_bus(tree, rate, AttachPoint::Port(id, plug.port), &plug.node))
    }

    /// Creates a hub device. It has no power yet, so devices at its ports are detected later.
    fn take_hub(&mut self, hub: &Hub, route: RouteString) {
        let (kind, translators) = match self.rate {
            AnyRate::SuperSpeed(_) => (HubKind::SuperSpeed, None),
            AnyRate::Usb2(usb2::Rate::High) => (HubKind::Usb2, Some(hub.translators)),
            AnyRate::Usb2(usb2::Rate::Full) => (HubKind::Usb2, None),
        };
        let ports = hub.ports.min(HUB_PORTS_MAX);
        let tier = route.tiers() as u16;
        let mut device = HubDevice::new(Shape { kind, ports, delay: hub.delay, tier, translators });
        for Plug { port, node } in &hub.plugs {
            let own = match node {
                Node::Drive(drive) => drive.rate.map_or(self.rate, AnyRate::Usb2),
                Node::Hub(_) => self.rate,
            };
            device.plug(Instant::ZERO, *port, hub_port_speed(own.speed()));
        }
        self.hubs.push(AttachedHub::new(device));
    }

    fn take(&mut self, is_drive: bool, speed: Speed, route: RouteString, device: DeviceId) {
        let next = if is_drive { &mut self.drive } else { &mut self.hub };
        let (number, way) = (*next, DevicePath { port: self.port, route });
        *next += 1;
        self.numbers.push(number);
        self.devices.push(HostDevice::new(number, speed, way, End { root: self.root, device }));
    }
}
