//! Power loss of a drive in memory.

use super::Drive;
use crate::medium::{Medium, PowerLoss};
use device::lun::UnitEvent;

impl<M: Medium + ?Sized> Drive<M> {
    /// Loses power, and has it again: the host's transfers end, media keep what is durable, and the units report a power on.
    /// Nothing may be at the media. Returns whether all media have a model of it.
    pub fn lose_power(&mut self, loss: PowerLoss) -> bool {
        debug_assert_eq!(self.at_media(), 0, "a medium works on a request");
        self.bus_reset();
        let mut has_model = true;
        for medium in &mut self.media {
            has_model &= medium.lose_power(loss);
        }
        for unit in self.device.units_mut() {
            unit.handle_event(UnitEvent::PowerOn);
        }
        has_model
    }
}
