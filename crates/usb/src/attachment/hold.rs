//! What is ours of a drive while nobody drives it: the interface between two attachments.
//!
//! Given back, the interface would be a disk again, which udev, desktops and whoever else waits for disks would look at and might
//! mount. So it stays claimed from one attachment to the next, whatever transports they use, and goes back at the end. What an
//! attachment leaves is ended before it is kept: transfers, streams, memory; toggles and halts are cleared when the next one begins.
//!
//! Always true: the kernel's driver is bound again once, whatever ends the last that holds the interface; what did not come to rest,
//! or was lost, is not kept.

use super::open::{Prospect, refuse_too_much};
use super::setup::Found;
use super::{AttachConfig, AttachError, Attachment, Stop, in_use};
use crate::door::{BusDoor, Enumerated, Watched};
use crate::usbfs::{Door, InterfaceName, UsbfsError};
use bus::Observer;
use inspect::inventory::UsbDevice;
use inspect::tree::Tree;

/// URBs at once: three for each command, and some for transfers in many pieces.
const URBS_MAX: u16 = 1024;

/// An interface that was taken from the kernel's driver, or none yet.
#[derive(Debug, Default)]
pub struct Hold {
    kept: Option<Door>,
    stop: Stop,
}

impl Hold {
    /// Has surveys of disks that are taken from now on end early.
    pub fn stop_by(&mut self, stop: Stop) {
        self.stop = stop;
    }

    /// Takes a disk from the kernel's driver, unless it is held already, and surveys it. Whoever uses any unit of the interface would
    /// lose it, and keeps the disk from being taken.
    ///
    /// `device` is what an inventory of `tree`, which must be the running machine, has just found.
    ///
    /// # Errors
    /// See [`AttachError`]. The interface is held as it was if nothing of it has failed, else given back.
    pub fn attach(
        &mut self,
        tree: &Tree,
        device: &UsbDevice,
        config: &AttachConfig,
    ) -> Result<Attachment, AttachError> {
        self.attach_through(tree, device, config, |door, _, _| door)
    }

    /// The same, with somebody who looks on at the transfers.
    ///
    /// # Errors
    /// As above.
    pub fn attach_watched(
        &mut self,
        tree: &Tree,
        device: &UsbDevice,
        config: &AttachConfig,
        observer: Box<dyn Observer>,
    ) -> Result<Attachment<Watched<Door>>, AttachError> {
        self.attach_through(tree, device, config, |door, number, read| {
            Watched::new(door, number, observer, read)
        })
    }

    /// Ends an attachment, and keeps its interface for the next one. What cannot be kept is given back at once.
    ///
    /// # Errors
    /// If it was to be given back, and is not as it was before.
    pub fn keep<D>(&mut self, attachment: Attachment<D>) -> Result<(), UsbfsError>
    where
        D: BusDoor<Error = UsbfsError> + Into<Door>,
    {
        let is_at_rest = attachment.is_at_rest();
        let door = attachment.door.into();
        if is_at_rest { self.put(door) } else { door.close() }
    }

    /// Whether an interface is held.
    pub const fn is_held(&self) -> bool {
        self.kept.is_some()
    }

    /// Gives the interface back to where it was taken from, if it is held.
    ///
    /// # Errors
    /// If it is not as it was before, with what to do.
    pub fn give_back(&mut self) -> Result<(), UsbfsError> {
        self.kept.take().map_or(Ok(()), Door::close)
    }

    /// Something may be put on the door: by the number of the interface and what the device told.
    fn attach_through<D>(
        &mut self,
        tree: &Tree,
        device: &UsbDevice,
        config: &AttachConfig,
        put_on: impl FnOnce(Door, u8, &Enumerated<'_>) -> D,
    ) -> Result<Attachment<D>, AttachError>
    where
        D: BusDoor<Error = UsbfsError> + Into<Door>,
    {
        let descriptors = Prospect::descriptors(tree, device)?;
        let prospect = Prospect::of(&descriptors, device, config)?;
        let (mut door, found) = self.take(tree, device, &prospect)?;
        let furnished = door.furnish(URBS_MAX, prospect.memory.blocks).map_err(AttachError::Door);
        let cells = match furnished.and_then(|firsts| refuse_too_much(&door, config).map(|()| firsts)) {
            Ok(firsts) => prospect.memory.cells(firsts),
            Err(error) => return Err(self.keep_after(door, error)),
        };
        let door = put_on(door, prospect.interface.number, &prospect.read);
        let attached = Attachment::set_up(door, cells, (prospect.plan, found), config, &self.stop);
        attached.map_err(|(door, error)| self.keep_after(door.into(), error))
    }

    /// The door of an interface: the one that is held, or another in its place.
    fn take(
        &mut self,
        tree: &Tree,
        device: &UsbDevice,
        prospect: &Prospect<'_>,
    ) -> Result<(Door, Found), AttachError> {
        let name = prospect.name();
        if let Some(door) = self.kept.take_if(|door| is_same(door.interface(), &name)) {
            let settings = device.configuration.iter().flat_map(|all| all.settings_of(name.number)).count();
            return Ok((door, Found::Used { settings }));
        }
        // It is another interface, or the device has come back under another number.
        self.give_back()?;
        for disk in &prospect.interface.disks {
            if let Some(by) = in_use::user_of(tree, disk) {
                return Err(AttachError::InUse { disk: disk.node.clone().unwrap_or_default(), by });
            }
        }
        let alternate = prospect.interface.alternate;
        Ok((Door::open(name)?, Found::Unbound { alternate }))
    }

    /// Keeps a door that nothing has come of, if the drive has done nothing wrong; the error comes back.
    fn keep_after(&mut self, door: Door, error: AttachError) -> AttachError {
        if error.spares_the_drive() {
            // That it was not given back either would hide why.
            let _ = self.put(door);
        }
        error
    }

    fn put(&mut self, mut door: Door) -> Result<(), UsbfsError> {
        if door.rest().is_err() {
            return door.close();
        }
        self.kept = Some(door);
        Ok(())
    }
}

/// Whether both are the same interface of a device that has not been away in between.
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
        // The inventory tells of ourselves by now.
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
