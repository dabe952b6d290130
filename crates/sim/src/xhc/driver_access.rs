//! A driver's view of a controller during one call: its registers and the shared memory.

use super::memory::Memory;
use units::Instant;
use wire::xhci::TRB_BYTES;
use xhci_controller::Controller;
use xhci_driver::{DmaLayout, DmaMemory, Registers};

/// A controller and its memory, for one call of a driver.
#[derive(Debug)]
pub struct DriverAccess<'a> {
    controller: &'a mut Controller,
    memory: &'a mut Memory,
    now: Instant,
}

impl<'a> DriverAccess<'a> {
    /// Creates the driver's view at `now`.
    pub fn new(now: Instant, controller: &'a mut Controller, memory: &'a mut Memory) -> Self {
        controller.show_events(now, memory);
        Self { controller, memory, now }
    }
}

impl Registers for DriverAccess<'_> {
    fn read_register(&mut self, offset: u32) -> u32 {
        self.controller.read_register(self.now, offset)
    }

    fn write_register(&mut self, offset: u32, value: u32) {
        self.controller.write_register(self.now, self.memory, offset, value);
    }
}

impl DmaMemory for DriverAccess<'_> {
    fn allocate(&mut self, layout: DmaLayout) -> Option<u64> {
        self.memory.allocate(layout)
    }

    fn release(&mut self, address: u64, layout: DmaLayout) {
        self.memory.release(address, layout);
    }

    fn read_bytes(&mut self, address: u64, into: &mut [u8]) {
        DmaMemory::read_bytes(self.memory, address, into);
    }

    fn write_bytes(&mut self, address: u64, bytes: &[u8]) {
        self.memory.write_bytes(address, bytes);
    }

    fn write_trb(&mut self, address: u64, trb: &[u8; TRB_BYTES]) {
        DmaMemory::write_trb(self.memory, address, trb);
    }

    fn read_trb(&mut self, address: u64) -> [u8; TRB_BYTES] {
        DmaMemory::read_trb(self.memory, address)
    }
}
