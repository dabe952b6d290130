//! One device: its descriptors, what its endpoints are, and the machine of each transport that it speaks.
//!
//! Control transfers contain descriptors, settings and resets; bulk transfers go to the machine of their endpoint's transport. Left out:
//! two drives in one device, which share a machine; strings.

mod roles;

use crate::bot::Bot;
use crate::cbi::Cbi;
use crate::command::Transport;
use crate::contents::{DeviceSummary, TransferCounts};
use crate::event::{Address, Event, TransferEnd, TransferKind};
use crate::ledger::{Ledger, Reporter};
use crate::uas::Uas;
use crate::unit::Units;
use crate::verdict::{Fault, Finding};
use roles::{Pipe, Role, Roles};
use std::collections::VecDeque;
use wire::bot::ClassRequest;
use wire::cbi::{self, AcceptCommand};
use wire::usb::{DescriptorKind, DeviceDescriptor, SetupPacket, StandardRequest};

/// Control transfers that are in flight at a time.
const CONTROLS_MAX: usize = 64;

/// A device of the capture.
#[derive(Debug)]
pub(crate) struct Device {
    address: Address,
    roles: Roles,
    bot: Bot,
    uas: Uas,
    cbi: Cbi,
    units: Units,
    controls: VecDeque<(u64, SetupPacket)>,
    counts: TransferCounts,
    descriptor: Option<DeviceDescriptor>,
    is_configured: bool,
    /// Whether a transfer to the host was seen to begin.
    has_both_ends: bool,
    /// It went away, and was not configured since.
    is_gone: bool,
    /// Behind this packet others are missing, and perhaps anywhere before it.
    missed: Option<u64>,
    /// Transports that it used, in the order of their first use.
    transports: Vec<Transport>,
    /// Which one it used last.
    transport: Option<Transport>,
    /// The last packet that was of it.
    pub(crate) latest_packet: u64,
}

impl Device {
    pub(crate) fn new(address: Address, missed: Option<u64>) -> Self {
        Self {
            address,
            roles: Roles::default(),
            bot: Bot::default(),
            uas: Uas::default(),
            cbi: Cbi::default(),
            units: Units::default(),
            controls: VecDeque::new(),
            counts: TransferCounts::default(),
            descriptor: None,
            is_configured: false,
            has_both_ends: false,
            is_gone: false,
            missed,
            transports: Vec::new(),
            transport: None,
            latest_packet: 0,
        }
    }

    /// Returns the device descriptor, if the capture has it.
    pub(crate) fn descriptor(&self) -> Option<&DeviceDescriptor> {
        self.descriptor.as_ref()
    }

    /// The transport that it was seen to use last.
    pub(crate) fn transport(&self) -> Option<Transport> {
        self.transport
    }

    /// Those that it was seen to use, in the order of their first use.
    pub(crate) fn transports(&self) -> &[Transport] {
        &self.transports
    }

    /// Counts a transfer.
    pub(crate) fn count(&mut self, kind: TransferKind) {
        let counts = &mut self.counts;
        *match kind {
            TransferKind::Control => &mut counts.control,
            TransferKind::Bulk => &mut counts.bulk,
            TransferKind::Interrupt => &mut counts.interrupt,
            TransferKind::Isochronous => &mut counts.isochronous,
        } += 1;
    }

    /// Returns the contents of the capture for the device.
    pub(crate) fn summary(&self) -> DeviceSummary {
        DeviceSummary {
            address: self.address,
            id: self.descriptor.map(|descriptor| (descriptor.vendor, descriptor.product)),
            class: self.descriptor.map(|descriptor| descriptor.class),
            interfaces: self.roles.classes().to_vec(),
            transfers: self.counts,
        }
    }

