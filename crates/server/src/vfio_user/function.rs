//! The PCI function: configuration space, BAR 0, interrupts, memory of the guest, and the controller with its drives.
//!
//! ```text
//!   BAR 0   0000h  registers of the controller    3000h  MSI-X table, kept by the client    4000h  pending bits
//! ```
//!
//! Time counts from the last reset of the function.

use super::config_space::{BAR_BYTES, CONFIG_BYTES, ConfigSpace};
use super::interrupts::Interrupts;
use super::memory::MappedMemory;
use super::registers::{AREA, SharedRegisters};
use crate::net::{ControlError, DriveSet};
use device::ActiveTransport;
use drive::host_controller::{HostController, NotAttached};
use drive::{Counters, Drive};
use std::io;
use std::time::{Duration, Instant};
use wire::vfio_user::region_index;
use xhci_controller::{Model, PlannedFault};

/// Where the registers of the controller end in BAR 0.
const REGISTERS_END: u64 = 0x3000;
/// Picoseconds of a nanosecond.
const PS_PER_NS: u128 = 1000;

/// A USB controller on PCI Express.
#[derive(Debug)]
pub struct Function {
    config: ConfigSpace,
    pub(super) memory: MappedMemory,
    pub(super) interrupts: Interrupts,
    host: HostController,
    /// Counters of drives that were detached.
    detached: Counters,
    reset_at: Instant,
    /// When there was last something to do, with registers in memory.
    active_at: Instant,
}

/// How the owner of a function looks for stores to registers in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Polling {
    /// There are none: every access is a message.
    Off,
    /// All the time: there was something to do lately.
    Continuous,
    /// Every so often.
    Every(Duration),
}

/// How long after the last completion or doorbell registers in memory are looked at all the time: longer than a guest needs from a
/// completion to its next command, software emulation included.
const SPIN: Duration = Duration::from_millis(2);
/// How often they are looked at afterwards. A look costs a few microseconds.
const NAP: Duration = Duration::from_millis(2);

impl Function {
    /// A function with drives at the root ports of its controller.
    ///
    /// # Errors
    /// More drives than ports.
    pub fn new(drives: Vec<Drive>) -> Result<Self, NotAttached> {
        let mut host = HostController::new(Model::SERVED);
        for drive in drives {
            host.attach(units::Instant::ZERO, drive).map_err(|(reason, _)| reason)?;
        }
        Ok(Self {
            detached: Counters::default(),
            config: ConfigSpace::new(),
            memory: MappedMemory::default(),
            interrupts: Interrupts::default(),
            host,
            reset_at: Instant::now(),
            active_at: Instant::now(),
        })
    }

    /// Offers doorbells and the interrupter as memory that the guest maps and stores to.
    ///
    /// # Errors
    /// What the system said: no descriptors or no memory.
    pub fn with_mapped_doorbells(mut self) -> io::Result<Self> {
        self.memory.registers = Some(SharedRegisters::new()?);
        self.publish();
        Ok(self)
    }

    /// Plans a fault of the controller, which counts from now on. Returns whether there is room for it.
    pub fn plan_fault(&mut self, fault: PlannedFault) -> bool {
        self.host.controller_mut().plan_fault(fault)
    }

    /// Returns the counters of drives that were detached.
    pub(super) const fn detached(&self) -> Counters {
        self.detached
    }

    /// The controller and its drives.
    pub const fn host(&self) -> &HostController {
        &self.host
    }

    /// The same, to change drives.
    pub const fn host_mut(&mut self) -> &mut HostController {
        &mut self.host
    }

    /// Gives the drives back.
    pub(super) fn into_drives(mut self) -> Vec<Drive> {
        let ports: Vec<u8> = self.host.drives().map(|(port, _)| port).collect();
        let now = self.now();
        ports.into_iter().filter_map(|port| self.host.detach(now, port)).collect()
    }

