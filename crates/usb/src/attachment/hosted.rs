//! Attachment of a device behind a controller driven by this crate.

use super::setup::{Found, FoundInterface, choose, session_config};
use super::{AttachConfig, AttachError, Attachment, Stop};
use crate::controller::{ControllerError, HostedDevice, HostedInterface};
use initiator::session::SessionBuffers;

impl Attachment<HostedInterface> {
    /// Configures a device and identifies the disk.
    ///
    /// # Errors
    ///
    /// See [`AttachError`]. The device is released then.
    pub fn hosted(device: HostedDevice, config: &AttachConfig) -> Result<Self, AttachError<ControllerError>> {
        let plan = choose(&device.answers(), device.speed(), config.transport)?;
        let session_config = session_config(plan, config);
        let blocks = SessionBuffers::blocks(&session_config);
        let (bus, firsts) = HostedInterface::open(device, plan.place().interface, blocks)?;
        let found = Found::Unbound { alternate: 0 };
        let buffers = SessionBuffers::new(firsts, &session_config);
        let interface = FoundInterface { bus, plan, found };
        Self::set_up(interface, buffers, config, &Stop::default()).map_err(|(_, error)| error)
    }

    /// Returns the host bus.
    pub const fn bus(&self) -> &HostedInterface {
        self.session.bus()
    }
}
