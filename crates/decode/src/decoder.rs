//! Packets in, commands and verdicts out.
//!
//! The caller also says where packets of the capture are missing, since that is seen in the file and not in the packets. Left
//! out: the file. Invariants: each command is returned once; devices that are known at a time have a limit.

use crate::clock::Clock;
use crate::command::{Command, Transport};
use crate::contents::DeviceSummary;
use crate::device::Device;
use crate::event::{Address, Event};
use crate::ledger::{Ledger, Losses};
use crate::source::{NotUnderstood, Seen, Source};
use crate::verdict::Verdict;
use capture::{Link, Packet};
use std::collections::BTreeMap;
use wire::usb::{Recipient, RequestKind, SetupPacket, StandardRequest};

/// Devices that are known at a time: the one that was silent for longest is forgotten for another.
pub const DEVICES_MAX: usize = 256;

/// Takes the packets of a capture, in order, and returns their commands.
#[derive(Debug, Default)]
pub struct Decoder {
    source: Source,
    clock: Clock,
    devices: BTreeMap<Address, Device>,
    ledger: Ledger,
    /// Packets in which a port was reset, by bus; the next device that is configured there is meant.
    resets: BTreeMap<u16, u64>,
    latest_packet: u64,
    /// Behind this packet others are missing, and perhaps anywhere before it.
    missed: Option<u64>,
}

/// A device that was seen to be a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drive<'a> {
    /// Where.
    pub address: Address,
    /// The transport that it used last.
    pub transport: Transport,
    /// The transports that it used, in the order of first use.
    pub transports: &'a [Transport],
    /// idVendor and idProduct, if the capture has its descriptor.
    pub id: Option<(u16, u16)>,
}

impl Decoder {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next packet.
    pub fn take(&mut self, packet: &Packet<'_>) {
        let Self { source, clock, devices, ledger, resets, missed, .. } = self;
        clock.take(packet.at_ns);
        let missed = *missed;
        ledger.verdicts.settle();
        let is_understood = source.take(packet, |seen| {
            let address = match &seen {
                Seen::Event(event) => event.address,
                Seen::Other(address, _) => *address,
                Seen::Nothing => return,
            };
            if !devices.contains_key(&address) && devices.len() >= DEVICES_MAX {
                forget_one(devices, ledger);
            }
            let device = devices.entry(address).or_insert_with(|| Device::new(address, missed));
            let event = match &seen {
                Seen::Event(event) => event,
                Seen::Other(_, kind) => return device.count(*kind),
                Seen::Nothing => return,
            };
            let bus = event.address.bus;
            if is_port_reset(event) {
                resets.insert(bus, event.mark.packet);
            }
            let mut reset = resets.get(&bus).copied();
            device.take(event, &mut reset, ledger);
            if reset.is_none() {
                resets.remove(&bus);
            }
        });
        self.latest_packet = packet.number;
        if !is_understood {
            self.miss();
        }
    }

    /// Packets are missing from the capture here, between the last one and the next: dropped, or damaged. Verdicts on what was
    /// in flight are not sure from now on.
    pub fn miss(&mut self) {
        let latest_packet = self.latest_packet;
        self.missed = Some(latest_packet);
        self.ledger.verdicts.doubt_latest();
        self.source.miss();
        self.resets.clear();
        self.devices.values_mut().for_each(|device| device.miss(latest_packet));
    }

    /// Packets are missing from the capture somewhere before: no verdict until now is sure.
    pub fn miss_somewhere(&mut self) {
        let latest_packet = self.latest_packet;
        self.missed = Some(latest_packet);
        self.ledger.verdicts.doubt_all();
        self.devices.values_mut().for_each(|device| device.doubt(latest_packet));
    }

    /// Another section of the file begins: another capture, or the same one's next file, which begins with all that
    /// is known of the drive. Nothing that spans both is a fault.
    pub fn begin_section(&mut self) {
        self.source.miss();
        self.resets.clear();
        for device in self.devices.values_mut() {
            device.begin_section(&mut self.ledger);
        }
    }

    /// A command that has ended, in the order of their ends.
    pub fn poll(&mut self) -> Option<Command> {
        self.ledger.ended.pop_front()
    }

    /// The capture has ended: what is still in flight is returned, and verdicts on the whole are made. No packet comes afterwards.
    pub fn finish(&mut self) {
        self.ledger.verdicts.settle();
        for device in self.devices.values_mut() {
            device.finish(&mut self.ledger);
        }
    }

    /// Returns the verdicts so far, in the order in which they were first seen.
    pub fn verdicts(&self) -> &[Verdict] {
        self.ledger.verdicts.all()
    }

    /// Returns counts of what was discarded because of limits.
    pub fn losses(&self) -> Losses {
        Losses { faults: self.ledger.verdicts.left_off(), ..self.ledger.losses }
    }

    /// Packets that were not what their link type says.
    pub const fn not_understood(&self) -> NotUnderstood {
        self.source.not_understood()
    }

    /// Packets that were not of USB.
    pub const fn foreign(&self) -> NotUnderstood {
        self.source.foreign()
    }

    /// The link type of the first packet that was not of USB.
    pub const fn foreign_link(&self) -> Option<Link> {
        self.source.foreign_link()
    }

    /// Returns the contents of the capture for each device that is known now.
    pub fn contents(&self) -> impl Iterator<Item = DeviceSummary> {
        self.devices.values().map(Device::summary)
    }

    /// The step of the capture's clock in nanoseconds, if it is too coarse for latencies.
    pub fn clock_tick_ns(&self) -> Option<u64> {
        self.clock.tick_ns()
    }

    /// The drives that are known now.
    pub fn drives(&self) -> impl Iterator<Item = Drive<'_>> {
        self.devices.iter().filter_map(|(&address, device)| {
            let id = device.descriptor().map(|descriptor| (descriptor.vendor, descriptor.product));
            let transports = device.transports();
            device.transport().map(|transport| Drive { address, transport, transports, id })
        })
    }
}

fn forget_one(devices: &mut BTreeMap<Address, Device>, ledger: &mut Ledger) {
    let oldest = devices.iter().min_by_key(|(_, device)| device.latest_packet).map(|(address, _)| *address);
    if let Some(mut device) = oldest.and_then(|address| devices.remove(&address)) {
        device.finish(ledger);
        // What was no drive is no loss.
        ledger.losses.devices += u64::from(device.transport().is_some());
    }
}

/// Whether a hub is asked to reset a port (USB 2.0 clause 11.24.2.13).
fn is_port_reset(event: &Event<'_>) -> bool {
    const PORT_RESET: u16 = 4;
    event.setup.is_some_and(|setup| {
        let SetupPacket { kind, recipient, request, value, .. } = setup;
        let is_set = request == u8::from(StandardRequest::SetFeature);
        kind == RequestKind::Class && recipient == Recipient::Other && is_set && value == PORT_RESET
    })
}
