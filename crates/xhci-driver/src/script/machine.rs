//! A controller as far as a driver's tests need one: it executes commands on contexts and posts the
//! events it is given. Transfers it does not execute: a test says what became of them. What it
//! answers otherwise is scripted.

extern crate std;

use super::Memory;
use crate::hardware::{DmaLayout, DmaMemory, Registers};
use std::collections::{BTreeMap, VecDeque};
use std::vec::Vec;
use wire::xhci::{
    CommandTrb, CompletionCode, ContextSize, EndpointContext, EndpointId, EndpointState, EventTrb,
    InputControlContext, SlotContext, StreamContext, TransferTrb, TrbType, cycle_of,
};

/// Where its operational registers are.
const OP: u32 = 0x20;
const PORTS: u32 = OP + 0x400;
const DOORBELLS: u32 = 0x2000;
const RUNTIME: u32 = 0x1020;

pub(crate) struct Machine {
    pub(crate) memory: Memory,
    pub(crate) registers: BTreeMap<u32, u32>,
    /// Commands it was given, oldest first.
    pub(crate) commands: Vec<CommandTrb>,
    /// Doorbells of slots: slot, value.
    pub(crate) doorbells: Vec<(u8, u32)>,
    /// Codes to answer instead of carrying a command out, by its type.
    pub(crate) refusals: VecDeque<(TrbType, u8)>,
    /// Commands are left lying.
    pub(crate) is_mute: bool,
    /// Doorbells do not make endpoints run.
    pub(crate) is_numb: bool,
    command: (u64, bool),
    event: (u64, bool),
    next_slot: u8,
}

impl Default for Machine {
    fn default() -> Self {
        let mut registers = BTreeMap::new();
        let fixed = [
            (0x00, 0x0100_0020),
            (0x04, 0x0400_0110),
            (0x08, 0x1000_0010),
            (0x10, 0x0200_7005),
            (0x14, DOORBELLS),
            (0x18, 0x1000),
            (OP + 0x04, 0x0000_0001),
            (OP + 0x08, 0x0000_0001),
            // USB 2.0 at ports 1 and 2, USB 3.0 at ports 3 and 4.
            (0x800, 0x0200_0402),
            (0x804, 0x2042_5355),
            (0x808, 0x0000_0201),
            (0x810, 0x0300_0002),
            (0x814, 0x2042_5355),
            (0x818, 0x0000_0203),
        ];
        registers.extend(fixed);
        registers.extend((0..4).map(|port| (PORTS + 16 * port, 0x0000_02a0)));
        Self {
            memory: Memory::default(),
            registers,
            commands: Vec::new(),
            doorbells: Vec::new(),
            refusals: VecDeque::new(),
            is_mute: false,
            is_numb: false,
            command: (0, true),
            event: (0, true),
            next_slot: 1,
        }
    }
}

impl Machine {
    fn wide(&self, at: u32) -> u64 {
        let half = |at| u64::from(self.registers.get(&at).copied().unwrap_or(0));
        half(at) | half(at + 4) << 32
    }

