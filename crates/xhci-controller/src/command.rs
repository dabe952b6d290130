//! The command ring: commands execute one by one, in order, and complete with events (xHCI 1.2
//! clauses 4.6 and 4.9.3).
//!
//! Most commands take the model's command time. Stop Endpoint waits for the link to become quiet,
//! Address Device for the device's answer. The states in which a command is allowed, and its
//! effects, are in [`super::slot_command`].
//!
//! Invariants: a command completes once; an aborted command completes as aborted.

use super::controller_fault::Halt;
use super::doorbells;
use super::memory::GuestMemory;
use super::model::Model;
use super::output::DevicePath;
use super::ring::Cursor;
use super::slot::EndpointName;
use super::slot_command::{Completion, Executed, SlotCommands, Waits};
use super::transfer::Transfers;
use alloc::collections::VecDeque;
use units::Instant;
use wire::usb::EndpointAddress;
use wire::xhci::{
    CommandRingControl, CommandTrb, CompletionCode as Code, EndpointId, EndpointState, EventTrb, TRB_BYTES,
    TransferTrb, TrbType, cycle_of, trb_type_of,
};

/// Link TRBs in a row that count as a loop.
const LINKS_MAX: u32 = 16;

#[derive(Clone, Debug, Default)]
pub(super) struct CommandRing {
    at: Cursor,
    /// The doorbell was rung since the ring was placed or stopped (CRR).
    pub(super) is_running: bool,
    /// When the next command is looked for.
    step_at: Option<Instant>,
    current: Option<Current>,
    /// It is to stop after the current command (CS).
    stops: bool,
    /// Commands that fail with a code without being executed, for tests.
    pub(super) refused: VecDeque<(TrbType, Code)>,
}

/// A command that waits for the link or the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Current {
    pointer: u64,
    slot: u8,
    waits: Waits,
}

impl CommandRing {
    pub(super) const fn due(&self) -> Option<Instant> {
        self.step_at
    }

    /// Sets the ring pointer.
    pub(super) const fn place(&mut self, control: CommandRingControl) {
        self.at = Cursor { at: control.ring, cycle: control.cycle };
    }

    /// Stops; the current command never completes.
    pub(super) fn halt(&mut self) {
        (self.step_at, self.current, self.stops, self.is_running) = (None, None, false, false);
    }

    /// Forgets ring and commands on a reset of the controller.
    pub(super) fn reset(&mut self) {
        *self = Self { refused: core::mem::take(&mut self.refused), ..Self::default() };
    }

    /// Returns whether no command is being executed, and the driver has queued none.
    pub(super) fn are_done(&self, memory: &impl GuestMemory) -> bool {
        let Cursor { at, cycle } = self.at;
        let is_idle = self.current.is_none() && self.step_at.is_none();
        is_idle && memory.read_trb(at).is_ok_and(|trb| cycle_of(&trb) != cycle)
    }

    /// Returns whether a command waits for an endpoint to become quiet.
    pub(super) fn is_stopping(&self, name: EndpointName) -> bool {
        let is_it = |current: Current| current.slot == name.slot && current.waits == Waits::Quiet(name.id);
        self.current.is_some_and(is_it)
    }

    /// Returns the address of the next command.
    #[cfg(test)]
    pub(super) const fn next(&self) -> u64 {
        self.at.at
    }

    /// Handles the doorbell.
    pub(super) fn ring(&mut self, now: Instant, model: &Model) {
        self.is_running = true;
        if self.current.is_none() && self.step_at.is_none() {
            self.step_at = Some(now + model.attachment.register_write + model.attachment.memory_read);
        }
    }

    /// Handles a write to the command ring control register: stop or abort.
    pub(super) fn control(&mut self, now: Instant, transfers: &mut Transfers, control: CommandRingControl) {
        if !self.is_running || transfers.model.misbehaviour.ignores_abort {
            return;
        }
        match self.current {
            Some(Current { pointer, slot, .. }) if control.abort => {
                self.current = None;
                report(now, transfers, pointer, Completion { code: Code::CommandAborted, slot });
                self.stop(now, transfers);
            }
            None if control.abort || control.stop => self.stop(now, transfers),
            _ => self.stops |= control.stop,
        }
    }

    fn stop(&mut self, now: Instant, transfers: &mut Transfers) {
        let pointer = self.at.at;
        (self.is_running, self.step_at, self.stops) = (false, None, false);
        report(now, transfers, pointer, Completion { code: Code::CommandRingStopped, slot: 0 });
    }

    /// Completes a command and schedules the next fetch.
    fn finish(&mut self, at: Instant, transfers: &mut Transfers, pointer: u64, completion: Completion) {
        self.current = None;
        report(at, transfers, pointer, completion);
        if self.stops {
            self.stop(at, transfers);
        } else {
            self.step_at = Some(at);
        }
    }

