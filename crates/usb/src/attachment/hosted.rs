//! From a device of a controller that is ours to a disk that is driven by us.

use super::setup::{Found, Memory, choose};
use super::{AttachConfig, AttachError, Attachment, Stop};
use crate::controller::{ControllerError, HostedDevice, HostedDoor};

impl Attachment<HostedDoor> {
    /// Configures a device, and surveys the disk.
    ///
    /// # Errors
    /// See [`AttachError`]. The device is given up then.
    pub fn hosted(device: HostedDevice, config: &AttachConfig) -> Result<Self, AttachError<ControllerError>> {
        let plan = choose(&device.answers(), device.speed(), config.transport)?;
        let memory = Memory::of(plan, config);
        let (door, firsts) = HostedDoor::open(device, plan.place().interface, memory.blocks)?;
        let found = Found::Unbound { alternate: 0 };
        let cells = memory.cells(firsts);
        Self::set_up(door, cells, (plan, found), config, &Stop::default()).map_err(|(_, error)| error)
    }

    /// What carries it.
    pub const fn door(&self) -> &HostedDoor {
        &self.door
    }
}
