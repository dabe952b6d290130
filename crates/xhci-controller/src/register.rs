//! The register file (xHCI 1.2 clauses 5 and 7): reads, and effects of writes.
//!
//! ```text
//!   0000h  capability registers            1000h  microframe index
//!   0020h  operational registers           1020h  interrupter 0
//!   0420h  ports, 16 bytes each            2000h  doorbells
//!   0800h  extended capabilities: legacy support, USB 2.0, USB 3
//! ```
//!
//! Registers of 64 bits take effect with their high half, which a driver writes last (clause 5.1).

use super::controller::Controller;
use super::doorbells;
use super::events::Events;
use super::memory::{Fault, GuestMemory, PAGE_BYTES};
use super::model::Model;
use super::output::Output;
use units::{Duration, Instant};
use wire::xhci::{
    CapabilityRegisters, CommandRingControl, Configure, Doorbell, EventRingDequeue, InterrupterManagement,
    InterrupterModeration, LegacySupport, MoreFeatures, PortPower, PortWrite, ProtocolRevision,
    SupportedProtocol, UsbCommand, UsbStatus, offset,
};

const OPERATIONAL: u32 = 0x20;
const PORTS: u32 = OPERATIONAL + offset::port_status(1);
const EXTENDED: u32 = 0x800;
/// Bytes from one extended capability to the next.
const EXTENDED_STEP: u32 = 0x10;
const RUNTIME: u32 = 0x1000;
const INTERRUPTER: u32 = RUNTIME + offset::interrupter(0);
const DOORBELLS: u32 = 0x2000;

/// Time of the firmware handover.
const HANDOVER: Duration = Duration::from_us(800);
/// Time to halt after Run/Stop is cleared; 16 ms at most (clause 5.4.1.1).
const HALT: Duration = Duration::from_us(20);
const MICROFRAME: Duration = Duration::from_us(125);

#[derive(Clone, Debug)]
pub(super) struct Registers {
    capability: [u8; CapabilityRegisters::LEN],
    protocols: [[u8; SupportedProtocol::LEN]; 2],
    pub(super) command: UsbCommand,
    /// The bits that stay until they are written.
    pub(super) status: UsbStatus,
    /// Since when it is halted, or will be.
    halted_at: Instant,
    /// When a reset is over.
    ready_at: Instant,
    notification: u32,
    /// Low halves of the command ring and dequeue registers, until the high halves are written.
    command_ring_low: u32,
    dequeue_low: u32,
    pub(super) contexts: u64,
    pub(super) configure: Configure,
    legacy: LegacySupport,
    legacy_control: u32,
    handed_over_at: Option<Instant>,
    /// It was pulled out.
    pub(super) is_gone: bool,
}

impl Registers {
    pub(super) fn new(model: &Model) -> Self {
        let protocol = |major: u8, minor, first_port, ports, next_dwords| {
            let revision = ProtocolRevision { major, minor };
            let (defined, speed_ids, slot_type) = (0, 0, 0);
            SupportedProtocol { next_dwords, revision, first_port, ports, defined, speed_ids, slot_type }
                .encode()
        };
        let step = (EXTENDED_STEP / 4) as u8;
        Self {
            capability: capability(model).encode(),
            protocols: [
                protocol(2, 0, 1, model.ports_usb2, step),
                protocol(3, 0, model.ports_usb2 + 1, model.ports_usb3, 0),
            ],
            command: UsbCommand::EMPTY,
            status: UsbStatus::EMPTY,
            halted_at: Instant::ZERO,
            ready_at: Instant::ZERO,
            notification: 0,
            command_ring_low: 0,
            dequeue_low: 0,
            contexts: 0,
            configure: Configure::default(),
            legacy: LegacySupport { next_dwords: step, firmware: true, system: false },
            legacy_control: 0,
            handed_over_at: None,
            is_gone: false,
        }
    }

    /// Halts with an error.
    pub(super) fn halt_with(&mut self, error: UsbStatus) {
        self.status = self.status.with(error);
        self.command = self.command.without(UsbCommand::RUN);
    }

    /// Clears the bits that the driver has written as ones, of those that it can clear.
    fn acknowledge(&mut self, written: UsbStatus) {
        let clearable = [
            UsbStatus::EVENT_INTERRUPT,
            UsbStatus::PORT_CHANGE,
            UsbStatus::HOST_SYSTEM_ERROR,
            UsbStatus::SAVE_RESTORE_ERROR,
        ];
        for bit in clearable.into_iter().filter(|bit| written.has(*bit)) {
            self.status = self.status.without(bit);
        }
    }