    /// Fetches and executes the next command.
    pub(super) fn step(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        devices: &mut SlotCommands<'_>,
    ) -> Result<(), Halt> {
        self.step_at = None;
        if devices.transfers.events.ring.is_full() {
            // Continues with the next doorbell or when there is room.
            return Ok(());
        }
        for _ in 0..LINKS_MAX {
            let Cursor { at, cycle } = self.at;
            let trb = memory.read_trb(at)?;
            if cycle_of(&trb) != cycle {
                return Ok(());
            }
            // What was written before the command was written counts before it.
            doorbells::take_of_slots(self, devices.transfers, now, memory)?;
            // Later TRBs are read during its execution.
            let Transfers { dma, model, .. } = &mut *devices.transfers;
            dma.read_trbs(now, model, 1);
            if let Ok((TransferTrb::Link { segment, toggle_cycle, .. }, _)) = TransferTrb::decode(&trb) {
                self.at = Cursor { at: segment, cycle: cycle ^ toggle_cycle };
                continue;
            }
            self.at.at += TRB_BYTES as u64;
            return self.execute(now, memory, devices, at, &trb);
        }
        Ok(())
    }

    /// Executes the command of a TRB.
    fn execute(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        devices: &mut SlotCommands<'_>,
        pointer: u64,
        trb: &[u8; TRB_BYTES],
    ) -> Result<(), Halt> {
        let kind = trb_type_of(trb);
        let refused = self.refused.iter().position(|(refused, _)| *refused == kind);
        let refused = refused.and_then(|at| self.refused.remove(at));
        let command = CommandTrb::decode(trb).ok().map(|(command, _)| command);
        if let Some(command) = command {
            devices.transfers.events.notes.command(now, pointer, command);
        }
        let slot = command.map_or(0, |command| command.slot());
        let result = match (command, refused) {
            (Some(_), Some((_, code))) => Completion { code, slot }.into(),
            (Some(command), None) => devices.execute(now, memory, command)?,
            (None, _) => Completion { code: Code::TrbError, slot: 0 }.into(),
        };
        let Model { command: span, misbehaviour, .. } = devices.transfers.model;
        match result {
            Executed::Done(Completion { slot, .. }) if misbehaviour.unanswered == Some(kind) => {
                self.wait(pointer, slot, Waits::Never);
            }
            Executed::Done(completion) => self.finish(now + span, devices.transfers, pointer, completion),
            Executed::Waits(waits) => self.wait(pointer, slot, waits),
        }
        Ok(())
    }

    const fn wait(&mut self, pointer: u64, slot: u8, waits: Waits) {
        self.current = Some(Current { pointer, slot, waits });
    }

    /// Handles the answer to SET_ADDRESS.
    pub(super) fn handle_address(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        devices: &mut SlotCommands<'_>,
        number: u8,
        code: Code,
    ) -> Result<(), Halt> {
        let Some(Current { pointer, slot, waits: Waits::Address(input) }) = self.current else {
            return Ok(());
        };
        if slot != number {
            return Ok(());
        }
        if code == Code::Success {
            devices.take_address(memory, slot, input, Some(slot))?;
        }
        let at = now + devices.transfers.model.command;
        self.finish(at, devices.transfers, pointer, Completion { code, slot });
        Ok(())
    }

    /// Completes Stop Endpoint when the link is quiet.
    pub(super) fn handle_quiet(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        transfers: &mut Transfers,
        path: DevicePath,
        address: EndpointAddress,
    ) -> Result<(), Halt> {
        let id = EndpointId::of(address);
        let is_of = |slot: u8| transfers.slots.get(slot).is_some_and(|slot| slot.path == path);
        let waiting = self.current.filter(|current| current.waits == Waits::Quiet(id) && is_of(current.slot));
        if let Some(Current { pointer, slot, .. }) = waiting {
            let name = EndpointName { slot, id };
            let state = transfers.slots.endpoint(name).map(|endpoint| endpoint.state());
            // It halted before it came to rest.
            let code = match state {
                Some(EndpointState::Running) => {
                    transfers.stopped(now, memory, name)?;
                    Code::Success
                }
                _ => Code::ContextStateError,
            };
            self.finish(now + transfers.model.command, transfers, pointer, Completion { code, slot });
        } else if let Some(name) = transfers.slots.find(path, id, EndpointState::Stopped) {
            transfers.stopped(now, memory, name)?;
        }
        Ok(())
    }

    /// Handles the loss of the device at a port: a pending SET_ADDRESS fails.
    pub(super) fn lose_device(&mut self, now: Instant, transfers: &mut Transfers, port: u8) {
        for slot in transfers.slots.at_port(port) {
            let waits = self.current.filter(|current| current.slot == slot);
            if let Some(Current { pointer, waits: Waits::Address(_), .. }) = waits {
                self.finish(now, transfers, pointer, Completion { code: Code::UsbTransactionError, slot });
            }
        }
    }
}

/// Posts the completion of the command at `pointer`.
fn report(at: Instant, transfers: &mut Transfers, pointer: u64, Completion { code, slot }: Completion) {
    transfers.post_later(at, EventTrb::CommandCompletion { pointer, parameter: 0, code, slot });
}