    fn u64_at(&mut self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read_bytes(at, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Somebody is at a port, and an event says so.
    pub(crate) fn plug(&mut self, port: u8, is_there: bool) {
        let status = if is_there { 0x0002_1203 } else { 0x0002_02a0 };
        self.registers.insert(PORTS + 16 * u32::from(port - 1), status);
        self.post(EventTrb::PortStatusChange { port, code: CompletionCode::Success });
    }

    /// Puts an event on the ring.
    pub(crate) fn post(&mut self, event: EventTrb) {
        let cycle = self.event.1;
        self.post_raw(event.encode(cycle));
    }

    /// Puts sixteen bytes on the event ring.
    pub(crate) fn post_raw(&mut self, trb: [u8; 16]) {
        let table = self.wide(RUNTIME + 0x10);
        let base = self.u64_at(table);
        self.memory.write_bytes(base + 16 * self.event.0, &trb);
        // One segment of 256: what register 0x08 says.
        let segments = u64::from(self.registers[&(RUNTIME + 8)]);
        assert_eq!(segments, 2);
        self.event.0 += 1;
        if self.event.0 == 256 {
            // The second segment is copied through: the tests never get that far.
            panic!("a test posts 255 events at most");
        }
    }

    pub(crate) fn cycle(&self) -> bool {
        self.event.1
    }

    /// Returns the address of the device context of a slot.
    pub(crate) fn output(&mut self, slot: u8) -> u64 {
        let contexts = self.wide(OP + 0x30);
        self.u64_at(contexts + 8 * u64::from(slot))
    }

    pub(crate) fn endpoint(&mut self, slot: u8, id: EndpointId) -> EndpointContext {
        let at = self.output(slot) + ContextSize::Bytes64.in_device(Some(id));
        let mut bytes = [0; 32];
        self.memory.read_bytes(at, &mut bytes);
        EndpointContext::decode(&bytes).unwrap()
    }

    pub(crate) fn slot(&mut self, slot: u8) -> SlotContext {
        let mut bytes = [0; 32];
        let at = self.output(slot);
        self.memory.read_bytes(at, &mut bytes);
        SlotContext::decode(&bytes).unwrap()
    }

    pub(crate) fn set_endpoint(&mut self, slot: u8, id: EndpointId, change: impl Fn(&mut EndpointContext)) {
        let mut context = self.endpoint(slot, id);
        change(&mut context);
        let at = self.output(slot) + ContextSize::Bytes64.in_device(Some(id));
        self.memory.write_bytes(at, &context.encode());
    }

    pub(crate) fn set_state(&mut self, slot: u8, id: EndpointId, state: EndpointState) {
        self.set_endpoint(slot, id, |context| context.state = state);
    }

    /// Where the ring of an endpoint or of a stream goes on.
    pub(crate) fn dequeue(&mut self, slot: u8, id: EndpointId, stream: u16) -> (u64, bool) {
        let context = self.endpoint(slot, id);
        if stream == 0 {
            return (context.dequeue, context.cycle);
        }
        let mut bytes = [0; 16];
        self.memory.read_bytes(context.dequeue + 16 * u64::from(stream), &mut bytes);
        let stream = StreamContext::decode(&bytes).unwrap();
        (stream.dequeue, stream.cycle)
    }

    pub(crate) fn set_dequeue(&mut self, slot: u8, id: EndpointId, stream: u16, (at, cycle): (u64, bool)) {
        let context = self.endpoint(slot, id);
        if stream == 0 {
            return self.set_endpoint(slot, id, |context| (context.dequeue, context.cycle) = (at, cycle));
        }
        let place = context.dequeue + 16 * u64::from(stream);
        let mut bytes = [0; 16];
        self.memory.read_bytes(place, &mut bytes);
        let stream = StreamContext { dequeue: at, cycle, ..StreamContext::decode(&bytes).unwrap() };
        self.memory.write_bytes(place, &stream.encode());
    }

    /// The TRBs that wait on a ring, with their addresses; links are followed.
    pub(crate) fn trbs(&mut self, slot: u8, id: EndpointId, stream: u16) -> Vec<(u64, TransferTrb)> {
        let (mut at, mut cycle) = self.dequeue(slot, id, stream);
        let mut found = Vec::new();
        for _ in 0..1000 {
            let mut trb = [0; 16];
            self.memory.read_bytes(at, &mut trb);
            if cycle_of(&trb) != cycle {
                break;
            }
            match TransferTrb::decode(&trb).unwrap().0 {
                TransferTrb::Link { segment, toggle_cycle, .. } => {
                    (at, cycle) = (segment, cycle ^ toggle_cycle)
                }
                other => {
                    found.push((at, other));
                    at += 16;
                }
            }
        }
        found
    }

    /// Carries out the commands that lie there.
    pub(crate) fn execute(&mut self) {
        while let Some((at, trb)) = self.take_command() {
            let (command, _) = CommandTrb::decode(&trb).unwrap();
            self.commands.push(command);
            let refusal = self.refusals.iter().position(|(kind, _)| *kind == command.trb_type());
            let (code, slot) = match refusal.and_then(|at| self.refusals.remove(at)) {
                Some((_, code)) => (code.into(), command.slot()),
                None => self.carry_out(command),
            };
            self.post(EventTrb::CommandCompletion { pointer: at, parameter: 0, code, slot });
        }
    }

    /// The next command that lies there, and where, for who answers it in the place of the machine.
    pub(crate) fn take_command(&mut self) -> Option<(u64, [u8; 16])> {
        loop {
            let (at, cycle) = self.command;
            let mut trb = [0; 16];
            self.memory.read_bytes(at, &mut trb);
            if cycle_of(&trb) != cycle {
                return None;
            }
            match TransferTrb::decode(&trb) {
                Ok((TransferTrb::Link { segment, toggle_cycle, .. }, _)) => {
                    self.command = (segment, cycle ^ toggle_cycle);
                }
                _ => {
                    self.command.0 += 16;
                    return Some((at, trb));
                }
            }
        }
    }

    fn carry_out(&mut self, command: CommandTrb) -> (CompletionCode, u8) {
        let slot = command.slot();
        let mut step = |from: &[EndpointState], endpoint, to| {
            let is_right = from.contains(&self.endpoint(slot, endpoint).state);
            if is_right {
                self.set_state(slot, endpoint, to);
            }
            if is_right { CompletionCode::Success } else { CompletionCode::ContextStateError }
        };
        let code = match command {
            CommandTrb::EnableSlot { .. } => {
                self.next_slot += 1;
                return (CompletionCode::Success, self.next_slot - 1);
            }
            CommandTrb::AddressDevice { input, .. } | CommandTrb::ConfigureEndpoint { input, .. } => {
                self.configure(slot, input);
                CompletionCode::Success
            }
            CommandTrb::StopEndpoint { endpoint, .. } => {
                step(&[EndpointState::Running], endpoint, EndpointState::Stopped)
            }
            CommandTrb::ResetEndpoint { endpoint, .. } => {
                step(&[EndpointState::Halted], endpoint, EndpointState::Stopped)
            }
            CommandTrb::SetTrDequeuePointer { endpoint, dequeue, cycle, stream, .. } => {
                let from = [EndpointState::Stopped, EndpointState::Error];
                let code = step(&from, endpoint, EndpointState::Stopped);
                if code == CompletionCode::Success {
                    self.set_dequeue(slot, endpoint, stream.map_or(0, |stream| stream.id), (dequeue, cycle));
                }
                code
            }
            _ => CompletionCode::Success,
        };
        (code, slot)
    }

    fn configure(&mut self, slot: u8, input: u64) {
        let mut bytes = [0; 32];
        self.memory.read_bytes(input, &mut bytes);
        let control = InputControlContext::decode(&bytes).unwrap();
        let output = self.output(slot);
        self.memory.read_bytes(input + 64, &mut bytes);
        self.memory.write_bytes(output, &bytes);
        for id in (1..=31).filter_map(EndpointId::new) {
            if control.drops(id) {
                self.set_state(slot, id, EndpointState::Disabled);
            }
            if control.adds(id) {
                self.memory.read_bytes(input + ContextSize::Bytes64.in_input(Some(id)), &mut bytes);
                self.memory.write_bytes(output + ContextSize::Bytes64.in_device(Some(id)), &bytes);
                self.set_state(slot, id, EndpointState::Running);
            }
        }
    }

    fn write_port(&mut self, at: u32, value: u32) {
        let now = self.registers.get(&at).copied().unwrap_or(0);
        let mut status = now & !(value & 0x00fe_0000);
        if value & 0x8000_0010 != 0 && now & 1 == 1 {
            status |= 0x0020_0002;
            let port = ((at - PORTS) / 16 + 1) as u8;
            self.registers.insert(at, status);
            self.post(EventTrb::PortStatusChange { port, code: CompletionCode::Success });
        }
        self.registers.insert(at, status);
    }
}

impl Registers for Machine {
    fn read_register(&mut self, offset: u32) -> u32 {
        self.registers.get(&offset).copied().unwrap_or(0)
    }

    fn write_register(&mut self, offset: u32, value: u32) {
        match offset {
            OP => {
                let running = value & 1 == 1;
                self.registers.insert(OP, value & !2);
                self.registers.insert(OP + 4, u32::from(!running));
                if value & 2 != 0 {
                    (self.event, self.next_slot) = ((0, true), 1);
                }
            }
            0x24 => {}
            0x3c => {
                self.registers.insert(offset, value);
                self.command =
                    (self.wide(OP + 0x18) >> 6 << 6, value & 1 == 1 || self.registers[&0x38] & 1 == 1);
            }
            DOORBELLS if !self.is_mute => self.execute(),
            DOORBELLS => {}
            _ if offset > DOORBELLS => {
                let slot = ((offset - DOORBELLS) / 4) as u8;
                self.doorbells.push((slot, value));
                if let Some(id) = EndpointId::new(value as u8).filter(|_| !self.is_numb) {
                    self.set_state(slot, id, EndpointState::Running);
                }
            }
            _ if (PORTS..PORTS + 64).contains(&offset) && offset.is_multiple_of(16) => {
                self.write_port(offset, value)
            }
            _ => {
                self.registers.insert(offset, value);
            }
        }
    }
}

impl DmaMemory for Machine {
    fn allocate(&mut self, layout: DmaLayout) -> Option<u64> {
        self.memory.allocate(layout)
    }

    fn release(&mut self, address: u64, layout: DmaLayout) {
        self.memory.release(address, layout);
    }

    fn read_bytes(&mut self, address: u64, into: &mut [u8]) {
        self.memory.read_bytes(address, into);
    }

    fn write_bytes(&mut self, address: u64, bytes: &[u8]) {
        self.memory.write_bytes(address, bytes);
    }
}
