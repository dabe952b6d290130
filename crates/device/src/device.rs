//! The device as a whole: endpoint 0, the transport that the host has chosen, the units behind it.
//!
//! The driver of a device brings what happens on the bus and at the media by the `handle_*` methods, and then takes
//! everything from [`Device::poll_output`], in order. What must be remembered across configurations (units,
//! commands that still drain) stays in the executor; a transport lives as long as its alternate setting.
//!
//! Left out: suspend and remote wake-up, which the descriptors do not offer; bus time.

mod config;
pub mod descriptors;
mod endpoint0;
mod recorded;
#[cfg(test)]
mod tests;

use crate::bot::Bot;
use crate::cbi::Cbi;
use crate::command::{CommandId, Executor};
use crate::lun::{InsertedMedium, LogicalUnit, UnitEvent};
use crate::medium::MediumCompletion;
use crate::output::{Output, Outputs};
use crate::transfer_id::TransferIdAllocator;
use crate::uas::Uas;
use alloc::vec::Vec;
use bus::{Completion, EndpointAddress, Front};
pub use config::{COMMAND, DATA_IN, DATA_OUT, DeviceConfig, INTERRUPT_INTERVAL_MS, STATUS, Transports};
use core::hint::cold_path;
pub use endpoint0::Verdict;
use endpoint0::{Effect, Endpoint0};
pub use recorded::{RecordedDescriptor, RecordedDevice};
use wire::usb::SetupPacket;

/// The transport that is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActiveTransport {
    /// Not configured.
    None,
    /// Bulk-Only Transport.
    Bot,
    /// Control/Bulk/Interrupt, or Control/Bulk.
    Cbi {
        /// Whether the interrupt endpoint reports completion.
        interrupt: bool,
    },
    /// USB Attached SCSI.
    Uas {
        /// Whether over streams.
        streams: bool,
    },
}

#[derive(Debug)]
enum Transport {
    None,
    Bot(Bot),
    Cbi(Cbi),
    Uas(Uas),
}

/// A USB mass-storage device.
#[derive(Debug)]
pub struct Device {
    config: DeviceConfig,
    endpoint0: Endpoint0,
    transport: Transport,
    /// The ids that the previous transport allocated.
    transfer_ids: TransferIdAllocator,
    executor: Executor,
    outputs: Outputs,
}

impl Device {
    /// A device that has just been powered on, with `units` as its logical units 0, 1, ….
    pub fn new(config: DeviceConfig, units: Vec<LogicalUnit>) -> Self {
        let mut device = Self {
            endpoint0: Endpoint0::new(&config, units.len() as u8),
            executor: Executor::new(units, config.limits),
            config,
            transport: Transport::None,
            transfer_ids: TransferIdAllocator::new(1),
            outputs: Outputs::default(),
        };
        // A unit may have work to go on with, host or not.
        device.settle();
        device
    }

    /// A control transfer on endpoint 0. `data_out` is its data stage if that goes to the device.
    pub fn handle_control(&mut self, setup: SetupPacket, data_out: &[u8]) -> Verdict {
        let (mut verdict, effect) = self.endpoint0.handle(&setup, data_out, self.outputs.halted());
        match effect {
            Effect::None => {}
            Effect::Interface(alternate) => self.select(alternate),
            Effect::Halt(endpoint) => self.outputs.halt(endpoint),
            Effect::ClearHalt(endpoint) => self.clear_halt(endpoint),
            Effect::AcceptCommand => {
                if let Transport::Cbi(cbi) = &mut self.transport
                    && !cbi.accept(data_out, &mut self.executor, &mut self.outputs)
                {
                    verdict = Verdict::Stall;
                }
            }
            Effect::MassStorageReset => {
                if let Transport::Bot(bot) = &mut self.transport {
                    bot.reset(&mut self.executor, &mut self.outputs);
                }
            }
        }
        self.settle();
        verdict
    }

