//! Registers of the controller in memory that the guest maps: stores of its driver reach us without a message.
//!
//! ```text
//!   BAR 0, 1000h  microframe index    1020h  interrupter 0        2000h  doorbells
//! ```
//!
//! A store has no effect until the function looks ([`SharedRegisters::changes`], [`MappedMemory::take_doorbell`](super::memory)).
//! The other way, what the controller changes in its registers is stored here ([`SharedRegisters::publish`]). Event Handler Busy
//! (xHCI 1.2 clause 5.5.2.3.3) is never set here: a driver clears it by writing 1, so a 1 is the driver's, and is taken.
//!
//! Always true: the file cannot become shorter (it is sealed), so that no access of ours raises a signal.

use super::mapping::Mapping;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use wire::xhci::offset;

/// The part of BAR 0 that a client maps.
pub(super) const AREA: Range<u64> = 0x1000..0x3000;

/// Where the interrupter is in it, and the doorbells.
const INTERRUPTER: usize = offset::interrupter(0) as usize;
const DOORBELLS: usize = 0x1000;
/// Doorbells, with that of the command ring.
const DOORBELLS_MAX: usize = 256;

/// Value of the doorbell of the command ring before it is written, since 0 rings it: a reserved bit, which no driver writes. The
/// others hold 0, which names no endpoint.
const COMMANDS_AT_REST: u32 = 1 << 8;

/// Event Handler Busy in the low half of the event ring dequeue pointer.
const HANDLER_BUSY: u32 = 1 << 3;

/// Registers of the interrupter, in the order in which a driver writes them at its start.
const REGISTERS: [u32; 7] = [
    offset::EVENT_RING_SEGMENTS,
    offset::EVENT_RING_TABLE,
    offset::EVENT_RING_TABLE + 4,
    offset::EVENT_RING_DEQUEUE,
    offset::EVENT_RING_DEQUEUE + 4,
    offset::INTERRUPTER_MODERATION,
    offset::INTERRUPTER_MANAGEMENT,
];

/// Of these the ring's place, which changes only while the controller is halted (clause 5.5.2.3.2). Its halves are stored one
/// after the other, so it is looked at when a driver can have written both.
const PLACE: Range<usize> = 0..3;
/// The dequeue pointer.
const DEQUEUE: Range<usize> = 3..5;

/// The registers in memory, and what they held when they were last looked at.
#[derive(Debug)]
pub(super) struct SharedRegisters {
    file: OwnedFd,
    mapping: Mapping,
    seen: [u32; REGISTERS.len()],
}

/// A register that the driver has written: its offset in BAR 0, and the value.
pub(super) type Change = (u32, u32);

impl SharedRegisters {
    /// Registers that hold nothing.
    ///
    /// # Errors
    /// What the system said: no descriptors or no memory.
    pub(super) fn new() -> io::Result<Self> {
        let file = memfd_create("uaskit-registers", MemfdFlags::CLOEXEC.union(MemfdFlags::ALLOW_SEALING))?;
        ftruncate(&file, AREA.end)?;
        fcntl_add_seals(&file, SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL))?;
        let length = (AREA.end - AREA.start) as usize;
        let mapping = Mapping::new(file.as_fd(), AREA.start, length, true)?;
        let registers = Self { file, mapping, seen: [0; REGISTERS.len()] };
        registers.store(DOORBELLS, COMMANDS_AT_REST);
        Ok(registers)
    }

    /// The file that a client maps.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Reads the word at an offset of BAR 0, as the guest sees it.
    pub(super) fn read(&self, at: u32) -> u32 {
        self.mapping.load(place_of(at)).unwrap_or_default()
    }

    /// Writes the word at an offset of BAR 0, as a store of the guest would.
    pub(super) fn write(&self, at: u32, value: u32) {
        self.store(place_of(at), value);
    }

    fn store(&self, at: usize, value: u32) {
        // All offsets are within the mapping.
        let _ = self.mapping.store(at, value);
    }

    /// Takes the value of a doorbell, if there is one.
    #[inline]
    pub(super) fn take_doorbell(&self, slot: u8) -> Option<u32> {
        let at_rest = if slot == 0 { COMMANDS_AT_REST } else { 0 };
        let word = self.mapping.word(DOORBELLS + 4 * usize::from(slot))?;
        // Nearly always there is none, and a look does not take the cache line from the guest.
        if word.load(Ordering::Acquire) == at_rest {
            return None;
        }
        Some(word.swap(at_rest, Ordering::AcqRel))
    }

    /// Returns what the driver has written since the last call, to be written to the controller in this order. `is_halted`: the
    /// controller is, and a driver may have placed its event ring.
    pub(super) fn changes(&mut self, is_halted: bool) -> Vec<Change> {
        let mut changes = Vec::new();
        if is_halted && self.take(PLACE) {
            changes.extend(self.changed(PLACE));
            // The ring begins again, with the dequeue pointer.
            self.take(DEQUEUE);
            changes.extend(self.changed(DEQUEUE));
        } else {
            let is_handled = self.take_handled();
            if self.take(DEQUEUE) || is_handled {
                let dequeue = self.changed(DEQUEUE).enumerate();
                let busy = if is_handled { HANDLER_BUSY } else { 0 };
                changes.extend(
                    dequeue.map(|(half, (at, value))| (at, if half == 0 { value | busy } else { value })),
                );
            }
        }
        for register in DEQUEUE.end..REGISTERS.len() {
            if self.take(register..register + 1) {
                changes.extend(self.changed(register..register + 1));
            }
        }
        changes
    }

    /// Takes Event Handler Busy. Returns whether the driver has written it.
    fn take_handled(&self) -> bool {
        let at = INTERRUPTER + offset::EVENT_RING_DEQUEUE as usize;
        let Some(word) = self.mapping.word(at) else { return false };
        word.load(Ordering::Acquire) & HANDLER_BUSY != 0
            && word.fetch_and(!HANDLER_BUSY, Ordering::AcqRel) & HANDLER_BUSY != 0
    }

    /// Looks at some registers. Returns whether any has changed.
    fn take(&mut self, registers: Range<usize>) -> bool {
        let mut has_changed = false;
        for register in registers {
            let at = INTERRUPTER + REGISTERS[register] as usize;
            let value = self.mapping.load(at).unwrap_or_default() & !mask_of(register);
            has_changed |= std::mem::replace(&mut self.seen[register], value) != value;
        }
        has_changed
    }

    fn changed(&self, registers: Range<usize>) -> impl Iterator<Item = Change> {
        registers.map(|register| (offset_of(register), self.seen[register]))
    }

    /// Stores what the controller holds, where that is not what the driver has written. `read` reads a register of it.
    pub(super) fn publish(&mut self, mut read: impl FnMut(u32) -> u32) {
        for (register, offset) in REGISTERS.into_iter().enumerate() {
            let value = read(offset_of(register)) & !mask_of(register);
            if std::mem::replace(&mut self.seen[register], value) != value {
                self.store(INTERRUPTER + offset as usize, value);
            }
        }
    }

    /// Stores the microframe index, if it is another one.
    pub(super) fn publish_time(&self, microframe: u32) {
        if self.mapping.load(0) != Some(microframe) {
            self.store(0, microframe);
        }
    }

    /// The controller was reset: nothing is written.
    pub(super) fn clear_doorbells(&self) {
        for slot in 1..DOORBELLS_MAX {
            self.store(DOORBELLS + 4 * slot, 0);
        }
        self.store(DOORBELLS, COMMANDS_AT_REST);
    }
}

