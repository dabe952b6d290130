//! An interface that stays claimed between two attachments.
//!
//! If the kernel driver were reattached in between, udev and desktops would probe and perhaps mount
//! the disk. So the interface stays claimed from one attachment to the next, whatever their
//! transports, and is released at the end. Before it is claimed, transfers, streams and buffers of the
//! old attachment are freed; toggles and halts are cleared when the next one starts.
//!
//! Always true: the kernel driver is bound again once, however the last owner ends; an interface
//! that cannot be quiesced, or is lost, is not claimed.

use super::open::{Prospect, URBS_MAX, refuse_too_much};
use super::setup::{Found, FoundInterface};
use super::{AttachConfig, AttachError, Attachment, Stop, in_use};
use crate::host_bus::{Enumerated, HardwareBus, ObservedBus};
use crate::usbfs::{InterfaceName, UsbInterface, UsbfsError};
use bus::Observer;
use initiator::session::SessionBuffers;
use inspect::inventory::{Interface, UsbDevice};
use inspect::tree::Tree;

/// An interface claimed from the kernel driver, or none yet.
#[derive(Debug, Default)]
pub struct ClaimedInterface {
    claimed: Option<UsbInterface>,
    stop: Stop,
}

impl ClaimedInterface {
    /// Lets `stop` interrupt the identify sequences of later attachments.
    pub fn stop_by(&mut self, stop: Stop) {
        self.stop = stop;
    }

    /// Claims the disk from the kernel driver, unless it is claimed already, and identifies it.
    /// Fails if the system uses any logical unit of the interface.
    ///
    /// `device` must be from a current inventory of `tree`, which must be the running machine.
    ///
    /// # Errors
    ///
    /// See [`AttachError`]. The interface stays claimed if it is unaffected, else the kernel driver
    /// is reattached.
    pub fn attach(
        &mut self,
        tree: &Tree,
        device: &UsbDevice,
        config: &AttachConfig,
    ) -> Result<Attachment, AttachError> {
        self.attach_through(tree, device, config, |bus, _, _| bus)
    }

    /// Like [`Self::attach`], with an observer of the transfers.
    ///
    /// # Errors
    ///
    /// As for [`Self::attach`].
    pub fn attach_observed(
        &mut self,
        tree: &Tree,
        device: &UsbDevice,
        config: &AttachConfig,
        observer: Box<dyn Observer>,
    ) -> Result<Attachment<ObservedBus<UsbInterface>>, AttachError> {
        self.attach_through(tree, device, config, |bus, number, read| {
            ObservedBus::new(bus, number, observer, read)
        })
    }

    /// Ends an attachment and keeps its interface for the next one. An interface that cannot be
    /// claimed is released at once.
    ///
    /// # Errors
    ///
    /// If it was to be released and is not in its previous state.
    pub fn retain<D>(&mut self, attachment: Attachment<D>) -> Result<(), UsbfsError>
    where
        D: HardwareBus<Error = UsbfsError> + Into<UsbInterface>,
    {
        let is_at_rest = attachment.session.is_at_rest();
        let bus = attachment.session.into_bus().into();
        if is_at_rest { self.put(bus) } else { bus.close() }
    }

    /// Returns whether an interface is claimed.
    pub const fn is_claimed(&self) -> bool {
        self.claimed.is_some()
    }

    /// Releases the interface, if claimed, and reattaches the kernel driver.
    ///
    /// # Errors
    ///
    /// If it is not in its previous state, with what to do.
    pub fn reattach(&mut self) -> Result<(), UsbfsError> {
        self.claimed.take().map_or(Ok(()), UsbInterface::close)
    }

    /// Attaches through a wrapper of the bus, which gets the interface number and the descriptors.
    fn attach_through<D>(
        &mut self,
        tree: &Tree,
        device: &UsbDevice,
        config: &AttachConfig,
        put_on: impl FnOnce(UsbInterface, u8, &Enumerated<'_>) -> D,
    ) -> Result<Attachment<D>, AttachError>
    where
        D: HardwareBus<Error = UsbfsError> + Into<UsbInterface>,
    {
        let descriptors = Prospect::descriptors(tree, device)?;
        let prospect = Prospect::of(&descriptors, device, config)?;
        let (mut bus, found) = self.take(tree, device, &prospect)?;
        let allocated = bus
            .allocate(URBS_MAX, SessionBuffers::blocks(&prospect.session_config))
            .map_err(AttachError::Bus);
        let buffers = match allocated.and_then(|firsts| refuse_too_much(&bus, config).map(|()| firsts)) {
            Ok(firsts) => SessionBuffers::new(firsts, &prospect.session_config),
            Err(error) => return Err(self.retain_after_error(bus, error)),
        };
        let bus = put_on(bus, prospect.interface.number, &prospect.read);
        let attached = Attachment::set_up(
            FoundInterface { bus, plan: prospect.plan, found },
            buffers,
            config,
            &self.stop,
        );
        attached.map_err(|(bus, error)| self.retain_after_error(bus.into(), error))
    }

    /// Returns the claimed interface if it is the wanted one; else claims the wanted one in its
    /// place.
    fn take(
        &mut self,
        tree: &Tree,
        device: &UsbDevice,
        prospect: &Prospect<'_>,
    ) -> Result<(UsbInterface, Found), AttachError> {
        let name = prospect.name();
        if let Some(bus) = self.claimed.take_if(|bus| is_same(bus.interface(), &name)) {
            let settings = device.configuration.iter().flat_map(|all| all.settings_of(name.number)).count();
            return Ok((bus, Found::Used { settings }));
        }
        // It is another interface, or the device has come back under another number.
        self.reattach()?;
        refuse_if_in_use(tree, prospect.interface)?;
        let alternate = prospect.interface.alternate;
        Ok((UsbInterface::open(name)?, Found::Unbound { alternate }))
    }

    /// Keeps a bus after an error that does not affect the drive; returns the error.
    fn retain_after_error(&mut self, bus: UsbInterface, error: AttachError) -> AttachError {
        if error.spares_the_drive() {
            // That it was not given back either would hide why.
            let _ = self.put(bus);
        }
        error
    }

    fn put(&mut self, mut bus: UsbInterface) -> Result<(), UsbfsError> {
        if bus.quiesce().is_err() {
            return bus.close();
        }
        self.claimed = Some(bus);
        Ok(())
    }
}

/// Refuses an interface if the system uses one of its disks.
pub(super) fn refuse_if_in_use(tree: &Tree, interface: &Interface) -> Result<(), AttachError> {
    for disk in &interface.disks {
        if let Some(by) = in_use::user_of(tree, disk) {
            return Err(AttachError::InUse { disk: disk.node.clone().unwrap_or_default(), by });
        }
    }
    Ok(())
}

/// Returns whether both are the same interface of a device that stayed connected.
fn is_same(held: &InterfaceName, wanted: &InterfaceName) -> bool {
    (held.bus, held.device, held.number) == (wanted.bus, wanted.device, wanted.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_was_away_is_another() {
        let held = InterfaceName {
            bus: 2,
            device: 3,
            number: 0,
            name: "2-1:1.0".into(),
            driver: Some("uas".into()),
        };
        // The inventory shows our claim by now.
        assert!(is_same(&held, &InterfaceName { driver: Some("usbfs".into()), ..held.clone() }));
        for other in [
            InterfaceName { device: 4, ..held.clone() },
            InterfaceName { number: 1, name: "2-1:1.1".into(), ..held.clone() },
            InterfaceName { bus: 3, ..held.clone() },
        ] {
            assert!(!is_same(&held, &other), "{other:?}");
        }
    }
}