    /// A device transfer has ended. `bytes` is what a [`crate::Payload::Message`] has brought, else empty.
    #[inline]
    pub fn handle_completion(&mut self, completion: Completion, bytes: &[u8]) {
        let (executor, outputs) = (&mut self.executor, &mut self.outputs);
        match &mut self.transport {
            Transport::None => {}
            Transport::Bot(bot) => {
                cold_path();
                bot.handle_completion(completion, bytes, executor, outputs);
            }
            Transport::Cbi(cbi) => {
                cold_path();
                cbi.handle_completion(completion, bytes, executor, outputs);
            }
            Transport::Uas(uas) => uas.handle_completion(completion, bytes, executor, outputs),
        }
        self.settle();
    }

    /// The same for one with a [`crate::Payload::Message`] that can stay where it waits. `true`: the device waits for the next message
    /// with it, under the same name. `false`: it has ended, as others do.
    #[inline(always)]
    pub fn handle_message(&mut self, completion: Completion, bytes: &[u8]) -> bool {
        let Transport::Uas(uas) = &mut self.transport else {
            cold_path();
            self.handle_completion(completion, bytes);
            return false;
        };
        let waits = uas.handle_message(completion, bytes, &mut self.executor, &mut self.outputs);
        self.settle();
        waits
    }

    /// A medium has answered.
    pub fn handle_medium(&mut self, completion: MediumCompletion) {
        self.executor.handle_medium(completion);
        self.settle();
    }

    /// The bus was reset: default state, and BUS RESET OCCURRED at every unit.
    pub fn handle_bus_reset(&mut self) {
        self.endpoint0.reset();
        self.select(None);
        self.executor.handle_event(None, UnitEvent::BusReset);
        self.settle();
    }

    /// The host is gone, or another one is there: the I_T nexus is lost.
    pub fn handle_nexus_loss(&mut self) {
        self.endpoint0.reset();
        self.select(None);
        self.executor.handle_event(None, UnitEvent::NexusLoss);
        self.settle();
    }