    /// One end of a transfer; `reset` is a reset of a port of this bus, which is not attributed to a device yet.
    pub(crate) fn take(&mut self, event: &Event<'_>, reset: &mut Option<u64>, ledger: &mut Ledger) {
        self.latest_packet = event.mark.packet;
        let is_control = event.is_control();
        // A file with one record of each transfer has the ends of those to the host alone.
        if event.is_submitted() || event.is_in() && !self.has_both_ends {
            self.count(event.kind);
        }
        self.has_both_ends |= event.is_in() && event.is_submitted();
        if is_control {
            self.take_command_block(event, ledger);
            return self.take_control(event, reset, ledger);
        }
        let uas = &self.uas;
        let role = self.roles.of(event, self.bot.is_idle(), |tag| uas.knows(tag));
        let transport = match role {
            Role::Unknown | Role::Other => return,
            Role::BotOut | Role::BotIn => Transport::Bot,
            Role::Pipe(_) => Transport::Uas,
            Role::CbiData | Role::CbiStatus => Transport::Cbi,
        };
        self.note_transport(transport);
        self.is_gone |= event.ended() == Some(TransferEnd::Gone);
        let (address, missed) = (self.address, self.missed);
        let mut reporter = Reporter { address, transport, ledger, units: &mut self.units, missed };
        match role {
            Role::BotOut => self.bot.take_out(event, &mut reporter),
            Role::BotIn => self.bot.take_in(event, &mut reporter),
            Role::Pipe(Pipe::Command) => self.uas.take_command(event, &mut reporter),
            Role::Pipe(Pipe::Status) => self.uas.take_status(event, &mut reporter),
            Role::Pipe(Pipe::DataIn | Pipe::DataOut) => self.uas.take_data(event, &mut reporter),
            Role::CbiData => self.cbi.take_data(event, &mut reporter),
            Role::CbiStatus => self.cbi.take_status(event, &mut reporter),
            Role::Unknown | Role::Other => {}
        }
    }

    fn note_transport(&mut self, transport: Transport) {
        self.transport = Some(transport);
        if !self.transports.contains(&transport) {
            self.transports.push(transport);
        }
    }

    /// The capture has ended, or the device is forgotten.
    pub(crate) fn finish(&mut self, ledger: &mut Ledger) {
        let Some(transport) = self.transport else { return };
        self.finish_commands(ledger, self.missed);
        self.units.finish(self.address, transport, ledger, self.missed);
    }

    /// Begins another capture, perhaps of another device at this address: commands in flight are
    /// reported, and only how the device was used is kept.
    pub(crate) fn begin_section(&mut self, ledger: &mut Ledger) {
        // What became of them is not in what was before.
        self.finish_commands(ledger, Some(u64::MAX));
        (self.bot, self.uas, self.cbi, self.roles) = Default::default();
        self.controls.clear();
        self.units.begin_section();
        (self.is_configured, self.is_gone) = (false, false);
    }

    fn finish_commands(&mut self, ledger: &mut Ledger, missed: Option<u64>) {
        let Self { address, units, bot, uas, cbi, .. } = self;
        let mut reporter = Reporter { address: *address, transport: Transport::Bot, ledger, units, missed };
        bot.finish(&mut reporter);
        reporter.transport = Transport::Uas;
        uas.finish(&mut reporter);
        reporter.transport = Transport::Cbi;
        cbi.finish(&mut reporter);
    }

    /// Packets are missing here, behind this one.
    pub(crate) fn miss(&mut self, latest_packet: u64) {
        self.missed = Some(latest_packet);
        self.roles.miss();
        self.bot.miss();
        self.uas.miss();
        self.cbi.miss();
        self.controls.clear();
    }

    /// Packets are missing, perhaps anywhere before this one.
    pub(crate) fn doubt(&mut self, latest_packet: u64) {
        self.missed = Some(latest_packet);
    }

    /// The command block of a floppy drive is in a class request.
    fn take_command_block(&mut self, event: &Event<'_>, ledger: &mut Ledger) {
        let request = event.setup.filter(|_| event.is_submitted());
        let request = request.and_then(|setup| AcceptCommand::decode(&setup).ok());
        let interface = request.filter(|_| !event.bytes.is_empty());
        let interface = interface.and_then(|request| self.roles.cbi(request.interface, event.bytes));
        if interface.is_some() && cbi::is_reset(event.bytes) {
            self.judge_reset(&[event.mark.packet], ledger);
            return self.abort(event, ledger);
        }
        if interface.is_some() {
            self.note_transport(Transport::Cbi);
        }
        let (address, missed, transport) = (self.address, self.missed, Transport::Cbi);
        let mut reporter = Reporter { address, transport, ledger, units: &mut self.units, missed };
        if let Some(interface) = interface {
            self.cbi.begin(event, interface, &mut reporter);
        }
        if let Some(ended) = event.ended() {
            self.cbi.end_request(event, ended, &mut reporter);
        }
    }