    /// The present time of the controller.
    pub fn now(&self) -> units::Instant {
        let ps = self.reset_at.elapsed().as_nanos() * PS_PER_NS;
        units::Instant::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// Bytes of a region; 0 for one that does not exist.
    pub(super) const fn region_bytes(region: u32) -> u64 {
        match region {
            region_index::BAR0 => BAR_BYTES,
            region_index::CONFIG => CONFIG_BYTES as u64,
            _ => 0,
        }
    }

    /// Reads a region. Registers are read as words; what lies between them is zeros.
    pub(super) fn read(&mut self, region: u32, offset: u64, into: &mut [u8]) {
        into.fill(0);
        match region {
            region_index::CONFIG => self.config.read(offset, into),
            region_index::BAR0 => {
                let now = self.now();
                each_word(offset, into.len(), |word, at, within| {
                    if u64::from(word) < REGISTERS_END {
                        let value = self.read_word(now, word).to_le_bytes();
                        into[at..at + within.len()].copy_from_slice(&value[within]);
                    }
                });
            }
            _ => {}
        }
    }

    /// Writes a region. [`Self::run`] does what follows from it.
    pub(super) fn write(&mut self, region: u32, offset: u64, bytes: &[u8]) {
        match region {
            region_index::CONFIG if self.config.write(offset, bytes) => self.reset(),
            region_index::BAR0 => {
                let now = self.now();
                // What the driver has stored before counts before.
                self.look(now);
                each_word(offset, bytes.len(), |word, at, within| {
                    if u64::from(word) >= REGISTERS_END {
                        return;
                    }
                    let mut value = [0; 4];
                    if within.len() < value.len() {
                        // A part of a register changes that part.
                        value = self.read_word(now, word).to_le_bytes();
                    }
                    let length = within.len();
                    value[within].copy_from_slice(&bytes[at..at + length]);
                    self.write_word(now, word, u32::from_le_bytes(value));
                });
                self.publish();
            }
            _ => {}
        }
    }

    fn read_word(&mut self, now: units::Instant, at: u32) -> u32 {
        match &self.memory.registers {
            Some(registers) if AREA.contains(&at.into()) => registers.read(at),
            _ => self.host.read_register(now, at),
        }
    }

    fn write_word(&mut self, now: units::Instant, at: u32, value: u32) {
        match &self.memory.registers {
            Some(registers) if AREA.contains(&at.into()) => registers.write(at, value),
            _ => self.host.write_register(now, &mut self.memory, at, value),
        }
    }

    /// Looks at registers in memory. Returns whether the driver has stored anything.
    fn look(&mut self, now: units::Instant) -> bool {
        let is_running = self.host.controller().is_running();
        let Some(registers) = &mut self.memory.registers else { return false };
        // The dequeue pointer counts before the doorbells: it may be what lets a ring go on.
        let changes = registers.changes(!is_running);
        let mut has_found = !changes.is_empty();
        for (at, value) in changes {
            self.host.write_register(now, &mut self.memory, at, value);
        }
        has_found |= self.host.controller_mut().poll_doorbells(now, &mut self.memory);
        has_found
    }

    /// Stores what the controller has changed in registers that lie in memory.
    fn publish(&mut self) {
        let now = self.now();
        if let Some(registers) = &mut self.memory.registers {
            registers.publish(|at| self.host.read_register(now, at));
        }
    }

    /// A reset of the function: the controller is as after power-on, drives stay at their ports. Memory stays mapped.
    pub(super) fn reset(&mut self) {
        self.config = ConfigSpace::new();
        self.reset_at = Instant::now();
        self.host.reset(units::Instant::ZERO);
        if let Some(registers) = &self.memory.registers {
            registers.clear_doorbells();
        }
        self.publish();
    }

    /// A client has gone: a reset, without its memory and eventfds.
    pub(super) fn disconnect(&mut self) {
        self.reset();
        self.memory.clear();
        self.interrupts = Interrupts::default();
        if self.memory.registers.is_some() {
            // A client that has gone may still store to its file. Without descriptors for a new one registers are messages.
            self.memory.registers = SharedRegisters::new().ok();
            self.publish();
        }
    }

    /// Does all that is due, and signals the interrupter.
    pub fn run(&mut self) {
        let now = self.now();
        let has_found = self.host.controller().is_running() && self.look(now);
        self.host.run(now, &mut self.memory);
        let has_interrupt = self.host.take_interrupt();
        if has_interrupt {
            self.interrupts.signal();
        }
        if has_found || has_interrupt {
            self.active_at = Instant::now();
        }
        if let Some(registers) = &self.memory.registers {
            registers.publish_time(self.host.read_register(now, AREA.start as u32));
        }
    }

    /// How to look for stores to registers in memory.
    pub(super) fn polling(&self) -> Polling {
        match self.memory.registers {
            Some(_) if self.host.controller().is_running() => match self.active_at.elapsed() < SPIN {
                true => Polling::Continuous,
                false => Polling::Every(NAP),
            },
            _ => Polling::Off,
        }
    }

    /// How long until [`Self::run`] has something to do, without anything from outside.
    pub(super) fn timeout(&self) -> Option<Duration> {
        let at = self.host.poll_timeout()?;
        let ns = at.as_ps().saturating_sub(self.now().as_ps()).div_ceil(PS_PER_NS as u64);
        Some(Duration::from_nanos(ns))
    }
}

impl DriveSet for Function {
    fn ports(&self) -> Vec<u8> {
        self.host.drives().map(|(port, _)| port).collect()
    }

    fn drive(&self, port: u8) -> Option<&Drive> {
        self.host.drives().find(|(other, _)| *other == port).map(|(_, drive)| drive)
    }

    fn drive_mut(&mut self, port: u8) -> Option<&mut Drive> {
        self.host.drive_mut(port)
    }

    fn transport(&self, port: u8) -> ActiveTransport {
        self.host.transport(port)
    }

    fn attach(&mut self, drive: Drive) -> Result<u8, ControlError> {
        let now = self.now();
        self.host.attach(now, drive).map_err(|(NotAttached::NoPort, _)| ControlError::NoPort)
    }

    fn detach(&mut self, port: u8) -> Result<Drive, ControlError> {
        let now = self.now();
        let drive = self.host.detach(now, port).ok_or(ControlError::NoDrive(port))?;
        self.detached = self.detached.plus(drive.counters());
        Ok(drive)
    }

    fn plan_fault(&mut self, fault: PlannedFault) -> Result<(), ControlError> {
        self.plan_fault(fault).then_some(()).ok_or(ControlError::TooManyFaults)
    }
}

/// Calls `act` for each word that an access touches: its offset, where its bytes are in the access, and which of its bytes
/// those are.
fn each_word(offset: u64, length: usize, mut act: impl FnMut(u32, usize, std::ops::Range<usize>)) {
    let mut at = 0;
    while at < length {
        let place = offset.saturating_add(at as u64);
        let first = (place % 4) as usize;
        let count = (4 - first).min(length - at);
        let Ok(word) = u32::try_from(place - first as u64) else { return };
        act(word, at, first..first + count);
        at += count;
    }
}
