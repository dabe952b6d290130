//! A USB host controller driven in user space, without a kernel driver.
//!
//! [`UsbHost`] takes an xHCI controller passed through by VFIO ([`crate::vfio`]), runs the driver of the
//! crate `xhci_driver` on it, and reports port changes. [`UsbHost::attach`] creates a [`HostedDevice`],
//! with its descriptors; [`Attachment::hosted`](crate::attachment::Attachment::hosted) drives a disk.
//!
//! ```no_run
//! use uaskit_usb::attachment::{AttachConfig, Attachment};
//! use uaskit_usb::controller::{HostConfig, UsbHost};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = UsbHost::open(&"0000:00:14.0".parse()?, &HostConfig::default())?;
//! while let Some(change) = host.next_change(Duration::from_secs(1))? {
//!     if change.is_connected() {
//!         let device = host.attach(change.port)?;
//!         println!("port {}: {}", change.port, device.descriptor());
//!         let disk = Attachment::hosted(device, &AttachConfig::default())?;
//!         println!("{} bytes over {}", disk.geometry().bytes(), disk.transport());
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A controller and all its devices belong to one thread; waiting for one device handles events of all.
//! Always true: every wait has a limit; a dropped device frees its slot; memory is not freed before the
//! transfers that use it have completed. Left out: devices behind hubs, suspend, configurations other
//! than the first.

mod changes;
mod device;
mod error;
mod hardware;
mod inner;
mod interface;
mod quirks;

pub use changes::{HostCounters, PortChange};
pub use device::HostedDevice;
pub use error::ControllerError;
pub use interface::HostedInterface;

use crate::vfio::{Function, PciAddress};
use inner::Inner;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use xhci_driver::{Capabilities, Config};

/// Parameters of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Parameters of the driver. Known quirks of the controller are added.
    pub driver: Config,
}

/// An xHCI controller, owned until this and all its devices are dropped.
#[derive(Clone, Debug)]
pub struct UsbHost {
    inner: Rc<RefCell<Inner>>,
}

impl Default for HostConfig {
    /// Rings of two segments: the command pipe of UAS has to hold an IU for each of 254 tags, and
    /// one that crosses a boundary of 64 KiB takes two places. As many events as may be: the caller
    /// that uses a disk is not always there to take them.
    fn default() -> Self {
        Self { driver: Config { ring_segments: 2, event_ring_trbs: 4096, ..Config::default() } }
    }
}

impl UsbHost {
    /// Takes a controller bound to `vfio-pci` and waits until it runs.
    ///
    /// # Errors
    ///
    /// Why it cannot be opened or does not run.
    pub fn open(address: &PciAddress, config: &HostConfig) -> Result<Self, ControllerError> {
        let function = Function::open(address)?;
        let driver = Config { quirks: quirks::of(function.id(), config.driver.quirks), ..config.driver };
        let mut inner = Inner::new(function, driver);
        inner.start()?;
        Ok(Self { inner: Rc::new(RefCell::new(inner)) })
    }

    /// Returns the capabilities of the controller.
    pub fn capabilities(&self) -> Option<Capabilities> {
        self.inner.borrow().capabilities().cloned()
    }

    /// Returns the counts since opening.
    pub fn counters(&self) -> HostCounters {
        self.inner.borrow().counters()
    }

    /// Waits for the next connect or disconnect on a root port; at first returns each connected
    /// port. `None`: the limit passed.
    ///
    /// # Errors
    ///
    /// If the controller failed for good.
    pub fn next_change(&self, limit: Duration) -> Result<Option<PortChange>, ControllerError> {
        self.inner.borrow_mut().next_change(limit)
    }

    /// Handles pending events, then waits for an interrupt, a signal, or the limit.
    ///
    /// # Errors
    ///
    /// If the controller failed for good.
    pub fn wait(&self, limit: Duration) -> Result<crate::host_bus::Readiness, ControllerError> {
        self.inner.borrow_mut().turn(limit)
    }

    /// Resets a port, addresses its device and reads its descriptors.
    ///
    /// # Errors
    ///
    /// If no device is connected, or it does not answer.
    pub fn attach(&self, port: u8) -> Result<HostedDevice, ControllerError> {
        HostedDevice::attach(&self.inner, port)
    }
}