    fn take_control(&mut self, event: &Event<'_>, reset: &mut Option<u64>, ledger: &mut Ledger) {
        if let (Some(setup), true) = (event.setup, event.is_submitted()) {
            self.controls.truncate(CONTROLS_MAX - 1);
            self.controls.push_front((event.id, setup));
        }
        if event.ended() != Some(TransferEnd::Done) {
            return;
        }
        let Some(at) = self.controls.iter().position(|(id, _)| *id == event.id) else { return };
        let Some((_, setup)) = self.controls.remove(at) else { return };
        if let Ok(ClassRequest::MassStorageReset { .. }) = ClassRequest::decode(&setup) {
            self.judge_reset(&[event.mark.packet], ledger);
            return self.abort(event, ledger);
        }
        match setup.standard() {
            Some(StandardRequest::GetDescriptor) => self.learn(setup, event, ledger),
            Some(StandardRequest::SetConfiguration) => {
                let is_set = setup.value != 0;
                let packets: Vec<u64> = reset.take().into_iter().chain([event.mark.packet]).collect();
                if self.is_configured && is_set && !self.is_gone && self.transport.is_some() {
                    self.judge_reset(&packets, ledger);
                }
                self.is_configured = is_set;
                self.is_gone = false;
                self.abort(event, ledger);
                self.uas.restart();
                self.roles.configured();
            }
            Some(StandardRequest::SetInterface) => {
                self.abort(event, ledger);
                self.uas.restart();
                let [alternate, _] = setup.value.to_le_bytes();
                self.roles.chosen(setup.interface(), alternate);
            }
            _ => {}
        }
    }

    /// An answer with descriptors.
    fn learn(&mut self, setup: SetupPacket, event: &Event<'_>, ledger: &mut Ledger) {
        match setup.descriptor() {
            (DescriptorKind::Device, _) => {
                let Ok(descriptor) = DeviceDescriptor::decode(event.bytes) else { return };
                let is_other = self.descriptor.is_some_and(|known| known != descriptor);
                if is_other {
                    // Another one with the same address.
                    self.finish(ledger);
                    *self = Self::new(self.address, self.missed);
                }
                self.descriptor = Some(descriptor);
            }
            // No driver of disks selects further configurations.
            (DescriptorKind::Configuration, 0) => self.roles.learn(event.bytes),
            _ => {}
        }
    }

    /// Nothing is in flight any more.
    fn abort(&mut self, event: &Event<'_>, ledger: &mut Ledger) {
        let (address, missed, units) = (self.address, self.missed, &mut self.units);
        let mut reporter = Reporter { address, transport: Transport::Bot, ledger, units, missed };
        self.bot.abort(event.mark, &mut reporter);
        reporter.transport = Transport::Uas;
        self.uas.abort(event.mark, &mut reporter);
        reporter.transport = Transport::Cbi;
        self.cbi.abort(event.mark, &mut reporter);
    }

    /// The host has reset the device: which is a fault if that took commands away, and else what hosts do when they begin.
    fn judge_reset(&self, packets: &[u64], ledger: &mut Ledger) {
        let in_flight = self.bot.in_flight().max(self.uas.in_flight()).max(self.cbi.in_flight());
        let fault = if in_flight.is_some() { Fault::Reset } else { Fault::ConfiguredAgain };
        // Of a device that is idle now, a command may have been missed.
        let since = in_flight.unwrap_or(0);
        ledger.verdicts.add(&Finding {
            address: self.address,
            fault,
            transport: self.transport,
            opcode: None,
            count: 1,
            packets,
            waited_ns: None,
            is_sure: self.missed.is_none_or(|missed| since > missed),
        });
    }
}
