//! Attachment of a device behind a controller driven by this crate.

use super::setup::{Found, FoundInterface, Memory, choose};
use super::{AttachConfig, AttachError, Attachment, Stop};
use crate::controller::{ControllerError, HostedDevice, HostedInterface};

impl Attachment<HostedInterface> {
    /// Configures a device and identifies the disk.
    ///
    /// # Errors
    ///
    /// See [`AttachError`]. The device is released then.
    pub fn hosted(device: HostedDevice, config: &AttachConfig) -> Result<Self, AttachError<ControllerError>> {
        let plan = choose(&device.answers(), device.speed(), config.transport)?;
        let memory = Memory::of(plan, config);
        let (bus, firsts) = HostedInterface::open(device, plan.place().interface, memory.blocks)?;
        let found = Found::Unbound { alternate: 0 };
        let buffers = memory.buffers(firsts);
        let interface = FoundInterface { bus, plan, found };
        Self::set_up(interface, buffers, config, &Stop::default()).map_err(|(_, error)| error)
    }

    /// Returns the host bus.
    pub const fn bus(&self) -> &HostedInterface {
        &self.bus
    }
}