    /// The next thing to do for the device, to be looked at and taken or discarded: it is first again otherwise.
    #[inline(always)]
    pub fn poll_output(&mut self) -> Option<Front<'_, Output>> {
        if self.executor.wants() {
            return self.executor.poll_want();
        }
        self.outputs.front()
    }

    /// Whether [`Self::poll_output`] has anything to return.
    #[inline]
    pub fn has_outputs(&self) -> bool {
        self.executor.wants() || !self.outputs.is_empty()
    }

    /// Returns the configuration that it was created with.
    pub const fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// Parameter data of a command whose transfer has the payload [`crate::Payload::Reply`].
    pub fn reply(&self, command: CommandId) -> &[u8] {
        self.executor.reply(command)
    }

    /// The command descriptor block of a command; empty if there is no such command.
    pub fn cdb(&self, command: CommandId) -> &[u8] {
        self.executor.cdb(command)
    }

    /// The logical units.
    pub fn units(&self) -> &[LogicalUnit] {
        self.executor.units()
    }

    /// The logical units, for what their owner does with them: insert, eject, resize.
    pub fn units_mut(&mut self) -> &mut [LogicalUnit] {
        self.executor.units_mut()
    }

    /// The owner puts a medium into a unit that has none.
    pub fn insert_medium(&mut self, unit: u8, medium: InsertedMedium) {
        self.executor.insert_medium(unit, medium);
        self.settle();
    }

    /// Whether a command of a unit is in flight that uses its medium.
    pub fn uses_medium(&self, unit: u8) -> bool {
        self.executor.uses_medium(unit)
    }

    /// The configuration value that is set, 0 for none.
    pub const fn configuration(&self) -> u8 {
        self.endpoint0.configuration()
    }

    /// The alternate setting that is selected; 0 while not configured.
    pub const fn alternate(&self) -> u8 {
        self.endpoint0.alternate()
    }

    /// The transport that is on.
    pub const fn transport(&self) -> ActiveTransport {
        match &self.transport {
            Transport::None => ActiveTransport::None,
            Transport::Bot(_) => ActiveTransport::Bot,
            Transport::Cbi(cbi) => ActiveTransport::Cbi { interrupt: cbi.has_interrupt() },
            Transport::Uas(_) => ActiveTransport::Uas { streams: self.config.speed.has_streams() },
        }
    }

    /// Whether no command is in flight.
    pub fn is_idle(&self) -> bool {
        self.executor.is_idle()
    }

    /// Returns the number of commands aborted so far. One that the medium works for remains until the medium releases it, and its
    /// data are ignored, so a medium that moves blocks piece by piece can stop early.
    pub const fn aborted(&self) -> u64 {
        self.executor.aborted()
    }

    /// Whether a command has neither ended nor been aborted.
    pub fn is_live(&self, command: CommandId) -> bool {
        self.executor.is_live(command)
    }

    /// Commands in flight.
    pub fn depth(&self) -> usize {
        self.executor.depth()
    }

    /// Puts the transport of an alternate setting on; the one before ends with its commands.
    fn select(&mut self, alternate: Option<u8>) {
        let (executor, outputs) = (&mut self.executor, &mut self.outputs);
        match &mut self.transport {
            Transport::None => {}
            Transport::Bot(bot) => {
                bot.stop(executor, outputs);
                self.transfer_ids = TransferIdAllocator::after(bot.transfer_ids(), 1);
            }
            Transport::Cbi(cbi) => {
                cbi.stop(executor, outputs);
                self.transfer_ids = TransferIdAllocator::after(cbi.transfer_ids(), 1);
            }
            Transport::Uas(uas) => {
                uas.stop(executor, outputs);
                self.transfer_ids = TransferIdAllocator::after(uas.transfer_ids(), 1);
            }
        }
        outputs.clear_halts();
        for unit in executor.units_mut() {
            unit.held_sense = None;
        }
        let is_uas = alternate.map(|_| self.config.uas_alternate() == alternate);
        let speed = self.config.speed;
        self.transport = match is_uas {
            None => Transport::None,
            Some(_) if let Some(endpoints) = self.config.cbi_endpoints() => {
                Transport::Cbi(Cbi::new(endpoints, speed, &self.transfer_ids))
            }
            Some(false) => {
                let endpoints = self.config.bot_endpoints();
                let mut bot = Bot::new(endpoints, speed, self.config.bot_short_data, &self.transfer_ids);
                bot.receive(outputs);
                Transport::Bot(bot)
            }
            Some(true) => {
                let endpoints = self.config.uas_endpoints();
                let streams = speed.has_streams().then_some(self.config.streams);
                let commands = self.config.limits.commands;
                let mut uas = Uas::new(endpoints, speed, streams, commands, &self.transfer_ids);
                uas.receive(outputs);
                Transport::Uas(uas)
            }
        };
    }

    /// The host clears a halt. Where reset recovery is owed, the endpoint halts again at once (clause 6.6.1).
    fn clear_halt(&mut self, endpoint: EndpointAddress) {
        if matches!(&self.transport, Transport::Bot(bot) if bot.is_wedged()) {
            self.outputs.halt(endpoint);
        } else {
            self.outputs.clear_halt(endpoint);
        }
    }

    /// Forwards the outputs of the executor to the transport until there are none. At once, and not when it is polled: a host
    /// that ends a phase early cancels what the transport knows of, and must find all of it.
    #[inline(always)]
    fn settle(&mut self) {
        if self.executor.may_have_outputs() || matches!(self.transport, Transport::Bot(_) | Transport::Cbi(_))
        {
            self.settle_all();
        }
    }

    #[inline(never)]
    fn settle_all(&mut self) {
        loop {
            let Some(output) = self.executor.poll_output() else {
                let resumed = match &mut self.transport {
                    Transport::Bot(bot) => bot.resume(&mut self.executor),
                    Transport::Cbi(cbi) => cbi.resume(&mut self.executor),
                    Transport::None | Transport::Uas(_) => false,
                };
                if resumed {
                    continue;
                }
                return;
            };
            let (executor, outputs) = (&mut self.executor, &mut self.outputs);
            match (output, &mut self.transport) {
                (output, Transport::Bot(bot)) => {
                    cold_path();
                    bot.handle_command(output, executor, outputs);
                }
                (output, Transport::Cbi(cbi)) => {
                    cold_path();
                    cbi.handle_command(output, executor, outputs);
                }
                (output, Transport::Uas(uas)) => uas.handle_command(output, outputs),
                (_, Transport::None) => {}
            }
        }
    }
}