    fn hand_over(&mut self, now: Instant, written: LegacySupport) {
        if written.system && !self.legacy.system {
            self.handed_over_at = Some(now + HANDOVER);
        }
        self.legacy.system = written.system;
        self.legacy.firmware &= written.firmware;
    }

    fn status_at(&self, now: Instant) -> UsbStatus {
        let is_halted = !self.command.has(UsbCommand::RUN) && now >= self.halted_at;
        let halted = if is_halted { UsbStatus::HALTED } else { UsbStatus::EMPTY };
        let not_ready = if now < self.ready_at { UsbStatus::NOT_READY } else { UsbStatus::EMPTY };
        self.status.with(halted).with(not_ready)
    }

    fn command_at(&self, now: Instant) -> UsbCommand {
        if now < self.ready_at { self.command.with(UsbCommand::RESET) } else { self.command }
    }

    fn extended(&self, now: Instant, at: u32) -> u32 {
        let protocol = |number: usize, at: u32| word_of(&self.protocols[number], at);
        match at {
            0 => {
                let is_over = self.handed_over_at.is_some_and(|at| now >= at);
                LegacySupport { firmware: self.legacy.firmware && !is_over, ..self.legacy }.encode()
            }
            4 => self.legacy_control,
            0x10..0x20 => protocol(0, at - 0x10),
            0x20..0x30 => protocol(1, at - 0x20),
            _ => 0,
        }
    }
}

/// Returns the capability registers.
fn capability(model: &Model) -> CapabilityRegisters {
    CapabilityRegisters {
        operational_offset: OPERATIONAL as u8,
        version: model.version,
        slots: model.slots,
        interrupters: 1,
        ports: model.ports(),
        isoch_threshold: 1,
        event_segments_exponent: model.event_segments_exponent,
        scratchpads: model.scratchpads,
        scratchpad_restore: false,
        u1_exit_latency_us: model.u1_exit_latency_us,
        u2_exit_latency_us: model.u2_exit_latency_us,
        features: model.features(),
        primary_streams_exponent: model.primary_streams_exponent,
        extended_offset_dwords: (EXTENDED / 4) as u16,
        doorbell_offset: DOORBELLS,
        runtime_offset: RUNTIME,
        more_features: MoreFeatures::EMPTY,
    }
}

