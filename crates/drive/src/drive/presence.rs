//! Media that come and go while the drive is served: the hand at the slot.
//!
//! A medium leaves in two steps. First the unit has none, so that no command is let through any more; then, when those that
//! were let through have ended, it is taken out. Nothing of an old command can reach a medium that comes later.
//!
//! Left out: units that come and go.

use super::Drive;
use crate::medium::{EmptySlot, Medium};
use device::lun::{InsertedMedium, LogicalUnit};
use std::fmt;
use units::BlockCount;

/// Why a medium cannot be put in, taken out or measured.
#[derive(Debug, PartialEq, Eq)]
pub enum SlotError {
    /// There is no such unit.
    NoUnit,
    /// The unit's medium is part of it.
    Fixed,
    /// There is a medium already.
    Occupied,
    /// There is none.
    Empty,
    /// The host has prevented its removal, and uses it perhaps.
    Prevented,
    /// Commands for it are in flight. They complete without help.
    Busy,
    /// Its blocks have another length than the unit's.
    BlockSize,
    /// Its saved state or its length cannot be read.
    Io(String),
}

impl Drive {
    /// Whether there is a medium in the slot of a unit, whatever the host has done with it.
    pub fn has_medium(&self, unit: u8) -> bool {
        self.media.get(usize::from(unit)).is_some_and(|medium| medium.capacity().0 > 0)
    }

    /// Puts a medium into an empty slot. The host learns of it by a unit attention.
    ///
    /// # Errors
    /// Returns the reason why it cannot be inserted, with the medium.
    pub fn insert_medium(
        &mut self,
        unit: u8,
        medium: Box<dyn Medium + Send>,
    ) -> Result<(), (SlotError, Box<dyn Medium + Send>)> {
        match self.check_insertion(unit, &*medium) {
            Ok(inserted) => {
                self.media[usize::from(unit)] = medium;
                self.device.insert_medium(unit, inserted);
                self.settle();
                Ok(())
            }
            Err(error) => Err((error, medium)),
        }
    }

    fn check_insertion(&self, unit: u8, medium: &dyn Medium) -> Result<InsertedMedium, SlotError> {
        let state = self.removable_unit(unit)?;
        if self.has_medium(unit) {
            return Err(SlotError::Occupied);
        }
        if self.device.uses_medium(unit) {
            return Err(SlotError::Busy);
        }
        if medium.block_size() != state.config.block_size {
            return Err(SlotError::BlockSize);
        }
        Ok(InsertedMedium {
            capacity: medium.capacity(),
            read_only: medium.is_read_only(),
            durable: medium.keeps_state(),
            atomic_writes: medium.writes_atomically(),
            durable_state: medium.load_state().map_err(|error| SlotError::Io(error.to_string()))?,
        })
    }

    /// Begins to take a medium out: the unit has none from now on. `force` does so although the host prevents it.
    ///
    /// # Errors
    /// Returns the reason why it cannot be ejected.
    pub fn eject_medium(&mut self, unit: u8, force: bool) -> Result<(), SlotError> {
        let state = self.removable_unit(unit)?;
        if !self.has_medium(unit) {
            return Err(SlotError::Empty);
        }
        if state.removal_prevented && !force {
            if let Some(state) = self.device.units_mut().get_mut(usize::from(unit)) {
                state.request_eject();
            }
            return Err(SlotError::Prevented);
        }
        if let Some(state) = self.device.units_mut().get_mut(usize::from(unit)) {
            state.remove_medium();
        }
        Ok(())
    }

    /// Takes out the medium that was ejected, once no command for it is in flight.
    pub fn take_medium(&mut self, unit: u8) -> Option<Box<dyn Medium + Send>> {
        if self.device.uses_medium(unit) {
            return None;
        }
        let slot = self.media.get_mut(usize::from(unit))?;
        let block_size = slot.block_size();
        Some(std::mem::replace(slot, Box::new(EmptySlot { block_size })))
    }

    /// Looks again how large a unit's medium is; the host learns of a change by a unit attention.
    ///
    /// # Errors
    /// Returns the reason why it cannot be measured.
    pub fn measure_medium(&mut self, unit: u8) -> Result<BlockCount, SlotError> {
        if !self.has_medium(unit) {
            return Err(if self.unit(unit).is_some() { SlotError::Empty } else { SlotError::NoUnit });
        }
        if self.device.uses_medium(unit) {
            return Err(SlotError::Busy);
        }
        let medium = &mut self.media[usize::from(unit)];
        let capacity = medium.measure().map_err(|error| SlotError::Io(error.to_string()))?;
        if let Some(state) = self.device.units_mut().get_mut(usize::from(unit)) {
            state.resize_medium(capacity);
        }
        Ok(capacity)
    }

    fn unit(&self, unit: u8) -> Option<&LogicalUnit> {
        self.device.units().get(usize::from(unit))
    }

    fn removable_unit(&self, unit: u8) -> Result<&LogicalUnit, SlotError> {
        let state = self.unit(unit).ok_or(SlotError::NoUnit)?;
        if state.config.removable { Ok(state) } else { Err(SlotError::Fixed) }
    }
}

impl fmt::Display for SlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoUnit => "there is no such logical unit",
            Self::Fixed => "the medium is not removable; serve the drive with --removable",
            Self::Occupied => "it already has a medium; eject that first",
            Self::Empty => "it has no medium; insert one first",
            Self::Prevented => "the host prevents removal; unmount the medium there, or use --force",
            Self::Busy => "commands of the host are in flight; try again",
            Self::BlockSize => "the block size of the image differs from that of the logical unit",
            Self::Io(why) => why,
        })
    }
}

impl std::error::Error for SlotError {}