/// Where a word of BAR 0 is in the mapping; beyond it for one that is not there.
const fn place_of(at: u32) -> usize {
    (at as usize).wrapping_sub(AREA.start as usize)
}

const fn offset_of(register: usize) -> u32 {
    AREA.start as u32 + INTERRUPTER as u32 + REGISTERS[register]
}

/// Bits that the controller does not keep: Event Handler Busy.
const fn mask_of(register: usize) -> u32 {
    if register == DEQUEUE.start { HANDLER_BUSY } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEQUEUE_LOW: u32 = offset_of(DEQUEUE.start);

    #[test]
    fn a_doorbell_is_taken_once_and_has_the_last_value() {
        let registers = SharedRegisters::new().unwrap();
        assert_eq!((registers.take_doorbell(0), registers.take_doorbell(1)), (None, None));
        registers.write(0x2000, 0);
        registers.write(0x2004, 3);
        registers.write(0x2004, 0x0002_0004);
        assert_eq!((registers.take_doorbell(0), registers.take_doorbell(1)), (Some(0), Some(0x0002_0004)));
        assert_eq!((registers.take_doorbell(0), registers.take_doorbell(1)), (None, None));
        registers.write(0x2000, 0);
        registers.write(0x23fc, 1);
        registers.clear_doorbells();
        assert_eq!((registers.take_doorbell(0), registers.take_doorbell(255)), (None, None));
    }

    #[test]
    fn the_ring_is_placed_while_the_controller_is_halted() {
        let mut registers = SharedRegisters::new().unwrap();
        registers.write(offset_of(0), 1);
        registers.write(offset_of(1), 0x4000);
        registers.write(offset_of(2), 0x1);
        assert_eq!(registers.changes(false), []);
        registers.write(DEQUEUE_LOW, 0x5008);
        let placed = [(0x1028, 1), (0x1030, 0x4000), (0x1034, 1), (0x1038, 0x5000), (0x103c, 0)];
        assert_eq!(registers.changes(true), placed);
        assert_eq!(registers.changes(true), [(0x1038, 0x5008), (0x103c, 0)], "and what is handled is");
        assert_eq!(registers.changes(true), []);
    }

    #[test]
    fn an_acknowledgement_is_taken_although_the_pointer_stays() {
        let mut registers = SharedRegisters::new().unwrap();
        registers.write(DEQUEUE_LOW, 0x5000);
        assert_eq!(registers.changes(false), [(0x1038, 0x5000), (0x103c, 0)]);
        registers.write(DEQUEUE_LOW, 0x5008);
        assert_eq!(registers.changes(false), [(0x1038, 0x5008), (0x103c, 0)]);
        assert_eq!((registers.read(DEQUEUE_LOW), registers.changes(false)), (0x5000, Vec::new()));
    }

    #[test]
    fn what_the_controller_changes_is_seen_by_the_guest() {
        let mut registers = SharedRegisters::new().unwrap();
        registers.write(DEQUEUE_LOW, 0x5000);
        registers.changes(false);
        registers.publish(|at| if at == 0x1024 { 4000 } else { 0 });
        registers.publish_time(77);
        let read = [DEQUEUE_LOW, 0x1024, 0x1000].map(|at| registers.read(at));
        assert_eq!((read, registers.changes(false)), ([0, 4000, 77], Vec::new()));
    }

    #[test]
    fn the_file_keeps_its_length() {
        let registers = SharedRegisters::new().unwrap();
        let file = registers.file().try_clone_to_owned().unwrap();
        assert!(ftruncate(&file, 0).is_err() && ftruncate(&file, 1 << 20).is_err());
    }
}