fn word_of(bytes: &[u8], at: u32) -> u32 {
    let chunk = bytes.get(at as usize..).and_then(<[u8]>::first_chunk);
    chunk.map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

const fn low(value: u64) -> u32 {
    value as u32
}

const fn high(value: u64) -> u32 {
    (value >> u32::BITS) as u32
}

const fn joined(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << u32::BITS
}

impl Events {
    /// Reads the register at an offset in the set of the interrupter.
    fn read_register(&self, at: u32) -> u32 {
        let (ring, interrupter) = (&self.ring, &self.interrupter);
        match at {
            offset::INTERRUPTER_MANAGEMENT => interrupter.management.encode(),
            offset::INTERRUPTER_MODERATION => interrupter.moderation.encode(),
            offset::EVENT_RING_SEGMENTS => ring.entries,
            offset::EVENT_RING_TABLE => low(ring.table),
            HIGH_TABLE => high(ring.table),
            offset::EVENT_RING_DEQUEUE => low(ring.dequeue.encode()),
            HIGH_DEQUEUE => high(ring.dequeue.encode()),
            _ => 0,
        }
    }
}

impl Controller {
    /// Reads the register at an offset in the register file; one that does not exist reads as 0.
    pub fn read_register(&mut self, now: Instant, at: u32) -> u32 {
        if self.registers.is_gone {
            return u32::MAX;
        }
        let registers = &self.registers;
        match at {
            0..OPERATIONAL => word_of(&registers.capability, at),
            OPERATIONAL..PORTS => match at - OPERATIONAL {
                offset::USB_COMMAND => registers.command_at(now).into(),
                offset::USB_STATUS => registers.status_at(now).into(),
                offset::PAGE_SIZE => 1,
                offset::DEVICE_NOTIFICATION_CONTROL => registers.notification,
                offset::COMMAND_RING_CONTROL => {
                    let running = self.commands.is_running;
                    low(CommandRingControl { running, ..CommandRingControl::default() }.encode())
                }
                offset::DEVICE_CONTEXT_ARRAY => low(registers.contexts),
                HIGH_CONTEXTS => high(registers.contexts),
                offset::CONFIGURE => registers.configure.encode(),
                _ => 0,
            },
            PORTS..EXTENDED => {
                let port = port_at(at);
                match (at - PORTS) % 0x10 {
                    0 => self.ports.status(port).map_or(0, Into::into),
                    PORT_POWER => self.ports.power(port).map_or(0, |power| power.encode()),
                    _ => 0,
                }
            }
            EXTENDED..RUNTIME => registers.extended(now, at - EXTENDED),
            RUNTIME => (now.as_ps() / MICROFRAME.as_ps() % 0x4000) as u32,
            INTERRUPTER..DOORBELLS => self.transfers.events.read_register(at - INTERRUPTER),
            _ => 0,
        }
    }

    /// Writes the register at an offset; a write to one that does not exist is counted and ignored.
    pub fn write_register(&mut self, now: Instant, memory: &mut impl GuestMemory, at: u32, value: u32) {
        if self.registers.is_gone {
            return;
        }
        match at {
            DOORBELLS.. => self.ring_doorbell(now, memory, (at - DOORBELLS) / 4, Doorbell::decode(value)),
            _ => self.write_other(now, memory, at, value),
        }
    }

    /// Writes any register but a doorbell.
    #[inline(never)]
    fn write_other(&mut self, now: Instant, memory: &mut impl GuestMemory, at: u32, value: u32) {
        match at {
            _ if now < self.registers.ready_at => self.transfers.counters.odd_writes += 1,
            OPERATIONAL..PORTS => self.write_operational(now, memory, at - OPERATIONAL, value),
            PORTS..EXTENDED if (at - PORTS).is_multiple_of(0x10) => {
                self.change_port(now, port_at(at), |port| port.write(now, PortWrite::decode(value)));
            }
            PORTS..EXTENDED if (at - PORTS) % 0x10 == PORT_POWER => {
                self.write_port_power(port_at(at), PortPower::decode(value));
            }
            EXTENDED => self.registers.hand_over(now, LegacySupport::decode(value)),
            LEGACY_CONTROL => self.registers.legacy_control = value,
            INTERRUPTER..DOORBELLS => self.write_interrupter(now, memory, at - INTERRUPTER, value),
            _ => self.transfers.counters.odd_writes += 1,
        }
    }

    /// A link is to go to sleep otherwise.
    fn write_port_power(&mut self, port: u8, power: PortPower) {
        if self.ports.set_power(port, power) {
            self.transfers.outputs.push_back(Output::PortPower(port, power));
        } else {
            self.transfers.counters.odd_writes += 1;
        }
    }

    fn write_operational(&mut self, now: Instant, memory: &mut impl GuestMemory, at: u32, value: u32) {
        let registers = &mut self.registers;
        match at {
            offset::USB_COMMAND => self.write_command(now, memory, UsbCommand::from(value)),
            offset::USB_STATUS => registers.acknowledge(UsbStatus::from(value)),
            offset::DEVICE_NOTIFICATION_CONTROL => registers.notification = value,
            offset::COMMAND_RING_CONTROL => {
                registers.command_ring_low = value;
                let control = CommandRingControl::decode(value.into());
                self.commands.control(now, &mut self.transfers, control);
            }
            HIGH_COMMANDS => {
                let control = CommandRingControl::decode(joined(registers.command_ring_low, value));
                if !self.commands.is_running {
                    self.commands.place(control);
                }
            }
            offset::DEVICE_CONTEXT_ARRAY => {
                registers.contexts = joined(value / 64 * 64, high(registers.contexts));
            }
            HIGH_CONTEXTS => registers.contexts = joined(low(registers.contexts), value),
            // Slots are enabled before it runs (clause 5.4.7).
            offset::CONFIGURE if !registers.command.has(UsbCommand::RUN) => {
                registers.configure = Configure::decode(value);
                self.transfers.counters.odd_writes +=
                    u32::from(registers.configure.slots > self.transfers.model.slots);
            }
            _ => self.transfers.counters.odd_writes += 1,
        }
    }

    fn write_command(&mut self, now: Instant, memory: &impl GuestMemory, command: UsbCommand) {
        let was_running = self.is_running();
        if command.has(UsbCommand::RESET) {
            // Only a controller that is halted may be reset (clause 5.4.1).
            if self.registers.status_at(now).has(UsbStatus::HALTED) {
                self.reset(now);
            } else {
                self.transfers.counters.odd_writes += 1;
            }
            return;
        }
        self.registers.command = command;
        if was_running && !command.has(UsbCommand::RUN) {
            self.registers.halted_at = now + HALT;
            self.stop_everything();
        }
        if !was_running && command.has(UsbCommand::RUN) {
            let found = find_scratchpads(&self.transfers.model, self.registers.contexts, memory);
            self.survive(found);
            doorbells::drop_all(&mut self.transfers, memory);
        }
    }

    fn reset(&mut self, now: Instant) {
        self.transfers.reset();
        self.stop_everything();
        self.commands.reset();
        let registers = &mut self.registers;
        (registers.command, registers.status) = (UsbCommand::EMPTY, UsbStatus::EMPTY);
        (registers.contexts, registers.configure) = (0, Configure::default());
        registers.ready_at = now + self.transfers.model.reset;
        if self.ports.restart(registers.ready_at) {
            registers.status = registers.status.with(UsbStatus::PORT_CHANGE);
        }
    }

    fn write_interrupter(&mut self, now: Instant, memory: &mut impl GuestMemory, at: u32, value: u32) {
        let Events { ring, interrupter, .. } = &mut self.transfers.events;
        match at {
            offset::INTERRUPTER_MANAGEMENT => {
                let InterrupterManagement { enabled, .. } = InterrupterManagement::decode(value);
                interrupter.management.enabled = enabled;
            }
            offset::INTERRUPTER_MODERATION => {
                interrupter.moderation = InterrupterModeration::decode(value);
            }
            offset::EVENT_RING_SEGMENTS => {
                let most = 1 << self.transfers.model.event_segments_exponent;
                self.transfers.counters.odd_writes += u32::from(value > most);
                ring.entries = value.min(most);
            }
            offset::EVENT_RING_TABLE => ring.table = joined(value / 64 * 64, high(ring.table)),
            HIGH_TABLE => {
                ring.table = joined(low(ring.table), value);
                let loaded = ring.load(memory).and_then(|()| ring.check());
                self.survive(loaded);
            }
            offset::EVENT_RING_DEQUEUE => self.registers.dequeue_low = value,
            HIGH_DEQUEUE => {
                let dequeue = EventRingDequeue::decode(joined(self.registers.dequeue_low, value));
                self.take_events(now, memory, dequeue);
            }
            _ => self.transfers.counters.odd_writes += 1,
        }
    }
}

/// The root port of a register within the port register sets.
const fn port_at(at: u32) -> u8 {
    ((at - PORTS) / 0x10 + 1) as u8
}

/// From a port's status to when its link sleeps.
const PORT_POWER: u32 = offset::port_power(1) - offset::port_status(1);
const HIGH_COMMANDS: u32 = offset::COMMAND_RING_CONTROL + 4;
const HIGH_CONTEXTS: u32 = offset::DEVICE_CONTEXT_ARRAY + 4;
const HIGH_TABLE: u32 = offset::EVENT_RING_TABLE + 4;
const HIGH_DEQUEUE: u32 = offset::EVENT_RING_DEQUEUE + 4;
const LEGACY_CONTROL: u32 = EXTENDED + 4;

/// A controller that runs uses pages of the driver's memory, to which entry 0 of the array of
/// device contexts leads (clauses 4.20 and 6.6). It asks for them when it begins to run; the
/// driver may have named none only if it wants none.
fn find_scratchpads(model: &Model, contexts: u64, memory: &impl GuestMemory) -> Result<(), Fault> {
    if model.scratchpads == 0 {
        return Ok(());
    }
    let word = |at: u64| memory.read::<8>(at).map(u64::from_le_bytes);
    let array = word(contexts)?;
    for number in 0..u64::from(model.scratchpads) {
        let page = word(array + 8 * number)?;
        if !page.is_multiple_of(PAGE_BYTES) {
            return Err(Fault { address: page });
        }
        memory.read::<8>(page)?;
    }
    Ok(())
}
